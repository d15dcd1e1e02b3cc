"""Timing both sides of a question, in turn, so that whatever else the machine does falls on both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from benchmarks.data import build, write_policy
from benchmarks.workload import Question
from dpsql.errors import Refusal
from dpsql.session import Session, open_session


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one question at one size and level: medians of the repeats, and the median of their ratios.

    `refused` is the slug of a question that dpsql does not answer; the numbers of dpsql are 0 then.
    """

    question: str
    title: str
    level: str
    rows: int
    groups: int
    raw: float
    private: float
    ratio: float
    refused: str = ""


def run(
    folder: Path,
    questions: Sequence[Question],
    *,
    sizes: Sequence[int],
    levels: Sequence[str],
    repeat: int,
    say: Callable[[str], None],
) -> list[Timing]:
    """Every question at every size and level; stored releases are off, so that each answer is charged and computed."""
    found = []
    for rows in sizes:
        database = build(folder, rows)
        for level in levels:
            policy = write_policy(folder, database, level)
            raw = duckdb.connect(str(database), read_only=True)
            with raw, open_session(policy, create_ledger=True) as session:
                session.execute("SET dp.reuse = off")
                for question in questions:
                    timing = _timing(question, raw, session, level=level, rows=rows, repeat=repeat)
                    found.append(timing)
                    say(_line(timing))
    return found


def _timing(
    question: Question, raw: duckdb.DuckDBPyConnection, session: Session, *, level: str, rows: int, repeat: int
) -> Timing:
    def plain() -> pa.Table:
        return raw.sql(question.sql).to_arrow_table()

    def private() -> pa.Table:
        return session.execute(question.sql).table

    _milliseconds(plain)
    groups = plain().num_rows
    try:
        _milliseconds(private)
    except Refusal as refusal:
        return Timing(question.name, question.title, level, rows, groups, _milliseconds(plain), 0.0, 0.0, refusal.slug)
    pairs = [(_milliseconds(plain), _milliseconds(private)) for _ in range(repeat)]
    return Timing(
        question.name,
        question.title,
        level,
        rows,
        groups,
        statistics.median(one for one, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(other / one for one, other in pairs),
    )


def _milliseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def _line(timing: Timing) -> str:
    head = f"{timing.rows:>12,} rows, {timing.level:<4} {timing.question}"
    if timing.refused:
        return f"{head}: not answered ({timing.refused})"
    return f"{head}: raw {timing.raw:.1f} ms, dpsql {timing.private:.1f} ms, ratio {timing.ratio:.2f}"
