"""Spark's dialect, and its constants with their types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from typing import Any

from dpsql.engine.dialect import Dialect, Template, constant_of, in_calendar, time_constant
from dpsql.engine.query import stored_as
from dpsql.engine.shared_texts import (
    MONTHS_OF,
    SECONDS_OF,
    SharedTexts,
    boolean_of,
    digits_of,
    format_parts,
    literal_of,
    plain,
    replaced,
    shortened,
    unit_of,
)
from dpsql.functions.values import NUMBER_TEXT, TIME_TEXT, WHOLE_TEXT, case_pairs, lower, microseconds, trimmed
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal

# --- spark's constants with their types, and source columns read in the types of the policy ---------------------------
# Texts are valid UTF-8 or NULL, and have the collation UTF8_BINARY, so that they are equal if their bytes are and
# ordered by code point, whatever collation a column has. A timestamp is Spark's TIMESTAMP, in a session whose time zone
# is UTC.

TYPES: Mapping[Type, str] = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "STRING", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP", Type.NULL: "INT",
}  # fmt: skip
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIMES = ("date", "timestamp", "timestamp_ntz")
READABLE: Mapping[Type, tuple[str, ...]] = {
    Type.INTEGER: (*_WHOLE, "decimal", "float", "double"),
    Type.REAL: (*_WHOLE, "decimal", "float", "double"),
    Type.TEXT: ("string", "char", "varchar", *_WHOLE),
    Type.BOOLEAN: ("boolean", *_WHOLE, "string", "char", "varchar"),
    Type.DATE: _TIMES,
    Type.TIMESTAMP: _TIMES,
}
"""The source types, without lengths and collations, from which a column of each policy type can be read."""


def kind(engine_type: str) -> str:
    """Return a type without its length, precision or collation: decimal(10,2) is a decimal."""
    return re.split(r"[(<\s]", engine_type, maxsplit=1)[0].lower()


def real(value: float) -> str:
    if not math.isfinite(value):
        return f"CAST('{value!r}' AS DOUBLE)"
    return f"({value!r}D)"


def quoted(text: str) -> str:
    """Return a text between quotes. Characters with a meaning for the lexer or for variables are written as their numbers."""
    return "'" + "".join(c if c.isalnum() or c in " _-.,:%/" else _numbered(c) for c in text) + "'"


def _numbered(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def whole_text(shape: str) -> str:
    """Return a regular expression, as a constant, that must match a whole text."""
    return quoted(rf"\A(?:{shape})\z")


def constant(value: Any) -> str:
    return constant_of(value, lambda whole: f"({whole}L)", real, quoted)


def real_to_integer(value: str) -> str:
    """Return a double rounded half to even, NULL beyond 64 bits and for NaN (which is greater than every number).

    The bound is tested first, because the engine's cast turns 2**63, which is beyond 64 bits, into the greatest integer.
    """
    inside = f"{value} >= {real(-(2.0**63))} AND {value} < {real(2.0**63)}"
    return f"(CASE WHEN {inside} THEN CAST(rint({value}) AS BIGINT) END)"


def cast_column(source: str, type_: Type, engine_type: str) -> str:
    """Return a source column in our type; a value that does not fit is NULL. Raises ValueError for an engine type not in
    `READABLE`.

    Texts that are not UTF-8 are NULL. A padded text (char(n)) loses its padding; points of time are read by the clock of the
    column's zone, or in UTC.
    """
    engine_type, zone = stored_as(engine_type)
    source_kind = kind(engine_type)
    if source_kind not in READABLE[type_]:
        raise ValueError(f"{engine_type} is not read as {type_.value}")
    if type_ is Type.TEXT:
        text = f"CAST({source} AS STRING)"
        if source_kind in _WHOLE:
            return text
        return f"try_validate_utf8({f'rtrim({text})' if source_kind == 'char' else text})"
    if type_ is Type.INTEGER:
        if source_kind in _WHOLE:
            return f"CAST({source} AS BIGINT)"
        if source_kind == "decimal":
            return f"try_cast(round({source}, 0) AS BIGINT)"
        return real_to_integer(f"CAST({source} AS DOUBLE)")
    if type_ is Type.REAL:
        return f"CAST({source} AS DOUBLE)"
    if type_ is Type.BOOLEAN:
        if source_kind in _WHOLE:
            return f"({source} <> 0)"
        if source_kind == "boolean":
            return source
        return boolean_of(f"lower({cast_column(source, Type.TEXT, engine_type)})", constant)
    time = f"CAST({source} AS TIMESTAMP)" if source_kind == "timestamp_ntz" else source
    inside = in_calendar(Type.DATE if source_kind == "date" else Type.TIMESTAMP, time)
    if zone is not None:
        first, last = time_constant(datetime(1, 1, 3)), time_constant(datetime(9999, 12, 29))
        inside = f"(CASE WHEN {time} BETWEEN {first} AND {last} THEN from_utc_timestamp({time}, {quoted(zone)}) END)"
    return f"CAST({inside} AS {TYPES[type_]})"


# --- spark's dialect --------------------------------------------------------------------------------------------------

_TEXTS = SharedTexts(TYPES)


# --- times ------------------------------------------------------------------------------------------------------------

# Spark's text for functions of dates and timestamps, all within the years 1 to 9999, in sessions whose time zone is UTC.

_FIRST, _LAST = -719_162, 2_932_896
"""The days of 0001-01-01 and 9999-12-31, counted from 1970-01-01."""
_SECOND, _DAY = 10**6, 86_400 * 10**6
"""Microseconds of a second and of a day."""
_YEAR_ONE = -_FIRST * _DAY
"""Microseconds from 0001-01-01 to 1970-01-01."""
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
    if unit in MONTHS_OF:
        counts = [f"CAST(year({t}) * 12 + month({t}) - 1 AS BIGINT) div {MONTHS_OF[unit]}" for t in (end, start)]
    elif unit == "week":
        return f"(CAST(datediff({end}, {start}) AS BIGINT) div 7)"
    else:
        counts = [f"(unix_micros({t}) + {_YEAR_ONE}L) div {SECONDS_OF[unit] * _SECOND}L" for t in (end, start)]
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


def _read_time(node: Call, texts: list[str]) -> str:
    """Return a cast to a date or timestamp; of texts, only those that `evaluate` reads, others are NULL."""
    (value,), target = texts, TYPES[node.facts.type]
    if node.arguments[0].facts.type is not Type.TEXT:
        return value if node.arguments[0].facts.type is node.facts.type else f"CAST({value} AS {target})"
    time = f"CAST(try_cast(trim({value}) AS TIMESTAMP) AS {target})"
    return f"(CASE WHEN {value} RLIKE {whole_text(TIME_TEXT)} THEN {time} END)"


TIME_FUNCTIONS: Mapping[str, Template] = {
    "date_trunc": _TEXTS.truncated_time, "date_part": _part, "date_diff": _diff, "add_days": _add_days, "add_months": _add_months,
    "add_seconds": _add_seconds, "epoch": _epoch, "time_bucket": _time_bucket, "last_day": _last_day,
    "strftime": _strftime, "to_date": _read_time, "to_timestamp": _read_time,
}  # fmt: skip


# --- row functions ----------------------------------------------------------------------------------------------------

# Spark's text for each row function: total by construction, and equal to `dpsql.functions.evaluate`.
# Sessions run in ANSI mode, in which overflows and wrong casts raise; so integers are computed by try_add and the like, and a
# value is cast only under a condition for which the cast succeeds. Functions that cannot be made equal are in `UNSUPPORTED`,
# with the reason.

_REGEX = "its regular expressions are another language than RE2, and may take exponential time"
UNSUPPORTED: Mapping[str, str] = {
    "regexp_matches": _REGEX, "regexp_replace": _REGEX, "regexp_extract": _REGEX,
    "md5": "a server that keeps to FIPS 140 raises for it",
    "atan2": "it takes -0.0 for 0.0, which turns an angle by half a circle",
}  # fmt: skip
_ZERO = real(0.0)
_WHOLE_FROM = real(2.0**52)
"""Doubles of at least this size have no fraction."""


def _connected(operator: str) -> Template:
    return lambda node, texts: "(" + f" {operator} ".join(_TEXTS.all_typed(Type.BOOLEAN, node, texts)) + ")"


def _is(word: str) -> Template:
    return lambda node, texts: f"({_TEXTS.all_typed(Type.BOOLEAN, node, texts)[0]} IS {word})"


# --- numbers, comparisons, conditions -------------------------------------------------------------------------------


def _arithmetic(operator: str, function: str) -> Template:
    def emit(node: Call, texts: list[str]) -> str:
        if node.facts.type is Type.REAL:
            return f"({f' {operator} '.join(_TEXTS.reals(node, texts))})"
        return f"{function}({', '.join(texts)})"

    return emit


def _division(node: Call, texts: list[str]) -> str:
    left, right = _TEXTS.reals(node, texts)
    return f"({left} / nullif({right}, {_ZERO}))"


def _whole_division(node: Call, texts: list[str]) -> str:
    """Return the text of a division of integers. The only quotient beyond 64 bits is the least integer divided by -1."""
    left, right = texts
    divisor = node.arguments[1]
    quotient = f"({left} div nullif({right}, 0L))"
    if isinstance(divisor, Literal) and divisor.value not in (0, -1):
        return quotient
    return f"(CASE WHEN {right} = -1L THEN try_subtract(0L, {left}) ELSE {quotient} END)"


def _negative(node: Call, texts: list[str]) -> str:
    return f"(-{texts[0]})" if node.facts.type is Type.REAL else f"try_subtract(0L, {texts[0]})"


def _absolute(node: Call, texts: list[str]) -> str:
    (value,) = texts
    if node.facts.type is Type.REAL:
        return f"abs({value})"
    return f"(CASE WHEN {value} < 0L THEN try_subtract(0L, {value}) ELSE {value} END)"


def _sign(node: Call, texts: list[str]) -> str:
    (value,) = _TEXTS.reals(node, texts)
    signs = f"WHEN isnan({value}) THEN 0L WHEN {value} > {_ZERO} THEN 1L WHEN {value} < {_ZERO} THEN -1L"
    return f"(CASE {signs} WHEN {value} = {_ZERO} THEN 0L END)"


def _floor(function: str) -> Template:
    """Return the template of FLOOR or CEIL. The engine's functions return a 64-bit integer, in which large doubles do not fit."""

    def emit(node: Call, texts: list[str]) -> str:
        (value,) = texts
        if node.facts.type is Type.INTEGER:
            return value
        return f"(CASE WHEN abs({value}) < {_WHOLE_FROM} THEN CAST({function}({value}) AS DOUBLE) ELSE {value} END)"

    return emit


