"""DuckDB's dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.engine.dialect import Dialect, Template, in_calendar
from dpsql.engine.duckdb import literals
from dpsql.engine.duckdb.literals import TYPES, constant
from dpsql.engine.shared_texts import (
    SharedTexts,
    boolean_of,
    digits_of,
    floor,
    infix,
    literal_of,
    plain,
    replaced,
    shortened,
)
from dpsql.functions.values import NUMBER_TEXT, TIME_TEXT, WHOLE_TEXT, microseconds
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Literal

# --- row functions ----------------------------------------------------------------------------------------------------

# DuckDB's text for each row function: total by construction, so that no data can raise (privacy.md 4).
# `TRY(...)` is never written: it runs failed batches row by row, where CASE and COALESCE below it write past their vector
# (duckdb/duckdb issue 25280) and errors still come out. Instead no text can fail: integers are computed in 128 bits and cast
# back by TRY_CAST, dates stay within the years 1 to 9999, and zero divisors become NULL.

_TEXTS = SharedTexts(TYPES, cast="TRY_CAST")
"""Shared texts with TRY_CAST: a date beyond the timestamps becomes NULL; no other widening can fail."""


def _arithmetic(operator: str) -> Template:
    """Return the template of an operator. Integers are computed in 128 bits and are NULL beyond 64; doubles never raise."""

    def emit(node: Call, texts: list[str]) -> str:
        if node.facts.type is Type.REAL:
            left, right = _TEXTS.reals(node, texts)
            return f"({left} {operator} {right})"
        if _largest(node, 1 << 63) < 1 << 63:
            return f"({texts[0]} {operator} {texts[1]})"
        return _mostly_in_64_bits(node) or f"TRY_CAST({_wide(texts[0])} {operator} {_wide(texts[1])} AS BIGINT)"

    return emit


_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}
_MOST_LEAVES = 8


def _mostly_in_64_bits(node: Call) -> str | None:
    """Return the text of arithmetic over columns and constants, or None for other expressions and long ones.

    While no column is beyond the limit, no step of the arithmetic is beyond 64 bits: each of `_largest` is at most the last. Only
    rows beyond it enter the branch in 128 bits. NULL does not (no comparison with it is true), so that the common branch runs
    over whole vectors, and statistics of a column may remove the test.
    """
    leaves = _leaves(node)
    bits = next((bits for bits in range(62, 14, -1) if _largest(node, 1 << bits) < 1 << 63), None)
    if bits is None or len(leaves) > _MOST_LEAVES or not all(map(_is_number, leaves)):
        return None
    columns = dict.fromkeys(sql_name(leaf.name) for leaf in leaves if isinstance(leaf, Column))
    beyond = " OR ".join(f"{column} NOT BETWEEN {-(1 << bits)} AND {1 << bits}" for column in columns)
    return f"(CASE WHEN {beyond or 'false'} THEN {_in_128_bits(node)} ELSE {_in_64_bits(node)} END)"


def _leaves(node: Expr) -> list[Expr]:
    if not isinstance(node, Call) or node.function not in _OPERATORS:
        return [node]
    return [leaf for argument in node.arguments for leaf in _leaves(argument)]


def _is_number(leaf: Expr) -> bool:
    return leaf.facts.type is Type.INTEGER and (
        isinstance(leaf, Column) or (isinstance(leaf, Literal) and isinstance(leaf.value, int))
    )


def _largest(node: Expr, most: int) -> int:
    """Return a limit of the absolute value of an expression and all its steps, if no column is beyond `most`. A clamped value
    lies between its bounds, whatever the data are."""
    if isinstance(node, Literal):
        return max(1, abs(node.value)) if isinstance(node.value, int) else most
    if isinstance(node, Call) and node.function == "clamp" and node.facts.type is Type.INTEGER:
        return max(_largest(bound, most) for bound in node.arguments[1:])
    if not isinstance(node, Call) or node.function not in _OPERATORS:
        return most
    first, second = (_largest(argument, most) for argument in node.arguments)
    return first * second if node.function == "mul" else first + second


def _in_64_bits(node: Expr) -> str:
    if isinstance(node, Call):
        return f"({_in_64_bits(node.arguments[0])} {_OPERATORS[node.function]} {_in_64_bits(node.arguments[1])})"
    return sql_name(node.name) if isinstance(node, Column) else constant(node.value)  # type: ignore[union-attr]


def _in_128_bits(node: Expr) -> str:
    if not isinstance(node, Call):
        return _in_64_bits(node)
    left, right = (_wide(_in_128_bits(argument)) for argument in node.arguments)
    return f"TRY_CAST({left} {_OPERATORS[node.function]} {right} AS BIGINT)"


def _wide(text: str) -> str:
    return f"CAST({text} AS HUGEINT)"


def _of_number(form: str) -> Template:
    """Return the template of a function of one number that would overflow for the smallest integer."""

    def emit(node: Call, texts: list[str]) -> str:
        real = node.facts.type is Type.REAL
        return f"({form.format(texts[0])})" if real else f"TRY_CAST({form.format(_wide(texts[0]))} AS BIGINT)"

    return emit


def _division(node: Call, texts: list[str]) -> str:
    left, right = _TEXTS.reals(node, texts)
    return f"({left} / NULLIF({right}, 0e0::DOUBLE))"


def _whole_division(operator: str) -> Template:
    """Return the template of a division of integers. A literal divisor other than -1 cannot overflow, so it is divided in 64
    bits, because division in 128 bits is slow."""

    def emit(node: Call, texts: list[str]) -> str:
        divisor = node.arguments[1]
        if isinstance(divisor, Literal) and divisor.value not in (0, -1):
            return f"({texts[0]} {operator} {texts[1]})"
        return f"TRY_CAST({_wide(texts[0])} {operator} NULLIF({_wide(texts[1])}, 0) AS BIGINT)"

    return emit


def _place_in(node: Call, texts: list[str]) -> str:
    """Return the text of a value's position in a list; for texts by the hash of an enumeration, which takes as long for a
    thousand values as for one, and for numbers that follow each other by their distance from the first. Labels of an
    enumeration are plain literals, without a NUL character."""
    value, *items = _TEXTS.comparable(node, texts)
    values = [item.value for item in node.arguments[1:] if isinstance(item, Literal)]
    whole = node.arguments[0].facts.type is Type.INTEGER and all(type(value) is int for value in values)
    if whole and values == list(range(values[0], values[0] + len(items))):
        return f"(CASE WHEN {value} BETWEEN {items[0]} AND {items[-1]} THEN {value} - {items[0]} END)"
    listed = {value for value in values if isinstance(value, str)}
    if node.arguments[0].facts.type is Type.TEXT and len(listed) == len(items) and "\0" not in "".join(listed):
        return f"CAST(enum_code(TRY_CAST({value} AS ENUM({', '.join(items)}))) AS BIGINT)"
    return f"CAST(list_position([{', '.join(items)}], {value}) - 1 AS BIGINT)"


def _nullif(node: Call, texts: list[str]) -> str:
    """Return the engine's nullif, or a CASE if the two types differ, because the result keeps the type of the first."""
    if len({argument.facts.type for argument in node.arguments}) == 1:
        return f"nullif({', '.join(texts)})"
    return _TEXTS.nullif(node, texts)


