"""Quantiles from SQL to answer: charges, storage, EXPLAIN, and accuracy."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from support.clinic import build
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.places import POLICIES

import dpsql
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.functions.values import midnight
from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planner
from dpsql.policy import load_policy
from dpsql.pricing.options import Options
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql.privacy.mechanisms.rank_histogram import ChoiceLevel


def visits_in_february() -> duckdb.DuckDBPyConnection:
    """Return 50 patients with 280 visits, ten on each day from the first to the 28th."""
    data = duckdb.connect()
    data.execute(
        "CREATE TABLE patients AS SELECT i AS patient_id, 'north' AS region, 'f' AS sex, 40 AS age, 70.0::DOUBLE AS weight, "
        "true AS smoker, 'ulm' AS city, 1.0::DOUBLE AS income FROM range(50) r(i)"
    )
    data.execute(
        "CREATE TABLE visits AS SELECT i AS visit_id, i % 50 AS patient_id, 'er' AS ward, DATE '2024-02-01' + CAST(i % 28 AS INTEGER) "
        "AS day, TIMESTAMP '2024-02-01 06:00' + to_days(CAST(i % 28 AS INTEGER)) AS seen, 1.0::DOUBLE AS cost, 0.0::DOUBLE AS change, "
        "2 AS nights, 'flu' AS diagnosis, 1 AS code FROM range(280) r(i)"
    )
    data.execute("CREATE TABLE labs (visit_id INTEGER, test TEXT, value DOUBLE, flag BOOLEAN)")
    data.execute("CREATE TABLE regions AS SELECT 'north' AS region, 'n' AS zone, 1 AS population")
    data.execute("CREATE TABLE prices AS SELECT 'x' AS item, 'er' AS ward, 1.0::DOUBLE AS price")
    return data


@pytest.fixture
def connection(tmp_path: Path) -> dpsql.Connection:
    return dpsql.connect(build(tmp_path), create_ledger=True)


def test_a_quantile_is_charged_once_and_given_again_free(connection: dpsql.Connection) -> None:
    sql = "SELECT region, COUNT(*) AS n, MEDIAN(age) AS m, MAX(weight) AS w FROM patients GROUP BY region"
    first = connection.execute(sql).release
    again = connection.execute(sql).release
    assert first.epsilon == "1" and not first.reused
    assert again.reused and again.loss.epsilon == 0 and list(again.rows()) == list(first.rows())
    other = connection.execute(sql.replace("MEDIAN(age)", "QUANTILE_CONT(age, 0.51)")).release
    assert not other.reused and other.epsilon == "1"


def test_answers_are_near_the_exact_ones_and_in_order(connection: dpsql.Connection) -> None:
    """1,000 patients, one row each, with ages evenly distributed from 20 to 79: at epsilon 4 for four numbers, a rank error of 60
    rows (4 years) has a probability of 61 cells of 64 slices times exp(-40). MIN alone may be below all ages, only 17.5 rows from
    its rank (the 18th): the 16 cells below 16 together have 7 in 10,000, and all three times 3 in 10 billion."""
    connection.execute("SET dp.reuse = off")
    connection.execute("SET dp.epsilon = 4")
    sql = "SELECT MIN(age), QUANTILE_CONT(age, 0.25), MEDIAN(age), QUANTILE_DISC(age, 0.75) FROM patients"
    answers = [next(iter(connection.execute(sql).release.rows())) for _ in range(3)]
    for answer in answers:
        assert list(answer) == sorted(answer), answers
        assert all(abs(found - exact) <= 4 for found, exact in zip(answer[1:], (35, 50, 65), strict=True)), answers
    assert max(answer[0] for answer in answers) in range(16, 25), answers


def test_no_error_is_claimed_for_what_is_computed_with_a_quantile(connection: dpsql.Connection) -> None:
    sql = "SELECT COUNT(*) AS n, MEDIAN(age) AS m, MEDIAN(age) + COUNT(*) AS both, DP_ERROR(MEDIAN(age)) AS e FROM patients"
    release = connection.execute(sql).release
    (errors,) = release.error.to_pylist()
    assert errors["n"] > 0 and errors["m"] is None and errors["both"] is None
    assert next(release.rows())[3] is None
    joined = (
        "SELECT a.m + b.n AS both FROM (SELECT MEDIAN(age) AS m FROM patients) a, (SELECT COUNT(*) AS n FROM visits) b"
    )
    assert connection.execute(joined).release.error.to_pylist() == [{"both": None}]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT MAX(day) AS d, COUNT(*) AS n FROM visits",
        "SELECT ward, MEDIAN(day) AS d, AVG(cost) AS n FROM visits GROUP BY ward",
        "SELECT diagnosis, MIN(seen) AS d, SUM(nights) / COUNT(*) AS n FROM visits GROUP BY diagnosis",
        "SELECT ward, MIN(day) AS d, AVG(cost) AS n FROM visits GROUP BY ward ORDER BY n DESC LIMIT 2",
        "SELECT MAX(d) AS d, SUM(n) AS n FROM (SELECT ward, MAX(day) AS d, COUNT(*) AS n FROM visits GROUP BY ward) AS t",
        "SELECT ward, MAX(seen) AS d, SUM(COUNT(*)) OVER (ORDER BY ward) AS n FROM visits GROUP BY ward",
    ],
)
def test_a_number_beside_a_date_that_was_chosen_has_its_bar(sql: str, tmp_path: Path) -> None:
    session = exact_session("hospital", visits_in_february(), tmp_path / "ledger.db")
    session.set_option("dp.epsilon", "1")
    errors = session.execute(sql).error.to_pylist()
    assert errors and all(row["d"] is None and row["n"] > 0 for row in errors)


@pytest.mark.parametrize("accountant", ["pure", "zcdp"])
@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("sql", "rows", "squares"),
    [
        ("SELECT MEDIAN(age) FROM patients", 1, 1),
        ("SELECT MEDIAN(cost) FROM visits", 20, 400),
        ("SELECT ward, QUANTILE_CONT(cost, 0.9), MAX(nights) FROM visits GROUP BY ward", 20, 400),
        ("SELECT diagnosis, MEDIAN(cost) FROM visits GROUP BY diagnosis", 20, 400),
        ("SELECT MODE(sex) FROM patients", 1, 1),
        ("SELECT ward, MODE(nights), ARG_MAX(ward, cost) FROM visits GROUP BY ward", 20, 400),
        ("SELECT diagnosis, MODE(ward) FROM visits GROUP BY diagnosis", 20, 400),
    ],
)
def test_charges_are_those_that_the_definition_gives(
    accountant: str, neighbours: Neighbours, sql: str, rows: int, squares: int
) -> None:
    """epsilon_0 times the most rows of a unit; in zCDP, by the exponential mechanism, an eighth of the square of epsilon_0 times
    the sum of squares over groups."""
    policy = load_policy(POLICIES / "hospital.yaml")
    policy = replace(policy, neighbours=neighbours, budget=replace(policy.budget, accountant=accountant))
    planner = Planner(policy, DuckDBEngine(duckdb.connect(), policy, "test", owned=True))
    statement = planner.parse(sql, None)
    (block,) = planner.plan(statement, Options.of_policy(policy), True).price.blocks
    laws = [
        law
        for step in block.noise.charged
        for law in (step.laws[:1] if isinstance(step, ChoiceLevel) else [step])
        if isinstance(law, (Choice, EndKey, MostFrequent))
    ]
    factor = 2 if neighbours is Neighbours.CHANGE_ONE else 1
    total = Fraction(0)
    for law in laws:
        if accountant == "pure":
            assert law.loss.epsilon == law.epsilon_0 * rows * factor
        else:
            assert law.mechanism == "exponential" and law.loss.rho == law.epsilon_0**2 * squares * factor**2 / 8
        total += (law.loss.epsilon if accountant == "pure" else law.loss.rho) or 0
    charged = block.loss.epsilon if accountant == "pure" else block.loss.rho
    others = 0 if block.noise.selection is None else charged - total if charged is not None else 0
    assert laws and charged is not None and total + others == charged
    assert charged <= (1 if accountant == "pure" else Fraction(1, 2))


def test_without_noise_quantiles_are_the_engines_on_the_grid(tmp_path: Path) -> None:
    data = duckdb.connect()
    data.execute(
        "CREATE TABLE t AS SELECT i % 40 AS person, ['a', 'b', 'c'][1 + i % 3] AS grp, "
        "CASE WHEN i % 7 > 0 THEN (i * 37) % 101 - 40 END AS x, "
        "CASE WHEN i % 11 = 0 THEN 'nan'::DOUBLE WHEN i % 5 > 0 THEN ((i * 29) % 1200 - 400) / 8 END AS y, "
        "0.5::DOUBLE AS z, i % 2 = 0 AS flag FROM range(200) r(i)"
    )
    session = exact_session("numbers", data, tmp_path / "ledger.db", NoiselessGate(1))
    for share in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        sql = f"SELECT grp, QUANTILE_DISC(x, {share}), QUANTILE_DISC(y, {share}) FROM t GROUP BY grp ORDER BY grp"
        plain = sql.replace("QUANTILE_DISC(y", "QUANTILE_DISC(CASE WHEN NOT isnan(y) THEN y END")
        assert list(session.execute(sql).rows()) == data.execute(plain).fetchall()


MONTHS = (
    "date_trunc('month', seen)", "date_trunc('month', day)", "date_trunc('quarter', day)",
    "CASE WHEN day < DATE '2024-05-20' THEN DATE '2024-02-01' ELSE DATE '2024-07-15' END",
)  # fmt: skip


@pytest.mark.parametrize("value", MONTHS)
def test_quantiles_of_months_are_months_and_those_outside_the_bounds_count_at_the_ends(
    value: str, tmp_path: Path
) -> None:
    """Without noise, the engine's own quantiles; with noise, the start of a month and not a day or second within it."""
    data = visits_in_february()
    data.execute(
        "UPDATE visits SET day = day + 29 * CAST(visit_id % 6 AS INTEGER), seen = seen + to_days(CAST(29 * (visit_id % 6) AS INTEGER))"
    )
    data.execute("UPDATE visits SET day = DATE '2031-05-05', seen = TIMESTAMP '2031-05-05' WHERE visit_id % 50 = 0")
    shares = "MIN({0}), MAX({0}), QUANTILE_DISC({0}, 0.3), QUANTILE_DISC({0}, 0.9)".format
    exact = exact_session("hospital", data, tmp_path / "ledger.db", NoiselessGate(1))
    last = "2024-10-01" if "quarter" in value else "2024-12-01"
    within = f"least({value}, TIMESTAMP '{last}')" if "seen" in value else f"least({value}, DATE '{last}')"
    (expected,) = data.execute(f"SELECT {shares(within)} FROM visits").fetchall()
    (row,) = exact.execute(f"SELECT {shares(value)} FROM visits").rows()
    assert [f"{moment:%F}" for moment in row] == [f"{moment:%F}" for moment in expected] and len(set(row)) >= 2
    noisy = exact_session("hospital", data, tmp_path / "noisy.db", Gate())
    noisy.set_option("dp.epsilon", "0.05")
    (row,) = noisy.execute(f"SELECT {shares(value)}, MEDIAN({value}) FROM visits").rows()
    assert all(moment.day in (1, 15) for moment in row) and isinstance(row[-1], datetime)


