"""Answers from a stored table that was measured for running totals: parts of its days, sums over them, months, but never other
rows.

The noise of its cells is not independent, so bars use its covariance."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from answers.test_running_noise import BY_DAY, DAYS, exact_days, runs
from support.effort import slow
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.noise.noise_samplers import running_vectors
from dpsql.noise.perturb import Gate
from dpsql.privacy.mechanisms import square_root
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.square_root import SquareRoot
from dpsql.release.error_bars.laws import replicates
from dpsql.release.remainder import pooled
from dpsql.session.session import Session

STORED = "SELECT region, day, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY region, day"
INSIDE = "day BETWEEN DATE '2024-01-10' AND DATE '2024-03-20'"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Return a noiseless session with a stored table by region and day."""
    opened = runs(tmp_path, NoiselessGate(2))
    opened.execute("SET dp.reuse = derive")
    opened.execute(STORED)
    yield opened


FOLLOWING = (
    f"SELECT COUNT(*) AS n FROM t WHERE {INSIDE}",
    f"SELECT region, SUM(x) AS s FROM t WHERE {INSIDE} GROUP BY region",
    f"SELECT day, COUNT(*) AS n FROM t WHERE {INSIDE} GROUP BY day",
    f"SELECT day, region, SUM(x) AS s, COUNT(*) AS n FROM t WHERE {INSIDE} GROUP BY day, region",
    f"SELECT date_trunc('month', day) AS m, COUNT(*) AS n, SUM(x) AS s FROM t WHERE {INSIDE} GROUP BY m",
    f"SELECT month(day) AS m, region, COUNT(*) AS n FROM t WHERE {INSIDE} GROUP BY m, region",
    f"SELECT COUNT(*) AS n FROM t WHERE {INSIDE} AND region = 'b'",
    "SELECT COUNT(*) AS n FROM t WHERE day > DATE '2024-01-10' AND DATE '2024-04-10' > day",
    "SELECT COUNT(*) AS n FROM t WHERE day IN (DATE '2024-02-10', DATE '2024-02-12')",
    "SELECT COUNT(*) AS n FROM t WHERE day >= DATE '2024-01-01' AND day <= DATE '2024-04-09'",
)
OTHER_ROWS = (
    "SELECT COUNT(*) AS n FROM t",  # unlisted days have rows, too
    "SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM t GROUP BY m",
    "SELECT COUNT(*) AS n FROM t WHERE day >= DATE '2024-02-10'",
    "SELECT COUNT(*) AS n FROM t WHERE day <= DATE '2024-02-10'",
    "SELECT COUNT(*) AS n FROM t WHERE day BETWEEN DATE '2024-02-10' AND DATE '2024-04-10'",
    "SELECT COUNT(*) AS n FROM t WHERE day > DATE '2023-12-30' AND day < DATE '2024-02-10'",
    "SELECT COUNT(*) AS n FROM t WHERE day > DATE '2024-01-10' AND day < DATE '2024-04-11'",
    f"SELECT few, COUNT(*) AS n FROM t WHERE {INSIDE} GROUP BY few",
    f"SELECT COUNT(*) AS n FROM t WHERE {INSIDE} AND few > 3",
)
TWO_SUMS = f"SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE region = 'a') AS m FROM t WHERE {INSIDE}"
"""Two sums of one vector: their noise would not be independent."""


@pytest.mark.parametrize("sql", FOLLOWING)
def test_parts_and_sums_of_its_days_are_answered_from_it(session: Session, sql: str) -> None:
    spent = session.budget().spent
    derived = session.execute(sql)
    assert derived.reused and session.budget().spent == spent
    session.execute("SET dp.reuse = off")
    for row, expected in zip(sorted(derived.rows()), sorted(session.execute(sql).rows()), strict=True):
        assert row == tuple(pytest.approx(value) if isinstance(value, float) else value for value in expected)


@pytest.mark.parametrize("sql", [*OTHER_ROWS, TWO_SUMS])
def test_other_rows_and_two_sums_of_one_vector_are_charged(session: Session, sql: str) -> None:
    assert not session.execute(sql).reused


@pytest.mark.parametrize("nulls", ["", " AND maybe IS NOT NULL"])
def test_rows_of_other_values_are_not_left_out(session: Session, nulls: str) -> None:
    """NULL and values beyond the bounds have rows: `maybe` is 0 to 49 and is listed up to 40. BETWEEN leaves NULL out itself."""
    session.execute("SELECT maybe, COUNT(*) AS n FROM t WHERE maybe IS NOT NULL GROUP BY maybe")
    for condition, follows in (
        ("maybe < 20", False),
        ("maybe BETWEEN 0 AND 40", True),
        ("maybe BETWEEN 0 AND 41", False),
        ("(maybe BETWEEN 0 AND 40 OR maybe IS NULL)", False),
    ):
        sql = f"SELECT COUNT(*) AS n FROM t WHERE {condition}{nulls}"
        assert session.execute(sql).reused is follows, sql


