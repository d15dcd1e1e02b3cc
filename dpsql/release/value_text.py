"""Values and answers as text: values of types that answers do not have (INTERVAL, nested lists, structures) as SQL writes
them, and an answer as HTML, for notebooks: noisy values with their error bars, the price, notices and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from dpsql.media.text import Markup, joined, markup

MOST_ROWS = 50
MOST_WRITTEN_OUT = 1e15
"""Size from which on numbers are not written out in full."""


def value_text(value: Any) -> str:
    """Return a value as text for clients, never as the repr of a Python object."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (pa.MonthDayNano, timedelta)):
        return interval_text(*interval_parts(value))
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"'{name}': {value_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)


def interval_parts(value: Any) -> tuple[int, int, int]:
    """Return months, days and microseconds of Arrow's month_day_nano or of a timedelta."""
    if isinstance(value, timedelta):
        return 0, value.days, (value - timedelta(days=value.days)) // timedelta(microseconds=1)
    months, days, nanoseconds = value
    return months, days, nanoseconds // 1000


def interval_text(months: int, days: int, micros: int) -> str:
    """Return an interval as PostgreSQL writes it: 1 year 2 mons 3 days 04:05:06."""
    years, months = int(months / 12), months - int(months / 12) * 12
    parts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((years, "year"), (months, "mon"), (days, "day")) if n]
    if micros or not parts:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (
            f".{fraction:06}".rstrip("0") if fraction else ""
        )
        parts.append(("-" if micros < 0 else "") + clock)
    return " ".join(parts)


def half_width_text(width: float) -> str:
    """Return the half width of an error bar as text with three digits, rounded up; with separators of thousands from 1,000 on,
    and with an exponent from `MOST_WRITTEN_OUT` on."""
    if width < 1e-300 or not math.isfinite(width):
        return f"{width:g}"  # a thousandth of it may be no double
    step = 10.0 ** (math.floor(math.log10(width)) - 2)
    rounded = math.ceil(round(width / step, 6)) * step
    return f"{rounded:,.0f}" if 1000 <= width < MOST_WRITTEN_OUT else f"{rounded:.3g}"


def answer_html(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    errors: Sequence[Sequence[float | None] | str | None],
    count: int,
    remarks: Iterable[str],
) -> Markup:
    """Return an HTML table of the first `MOST_ROWS` of `count` rows, with remarks below it.

    `errors`: for each column the half widths of its error bars by row (None where unknown), a text for all rows, or None
    for a column without noise.
    """
    head = joined(markup("<th>{}</th>", name) for name in names)
    body = []
    for number, row in zip(range(MOST_ROWS), rows, strict=False):
        cells = [_cell(value, bars, number) for value, bars in zip(row, errors, strict=True)]
        body.append(markup("<tr>{}</tr>", joined(markup("<td>{}</td>", cell) for cell in cells)))
    more = markup("<p>{} rows, the first {} shown</p>", count, MOST_ROWS) if count > MOST_ROWS else ""
    below = joined(markup("<p>{}</p>", remark) for remark in remarks)
    return markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}{}", head, joined(body), more, below)


def _cell(value: object, bars: Sequence[float | None] | str | None, row: int) -> str:
    if value is None:
        return "NULL"
    if isinstance(bars, str):
        return markup("{} &plusmn; {}", f"{value:.10g}" if isinstance(value, float) else value, bars)
    if bars is None or not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    error = bars[row]
    if error is None or not math.isfinite(error):
        return markup("{} &plusmn; ?", f"{value:.6g}")
    if max(abs(value), error) >= MOST_WRITTEN_OUT:
        return markup("{} &plusmn; {}", f"{value:.6g}", half_width_text(error))
    decimals = 0 if isinstance(value, int) or error == 0 else min(12, max(0, 1 - math.floor(math.log10(error))))
    wide = math.ceil(round(error * 10**decimals, 9)) / 10**decimals
    return markup("{} &plusmn; {}", f"{value:.{decimals}f}", f"{wide:.{decimals}f}")
