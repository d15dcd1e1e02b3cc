"""Public keys of a GROUP BY expression: the finite set of values that it can take, whatever the data (privacy.md 5).

A set that is too wide gives empty groups, and one that is too narrow loses rows; neither costs privacy, because rows
outside the set belong to no group. NULL is in the set if the expression may be NULL according to the policy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import chain, product
from math import inf
from typing import Any

from dpsql.functions.dates import unit_of
from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import call
from dpsql.functions.values import MONTHS_OF, TIMES_OF, next_start, truncated
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue, columns_read, literal, results_read
from dpsql.storage.records import replace

MOST_VALUES = 100_000
MOST_LABELLED = 4_000
"""Largest range whose values are listed together with the label of values outside. A wider range is extended to the label."""
MOST_STEPS = 20_000
"""Largest number of calls evaluated for one image: about 30 ms. Beyond, the keys are the range of the result, or private."""
_DAYS_UP = ("year", "month", "day")

Values = tuple[Any, ...]


def as_key(column: Column) -> Expr:
    """Return the expression by which a column is grouped: itself, or with values outside its domain replaced by their label."""
    facts = column.facts
    if facts.outside is None:
        return column
    truth = Facts(Type.BOOLEAN)
    if facts.values is not None:
        present = [value for value in facts.values if value is not None]
        inside: tuple[Expr, ...] = (Call("in", (column, *map(literal, present)), truth),) if present else ()
    else:
        ends = (int(end) if facts.type is Type.INTEGER else end for end in (facts.lower, facts.upper))
        compared = (Call(word, (column, literal(end)), truth) for word, end in zip(("ge", "le"), ends, strict=True))
        inside = (Call("and", tuple(compared), truth),)
    missing = Call("is_null", (column,), Facts(Type.BOOLEAN, nullable=False))
    condition = Call("or", (missing, *inside), truth) if inside else missing
    return Call("case", (condition, column, literal(facts.outside)), _labelled(facts))


def labelled_column(expression: Expr) -> Column | None:
    """Return the column of which `expression` is the key with a label (`as_key`); None for any other expression."""
    value = expression.arguments[1] if isinstance(expression, Call) and expression.function == "case" else None
    if not isinstance(value, Column) or value.facts.outside is None or not isinstance(expression, Call):
        return None
    shape = as_key(value)
    return value if isinstance(shape, Call) and shape.arguments == expression.arguments else None


def _labelled(facts: Facts) -> Facts:
    """Return the facts of a column as a key, with its label as an additional value."""
    lower, upper = facts.lower, facts.upper
    label = Fraction(facts.outside) if facts.type is Type.INTEGER else facts.outside
    if lower is not None and upper is not None:
        lower, upper = min(lower, label), max(upper, label)
    size, values = facts.size(), facts.values
    if values is not None:
        values = (*values, facts.outside)
    elif size is not None and size <= MOST_LABELLED:
        values = tuple(sorted((*(_range(facts) or ()), facts.outside)))
    return Facts(facts.type, lower, upper, values, facts.nullable)


def _leaves(expression: Expr) -> Expr:
    """Return `expression` with each column's key expression (`as_key`) replaced by a plain column that may have the label."""
    if not isinstance(expression, Call):
        return expression
    column = labelled_column(expression)
    if column is not None:
        return Column(column.name, expression.facts)
    return replace(expression, arguments=tuple(map(_leaves, expression.arguments)))


def domain_of(expression: Expr) -> Values | None:
    """Return the values in key order; None if the set is not finite (or has more than `MOST_VALUES`), for private keys.

    NULL is among them if the expression may be NULL: last, unless a column's declared domain lists it elsewhere. NaN is never
    among them. Reals are doubles.
    """
    return _of_call(expression) if isinstance(expression, Call) else _of_expression(expression)


@lru_cache(maxsize=32)
def _of_call(expression: Call) -> Values | None:
    """Return the domain of a call. It is cached, since a dashboard groups by the same few expressions all day."""
    return _of_expression(_leaves(expression))


