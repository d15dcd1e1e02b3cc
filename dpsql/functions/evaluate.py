"""Row expressions in Python: what each function of `dpsql.functions.numeric` means, value by value.

Used for the images of finite domains (which public keys an expression can take) and, in tests, as the reference that
every engine's emitted SQL is compared with. Values: int, float, str, bool, date, datetime, None for NULL.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import dropwhile
from typing import Any

from dpsql.functions.calendar import bucket, difference, last_day, microseconds, midnight, moved_by_months, truncated
from dpsql.functions.date_formats import written
from dpsql.functions.numeric import MOST_TEXT, REGISTRY
from dpsql.functions.regex import matches, replaced
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, ReleasedValue


def evaluate(expression: Expr, row: Mapping[str, Any]) -> Any:
    """The value of `expression` where columns (and released values) have the values of `row`."""
    if isinstance(expression, (Column, ReleasedValue)):
        return _typed(row[expression.name], expression.facts.type)
    if not isinstance(expression, Call):
        return _typed(expression.value, expression.facts.type)
    name = expression.function
    if name in _LAZY:
        return _LAZY[name](expression, row)
    values = [evaluate(argument, row) for argument in expression.arguments]
    if any(value is None for value in values):
        return None
    try:
        result = (REGISTRY[name].meaning or _STRICT[name])(*values)
    except (OverflowError, ValueError, ZeroDivisionError):
        return None
    return _typed(result, expression.facts.type)


def _typed(value: Any, type_: Type) -> Any:
    """A value as its SQL type holds it; an integer beyond 64 bits is NULL."""
    if value is None or type_ is Type.NULL:
        return None
    if type_ is Type.REAL:
        return float(value)
    if type_ is Type.INTEGER:
        number = int(value)
        return number if -(2**63) <= number < 2**63 else None
    return _to_timestamp(value) if type_ is Type.TIMESTAMP else value


def compare(left: Any, right: Any, test: Callable[[Any, Any], bool]) -> bool:
    """SQL comparison: NaN equals itself and is greater than every number; an integer meets a real as a real."""
    if isinstance(left, (float, Fraction)) or isinstance(right, (float, Fraction)):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return test(math.isnan(left), math.isnan(right))
    elif isinstance(left, datetime) or isinstance(right, datetime):
        left, right = _to_timestamp(left), _to_timestamp(right)
    return test(left, right)


def _logic(stop: bool) -> Callable[[Call, Mapping[str, Any]], Any]:
    def run(expression: Call, row: Mapping[str, Any]) -> Any:
        values = [evaluate(argument, row) for argument in expression.arguments]
        if stop in values:
            return stop
        return None if None in values else not stop

    return run


def _case(expression: Call, row: Mapping[str, Any]) -> Any:
    *branches, default = expression.arguments
    for condition, value in zip(branches[::2], branches[1::2], strict=True):
        if evaluate(condition, row) is True:
            return _typed(evaluate(value, row), expression.facts.type)
    return _typed(evaluate(default, row), expression.facts.type)


def _coalesce(expression: Call, row: Mapping[str, Any]) -> Any:
    for argument in expression.arguments:
        value = evaluate(argument, row)
        if value is not None:
            return _typed(value, expression.facts.type)
    return None


def _extreme(better: Callable[[Any, Any], bool]) -> Callable[[Call, Mapping[str, Any]], Any]:
    def run(expression: Call, row: Mapping[str, Any]) -> Any:
        best: Any = None
        for argument in expression.arguments:
            value = _typed(evaluate(argument, row), expression.facts.type)
            if value is not None and (best is None or compare(value, best, better)):
                best = value
        return best

    return run


def _in(expression: Call, row: Mapping[str, Any]) -> Any:
    value = evaluate(expression.arguments[0], row)
    if value is None:
        return None
    items = [evaluate(item, row) for item in expression.arguments[1:]]
    if any(item is not None and compare(value, item, operator.eq) for item in items):
        return True
    return None if None in items else False


def _nullif(expression: Call, row: Mapping[str, Any]) -> Any:
    left, right = (evaluate(argument, row) for argument in expression.arguments)
    return None if left is not None and right is not None and compare(left, right, operator.eq) else left


def _not_distinct(expression: Call, row: Mapping[str, Any]) -> bool:
    left, right = (evaluate(argument, row) for argument in expression.arguments)
    if left is None or right is None:
        return left is right
    return compare(left, right, operator.eq)


def _concat_ws(expression: Call, row: Mapping[str, Any]) -> str:
    separator, *parts = (evaluate(argument, row) for argument in expression.arguments)
    return str(separator.join(part for part in parts if part is not None)[:MOST_TEXT])


_LAZY: dict[str, Callable[[Call, Mapping[str, Any]], Any]] = {
    "and": _logic(False),
    "or": _logic(True),
    "case": _case,
    "coalesce": _coalesce,
    "least": _extreme(operator.lt),
    "greatest": _extreme(operator.gt),
    "in": _in,
    "nullif": _nullif,
    "not_distinct": _not_distinct,
    "concat_ws": _concat_ws,
    "is_null": lambda e, row: evaluate(e.arguments[0], row) is None,
    "is_true": lambda e, row: evaluate(e.arguments[0], row) is True,
    "is_false": lambda e, row: evaluate(e.arguments[0], row) is False,
}


def _clamp(value: Any, lower: Any, upper: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else max(min(value, upper), lower)


def _power(base: Any, exponent: Any) -> float:
    """C's pow: where Python raises, C has infinity (overflow, division by zero) or NaN (a root of a negative)."""
    base, exponent = float(base), float(exponent)
    odd = exponent.is_integer() and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.nan if base else math.copysign(math.inf, base) if odd else math.inf


