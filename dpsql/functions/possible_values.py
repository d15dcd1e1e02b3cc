"""Evaluation of expressions over sets of possible values instead of values (abstract interpretation).

Each result contains every value that the expression can take on some row, and maybe more. So a condition whose result
does not contain TRUE is true for no row. Nothing here reads data or the policy's bounds.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any

from dpsql.functions.calendar import around_month_ends, truncated
from dpsql.functions.date_formats import unit_of
from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import REGISTRY
from dpsql.functions.values import compare
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal

MOST_LISTED = 64


@dataclass(frozen=True)
class Possible:
    """A set of values: NULL if `null`, and those listed in `values` or, if that is None, all between two ends, both included.

    An end that is None is unbounded; a set of reals without an upper end includes NaN. `excluded`: values not in the set.
    """

    values: frozenset[Any] | None = None
    lower: Any = None
    upper: Any = None
    null: bool = True
    excluded: frozenset[Any] = frozenset()

    @property
    def never(self) -> bool:
        """Return whether the set has no value except NULL."""
        return self.values is not None and not self.values

    @property
    def ends(self) -> tuple[Any, Any]:
        """Return the least and the greatest value (None: not known)."""
        if self.values is None:
            return self.lower, self.upper
        if any(isinstance(value, float) and math.isnan(value) for value in self.values):
            return None, None
        return min(self.values), max(self.values)

    @property
    def listed(self) -> tuple[Any, ...] | None:
        """Return all values, including NULL, if they are few; else None."""
        if self.values is None or len(self.values) >= MOST_LISTED:
            return None
        return (*self.values, None) if self.null else tuple(self.values)

    def holds(self, value: Any) -> bool:
        """Return whether `value` is in the set."""
        if value is None:
            return self.null
        if self.values is not None:
            return value in self.values
        low, high = self.lower, self.upper
        inside = low is None or compare(low, value, operator.le)
        return inside and (high is None or compare(value, high, operator.le)) and value not in self.excluded


ANYTHING = Possible()
EITHER = frozenset((True, False))


def single(value: Any) -> Possible:
    """Return the set of a single value."""
    return Possible(frozenset() if value is None else frozenset((value,)), null=value is None)


def possible(expression: Expr, columns: Mapping[str, Possible]) -> Possible:
    """Return the values that `expression` may have, given those of `columns`; other columns may have any value."""
    if isinstance(expression, Column):
        return columns.get(expression.name) or _anything(expression)
    if isinstance(expression, Literal):
        return single(evaluate(expression, {}))
    if not isinstance(expression, Call):
        return ANYTHING
    parts = [possible(argument, columns) for argument in expression.arguments]
    special = _SPECIAL.get(expression.function)
    if special is not None:
        return special(expression, parts)
    if any(part.never for part in parts) and expression.function not in _MEETS_NULL:
        return single(None)
    try:
        image = _written(expression, parts) if expression.function == "strftime" else None
        return image or _image(expression, parts) or _monotone(expression, parts) or _anything(expression, parts)
    except (OverflowError, ValueError):  # beyond the calendar
        return _anything(expression, parts)


def _anything(expression: Expr, parts: Iterable[Possible] = ()) -> Possible:
    strict = isinstance(expression, Call) and REGISTRY[expression.function].strict
    null = any(part.null for part in parts) if strict else True
    return Possible(EITHER, null=null) if expression.facts.type is Type.BOOLEAN else Possible(null=null)


def _written(expression: Call, parts: list[Possible]) -> Possible | None:
    """Return the text of a date or timestamp, if all its possible values lie in the same finest unit that the format shows."""
    low, high = parts[0].ends
    form = expression.arguments[1]
    if low is None or high is None or not isinstance(form, Literal):
        return None
    unit = unit_of(form.value) or "second"
    if not isinstance(low, datetime) and unit in ("hour", "minute", "second"):
        unit = "day"
    if truncated(unit, low) != truncated(unit, high):
        return None
    return Possible(frozenset((_applied(expression, [low, form.value]),)), null=parts[0].null)


def _image(expression: Call, parts: list[Possible]) -> Possible | None:
    """Return the values of a call over all combinations of its arguments' values, if these are few; else None."""
    lists = [part.listed for part in parts]
    short_lists = [values for values in lists if values is not None]
    if len(short_lists) < len(lists) or math.prod(map(len, short_lists)) > MOST_LISTED:
        return None
    values_of_call = {_applied(expression, values) for values in product(*short_lists)}
    return Possible(frozenset(values_of_call - {None}), null=None in values_of_call)


