"""Rows of each relation as branches: columns over base columns, the conditions that rows satisfy, and the rows that they do not
match."""

from __future__ import annotations

from typing import Any

import pytest

from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import MOST_BRANCHES, Branch, UnknownOrigin, UnmatchedRows, branches
from dpsql.plan.plan import (
    OTHER,
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
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
)

INTEGER = Facts(Type.INTEGER, 0, 9, (1, 2), nullable=False)
"""Facts for which a column and its replacement for missing values differ in every field that may change."""


def column(name: str, facts: Facts = INTEGER) -> Column:
    return Column(name, facts)


def literal(value: Any) -> Literal:
    return Literal(value, Facts(Type.INTEGER))


def scan(table: str, *names: str) -> Scan:
    return Scan(table, tuple(map(column, names)))


T, S = scan("t", "x", "y"), scan("s", "x", "z")
POSITIVE = call("gt", column("x"), literal(0))


def positive(name: str) -> Expr:
    return call("gt", column(name), literal(0))


def equal(a: Expr, b: Expr) -> Expr:
    return Call("eq", (a, b), Facts(Type.BOOLEAN))


def present(name: str, facts: Facts = INTEGER) -> Expr:
    boolean = Facts(Type.BOOLEAN, nullable=False)
    return Call("not", (Call("is_null", (column(name, facts),), boolean),), boolean)


def names(branch: Branch) -> dict[str, str]:
    """Return the base column of each column of a branch."""
    return {label: value.name for label, value in branch.columns.items() if isinstance(value, Column)}


def only(node: Relation, prefix: str = "") -> Branch:
    (branch,) = branches(node, prefix)
    return branch


def joined(left: Relation, right: Relation, kind: str = "inner", keys: str = "x") -> Join:
    return Join(left, right, kind, tuple((column(f"a.{key}"), column(f"b.{key}")) for key in keys), False)


def semi(
    left: Relation, right: Relation, *, negated: bool = False, on_unit: bool = False, in_list: bool = False,
    condition: Expr | None = None,
) -> SemiJoin:  # fmt: skip
    return SemiJoin(left, right, ((column("x"), column("z")),), on_unit, negated, in_list, condition)


def union(count: int, source: Relation = T) -> Union_:
    return Union_((source,) * count)


# --- tables and results -----------------------------------------------------------------------------------------------


def test_a_table_is_one_branch_of_its_own_columns() -> None:
    assert only(T, "p.") == Branch({"x": column("p.x"), "y": column("p.y")}, (), (("p.", "t"),))


def test_results_hold_nothing_but_their_facts_and_are_no_table() -> None:
    rows = ReleasedRows("r", (column("x"), column("y")), (), "r")
    assert only(rows, "p.") == Branch({"x": column("p.x"), "y": column("p.y")}, within=frozenset({"p.x", "p.y"}))


# --- one source -------------------------------------------------------------------------------------------------------


def test_conditions_are_over_base_columns_in_the_order_of_the_filters() -> None:
    renamed = Project(Filter(T, POSITIVE), (("v", column("y")), ("w", call("neg", column("x")))))
    branch = only(Filter(renamed, call("lt", column("v"), column("w"))), "p.")
    negative = call("neg", column("p.x"))
    assert branch.columns == {"v": column("p.y"), "w": negative}
    assert branch.conditions == (positive("p.x"), call("lt", column("p.y"), negative))
    assert branch.tables == (("p.", "t"),)


def test_distinct_rows_come_from_where_all_rows_come() -> None:
    assert branches(Distinct(Filter(T, POSITIVE)), "p.") == branches(Filter(T, POSITIVE), "p.")


@pytest.mark.parametrize(
    ("word", "is_sure"),
    [
        ("row_number", True), ("rank", True), ("dense_rank", True), ("count", True), ("count_distinct", True),
        ("sum", False), ("lag", False), ("first_value", False), ("min", False),
    ],
)  # fmt: skip
def test_a_window_is_a_column_more_whose_facts_hold_where_it_counts(word: str, is_sure: bool) -> None:
    source = Project(T, (("x", column("y")),))
    branch = only(UnitWindow(source, (Window("w", word, None, None, 1, (), (), INTEGER),)), "p.")
    assert names(branch) == {"x": "p.s.y", "w": "p.w.w"} and branch.columns["w"] == column("p.w.w")
    assert branch.within == (frozenset({"p.w.w"}) if is_sure else frozenset())
    assert branch.tables == (("p.s.", "t"),)


@pytest.mark.parametrize(
    ("word", "is_sure"), [("count", True), ("count_distinct", True), ("sum", False), ("max", False)]
)
def test_results_of_units_are_columns_whose_key_has_no_type_of_its_own(word: str, is_sure: bool) -> None:
    node = UnitAggregate(Filter(T, POSITIVE), (("k", call("neg", column("y"))),), (("n", word, None, None, INTEGER),))
    branch = only(node, "p.")
    untyped = Facts(Type.NULL)
    assert branch.columns == {
        "u": column("p.u.u", untyped),
        "k": call("neg", column("p.s.y")),
        "n": column("p.u.n"),
    }
    assert branch.conditions == (positive("p.s.x"),)
    assert branch.within == (frozenset({"p.u.n"}) if is_sure else frozenset())
    assert branch.written(column("u")) == column("p.u.u"), "the unit's key has the type of where it is used"
    assert branch.written(column("n", Facts(Type.REAL))) == column("p.u.n"), "other columns have their own"


