"""Answers as text and files: tables for people; csv, json, parquet and arrow for programs; and their prices."""

from __future__ import annotations

import math
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import IO, TYPE_CHECKING, Any, NotRequired, TextIO, TypedDict

from dpsql.errors.exceptions import Error
from dpsql.frontends.files import writing
from dpsql.frontends.rendering.tables import draw, shown_value, write_markdown, write_table
from dpsql.frontends.rendering.terminal import say_line
from dpsql.media.text import csv_cell, json_text, sheet_cell, terminal
from dpsql.release.value_text import value_text

if TYPE_CHECKING:
    import pyarrow as pa

    from dpsql.release.release import Release
    from dpsql.release.shape import DescribedColumn
    from dpsql.session.explanation import PrivacyPlan
    from dpsql.session.session import Session

TEXT_FORMATS = ("table", "csv", "json", "md")
BINARY_FORMATS = ("parquet", "arrow")
FORMATS = TEXT_FORMATS + BINARY_FORMATS
_CSV_ROWS = 1 << 16
_CSV_THREADS = 2

# --- formats for programs -------------------------------------------------------------------------------------------


def write_csv(table: pa.Table, out: TextIO, *, for_spreadsheet: bool = False) -> None:
    """Write a table as RFC 4180 with a header; NULL is empty and unquoted, an empty text is quoted.

    Texts are written as they are, for programs; `for_spreadsheet`: none of them is a formula (`media.text.sheet_cell`). At a
    terminal, what is not printable is spelled out. Rows are joined as columns of text, `_CSV_ROWS` at a time and on two cores:
    no Python object is made for a row or a value.
    """
    from concurrent.futures import ThreadPoolExecutor

    if for_spreadsheet:
        table = _with_texts(table, sheet_cell)
    if out.isatty():
        table = _with_texts(table, terminal)
    out.write(",".join(map(_csv_cell, table.column_names)) + "\n")
    batches = iter(table.to_batches(max_chunksize=_CSV_ROWS) if table.num_columns else ())
    with ThreadPoolExecutor(_CSV_THREADS) as pool:
        ahead = deque(pool.submit(_csv_lines, batch) for batch in islice(batches, _CSV_THREADS))
        while ahead:
            out.write(ahead.popleft().result())
            ahead.extend(pool.submit(_csv_lines, batch) for batch in islice(batches, 1))


def _with_texts(table: pa.Table, written: Callable[[str], str]) -> pa.Table:
    """Return a table in which `written` replaces the column names and each text; lists become text before."""
    import pyarrow as pa

    def replaced(column: pa.ChunkedArray) -> Any:
        if pa.types.is_list(column.type):
            texts = [None if items is None else written(value_text(items)) for items in column.to_pylist()]
            return pa.array(texts, pa.string())
        if not pa.types.is_string(column.type):
            return column
        keys = column.combine_chunks().dictionary_encode()  # texts repeat
        names = [None if text is None else written(text) for text in keys.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(keys.indices)

    return pa.Table.from_arrays(list(map(replaced, table.columns)), list(map(written, table.column_names)))


def _csv_lines(batch: pa.RecordBatch) -> str:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.num_rows:
        return ""
    rows = pc.binary_join_element_wise(*map(_csv_column, batch.columns), ",")
    together = pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows)
    lines: str = pc.binary_join(together, "\n")[0].as_py()
    return lines + "\n"


