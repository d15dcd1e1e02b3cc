"""Contract tests of every registered aggregate, whoever adds it: the tests read the registry."""

import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from support.aggregate_calls import ARGUMENTS, BY_ANOTHER_RULE, MEASURED, OF_UNIT, calls, create, engines_own, fill
from support.exact_session import exact_session, plain, rows_of
from support.generated_questions import types
from support.released_blocks import Keyed

from dpsql.aggregates.contract import Aggregate, Arguments, aggregate_of, aggregates
from dpsql.aggregates.quantile import LISTED
from dpsql.engine.emit import relations
from dpsql.errors.exceptions import InternalError
from dpsql.noise.perturb import Gate
from dpsql.plan.formulas import estimated, plugged_in, terms_of
from dpsql.plan.intervals import Type
from dpsql.plan.measurements import EndRows, MostFrequentValue, RankHistogram, SampleMean
from dpsql.plan.plan import Block, Measure
from dpsql.pricing.pricing import ARROW
from dpsql.release.formulas import formula_sql
from dpsql.release.sandbox import shared_sandbox
from dpsql.session.session import Session
from dpsql.sql.binder.aggregates import RULES, function_name

World = tuple[duckdb.DuckDBPyConnection, Session]
CALLS = [(aggregate, call) for aggregate in MEASURED for call in calls(aggregate)]
CHOSEN = ("quantile_cont", "quantile_disc", "mode", "arg_max", "arg_min", "sample_aggregate")
OF_THE_ENGINE = [(aggregate, call) for aggregate, call in CALLS if aggregate.word != "sample_aggregate"]
"""Calls that the engine supports too; `unit/engine/emit/test_sample_statistics.py` compares the statistics of samples."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("aggregates")
    connection = duckdb.connect()
    create(connection)
    session = exact_session("numbers", connection, folder / "numbers.db")
    session.execute("SET dp.reuse = false")
    yield connection, session
    session.close()


def block_of(session: Session, sql: str) -> Block:
    return session.plan(session.planner.parse(sql, None)).plan.blocks[0]


def close(ours: Any, theirs: Any) -> bool:
    ours, theirs = plain(ours), plain(theirs)
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6)
    return bool(ours == theirs)


# --- completeness -----------------------------------------------------------------------------------------------------


def test_every_way_of_reading_arguments_has_a_rule() -> None:
    assert set(RULES) == set(Arguments)


def test_every_aggregate_of_a_unit_has_a_text_and_no_other() -> None:
    assert set(relations.AGGREGATES) == {aggregate.word for aggregate in OF_UNIT}


@pytest.mark.parametrize("aggregate", list(aggregates()), ids=lambda aggregate: aggregate.word)
def test_an_aggregate_is_measured_or_of_a_unit_and_can_be_called(aggregate: Aggregate) -> None:
    assert aggregate.formula is not None or aggregate.of_unit is not None
    assert aggregate.spellings or aggregate.word in BY_ANOTHER_RULE
    assert aggregate.word == aggregate.word.lower()


@pytest.mark.parametrize(
    ("spelling", "rule"), [entry for aggregate in aggregates() for entry in aggregate.spellings.items()], ids=str
)
def test_the_parser_names_a_call_as_its_spelling(spelling: str, rule: Arguments) -> None:
    operands = ARGUMENTS[rule][0]
    call = sqlglot.parse_one(f"SELECT {function_name(spelling)}({operands})", read="duckdb").expressions[0]
    if spelling[0].islower():
        assert isinstance(call, exp.Anonymous)
    else:
        assert type(call).__name__ == spelling
        assert issubclass(type(call), exp.AggFunc)


# --- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("aggregate", "call"), OF_THE_ENGINE, ids=lambda part: part if isinstance(part, str) else "")
def test_without_noise_the_answer_is_the_engines(world: World, aggregate: Aggregate, call: str) -> None:
    connection, session = world
    measured = block_of(session, f"SELECT {call} FROM t").measures[0]
    assert measured.aggregate == aggregate.word
    for seed in range(2):
        fill(connection, seed)
        for sql in (
            f"SELECT {call} FROM t",
            f"SELECT grp, {call} FROM t GROUP BY grp ORDER BY grp",
            f"SELECT grp, {call} FILTER (WHERE x > -20) FROM t WHERE z < 0.45 GROUP BY grp ORDER BY grp",
        ):
            expected = connection.execute(engines_own(sql)).fetchall()
            release = session.execute(sql)
            for ours, theirs in zip(rows_of(release), expected, strict=True):
                assert all(map(close, ours, theirs)), (sql, ours, theirs)
            assert types(release, expected) is None


@pytest.mark.parametrize("aggregate", OF_UNIT, ids=lambda aggregate: aggregate.word)
def test_among_the_rows_of_a_unit_the_values_are_exact_and_within_their_facts(
    world: World, aggregate: Aggregate
) -> None:
    connection, session = world
    for call in calls(aggregate):
        if call.startswith("COUNT(DISTINCT person") or ("DISTINCT" in call and aggregate.word != "count_distinct"):
            continue
        sql = f"SELECT SUM(v), COUNT(v), COUNT(*) FROM (SELECT person, {call} AS v FROM t GROUP BY person)"
        facts = next(measure for measure in block_of(session, sql).measures if measure.arguments).arguments[0].facts
        for seed in range(2):
            fill(connection, seed)
            expected = connection.execute(engines_own(sql)).fetchall()[0]
            assert all(map(close, rows_of(session.execute(sql))[0], expected)), sql
            values = [v for (v,) in connection.execute(engines_own(f"SELECT {call} FROM t GROUP BY person")).fetchall()]
            there = [value for value in values if value is not None]
            assert facts.nullable or len(there) == len(values)
            assert all(facts.lower <= value <= facts.upper for value in there)


@pytest.mark.parametrize(("aggregate", "call"), CALLS, ids=lambda part: part if isinstance(part, str) else "")
def test_a_noisy_answer_has_the_type_and_the_interval_of_its_facts(
    world: World, aggregate: Aggregate, call: str
) -> None:
    """This holds for any noisy sums, because later blocks rely on type and interval."""
    _, session = world
    price = session.plan(session.planner.parse(f"SELECT {call} FROM t", None)).price
    measure = block_of(session, f"SELECT {call} FROM t").measures[0]
    facts = aggregate.result(measure)
    ((_, formula, type_),) = price.blocks[0].block.formulas
    assert terms_of(formula) <= set(price.blocks[0].noise.numbers)
    assert type_ is facts.type
    draw = np.random.default_rng(3)
    scales = np.repeat([1.0, 1e3, 1e7], 300)
    table = pa.table({name: draw.normal(0, 1, scales.size) * scales for name in sorted(terms_of(formula))})
    for measured in price.blocks[0].block.measurements:
        if isinstance(measured, SampleMean):
            continue
        assert isinstance(measured, (RankHistogram, MostFrequentValue, EndRows))
        choices = measured.keys if isinstance(measured, EndRows) else measured.cells
        cells = draw.integers(0, choices, scales.size).astype(float)  # a choice is always one of the cells
        table = pa.table(dict.fromkeys(sorted(terms_of(formula)), cells))
    deviations = dict.fromkeys(terms_of(formula), 1.0)
    for shown in (plugged_in(formula), estimated(formula, deviations)):
        text = formula_sql(shown).sql(dialect="duckdb")
        column = shared_sandbox().query(f"SELECT {text} AS v FROM terms", {"terms": table}).column(0)
        assert column.type == ARROW[facts.type]
        values = column.drop_null().to_numpy(zero_copy_only=False)
        assert values.size
        if facts.lower is not None:
            assert values.min() >= float(facts.lower)
            assert values.max() <= float(facts.upper)


@pytest.mark.parametrize("aggregate", MEASURED, ids=lambda aggregate: aggregate.word)
def test_every_number_has_an_error_bar_but_those_that_are_chosen(noisy_session: Session, aggregate: Aggregate) -> None:
    """The real noise neither hides spreads nor rounds to 0; booleans have no bars. Nothing is known about the error of a choice;
    means of samples are not choices."""
    noisy_session.execute(f"SET dp.epsilon = {1 if aggregate.counts else 50}")
    for call in calls(aggregate):
        release = noisy_session.execute(f"SELECT {call} FROM t")
        assert release.columns[0].noisy
        if release.columns[0].type is not Type.BOOLEAN:
            (error,) = release.error.column(0).to_pylist()
            if aggregate.word.removeprefix(LISTED) in CHOSEN and not call.endswith("'mean')"):
                (column,) = release.described
                assert error is None and (column.rank_error or "chosen among values" in release.remarks[0]), call
                continue
            assert error is not None, call
            assert error > 0, call


@pytest.fixture(scope="module")
def noisy_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Yield a session over the same table with real noise from a keyed stream."""

    folder = tmp_path_factory.mktemp("noisy")
    connection = duckdb.connect()
    create(connection)
    fill(connection, 1, people=400)
    session = exact_session("numbers", connection, folder / "numbers.db", Gate(Keyed("aggregates")))
    yield session
    session.close()


