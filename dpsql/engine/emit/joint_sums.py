"""Joint sums: the companion terms of a set, computed from the sum around the lower end (`pricing.joint_sums`)."""

from __future__ import annotations

from dataclasses import replace
from math import isqrt

from dpsql.engine.dialect import Dialect
from dpsql.plan.plan import BoundedBlock, Term, TermKind

_LIMB = 2**20
_MOST_PRODUCT = 2**60


def lower_part(term: Term, block: BoundedBlock) -> Term | None:
    """Return the sum around `lower` of the set of joint sums to which `term` belongs; None if `term` is that sum or in no set.

    Of a set of squares that sum is none of the terms, which are made of its integers."""
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


def pair_part(term: Term, factors: tuple[Term, Term], rows: tuple[str, str], condition: str, dialect: Dialect) -> str:
    """Return a part of the squares of a shared pair, from the integers q and r of both (`rows`) and their SUMs `factors`.

    It is the sum of a b, where a is (V - q)^2, 2 q (V - q) or q^2 and b the same of r and W: of products of powers of q and r up
    to the second, whose sums the engine computes once for all parts. Their sizes add up to at most 16 V^2 W^2 for each row, so
    that 38 digits hold 2^41 rows. A row without one of them is in none of the sums.
    """
    present = f"{rows[0]} + {rows[1]} IS NOT NULL"
    filtered = f" FILTER (WHERE {condition} AND {present})" if condition else f" FILTER (WHERE {present})"
    of_first, of_second = (
        _square_weights(place, factor.magnitude) for place, factor in zip(divmod(term.place, 3), factors, strict=True)
    )
    widths = (factors[0].magnitude, factors[1].magnitude)
    return " + ".join(
        f"{_power_sum((first, second), widths, rows, filtered, dialect)} * {a * b}"
        for first, a in enumerate(of_first)
        for second, b in enumerate(of_second)
        if a and b
    ).join("()")


def _square_weights(place: int, width: int) -> tuple[int, int, int]:
    """Return the weights of 1, q and q^2 in (V - q)^2, 2 q (V - q) or q^2."""
    return ((width**2, -2 * width, 1), (0, 2 * width, -2), (0, 0, 1))[place]


def _power_sum(
    powers: tuple[int, int], widths: tuple[int, int], rows: tuple[str, str], filtered: str, dialect: Dialect
) -> str:
    """Return the sum of q^i r^j, with 38 digits. Of at most 60 bits it is summed as it stands. q^2 r^2 of more is parted: with
    V >= W, q^2 is h 2^20 + l, and h r^2 has 60 bits and so has l r^2, as W has 20."""

    def total(row: str, most: int) -> str:
        return f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, most))}, 0)"

    if powers == (0, 0):
        return dialect.wide(f"count(*){filtered}")
    most = widths[0] ** powers[0] * widths[1] ** powers[1]
    if most <= _MOST_PRODUCT:
        return total(" * ".join(text for text, power in zip(rows, powers, strict=True) for _ in range(power)), most)
    larger, smaller = (0, 1) if widths[0] >= widths[1] else (1, 0)
    squares = [f"({text} * {text})" if power == 2 else text for text, power in zip(rows, powers, strict=True)]
    high = f"({dialect.whole_quotient(squares[larger], str(_LIMB))})"
    upper = total(f"({high} * {squares[smaller]})", most // _LIMB)
    lower = total(f"(({squares[larger]} - {high} * {_LIMB}) * {squares[smaller]})", _LIMB * widths[smaller] ** 2)
    return f"({upper} * {_LIMB} + {lower})"


def _square_part(place: int, width: int, row: str, filtered: str, dialect: Dialect) -> str:
    squared = dialect.exact_sum(f"(CAST({row} AS BIGINT) * {row})", filtered, width**2)
    squares = f"coalesce({dialect.wide(squared)}, 0)"
    if place == 2:
        return squares
    total = f"coalesce({dialect.wide(dialect.exact_sum(row, filtered, width))}, 0) * {width}"
    if place == 1:
        return f"(({total} - {squares}) * 2)"
    return f"({dialect.wide(f'count({row}){filtered}')} * {width**2} - {total} * 2 + {squares})"