def _csv_column(values: Any) -> Any:
    """Return a column as texts without NULL. Reals show the shortest digits that read back as the same double."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(values.type):
        return pa.array(
            [_csv_cell(None if items is None else value_text(items)) for items in values.to_pylist()], pa.string()
        )
    texts = values.cast(pa.string())
    if pa.types.is_floating(values.type):
        texts = _with_points(texts, values)
    elif pa.types.is_timestamp(values.type):
        texts = pc.replace_substring_regex(texts, r"\.000000$", "")
    elif pa.types.is_string(values.type) and _unquotable(texts):
        quoted = pc.or_(pc.equal(texts, ""), pc.match_substring_regex(texts, '[,"\r\n]'))
        texts = pc.if_else(quoted, _joined('"', pc.replace_substring(texts, '"', '""'), '"'), texts)
    return texts.fill_null("")


def _with_points(texts: Any, values: Any) -> Any:
    """Return texts of reals with a decimal point: 2 is an integer, 2.0 a real. Only whole numbers can lack their point."""
    import pyarrow.compute as pc

    whole = pc.equal(values, pc.trunc(values)).fill_null(False)
    numbers = texts.filter(whole)
    pointed = pc.if_else(pc.match_substring_regex(numbers, "[.en]"), numbers, _joined(numbers, ".0"))
    return pc.replace_with_mask(texts, whole, pointed)


def _unquotable(texts: Any) -> bool:
    """Return whether a text is empty or has a character to be quoted. Their contiguous bytes are read at once."""
    import numpy as np
    import pyarrow.compute as pc

    if pc.min(pc.binary_length(texts)).as_py() == 0:
        return True
    together = b"" if texts.buffers()[2] is None else memoryview(texts.buffers()[2])
    offsets = np.frombuffer(texts.buffers()[1], np.int32, len(texts) + 1, 4 * texts.offset)
    ours = bytes(together[offsets[0] : offsets[-1]])
    return any(mark in ours for mark in (b",", b'"', b"\r", b"\n"))


def _joined(*parts: Any) -> Any:
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*parts, "")


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return csv_cell(value.isoformat(" ") if isinstance(value, datetime) else str(value))


class ColumnObject(TypedDict):
    """One column of an answer. `notes`: what its numbers are, besides noise; `rank_error`: the rows of rank by which a chosen
    number may be off."""

    name: str
    type: str
    noisy: bool
    notes: NotRequired[list[str]]
    rank_error: NotRequired[float]


class AnswerObject(TypedDict):
    """Everything known of an answer apart from its rows. Lists by row (`low`, `high`, `error`, `unknown`, `flags`) have the noisy
    columns alone; an end of null is unknown, and numbers that JSON lacks are the texts "NaN", "Infinity", "-Infinity"."""

    columns: list[ColumnObject]
    confidence: float
    low: list[dict[str, float | str | None]]
    high: list[dict[str, float | str | None]]
    error: list[dict[str, float | str | None]]
    unknown: list[dict[str, bool]]
    flags: list[dict[str, str]]
    notes: list[str]
    charged: str
    price: str
    loss: dict[str, str | None]
    receipt: str
    reused: bool
    remaining: dict[str, str]
    notices: list[str]


class ReleaseObject(AnswerObject):
    """An answer as `--format json` writes it."""

    rows: list[dict[str, Any]]


def write_json(release: Release, out: TextIO) -> None:
    out.write(json_text({"rows": row_objects(release), **as_object(release)}) + "\n")


class PlanColumn(TypedDict):
    """Name and type of a column that the answer will have."""

    name: str
    type: str


class PlanObject(TypedDict):
    """EXPLAIN, as `dpsql explain --format json` writes it. `errors` and `groups` are what is known of noisy columns and groups,
    `price` is what would be charged, `stored` names what stored releases answer, and `engine_sql` has the text of each block, for
    the owner alone."""

    lines: list[str]
    errors: list[dict[str, Any]]
    groups: dict[str, Any] | None
    outputs: list[dict[str, Any]]
    price: str
    stored: list[str]
    remaining: dict[str, str]
    columns: list[PlanColumn]
    engine_sql: dict[str, str]


def plan_object(plan: PrivacyPlan) -> PlanObject:
    return {
        "lines": list(plan.lines),
        "errors": list(map(asdict, plan.errors)),
        "groups": None if plan.groups is None else asdict(plan.groups),
        "outputs": [asdict(output) | {"figures": output.figures.value} for output in plan.outputs],
        "price": plan.price,
        "stored": list(plan.stored),
        "remaining": dict(plan.remaining),
        "columns": [{"name": name, "type": type_} for name, type_ in plan.columns],
        "engine_sql": dict(plan.engine_sql),
    }


def row_objects(release: Release) -> list[dict[str, Any]]:
    return _records(release.table)


def as_object(release: Release) -> AnswerObject:
    """Return everything known of an answer apart from its rows: columns, error bars, price and receipt."""
    described = release.described
    noisy = [index for index, column in enumerate(described) if column.noisy]
    loss = release.loss
    names = unique_names([column.name for column in described])
    return {
        "columns": [_column_object(column) for column in described],
        "confidence": release.confidence,
        "low": _records(release.low, noisy) if noisy else [],
        "high": _records(release.high, noisy) if noisy else [],
        "error": _records(release.error, noisy) if noisy else [],
        "unknown": _rows_of({names[i]: described[i].unknown.tolist() for i in noisy}),
        "flags": _rows_of({names[i]: described[i].flags for i in noisy}),
        "notes": list(release.remarks) if noisy else [],
        "charged": release.receipt.charged,
        "price": release.receipt.price,
        "loss": {name: None if v is None else str(v) for name, v in vars(loss).items()},
        "receipt": release.receipt_id,
        "reused": release.reused,
        "remaining": dict(release.remaining),
        "notices": list(release.notices),
    }


def _column_object(column: DescribedColumn) -> ColumnObject:
    written = ColumnObject(name=column.name, type=column.type.value, noisy=column.noisy)
    if column.notes:
        written["notes"] = list(column.notes)
    if column.rank_error is not None:
        written["rank_error"] = column.rank_error
    return written


def _rows_of(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return lists by column as objects by row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _records(table: pa.Table, columns: Iterable[int] | None = None) -> list[dict[str, Any]]:
    """Return rows as objects; a repeated name gets a number (n, n_1)."""
    indices = list(range(table.num_columns)) if columns is None else list(columns)
    names = unique_names(table.column_names)
    values = [[_json_value(value) for value in table.column(i).to_pylist()] for i in indices]
    return [dict(zip([names[i] for i in indices], row, strict=True)) for row in zip(*values, strict=True)]


def _json_value(value: object) -> object:
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else value


def unique_names(names: Sequence[str]) -> list[str]:
    """Return the names made distinct, for formats that do not allow repeated ones: n, n_1, n_2."""
    unique_so_far: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in unique_so_far:
            number += 1
            unique = f"{name}_{number}"
        unique_so_far.append(unique)
    return unique_so_far


def write_binary(table: pa.Table, out: IO[bytes], format: str) -> None:
    """Write a table as Parquet or as an Arrow IPC stream."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = table.rename_columns(unique_names(table.column_names))
    if format == "parquet":
        pq.write_table(table, out)
        return
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


