"""Columns of each relation, keys under which equal rows are bitwise equal, and the condition for public groups."""

from typing import Any

import numpy as np
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.columns import content_of, group_key, in_domain
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Key, Literal, ReleasedRows, Scan

A, B, C = (Column("a", Facts(Type.INTEGER)), Column("b", Facts(Type.REAL)), Column("c", Facts(Type.TEXT)))
VISITS, WARDS = Scan("visits", (A, B)), ReleasedRows("wards", (C,), (), "")
TRUE = Literal(True, Facts(Type.BOOLEAN))


def test_rows_are_told_apart_by_every_column_and_the_signs_of_reals() -> None:
    content = content_of(VISITS, DUCKDB)
    assert content[:2] == ['"a"', '"b"']
    rows = "(VALUES (1, 0e0::DOUBLE), (1, '-0'::DOUBLE), (2, 0e0::DOUBLE)) AS t(a, b)"
    assert len(set(plain_duckdb().execute(f"SELECT {', '.join(content)} FROM {rows}").fetchall())) == 3
    assert content_of(WARDS, DUCKDB) == ['"c"']


def test_rows_are_not_told_apart_by_the_sign_of_nan() -> None:
    """No question sees it, and DuckDB 1.4 loses it in sorted copies: it must not decide which rows of a unit are kept."""
    content = ", ".join(content_of(VISITS, DUCKDB))
    rows = "(VALUES (1, 'nan'::DOUBLE), (1, '-nan'::DOUBLE)) AS t(a, b)"
    found = plain_duckdb().execute(f"SELECT hash({content}), {content} FROM {rows}").fetchall()
    assert len({str(row) for row in found}) == 1


def test_equal_reals_have_one_key() -> None:
    values = ["0", "-0", "nan", "-nan", "1.5", "inf"]
    rows = ", ".join(f"('{value}'::DOUBLE)" for value in values)
    keys = plain_duckdb().execute(f"SELECT {group_key(B, DUCKDB)} FROM (VALUES {rows}) AS t(b)").fetchall()
    bits = [np.float64(key).tobytes() for (key,) in keys]
    assert bits[0] == bits[1] == np.float64(0).tobytes() and bits[2] == bits[3] and len(set(bits)) == 4
    assert group_key(A, DUCKDB) == '"a"'


# --- groups -----------------------------------------------------------------------------------------------------------


def key(values: tuple[Any, ...] | None, name: str = "k0") -> Key:
    return Key(name, A, values)


def inside(condition: str, values: list[Any]) -> list[Any]:
    """Return those values of k0 that satisfy a condition."""
    rows = ", ".join(f"({'NULL' if value is None else DUCKDB.constant(value)})" for value in values)
    return [
        row[0]
        for row in plain_duckdb().execute(f"SELECT k0 FROM (VALUES {rows}) AS t(k0) WHERE {condition}").fetchall()
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 3), [1, 3]), ((1, 3, None), [1, 3, None]), ((None,), [None]), ((), []), ((2,), [2]),
    ],
)  # fmt: skip
def test_rows_outside_the_domain_of_a_key_belong_to_no_group(values: tuple[Any, ...], expected: list[Any]) -> None:
    assert inside(in_domain(key(values), DUCKDB), [0, 1, 2, 3, 4, None]) == expected
