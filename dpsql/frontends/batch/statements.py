"""The statements of SQL files, in their order, with the names of their results, the options in force, and their outcomes; and the
plans by which their questions are measured together.

A comment on a separate line before a statement may say more: `-- name: NAME` of its result, `-- weight: NUMBER` in a plan.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.files import writing
from dpsql.frontends.interruptible import charge_text
from dpsql.frontends.rendering.formats import unique_names
from dpsql.frontends.rendering.plots import StoredAnswer, check_columns, check_plot, release_chart, svg
from dpsql.media.text import Markup, joined, markup, source_markup
from dpsql.plan.intervals import Type
from dpsql.planning.planner import Planned
from dpsql.planning.together import NO_COMMON_TABLE, Goal, JointPlan, alone_because
from dpsql.pricing.explain import PLUS_MINUS, tile_rows
from dpsql.pricing.workloads import Objective, objective_of
from dpsql.privacy.loss import PrivacyLoss, exact_number
from dpsql.release.release import OutputColumn
from dpsql.release.shape import rows_text
from dpsql.release.value_text import answer_html
from dpsql.session.session import Session
from dpsql.sql.lexer import Piece, split_file
from dpsql.sql.parse import Statement
from dpsql.storage.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


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
    """Return the last weight in the comments of `text` from `start` to `stop`, else 1. Raises InterfaceError batch_weight."""
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
    if error is None:
        return None
    return {
        "slug": error.slug, "sqlstate": error.sqlstate, "message": error.message, "hint": error.hint,
        "charged": error.charged,
    }  # fmt: skip


# --- joint measurement plans of the questions: what is measured together, with which errors and at what price ---------

OBJECTIVES = {"worst": Objective.RELATIVE, "mean": Objective.ABSOLUTE}
"""What a plan minimises: the largest error relative to the mean of a table's cells, or the mean error of a cell."""
_WORDS = {objective: word for word, objective in OBJECTIVES.items()}
_WHY_WIDER = {
    Objective.RELATIVE: "which makes the largest relative error small (--objective mean: the mean error of a cell)",
    Objective.ABSOLUTE: "which makes the mean error of a cell small",
}
_LEAST_WIDER = 1.005
"""Ratio of error bars below which two of them look the same with three digits."""


@dataclass(frozen=True, eq=False)
class _Gain:
    """The errors of the tables of one sum, as ratios to those when each question is asked separately: the largest relative error,
    and the mean error."""

    sums: str
    tables: int
    worst: float
    mean: float


