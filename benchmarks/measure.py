"""The workload: every query on plain DuckDB and in every way on dpsql, alternating in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.clock import Sample, in_turn, ratio, summary, timed
from benchmarks.data import build, build_parquet, write_policy
from benchmarks.workload import Question
from dpsql.errors.exceptions import Error, Refusal
from dpsql.session.session import Session, open_session

SLOW_ROWS = 1_000_000
"""From this size on, unprepared queries run in two rounds only, because they take seconds."""
SLOW_ROUNDS = 2


@dataclass(frozen=True)
class Timing:
    """One query at one size in one way; milliseconds. `ratio`: median over rounds of the ratio to plain DuckDB.

    `raw`, `raw_cpu`: times of plain DuckDB, which also counts users if users are the privacy units and groups are private.
    `refused`: the slug of a query that dpsql refuses or that failed; its numbers are 0 then.
    """

    question: str
    title: str
    way: str
    rows: int
    groups: int
    median: float = 0
    least: float = 0
    cpu: float = 0
    runs: int = 0
    raw: float = 0
    raw_cpu: float = 0
    ratio: float = 0
    refused: str = ""


@dataclass(frozen=True)
class Prepared:
    """The cost of `dpsql prepare`; `state` is its result."""

    rows: int
    way: str
    state: str
    milliseconds: float
    cpu: float


Say = Callable[[str], None]


@contextmanager
def opened(
    folder: Path, data: Path, ways: Sequence[str], rows: int, found: list[Prepared], memory: str | None = None
) -> Iterator[dict[str, Session]]:
    """Open a session for each way and create indexes where needed. Every answer is charged and computed (dp.reuse = off)."""
    with ExitStack() as stack:
        sessions = {}
        for way in ways:
            session = stack.enter_context(open_session(write_policy(folder, data, way), create_ledger=True))
            session.execute("SET dp.reuse = off")
            if memory:
                limit(session.context.engine._connection, memory, folder)  # type: ignore[attr-defined]
            if way not in ("row", "unprepared"):
                states: list[str] = []
                took = timed(partial(_prepare, session, memory, states))
                found.append(Prepared(rows, way, states[0], took.wall, took.cpu))
            sessions[way] = session
        yield sessions


def _prepare(session: Session, memory: str | None, states: list[str]) -> None:
    states += [str(done.state) for done in session.context.index.prepare(memory=memory)]


def limit(connection: duckdb.DuckDBPyConnection, memory: str, folder: Path) -> None:
    """Limit DuckDB to `memory`; data that do not fit are spilled to `folder`."""
    connection.execute(f"SET memory_limit = '{memory}'")
    connection.execute(f"SET temp_directory = '{folder / 'spill'}'")


def plain(data: Path, folder: Path, memory: str | None = None) -> duckdb.DuckDBPyConnection:
    """Return plain DuckDB over the same file, with the table under the name `purchases`."""
    connection = duckdb.connect()
    if memory:
        limit(connection, memory, folder)
    if data.suffix == ".duckdb":
        connection.execute(f"ATTACH '{data}' AS plain (READ_ONLY)")
        connection.execute("USE plain")
    else:
        connection.execute(f"CREATE VIEW purchases AS SELECT * FROM read_parquet('{data}')")
    return connection


def another(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Return a cursor of a connection from `plain`."""
    cursor = connection.cursor()
    cursor.execute("USE plain")
    return cursor


def run(
    folder: Path,
    questions: Sequence[Question],
    *,
    sizes: Sequence[int],
    ways: Sequence[str],
    repeat: int,
    say: Say,
    parquet: bool = False,
    memory: str | None = None,
) -> tuple[list[Timing], list[Prepared]]:
    """Measure every query at every size in every way."""
    timings: list[Timing] = []
    prepared: list[Prepared] = []
    for rows in sizes:
        data = build_parquet(folder, rows) if parquet else build(folder, rows)
        raw = plain(data, folder, memory)
        with raw, opened(folder, data, ways, rows, prepared, memory) as sessions:
            for question in questions:
                for timing in _question(question, raw, sessions, rows, repeat):
                    timings.append(timing)
                    say(_line(timing))
    return timings, prepared


def _question(
    question: Question, raw: duckdb.DuckDBPyConnection, sessions: dict[str, Session], rows: int, repeat: int
) -> list[Timing]:
    def ask(sql: str) -> pa.Table:
        return raw.sql(sql).to_arrow_table()

    groups = ask(question.sql).num_rows
    works: dict[str, Callable[[], object]] = {"raw": partial(ask, question.sql)}
    if question.counted:
        works["counted"] = partial(ask, question.counted)
    refused: dict[str, str] = {}
    for way, session in sessions.items():
        try:
            session.explain(question.sql)
        except Refusal as refusal:
            refused[way] = refusal.slug
            continue
        works[way] = partial(_attempt, session, question.sql, way, refused)
    few = {"unprepared": SLOW_ROUNDS} if rows >= SLOW_ROWS else {}
    for work in works.values():  # one run to warm caches and plans, and to count the rows of users
        work()
    samples = in_turn(works, repeat, few)
    found = []
    for way in sessions:
        head = (question.name, question.title, way, rows, groups)
        if way in refused:
            found.append(Timing(*head, refused=refused[way]))
        else:
            base = samples["counted" if question.counted and not way.startswith("row") else "raw"]
            found.append(_timing(head, samples[way], base))
    return found


def answer(session: Session, sql: str) -> pa.Table:
    """Return the rows of a query."""
    return session.execute(sql).table


def _attempt(session: Session, sql: str, way: str, failed: dict[str, str]) -> None:
    """Run a query. If it fails (memory, disk), record the error for the table instead of ending the run."""
    try:
        answer(session, sql)
    except Error as error:
        failed[way] = error.slug


def _timing(head: tuple[str, str, str, int, int], samples: list[Sample], base: list[Sample]) -> Timing:
    own, raw = summary(samples), summary(base)
    return Timing(*head, own.median, own.least, own.cpu, own.runs, raw.median, raw.cpu, ratio(samples, base))


def _line(timing: Timing) -> str:
    head = f"{timing.rows:>12,} rows, {timing.way:<10} {timing.question}"
    if timing.refused:
        return f"{head}: not answered ({timing.refused})"
    return f"{head}: raw {timing.raw:.1f} ms, dpsql {timing.median:.1f} ms, ratio {timing.ratio:.2f}"
