"""From SQL text to a plan: split scripts, parse, and bind names to the policy, by allow-lists.

Input: text and policy. Output: a `Plan` of private blocks and a public remainder, or a refusal with its position.
"""
