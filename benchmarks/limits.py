"""Why a sum of unprepared reals cannot be as fast as SUM: a ladder of single steps in plain DuckDB.

Every rung is one aggregate over the same column, alternating in one process: each operation that an exact sum of clamped reals
needs (scale, clamp, cast), alone in its cheapest forms, then dpsql's own text. Rungs that are not exact are labelled so: they
show how much an exact one could gain at most.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

from benchmarks.clock import in_turn, ratio, summary
from benchmarks.data import build
from benchmarks.measure import plain
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.quantization import row_integer, value_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column
from dpsql.pricing.sum_terms import summed

ROWS = 10_000_000
LOWER, UPPER = 0, 500
TERM = summed(Column("amount", Facts(Type.REAL, Fraction(LOWER), Fraction(UPPER))), None, False)[0]
SCALED = value_text(TERM, DUCKDB)
_L, _U = f"{LOWER}e0::DOUBLE", f"{UPPER}e0::DOUBLE"

RUNGS = (
    ("SUM(x)", "sum(amount)", "plain DuckDB: a double, neither clamped nor exact"),
    ("x * 2^k", f"sum({SCALED})", "no clamp, not exact"),
    ("cast", f"sum(CAST({SCALED} AS INTEGER))", "no clamp: fails on the first value that is out of range"),
    ("TRY_CAST", f"sum(TRY_CAST({SCALED} AS INTEGER))", "no clamp: values out of range are left out"),
    ("clamp: |x - L| - |x - U|", f"sum(abs(amount - {_L}) - abs(amount - {_U}))",
     "not exact, and wrong for large values and infinities"),
    ("clamp: CASE", f"sum(CASE WHEN amount < {_L} THEN {_L} WHEN amount > {_U} THEN {_U} ELSE amount END)", "not exact"),
    ("clamp: FILTER", f"sum(amount) FILTER (WHERE amount BETWEEN {_L} AND {_U})", "not exact: leaves values out"),
    ("clamp: least, greatest", f"sum(least(greatest(amount, {_L}), {_U}))", "not exact"),
    ("cast, then clamp the integer", f"sum(least(greatest(TRY_CAST({SCALED} AS INTEGER), 0), {TERM.magnitude}))",
     "values beyond 31 bits are left out"),
    ("dpsql, not prepared", f"sum({row_integer(TERM, SCALED, DUCKDB)})", "exact"),
)  # fmt: skip
"""Name, aggregate over `amount`, and what it does and does not do."""
KEPT = ("dpsql, prepared", "sum(kept)", "exact: the integers of a copy")


@dataclass(frozen=True)
class Rung:
    """One step at one size; milliseconds, and medians of the ratios to the first rung within each round.

    `ratio` over all rows, `grouped` by 50 regions; `cpu` and `grouped_cpu`: least processor time divided by that of the first
    rung.
    """

    name: str
    does: str
    rows: int
    median: float
    ratio: float
    cpu: float
    grouped: float
    grouped_cpu: float


def limits(folder: Path, repeat: int, say: Callable[[str], None], rows: int = ROWS) -> list[Rung]:
    """Measure all rungs, alternating, over the workload's table of `rows` rows."""
    kept = folder / f"limits-{rows}.duckdb"
    kept.unlink(missing_ok=True)
    with plain(build(folder, rows), folder) as connection:
        connection.execute(f"ATTACH '{kept}' AS limits")
        connection.execute(
            f"CREATE TABLE limits.main.kept AS SELECT region, CAST({row_integer(TERM, SCALED, DUCKDB)} AS INTEGER) AS kept "
            "FROM purchases"
        )
        connection.execute("CHECKPOINT limits")

        def ask(sql: str) -> None:
            connection.execute(sql).fetchall()

        every = [*((*rung, "purchases") for rung in RUNGS), (*KEPT, "limits.main.kept")]
        found = {}
        for keys, clause in (("", ""), ("region, ", " GROUP BY region")):
            works = {name: partial(ask, f"SELECT {keys}{sql} FROM {table}{clause}") for name, sql, _, table in every}
            for work in works.values():  # one run to warm caches
                work()
            found[keys] = in_turn(works, repeat)
    kept.unlink()
    first = RUNGS[0][0]
    rungs = []
    for name, _, does, _ in every:
        numbers = []
        for samples in found.values():
            least, base = (min(one.cpu for one in samples[of]) for of in (name, first))
            numbers += [ratio(samples[name], samples[first]), least / base]
        rungs.append(Rung(name, does, rows, summary(found[""][name]).median, *numbers))
        say(f"{name}: {numbers[0]:.2f}, by region {numbers[2]:.2f}")
    return rungs
