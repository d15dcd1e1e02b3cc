"""Choices of an owner for a new policy, and the text of that policy."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from dpsql.frontends.admin.answers import WrongAnswer
from dpsql.frontends.admin.starter_policy import (
    data_set_name,
    place_lines,
    questions_within,
    source_lines,
    source_link,
    yaml_scalar,
)
from dpsql.policy import COLUMN_TYPES, policy_problems
from dpsql.policy.yaml_text import quoted

_BOUND = r"[-+]?[0-9.][-+0-9.eE:T]*(?: [0-9:.]+)?"
_BETWEEN = re.compile(rf"({_BOUND})\s+to\s+({_BOUND})")
_WHOLE = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_NULL = re.compile(r"(^|(?<=\s))not null$")
_PROBE = (
    "dataset: d\nsource: d.csv\nledger: sqlite:///l.db\nprivacy_unit: row\nbudget: {epsilon: 1, delta: 1e-6}\n"
    "tables: {t: {columns: {c: %s}}}\n"
)
LEFT_OUT = "-"


@dataclass(frozen=True)
class ColumnChoice:
    """A column: its type, and its bounds or listed values as written in the policy. `filled`: never NULL; `in_source`: its name
    in the source if that differs; `scale`: of decimals, the digits after the point."""

    type: str
    bounds: tuple[str, str] | None = None
    domain: tuple[str, ...] = ()
    filled: bool = False
    in_source: str | None = None
    scale: int | None = None

    def text(self) -> str:
        """Return the column as a flow mapping of YAML."""
        parts = [f"type: {self.type}", *([] if self.scale is None else [f"scale: {self.scale}"])]
        if self.filled:
            parts.append("nullable: false")
        if self.in_source is not None:
            parts.append(f"from: {quoted(self.in_source)}")
        if self.bounds is not None:
            parts += [f"lower: {self.bounds[0]}", f"upper: {self.bounds[1]}"]
        if self.domain:
            plain = _NUMBER if self.type != "text" else re.compile("(?!)")
            listed = (v if plain.fullmatch(v) else quoted(v) for v in self.domain)
            parts.append(f"domain: [{', '.join(listed)}]")
        return f"{{{', '.join(parts)}}}"


@dataclass(frozen=True)
class TableChoice:
    """A table. `csv`: lines of the policy on how its CSV files are written; `foreign_keys`: column to (table, column)."""

    public: bool
    max_rows: int | None
    columns: dict[str, ColumnChoice]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[tuple[str, tuple[str, str]], ...] = ()
    source: str | None = None
    schema: str | None = None
    csv: tuple[str, ...] = ()
    unprotected: tuple[str, ...] = ()


@dataclass(frozen=True)
class PolicyChoices:
    """The contents of a policy. `unit`: table and column, or None if each row is a unit; numbers are decimals as text."""

    unit: tuple[str, str] | None
    tables: dict[str, TableChoice]
    epsilon: str
    delta: str
    every: str | None
    per_query: str
    max_epsilon: str | None = None
    analysts: dict[str, str] = field(default_factory=dict)
    automatic_copies: bool = False

    def text(self, source: Path | str, path: Path) -> str:
        """Return the policy for the data at `source`, to be written to `path`."""
        return "\n".join(self._lines(source, path)) + "\n"

    def _lines(self, source: Path | str, path: Path) -> Iterator[str]:
        yield "# Written by `dpsql init` from the owner's answers and the structure of the source; its values were not read."
        yield f"dataset: {yaml_scalar(data_set_name(source))}"
        yield from source_lines(source, source_link(source, path))
        unit = (
            "row"
            if self.unit is None
            else f"{{table: {yaml_scalar(self.unit[0])}, column: {yaml_scalar(self.unit[1])}}}"
        )
        yield f"privacy_unit: {unit}"
        yield "neighbours: add_remove"
        every = f", every: {self.every}" if self.every else ""
        yield f"budget: {{epsilon: {self.epsilon}, delta: {self.delta}, accountant: zcdp{every}}}"
        questions = questions_within(self.epsilon, self.delta, self.per_query)
        most = f", max_epsilon: {self.max_epsilon}" if self.max_epsilon else ""
        yield f"per_query: {{epsilon: {self.per_query}{most}}}  # about {questions} such questions fit the budget"
        yield f"ledger: {quoted(f'sqlite:///{data_set_name(source)}-ledger.db')}"
        if self.automatic_copies:
            yield "prepare: auto"
        if self.analysts:
            yield "analysts:"
        for name, limit in self.analysts.items():
            yield f"  {yaml_scalar(name)}: {{epsilon: {limit}}}"
        yield "tables:"
        for name, table in self.tables.items():
            yield from table_lines(name, table)


def table_lines(name: str, table: TableChoice) -> Iterator[str]:
    """Yield the lines of a table, as they stand below `tables:`."""
    yield f"  {yaml_scalar(name)}:"
    yield from place_lines(table.schema, table.source)
    yield from table.csv
    if table.public:
        yield "    public: true"
    if table.max_rows is not None:
        yield f"    max_rows: {table.max_rows}"
    if table.primary_key:
        yield f"    primary_key: [{', '.join(map(yaml_scalar, table.primary_key))}]"
    if table.foreign_keys:
        written = (f"{yaml_scalar(column)}: {yaml_scalar('.'.join(parent))}" for column, parent in table.foreign_keys)
        yield f"    foreign_keys: {{{', '.join(written)}}}"
    if table.unprotected:
        yield f"    unprotected: [{', '.join(map(yaml_scalar, table.unprotected))}]"
    yield "    columns:"
    for column, choice in table.columns.items():
        yield f"      {yaml_scalar(column)}: {choice.text()}"


# --- one column ------------------------------------------------------------------------------------------------------


def column_choice(
    answer: str, type_: str | None, *, filled: bool, in_source: str | None, scale: int | None = None
) -> ColumnChoice | None:
    """Return the choice that an answer makes for a column, None if it leaves the column out.

    Answers are `-`, nothing, `LOWER to UPPER`, or a list of values; each with a type before it if `type_` (that of the source) is
    None, and with `not null` after it if no value is missing. Raises WrongAnswer, also for what the policy would not accept.
    """
    if answer == LEFT_OUT:
        return None
    promised = _NOT_NULL.search(answer)
    if promised:
        answer, filled = answer[: promised.start()].rstrip(), True
    word, _, rest = answer.partition(" ")
    if word in COLUMN_TYPES and (not rest or type_ is None or word == type_):
        if type_ is not None and word != type_:
            raise WrongAnswer(f"the source has {type_} here")
        type_, answer = word, rest.strip()
    between = _BETWEEN.fullmatch(answer)
    bounds = (between[1], between[2]) if between else None
    domain = _listed(answer) if answer and bounds is None else ()
    type_ = type_ or _type_of_bounds(bounds) or "text"
    if type_ == "text" and bounds is not None:
        raise WrongAnswer("texts have no bounds: list the values, or say nothing")
    choice = ColumnChoice(type_, bounds, domain, filled, in_source, scale)
    problems = policy_problems(_PROBE % choice.text())
    if problems:
        raise WrongAnswer(re.sub(r"^line \d+: ", "", problems[0][1]))
    return choice


def _type_of_bounds(bounds: tuple[str, str] | None) -> str | None:
    """Return the type of bounds, None without bounds. Raises WrongAnswer for whole numbers, which may be integers or reals."""
    if bounds is None:
        return None
    if all(map(_WHOLE.fullmatch, bounds)):
        raise WrongAnswer(
            f"say `integer {bounds[0]} to {bounds[1]}` or `real {bounds[0]} to {bounds[1]}`: in a column of integers "
            "a value such as 70.5 is rounded"
        )
    if all(map(_NUMBER.fullmatch, bounds)):
        return "real"
    for type_, read in (("date", date.fromisoformat), ("timestamp", datetime.fromisoformat)):
        try:
            for bound in bounds:
                read(bound)
            return type_
        except ValueError:
            continue
    raise WrongAnswer("bounds are two numbers, dates (2024-01-31) or timestamps (2024-01-31 12:00:00)")


def _listed(answer: str) -> tuple[str, ...]:
    """Return the values of a comma-separated list, with or without brackets; values may be in double quotes."""
    bracketed = answer.startswith("[") and answer.endswith("]")
    inside = answer[1:-1] if bracketed else answer
    if not bracketed and "," not in inside:
        raise WrongAnswer(f"write bounds as `LOWER to UPPER`, and a list of one value as [{answer}]")
    try:
        (row,) = csv.reader([inside], skipinitialspace=True)
    except (csv.Error, ValueError):
        raise WrongAnswer("write the values of a list with commas between them") from None
    values = tuple(value.strip() for value in row)
    if not values or not all(value.isprintable() and value for value in values):
        raise WrongAnswer("a value of the list is empty, or has characters that cannot be seen")
    return values
