"""What `dpsql check` finds: the policy's problems with their lines, the source's structure, the ledger's state."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.errors.exceptions import Error, Exit
from dpsql.ledger import open_ledger
from dpsql.policy import Policy, load_policy, policy_problems
from dpsql.policy.load import policy_text
from dpsql.session.opening import source_fingerprint

if TYPE_CHECKING:
    from dpsql.engine.csv_lines import Broken


@dataclass
class Findings:
    """`problems` and `notes` are lines for people; `status` is 0 only when there is no problem."""

    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    status: Exit = Exit.DONE

    def fail(self, error: Error) -> None:
        """Note an error as a problem."""
        self.problems.append(f"{error.message}\n  {error.hint}" if error.hint else error.message)
        self.status = error.exit_status


def check_policy_file(
    place: Path, *, create_ledger: bool = False, change_unit: bool = False, second_budget: str | None = None
) -> Findings:
    """Check a policy file, then the structure of its source, then its ledger, which is made when asked and wanting.

    `change_unit`: the owner's word that a ledger which has charges goes on with another privacy unit, which is recorded.
    `second_budget`: why a data set that has a ledger elsewhere gets another one with a budget of its own; recorded too.

    Rows are not read, but those of CSV files, to count lines that are not as the policy says. Raises PolicyRefusal when
    the file cannot be read.
    """
    found = Findings()
    wrong = policy_problems(policy_text(place))
    if wrong:
        found.problems = [_located(place, path, sentence) for path, sentence in wrong]
        found.problems.append(f"{len(wrong)} problem{'s' if len(wrong) > 1 else ''} in {place}")
        found.status = Exit.REFUSAL
        return found
    policy = load_policy(place)
    found.notes.append(_summary(place, policy))
    _check_source(policy, found)
    _check_ledger(policy, create_ledger, change_unit, second_budget, found)
    return found


def _located(place: Path, path: str, sentence: str) -> str:
    """FILE:LINE: PATH: SENTENCE, as editors read it."""
    line = re.match(r"line ([0-9]+): ", sentence)
    where = f"{place}:{line.group(1)}" if line else str(place)
    return f"{where}: {path}: {sentence[line.end() :] if line else sentence}"


def _summary(place: Path, policy: Policy) -> str:
    unit = policy.privacy_unit
    protected = sum(not table.public for table in policy.tables.values())
    return (
        f"{place}: data set {policy.dataset}, privacy unit {f'{unit.table}.{unit.column}' if unit else 'row'}, "
        f"{protected} protected and {len(policy.tables) - protected} public tables, "
        f"epsilon {float(policy.budget.epsilon):g} in {policy.budget.accountant}: no problems"
    )


def _check_source(policy: Policy, found: Findings) -> None:
    from dpsql.engine.registry import open_engine

    if policy.source is None and not any(table.source for table in policy.tables.values()):
        found.notes.append("source: none in the policy; it is given to dpsql.connect")
        return
    try:
        engine = open_engine(policy)
    except Error as error:
        found.fail(error)
        return
    try:
        for name, table in policy.tables.items():
            columns = engine.columns(name)
            if columns is None:
                found.problems.append(f"table {name} of the policy is not in the source")
                continue
            folded = {column.lower(): type_ for column, type_ in columns.items()}
            for column in table.columns.values():
                given = folded.get(column.name.lower())
                if given is None:
                    found.problems.append(f"column {name}.{column.name} of the policy is not in the source")
                elif given == "VARCHAR" and column.type != "text":
                    what = f"{name}.{column.name} is text in the source"
                    found.notes.append(f"note: {what}; what does not read as {column.type} counts as NULL")
            if not found.problems:
                found.notes += _broken_lines(name, engine.broken(name))
        advice = engine.advice()
    except Error as error:
        found.fail(error)
        return
    finally:
        engine.close()
    if found.problems:
        found.status = Exit.FAULT
    else:
        found.notes += [f"note: {sentence}" for sentence in advice]
        found.notes.append("source: every table and column is there")


def _broken_lines(table: str, broken: Broken | None) -> list[str]:
    """For the owner alone: how many there are is a fact of the data."""
    if broken is None:
        return []
    kinds = (
        (broken.wrong_width, "more or fewer cells than the header: dropped"),
        (broken.too_long, "more than 1 MiB: dropped"),
        (broken.open_quote, "a quote that is never closed: it ends with the line"),
        (broken.not_text, "bytes that are no UTF-8 text: such cells count as NULL"),
    )
    return [f"note: {table} has {n} line{'s' if n > 1 else ''} with {what}" for n, what in kinds if n]


def _check_ledger(policy: Policy, create: bool, change_unit: bool, second_budget: str | None, found: Findings) -> None:
    source = source_fingerprint(policy)
    try:
        with open_ledger(
            policy.ledger_url(), policy.dataset, create=create, source=source, first=True, second_budget=second_budget
        ) as ledger:
            ledger.hold_unit(policy.unit_words, change=change_unit)
            verdict = ledger.verify()
    except Error as error:
        if error.slug != "ledger_missing":
            found.fail(error)
            return
        found.notes.append("ledger: there is none yet; `dpsql check --create-ledger` makes it, once")
        return
    if verdict.sound:
        found.notes.append(f"ledger: holds, {verdict.entries} entries")
    else:
        found.problems.append(f"the ledger does not hold at entry {verdict.first_bad}: {verdict.problem}")
        found.status = Exit.FAULT