def _round(node: Call, texts: list[str]) -> str:
    """Return the text of ROUND. The engine rounds the shortest decimal of a double half away from zero. A double with the
    fraction one half is its own shortest decimal, so without digits the double itself is rounded."""
    if node.facts.type is Type.INTEGER:
        return texts[0]
    if (digits := digits_of(node)) == 0:
        return f"round({texts[0]})"
    step = real(10.0**digits)
    scaled = f"({texts[0]} * {step})"
    return f"(CASE WHEN abs({scaled}) < {real(float('inf'))} THEN round({scaled}) / {step} ELSE {texts[0]} END)"


def _power(node: Call, texts: list[str]) -> str:
    """Return the text of POWER. C's pow returns 1 for the base 1, and for -1 to an infinite power; Java returns NaN."""
    base, exponent = _TEXTS.reals(node, texts)
    ends = f"{exponent} IN ({real(float('inf'))}, {real(-float('inf'))})"
    powers_of_one = f"WHEN {base} = {real(1.0)} AND {exponent} IS NOT NULL THEN {real(1.0)}"
    return f"(CASE {powers_of_one} WHEN {base} = {real(-1.0)} AND {ends} THEN {real(1.0)} ELSE power({base}, {exponent}) END)"


def _bucket(node: Call, texts: list[str]) -> str:
    value, low, high = (_TEXTS.typed(Type.REAL, a, t) for a, t in zip(node.arguments[:3], texts[:3], strict=True))
    share = f"floor(({value} - {low}) / nullif({high} - {low}, {_ZERO}) * CAST({texts[3]} AS DOUBLE))"
    return (
        f"(CASE WHEN {value} < {low} THEN 0L WHEN isnan({value}) THEN NULL "
        f"WHEN {value} >= {high} THEN {texts[3]} + 1L WHEN {value} IS NOT NULL THEN least({texts[3]}, {share} + 1L) END)"
    )


