"""Statistics of samples equal DuckDB's over the same rows, are total, and are bitwise equal in every order of rows."""

import math
from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from support.aggregate_calls import create, engines_own, fill
from support.exact_session import exact_session
from support.gates import NoiselessGate

from dpsql.engine.duckdb.dialect import DuckDBDialect
from dpsql.functions.sample_statistics import SPELLED, STATISTICS
from dpsql.noise.group_layout import Groups
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Law
from dpsql.session.session import Session

NUMBERS = ("x", "y", "2 * x - 1", "CASE WHEN flag THEN y ELSE z END")
PAIRS = ("y, x", "z, y")
CALLS = [
    *(
        f"{word}({argument})"
        for word in (
            "avg", "mean", "sum", "min", "max", "median", "var_pop", "var_samp", "variance", "stddev", "stddev_samp",
            "stddev_pop", "skewness", "kurtosis", "kurtosis_pop", "count", "entropy",
        )
        for argument in NUMBERS
    ),
    *(
        f"{word}({argument})"
        for word in (
            "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx",
            "regr_syy", "regr_sxy", "regr_count",
        )
        for argument in PAIRS
    ),
    "count(*)", "count(DISTINCT x)", "count(DISTINCT grp)", "entropy(grp)", "entropy(flag)",
    "quantile_cont(y, 0.3)", "quantile_disc(x, 0.75)", "percentile_cont(0.9) WITHIN GROUP (ORDER BY x)",
    "percentile_disc(0.1) WITHIN GROUP (ORDER BY x DESC)",
    "avg(x) FILTER (WHERE flag) / avg(z)", "exp(avg(ln(z + 1))) - 1", "count(*) FILTER (WHERE x > 10) / count(*)",
    "CASE WHEN count(*) > 3 THEN skewness(x) ELSE -1 END", "round(median(y)) + max(z) * 100",
]  # fmt: skip


class NotingGate(NoiselessGate):
    """A gate that keeps the histograms of samples' values."""

    histograms: Histograms

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        self.histograms = histograms
        return super().release_numbers(name, histograms, law, groups)


World = tuple[duckdb.DuckDBPyConnection, Session, NotingGate]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Yield one session for all calls, which keeps nothing of a query."""
    folder = tmp_path_factory.mktemp("statistics")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DuckDBDialect, "sample_number", lambda self, key, content, samples: "CAST(0 AS BIGINT)")
        connection, gate = duckdb.connect(), NotingGate(2)
        create(connection)
        session = exact_session("numbers", connection, folder / "ledger.db", gate)
        session.execute("SET dp.reuse = off")
        yield connection, session, gate


@pytest.fixture
def world(opened: World) -> World:
    """Return a world with all rows in one of two samples; the other sample has no value."""
    opened[0].execute("DELETE FROM t")
    return opened


def sample_value(world: World, call: str, near: float) -> float | None:
    """Return the value of the only sample with rows, as a cell of a grid of a millionth around `near`; None for the middle
    cell."""
    _, session, gate = world
    width = 1e-4 * max(1.0, abs(near))
    low, high = near - width, near + 2 * width
    session.execute(f"SELECT SAMPLE_AGGREGATE({call}, {low!r}, {high!r}, 2) AS v FROM t")
    middle = (gate.histograms.cells - 1) // 2
    found = [cell for cell in gate.histograms.cell.tolist() if cell != middle]
    assert gate.histograms.count.sum() == 2 and len(found) <= 1
    return low + (high - low) * found[0] / (gate.histograms.cells - 1) if found else None


def test_every_spelling_of_a_statistic_is_tried() -> None:
    tried = {call.split("(")[0] for call in CALLS}
    words = {statistic.word for statistic in STATISTICS.values()} - {"count_rows", "count_distinct"}
    assert words - {"quantile_cont", "quantile_disc"} <= tried
    assert {spelling for spelling in SPELLED if spelling[0].islower()} <= tried


@pytest.mark.parametrize("call", CALLS)
def test_the_statistic_of_a_sample_is_the_engines(world: World, call: str) -> None:
    connection = world[0]
    coarse = any(word in call for word in ("kurtosis", "skewness"))
    for seed in range(3):
        fill(connection, seed)
        exact = float(connection.execute(engines_own(f"SELECT {call} FROM t")).fetchall()[0][0])
        ours = sample_value(world, call, exact)
        assert ours is not None
        assert ours == pytest.approx(exact, rel=5e-5 if coarse else 2e-8, abs=5e-5 if coarse else 2e-8)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("rows", [1, 2])
def test_few_rows_have_the_engines_value_or_none(world: World, call: str, rows: int) -> None:
    connection = world[0]
    fill(connection, 1, people=1)
    connection.execute(f"DELETE FROM t WHERE rowid NOT IN (SELECT rowid FROM t ORDER BY rowid LIMIT {rows})")
    try:
        exact = connection.execute(engines_own(f"SELECT {call} FROM t")).fetchall()[0][0]
    except duckdb.Error:
        exact = None
    if exact is None or not math.isfinite(exact):
        assert sample_value(world, call, 0.0) is None
    else:
        assert sample_value(world, call, float(exact)) == pytest.approx(float(exact), rel=1e-4, abs=1e-4)


SHUFFLED = ("corr(y, x)", "skewness(y)", "kurtosis(y)", "entropy(y)", "avg(y)", "regr_intercept(y, z)", "stddev(y)")


@pytest.mark.parametrize("call", SHUFFLED)
def test_no_order_of_rows_and_no_number_of_threads_changes_a_bit(world: World, call: str) -> None:
    """The test looks through a window around the value that is about as wide as ten roundings of a double."""
    connection, session, gate = world
    connection.execute(
        "INSERT INTO t SELECT i // 5, 'a', CAST(i % 97 AS INTEGER) - 40, sin(i) * 40 + 30, abs(cos(i)) / 2, i % 2 = 0 "
        "FROM range(20000) r(i)"
    )
    near = float(connection.execute(engines_own(f"SELECT {call} FROM t")).fetchall()[0][0])
    width = 1e-3
    while width > 2e-15 * max(1, abs(near)):
        low, high = near - width, near + 2 * width
        session.execute(f"SELECT SAMPLE_AGGREGATE({call}, {low!r}, {high!r}, 2) FROM t")
        (cell,) = (cell for cell in gate.histograms.cell.tolist() if cell != (gate.histograms.cells - 1) // 2)
        near, width = low + (high - low) * cell / (gate.histograms.cells - 1), width / 1000
    assert 0 < cell < gate.histograms.cells - 1
    seen = set()
    for seed in range(4):
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT * FROM t ORDER BY hash(rowid, {seed})")
        connection.execute(f"SET threads = {1 + seed % 4}")
        session.execute(f"SELECT SAMPLE_AGGREGATE({call}, {low!r}, {high!r}, 2) FROM t")
        seen.add(tuple(gate.histograms.cell.tolist()))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "call", ["1e300 * max(x) * 1e300", "1 / (max(x) - max(x))", "ln(min(x) - 100)", "max(x) + NULL"]
)
def test_an_infinite_or_missing_value_is_in_the_middle(world: World, call: str) -> None:
    fill(world[0], 0)
    assert sample_value(world, call, 5.0) is None
