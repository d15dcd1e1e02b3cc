"""PostgreSQL's dialect."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from dpsql.engine.dialect import Dialect, Template
from dpsql.engine.postgresql import literals
from dpsql.engine.postgresql.literals import (
    INFINITY,
    LEAST,
    MOST,
    NAN,
    TYPES,
    binary,
    constant,
    let,
    number_to_integer,
    number_to_real,
    product_of,
    quoted,
    quotient_of,
    real,
    real_to_integer,
    rounded,
    sum_of,
)
from dpsql.engine.postgresql.patterns import MOST_STATES, NotTheSame, in_postgresql
from dpsql.engine.shared_texts import (
    MONTHS_OF,
    SECONDS_OF,
    SharedTexts,
    boolean_of,
    digits_of,
    floor,
    format_parts,
    literal_of,
    replaced,
    shortened,
    unit_of,
)
from dpsql.errors.exceptions import refuse
from dpsql.functions.values import NUMBER_TEXT, TIME_TEXT, WHOLE_TEXT, case_pairs, microseconds
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal, ReleasedValue

_TEXTS = SharedTexts(TYPES)


# --- times ------------------------------------------------------------------------------------------------------------

# PostgreSQL's text for functions of dates and timestamps, all within the years 1 to 9999.

_FIRST_DAY = "DATE '0001-01-01'"
_LAST = 3_652_058
"""The day number of 9999-12-31, if 0001-01-01 is day 0."""
_YEAR_ONE = 62_135_596_800
"""Seconds from 0001-01-01 to 1970-01-01."""
_END = (_LAST + 1) * 86_400 - _YEAR_ONE
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
    if unit in MONTHS_OF:
        months = [f"(CAST(date_part('year', {n}) * 12 + date_part('month', {n}) AS bigint) - 1)" for n in ("u", "t")]
        return let(values, f"({' - '.join(f'{count} / {MONTHS_OF[unit]}' for count in months)})")
    if unit == "week":
        return let(values, "CAST((CAST(u AS date) - CAST(t AS date)) / 7 AS bigint)")
    counts = [f"div(extract(epoch FROM {n}) + {_YEAR_ONE}, {SECONDS_OF[unit]})" for n in ("u", "t")]
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


TIME_FUNCTIONS: Mapping[str, Template] = {
    "date_trunc": _TEXTS.truncated_time, "date_part": _part, "date_diff": _diff, "add_days": _add_days, "add_months": _add_months,
    "add_seconds": _add_seconds, "epoch": _epoch, "time_bucket": _time_bucket, "last_day": _last_day,
    "strftime": _strftime, "to_date": _read, "to_timestamp": _read,
}  # fmt: skip


# --- row functions ----------------------------------------------------------------------------------------------------

# PostgreSQL's text for each row function: total by construction, and equal to `dpsql.functions.evaluate`.
# Functions for which that is not possible are in `UNSUPPORTED`, with the reason.

BLANKS = "".join(map(chr, [0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000]))
"""The space separators of Unicode (category Zs), which trim removes."""
_OWN_LIBRARY = "the server raises where it overflows, which its C library alone knows exactly"
_REGEX = "its regular expressions are another language than RE2"
_PATTERN = (
    f"{_REGEX}; common to both are literals, sets, groups, alternatives and repetitions, "
    f"without flags, classes such as \\b or [:alpha:], and with at most {MOST_STATES} characters"
)
UNSUPPORTED: Mapping[str, str] = {
    "exp": _OWN_LIBRARY, "power": _OWN_LIBRARY, "tan": _OWN_LIBRARY, "atan2": _OWN_LIBRARY, "radians": _OWN_LIBRARY,
    "degrees": _OWN_LIBRARY, **dict.fromkeys(("sin", "cos", "asin", "acos", "atan"), _OWN_LIBRARY),
    "regexp_replace": _REGEX, "regexp_extract": _REGEX, "md5": "a server that keeps to FIPS 140 raises for it",
}  # fmt: skip


def _within(number: str) -> str:
    """Return a whole numeric as an integer, or NULL beyond 64 bits."""
    return let({"n": number}, f"(CASE WHEN n BETWEEN {LEAST} AND {MOST} THEN CAST(n AS bigint) END)")


def _wide(text: str) -> str:
    return f"CAST({text} AS numeric)"


def _arithmetic(operator: str) -> Template:
    def emit(node: Call, texts: list[str]) -> str:
        if node.facts.type is not Type.REAL:
            return _within(f"({_wide(texts[0])} {operator} {_wide(texts[1])})")
        left, right = _TEXTS.reals(node, texts)
        return product_of(left, right) if operator == "*" else sum_of(left, right, operator)

    return emit


def _of_number(form: str) -> Template:
    """Return the template of a function of one number that would overflow for the smallest integer."""

    def emit(node: Call, texts: list[str]) -> str:
        real_ = node.facts.type is Type.REAL
        return f"({form.format(texts[0])})" if real_ else _within(form.format(_wide(texts[0])))

    return emit


def _whole_division(operator: str) -> Template:
    """Return the template of a division of integers. Only the divisor -1 overflows, and its remainders are all 0."""

    def emit(node: Call, texts: list[str]) -> str:
        minus = _within("(-CAST(x AS numeric))") if operator == "/" else "CAST(0 AS bigint) * x"
        return let(
            {"x": texts[0], "y": texts[1]},
            f"(CASE WHEN y = -1 THEN {minus} WHEN y <> 0 THEN x {operator} y END)",
        )

    return emit


def _place_in(node: Call, texts: list[str]) -> str:
    value, *items = _TEXTS.comparable(node, texts)
    return f"CAST(array_position(ARRAY[{', '.join(items)}], {value}) - 1 AS bigint)"


def _clamp(node: Call, texts: list[str]) -> str:
    """Return a clamped value. NULL and NaN give NULL, because least and greatest would turn them into a bound."""
    value, low, high = _TEXTS.alike(node, texts)
    missing = f"x IS NULL OR x = {NAN}" if node.facts.type is Type.REAL else "x IS NULL"
    return let({"x": value}, f"(CASE WHEN {missing} THEN NULL ELSE least(greatest(x, {low}), {high}) END)")


def _guarded(function: str, condition: str) -> Template:
    """Return the template of a function of reals that is NULL unless `condition` holds. None of these overflows or underflows."""

    def emit(node: Call, texts: list[str]) -> str:
        (value,) = _TEXTS.reals(node, texts)
        return let({"x": value}, f"(CASE WHEN x {condition} {real('0')} THEN {function}(x) END)")

    return emit


def _bucket(node: Call, texts: list[str]) -> str:
    value, low, high = node.arguments[:3]
    assert isinstance(low, Literal) and isinstance(high, Literal)
    ends = [constant(float(end.value)) for end in (low, high)]
    width = float(high.value) - float(low.value)
    if width in (float("inf"), 0.0):
        raise refuse(
            "engine_function", function="width_bucket", engine="PostgreSQL", reason="its bounds are too far apart"
        )
    share = product_of(quotient_of(sum_of("x", ends[0], "-"), constant(width)), f"CAST({texts[3]} AS double precision)")
    return let(
        {"x": _TEXTS.typed(Type.REAL, value, texts[0])},
        f"(CASE WHEN x < {ends[0]} THEN CAST(0 AS bigint) WHEN x = {NAN} THEN NULL WHEN x >= {ends[1]} "
        f"THEN {texts[3]} + 1 WHEN x IS NOT NULL THEN least({texts[3]}, CAST(floor({share}) AS bigint) + 1) END)",
    )


def _round(node: Call, texts: list[str]) -> str:
    if node.facts.type is Type.INTEGER:
        return texts[0]
    if (digits := digits_of(node)) == 0:
        return rounded(texts[0])
    step = constant(10.0**digits)
    scaled = let(
        {"p": product_of("q", step)}, f"(CASE WHEN abs(p) < {INFINITY} THEN {rounded('p')} / {step} ELSE q END)"
    )
    return f'(SELECT {scaled} FROM (SELECT {texts[0]} AS q OFFSET 0) AS "#let")'


# --- casts ----------------------------------------------------------------------------------------------------------


def _matches(pattern: str) -> str:
    return f"x ~ {quoted(f'^(?:{pattern})$')}"


def _to_integer(node: Call, texts: list[str]) -> str:
    type_ = node.arguments[0].facts.type
    if type_ is Type.INTEGER:
        return texts[0]
    if type_ is Type.BOOLEAN:
        return f"CAST(CAST({texts[0]} AS integer) AS bigint)"
    if type_ is Type.REAL:
        return let({"x": texts[0]}, real_to_integer("x"))
    # The pattern admits only few digits, so the numeric is small, and it is whole.
    number = f"CASE WHEN {_matches(WHOLE_TEXT)} THEN CAST(btrim(x, ' ') AS numeric) END"
    return let({"n": let({"x": texts[0]}, f"({number})")}, number_to_integer("n"))


def _to_real(node: Call, texts: list[str]) -> str:
    if node.arguments[0].facts.type is not Type.TEXT:
        return _TEXTS.typed(Type.REAL, node.arguments[0], texts[0])
    number = f"CASE WHEN {_matches(NUMBER_TEXT)} THEN CAST(btrim(x, ' ') AS numeric) END"
    return let({"n": let({"x": texts[0]}, f"({number})")}, number_to_real("n"))


def _to_boolean(node: Call, texts: list[str]) -> str:
    """Return the text of a cast to BOOLEAN. No letter beyond ASCII becomes a letter of the accepted words in lower case."""
    type_ = node.arguments[0].facts.type
    if type_ is Type.BOOLEAN:
        return texts[0]
    if type_ is Type.INTEGER:
        return f"({texts[0]} <> 0)"
    return let({"w": f"btrim(lower({binary(texts[0])}), {quoted(BLANKS)})"}, boolean_of("w", constant))


def _to_text(node: Call, texts: list[str]) -> str:
    return binary(f"CAST({texts[0]} AS text)")


# --- texts ----------------------------------------------------------------------------------------------------------


def _text(form: str) -> Template:
    """Return the template of a function whose result is a text; literal numbers in its arguments are written without a type."""

    def emit(node: Call, texts: list[str]) -> str:
        return binary(form.format(", ".join(_arguments(node, texts))))

    return emit


def _arguments(node: Call, texts: list[str]) -> list[str]:
    return [
        str(argument.value) if isinstance(argument, Literal) and type(argument.value) is int else text
        for argument, text in zip(node.arguments, texts, strict=True)
    ]


def _trim(function: str) -> Template:
    return lambda node, texts: binary(f"{function}({', '.join([*texts, quoted(BLANKS)][:2])})")


def _count(form: str) -> Template:
    return lambda node, texts: f"CAST({form.format(*texts)} AS bigint)"


def _concat(node: Call, texts: list[str]) -> str:
    return binary(shortened(" || ".join(texts)))


def _concat_ws(node: Call, texts: list[str]) -> str:
    return binary(shortened(f"concat_ws({', '.join(texts)})"))


def _ends_with(node: Call, texts: list[str]) -> str:
    return let({"x": texts[0], "y": texts[1]}, "(right(x, length(y)) = y)")


def _regexp_matches(node: Call, texts: list[str]) -> str:
    try:
        pattern = in_postgresql(str(literal_of(node, 1)))
    except NotTheSame:
        raise refuse("engine_function", function="regexp_matches", engine="PostgreSQL", reason=_PATTERN) from None
    return f"({binary(texts[0])} ~ {quoted(pattern)})"


_CASED = '"pg_catalog"."pg_c_utf8"'
CASE_MAPPING_VERSION = 170000
"""From this server version, the case of letters beyond ASCII is mapped by Unicode's table on every machine."""


