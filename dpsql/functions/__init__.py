"""Total row functions: signatures, facts about results, their meaning in Python, and public domains of keys.

Input: expressions of `plan` with facts about their arguments. Output: facts, values, domains. No engine text.
"""
