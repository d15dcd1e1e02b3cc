"""DuckDB's text for each row function: total by construction, so that no data can raise (privacy.md 4).

`TRY(...)` is never written: it runs failed batches row by row, where CASE and COALESCE below it write past their
vector (duckdb/duckdb issue 25280) and errors still come out. Instead nothing can fail: integers are computed in 128
bits and cast back by TRY_CAST, dates stay within the years 1 to 9999, division has a NULL divisor instead of zero.
"""

from __future__ import annotations

from dpsql.engine.dialect import Template
from dpsql.engine.duckdb.literals import TYPES, constant, in_calendar
from dpsql.functions.calendar import microseconds
from dpsql.functions.numeric import MOST_TEXT, common_type
from dpsql.functions.values import FALSE_TEXTS, NUMBER_TEXT, TIME_TEXT, TRUE_TEXTS, WHOLE_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal


def _infix(operator: str) -> Template:
    return lambda node, texts: "(" + f" {operator} ".join(texts) + ")"


def _plain(function: str) -> Template:
    return lambda node, texts: f"{function}({', '.join(texts)})"


def _arithmetic(operator: str) -> Template:
    """Integers are computed in 128 bits, beyond 64 they are NULL; doubles never raise."""

    def emit(node: Call, texts: list[str]) -> str:
        if node.facts.type is Type.REAL:
            left, right = (_real(argument, text) for argument, text in zip(node.arguments, texts, strict=True))
            return f"({left} {operator} {right})"
        return f"TRY_CAST({_wide(texts[0])} {operator} {_wide(texts[1])} AS BIGINT)"

    return emit


def _wide(text: str) -> str:
    return f"CAST({text} AS HUGEINT)"


def _of_number(form: str) -> Template:
    """A function of one number that the smallest integer would overflow."""

    def emit(node: Call, texts: list[str]) -> str:
        real = node.facts.type is Type.REAL
        return f"({form.format(texts[0])})" if real else f"TRY_CAST({form.format(_wide(texts[0]))} AS BIGINT)"

    return emit


def _real(argument: Expr, text: str) -> str:
    return text if argument.facts.type is Type.REAL else f"CAST({text} AS DOUBLE)"


def _division(node: Call, texts: list[str]) -> str:
    left, right = (_real(argument, text) for argument, text in zip(node.arguments, texts, strict=True))
    return f"({left} / NULLIF({right}, 0e0::DOUBLE))"


def _whole_division(operator: str) -> Template:
    """A literal divisor cannot overflow; -1 can, and 128 bits are slow to divide."""

    def emit(node: Call, texts: list[str]) -> str:
        divisor = node.arguments[1]
        if isinstance(divisor, Literal) and divisor.value not in (0, -1):
            return f"({texts[0]} {operator} {texts[1]})"
        return f"TRY_CAST({_wide(texts[0])} {operator} NULLIF({_wide(texts[1])}, 0) AS BIGINT)"

    return emit


def _as(type_: Type, argument: Expr, text: str) -> str:
    """An alternative in the type that all share: a date beyond the timestamps is NULL, no other widening can fail."""
    return text if argument.facts.type is type_ else f"TRY_CAST({text} AS {TYPES[type_]})"


