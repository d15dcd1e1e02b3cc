"""Noise by the square root of the matrix of running totals, from SQL to answer: when it is chosen, what is charged and stored,
the errors of totals, ranges, days and differences, and whether their error bars hold."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.effort import by_day
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.square_root import MOST_LENGTH, SquareRoot
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session

POLICY = """
dataset: runs
source: duckdb:///runs.duckdb
privacy_unit: {{table: t, column: person}}
neighbours: {neighbours}
budget: {{epsilon: 10000, delta: 9e-4, accountant: {accountant}}}
per_query: {{epsilon: 0.1, delta: 1e-9, max_epsilon: 100}}
ledger: sqlite:///runs.db
tables:
  t:
    max_rows: {rows}
    columns:
      person: {{type: integer, nullable: false}}
      region: {{type: text, domain: [a, b], nullable: false}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-04-09, nullable: false}}
      few: {{type: integer, lower: 0, upper: 6, nullable: false}}
      many: {{type: integer, lower: 0, upper: 4999, nullable: false}}
      maybe: {{type: integer, lower: 0, upper: 40}}
      x: {{type: real, lower: 0, upper: 10, nullable: false}}
"""
DAYS = 100
BY_DAY = "SELECT day, COUNT(*) AS n FROM t GROUP BY day"
RUNNING = f"SELECT day, n, SUM(n) OVER (ORDER BY day) AS total FROM ({BY_DAY}) ORDER BY day"


def runs(
    folder: Path, gate: Gate | None = None, accountant: str = "zcdp", neighbours: str = "add_remove", rows: int = 1
) -> Session:
    """Open a session over rows on 100 listed days, every tenth of which is empty, and on ten days after them."""
    path = folder / "runs.yaml"
    path.write_text(POLICY.format(accountant=accountant, neighbours=neighbours, rows=rows))
    connection = duckdb.connect(str(folder / "runs.duckdb"))
    connection.execute(
        "CREATE TABLE t AS SELECT i AS person, ['a', 'b'][1 + i % 2] AS region, DATE '2024-01-01' + (i * 7 % 110)::INTEGER AS day, "
        "i % 7 AS few, i % 4000 AS many, i % 50 AS maybe, i % 10 + 0.5 AS x FROM range(4000) r(i) WHERE (i * 7) % 110 % 10 <> 3"
    )
    policy = load_policy(path)
    book = open_ledger(policy.ledger_url(), policy.dataset, create=True)
    opened = Session(policy, open_duckdb(policy, connection), book, open_releases(book), gate=gate or NoiselessGate(2))
    for option in ("dp.epsilon = 0.1", "dp.workload = running"):
        opened.execute(f"SET {option}")
    return opened


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    yield runs(tmp_path)


def priced(opened: Session, sql: str) -> Price:
    return opened.planner.plan(opened.planner.parse(sql, None), opened.options, True).price


def rooted(price: Price) -> list[int]:
    """Return the vector lengths of all sums with noise for running totals."""
    noises = [term.noise for block in price.blocks for term in block.noise.terms]
    return [noise.length for noise in noises if isinstance(noise, SquareRoot)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (BY_DAY, [100]),
        ("SELECT region, day, COUNT(*), SUM(x) FROM t GROUP BY region, day", [100, 100]),
        ("SELECT day, SUM(x), COUNT(DISTINCT person) FROM t GROUP BY day", [100]),
        ("SELECT day, COUNT(*) FROM t WHERE day BETWEEN DATE '2024-02-01' AND DATE '2024-02-29' GROUP BY day", [29]),
        ("SELECT day, COUNT(*) FILTER (WHERE few > 3) FROM t GROUP BY day", [100]),
        ("SELECT many, COUNT(*) FROM t WHERE many < 4096 GROUP BY many", [4096]),
        ("SELECT maybe, COUNT(*) FROM t WHERE maybe IS NOT NULL GROUP BY maybe", [41]),
        ("SELECT maybe, COUNT(*) FROM t GROUP BY maybe", []),
        ("SELECT many, COUNT(*) FROM t WHERE many < 4097 GROUP BY many", []),
        ("SELECT few, COUNT(*) FROM t GROUP BY few", []),
        ("SELECT day, region, COUNT(*) FROM t GROUP BY day, region", []),
        ("SELECT day, COUNT(DISTINCT person) FROM t GROUP BY day", []),
        ("SELECT day, COUNT(*) FROM t GROUP BY day HAVING day <> DATE '2024-02-02'", []),
        ("SELECT day, COUNT(*), MEDIAN(x) FROM t GROUP BY day", []),
        ("SELECT COUNT(*) FROM t", []),
    ],
    ids=[
        "days", "two keys", "units beside", "narrowed", "filter", "longest", "without null", "null", "too long", "few",
        "not last", "units", "having", "quantile", "no key",
    ],
)  # fmt: skip
def test_which_tables_have_it(tmp_path: Path, sql: str, expected: list[int]) -> None:
    session = runs(tmp_path, rows=2)
    assert MOST_LENGTH == 4096
    price = priced(session, sql)
    assert rooted(price) == expected and (not expected or price.workloads == ())
    for option in ("dp.mechanism = laplace", "dp.workload = off"):
        session.execute(f"SET {option}")
        assert rooted(priced(session, sql)) == []


def test_it_is_taken_where_its_error_is_least(tmp_path: Path) -> None:
    """With many rows per person, bounds on groups decide; with a large epsilon, no noise below one step is drawn; ranges with
    Laplace noise are chosen where Gaussian noise needs a delta that the query does not have."""
    opened = runs(tmp_path, rows=40)
    assert rooted(priced(opened, BY_DAY)) == [100], "all rows may be on one day"
    opened.execute("SET dp.max_rows_per_group = 1")
    assert rooted(priced(opened, BY_DAY)) == [], "40 days in a row move sums of all of them"
    opened.execute("SET dp.max_groups = 2")
    (law,) = (term.noise for block in priced(opened, BY_DAY).blocks for term in block.noise.terms)
    assert isinstance(law, SquareRoot) and law.sensitivity.l0 == 2
    opened.execute("SET dp.epsilon = 50")
    assert rooted(priced(opened, BY_DAY)) == [] and priced(opened, BY_DAY).running == ()
    opened.execute("SET dp.epsilon = 0.1")
    opened.execute("SET dp.max_groups = 6")
    ten_days = BY_DAY.replace("GROUP", "WHERE day BETWEEN DATE '2024-02-01' AND DATE '2024-02-10' GROUP")
    both = priced(opened, f"{BY_DAY} UNION ALL {ten_days}")
    assert rooted(both) == [100], "six days of ten move sums of all of them too far"
    assert [(table.length, table.error < table.alone) for table in both.running] == [(100, True), (10, False)]
    opened.execute("SET dp.target_error = 100")
    assert rooted(priced(opened, BY_DAY)) == []


@pytest.mark.parametrize(
    ("accountant", "neighbours"), [("pure", "add_remove"), ("zcdp", "change_one"), ("zcdp", "add_remove")]
)
def test_it_is_charged_like_any_noise_and_stored(tmp_path: Path, accountant: str, neighbours: str) -> None:
    opened = runs(tmp_path, Gate(Keyed("charged")), accountant, neighbours)
    opened.execute("SET dp.mechanism = gaussian")
    release = opened.execute(BY_DAY)
    assert not release.reused and rooted(priced(opened, BY_DAY)) == [100]
    pure = accountant == "pure"
    spent, asked = (release.loss.epsilon, Fraction(1, 10)) if pure else (release.loss.rho, Fraction(1, 200))
    assert spent is not None and asked * Fraction(99, 100) < spent <= asked
    assert release.loss.delta == (Fraction(1, 10**9) if pure else 0)
    for text in (BY_DAY, f"{BY_DAY} ORDER BY n DESC", RUNNING, f"SELECT SUM(n) AS n FROM ({BY_DAY})"):
        again = opened.execute(text)
        assert again.reused, "the store has the numbers, and what is computed from them is free"
    assert sorted(opened.execute(BY_DAY).rows()) == sorted(release.rows())
    opened.execute("SET dp.reuse = derive")
    assert not opened.execute("SELECT COUNT(*) AS n FROM t").reused, "days that are not listed have rows, too"
    opened.execute("SET dp.workload = off")
    assert not opened.execute(BY_DAY).reused


@pytest.mark.parametrize(
    "sql",
    [
        RUNNING,
        "SELECT region, day, SUM(x) AS s, SUM(SUM(x)) OVER (PARTITION BY region ORDER BY day) AS t FROM t GROUP BY region, day",
        "SELECT day, AVG(x) AS m, COUNT(*) AS n, SUM(x) AS s FROM t WHERE day > DATE '2024-03-01' GROUP BY day",
    ],
    ids=["days", "two keys", "narrowed"],
)
def test_without_noise_the_answer_is_the_exact_one(session: Session, sql: str) -> None:
    assert rooted(priced(session, sql))
    with_it = sorted(session.execute(sql).rows(), key=str)
    session.execute("SET dp.workload = off")
    without = sorted(session.execute(sql).rows(), key=str)
    for row, expected in zip(with_it, without, strict=True):
        for number, exact in zip(row, expected, strict=True):
            assert number == (pytest.approx(exact, abs=1e-6) if isinstance(exact, float) else exact)


def exact_days(folder: Path) -> np.ndarray:
    listed = "SELECT day::DATE - DATE '2024-01-01', COUNT(*) FROM t WHERE day <= DATE '2024-04-09' GROUP BY day"
    counts = np.zeros(DAYS)
    with duckdb.connect(str(folder / "runs.duckdb")) as connection:
        for place, count in connection.execute(listed).fetchall():
            counts[place] = count
    assert (counts == 0).sum() == 10
    return counts


SHAPES = {
    "days": (f"{BY_DAY} ORDER BY day", 1, lambda n: n, 2.6),
    "totals": (RUNNING, 2, np.cumsum, 2.6),
    "range": (
        f"SELECT SUM(n) AS n FROM ({BY_DAY}) WHERE day BETWEEN DATE '2024-02-01' AND DATE '2024-02-20'",
        0,
        lambda n: n[31:51].sum(keepdims=True),
        2.6,
    ),
    "months": (
        f"SELECT date_trunc('month', day) AS month, SUM(n) AS n FROM ({BY_DAY}) GROUP BY month ORDER BY month",
        1,
        lambda n: np.add.reduceat(n, [0, 31, 60, 91]),
        2.6,
    ),
    "changes": (
        f"SELECT day, n - LAG(n) OVER (ORDER BY day) AS more FROM ({BY_DAY}) ORDER BY day",
        1,
        lambda n: np.concatenate(([np.nan], np.diff(n))),
        2.6,
    ),
    "weeks": (
        f"SELECT day, AVG(n) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS mean FROM ({BY_DAY}) ORDER BY day",
        1,
        lambda n: np.array([n[max(0, day - 6) : day + 1].mean() for day in range(DAYS)]),
        2.6,
    ),
    "two days": (
        f"WITH d AS ({BY_DAY}) SELECT (SELECT n FROM d WHERE day = DATE '2024-02-20') - "
        "(SELECT n FROM d WHERE day = DATE '2024-02-01') AS more",
        0,
        lambda n: n[[50]] - n[[31]],
        2.6,
    ),
    "shares": (
        f"SELECT day, SUM(n) OVER (ORDER BY day) * 1.0 / SUM(n) OVER () AS share FROM ({BY_DAY}) ORDER BY day",
        1,
        lambda n: np.cumsum(n) / n.sum(),
        2.6,
    ),
    "all": (f"SELECT SUM(n) AS n FROM ({BY_DAY})", 0, lambda n: n.sum(keepdims=True), 2.6),
}


@pytest.mark.parametrize("shape", by_day(("totals", "weeks", "changes", "shares"), list(SHAPES)))
def test_errors_are_as_claimed_and_bars_hold(tmp_path: Path, shape: str) -> None:
    """Forty answers; the errors within one answer are correlated, so the test uses means over answers. A sum of days has the bar
    of its own deviation, from the covariance of the noise."""
    sql, position, exact_of, widest = SHAPES[shape]
    opened = runs(tmp_path, Gate(Keyed(f"running noise {shape}")))
    opened.execute("SET dp.reuse = off")
    exact = exact_of(exact_days(tmp_path))
    squares, inside, widths = [], [], []
    for _ in range(40):
        release = opened.execute(sql)
        values = np.array(release.table.column(position).to_pylist(), dtype=float)
        bars = np.array(release.error.column(position).to_pylist(), dtype=float)
        errors = (values - exact)[np.isfinite(exact)]
        bars = bars[np.isfinite(exact)]
        assert np.isfinite(bars).all(), "every number has a bar"
        squares.append(np.mean(errors**2))
        inside.append(np.mean(np.abs(errors) <= bars))
        widths.append(np.mean(bars**2))
    deviation = float(np.sqrt(np.mean(squares)))
    assert np.mean(inside) > 0.95 - 4 * np.std(inside) / np.sqrt(40) - 0.005
    assert 1.6 < np.sqrt(np.mean(widths)) / deviation < widest
    claims = {"days": SquareRoot.standard_deviation, "totals": SquareRoot.running_deviation}
    if shape in claims:
        law = priced(opened, sql).blocks[0].noise.terms[0].noise
        assert isinstance(law, SquareRoot)
        spread = np.std(squares) / np.mean(squares) / np.sqrt(40) / 2
        assert abs(deviation / claims[shape](law) - 1) < max(0.02, 5 * spread)