def _remainder(left: int, right: int) -> int:
    """With the sign of the dividend, exactly."""
    return abs(left) % abs(right) * (1 if left >= 0 else -1)


def _round(value: Any, digits: int = 0) -> Any:
    """Half away from zero, as SQL rounds; with digits the engine multiplies, rounds and divides in doubles."""
    if isinstance(value, int):
        return value
    scaled = value * 10.0**digits
    if not math.isfinite(scaled):
        return value
    whole = math.floor(abs(scaled))
    return math.copysign(float(whole + (abs(scaled) - whole >= 0.5)), scaled) / 10.0**digits


def _integral(function: Callable[[Any], int]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        return value if isinstance(value, int) or not math.isfinite(value) else float(function(value))

    return run


def _part(part: str, value: Any) -> int:
    week, weekday = value.isocalendar()[1], value.isoweekday()
    by_name = {"quarter": (value.month - 1) // 3 + 1, "week": week, "dow": weekday % 7, "isodow": weekday}
    by_name["doy"] = value.timetuple().tm_yday
    return int(by_name[part] if part in by_name else getattr(value, part))


def _bucket(value: Any, low: Any, high: Any, buckets: int) -> Any:
    value, low, high = float(value), float(low), float(high)
    if math.isnan(value):
        return None
    if value < low:
        return 0
    if value >= high:
        return buckets + 1
    return min(buckets, math.floor((value - low) / (high - low) * buckets) + 1)


def like(text: str, pattern: str) -> bool:
    """LIKE without an escape character: % is any text, _ any character. Linear in each, whatever the pattern."""
    at = here = 0
    star, retry = -1, 0
    while at < len(text):
        if here < len(pattern) and pattern[here] == "%":
            star, retry, here = here, at, here + 1
        elif here < len(pattern) and pattern[here] in ("_", text[at]):
            at, here = at + 1, here + 1
        elif star >= 0:
            retry += 1
            at, here = retry, star + 1
        else:
            return False
    return not pattern[here:].strip("%")


def _lower(text: str) -> str:
    """Character by character (the engine's way): no text changes its length, no letter looks at its neighbours."""
    return "".join("i" if c == "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}" else c.lower() for c in text)


def _upper(text: str) -> str:
    def one(character: str) -> str:
        if character == "\N{LATIN SMALL LETTER SHARP S}":
            return "\N{LATIN CAPITAL LETTER SHARP S}"
        known = [way for way in (character.upper(), character.title()) if len(way) == 1]
        return known[0] if known else character

    return "".join(map(one, text))


def _blank(character: str) -> bool:
    return unicodedata.category(character) == "Zs"


def _left_trim(text: str) -> str:
    return "".join(dropwhile(_blank, text))


def _right_trim(text: str) -> str:
    return _left_trim(text[::-1])[::-1]


def _replace(text: str, old: str, new: str) -> str:
    text = text[:MOST_TEXT]
    return text.replace(old, new)[:MOST_TEXT] if old else text


def _split_part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator)
    return parts[number - 1] if number <= len(parts) else ""


WHOLE_TEXT = r" *[+-]?[0-9]{1,19} *"
NUMBER_TEXT = r" *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,4})? *"
TIME_TEXT = (
    r" *([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])-[0-9]{2}-[0-9]{2}"
    r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?)? *"
)
"""Texts that casts read, as regular expressions that Python and the engines read alike; every other text is NULL.

Engines read more than that (1_000, 0x10, 1e3 as an integer, infinity, epoch), and not the same.
"""
TRUE_TEXTS = ("true", "t", "yes", "y", "1")
FALSE_TEXTS = ("false", "f", "no", "n", "0")


