"""Errors of dpsql compared with other systems: the same data, epsilon, delta, privacy unit, bounds and public keys.

This part measures answers and not time, so it may run on a busy machine.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np

from benchmarks.accuracy import build_heavy
from benchmarks.compare import DELTA, EPSILON, by_key
from benchmarks.data import COLUMNS, DAYS, FIRST_DAY, MAX_ROWS, build_parquet, region_names, table_policy
from benchmarks.order_statistics import (
    MOST,
    ORDER,
    REGIONS,
    ROWS_OF_A_USER,
    SHARES,
    STEPS,
    build_ranked,
    ratio_of_means,
    rows_off,
    sorted_values,
)
from benchmarks.order_statistics import QUESTIONS as QUANTILES
from benchmarks.peers.drive import QUANTILES_ALONE, WITHOUT_QUANTILES, Peer, Rows, Unusable, environment
from benchmarks.peers.marks import CAPPED_BY_REGION, note_of
from benchmarks.truth import bounded, exact
from benchmarks.workload import WORKLOAD, Question
from dpsql.errors.exceptions import Refusal
from dpsql.privacy.accounting import epsilon_to_rho
from dpsql.session.session import Session, open_session

CELLS = 2_000
"""Target number of errors per column, groups times repeats. A slow system contributes as many as fit into its time, but at least
the minimum number of repeats."""
LEAST_REPEATS = 4
SECONDS = 60.0
CONFIDENCE = 0.99
REPLICATES = 20_000
HEAVY_ROWS = 320
ROWS_OF_REGION = 2
"""A user's rows per region, for systems that must bound keys and rows per key instead of all rows together."""
PRIVATE = Question("Q9", "COUNT by 50 private regions", "SELECT region, count(*) AS n FROM purchases GROUP BY region")
HEAVY = (
    Question("Q10", "COUNT by region", "SELECT region, count(*) AS n FROM purchases GROUP BY region"),
    Question("Q11", "SUM by region", "SELECT region, sum(amount) AS total FROM purchases GROUP BY region"),
    Question("Q12", "AVG by region", "SELECT region, avg(amount) AS mean FROM purchases GROUP BY region"),
)
ANSWERED = tuple(question for question in WORKLOAD if question.name != "Q8")
Say = Callable[[str], None]
_LEDGERS = count()


@dataclass(frozen=True)
class Case:
    """Data, privacy unit and noise of a comparison. `max_rows`: None if every row is a privacy unit.

    `private`: no system receives the regions. `gaussian`: every system that supports it uses Gaussian noise, and dpsql reaches
    (EPSILON, DELTA) through zCDP. `totals`: dpsql also runs with these bounds on a user's total. `rows_of_region`: dpsql also
    runs with this bound on a user's rows per region, for comparison with the systems of CAPPED_BY_REGION, which have such a
    bound: under Gaussian noise it bounds a user more tightly (in L2) than `max_rows` alone. `ranked`: order statistics of
    separate data, in which no one has more than `max_rows` rows.
    """

    name: str
    max_rows: int | None
    questions: tuple[Question, ...]
    upper: int = 500
    private: bool = False
    gaussian: bool = False
    heavy: bool = False
    totals: tuple[int, ...] = ()
    rows_of_region: int | None = None
    ranked: bool = False
    epsilon: float = EPSILON

    @property
    def regions(self) -> list[str]:
        """Return all regions, which systems receive unless they are private."""
        return region_names()[: REGIONS if self.ranked else None]


def _of_ranks(unit: str, max_rows: int | None, epsilon: float) -> Case:
    return Case(f"{unit}, {ORDER}, epsilon {epsilon:g}", max_rows, QUANTILES, ranked=True, epsilon=epsilon)


CASES = (
    Case("row", None, ANSWERED),
    Case("user", MAX_ROWS, ANSWERED),
    Case("row, Gaussian noise", None, ANSWERED[:6], gaussian=True),
    Case("user, Gaussian noise", MAX_ROWS, ANSWERED[:6], gaussian=True, rows_of_region=ROWS_OF_REGION),
    Case("row, private regions", None, (PRIVATE,), private=True),
    Case("user, private regions", MAX_ROWS, (PRIVATE,), private=True),
    Case("user, heavy tail", HEAVY_ROWS, HEAVY, upper=100, heavy=True, totals=(10_000,)),
    *(_of_ranks("row", None, epsilon) for epsilon in (0.1, 1.0)),
    *(_of_ranks("user", ROWS_OF_A_USER, epsilon) for epsilon in (0.1, 1.0)),
)


