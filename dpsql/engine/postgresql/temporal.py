"""PostgreSQL's text for functions of dates and timestamps, all within the years 1 to 9999."""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.engine.dialect import Template
from dpsql.engine.postgresql.literals import TYPES, binary, quoted
from dpsql.engine.postgresql.reals import let
from dpsql.engine.shared_texts import SharedTexts, format_parts, unit_of
from dpsql.functions.calendar import microseconds
from dpsql.functions.values import TIME_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal

_FIRST_DAY = "DATE '0001-01-01'"
_LAST = 3_652_058
"""The day number of 9999-12-31, if 0001-01-01 is day 0."""
_YEAR_ONE = 62_135_596_800
"""Seconds from 0001-01-01 to 1970-01-01."""
_END = (_LAST + 1) * 86_400 - _YEAR_ONE
_TEXTS = SharedTexts(TYPES)
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_WRITTEN = {
    "Y": "YYYY", "y": "YY", "m": "MM", "B": "FMMonth", "b": "Mon", "d": "DD", "j": "DDD", "A": "FMDay", "a": "Dy",
    "H": "HH24", "I": "HH12", "p": "AM", "M": "MI", "S": "SS",
}  # fmt: skip
"""The patterns of to_char for the letters of strftime; names are English, because TM is never written."""


def _part(node: Call, texts: list[str]) -> str:
    """Return the text of DATE_PART. Seconds are truncated to integers."""
    return f"CAST(floor(date_part('{unit_of(node)}', {_TEXTS.time(node.arguments[1], texts[1])})) AS bigint)"


def _diff(node: Call, texts: list[str]) -> str:
    unit = unit_of(node)
    start, end = (_TEXTS.time(argument, text) for argument, text in zip(node.arguments[1:], texts[1:], strict=True))
    values = {"t": start, "u": end}
    if unit in _MONTHS:
        months = [f"(CAST(date_part('year', {n}) * 12 + date_part('month', {n}) AS bigint) - 1)" for n in ("u", "t")]
        return let(values, f"({' - '.join(f'{count} / {_MONTHS[unit]}' for count in months)})")
    if unit == "week":
        return let(values, "CAST((CAST(u AS date) - CAST(t AS date)) / 7 AS bigint)")
    counts = [f"div(extract(epoch FROM {n}) + {_YEAR_ONE}, {_SECONDS[unit]})" for n in ("u", "t")]
    return let(values, f"CAST({counts[0]} - {counts[1]} AS bigint)")


def _add_days(node: Call, texts: list[str]) -> str:
    moved = "d + CAST(n AS integer)" if node.facts.type is Type.DATE else "d + CAST(n AS integer) * INTERVAL '1 day'"
    inside = f"CASE WHEN (CAST(d AS date) - {_FIRST_DAY}) + n BETWEEN 0 AND {_LAST} THEN {moved} END"
    return let({"d": texts[0], "n": texts[1]}, f"(CASE WHEN n BETWEEN -{_LAST} AND {_LAST} THEN {inside} END)")


def _add_months(node: Call, texts: list[str]) -> str:
    """Return the text of a shift by months. In a month that is too short, the result is its last day."""
    months = "CAST(date_part('year', d) * 12 + date_part('month', d) AS bigint) - 1 + n"
    moved = f"CAST(d + CAST(n AS integer) * INTERVAL '1 month' AS {TYPES[node.facts.type]})"
    inside = f"CASE WHEN {months} BETWEEN 12 AND {9999 * 12 + 11} THEN {moved} END"
    return let({"d": texts[0], "n": texts[1]}, f"(CASE WHEN n BETWEEN -120000 AND 120000 THEN {inside} END)")


def _add_seconds(node: Call, texts: list[str]) -> str:
    """Return the text of a shift by seconds. Up to 2**53 / 15625 whole seconds are exact multiples of an interval."""
    reached = "extract(epoch FROM d) + n"
    inside = (
        f"CASE WHEN {reached} >= -{_YEAR_ONE} AND {reached} < {_END} "
        "THEN d + CAST(n AS double precision) * INTERVAL '1 second' END"
    )
    return let(
        {"d": texts[0], "n": texts[1]}, f"(CASE WHEN n BETWEEN -400000000000 AND 400000000000 THEN {inside} END)"
    )