def _of_expression(expression: Expr) -> Values | None:
    values = _domain(expression)
    if values is None:
        return None
    if expression.facts.type is Type.REAL:  # the engine groups both zeros as 0.0
        values = tuple(value + 0.0 if isinstance(value, float) else value for value in values)
    present = [value for value in dict.fromkeys(values) if value is not None]
    if expression.facts.type is Type.REAL:
        present = [value for value in present if not (isinstance(value, float) and math.isnan(value))]
    if not isinstance(expression, Column):
        present.sort()
    elif None in (expression.facts.values or ()):
        return tuple(dict.fromkeys(values))
    return (*present, None) if None in values else tuple(present)


def _domain(expression: Expr) -> Values | None:
    facts = expression.facts
    if isinstance(expression, Literal):
        return (evaluate(expression, {}),)
    if isinstance(expression, (Column, ReleasedValue)):
        return _with_null(_range(facts), facts)
    if facts.type is Type.BOOLEAN:
        return _with_null((False, True), facts)
    image = _image(expression)
    return _with_null(_of_function(expression), facts) if image is None else image


def _of_function(expression: Call) -> Values | None:
    """Return the values of a call over columns some of which have no list, without NULL, which its facts decide."""
    facts = expression.facts
    if expression.function in ("case", "coalesce"):
        return _one_of(expression)
    if expression.function == "date_trunc" and isinstance(unit := expression.arguments[0], Literal):
        return starts(facts, unit.value)
    if expression.function in ("time_bucket", "last_day", "strftime"):
        return _of_moments(expression)
    if expression.function in ("floor", "ceil") and facts.type is Type.REAL and facts.bounded:
        whole = Facts(Type.INTEGER, facts.lower, facts.upper)
        return tuple(map(float, _range(whole) or ())) or None
    return _over_arguments(expression) or _range(facts)


def _range(facts: Facts) -> Values | None:
    """Return the declared values, or all integers or dates between the bounds."""
    size = facts.size()
    if size is None or size > MOST_VALUES:
        return None
    if facts.values is None and facts.type is Type.DATE:
        return tuple(map(date.fromordinal, range(facts.lower.toordinal(), facts.upper.toordinal() + 1)))
    values = facts.domain()
    if values is None or facts.type is not Type.REAL:
        return values
    return tuple(None if value is None else float(value) for value in values)


def _few(facts: Facts) -> Values | None:
    """Return the declared values or range, with NULL if it may occur, if they are few enough to be evaluated; else None."""
    size = facts.size()
    return _with_null(_range(facts), facts) if size is not None and size <= MOST_STEPS else None


def _with_null(values: Values | None, facts: Facts) -> Values | None:
    return (*values, None) if values is not None and facts.nullable and None not in values else values


def _image(expression: Call) -> Values | None:
    """Return the exact image of an expression that reads only columns with finite domains; None for any other."""
    if results_read(expression):
        return None
    columns = {column.name: column for column in columns_read(expression)}
    domains = [_few(column.facts) for column in columns.values()]
    return _evaluated(expression, tuple(columns), domains)


def _evaluated(expression: Call, names: tuple[str, ...], domains: list[Values | None]) -> Values | None:
    """Return the values of `expression` over all combinations; None if a domain is unknown or there are too many combinations."""
    finite = [domain for domain in domains if domain is not None]
    if len(finite) < len(domains) or math.prod(map(len, finite)) * calls(expression) > MOST_STEPS:
        return None
    rows: Iterable[Mapping[str, Any]] = (dict(zip(names, values, strict=True)) for values in product(*finite))
    return tuple(dict.fromkeys(evaluate(expression, row) for row in rows))


def _one_of(expression: Call) -> Values | None:
    """Return the values of CASE or COALESCE: the union of the values of its results, in their common type."""
    parts = expression.arguments
    results = (*parts[1:-1:2], parts[-1]) if expression.function == "case" else parts
    domains = [_domain(result) for result in results]
    finite = [domain for domain in domains if domain is not None]
    if len(finite) < len(domains) or sum(map(len, finite)) > MOST_VALUES:
        return None
    union = Column("x", expression.facts)
    results_of_call = dict.fromkeys(evaluate(union, {"x": value}) for value in chain.from_iterable(finite))
    return tuple(value for value in results_of_call if value is not None)


