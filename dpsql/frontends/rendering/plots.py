"""Pictures of released answers and of expected errors: SVG, PNG and HTML through Altair (the extra `plot`).

A picture shows a release and nothing else: its numbers, their error bars, and the keys they belong to. Two independent things
keep a hostile key harmless. Every text of a chart is cleaned before it is drawn (`media.text.picture`), and the library that
draws runs in `picture_process`: if it ends for a reason that we do not know, that is the fault `plot_failed`.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import refuse
from dpsql.frontends.files import replace_file, require_writable, writing
from dpsql.media.text import Markup, json_text, markup, picture, script_json, source_markup
from dpsql.storage.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from dpsql.release.release import OutputColumn, Release
    from dpsql.session.session import Session


ENDINGS = (".svg", ".png", ".html", ".json")
MOST_MARKS = 5_000
MOST_BARS = 60
"""Number of values above which keys are drawn as a line."""
_NUMBERED = 100
_PANEL_WIDTH = 480
_PANEL_HEIGHT = 240
_AXIS_LETTERS = 60
"""Total number of letters above which the labels of bars are slanted, or upright if there are more than `_MOST_SLANTED`."""
_MOST_SLANTED = 20
_SLANTED_PIXELS = 260
_FIRST_GROUPED = 10_000
"""Least number on an axis of keys that has a comma between its thousands."""
_MOST_HUES = 10
"""Number of series above which their colours are shades in order: hues would repeat."""
_BAR_COLOUR = "#4c78a8"
_RULE_COLOUR = "#222222"
_EXACT_COLOUR = "#d62728"
Chart = Any


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as stored in the folder of a run, with everything that its picture needs, as `Release` has it."""

    columns: tuple[OutputColumn, ...]
    table: pa.Table
    low: pa.Table
    high: pa.Table
    confidence: float

    def __len__(self) -> int:
        return int(self.table.num_rows)


def check_plot(path: Path) -> None:
    """Check before a charge that a picture can be written to `path`. Raises plot_missing, plot_ending, file_write."""
    if path.suffix.lower() not in ENDINGS:
        raise refuse("plot_ending", place=str(path), endings=", ".join(ENDINGS))
    if importlib.util.find_spec("altair") is None or importlib.util.find_spec("vl_convert") is None:
        raise refuse("plot_missing")
    require_writable(path)


def write_plot(chart: Chart, path: Path, *, charged: bool = False) -> None:
    """Write a chart in the format of `path`'s ending. Raises Faults file_write and plot_failed; `charged`: a charge stays."""
    drawn = picture_bytes(chart, path.suffix.lower(), charged=charged)
    with writing(path, charged=charged):
        path.write_bytes(drawn)


def write_owners_plot(chart: Chart, path: Path, *, charged: bool = False) -> None:
    """Write a chart with exact numbers as `write_plot` does, to a new file that its owner alone may read.

    It replaces any file at that place: a link is not followed, and a process that has the old file open does not see the new one.
    """
    drawn = picture_bytes(chart, path.suffix.lower(), charged=charged)
    replace_file(path, lambda part: part.write_bytes(drawn), private=True, charged=charged)


def check_columns(columns: Sequence[OutputColumn]) -> None:
    """Check that an answer of these columns has something to draw. Raises plot_nothing."""
    exact = sum(not column.noisy for column in columns)
    if exact > 2 or not any(map(_is_drawn, columns)):
        raise refuse("plot_nothing")


def _is_drawn(column: OutputColumn) -> bool:
    return column.noisy and column.type.value in ("integer", "real")


def require_drawable(session: Session, sql: str) -> None:
    """Check, before a question is charged, that its answer can be drawn. Raises what `check_columns` raises."""
    check_columns(session.describe(sql))


def draw_release(release: Release, path: Path) -> None:
    """Write the picture of an answer to a place checked by `check_plot`. Raises Fault file_write, saying what was charged."""
    with registering(charged=release.receipt.is_paid, passing=OSError):
        write_plot(release_chart(release), path, charged=release.receipt.is_paid)


