"""The register of refusals and faults, the exceptions that carry them, and hints for unknown names.

A *refusal* says "we will not" (nothing was charged, data was not touched); a *fault* says "we could not". Every sentence that an
analyst can read because of an error is in `REGISTER`: a slug, an SQLSTATE, one sentence, one hint. They are written in the table
of docs/refusals.md, which the package reads through a link. PostgreSQL's standard SQLSTATE codes are used where one fits; class
``ZP`` is specific to dpsql (privacy).

The classes form the tree of PEP 249 so that `dpsql.Error` is what a DB-API user expects.
"""

from __future__ import annotations

import difflib
import pkgutil
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from dpsql.media.text import terminal, terminal_lines, terminal_places

MOST_LISTED = 12
MOST_COMPARED = 80
"""Number of characters of an unknown name that are compared, so that the length of the name cannot determine the time of the
answer."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name in `names` that is nearest to `name` without regard to case, None if no name is near."""
    folded = {candidate.lower(): candidate for candidate in sorted(set(names), reverse=True)}
    close = difflib.get_close_matches(name.lower()[:MOST_COMPARED], folded, n=1)
    return folded[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence, "; did you mean X?", or "" if no name is near."""
    near = nearest(name, names)
    return "" if near is None else f"; did you mean {near}?"


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a complete hint: "did you mean X?", else the first `MOST_LISTED` names, or "" if there are none."""
    listed = sorted(set(names))
    near = nearest(name, listed)
    if near is not None:
        return f"did you mean {near}?"
    examples = ", ".join(listed[:MOST_LISTED]) + (", ..." if len(listed) > MOST_LISTED else "")
    return f"known here: {examples}" if listed else ""


class Exit(IntEnum):
    """Exit status of the command line."""

    DONE = 0
    REFUSAL = 1
    USAGE = 2
    BUDGET = 3
    FAULT = 4


class Warning(Exception):
    """PEP 249: important warnings."""


class Error(Exception):
    """Base of all errors of dpsql.

    Attributes: slug (stable name in the register), sqlstate (five characters), message (one sentence), hint (how to
    write it instead, may be empty), position (1-based character in the SQL text, or None), sql (the text that
    position refers to), charged (whether privacy loss was charged), receipt (of that charge, or ""), path (place in the
    policy file, or None).
    """

    exit_status: Exit = Exit.FAULT

    def __init__(
        self,
        message: str,
        *,
        slug: str = "error",
        sqlstate: str = "XX000",
        hint: str = "",
        position: int | None = None,
        sql: str | None = None,
        charged: bool = False,
        path: str | None = None,
    ) -> None:
        message, hint = terminal_lines(message), terminal_lines(hint)
        super().__init__(message)
        self.message = message
        self.slug = slug
        self.sqlstate = sqlstate
        self.hint = hint
        self.position = position
        self.sql = sql
        self.charged = charged
        self.receipt = ""
        self.path = path

    def placed_in(self, sql: str, position: int | None = None) -> Error:
        """Set the text that the error is about, and its position unless that is already set; return the error."""
        self.sql = sql
        if self.position is None:
            self.position = position
        return self

    def text(self) -> str:
        """Return the full message: sentence, caret under the position, hint, and whether anything was charged."""
        lines = [f"{self.sqlstate} {self.slug}: {self.message}"]
        lines += _caret(self.sql, self.position)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        lines.append("the charge stays: noise may have been drawn" if self.charged else "nothing was charged")
        return "\n".join(lines)

    def __str__(self) -> str:
        """Return the full message, which a traceback, a notebook and `print` show."""
        return self.text()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with all attributes: errors cross process boundaries (batch workers)."""
        return (_rebuild, (type(self), self.message, {k: v for k, v in self.__dict__.items() if k != "message"}))


def _rebuild(cls: type[Error], message: str, state: dict[str, Any]) -> Error:
    error = cls(message)
    error.__dict__.update(state)
    return error


def _caret(sql: str | None, position: int | None, width: int = 76) -> list[str]:
    """Return the line of `sql` at the 1-based `position`, with dots where it is cut to `width`, and a caret under it."""
    if sql is None or position is None or not 1 <= position <= len(sql) + 1:
        return []
    start = sql.rfind("\n", 0, position - 1) + 1
    end = sql.find("\n", position - 1)
    line = sql[start : end if end >= 0 else len(sql)]
    column = position - 1 - start
    left = max(0, min(column - width // 2, len(line) - width))
    excerpt = terminal_places(line[left : left + width])
    prefix = f"line {sql.count(chr(10), 0, position - 1) + 1}: {'...' if left else ''}"
    return [prefix + excerpt + ("..." if len(line) > left + width else ""), " " * (len(prefix) + column - left) + "^"]


class InterfaceError(Error):
    """PEP 249: the interface was used wrongly (a closed cursor, a wrong parameter style)."""

    exit_status = Exit.USAGE


class DatabaseError(Error):
    """PEP 249: base of errors that concern the database."""


class DataError(DatabaseError):
    """PEP 249: a value does not fit."""

    exit_status = Exit.REFUSAL


class OperationalError(DatabaseError):
    """PEP 249: a failure outside the analyst's control (ledger unreachable, source missing)."""


class IntegrityError(DatabaseError):
    """PEP 249: a record is inconsistent (an edited ledger)."""


class InternalError(DatabaseError):
    """PEP 249: an internal check of dpsql failed."""


class ProgrammingError(DatabaseError):
    """PEP 249: the SQL or the policy is wrong."""

    exit_status = Exit.REFUSAL


class NotSupportedError(DatabaseError):
    """PEP 249: valid, but not supported here."""

    exit_status = Exit.REFUSAL


class Refusal(ProgrammingError):
    """The question is refused. Nothing was charged and data was not touched."""


class PolicyRefusal(Refusal):
    """The policy file is not acceptable; `problems` lists every (path, sentence) found."""

    problems: tuple[tuple[str, str], ...] = ()


class BudgetRefusal(Refusal):
    """The charge does not fit; `remaining` maps each scope that applies to its remaining budget (text)."""

    exit_status = Exit.BUDGET
    remaining: Mapping[str, str] = MappingProxyType({})


class Fault(OperationalError):
    """The question failed. `charged`: whether the charge stays; `incident`: the id in the custodian's log;
    `of_source`: whether reading the data failed, so that the next question would fail as well."""

    incident: str | None = None
    of_source: bool = False


class RegisterEntry(NamedTuple):
    """One entry of the register: `sentence` and `hint` are `str.format` templates over the facts given."""

    slug: str
    sqlstate: str
    sentence: str
    hint: str
    raises: type[Error] = Refusal


_KINDS: tuple[type[Error], ...] = (
    BudgetRefusal, Fault, IntegrityError, InterfaceError, InternalError, NotSupportedError, OperationalError,
    PolicyRefusal, Refusal,
)  # fmt: skip
_ESCAPED = re.compile(r"\\([\\|{])")


def read_register(page: str) -> dict[str, RegisterEntry]:
    """Return the register by slug, from the table of docs/refusals.md. Raises InternalError for a malformed or repeated row."""
    kinds = {kind.__name__: kind for kind in _KINDS}
    entries: dict[str, RegisterEntry] = {}
    for line in page.partition("\n| --- |")[2].splitlines()[1:]:
        cells = line[2:-2].split(" | ")
        if "\\" in line:
            cells = [_ESCAPED.sub(r"\1", cell) for cell in cells]
        slug = cells[0].strip("`")
        if len(cells) != 5 or cells[2] not in kinds or slug in entries:
            raise InternalError(f"this is no entry of the register: {line}", slug="internal")
        entries[slug] = RegisterEntry(slug, cells[1], cells[3], cells[4], kinds[cells[2]])
    return entries


REGISTER = read_register((pkgutil.get_data(__package__, "refusals.md") or b"").decode())


def refuse(
    slug: str, *, position: int | None = None, hint: str | None = None, charged: bool = False, **facts: object
) -> Error:
    """Return the exception for `slug`, to be raised by the caller; `facts` fill its sentence and hint.

    Only names of the policy and text of the analyst's own SQL may be facts, never anything read from data.
    """
    entry = REGISTER[slug]
    facts = {name: _short(fact) for name, fact in facts.items()}
    return entry.raises(
        entry.sentence.format(**facts),
        slug=slug,
        sqlstate=entry.sqlstate,
        hint=entry.hint.format(**facts) if hint is None else hint,
        position=position,
        charged=charged,
    )


def _short(fact: object, most: int = 300) -> object:
    """Return a fact as one line that is not too long: it may quote any text of the analyst."""
    if isinstance(fact, str):
        return terminal(fact) if len(fact) <= most else terminal(fact[:most]) + "..."
    return fact
