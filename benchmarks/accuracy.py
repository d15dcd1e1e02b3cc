"""Accuracy lost to noise and to bounds: AVG and VAR against their composition by hand, and users with heavy tails."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.data import build, region_names, table_policy, write_policy
from benchmarks.measure import plain
from dpsql.session.session import Session, open_session

TARGET = 0.6
ROWS = 1_000_000
MEASURED = {
    name: f"SELECT region, {text} AS v FROM purchases GROUP BY region"
    for name, text in {
        "AVG": "avg(amount)", "VAR_POP": "var_pop(amount)", "n": "count(amount)", "sum": "sum(amount)",
        "squares": "sum(amount * amount)",
    }.items()
}  # fmt: skip
FORMS: dict[str, tuple[tuple[str, ...], Callable[..., float]]] = {
    "AVG": (("sum", "n"), lambda total, n: total / n),
    "VAR_POP": (("squares", "sum", "n"), lambda squares, total, n: squares / n - (total / n) ** 2),
}
"""Aggregate -> the sums to query for it by hand, each in a separate query with an equal part of the budget, and their
combination."""
CLAMPED = "greatest(least(amount, 500), 0)) FILTER (WHERE amount IS NOT NULL)"
EXACT = {"AVG": f"avg({CLAMPED}", "VAR_POP": f"var_pop({CLAMPED}"}
HEAVY_USERS = 20_000
HEAVY_COLUMNS = (
    "user_id: {type: integer, nullable: false}",
    f"region: {{type: text, domain: [{', '.join(region_names())}], nullable: false}}",
    "amount: {type: real, lower: 0, upper: 100, nullable: false}",
)
MOST_ROWS = 2_000
MAX_ROWS = (5, 20, 80, 320, MOST_ROWS)
MAX_TOTAL = (300, 1_000, 3_000, 10_000)


@dataclass(frozen=True)
class Composition:
    """Median absolute errors, over groups and repeats, of the aggregate and of its composition by hand, at the same epsilon."""

    aggregate: str
    own: float
    naive: float

    @property
    def ratio(self) -> float:
        """Return the error of the aggregate divided by that of the composition."""
        return self.own / self.naive


@dataclass(frozen=True)
class Heavy:
    """SUM by region, under one bound, over users whose numbers of rows have a heavy tail: median relative error against the sum
    of all rows, and its bias (the median signed error)."""

    bound: str
    error: float
    bias: float


def composition(folder: Path, repeat: int, rows: int = ROWS) -> list[Composition]:
    """Measure row privacy at epsilon 1 per aggregate. By hand, each of k queries gets 1 / k of the budget in the accountant's
    unit."""
    data = build(folder, rows)
    found = []
    for accountant in ("pure", "zcdp"):
        policy = write_policy(folder, data, "row", accountant)
        with plain(data, folder) as raw, open_session(policy, create_ledger=True) as session:
            session.execute("SET dp.reuse = off")
            for aggregate, (parts, formula) in FORMS.items():
                exact = _values(raw.sql(f"SELECT region, {EXACT[aggregate]} AS v FROM purchases GROUP BY region"))
                own = statistics.median(_off(session, (aggregate,), lambda value: value, exact, repeat))
                share = 1 / len(parts) if accountant == "pure" else 1 / math.sqrt(len(parts))
                session.execute(f"SET dp.epsilon = {share:.9f}")
                naive = statistics.median(_off(session, parts, formula, exact, repeat))
                session.execute("SET dp.epsilon = 1")
                found.append(Composition(f"{aggregate}, {accountant}", own, naive))
    return found


def _off(
    session: Session, parts: tuple[str, ...], formula: Callable[..., float], exact: dict[str, float], repeat: int
) -> list[float]:
    wrong = []
    for _ in range(repeat):
        answers = [_columns(session.execute(MEASURED[part]).table) for part in parts]
        wrong += [abs(formula(*(answer[region] for answer in answers)) - value) for region, value in exact.items()]
    return wrong


def _values(relation: duckdb.DuckDBPyRelation) -> dict[str, float]:
    return _columns(relation.to_arrow_table())


def _columns(table: pa.Table) -> dict[str, float]:
    return dict(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))


def build_heavy(folder: Path, users: int) -> Path:
    """Write a DuckDB file with the table `visits`: a user has floor(3 * Pareto(1.2)) + 1 rows, at most `MOST_ROWS`."""
    path = folder / f"heavy-{users}.duckdb"
    if not path.exists():
        random = np.random.default_rng(users)
        counts = np.minimum(np.floor(3 * random.pareto(1.2, users)) + 1, MOST_ROWS).astype(np.int64)
        owners = np.repeat(np.arange(users), counts)
        regions = pa.array(region_names()).take(pa.array(random.integers(0, 50, owners.size)))
        amounts = np.round(random.gamma(2.0, 15.0, owners.size).clip(0, 100), 2)
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with duckdb.connect(str(part)) as connection:
            connection.register("made", pa.table({"user_id": owners, "region": regions, "amount": amounts}))
            connection.execute("CREATE TABLE visits AS SELECT * FROM made")
        part.rename(path)
    return path


def heavy(folder: Path, repeat: int, users: int = HEAVY_USERS) -> list[Heavy]:
    """Measure users as privacy units at epsilon 1 per query: under max_rows, which drops rows, and under max_total, which clips
    totals."""
    data = build_heavy(folder, users)
    text = "SELECT region, sum(amount) AS v FROM visits GROUP BY region"
    with duckdb.connect(str(data), read_only=True) as raw:
        exact = _values(raw.sql(text))
    bounds = [(most, None) for most in MAX_ROWS] + [(MOST_ROWS, total) for total in MAX_TOTAL]
    found = []
    for most, total in bounds:
        policy = table_policy(folder, f"heavy-{users}-{most}", "visits", data, HEAVY_COLUMNS, most)
        with open_session(policy, create_ledger=True) as session:
            session.execute("SET dp.reuse = off")
            if total is not None:
                session.execute(f"SET dp.max_total = {total}")
            found.append(_heavy(session, text, exact, repeat, most, total))
    return found


def _heavy(session: Session, text: str, exact: dict[str, float], repeat: int, most: int, total: int | None) -> Heavy:
    off = []
    for _ in range(repeat):
        answer = _columns(session.execute(text).table)
        off += [(answer[region] - value) / value for region, value in exact.items()]
    bound = f"max_rows {most:,}" if total is None else f"max_total {total:,} (no row dropped)"
    return Heavy(bound, statistics.median(map(abs, off)), statistics.median(off))
