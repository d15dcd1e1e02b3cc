"""Rational bounds of irrational numbers: exp, ln, square root and the normal tail, each rounded to a stated side.

`decimal` rounds exp, ln and the four operations correctly (General Decimal Arithmetic). Here they run at 100 digits, and
results are moved outward by 10**-80 of their size, which covers all rounding errors of every formula below.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from fractions import Fraction
from functools import lru_cache
from math import isqrt

_SLACK = Fraction(1, 10**80)
_FARTHEST = 1000
SMALLEST_PROBABILITY = Fraction(1, 10**300)
_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679")


def _context() -> Context:
    return Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[InvalidOperation, DivisionByZero, Overflow])


def _decimal(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def exp_lower(x: Fraction) -> Fraction:
    """Return a rational number <= e**x; x <= 1000, else ValueError. For x below -1000 it is 0."""
    if x < -_FARTHEST:
        return Fraction(0)
    if x > _FARTHEST:
        raise ValueError("exponent out of range")
    context = _context()
    return Fraction(context.exp(_decimal(x, context))) * (1 - _SLACK)


def exp_upper(x: Fraction) -> Fraction:
    """Return a rational number >= e**x; x <= 1000, else ValueError. For x below -1000 it is the bound of e**-1000."""
    if x > _FARTHEST:
        raise ValueError("exponent out of range")
    context = _context()
    return Fraction(context.exp(_decimal(max(x, Fraction(-_FARTHEST)), context))) * (1 + _SLACK)


def ln_lower(x: Fraction) -> Fraction:
    """Return a rational number <= ln x; x > 0."""
    context = _context()
    return Fraction(context.ln(_decimal(x, context))) - _ln_slack(x)


@lru_cache(maxsize=256)
def ln_upper(x: Fraction) -> Fraction:
    """Return a rational number >= ln x; x > 0."""
    context = _context()
    return Fraction(context.ln(_decimal(x, context))) + _ln_slack(x)


def _ln_slack(x: Fraction) -> Fraction:
    """Return a bound of the error of ln x: absolute, as that of x is relative; |ln x| is below the bits of x."""
    return _SLACK * (1 + x.numerator.bit_length() + x.denominator.bit_length())


def sqrt_lower(x: Fraction) -> Fraction:
    """Return the largest multiple of 2**-128 / denominator whose square is <= x >= 0; exact for squares of fractions."""
    return Fraction(isqrt(x.numerator * x.denominator << 256), x.denominator << 128)


def ceil_sqrt(value: int) -> int:
    """Return the smallest integer whose square is >= value >= 0."""
    root = isqrt(value)
    return root if root * root == value else root + 1


def normal_tail_upper(x: Fraction) -> Fraction:
    """Return a rational number >= P(N(0, 1) >= x); x >= 0.

    x < 14: 1/2 - phi(x) (x + x**3/3 + x**5/(3*5) + ...), whose terms are positive, so that truncating the series errs upward
    (Abramowitz and Stegun 26.2.11). Otherwise phi(x) / x (Mills' ratio, ibid. 26.2.12).
    """
    context = _context()
    point = _decimal(x, context)
    square = context.multiply(point, point)
    if x >= 14:
        return exp_upper(-x * x / 2) * Fraction(2, 5) / x  # 2/5 > 1/sqrt(2 pi)
    term = total = point
    odd = 1
    while term > Decimal("1e-90"):
        odd += 2
        term = context.divide(context.multiply(term, square), Decimal(odd))
        total = context.add(total, term)
    root = context.sqrt(context.multiply(Decimal(2), _PI))
    density = context.divide(context.exp(context.divide(square, Decimal(-2))), root)
    return Fraction(context.subtract(Decimal("0.5"), context.multiply(density, total))) + _SLACK


def smallest_within(bound: Callable[[int], Fraction], limit: Fraction, guess: int, least: int) -> int:
    """Return the smallest k >= `least` with bound(k) <= limit, for a bound that never rises; `guess` only saves steps.

    Raises ValueError for a limit below 10**-300, where the bounds of this module stop falling.
    """
    if limit < SMALLEST_PROBABILITY:
        raise ValueError("probability out of range")
    low, high = least - 1, max(guess, least)
    step = 1
    while bound(high) > limit:
        low, high = high, high + step
        step *= 2
    step = 1
    while high - step > low and bound(high - step) <= limit:
        high -= step
        step *= 2
    low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(middle) <= limit else (middle, high)
    return high
