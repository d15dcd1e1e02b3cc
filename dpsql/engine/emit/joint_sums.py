"""Joint sums: the companion terms of a set, computed from the sum around the lower end (`pricing.joint_sums`)."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from dpsql.engine.dialect import Dialect
from dpsql.plan.plan import BoundedBlock, Term, TermKind


def lower_part(term: Term, block: BoundedBlock) -> Term | None:
    """Return the sum around `lower` of the set of joint sums to which `term` belongs; None if `term` is that sum or in no set.

    Of a set of squares that sum is none of the terms, which are made of its integers."""
    alone = term.kind is TermKind.SUM and term.centre == term.lower
    if not term.shares or alone or term.kind is TermKind.PRODUCT_PART:
        return None
    members = [other for other in block.terms if other.shares == term.shares]
    square = next((other for other in members if other.kind is TermKind.SQUARE_PART), None)
    if square is not None:
        magnitude, grid = isqrt(square.magnitude), square.grid // 2
        return replace(square, kind=TermKind.SUM, magnitude=magnitude, grid=grid, shares="", place=0)
    return next(other for other in members if other.kind is TermKind.SUM and other.centre == other.lower)


def companion_sum(term: Term, low: Term, row: str, condition: str, dialect: Dialect) -> str:
    """Return the companion term of a joint sum (privacy.md 4), computed from the same rounded row value as `low`.

    Where a row has q, the sum around `upper` has exactly q - W, and with `absent` -W for a row without a value; the count
    has W for such a row alone. The engine computes q (`row`), its sum and its count once.

    The parts of the squares are W**2 n - 2 W S + Q, 2 (W S - Q) and Q for n rows with the sum S of q and Q of q**2: integers of
    38 digits, as |q| <= W <= 2**30.
    """
    filtered = f" FILTER (WHERE {condition})" if condition else ""
    if term.kind is TermKind.SQUARE_PART:
        return _square_part(term.place, low.magnitude, row, filtered, dialect)
    if term.kind is TermKind.COUNT:
        return f"({dialect.wide(f'count(*){filtered} - count({row}){filtered}')} * {term.magnitude})"
    counted = dialect.wide(f"count({'*' if term.absent else row}){filtered}")
    total = dialect.exact_sum(row, filtered, low.magnitude)
    return f"(coalesce({total}, 0) - {counted} * {low.magnitude})"


def product_part(
    term: Term, factors: tuple[Term, Term], rows: tuple[str, str], condition: str, dialect: Dialect
) -> str:
    """Return a part of the products of a shared row, from the integers q and r of both (`rows`) and their SUMs `factors`.

    The parts are V W n - W Q - V R + P, W Q - P, V R - P and P for n rows with both and the sums Q of q, R of r and P of q r:
    integers of 38 digits, as q <= V <= 2**30 and r <= W <= 2**30. A row without one of them is in none of the sums.
    """
    (first, second), (width, other) = rows, (factor.magnitude for factor in factors)
    present = [f"{first} IS NOT NULL", f"{second} IS NOT NULL", *([condition] if condition else [])]
    filtered = f" FILTER (WHERE {' AND '.join(present)})"

    def total(row: str, most: int) -> str:
        return f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, most))}, 0)"

    products = total(f"(CAST({first} AS BIGINT) * {second})", width * other)
    if term.place == 3:
        return products
    if term.place == 1:
        return f"({total(first, width)} * {other} - {products})"
    if term.place == 2:
        return f"({total(second, other)} * {width} - {products})"
    counted = dialect.wide(f"count(*){filtered}")
    return f"({counted} * {width * other} - {total(first, width)} * {other} - {total(second, other)} * {width} + {products})"


def _square_part(place: int, width: int, row: str, filtered: str, dialect: Dialect) -> str:
    squared = dialect.exact_sum(f"(CAST({row} AS BIGINT) * {row})", filtered, width**2)
    squares = f"coalesce({dialect.wide(squared)}, 0)"
    if place == 2:
        return squares
    total = f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, width))}, 0) * {width}"
    if place == 1:
        return f"(({total} - {squares}) * 2)"
    return f"({dialect.wide(f'count({row}){filtered}')} * {width**2} - {total} * 2 + {squares})"