def _place_in(node: Call, texts: list[str]) -> str:
    value, *items = _TEXTS.comparable(node, texts)
    return f"(nullif(array_position(array({', '.join(items)}), {value}), 0L) - 1L)"


# --- casts ----------------------------------------------------------------------------------------------------------


def _to_integer(node: Call, texts: list[str]) -> str:
    type_ = node.arguments[0].facts.type
    if type_ is Type.REAL:
        return real_to_integer(texts[0])
    if type_ is Type.TEXT:
        return _read(texts[0], WHOLE_TEXT, Type.INTEGER)
    return texts[0] if type_ is Type.INTEGER else f"CAST({texts[0]} AS BIGINT)"


def _to_real(node: Call, texts: list[str]) -> str:
    if node.arguments[0].facts.type is Type.TEXT:
        return _read(texts[0], NUMBER_TEXT, Type.REAL)
    return _TEXTS.typed(Type.REAL, node.arguments[0], texts[0])


def _read(text: str, shape: str, target: Type) -> str:
    """Return the value of a text whose shape Python can read too, NULL for other texts."""
    return f"(CASE WHEN {text} RLIKE {whole_text(shape)} THEN try_cast(trim({text}) AS {TYPES[target]}) END)"


def _to_boolean(node: Call, texts: list[str]) -> str:
    """Return the text of a cast to BOOLEAN. No letter beyond ASCII becomes a letter of the accepted words in lower case."""
    type_ = node.arguments[0].facts.type
    if type_ is not Type.TEXT:
        return texts[0] if type_ is Type.BOOLEAN else f"({texts[0]} <> 0L)"
    word = _trimmed("BOTH", f"lower({texts[0]})")
    return boolean_of(word, constant)


