"""Which nodes and functions may stand in the public remainder, one node at a time."""

import pytest
from sqlglot import exp
from support.bound_questions import select

from dpsql.errors.exceptions import Error
from dpsql.sql.binder.allow_list import DISTANCE, NAMES, NODES, check_node


def expression(sql: str) -> exp.Expr:
    item = select(f"SELECT {sql} AS v FROM patients").expressions[0]
    assert isinstance(item, exp.Alias) and isinstance(item.this, exp.Expr)
    return item.this


def refused(sql: str) -> Error:
    """Return the refusal of the outermost node of an expression."""
    with pytest.raises(Error) as caught:
        check_node(expression(sql))
    return caught.value


ALLOWED = [
    "x + 1", "-x", "x // 2", "x % 2", "x = 1 AND NOT y", "x IN (1, 2)", "x BETWEEN 1 AND 2", "t LIKE 'a%'", "x IS NULL",
    "CASE WHEN x > 1 THEN 'a' ELSE 'b' END", "CAST(x AS DOUBLE)", "abs(x)", "round(x, 2)", "coalesce(x, 0)", "nullif(x, 0)",
    "lower(t)", "substring(t, 1, 2)", "date_trunc('month', d)", "date_part('year', d)", "extract(year FROM d)",
    "d + INTERVAL 1 DAY", "sum(x)", "count(*)", "avg(x)", "median(x)", "row_number() OVER (ORDER BY x)",
    "lag(x) OVER (ORDER BY y)", "ntile(4) OVER (ORDER BY x)", "greatest(x, y)", "strftime(d, '%Y')", "prefix(t, 'a')",
    "dp_error(x)", "sum(x) FILTER (WHERE y > 1)", "concat_ws(',', t, u)", "split_part(t, ',', 1)", "log2(x)", "ceil(x)", "floor(x)",
]  # fmt: skip


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_is_on_the_list_is_let_through_with_all_its_parts(sql: str) -> None:
    for node in expression(sql).walk():
        check_node(node)


UNKNOWN = [
    ("random()", "random"), ("read_csv('x')", "read_csv"), ("getenv('HOME')", "getenv"),
    ("setseed(1)", "setseed"), ("uuid()", "uuid"),
    ("current_setting('x')", "current_setting"), ("sha256(t)", "sha256"), ("repeat(t, 1000000)", "repeat"), ("no_such(x)", "no_such"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "name"), UNKNOWN)
def test_functions_that_are_not_on_the_list_are_unknown(sql: str, name: str) -> None:
    error = refused(sql)
    assert error.slug == "unknown_function" and name in error.message.lower()


@pytest.mark.parametrize(("sql", "word"), [("t GLOB 'a'", "GLOB")])
def test_operators_that_are_not_on_the_list_are_refused_as_they_are_written(sql: str, word: str) -> None:
    error = refused(sql)
    assert (error.slug, error.message) == ("clause", f"{word} is not allowed here")


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