def _epoch(node: Call, texts: list[str]) -> str:
    """Return the text of EPOCH: whole microseconds as a double, divided by a million: two roundings, as in DuckDB."""
    whole = f"CAST(extract(epoch FROM {_TEXTS.time(node.arguments[0], texts[0])}) * 1000000 AS bigint)"
    return f"(CAST({whole} AS double precision) / CAST('1e6' AS double precision))"


def _time_bucket(node: Call, texts: list[str]) -> str:
    """Return the text of TIME_BUCKET, computed in whole microseconds; days and the rest of a day are added separately, so that
    each is an exact multiple."""
    width, origin = node.arguments[1:]
    assert isinstance(width, Literal) and isinstance(origin, Literal)
    step, first = width.value * 10**6, microseconds(origin.value)
    now = f"CAST(extract(epoch FROM {_TEXTS.time(node.arguments[0], texts[0])}) * 1000000 AS bigint)"
    start = f"c - ((c - ({first})) % {step} + {step}) % {step}"
    day = 86_400 * 10**6
    moved = (
        f"CAST({_FIRST_DAY} + CAST(m / {day} AS integer) + "
        f"CAST(m % {day} AS double precision) * INTERVAL '1 microsecond' AS {TYPES[node.facts.type]})"
    )
    since = let({"c": now}, f"({start} + {_YEAR_ONE * 10**6})")
    return let({"m": since}, f"(CASE WHEN m >= 0 THEN {moved} END)")


def _last_day(node: Call, texts: list[str]) -> str:
    start = f"date_trunc('month', {_TEXTS.time(node.arguments[0], texts[0])})"
    return f"CAST({start} + INTERVAL '1 month' - INTERVAL '1 day' AS date)"


def _strftime(node: Call, texts: list[str]) -> str:
    time = _TEXTS.time(node.arguments[0], texts[0])
    parts = format_parts(node, quoted, lambda letter: f"to_char({time}, '{_WRITTEN[letter]}')")
    nothing = f"left(to_char({time}, 'YYYY'), 0)"  # NULL if the time is NULL
    return binary(f"({' || '.join([nothing, *parts])})")


def _read(node: Call, texts: list[str]) -> str:
    """Return a cast; of texts, only those that `evaluate` reads: the year is 1 or later, so only month and day may be invalid."""
    target = TYPES[node.facts.type]
    if node.arguments[0].facts.type is not Type.TEXT:
        same = node.arguments[0].facts.type is node.facts.type
        return texts[0] if same else f"CAST({texts[0]} AS {target})"
    year, month, day = (f"CAST(substr(z, {start}, {count}) AS integer)" for start, count in ((1, 4), (6, 2), (9, 2)))
    leap = f"({year} % 4 = 0 AND {year} % 100 <> 0) OR {year} % 400 = 0"
    days = f"CASE WHEN {month} IN (4, 6, 9, 11) THEN 30 WHEN {month} <> 2 THEN 31 WHEN {leap} THEN 29 ELSE 28 END"
    value = f"CAST(CAST(z AS timestamp) AS {target})" if node.facts.type is Type.DATE else "CAST(z AS timestamp)"
    valid = f"CASE WHEN {month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {days} THEN {value} END"
    shape = quoted(f"^(?:{TIME_TEXT})$")
    return let({"z": f"btrim({texts[0]}, ' ')"}, f"(CASE WHEN z ~ {shape} THEN {valid} END)")


FUNCTIONS: Mapping[str, Template] = {
    "date_trunc": _TEXTS.truncated_time, "date_part": _part, "date_diff": _diff, "add_days": _add_days, "add_months": _add_months,
    "add_seconds": _add_seconds, "epoch": _epoch, "time_bucket": _time_bucket, "last_day": _last_day,
    "strftime": _strftime, "to_date": _read, "to_timestamp": _read,
}  # fmt: skip
