"""Answers for people: cells, error bars next to noisy values, and tables."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Container, Mapping, Sequence
from datetime import datetime
from enum import Enum
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

from dpsql.frontends.rendering.terminal import standard_output
from dpsql.media.text import markdown_cell, terminal
from dpsql.policy import Policy, Table
from dpsql.policy.types import PolicyColumn
from dpsql.release.shape import rows_text

if TYPE_CHECKING:
    from dpsql.release.release import Release


_MOST_DECIMALS = 12
_MOST_CHARACTERS = 36
_FIRST_ACCENT = "\u0300"
"""The first character that a terminal does not show in exactly one place."""


class Layout(Enum):
    """The layout of an answer: as a table, one value a line, or as a table if that fits the width."""

    TABLE = "table"
    LINES = "lines"
    AUTO = "auto"


def shown_value(value: object, error: float | None = None) -> str:
    """Return a value in a form for people; a number with an error bar is shown to the digits that the error leaves."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.{_decimals(error)}f}" if error and math.isfinite(value) else f"{value:.10g}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown_value, value)) + "]"
    return value.isoformat(" ") if isinstance(value, datetime) else terminal(str(value))


def shown_error(error: float | None, whole: bool) -> str:
    """Return a half width with two digits, rounded up so that it never claims too much; "?" if it is unknown."""
    if error is None or not math.isfinite(error):
        return "?"
    if error == 0:
        return "0"
    indexes = 0 if whole else _decimals(error)
    return f"{math.ceil(round(error * 10**indexes, 9)) / 10**indexes:.{indexes}f}"


def _decimals(error: float) -> int:
    return min(_MOST_DECIMALS, max(0, 1 - math.floor(math.log10(error)))) if math.isfinite(error) else 0


def _error_or(error: float | None, otherwise: float | None) -> float | None:
    """Return an error if it is known, else the other one, by whose digits a number without an error is written."""
    return otherwise if error is None or not math.isfinite(error) else error


def shown_columns(release: Release, between: str = "±") -> list[list[str]]:
    """Return the cells of an answer by column, with aligned error bars next to noisy values."""
    columns = []
    for index, column in enumerate(release.described):
        values = release.table.column(index).to_pylist()
        if not column.noisy:
            columns.append([shown_value(value) for value in values])
            continue
        if column.rank_error is not None:
            off = rows_text(column.rank_error)
            columns.append(["NULL" if value is None else f"{shown_value(value)} {between} {off}" for value in values])
            continue
        errors = release.error.column(index).to_pylist()
        whole = column.type.value == "integer"
        widest = max((error for error in errors if error is not None and math.isfinite(error)), default=None)
        left = [shown_value(value, _error_or(error, widest)) for value, error in zip(values, errors, strict=True)]
        right = ["" if value is None else shown_error(e, whole) for value, e in zip(values, errors, strict=True)]
        widths = (max(map(len, left), default=0), max(map(len, right), default=0))
        columns.append(
            [
                f"{value:>{widths[0]}} {between if bar else ' ' * len(between)} {bar:>{widths[1]}}"
                for value, bar in zip(left, right, strict=True)
            ]
        )
    return columns


def write_table(release: Release, out: TextIO, width: int | None = None, layout: Layout = Layout.AUTO) -> None:
    """Write the answer in a layout. AUTO: a table, or one value a line if it is wider than `width` (None: no limit)."""
    names = [column.name for column in release.columns]
    cells = shown_columns(release, "±" if _writes(out, "±") else "+/-")
    if layout is Layout.LINES:
        _write_lines(list(map(terminal, names)), cells, out)
        return
    right = [column.type.value in ("integer", "real") for column in release.columns]
    draw(names, cells, right, out, None if layout is Layout.TABLE else width)


def write_markdown(release: Release, out: TextIO) -> None:
    """Write the answer as a table of Markdown, with error bars next to noisy values."""
    rules = ["---:" if column.type.value in ("integer", "real") else "---" for column in release.columns]
    columns = [
        [markdown_cell(column.name), rule, *(markdown_cell(" ".join(cell.split())) for cell in cells)]
        for column, rule, cells in zip(release.columns, rules, shown_columns(release), strict=True)
    ]
    out.writelines(f"| {' | '.join(row)} |\n" for row in zip(*columns, strict=True))


def draw(
    names: Sequence[str], columns: Sequence[Sequence[str]], right: Sequence[bool], out: TextIO, width: int | None = None
) -> None:
    """Write cells by column as a table; `right` says which columns are numbers. A table wider than `width` characters is written
    one value a line, a single column as paragraphs. Cells are cleaned for a terminal."""
    names, columns = list(map(terminal, names)), [list(map(terminal, cells)) for cells in columns]
    widths = [max(map(_width, [name, *cells])) for name, cells in zip(names, columns, strict=True)]
    if width is not None and sum(widths) + 2 * len(widths) > width:
        if len(names) == 1:
            _write_wrapped(names[0], columns[0], width, out)
        else:
            _write_lines(names, columns, out)
        return
    between, dash, crossing = ("   ", "─", "───") if _writes(out, "─") else (" | ", "-", "-+-")
    lines = [_line(row, widths, right, between) for row in (names, *zip(*columns, strict=True))]
    lines.insert(1, crossing.join(dash * wide for wide in widths))
    out.writelines(f"{line.rstrip()}\n" for line in lines)


