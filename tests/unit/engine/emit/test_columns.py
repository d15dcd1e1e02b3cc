"""Columns of each relation, keys under which equal rows are bitwise equal, and the condition for public groups."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.columns import (
    columns_of,
    content_of,
    group_key,
    in_domain,
    in_groups,
)
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    BoundedBlock,
    Caps,
    Column,
    Distinct,
    Filter,
    Join,
    Key,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
    combinations,
    types_of,
)

A, B, C = (Column("a", Facts(Type.INTEGER)), Column("b", Facts(Type.REAL)), Column("c", Facts(Type.TEXT)))
VISITS, WARDS = Scan("visits", (A, B)), ReleasedRows("wards", (C,), (), "")
TRUE = Literal(True, Facts(Type.BOOLEAN))

RANK = Window("rank", "rank", None, None, 0, (), (), Facts(Type.INTEGER))
PER_UNIT = UnitAggregate(VISITS, (("k", C),), (("n", "sum", B, None, Facts(Type.INTEGER)),))
RELATIONS: list[tuple[Relation, dict[str, Type | None]]] = [
    (VISITS, {"a": Type.INTEGER, "b": Type.REAL}),
    (WARDS, {"c": Type.TEXT}),
    (Filter(VISITS, TRUE), {"a": Type.INTEGER, "b": Type.REAL}),
    (Distinct(WARDS), {"c": Type.TEXT}),
    (Project(VISITS, (("x", B), ("y", TRUE))), {"x": Type.REAL, "y": Type.BOOLEAN}),
    (Join(VISITS, WARDS, "inner", (), False), {"a.a": Type.INTEGER, "a.b": Type.REAL, "b.c": Type.TEXT}),
    (SemiJoin(VISITS, WARDS, (), False, False, True), {"a": Type.INTEGER, "b": Type.REAL}),
    (Union_((WARDS, VISITS)), {"c": Type.TEXT}),
    (UnitWindow(VISITS, (RANK,)), {"a": Type.INTEGER, "b": Type.REAL, "rank": Type.INTEGER}),
    (PER_UNIT, {"u": None, "k": Type.TEXT, "n": Type.INTEGER}),
]


@pytest.mark.parametrize(("relation", "types"), RELATIONS, ids=lambda part: type(part).__name__)
def test_a_relation_has_the_columns_that_its_definition_gives_it(
    relation: Relation, types: dict[str, Type | None]
) -> None:
    assert types_of(relation) == types
    assert columns_of(relation) == list(types)


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
        ((1, 3), [1, 3]),
        ((1, 3, None), [1, 3, None]),
        ((None,), [None]),
        ((), []),
        ((2,), [2]),
    ],
)
def test_rows_outside_the_domain_of_a_key_belong_to_no_group(values: tuple[Any, ...], expected: list[Any]) -> None:
    assert inside(in_domain(key(values), DUCKDB), [0, 1, 2, 3, 4, None]) == expected


def block_of(keys: tuple[Key, ...], numbers: list[int] | None = None, *, whole: bool = False) -> BoundedBlock:
    listed = None if numbers is None else combinations(np.array(numbers, dtype=np.int64), whole)
    return BoundedBlock("", VISITS, keys, (), (), None, Caps(1, 1), combinations=listed)


TWO = (key((1, None)), key(("x", "y", "z"), "k1"))


def groups_inside(block: BoundedBlock) -> list[tuple[Any, Any]]:
    grid = list(product((1, 2, None), ("x", "y", "z", "w", None)))
    rows = ", ".join(
        f"({'NULL' if k is None else DUCKDB.constant(k)}, {'NULL' if j is None else DUCKDB.constant(j)})"
        for k, j in grid
    )
    condition = in_groups(block, DUCKDB)
    sql = f"SELECT k0, k1 FROM (VALUES {rows}) AS t(k0, k1)" + (f" WHERE {condition}" if condition else "")
    return plain_duckdb().execute(sql).fetchall()


def test_rows_are_in_groups_where_every_public_key_is_in_its_domain() -> None:
    assert groups_inside(block_of(TWO)) == list(product((1, None), ("x", "y", "z")))
    assert groups_inside(block_of((TWO[0], key(None, "k1")))) == list(product((1, None), ("x", "y", "z", "w", None)))
    assert in_groups(block_of((key(None), key(None, "k1"))), DUCKDB) == ""
    assert in_groups(block_of(()), DUCKDB) == ""


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0, 4], [(1, "x"), (None, "y")]), ([5], [(None, "z")]), ([], []), ([1, 2, 3], [(1, "y"), (1, "z"), (None, "x")])],
)
def test_combinations_that_having_left_out_are_no_groups(numbers: list[int], expected: list[tuple[Any, Any]]) -> None:
    assert groups_inside(block_of(TWO, numbers)) == expected