def _to_integer(value: Any) -> int | None:
    if isinstance(value, str):
        return int(value) if re.fullmatch(WHOLE_TEXT, value) else None
    if isinstance(value, float):
        return None if not math.isfinite(value) else round(value)
    return int(value)


def _to_real(value: Any) -> float | None:
    if isinstance(value, str):
        return float(value) if re.fullmatch(NUMBER_TEXT, value) else None
    return float(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _to_boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        word = _right_trim(_left_trim(_lower(value)))
        return word in TRUE_TEXTS if word in TRUE_TEXTS + FALSE_TEXTS else None
    return bool(value)


def _to_date(value: Any) -> Any:
    value = _to_timestamp(value) if isinstance(value, str) else value
    return value.date() if isinstance(value, datetime) else value


def _to_timestamp(value: Any) -> Any:
    if isinstance(value, str):
        return datetime.fromisoformat(value.strip()) if re.fullmatch(TIME_TEXT, value) else None
    return midnight(value)


_STRICT: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": lambda a, b: float(a) / float(b),
    "intdiv": lambda a, b: int(Fraction(a, b)), "mod": _remainder, "neg": operator.neg, "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0), "floor": _integral(math.floor), "ceil": _integral(math.ceil),
    "round": _round, "power": _power, "clamp": _clamp, "eq": lambda a, b: compare(a, b, operator.eq),
    "ne": lambda a, b: compare(a, b, operator.ne), "lt": lambda a, b: compare(a, b, operator.lt),
    "le": lambda a, b: compare(a, b, operator.le), "gt": lambda a, b: compare(a, b, operator.gt),
    "ge": lambda a, b: compare(a, b, operator.ge), "not": operator.not_, "like": like,
    "ilike": lambda x, p: like(_lower(x), _lower(p)), "starts_with": lambda a, b: a.startswith(b),
    "ends_with": lambda a, b: a.endswith(b), "contains": lambda a, b: b in a, "lower": _lower, "upper": _upper,
    "trim": lambda x: _right_trim(_left_trim(x)), "ltrim": _left_trim, "rtrim": _right_trim,
    "left": lambda x, n: x[:n], "right": lambda x, n: x[len(x) - n :] if n < len(x) else x,
    "substr": lambda x, s, n=None: x[s - 1 :] if n is None else x[s - 1 : s - 1 + n],
    "concat": lambda *p: "".join(p)[:MOST_TEXT], "replace": _replace, "length": len, "date_trunc": truncated,
    "date_part": _part, "date_diff": difference, "add_days": lambda d, n: d + timedelta(days=n),
    "add_months": moved_by_months, "add_seconds": lambda t, n: t + timedelta(seconds=n), "width_bucket": _bucket,
    "to_integer": _to_integer, "to_real": _to_real, "to_text": _to_text, "to_boolean": _to_boolean,
    "to_date": _to_date, "to_timestamp": _to_timestamp, "epoch": lambda t: float(microseconds(t)) / 1e6,
    "time_bucket": bucket, "last_day": last_day, "strftime": written, "regexp_matches": matches,
    "regexp_replace": lambda x, p, r, every: replaced(x[:MOST_TEXT], p, r, every)[:MOST_TEXT],
    "split_part": _split_part, "strlen": lambda x: len(x.encode()), "strpos": lambda x, y: x.find(y) + 1,
}  # fmt: skip
MEANINGS = frozenset({*_LAZY, *_STRICT, *(name for name, entry in REGISTRY.items() if entry.meaning is not None)})
"""Functions that have a meaning here or in their entry."""
