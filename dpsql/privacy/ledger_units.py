"""Losses as whole numbers of ledger units: charges are rounded up and limits down, so sums in the ledger err on the safe side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from fractions import Fraction
from math import floor, inf, nextafter

from dpsql.errors.exceptions import refuse

DECIMALS = {"epsilon": 18, "delta": 18, "rho": 36}
"""Dimensions that a ledger tracks, with d for ledger units of 10**-d: of a nat (epsilon, rho), or of a probability of one
(delta)."""
UNITS = {dimension: 10**digits for dimension, digits in DECIMALS.items()}


def charge_units(loss: Mapping[str, Fraction | None], accountant: str) -> dict[str, int]:
    """Return a loss by dimension in ledger units, rounded up. Raises Refusal loss_infinite if a dimension is None."""
    charge = {}
    for dimension, value in loss.items():
        if value is None:
            raise refuse("loss_infinite", accountant=accountant)
        charge[dimension] = -(-value.numerator * UNITS[dimension] // value.denominator)
    return charge


def limit_units(limits: Mapping[str, Fraction]) -> dict[str, int]:
    """Return the limits by dimension in ledger units, rounded down."""
    return {dimension: floor(value * UNITS[dimension]) for dimension, value in limits.items()}


def spent_amount(spent: Mapping[str, int], dimension: str) -> Fraction:
    """Return the `spent` ledger units of one dimension as an exact number; 0 if there are none."""
    return Fraction(spent.get(dimension, 0), UNITS[dimension])


def float_upper(value: Fraction) -> float:
    """Return the smallest float >= value."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else nextafter(nearest, inf)


# --- windows of time --------------------------------------------------------------------------------------------------

# Budgets that are renewed: the calendar of their windows.
# A window is a part of the calendar (UTC) with its own limit. Each window's limit is a filter for adaptively chosen
# mechanisms, and the losses of windows add up in the ledger's dimensions: n windows lose at most n times the limit. So a
# window bounds what is learned in that time, and only a limit on all windows together (`lifetime`) bounds what is learned in
# total.

_CALENDAR: dict[str, tuple[Callable[[date], date], int]] = {
    "day": (lambda day: day, 365),
    "week": (lambda day: day - timedelta(days=day.weekday()), 52),
    "month": (lambda day: day.replace(day=1), 12),
    "quarter": (lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), 4),
    "year": (lambda day: day.replace(month=1, day=1), 1),
}
EVERY = tuple(_CALENDAR)
"""Names of the window lengths; a week begins on Monday."""


def window_start(every: str, day: date) -> date:
    """Return the first day of the window of length `every` that contains `day`."""
    return _CALENDAR[every][0](day)


def next_start(every: str, day: date) -> date:
    """Return the first day of the window after the one that contains `day`."""
    start = later = window_start(every, day)
    while later == start:
        day += timedelta(days=1)
        later = window_start(every, day)
    return later


def windows_in_a_year(every: str) -> int:
    return _CALENDAR[every][1]