def test_facts_that_hold_stay_so_above_windows_and_results_of_units() -> None:
    rows = ReleasedRows("r", (column("x"),), (), "r")
    window = UnitWindow(rows, (Window("w", "rank", None, None, 1, (), (), INTEGER),))
    assert only(window).within == {"s.x", "w.w"}
    assert only(UnitAggregate(window, (), (("n", "count", None, None, INTEGER),))).within == {"s.s.x", "s.w.w", "u.n"}


# --- expressions ------------------------------------------------------------------------------------------------------


def test_an_expression_is_written_over_base_columns() -> None:
    three = Literal(3, INTEGER)
    branch = Branch({"x": column("p.x"), "c": three})
    inner = call("add", column("c"), call("neg", column("x")))
    assert branch.written(inner) == call("add", three, call("neg", column("p.x")))
    assert branch.written(literal(5)) == literal(5)


@pytest.mark.parametrize("expression", [column("y"), call("neg", column("y")), call("add", column("x"), column("y"))])
def test_a_column_that_is_not_there_has_no_origin(expression: Expr) -> None:
    with pytest.raises(UnknownOrigin):
        Branch({"x": column("p.x")}).written(expression)


# --- joins ------------------------------------------------------------------------------------------------------------


def test_rows_with_a_partner_meet_the_conditions_of_both_sides_and_have_equal_keys() -> None:
    branch = only(joined(Filter(T, POSITIVE), Filter(S, POSITIVE)), "p.")
    assert names(branch) == {"a.x": "p.a.x", "a.y": "p.a.y", "b.x": "p.b.x", "b.z": "p.b.z"}
    assert branch.conditions == (
        positive("p.a.x"),
        positive("p.b.x"),
        equal(column("p.a.x"), column("p.b.x")),
    )
    assert branch.tables == (("p.a.", "t"), ("p.b.", "s")) and branch.unmatched == ()


def test_keys_of_a_join_may_be_computed() -> None:
    keys = ((call("neg", column("a.x")), call("add", column("b.z"), literal(1))), (column("a.y"), literal(2)))
    branch = only(Join(T, S, "inner", keys, False))
    assert branch.conditions == (
        equal(call("neg", column("a.x")), call("add", column("b.z"), literal(1))),
        equal(column("a.y"), literal(2)),
    )


def test_an_outer_join_also_has_rows_without_a_partner() -> None:
    met, alone = branches(joined(Filter(T, POSITIVE), Filter(S, POSITIVE), "left"), "p.")
    assert met == only(joined(Filter(T, POSITIVE), Filter(S, POSITIVE)), "p.")
    missing = Literal(None, Facts(Type.INTEGER, 0, 9, None, nullable=True))
    assert alone.columns == {"a.x": column("p.a.x"), "a.y": column("p.a.y"), "b.x": missing, "b.z": missing}
    assert alone.conditions == (positive("p.a.x"),) and alone.tables == (("p.a.", "t"),)
    absent = only(Filter(S, POSITIVE), "p.b.")
    assert alone.unmatched == (UnmatchedRows(((column("p.a.x"), column("p.b.x")),), absent),)


def test_a_row_without_a_partner_has_none_in_any_branch_of_the_right_side() -> None:
    right = Union_((S, Filter(S, POSITIVE)))
    *met, alone = branches(joined(T, right, "left"))
    first, second = branches(right, "b.")
    assert len(met) == 2 and [part.tables[1][0] for part in met] == ["b.0.", "b.1."]
    assert [(rows.branch, rows.pairs) for rows in alone.unmatched] == [
        (first, ((column("a.x"), column("b.0.x")),)),
        (second, ((column("a.x"), column("b.1.x")),)),
    ]
    assert not any(rows.in_list for rows in alone.unmatched)


def test_each_row_of_the_left_side_has_its_branches() -> None:
    branches_read = branches(joined(union(2), union(3, S), "left"))
    assert len(branches_read) == 2 * (3 + 1)
    assert [len(branch.tables) for branch in branches_read] == [2, 2, 2, 1] * 2


def test_an_outer_join_without_keys_says_nothing_of_partners() -> None:
    met, alone = branches(joined(T, S, "left", keys=""))
    assert met.conditions == () and alone.unmatched == ()
    assert [type(alone.columns[name]) for name in ("a.x", "b.x")] == [Column, Literal]


