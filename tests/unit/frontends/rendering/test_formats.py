"""Answers for programs: csv, json, parquet and arrow hold the same values and ends of error bars, whatever the values are."""

import io
import json
import math
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.written_release import WrittenBars, written_release

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.rendering import formats
from dpsql.frontends.rendering.formats import (
    as_object,
    left_text,
    row_objects,
    write_csv,
    write_file,
    write_json,
    write_text,
)
from dpsql.media.text import terminal
from dpsql.plan.intervals import Type
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import Receipt, Release

PAID = Receipt(
    "r1",
    PrivacyLoss(Fraction(1, 10), Fraction(0), None),
    {"dataset": "9 left"},
    "epsilon 0.1",
    price="5 % of the budget",
)
REUSED = replace(PAID, charged="nothing", reused=True)


def regions(receipt: Receipt = PAID, **remarks: Any) -> Release:
    columns = [("region", Type.TEXT, ["north", None]), ("n", Type.INTEGER, [10, 7]), ("r", Type.REAL, [0.5, math.nan])]
    return written_release(columns, {1: [2.0, None]}, receipt, **remarks)


def csv_of(table: pa.Table) -> str:
    out = io.StringIO()
    write_csv(table, out)
    return out.getvalue()


# --- markdown ---------------------------------------------------------------------------------------------------------

HOSTILE = st.text(
    st.sampled_from("\\`*_[]()<>|~&:@#!$-=+.\n\t aw") | st.characters(exclude_categories=["Cs"]), max_size=30
)


@settings(deadline=None)  # the first example imports pyarrow
@given(HOSTILE | st.sampled_from(["<b>x</b>", "[a](http://b)", "www.a.de", "&amp;", "![x](y)", "~~a~~"]))
def test_a_text_in_markdown_is_shown_and_never_obeyed(text: str) -> None:
    """What a reader of Markdown shows in the cells is what a terminal would show."""
    out = io.StringIO()
    columns = [(text, Type.TEXT, [text, "", None]), ("n", Type.INTEGER, [10, 7, -3])]
    write_text(written_release(columns, {1: [2.0, None, 1.0]}, PAID), out, "md", False)
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(out.getvalue())
    cells = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for cell in cells for child in cell.children or ()}
    assert kinds <= {"text", "text_special"} and [token.type for token in tokens[:1]] == ["table_open"]
    shown = ["".join(child.content for child in cell.children or ()) for cell in cells]
    written = " ".join(terminal(text).split())
    assert shown == [written, "n", written, "10 ± 2", "", "7 ± ?", "NULL", "-3 ± 1"]


# --- csv --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2, 1 << 16])
@pytest.mark.parametrize(
    ("values", "type_", "cells"),
    [
        ([0, -7, None, 2**63 - 1], pa.int64(), ["0", "-7", "", "9223372036854775807"]),
        ([2.0, -0.5, None, 1e300, math.nan, -math.inf, 123456.0], pa.float64(),
         ["2.0", "-0.5", "", "1e+300", "nan", "-inf", "123456.0"]),
        ([True, False, None], pa.bool_(), ["true", "false", ""]),
        ([date(2024, 2, 29), None], pa.date32(), ["2024-02-29", ""]),
        ([datetime(2024, 2, 29, 1, 2, 3), datetime(2024, 1, 1, 0, 0, 0, 1200)], pa.timestamp("us"),
         ["2024-02-29 01:02:03", "2024-01-01 00:00:00.001200"]),
        (["plain", None, "é"], pa.string(), ["plain", "", "é"]),
        (["plain", ""], pa.string(), ["plain", '""']),
        (["a,b", 'say "x"', "l\nm", "r\rs", None], pa.string(), ['"a,b"', '"say ""x"""', '"l\nm"', '"r\rs"', ""]),
        ([None, None], pa.string(), ["", ""]),
        ([None], pa.null(), [""]),
        ([[1, 2], [], None, [None]], pa.list_(pa.int64()), ['"[1, 2]"', "[]", "", "[NULL]"]),
        ([["a,b", 'c"']], pa.list_(pa.string()), ['"[a,b, c""]"']),
    ],
)  # fmt: skip
def test_each_type_has_its_cells(
    values: list[Any], type_: pa.DataType, cells: list[str], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formats, "_CSV_ROWS", batch)
    table = pa.table({"v": pa.array(values, type_), "last": ["x"] * len(values)})
    assert csv_of(table) == "v,last\n" + "".join(f"{cell},x\n" for cell in cells)


