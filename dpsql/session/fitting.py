"""What would fit where a question does not fit the budget: the hint of its refusal."""

from __future__ import annotations

from decimal import ROUND_DOWN, Context
from fractions import Fraction
from math import sqrt

from dpsql.errors.exceptions import Error
from dpsql.planning.planner import Planned, Planner
from dpsql.privacy.loss import plain_decimal
from dpsql.session.budget import Budget

_DIGITS = Context(prec=2, rounding=ROUND_DOWN)
_ATTEMPTS = 4
_LESS = 0.9


def fitting_hint(planner: Planner, planned: Planned, budget: Budget) -> str:
    """Return the hint "epsilon 0.049 would fit" with an epsilon of two digits for which the whole question was priced and fits;
    "" if none is found, or if the question asks for an error instead. It follows from the ledger, the text and the policy."""
    options, accountant = planned.options, planner.accountant
    share = _share(accountant.units(planned.price.loss), budget)
    if options.target_error is not None or not 0 < share < 1:
        return ""
    squared = accountant.request(options.epsilon).rho is not None
    epsilon = float(options.epsilon) * (sqrt(share) if squared else float(share))
    for _ in range(_ATTEMPTS):
        text = f"{_DIGITS.create_decimal_from_float(epsilon):f}"
        try:
            changed = options.with_value("epsilon", text, planner.policy)
            loss = planner.plan(planned.statement, changed, cacheable=False).price.loss
        except Error:  # below the least epsilon of the policy, or too little for this question
            return ""
        if _share(accountant.units(loss), budget) >= 1:
            return f"epsilon {plain_decimal(Fraction(text))} would fit"
        epsilon *= _LESS
    return ""


def _share(charge: dict[str, int], budget: Budget) -> Fraction:
    """Return the part of a charge that fits every scope that is limited, with 1 for a charge that fits."""
    shares = [
        Fraction(account.remaining.get(dimension, 0), amount)
        for account in budget.accounts.values()
        for dimension, amount in charge.items()
        if amount and dimension in account.limits
    ]
    return min([Fraction(1), *shares])
