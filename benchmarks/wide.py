"""A million groups from query to result: to Arrow, and streamed to files; time relative to plain DuckDB, and memory.

Every way runs in a separate process, so that its peak memory is its own; ways alternate within each round.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.clock import timed
from benchmarks.data import table_policy
from dpsql.frontends.rendering.formats import write_file
from dpsql.session.session import open_session

ROWS = 10_000_000
SIDE = 1_000
"""The number of shops and of articles; its square is the number of groups."""
COLUMNS = (
    "shop: {{type: integer, lower: 0, upper: {last}, nullable: false}}",
    "article: {{type: integer, lower: 0, upper: {last}, nullable: false}}",
    "item: {{type: text, nullable: false}}",
    "amount: {{type: real, lower: 0, upper: 100, nullable: false}}",
)
QUESTIONS = {
    "public": "SELECT shop, article, count(*) AS n, sum(amount) AS total FROM visits GROUP BY shop, article",
    "private": "SELECT item, count(*) AS n, sum(amount) AS total FROM visits GROUP BY item",
}
EPSILON = 10
"""Large enough for nearly every private key to appear, so that the answer is wide."""
SINKS = ("arrow", "csv", "parquet", "file")
"""In memory; text, Parquet and Arrow files."""
WAYS = ("raw", "charged", "kept", "stored")
"""Plain DuckDB; measured without storing; measured and stored in the store of releases (the default); answered from it."""
TARGET = 2.0


@dataclass(frozen=True)
class Wide:
    """One query in one way to one sink: medians of milliseconds, MB of the process's peak memory; ratio to raw's time."""

    question: str
    sink: str
    way: str
    groups: int
    median: float
    cpu: float
    ratio: float
    peak: float


def build_visits(folder: Path, rows: int, side: int) -> Path:
    """Write a DuckDB file with the table `visits`: `side` shops and articles, `side` * `side` items, values by hashing."""
    path = folder / f"visits-{rows}-{side}.duckdb"
    if not path.exists():
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with duckdb.connect(str(part)) as connection:
            connection.execute(
                f"CREATE TABLE visits AS SELECT CAST(hash(i) % {side} AS INTEGER) AS shop, "
                f"CAST(hash(3 * i + 1) % {side} AS INTEGER) AS article, "
                f"format('item-{{:07}}', CAST(hash(7 * i + 2) % {side * side} AS BIGINT)) AS item, "
                f"(hash(5 * i + 3) % 10000) / 100.0 AS amount FROM range({rows}) AS t(i)"
            )
        part.rename(path)
    return path


def wide(
    folder: Path,
    repeat: int,
    say: Callable[[str], None],
    *,
    rows: int = ROWS,
    side: int = SIDE,
    sinks: Sequence[str] = SINKS,
) -> list[Wide]:
    """Measure every query in every way to each of `sinks`."""
    data = build_visits(folder, rows, side)
    columns = tuple(column.format(last=side - 1) for column in COLUMNS)
    policy = table_policy(folder, data.stem, "visits", data, columns, None, epsilon=EPSILON)
    open_session(policy, create_ledger=True).close()
    found = []
    for question in QUESTIONS:
        for sink in sinks:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for at in range(repeat):
                for way in WAYS:
                    runs[way].append(_alone(str(folder), str(data), str(policy), question, sink, way, at))
            for way in WAYS:
                one = Wide(question, sink, way, int(runs[way][0]["groups"]), **_middle(runs[way], runs["raw"]))
                found.append(one)
                say(f"{question} to {sink}, {way}: {one.median:.0f} ms, ratio {one.ratio:.2f}, peak {one.peak:.0f} MB")
    return found


def _middle(runs: list[dict[str, float]], raw: list[dict[str, float]]) -> dict[str, float]:
    names = ("median", "cpu", "peak")
    ratio = statistics.median(one["median"] / other["median"] for one, other in zip(runs, raw, strict=True))
    return {name: statistics.median(run[name] for run in runs) for name in names} | {"ratio": ratio}


def _alone(*arguments: Any) -> dict[str, float]:
    """Run once in a separate process, which first reads the file's pages with a count that is not timed."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return dict(pool.apply(_run, arguments))


def _run(folder: str, data: str, policy: str, question: str, sink: str, way: str, at: int) -> dict[str, float]:
    # A condition that is always true makes the query distinct, so that no stored release answers it yet.
    sql = QUESTIONS[question].replace(" GROUP", f" WHERE amount < {1000 + at + 100 * SINKS.index(sink)} GROUP")
    target = Path(folder) / f"wide-{os.getpid()}.{sink}"
    groups: list[int] = []
    if way == "raw":
        connection = duckdb.connect(data, read_only=True)
        connection.execute("SELECT count(amount), count(item), count(shop) FROM visits").fetchall()
        sample = timed(partial(_raw, connection, sql, sink, target, groups))
    else:
        session = open_session(policy)
        session.execute(f"SET dp.reuse = {'off' if way == 'charged' else 'on'}")
        session.execute("SELECT count(*) AS n, sum(amount) AS s FROM visits")
        sample = timed(partial(_private, session, sql, sink, target, groups))
    target.unlink(missing_ok=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"median": sample.wall, "cpu": sample.cpu, "peak": peak, "groups": groups[0]}


def _raw(connection: duckdb.DuckDBPyConnection, sql: str, sink: str, target: Path, groups: list[int]) -> None:
    if sink in ("csv", "parquet"):
        groups += connection.execute(f"COPY ({sql}) TO '{target}' (FORMAT {sink})").fetchone() or ()
        return
    table = connection.sql(sql).to_arrow_table()
    groups.append(table.num_rows)
    if sink == "file":
        import pyarrow as pa

        with pa.OSFile(str(target), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)


def _private(session: Any, sql: str, sink: str, target: Path, groups: list[int]) -> None:
    release = session.execute(sql)
    groups.append(len(release))
    if sink != "arrow":
        write_file(release, target, "arrow" if sink == "file" else sink, bars=False)