def _mapped(function: str, text: str, version: int) -> str:
    """Return a text in lower or upper case by Unicode's simple mapping.

    The server's own is DuckDB's except for two letters; before version 17 it depends on the server's locale, and our table of
    letters takes its place, except for texts in ASCII.
    """
    if version >= CASE_MAPPING_VERSION:
        moved = {"lower": ("\u0130", "i"), "upper": ("\u00df", "\u1e9e")}[function]
        return binary(f"{function}(translate({text}, {quoted(moved[0])}, {quoted(moved[1])}) COLLATE {_CASED})")
    mapped = f"string_agg(coalesce({_letters(function)} ->> c, c), '' ORDER BY n)"
    by_table = f"(SELECT {mapped} FROM string_to_table(x, NULL) WITH ORDINALITY AS letters (c, n))"
    text = let(
        {"x": text}, f"(CASE WHEN octet_length(x) = length(x) THEN {function}({binary('x')}) ELSE {by_table} END)"
    )
    return binary(text)


@cache
def _letters(word: str) -> str:
    """Return an object with the letters that `word` (lower, upper) changes, and what they become; it is searched by halves."""
    table = dict(zip(*case_pairs(word), strict=True))
    return f"CAST({quoted(json.dumps(table, ensure_ascii=False, separators=(',', ':')))} AS jsonb)"


