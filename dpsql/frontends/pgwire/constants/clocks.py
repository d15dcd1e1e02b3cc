"""Functions and operators of dates, times and intervals."""

from __future__ import annotations

import itertools
import math
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from time import monotonic, sleep
from typing import Any

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.conversions import local, micros_of, midnight
from dpsql.frontends.pgwire.constants.moments import (
    DAY,
    EPOCH,
    ClockSpan,
    TimeTz,
    age,
    beyond,
    field_of,
    mixed_interval,
    seconds_of,
    shifted,
    to_time,
    truncated,
    zone,
)
from dpsql.frontends.pgwire.constants.resolve import each, function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, Large, said
from dpsql.frontends.pgwire.settings import setting_key


def _compared(sign: str, compare: Callable[[Any, Any], bool]) -> None:
    def key(value: Any, type_: str, context: t.Context) -> tuple[float, Any]:
        if isinstance(value, float):
            return (value, EPOCH)
        value = midnight(value) if type_ == "date" else value
        return (0.0, local(value, context) if type_ == "timestamptz" else value)

    names = ("date", "timestamp", "timestamptz")
    for first, second in itertools.product(names, names):

        def call(context: t.Context, a: Any, b: Any, first: str = first, second: str = second) -> bool:
            if first == second == "timestamptz":
                return compare(key(a, "timestamp", context), key(b, "timestamp", context))
            return compare(key(a, first, context), key(b, second, context))

        function(f"{sign}({first}, {second}) bool", context=True)(call)


for _sign, _compare in {"=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
                        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}.items():  # fmt: skip
    _compared(_sign, _compare)


def _moved(day: Any, count: int) -> Any:
    try:
        return day if isinstance(day, float) else day + timedelta(days=count)
    except OverflowError:
        raise beyond(day.year + count / 365.2425, "date") from None


def _with_time(day: Any, clock: time) -> Any:
    return day if isinstance(day, float) else datetime.combine(day, clock)


def _zoned_shift(context: t.Context, value: Any, step: ClockSpan) -> Any:
    if isinstance(value, float):
        return value
    moved = (
        shifted(local(value, context), ClockSpan(step.months, step.days, 0))
        .replace(tzinfo=context.zone)
        .astimezone(UTC)
    )
    return moved.replace(tzinfo=None) + timedelta(microseconds=step.micros)


def _clock_shift(value: time, micros: int) -> time:
    return (EPOCH + timedelta(microseconds=(micros_of(value) + micros) % DAY)).time()


def _gap(a: Any, b: Any) -> ClockSpan:
    if isinstance(a, float) or isinstance(b, float):
        raise said("22008", "cannot subtract infinite timestamps")
    gap = a - b
    micros = gap // timedelta(microseconds=1)
    days = abs(micros) // DAY * (1 if micros >= 0 else -1)
    return ClockSpan(0, days, micros - days * DAY)


def _days(a: Any, b: Any) -> int:
    if isinstance(a, float) or isinstance(b, float):
        raise said("22008", "cannot subtract infinite dates")
    return int((a - b).days)


function("+(date, int4) date")(_moved)
function("+(int4, date) date")(lambda n, day: _moved(day, n))
function("-(date, int4) date")(lambda day, n: _moved(day, -n))
function("-(date, date) int4")(_days)
function("+(date, time) timestamp")(_with_time)
function("+(time, date) timestamp")(lambda clock, day: _with_time(day, clock))
function("+(date, interval) timestamp; +(timestamp, interval) timestamp")(
    lambda v, step: shifted(midnight(v) if not isinstance(v, datetime) else v, step)
)
function("+(interval, date) timestamp; +(interval, timestamp) timestamp")(
    lambda step, v: shifted(midnight(v) if not isinstance(v, datetime) else v, step)
)
function("-(date, interval) timestamp; -(timestamp, interval) timestamp")(
    lambda v, step: shifted(midnight(v) if not isinstance(v, datetime) else v, -step)
)
function("+(timestamptz, interval) timestamptz", context=True)(_zoned_shift)
function("+(interval, timestamptz) timestamptz", context=True)(lambda c, step, v: _zoned_shift(c, v, step))
function("-(timestamptz, interval) timestamptz", context=True)(lambda c, v, step: _zoned_shift(c, v, -step))
function("date_add(timestamptz, interval) timestamptz", context=True)(_zoned_shift)
function("date_subtract(timestamptz, interval) timestamptz", context=True)(lambda c, v, step: _zoned_shift(c, v, -step))
function("-(timestamp, timestamp) interval; -(timestamptz, timestamptz) interval")(_gap)
function("+(time, interval) time")(lambda v, step: _clock_shift(v, step.micros))
function("+(interval, time) time")(lambda step, v: _clock_shift(v, step.micros))
function("-(time, interval) time")(lambda v, step: _clock_shift(v, -step.micros))
function("-(time, time) interval")(lambda a, b: ClockSpan(0, 0, micros_of(a) - micros_of(b)))
function("+(interval, interval) interval")(lambda a, b: a.plus(b))
function("-(interval, interval) interval")(lambda a, b: a.plus(-b))
function("-(interval) interval")(lambda v: -v)
function("*(interval, float8) interval")(lambda v, factor: v.times(factor))
function("*(float8, interval) interval")(lambda factor, v: v.times(factor))
function("/(interval, float8) interval")(lambda v, factor: v.times(1 / factor) if factor else _zero())