@dataclass(frozen=True)
class Error:
    """One column of one query by one system.

    `error`: median over groups and repeats of |answer - exact| / |exact|, exact over all rows; a group that is not shown has
    error 1. For order statistics (column `rows`), the mean share of a group's rows between the two. `noise`: the same against the
    exact answer expected after bounding. `bias`: median of the signed relative error. `ratio`: error of dpsql (with the same
    caps, see `twin_of`) divided by this one, with its interval of `CONFIDENCE`; `noise_ratio` likewise. `note`: how the system
    deviates from the request. `problem`: the reason why there is no number.
    """

    case: str
    question: str
    title: str
    column: str
    system: str
    groups: int = 0
    repeats: int = 0
    error: float = 0.0
    noise: float = 0.0
    bias: float = 0.0
    ratio: tuple[float, float, float] | None = None
    noise_ratio: tuple[float, float, float] | None = None
    note: str = ""
    problem: str = ""


def compare_errors(
    folder: Path, environments: Path, names: Sequence[str], *, rows: int, seconds: float, say: Say,
    cells: int = CELLS, cases: Sequence[Case] = CASES,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return one record for each case, query, column and system. `seconds`: the time for each query and system."""
    found = []
    for case in cases:
        data = (
            _heavy_parquet(folder)
            if case.heavy
            else build_ranked(folder)
            if case.ranked
            else build_parquet(folder, rows)
        )
        with ExitStack() as stack:
            asked, problems = _systems(stack, folder, data, environments, names, case)
            for name, problem in problems.items():
                found.append(Error(case.name, "", "", "", name, problem=problem))
                say(f"{case.name} {name}: {problem}")
            for question in case.questions:
                for record in _question(case, question, data, asked, cells, seconds):
                    found.append(record)
                    say(_line(record))
    return [asdict(one) for one in found]


def answers_nothing(record: Mapping[str, Any]) -> bool:
    """Return whether at least half of a system's answers are empty: groups that it does not show, or zeros."""
    return not record["problem"] and record["error"] == 1.0


def behind(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str, str]]:
    """Return case, query, column and system where dpsql's error is significantly above the other's (the whole interval of the
    ratio is above 1), although the other does what was requested."""
    return [
        (record["case"], record["question"], record["column"], record["system"])
        for record in records
        if record["ratio"]
        and record["ratio"][1] > 1
        and not (record["note"] or answers_nothing(record))
        and not record["system"].startswith("dpsql")
    ]


def behind_twice(
    records: Sequence[Mapping[str, Any]], again: Callable[[Sequence[Case]], Sequence[Mapping[str, Any]]]
) -> list[tuple[str, str, str, str]]:
    """Return those of `behind` that recur when their queries are measured `again`: among many comparisons, some intervals miss by
    chance, but with CONFIDENCE hardly one misses twice."""
    first = behind(records)
    asked = {(case, question) for case, question, _, _ in first}
    cases = [
        replace(case, questions=tuple(q for q in case.questions if (case.name, q.name) in asked))
        for case in CASES
        if any(name == case.name for name, _ in asked)
    ]
    second = set(behind(again(cases))) if cases else set()
    return [cell for cell in first if cell in second]


Ask = Callable[[Question], Rows]


def _twin(case: Case) -> str | None:
    """Return the name of dpsql with a bound on a user's rows per region, or None if the case does not include it."""
    return None if case.rows_of_region is None else f"dpsql, {case.rows_of_region} rows of a region"


def twin_of(case: Case, system: str, question: str) -> str:
    """Return the name of the dpsql variant with the same caps as a system in a query."""
    twin = _twin(case)
    return twin if twin is not None and (system, question) in CAPPED_BY_REGION else "dpsql"


def _systems(
    stack: ExitStack, folder: Path, data: Path, environments: Path, names: Sequence[str], case: Case
) -> tuple[dict[str, Ask], dict[str, str]]:
    """Return the functions that query each system, dpsql first, and the reasons why others are unusable."""
    policy = _policy(folder, data, case)
    asked: dict[str, Ask] = {"dpsql": _own(stack, policy)}
    for total in case.totals:
        asked[f"dpsql, max_total {total:,}"] = _own(stack, policy, f"dp.max_total = {total}")
    if twin := _twin(case):
        asked[twin] = _own(stack, policy, f"dp.max_rows_per_group = {case.rows_of_region}")
    facts = {
        "data": str(data), "level": "row" if case.max_rows is None else "user", "epsilon": case.epsilon, "delta": DELTA,
        "rows": _count(data), "max_rows": case.max_rows or 1, "upper": case.upper, "private": case.private,
        "rho": float(_rho()) if case.gaussian else None, "regions": case.regions, "quantiles": SHARES if case.ranked else {},
        "cells": STEPS,
        "days": [str(FIRST_DAY + timedelta(days=at)) for at in range(DAYS)],
    }  # fmt: skip
    problems = {}
    for name in names:
        if name in (WITHOUT_QUANTILES if case.ranked else QUANTILES_ALONE):
            continue
        try:
            peer = stack.enter_context(Peer(name, environment(name, environments), facts))
            asked[name] = lambda question, peer=peer: peer.ask(question.name).rows
        except Unusable as reason:
            problems[name] = str(reason)
    return asked, problems


