"""Answers as text: error bars never claim too much, and no cell of the data controls a terminal or breaks a format."""

import csv
import io
import json
import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clinic_folder import Clinic

import dpsql
from dpsql.frontends.rendering import formats as output
from dpsql.frontends.rendering import tables as shown
from dpsql.frontends.rendering.tables import shown_error, shown_value

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region"


@given(st.floats(min_value=1e-9, max_value=1e12), st.booleans())
def test_an_error_is_never_shown_smaller(error: float, whole: bool) -> None:
    told = float(shown.shown_error(error, whole))
    assert told >= error * (1 - 1e-9)
    assert told <= (error + 1 if whole else error * 1.11 + (1 if error >= 10 else 0))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.floats(min_value=1e-6, max_value=1e9))
def test_rounding_stays_inside_the_error(value: float, error: float) -> None:
    assert abs(float(shown.shown_value(value, error)) - value) <= max(error * 0.051, 0.5 if error >= 10 else 0) + 1e-9


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_reals_are_read_back_from_csv() -> None:
    for value in (1e15, 1e16, 1e-4, 1e-5, 1 / 3, 5e-324, 123456.789):
        text = io.StringIO()
        output.write_csv(pa.table({"r": [value]}), text)
        written = text.getvalue().splitlines()[1]
        assert float(written) == value and ("." in written or "e" in written)


@pytest.mark.parametrize("batch", [1, 2, 1 << 16])
def test_quotes_of_texts_in_csv_depend_on_their_bytes_alone(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "_CSV_ROWS", batch)
    texts = ["plain", "", "é", "a,b", "c", None, 'q"', "d", "x\ry", "e", "y\nz", "f"]
    for first in range(len(texts)):
        for count in (1, 2, 5):
            part, alone, expected = pa.table({"t": texts}).slice(first, count), io.StringIO(), io.StringIO()
            output.write_csv(part, alone)
            output.write_rows(["t"], [[text] for text in texts[first : first + count]], expected, "csv")
            assert alone.getvalue() == expected.getvalue()


def test_answers_in_every_format(clinic: Clinic) -> None:
    with dpsql.connect(clinic.policy) as connection:
        release = connection.execute(BY_REGION).release
        assert repr(release).endswith(f"\ncharged {release.receipt.charged}, receipt {release.receipt_id}")
        assert repr(connection.execute("SHOW dp.epsilon").release).endswith("\nnothing charged")
    wide = release.to_arrow(bars=True)
    assert wide.column_names == ["region", "n", "n_low", "n_high", "age", "age_low", "age_high"]
    for at, name in ((1, "n"), (2, "age")):
        assert wide.column(f"{name}_low") == release.low.column(at)
        assert wide.column(f"{name}_high") == release.high.column(at)
    text = io.StringIO()
    output.write_json(release, text)
    found: dict[str, Any] = json.loads(text.getvalue())
    assert [row["n"] for row in found["rows"]] == release.table.column("n").to_pylist()
    assert [row["n"] for row in found["low"]] == release.low.column(1).to_pylist() and "region" not in found["low"][0]
    assert found["receipt"] == release.receipt_id and found["charged"] == release.receipt.charged
    for format in output.FORMATS:
        output.write_file(release, Path(f"answer.{format}"), format, bars=False)
    assert pq.read_table("answer.parquet") == release.table
    with pa.ipc.open_stream("answer.arrow") as reader:
        assert reader.read_all() == release.table
    assert rows_of(Path("answer.csv").read_text())[1][1] == str(release.table.column("n")[0])
    assert "±" in Path("answer.table").read_text()


# --- Tables for people: each value with as many digits as its error leaves, in a layout that fits, on any terminal ----


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


@pytest.mark.parametrize("width", [20, 80, 130])
def test_what_a_column_is_takes_the_rest_of_the_terminal(width: int) -> None:
    about = {"type": "text", "nullable": True, "domain": "a, b", "outside": None, "keys": None}
    text = shown.column_summary([about | {"column": "c", "description": "long " * 60}], "utf-8", width)
    assert max(map(len, text.splitlines())) == max(width, 43) and text.endswith("...\n")
