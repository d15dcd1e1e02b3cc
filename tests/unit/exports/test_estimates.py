"""Estimates from randomised rows are unbiased, have bars that hold, are consistent, and are refused where they would be wrong."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats
from support.effort import night
from support.export_clinic import export_session, people, policy_facts

from dpsql.engine.emit.emitter import exported_rows
from dpsql.errors.exceptions import Error
from dpsql.exports.estimates import EstimatedValue, _spread, estimate
from dpsql.exports.rows_file import (
    CategoryColumn,
    Description,
    NewFile,
    RandomisedRows,
    _read,
    describe,
    read_rows,
    rows_table,
)
from dpsql.noise.perturb import Gate, randomise
from dpsql.pricing.row_export import ExportPlan, plan_export
from dpsql.session.row_export import RowExport
from dpsql.session.session import Session

ONE = Fraction(1)
COLUMNS = ("region", "ward", "age", "weight", "grade", "job")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("estimates")
    tables = {"people": policy_facts()["tables"]["people"]}
    with export_session(folder, 0, rows={"people": people(600)}, tables=tables) as opened:
        yield opened


def export_of(session: Session, plan: ExportPlan, gate: Gate | None = None) -> RandomisedRows:
    """Return randomised rows like `read_rows`, without the charge and the file."""
    exact = session.context.engine.run(exported_rows(session.context.emitter(), plan))
    table = rows_table(plan, randomise(exact, plan, gate or Gate()))
    description = describe(plan, "clinic")
    columns = {column.name: _read(table.column(column.name), column) for column in description.columns}
    return RandomisedRows(description, table.num_rows, columns)


INSIDE = "FROM people WHERE region <> 'elsewhere'"
QUESTIONS = [
    ("SELECT COUNT(*) FROM people", f"SELECT COUNT(*) {INSIDE}"),
    ("SELECT COUNT(*) FROM people WHERE region = 'north'", f"SELECT COUNT(*) {INSIDE} AND region = 'north'"),
    (
        "SELECT COUNT(*) FROM people WHERE region <> 'north' AND ward IS NOT NULL",
        f"SELECT COUNT(*) {INSIDE} AND region <> 'north' AND ward IS NOT NULL",
    ),
    ("SELECT COUNT(*) FROM people WHERE job = 'job 3'", f"SELECT COUNT(*) {INSIDE} AND job = 'job 3'"),
    ("SELECT COUNT(*) FROM people WHERE NOT ward IS NULL AND ward <> 'A'", f"SELECT COUNT(*) {INSIDE} AND ward = 'B'"),
    ("SELECT COUNT(age) FROM people WHERE ward IS NULL", f"SELECT COUNT(age) {INSIDE} AND ward IS NULL"),
    ("SELECT SUM(age) FROM people WHERE region IN ('north', 'east')", f"SELECT SUM(age) {INSIDE} AND region <> 'south'"),
    ("SELECT AVG(age) FROM people", f"SELECT AVG(age) {INSIDE}"),
    ("SELECT AVG(weight) FROM people WHERE ward = 'A'", f"SELECT AVG(weight) {INSIDE} AND ward = 'A'"),
    ("SELECT SUM(grade) FROM people WHERE NOT region = 'north'", f"SELECT SUM(grade) {INSIDE} AND region <> 'north'"),
    ("SELECT AVG(grade) FROM people WHERE grade IN (1, 2)", f"SELECT AVG(grade) {INSIDE} AND grade IN (1, 2)"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("epsilon", "confidence"), [(Fraction(3), 0.95), night(Fraction(3), 0.7), night(Fraction(24), 0.95)]
)
def test_bars_hold_the_exact_value_and_estimates_have_its_mean(
    session: Session, epsilon: Fraction, confidence: float
) -> None:
    """600 exports of 450 rows each. Bars with the stated coverage fail once in ten million runs; at 0.95, bars with a coverage of
    0.8 would fail nearly always."""
    plan = plan_export(session.policy, "people", COLUMNS, epsilon, Fraction(1, 5))
    rounds = 600
    source = people(600)
    connection = duckdb.connect()
    connection.register("people", source)
    exact = [float(connection.execute(sql).fetchall()[0][0]) for _, sql in QUESTIONS]
    hits = np.zeros(len(QUESTIONS))
    values = np.zeros((len(QUESTIONS), rounds))
    for number in range(rounds):
        rows = export_of(session, plan)
        for index, (sql, _) in enumerate(QUESTIONS):
            bar = estimate(rows, sql, confidence).rows[0][0]
            assert isinstance(bar, EstimatedValue) and bar.low <= bar.value <= bar.high
            hits[index] += bar.low <= exact[index] <= bar.high
            values[index, number] = bar.value
    least = stats.binom.ppf(1e-7, rounds, confidence) / rounds
    assert (hits / rounds >= least).all(), dict(zip([sql for sql, _ in QUESTIONS], hits / rounds, strict=True))
    for index, (sql, _) in enumerate(QUESTIONS):
        if "AVG" not in sql:  # AVG is a ratio, limited to its ends
            away = abs(values[index].mean() - exact[index]) / (values[index].std() / np.sqrt(rounds))
            assert away < 6, (sql, values[index].mean(), exact[index])


@pytest.mark.statistical
def test_bars_are_not_wider_than_they_have_to_be(session: Session) -> None:
    """The bar of a count, in deviations of its estimates: 1.96, plus the uncertainty from the number of rows."""
    plan = plan_export(session.policy, "people", ("grade",), ONE, Fraction(1000))
    bars = [
        estimate(export_of(session, plan), "SELECT COUNT(*) FROM people WHERE grade = 2").rows[0][0] for _ in range(200)
    ]
    deviation = np.std([bar.value for bar in bars])
    width = np.mean([bar.high - bar.low for bar in bars]) / 2
    assert 1.7 < width / deviation < 2.6


def test_counts_over_several_columns_add_up_to_those_over_fewer(session: Session) -> None:
    rows = export_of(session, plan_export(session.policy, "people", ("region", "ward", "job"), Fraction(2)))
    joint = estimate(rows, "SELECT region, ward, job, COUNT(*) FROM people GROUP BY region, ward, job").rows
    single = estimate(rows, "SELECT region, COUNT(*) FROM people GROUP BY 1, region".replace("1, ", "")).rows
    assert len(joint) == 3 * 3 * 25
    for region, bar in single:
        assert sum(row[3].value for row in joint if row[0] == region) == pytest.approx(bar.value)
    total = estimate(rows, "SELECT COUNT(*) FROM people").rows[0][0]
    assert sum(bar.value for _, bar in single) == pytest.approx(total.value) and total.value == rows.count


def test_a_mean_of_hardly_any_row_says_that_nothing_is_known(session: Session) -> None:
    rows = export_of(session, plan_export(session.policy, "people", ("job", "age"), Fraction(1, 2)))
    bar = estimate(rows, "SELECT AVG(age) FROM people WHERE job = 'job 1'").rows[0][0]
    assert (bar.low, bar.high) == (0, 100) and 0 <= bar.value <= 100


def test_files_hold_what_was_randomised_and_csv_holds_what_parquet_holds(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "rows.parquet"
    RowExport(session, "people", ("ward", "age", "grade"), Fraction(3)).write(place)
    written = read_rows(place)
    table = pq.read_table(place)
    assert written.count == table.num_rows and written.description.epsilon == "3"
    file = NewFile(tmp_path / "rows.csv", written.description)
    file.write(table.replace_schema_metadata(None))
    file.publish()
    again = read_rows(tmp_path / "rows.csv")
    assert again.description == written.description
    for name, values in written.columns.items():
        assert np.array_equal(values, again.columns[name], equal_nan=values.dtype.kind == "f")
    sql = "SELECT ward, COUNT(*), AVG(age) FROM rows GROUP BY ward"
    assert estimate(again, sql) == estimate(written, sql)
    assert [row[0] for row in estimate(written, sql).rows] == ["A", "B", None]


@pytest.mark.parametrize(
    "damage",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"format": 2, "columns": []}',
        '{"format": 1, "columns": [{"values": [1]}]}',
        "[" * 100000,
    ],
)
def test_a_file_that_dpsql_has_not_written_is_refused(tmp_path: Path, damage: str) -> None:
    place = tmp_path / "rows.csv"
    place.write_text("a\n1\n")
    place.with_name("rows.csv.json").write_text(damage)
    with pytest.raises(Error) as raised:
        read_rows(place)
    assert raised.value.slug == "export_file"
    (tmp_path / "plain.parquet").write_bytes(b"no parquet")
    with pytest.raises(Error) as raised:
        read_rows(tmp_path / "plain.parquet")
    assert raised.value.slug == "export_file"
    place.with_name("rows.csv.json").unlink()
    for file, missing in ((tmp_path / "missing.parquet",) * 2, (place, place.with_name("rows.csv.json"))):
        with pytest.raises(Error, match=f"cannot read {missing}: ") as raised:
            read_rows(file)
        assert raised.value.slug == "file_read"


REFUSED = [
    ("SELECT region FROM people GROUP BY region", "without COUNT, SUM or AVG"),
    ("SELECT region, COUNT(*) FROM people", "GROUP BY"),
    ("SELECT COUNT(DISTINCT region) FROM people", "DISTINCT region stands"),
    ("SELECT COUNT(*) FILTER (WHERE ward = 'A') FROM people", "is not"),
    ("SELECT COUNT(*) OVER () FROM people", "is not"),
    ("SELECT MEDIAN(age) FROM people", "MEDIAN(age) is not answered"),
    ("SELECT COUNT(*) FROM people GROUP BY ALL", "names columns: no ALL"),
    ("SELECT AVG(age + 1) FROM people", "stands where a column has to"),
    ("SELECT AVG(region) FROM people", "holds no numbers"),
    ("SELECT COUNT(*) FROM people WHERE age > 3", "is not"),
    ("SELECT COUNT(*) FROM people WHERE age = 3", "holds randomised numbers"),
    ("SELECT COUNT(*) FROM people WHERE region = 'north' OR ward = 'A'", "is not"),
    ("SELECT COUNT(*) FROM people WHERE region = 'nowhere'", "none of the values"),
    ("SELECT COUNT(*) FROM people WHERE region = NULL", "is not"),
    ("SELECT COUNT(*) FROM people WHERE region IN ('north', NULL)", "is not"),
    ("SELECT COUNT(*) FROM people WHERE region IN (SELECT 1)", "is not"),
    ("SELECT COUNT(*) FROM people WHERE region = ward", "stands where a value has to"),
    ("SELECT COUNT(*) FROM people WHERE region IS DISTINCT FROM 'north'", "is not"),
    ("SELECT COUNT(*) FROM people GROUP BY region WITH ROLLUP", "no grouping sets"),
    ("SELECT COUNT(people.region) FROM people", "stands where a column has to"),
    ("SELECT COUNT(*) FROM people WHERE region LIKE 'n%'", "is not"),
    ("SELECT COUNT(*) FROM people GROUP BY age", "holds randomised numbers"),
    ("SELECT COUNT(*) FROM people GROUP BY ROLLUP (region)", "ROLLUP (region) stands"),
    ("SELECT COUNT(*) FROM people HAVING COUNT(*) > 1", "HAVING is not"),
    ("SELECT COUNT(*) FROM people ORDER BY 1", "ORDER is not"),
    ("SELECT COUNT(*) FROM people LIMIT 1", "LIMIT is not"),
    ("SELECT COUNT(*) FROM people, people", "is not"),
    ("SELECT COUNT(*) FROM people AS p", "without an alias"),
    ("SELECT COUNT(*) FROM (SELECT 1) AS p", "FROM names the one table"),
    ("SELECT COUNT(*)", "FROM names the one table"),
    ("WITH a AS (SELECT 1) SELECT COUNT(*) FROM people", "WITH is not"),
    ("SELECT DISTINCT COUNT(*) FROM people", "DISTINCT is not"),
    ("SELECT COUNT(*) FROM people UNION SELECT 1", "one SELECT"),
    ("DELETE FROM people", "one SELECT"),
    ("SELECT COUNT(*) FROM people; SELECT 1", "one SELECT"),
    ("SELECT (", "not SQL"),
    ("", "one SELECT"),
    ("SELECT COUNT(*) FROM elsewhere", 'relation "elsewhere" does not exist'),
    ("SELECT COUNT(*) FROM people WHERE regoin = 'north'", "does not exist"),
    ("SELECT job, region, ward, grade, COUNT(*) FROM people GROUP BY job, region, ward, grade", ""),
]


@pytest.mark.parametrize(
    ("sql", "exact"),
    [("COUNT(*) FROM rows WHERE grade = 2", 1), ("SUM(grade) FROM rows", 6), ("AVG(grade) FROM rows", 1.2)],
)
def test_rows_that_happen_to_be_alike_have_a_bar(sql: str, exact: float) -> None:
    """Five rows, four of 1 and one of 2, become five of 1 in a third of all exports: even then, no bar may be a point."""
    column = CategoryColumn("grade", "int64", (1, 2), 1, 0.8, 0.2)
    rows = RandomisedRows(
        Description("clinic", "people", "1.38", 1, None, (column,)), 5, {"grade": np.zeros(5, dtype=np.int64)}
    )
    bar = estimate(rows, f"SELECT {sql}").rows[0][0]
    assert bar.low <= exact <= bar.high
    assert estimate(rows, "SELECT COUNT(*), COUNT(grade) FROM rows").rows[0][0] == EstimatedValue(5, 5, 5)


@pytest.mark.parametrize("means", [(0.5, 0.5, 0.5), (0.1, 0.5, 0.9)])
def test_the_estimated_variance_of_a_sum_is_on_average_no_less_than_the_variance(means: tuple[float, ...]) -> None:
    """The average is over all outcomes of three independent rows that are 0 or 1; with equal means it is exact."""
    expected = 0.0
    for outcome in product((0.0, 1.0), repeat=len(means)):
        chance = prod(mean if value else 1 - mean for value, mean in zip(outcome, means, strict=True))
        expected += chance * _spread(np.array(outcome))
    variance = sum(mean * (1 - mean) for mean in means)
    excess = sum((mean - 0.5) ** 2 for mean in means) * 3 / 2
    assert expected == pytest.approx(variance + excess, rel=1e-12)
