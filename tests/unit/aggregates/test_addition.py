"""A new aggregate needs one registration: it answers through `dpsql.connect` and inherits every contract test."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from support.aggregate_calls import calls, create, engines_own, fill, policy_file
from support.exact_session import exact_session, plain, rows_of

import dpsql
from dpsql.aggregates.contract import Aggregate, Arguments, Basis, aggregate_of, register, unregister
from dpsql.aggregates.moments import distance
from dpsql.errors.exceptions import Error
from dpsql.functions.numeric import call, clamped
from dpsql.plan.formulas import Formula, greatest, null_if
from dpsql.plan.plan import Measure


def _kurtosis(basis: Basis, measure: Measure) -> Formula:
    """Return the fourth central moment over the square of the second, minus 3, from sums of powers of x - centre."""
    value, condition = clamped(measure.arguments[0]), measure.filter
    s1, centre = basis.sum(value, condition, True)
    n = greatest(basis.count(value, condition), 1)
    d = distance(value, centre)
    square = call("mul", d, d)
    s2, s3, s4 = (
        basis.sum(power, condition, False)[0] for power in (square, call("mul", square, d), call("mul", square, square))
    )
    m, m2, m3, m4 = s1 / n, s2 / n, s3 / n, s4 / n
    spread = m2 - m * m
    return (m4 - 4 * m * m3 + 6 * m * m * m2 - 3 * m * m * m * m) / null_if(spread * spread, 0) - 3


KURTOSIS = Aggregate("kurtosis_pop", {"kurtosis_pop": Arguments.NUMBER}, _kurtosis, centred=True, over_results=False)


@pytest.fixture
def kurtosis() -> Iterator[Aggregate]:
    """Register the new aggregate; this is all that an addition needs."""
    register(KURTOSIS)
    yield KURTOSIS
    unregister(KURTOSIS.word)


def test_a_registered_aggregate_answers_at_every_connection(kurtosis: Aggregate, tmp_path: Path) -> None:
    drawn = np.random.default_rng(4).beta(0.5, 1.5, 20_000) * 10
    rows = pa.table({"person": np.arange(20_000) // 5, "x": drawn})
    with dpsql.connect(policy_file(tmp_path), source={"t": rows}, create_ledger=True) as connection:
        cursor = connection.cursor()
        cursor.execute("SET dp.epsilon = 100")
        cursor.execute("SELECT kurtosis_pop(x) AS k, dp_error(kurtosis_pop(x)) AS error FROM t")
        shown, error = cursor.fetchone()
    ((exact,),) = duckdb.sql("SELECT kurtosis_pop(x) FROM rows").fetchall()
    assert shown == pytest.approx(exact, abs=0.05)
    assert shown != exact
    assert 0 < error < 0.05


def test_it_is_the_engines_without_noise(kurtosis: Aggregate, tmp_path: Path) -> None:
    connection = duckdb.connect()
    create(connection)
    fill(connection, 7)
    session = exact_session("numbers", connection, tmp_path / "numbers.db")
    for asked in calls(kurtosis):
        sql = f"SELECT grp, {asked} FROM t WHERE z < 0.4 GROUP BY grp ORDER BY grp"
        expected = connection.execute(engines_own(sql)).fetchall()
        for ours, theirs in zip(rows_of(session.execute(sql)), expected, strict=True):
            assert ours[0] == theirs[0]
            assert ours[1] == pytest.approx(plain(theirs[1]), rel=1e-6)
    with pytest.raises(Error, match=r"KURTOSIS_POP\(DISTINCT"):
        session.execute("SELECT kurtosis_pop(DISTINCT x) FROM t")
    with pytest.raises(Error, match="takes 1 argument"):
        session.execute("SELECT kurtosis_pop(x, y) FROM t")
    with pytest.raises(Error, match="lacks an argument"):
        session.execute("SELECT kurtosis_pop() FROM t")
    with pytest.raises(Error, match="kurtosis_pop"):
        session.execute("SELECT kurtosis_pop(n) FROM (SELECT grp, COUNT(*) AS n FROM t GROUP BY grp)")
    session.close()


def test_what_is_not_registered_is_refused(tmp_path: Path) -> None:
    connection = duckdb.connect()
    create(connection)
    session = exact_session("numbers", connection, tmp_path / "numbers.db")
    with pytest.raises(Error, match="kurtosis_pop"):
        session.execute("SELECT kurtosis_pop(x) FROM t")
    session.close()


def test_a_word_or_a_spelling_is_registered_once(kurtosis: Aggregate) -> None:
    with pytest.raises(ValueError, match="kurtosis_pop: registered already"):
        register(kurtosis)
    with pytest.raises(ValueError, match=r"as \['Sum'\]"):
        register(Aggregate("total", {"Sum": Arguments.NUMBER}, _kurtosis))
    with pytest.raises(Error):
        aggregate_of("total")