_FINITE = "BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"


def _bucket(node: Call, texts: list[str]) -> str:
    value, low, high = (_TEXTS.typed(Type.REAL, a, t) for a, t in zip(node.arguments[:3], texts[:3], strict=True))
    inside = f"least({texts[3]}, TRY_CAST(floor(({value} - {low}) / ({high} - {low}) * {texts[3]}) AS BIGINT) + 1)"
    return (
        f"(CASE WHEN {value} < {low} THEN 0::BIGINT WHEN isnan({value}) THEN NULL "
        f"WHEN {value} >= {high} THEN {texts[3]} + 1 WHEN {value} IS NOT NULL THEN {inside} END)"
    )


def _trunc(node: Call, texts: list[str]) -> str:
    return f"CAST(date_trunc({texts[0]}, {texts[1]}) AS {TYPES[node.facts.type]})"


def _add_interval(function: str, most: int, type_: str) -> Template:
    """Return the template of a shifted date. `most` steps lead out of the calendar, but stay within the engine's timestamps."""

    def emit(node: Call, texts: list[str]) -> str:
        steps = f"CAST(least(greatest({texts[1]}, -{most}), {most}) AS {type_})"
        return in_calendar(node.facts.type, f"CAST({texts[0]} + {function}({steps}) AS {TYPES[node.facts.type]})")

    return emit


def _round(node: Call, texts: list[str]) -> str:
    """Return the text of ROUND. With digits, DuckDB 2.0.1 rounds different doubles up than DuckDB 2.0.0, so the scaled number is
    rounded instead, which all versions do in the same way."""
    if node.facts.type is Type.INTEGER:
        return texts[0]
    if (digits := digits_of(node)) == 0:
        return f"round({texts[0]})"
    step = constant(10.0**digits)
    scaled = f"({texts[0]} * {step})"
    return f"(CASE WHEN {scaled} {_FINITE} THEN round({scaled}) / {step} ELSE {texts[0]} END)"