def _by_case(version: int) -> Mapping[str, Template]:
    """Return the functions of upper and lower case on a server of this version."""

    def ilike(_: Call, texts: list[str]) -> str:
        text, pattern = (_mapped("lower", text, version) for text in texts)
        return f"({text} LIKE {pattern} ESCAPE '')"

    return {
        "lower": lambda _, texts: _mapped("lower", texts[0], version),
        "upper": lambda _, texts: _mapped("upper", texts[0], version),
        "ilike": ilike,
    }


FUNCTIONS: Mapping[str, Template] = {
    **_TEXTS.functions(),
    "add": _arithmetic("+"), "sub": _arithmetic("-"), "mul": _arithmetic("*"),
    "div": lambda node, texts: quotient_of(*_TEXTS.reals(node, texts)), "intdiv": _whole_division("/"),
    "mod": _whole_division("%"), "neg": _of_number("-{}"), "abs": _of_number("abs({})"),
    "sign": lambda node, texts: f"CAST(sign({texts[0]}) AS bigint)", "floor": floor("floor"), "ceil": floor("ceil"),
    "round": _round, "sqrt": _guarded("sqrt", ">="),
    "ln": _guarded("ln", ">"), "log10": _guarded("log", ">"), "clamp": _clamp, "width_bucket": _bucket,
    "not_distinct": _TEXTS.compare("IS NOT DISTINCT FROM"), "place_in": _place_in,
    "like": lambda node, texts: f"({texts[0]} LIKE {texts[1]} ESCAPE '')",
    "starts_with": lambda node, texts: f"starts_with({', '.join(texts)})", "ends_with": _ends_with,
    "contains": lambda node, texts: f"(strpos({', '.join(texts)}) > 0)",
    "trim": _trim("btrim"), "ltrim": _trim("ltrim"), "rtrim": _trim("rtrim"), "left": _text("left({})"),
    "right": _text("right({})"), "substr": _text("substr({})"), "split_part": _text("split_part({})"),
    "translate": _text("translate({})"),
    "concat": _concat, "concat_ws": _concat_ws, "replace": lambda node, texts: binary(replaced(texts)),
    "length": _count("length({})"),
    "strlen": _count("octet_length({})"), "strpos": _count("strpos({}, {})"),
    "to_integer": _to_integer, "to_real": _to_real, "to_text": _to_text, "to_boolean": _to_boolean,
    "regexp_matches": _regexp_matches, **TIME_FUNCTIONS, **_by_case(CASE_MAPPING_VERSION),
}  # fmt: skip


