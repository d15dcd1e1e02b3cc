"""`dpsql run --report`: one page with the questions of a run, their answers with error bars as pictures, prices and receipts.

The page shows what is in the folder of the run and nothing else. It needs no network and runs no script.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.batch.statements import StatementReport
from dpsql.frontends.files import writing
from dpsql.frontends.rendering.formats import unique_names
from dpsql.frontends.rendering.plots import StoredAnswer, check_columns, check_plot, release_chart, svg
from dpsql.media.text import Markup, joined, markup, source_markup
from dpsql.plan.intervals import Type
from dpsql.release.release import OutputColumn
from dpsql.release.shape import rows_text
from dpsql.release.value_text import answer_html

if TYPE_CHECKING:
    import pyarrow as pa

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
    """Return the page as HTML."""
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
    """Return picture and table of an answer, with its price and receipt below."""
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