PERIODS = {
    "date_trunc('week', day)": timedelta(days=7), "date_trunc('day', seen)": timedelta(days=1), "date_trunc('hour', seen)": timedelta(hours=1),
    "date_trunc('minute', seen)": timedelta(minutes=1),
}  # fmt: skip


@pytest.mark.parametrize("value", PERIODS)
def test_quantiles_of_many_periods_are_starts_of_periods(value: str, tmp_path: Path) -> None:
    """For periods too many to be listed: 366 days of a year, its hours and minutes. Without noise, the engine's own quantiles,
    for minutes up to a step of the grid; with noise, the start of a period."""
    data = visits_in_february()
    data.execute(
        "UPDATE visits SET day = day + 29 * CAST(visit_id % 6 AS INTEGER), seen = seen + to_hours(CAST(691 * (visit_id % 6) AS INTEGER))"
        " + to_minutes(CAST(visit_id % 60 AS INTEGER))"
    )
    shares = f"MIN({value}), QUANTILE_DISC({value}, 0.3), QUANTILE_DISC({value}, 0.9)"
    start = date(2024, 1, 1) if "day)" in value else datetime(2024, 1, 1)
    exact = exact_session("hospital", data, tmp_path / "ledger.db", NoiselessGate(1))
    (expected,) = data.execute(f"SELECT {shares} FROM visits").fetchall()
    (row,) = exact.execute(f"SELECT {shares} FROM visits").rows()
    step = timedelta(minutes=16) if "minute" in value else timedelta(0)
    assert [type(moment) for moment in row] == [type(start)] * 3 and len(set(row)) == 3
    assert all(abs(midnight(moment) - midnight(wanted)) <= step for moment, wanted in zip(row, expected, strict=True))
    noisy = exact_session("hospital", data, tmp_path / "noisy.db", Gate())
    noisy.set_option("dp.epsilon", "0.05")
    (row,) = noisy.execute(f"SELECT {shares}, MEDIAN({value}) FROM visits").rows()
    assert not any((moment - start) % PERIODS[value] for moment in row[:3]), "2024 begins on a Monday"
    assert not (row[3] - datetime(2024, 1, 1)) % PERIODS[value]


