"""Properties of the SQL of every engine: a function's arguments repeated at most as declared, bounded length, NULL without
arguments."""

import random
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest
from support.random_expressions import COLUMNS, INTEGERS, SPECS, I, R, T, apply

from dpsql.engine.dialect import MOST_LENGTH, Dialect, is_always_null
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.engine.spark.dialect import SPARK
from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY, call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal, literal

DIALECTS = [DUCKDB, SPARK, PostgreSQLDialect(180000)]
NULL = Literal(None, Facts(Type.NULL))


def by_name(dialect: Dialect) -> str:
    return dialect.name


def nested(outer: Call, place: int, depth: int) -> Expr:
    """Return the call nested `depth` times in itself at an argument."""
    inner: Expr = outer
    for _ in range(depth):
        inner = replace(outer, arguments=(*outer.arguments[:place], inner, *outer.arguments[place + 1 :]))
    return inner


def calls() -> Iterator[tuple[Call, int]]:
    """Yield calls of every function, with the positions of arguments at which it may be nested."""
    rng = random.Random(3)
    for spec in SPECS:
        for drawn in [apply(rng, spec, 1) for _ in range(5)]:
            for place, argument in enumerate(drawn.arguments):
                if isinstance(argument, Column) and argument.facts.type is drawn.facts.type:
                    yield drawn, place


def test_duckdb_writes_arguments_as_often_as_is_declared() -> None:
    """Weight and time of a query are bounded by the registered values: each level of nesting adds that much more."""
    for drawn, place in calls():
        lengths = [len(DUCKDB.expression(nested(drawn, place, depth))) for depth in range(4)]
        first, second = lengths[2] - lengths[1], lengths[3] - lengths[2]
        assert second <= (REGISTRY[drawn.function].repeated + 0.3) * first, drawn.function


def test_arithmetic_over_clamped_values_never_fails_and_takes_64_bits_where_they_suffice() -> None:
    rng, column = random.Random(5), next(column for column in COLUMNS.values() if column.facts.type is I)
    ends = [*INTEGERS, *(2**bits for bits in (20, 31, 32, 61))]

    def drawn(depth: int) -> Expr:
        if depth and rng.random() < 0.8:
            return call(rng.choice(("add", "sub", "mul")), drawn(depth - 1), drawn(depth - 1))
        low, high = (Literal(end, literal_facts(end)) for end in sorted(rng.sample(ends, 2)))
        return rng.choice((low, call("clamp", column, low, high)))

    written = [(expression, DUCKDB.expression(expression)) for expression in (drawn(3) for _ in range(400))]
    assert 50 < sum("HUGEINT" not in text for expression, text in written if "clamp" in repr(expression)) < 350
    values = (*INTEGERS, None)
    numbers = ", ".join(f"({'NULL' if value is None else value})" for value in values)
    rows = f"SELECT {', '.join(text for _, text in written)} FROM (VALUES {numbers}) AS t({column.name})"
    expected = [tuple(evaluate(each, {column.name: value}) for each, _ in written) for value in values]
    assert duckdb.execute(rows).fetchall() == expected


def test_a_product_of_bounds_beyond_all_doubles_is_written() -> None:
    column, most = next(column for column in COLUMNS.values() if column.facts.type is I), literal(2**63 - 1)
    product: Expr = most
    for _ in range(17):
        product = call("mul", product, call("clamp", column, literal(0), most))
    assert "HUGEINT" in DUCKDB.expression(call("mul", product, column))


@pytest.mark.parametrize("dialect", DIALECTS, ids=by_name)
@pytest.mark.parametrize(("function", "type_"), [("abs", R), ("floor", R), ("lower", T), ("round", R), ("sign", I)])
def test_deep_nesting_is_written_within_the_limit_or_refused(dialect: Dialect, function: str, type_: Type) -> None:
    column = next(column for column in COLUMNS.values() if column.facts.type is type_)
    expression: Expr = column
    written = 0
    try:
        for _ in range(40):
            expression = call(function, expression)
            written = len(dialect.expression(expression))
    except Refusal as refusal:
        assert refusal.slug == "heavy_expression"
    assert 0 < written <= MOST_LENGTH


def test_an_argument_that_spark_needs_four_times_is_refused_when_it_is_deep() -> None:
    expression = nested(call("lower", COLUMNS["text1"]), 0, 5)  # four megabytes
    with pytest.raises(Refusal) as refused:
        SPARK.expression(expression)
    assert refused.value.slug == "heavy_expression"


@pytest.mark.parametrize("dialect", DIALECTS, ids=by_name)
def test_a_call_of_a_bare_null_is_a_null_of_its_type(dialect: Dialect) -> None:
    """No engine has to choose an overload for an argument without a type."""
    sums = Call("add", (COLUMNS["integer1"], NULL), Facts(I))
    assert is_always_null(sums)
    assert dialect.expression(sums) == f"CAST(NULL AS {dialect.types[I]})"
    assert dialect.expression(replace(sums, facts=Facts(Type.NULL))) == "NULL"


@pytest.mark.parametrize("dialect", DIALECTS, ids=by_name)
def test_functions_that_look_at_null_keep_their_arguments(dialect: Dialect) -> None:
    chosen = Call("coalesce", (NULL, COLUMNS["integer1"]), Facts(I))
    assert not is_always_null(chosen)
    assert dialect.identifier("integer1") in dialect.expression(chosen)


@pytest.mark.parametrize("dialect", DIALECTS, ids=by_name)
def test_a_function_that_an_engine_has_not_is_refused_by_name(dialect: Dialect) -> None:
    with pytest.raises(Refusal) as refused:
        dialect.expression(Call("no_such_function", (COLUMNS["integer1"],), Facts(I)))
    assert refused.value.slug == "engine_function"
    assert "no_such_function" in str(refused.value)
    assert dialect.title in str(refused.value)