def _cast(node: Call, texts: list[str]) -> str:
    return f"TRY_CAST({texts[0]} AS {TYPES[node.facts.type]})"


_READ = {Type.INTEGER: WHOLE_TEXT, Type.REAL: NUMBER_TEXT, Type.DATE: TIME_TEXT, Type.TIMESTAMP: TIME_TEXT}


def _read(node: Call, texts: list[str]) -> str:
    """Return a cast; of texts, only those that `evaluate` reads, others are NULL."""
    target, text = node.facts.type, texts[0]
    if node.arguments[0].facts.type is not Type.TEXT:
        return _cast(node, texts)
    if target is Type.BOOLEAN:
        return boolean_of(f"trim(lower({text}))", constant)
    value = f"TRY_CAST({text} AS {'TIMESTAMP' if target is Type.DATE else TYPES[target]})"
    value = f"CAST({value} AS DATE)" if target is Type.DATE else value
    return f"(CASE WHEN regexp_full_match({text}, {constant(_READ[target])}) THEN {value} END)"


def _concat(node: Call, texts: list[str]) -> str:
    return shortened(" || ".join(texts))


def _concat_ws(node: Call, texts: list[str]) -> str:
    """Return the text of CONCAT_WS. NULL literals get a type, so that the engine knows which overload is meant."""
    return shortened(f"concat_ws({', '.join('NULL::VARCHAR' if t == 'NULL' else t for t in texts)})")


def _regexp_replace(node: Call, texts: list[str]) -> str:
    """Return the text of REGEXP_REPLACE, cut before, so that the text inserted for all matches is bounded, and after."""
    everywhere = isinstance(node.arguments[3], Literal) and node.arguments[3].value
    options = ", 'g'" if everywhere else ""
    return shortened(f"regexp_replace({shortened(texts[0])}, {texts[1]}, {texts[2]}{options})")


def _time_bucket(node: Call, texts: list[str]) -> str:
    """Return the text of TIME_BUCKET, computed in whole microseconds, which are far inside 64 bits for the years 1 to 9999; % has
    the sign of the dividend."""
    width, origin = node.arguments[1:]
    assert isinstance(width, Literal) and isinstance(origin, Literal)
    step, since = width.value * 10**6, f"(epoch_us({texts[0]}::TIMESTAMP) - {constant(microseconds(origin.value))})"
    start = f"{since} - (({since} % {step}) + {step}) % {step} + {constant(microseconds(origin.value))}"
    return in_calendar(node.facts.type, f"CAST(make_timestamp({start}) AS {TYPES[node.facts.type]})")


def _text_positions(function: str) -> Template:
    return lambda node, texts: f"{function}({texts[0]}, {', '.join(texts[1:])})"


FUNCTIONS: dict[str, Template] = {
    **_TEXTS.functions(),
    "add": _arithmetic("+"), "sub": _arithmetic("-"), "mul": _arithmetic("*"), "div": _division,
    "intdiv": _whole_division("//"), "mod": _whole_division("%"), "neg": _of_number("-{}"),
    "abs": _of_number("abs({})"), "sign": lambda node, texts: f"CAST(sign({texts[0]}) AS BIGINT)",
    "floor": floor("floor"), "ceil": floor("ceil"), "round": _round, "sqrt": _TEXTS.guarded("sqrt", ">= 0"),
    "ln": _TEXTS.guarded("ln", "> 0"), "log10": _TEXTS.guarded("log10", "> 0"),
    **{name: _TEXTS.of_reals(name) for name in ("exp", "power", "atan", "atan2", "radians", "degrees")},
    "sin": _TEXTS.guarded("sin", _FINITE), "cos": _TEXTS.guarded("cos", _FINITE), "tan": _TEXTS.guarded("tan", _FINITE),
    "asin": _TEXTS.guarded("asin", "BETWEEN -1 AND 1"), "acos": _TEXTS.guarded("acos", "BETWEEN -1 AND 1"),
    "clamp": _TEXTS.clamp, "nullif": _nullif, "not_distinct": _TEXTS.compare("IS NOT DISTINCT FROM"),
    "place_in": _place_in, "like": infix("LIKE"), "ilike": infix("ILIKE"),
    "starts_with": plain("starts_with"), "ends_with": plain("ends_with"), "contains": plain("contains"),
    "lower": plain("lower"), "upper": plain("upper"), "trim": plain("trim"), "ltrim": plain("ltrim"),
    "rtrim": plain("rtrim"), "left": _text_positions("left"), "right": _text_positions("right"),
    "substr": _text_positions("substr"), "concat": _concat, "replace": lambda node, texts: replaced(texts),
    "length": plain("length"),
    "date_trunc": _trunc, "date_part": lambda node, texts: f"CAST(date_part({texts[0]}, {texts[1]}) AS BIGINT)",
    "date_diff": lambda node, texts: f"CAST(date_diff({', '.join(texts)}) AS BIGINT)",
    "add_days": _add_interval("to_days", 4_000_000, "INTEGER"),
    "add_months": _add_interval("to_months", 200_000, "INTEGER"),
    "add_seconds": _add_interval("to_seconds", 400_000_000_000, "BIGINT"),
    "width_bucket": _bucket, "to_integer": _read, "to_real": _read, "to_text": _cast,
    "to_boolean": _read, "to_date": _read, "to_timestamp": _read, "epoch": plain("epoch"),
    "time_bucket": _time_bucket, "last_day": plain("last_day"), "strftime": plain("strftime"),
    "regexp_matches": plain("regexp_matches"), "regexp_replace": _regexp_replace, "split_part": plain("split_part"),
    "translate": plain("translate"), "md5": plain("md5"),
    "regexp_extract": lambda node, texts: f"regexp_extract({texts[0]}, {texts[1]}, {literal_of(node, 2)})",
    "strlen": plain("strlen"), "strpos": plain("strpos"), "concat_ws": _concat_ws,
}  # fmt: skip


