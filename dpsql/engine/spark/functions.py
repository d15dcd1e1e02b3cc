"""Spark's text for each row function: total by construction, and equal to `dpsql.functions.evaluate`.

Sessions run in ANSI mode, in which overflows and wrong casts raise; so integers are computed by try_add and the like, and a
value is cast only under a condition for which the cast succeeds. Functions that cannot be made equal are in `UNSUPPORTED`, with
the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dpsql.engine.dialect import Template
from dpsql.engine.shared_texts import SharedTexts, boolean_of, cut, digits_of, literal_of, plain, replaced
from dpsql.engine.spark import temporal
from dpsql.engine.spark.literals import TYPES, constant, quoted, real, real_to_integer, whole_text
from dpsql.functions.text_values import lower, trimmed, upper
from dpsql.functions.values import NUMBER_TEXT, WHOLE_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal

_REGEX = "its regular expressions are another language than RE2, and may take exponential time"
UNSUPPORTED: Mapping[str, str] = {
    "regexp_matches": _REGEX, "regexp_replace": _REGEX,
    "atan2": "it takes -0.0 for 0.0, which turns an angle by half a circle",
}  # fmt: skip
_TEXTS = SharedTexts(TYPES)
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

_BLANKS = "".join(c for c in map(chr, range(0x10000)) if trimmed(c) == "" and c)


def _trimmed(side: str, text: str) -> str:
    return f"trim({side} {quoted(_BLANKS)} FROM {text})"


def _trim(side: str) -> Template:
    return lambda node, texts: _trimmed(side, texts[0])


def _with_count(function: str) -> Template:
    """Return the template of a function of a text and of literal positions."""

    def emit(node: Call, texts: list[str]) -> str:
        literals = [a.value for a in node.arguments[1:] if isinstance(a, Literal)]
        return f"{function}({', '.join([texts[0], *map(str, literals)])})"

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


@cache
def _case_pairs(word: str) -> tuple[str, str]:
    """Return every letter that `word` (lower, upper) changes, and the letters that they become."""
    function = {"lower": lower, "upper": upper}[word]
    letters = [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and function(c) != c]
    return "".join(letters), "".join(map(function, letters))


def _mapped(word: str, text: str) -> str:
    """Map a text to lower or upper case letter by letter, by our own table; the engine's functions depend on neighbouring letters
    and change lengths."""
    before, after = (f"'{letters}'" for letters in _case_pairs(word))
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
    "rtrim": _trim("TRAILING"), "left": _with_count("left"), "right": _with_count("right"), "substr": _with_count("substr"),
    "split_part": _split_part, "concat": lambda node, texts: cut(f"concat({', '.join(texts)})"),
    "concat_ws": lambda node, texts: cut(f"concat_ws({', '.join(texts)})"), "replace": lambda node, texts: replaced(texts),
    "length": _count("length({})"), "strlen": _count("octet_length({})"), "strpos": _count("instr({}, {})"),
    "to_integer": _to_integer, "to_real": _to_real, "to_text": lambda node, texts: f"CAST({texts[0]} AS STRING)",
    "to_boolean": _to_boolean, **temporal.FUNCTIONS,
}  # fmt: skip
