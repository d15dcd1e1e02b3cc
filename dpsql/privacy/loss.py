"""Types of the privacy guarantee: neighbours and exact privacy loss.

Nothing here is floating point: epsilon, delta and rho are fractions, so that ten times 0.1 is exactly 1.

The exact cost of pure differential privacy in zCDP: epsilon-DP implies (epsilon tanh(epsilon / 2))-zCDP, and no smaller rho.

Any two laws of an epsilon-DP pair are the laws of one randomised bit, P(1) = p and P(1) = 1 - p with p = 1 / (1 + e**-epsilon),
after the same random function of the bit (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776), which raises no Renyi divergence. With
L = epsilon or -epsilon, the privacy loss of the bit, and lambda = alpha - 1 > 0, the bit's divergence of order alpha is

    D = ln E[exp(lambda L)] / lambda,   E[exp(lambda L)] = cosh((lambda + 1/2) epsilon) / cosh(epsilon / 2).

Put u = (lambda + 1/2) epsilon and v = epsilon / 2, so that lambda (lambda + 1) epsilon**2 = u**2 - v**2. The derivative of
ln cosh(sqrt(w)) is tanh(sqrt(w)) / (2 sqrt(w)), which falls in w > 0, so ln cosh(sqrt(w)) is concave and

    ln cosh u - ln cosh v  <=  (u**2 - v**2) tanh(v) / (2 v)  =  lambda (lambda + 1) epsilon tanh(epsilon / 2).

Hence D <= alpha epsilon tanh(epsilon / 2) for every order, with equality in the limit alpha -> 1. This rho is below
epsilon**2 / 2 (Bun and Steinke 2016, arXiv 1605.02065, Proposition 1.4) as tanh(x) < x: by 8 % at epsilon 1, by a quarter at 2.
"""

from __future__ import annotations

import re
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, tanh

from dpsql.privacy.mechanisms.rational_bounds import exp_lower, exp_upper, ln_upper, sqrt_lower
from dpsql.storage.records import dataclass

# --- pure privacy in zCDP ---------------------------------------------------------------------------------------------

_GRID = 10**60
"""Results are rounded up to multiples of 1 / `_GRID`."""
_STEPS = 1 << 180
"""Newton's steps are rounded down to multiples of 1 / `_STEPS`."""
_FAR = 160
"""From this epsilon on, epsilon tanh(epsilon / 2), which is above epsilon (1 - 2 e**-epsilon), rounds up like epsilon itself."""


@lru_cache(maxsize=4096)
def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return epsilon tanh(epsilon / 2) for epsilon >= 0, rounded up, but never above epsilon**2 / 2."""
    if epsilon >= _FAR:
        return _up(epsilon)
    fall = exp_lower(-epsilon)
    return min(epsilon * epsilon / 2, _up(epsilon * (1 - fall) / (1 + fall)))


@lru_cache(maxsize=4096)
def recomputed_rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return `rho_of_pure`, recomputed as the divergence of order 1 of the randomised bit: (2 p - 1) ln(p / (1 - p)), with p from
    rational bounds."""
    if epsilon >= _FAR:
        return _up(epsilon)
    p = 1 / (1 + exp_lower(-epsilon))
    odds = ln_upper(exp_upper(epsilon)) if epsilon else Fraction(0)
    return min(epsilon * epsilon / 2, _up((2 * p - 1) * odds))


@lru_cache(maxsize=1024)
def pure_of_rho(rho: Fraction) -> Fraction:
    """Return the largest epsilon, up to a factor of 1 - 2**-100, with `rho_of_pure(epsilon)` <= rho; rho > 0.

    The search starts in floats and is refined by Newton's steps in fractions; the result is checked in fractions.
    """
    least = sqrt_lower(2 * rho)  # epsilon**2 / 2 = rho
    start = float(rho)
    if not 1e-15 < start < 1e15:
        return least
    guess = max(float(least), start)
    for _ in range(60):  # epsilon -> rho / tanh(epsilon / 2) oscillates around the solution: halved steps converge
        guess = (guess + start / tanh(guess / 2)) / 2
    rise = tanh(guess / 2) + guess / 2 * (1 - tanh(guess / 2) ** 2)
    epsilon = Fraction(guess)
    for _ in range(3):  # each step leaves 2**-50 of the error, which is the relative error of `rise`
        epsilon -= (rho_of_pure(epsilon) - rho) / Fraction(rise)
        epsilon = Fraction(floor(epsilon * _STEPS), _STEPS)
    epsilon *= 1 - Fraction(1, 1 << 102)
    return max(least, epsilon) if rho_of_pure(epsilon) <= rho else least


def _up(value: Fraction) -> Fraction:
    return Fraction(ceil(value * _GRID), _GRID)


# --- loss -------------------------------------------------------------------------------------------------------------


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

        `loss` proves this for delta = 0. For delta > 0 the two laws are, except for events of probability delta, an
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

    def times(self, share: int | Fraction) -> PrivacyLoss:
        """Return this loss times `share` >= 0: a part of it, or the loss of so many independent uses."""
        if share == 1:
            return self
        return PrivacyLoss(
            None if self.epsilon is None else self.epsilon * share,
            self.delta * share,
            None if self.rho is None else self.rho * share,
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
