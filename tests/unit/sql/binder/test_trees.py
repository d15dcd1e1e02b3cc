"""Trees of the remainder are copied through the allow-list, and outputs have the names that analysts expect."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Scan
from dpsql.sql.binder.scope import Protected, Released
from dpsql.sql.binder.trees import (
    SQL_TYPES,
    aliased,
    as_query,
    asks_no_rows,
    check_names,
    condition_of,
    conjuncts,
    no_rows,
    order_by_all,
    output_name,
    outputs_written_out,
    put_in_front,
    rebuild,
    rename,
    with_names,
)

NODE = exp.column("place")
TYPED = Protected(
    Scan("t", ()),
    tuple((f"{type_.value}_column", Column(type_.value, Facts(type_))) for type_ in SQL_TYPES),
)
"""A relation with a column of each type that a SQL value may have."""


def nothing(_: exp.Expr) -> None:
    """Replace no node."""


def item(text: str) -> exp.Expr:
    part = select(f"SELECT {text} FROM t").expressions[0]
    assert isinstance(part, exp.Expr)
    return part


# --- copies ---------------------------------------------------------------------------------------------------------------


def test_a_copy_is_equal_and_shares_no_node() -> None:
    tree = item("round(a + 1, 2) * coalesce(b, 3)")
    copy = rebuild(tree, nothing)
    assert isinstance(copy, exp.Expr)
    assert copy == tree
    assert {id(part) for part in copy.walk()}.isdisjoint({id(part) for part in tree.walk()})
    assert [part.meta for part in copy.walk()] == [part.meta for part in tree.walk()]


def test_special_nodes_are_replaced_and_not_looked_into() -> None:
    visited: list[str] = []

    def special(node: exp.Expr) -> exp.Expr | None:
        visited.append(type(node).__name__)
        return exp.column("x") if isinstance(node, exp.Abs) else None

    copy = rebuild(item("abs(a) + 1"), special)
    assert isinstance(copy, exp.Expr)
    assert copy.sql() == "x + 1"
    assert visited == ["Add", "Abs", "Literal"]


@pytest.mark.parametrize("value", ["text", 3, None, True])
def test_what_is_no_node_is_copied_as_it_is(value: object) -> None:
    assert rebuild(value, nothing) is value


def test_lists_are_copied_item_by_item() -> None:
    copy = rebuild([exp.column("a"), "b"], nothing)
    assert copy == [exp.column("a"), "b"]


def test_a_node_that_is_not_allowed_is_refused_unless_it_is_special() -> None:
    tree = item("1 + random()")
    with pytest.raises(Error):
        rebuild(tree, nothing)
    assert rebuild(tree, lambda node: exp.null() if isinstance(node, exp.Rand) else None) is not None


# --- conditions -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("a", ["a"]),
        ("a AND b", ["a", "b"]),
        ("a AND b AND c", ["a", "b", "c"]),
        ("(a AND (b AND ((c))))", ["a", "b", "((c))"]),
        ("a OR b", ["a OR b"]),
        ("(a OR b) AND NOT (c AND d)", ["(a OR b)", "NOT (c AND d)"]),
        ("((a))", ["((a))"]),
    ],
)
def test_conjuncts_must_all_hold(condition: str, parts: list[str]) -> None:
    where = condition_of(select(f"SELECT 1 FROM t WHERE {condition}"), "where")
    assert [part.sql() for part in conjuncts(where)] == parts


def test_no_condition_has_no_conjuncts() -> None:
    node = select("SELECT 1 FROM t HAVING a")
    assert condition_of(node, "where") is None
    assert conjuncts(None) == []
    assert condition_of(node, "having") == exp.column("a")


# --- names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a", "a"),
        ("t.a", "a"),
        ('"A b"', "A b"),
        ("a AS x", "x"),
        ("COUNT(*) AS n", "n"),
        ("(a)", "a"),
        ("a::TEXT", "a"),
        ("CAST((a) AS INT)", "a"),
        ("COUNT(*)", "count"),
        ("SUM(a)", "sum"),
        ("SUM(a) FILTER (WHERE b)", "sum"),
        ("SUM(a) OVER ()", "sum"),
        ("COUNT(*)::INT", "count"),
        ("nosuch(a)", "nosuch"),
        ("NoSuch(a)", "nosuch"),
        ("CASE WHEN a THEN 1 END", "case"),
        ("if(a, 1, 2)", "case"),
        ("round(a, 1)", "round"),
        ("a + 1", "?column?"),
        ("1", "?column?"),
        ("'a'", "?column?"),
        ("NOT a", "?column?"),
    ],
)
def test_outputs_are_named_as_in_postgresql(text: str, name: str) -> None:
    assert output_name(item(text)) == name


def test_a_function_of_bigquery_keeps_its_name() -> None:
    assert output_name(exp.ApproxQuantiles(this=exp.column("a"))) == "approx_quantiles"


PAIR = Released(exp.to_table("t"), ("a", "b"))
PROTECTED = Protected(
    Scan("t", ()),
    (("a", Column("p0", Facts(Type.TEXT))), ("b", Column("p1", Facts(Type.INTEGER)))),
    frozenset({"p0"}),
)


@pytest.mark.parametrize(
    ("names", "labels"), [((), ("a", "b")), (("x",), ("x", "b")), (("x", "y"), ("x", "y")), (("b", "a"), ("b", "a"))]
)
def test_names_in_an_alias_list_come_first(names: tuple[str, ...], labels: tuple[str, ...]) -> None:
    assert rename(PAIR, names, NODE).columns == labels
    renamed = rename(PROTECTED, names, NODE)
    assert isinstance(renamed, Protected)
    assert tuple(label for label, _ in renamed.columns) == labels
    assert [column for _, column in renamed.columns] == [column for _, column in PROTECTED.columns]
    assert renamed.unit_names == {"p0"}


@pytest.mark.parametrize("source", [PAIR, PROTECTED])
def test_more_names_than_columns_are_refused(source: Released | Protected) -> None:
    with pytest.raises(Error, match="2") as caught:
        rename(source, ("x", "y", "z"), NODE)
    assert caught.value.slug == "alias_count"
    assert "3" in caught.value.message


def test_a_tree_has_the_names_of_an_alias_list() -> None:
    assert with_names(PAIR, ()) is PAIR.tree
    assert with_names(PAIR, ("x", "Y z")).sql("duckdb") == 'SELECT * FROM (SELECT * FROM t) AS q("x", "Y z")'


@pytest.mark.parametrize(
    ("tree", "alias", "text"),
    [
        (exp.to_table("t"), "", "t"),
        (exp.to_table("t"), "A", 't AS "A"'),
        (exp.select("1"), "A", '(SELECT 1) AS "A"'),
        (exp.select("1"), "", "(SELECT 1)"),
    ],
)
def test_sources_stand_under_the_analysts_alias(tree: exp.Expr, alias: str, text: str) -> None:
    assert aliased(tree, alias).sql("duckdb") == text


def test_an_alias_leaves_the_table_as_it_was() -> None:
    table = exp.to_table("t")
    aliased(table, "x")
    assert table.sql() == "t"


@pytest.mark.parametrize(("tree", "text"), [(exp.to_table("t"), "SELECT * FROM t"), (exp.select("1"), "SELECT 1")])
def test_a_result_is_a_query(tree: exp.Expr, text: str) -> None:
    assert as_query(Released(tree, ("a",))).sql() == text


# --- WITH -----------------------------------------------------------------------------------------------------------------

COMMON: list[tuple[str, exp.Expr]] = [
    ("c0", exp.select("1 AS a")),
    ("c1", exp.select("a").from_("c0")),
    ("c2", exp.select("2 AS a")),
    ("c3", exp.select("*").from_("c1").join("c0", join_type="cross")),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM t", []),
        ("SELECT * FROM c0", ["c0"]),
        ("SELECT * FROM c1", ["c0", "c1"]),
        ("SELECT * FROM c2, c0", ["c0", "c2"]),
        ("SELECT * FROM c3", ["c0", "c1", "c3"]),
        ("SELECT (SELECT a FROM c1) FROM c2", ["c0", "c1", "c2"]),
    ],
)
def test_entries_that_a_query_reads_stand_in_front_in_their_order(text: str, names: list[str]) -> None:
    query = select(text)
    put_in_front(query, COMMON)
    clause = query.args.get("with_")
    assert [entry.alias for entry in (clause.expressions if clause is not None else [])] == names
    if "FROM t" not in text:
        with duckdb.connect() as connection:
            assert connection.execute(query.sql("duckdb")).fetchall()


# --- names of results -----------------------------------------------------------------------------------------------------

SOURCES = [("r", ("a", "B")), ("s", ("c",)), ("", ("d",))]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, b, c, d FROM r",
        "SELECT r.a, R.b, s.C FROM r",
        "SELECT r.*, * FROM r",
        "SELECT a AS x FROM r ORDER BY x, X",
        "SELECT a FROM r WHERE EXISTS (SELECT nothing FROM u)",
        "SELECT a FROM r WHERE b IN (SELECT v.nothing FROM v UNION SELECT w FROM v)",
        "SELECT 1 FROM r",
    ],
)
def test_names_that_sources_have_pass(text: str) -> None:
    check_names(select(text), SOURCES)


@pytest.mark.parametrize(
    ("text", "slug", "name"),
    [
        ("SELECT e FROM r", "unknown_column", "e"),
        ("SELECT r.c FROM r", "unknown_column", "r.c"),
        ("SELECT t.a FROM r", "unknown_table", "t.a"),
        ("SELECT a FROM r WHERE e > 3", "unknown_column", "e >"),
        ("SELECT a AS x FROM r ORDER BY r.x", "unknown_column", "r.x"),
        ("SELECT a FROM r GROUP BY (e)", "unknown_column", "e)"),
    ],
)
def test_names_that_no_source_has_are_refused_where_they_stand(text: str, slug: str, name: str) -> None:
    with pytest.raises(Error) as caught:
        check_names(select(text), SOURCES)
    assert caught.value.slug == slug
    assert caught.value.position == text.index(name, len("SELECT ")) + 1


def test_a_name_that_nearly_is_of_a_source_is_a_hint() -> None:
    with pytest.raises(Error) as caught:
        check_names(select("SELECT citi FROM r"), [("r", ("city", "dp_hidden"))])
    assert "city" in (caught.value.hint or "")


# --- ORDER BY, LIMIT and no rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "columns", "expected"),
    [
        ("ALL", 1, "1"),
        ("ALL", 3, "1, 2, 3"),
        ("all DESC NULLS LAST", 2, "1 DESC NULLS LAST, 2 DESC NULLS LAST"),
        ("a", 3, "a"),
        ("a, b", 3, "a, b"),
    ],
)
def test_order_by_all_names_every_column_by_position(order: str, columns: int, expected: str) -> None:
    node = select(f"SELECT * FROM t ORDER BY {order}")
    order_by_all(node, columns)
    text = node.args["order"].sql("duckdb")
    assert text == select(f"SELECT * FROM t ORDER BY {expected}").args["order"].sql("duckdb")


def test_a_query_without_order_by_stays_without() -> None:
    node = select("SELECT * FROM t")
    order_by_all(node, 2)
    assert node.args.get("order") is None


@pytest.mark.parametrize(
    ("rest", "none"),
    [
        ("", False),
        ("LIMIT 0", True),
        ("LIMIT 1", False),
        ("LIMIT 00", False),
        ("LIMIT a", False),
        ("WHERE FALSE", True),
        ("WHERE TRUE", False),
        ("WHERE 1 = 0", True),
        ("WHERE (1 = 0)", True),
        ("WHERE a > 3 AND (b AND 1 = 2)", True),
        ("WHERE 1 = 1", False),
        ("WHERE 'a' = 'b'", True),
        ("WHERE 1 <> 1", False),
        ("WHERE a = 0", False),
        ("WHERE 0 = a", False),
        ("WHERE FALSE OR a", False),
        ("WHERE NOT FALSE", False),
    ],
)
def test_questions_for_names_and_types_alone_are_seen(rest: str, none: bool) -> None:
    assert asks_no_rows(select(f"SELECT a FROM t {rest}")) is none


def test_no_rows_have_the_names_and_types_of_columns() -> None:
    released = no_rows(TYPED)
    assert released.columns == tuple(f"{type_.value}_column" for type_ in SQL_TYPES)
    assert released.facts == tuple(Facts(type_) for type_ in SQL_TYPES)
    with duckdb.connect() as connection:
        answer = connection.execute(released.tree.sql("duckdb"))
        described = [(column[0], str(column[1])) for column in answer.description or ()]
        assert answer.fetchall() == []
        expected = [(f"{type_.value}_column", SQL_TYPES[type_]) for type_ in SQL_TYPES]
        typed = ", ".join(f'NULL::{sql_type} AS "{label}"' for label, sql_type in expected)
        same = connection.execute(f"SELECT {typed}")
        assert described == [(column[0], str(column[1])) for column in same.description or ()]


@pytest.mark.parametrize(
    ("condition", "written"),
    [
        ("n > 3", "(COUNT(*)) > 3"),
        ("N > 3 AND m = 1", "(COUNT(*)) > 3 AND (a + 1) = 1"),
        ("t.n > 3", "t.n > 3"),
        ("a > 3", "a > 3"),
    ],
)
def test_aliases_in_qualify_stand_for_their_expressions(condition: str, written: str) -> None:
    node = select(f"SELECT COUNT(*) AS n, a + 1 AS m, a FROM t QUALIFY {condition}")
    before = node.sql()
    assert outputs_written_out(node.args["qualify"].this, node).sql() == written
    assert node.sql() == before
