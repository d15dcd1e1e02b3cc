"""From SQL text to a plan: parse, split scripts, and bind names against the policy, by allow-list.

Enters: text and policy. Leaves: a `Plan` of private blocks and a public remainder, or a refusal with its place.
"""
