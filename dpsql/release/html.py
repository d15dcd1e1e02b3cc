"""An answer as HTML, for notebooks: noisy values with their error bars, the price, notices and notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dpsql.media.markup import Markup, joined, markup
from dpsql.release.value_text import MOST_WRITTEN_OUT, half_width_text

MOST_ROWS = 50


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