def test_error_bars_of_quantiles_are_measured_where_the_question_asks_for_them(connection: dpsql.Connection) -> None:
    """The bar costs two more parts of the budget; for 1,000 ages evenly distributed from 20 to 79 it is a few years wide."""
    sql = "SELECT MEDIAN(age) AS m, DP_INTERVAL_LOW(MEDIAN(age)) AS l, DP_ERROR(MEDIAN(age)) AS e, COUNT(*) AS n FROM patients"
    assert connection.execute(sql).release.low.to_pylist()[0]["m"] is None
    connection.execute("SET dp.quantile_bars = on")
    connection.execute("SET dp.epsilon = 4")
    release = connection.execute(sql).release
    ((middle, low, error, _),) = release.rows()
    ((bar_low, *_),), ((bar_high, *_),) = (
        list(zip(*end.to_pydict().values(), strict=True)) for end in (release.low, release.high)
    )
    assert bar_low == low <= 49 <= bar_high and bar_high - bar_low < 8 and low <= middle <= bar_high
    assert error == max(middle - bar_low, bar_high - middle)
    assert len(connection.explain(sql).outputs) == 4
    assert connection.execute(sql).release.reused
    connection.execute("SET dp.confidence = 0.99")
    assert not connection.execute(sql).release.reused