def mean_span(values: list[ClockSpan]) -> ClockSpan:
    """Return the mean of intervals."""
    return reduce(lambda a, b: a.plus(b), values).times(1 / len(values))


def _zero() -> Any:
    raise said("22012", "division by zero")


function("age(timestamp, timestamp) interval")(age)
function("age(timestamptz, timestamptz) interval", context=True)(lambda c, a, b: age(local(a, c), local(b, c)))
function("age(timestamp) interval", context=True)(lambda c, v: age(midnight(local(c.now, c)), v))
function("age(timestamptz) interval", context=True)(lambda c, v: age(midnight(local(c.now, c)), local(v, c)))
each("isfinite", ("date", "timestamp", "timestamptz"), "({}) bool", lambda v: not isinstance(v, float))
function("isfinite(interval) bool")(lambda v: True)

# --- the present ------------------------------------------------------------------------------------------------------

for _name in ("now", "current_timestamp", "transaction_timestamp", "statement_timestamp"):
    function(f"{_name}() timestamptz", context=True)(lambda c: c.now)
function("clock_timestamp() timestamptz")(lambda: datetime.now(UTC).replace(tzinfo=None))
function("timeofday() text", context=True)(lambda c: c.now.strftime("%a %b %d %H:%M:%S.%f %Y UTC"))
function("current_date() date", context=True)(lambda c: local(c.now, c).date())
function("localtimestamp() timestamp", context=True)(lambda c: local(c.now, c))
function("localtime() time", context=True)(lambda c: local(c.now, c).time())
function("current_time() timetz", context=True)(
    lambda c: TimeTz(micros_of(local(c.now, c)), seconds_of(c.now.replace(tzinfo=UTC).astimezone(c.zone)))
)

# --- parts ------------------------------------------------------------------------------------------------------------

_PARTS = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")
for _type in _PARTS:
    function(f"extract(text, {_type}) numeric", context=True)(
        lambda c, unit, v, type_=_type: field_of(unit, v, type_, t.sql_name(type_), c)
    )


def _date_part(context: t.Context, unit: str, value: Any, type_: str) -> float | None:
    """Return a field as date_part() does, for which a date is the timestamp of its midnight."""
    if type_ == "date":
        value, type_ = midnight(value), "timestamp"
    field = field_of(unit, value, type_, t.sql_name(type_), context)
    return None if field is None else float(field)


for _type in _PARTS:
    function(f"date_part(text, {_type}) float8", context=True)(
        lambda c, unit, v, type_=_type: _date_part(c, unit, v, type_)
    )
function("date_trunc(text, timestamp) timestamp")(lambda unit, v: truncated(unit, v, "timestamp without time zone"))
function("date_trunc(text, interval) interval")(lambda unit, v: truncated(unit, v, "interval"))


@function("date_trunc(text, timestamptz, zone text?) timestamptz", context=True)
def _truncated_zoned(context: t.Context, unit: str, value: Any, name: str | None = None) -> Any:
    where = context.zone if name is None else zone(name)
    if isinstance(value, float):
        return value
    start = truncated(
        unit, value.replace(tzinfo=UTC).astimezone(where).replace(tzinfo=None), "timestamp with time zone"
    )
    return start.replace(tzinfo=where).astimezone(UTC).replace(tzinfo=None)