def _rho() -> Fraction:
    """Return the rho that gives (EPSILON, DELTA) without using any delta for selection."""
    return epsilon_to_rho(Fraction(EPSILON), Fraction(str(DELTA)))


def _policy(folder: Path, data: Path, case: Case) -> Path:
    columns = tuple(column.replace("upper: 500", f"upper: {case.upper}") for column in COLUMNS)
    if case.private:
        columns = tuple(_without_domain(column) for column in columns)
    if case.ranked:
        columns = tuple(column.replace(", ".join(region_names()), ", ".join(case.regions)) for column in columns)
    name = f"{data.stem}-{case.name.replace(', ', '-').replace(' ', '-').replace('.', '')}"
    name += f"-{os.getpid()}-{next(_LEDGERS)}"  # no run meets a budget that another has spent
    accountant = "zcdp" if case.gaussian else "pure"
    epsilon = math.sqrt(2 * float(_rho())) * (1 - 1e-9) if case.gaussian else case.epsilon
    return table_policy(
        folder, name, "purchases", data, columns, case.max_rows, accountant=accountant, epsilon=round(epsilon, 9)
    )


def _without_domain(column: str) -> str:
    return "region: {type: text, nullable: false}" if column.startswith("region:") else column


def _own(stack: ExitStack, policy: Path, option: str | None = None) -> Ask:
    session: Session = stack.enter_context(open_session(policy, create_ledger=True))
    session.execute("SET dp.reuse = off")
    if option is not None:
        session.execute(f"SET {option}")

    def ask(question: Question) -> Rows:
        try:
            return by_key(session.execute(question.sql).table)
        except Refusal as refusal:
            raise Unusable(refusal.slug) from None

    session.context.index.prepare()
    return ask


def _count(data: Path) -> int:
    with duckdb.connect() as connection:
        ((rows,),) = connection.execute(f"SELECT count(*) FROM read_parquet('{data}')").fetchall()
    return int(rows)


def _heavy_parquet(folder: Path) -> Path:
    """Write the users with heavy tails of `accuracy`, with the columns of the workload."""
    source = build_heavy(folder, 5_000)
    path = source.with_suffix(".parquet")
    if not path.exists():
        columns = (
            f"user_id, region, DATE '{FIRST_DAY}' AS day, 'merchant-00000' AS merchant, amount, 1::INTEGER AS items"
        )
        with duckdb.connect(str(source), read_only=True) as connection:
            connection.execute(f"COPY (SELECT {columns} FROM visits) TO '{path}' (FORMAT parquet)")
    return path


@dataclass(frozen=True)
class _Measure:
    """One column of a report: `signed` returns the error against the answer over all rows for each group and answer, `noise` the
    error against the answer expected after bounding; `ratio` compares absolute errors of two systems, and `middle` is their mean
    or median."""

    column: str
    signed: Callable[[Sequence[Rows]], np.ndarray]
    noise: Callable[[Sequence[Rows]], np.ndarray]
    ratio: Callable[[np.ndarray, np.ndarray], tuple[float, float, float]]
    middle: Callable[[np.ndarray], Any] = np.median


def _measures(case: Case, question: Question, data: Path) -> tuple[int, list[_Measure]]:
    """Return the number of groups of a query, and the measures of its answers."""
    truth, columns = exact(data, question)
    random = np.random.default_rng(0)
    of_medians = partial(ratio, random=random)
    if case.ranked:
        values = partial(mean_relative, truth, columns=len(columns))
        off = partial(rows_off, sorted_values(data, question), question)
        of_means = partial(ratio_of_means, deviations=NormalDist().inv_cdf((1 + CONFIDENCE) / 2))
        return len(truth), [
            _Measure("value", values, values, of_medians), _Measure("rows", off, off, of_means, np.mean)
        ]  # fmt: skip
    expected = bounded(data, question, case.max_rows, case.upper)
    return len(truth), [
        _Measure(column, partial(relative, truth, at=at), partial(relative, expected, at=at), of_medians)
        for at, column in enumerate(columns)
    ]