# --- dialect ----------------------------------------------------------------------------------------------------------


class DuckDBDialect(Dialect):
    """DuckDB 1.4 and later."""

    name = "duckdb"
    title = "DuckDB"
    types = literals.TYPES
    functions = FUNCTIONS
    takes_parameters = groups_by_few_values = True
    most_places = 62

    def constant(self, value: Any) -> str:
        return literals.constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return literals.cast_column(source, type_, engine_type)

    def released(self, result: str) -> str:
        """Return the name of a released table, which only one cursor can see."""
        return f"temp.main.{self.identifier(result)}"

    def is_nan(self, value: str) -> str:
        return f"isnan({value})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + 0e0::DOUBLE"

    def real_key(self, value: str) -> str:
        return f"(CASE WHEN isnan({value}) THEN 'nan'::DOUBLE ELSE {value} + 0e0::DOUBLE END)"

    def sign_of(self, value: str) -> str:
        """Return whether a number is negative; false for NaN, whose sign no question sees, and DuckDB 1.4 loses in sorting."""
        return f"(signbit({value}) AND NOT isnan({value}))"

    def sent_text(self, value: str) -> str:
        return value

    def wide(self, value: str) -> str:
        return f"CAST({value} AS HUGEINT)"

    def narrow(self, value: str) -> str:
        return f"TRY_CAST({value} AS BIGINT)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        return f"{dividend} // {divisor}"

    def derived(self, select: str, alias: str = "#rows") -> str:
        return f"({select})"

    def semi_join(self, rows: str, listed: str, column: str) -> str:
        return f"{rows} SEMI JOIN ({listed}) USING ({column})"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the keyed hash of `content`. The engine combines the hashes of arguments by XOR, which would leave units few
        different orders of the same values, so the result is hashed once more."""
        return f"hash(hash({', '.join([self.constant(key), *content])}))"

    def order_below(self, share: str) -> str:
        return f"CAST({share} * 18446744073709549568e0 AS UBIGINT)"  # the largest double below 2**64

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        return f"CAST({self.keyed_order(key, content)} % CAST({samples} AS UBIGINT) AS BIGINT)"

    def entropy(self, value: str) -> str:
        """Return log2(n) minus the mean of log2 of each row's count. The sum adds integers, so it is independent of order."""
        part = "CAST(round(CAST(c AS DOUBLE) * log2(CAST(c AS DOUBLE)) * 1048576e0) AS HUGEINT)"
        counts = f"map_values(histogram({value}))"
        total = f"list_sum(list_transform({counts}, lambda c: {part}))"
        rows = f"CAST(count({value}) AS DOUBLE)"
        return f"CASE WHEN count({value}) > 0 THEN log2({rows}) - CAST({total} AS DOUBLE) / 1048576e0 / {rows} END"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        return f"list_sum(list_transform(list(DISTINCT {value}){condition}, lambda e: {integer('e')}))"


DUCKDB = DuckDBDialect()
