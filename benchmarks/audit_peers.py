"""A black-box audit of other systems on the benchmarks' queries: samples of their answers on neighbouring databases.

Each system is queried through the adapter that also times it (`peers/`), with the epsilon, bounds and public keys of one query.
Each of 50 regions is a trial: people have rows in only one region, and in one of the databases every region has one more person.
One answer by region therefore contains 50 answers about neighbours, and the output for a region is bounded by epsilon alone if
people of other regions do not affect it. That is an assumption about the other system, so each finding is repeated on one pair of
databases that differ in one person (`confirmed`), which needs no such assumption.

Findings in other projects' software go to their maintainers before they go anywhere else: results are written to --out, which is
neither in the repository nor in a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.compare import DELTA, EPSILON, by_key
from benchmarks.data import COLUMNS, DAYS, FIRST_DAY, region_names, table_policy
from benchmarks.errors import HEAVY
from benchmarks.peers.drive import Peer, Rows, Unusable, environment
from benchmarks.workload import Question
from dpsql.errors.exceptions import Error
from dpsql.session.session import open_session
from dpsql_audit.lower_bounds import bound_of_samples

QUESTIONS = HEAVY[:2]
ASKED, ASKED_AGAIN = 40, 1_000
"""Answers per side: in the first round, each for 50 regions, and on the single pair that confirms a finding."""
ALPHA = 1e-6
"""The probability that one lower bound is too high by chance."""
UPPER, MAX_ROWS, ROWS = 500, 6, 1_000
"""Bounds given to every system. ROWS: an upper bound on the number of rows of each database, which some systems require."""
USUAL = (120.0, 250.0, 30.0)
"""Amounts of the three people in every region."""
NOT_A_NUMBER = 1e300
"""Its negative stands for NULL, NaN and a region that is not shown, below all numbers; it also caps infinity, above all
numbers."""
Say = Callable[[str], None]
Ask = Callable[[Question], Rows]


@dataclass(frozen=True)
class Newcomer:
    """The additional person: the amounts of their rows."""

    name: str
    amounts: tuple[float | None, ...]


NEWCOMERS = {
    "row": (
        Newcomer("a row at the upper bound", (UPPER,)), Newcomer("a row far above the bounds", (1e9,)),
        Newcomer("a row far below the bounds", (-1e9,)), Newcomer("a row of NaN", (math.nan,)),
        Newcomer("an infinite row", (math.inf,)), Newcomer("a row of NULL", (None,)),
    ),
    "user": (
        Newcomer("max_rows rows at the upper bound", (UPPER,) * MAX_ROWS),
        Newcomer("three times max_rows rows", (UPPER,) * (3 * MAX_ROWS)),
        Newcomer("max_rows rows far above the bounds", (1e9,) * MAX_ROWS),
        Newcomer("max_rows rows far below the bounds", (-1e9,) * MAX_ROWS),
        Newcomer("rows of NaN", (math.nan,) * MAX_ROWS), Newcomer("infinite rows", (math.inf,) * MAX_ROWS),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Audited:
    """One system, query and person. `bound`: the true epsilon is at least this, except with probability `ALPHA`; `confirmed`: the
    same for one pair of databases that differ in one person, None without a finding. `outcome`: "answered"; the two outcomes,
    where only one side is answered (then `found`: this depends on the person); or the reason why there is no number."""

    system: str
    level: str
    question: str
    newcomer: str
    claimed: float
    found: bool
    outcome: str
    bound: float = 0.0
    trials: int = 0
    confirmed: float | None = None
    reproduced: str = ""


def audit(folder: Path, environments: Path, names: Sequence[str], say: Say, asked: int = ASKED) -> list[dict[str, Any]]:
    """Return one record for each system (dpsql first), privacy unit, query and newcomer."""
    records = []
    for system in ("dpsql", *names):
        for level, newcomers in NEWCOMERS.items():
            try:
                for record in _of_system(folder, environments, system, level, newcomers, asked):
                    records.append(asdict(record))
                    say(line(record))
            except Unusable as reason:
                records.append(asdict(Audited(system, level, "", "", EPSILON, False, str(reason))))
                say(f"{system}, {level}: {reason}")
    return records


def line(record: Audited) -> str:
    """Return a description of one record."""
    head = f"{record.system}, privacy unit {record.level}, {record.question}, {record.newcomer}: "
    if not record.trials:
        return f"{head}{'FOUND ' if record.found else ''}{record.outcome}"
    again = "" if record.confirmed is None else f", over one pair of databases {record.confirmed:.2f}"
    found = "FOUND " if record.found else ""
    return f"{head}{found}epsilon at least {record.bound:.2f} of {record.claimed:g} claimed{again}"


def _of_system(
    folder: Path, environments: Path, system: str, level: str, newcomers: Sequence[Newcomer], asked: int
) -> list[Audited]:
    base = _answers(folder, environments, system, level, None, asked)
    records = []
    for newcomer in newcomers:
        others = _answers(folder, environments, system, level, newcomer, asked)
        for question in QUESTIONS:
            head = (system, level, question.title, newcomer.name, EPSILON)
            left, right = base[question.name], others[question.name]
            if isinstance(left, str) or isinstance(right, str):
                differ = isinstance(left, str) != isinstance(right, str)
                words = " / ".join(side if isinstance(side, str) else "answered" for side in (left, right))
                repro = reproduction(level, newcomer, question) if differ else ""
                records.append(Audited(*head, found=differ, outcome=words, reproduced=repro))
                continue
            bound = bound_of_samples(right, left, DELTA, ALPHA)
            confirmed = None
            if bound.epsilon > EPSILON:
                confirmed = _confirmed(folder, environments, system, level, newcomer, question)
            found = confirmed is not None and confirmed > EPSILON
            repro = reproduction(level, newcomer, question) if found else ""
            records.append(Audited(*head, found, "answered", bound.epsilon, bound.trials, confirmed, repro))
    return records


def _confirmed(
    folder: Path, environments: Path, system: str, level: str, newcomer: Newcomer, question: Question
) -> float:
    """Return the lower bound from the first region's numbers on two databases that differ in one person."""
    sides = []
    for person in (newcomer, None):
        answers = _answers(folder, environments, system, level, person, ASKED_AGAIN, (question,), alone=True)
        side = answers[question.name]
        if isinstance(side, str):
            return 0.0
        sides.append(side[:: len(region_names())])
    return bound_of_samples(sides[0], sides[1], DELTA, ALPHA).epsilon


