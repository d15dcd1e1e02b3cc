"""Types of the privacy guarantee: neighbours and exact privacy loss.

Nothing here is floating point: epsilon, delta and rho are fractions, so that ten times 0.1 is exactly 1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction

from dpsql.privacy.pure_to_zcdp import rho_of_pure


class Neighbours(str, Enum):
    """The pairs of databases that must be hard to distinguish (privacy.md 1)."""

    ADD_REMOVE = "add_remove"
    CHANGE_ONE = "change_one"

    @property
    def factor(self) -> int:
        """The factor for every add_remove sensitivity: replacing a unit is one removal and one addition."""
        return 2 if self is Neighbours.CHANGE_ONE else 1


@dataclass(frozen=True)
class PrivacyLoss:
    """An upper bound on what a mechanism reveals: (epsilon, delta)-DP and delta-approximate rho-zCDP at once.

    `epsilon` or `rho` may be None, which means infinite ("unknown costs infinity"): a Gaussian mechanism has no pure
    epsilon. Unit: nats; `delta` is a probability. Both (epsilon, delta) and (rho, delta) hold with the same `delta`.
    """

    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction | None

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta), ("rho", self.rho)):
            if value is None and name != "delta":
                continue
            if not isinstance(value, Fraction) or value.numerator < 0:
                raise ValueError(f"{name} must be a Fraction >= 0, not {value!r}")

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        """Return the loss under sequential composition: sums of epsilon, delta and rho; infinite stays infinite.

        Basic composition of (epsilon, delta)-DP (Dwork and Roth 2014, Theorem 3.16) and of delta-approximate zCDP
        (Bun and Steinke 2016, Lemma 8.2; delta_1 + delta_2 bounds delta_1 + delta_2 - delta_1 delta_2).
        """
        return PrivacyLoss(
            None if self.epsilon is None or other.epsilon is None else _sum(self.epsilon, other.epsilon),
            _sum(self.delta, other.delta),
            None if self.rho is None or other.rho is None else _sum(self.rho, other.rho),
        )

    @classmethod
    def pure(cls, epsilon: Fraction, delta: Fraction = Fraction(0)) -> PrivacyLoss:
        """Return the loss of (epsilon, delta)-DP, which implies delta-approximate (epsilon tanh(epsilon / 2))-zCDP.

        `pure_to_zcdp` proves this for delta = 0. For delta > 0 the two laws are, except for events of probability delta, an
        epsilon-DP pair (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776), to which that proof applies (Bun and Steinke 2016, arXiv
        1605.02065, section 8).
        """
        return cls(epsilon, delta, rho_of_pure(epsilon))

    @classmethod
    def concentrated(cls, rho: Fraction, delta: Fraction = Fraction(0)) -> PrivacyLoss:
        """Return the loss of delta-approximate rho-zCDP, without a finite pure epsilon."""
        return cls(None, delta, rho)

    @classmethod
    def nothing(cls) -> PrivacyLoss:
        """Return the loss of an answer that does not depend on protected data."""
        return _NOTHING

    def divided(self, parts: int | Fraction) -> PrivacyLoss:
        """Return one of `parts` >= 1 equal parts."""
        return PrivacyLoss(
            None if self.epsilon is None else self.epsilon / parts,
            self.delta / parts,
            None if self.rho is None else self.rho / parts,
        )

    def part(self, share: Fraction) -> PrivacyLoss:
        """Return this loss times `share` >= 0."""
        if share == 1:
            return self
        return PrivacyLoss(
            None if self.epsilon is None else self.epsilon * share,
            self.delta * share,
            None if self.rho is None else self.rho * share,
        )

    def scaled(self, factor: int) -> PrivacyLoss:
        """Return the loss of `factor` independent uses."""
        return PrivacyLoss(
            None if self.epsilon is None else self.epsilon * factor,
            self.delta * factor,
            None if self.rho is None else self.rho * factor,
        )


def positive(epsilon: Fraction) -> Fraction:
    """Return `epsilon`; raise ValueError unless it is a Fraction above 0."""
    if not isinstance(epsilon, Fraction) or epsilon <= 0:
        raise ValueError(f"epsilon must be a Fraction > 0, not {epsilon!r}")
    return epsilon


_NOTHING = PrivacyLoss(Fraction(0), Fraction(0), Fraction(0))


def _sum(a: Fraction, b: Fraction) -> Fraction:
    """Return a + b, without the work of adding fractions if one of them is 0."""
    if a.numerator and b.numerator:
        return a + b
    return a if a.numerator else b


_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([+-]?[0-9]{1,4}))?\Z", re.ASCII)
MOST_DIGITS = 60
MOST_EXPONENT = 400


def exact_number(text: str) -> Fraction:
    """Return the exact value of a decimal number written in ASCII ("0.1" is 1/10).

    Raises ValueError for anything else: NaN, infinities, Unicode digits, underscores, more than `MOST_DIGITS` digits
    or a power of ten beyond `MOST_EXPONENT` (which would make a small text a huge number).
    """
    match = _DECIMAL.match(text)
    if match is None or sum(c.isdigit() for c in text) > MOST_DIGITS:
        raise ValueError(f"not a decimal number: {text[:40]!r}")
    if match.group(1) is not None and abs(int(match.group(1))) > MOST_EXPONENT:
        raise ValueError(f"exponent out of range: {text[:40]!r}")
    return Fraction(text)


def plain_decimal(value: Fraction, digits: int = 6) -> str:
    """Return `value` in readable form: with `digits` significant digits, and whole numbers below 10**15 exactly."""
    if value.denominator == 1 and abs(value.numerator) < 10**15:
        return str(value.numerator)
    if value and not Fraction(1, 10**300) < abs(value) < 10**300:  # beyond doubles
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.{digits - 1}e}"
    return f"{float(value):.{digits}g}"
