"""Many simultaneous clients in one process: queries per second compared with plain DuckDB, in alternating rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

from benchmarks.clock import timed
from benchmarks.data import build, write_policy
from benchmarks.measure import another, opened, plain
from dpsql.session.session import Session, open_session

ROWS = 1_000_000
TARGET = 0.7
TITLES = {"row": "as it is", "row_copy": "prepared"}
QUESTIONS = (
    "SELECT sum(amount) AS total FROM purchases WHERE items < {literal}",
    "SELECT avg(amount) AS mean FROM purchases WHERE items < {literal}",
    "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases "
    "WHERE items < {literal} GROUP BY region",
    "SELECT region, count(*) AS n FROM purchases WHERE items < {literal} GROUP BY region",
)


@dataclass(frozen=True)
class Clients:
    """Queries per second of `clients` simultaneous clients (median round); `share` of plain DuckDB's rate in the same round;
    `cpu`: processor milliseconds per query."""

    way: str
    clients: int
    per_second: float
    share: float
    cpu: float


def concurrent(
    folder: Path, clients: int, rounds: int, each: int, say: Callable[[str], None], rows: int = ROWS
) -> list[Clients]:
    """Measure plain DuckDB (a cursor for each client); dpsql, with and without `dpsql prepare`, charged for a new literal (`new
    text`) and for texts planned before (`again`); and dpsql answering from the store."""
    data = build(folder, rows)
    literals = count(time.time_ns())
    fixed = [next(literals) for _ in QUESTIONS]
    with ExitStack() as stack:
        raw = stack.enter_context(plain(data, folder))
        sessions = stack.enter_context(opened(folder, data, ("row", "row_copy"), rows, []))
        keeping = stack.enter_context(open_session(write_policy(folder, data, "row")))

        def of_raw(at: int) -> Callable[[], None]:
            return partial(_plainly, another(raw), [_question(at + n, next(literals)) for n in range(each)])

        def new(session: Session, at: int) -> Callable[[], None]:
            return partial(_privately, session, [_question(at + n, next(literals)) for n in range(each)])

        def again(session: Session, at: int) -> Callable[[], None]:
            return partial(_privately, session, [_question(at + n, fixed[(at + n) % len(fixed)]) for n in range(each)])

        ways: dict[str, Callable[[int], Callable[[], None]]] = {"raw": of_raw}
        for way, session in sessions.items():
            ways |= {
                f"{TITLES[way]}: new text": partial(new, session),
                f"{TITLES[way]}: again": partial(again, session),
            }
        ways["stored"] = partial(again, keeping)
        for make in ways.values():
            _round(make, len(QUESTIONS))
        runs: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, make in ways.items():
                sample = timed(partial(_round, make, clients))
                asked = clients * each
                runs[way].append((asked * 1000 / sample.wall, sample.cpu / asked))
    return [_told(way, clients, runs, say) for way in runs]


def _told(way: str, clients: int, runs: dict[str, list[tuple[float, float]]], say: Callable[[str], None]) -> Clients:
    share = statistics.median(mine[0] / base[0] for mine, base in zip(runs[way], runs["raw"], strict=True))
    speed, cpu = (statistics.median(pair[at] for pair in runs[way]) for at in (0, 1))
    say(f"{clients} clients, {way}: {speed:.1f} questions a second, {share:.2f} of raw")
    return Clients(way, clients, speed, share, cpu)


def _round(make: Callable[[int], Callable[[], None]], clients: int) -> None:
    works = [make(at) for at in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def _question(at: int, literal: int) -> str:
    return QUESTIONS[at % len(QUESTIONS)].format(literal=literal)


def _plainly(cursor: object, questions: list[str]) -> None:
    for sql in questions:
        cursor.sql(sql).to_arrow_table()  # type: ignore[attr-defined]


def _privately(session: Session, questions: list[str]) -> None:
    for sql in questions:
        _ = session.execute(sql).table