def _question(
    case: Case, question: Question, data: Path, asked: dict[str, Ask], cells: int, seconds: float
) -> list[Error]:
    """Measure all systems on one query."""
    groups, measures = _measures(case, question, data)
    repeats = max(LEAST_REPEATS, math.ceil(cells / groups))
    answers: dict[str, list[Rows]] = {}
    problems: dict[str, str] = {}
    twin = _twin(case)
    if twin not in {twin_of(case, name, question.name) for name in asked}:
        asked = {name: ask for name, ask in asked.items() if name != twin}
    for name, ask in asked.items():
        try:
            answers[name] = _answers(partial(ask, question), repeats, seconds)
        except Unusable as reason:
            problems[name] = str(reason)
    found = []
    for measure in measures:
        for name in asked:
            head = (case.name, question.name, question.title, measure.column, name)
            if name in problems:
                found.append(Error(*head, problem=problems[name]))
                continue
            signed, noise = measure.signed(answers[name]), measure.noise(answers[name])
            ratios = [None, None]
            if name != "dpsql":
                same = answers[twin_of(case, name, question.name)]
                own = [np.abs(error(same)) for error in (measure.signed, measure.noise)]
                ratios = [measure.ratio(own[0], np.abs(signed)), measure.ratio(own[1], np.abs(noise))]
            middles = [float(measure.middle(some)) for some in (np.abs(signed), np.abs(noise), signed)]
            note = note_of(name, question.name, measure.column)
            found.append(Error(*head, groups, len(answers[name]), *middles, *ratios, note))
    return found


def _answers(ask: Callable[[], Rows], repeats: int, seconds: float) -> list[Rows]:
    """Return at most `repeats` answers within about `seconds`, but at least LEAST_REPEATS."""
    found: list[Rows] = []
    end = time.monotonic() + seconds
    while len(found) < LEAST_REPEATS or (len(found) < repeats and time.monotonic() < end):
        found.append(ask())
    return found


def relative(truth: Rows, answers: Sequence[Rows], at: int) -> np.ndarray:
    """Return (answer - truth) / |truth| of column `at` for every group and repeat; -1 if the group or number is missing."""
    found = []
    for rows in answers:
        for key, values in truth.items():
            exact_value = values[at]
            if exact_value:
                noisy = rows.get(key)
                given = None if noisy is None else noisy[at]
                there = given is not None and math.isfinite(given)
                found.append((given - exact_value) / abs(exact_value) if there else -1.0)
    return np.array(found)


def mean_relative(truth: Rows, answers: Sequence[Rows], columns: int) -> np.ndarray:
    """Return the mean over `columns` of |answer - truth| / |truth| for every group and repeat, with the sign of their sum."""
    each = np.array([relative(truth, answers, at) for at in range(columns)])
    return np.copysign(np.abs(each).mean(axis=0), each.sum(axis=0))


def ratio(own: np.ndarray, other: np.ndarray, random: np.random.Generator) -> tuple[float, float, float]:
    """Return the median of `own` divided by the median of `other`, and its percentile bootstrap interval.

    Noise is independent between cells and repeats, so cells are resampled individually. The median of a resample of n sorted
    values is the one at floor(n B), B ~ Beta(k, n + 1 - k), where k is the middle rank: the k-th smallest of n uniform numbers
    selects it. The whole bootstrap is then a draw of B (Maritz and Jarrett 1978).
    """
    tops, bottoms = (_resampled(values, random) for values in (own, other))
    ends = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    low, high = np.quantile(_quotient(tops, bottoms), ends, method="inverted_cdf")
    middle = _quotient(np.median(own, keepdims=True), np.median(other, keepdims=True))
    return float(middle[0]), float(low), float(high)


def _resampled(values: np.ndarray, random: np.random.Generator) -> np.ndarray:
    rank = (values.size + 1) // 2
    picked = random.beta(rank, values.size + 1 - rank, REPLICATES) * values.size
    return np.asarray(np.sort(values)[np.minimum(picked.astype(np.int64), values.size - 1)])


def _quotient(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Return 1 where both are 0 (no error on either side), and MOST where only the other has no error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bottom == 0, np.where(top == 0, 1.0, MOST), np.minimum(top / bottom, MOST))


def _line(one: Error) -> str:
    head = f"{one.case} {one.question} {one.column} {one.system}"
    if one.problem:
        return f"{head}: {one.problem}"
    beside = "" if one.ratio is None else f", dpsql to it {one.ratio[0]:.2f} [{one.ratio[1]:.2f}, {one.ratio[2]:.2f}]"
    return f"{head}: {one.error:.3%} (noise {one.noise:.3%}, bias {one.bias:+.3%}){beside}"