def starts(facts: Facts, unit: str) -> Values | None:
    """Return the starts of a unit of time between two bounds, in order; None without bounds or if there are too many."""
    if not facts.bounded:
        return None
    step = TIMES_OF.get(unit, timedelta(days=28 * MONTHS_OF.get(unit, 1)))
    if (facts.upper - facts.lower) / step >= MOST_VALUES:
        return None
    starts, last = [truncated(unit, facts.lower)], truncated(unit, facts.upper)
    if unit in TIMES_OF:
        return tuple(starts[0] + index * step for index in range((last - starts[0]) // step + 1))
    while starts[-1] < last:
        starts.append(next_start(unit, starts[-1]))
    return tuple(starts)


def _of_moments(expression: Call) -> Values | None:
    """Return buckets, last days or texts of a bounded moment, evaluated at each start of the finest unit on which they depend."""
    moment, facts = expression.arguments[0], expression.arguments[0].facts
    inner = _domain(moment) if isinstance(moment, Call) else None
    if inner is None and expression.function == "time_bucket":
        return _buckets(expression)
    form = expression.arguments[1] if expression.function == "strftime" else None
    unit = (unit_of(form.value) or "second") if isinstance(form, Literal) else "month"
    inner = inner or starts(facts, unit if facts.type is Type.TIMESTAMP or unit in _DAYS_UP else "day")
    if inner is None or len(inner) > MOST_STEPS:
        return None
    shape = Call(expression.function, (Column("x", Facts(facts.type)), *expression.arguments[1:]), expression.facts)
    return tuple(dict.fromkeys(evaluate(shape, {"x": value}) for value in inner))


def _buckets(expression: Call) -> Values | None:
    facts, width = expression.facts, expression.arguments[1]
    assert isinstance(width, Literal)
    step = timedelta(seconds=width.value)
    if not facts.bounded or (facts.upper - facts.lower) / step >= MOST_VALUES:
        return None
    return tuple(facts.lower + index * step for index in range((facts.upper - facts.lower) // step + 1))


def _over_arguments(expression: Call) -> Values | None:
    """Return the image over the domains of the arguments, which are treated as independent of each other."""
    arguments = expression.arguments
    names = tuple(f"x{number}" for number in range(len(arguments)))
    columns = (Column(name, Facts(argument.facts.type)) for name, argument in zip(names, arguments, strict=True))
    shape = Call(expression.function, tuple(columns), expression.facts)
    domains = [_few(a.facts) if isinstance(a, Column) else _with_null(_domain(a), a.facts) for a in arguments]
    return _evaluated(shape, names, domains)


def calls(expression: Expr) -> int:
    """Return the number of calls in an expression, each of which is evaluated for each row."""
    return 1 + sum(map(calls, expression.arguments)) if isinstance(expression, Call) else 0


# --- the values that an expression can take, if policy and text leave few ---------------------------------------------
# MODE, and MIN of a text, choose among them.
#
# A list follows from policy and text alone. A value that is not on it, and NULL, is not counted.

MOST_LISTED = 1_000
"""Largest number of values of a list: the engine compares each row's value with all of them."""
MOST_WHOLE = 1 << 17
"""Largest number of integers or days between two bounds, which need no list."""

_INFINITE = (inf, -inf)


def is_whole_range(value: Expr) -> bool:
    """Return whether every integer, or day, between the bounds counts as a value, because the expression has no list."""
    facts = value.facts
    if facts.type not in (Type.INTEGER, Type.DATE) or not facts.bounded or facts.values is not None:
        return False
    size = facts.size()
    if size is None or size > MOST_WHOLE:
        return False
    return not isinstance(value, Call) or size > MOST_LISTED or listed(value) is None


def listed(value: Expr) -> tuple[Any, ...] | None:
    """Return the values in SQL's order, texts by their bytes; None if unknown, or if there are none or over `MOST_LISTED`."""
    size = value.facts.size()
    if isinstance(value, Literal) or (value.facts.values is None and size is not None and size > MOST_WHOLE):
        return None
    values = domain_of(value)
    if values is None:
        return None
    present = sorted(Fraction(e) if isinstance(e, float) else e for e in values if e is not None and e not in _INFINITE)
    return tuple(present) if 0 < len(present) <= MOST_LISTED else None


def place_of(value: Expr, values: tuple[Any, ...]) -> Call:
    """Return the expression of the number of a row's value in the list, which is NULL for a value that is not on it."""
    return call("place_in", value, *(literal(element) for element in values))
