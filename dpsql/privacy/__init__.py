"""Privacy losses, noise mechanisms as data, and accountants.

Input: sensitivities and epsilon, delta, rho as exact fractions. Output: noise scales, losses, composed budgets. There is no SQL,
no data and no randomness here: samplers are in `dpsql.noise`.
"""