def law(rho: str = "1/200") -> SquareRoot:
    noise = square_root.noise_for(Sensitivity(1, 1, 1, 1), Fraction(rho), DAYS, 0)
    assert isinstance(noise, SquareRoot)
    return noise


MONTHS = np.repeat([0, 1, 2, -1], [31, 29, 31, 9])


@pytest.mark.parametrize(
    "group", [MONTHS, *map(slow, (np.tile(MONTHS, 2), np.repeat([0, 1], DAYS), np.where(MONTHS == 1, 0, -1)))]
)
def test_sums_have_the_law_of_the_worst_and_their_own_covariance(group: np.ndarray) -> None:
    """Compared with 20,000 draws of the gate's sampler: no bar is too narrow, that of the worst group is not too wide, and bars
    of 0.7 or 1.3 times its width are detected as wrong."""
    groups = int(group.max()) + 1
    term = pooled("a0", np.zeros(groups, dtype=np.int64), group, law(), 0, True)
    drawn = running_vectors(law(), 20_000, len(group), Keyed("pooled")).astype(float)
    errors = term.summed(drawn)
    indicator = (group[:, None] == np.arange(groups)[None, :]).astype(float)
    assert (errors == drawn @ indicator).all()
    variances = term.variances(np.eye(groups))
    assert np.allclose(errors.var(axis=0), variances, rtol=0.06)
    assert term.standard_deviation() == pytest.approx(np.sqrt(variances.max()))
    assert errors.sum(axis=1).var() == pytest.approx(term.variances(np.ones((1, groups)))[0], rel=0.06)
    again = replicates(term, "seed", "dp_0", 2_000).reshape(4_000, -1)
    assert np.allclose(np.cov(again.T), np.cov(errors.T), atol=0.12 * variances.max())
    for confidence in (0.9, 0.95, 0.99):
        allowed = 5 * np.sqrt(confidence * (1 - confidence) / len(errors))
        inside = np.mean(np.abs(errors) <= term.half_width(confidence), axis=0)
        assert (inside > confidence - allowed).all() and inside.min() < confidence + allowed + 0.01
        worst = np.abs(errors[:, variances.argmax()])
        assert np.mean(worst <= 0.7 * term.half_width(confidence)) < confidence - allowed
        assert np.mean(worst <= 1.3 * term.half_width(confidence)) > confidence + (1 - confidence) / 3


@pytest.mark.slow
def test_bars_of_what_is_computed_from_them_hold(tmp_path: Path) -> None:
    """Months from stored days: each month, their sum, and the change between consecutive months, over sixty releases."""
    opened = runs(tmp_path, Gate(Keyed("derived months")))
    months = f"SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM t WHERE {INSIDE} GROUP BY m"
    exact = np.add.reduceat(exact_days(tmp_path)[9:80], [0, 22, 51])
    inside, ratios = [], []
    for number in range(60):
        opened.execute("SET dp.reuse = on")
        opened.execute(f"SET dp.epsilon = {0.1 + number / 10_000}")
        opened.execute(BY_DAY)
        opened.execute("SET dp.reuse = derive")
        opened.execute("SET dp.epsilon = 0.05")
        for sql, truth in (
            (f"{months} ORDER BY m", exact),
            (f"SELECT SUM(n) AS n FROM ({months})", exact.sum(keepdims=True)),
            (f"SELECT m, n - LAG(n) OVER (ORDER BY m) AS n FROM ({months}) ORDER BY m OFFSET 1", np.diff(exact)),
        ):
            release = opened.execute(sql)
            assert release.reused
            column = release.table.column_names.index("n")
            errors = np.abs(np.array(release.table.column(column).to_pylist(), dtype=float) - truth)
            bars = np.array(release.error.column(column).to_pylist(), dtype=float)
            inside.append(np.mean(errors <= bars))
            ratios.append(np.mean(errors / bars))
        opened.execute("RESET dp.reuse")
    assert np.mean(inside) > 0.95 - 4 * np.std(inside) / np.sqrt(len(inside)) - 0.005
    assert 0.2 < np.mean(ratios) < 0.6, "a normal error is 0.41 of its bar in the mean"
