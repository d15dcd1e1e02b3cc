"""Tables for people: each value with as many digits as its error leaves, in a layout that fits, on any terminal."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pytest

from dpsql.frontends.rendering.tables import (
    shown_error,
    shown_value,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"), (True, "true"), (False, "false"), (0, "0"), (-7, "-7"), (2**62, "4611686018427387904"),
        (0.1 + 0.2, "0.3"), (2.0, "2"), (1e20, "1e+20"), (math.inf, "inf"), (math.nan, "nan"), ("", ""), ("a\x1bb", "a\\x1bb"),
        (date(2024, 2, 29), "2024-02-29"), (datetime(2024, 2, 29, 1, 2, 3), "2024-02-29 01:02:03"), ([], "[]"),
        ([1, None, 0.5, "a\n", [True]], "[1, NULL, 0.5, a\\n, [true]]"), (Decimal("1.50"), "1.50"),
    ],
)  # fmt: skip
def test_values_without_an_error_are_whole(value: object, text: str) -> None:
    assert shown_value(value) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (0.0123, "1234.568"), (0.1, "1234.57"), (0.99, "1234.57"), (1.0, "1234.6"), (9.9, "1234.6"), (10.0, "1235"),
        (5000.0, "1235"), (1e-30, "1234.567800000000"), (math.inf, "1235"), (0.0, "1234.5678"), (None, "1234.5678"),
    ],
)  # fmt: skip
def test_a_real_has_two_digits_of_its_error(error: float | None, text: str) -> None:
    assert shown_value(1234.5678, error) == text
    assert shown_value(1234, error) == "1234", "integers are whole"


@pytest.mark.parametrize(
    ("error", "whole", "text"),
    [
        (None, False, "?"), (math.inf, True, "?"), (math.nan, False, "?"), (0.0, False, "0"), (0.0, True, "0"),
        (3.01, True, "4"), (3.0, True, "3"), (0.2, True, "1"), (123.4, True, "124"), (0.01234, False, "0.013"),
        (0.0120, False, "0.012"), (0.995, False, "1.00"), (1.21, False, "1.3"), (9.99, False, "10.0"), (12.1, False, "13"),
        (0.1 + 0.2, False, "0.30"), (2e-12, False, "0.000000000002"),
    ],
)  # fmt: skip
def test_an_error_has_two_digits_rounded_up(error: float | None, whole: bool, text: str) -> None:
    assert shown_error(error, whole) == text