def _applied(expression: Call, values: Iterable[Any]) -> Any:
    """Return the value of the function of `expression` for `values` in place of its arguments."""
    literals = (
        argument if isinstance(argument, Literal) else Literal(value, Facts(argument.facts.type))
        for value, argument in zip(values, expression.arguments, strict=True)
    )
    return evaluate(replace(expression, arguments=tuple(literals)), {})


# --- monotone functions -----------------------------------------------------------------------------------------------

_MEETS_NULL = {"least", "greatest", "concat_ws"}
_SORTED = re.compile(r"[^%]*%Y[^%]*(%m[^%]*(%d[^%]*(%H[^%]*(%M[^%]*(%S[^%]*)?)?)?)?)?")
"""Formats whose texts sort in the order of time: large units first, each with all its digits."""
_WITHIN = {
    "quarter": "year", "month": "year", "doy": "year", "day": "month", "isodow": "week", "hour": "day",
    "minute": "hour", "second": "minute",
}  # fmt: skip


def _monotone(expression: Call, parts: list[Possible]) -> Possible | None:
    """Return the image of an interval under a function that is monotone in one argument, with the others fixed; else None."""
    open_parts = [
        index for index, part in enumerate(parts) if part.values is None or len(part.values) != 1 or part.null
    ]
    if len(open_parts) != 1:
        return None
    varying = open_parts[0]
    low, high = parts[varying].ends
    fixed = [next(iter(part.values or ()), None) for part in parts]
    rising = _rising(expression, varying, fixed, low, high)
    if rising is None or (expression.arguments[varying].facts.type is Type.TEXT):
        return None

    def image(end: Any) -> Any:
        return None if end is None else _applied(expression, [*fixed[:varying], end, *fixed[varying + 1 :]])

    ends = [image(low), image(high)]
    missing = [end for end, bound in zip(ends, (low, high), strict=True) if end is None and bound is not None]
    real = expression.facts.type is Type.REAL and expression.function in ("add", "sub", "mul", "div", "neg")
    unsure = None in (low, high) and not REGISTRY[expression.function].total and not real
    lower, upper = ends if rising else reversed(ends)
    if expression.function == "add_months":
        lower, upper = around_month_ends(lower, upper)
    if expression.facts.type is Type.REAL and high is None:
        upper = None  # NaN, which is above all numbers, stays NaN
    if any(isinstance(end, float) and math.isnan(end) for end in (lower, upper)):
        return None
    return Possible(None, lower, upper, parts[varying].null or bool(missing) or unsure)


def _rising(expression: Call, index: int, fixed: list[Any], low: Any, high: Any) -> bool | None:
    """Return whether the function rises (True) or falls (False) with argument number `index`; None if neither is known."""
    name = expression.function
    if REGISTRY[name].rising and (name == "add" or isinstance(expression.arguments[index], (Column, Call))):
        first = 1 if name == "date_trunc" else 0
        return True if name == "add" or index == first else None
    if name == "strftime" and index == 0 and _SORTED.fullmatch(fixed[1]):
        return True
    if name == "neg":
        return False
    if name == "sub":
        return index == 0
    if name == "mul" and fixed[1 - index]:
        return bool(fixed[1 - index] > 0)
    if name in ("div", "intdiv") and index == 0 and fixed[1]:
        return bool(fixed[1] > 0)
    if name == "date_part" and isinstance(part := expression.arguments[0], Literal):
        around = _WITHIN.get(part.value)
        same = around and None not in (low, high) and truncated(around, low) == truncated(around, high)
        return True if part.value == "year" or same else None
    return None


def follows_order(expression: Expr) -> Column | None:
    """Return the column in which `expression` is monotone, if everything else in it is a literal; None if that is not known."""
    if not isinstance(expression, Call):
        return expression if isinstance(expression, Column) and expression.facts.type is not Type.TEXT else None
    open_parts = [index for index, part in enumerate(expression.arguments) if not isinstance(part, Literal)]
    if len(open_parts) != 1:
        return None
    fixed = [evaluate(part, {}) if isinstance(part, Literal) else None for part in expression.arguments]
    rising = _rising(expression, open_parts[0], fixed, None, None)
    return None if rising is None else follows_order(expression.arguments[open_parts[0]])


# --- logic and comparisons --------------------------------------------------------------------------------------------

Special = Callable[[Call, list[Possible]], Possible]


def _and(expression: Call, parts: list[Possible]) -> Possible:
    true = all(part.holds(True) for part in parts)
    false = any(part.holds(False) for part in parts)
    return _truth(true, false, any(part.null for part in parts))


def _or(expression: Call, parts: list[Possible]) -> Possible:
    true = any(part.holds(True) for part in parts)
    false = all(part.holds(False) for part in parts)
    return _truth(true, false, any(part.null for part in parts) and all(p.holds(False) or p.null for p in parts))


