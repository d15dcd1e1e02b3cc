"""Spark's text for each row function: total by construction, and equal to `dpsql.functions.evaluate`.

Sessions run with ANSI on, where an overflow and a wrong cast raise; so integers are computed by try_add and the like, and a
value is cast only behind a condition under which the cast has a value. What cannot be made equal has its reason in
`UNSUPPORTED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dpsql.engine.dialect import Template
from dpsql.engine.spark import temporal
from dpsql.engine.spark.literals import TYPES, constant, quoted, real, real_to_integer, whole_text
from dpsql.functions.numeric import MOST_TEXT, common_type
from dpsql.functions.text_values import lower, trimmed, upper
from dpsql.functions.values import FALSE_TEXTS, NUMBER_TEXT, TRUE_TEXTS, WHOLE_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Expr, Literal

_REGEX = "its regular expressions are another language than RE2, and may take exponential time"
UNSUPPORTED: Mapping[str, str] = {
    "regexp_matches": _REGEX, "regexp_replace": _REGEX,
    "atan2": "it takes -0.0 for 0.0, which turns an angle by half a circle",
}  # fmt: skip
_ZERO = real(0.0)
_WHOLE_FROM = real(2.0**52)
"""Doubles from here on have no fraction."""


def _connected(operator: str) -> Template:
    return lambda node, texts: "(" + f" {operator} ".join(_conditions(node, texts)) + ")"


def _is(word: str) -> Template:
    return lambda node, texts: f"({_conditions(node, texts)[0]} IS {word})"


def _conditions(node: Call, texts: list[str]) -> list[str]:
    return [_as(Type.BOOLEAN, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _plain(function: str) -> Template:
    return lambda node, texts: f"{function}({', '.join(texts)})"


# --- numbers, comparisons, conditions -------------------------------------------------------------------------------


def _as(type_: Type, argument: Expr, text: str) -> str:
    """An alternative in the type that all share: an integer as a double, a date (of the calendar) as its midnight."""
    return text if argument.facts.type is type_ else f"CAST({text} AS {TYPES[type_]})"


def _alike(node: Call, texts: list[str]) -> list[str]:
    return [_as(node.facts.type, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _comparable(node: Call, texts: list[str]) -> list[str]:
    type_ = common_type(node.arguments)
    return [_as(type_, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _reals(node: Call, texts: list[str]) -> list[str]:
    return [_as(Type.REAL, argument, text) for argument, text in zip(node.arguments, texts, strict=True)]


def _shared(function: str) -> Template:
    """A function of alternatives in one type."""
    return lambda node, texts: f"{function}({', '.join(_alike(node, texts))})"


def _arithmetic(operator: str, function: str) -> Template:
    def emit(node: Call, texts: list[str]) -> str:
        if node.facts.type is Type.REAL:
            return f"({f' {operator} '.join(_reals(node, texts))})"
        return f"{function}({', '.join(texts)})"

    return emit


def _division(node: Call, texts: list[str]) -> str:
    left, right = _reals(node, texts)
    return f"({left} / nullif({right}, {_ZERO}))"


def _whole_division(node: Call, texts: list[str]) -> str:
    """The one quotient beyond 64 bits is that of the least integer and -1."""
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
    (value,) = _reals(node, texts)
    signs = f"WHEN isnan({value}) THEN 0L WHEN {value} > {_ZERO} THEN 1L WHEN {value} < {_ZERO} THEN -1L"
    return f"(CASE {signs} WHEN {value} = {_ZERO} THEN 0L END)"


def _floor(function: str) -> Template:
    """The engine's own give an integer, which a large double is not."""

    def emit(node: Call, texts: list[str]) -> str:
        (value,) = texts
        if node.facts.type is Type.INTEGER:
            return value
        return f"(CASE WHEN abs({value}) < {_WHOLE_FROM} THEN CAST({function}({value}) AS DOUBLE) ELSE {value} END)"

    return emit


def _round(node: Call, texts: list[str]) -> str:
    """The engine rounds the shortest decimal of a double half away from zero. A double with the fraction one half is its
    own shortest decimal, so that without digits this is the double itself that is rounded."""
    if node.facts.type is Type.INTEGER:
        return texts[0]
    digits = node.arguments[1].value if len(node.arguments) == 2 and isinstance(node.arguments[1], Literal) else 0
    if digits == 0:
        return f"round({texts[0]})"
    step = real(10.0**digits)
    scaled = f"({texts[0]} * {step})"
    return f"(CASE WHEN abs({scaled}) < {real(float('inf'))} THEN round({scaled}) / {step} ELSE {texts[0]} END)"


def _guarded(function: str, condition: str) -> Template:
    """A function of reals where `condition` holds, NULL elsewhere."""

    def emit(node: Call, texts: list[str]) -> str:
        (value,) = _reals(node, texts)
        return f"(CASE WHEN {value} {condition} THEN {function}({value}) END)"

    return emit