def release_chart(
    release: Release | StoredAnswer, exact: Mapping[tuple[Any, ...], Sequence[Any]] | None = None
) -> Chart:
    """Return a chart of an answer: a panel for each noisy number with its error bars, over up to two columns of keys.

    Dates and keys of many values are drawn as lines with a band, other keys as bars; of very many rows only the first ones.
    `exact`: for the owner alone, the columns of the exact answer by the values of its keys, which are drawn next to the noisy
    ones.
    """
    check_columns(release.columns)
    keys = [index for index, column in enumerate(release.columns) if not column.noisy]
    drawn = [index for index, column in enumerate(release.columns) if _is_drawn(column)]
    count = min(len(release), MOST_MARKS // len(drawn))
    labels = [_labels(_values(release.table, index, count)) for index in keys]
    first = _values(release.table, keys[0], count) if keys else []
    present = [value for value in first if value is not None]
    as_line = bool(present) and (isinstance(present[0], date) or len(set(present)) > MOST_BARS)
    of_row = _of_rows(release, keys, count, exact)
    panels = []
    for index in drawn:
        tables = (release.table, release.low, release.high)
        values, lows, highs = ([_number(value) for value in _values(table, index, count)] for table in tables)
        rows = [
            {"key": labels[0][row] if keys else "", "value": value, "low": low, "high": high,
             **({"series": labels[1][row]} if len(keys) > 1 else {}),
             **({} if exact is None else {"exact": _number(of_row[row][index])})}
            for row, (value, low, high) in enumerate(zip(values, lows, highs, strict=True))
            if value is not None and not (as_line and first[row] is None)
        ]  # fmt: skip
        names = [release.columns[number].name for number in keys]
        panels.append(_panel(rows, release.columns[index].name, names, _kind(present) if as_line else "N"))
    hidden = f"; without {release.columns[keys[0]].name} NULL" if as_line and len(present) < len(first) else ""
    first_rows = f"; the first {count:,} of {len(release):,} rows" if count < len(release) else ""
    text = f"error bars hold in {release.confidence:.0%} of cases{hidden}{first_rows}"
    return _stacked(panels, text + ("; red: exact numbers, for the owner alone" if exact is not None else ""))


def _of_rows(
    release: Release | StoredAnswer,
    keys: Sequence[int],
    count: int,
    exact: Mapping[tuple[Any, ...], Sequence[Any]] | None,
) -> list[Sequence[Any]]:
    """Return the exact columns of the first `count` rows, with NULL where the exact answer lacks the keys of a row."""
    columns = [_values(release.table, index, count) for index in keys]
    nothing = [None] * len(release.columns)
    return [(exact or {}).get(tuple(column[row] for column in columns), nothing) for row in range(count)]


def _values(table: Any, index: int, count: int) -> list[Any]:
    values: list[Any] = table.column(index).slice(0, count).to_pylist()
    return values


def _panel(rows: list[dict[str, Any]], name: str, keys: list[str], kind: str) -> Chart:
    """Return a panel of one noisy number over its keys; `kind` of axis: Q, T (a line), N (bars in the answer's order)."""
    import altair as alt

    as_line = kind != "N"
    if len({isinstance(row["key"], str) for row in rows}) > 1:  # numbers and NULL: an axis has one type
        rows = [{**row, "key": str(row["key"])} for row in rows]
    order = list(dict.fromkeys(row["key"] for row in rows))
    flat = as_line or sum(len(str(label)) for label in order) <= _AXIS_LETTERS
    slanted = alt.Axis(labelAngle=-40, labelLimit=_SLANTED_PIXELS) if len(order) <= _MOST_SLANTED else alt.Axis()
    axis = alt.Axis(labelAngle=0) if flat else slanted
    if kind == "Q" and all(abs(label) < _FIRST_GROUPED for label in order):
        axis.format = "~f"  # a year is 2024 and not 2,024
    x = alt.X(f"key:{kind}", title=keys[0] if keys else None, sort=None if as_line else order, axis=axis)
    colours = alt.Scale(scheme="viridis" if len({row.get("series") for row in rows}) > _MOST_HUES else "tableau10")
    legend = alt.Legend(symbolOpacity=1)
    series = alt.Color("series:N", title=(keys[1:] or [""])[0] or None, sort=None, scale=colours, legend=legend)
    colour = [series] if len(keys) > 1 else []
    offset = [alt.XOffset("series:N", sort=None)] if len(keys) > 1 and not as_line else []
    shapes = [alt.Shape("series:N", sort=None)] if len(keys) > 1 else []
    has_exact = any("exact" in row for row in rows)
    base = alt.Chart(alt.InlineData(values=rows)).properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
    y = alt.Y("value:Q", title=name)
    if as_line:
        band = base.mark_area(opacity=0.25).encode(x, alt.Y("low:Q", title=name), alt.Y2("high:Q"), *colour)
        dots = base.mark_point(color=_EXACT_COLOUR, filled=True, size=22).encode(x, alt.Y("exact:Q"), *shapes)
        return alt.layer(band, base.mark_line().encode(x, y, *colour), *([dots] if has_exact else []))
    ends = (alt.Y("low:Q", title=name), alt.Y2("high:Q"))
    bars = base.mark_bar(color=_BAR_COLOUR).encode(x, y, *colour, *offset)
    rules = base.mark_rule(color=_RULE_COLOUR, strokeWidth=1.5).encode(x, *ends, *offset)
    caps = [
        base.mark_tick(color=_RULE_COLOUR, thickness=1.5, width=9, orient="horizontal").encode(
            x, alt.Y(f"{end}:Q"), *offset
        )
        for end in ("low", "high")
    ]
    dots = base.mark_point(color=_EXACT_COLOUR, filled=True, size=60, shape="diamond").encode(
        x, alt.Y("exact:Q"), *offset
    )
    return alt.layer(bars, rules, *caps, *([dots] if has_exact else []))


def _stacked(panels: list[Chart], title: str) -> Chart:
    import altair as alt

    chart = panels[0] if len(panels) == 1 else alt.vconcat(*panels)
    anchored = alt.TitleParams(title, anchor="start", fontWeight="normal", fontSize=12)
    return chart.properties(title=anchored).configure_view(strokeWidth=0)


def _kind(values: Sequence[Any]) -> str:
    """Return the measurement type of keys on a line: T for dates, Q for numbers, else N for names in the answer's order."""
    if isinstance(values[0], date):
        return "T"
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return "Q" if numbers else "N"


def _labels(values: Sequence[object]) -> list[Any]:
    """Return the labels of keys: different ones for different keys, although a picture cuts texts and spells characters out."""
    labels: dict[object, Any] = {}
    taken: set[Any] = set()
    for value in values:
        if value not in labels:
            label = _label(value)
            label = _unused(label, taken) if isinstance(label, str) else label
            taken.add(label)
            labels[value] = label
    return [labels[value] for value in values]


def _unused(label: str, taken: Container[Any]) -> str:
    number, unused = 1, label
    while unused in taken:
        number += 1
        unused = f"{label[:_NUMBERED]} ({number})"  # which `picture` does not cut again
    return unused


def _label(value: object) -> Any:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00"
    return value if isinstance(value, (int, float)) else picture(str(value))


def _number(value: object) -> float | None:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return None


def comparison_chart(
    rows: Iterable[tuple[Any, str, float, float | None, float | None]], key: str, number: str, title: str
) -> Chart:
    """Return a chart with bars of several series over the same keys: (key, series, value, low, high), where the ends of a missing
    error bar are None. `key`, `number`: titles of the axes."""
    drawn = [
        {"key": _label(label), "series": series, "value": _number(value), "low": _number(low), "high": _number(high)}
        for label, series, value, low, high in rows
    ]
    return _stacked([_panel(drawn, number, [key, ""], "N")], title)


def error_chart(
    points: Iterable[tuple[float, str, float]], title: str, error: str = "half width of the error bar"
) -> Chart:
    """Return a chart of the error of each output (unless `error` says otherwise, the expected 95 % half width) against epsilon,
    both on logarithmic axes.

    `points`: (epsilon, output, error), errors above 0.
    """
    import altair as alt

    rows = [{"epsilon": epsilon, "output": name, "error": distance} for epsilon, name, distance in points]
    if not rows:
        raise refuse("plot_nothing")
    base = alt.Chart(alt.InlineData(values=rows)).properties(width=_PANEL_WIDTH, height=_PANEL_HEIGHT)
    x = alt.X("epsilon:Q", title="epsilon of the question", scale=alt.Scale(type="log"))
    y = alt.Y("error:Q", title=error, scale=alt.Scale(type="log"))
    return _stacked([base.mark_line(point=True).encode(x, y, alt.Color("output:N", title=None, sort=None))], title)


def epsilons(least: float, most: float, count: int = 13) -> list[float]:
    """Return `count` values from `least` to `most` in equal ratios, each with three digits, without repetition."""
    step = (most / least) ** (1 / (count - 1))
    values = [float(f"{least * step**index:.3g}") for index in range(count)]
    return [values[0], *(after for before, after in pairwise(values) if after > before)]


# --- pictures as files and as parts of pages --------------------------------------------------------------------------

_PROGRAM = Path(__file__).with_name("picture_process.py")
_MOST_SECONDS = 120
_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>#chart {{ width: 100%; display: flex; }} details, summary {{ position: relative; }}</style>
<script>{scripts}</script></head>
<body><div id="chart"></div>
<script>vegaEmbed("#chart", {specification}, {{"renderer": "svg"}}).catch(console.error);</script></body></html>
"""
_PAGE_TITLE = "Answer with error bars"


def specification(chart: Chart) -> dict[str, Any]:
    """Return a chart as plain values in which each text is cleaned for a picture."""
    cleaned: dict[str, Any] = _cleaned(chart.to_dict())
    return cleaned


def _cleaned(node: Any) -> Any:
    if isinstance(node, dict):
        return {name: _cleaned(part) for name, part in node.items()}
    if isinstance(node, list):
        return list(map(_cleaned, node))
    return picture(node) if isinstance(node, str) else node


def svg(chart: Chart, *, charged: bool = False) -> str:
    """Return a chart as SVG. Raises Fault plot_failed; `charged`: whether a charge stays."""
    return _drawn("svg", specification(chart), charged).decode()


def picture_bytes(chart: Chart, ending: str, *, charged: bool = False) -> bytes:
    """Return a chart in the format of a file's ending (.svg, .png, .html or .json). Raises Fault plot_failed."""
    described = specification(chart)
    if ending == ".json":
        return json_text(described, indent=2).encode()
    if ending == ".html":
        return _page(described, charged).encode()
    return _drawn(ending.removeprefix("."), described, charged)


def _page(described: dict[str, Any], charged: bool) -> Markup:
    """Return a page that needs no network. The specification is an expression of its script, which no text in it can end."""
    scripts = _drawn("scripts", {}, charged).decode()
    return markup(
        _PAGE, title=_PAGE_TITLE, scripts=source_markup(scripts), specification=source_markup(script_json(described))
    )


def _drawn(kind: str, described: dict[str, Any], charged: bool) -> bytes:
    request = json.dumps({"kind": kind, "specification": json.dumps(described)}).encode()
    # As in `release.confinement`: its own imports are found, and modules in the folder of the program are not.
    environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.defpath}
    command = [sys.executable, "-P", str(_PROGRAM)]
    try:
        done = subprocess.run(
            command, input=request, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=_MOST_SECONDS,
            env=environment, cwd="/", check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise refuse("plot_failed", problem="drawing took too long", charged=charged) from None
    except OSError as error:
        raise refuse("plot_failed", problem=error.strerror or "it did not start", charged=charged) from None
    if done.returncode or not done.stdout:
        raise refuse("plot_failed", problem=f"it ended with status {done.returncode}", charged=charged)
    return done.stdout
