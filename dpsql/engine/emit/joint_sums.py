"""SQL text of joint sums: the companion terms of a set, computed from the sum around the lower end (`pricing.joint_sums`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isqrt

from dpsql.engine.dialect import Dialect
from dpsql.plan.plan import BoundedBlock, Term, TermKind

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
        weights, places = _square_weights, divmod(term.place, 3)
    else:
        weights, places = _end_weights, (term.place & 1, term.place >> 1)
    of_first, of_second = (weights(place, factor.magnitude) for place, factor in zip(places, factors, strict=True))
    return " + ".join(
        f"{power_sum((first, second))} * {a * b}"
        for first, a in enumerate(of_first)
        for second, b in enumerate(of_second)
        if a and b
    ).join("()")


def _end_weights(place: int, width: int) -> tuple[int, ...]:
    """Return the weights of 1 and q in V - q or q."""
    return ((width, -1), (0, 1))[place]


def _square_weights(place: int, width: int) -> tuple[int, ...]:
    """Return the weights of 1, q and q^2 in (V - q)^2, 2 q (V - q) or q^2."""
    return ((width**2, -2 * width, 1), (0, 2 * width, -2), (0, 0, 1))[place]


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


def _square_part(place: int, width: int, row: str, filtered: str, dialect: Dialect) -> str:
    squared = dialect.exact_sum(f"(CAST({row} AS BIGINT) * {row})", filtered, width**2)
    squares = f"coalesce({dialect.wide(squared)}, 0)"
    if place == 2:
        return squares
    total = f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, width))}, 0) * {width}"
    if place == 1:
        return f"(({total} - {squares}) * 2)"
    return f"({dialect.wide(f'count({row}){filtered}')} * {width**2} - {total} * 2 + {squares})"
