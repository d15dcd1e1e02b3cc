"""generate_series(start, end [, step]) and range(...) in FROM: rows of integers or of timestamps, written out.

The rows follow from the text alone, so they are public like those of VALUES. Series of dates are timestamps, as in DuckDB and
PostgreSQL, each made by adding the step to the one before (in months, a missing day becomes the month's last day).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, time
from functools import partial
from itertools import islice
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Type
from dpsql.sql.binder.scalars import literal, literal_interval, literal_value, temporal
from dpsql.sql.binder.scope import only
from dpsql.sql.parse import place

MOST_ROWS = 366
"""Largest number of rows, a year of days: a short text must not cause much work."""


def series_rows(node: exp.Expr) -> list[list[exp.Expr]] | None:
    """Return the rows of a series in FROM, with one column each; None for anything else. Refuses (series) ends and steps that are
    not literals, series without rows, and series of more than `MOST_ROWS` rows."""
    series = node.this if isinstance(node, exp.Table) else None
    if not isinstance(series, exp.GenerateSeries):
        return None
    only(node, "this", "alias")
    only(series, "start", "end", "step", "is_end_exclusive")
    start, end = _end(series, "start"), _end(series, "end")
    step = series.args.get("step")
    after, is_upward = _steps(series, start, step)
    if type(start) is not type(end):
        raise _refusal(series, "start and end are both numbers, or both dates or timestamps")
    values = [start]
    exclusive = bool(series.args.get("is_end_exclusive"))

    def is_inside(value: Any) -> bool:
        return bool(value < end if is_upward else value > end) or (value == end and not exclusive)

    while len(values) <= MOST_ROWS and is_inside(values[-1]):
        values.append(after(values[-1]))
    rows = [[_written(value)] for value in islice(values, len(values) - 1)]
    if not rows:
        raise _refusal(series, "it has no row")
    if is_inside(values[-1]):
        raise _refusal(series, "it has more rows")
    return rows


def series_name(node: exp.Table) -> str:
    """Return the column name of a series whose alias names no column: the series' alias, or else its function."""
    return node.alias or ("range" if node.this.args.get("is_end_exclusive") else "generate_series")


def _end(series: exp.GenerateSeries, name: str) -> int | datetime:
    """Return start or end as an integer or a timestamp; a date becomes its midnight."""
    node = series.args.get(name)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
        moment = temporal(str(node.this.this), Type.TIMESTAMP, series)
        return moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    return _whole(series, node)


def _whole(series: exp.GenerateSeries, node: exp.Expr | None) -> int:
    """Return the integer of a literal with or without a sign."""
    bare = node.unnest() if node is not None else None
    inner = bare.this if isinstance(bare, exp.Neg) else bare
    value = literal_value(inner) if isinstance(inner, exp.Literal) and not inner.is_string else None
    if not isinstance(value, int):
        raise _refusal(series, "start, end and step are literals, and a step of dates an INTERVAL")
    return -value if isinstance(bare, exp.Neg) else value


def _steps(
    series: exp.GenerateSeries, start: int | datetime, step: exp.Expr | None
) -> tuple[Callable[[Any], Any], bool]:
    """Return the function from one value to the next, and whether the values increase."""
    if isinstance(start, int):
        by = 1 if step is None else _whole(series, step)
        after: Callable[[Any], Any] = lambda value: value + by  # noqa: E731
    elif isinstance(step, exp.Interval):
        function, by = literal_interval(step, series)
        after = partial(_later, series, function, by)
    else:
        raise _refusal(series, "a step of dates is an INTERVAL")
    if by == 0:
        raise _refusal(series, "its step is 0")
    return after, by > 0


def _later(series: exp.GenerateSeries, function: str, by: int, moment: datetime) -> datetime:
    value = evaluate(call(function, literal(moment), literal(by)), {})
    if not isinstance(value, datetime):
        raise _refusal(series, "it leaves the years 1 to 9999")
    return value


def _written(value: int | datetime) -> exp.Expr:
    if isinstance(value, int):
        number = exp.Literal.number(abs(value))
        return exp.Neg(this=number) if value < 0 else number
    return exp.Cast(this=exp.Literal.string(value.isoformat(" ")), to=exp.DataType.build("timestamp"))


def _refusal(series: exp.GenerateSeries, reason: str) -> Error:
    return refuse("series", reason=reason, most=f"{MOST_ROWS:,}", position=place(series) or place(series.parent))