def _of_reals(function: str) -> Template:
    return lambda node, texts: f"{function}({', '.join(_reals(node, texts))})"


def _power(node: Call, texts: list[str]) -> str:
    """C's pow of 1 is 1, and of -1 to an infinite power; Java has NaN there."""
    base, exponent = _reals(node, texts)
    ends = f"{exponent} IN ({real(float('inf'))}, {real(-float('inf'))})"
    powers_of_one = f"WHEN {base} = {real(1.0)} AND {exponent} IS NOT NULL THEN {real(1.0)}"
    return f"(CASE {powers_of_one} WHEN {base} = {real(-1.0)} AND {ends} THEN {real(1.0)} ELSE power({base}, {exponent}) END)"


def _clamp(node: Call, texts: list[str]) -> str:
    """NULL and NaN stay NULL: the engine's least and greatest would turn them into a bound."""
    value, low, high = _alike(node, texts)
    missing = f"{value} IS NULL OR isnan({value})" if node.facts.type is Type.REAL else f"{value} IS NULL"
    return f"(CASE WHEN {missing} THEN NULL ELSE least(greatest({value}, {low}), {high}) END)"


def _bucket(node: Call, texts: list[str]) -> str:
    value, low, high = (_as(Type.REAL, a, t) for a, t in zip(node.arguments[:3], texts[:3], strict=True))
    share = f"floor(({value} - {low}) / nullif({high} - {low}, {_ZERO}) * CAST({texts[3]} AS DOUBLE))"
    return (
        f"(CASE WHEN {value} < {low} THEN 0L WHEN isnan({value}) THEN NULL "
        f"WHEN {value} >= {high} THEN {texts[3]} + 1L WHEN {value} IS NOT NULL THEN least({texts[3]}, {share} + 1L) END)"
    )


def _compare(operator: str) -> Template:
    return lambda node, texts: "(" + f" {operator} ".join(_comparable(node, texts)) + ")"


def _case(node: Call, texts: list[str]) -> str:
    values = [_as(node.facts.type, a, t) for a, t in zip(node.arguments[1:-1:2], texts[1:-1:2], strict=True)]
    conditions = [_as(Type.BOOLEAN, a, t) for a, t in zip(node.arguments[:-1:2], texts[:-1:2], strict=True)]
    body = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=True))
    return f"(CASE {body} ELSE {_as(node.facts.type, node.arguments[-1], texts[-1])} END)"


def _in(node: Call, texts: list[str]) -> str:
    value, *items = _comparable(node, texts)
    return f"({value} IN ({', '.join(items)}))"


def _place_in(node: Call, texts: list[str]) -> str:
    value, *items = _comparable(node, texts)
    return f"(nullif(array_position(array({', '.join(items)}), {value}), 0L) - 1L)"


def _nullif(node: Call, texts: list[str]) -> str:
    """The result keeps the type of the first."""
    left, right = _comparable(node, texts)
    return f"(CASE WHEN {left} = {right} THEN NULL ELSE {texts[0]} END)"


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
    return _as(Type.REAL, node.arguments[0], texts[0])


def _read(text: str, shape: str, target: Type) -> str:
    """A text of a shape that Python reads too."""
    return f"(CASE WHEN {text} RLIKE {whole_text(shape)} THEN try_cast(trim({text}) AS {TYPES[target]}) END)"


def _to_boolean(node: Call, texts: list[str]) -> str:
    """No letter beyond ASCII becomes, in lower case, a letter of these words."""
    type_ = node.arguments[0].facts.type
    if type_ is not Type.TEXT:
        return texts[0] if type_ is Type.BOOLEAN else f"({texts[0]} <> 0L)"
    word = _trimmed("BOTH", f"lower({texts[0]})")
    cases = " ".join(
        f"WHEN {word} IN ({', '.join(map(constant, words))}) THEN {constant(value)}"
        for value, words in ((True, TRUE_TEXTS), (False, FALSE_TEXTS))
    )
    return f"(CASE {cases} END)"


# --- texts ----------------------------------------------------------------------------------------------------------

_BLANKS = "".join(c for c in map(chr, range(0x10000)) if trimmed(c) == "" and c)


def _trimmed(side: str, text: str) -> str:
    return f"trim({side} {quoted(_BLANKS)} FROM {text})"


def _trim(side: str) -> Template:
    return lambda node, texts: _trimmed(side, texts[0])


def _cut(text: str) -> str:
    return f"left({text}, {MOST_TEXT})"


def _with_count(function: str) -> Template:
    """A function of a text and of literal positions."""

    def emit(node: Call, texts: list[str]) -> str:
        literals = [a.value for a in node.arguments[1:] if isinstance(a, Literal)]
        return f"{function}({', '.join([texts[0], *map(str, literals)])})"

    return emit