def _not(expression: Call, parts: list[Possible]) -> Possible:
    return _truth(parts[0].holds(False), parts[0].holds(True), parts[0].null)


def _truth(true: bool, false: bool, null: bool) -> Possible:
    return Possible(frozenset([True] * true + [False] * false), null=null)


def _is_null(expression: Call, parts: list[Possible]) -> Possible:
    return _truth(parts[0].null, not parts[0].never, False)


def _is(truth: bool) -> Special:
    def run(expression: Call, parts: list[Possible]) -> Possible:
        return _truth(parts[0].holds(truth), parts[0].holds(not truth) or parts[0].null, False)

    return run


def _compared(word: str) -> Special:
    def run(expression: Call, parts: list[Possible]) -> Possible:
        a, b = parts
        if a.never or b.never:
            return single(None)
        true, false = _outcomes(word, a, b)
        return _truth(true, false, a.null or b.null)

    return run


def _outcomes(word: str, a: Possible, b: Possible) -> tuple[bool, bool]:
    """Return whether a comparison of two values that are not NULL can be true, and whether it can be false."""
    if word in ("ne", "ge", "gt"):
        return _outcomes({"ne": "eq", "ge": "lt", "gt": "le"}[word], a, b)[::-1]
    (low_a, high_a), (low_b, high_b) = a.ends, b.ends
    if word in ("lt", "le"):
        test, other = (operator.lt, operator.ge) if word == "lt" else (operator.le, operator.gt)
        return _may(low_a, high_b, test), _may(high_a, low_b, other)
    meet = _may(low_a, high_b, operator.le) and _may(high_a, low_b, operator.ge)
    for listed, compared in ((a, b), (b, a)):
        if meet and listed.values is not None:
            meet = any(not _apart(value, compared) for value in listed.values)
    same = all(part.values is not None and len(part.values) == 1 for part in (a, b))
    return meet, not (same and meet)


def _apart(value: Any, other: Possible) -> bool:
    """Return whether `value` is known to equal no value in `other`."""
    if other.values is not None:
        return not any(compare(value, listed, operator.eq) for listed in other.values)
    return value in other.excluded


def _may(left: Any, right: Any, test: Callable[[Any, Any], bool]) -> bool:
    return left is None or right is None or compare(left, right, test)


def _in(expression: Call, parts: list[Possible]) -> Possible:
    value, *items = parts
    if value.never:
        return single(None)
    outcomes = [_outcomes("eq", value, item) for item in items if not item.never]
    true, false = any(t for t, _ in outcomes), all(f for _, f in outcomes)
    missing = value.null or (false and any(item.null for item in items))
    return _truth(true, false and not any(item.never for item in items), missing)


def _not_distinct(expression: Call, parts: list[Possible]) -> Possible:
    a, b = parts
    true, false = (False, False) if a.never or b.never else _outcomes("eq", a, b)
    one_missing = (a.null and not b.never) or (b.null and not a.never)
    return _truth(true or (a.null and b.null), false or one_missing, False)


def _case(expression: Call, parts: list[Possible]) -> Possible:
    results = []
    for condition, value in zip(parts[:-1:2], parts[1::2], strict=True):
        if condition.holds(True):
            results.append(value)
        if not condition.holds(False) and not condition.null:
            return _one_of(expression, results)
    return _one_of(expression, [*results, parts[-1]])


def _coalesce(expression: Call, parts: list[Possible]) -> Possible:
    results = []
    for part in parts:
        results.append(replace(part, null=False))
        if not part.null:
            return _one_of(expression, results)
    return replace(_one_of(expression, results), null=True)


def _one_of(expression: Call, parts: list[Possible]) -> Possible:
    """Return the union of several sets of values, converted to their common type."""
    null = any(part.null for part in parts)
    present = [part for part in parts if not part.never]
    shared = Column("x", expression.facts)
    if all(part.values is not None for part in present):
        values = {evaluate(shared, {"x": value}) for part in present for value in part.values or ()}
        return Possible(frozenset(values - {None}), null=null or None in values)
    if len(present) == 1:
        return replace(present[0], null=null)
    ends = [part.ends for part in present]
    lower = None if any(low is None for low, _ in ends) else min(low for low, _ in ends)
    upper = None if any(high is None for _, high in ends) else max(high for _, high in ends)
    return Possible(None, lower, upper, null)


_SPECIAL: dict[str, Special] = {
    "and": _and, "or": _or, "not": _not, "is_null": _is_null, "is_true": _is(True), "is_false": _is(False),
    "in": _in, "not_distinct": _not_distinct, "case": _case, "coalesce": _coalesce,
    **{word: _compared(word) for word in ("eq", "ne", "lt", "le", "gt", "ge")},
    "nullif": lambda expression, parts: replace(parts[0], null=True),
}  # fmt: skip
