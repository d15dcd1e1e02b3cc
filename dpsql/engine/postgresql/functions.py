"""PostgreSQL's text for each row function: total by construction, and equal to `dpsql.functions.evaluate`.

Functions for which that is not possible are in `UNSUPPORTED`, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.engine.dialect import Template
from dpsql.engine.postgresql import temporal
from dpsql.engine.postgresql.literals import (
    INFINITY,
    LEAST,
    MOST,
    NAN,
    TYPES,
    binary,
    constant,
    number_to_integer,
    number_to_real,
    quoted,
    real,
    real_to_integer,
)
from dpsql.engine.postgresql.reals import let, product_of, quotient_of, rounded, sum_of
from dpsql.engine.shared_texts import SharedTexts, boolean_of, cut, digits_of, floor, infix, replaced
from dpsql.errors.exceptions import refuse
from dpsql.functions.values import NUMBER_TEXT, WHOLE_TEXT
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Literal

_TEXTS = SharedTexts(TYPES)
BLANKS = "".join(map(chr, [0x20, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000]))
"""The space separators of Unicode (category Zs), which trim removes."""
_OWN_LIBRARY = "the server raises where it overflows, which its C library alone knows exactly"
_REGEX = "its regular expressions are another language than RE2, and may take exponential time"
_CASES = "before PostgreSQL 17 the case of letters beyond ASCII depends on the server's locale"
UNSUPPORTED: Mapping[str, str] = {
    "exp": _OWN_LIBRARY, "power": _OWN_LIBRARY, "tan": _OWN_LIBRARY, "atan2": _OWN_LIBRARY, "radians": _OWN_LIBRARY,
    "degrees": _OWN_LIBRARY, **dict.fromkeys(("sin", "cos", "asin", "acos", "atan"), _OWN_LIBRARY),
    "regexp_matches": _REGEX, "regexp_replace": _REGEX, "lower": _CASES, "upper": _CASES, "ilike": _CASES,
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
    return lambda node, texts: binary(f"{function}({texts[0]}, {quoted(BLANKS)})")


def _count(form: str) -> Template:
    return lambda node, texts: f"CAST({form.format(*texts)} AS bigint)"


def _concat(node: Call, texts: list[str]) -> str:
    return binary(cut(" || ".join(texts)))


def _concat_ws(node: Call, texts: list[str]) -> str:
    return binary(cut(f"concat_ws({', '.join(texts)})"))


def _ends_with(node: Call, texts: list[str]) -> str:
    return let({"x": texts[0], "y": texts[1]}, "(right(x, length(y)) = y)")


_CASED = '"pg_catalog"."pg_c_utf8"'


def _mapped(function: str, text: str) -> str:
    """Return a text in lower or upper case by Unicode's simple mapping, which is DuckDB's except for two letters."""
    moved = {"lower": ("\u0130", "i"), "upper": ("\u00df", "\u1e9e")}[function]
    return binary(f"{function}(translate({text}, {quoted(moved[0])}, {quoted(moved[1])}) COLLATE {_CASED})")


WITH_CASE_MAPPING: Mapping[str, Template] = {
    "lower": lambda node, texts: _mapped("lower", texts[0]), "upper": lambda node, texts: _mapped("upper", texts[0]),
    "ilike": lambda node, texts: f"({_mapped('lower', texts[0])} LIKE {_mapped('lower', texts[1])} ESCAPE '')",
}  # fmt: skip
"""Functions that servers compute from version 17."""

FUNCTIONS: Mapping[str, Template] = {
    **_TEXTS.functions(),
    "add": _arithmetic("+"), "sub": _arithmetic("-"), "mul": _arithmetic("*"),
    "div": lambda node, texts: quotient_of(*_TEXTS.reals(node, texts)), "intdiv": _whole_division("/"),
    "mod": _whole_division("%"), "neg": _of_number("-{}"), "abs": _of_number("abs({})"),
    "sign": lambda node, texts: f"CAST(sign({texts[0]}) AS bigint)", "floor": floor("floor"), "ceil": floor("ceil"),
    "round": _round, "sqrt": _guarded("sqrt", ">="),
    "ln": _guarded("ln", ">"), "log10": _guarded("log", ">"), "clamp": _clamp, "width_bucket": _bucket,
    "not_distinct": _TEXTS.compare("IS NOT DISTINCT FROM"), "place_in": _place_in, "and": infix("AND"), "or": infix("OR"),
    "is_true": lambda node, texts: f"({texts[0]} IS TRUE)",
    "is_false": lambda node, texts: f"({texts[0]} IS FALSE)",
    "like": lambda node, texts: f"({texts[0]} LIKE {texts[1]} ESCAPE '')",
    "starts_with": lambda node, texts: f"starts_with({', '.join(texts)})", "ends_with": _ends_with,
    "contains": lambda node, texts: f"(strpos({', '.join(texts)}) > 0)",
    "trim": _trim("btrim"), "ltrim": _trim("ltrim"), "rtrim": _trim("rtrim"), "left": _text("left({})"),
    "right": _text("right({})"), "substr": _text("substr({})"), "split_part": _text("split_part({})"),
    "concat": _concat, "concat_ws": _concat_ws, "replace": lambda node, texts: binary(replaced(texts)),
    "length": _count("length({})"),
    "strlen": _count("octet_length({})"), "strpos": _count("strpos({}, {})"),
    "to_integer": _to_integer, "to_real": _to_real, "to_text": _to_text, "to_boolean": _to_boolean,
    **temporal.FUNCTIONS,
}  # fmt: skip
