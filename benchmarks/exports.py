"""Exports of randomised rows compared with plain DuckDB writing the same columns unchanged to Parquet files.

Both alternate in one process, with a whole `dpsql export` each time (planned, durably charged, read, randomised, shuffled,
written); and they run as separate processes, including the start.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path

import duckdb

from benchmarks.clock import Sample, in_turn, ratio, summary
from benchmarks.data import table_policy
from dpsql.session.row_export import RowExport
from dpsql.session.session import Session, open_session

ROWS = 1_000_000
TARGET = 3.0
"""Target as a multiple of the time to write the rows unchanged."""
FEW = 20
"""One in this many rows is exported if each is written as hundreds of values."""
COLUMNS = (
    "region: {type: text, domain: [north, east, south, west], nullable: false}",
    f"ward: {{type: text, domain: [{', '.join(f'ward {number:02}' for number in range(16))}], nullable: false}}",
    f"code: {{type: integer, domain: [{', '.join(map(str, range(1000)))}], nullable: false}}",
    "age: {type: integer, lower: 18, upper: 97, nullable: false}",
    "spent: {type: real, lower: 0, upper: 500}",
)


@dataclass(frozen=True)
class Case:
    """Columns that are exported together, at epsilon 1 each, for all rows or for one in `of`."""

    columns: tuple[str, ...]
    of: int = 1

    @property
    def table(self) -> str:
        """Return the table to export; `few` has one in FEW rows."""
        return "people" if self.of == 1 else "few"

    def raw(self, place: Path) -> str:
        """Return the statement that writes the rows unchanged."""
        return f"COPY (SELECT {', '.join(self.columns)} FROM {self.table}) TO '{place}' (FORMAT parquet)"


CASES = {
    "4 values, a number": Case(("region", "age")),
    "sets of 16 values": Case(("ward",)),
    "all of these, a number with NULL": Case(("region", "ward", "age", "spent")),
    "sets of 1,000 values": Case(("code",), FEW),
}


@dataclass(frozen=True)
class Export:
    """Medians of milliseconds of wall and processor time, of plain DuckDB (`raw`) and of dpsql; medians of the ratios within each
    round: `ratio` of wall time, `cpu_ratio` of processor time. `how`: within a process, or as a process."""

    case: str
    how: str
    rows: int
    raw: float
    raw_cpu: float
    median: float
    cpu: float
    ratio: float
    cpu_ratio: float


def exports(folder: Path, repeat: int, say: Callable[[str], None], rows: int = ROWS) -> list[Export]:
    """Measure all cases within one process, then the first one as processes."""
    data = _build(folder, rows)
    policy = _policy(folder, data)
    measured = []
    with open_session(policy, create_ledger=True) as session, duckdb.connect(str(data), read_only=True) as plain:
        for name, case in CASES.items():
            ways = {"raw": partial(_raw, plain, folder, case), "dpsql": partial(_export, session, folder, case)}
            for way in ways.values():
                way()
            measured.append(_measured(name, "in a process", rows // case.of, in_turn(ways, repeat)))
            say(f"export of {name}: ratio {measured[-1].ratio:.2f}, processor time {measured[-1].cpu_ratio:.2f}")
    name, case = next(iter(CASES.items()))
    samples: dict[str, list[Sample]] = {"raw": [], "dpsql": []}
    for _ in range(repeat):
        samples["raw"].append(_process(_raw_command(folder, data, case)))
        samples["dpsql"].append(_process(_export_command(folder, policy, case)))
    measured.append(_measured(name, "as a process", rows, samples))
    return measured


def _measured(case: str, how: str, rows: int, samples: dict[str, list[Sample]]) -> Export:
    raw, own = summary(samples["raw"]), summary(samples["dpsql"])
    processor = [Sample(sample.cpu, sample.cpu) for sample in samples["dpsql"]]
    base = [Sample(sample.cpu, sample.cpu) for sample in samples["raw"]]
    times = ratio(samples["dpsql"], samples["raw"]), ratio(processor, base)
    return Export(case, how, rows, raw.median, raw.cpu, own.median, own.cpu, *times)


def _build(folder: Path, rows: int) -> Path:
    path = folder / f"people-{rows}.duckdb"
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with duckdb.connect(str(part)) as connection:
            connection.execute(
                "CREATE TABLE people AS SELECT ['north', 'east', 'south', 'west'][1 + CAST(hash(i) % 4 AS INTEGER)] AS region, "
                "format('ward {:02}', CAST(hash(7 * i) % 16 AS INTEGER)) AS ward, CAST(hash(3 * i) % 1000 AS INTEGER) AS code, "
                "CAST(18 + hash(5 * i) % 80 AS INTEGER) AS age, "
                "CASE WHEN i % 50 > 0 THEN (hash(11 * i) % 50000) / 100.0 END AS spent "
                f"FROM range({rows}) AS t(i)"
            )
            connection.execute(f"CREATE TABLE few AS FROM people LIMIT {rows // FEW}")
        part.rename(path)
    return path


def _policy(folder: Path, data: Path) -> Path:
    """Write a policy over both tables, which have the same columns; every row is a privacy unit."""
    path = table_policy(folder, data.stem, "people", data, COLUMNS, None)
    text = path.read_text(encoding="utf-8")
    _, _, table = text.partition("  people:\n")
    path.write_text(f"{text}  few:\n{table}", encoding="utf-8")
    return path


def _raw(plain: duckdb.DuckDBPyConnection, folder: Path, case: Case) -> None:
    place = folder / "raw.parquet"
    plain.execute(case.raw(place))
    place.unlink()


def _export(session: Session, folder: Path, case: Case) -> None:
    place = folder / "rows.parquet"
    RowExport(session, case.table, case.columns, Fraction(len(case.columns))).write(place)
    place.unlink()


def _raw_command(folder: Path, data: Path, case: Case) -> list[str]:
    statement = case.raw(folder / "raw.parquet")
    return ["-c", f"import duckdb; duckdb.connect({str(data)!r}, read_only=True).execute({statement!r})"]


def _export_command(folder: Path, policy: Path, case: Case) -> list[str]:
    place = folder / "rows.parquet"
    place.unlink(missing_ok=True)
    given = ["--columns", ",".join(case.columns), "--epsilon", str(len(case.columns)), "--out", str(place)]
    return ["-m", "dpsql", "export", "-p", str(policy), case.table, *given]


def _process(given: Sequence[str]) -> Sample:
    """Return wall and processor time of a new Python process, in milliseconds."""
    before = os.times()
    subprocess.run([sys.executable, *given], check=True, capture_output=True)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    return Sample((after.elapsed - before.elapsed) * 1000, processor * 1000)
