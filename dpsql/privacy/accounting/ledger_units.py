"""Losses as whole numbers of ledger units: charges are rounded up and limits down, so sums in the ledger err on the safe side."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, inf, nextafter

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
        charge[dimension] = ceil(value * UNITS[dimension])
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
