"""Rational bounds are on the stated side of exp, ln, square roots and the normal tail, and close to them."""

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from math import ceil, factorial, isqrt

import pytest
from scipy import stats

from dpsql.privacy.mechanisms.rational_bounds import (
    exp_lower,
    exp_upper,
    ln_lower,
    ln_upper,
    normal_tail_upper,
    smallest_within,
    sqrt_lower,
)

CLOSE = Fraction(3, 2 * 10**80)
"""A bound is moved outward by 10**-80 of its size."""
PRECISE = Context(prec=160, Emin=-999_999, Emax=999_999)
PI = Fraction(
    Decimal(
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
    )
)


def exp_of(x: Fraction) -> Fraction:
    """Return e**x to 150 digits: the power series of x / 2**k, squared k times."""
    halvings = max(0, ceil(abs(x)).bit_length() + 4)
    with localcontext(PRECISE):
        small = Decimal(x.numerator) / Decimal(x.denominator) / 2**halvings
        value = sum((small**k / factorial(k) for k in range(1, 90)), Decimal(1))
        for _ in range(halvings):
            value *= value
        return Fraction(value)


def ln_of(x: Fraction) -> Fraction:
    """Return ln x to more than 100 digits: 2 artanh((x - 1) / (x + 1)) of x scaled by powers of two to near 1, plus multiples of
    ln 2."""

    def near_one(y: Fraction) -> Decimal:
        with localcontext(PRECISE):
            ratio = Decimal(y.numerator - y.denominator) / Decimal(y.numerator + y.denominator)
            return 2 * sum((ratio ** (2 * k + 1) / (2 * k + 1) for k in range(180)), Decimal(0))

    doublings = x.numerator.bit_length() - x.denominator.bit_length()
    with localcontext(PRECISE):
        return Fraction(near_one(x / Fraction(2) ** doublings) + doublings * near_one(Fraction(2)))


EXPONENTS = [
    Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 3), Fraction(-7, 2), Fraction(1, 10**30),
    Fraction(-1, 10**30), Fraction(40), Fraction(999_999, 1000), Fraction(-999_999, 1000), Fraction(1000),
    Fraction(-1000),
]  # fmt: skip


@pytest.mark.parametrize("x", EXPONENTS, ids=str)
def test_exp_lies_between_its_bounds_which_are_close(x: Fraction) -> None:
    exact = exp_of(x)
    assert exact * (1 - CLOSE) < exp_lower(x) < exact < exp_upper(x) < exact * (1 + CLOSE)


def test_exp_below_its_range_is_bounded_by_0_and_by_the_end_of_the_range() -> None:
    beyond = Fraction(-1000) - Fraction(1, 10**9)
    assert exp_lower(beyond) == exp_lower(Fraction(-(10**9))) == 0 < exp_lower(Fraction(-1000))
    assert exp_upper(beyond) == exp_upper(Fraction(-(10**9))) == exp_upper(Fraction(-1000)) > exp_of(Fraction(-1000))


@pytest.mark.parametrize(
    "x",
    [
        Fraction(1), Fraction(2), Fraction(1, 2), Fraction(3, 7), 1 + Fraction(1, 10**40), 1 - Fraction(1, 10**40),
        Fraction(10**50), Fraction(1, 10**50), Fraction(1 << 3000), Fraction(1, 1 << 3000),
    ],
    ids=lambda x: f"{x.numerator.bit_length()} over {x.denominator.bit_length()} bits",
)  # fmt: skip
def test_ln_lies_between_its_bounds_which_are_close(x: Fraction) -> None:
    exact = ln_of(x)
    bits = 1 + x.numerator.bit_length() + x.denominator.bit_length()
    assert exact - bits * CLOSE < ln_lower(x) < exact < ln_upper(x) < exact + bits * CLOSE


@pytest.mark.parametrize(
    "x", [Fraction(0), Fraction(1), Fraction(2), Fraction(3, 7), Fraction(1, 10**60), Fraction(10**60 + 1)], ids=str
)
def test_square_roots_are_rounded_down_by_less_than_a_step(x: Fraction) -> None:
    root, step = sqrt_lower(x), Fraction(1, x.denominator << 128)
    assert root * root <= x < (root + step) ** 2
    assert (root / step).denominator == 1


def normal_tail_of(x: Fraction) -> Fraction:
    """Return P(N(0, 1) >= x) to more than 80 digits: 1/2 minus the alternating power series of the density, integrated."""
    term, total, k = x, x, 0
    unit = 10**300
    while abs(term) > Fraction(1, 10**120):
        k += 1
        term = Fraction(round(-term * x * x / (2 * k) * unit), unit)
        total += term / (2 * k + 1)
    root = Fraction(isqrt(round(2 * PI * 10**200)), 10**100)
    return Fraction(1, 2) - total / root


@pytest.mark.parametrize(
    "x",
    [Fraction(0), Fraction(1, 10**9), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(9), Fraction(1399, 100)],
)
def test_the_normal_tail_is_bounded_from_above_and_closely(x: Fraction) -> None:
    exact = normal_tail_of(x)
    assert exact < normal_tail_upper(x) < exact + Fraction(3, 10**80)
    assert float(exact) == pytest.approx(float(stats.norm.sf(float(x))), rel=1e-12)


@pytest.mark.parametrize("x", [14, 15, 20, 37])
def test_the_far_normal_tail_is_bounded_to_a_hundredth(x: int) -> None:
    assert float(stats.norm.sf(x)) < float(normal_tail_upper(Fraction(x))) < float(stats.norm.sf(x)) * 1.01


def test_the_far_normal_tail_is_mills_ratio_with_its_constant_rounded_up() -> None:
    assert normal_tail_upper(Fraction(14)) == exp_upper(Fraction(-98)) * Fraction(2, 5) / 14
    assert Fraction(4, 25) * 2 * PI > 1, "2/5 is above the density of 0"
    assert normal_tail_upper(Fraction(100)) == exp_upper(Fraction(-1000)) * Fraction(2, 5) / 100


def falling(k: int) -> Fraction:
    """Return a bound that never rises, with ties: 1 until 10, then 1/2, 1/2, 1/3, 1/3, 1/4, ..."""
    return Fraction(1) if k <= 10 else Fraction(1, (k - 11) // 2 + 2)


@pytest.mark.parametrize("limit", [Fraction(2), Fraction(1), Fraction(1, 2), Fraction(2, 5), Fraction(1, 50)], ids=str)
@pytest.mark.parametrize("guess", [-5, 1, 11, 12, 13, 107, 108, 109, 5000])
@pytest.mark.parametrize("least", [-3, 1, 12, 13, 200])
def test_the_smallest_number_within_a_limit_does_not_depend_on_the_guess(
    limit: Fraction, guess: int, least: int
) -> None:
    expected = next(k for k in range(least, 400) if falling(k) <= limit)
    assert smallest_within(falling, limit, guess, least) == expected


def test_a_bound_is_never_computed_below_the_least_number() -> None:
    """A tail is defined from 1 on."""
    computed: list[int] = []

    def bound(k: int) -> Fraction:
        computed.append(k)
        return Fraction(1, k)

    assert smallest_within(bound, Fraction(1), 40, 1) == 1
    assert min(computed) == 1


def test_a_far_guess_costs_few_steps() -> None:
    computed: list[int] = []

    def bound(k: int) -> Fraction:
        computed.append(k)
        return Fraction(1, k)

    assert smallest_within(bound, Fraction(1, 10**9), 1, 1) == 10**9
    assert smallest_within(bound, Fraction(1, 10**3), 10**9, 1) == 10**3
    assert len(computed) < 200