def _answers(
    folder: Path,
    environments: Path,
    system: str,
    level: str,
    newcomer: Newcomer | None,
    asked: int,
    questions: Sequence[Question] = QUESTIONS,
    alone: bool = False,
) -> dict[str, list[float] | str]:
    """Return for each query the numbers of all regions in order, answer by answer, or the reason why there are none. `alone`: the
    newcomer is in the first region only."""
    data = folder / "audited.parquet"
    pq.write_table(database(newcomer, region_names()[: 1 if alone else None]), data)
    answers: dict[str, list[float] | str] = {}
    with ExitStack() as stack:
        ask = _system(stack, folder, environments, system, level, data)
        for question in questions:
            numbers: list[float] = []
            try:
                for _ in range(asked):
                    numbers += numbers_of(ask(question))
            except Unusable as reason:
                answers[question.name] = str(reason)
            else:
                answers[question.name] = numbers
    return answers


def _system(stack: ExitStack, folder: Path, environments: Path, system: str, level: str, data: Path) -> Ask:
    """Return the function that queries a system over `data`. Raises Unusable."""
    if system == "dpsql":
        return _own(stack, folder, level, data)
    facts = {
        "data": str(data), "level": level, "rows": ROWS, "epsilon": EPSILON, "delta": DELTA,
        "max_rows": MAX_ROWS if level == "user" else 1, "upper": UPPER, "private": False, "rho": None, "quantiles": {},
        "regions": region_names(), "days": [str(FIRST_DAY + timedelta(days=day)) for day in range(DAYS)],
    }  # fmt: skip
    peer = stack.enter_context(Peer(system, environment(system, environments), facts))
    return lambda question: peer.ask(question.name).rows


