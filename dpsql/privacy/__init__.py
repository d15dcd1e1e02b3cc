"""Privacy losses, noise mechanisms as data, and accountants.

Enters: sensitivities and epsilon, delta, rho as exact fractions. Leaves: noise scales, losses, composed budgets. No SQL, no
data and no randomness: samplers stand in `dpsql.noise`.
"""
