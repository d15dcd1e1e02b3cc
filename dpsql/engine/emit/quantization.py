"""SQL text of the integer that a SUM term adds for a row, and the columns of a prepared copy that store such integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from dpsql.engine.dialect import Dialect
from dpsql.plan.intervals import Type
from dpsql.plan.plan import BoundedBlock, Column, Expr, Filter, Relation, Scan, SemiJoin, Term, TermKind, facts_of
from dpsql.policy import Policy
from dpsql.policy.types import PolicyColumn
from dpsql.pricing.sum_terms import summed
from dpsql.storage.records import replace


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
    for name, stored in integers.items():
        if (stored.lower, stored.upper, stored.centre, stored.grid) == summed:
            return name
    return None


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


# --- joint sums -------------------------------------------------------------------------------------------------------


# SQL text of joint sums: the companion terms of a set, computed from the sum around the lower end (`pricing.joint_sums`).


_LIMB_BITS = 20
_MOST_PRODUCT = 2**60


def lower_part(term: Term, block: BoundedBlock) -> Term | None:
    """Return the sum around `lower` of the set of joint sums to which `term` belongs; None if `term` is that sum or in no set.

    In a set of squares that sum is not a term itself; the terms are computed from its integers."""
    alone = term.kind is TermKind.SUM and term.centre == term.lower
    if not term.shares or alone or term.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        return None
    members = [other for other in block.terms if other.shares == term.shares]
    square = next((other for other in members if other.kind is TermKind.SQUARE_PART), None)
    if square is not None:
        magnitude, grid = isqrt(square.magnitude), square.grid // 2
        return replace(square, kind=TermKind.SUM, magnitude=magnitude, grid=grid, shares="", place=0)
    return next(other for other in members if other.kind is TermKind.SUM and other.centre == other.lower)


def companion_sum(term: Term, low: Term, row: str, condition: str, dialect: Dialect) -> str:
    """Return the companion term of a joint sum (privacy.md 4), computed from the same rounded row value as `low`.

    For a row with the value q the sum around `upper` has exactly q - W, and with `absent` -W for a row without a value; the
    count has W for a row without a value and 0 otherwise. The engine computes q (`row`), its sum and its count once.

    The parts of the squares are W**2 n - 2 W S + Q, 2 (W S - Q) and Q for n rows, where S is the sum of q and Q the sum of
    q**2: integers that fit 38 digits, because |q| <= W <= 2**30.
    """
    filtered = f" FILTER (WHERE {condition})" if condition else ""
    if term.kind is TermKind.SQUARE_PART:
        return _square_part(term.place, low.magnitude, row, filtered, dialect)
    if term.kind is TermKind.COUNT:
        return f"({dialect.wide(f'count(*){filtered} - count({row}){filtered}')} * {term.magnitude})"
    counted = dialect.wide(f"count({'*' if term.absent else row}){filtered}")
    total = dialect.exact_sum(row, filtered, low.magnitude)
    return f"(coalesce({total}, 0) - {counted} * {low.magnitude})"


def pair_part(term: Term, factors: tuple[Term, Term], power_sum: Callable[[tuple[int, int]], str]) -> str:
    """Return a part of the products of a shared row, or of the squares of a shared pair, from the sums of q^i r^j (`power_sum`),
    where q and r are the integers of the two SUMs `factors`.

    It is the sum of a b, where a is V - q or q, or (V - q)^2, 2 q (V - q) or q^2, and b is the same for r and W. The power sums
    are computed once for all parts. For squares their sizes add up to at most 16 V^2 W^2 for each row, so that 38 digits hold
    2^41 rows; products have q <= V <= 2^30 and r <= W <= 2^30.
    """
    if term.kind is TermKind.PAIR_PART:
        weights, indexes = _square_weights, divmod(term.place, 3)
    else:
        weights, indexes = _end_weights, (term.place & 1, term.place >> 1)
    of_first, of_second = (weights(index, factor.magnitude) for index, factor in zip(indexes, factors, strict=True))
    return " + ".join(
        f"{power_sum((first, second))} * {a * b}"
        for first, a in enumerate(of_first)
        for second, b in enumerate(of_second)
        if a and b
    ).join("()")


def _end_weights(index: int, width: int) -> tuple[int, ...]:
    """Return the weights of 1 and q in V - q or q."""
    return ((width, -1), (0, 1))[index]


def _square_weights(index: int, width: int) -> tuple[int, ...]:
    """Return the weights of 1, q and q^2 in (V - q)^2, 2 q (V - q) or q^2."""
    return ((width**2, -2 * width, 1), (0, 2 * width, -2), (0, 0, 1))[index]


def both_there(rows: tuple[str, str], condition: str) -> tuple[str, str]:
    """Return both integers of a row, made NULL unless both are present and the row passes `condition` ("": every row does)."""
    passed = f"{condition} AND " if condition else ""
    first, second = (f"CASE WHEN {passed}{other} IS NOT NULL THEN {row} END" for row, other in (rows, reversed(rows)))
    return first, second


def power_sum(powers: tuple[int, int], widths: tuple[int, int], rows: tuple[str, str], dialect: Dialect) -> str:
    """Return the sum of q^i r^j, with 38 digits, over `rows`, which are NULL together. Products of at most 60 bits are summed
    directly. Larger ones contain q^2 with V >= W and are split: q^2 = h 2^20 + l, where h r^j and l r^j have at most 60 bits,
    because W has 20."""

    def total(row: str, most: int) -> str:
        return f"coalesce({dialect.wide(dialect.exact_sum(row, '', most))}, 0)"

    if powers == (0, 0):
        return dialect.wide(f"count({rows[0]})")
    most = widths[0] ** powers[0] * widths[1] ** powers[1]
    if most <= _MOST_PRODUCT:
        return total(" * ".join(text for text, power in zip(rows, powers, strict=True) for _ in range(power)), most)
    larger, smaller = (0, 1) if widths[0] >= widths[1] else (1, 0)
    squares = [f"({text} * {text})" if power == 2 else text for text, power in zip(rows, powers, strict=True)]
    upper = total(f"{dialect.halved(squares[larger], _LIMB_BITS)} * {squares[smaller]}", most >> _LIMB_BITS)
    lower = total(
        f"({squares[larger]} & {2**_LIMB_BITS - 1}) * {squares[smaller]}", 2**_LIMB_BITS * widths[smaller] ** 2
    )
    return f"({upper} * {2**_LIMB_BITS} + {lower})"


def moments(row: str, dialect: Dialect) -> list[str]:
    """Return the select items m0, m1, m2: number, sum and sum of squares of the integers `row`, of at most 30 bits, of the rows
    with one value of the other side of a pair."""
    sums = [f"count({row})", f"coalesce(sum({row}), 0)", f"coalesce(sum({row} * {row}), 0)"]
    return [f"{dialect.wide(text)} AS m{power}" for power, text in enumerate(sums)]


def power_of_moments(power: int, other_power: int, value: str) -> str:
    """Return the sum of q^i r^j from the moments of r for each `value` q, in as many digits as `power_sum`."""
    return f"coalesce(sum({' * '.join([f'm{other_power}', *[value] * power])}), 0)"


def _square_part(index: int, width: int, row: str, filtered: str, dialect: Dialect) -> str:
    squared = dialect.exact_sum(f"(CAST({row} AS BIGINT) * {row})", filtered, width**2)
    squares = f"coalesce({dialect.wide(squared)}, 0)"
    if index == 2:
        return squares
    total = f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, width))}, 0) * {width}"
    if index == 1:
        return f"(({total} - {squares}) * 2)"
    return f"({dialect.wide(f'count({row}){filtered}')} * {width**2} - {total} * 2 + {squares})"
