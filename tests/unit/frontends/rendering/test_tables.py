"""Tables for people: each value with as many digits as its error leaves, in a layout that fits, on any terminal."""

from __future__ import annotations

import io
import math
from datetime import date, datetime
from decimal import Decimal

import pytest
from support.written_release import written_release

from dpsql.frontends.rendering.tables import (
    Layout,
    shown_error,
    shown_value,
    write_table,
)
from dpsql.plan.intervals import Type
from dpsql.release.release import Release


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


# --- answers ----------------------------------------------------------------------------------------------------------


def regions() -> Release:
    return written_release(
        [
            ("region", Type.TEXT, ["north", "south", None]),
            ("n", Type.INTEGER, [1500, 7, None]),
            ("age", Type.REAL, [45.678, -1.5, 3.25]),
        ],
        {1: [20.0, 3.2, None], 2: [0.25, None, 12.0]},
    )


def written(release: Release, width: int | None = None, layout: Layout = Layout.AUTO, encoding: str = "utf-8") -> str:
    data = io.BytesIO()
    out = io.TextIOWrapper(data, encoding=encoding, newline="\n")
    write_table(release, out, width, layout)
    out.flush()
    return data.getvalue().decode(encoding)


LINES = "row 1\n  region  north\n  n       1500 ± 20\n  age     45.68 ± 0.25\nrow 2\n  region  south\n"


@pytest.mark.parametrize(
    ("width", "layout", "lines"),
    [
        (None, Layout.AUTO, False), (None, Layout.TABLE, False), (None, Layout.LINES, True), (5, Layout.AUTO, True),
        (5, Layout.TABLE, False), (500, Layout.LINES, True), (500, Layout.AUTO, False),
        # The columns have 6, 9 and 12 characters, with two between each and the next.
        (33, Layout.AUTO, False), (32, Layout.AUTO, True),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_written_one_value_a_line(width: int | None, layout: Layout, lines: bool) -> None:
    text = written(regions(), width, layout)
    assert text.startswith(LINES) is lines
    assert len(text.splitlines()) == (12 if lines else 5)


def test_a_stream_that_cannot_write_signs_gets_plain_ones() -> None:
    text = written(regions(), encoding="ascii")
    assert "1500 +/- 20" in text and "-----" in text
    assert "±" in written(regions(), encoding="latin-1") and "─" not in written(regions(), encoding="latin-1")

    class Unknown(io.StringIO):
        encoding = "no-such-encoding"  # type: ignore[assignment]

    out = Unknown()
    write_table(regions(), out)
    assert "+/-" in out.getvalue()
