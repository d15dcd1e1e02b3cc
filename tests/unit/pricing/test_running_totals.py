"""Tables by wider and wider ranges of an ordered key: their number, their rows, their price, and the accuracy of running
totals."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.effort import slow
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.released_blocks import Keyed

from dpsql.noise.perturb import Gate
from dpsql.policy import load_policy
from dpsql.pricing.pricing import Price
from dpsql.pricing.running_totals import best_shares, best_widths, is_better, mean_terms, mean_variances
from dpsql.pricing.workloads import Marginals, Tile, Workload
from dpsql.session.session import Session

POLICY = """
dataset: runs
source: duckdb:///runs.duckdb
privacy_unit: {table: t, column: person}
budget: {epsilon: 1000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///runs.db
tables:
  t:
    max_rows: 3
    columns:
      person: {type: integer, nullable: false}
      region: {type: text, domain: [a, b], nullable: false}
      day: {type: date, lower: 2024-01-01, upper: 2024-03-10, nullable: false}
      age: {type: integer, lower: 18, upper: 67, nullable: false}
      few: {type: integer, lower: 0, upper: 6, nullable: false}
      maybe: {type: integer, lower: 0, upper: 40}
      note: {type: text}
      x: {type: real, lower: 0, upper: 10, nullable: false}
"""
DAYS = "SELECT day, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY day) AS total FROM t GROUP BY day ORDER BY day"


def runs(folder: Path, gate: Gate | None = None) -> Session:
    """Return a session over rows on 70 listed days and on ten days after them."""
    path = folder / "runs.yaml"
    path.write_text(POLICY)
    connection = duckdb.connect(str(folder / "runs.duckdb"))
    connection.execute(
        "CREATE TABLE t AS SELECT i % 1500 AS person, ['a', 'b'][1 + i % 2] AS region, DATE '2024-01-01' + (i * 7 % 80)::INTEGER AS day, "
        "18 + i % 60 AS age, i % 7 AS few, i % 50 AS maybe, 'x' AS note, i % 10 + 0.5 AS x FROM range(4000) r(i)"
    )
    opened = exact_session(load_policy(path), connection, folder / "ledger.db", gate or NoiselessGate(2))
    for option in ("dp.epsilon = 1", "dp.workload = running"):
        opened.execute(f"SET {option}")
    return opened


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return runs(tmp_path)


def priced(opened: Session, sql: str) -> Price:
    return opened.planner.plan(opened.planner.parse(sql, None), opened.options, True).price


@pytest.mark.parametrize(
    "pair", ["CORR(age, few)", "REGR_SLOPE(age, few), COUNT(*)", "CORR(age, few) FILTER (WHERE few < 5)"]
)
def test_pairs_that_share_each_row_are_answered_with_ranges_too(session: Session, pair: str) -> None:
    """Under pure accounting nine sums of a pair are one set; each range of days has the same set."""
    sql = f"SELECT region, day, {pair} FROM t GROUP BY region, day"
    price = priced(session, sql)
    assert len({tuple(term.name for term in block.block.terms) for block in price.blocks}) == 1
    assert session.execute(sql).table.num_rows == 2 * 70


def workload(count: int, base: int) -> Workload:
    """Return tables of one count by ranges of 1, base, base**2, ... of `count` values."""
    levels = 1
    while base**levels < count:
        levels += 1
    widths = [base**level for level in range(levels)]
    digits = (-(-count // widths[-1]), *([base] * (levels - 1)))
    lengths = tuple(-(-count // width) for width in widths)
    marginals = Marginals(digits, tuple(tuple(range(levels - level)) for level in range(levels)), lengths)
    return Workload(marginals, tuple(Tile(f"dp_{level}", ("t0",)) for level in range(levels)))


@pytest.mark.parametrize(("power", "most"), [(1, 3.18), (2, 6.31)], ids=["rho", "epsilon"])
def test_a_year_of_running_totals_has_the_expected_error(power: int, most: float) -> None:
    """In deviations of the single table, whose running totals err by 13.5 of them."""
    widths = best_widths(365, 6, power)
    shares = best_shares(365, widths, power)
    variances = [float((len(widths) / share) ** power) for share in shares]
    assert (
        mean_variances(workload(365, widths[1]), variances)[0] ** 0.5
        < most
        < 13.5
        == round(mean_terms(workload(365, 5)) ** 0.5, 1)
    )


@pytest.mark.parametrize(("count", "base"), [(8, 5), (23, 4), (70, 5), (126, 5), (1000, 5)])
def test_errors_of_totals_are_those_of_the_whole_matrix(count: int, base: int) -> None:
    """The reference is least squares over the ranges of `count` values alone, of which the last ones may be short."""
    ranges = workload(count, base)
    variances = np.linspace(2.0, 3.0, len(ranges.tiles))
    places = np.arange(count) // base ** np.arange(len(ranges.tiles))[:, None]
    information = sum(
        (row[:, None] == row[None, :]) / variance for row, variance in zip(places, variances, strict=True)
    )
    covariance = np.linalg.inv(information)
    running, single = mean_variances(ranges, list(variances))
    assert single == pytest.approx(np.diag(covariance).mean())
    assert running == pytest.approx(np.diag(covariance.cumsum(axis=0).cumsum(axis=1)).mean())


def test_whole_numbers_agree_in_every_total() -> None:
    generator = np.random.default_rng(4)
    table = generator.normal(20, 9, (5, 3, 4))
    tiles = [table.reshape(-1), table.sum(axis=2).reshape(-1), table.sum(axis=(1, 2)), table.sum().reshape(1)]
    nested = Marginals((5, 3, 4), ((0, 1, 2), (0, 1), (0,), ()))
    whole = nested.in_whole_numbers(tiles)
    assert nested.is_nested and not Marginals((5, 3), ((0, 1), (1,))).is_nested
    for before, after in zip(tiles, whole, strict=True):
        assert np.all(after == np.rint(after)) and np.abs(after - before).max() <= 1
    for coarse in whole[1:]:
        assert list(whole[0].reshape(len(coarse), -1).sum(axis=1)) == list(coarse)
    assert np.abs(np.cumsum(whole[0]) - np.cumsum(tiles[0])).max() <= 0.5


def test_each_table_has_its_share_and_the_same_sensitivity(session: Session) -> None:
    price = priced(session, DAYS)
    assert [block.block.name for block in price.blocks] == ["dp_0", "dp_0_by_15"]
    assert [len(block.block.keys[-1].values or ()) for block in price.blocks] == [70, 5]
    assert {block.noise.terms[0].noise.sensitivity.l1 for block in price.blocks} == {3}
    asked = session.planner.accountant.request(session.options.epsilon).epsilon
    assert asked is not None and price.loss.epsilon is not None and asked * 0.95 < price.loss.epsilon <= asked
    (ranges,) = price.workloads
    assert ranges.shares == best_shares(70, (1, 15), 2) and ranges.shares[0] > ranges.shares[1]
    for block, share in zip(price.blocks, ranges.shares, strict=True):
        assert block.loss.epsilon is not None and asked / 2 * share * 0.95 < block.loss.epsilon <= asked / 2 * share


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("count", [8, 23, 64, 90, 365, 1000])
def test_shares_cost_no_more_than_even_ones_and_none_nearby_are_better(count: int, power: int) -> None:
    """Moving a hundredth of an even share from any table to any other gains nothing: f is within 0.1 % of the minimum."""
    widths = best_widths(count, 6, power)
    shares = best_shares(count, widths, power)
    ranges, number = workload(count, widths[1]), len(widths)
    assert sum(shares) <= number and min(shares) > 0

    def error(chosen: Sequence[float]) -> float:
        return mean_variances(ranges, [(number / share) ** power for share in chosen])[0]

    found = error([float(share) for share in shares])
    assert found < error([1.0] * number)
    for gains in range(number):
        for loses in range(number):
            moved = [float(share) + 0.01 * ((place == gains) - (place == loses)) for place, share in enumerate(shares)]
            assert found <= error(moved) * 1.001
    assert sum(shares) > number * (1 - 2 / 1024)


@pytest.mark.parametrize("values", [64, 365])
def test_ranges_of_values_err_less_by_the_laws_as_documented(values: int) -> None:
    """Gaussian noise, all ranges of one to `values` values weighted equally: 1.67 and 2.89 times less; running totals 2.28 and
    4.26."""
    widths = best_widths(values, 6, 1)
    shares = best_shares(values, widths, 1)
    places = np.arange(values)
    information = sum(
        (places[:, None] // width == places[None, :] // width) * float(share) / len(widths)
        for width, share in zip(widths, shares, strict=True)
    )
    totals = np.linalg.inv(information).cumsum(axis=0).cumsum(axis=1)
    ends = np.pad(totals, ((1, 0), (1, 0)))
    variances = np.diag(ends)[:, None] + np.diag(ends)[None, :] - 2 * ends
    first, last = np.triu_indices(values + 1, 1)
    less = {
        "ranges": float(np.sqrt(np.mean(last - first) / np.mean(variances[first, last]))),
        "running": float(np.sqrt((values + 1) / 2 / np.mean(np.diag(totals)))),
    }
    expected = {64: {"ranges": 1.674, "running": 2.28}, 365: {"ranges": 2.89, "running": 4.26}}[values]
    assert less == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("option", ["dp.max_groups = 1", "dp.max_rows_per_group = 1", slow("dp.target_error = 100")])
def test_where_ranges_would_not_add_up_there_are_none(session: Session, option: str) -> None:
    session.execute(f"SET {option}")
    assert priced(session, DAYS).workloads == ()


def test_ranges_are_measured_only_where_they_help() -> None:
    year = workload(365, 4)
    assert is_better(year, [5.0] * 5, 1.0) and not is_better(year, [60.0] * 5, 0.1)
    few = workload(9, 8)
    assert not is_better(few, [4.0, 4.0], 1.0)


@pytest.mark.parametrize(
    "sql",
    [
        DAYS,
        "SELECT region, age, SUM(x) AS s, SUM(SUM(x)) OVER (PARTITION BY region ORDER BY age) AS t FROM t GROUP BY region, age",
        "SELECT age, AVG(x) AS m, COUNT(*) AS n FROM t WHERE age BETWEEN 20 AND 55 GROUP BY age",
    ],
    ids=["days", "two keys", "narrowed"],
)
def test_without_noise_the_answer_is_the_exact_one(session: Session, sql: str) -> None:
    """Rows after the last listed day are in the last range and have to be left out of it."""
    assert priced(session, sql).workloads
    together = sorted(session.execute(sql).rows())
    session.execute("SET dp.workload = off")
    apart = sorted(session.execute(sql).rows())
    assert len(together) == len(apart)
    for row, expected in zip(together, apart, strict=True):
        assert (
            row == pytest.approx(expected, abs=1e-6)
            if not isinstance(row[0], str)
            else row[2:] == pytest.approx(expected[2:])
        )


@pytest.mark.parametrize("value", ["x", "x * 0.1"])
def test_a_key_without_rows_adds_nothing_to_a_running_total_not_even_a_last_digit(session: Session, value: str) -> None:
    """Without noise, and with other keys of hundreds: 0 is 0, and a total equals that of the previous day."""
    days = f"SELECT day, SUM({value}) AS s, SUM(SUM({value})) OVER (ORDER BY day) AS t FROM t WHERE region = 'a' GROUP BY day ORDER BY day"
    assert priced(session, days).workloads
    rows = list(session.execute(days).rows())
    empty = [place for place in range(1, len(rows)) if place % 2]
    assert {rows[place][1] for place in empty} == {0.0} and len(empty) == 35
    assert all(rows[place][2] == rows[place - 1][2] for place in empty)
    assert not list(session.execute(days.replace("GROUP BY day", f"GROUP BY day HAVING SUM({value}) > 0")).rows())[35:]


@pytest.mark.slow
def test_running_totals_are_more_exact_and_their_bars_hold(tmp_path: Path) -> None:
    session = runs(tmp_path, Gate(Keyed("running")))
    session.execute("SET dp.reuse = off")
    session.execute("SET dp.mechanism = laplace")
    exact = [row[1] for row in duckdb_rows(tmp_path)]
    squares: dict[str, float] = {}
    for word in ("off", "running"):
        session.execute(f"SET dp.workload = {word}")
        errors, inside = [], []
        for _ in range(6):
            release = session.execute(DAYS)
            values = np.array(release.table.column(2).to_pylist(), dtype=float)
            assert list(np.cumsum(release.table.column(1).to_pylist())) == list(values)
            errors.append(values - exact)
            inside.append(np.abs(errors[-1]) <= np.array(release.error.column(2).to_pylist(), dtype=float))
        squares[word] = float(np.mean(np.square(errors)))
        assert np.mean(inside) > 0.75  # errors of running totals of one release are correlated
    assert squares["running"] < squares["off"]
    plan = session.explain(DAYS)
    (line,) = [line for line in plan.lines if "its running totals about" in line]
    assert line.startswith("by day: count(*) \N{PLUS-MINUS SIGN} ")


def duckdb_rows(folder: Path) -> list[tuple[object, int]]:
    listed = "SELECT day, SUM(COUNT(*)) OVER (ORDER BY day)::INTEGER FROM t WHERE day <= DATE '2024-03-10' GROUP BY day ORDER BY day"
    with duckdb.connect(str(folder / "runs.duckdb")) as connection:
        return connection.execute(listed).fetchall()
