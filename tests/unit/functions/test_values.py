"""Numbers, comparisons and casts value by value: what SQL says, at the ends where Python would say something else."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.values import (
    clamped_value,
    compare,
    integral,
    numbered_bucket,
    power,
    remainder,
    rounded,
    to_boolean,
    to_date,
    to_integer,
    to_real,
    to_text,
    to_timestamp,
)

NAN, INF = math.nan, math.inf
BIG = 2**53


def same(left: Any, right: Any) -> bool:
    """Equal and of one type, NaN to itself, and zeros by their sign."""
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or (left == right and math.copysign(1, left) == math.copysign(1, right))
    return bool(left == right) and type(left) is type(right)


# --- comparisons ----------------------------------------------------------------------------------------------------

NUMBERS = [-INF, -1.5, -0.0, 0, 1, 1.5, BIG, INF, NAN]
"""In SQL's order; the third and the fourth are equal."""


def test_numbers_are_ordered_with_nan_above_all_and_equal_to_itself() -> None:
    ranks = [0, 1, 2, 2, 3, 4, 5, 6, 7]
    for left, left_rank in zip(NUMBERS, ranks, strict=True):
        for right, right_rank in zip(NUMBERS, ranks, strict=True):
            for test in (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge):
                assert compare(left, right, test) is test(left_rank, right_rank), (left, right, test)


def test_integers_are_compared_exactly_with_each_other_and_as_reals_with_reals() -> None:
    assert compare(BIG, BIG + 1, operator.lt) and not compare(BIG, BIG + 1, operator.eq)
    assert compare(float(BIG), BIG + 1, operator.eq) and compare(BIG + 1, float(BIG), operator.eq)
    assert compare(Fraction(1, 10), 0.1, operator.eq), "a constant is the double that it becomes"
    assert compare("a", "b", operator.lt) and compare(False, True, operator.lt)


def test_a_date_is_compared_with_a_timestamp_as_its_midnight() -> None:
    day, noon = date(2024, 1, 2), datetime(2024, 1, 2, 12)
    assert compare(day, noon, operator.lt) and compare(noon, day, operator.gt)
    assert compare(day, datetime(2024, 1, 2), operator.eq) and compare(day, date(2024, 1, 3), operator.lt)


# --- arithmetic -----------------------------------------------------------------------------------------------------

RESULTS: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = [
    (clamped_value, (5, 0, 9), 5),
    (clamped_value, (-1, 0, 9), 0),
    (clamped_value, (10, 0, 9), 9),
    (clamped_value, (-INF, 0.0, 9.0), 0.0),
    (clamped_value, (INF, 0.0, 9.0), 9.0),
    (clamped_value, (NAN, 0.0, 9.0), None),
    (power, (2, 10), 1024.0),
    (power, (2, -1), 0.5),
    (power, (10, 400), INF),
    (power, (-10, 401), -INF),
    (power, (-10, 400), INF),
    (power, (0, -1), INF),
    (power, (-0.0, -1), -INF),
    (power, (-0.0, -2), INF),
    (power, (-8, Fraction(1, 3)), NAN),
    (power, (0, 0), 1.0),
    (power, (NAN, 0), 1.0),
    (remainder, (7, 3), 1),
    (remainder, (-7, 3), -1),
    (remainder, (7, -3), 1),
    (remainder, (-7, -3), -1),
    (remainder, (-6, 3), 0),
    (remainder, (-(2**63), 10), -8),
    (rounded, (2.5,), 3.0),
    (rounded, (-2.5,), -3.0),
    (rounded, (0.49999999999999994,), 0.0),
    (rounded, (-0.4,), -0.0),
    (rounded, (4503599627370497.0,), 4503599627370497.0),
    (rounded, (2.345, 2), 2.35),
    (rounded, (1234.5, -2), 1200.0),
    (rounded, (7,), 7),
    (rounded, (NAN,), NAN),
    (rounded, (-INF,), -INF),
    (rounded, (1e308, 5), 1e308),
    (integral(math.floor), (-1.5,), -2.0),
    (integral(math.ceil), (-1.5,), -1.0),
    (integral(math.floor), (3,), 3),
    (integral(math.floor), (NAN,), NAN),
    (integral(math.ceil), (INF,), INF),
]


@pytest.mark.parametrize(("function", "arguments", "expected"), RESULTS)
def test_arithmetic_has_the_engines_result_where_python_has_another(
    function: Callable[..., Any], arguments: tuple[Any, ...], expected: Any
) -> None:
    assert same(function(*arguments), expected), (function(*arguments), expected)


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(-0.1, 0), (-INF, 0), (0, 1), (2.4999, 1), (2.5, 2), (9.9999, 4), (10, 5), (INF, 5), (NAN, None)],
)
def test_buckets_are_numbered_from_one_with_one_more_on_both_sides(value: Any, bucket: int | None) -> None:
    assert numbered_bucket(value, 0, 10, 4) == bucket
    assert numbered_bucket(value, Fraction(0), Fraction(10), 4) == bucket


