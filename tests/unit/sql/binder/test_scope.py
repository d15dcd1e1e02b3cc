"""A name denotes one column or is refused, and USING and WITH treat names as in SQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Literal, Scan
from dpsql.sql.binder.scope import (
    HIDDEN,
    Common,
    Environment,
    Kind,
    Protected,
    Released,
    Scope,
    lacks_argument,
    only,
    same_unit,
    shown_names,
    using,
    using_name,
)

INTEGER = Facts(Type.INTEGER)


def rows(*labels: str, prefix: str = "", units: tuple[str, ...] = (), untyped: tuple[str, ...] = ()) -> Protected:
    """Return a relation whose columns are named by `prefix` and their label."""
    columns = tuple((label, Column(prefix + label, INTEGER)) for label in labels)
    return Protected(Scan("t", ()), columns, frozenset(units), frozenset(untyped))


SOURCES = [("r", rows("a", "B", "c", prefix="r.")), ("S", rows("c", "d", prefix="s."))]


def named(text: str) -> exp.Column:
    column = select(f"SELECT {text} FROM t").expressions[0]
    assert isinstance(column, exp.Column)
    return column


def refused(scope: Scope, text: str) -> Error:
    with pytest.raises(Error) as caught:
        scope.resolve(named(text))
    return caught.value


# --- resolving ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a", "r.a"),
        ("A", "r.a"),
        ("b", "r.B"),
        ('"b"', "r.B"),
        ("d", "s.d"),
        ("r.a", "r.a"),
        ("R.c", "r.c"),
        ("s.c", "s.c"),
    ],
)
def test_a_name_denotes_the_column_that_has_it(text: str, column: str) -> None:
    scope = Scope(SOURCES)
    assert scope.resolve(named(text)).name == column
    assert scope.has(named(text))


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("c", "ambiguous_column"),
        ("e", "unknown_column"),
        ("r.d", "unknown_column"),
        ("t.a", "unknown_table"),
    ],
)
def test_other_names_are_refused_at_their_place(text: str, slug: str) -> None:
    scope = Scope(SOURCES)
    error = refused(scope, text)
    assert error.slug == slug
    assert error.position == len("SELECT ") + 1
    assert not scope.has(named(text))


def test_one_source_with_a_name_twice_is_ambiguous() -> None:
    scope = Scope([("r", rows("a", "A"))])
    assert refused(scope, "r.a").slug == "ambiguous_column"


def test_nothing_is_in_an_empty_scope() -> None:
    assert refused(Scope([]), "a").slug == "unknown_column"
    assert refused(Scope([]), "r.a").slug == "unknown_table"


@pytest.mark.parametrize(
    ("text", "slug"), [("u", "untyped_column"), ("r.U", "untyped_column"), ("v", "unknown_column")]
)
def test_columns_of_unknown_type_cannot_be_named(text: str, slug: str) -> None:
    scope = Scope([("r", rows("a", untyped=("u",)))])
    assert refused(scope, text).slug == slug
    assert not scope.has(named(text))


def test_a_name_without_a_type_in_another_source_is_not_taken_for_a_column() -> None:
    scope = Scope([("r", rows("a")), ("s", rows("b", untyped=("a",)))])
    assert refused(scope, "a").slug == "untyped_column"
    assert scope.resolve(named("r.a")).name == "a"


def test_hints_are_the_names_that_the_question_has() -> None:
    scope = Scope([("ward", rows("patient", "city")), (f"{HIDDEN}0", rows(f"{HIDDEN}patient"))])
    assert "patient" in str(refused(scope, "patent").hint)
    assert HIDDEN not in str(refused(scope, "patent").hint)
    assert "ward" in str(refused(scope, "wart.city").hint)
    assert HIDDEN not in str(refused(scope, "wart.city").hint)


@pytest.mark.parametrize(("text", "quotes"), [('"er"', True), ("er", False), ('ward."er"', False)])
def test_a_text_in_double_quotes_is_told_about_single_ones(text: str, quotes: bool) -> None:
    hint = refused(Scope([("ward", rows("city"))]), text).hint or ""
    assert ("single quotes" in hint) is quotes
    assert not hint.startswith(";")


# --- names that USING merged ----------------------------------------------------------------------------------------------


def test_a_merged_name_is_the_first_sources() -> None:
    scope = Scope(SOURCES, frozenset({"c"}))
    assert scope.resolve(named("C")).name == "r.c"
    assert scope.resolve(named("s.c")).name == "s.c"


def test_a_preserved_name_is_that_of_its_source() -> None:
    scope = Scope(SOURCES, frozenset({"c"}), {"c": "s"})
    assert scope.resolve(named("c")).name == "s.c"
    assert scope.resolve(named("r.c")).name == "r.c"


@pytest.mark.parametrize(
    ("joins", "merged", "preserved"),
    [
        ("", set(), {}),
        ("JOIN s ON r.a = s.a", set(), {}),
        ("JOIN s USING (a)", {"a"}, {}),
        ("JOIN s USING (A, b)", {"a", "b"}, {}),
        ("LEFT JOIN s USING (a)", {"a"}, {}),
        ("RIGHT JOIN S USING (A)", {"a"}, {"a": "s"}),
        ("FULL JOIN s USING (a)", set(), {}),
        ("FULL JOIN s USING (a) JOIN u USING (a, b)", {"b"}, {}),
        ("JOIN s USING (a) RIGHT JOIN u USING (b)", {"a", "b"}, {"b": "u"}),
        ("RIGHT JOIN s USING (a) RIGHT JOIN u USING (a)", {"a"}, {"a": "u"}),
        ("RIGHT JOIN s USING (a) FULL JOIN u USING (a)", set(), {}),
    ],
)
def test_using_merges_names_but_those_of_full_joins(joins: str, merged: set[str], preserved: dict[str, str]) -> None:
    node = select(f"SELECT 1 FROM r {joins}")
    written = node.args.get("joins") or []
    assert using(written, ["r", *(join.this.name for join in written)]) == (merged, preserved)


def test_names_of_using_are_identifiers_or_texts() -> None:
    assert using_name("a") == "a"
    assert using_name(exp.to_identifier("A", quoted=True)) == "A"


# --- stars ----------------------------------------------------------------------------------------------------------------


def starred(scope: Scope, qualifier: str = "") -> list[tuple[str, str]]:
    return [(label, column.name) for label, column in scope.star(qualifier, exp.Star())]


R_COLUMNS = [("a", "r.a"), ("B", "r.B"), ("c", "r.c")]


def test_a_star_is_all_columns_in_their_order() -> None:
    scope = Scope(SOURCES)
    assert starred(scope) == [*R_COLUMNS, ("c", "s.c"), ("d", "s.d")]
    assert starred(scope, "R") == R_COLUMNS
    assert starred(scope, "s") == [("c", "s.c"), ("d", "s.d")]


def test_merged_columns_stand_once_in_a_star_where_they_come_first() -> None:
    scope = Scope(SOURCES, frozenset({"c"}))
    assert starred(scope) == [*R_COLUMNS, ("d", "s.d")]
    assert starred(scope, "s") == [("c", "s.c"), ("d", "s.d")]
    preserving = Scope(SOURCES, frozenset({"c"}), {"c": "s"})
    assert starred(preserving) == [("a", "r.a"), ("B", "r.B"), ("c", "s.c"), ("d", "s.d")]


def test_columns_of_one_name_that_are_not_merged_both_stand_in_a_star() -> None:
    scope = Scope([*SOURCES, ("u", rows("d", prefix="u."))], frozenset({"c"}))
    assert starred(scope) == [*R_COLUMNS, ("d", "s.d"), ("d", "u.d")]


def test_hidden_sources_are_in_no_star() -> None:
    scope = Scope([*SOURCES, (f"{HIDDEN}0", rows("e"))])
    assert starred(scope) == [*R_COLUMNS, ("c", "s.c"), ("d", "s.d")]


@pytest.mark.parametrize(
    ("qualifier", "slug"), [("t", "unknown_table"), (f"{HIDDEN}0", "unknown_table"), ("u", "untyped_column"), ("", "untyped_column")]
)  # fmt: skip
def test_stars_of_nothing_or_of_unknown_types_are_refused(qualifier: str, slug: str) -> None:
    scope = Scope([*SOURCES, (f"{HIDDEN}0", rows("e")), ("u", rows("f", untyped=("g",)))])
    with pytest.raises(Error) as caught:
        scope.star(qualifier, exp.Star())
    assert caught.value.slug == slug
    assert starred(scope, "r") == R_COLUMNS


# --- units ----------------------------------------------------------------------------------------------------------------


def test_kinds_of_columns_are_those_of_all_sources() -> None:
    computed = Protected(
        Scan("t", ()),
        (),
        frozenset({"k"}),
        unit_kinds={"k": Kind.MIXED, "i": Kind.IMAGE},
    )
    scope = Scope([("r", computed), ("s", rows("p", units=("p",)))])
    assert computed.units == {"k": Kind.KEY, "i": Kind.IMAGE}
    assert scope.units == {"k": Kind.KEY, "i": Kind.IMAGE, "p": Kind.KEY}
    assert scope.unit_names() == {"k", "p"}


def test_a_relation_has_no_units_or_kinds_unless_it_says_so() -> None:
    assert rows("a").units == {}
    assert not Released(exp.select("1"), ("a",)).null_repeats


def test_kinds_are_ordered_by_what_is_proven() -> None:
    assert Kind.OTHER < Kind.MIXED < Kind.IMAGE < Kind.KEY


@pytest.mark.parametrize(
    ("expression", "same"),
    [
        (Column("p", INTEGER), True),
        (Column("q", INTEGER), False),
        (Literal(3, INTEGER), False),
        (Call("neg", (Column("p", INTEGER),), INTEGER), False),
    ],
)
def test_the_units_key_is_its_column_alone(expression: Column | Literal | Call, same: bool) -> None:
    assert same_unit(expression, frozenset({"p"})) is same


# --- results and WITH -----------------------------------------------------------------------------------------------------


def test_columns_without_known_facts_have_none() -> None:
    assert Released(exp.select("1"), ("a", "b")).column_facts == (None, None)
    assert Released(exp.select("1"), ("a", "b"), (INTEGER,)).column_facts == (None, None)
    assert Released(exp.select("1"), ("a", "b"), (INTEGER, None)).column_facts == (INTEGER, None)
    assert Released(exp.select("1"), ()).column_facts == ()


def environments() -> Iterator[Environment]:
    outer = Environment({"a": Common("a", exp.select("1"), Environment())})
    yield outer
    yield Environment({"b": Common("b", exp.select("2"), outer), "a": Common("a", exp.select("3"), outer)}, outer)


def test_inner_entries_of_with_go_before_outer_ones() -> None:
    outer, inner = environments()
    assert outer.find("A") is outer.entries["a"]
    assert outer.find("b") is None
    assert inner.find("a") is inner.entries["a"]
    assert inner.find("B") is inner.entries["b"]
    assert Environment({}, inner).find("b") is inner.entries["b"]
    assert Environment().find("a") is None


# --- nodes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, False, [], ""])
def test_empty_slots_are_not_refused(value: object) -> None:
    only(exp.Select(distinct=value, expressions=[exp.Star()]), "expressions")


def test_what_is_not_listed_is_refused() -> None:
    node = select("SELECT a FROM t LIMIT 3")
    only(node, "expressions", "from_", "limit")
    with pytest.raises(Error) as caught:
        only(node, "expressions", "from_")
    assert caught.value.slug == "clause"
    assert "SELECT with LIMIT" in caught.value.message
    assert caught.value.position == len("SELECT a FROM t LIMIT ") + 1


def test_a_flag_is_refused_at_the_node() -> None:
    join = select("SELECT a FROM t NATURAL JOIN u").args["joins"][0]
    with pytest.raises(Error) as caught:
        only(join, "this")
    assert caught.value.position == len("SELECT a FROM t NATURAL JOIN ") + 1


def test_a_function_that_lacks_an_argument_is_refused_at_the_nearest_place() -> None:
    inside = exp.Abs()
    around = exp.Add(this=exp.column("a"), expression=inside)
    around.this.this.meta["start"] = 7
    error = lacks_argument(inside)
    assert error.slug == "wrong_arguments"
    assert error.message.startswith("ABS") or "ABS" in error.message
    assert error.position == 8
    assert lacks_argument(exp.Abs()).position is None


def test_hidden_names_are_not_listed() -> None:
    assert shown_names(["a", f"{HIDDEN}b", "", f"a{HIDDEN}"]) == ["a", "", f"a{HIDDEN}"]
    assert shown_names([]) == []


def test_columns_are_found_by_their_label_in_lower_case() -> None:
    by_label = rows("a", "B", "A").by_label
    assert {label: [column.name for column in columns] for label, columns in by_label.items()} == {
        "a": ["a", "A"],
        "b": ["B"],
    }
