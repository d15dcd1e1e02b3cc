"""Conversion from zCDP to (epsilon, delta) and back, each rounded to the safe side; advanced composition for reports."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, floor, inf, log, log1p, sqrt

from dpsql.privacy.mechanisms.rational_bounds import ln_lower, ln_upper

MOST_EPSILON = 10**6
"""The largest epsilon (nats) of a budget."""


@lru_cache(maxsize=256)
def rho_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon (nats) such that rho-zCDP implies (epsilon, delta)-DP; 0 < delta < 1; rounded up.

    epsilon = inf over alpha > 1 of  rho alpha + ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1)
    (CKS20, arXiv 2004.00010, Proposition 12 and Corollary 13, solved for epsilon). Every alpha gives a valid bound: the
    best one is searched in floats, then the formula is evaluated in rationals that err upward. The result is at least 0.
    """
    _check_delta(delta)
    if rho == 0:
        return Fraction(0)
    alpha = _best_alpha(rho, delta)
    epsilon = rho * alpha + _fixed_cost(alpha, delta)
    return max(Fraction(0), Fraction(ceil(epsilon * 10**30), 10**30))


@lru_cache(maxsize=256)
def epsilon_to_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho such that rho-zCDP implies (epsilon, delta)-DP, rounded down by less than 10**-9 of it.

    For a fixed alpha the bound of `rho_to_epsilon` is linear in rho, so rho = (epsilon - its constant part) / alpha.
    0 < delta < 1, 0 < epsilon <= 10**6. `rho_to_epsilon` of the result is never above epsilon.
    """
    _check_delta(delta)
    if not 0 < epsilon <= MOST_EPSILON:
        raise ValueError("epsilon out of range")
    low, high = 0.0, 2 * float(epsilon) + 100  # a large delta allows some rho by itself, whatever epsilon is
    for _ in range(120):
        middle = (low + high) / 2
        x = float(_best_alpha(Fraction(middle), delta)) - 1 if middle > 0 else inf
        low, high = (middle, high) if _epsilon_float(middle, x, delta) <= float(epsilon) else (low, middle)
    rho = Fraction(low)
    if rho > 0:
        alpha = _best_alpha(rho, delta)
        rho = max(Fraction(0), (epsilon - _fixed_cost(alpha, delta)) / alpha)
    rho = Fraction(floor(rho * 10**36), 10**36)
    while rho > 0 and rho_to_epsilon(rho, delta) > epsilon:
        rho = Fraction(floor(rho * (10**12 - 1) * 10**24), 10**36)
    return rho


def _check_delta(delta: Fraction) -> None:
    if not isinstance(delta, Fraction) or not Fraction(1, 10**100) <= delta < 1:
        raise ValueError(f"delta must be a Fraction in (0, 1), not {delta!r}")


def _fixed_cost(alpha: Fraction, delta: Fraction) -> Fraction:
    """Return ln(1 - 1/alpha) + (ln(1/delta) - ln alpha) / (alpha - 1), rounded up."""
    return ln_upper(1 - 1 / alpha) + (ln_upper(1 / delta) - ln_lower(alpha)) / (alpha - 1)


def _best_alpha(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an alpha near the root of d epsilon / d alpha = rho - (ln(1/delta) - ln alpha) / (alpha - 1)**2, which is unique."""
    most = -log(float(delta))
    small = min(max(float(min(rho, Fraction(10**9))), 1e-300), 1e9)
    low, high = 0.0, min(sqrt(most / small), expm1(most))
    for _ in range(80):
        middle = (low + high) / 2
        below = small * middle * middle + log1p(middle) < most
        low, high = (middle, high) if below else (low, middle)
    return 1 + Fraction(max(high, 1e-9))


def _epsilon_float(rho: float, x: float, delta: Fraction) -> float:
    """Return the bound at alpha = 1 + x in floats, only to guide the search."""
    if rho <= 0:
        return 0.0
    return rho * (1 + x) + log(x) - log1p(x) + (-log(float(delta)) - log1p(x)) / x


def advanced_composition(losses: Iterable[tuple[float, float]], delta: float) -> tuple[float, float]:
    """Return (epsilon, delta) of all `losses` (epsilon_i, delta_i) together if `delta` > 0 more is spent; for reports only.

    The result is the smaller of the plain sum and  sum epsilon_i tanh(epsilon_i / 2) + sqrt(2 ln(1/delta) sum epsilon_i**2)
    (Kairouz, Oh, Viswanath 2015, arXiv 1311.0776, Theorem 3.5; (e**x - 1) / (e**x + 1) = tanh(x / 2)). It holds for
    parameters fixed in advance, which those of a session are not: it never decides whether a charge fits.
    """
    pairs = list(losses)
    plain = sum(epsilon for epsilon, _ in pairs)
    drift = sum(epsilon * -expm1(-epsilon) / (1 + exp(-epsilon)) for epsilon, _ in pairs)
    spread = sqrt(2 * -log(delta) * sum(epsilon * epsilon for epsilon, _ in pairs))
    spent = sum(spent_delta for _, spent_delta in pairs)
    return (plain, spent) if plain <= drift + spread else (drift + spread, spent + delta)