@pytest.mark.parametrize(
    "aggregate", [a for a in MEASURED if a.over_results and a.spellings], ids=lambda aggregate: aggregate.word
)
def test_over_results_the_sandbox_computes_it_with_the_type_of_its_facts(world: World, aggregate: Aggregate) -> None:
    connection, session = world
    fill(connection, 5)
    inner = "SELECT grp, COUNT(*) AS x, AVG(y) AS y, BOOL_OR(flag) AS flag FROM t GROUP BY grp"
    for call in calls(aggregate):
        if "CASE" in call or "DISTINCT" in call:
            continue
        sql = f"SELECT {call.replace('z, y', 'y, x')} AS v FROM ({inner})"
        expected = connection.execute(engines_own(sql)).fetchall()
        answer = session.execute(sql)
        assert all(map(close, rows_of(answer)[0], expected[0])), sql
        known = aggregate.over(None)
        assert known is None or answer.columns[0].type is known.type


# --- unregistered aggregates ------------------------------------------------------------------------------------------


def test_an_unknown_word_is_a_fault_of_ours() -> None:
    with pytest.raises(InternalError):
        aggregate_of("skewness")
    with pytest.raises(ValueError, match="not measured"):
        aggregate_of("min").measured(None, Measure("m0", "min", (), False, None))  # type: ignore[arg-type]