class QuestionPlans:
    """The joint measurement plans of some questions; nothing is charged for them, and data is not touched."""

    def __init__(self, session: Session, questions: Sequence[AskedQuestion], objective: Objective) -> None:
        weights = {place: question.weight for place, question in enumerate(questions)}
        self._session, self._questions, self._objective = session, questions, objective
        self._plans = session.plan_together([question.planned for question in questions], Goal(objective, weights))
        self._views = {
            questions[place].name: view
            for plan in self._plans
            for place, view in zip(plan.places, plan.questions, strict=True)
        }

    def view(self, name: str) -> Planned | None:
        """Return the question whose result has a name, with the blocks of its whole plan; None if it is in none."""
        return self._views.get(name)

    def why_alone(self, question: AskedQuestion) -> str:
        """Return why a question is in no plan, "" if it is in one."""
        if question.name in self._views:
            return ""
        return alone_because(question.planned) or NO_COMMON_TABLE

    def lines(self) -> list[str]:
        lines = [line for plan in self._plans for line in self._plan_lines(plan)]
        for question in self._questions:
            if reason := self.why_alone(question):
                lines.append(f"{question.place}  {question.name}: asked separately: {reason}")
        return lines

    def objects(self) -> dict[str, Any]:
        return {
            "objective": _WORDS[self._objective],
            "plans": [self._plan_object(plan) for plan in self._plans],
            "alone": [
                {"place": question.place, "name": question.name, "reason": reason}
                for question in self._questions
                if (reason := self.why_alone(question))
            ],
        }

    # --- one plan -----------------------------------------------------------------------------------------------------

    def _plan_lines(self, plan: JointPlan) -> list[str]:
        count = len(plan.places)
        questions = "1 question is" if count == 1 else f"{count} questions are"
        apart, together = self._price(self._apart(plan)), self._price(plan.price.loss)
        lines = [
            f"{questions} measured as one ({_WORDS[self._objective]}): {together} in one charge; one by one: {apart}"
        ]
        tables = self._tables(plan)
        for table in tables:
            errors = ", ".join(
                f"{each['sum']} {PLUS_MINUS} {each['error']:.3g} (one by one {PLUS_MINUS} {each['error_one_by_one']:.3g}"
                f"{', wider' if _wider(each) else ''})"
                for each in table["sums"]
            )
            lines.append(f"  {table['table']}: {errors}; price {table['price']}; read by {', '.join(table['read_by'])}")
        for gain in _gains(plan):
            lines.append(
                f"  {gain.sums} in {gain.tables} tables: the largest relative error is {gain.worst:.3g} times, the mean error "
                f"{gain.mean:.3g} times that one by one"
            )
        wider = sum(any(map(_wider, table["sums"])) for table in tables)
        if wider:
            has = "has" if wider == 1 else "have"
            lines.append(
                f"  {wider} of {len(tables)} tables {has} wider error bars than one by one, for the sake of the others, "
                f"{_WHY_WIDER[self._objective]}; '-- weight: 3' before a statement makes the errors of its tables count more"
            )
        return lines

    def _plan_object(self, plan: JointPlan) -> dict[str, Any]:
        confidence = plan.questions[0].options.confidence
        return {
            "questions": [self._questions[place].name for place in plan.places],
            "price": self._price(plan.price.loss),
            "price_one_by_one": self._price(self._apart(plan)),
            "confidence": float(confidence),
            "tables": self._tables(plan),
            "gains": [vars(gain) for gain in _gains(plan)],
        }

    def _tables(self, plan: JointPlan) -> list[dict[str, Any]]:
        """Return the measured tables of a plan: half widths at the confidence of its first question, the price of everything
        measured in the groups of a table, and the table's share as a ratio to the part of the budget that it would have alone."""
        losses = {priced.block.name: priced.loss for priced in plan.price.blocks}
        tables: dict[str, dict[str, Any]] = {}
        for row in tile_rows(plan.price, plan.questions[0].options.confidence):
            table = tables.setdefault(
                row.block,
                {
                    "table": row.table,
                    "sums": [],
                    "price": self._price(losses[row.block]),
                    "read_by": [self._questions[place].name for place in plan.read_by[row.block]],
                },
            )
            table["sums"] += [
                {"sum": sum_text, "error_one_by_one": alone, "error": now, "share": float(row.share)}
                for sum_text, alone, now in row.sums
            ]
        return list(tables.values())

    def _apart(self, plan: JointPlan) -> PrivacyLoss:
        """Return the price of the questions when asked one after the other, with nothing stored before."""
        losses: Mapping[str, PrivacyLoss] = {
            key: priced.loss
            for place in plan.places
            for key, priced in zip(
                self._questions[place].planned.keys, self._questions[place].planned.price.blocks, strict=True
            )
        }
        return sum(losses.values(), PrivacyLoss.nothing())

    def _price(self, loss: PrivacyLoss) -> str:
        return charge_text(self._session.planner.accountant.units(loss))


def _wider(sum_in_table: Mapping[str, Any]) -> bool:
    """Return whether the error bars of a sum of a table are wider in the plan than if its question is asked separately."""
    return bool(sum_in_table["error"] > _LEAST_WIDER * sum_in_table["error_one_by_one"])


