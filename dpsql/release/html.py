"""An answer as HTML, for notebooks: noisy values with their error bars, the price, notices and notes."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.release.release import Release

MOST_ROWS = 50


def release_html(release: Release) -> str:
    """A table of at most `MOST_ROWS` rows and what belongs to it. Every text from data is escaped."""
    errors = [release.error.column(position).to_pylist() for position in range(len(release.columns))]
    head = "".join(f"<th>{escape(column.name)}</th>" for column in release.columns)
    rows = []
    for number, row in zip(range(MOST_ROWS), release.rows(), strict=False):
        cells = [
            _cell(value, errors[position][number] if column.noisy else None, column.noisy)
            for position, (column, value) in enumerate(zip(release.columns, row, strict=True))
        ]
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    more = f"<p>{len(release)} rows, the first {MOST_ROWS} shown</p>" if len(release) > MOST_ROWS else ""
    price = "nothing charged" if release.reused else f"charged {release.receipt.charged}"
    confidence = f"; error bars hold in {release.confidence * 100:g} % of cases" if any(map(_is_noisy, errors)) else ""
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in (*release.notices, *release.bars.notes))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{more}"
        f"<p>{escape(price)}, receipt {escape(release.receipt_id)}{confidence}</p>{f'<ul>{remarks}</ul>' if remarks else ''}"
    )


def _is_noisy(errors: list[float | None]) -> bool:
    return any(error is not None for error in errors)


def _cell(value: object, error: float | None, noisy: bool) -> str:
    if value is None:
        return "NULL"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return escape(str(value))
    if not noisy:
        return escape(str(value))
    if error is None or not math.isfinite(error):
        return f"{value:.6g} &plusmn; ?"
    decimals = 0 if isinstance(value, int) or error == 0 else min(12, max(0, 1 - math.floor(math.log10(error))))
    wide = math.ceil(round(error * 10**decimals, 9)) / 10**decimals
    return f"{value:.{decimals}f} &plusmn; {wide:.{decimals}f}"
