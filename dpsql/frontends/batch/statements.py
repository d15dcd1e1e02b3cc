"""The statements of SQL files, in their order, with the names of their results, the options in force, and their outcomes.

A comment on a separate line before a statement may say more: `-- name: NAME` of its result, `-- weight: NUMBER` in a plan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from dpsql.errors.exceptions import Error, refuse
from dpsql.planning.planner import Planned
from dpsql.privacy.loss import exact_number
from dpsql.session.session import Session
from dpsql.sql.lexer import Piece
from dpsql.sql.parse import Statement
from dpsql.sql.split import split_file

_READS = re.compile(r"\(|(select|with|from|values|table|explain|show|describe)\b", re.I)
"""The beginnings of statements that do not affect later ones."""
_COMMENT = re.compile(r"^[ \t]*--[ \t]*name:[ \t]*(.*?)[ \t\r]*$", re.M)
_WEIGHT = re.compile(r"^[ \t]*--[ \t]*weight:[ \t]*(.*?)[ \t\r]*$", re.M)
_MOST_WEIGHT = 1000
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_MOST_CHARACTERS = 100
Scripts = Sequence[tuple[Path, str]]
"""Files with their texts."""


@dataclass(frozen=True)
class FileStatement:
    """One statement of a file. `stem`: the name of its result without the ending; `weight`: the weight in its comment."""

    place: str
    piece: Piece
    stem: str
    weight: Fraction


@dataclass(frozen=True)
class AskedQuestion:
    """One question of a file, planned under the options in force there."""

    place: str
    sql: str
    name: str
    planned: Planned
    weight: Fraction


class ResultNames:
    """The names of the results of one run, without repetition."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> None:
        """Reserve the name of a result. Raises InterfaceError batch_name if another result has it."""
        if name.lower() in self._taken:
            raise refuse("batch_name", name=name, problem="is that of another result of this run")
        self._taken.add(name.lower())


def walk(
    session: Session,
    scripts: Scripts,
    use: Callable[[FileStatement], bool],
    refused: Callable[[str, str, Error], None],
    left_out: Callable[[Path, int], None] | None,
) -> None:
    """Call `use` with each statement; it returns whether the statement has a result, and an Error that it raises is passed to
    `refused`, with place and text. The automatic numbers of later results count a refused statement as well.

    `left_out`: given for a run that goes on after refusals; where a refused statement may affect later ones, it is called with
    the file and the line, and the rest of the file is skipped (None: nothing is skipped). The session has its own options at the
    start of each file, and again at the end.
    """
    start = session.options
    try:
        for path, text in scripts:
            session.options = start
            _walk_file(path, text, use, refused, left_out)
    finally:
        session.options = start


def _walk_file(
    path: Path,
    text: str,
    use: Callable[[FileStatement], bool],
    refused: Callable[[str, str, Error], None],
    left_out: Callable[[Path, int], None] | None,
) -> None:
    try:
        pieces = split_file(text)
    except Error as error:
        refused(str(path), "", error)
        return
    name, number, end, weighed = "", 1, 0, 0
    for piece in pieces:
        name = name_before(text, end, piece.offset) or name
        end = piece.offset + len(piece.sql)
        place = f"{path}:{piece.line}"
        try:
            if problem := name_problem(name) if name else "":
                raise refuse("batch_name", name=name, problem=problem)
            weight = weight_before(text, weighed, piece.offset)
            has_result = use(FileStatement(place, piece, name or f"{path.stem}-{number:02}", weight))
        except Error as error:
            refused(place, piece.sql, error)
            if left_out is not None and not _READS.match(piece.sql):
                left_out(path, piece.line)
                return
        else:
            if not has_result:
                continue
        name, number, weighed = "", number + 1, end


def statement_with_result(session: Session, from_file: FileStatement, names: ResultNames) -> Statement | None:
    """Return a statement that has a result, whose name is taken; None for SET and RESET, which affect those after them in the
    file. Raises refusals, of a statement that is no question and of a comparison of `dpsql watch`, too."""
    statement = session.parse(from_file.piece, None)
    if statement.kind in ("set", "reset", "transaction"):
        session.execute(from_file.piece)
        return None
    names.take(from_file.stem)
    if statement.kind != "query":
        session.describe(from_file.piece)
    elif session.options.threshold is not None:
        raise refuse("batch_watch")
    return statement