def write_file(release: Release, path: Path, format: str, bars: bool, *, for_spreadsheet: bool = False) -> None:
    """Write the answer as a file in any of `FORMATS`. Raises Fault (file_write)."""
    table = release.to_arrow(bars=bars)
    with writing(path, charged=release.receipt.is_paid):
        if format in BINARY_FORMATS:
            with path.open("wb") as file:
                write_binary(table, file, format)
            return
        with path.open("w", encoding="utf-8", newline="") as text:
            write_text(release, text, format, bars, for_spreadsheet=for_spreadsheet)


def write_text(
    release: Release, out: TextIO, format: str, bars: bool, width: int | None = None, *, for_spreadsheet: bool = False
) -> None:
    """Write the answer in one of `TEXT_FORMATS`; `bars`: also in csv. `for_spreadsheet`: of `write_csv`."""
    if format == "csv":
        write_csv(release.to_arrow(bars=bars), out, for_spreadsheet=for_spreadsheet)
    elif format == "json":
        write_json(release, out)
    elif format == "md":
        write_markdown(release, out)
    elif release.columns:
        write_table(release, out, width)


def write_rows(names: Sequence[str], rows: Sequence[Sequence[Any]], out: TextIO, format: str) -> None:
    """Write rows that are no answer (accounts, charges) in one of `TEXT_FORMATS`."""
    if format == "csv":
        line = terminal if out.isatty() else str
        out.writelines(line(",".join(map(_csv_cell, row))) + "\n" for row in (names, *rows))
    elif format == "json":
        out.write(json_text([dict(zip(names, row, strict=True)) for row in rows]) + "\n")
    else:
        right = [all(isinstance(row[index], (int, float, type(None))) for row in rows) for index in range(len(names))]
        draw(names, [[shown_value(row[index]) for row in rows] for index in range(len(names))], right, out)


# --- price ----------------------------------------------------------------------------------------------------------


def price_lines(session: Session, release: Release, *, verbose: bool = False) -> list[str]:
    """Return the price of an answer and the remaining budget, as lines of text; nothing for statements that are no question.
    `verbose`: with the exact charge and the receipt."""
    lines = [f"notice: {notice}" for notice in session.news(release)]
    if not release.receipt_id:
        return lines
    if any(column.noisy for column in release.columns):
        lines += [f"note: {note}" for note in release.remarks]
    if release.reused:
        lines.append("price: nothing, answered from stored releases")
    else:
        from dpsql.release.shape import cases_text

        cases = cases_text(release.described, release.confidence)
        lines.append(f"price: {release.receipt.price or release.receipt.charged}{cases}")
    if verbose:
        lines.append(f"charged: {release.receipt.charged}; receipt {release.receipt_id}")
    return [*lines, f"left: {left_text(session)}"]


def say_price(session: Session, release: Release, *, verbose: bool = False, **style: Any) -> None:
    """Print the price of an answer and the remaining budget on standard error; lines that are too long for a terminal are broken
    between words, with an indent. `style`: of `say`."""
    width = max(40, shutil.get_terminal_size().columns) if sys.stderr.isatty() else None
    for line in price_lines(session, release, verbose=verbose):
        for part in [line] if width is None else wrap(line, width, subsequent_indent="  ", break_on_hyphens=False):
            say_line(part, err=True, **style)


def left_text(session: Session) -> str:
    """Return how many questions each account has left: "dataset 31 questions, analyst research 15, each of epsilon 0.03"; if the
    ledger fails, return why instead of raising, because the answer has been paid for."""
    try:
        return session.left_text()
    except Error as error:
        return f"unknown ({error.message})"
