"""Facts about a result's columns and rows before its release follow from the text and hold for every release."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from sqlglot import exp
from support.bound_questions import HOSPITAL, binder_of, select

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Key, Measure
from dpsql.sql.binder.result_facts import (
    ONE_ROW,
    Output,
    key_facts,
    limited,
    output,
    over_block,
    over_results,
    rows_of,
    scope_of,
    united,
    visible,
)
from dpsql.sql.binder.scope import Environment, Released
from dpsql.sql.parse import parse

INTEGER, TEXT, REAL = Facts(Type.INTEGER), Facts(Type.TEXT), Facts(Type.REAL)
WARD = Facts(Type.TEXT, values=("er", "icu"))
Unique = set[frozenset[int]]


def result(*facts: Facts | None, unique: tuple[tuple[int, ...], ...] = (), **more: object) -> Released:
    """Return a result with columns a, b, c, ... of these facts."""
    bound = Released(exp.select("1"), tuple("abcdef"[: len(facts)]), facts, frozenset(map(frozenset, unique)))
    return replace(bound, **more)  # type: ignore[arg-type]


R = result(INTEGER, WARD, REAL, None, unique=((0,), (1, 2)))
S = result(TEXT, INTEGER, unique=((0,),))


def over(text: str, *sources: Released) -> Released:
    """Return a SELECT from r (and s, ...) without stars."""
    node = select(text)
    named = list(zip("rstuv", sources or (R,), strict=False))
    released = over_results(node, named, node.expressions)
    return replace(released, columns=tuple("x" * len(node.expressions)))


def unique_of(bound: Released) -> Unique:
    return set(bound.unique)


def sets(*positions: tuple[int, ...]) -> Unique:
    return set(map(frozenset, positions))


# --- keys -----------------------------------------------------------------------------------------------------------------

NULLABLE = Facts(Type.TEXT, values=("er", "icu"), nullable=True)


@pytest.mark.parametrize(
    ("values", "listed", "nullable"),
    [
        (("er", "icu"), ("er", "icu"), False),
        (("er", "icu", None), ("er", "icu"), True),
        (("er",), ("er",), False),
        ((None,), (None,), True),
        ((), (), False),
    ],
)
def test_a_public_key_has_the_values_that_are_left(
    values: tuple[str | None, ...], listed: tuple[str | None, ...], nullable: bool
) -> None:
    facts = key_facts(Key("k0", Column("ward", NULLABLE), values))
    assert facts.values is not None
    assert set(facts.values) == set(listed)
    assert facts.nullable is nullable


def test_a_private_key_has_the_facts_of_its_column() -> None:
    age = Facts(Type.INTEGER, Fraction(0), Fraction(120), max_total=Fraction(7))
    facts = key_facts(Key("k0", Column("age", age), None))
    assert facts == replace(age, max_total=None)


def test_a_private_key_that_is_computed_has_no_list_of_values() -> None:
    computed = Call("upper", (Column("ward", WARD),), WARD)
    assert key_facts(Key("k0", computed, None)).values is None
    assert key_facts(Key("k0", computed, ("ER",))).values == ("ER",)


def test_a_key_of_several_sets_may_be_null_and_has_no_list() -> None:
    facts = key_facts(Key("k0", Column("ward", WARD), ("er", "icu")), listed=False)
    assert facts.values is None
    assert facts.nullable


# --- columns --------------------------------------------------------------------------------------------------------------


def test_columns_of_a_result_are_named_by_their_position() -> None:
    rows = visible(R, "7.")
    assert [(label, column.name) for label, column in rows.columns] == [("a", "7.0"), ("b", "7.1"), ("c", "7.2")]
    assert rows.untyped == {"d"}
    scope = scope_of([("r", R), ("s", S)], frozenset(), {})
    assert scope.resolve(exp.column("b", "s")).name == "1.1"
    assert scope.resolve(exp.column("c")).name == "0.2"


SCOPE = scope_of([("r", R), ("s", S)], frozenset(), {})


@pytest.mark.parametrize(
    ("item", "type_", "origin"),
    [
        ("r.a", Type.INTEGER, "0.0"),
        ("(r.a)", Type.INTEGER, "0.0"),
        ("c", Type.REAL, "0.2"),
        ("s.b", Type.INTEGER, "1.1"),
        ("r.a + 1", Type.INTEGER, ""),
        ("c + 1", Type.REAL, ""),
        ("r.a > 3", Type.BOOLEAN, ""),
        ("'x'", Type.TEXT, ""),
        ("3", Type.INTEGER, ""),
        ("NULL", None, ""),
        ("d", None, ""),
        ("nowhere", None, ""),
        ("CAST(d AS INTEGER)", Type.INTEGER, ""),
        ("TRY_CAST(d AS TEXT)", Type.TEXT, ""),
        ("CAST(d AS BLOB)", None, ""),
        ("COUNT(*)", Type.INTEGER, ""),
        ("COUNT(d)", Type.INTEGER, ""),
        ("AVG(r.a)", Type.REAL, ""),
        ("SUM(r.a)", Type.INTEGER, ""),
        ("SUM(c)", Type.REAL, ""),
        ("MAX(r.b)", Type.TEXT, ""),
        ("MAX(d)", None, ""),
        ("MEDIAN(r.a)", Type.REAL, ""),
        ("PERCENT_RANK() OVER (ORDER BY r.a)", Type.REAL, ""),
        ("ROW_NUMBER() OVER ()", Type.INTEGER, ""),
        ("NTILE(3) OVER ()", Type.INTEGER, ""),
        ("RANK() OVER (ORDER BY r.a)", Type.INTEGER, ""),
        ("SUM(r.a) OVER ()", Type.INTEGER, ""),
        ("SUM(r.a) FILTER (WHERE c > 3)", Type.INTEGER, ""),
        ("LAG(r.b) OVER (ORDER BY r.a)", Type.TEXT, ""),
        ("FIRST_VALUE(c) OVER (ORDER BY r.a)", Type.REAL, ""),
        ("LAST_VALUE(d) OVER (ORDER BY r.a)", None, ""),
        ("COUNT(*) + SUM(r.a)", Type.INTEGER, ""),
        ("COUNT(*) - r.a", Type.INTEGER, ""),
        ("COUNT(*) * 0.5", Type.REAL, ""),
        ("COUNT(*) * 2", Type.INTEGER, ""),
        ("SUM(r.a) / COUNT(*)", Type.REAL, ""),
        ("(SUM(r.a) + SUM(c))", Type.REAL, ""),
        ("COUNT(*) + d", None, ""),
        ("COUNT(*) + MAX(r.b)", None, ""),
        ("MAX(r.b) + MAX(r.b)", None, ""),
        ("COUNT(*) % 2", None, ""),
    ],
)
def test_the_type_of_an_output_follows_from_the_text(item: str, type_: Type | None, origin: str) -> None:
    described = output(select(f"SELECT {item} FROM r").expressions[0], SCOPE)
    assert (None if described.facts is None else described.facts.type) == type_
    assert described.origin == origin


@pytest.mark.parametrize(
    ("item", "values"), [("UPPER(r.b)", {"ER", "ICU"}), ("CASE WHEN r.b = 'er' THEN 1 ELSE 0 END", {0, 1})]
)
def test_computed_columns_have_the_values_that_they_may_have(item: str, values: set[object]) -> None:
    facts = output(select(f"SELECT {item} FROM r").expressions[0], SCOPE).facts
    assert facts is not None
    assert set(facts.values or ()) - {None} == values


def test_columns_that_are_repeated_keep_their_facts() -> None:
    assert output(exp.column("b", "r"), SCOPE) == Output(WARD, "0.1")


# --- one private block ----------------------------------------------------------------------------------------------------

KEYS = [Key("k0", Column("ward", WARD), ("er", "icu")), Key("k1", Column("code", INTEGER), None)]
COUNT = Measure("m0", "count", (), False, None)


@pytest.mark.parametrize(
    ("items", "keys", "sets_of_keys", "unique"),
    [
        ("k0, k1, m0", KEYS, 1, sets((0, 1))),
        ("m0, k1, k0", KEYS, 1, sets((1, 2))),
        ("k0, m0", KEYS, 1, sets()),
        ("k0 AS x, m0", KEYS[:1], 1, sets((0,))),
        ("m0, k0, k0", KEYS[:1], 1, sets((1,))),
        ("k0 || 'x', m0", KEYS[:1], 1, sets()),
        ("m0", [], 1, sets(())),
        ("k0, k1, m0", KEYS, 2, sets()),
        ("m0", [], 2, sets()),
    ],
)
def test_a_block_has_one_row_for_each_group(items: str, keys: list[Key], sets_of_keys: int, unique: Unique) -> None:
    released = over_block(select(f"SELECT {items} FROM b").expressions, keys, [COUNT], sets_of_keys)
    assert unique_of(released) == unique


def test_outputs_of_a_block_have_the_facts_of_keys_and_measures() -> None:
    released = over_block(select("SELECT k0, m0, k1 FROM b").expressions, KEYS, [COUNT], 1)
    first, count, code = released.facts
    assert first == replace(WARD, nullable=False)
    assert count is not None
    assert count.type is Type.INTEGER
    assert code == INTEGER
    united_first = over_block(select("SELECT k0 FROM b").expressions, KEYS, [COUNT], 2).facts[0]
    assert united_first is not None
    assert united_first.values is None


# --- SELECTs over results -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        ("SELECT a, b, c FROM r", sets((0,), (1, 2))),
        ("SELECT b, a FROM r", sets((1,))),
        ("SELECT b FROM r", sets()),
        ("SELECT c, b FROM r", sets((0, 1))),
        ("SELECT a + 1 FROM r", sets()),
        ("SELECT a, a FROM r", sets((0,))),
        ("SELECT a FROM r WHERE b = 'er' ORDER BY a", sets((0,))),
        # aggregates without groups: a row
        ("SELECT COUNT(*) FROM r", sets(())),
        ("SELECT a FROM r HAVING COUNT(*) > 3", sets(())),
        ("SELECT SUM(a) OVER () FROM r", sets()),
        # groups
        ("SELECT b, COUNT(*) FROM r GROUP BY b", sets((0,))),
        ("SELECT COUNT(*), b FROM r GROUP BY 2", sets((1,))),
        ("SELECT b AS x, COUNT(*) FROM r GROUP BY X", sets((0,))),
        ("SELECT a, b FROM r GROUP BY a, b", sets((0, 1))),
        ("SELECT COUNT(*) FROM r GROUP BY b", sets()),
        ("SELECT c, COUNT(*) FROM r GROUP BY c", sets()),
        ("SELECT b, COUNT(*) FROM r GROUP BY b, c", sets()),
        ("SELECT a + 1 AS x FROM r GROUP BY x", sets()),
        ("SELECT a + 1 FROM r GROUP BY a + 1", sets()),
        ("SELECT b, COUNT(*) FROM r GROUP BY 3", sets()),
        ("SELECT b FROM r GROUP BY ALL", sets()),
        ("SELECT b FROM r GROUP BY ROLLUP (b)", sets()),
        ("SELECT b FROM r GROUP BY CUBE (b)", sets()),
        ("SELECT b FROM r GROUP BY GROUPING SETS (b)", sets()),
        # DISTINCT
        ("SELECT DISTINCT b FROM r", sets((0,))),
        ("SELECT DISTINCT c FROM r", sets()),
        ("SELECT DISTINCT b, c FROM r", sets((0, 1))),
        ("SELECT DISTINCT b, b FROM r", sets((0, 1))),
        ("SELECT DISTINCT a + 1 FROM r", sets()),
        ("SELECT DISTINCT ON (b) b FROM r", sets()),
        # LIMIT
        ("SELECT b FROM r LIMIT 1", sets(())),
        ("SELECT b FROM r LIMIT 2", sets()),
    ],
)
def test_unique_columns_follow_from_the_text(text: str, unique: Unique) -> None:
    assert unique_of(over(text)) == unique


def test_real_columns_are_not_unique_by_distinct_alone() -> None:
    reals = result(REAL, INTEGER)
    assert unique_of(over("SELECT DISTINCT a, b FROM r", reals)) == set()
    assert unique_of(over("SELECT DISTINCT b FROM r", reals)) == sets((0,))


@pytest.mark.parametrize(
    ("join", "unique"),
    [
        ("JOIN s ON r.a = s.b", sets((0, 3), (1, 2, 3))),
        ("LEFT JOIN s ON r.a = s.b", sets((0, 3), (1, 2, 3))),
        ("CROSS JOIN s", sets((0, 3), (1, 2, 3))),
        (", s", sets((0, 3), (1, 2, 3))),
        ("RIGHT JOIN s ON r.a = s.b", sets()),
        ("FULL JOIN s ON r.a = s.b", sets()),
        ("JOIN s USING (a)", sets()),
        ("NATURAL JOIN s", sets()),
        ("SEMI JOIN s ON r.a = s.b", sets()),
    ],
)
def test_joined_rows_are_told_apart_by_keys_of_all_sides(join: str, unique: Unique) -> None:
    assert unique_of(over(f"SELECT r.a, r.b, r.c, s.a, s.b FROM r {join}", R, S)) == unique


def test_a_product_of_many_keys_claims_a_few() -> None:
    wide = result(INTEGER, INTEGER, INTEGER, unique=((0,), (1,), (2,)))
    items = ", ".join(f"{alias}.{label}" for alias in "rst" for label in "abc")
    unique = unique_of(over(f"SELECT {items} FROM r, s, t", wide, wide, wide))
    assert len(unique) == 16
    assert unique <= {frozenset((x, 3 + y, 6 + z)) for x in range(3) for y in range(3) for z in range(3)}


DECLARED = result(
    INTEGER,
    TEXT,
    declared=frozenset({(frozenset({0}), "regions", "region"), (frozenset({0, 1}), "t", "k")}),
    repeats=((frozenset({1}), 3), (frozenset(), 9)),
)


@pytest.mark.parametrize(
    ("text", "declared", "repeats"),
    [
        ("SELECT a, b FROM r", {("regions", (0,)), ("t", (0, 1))}, {((1,), 3), ((), 9)}),
        ("SELECT b, a FROM r", {("regions", (1,)), ("t", (0, 1))}, {((0,), 3), ((), 9)}),
        ("SELECT a FROM r WHERE b = 'x'", {("regions", (0,))}, {((), 9)}),
        ("SELECT b FROM r", set(), {((0,), 3), ((), 9)}),
        ("SELECT 1 FROM r LIMIT 4", set(), {((), 9), ((), 4)}),
        ("SELECT a FROM r GROUP BY a", set(), set()),
        ("SELECT r.a FROM r, s", set(), set()),
    ],
)
def test_rows_of_one_source_keep_what_is_known_of_them(
    text: str, declared: set[tuple[str, tuple[int, ...]]], repeats: set[tuple[tuple[int, ...], int]]
) -> None:
    released = over(text, DECLARED, S) if "s" in text.split("FROM")[1] else over(text, DECLARED)
    assert {(table, tuple(sorted(positions))) for positions, table, _ in released.declared} == declared
    assert {(tuple(sorted(positions)), most) for positions, most in released.repeats} == repeats


def test_null_repeats_where_it_does_in_a_source() -> None:
    repeating = result(INTEGER, unique=((0,),), null_repeats=True)
    assert not over("SELECT a FROM r").null_repeats
    assert over("SELECT a FROM r", repeating).null_repeats
    assert over("SELECT r.a FROM r, s", R, repeating).null_repeats


# --- limits and set operations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limit", "most"),
    [("", None), ("LIMIT 0", 0), ("LIMIT 1", 1), ("LIMIT 7", 7), ("LIMIT 3 + 4", None)],
)
def test_a_literal_limit_is_the_most_rows(limit: str, most: int | None) -> None:
    released = limited(select(f"SELECT a FROM r {limit}"), R)
    assert released.repeats == (() if most is None else ((frozenset(), most),))
    assert (released.unique >= ONE_ROW) is (most == 1)
    assert released.unique >= R.unique


def test_what_is_known_of_rows_is_named_by_columns_with_a_type() -> None:
    bound = result(
        INTEGER, None, TEXT,
        unique=((0,), (0, 1), (2, 0)),
        repeats=((frozenset({2}), 3), (frozenset({1}), 4), (frozenset(), 5)),
        declared=frozenset({(frozenset({2}), "regions", "region"), (frozenset({1}), "t", "k")}),
    )  # fmt: skip
    unique, repeats, promised = rows_of(bound, {0, 2})
    assert unique == (("c0",), ("c0", "c2"), ("c2",))
    assert repeats == (((), 5), (("c2",), 3))
    assert promised == ((("c2",), "regions", "region"),)
    assert rows_of(bound, set()) == ((), (((), 5),), ())


def union(text: str, *sides: Released) -> Released:
    node = parse(text).query
    assert isinstance(node, exp.SetOperation)
    return united(node, sides)


LOW, HIGH = (Facts(Type.INTEGER, Fraction(low), Fraction(low + 5), nullable=False) for low in (0, 10))
UNION = "SELECT a, b FROM r UNION {} SELECT a, b FROM s"


def test_columns_of_a_union_are_those_of_both_sides() -> None:
    released = union(UNION.format("ALL"), result(LOW, TEXT), result(HIGH, TEXT))
    first, second = released.facts
    assert first is not None
    assert (first.lower, first.upper) == (0, 15)
    assert second == TEXT
    assert released.unique == frozenset()


@pytest.mark.parametrize(
    ("left", "right", "known"),
    [(INTEGER, INTEGER, True), (INTEGER, REAL, False), (INTEGER, None, False), (None, None, False)],
)
def test_columns_of_two_types_have_none(left: Facts | None, right: Facts | None, known: bool) -> None:
    released = union("SELECT a FROM r UNION ALL SELECT a FROM s", result(left), result(right))
    assert (released.facts[0] is not None) is known


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        (UNION.format("ALL"), sets()),
        (UNION.format(""), sets((0, 1))),
        (UNION.format("").replace("UNION", "INTERSECT"), sets((0, 1))),
        (UNION.format("").replace("UNION", "EXCEPT"), sets((0, 1))),
        (UNION.format("ALL") + " LIMIT 1", sets(())),
        (UNION.format("").replace("UNION", "UNION BY NAME"), sets()),
    ],
)
def test_rows_of_set_operations_without_all_are_unique(text: str, unique: Unique) -> None:
    side = result(INTEGER, TEXT, unique=((0,),))
    assert unique_of(union(text, side, side)) == unique


def test_reals_and_unknown_types_are_not_told_apart_in_a_union() -> None:
    for column in (REAL, None):
        side = result(INTEGER, column)
        assert unique_of(union(UNION.format(""), side, side)) == set()


def test_nothing_is_known_of_sides_that_do_not_match() -> None:
    released = union(UNION.format(""), result(INTEGER), result(INTEGER, TEXT))
    assert (released.facts, released.unique) == ((), frozenset())


def test_null_repeats_in_a_union_where_it_does_in_a_side() -> None:
    side, repeating = result(INTEGER, TEXT), result(INTEGER, TEXT, null_repeats=True)
    assert not union(UNION.format(""), side, side).null_repeats
    assert union(UNION.format(""), side, repeating).null_repeats


def test_facts_reach_through_a_whole_question() -> None:
    query = parse(
        "SELECT ward, n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE n > 3 LIMIT 5"
    ).query
    assert query is not None
    bound = binder_of(query, HOSPITAL).query(query, Environment())
    assert isinstance(bound, Released)
    assert bound.unique == {frozenset({0})}
    assert bound.repeats == ((frozenset(), 5),)
