"""Spark's text for functions of dates and timestamps, all within the years 1 to 9999, in sessions whose time zone is UTC."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.engine.dialect import Template
from dpsql.engine.shared_texts import SharedTexts, format_parts, unit_of
from dpsql.engine.spark.literals import TYPES, quoted, whole_text
from dpsql.functions.calendar import microseconds
from dpsql.functions.values import TIME_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal

_FIRST, _LAST = -719_162, 2_932_896
"""The days of 0001-01-01 and 9999-12-31, counted from 1970-01-01."""
_SECOND, _DAY = 10**6, 86_400 * 10**6
"""Microseconds of a second and of a day."""
_YEAR_ONE = -_FIRST * _DAY
"""Microseconds from 0001-01-01 to 1970-01-01."""
_TEXTS = SharedTexts(TYPES)
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_PARTS = {
    "year": "year", "quarter": "quarter", "month": "month", "week": "weekofyear", "day": "day", "doy": "dayofyear",
    "hour": "hour", "minute": "minute", "second": "second",
}  # fmt: skip
_WRITTEN = {
    "Y": "yyyy", "y": "yy", "m": "MM", "B": "MMMM", "b": "MMM", "d": "dd", "j": "DDD", "A": "EEEE", "a": "E", "H": "HH",
    "I": "hh", "p": "a", "M": "mm", "S": "ss",
}  # fmt: skip
"""The letters of date_format for the letters of strftime; names are English on every machine."""


def _part(node: Call, texts: list[str]) -> str:
    """Return the text of DATE_PART. Seconds are truncated to integers."""
    unit, time = unit_of(node), _TEXTS.time(node.arguments[1], texts[1])
    number = {"dow": f"dayofweek({time}) - 1", "isodow": f"weekday({time}) + 1"}.get(unit) or f"{_PARTS[unit]}({time})"
    return f"CAST({number} AS BIGINT)"


def _diff(node: Call, texts: list[str]) -> str:
    unit = unit_of(node)
    start, end = (_TEXTS.time(argument, text) for argument, text in zip(node.arguments[1:], texts[1:], strict=True))
    if unit in _MONTHS:
        counts = [f"CAST(year({t}) * 12 + month({t}) - 1 AS BIGINT) div {_MONTHS[unit]}" for t in (end, start)]
    elif unit == "week":
        return f"(CAST(datediff({end}, {start}) AS BIGINT) div 7)"
    else:
        counts = [f"(unix_micros({t}) + {_YEAR_ONE}L) div {_SECONDS[unit] * _SECOND}L" for t in (end, start)]
    return f"({counts[0]} - {counts[1]})"


def _add_days(node: Call, texts: list[str]) -> str:
    day, days = texts
    date = node.facts.type is Type.DATE
    steps = f"CASE WHEN {days} BETWEEN -{_LAST - _FIRST}L AND {_LAST - _FIRST}L THEN {days} END"
    reached = f"(unix_date(CAST({day} AS DATE)) + {steps})" if not date else f"(unix_date({day}) + {steps})"
    moved = f"date_add({day}, CAST({days} AS INT))" if date else _moved(day, days, _DAY)
    return f"(CASE WHEN {reached} BETWEEN {_FIRST}L AND {_LAST}L THEN {moved} END)"


def _moved(time: str, steps: str, width: int) -> str:
    return f"timestamp_micros(unix_micros({time}) + {steps} * {width}L)"


def _add_months(node: Call, texts: list[str]) -> str:
    """Return the text of a shift by months. In a month that is too short, the result is its last day."""
    day, months = texts
    steps = f"CASE WHEN {months} BETWEEN -120000L AND 120000L THEN {months} END"
    reached = f"(CAST(year({day}) * 12 + month({day}) - 1 AS BIGINT) + {steps})"
    moved = (
        f"add_months({day}, CAST({months} AS INT))"
        if node.facts.type is Type.DATE
        else f"({day} + make_ym_interval(0, CAST({months} AS INT)))"
    )
    return f"(CASE WHEN {reached} BETWEEN 12L AND {9999 * 12 + 11}L THEN {moved} END)"


def _add_seconds(node: Call, texts: list[str]) -> str:
    time, seconds = texts
    steps = f"CASE WHEN {seconds} BETWEEN -400000000000L AND 400000000000L THEN {seconds} END"
    reached = f"(unix_micros({time}) + ({steps}) * {_SECOND}L)"
    last = (_LAST + 1) * _DAY - 1
    return f"(CASE WHEN {reached} BETWEEN -{_YEAR_ONE}L AND {last}L THEN timestamp_micros({reached}) END)"


def _epoch(node: Call, texts: list[str]) -> str:
    """Return the text of EPOCH: whole microseconds as a double, divided by a million: two roundings, as in DuckDB."""
    return f"(CAST(unix_micros({_TEXTS.time(node.arguments[0], texts[0])}) AS DOUBLE) / 1e6D)"


def _time_bucket(node: Call, texts: list[str]) -> str:
    """Return the text of TIME_BUCKET, computed in whole microseconds, which are far inside 64 bits for the years 1 to 9999. Use
    pmod, because % has the sign of the dividend."""
    width, origin = node.arguments[1:]
    assert isinstance(width, Literal) and isinstance(origin, Literal)
    step, first = width.value * _SECOND, microseconds(origin.value)
    now = f"unix_micros({_TEXTS.time(node.arguments[0], texts[0])})"
    start = f"({now} - pmod({now} - ({first}L), {step}L))"
    moved = f"CAST(timestamp_micros({start}) AS {TYPES[node.facts.type]})"
    return f"(CASE WHEN {start} >= -{_YEAR_ONE}L THEN {moved} END)"


def _last_day(node: Call, texts: list[str]) -> str:
    return f"last_day(CAST({texts[0]} AS DATE))"


def _strftime(node: Call, texts: list[str]) -> str:
    time = _TEXTS.time(node.arguments[0], texts[0])
    parts = format_parts(node, quoted, lambda letter: f"date_format({time}, '{_WRITTEN[letter]}')")
    nothing = f"left(date_format({time}, 'yyyy'), 0)"  # NULL if the time is NULL
    return f"concat({', '.join([nothing, *parts])})"


def _read(node: Call, texts: list[str]) -> str:
    """Return a cast to a date or timestamp; of texts, only those that `evaluate` reads, others are NULL."""
    (value,), target = texts, TYPES[node.facts.type]
    if node.arguments[0].facts.type is not Type.TEXT:
        return value if node.arguments[0].facts.type is node.facts.type else f"CAST({value} AS {target})"
    time = f"CAST(try_cast(trim({value}) AS TIMESTAMP) AS {target})"
    return f"(CASE WHEN {value} RLIKE {whole_text(TIME_TEXT)} THEN {time} END)"


FUNCTIONS: Mapping[str, Template] = {
    "date_trunc": _TEXTS.truncated_time, "date_part": _part, "date_diff": _diff, "add_days": _add_days, "add_months": _add_months,
    "add_seconds": _add_seconds, "epoch": _epoch, "time_bucket": _time_bucket, "last_day": _last_day,
    "strftime": _strftime, "to_date": _read, "to_timestamp": _read,
}  # fmt: skip