def _own(stack: ExitStack, folder: Path, level: str, data: Path) -> Ask:
    most = MAX_ROWS if level == "user" else None
    policy = table_policy(
        folder, f"audited-{level}", "purchases", data, COLUMNS, most, accountant="pure", epsilon=EPSILON
    )
    session = stack.enter_context(
        open_session(policy, create_ledger=not list(folder.glob(f"audited-{level}-ledger.db")))
    )
    session.execute("SET dp.reuse = off")

    def ask(question: Question) -> Rows:
        try:
            return by_key(session.execute(question.sql).table)
        except Error as error:
            raise Unusable(error.slug) from None

    return ask


def database(newcomer: Newcomer | None, regions: Sequence[str]) -> pa.Table:
    """Return a table with three people in every region, one row each, and one more in each of `regions`, with all rows of
    `newcomer`."""
    rows: list[tuple[int, str, float | None]] = []
    for number, region in enumerate(region_names()):
        rows += [(10 * number + person, region, amount) for person, amount in enumerate(USUAL)]
        if newcomer is not None and region in regions:
            rows += [(10 * number + 9, region, amount) for amount in newcomer.amounts]
    users, names, amounts = zip(*rows, strict=True)
    count = len(rows)
    return pa.table(
        {
            "user_id": pa.array(users, pa.int64()),
            "region": pa.array(names),
            "day": pa.array([FIRST_DAY] * count, pa.date32()),
            "merchant": pa.array(["merchant-00000"] * count),
            "amount": pa.array(amounts, pa.float64()),
            "items": pa.array([1] * count, pa.int32()),
        }
    )


def numbers_of(rows: Rows) -> list[float]:
    """Return the number of each region, with non-finite and missing numbers moved to the ends of the range."""
    numbers = []
    for region in region_names():
        (value, *_) = rows.get((region,), [None])
        if value is None or math.isnan(value):
            numbers.append(-NOT_A_NUMBER)
        else:
            numbers.append(min(max(value, -NOT_A_NUMBER / 10), NOT_A_NUMBER))
    return numbers


def reproduction(level: str, newcomer: Newcomer, question: Question) -> str:
    """Return instructions to reproduce a finding."""
    unit = (
        "each row is a privacy unit" if level == "row" else f"user_id is the privacy unit, at most {MAX_ROWS} rows each"
    )
    regions = region_names()
    people = ", ".join(map(str, USUAL))
    return (
        f"table purchases(user_id, region, amount); {unit}; amount within [0, {UPPER}]; the {len(regions)} regions are known. In "
        f"each are three users with one row of {people}. Neighbour: one user more, in {regions[0]}, with rows of amount "
        f"{list(newcomer.amounts)}. Question: {question.sql}, epsilon {EPSILON:g}, delta {DELTA:g}, asked {ASKED_AGAIN} times of "
        "each."
    )


def as_markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of all audited cases, and the findings with instructions to reproduce them."""
    lines = [
        "# Other systems, audited from outside",
        "",
        f"At least: no smaller epsilon is true, but for a probability of {ALPHA:g}. The maintainers come first.",
        "",
        "| system | privacy unit | question | one person more | claimed | at least | over one pair | outcome |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for record in records:
        again = "" if record["confirmed"] is None else f"{record['confirmed']:.2f}"
        cells = [record["system"], record["level"], record["question"], record["newcomer"], f"{record['claimed']:g}"]
        cells += [f"{record['bound']:.2f}" if record["trials"] else "", again]
        lines.append(f"| {' | '.join([*cells, ('FOUND: ' if record['found'] else '') + record['outcome']])} |")
    lines += ["", "## Findings", ""]
    found = [record for record in records if record["found"]]
    lines += [f"- {record['system']}: {record['reproduced']}" for record in found] or ["None."]
    return "\n".join(lines) + "\n"