def _split_part(node: Call, texts: list[str]) -> str:
    number = node.arguments[2]
    assert isinstance(number, Literal)
    return f"split_part({texts[0]}, {texts[1]}, {number.value})"


def _count(form: str) -> Template:
    return lambda node, texts: f"CAST({form.format(*texts)} AS BIGINT)"


def _like(node: Call, texts: list[str]) -> str:
    return _matches(texts[0], _pattern(node))


def _ilike(node: Call, texts: list[str]) -> str:
    return _matches(_mapped("lower", texts[0]), lower(_pattern(node)))


def _pattern(node: Call) -> str:
    assert isinstance(node.arguments[1], Literal)
    return str(node.arguments[1].value)


def _matches(text: str, pattern: str) -> str:
    """A LIKE pattern as a regular expression without going back: between two % the first place is as good as any, so it is
    held fast (an atomic group), and time is linear in the text. The engine's own LIKE tries all places."""
    first, *rest = ("".join("." if c == "_" else f"\\x{{{ord(c):x}}}" for c in part) for part in pattern.split("%"))
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    last = f".*{rest[-1]}" if rest else ""
    whole = rf"(?s)\A{first}{middle}{last}\z"
    return f"({text} RLIKE {quoted(whole)})"


@cache
def _case_pairs(word: str) -> tuple[str, str]:
    """Every letter that `word` (lower, upper) changes, and what it becomes."""
    function = {"lower": lower, "upper": upper}[word]
    letters = [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and function(c) != c]
    return "".join(letters), "".join(map(function, letters))


def _mapped(word: str, text: str) -> str:
    """Letter by letter, as our own table has it; the engine's own functions look at neighbours and change lengths."""
    before, after = (f"'{letters}'" for letters in _case_pairs(word))
    return f"(CASE WHEN octet_length({text}) = length({text}) THEN {word}({text}) ELSE translate({text}, {before}, {after}) END)"


def _replace(node: Call, texts: list[str]) -> str:
    return _cut(f"replace({_cut(texts[0])}, {texts[1]}, {texts[2]})")


FUNCTIONS: Mapping[str, Template] = {
    "add": _arithmetic("+", "try_add"), "sub": _arithmetic("-", "try_subtract"), "mul": _arithmetic("*", "try_multiply"),
    "div": _division, "intdiv": _whole_division, "mod": _plain("try_mod"), "neg": _negative, "abs": _absolute, "sign": _sign,
    "floor": _floor("floor"), "ceil": _floor("ceil"), "round": _round, "sqrt": _guarded("sqrt", f">= {_ZERO}"),
    "ln": _guarded("ln", f"> {_ZERO}"), "log10": _guarded("log10", f"> {_ZERO}"), "exp": _of_reals("exp"), "power": _power,
    **{name: _guarded(name, f"BETWEEN {real(-1.7976931348623157e308)} AND {real(1.7976931348623157e308)}")
       for name in ("sin", "cos", "tan")},
    **{name: _guarded(name, f"BETWEEN {real(-1.0)} AND {real(1.0)}") for name in ("asin", "acos")},
    **{name: _of_reals(name) for name in ("atan", "radians", "degrees")},
    "clamp": _clamp, "width_bucket": _bucket, "least": _shared("least"), "greatest": _shared("greatest"),
    "coalesce": _shared("coalesce"), "nullif": _nullif, "case": _case, "eq": _compare("="), "ne": _compare("<>"),
    "lt": _compare("<"), "le": _compare("<="), "gt": _compare(">"), "ge": _compare(">="), "not_distinct": _compare("<=>"),
    "in": _in, "place_in": _place_in, "and": _connected("AND"), "or": _connected("OR"),
    "not": lambda node, texts: f"(NOT {texts[0]})", "is_null": lambda node, texts: f"({texts[0]} IS NULL)",
    "is_true": _is("TRUE"), "is_false": _is("FALSE"),
    "like": _like, "ilike": _ilike, "starts_with": _plain("startswith"), "ends_with": _plain("endswith"),
    "contains": _plain("contains"), "lower": lambda node, texts: _mapped("lower", texts[0]),
    "upper": lambda node, texts: _mapped("upper", texts[0]), "trim": _trim("BOTH"), "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"), "left": _with_count("left"), "right": _with_count("right"), "substr": _with_count("substr"),
    "split_part": _split_part, "concat": lambda node, texts: _cut(f"concat({', '.join(texts)})"),
    "concat_ws": lambda node, texts: _cut(f"concat_ws({', '.join(texts)})"), "replace": _replace,
    "length": _count("length({})"), "strlen": _count("octet_length({})"), "strpos": _count("instr({}, {})"),
    "to_integer": _to_integer, "to_real": _to_real, "to_text": lambda node, texts: f"CAST({texts[0]} AS STRING)",
    "to_boolean": _to_boolean, **temporal.FUNCTIONS,
}  # fmt: skip