# --- dialect ----------------------------------------------------------------------------------------------------------

_SHORT = 1000
"""The most bytes of a value that is hashed as part of its row's text."""


class PostgreSQLDialect(Dialect):
    """PostgreSQL 15 and later. Constants are in the text, so that COPY can run it."""

    name = "postgresql"
    title = "PostgreSQL"
    types = literals.TYPES
    takes_parameters = False
    clamps_on_grid = True

    def __init__(self, version: int = 150000) -> None:
        """`version`: the server's version in its own numbering (160002)."""
        self._functions = {**FUNCTIONS, **_by_case(version)}

    @property
    def functions(self) -> Mapping[str, Template]:  # type: ignore[override]
        """The row functions of this server's version."""
        return self._functions

    unsupported = UNSUPPORTED

    def constant(self, value: Any) -> str:
        return literals.constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return literals.cast_column(source, type_, engine_type)

    def released_value(self, node: ReleasedValue) -> str:
        value = super().released_value(node)
        return literals.binary(value) if node.facts.type is Type.TEXT else value

    def is_nan(self, value: str) -> str:
        return f"({value} = {literals.NAN})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + {literals.real('0')}"

    def real_key(self, value: str) -> str:
        """Return a real by which rows are grouped. All NaNs are one key in PostgreSQL, with the same text."""
        return let({"k": value}, f"(CASE WHEN k = {literals.real('0')} THEN {literals.real('0')} ELSE k END)")

    def sign_of(self, value: str) -> str:
        """Return the value as text, in which zeros are '-0' and '0'. A question cannot see the sign of NaN."""
        return literals.binary(f"CAST({value} AS text)")

    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """Return the row's integer in one CASE. The planner copies the text of a subquery's column to every place that names it,
        so a separate clamp would compute all of this three times.

        The clamp comes first. It gives the same integer as a clamp of the moved value, and nothing outside the two ends:
        subtraction of doubles is monotone, scaling by a power of two is exact, and rounding is monotone; the ends are moved
        and rounded in the same way in Python. (After the clamp no double overflows, which would be an error in PostgreSQL;
        nor does one underflow to zero, another error, because values nearer to the centre than half a step of a coarse grid
        become 0 at once.) NaN is greater than every number and matches no branch.
        """
        ends = [f"CAST({round((end - centre) * 2.0**grid)} AS {type_})" for end in (lower, upper)]
        moved = f"(v - {literals.constant(centre)})" if centre else "v"
        scaled = f"{moved} * {literals.constant(2.0**grid)}"
        if grid < 0:
            scaled = f"CASE WHEN abs({moved}) < 1 THEN {literals.real('0')} ELSE {scaled} END"
        return let(
            {"v": value},
            f"(CASE WHEN v < {literals.constant(lower)} THEN {ends[0]} WHEN v <= {literals.constant(upper)} "
            f"THEN CAST({scaled} AS {type_}) WHEN v < {literals.NAN} THEN {ends[1]} END)",
        )

    def wide(self, value: str) -> str:
        return f"CAST({value} AS numeric)"

    def narrow(self, value: str) -> str:
        return f"(CASE WHEN {value} BETWEEN {literals.LEAST} AND {literals.MOST} THEN CAST({value} AS bigint) END)"

    def truth_value(self, condition: str) -> str:
        return f"(CASE WHEN {condition} THEN CAST(1 AS bigint) ELSE CAST(0 AS bigint) END)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        """Return the quotient of two integers of 64 bits, rounded down."""
        return f"{dividend} / {divisor}"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the SHA-256 of the key and the row as text, which quotes its parts, so different rows give different texts.

        A value of more than `_SHORT` bytes is represented by its own hash, because PostgreSQL raises if the text of a row has
        more than a gigabyte. The bytes are those in storage, where compression makes a text at most 255 times shorter: so a
        row of 1,664 values, each quoted, has at most 850 MB of text. Rows whose hashes are equal are ordered by their content.
        """
        items = (
            f"CASE WHEN pg_column_size({item}) > {_SHORT} THEN encode(sha256(convert_to(CAST({item} AS text), 'UTF8')), 'hex') "
            f"ELSE CAST({item} AS text) END"
            for item in content
        )
        row = ", ".join([literals.constant(key), *items])
        return f"sha256(convert_to(CAST(ROW({row}) AS text), 'UTF8'))"

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        """Return a sample's number from the first 56 bits of the hash."""
        first = f"encode(substring({self.keyed_order(key, content)} FROM 1 FOR 7), 'hex')"
        return f"CAST(CAST(('x' || {first}) AS bit(56)) AS bigint) % {samples}"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        return f'(SELECT sum({integer("e")}) FROM unnest(array_agg(DISTINCT {value}){condition}) AS "#e" (e))'