def test_a_value_below_the_upper_end_is_in_no_bucket_beyond_the_last() -> None:
    below = math.nextafter(0.3, 0)
    assert numbered_bucket(below, 0.1, 0.3, 3) == 3 and numbered_bucket(0.3, 0.1, 0.3, 3) == 4
    # (value - low) / (high - low) is rounded to 1 here, which would be the bucket after the last.
    low, high = -1e16, 1.0
    assert (math.nextafter(high, 0) - low) / (high - low) == 1
    assert numbered_bucket(math.nextafter(high, 0), low, high, 3) == 3


# --- casts ----------------------------------------------------------------------------------------------------------

INTEGERS: list[tuple[Any, int | None]] = [
    ("7", 7), (" +007 ", 7), ("-7", -7), ("9" * 19, int("9" * 19)), ("9" * 20, None), ("", None), ("7.0", None), ("1e3", None),
    ("1_0", None), ("0x10", None), ("٧", None), ("7\n", None), ("\t7", None), ("- 7", None), (2.5, 2), (3.5, 4), (-2.5, -2),
    (1.4999, 1), (NAN, None), (INF, None), (True, 1), (Fraction(5, 1), 5),
]  # fmt: skip
REALS: list[tuple[Any, float | None]] = [
    ("7", 7.0), (" -7.25 ", -7.25), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1E-3", 0.001), ("1e400", INF), ("", None),
    (".", None), ("inf", None), ("NaN", None), ("1_0", None), ("1e12345", None), ("٧", None), ("1e", None), (7, 7.0), (True, 1.0),
]  # fmt: skip
BOOLEANS: list[tuple[Any, bool | None]] = [
    ("true", True), (" TRUE ", True), ("T", True), ("yes", True), ("Y", True), ("1", True), ("false", False), ("F", False),
    ("no", False), ("n", False), ("0", False), ("", None), ("on", None), ("off", None), ("2", None), ("tru", None), (0, False),
    (-3, True), (0.5, True),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), INTEGERS)
def test_integers_are_read_from_whole_numbers_and_rounded_half_to_even(value: Any, expected: int | None) -> None:
    assert to_integer(value) == expected and type(to_integer(value)) is type(expected)


@pytest.mark.parametrize(("value", "expected"), REALS)
def test_reals_are_read_from_decimal_numbers(value: Any, expected: float | None) -> None:
    assert to_real(value) == expected and type(to_real(value)) is type(expected)


@pytest.mark.parametrize(("value", "expected"), BOOLEANS)
def test_booleans_are_read_from_their_words_in_any_case(value: Any, expected: bool | None) -> None:
    assert to_boolean(value) is expected


MOMENTS: list[tuple[str, datetime | None]] = [
    ("2024-02-29", datetime(2024, 2, 29)), (" 2024-02-29 03:04 ", datetime(2024, 2, 29, 3, 4)),
    ("2024-02-29T03:04:05", datetime(2024, 2, 29, 3, 4, 5)),
    ("2024-02-29 23:59:59.999999", datetime(2024, 2, 29, 23, 59, 59, 999_999)), ("0001-01-01", datetime(1, 1, 1)),
    ("9999-12-31", datetime(9999, 12, 31)), ("0000-01-01", None), ("2024-2-9", None), ("24-02-09", None),
    ("2024-02-29 24:00", None), ("2024-02-29 03:60", None), ("2024-02-29 3:04", None), ("2024-02-29 03:04:05.1234567", None),
    ("2024-02-29 03:04+00", None), ("epoch", None), ("", None), ("2024-02-29\n", None), ("٢٠٢٤-02-29", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "moment"), MOMENTS)
def test_times_are_read_in_one_writing_of_the_calendar(text: str, moment: datetime | None) -> None:
    assert to_timestamp(text) == moment
    assert to_date(text) == (None if moment is None else moment.date())


@pytest.mark.parametrize("text", ["2023-02-29", "2024-13-01", "2024-04-31"])
def test_a_day_that_there_is_not_is_an_error_of_arithmetic(text: str) -> None:
    """Of which the caller makes NULL."""
    with pytest.raises(ValueError):
        to_timestamp(text)


def test_a_date_becomes_its_midnight_and_a_timestamp_its_day() -> None:
    assert same(to_timestamp(date(2024, 1, 2)), datetime(2024, 1, 2))
    assert same(to_date(datetime(2024, 1, 2, 23)), date(2024, 1, 2)) and same(
        to_date(date(2024, 1, 2)), date(2024, 1, 2)
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (date(2024, 1, 2), "2024-01-02"),
        (datetime(2024, 1, 2, 3), "2024-01-02 03:00:00"),
        ("x", "x"),
    ],
)
def test_texts_of_values_are_those_of_sql(value: Any, text: str) -> None:
    assert to_text(value) == text
