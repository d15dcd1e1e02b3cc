"""Total row functions: signatures, facts about results, their meaning in Python, and public domains of keys.

Enters: expressions of `plan` with facts about their arguments. Leaves: facts, values, domains. No engine text.
"""