# --- texts ----------------------------------------------------------------------------------------------------------


@cache
def _blanks() -> str:
    """Return the text of all characters that are trimmed."""
    return quoted("".join(c for c in map(chr, range(0x10000)) if trimmed(c) == ""))


def _trimmed(side: str, text: str, removed: str | None = None) -> str:
    return f"trim({side} {removed or _blanks()} FROM {text})"


def _trim(side: str) -> Template:
    return lambda node, texts: _trimmed(side, *texts)


def _with_count(function: str) -> Template:
    """Return the template of a function of a text and of literal positions."""

    def emit(node: Call, texts: list[str]) -> str:
        literals = [a.value for a in node.arguments[1:] if isinstance(a, Literal)]
        return f"{function}({', '.join([texts[0], *map(str, literals)])})"

    return emit


def _end(function: str) -> Template:
    """Return the template of left or right; a count below 0 leaves out so many characters at the other end."""

    def emit(node: Call, texts: list[str]) -> str:
        if (count := int(str(literal_of(node, 1)))) >= 0:
            return f"{function}({texts[0]}, {count})"
        shorter = "substr({}, {})" if function == "right" else "reverse(substr(reverse({}), {}))"
        return shorter.format(texts[0], 1 - count)

    return emit


def _split_part(node: Call, texts: list[str]) -> str:
    return f"split_part({texts[0]}, {texts[1]}, {literal_of(node, 2)})"


