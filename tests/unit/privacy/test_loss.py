"""Losses are exact fractions that add up, and numbers are read and written without change."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from dpsql.privacy.loss import MOST_DIGITS, Neighbours, PrivacyLoss, exact_number, positive

TENTH = Fraction(1, 10)
ZERO = Fraction(0)


def loss(epsilon: int | None, delta: int, rho: int | None) -> PrivacyLoss:
    """Return a loss in integral hundredths."""
    hundredths = [None if part is None else Fraction(part, 100) for part in (epsilon, rho)]
    return PrivacyLoss(hundredths[0], Fraction(delta, 100), hundredths[1])


def test_replacing_a_unit_is_a_removal_and_an_addition() -> None:
    assert (Neighbours.ADD_REMOVE.factor, Neighbours.CHANGE_ONE.factor) == (1, 2)
    assert Neighbours("change_one") is Neighbours.CHANGE_ONE


@pytest.mark.parametrize("field", ["epsilon", "delta", "rho"])
@pytest.mark.parametrize("value", [Fraction(-1, 10**9), 1, 0.5, "1", Decimal(1), True])
def test_no_part_of_a_loss_is_negative_or_anything_but_a_fraction(field: str, value: object) -> None:
    parts: dict[str, object] = {"epsilon": TENTH, "delta": TENTH, "rho": TENTH}
    with pytest.raises(ValueError, match=f"{field} must be a Fraction >= 0"):
        PrivacyLoss(**{**parts, field: value})  # type: ignore[arg-type]


def test_epsilon_and_rho_may_be_infinite_and_delta_may_not() -> None:
    assert PrivacyLoss(None, ZERO, None) == PrivacyLoss(epsilon=None, delta=ZERO, rho=None)
    with pytest.raises(ValueError, match="delta"):
        PrivacyLoss(TENTH, None, TENTH)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        (loss(1, 2, 3), loss(10, 20, 30), loss(11, 22, 33)),
        (loss(0, 2, 0), loss(10, 0, 30), loss(10, 2, 30)),
        (loss(0, 0, 0), loss(0, 0, 0), loss(0, 0, 0)),
        (loss(None, 2, 3), loss(10, 20, 30), loss(None, 22, 33)),
        (loss(1, 2, 3), loss(None, 20, 30), loss(None, 22, 33)),
        (loss(1, 2, None), loss(10, 20, 30), loss(11, 22, None)),
        (loss(1, 2, 3), loss(10, 20, None), loss(11, 22, None)),
        (loss(0, 0, None), loss(None, 0, 0), loss(None, 0, None)),
    ],
)
def test_losses_add_part_by_part_and_infinite_stays_infinite(
    first: PrivacyLoss, second: PrivacyLoss, total: PrivacyLoss
) -> None:
    assert first + second == total == second + first


def test_a_tenth_ten_times_is_one() -> None:
    total = PrivacyLoss.nothing()
    for _ in range(10):
        total = total + PrivacyLoss(TENTH, TENTH, TENTH)
    assert total == PrivacyLoss(Fraction(1), Fraction(1), Fraction(1)) == PrivacyLoss(TENTH, TENTH, TENTH).times(10)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), TENTH, Fraction(1), Fraction(7, 3), Fraction(20)])
def test_pure_privacy_costs_epsilon_times_a_tanh_of_zcdp(epsilon: Fraction) -> None:
    pure = PrivacyLoss.pure(epsilon)
    assert (pure.epsilon, pure.delta) == (epsilon, 0)
    assert float(pure.rho or 0) == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-14)
    assert PrivacyLoss.pure(epsilon, TENTH) == PrivacyLoss(epsilon, TENTH, pure.rho)


def test_concentrated_privacy_has_no_pure_epsilon() -> None:
    assert PrivacyLoss.concentrated(TENTH) == PrivacyLoss(None, ZERO, TENTH)
    assert PrivacyLoss.concentrated(TENTH, Fraction(1, 5)) == PrivacyLoss(None, Fraction(1, 5), TENTH)


@pytest.mark.parametrize("epsilon", [3, 0, None])
@pytest.mark.parametrize("rho", [5, 0, None])
def test_equal_parts_shares_and_uses_multiply_every_part(epsilon: int | None, rho: int | None) -> None:
    def times(factor: Fraction) -> PrivacyLoss:
        parts = [None if part is None else Fraction(part, 100) * factor for part in (epsilon, rho)]
        return PrivacyLoss(parts[0], Fraction(7, 100) * factor, parts[1])

    whole = loss(epsilon, 7, rho)
    for share in (1, Fraction(1, 4), 4, 0, Fraction(2, 7)):
        assert whole.times(share) == times(Fraction(share))


@pytest.mark.parametrize("epsilon", [ZERO, Fraction(-1), 1, 0.5, None, "1"])
def test_an_epsilon_that_is_no_fraction_above_zero_is_refused(epsilon: object) -> None:
    with pytest.raises(ValueError, match="epsilon must be a Fraction > 0"):
        positive(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", TENTH),
        ("1", Fraction(1)),
        ("1.", Fraction(1)),
        (".5", Fraction(1, 2)),
        ("-0", ZERO),
        ("-2.50", Fraction(-5, 2)),
        ("+3", Fraction(3)),
        ("1e-6", Fraction(1, 10**6)),
        ("1E+2", Fraction(100)),
        ("12.5e1", Fraction(125)),
        ("1e400", Fraction(10**400)),
        ("1e-400", Fraction(1, 10**400)),
        ("1e0400", Fraction(10**400)),
        ("1" * MOST_DIGITS, Fraction(int("1" * MOST_DIGITS))),
        ("0." + "3" * (MOST_DIGITS - 1), Fraction(int("3" * (MOST_DIGITS - 1)), 10 ** (MOST_DIGITS - 1))),
    ],
)
def test_decimals_are_read_exactly(text: str, value: Fraction) -> None:
    assert exact_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", " 1", "1 ", "1\n", ".", "e1", "1e", "1e+", "--1", "+-1", "1/3", "1_000", "0x1", "nan", "NaN", "inf",
        "-Infinity", "1,5", "\u0661", "1\u0660", "1e\u0661", "1e00001", "1.2.3", "1" * (MOST_DIGITS + 1),
        "0." + "0" * MOST_DIGITS, "1" * (MOST_DIGITS - 2) + "e100",
    ],
)  # fmt: skip
def test_texts_that_are_no_short_decimal_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a decimal number"):
        exact_number(text)