def _gains(plan: JointPlan) -> list[_Gain]:
    """Return, for each workload of a plan, its errors as ratios to those of separate questions, from the laws of noise."""
    after, gains = plan.price.laws_after, []
    rows = {row.block: row for row in tile_rows(plan.price, plan.questions[0].options.confidence)}
    for workload in plan.price.workloads:
        alone = np.array([laws[0].standard_deviation() ** 2 for laws in workload.apart])
        now = np.array([after[tile.block, tile.terms[0]].standard_deviation() ** 2 for tile in workload.tiles])
        ratios = [
            objective_of(workload.marginals, now, objective) / objective_of(workload.marginals, alone, objective)
            for objective in (Objective.RELATIVE, Objective.ABSOLUTE)
        ]
        sums = ", ".join(sum_text for sum_text, _, _ in rows[workload.tiles[0].block].sums)
        gains.append(_Gain(sums, len(workload.tiles), *ratios))
    return gains


# --- `dpsql run --report` ---------------------------------------------------------------------------------------------
# One page with the questions of a run, their answers with error bars as pictures, prices and receipts.
#
# The page shows what is in the folder of the run and nothing else. It needs no network and runs no script.

Note = Mapping[str, Any]
_STATES = {
    "answered": "answered by this run",
    "earlier": "answered by an earlier run, on the same data",
    "lost": "charged by an earlier run; its answer is lost",
    "refused": "refused",
    "failed": "failed",
    "priced": "not asked",
}
_STYLE = source_markup("""\
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2430; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0; } h2 { font-size: 1.1rem; margin: 0; }
section { border-top: 1px solid #d5dbe3; padding: 1.2rem 0; }
pre { background: #f4f6f9; padding: .6rem .8rem; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem .15rem 0; text-align: left; overflow-wrap: anywhere; }
img { max-width: 100%; display: block; margin: .6rem 0; } p { margin: .3rem 0; } .facts { color: #5a6472; font-size: .9rem; }
.refused, .failed, .lost { color: #9b1c1c; }
""")


def begin_report(path: Path) -> None:
    """Check before anything is charged that a report can be written, and remove that of an earlier run, so that after a crash no
    report of another run is there. Raises plot_ending, plot_missing, file_write."""
    if path.suffix.lower() != ".html":
        raise refuse("plot_ending", place=str(path), endings=".html")
    check_plot(path)
    with writing(path):
        path.unlink(missing_ok=True)


def write_report(
    path: Path,
    statements: Sequence[StatementReport],
    summary: Mapping[str, Any],
    left: str,
    plan: Sequence[str] = (),
    unprotected: Sequence[str] = (),
) -> None:
    """Write the page. `summary`: the run in the form of `dpsql run --json`; `left`: the remaining budget of each account, as
    text; `plan`: lines on what is measured jointly; `unprotected`: sentences on people who are not protected.

    Raises Fault file_write, charged if answers were.
    """
    with writing(path, charged=any(statement.state == "answered" for statement in statements)):
        path.write_text(report_page(statements, summary, left, plan, unprotected), encoding="utf-8")


