"""Medians, quantiles and deciles in the comparison of `errors`: their data, and the rank error of an answer in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt

from benchmarks.data import FIRST_DAY, region_names
from benchmarks.peers.drive import Rows
from benchmarks.rank_errors import rank_error
from benchmarks.workload import Question

ORDER = "order statistics"
"""Part of the names of cases with order statistics."""
REGIONS, ROWS_OF_A_REGION, ROWS_OF_A_USER = 20, 500, 3
HIGHEST = 500
MOST = 1_000.0
"""Larger ratios are shown as this value."""
_NINE = tuple(part / 10 for part in range(1, 10))
SHARES: Mapping[str, tuple[int, tuple[float, ...]]] = {
    "Q13": (0, (0.5,)), "Q14": (0, (0.9,)), "Q15": (0, _NINE), "Q16": (1, (0.5,)), "Q17": (1, (0.9,)), "Q18": (1, _NINE),
}  # fmt: skip
"""Query -> the number of leading key columns, and the requested quantiles as shares of rows."""
STEPS = (64_000, 32_000)
"""The numbers of steps into which dpsql divides the bounds of a query without keys and of one by region. Systems that require
candidates receive the ends of these steps."""
Values = Mapping[tuple[str, ...], npt.NDArray[np.float64]]
"""Key of a group -> its values, ascending."""


def _question(name: str) -> Question:
    keys, shares = SHARES[name]
    asked = (f"quantile_disc(amount, {share}) AS q{round(100 * share)}" for share in shares)
    kind = "nine deciles" if len(shares) > 1 else "MEDIAN" if shares == (0.5,) else f"{shares[0]} quantile"
    if keys:
        sql = f"SELECT region, {', '.join(asked)} FROM purchases GROUP BY region"
        return Question(name, f"{kind} by {REGIONS} regions", sql)
    return Question(name, kind, f"SELECT {', '.join(asked)} FROM purchases")


QUESTIONS = tuple(map(_question, SHARES))


def build_ranked(folder: Path) -> Path:
    """Write a Parquet file with the columns of the workload: gamma-distributed amounts, dense below and sparse above, and three
    rows per user, the maximum."""
    path = folder / f"ranked-{REGIONS * ROWS_OF_A_REGION}.parquet"
    if path.exists():
        return path
    random = np.random.default_rng(14)
    rows = REGIONS * ROWS_OF_A_REGION
    columns = {
        "user_id": random.permutation(rows) // ROWS_OF_A_USER,
        "place": np.arange(rows) % REGIONS,
        "amount": np.minimum(np.round(random.gamma(2.0, 30.0, rows), 2), HIGHEST),
    }
    names = ", ".join(f"'{name}'" for name in region_names()[:REGIONS])
    listed = (
        f"user_id, [{names}][place + 1] AS region, DATE '{FIRST_DAY}' AS day, 'merchant-00000' AS merchant, amount, "
        "1::INTEGER AS items"
    )
    with duckdb.connect() as connection:
        connection.register("columns", columns)
        connection.execute(f"COPY (SELECT {listed} FROM columns) TO '{path}' (FORMAT parquet)")
    return path


def sorted_values(data: Path, question: Question) -> Values:
    """Return the amounts of every group of a question in ascending order."""
    keys, _ = SHARES[question.name]
    by = "region" if keys else "''"
    with duckdb.connect() as connection:
        text = f"SELECT {by} AS place, list(amount ORDER BY amount) FROM read_parquet('{data}') GROUP BY place"
        rows = connection.sql(text).fetchall()
    return {(place,) if keys else (): np.array(values, dtype=np.float64) for place, values in rows}


def rows_off(values: Values, question: Question, answers: Sequence[Rows]) -> npt.NDArray[np.float64]:
    """Return for every group and answer how many rows lie between the released and the exact quantile, as a share of the group's
    rows, averaged over the requested quantiles; 1 if a group or value is missing."""
    _, shares = SHARES[question.name]
    wanted = [Fraction(str(share)) for share in shares]
    off = []
    for rows in answers:
        for key, ascending in values.items():
            given = rows.get(key) or [None] * len(shares)
            each = [
                1.0 if value is None else rank_error(ascending, share, value) / ascending.size
                for share, value in zip(wanted, given, strict=True)
            ]
            off.append(float(np.mean(each)))
    return np.array(off)


def ratio_of_means(
    own: npt.NDArray[np.float64], other: npt.NDArray[np.float64], deviations: float
) -> tuple[float, float, float]:
    """Return the mean of `own` divided by the mean of `other`, and its interval, which in logarithms extends by so many normal
    `deviations` to each side.

    The deviation of the logarithm follows from the delta method (Cochran 1977, 6.3), the quantile from Student's t distribution
    with the smaller number of errors. Means are used because a rank error is a small integer, whose median jumps. The result is 1
    with zero width if neither side has errors, and an uninformative interval if only one side has none.
    """
    means = own.mean(), other.mean()
    if not all(means):
        return (1.0, 1.0, 1.0) if not any(means) else (0.0, 0.0, MOST) if not means[0] else (MOST, 0.0, MOST)
    squares = [values.var(ddof=1) / values.size / mean**2 for values, mean in zip((own, other), means, strict=True)]
    width = float(np.exp(_student(deviations, min(own.size, other.size) - 1) * np.sqrt(sum(squares))))
    middle = float(means[0] / means[1])
    return middle, middle / width, middle * width


def _student(normal: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution at the probability of a `normal` quantile (Abramowitz and Stegun
    26.7.5)."""
    second = (5 * normal**5 + 16 * normal**3 + 3 * normal) / (96 * freedom**2)
    return normal + (normal**3 + normal) / (4 * freedom) + second
