"""Answers as text and files: tables with error bars for people; csv, json, parquet and arrow for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO

from dpsql.errors import refuse

if TYPE_CHECKING:
    import pyarrow as pa

    from dpsql.release import Release
    from dpsql.session import Session

TEXT_FORMATS = ("table", "csv", "json")
BINARY_FORMATS = ("parquet", "arrow")
FORMATS = TEXT_FORMATS + BINARY_FORMATS
_MOST_DECIMALS = 12


# --- cells for people -----------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Text from data on a terminal: control characters are spelled out, so that no cell moves the cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shown_value(value: object, error: float | None = None) -> str:
    """A value as a person reads it; a number with an error bar is shown to the digits that the error leaves."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.10g}" if error is None or not math.isfinite(value) else f"{value:.{_decimals(error)}f}"
    return value.isoformat(" ") if isinstance(value, datetime) else printable(str(value))


def shown_error(error: float | None, whole: bool) -> str:
    """A half width, two digits, rounded up so that it never claims too much; "?" when it is unknown."""
    if error is None or not math.isfinite(error):
        return "?"
    places = 0 if whole else _decimals(error)
    return f"{math.ceil(round(error * 10**places, 9)) / 10**places:.{places}f}"


def _decimals(error: float) -> int:
    if not math.isfinite(error):
        return 0
    return min(_MOST_DECIMALS, max(0, 1 - math.floor(math.log10(error)))) if error > 0 else _MOST_DECIMALS


def shown_columns(release: Release, between: str = "±") -> list[list[str]]:
    """The cells of an answer by column, error bars beside noisy values, aligned."""
    columns = []
    for at, column in enumerate(release.columns):
        values = release.table.column(at).to_pylist()
        if not column.noisy:
            columns.append([shown_value(value) for value in values])
            continue
        errors = release.error.column(at).to_pylist()
        whole = column.type.value == "integer"
        left = [shown_value(value, error) for value, error in zip(values, errors, strict=True)]
        right = ["" if value is None else shown_error(e, whole) for value, e in zip(values, errors, strict=True)]
        widths = (max(map(len, left), default=0), max(map(len, right), default=0))
        columns.append([
            f"{value:>{widths[0]}} {between if bar else ' ' * len(between)} {bar:>{widths[1]}}"
            for value, bar in zip(left, right, strict=True)
        ])
    return columns