def _count(form: str) -> Template:
    return lambda node, texts: f"CAST({form.format(*texts)} AS BIGINT)"


def _like(node: Call, texts: list[str]) -> str:
    return _matches(texts[0], _pattern(node))


def _ilike(node: Call, texts: list[str]) -> str:
    return _matches(_mapped("lower", texts[0]), lower(_pattern(node)))


def _pattern(node: Call) -> str:
    return str(literal_of(node, 1))


def _matches(text: str, pattern: str) -> str:
    """Return a LIKE as a regular expression without backtracking: for a part between two % the first match is as good as any, so
    it is kept (an atomic group), and the time is linear in the text. The engine's own LIKE tries all positions."""
    first, *rest = ("".join("." if c == "_" else f"\\x{{{ord(c):x}}}" for c in part) for part in pattern.split("%"))
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    last = f".*{rest[-1]}" if rest else ""
    whole = rf"(?s)\A{first}{middle}{last}\z"
    return f"({text} RLIKE {quoted(whole)})"


def _mapped(word: str, text: str) -> str:
    """Map a text to lower or upper case by our own table; the engine's functions depend on neighbours and change lengths."""
    before, after = (f"'{letters}'" for letters in case_pairs(word))
    return f"(CASE WHEN octet_length({text}) = length({text}) THEN {word}({text}) ELSE translate({text}, {before}, {after}) END)"


FUNCTIONS: Mapping[str, Template] = {
    **_TEXTS.functions(),
    "add": _arithmetic("+", "try_add"), "sub": _arithmetic("-", "try_subtract"), "mul": _arithmetic("*", "try_multiply"),
    "div": _division, "intdiv": _whole_division, "mod": plain("try_mod"), "neg": _negative, "abs": _absolute, "sign": _sign,
    "floor": _floor("floor"), "ceil": _floor("ceil"), "round": _round, "sqrt": _TEXTS.guarded("sqrt", f">= {_ZERO}"),
    "ln": _TEXTS.guarded("ln", f"> {_ZERO}"), "log10": _TEXTS.guarded("log10", f"> {_ZERO}"),
    "power": _power,
    **{name: _TEXTS.guarded(name, f"BETWEEN {real(-1.7976931348623157e308)} AND {real(1.7976931348623157e308)}")
       for name in ("sin", "cos", "tan")},
    **{name: _TEXTS.guarded(name, f"BETWEEN {real(-1.0)} AND {real(1.0)}") for name in ("asin", "acos")},
    **{name: _TEXTS.of_reals(name) for name in ("exp", "atan", "radians", "degrees")},
    "clamp": _TEXTS.clamp, "width_bucket": _bucket, "not_distinct": _TEXTS.compare("<=>"), "place_in": _place_in,
    "and": _connected("AND"), "or": _connected("OR"),
    "is_true": _is("TRUE"), "is_false": _is("FALSE"),
    "like": _like, "ilike": _ilike, "starts_with": plain("startswith"), "ends_with": plain("endswith"),
    "contains": plain("contains"), "lower": lambda node, texts: _mapped("lower", texts[0]),
    "upper": lambda node, texts: _mapped("upper", texts[0]), "trim": _trim("BOTH"), "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"), "left": _end("left"), "right": _end("right"), "substr": _with_count("substr"),
    "split_part": _split_part, "translate": plain("translate"),
    "concat": lambda node, texts: shortened(f"concat({', '.join(texts)})"),
    "concat_ws": lambda node, texts: shortened(f"concat_ws({', '.join(texts)})"), "replace": lambda node, texts: replaced(texts),
    "length": _count("length({})"), "strlen": _count("octet_length({})"), "strpos": _count("instr({}, {})"),
    "to_integer": _to_integer, "to_real": _to_real, "to_text": lambda node, texts: f"CAST({texts[0]} AS STRING)",
    "to_boolean": _to_boolean, **TIME_FUNCTIONS,
}  # fmt: skip


# --- dialect ----------------------------------------------------------------------------------------------------------