def say_table(names: Sequence[str], rows: Sequence[Sequence[str]], words: Container[int] = (0,)) -> None:
    """Print rows of texts as a table; `words`: the columns that are no numbers."""
    columns = [[row[index] for row in rows] for index in range(len(names))]
    draw(names, columns, [index not in words for index in range(len(names))], standard_output())


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], between: str) -> str:
    blanks = [" " * (wide - _width(cell)) for cell, wide in zip(cells, widths, strict=True)]
    aligned = [
        f"{blank}{c}" if to_right else f"{c}{blank}" for c, blank, to_right in zip(cells, blanks, right, strict=True)
    ]
    return between.join(aligned)


def _width(text: str) -> int:
    """Return how many characters wide a terminal shows a text: some letters take two places, and accents none."""
    if max(text, default="") < _FIRST_ACCENT:
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _write_lines(names: Sequence[str], columns: Sequence[Sequence[str]], out: TextIO) -> None:
    wide = max(map(len, names))
    for number, row in enumerate(zip(*columns, strict=True), 1):
        out.write(f"row {number}\n")
        out.writelines(f"  {name:<{wide}}  {cell.strip()}\n" for name, cell in zip(names, row, strict=True))


def _write_wrapped(name: str, cells: Sequence[str], width: int, out: TextIO) -> None:
    """Write the only column of a table, such as EXPLAIN's, as paragraphs: further lines of a cell are indented."""
    out.write(f"{name}\n")
    for cell in cells:
        out.writelines(f"{line}\n" for line in wrap(cell, width, subsequent_indent="  ") or [""])


def _writes(out: TextIO, text: str) -> bool:
    try:
        text.encode(getattr(out, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def column_summary(columns: Sequence[Mapping[str, Any]], encoding: str, width: int) -> str:
    """Return the rows of DESCRIBE as a table of four columns; long cells are cut, those of the last one to the terminal's width.

    `encoding` is that of the terminal, which decides how lines are drawn.
    """
    names = ["column", "type", "values", "what it is"]
    cells = [
        [str(column["column"]) for column in columns],
        [f"{column['type']}{'' if column['nullable'] else ' not null'}" for column in columns],
        [_shortened(_values(column)) for column in columns],
    ]
    before = sum(max(map(_width, [name, *column])) + 3 for name, column in zip(names, cells, strict=False))
    about = ("; ".join(filter(None, (column["keys"], column["description"]))) for column in columns)
    cells.append([_shortened(text, max(_MOST_CHARACTERS // 2, width - before)) for text in about])
    return drawn(lambda out: draw(names, cells, [False] * 4, out), encoding)


def drawn(write: Callable[[TextIO], None], encoding: str) -> str:
    """Return what `write` writes to a terminal of an encoding."""
    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="\n")
    write(out)
    out.seek(0)
    return out.read()


def _values(column: Mapping[str, Any]) -> str:
    label = "" if column["outside"] is None else f"; others: {column['outside']}"
    if column["domain"] is not None:
        return f"{column['domain']}{label}"
    return "" if column["lower"] is None else f"{column['lower']} to {column['upper']}{label}"


def _shortened(text: str, most: int = _MOST_CHARACTERS) -> str:
    whole = terminal(text)
    return whole if len(whole) <= most else whole[: most - 3] + "..."


# --- comments on tables and columns of a policy, as catalogs show them to analysts ------------------------------------

_MOST_LISTED = 12


def table_comment(policy: Policy, table: Table) -> str:
    """Return the comment of a table for a BI user: its description, whether it is protected, and how much of a unit counts."""
    if table.public:
        kind = "public table"
    elif policy.privacy_unit is None:
        kind = "protected table, each row by itself"
    else:
        unit_table = policy.visible.get(policy.privacy_unit.table)
        is_visible = unit_table is not None and policy.privacy_unit.column in unit_table.columns
        unit = f"{policy.privacy_unit.table}.{policy.privacy_unit.column}" if is_visible else "privacy unit"
        kind = f"protected table: up to {table.bounds.max_rows} rows of one {unit} are counted"
    return "; ".join(filter(None, (table.description, kind, policy.unprotected.get(table.name))))


def column_comment(policy: Policy, table: Table, column: PolicyColumn) -> str:
    """Return description, bounds, public keys and the column's part in the privacy unit; empty if there is nothing to say."""
    parts = [column.remark] if column.remark else []
    if column.lower is not None:
        parts.append(f"clamped to {_as_text(column.lower)} .. {_as_text(column.upper)}")
    if column.domain is not None:
        listed = [_as_text(value) for value in column.domain[:_MOST_LISTED]]
        more = f" ... ({len(column.domain)} in all)" if len(column.domain) > _MOST_LISTED else ""
        parts.append("public keys: " + ", ".join(listed) + more)
    if not policy.unit_joins(table.name) and policy.unit_column(table.name) == column.name:
        parts.append("privacy unit")
    if column.name in (table.unprotected or ()):
        parts.append("people who are not protected")
    return "; ".join(parts)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    denominator = getattr(value, "denominator", 1)
    return str(value) if denominator == 1 else f"{float(value):g}"
