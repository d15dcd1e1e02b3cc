"""dpsql compared with other systems: the same data, epsilon, delta, privacy unit and bound, alternating; time and error."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.clock import Sample, summary, timed
from benchmarks.data import DAYS, FIRST_DAY, MAX_ROWS, build, build_parquet, region_names, write_policy
from benchmarks.measure import plain
from benchmarks.peers.drive import Peer, Rows, Unusable, environment
from benchmarks.workload import WORKLOAD, Question
from dpsql.errors.exceptions import Refusal
from dpsql.session.session import Session, open_session

LEVELS = {"row": "row_copy", "user": "copy"}
"""Privacy unit -> dpsql's entry of WAYS: prepared, because the other systems have loaded and converted their data."""
EPSILON, DELTA = 1.0, 1e-9
QUESTIONS = tuple(question for question in WORKLOAD if question.name != "Q8")


def compare(
    folder: Path, environments: Path, names: Sequence[str], *, rows: int, repeat: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return one record for each level, query and system: milliseconds, and median relative error of each column.

    The error is relative to the exact answer over all rows, so rows dropped by a bound count; a missing group has error 1.
    """
    data, copy = build(folder, rows), build_parquet(folder, rows)
    found = []
    for level, way in LEVELS.items():
        facts = {
            "data": str(copy), "level": level, "rows": rows, "epsilon": EPSILON, "delta": DELTA, "max_rows": MAX_ROWS,
            "upper": 500, "private": False, "quantiles": {},
            "regions": region_names(), "days": [str(FIRST_DAY + timedelta(days=at)) for at in range(DAYS)],
        }  # fmt: skip
        with ExitStack() as stack:
            raw = stack.enter_context(plain(data, folder))
            policy = write_policy(folder, data, way, "pure")
            session = stack.enter_context(open_session(policy, create_ledger=True))
            session.execute("SET dp.reuse = off")
            session.context.index.prepare()
            peers, problems = _started(stack, environments, names, facts)
            for name, problem in problems.items():
                found.append({"level": level, "question": "", "system": name, "problem": problem})
                say(f"{level} {name}: {problem}")
            for question in QUESTIONS:
                for record in _question(question, raw, session, peers, repeat):
                    found.append({"level": level, **record})
                    say(f"{level} {question.name} {_words(record)}")
    return found


def _started(
    stack: ExitStack, environments: Path, names: Sequence[str], facts: dict[str, Any]
) -> tuple[list[Peer], dict[str, str]]:
    peers, problems = [], {}
    for name in names:
        try:
            peers.append(stack.enter_context(Peer(name, environment(name, environments), facts)))
        except Unusable as reason:
            problems[name] = str(reason)
    return peers, problems


def _question(
    question: Question, raw: Any, session: Session, peers: Sequence[Peer], repeat: int
) -> list[dict[str, Any]]:
    exact: Rows = {}
    samples: dict[str, list[Sample]] = {name: [] for name in ("raw", "dpsql", *(peer.name for peer in peers))}
    answers: dict[str, list[Rows]] = {name: [] for name in samples}
    problems: dict[str, str] = {}
    for at in range(repeat + 1):  # the first round warms caches and plans
        found: dict[str, tuple[Sample, Rows]] = {"raw": _own(lambda: raw.sql(question.sql).to_arrow_table())}
        try:
            found["dpsql"] = _own(lambda: session.execute(question.sql).table)
        except Refusal as refusal:
            problems["dpsql"] = refusal.slug
        for peer in peers:
            if peer.name in problems:
                continue
            try:
                answer = peer.ask(question.name)
                found[peer.name] = (answer.sample, answer.rows)
            except Unusable as reason:
                problems[peer.name] = str(reason)
        exact = found["raw"][1]
        for name, (sample, rows) in found.items():
            if at > 0:
                samples[name].append(sample)
                answers[name].append(rows)
    records = []
    for name, taken in samples.items():
        record: dict[str, Any] = {"question": question.name, "title": question.title, "system": name}
        if name in problems:
            record["problem"] = problems[name]
        else:
            record |= asdict(summary(taken))
            record["errors"] = [] if name == "raw" else errors(exact, answers[name])
        records.append(record)
    return records


def _own(work: Callable[[], Any]) -> tuple[Sample, Rows]:
    tables: list[Any] = []
    sample = timed(lambda: tables.append(work()))
    return sample, by_key(tables[0])


def by_key(table: Any) -> Rows:
    """Return the rows of an Arrow table: texts and dates form the key, numbers the values."""
    keys = [at for at, name in enumerate(table.column_names) if name in ("region", "day", "merchant")]
    values = [at for at in range(table.num_columns) if at not in keys]
    columns = [column.to_pylist() for column in table.columns]
    return {
        tuple(str(columns[at][row]) for at in keys): [_number(columns[at][row]) for at in values]
        for row in range(table.num_rows)
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def errors(exact: Rows, answers: Sequence[Rows]) -> list[float]:
    """Return for each column the median over groups and repeats of |answer - exact| / |exact|."""
    width = len(next(iter(exact.values())))
    found: list[list[float]] = [[] for _ in range(width)]
    for rows in answers:
        for key, truth in exact.items():
            noisy = rows.get(key)
            for at, value in enumerate(truth):
                if value:
                    given = None if noisy is None else noisy[at]
                    wrong = 1.0 if given is None or not math.isfinite(given) else abs(given - value) / abs(value)
                    found[at].append(wrong)
    return [statistics.median(column) if column else 0.0 for column in found]


def _words(record: dict[str, Any]) -> str:
    if "problem" in record:
        return f"{record['system']}: {record['problem']}"
    told = ", ".join(f"{error:.2%}" for error in record["errors"])
    return f"{record['system']}: {record['median']:.0f} ms, error {told or '-'}"