def write_table(release: Release, out: TextIO, width: int | None = None) -> None:
    """The answer as a table, or line by line when it does not fit a terminal of `width` characters (None: no limit)."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    names = [printable(column.name) for column in release.columns]
    columns = shown_columns(release, "±" if _writes(out, "±─") else "+/-")
    widths = [max([len(name), *map(len, cells)]) for name, cells in zip(names, columns, strict=True)]
    if width is not None and sum(widths) + 2 * len(widths) > width:
        _write_lines(names, columns, out)
        return
    table = Table(box=box.SIMPLE_HEAD if _writes(out, "─") else box.ASCII2, pad_edge=False, show_edge=False)
    for name, column in zip(names, release.columns, strict=True):
        number = column.type.value in ("integer", "real")
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
    for row in zip(*columns, strict=True):
        table.add_row(*map(Text, row))
    console = Console(file=out, width=max(sum(widths) + 3 * len(widths), 20), highlight=False, markup=False)
    console.print(table)


def _write_lines(names: Sequence[str], columns: Sequence[Sequence[str]], out: TextIO) -> None:
    wide = max(map(len, names))
    for number, row in enumerate(zip(*columns, strict=True), 1):
        out.write(f"row {number}\n")
        out.writelines(f"  {name:<{wide}}  {cell.strip()}\n" for name, cell in zip(names, row, strict=True))


def _writes(out: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(out, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


# --- formats for programs -------------------------------------------------------------------------------------------


def with_bars(release: Release) -> pa.Table:
    """The answer with two more columns, NAME_low and NAME_high, after each noisy one."""
    import pyarrow as pa

    arrays: list[Any] = []
    names: list[str] = []
    for at, column in enumerate(release.columns):
        arrays.append(release.table.column(at))
        names.append(column.name)
        if column.noisy:
            arrays += [release.low.column(at), release.high.column(at)]
            names += [f"{column.name}_low", f"{column.name}_high"]
    return pa.Table.from_arrays(arrays, names=names)


def write_csv(table: pa.Table, out: TextIO) -> None:
    """RFC 4180 with a header; NULL is empty and unquoted, an empty text is quoted."""
    out.write(",".join(map(_csv_cell, table.column_names)) + "\n")
    for batch in table.to_batches():
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            out.write(",".join(map(_csv_cell, row)) + "\n")


def _csv_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value.isoformat(" ") if isinstance(value, datetime) else str(value)
    quoted = text == "" or any(c in text for c in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def write_json(release: Release, out: TextIO) -> None:
    """One object: columns, rows, ends of the error bars, price and receipt; see `as_object`."""
    json.dump({"rows": _records(release.table), **as_object(release)}, out, ensure_ascii=False, allow_nan=False)
    out.write("\n")


def as_object(release: Release) -> dict[str, Any]:
    """What is known of an answer beside its rows: columns, error bars (noisy columns only), price and receipt.

    Numbers that JSON lacks are the texts "NaN", "Infinity", "-Infinity"; an end of None is unknown.
    """
    noisy = [at for at, column in enumerate(release.columns) if column.noisy]
    loss = release.loss
    return {
        "columns": [{"name": c.name, "type": c.type.value, "noisy": c.noisy} for c in release.columns],
        "confidence": release.confidence,
        **{end: _records(getattr(release, end), noisy) if noisy else [] for end in ("low", "high", "error")},
        "notes": list(release.bars.notes) if noisy else [],
        "charged": release.receipt.charged,
        "loss": {name: None if v is None else str(v) for name, v in vars(loss).items()},
        "receipt": release.receipt_id,
        "reused": release.reused,
        "remaining": dict(release.remaining),
        "notices": list(release.notices),
    }


def _records(table: pa.Table, columns: Iterable[int] | None = None) -> list[dict[str, Any]]:
    """Rows as objects; a repeated name gets a number (n, n_1)."""
    at = list(range(table.num_columns)) if columns is None else list(columns)
    names = unique_names(table.column_names)
    values = [[_json_value(value) for value in table.column(i).to_pylist()] for i in at]
    return [dict(zip([names[i] for i in at], row, strict=True)) for row in zip(*values, strict=True)]


def _json_value(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else value


def unique_names(names: Sequence[str]) -> list[str]:
    """Names made different for formats that know no repeated ones: n, n_1, n_2."""
    found: list[str] = []
    for name in names:
        number, unique = 0, name
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found.append(unique)
    return found


def write_binary(table: pa.Table, out: IO[bytes], format: str) -> None:
    """Parquet, or an Arrow IPC stream."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = table.rename_columns(unique_names(table.column_names))
    if format == "parquet":
        pq.write_table(table, out)
        return
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)


def write_file(release: Release, place: Path, format: str, bars: bool) -> None:
    """The answer as a file in any of `FORMATS`. Raises Fault (file_write)."""
    table = with_bars(release) if bars else release.table
    try:
        if format in BINARY_FORMATS:
            with place.open("wb") as file:
                write_binary(table, file, format)
            return
        with place.open("w", encoding="utf-8", newline="") as text:
            write_text(release, text, format, bars)
    except OSError as error:
        raise refuse("file_write", place=str(place), problem=error.strerror or "it failed") from None


def write_text(release: Release, out: TextIO, format: str, bars: bool, width: int | None = None) -> None:
    """The answer in one of `TEXT_FORMATS`; `bars` adds columns to csv, the other two always have error bars."""
    if format == "csv":
        write_csv(with_bars(release) if bars else release.table, out)
    elif format == "json":
        write_json(release, out)
    elif release.columns:
        write_table(release, out, width)


# --- price ----------------------------------------------------------------------------------------------------------


def price_lines(session: Session, release: Release) -> list[str]:
    """What an answer cost and what is left, for people; nothing for statements that are no question."""
    lines = [f"notice: {notice}" for notice in release.notices]
    if not release.receipt_id:
        return lines
    noisy = any(column.noisy for column in release.columns)
    if noisy:
        lines += [f"note: {note}" for note in release.bars.notes]
    if release.reused:
        lines.append("price: nothing, answered from stored releases")
    else:
        bars = f"; error bars hold in {release.confidence * 100:g} % of cases" if noisy else ""
        lines.append(f"price: {release.receipt.charged} (receipt {release.receipt_id}){bars}")
    return [*lines, f"left: {left_text(session)}"]


def left_text(session: Session) -> str:
    """What each account has left, in epsilon: "dataset 9.36 of epsilon 10, analyst research 3.36 of 4"."""
    parts = []
    for scope, (spent, limit) in session.budget().epsilon.items():
        parts.append(f"{scope.replace(':', ' ')} {max(0.0, limit - spent):.4g} of epsilon {limit:.4g}")
    return ", ".join(parts)
