"""Coverage of error bars: how often they contain the exact answer, for every class of output, through the public API with real
noise.

A bar states 95 % (50 %, 99 %); this counts the share of bars that contain the exact answer, over groups and repeated
measurements. The exact answer is plain DuckDB's for the same text: no value is outside its bounds, no row is dropped. Bars of one
answer share their noise, so the error of a share depends on the number of answers, not of bars (`Covered.error`).
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from math import lgamma, sqrt
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks.coverage_questions import QUESTIONS, SETTINGS, Question, Setting, write_data, write_policy
from dpsql.release.error_bars import bars
from dpsql.release.release import Release
from dpsql.release.sandbox import shared_sandbox
from dpsql.session.session import Session, open_session

CONFIDENCES = (0.5, 0.95, 0.99)
ENOUGH = 0.004
"""Standard error of the share of 95 % bars at which counting stops."""
_LEDGERS = count()
LEAST_ANSWERS, MOST_ANSWERS = 30, 2_000
MOST_WITHOUT_ANY = 100
"""Maximum number of answers if none of them shows a row."""
LEAST_OF_MANY, LEAST_BARS = 3, 600
"""Sufficient number of answers with many rows, and the number of bars in `LEAST_ANSWERS` answers with few rows."""
EVERY = 3
"""Of answers with a single row, one in this many is counted at all confidences, the others only at 95 %."""


@dataclass
class Covered:
    """Counts of bars of one class by confidence: for each answer, its bars and those that contain the exact answer. `unknown`: 95
    % bars without information (without ends, or as wide as the bounds allow)."""

    unknown: int = 0
    answers: dict[float, list[tuple[int, int]]] = field(default_factory=lambda: {one: [] for one in CONFIDENCES})

    @property
    def bars(self) -> int:
        """Return the number of 95 % bars."""
        return sum(number for number, _ in self.answers[0.95])

    def share(self, confidence: float) -> float:
        """Return the share of bars that contain the exact answer."""
        return sum(held for _, held in self.answers[confidence]) / max(1, sum(n for n, _ in self.answers[confidence]))

    @property
    def error(self) -> float:
        """Return the standard error of the share at 95 %: that of a ratio of sums over independent answers (Cochran 1977, 2.11),
        but at least that of independent bars with four added to the count (Agresti and Coull 1998)."""
        answers, number, share = self.answers[0.95], self.bars, self.share(0.95)
        added = (share * number + 2) / (number + 4)
        binomial = sqrt(added * (1 - added) / (number + 4))
        if len(answers) < 2 or not number:
            return binomial
        residues = sum((held - share * bars) ** 2 for bars, held in answers)
        return max(binomial, sqrt(residues * len(answers) / (len(answers) - 1)) / number)

    def settled(self, wanted: int) -> bool:
        """Return whether enough bars are counted: `wanted`, or fewer if their share is known precisely."""
        answers = len(self.answers[0.95])
        enough = self.bars >= wanted or (self.bars > 0 and self.error <= ENOUGH)
        least = max(LEAST_OF_MANY, min(LEAST_ANSWERS, LEAST_BARS * answers // max(1, self.bars)))
        most = MOST_ANSWERS if self.bars else MOST_WITHOUT_ANY
        return answers >= most or (answers >= least and enough)


def cover(folder: Path, setting: Setting, question: Question, wanted: int) -> dict[str, Covered]:
    """Run `question` until every class has `wanted` bars, or enough; the data of `setting` are in `folder`."""
    covered = {name: Covered() for name in question.classes}
    sql = setting.filled(question.sql)
    with duckdb.connect(str(folder / f"{setting.name}.duckdb"), read_only=True) as raw:
        rows = raw.sql(setting.filled(question.exact) or sql).fetchall()
    truth = {tuple(row[: question.keys]): row[question.keys :] for row in rows}
    for number, release in enumerate(_releases(folder, setting, question, sql)):
        confidences = CONFIDENCES if question.keys or number % EVERY == 0 else (0.95,)
        _count(list(covered.values()), release, question, truth, confidences)
        if all(one.settled(wanted) for one in covered.values()) or _large(setting):
            return covered
    raise AssertionError("releases never end")


def _large(setting: Setting) -> bool:
    """Return whether one answer has enough bars."""
    return setting.groups > 10_000


def _releases(folder: Path, setting: Setting, question: Question, sql: str) -> Iterator[Release]:
    """Yield answers with independent noise. A derived answer needs a store that contains only the answer to `question.before`."""
    while question.before:
        with _session(folder, setting) as session:
            session.execute("SET dp.reuse = derive")
            session.execute(setting.filled(question.before))
            release = session.execute(sql)
            assert isinstance(release, Release) and release.reused, "the answer was measured, not derived"
            yield release
    with _session(folder, setting) as session:
        for option in ("dp.reuse = off", *question.options):
            session.execute(f"SET {setting.filled(option)}")
        while True:
            release = session.execute(sql)
            assert isinstance(release, Release)
            yield release


@contextmanager
def _session(folder: Path, setting: Setting) -> Iterator[Session]:
    """Open a session with a new ledger, so that no query meets an exhausted budget or a stored answer."""
    ledger = f"-{os.getpid()}-{next(_LEDGERS)}"
    with open_session(write_policy(folder, setting, ledger), create_ledger=True) as session:
        yield session


def _count(
    covered: Sequence[Covered],
    release: Release,
    question: Question,
    truth: dict[Any, tuple[Any, ...]],
    confidences: Sequence[float],
) -> None:
    keys = [row[: question.keys] for row in release.rows()]
    for confidence in confidences:
        computed = bars(release.sandbox or shared_sandbox(), replace(release.answered, confidence=confidence))
        for position, counted in enumerate(covered):
            exact = np.array([truth[key][position] if key in truth else np.nan for key in keys], dtype=float)
            there, column = np.isfinite(exact), question.keys + position
            low, high = (
                np.asarray(part.column(column).to_numpy(), dtype=float) for part in (computed.low, computed.high)
            )
            slack = 1e-9 * np.maximum(1, np.abs(exact))
            held = there & (~np.isfinite(low) | ((low - slack <= exact) & (exact <= high + slack)))
            counted.answers[confidence].append((int(there.sum()), int(held.sum())))
            if confidence == 0.95:
                nothing = np.asarray(computed.unknown.column(column).to_numpy(), dtype=bool)
                counted.unknown += int((there & (nothing | ~np.isfinite(low))).sum())


def coverage(
    folder: Path, repeat: int, say: Callable[[str], None], settings: Sequence[Setting] = SETTINGS
) -> list[dict[str, Any]]:
    """Run every query in each of `settings`, on all cores: 100 bars of each class per unit of `repeat`, or fewer if the share at
    95 % is known within half a point before that."""
    work = [(setting, question) for setting in settings for question in QUESTIONS
            if question.when(setting) and (not setting.classes or setting.classes & {*question.classes})]  # fmt: skip
    for setting in settings:
        write_data(folder, setting)
    rows: dict[int, list[dict[str, Any]]] = {}
    # Do not fork: the engine runs threads, and a copy of such a process may end at any moment.
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(_facts, folder, *pair, 100 * repeat): place for place, pair in enumerate(work)}
        for done in as_completed(waiting):
            rows[waiting[done]] = done.result()
            for row in done.result():
                say(f"{row['setting']}: {row['question']} {row['shares']} of {row['bars']}")
    return [row for place in sorted(rows) for row in rows[place]]


def _facts(folder: Path, setting: Setting, question: Question, wanted: int) -> list[dict[str, Any]]:
    return [
        {
            "setting": setting.label, "question": name, "wide": question.wide, "narrow": question.narrow, "bars": counted.bars,
            "shares": [counted.share(confidence) for confidence in CONFIDENCES], "error": counted.error,
            "unknown": counted.unknown / max(1, counted.bars), "facts": setting.facts,
        }
        for name, counted in cover(folder, setting, question, wanted).items()
    ]  # fmt: skip


def surely(held: int, bars: int, confidence: float = 0.99) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson (1934) for a probability, given that `held` of `bars` independent bars held."""
    tail = (1 - confidence) / 2
    low = 0.0 if held == 0 else _where(lambda share: _at_least(held, bars, share) >= tail)
    high = 1.0 if held == bars else _where(lambda share: _at_least(held + 1, bars, share) > 1 - tail)
    return low, high


def _where(reached: Callable[[float], bool]) -> float:
    """Return the smallest share in [0, 1] that satisfies a monotone condition."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _at_least(held: int, bars: int, share: float) -> float:
    """Return the probability that at least `held` of `bars` hold, each with probability `share`."""
    numbers = np.arange(held, bars + 1)
    ways = lgamma(bars + 1) - _log_factorials(bars)[numbers] - _log_factorials(bars)[bars - numbers]
    return float(np.exp(ways + numbers * np.log(share) + (bars - numbers) * np.log1p(-share)).sum())


@cache
def _log_factorials(most: int) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