def test_lists_and_dates_have_no_bars_and_pay_for_none() -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    planner = Planner(policy, DuckDBEngine(duckdb.connect(), policy, "test", owned=True))
    options = Options.of_policy(policy).with_value("quantile_bars", "on", policy)
    for sql, numbers in (
        ("SELECT QUANTILE_DISC(age, [0.25, 0.5]) FROM patients", 2),
        ("SELECT MEDIAN(day), MAX(seen) FROM visits", 2),
        ("SELECT MEDIAN(age) FROM patients", 3),
        ("SELECT MEDIAN(age), QUANTILE_DISC(age, [0.5]) FROM patients", 3),
    ):
        (block,) = planner.plan(planner.parse(sql, None), options, True).price.blocks
        assert len(block.noise.charged) == numbers


def test_bars_of_rows_that_noise_chose_are_not_claimed_at_a_confidence_they_do_not_have(
    connection: dpsql.Connection,
) -> None:
    connection.execute("SET dp.quantile_bars = on")
    sql = "SELECT region, MEDIAN(age) AS m FROM patients GROUP BY region ORDER BY m DESC LIMIT 1"
    release = connection.execute(sql).release
    assert release.low.to_pylist() == [{"region": None, "m": None}]
    assert any("noise decides which rows are shown" in note for note in release.bars.notes)
    connection.execute("SET dp.simultaneous = off")
    assert connection.execute(sql).release.low.to_pylist()[0]["m"] is not None
