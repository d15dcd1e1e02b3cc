"""The register of accountants, by their names in the policy."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.privacy.accounting.contract import Accountant
from dpsql.privacy.accounting.conversions import MOST_EPSILON
from dpsql.privacy.accounting.pure import Pure
from dpsql.privacy.accounting.zcdp import Zcdp
from dpsql.privacy.loss import plain_decimal

ACCOUNTANTS: dict[str, type[Any]] = {accountant.kind: accountant for accountant in (Pure, Zcdp)}
"""Implementations of `Accountant`, which are constructed from a budget's epsilon and delta."""


def make_accountant(kind: str, epsilon: Fraction, delta: Fraction) -> Accountant:
    """Return an accountant of `kind` for a budget of epsilon (nats) and delta.

    Raises PolicyRefusal accountant_budget for an unknown kind, epsilon outside (0, 10**6], delta outside [0, 1), or less
    delta than the accountant needs.
    """
    accountant_type = ACCOUNTANTS.get(kind)
    problem = ""
    if not (isinstance(epsilon, Fraction) and isinstance(delta, Fraction)):
        problem = "epsilon and delta are exact numbers"
    elif not 0 < epsilon <= MOST_EPSILON:
        problem = f"epsilon must be above 0 and at most {MOST_EPSILON}"
    elif not 0 <= delta < 1:
        problem = "delta must be at least 0 and below 1"
    elif accountant_type is None:
        problem = f"there are {' and '.join(ACCOUNTANTS)}"
    elif delta < accountant_type.least_delta:
        problem = f"it needs delta of at least {plain_decimal(accountant_type.least_delta)}"
    if problem or accountant_type is None:
        raise refuse("accountant_budget", accountant=kind, problem=problem)
    accountant: Accountant = accountant_type(epsilon, delta)
    return accountant


def needs_delta(kind: str) -> bool:
    """Return whether a budget with an accountant of this kind must have a delta."""
    return kind in ACCOUNTANTS and bool(ACCOUNTANTS[kind].least_delta > 0)