def report_page(
    statements: Sequence[StatementReport],
    summary: Mapping[str, Any],
    left: str,
    plan: Sequence[str] = (),
    unprotected: Sequence[str] = (),
) -> Markup:
    dataset = str(summary["dataset"])
    answers = sum(statement.state in ("answered", "earlier") for statement in statements)
    ended = summary["error"]
    head = [
        f"{answers} of {len(statements)} statements have an answer",
        f"price of the set: {', '.join(filter(None, (summary['share'], summary['price']))) or 'unknown'}",
    ]
    head += [f"left: {left}", *unprotected, f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC"]
    return markup(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{dataset}: answers</title>\n'
        '<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>\n{style}</style></head>\n'
        "<body><h1>{dataset}</h1>{facts}{problem}\n{planned}{sections}\n</body></html>\n",
        dataset=dataset,
        policy=source_markup("default-src 'none'; img-src data:; style-src 'unsafe-inline'"),
        style=_STYLE,
        facts=joined(markup('<p class="facts">{}</p>', line) for line in head),
        problem=markup('<p class="failed">The run ended with {}: {}</p>', ended["slug"], ended["message"])
        if ended
        else "",
        planned=markup("<section><h2>Measured as one</h2><pre>{}</pre></section>", "\n".join(plan)) if plan else "",
        sections=joined(map(_section, statements), "\n"),
    )


def _section(report: StatementReport) -> Markup:
    parts = [
        markup("<h2>{}</h2>", Path(report.result).stem if report.result else report.place),
        markup('<p class="facts {}">{}; {}</p>', report.state, _STATES[report.state], report.place),
    ]
    if report.sql:
        parts.append(markup("<pre>{}</pre>", report.sql))
    if report.error is not None:
        charge = "the charge stays" if report.error.charged else "nothing was charged"
        message = f"{report.error.slug}: {report.error.message}"
        lines = [line for line in (message, report.error.hint, charge) if line]
        parts.append(markup('<p class="{}">{}</p>', report.state, joined(lines, markup("<br>"))))
    if report.note is not None:
        parts += _answer_parts(report.note)
    return markup("<section>{}</section>", joined(parts))


def _answer_parts(note: Note) -> list[Markup]:
    columns, names = note["columns"], [str(column["name"]) for column in note["columns"]]
    keyed = list(zip(unique_names(names), columns, strict=True))
    errors = [_errors(note, key, column) for key, column in keyed]
    rows = [tuple(_cell(_value(row[key], column["type"])) for key, column in keyed) for row in note["rows"]]
    price = "nothing, answered from stored releases" if note["reused"] else note["price"] or note["charged"]
    remarks = [f"price: {price}", f"receipt {note['receipt']}"] if note["receipt"] else []
    if rows and any(isinstance(e, str) or any(width is not None for width in e) for e in errors if e is not None):
        remarks.append(f"error bars hold in {note['confidence'] * 100:g} % of cases")
    return [
        _picture(note),
        answer_html(names, rows, errors, len(rows), ("; ".join(remarks), *note["notices"], *note["notes"])),
    ]


def _errors(note: Note, key: str, column: Mapping[str, Any]) -> list[float | None] | str | None:
    """Return the half widths of a column by row, or the rank error of its numbers as text."""
    if not column["noisy"]:
        return None
    rank = column.get("rank_error")
    return [_number(row[key]) for row in note["error"]] if rank is None else rows_text(rank)


def _cell(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _picture(note: Note) -> Markup:
    """Return the picture of an answer as `dpsql plot` draws it, nothing if there is nothing to draw, and why if that failed."""
    answer = _stored_answer(note)
    try:
        check_columns(answer.columns)
    except Error:
        return joined(())
    if not len(answer):
        return joined(())
    try:
        drawing = svg(release_chart(answer))
    except Error as error:  # the page is written nevertheless: its answers are paid for
        return markup('<p class="failed">{}</p>', error.message)
    encoded = base64.b64encode(drawing.encode()).decode("ascii")
    return markup('<img alt="the answer with its error bars" src="data:image/svg+xml;base64,{}">', encoded)


def _stored_answer(note: Note) -> StoredAnswer:
    import pyarrow as pa

    columns = tuple(OutputColumn(c["name"], Type(c["type"]), c["noisy"]) for c in note["columns"])
    keys = unique_names([column.name for column in columns])

    def as_table(records: Sequence[Mapping[str, Any]]) -> pa.Table:
        arrays = []
        for key, column in zip(keys, columns, strict=True):
            values = [_value(row.get(key), column.type.value) for row in records]
            numbers = column.noisy and column.type.value in ("integer", "real")
            arrays.append(pa.array(map(_number, values), pa.float64()) if numbers else pa.array(values))
        return pa.Table.from_arrays(arrays, names=[column.name for column in columns])

    low, high = (as_table(note[end] or [{}] * len(note["rows"])) for end in ("low", "high"))
    return StoredAnswer(columns, as_table(note["rows"]), low, high, note["confidence"])


def _value(value: Any, type_: str) -> Any:
    """Return a value of a note with the type that it was released with."""
    if not isinstance(value, str):
        return value
    if type_ == "date":
        return date.fromisoformat(value)
    if type_ == "timestamp":
        return datetime.fromisoformat(value)
    return float(value) if type_ in ("real", "integer") else value


def _number(value: Any) -> float | None:
    return None if value is None or isinstance(value, bool) else float(value)
