"""Which nodes and functions may stand in the public remainder, one node at a time."""

import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.errors.exceptions import Error
from dpsql.sql.binder.allow_list import DISTANCE, NAMES, NODES, check_node
from dpsql.sql.binder.trees import rebuild


def expression(sql: str) -> exp.Expr:
    item = select(f"SELECT {sql} AS v FROM patients").expressions[0]
    assert isinstance(item, exp.Alias) and isinstance(item.this, exp.Expr)
    return item.this


def refused(sql: str) -> Error:
    """Return the refusal of the outermost node of an expression."""
    with pytest.raises(Error) as caught:
        check_node(expression(sql))
    return caught.value


def test_ties_of_a_limit_are_refused_with_how_to_keep_them() -> None:
    ties = exp.LimitOptions(with_ties=True)
    with pytest.raises(Error) as caught:
        check_node(ties)
    assert caught.value.slug == "clause" and "QUALIFY rank() OVER" in caught.value.text()
    with pytest.raises(Error) as caught:
        check_node(exp.LimitOptions(percent=True))
    assert caught.value.slug == "clause" and "QUALIFY" not in caught.value.text()


# --- numbers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sql", ["x % 0", "x // 0", "x % 0.0", "x % -0", "x % (0)", "x // (-(0))", "x % 0e5"])
def test_a_remainder_or_quotient_of_integers_by_the_literal_zero_is_refused(sql: str) -> None:
    error = refused(sql)
    assert error.slug == "wrong_arguments" and "divides by zero here" in error.message


# --- arguments ------------------------------------------------------------------------------------------------------


def test_a_function_without_its_first_argument_is_refused() -> None:
    for node in (exp.Abs(), exp.Length(), exp.Lower()):
        with pytest.raises(Error) as caught:
            check_node(node)
        assert caught.value.slug == "wrong_arguments"


@pytest.mark.parametrize(
    "node",
    [
        exp.Ceil(this=exp.column("x"), decimals=exp.Literal.number(2)),
        exp.Floor(this=exp.column("x"), decimals=exp.Literal.number(2)),
        exp.LastDay(this=exp.column("d"), unit=exp.var("MONTH")),
        exp.Length(this=exp.column("t"), encoding=exp.Literal.string("x")),
        exp.StrPosition(this=exp.column("t"), substr=exp.column("u"), position=exp.Literal.number(2)),
    ],
)
def test_an_argument_that_the_text_would_leave_out_is_refused_where_it_stands(node: exp.Expr) -> None:
    with pytest.raises(Error) as caught:
        check_node(node)
    assert caught.value.slug == "wrong_arguments" and "takes fewer arguments" in caught.value.message


# --- the lists ------------------------------------------------------------------------------------------------------


def test_nothing_that_reads_files_settings_time_or_randomness_is_on_the_lists() -> None:
    never = (
        exp.Rand, exp.CurrentDate, exp.CurrentTimestamp, exp.ReadCSV, exp.Table, exp.Join, exp.Command, exp.Insert, exp.Create,
        exp.GenerateSeries, exp.Uuid, exp.Subquery, exp.Select, exp.Union, exp.Anonymous, exp.Lambda, exp.Placeholder,
    )  # fmt: skip
    assert NODES.isdisjoint(never)
    assert all(name == name.lower() for name in NAMES) and DISTANCE <= NAMES
    assert NAMES.isdisjoint({"random", "getenv", "read_csv", "query", "pragma", "current_setting", "setseed"})


def test_what_is_noted_of_a_rebuilt_node_is_not_noted_of_the_written_one() -> None:
    node = exp.column("age")
    assert not node.meta
    copy = rebuild(node, lambda _: None)
    assert isinstance(copy, exp.Column)
    copy.meta["noted"] = True
    assert not node.meta