@function(
    "date_bin(interval, timestamp, timestamp) timestamp; date_bin(interval, timestamptz, timestamptz) timestamptz"
)
def _binned(step: ClockSpan, value: Any, origin: Any) -> Any:
    if step.months:
        raise said("0A000", "timestamps cannot be binned into intervals containing months or years")
    if step.order <= 0:
        raise said("22008", "stride must be greater than zero")
    return origin + timedelta(microseconds=(value - origin) // timedelta(microseconds=1) // step.order * step.order)


@function("timezone(text, timestamp) timestamptz")
def _to_utc(name: str, value: Any) -> Any:
    return value if isinstance(value, float) else value.replace(tzinfo=zone(name)).astimezone(UTC).replace(tzinfo=None)


@function("timezone(text, timestamptz) timestamp")
def _in_zone(name: str, value: Any) -> Any:
    return value if isinstance(value, float) else value.replace(tzinfo=UTC).astimezone(zone(name)).replace(tzinfo=None)


@function("timezone(interval, timestamp) timestamptz")
def _to_utc_by(step: ClockSpan, value: Any) -> Any:
    if step.months or step.days:
        raise said("22023", f'interval time zone "{mixed_interval(step)}" must not include months or days')
    return value - timedelta(microseconds=step.micros)


@function("timezone(text, timetz) timetz", context=True)
def _clock_at(context: t.Context, where: str, value: TimeTz) -> TimeTz:
    offset = seconds_of(context.now.replace(tzinfo=UTC).astimezone(zone(where)))
    return TimeTz((value.micros + (offset - value.offset) * 1_000_000) % DAY, offset)


function("timezone(interval, timestamptz) timestamp")(lambda step, v: _to_utc_by(-step, v))

# --- making -----------------------------------------------------------------------------------------------------------


@function("make_date(year int4, month int4, day int4) date")
def _make_date(year: int, month: int, day: int) -> date:
    written_out = f": {year + (year < 0)}-{month:02}-{day:02}"
    year += year < 0
    try:
        moment = date(2000 + year % 400, month, day)  # the calendar is the same every 400 years
    except ValueError:
        raise said("22008", f"date field value out of range{written_out}") from None
    if not 1 <= year <= 9999:
        raise beyond(year, "date", written_out)
    return moment.replace(year=year)


def _made_time(hour: int, minute: int, second: float) -> int:
    """Return a time of day in microseconds. Raises 22008."""
    fits = 0 <= hour <= 24 and 0 <= minute < 60 and 0 <= second <= 60
    micros = (hour * 60 + minute) * 60 * 10**6 + round(second * 10**6) if fits else DAY + 1
    if micros > DAY:
        written_out = f"{second:02.0f}" if second == int(second) else f"{second:g}"
        raise said("22008", f"time field value out of range: {hour}:{minute:02}:{written_out}")
    return micros


function("make_time(hour int4, min int4, sec float8) time")(lambda *values: to_time(_made_time(*values)))


@function("make_timestamptz(int4, int4, int4, int4, int4, float8, timezone text?) timestamptz", context=True)
def _make_timestamptz(context: t.Context, *values: Any) -> datetime:
    moment: datetime = _make_timestamp(*values[:6])
    where = zone(values[6]) if len(values) > 6 else context.zone
    return moment.replace(tzinfo=where).astimezone(UTC).replace(tzinfo=None)


@function("pg_sleep(float8) void; pg_sleep_for(interval) void; pg_sleep_until(timestamptz) void", typed=True)
def _sleep(context: t.Context, types: tuple[str, ...], until: Any) -> str | None:
    """Wait without holding anything, until a cancel request or the timeout of the statement."""
    if until is None:
        return None
    if types[0] == "timestamptz":
        until = (until - datetime.now(UTC).replace(tzinfo=None)).total_seconds()
    seconds = until if isinstance(until, float) else until.order / 1_000_000
    end = monotonic() + seconds
    if seconds > 0:
        bounds.rest(context.catalog.end_turn)
    while (left := end - monotonic()) > 0:
        context.catalog.check()
        sleep(min(left, 0.05))
    return ""


@function("make_timestamp(year int4, month int4, mday int4, hour int4, min int4, sec float8) timestamp")
def _make_timestamp(year: int, month: int, day: int, hour: int, minute: int, second: float) -> datetime:
    micros = _made_time(hour, minute, second)
    moment: datetime = shifted(midnight(_make_date(year, month, day)), ClockSpan(0, 0, micros))
    return moment


@function(
    "make_interval(years int4?, months int4?, weeks int4?, days int4?, hours int4?, mins int4?, secs float8?) interval"
)
def _make_interval(
    years: int = 0, months: int = 0, weeks: int = 0, days: int = 0, hours: int = 0, minutes: int = 0, seconds: float = 0
) -> ClockSpan:
    if abs(years * 12 + months) >= t.WHOLE["int4"] or abs(weeks * 7 + days) >= t.WHOLE["int4"]:
        raise Elsewhere
    return ClockSpan(
        years * 12 + months,
        weeks * 7 + days,
        (hours * 60 + minutes) * 60 * 10**6 + round(Decimal(repr(float(seconds))) * 10**6),
    )


function("to_timestamp(float8) timestamptz")(
    lambda v: v if math.isinf(v) else EPOCH + timedelta(microseconds=round(v * 10**6))
)


@function("justify_hours(interval) interval")
def justify_hours(value: ClockSpan) -> ClockSpan:
    """Return an interval with whole days of its hours as days."""
    days = int(value.micros / DAY)
    value = ClockSpan(value.months, value.days + days, value.micros - days * DAY)
    if value.days > 0 > value.micros:
        return ClockSpan(value.months, value.days - 1, value.micros + DAY)
    return ClockSpan(value.months, value.days + 1, value.micros - DAY) if value.days < 0 < value.micros else value


@function("justify_days(interval) interval")
def justify_days(value: ClockSpan) -> ClockSpan:
    """Return an interval with whole months of its days as months."""
    months = int(value.days / 30)
    value = ClockSpan(value.months + months, value.days - months * 30, value.micros)
    if value.months > 0 > value.days:
        return ClockSpan(value.months - 1, value.days + 30, value.micros)
    return ClockSpan(value.months + 1, value.days - 30, value.micros) if value.months < 0 < value.days else value


@function("justify_interval(interval) interval")
def _justify(value: ClockSpan) -> ClockSpan:
    days, micros = divmod(value.micros, DAY)
    months, days = divmod(value.days + days, 30)
    months += value.months
    if months < 0 and (days or micros):
        total = days * DAY + micros - 30 * DAY
        months += 1
        return (
            ClockSpan(months, int(total / DAY), int(math.fmod(total, DAY)))
            if months <= 0
            else ClockSpan(months, days, micros)
        )
    return ClockSpan(months, days, micros)


def _overlap(start: Any, end: Any, other_start: Any, other_end: Any) -> Any:
    if None in (start, end, other_start, other_end):
        raise Elsewhere
    if isinstance(end, ClockSpan):
        end = shifted(midnight(start) if not isinstance(start, datetime) else start, end)
    if isinstance(other_end, ClockSpan):
        other_end = shifted(midnight(other_start) if not isinstance(other_start, datetime) else other_start, other_end)
    whole = [
        midnight(v) if isinstance(v, date) and not isinstance(v, datetime) else v
        for v in (start, end, other_start, other_end)
    ]
    (a, b), (c, d) = sorted(whole[:2]), sorted(whole[2:])
    if a > c:
        a, b, c, d = c, d, a, b
    return a == c or c < b


for _type in ("timestamp", "time", "timestamptz"):
    function(f"overlaps({_type}, {_type}, {_type}, {_type}) bool", strict=False)(_overlap)
for _type in ("timestamp", "timestamptz"):
    function(
        f"overlaps({_type}, interval, {_type}, interval) bool; overlaps({_type}, interval, {_type}, {_type}) bool; "
        f"overlaps({_type}, {_type}, {_type}, interval) bool",
        strict=False,
    )(_overlap)

# --- series -----------------------------------------------------------------------------------------------------------


def _listed(values: Iterator[Any]) -> list[Any]:
    rows = list(itertools.islice(values, (most := bounds.most_rows()) + 1))
    if len(rows) > most:
        raise Large
    return rows


def _series(start: Any, stop: Any, step: Any = 1) -> list[Any]:
    if step == 0:
        raise said("22023", "step size cannot equal zero")

    def values() -> Iterator[Any]:
        value = start
        while value <= stop if step > 0 else value >= stop:
            yield value
            value += step

    return _listed(values())


for _type in ("int4", "int8"):
    function(f"generate_series({_type}, {_type}, step {_type}?) *{_type}")(_series)
function("generate_series(numeric, numeric, step numeric?) *numeric")(lambda a, b, step=Decimal(1): _series(a, b, step))


def _time_series(context: t.Context, start: Any, stop: Any, step: ClockSpan, move: Callable[..., Any]) -> list[Any]:
    if step.order == 0:
        raise said("22023", "step size cannot equal zero")

    def values() -> Iterator[Any]:
        value = start
        while value <= stop if step.order > 0 else value >= stop:
            yield value
            try:
                value = move(context, value, step)
            except Error:  # behind the last day that there is here, and so behind the stop
                return

    return _listed(values())


function("generate_series(timestamp, timestamp, interval) *timestamp", context=True)(
    lambda c, a, b, step: _time_series(c, a, b, step, lambda _, v, s: shifted(v, s))
)
function("generate_series(timestamptz, timestamptz, interval) *timestamptz", context=True)(
    lambda c, a, b, step: _time_series(c, a, b, step, _zoned_shift)
)


# --- functions that tell about the connection, the server and its types -----------------------------------------------

_STARTED = datetime.now(UTC).replace(tzinfo=None)

for _name, _key in (
    ("current_user", "user"),
    ("session_user", "user"),
    ("getpgusername", "user"),
    ("current_database", "database"),
):
    function(f"{_name}() name", context=True)(lambda c, key=_key: c.catalog.value(key))
function("current_schema() name", context=True)(lambda c: c.catalog.value("schema") if c.catalog.path else None)
function("current_schemas(bool) _name", context=True)(
    lambda c, implicit: ["pg_catalog"] * (implicit and "pg_catalog" not in c.catalog.path) + c.catalog.path
)
function("pg_postmaster_start_time() timestamptz; pg_conf_load_time() timestamptz")(lambda: _STARTED)
function("inet_client_addr() inet; inet_server_addr() inet")(lambda: None)
function("inet_client_port() int4; inet_server_port() int4")(lambda: None)
function("version() text", context=True)(lambda c: c.catalog.value("version"))
function("pg_backend_pid() int4", context=True)(lambda c: c.catalog.process)
function("gen_random_uuid() uuid")(lambda: str(uuid.uuid4()))
function("pg_is_in_recovery() bool; pg_jit_available() bool")(lambda: False)
function("txid_current_if_assigned() int8")(lambda: None)
function("pg_my_temp_schema() oid")(lambda: 0)
function("pg_trigger_depth() int4")(lambda: 0)
function("pg_is_other_temp_schema(oid) bool")(lambda v: False)
function("pg_typeof(any) regtype", typed=True)(
    lambda c, types, v: t.oid(types[0]) if t.exists(types[0]) else _unknown()
)


function("pg_column_size(any) int4", typed=True)(
    lambda c, types, v: None if v is None else _SIZES[types[0]] if types[0] in _SIZES else _unknown()
)
_SIZES: dict[str, int] = {
    "bool": 1,
    "int2": 2,
    "int4": 4,
    "int8": 8,
    "float4": 4,
    "float8": 8,
    "date": 4,
    "timestamp": 8,
    "interval": 16,
}


def _unknown() -> Any:
    raise Elsewhere


@function("current_setting(text, missing_ok bool?) text", context=True)
def _current_setting(context: t.Context, name: str, missing: bool = False) -> str | None:
    values = {**context.catalog.settings.all(), **context.catalog.options()}
    key = setting_key(name).lower()
    value = next((value for setting, value in values.items() if setting.lower() == key), None)
    if value is None and not missing:
        raise said("42704", f'unrecognized configuration parameter "{name}"')
    return value


@function("set_config(text, text, bool) text", context=True, strict=False)
def _set_config(context: t.Context, name: str | None, value: str | None, local: bool | None) -> str | None:
    if name is None:
        raise said("22004", "SET requires parameter name")
    if name.lower().startswith("dp."):  # an option of the session
        raise refuse("option_function", function="set_config", way=f"SET {name.lower()} = {value}")
    context.catalog.change(name, value, bool(local))
    return context.catalog.settings.all().get(setting_key(name), value)


@function("pg_size_pretty(int8) text")
def _pretty(size: int) -> str:
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    index = 0
    number = abs(size)
    if number < 10_240:
        return f"{size} bytes"
    number *= 2
    while index < len(units) - 1 and number >= 2 * 10_240 - 1:
        number = number >> 10 if index else abs(size) >> 9
        index += 1
    return f"{'-' * (size < 0)}{(number + 1) // 2} {units[index]}"


@function("pg_size_pretty(numeric) text")
def _pretty_exact(size: Decimal) -> str:
    if abs(size) < 10_240:
        return f"{t.numeric_text(size)} bytes"
    return str(_pretty(int(size)))


@function("pg_size_bytes(text) int8")
def _size_bytes(text: str) -> int:
    match = re.fullmatch(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z]*)\s*", text)
    if match is None:
        raise said("22023", f'invalid size: "{text}"')
    units = {"": 0, "b": 0, "bytes": 0, "kb": 1, "mb": 2, "gb": 3, "tb": 4, "pb": 5}
    if match[2].lower() not in units:
        raise said(
            "22023", f'invalid size: "{text}"', None, 'Valid units are "bytes", "B", "kB", "MB", "GB", "TB", and "PB".'
        )
    return int((Decimal(match[1]) * 1024 ** units[match[2].lower()]).to_integral_value("ROUND_HALF_UP"))