def test_no_rows_are_a_header_and_no_columns_an_empty_line() -> None:
    assert csv_of(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})) == "a,b\n"
    assert csv_of(pa.table({})) == "\n"


# --- json -------------------------------------------------------------------------------------------------------------


def test_an_object_holds_rows_bars_and_price() -> None:
    out = io.StringIO()
    release = regions(notices=("look",), bars=WrittenBars(("estimated",)))
    write_json(release, out)
    assert out.getvalue().endswith("}\n")
    written = json.loads(out.getvalue())
    assert written.pop("rows") == [{"region": "north", "n": 10, "r": 0.5}, {"region": None, "n": 7, "r": "NaN"}]
    assert written == as_object(release)
    assert written == {
        "columns": [
            {"name": "region", "type": "text", "noisy": False}, {"name": "n", "type": "integer", "noisy": True},
            {"name": "r", "type": "real", "noisy": False},
        ],
        "confidence": 0.95, "low": [{"n": 8.0}, {"n": None}], "high": [{"n": 12.0}, {"n": None}],
        "error": [{"n": 2.0}, {"n": None}], "unknown": [{"n": False}, {"n": False}], "flags": [{"n": ""}, {"n": ""}],
        "notes": ["estimated"], "charged": "epsilon 0.1", "price": "5 % of the budget",
        "loss": {"epsilon": "1/10", "delta": "0", "rho": None}, "receipt": "r1", "reused": False,
        "remaining": {"dataset": "9 left"}, "notices": ["look"],
    }  # fmt: skip


def test_values_that_json_lacks_are_texts() -> None:
    stamp = datetime(2024, 2, 29, 1, 2, 3)
    release = written_release(
        [
            ("r", Type.REAL, [math.inf, -math.inf]),
            ("d", Type.DATE, [date(2024, 2, 29)] * 2),
            ("s", Type.TIMESTAMP, [stamp, None]),
        ]
    )
    assert row_objects(release) == [
        {"r": "Infinity", "d": "2024-02-29", "s": "2024-02-29 01:02:03"}, {"r": "-Infinity", "d": "2024-02-29", "s": None},
    ]  # fmt: skip
    lists = replace(cast(Any, release), table=pa.table({"l": [[math.nan, 1.0, None], None]}))
    assert row_objects(cast(Release, lists)) == [{"l": ["NaN", 1.0, None]}, {"l": None}]


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["csv", "parquet"])
@pytest.mark.parametrize(("receipt", "charged"), [(PAID, True), (REUSED, False)])
def test_a_file_that_cannot_be_written_says_whether_it_was_paid(
    tmp_path: Path, name: str, receipt: Receipt, charged: bool
) -> None:
    with pytest.raises(Error) as caught:
        write_file(regions(receipt), tmp_path / "nowhere" / "a", name, bars=False)
    assert (caught.value.slug, caught.value.charged) == ("file_write", charged)
    assert str(tmp_path / "nowhere" / "a") in caught.value.message


# --- price ------------------------------------------------------------------------------------------------------------


def unreachable() -> str:
    raise refuse("user_file", place="ledger", problem="gone")


SESSION = cast(Any, SimpleNamespace(left_text=lambda: "dataset 9 questions", news=lambda release: release.notices))


def test_a_budget_that_cannot_be_read_does_not_hide_the_answer() -> None:
    broken = cast(Any, SimpleNamespace(left_text=unreachable, news=lambda release: release.notices))
    assert left_text(SESSION) == "dataset 9 questions"
    assert left_text(broken) == "unknown (cannot use the logins at ledger: gone)"