_LIMB_BITS = 21
"""Bits of a limb: a sum of integers below 2**22 stays inside 64 bits for 2**41 rows."""
_SHORT = 1000
"""The most bytes of a text that is hashed together with the rest of its row."""


class SparkDialect(Dialect):
    """Spark 4, in sessions whose settings `engine.spark.sessions` pins: names are between double quotes."""

    name = "spark"
    title = "Spark"
    types = TYPES
    functions = FUNCTIONS
    unsupported = UNSUPPORTED
    takes_parameters = False
    without_clipping = (
        "it reads rows several times, and nothing proves that Spark reads the same rows each time; bound the rows of each "
        "unit instead (max_rows)"
    )

    def constant(self, value: Any) -> str:
        return constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return cast_column(source, type_, engine_type)

    def is_nan(self, value: str) -> str:
        return f"isnan({value})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + {real(0.0)}"

    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped. Spark gives every NaN the same bits when it groups by it."""
        return f"({value} + {real(0.0)})"

    def sign_of(self, value: str) -> str:
        """Return a zero as text, '-0.0' or '0.0', else NULL. A question cannot see the sign of NaN."""
        return f"(CASE WHEN {value} = {real(0.0)} THEN CAST({value} AS STRING) END)"

    def nearest_integer(self, value: str, type_: str) -> str:
        """Return a real rounded half to even; the engine's own cast truncates the fraction."""
        return f"CAST(rint({value}) AS {type_})"

    def wide(self, value: str) -> str:
        return f"CAST({value} AS DECIMAL(38, 0))"

    def narrow(self, value: str) -> str:
        return f"try_cast({value} AS BIGINT)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        return f"{dividend} div {divisor}"

    def halved(self, value: str, times: int) -> str:
        return f"shiftright({value}, {times})"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the SHA-256 of the key and of every value as text after its length, so that different rows give different
        texts. A text of more than `_SHORT` bytes is represented by its own hash, because Java's texts end at 2 GB; rows whose
        hashes are equal are ordered by their content."""
        texts = [f"CAST({item} AS STRING)" for item in content]
        shorter = [f"if(octet_length({text}) > {_SHORT}, sha2({text}, 256), {text})" for text in texts]
        parts = [
            f"coalesce(concat(octet_length({text}), ':', {short}), '-')"
            for text, short in zip(texts, shorter, strict=True)
        ]
        return f"sha2(concat({', '.join([self.constant(key), *parts])}), 256)"

    def exact_sum(self, value: str, filtered: str = "", most: int = 2**63) -> str:
        """Return an exact sum of integers. The engine's sum of BIGINT has 64 bits, and its sum of decimals takes many times as
        long. So an integer x is split into limbs, x = h * 2**42 + m * 2**21 + l with 0 <= m, l < 2**21 and h of x's sign, |h| <=
        2**21: the shift rounds down, and the bits below it form the rest. Each limb is summed in 64 bits, exactly for up to
        2**41 rows (beyond that the session raises instead of wrapping), and the sums are joined in 38 digits: the total is below
        2**41 * 2**63 = 2**104 < 10**38. Limbs that are empty according to `most` are left out."""
        wide = f"CAST({value} AS BIGINT)"
        limbs = 1 if most < 2 ** (_LIMB_BITS + 1) else 2 if most < 2 ** (2 * _LIMB_BITS + 1) else 3
        parts = []
        for limb in range(limbs):
            shifted = f"shiftright({wide}, {limb * _LIMB_BITS})" if limb else wide
            part = shifted if limb == limbs - 1 else f"({shifted} & {2**_LIMB_BITS - 1}L)"
            total = self.wide(f"sum({part}){filtered}")
            parts.append(f"{total} * {2 ** (limb * _LIMB_BITS)}L" if limb else total)
        return f"({' + '.join(parts)})"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        element, zero = self.wide(integer("e")), self.wide("0")
        return f"aggregate(collect_set({value}){condition}, {zero}, (a, e) -> {self.wide(f'a + coalesce({element}, {zero})')})"


SPARK = SparkDialect()
