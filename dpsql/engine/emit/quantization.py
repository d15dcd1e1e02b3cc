"""SQL text of the integer that a SUM term adds for a row, and the columns of a prepared copy that store such integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache

from dpsql.engine.dialect import Dialect
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Column, Expr, Filter, Relation, Scan, SemiJoin, Term, TermKind, facts_of
from dpsql.policy import Policy
from dpsql.policy.types import PolicyColumn
from dpsql.pricing.sum_terms import summed


@lru_cache(maxsize=1024)
def kept_integers(column: PolicyColumn) -> Mapping[str, Term]:
    """Return, by name, the integer columns that a prepared view stores in addition to `column`, with the SUM term of each.

    A column with bounds has up to three: unmoved, moved to its centre, moved to its lower end. They hold exactly the results of
    `row_integer`, so a question that sums the column between the policy's bounds reads them and is otherwise unchanged.
    """
    facts = facts_of(column)
    if facts.type not in (Type.INTEGER, Type.REAL) or not facts.bounded:
        return {}
    moved = (False, True, Fraction(facts.lower))
    terms = [summed(Column(column.name, facts), None, centred)[0] for centred in moved]
    return {f"#{index}.{column.name}": term for index, term in enumerate(terms) if term not in terms[:index]}


def integer_type(term: Term) -> str:
    """Return the narrowest of the engine's integer types, from 32 bits up, that holds every row's integer of a SUM term."""
    return "INTEGER" if term.magnitude >> term.finer < 2**31 else "BIGINT"


def kept_integer(policy: Policy, source: Relation, term: Term, prepared: Callable[[str], bool]) -> str | None:
    """Return the column of a prepared view that holds the integers of `term`, or None if `source` does not carry it.

    Joins and projections name their columns individually and do not carry it.
    """
    if isinstance(source, Filter):
        return kept_integer(policy, source.source, term, prepared)
    if isinstance(source, SemiJoin):
        return kept_integer(policy, source.left, term, prepared)
    if not isinstance(source, Scan) or not isinstance(term.value, Column):
        return None
    if not policy.is_protected(source.table) or not prepared(source.table):
        return None
    summed = (term.lower, term.upper, term.centre, term.grid - term.finer)
    integers = kept_integers(policy.tables[source.table].columns[term.value.name])
    names = (
        name for name, stored in integers.items() if (stored.lower, stored.upper, stored.centre, stored.grid) == summed
    )
    return next(names, None)


def row_integer(term: Term, value: str, dialect: Dialect) -> str:
    """Return the text of a row's integer of a SUM term; `value` is the text from `summand` (or the name of its column)."""
    if not isinstance(term.lower, float):
        return grid_integer(value, int(term.lower), int(term.upper), int(term.centre), dialect)
    if dialect.clamps_on_grid:
        return value
    low, high = (
        math.ldexp(float(end) - float(term.centre), term.grid - term.finer) for end in (term.lower, term.upper)
    )
    return grid_real(value, low, high, dialect, integer_type(term))


def value_text(term: Term, dialect: Dialect) -> str:
    """Return the text of a term's value in a row, which is computed once: for a SUM the value on its grid, as from `summand`."""
    assert term.value is not None
    written = dialect.expression(term.value)
    return summand(term, term.value, written, dialect) if term.kind is TermKind.SUM else written


def distinct_sum(term: Term, value: str, condition: str, dialect: Dialect) -> str:
    """Return the sum of the integers of a DISTINCT_SUM over the distinct values of a group. (A sum of distinct integers would
    count values that are rounded to the same integer only once.) `condition`: a FILTER, or ""."""
    summed = term.value
    assert summed is not None
    return dialect.distinct_sum(
        value, condition, lambda element: row_integer(term, summand(term, summed, element, dialect), dialect)
    )


def summand(term: Term, value: Expr, written: str, dialect: Dialect) -> str:
    """Return the text of a value on the grid of `term`: clamped if the dialect `clamps_on_grid`, otherwise possibly not."""
    if not isinstance(term.lower, float):
        return written
    wide = dialect.real(written) if value.facts.type is Type.INTEGER else written
    ends = float(term.lower), float(term.upper)
    return dialect.moved_to_grid(wide, *ends, float(term.centre), term.grid - term.finer, integer_type(term))


def grid_integer(value: str, lower: int, upper: int, centre: int, dialect: Dialect) -> str:
    """Return the row's integer of an integer column: clamp(value) - centre; NULL satisfies no comparison and stays NULL.

    The subtraction is in the branch in which the value is known to be in range, so that it cannot overflow.
    """
    low, high = dialect.constant(lower), dialect.constant(upper)
    inside = value if centre == 0 else f"({value} - {dialect.constant(centre)})"
    ends = dialect.constant(lower - centre), dialect.constant(upper - centre)
    return f"CASE WHEN {value} < {low} THEN {ends[0]} WHEN {value} > {high} THEN {ends[1]} ELSE {inside} END"


def grid_real(value: str, low: float, high: float, dialect: Dialect, type_: str = "BIGINT") -> str:
    """Return the row's integer of a real column: `value`, the text of `moved_to_grid`, clamped to its ends and then cast.

    The cast rounds half to even, as `basis.grid_value` does. Values out of range take a rare branch, which NULL never enters
    (no comparison with it is true), so that the common branch runs over whole vectors. For our engines NaN is greater than
    every number: it enters the rare branch and becomes NULL there.
    """
    ends, first, last = (
        [f"CAST({round(end)} AS {type_})" for end in (low, high)],
        dialect.constant(low),
        dialect.constant(high),
    )
    outside = f"abs({value}) > {last}" if low == -high else f"{value} NOT BETWEEN {first} AND {last}"
    clamped = f"CASE WHEN {value} < {first} THEN {ends[0]} WHEN NOT {dialect.is_nan(value)} THEN {ends[1]} END"
    return f"CASE WHEN {outside} THEN {clamped} ELSE {dialect.nearest_integer(value, type_)} END"