def _alike(node: Call, texts: list[str]) -> list[str]:
    return [_as(node.facts.type, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _comparable(node: Call, texts: list[str]) -> list[str]:
    """Both sides in one type, so that the engine has nothing to widen."""
    type_ = common_type(node.arguments)
    return [_as(type_, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _compare(operator: str) -> Template:
    return lambda node, texts: "(" + f" {operator} ".join(_comparable(node, texts)) + ")"


def _case(node: Call, texts: list[str]) -> str:
    values = [_as(node.facts.type, a, t) for a, t in zip(node.arguments[1:-1:2], texts[1:-1:2], strict=True)]
    pairs = zip(texts[:-1:2], values, strict=True)
    body = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
    return f"(CASE {body} ELSE {_as(node.facts.type, node.arguments[-1], texts[-1])} END)"


def _in(node: Call, texts: list[str]) -> str:
    value, *items = _comparable(node, texts)
    return f"({value} IN ({', '.join(items)}))"


def _place_in(node: Call, texts: list[str]) -> str:
    """Of texts by the hash of an enumeration, which takes as long for a thousand values as for one."""
    value, *items = _comparable(node, texts)
    listed = {item.value for item in node.arguments[1:] if isinstance(item, Literal) and isinstance(item.value, str)}
    if node.arguments[0].facts.type is Type.TEXT and len(listed) == len(items):
        return f"CAST(enum_code(TRY_CAST({value} AS ENUM({', '.join(items)}))) AS BIGINT)"
    return f"CAST(list_position([{', '.join(items)}], {value}) - 1 AS BIGINT)"


def _nullif(node: Call, texts: list[str]) -> str:
    """The engine's nullif, written out where the two types differ: the result keeps the type of the first."""
    if len({argument.facts.type for argument in node.arguments}) == 1:
        return f"nullif({', '.join(texts)})"
    left, right = _comparable(node, texts)
    return f"(CASE WHEN {left} = {right} THEN NULL ELSE {texts[0]} END)"


def _clamp(node: Call, texts: list[str]) -> str:
    """NULL and NaN stay NULL: the engine's least and greatest would turn them into a bound."""
    value, low, high = _alike(node, texts)
    missing = f"{value} IS NULL OR isnan({value})" if node.facts.type is Type.REAL else f"{value} IS NULL"
    return f"(CASE WHEN {missing} THEN NULL ELSE least(greatest({value}, {low}), {high}) END)"


_FINITE = "BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308"


def _guarded(function: str, condition: str) -> Template:
    """A function of reals where `condition` holds, NULL elsewhere."""

    def emit(node: Call, texts: list[str]) -> str:
        value = _real(node.arguments[0], texts[0])
        return f"(CASE WHEN {value} {condition} THEN {function}({value}) END)"

    return emit


def _reals(function: str) -> Template:
    """A function of reals that has a value (infinity, NaN) for each of them."""
    return lambda node, texts: f"{function}({', '.join(map(_real, node.arguments, texts))})"


def _bucket(node: Call, texts: list[str]) -> str:
    value, low, high = (_real(a, t) for a, t in zip(node.arguments[:3], texts[:3], strict=True))
    inside = f"least({texts[3]}, TRY_CAST(floor(({value} - {low}) / ({high} - {low}) * {texts[3]}) AS BIGINT) + 1)"
    return (
        f"(CASE WHEN {value} < {low} THEN 0::BIGINT WHEN isnan({value}) THEN NULL "
        f"WHEN {value} >= {high} THEN {texts[3]} + 1 WHEN {value} IS NOT NULL THEN {inside} END)"
    )


def _trunc(node: Call, texts: list[str]) -> str:
    return f"CAST(date_trunc({texts[0]}, {texts[1]}) AS {TYPES[node.facts.type]})"


def _add_interval(function: str, most: int, type_: str) -> Template:
    """A moved date; `most` steps lead out of the calendar from everywhere (and stay within the engine's timestamps)."""

    def emit(node: Call, texts: list[str]) -> str:
        steps = f"CAST(least(greatest({texts[1]}, -{most}), {most}) AS {type_})"
        return in_calendar(node.facts.type, f"CAST({texts[0]} + {function}({steps}) AS {TYPES[node.facts.type]})")

    return emit


def _floor(function: str) -> Template:
    return lambda node, texts: texts[0] if node.facts.type is Type.INTEGER else f"{function}({texts[0]})"


def _round(node: Call, texts: list[str]) -> str:
    if node.facts.type is Type.INTEGER:
        return texts[0]
    return f"round({texts[0]})" if len(texts) == 1 else f"round({texts[0]}, CAST({texts[1]} AS INTEGER))"


def _cast(node: Call, texts: list[str]) -> str:
    return f"TRY_CAST({texts[0]} AS {TYPES[node.facts.type]})"


_READ = {Type.INTEGER: WHOLE_TEXT, Type.REAL: NUMBER_TEXT, Type.DATE: TIME_TEXT, Type.TIMESTAMP: TIME_TEXT}


def _read(node: Call, texts: list[str]) -> str:
    """A cast; of texts, those that `evaluate` reads."""
    target, text = node.facts.type, texts[0]
    if node.arguments[0].facts.type is not Type.TEXT:
        return _cast(node, texts)
    if target is Type.BOOLEAN:
        word = f"trim(lower({text}))"
        cases = " ".join(
            f"WHEN {word} IN ({', '.join(map(constant, words))}) THEN {constant(value)}"
            for value, words in ((True, TRUE_TEXTS), (False, FALSE_TEXTS))
        )
        return f"(CASE {cases} END)"
    value = f"TRY_CAST({text} AS {'TIMESTAMP' if target is Type.DATE else TYPES[target]})"
    value = f"CAST({value} AS DATE)" if target is Type.DATE else value
    return f"(CASE WHEN regexp_full_match({text}, {constant(_READ[target])}) THEN {value} END)"


def _concat(node: Call, texts: list[str]) -> str:
    return f"left({' || '.join(texts)}, {MOST_TEXT})"


def _replace(node: Call, texts: list[str]) -> str:
    return f"left(replace(left({texts[0]}, {MOST_TEXT}), {texts[1]}, {texts[2]}), {MOST_TEXT})"


def _concat_ws(node: Call, texts: list[str]) -> str:
    """NULL literals have a type here, so that the engine knows which concat_ws is meant."""
    return f"left(concat_ws({', '.join('NULL::VARCHAR' if t == 'NULL' else t for t in texts)}), {MOST_TEXT})"


def _regexp_replace(node: Call, texts: list[str]) -> str:
    """Cut before, so that what is put for each match is bounded, and after."""
    everywhere = isinstance(node.arguments[3], Literal) and node.arguments[3].value
    options = ", 'g'" if everywhere else ""
    return f"left(regexp_replace(left({texts[0]}, {MOST_TEXT}), {texts[1]}, {texts[2]}{options}), {MOST_TEXT})"


def _time_bucket(node: Call, texts: list[str]) -> str:
    """In whole microseconds, which years 1 to 9999 keep far from 64 bits; % has the sign of the dividend."""
    width, origin = node.arguments[1:]
    assert isinstance(width, Literal) and isinstance(origin, Literal)
    step, since = width.value * 10**6, f"(epoch_us({texts[0]}::TIMESTAMP) - {constant(microseconds(origin.value))})"
    start = f"{since} - (({since} % {step}) + {step}) % {step} + {constant(microseconds(origin.value))}"
    return in_calendar(node.facts.type, f"CAST(make_timestamp({start}) AS {TYPES[node.facts.type]})")


def _text_positions(function: str) -> Template:
    return lambda node, texts: f"{function}({texts[0]}, {', '.join(texts[1:])})"


FUNCTIONS: dict[str, Template] = {
    "add": _arithmetic("+"), "sub": _arithmetic("-"), "mul": _arithmetic("*"), "div": _division,
    "intdiv": _whole_division("//"), "mod": _whole_division("%"), "neg": _of_number("-{}"),
    "abs": _of_number("abs({})"), "sign": lambda node, texts: f"CAST(sign({texts[0]}) AS BIGINT)",
    "floor": _floor("floor"), "ceil": _floor("ceil"), "round": _round, "sqrt": _guarded("sqrt", ">= 0"),
    "ln": _guarded("ln", "> 0"), "log10": _guarded("log10", "> 0"), "exp": _reals("exp"), "power": _reals("power"),
    "sin": _guarded("sin", _FINITE), "cos": _guarded("cos", _FINITE), "tan": _guarded("tan", _FINITE),
    "asin": _guarded("asin", "BETWEEN -1 AND 1"), "acos": _guarded("acos", "BETWEEN -1 AND 1"), "atan": _reals("atan"),
    "atan2": _reals("atan2"), "radians": _reals("radians"), "degrees": _reals("degrees"),
    "clamp": _clamp, "least": lambda node, texts: f"least({', '.join(_alike(node, texts))})",
    "greatest": lambda node, texts: f"greatest({', '.join(_alike(node, texts))})",
    "coalesce": lambda node, texts: f"coalesce({', '.join(_alike(node, texts))})", "nullif": _nullif, "case": _case,
    "eq": _compare("="), "ne": _compare("<>"), "lt": _compare("<"), "le": _compare("<="), "gt": _compare(">"),
    "ge": _compare(">="), "not_distinct": _compare("IS NOT DISTINCT FROM"), "in": _in, "place_in": _place_in,
    "and": _infix("AND"),
    "or": _infix("OR"), "not": lambda node, texts: f"(NOT {texts[0]})",
    "is_null": lambda node, texts: f"({texts[0]} IS NULL)", "is_true": lambda node, texts: f"({texts[0]} IS TRUE)",
    "is_false": lambda node, texts: f"({texts[0]} IS FALSE)", "like": _infix("LIKE"), "ilike": _infix("ILIKE"),
    "starts_with": _plain("starts_with"), "ends_with": _plain("ends_with"), "contains": _plain("contains"),
    "lower": _plain("lower"), "upper": _plain("upper"), "trim": _plain("trim"), "ltrim": _plain("ltrim"),
    "rtrim": _plain("rtrim"), "left": _text_positions("left"), "right": _text_positions("right"),
    "substr": _text_positions("substr"), "concat": _concat, "replace": _replace, "length": _plain("length"),
    "date_trunc": _trunc, "date_part": lambda node, texts: f"CAST(date_part({texts[0]}, {texts[1]}) AS BIGINT)",
    "date_diff": lambda node, texts: f"CAST(date_diff({', '.join(texts)}) AS BIGINT)",
    "add_days": _add_interval("to_days", 4_000_000, "INTEGER"),
    "add_months": _add_interval("to_months", 200_000, "INTEGER"),
    "add_seconds": _add_interval("to_seconds", 400_000_000_000, "BIGINT"),
    "width_bucket": _bucket, "to_integer": _read, "to_real": _read, "to_text": _cast,
    "to_boolean": _read, "to_date": _read, "to_timestamp": _read, "epoch": _plain("epoch"),
    "time_bucket": _time_bucket, "last_day": _plain("last_day"), "strftime": _plain("strftime"),
    "regexp_matches": _plain("regexp_matches"), "regexp_replace": _regexp_replace, "split_part": _plain("split_part"),
    "strlen": _plain("strlen"), "strpos": _plain("strpos"), "concat_ws": _concat_ws,
}  # fmt: skip