def test_what_is_said_of_both_sides_holds_of_their_pairs() -> None:
    rows = ReleasedRows("r", (column("x"),), (), "r")
    left, right = branches(joined(T, S, "left"), "a.")[1], branches(joined(T, S, "left"), "b.")[1]
    nested = joined(
        Project(joined(T, S, "left"), (("x", column("a.x")),)), Project(joined(T, S, "left"), (("x", column("a.x")),))
    )
    both = branches(nested)[3]
    assert both.unmatched == (*left.unmatched, *right.unmatched)
    assert only(joined(rows, rows)).within == {"a.x", "b.x"}
    assert only(joined(T, rows)).within == {"b.x"} and only(joined(rows, T)).within == {"a.x"}


def test_a_row_without_a_partner_in_two_joins_has_none_in_either() -> None:
    inner = Project(joined(T, S, "left"), (("x", column("a.x")), ("y", column("a.y"))))
    alone = branches(joined(inner, S, "left"))[3]
    assert [rows.branch.tables for rows in alone.unmatched] == [(("a.b.", "s"),), (("b.", "s"),)]


# --- semi-joins -------------------------------------------------------------------------------------------------------


def test_a_row_that_passes_a_semi_join_has_a_partner() -> None:
    branch = only(semi(Filter(T, POSITIVE), Filter(S, POSITIVE)), "p.")
    assert names(branch) == {"x": "p.l.x", "y": "p.l.y"}
    assert branch.tables == (("p.l.", "t"), ("p.r.", "s"))
    assert branch.conditions == (
        positive("p.l.x"),
        positive("p.r.x"),
        equal(column("p.l.x"), column("p.r.z")),
    )


def test_the_condition_of_a_semi_join_is_over_both_rows() -> None:
    condition = call("lt", column("y"), column(f"{OTHER}x"))
    branch = only(semi(T, S, condition=condition))
    assert branch.conditions == (equal(column("l.x"), column("r.z")), call("lt", column("l.y"), column("r.x")))
    assert names(branch) == {"x": "l.x", "y": "l.y"}


@pytest.mark.parametrize("in_list", [False, True])
def test_a_row_that_passes_a_negated_semi_join_has_no_partner(in_list: bool) -> None:
    branch = only(semi(T, Filter(S, POSITIVE), negated=True, in_list=in_list), "p.")
    pairs = ((column("p.l.x"), column("p.r.z")),)
    assert branch.unmatched == (UnmatchedRows(pairs, only(Filter(S, POSITIVE), "p.r."), in_list),)
    assert branch.conditions == () and branch.tables == (("p.l.", "t"),)


@pytest.mark.parametrize(
    "node",
    [
        semi(T, S, negated=True, on_unit=True),
        semi(T, S, negated=True, condition=call("lt", column("y"), column(f"{OTHER}x"))),
        semi(T, union(MOST_BRANCHES + 1, S), negated=True),
    ],
)
def test_a_negated_semi_join_with_rows_of_unknown_kinds_says_nothing(node: SemiJoin) -> None:
    assert branches(node) == branches(T, "l.")


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [(1, MOST_BRANCHES, MOST_BRANCHES), (4, 4, 16), (2, 9, 2), (1, MOST_BRANCHES + 1, 1), (MOST_BRANCHES, 2, 16)],
)
def test_a_semi_join_with_too_many_pairs_of_branches_leaves_keys_that_are_no_null(
    left: int, right: int, count: int
) -> None:
    branches_read = branches(semi(union(left), union(right, S)))
    assert len(branches_read) == count
    if left * right == count:
        assert all(len(branch.tables) == 2 for branch in branches_read)
    else:
        assert [branch.conditions for branch in branches_read] == [
            (present(f"l.{number}.x"),) for number in range(left)
        ]


def test_a_semi_join_with_no_rows_at_all_leaves_keys_that_are_no_null() -> None:
    assert only(semi(T, Union_(()))).conditions == (present("l.x"),)


# --- unions -----------------------------------------------------------------------------------------------------------


def test_a_union_has_the_branches_of_its_sources_by_position() -> None:
    first, second = branches(Union_((T, Filter(Project(S, (("v", column("z")), ("x", column("x")))), POSITIVE))), "p.")
    assert names(first) == {"x": "p.0.x", "y": "p.0.y"}
    assert names(second) == {"x": "p.1.z", "y": "p.1.x"}
    assert (first.conditions, second.conditions) == ((), (positive("p.1.x"),))
    assert (first.tables, second.tables) == ((("p.0.", "t"),), (("p.1.", "s"),))


@pytest.mark.parametrize("names_of_second", ["x", "xyz"])
def test_sources_of_other_widths_have_no_origin(names_of_second: str) -> None:
    with pytest.raises(UnknownOrigin):
        branches(Union_((T, scan("s", *names_of_second))))


@pytest.mark.parametrize(
    ("node", "count"),
    [
        (union(MOST_BRANCHES), 16),
        (union(MOST_BRANCHES + 1), None),
        (joined(union(4), union(4, S)), 16),
        (joined(union(4), union(4, S), "left"), None),
        (Filter(union(MOST_BRANCHES + 1), POSITIVE), None),
    ],
)
def test_a_relation_has_sixteen_branches_at_most(node: Relation, count: int | None) -> None:
    if count is not None:
        assert len(branches(node)) == count
        return
    with pytest.raises(UnknownOrigin):
        branches(node)
