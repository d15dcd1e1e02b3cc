"""An answer as HTML, for notebooks: noisy values with their error bars, the price, notices and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from dpsql.release.value_text import MOST_WRITTEN_OUT, half_width_text

MOST_ROWS = 50


def answer_html(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    errors: Sequence[Sequence[float | None] | None],
    count: int,
    remarks: Iterable[str],
) -> str:
    """Return an HTML table of the first `MOST_ROWS` of `count` rows, with remarks below it. All texts are escaped.

    `errors`: for each column the half widths of its error bars by row (None where unknown), or None for a column without noise.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = []
    for number, row in zip(range(MOST_ROWS), rows, strict=False):
        cells = [_cell(value, bars, number) for value, bars in zip(row, errors, strict=True)]
        body.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    more = f"<p>{count} rows, the first {MOST_ROWS} shown</p>" if count > MOST_ROWS else ""
    below = "".join(f"<p>{escape(remark)}</p>" for remark in remarks)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{more}{below}"


def _cell(value: object, bars: Sequence[float | None] | None, row: int) -> str:
    if value is None:
        return "NULL"
    if bars is None or not isinstance(value, (int, float)) or isinstance(value, bool):
        return escape(str(value))
    error = bars[row]
    if error is None or not math.isfinite(error):
        return f"{value:.6g} &plusmn; ?"
    if max(abs(value), error) >= MOST_WRITTEN_OUT:
        return f"{value:.6g} &plusmn; {half_width_text(error)}"
    decimals = 0 if isinstance(value, int) or error == 0 else min(12, max(0, 1 - math.floor(math.log10(error))))
    wide = math.ceil(round(error * 10**decimals, 9)) / 10**decimals
    return f"{value:.{decimals}f} &plusmn; {wide:.{decimals}f}"
