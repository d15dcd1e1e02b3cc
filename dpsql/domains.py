"""Public keys of a GROUP BY expression: the finite set of values it can take, whatever the data (privacy.md 5).

A set that is too wide costs empty groups, one that is too narrow loses rows; neither costs privacy, because rows
outside the set belong to no group.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from dpsql.evaluate import evaluate
from dpsql.plan import Call, Column, Expr, Literal
from dpsql.ranges import Facts, Type

MOST_VALUES = 100_000
_WHOLE = {"floor", "ceil"}


def domain_of(expression: Expr) -> tuple[Any, ...] | None:
    """Values in key order, None when the set is not finite (or has more than `MOST_VALUES`): private keys then."""
    values = _domain(expression)
    if values is None:
        return None
    lists_null = isinstance(expression, Column) and None in values
    known = list(dict.fromkeys(value for value in values if value is not None))
    if not isinstance(expression, Column) or expression.facts.values is None:
        known.sort()
    return (*known, None) if lists_null else tuple(known)


def _domain(expression: Expr) -> tuple[Any, ...] | None:
    facts = expression.facts
    if isinstance(expression, Literal):
        return (expression.value,)
    if isinstance(expression, Column):
        return _column(facts)
    if facts.type is Type.BOOLEAN:
        return (False, True)
    image = _image(expression)
    if image is not None:
        return image
    if expression.function in ("case", "coalesce"):
        parts = expression.arguments
        results = (*parts[1:-1:2], parts[-1]) if expression.function == "case" else parts
        domains = [_domain(result) for result in results]
        if any(domain is None for domain in domains):
            return None
        merged = tuple(dict.fromkeys(value for domain in domains for value in domain or ()))
        return merged if len(merged) <= MOST_VALUES else None
    if expression.function in _WHOLE and facts.bounded and facts.upper - facts.lower < MOST_VALUES:
        return tuple(float(number) for number in range(math.floor(facts.lower), math.ceil(facts.upper) + 1))
    inside = [_domain(argument) for argument in expression.arguments]
    if all(domain is not None for domain in inside) and math.prod(len(d or ()) for d in inside) <= MOST_VALUES:
        return _over_arguments(expression, [domain or () for domain in inside])
    return _column(facts)


def _column(facts: Facts) -> tuple[Any, ...] | None:
    size = facts.size()
    return facts.domain() if size is not None and size <= MOST_VALUES else None


def _image(expression: Call) -> tuple[Any, ...] | None:
    """The exact image when the expression reads columns with finite domains only."""
    columns = {column.name: column for column in _columns(expression)}
    domains = [_column(column.facts) for column in columns.values()]
    if not columns or any(domain is None for domain in domains):
        return None
    if math.prod(len(domain or ()) for domain in domains) > MOST_VALUES:
        return None
    rows = (dict(zip(columns, values, strict=True)) for values in product(*(domain or () for domain in domains)))
    return tuple(dict.fromkeys(evaluate(expression, row) for row in rows))


def _over_arguments(expression: Call, domains: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    names = [f"x{number}" for number in range(len(domains))]
    plain = [Facts(argument.facts.type) for argument in expression.arguments]
    columns = tuple(
        argument if isinstance(argument, Literal) else Column(name, facts)
        for name, facts, argument in zip(names, plain, expression.arguments, strict=True)
    )
    shape = Call(expression.function, columns, expression.facts)
    rows = (dict(zip(names, values, strict=True)) for values in product(*domains))
    return tuple(dict.fromkeys(evaluate(shape, row) for row in rows))


def _columns(expression: Expr) -> list[Column]:
    if isinstance(expression, Column):
        return [expression]
    if isinstance(expression, Call):
        return [column for argument in expression.arguments for column in _columns(argument)]
    return []
