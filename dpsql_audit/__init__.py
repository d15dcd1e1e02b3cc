"""The test of the guarantee that an owner can run: the installed dpsql against databases made from the policy alone.

Enters: a policy, questions, a number of seconds. Leaves: a report of what was tried, how near the claims it came, and what broke.
The protected data are never opened. What holds between neighbours is computed from the definitions (`distances`), not from the
claims of pricing.
"""