def asked_questions(
    session: Session,
    scripts: Scripts,
    refused: Callable[[str, str, Error], None],
    left_out: Callable[[Path, int], None] | None,
) -> list[AskedQuestion]:
    """Return the questions of files, without statements of other kinds. Nothing is charged, data is not touched."""
    questions: list[AskedQuestion] = []
    names = ResultNames()

    def use(from_file: FileStatement) -> bool:
        statement = statement_with_result(session, from_file, names)
        if statement is None or statement.kind != "query":
            return statement is not None
        planned = session.plan(statement)
        session.explain_planned(planned)
        questions.append(AskedQuestion(from_file.place, from_file.piece.sql, from_file.stem, planned, from_file.weight))
        return True

    walk(session, scripts, use, refused, left_out)
    return questions


# --- comments before statements ---------------------------------------------------------------------------------------


def name_before(text: str, start: int, stop: int) -> str:
    """Return the last name in the comments of `text` from `start` up to `stop`, "" if there is none."""
    return next((comment[1] for comment in reversed(list(_COMMENT.finditer(text, start, stop)))), "")


def weight_before(text: str, start: int, stop: int) -> Fraction:
    """Return the last weight in the comments of `text` from `start` up to `stop`, 1 if there is none. Raises InterfaceError
    batch_weight."""
    written = next((comment[1] for comment in reversed(list(_WEIGHT.finditer(text, start, stop)))), "1")
    try:
        weight = exact_number(written)
    except ValueError:
        weight = Fraction(0)
    if not Fraction(1, _MOST_WEIGHT) <= weight <= _MOST_WEIGHT:
        raise refuse("batch_weight", weight=written, most=_MOST_WEIGHT)
    return weight


def name_problem(name: str) -> str:
    """Return why `name` cannot be the name of a result's file, "" if it can."""
    if len(name) > _MOST_CHARACTERS:
        return f"is longer than {_MOST_CHARACTERS} characters"
    if name.lower() == "run":
        return "is that of the record of the run"
    return "" if _NAME.fullmatch(name) else "has blanks or other characters than letters, digits, _ and -"


# --- outcomes of the statements of a run, for programs ----------------------------------------------------------------


@dataclass
class StatementReport:
    """One statement. `state`: priced (not asked), answered, earlier (answered by an earlier run), lost (charged by an earlier
    run, its answer is lost), refused, failed; `price`: its price as determined before the run; `note`: the contents of the note
    of its result, if a page is to show it."""

    place: str
    sql: str
    state: str
    result: str | None = None
    price: str | None = None
    receipt: str | None = None
    error: Error | None = None
    note: Mapping[str, Any] | None = None

    def as_object(self) -> StatementObject:
        """Return the outcome as an object for JSON."""
        return {
            "place": self.place, "state": self.state, "result": self.result, "price": self.price,
            "receipt": self.receipt, "error": error_object(self.error),
        }  # fmt: skip


class ErrorObject(TypedDict):
    """An error: its slug (docs/refusals.md), and whether a charge stays."""

    slug: str
    sqlstate: str
    message: str
    hint: str
    charged: bool


class StatementObject(TypedDict):
    """The outcome of one statement, by the fields of `StatementReport`."""

    place: str
    state: str
    result: str | None
    price: str | None
    receipt: str | None
    error: ErrorObject | None


class SummaryObject(TypedDict):
    """A run, as `dpsql run --json` writes it. `share`: the price as a part of the budget; `left`: the remaining budget of each
    account; `error`: what ended the run as a whole; `workload`: the joint measurement plans, if there are any."""

    dataset: str
    dry_run: bool
    status: int
    price: str | None
    share: str | None
    left: dict[str, dict[str, str]]
    error: ErrorObject | None
    workload: NotRequired[dict[str, Any]]
    statements: list[StatementObject]


def error_object(error: Error | None) -> ErrorObject | None:
    """Return an error as an object for JSON."""
    if error is None:
        return None
    return {
        "slug": error.slug, "sqlstate": error.sqlstate, "message": error.message, "hint": error.hint,
        "charged": error.charged,
    }  # fmt: skip
