"""Companions of joint sums match their definitions for each row's integer, added up row by row in Python."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.joint_sums import both_there, companion_sum, lower_part, pair_part, power_sum
from dpsql.plan.plan import BoundedBlock, Caps, Scan, Term, TermKind

W = 10
ROWS: list[int | None] = [0, 3, W, None, 7, None, 1]
INSIDE = [True, True, False, True, None, False, True]
PASSED = [row for row, inside in zip(ROWS, INSIDE, strict=True) if inside]


def term(name: str, kind: TermKind, **changes: object) -> Term:
    return Term(name, kind, None, None, **{"magnitude": W, "lower": 0, "upper": 5, "shares": "s", **changes})  # type: ignore[arg-type]


LOW = term("low", TermKind.SUM, centre=0)
HIGH = term("high", TermKind.SUM, centre=5)
COUNT = term("count", TermKind.COUNT)


def block_of(*terms: Term) -> BoundedBlock:
    return BoundedBlock("", Scan("t", ()), (), terms, (), None, Caps(1, 1))


def computed(text: str, rows: list[int | None] | None = None) -> int:
    connection = plain_duckdb()
    numbers = ROWS if rows is None else rows
    inside = INSIDE if rows is None else [True] * len(rows)
    connection.register("joint", pa.table({"q": pa.array(numbers, pa.int64()), "inside": pa.array(inside, pa.bool_())}))
    return int(connection.execute(f"SELECT {text} FROM joint").fetchall()[0][0])


# --- the sum from which a term is computed ----------------------------------------------------------------------------


@pytest.mark.parametrize("companion", [HIGH, COUNT], ids=lambda companion: companion.name)
def test_a_companion_is_computed_from_the_sum_around_the_lower_end_of_its_set(companion: Term) -> None:
    elsewhere = term("elsewhere", TermKind.SUM, shares="other")
    assert lower_part(companion, block_of(elsewhere, HIGH, COUNT, LOW)) is LOW


@pytest.mark.parametrize(
    "alone",
    [
        LOW,
        term("no set", TermKind.COUNT, shares=""),
        term("no set", TermKind.SUM, centre=5, shares=""),
        term("product", TermKind.PRODUCT_PART),
        term("pair", TermKind.PAIR_PART),
    ],
)
def test_other_terms_are_computed_by_themselves(alone: Term) -> None:
    assert lower_part(alone, block_of(LOW, alone)) is None


def test_parts_of_squares_are_made_of_the_integers_of_a_sum_of_half_the_bits() -> None:
    square = term("square", TermKind.SQUARE_PART, magnitude=W * W, grid=8, place=2)
    low = lower_part(square, block_of(term("other", TermKind.SUM, shares="other"), square))
    assert low is not None
    assert (low.kind, low.magnitude, low.grid, low.shares, low.place) == (TermKind.SUM, W, 4, "", 0)
    assert (low.lower, low.upper, low.centre) == (0, 5, 0)


# --- one number -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("condition", ["", "inside"])
@pytest.mark.parametrize("absent", [False, True])
def test_the_sum_around_the_upper_end_moves_each_row_by_the_width(condition: str, absent: bool) -> None:
    rows = PASSED if condition else ROWS
    expected = sum(row - W for row in rows if row is not None) - (W * rows.count(None) if absent else 0)
    high = term("high", TermKind.SUM, centre=5, absent=absent)
    assert computed(companion_sum(high, LOW, "q", condition, DUCKDB)) == expected


@pytest.mark.parametrize("condition", ["", "inside"])
def test_the_count_has_the_width_for_each_row_without_a_value(condition: str) -> None:
    expected = W * (PASSED if condition else ROWS).count(None)
    assert computed(companion_sum(COUNT, LOW, "q", condition, DUCKDB)) == expected


@pytest.mark.parametrize("condition", ["", "inside"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_parts_of_squares_share_the_square_of_the_width(place: int, condition: str) -> None:
    """(W - q)**2, 2 q (W - q) and q**2."""
    values = [row for row in (PASSED if condition else ROWS) if row is not None]
    part = [lambda q: (W - q) ** 2, lambda q: 2 * q * (W - q), lambda q: q * q][place]
    square = term("square", TermKind.SQUARE_PART, magnitude=W * W, place=place)
    assert computed(companion_sum(square, LOW, "q", condition, DUCKDB)) == sum(map(part, values))


@pytest.mark.parametrize("kind", [TermKind.SUM, TermKind.COUNT, TermKind.SQUARE_PART])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_rows_add_up_to_zero(kind: TermKind, place: int) -> None:
    assert computed(companion_sum(term("t", kind, centre=5, place=place), LOW, "q", "", DUCKDB), []) == 0


def test_the_largest_integers_do_not_overflow() -> None:
    low = term("low", TermKind.SUM, centre=0, magnitude=2**30)
    for place, expected in ((0, 0), (1, 0), (2, 64 * 2**60)):
        square = term("square", TermKind.SQUARE_PART, magnitude=2**60, place=place)
        assert computed(companion_sum(square, low, "q", "", DUCKDB), [2**30] * 64) == expected


# --- two numbers ------------------------------------------------------------------------------------------------------

V = 6
PAIRS = [(0, 0), (3, 10), (6, 2), (None, 4), (5, None), (1, 7), (None, None)]
BOTH = [(q, r) for q, r in PAIRS if q is not None and r is not None]


def over_pairs(text: str, pairs: list[tuple[int | None, int | None]]) -> int:
    connection = plain_duckdb()
    columns = {name: pa.array([pair[place] for pair in pairs], pa.int64()) for place, name in enumerate("qr")}
    connection.register("pairs", pa.table(columns))
    first, second = both_there(("q", "r"), "")
    source = f"(SELECT {first} AS q, {second} AS r FROM pairs)"
    return int(connection.execute(f"SELECT {text} FROM {source}").fetchall()[0][0])


def from_powers(powers: tuple[int, int]) -> str:
    return power_sum(powers, (V, W), ("q", "r"), DUCKDB)


FACTORS = (term("first", TermKind.SUM, magnitude=V), term("second", TermKind.SUM, magnitude=W))


@pytest.mark.parametrize("place", range(4))
def test_parts_of_products_are_those_of_both_widths(place: int) -> None:
    part = term("part", TermKind.PRODUCT_PART, place=place)
    first, second = place & 1, place >> 1
    expected = sum((q if first else V - q) * (r if second else W - r) for q, r in BOTH)
    assert over_pairs(pair_part(part, FACTORS, from_powers), PAIRS) == expected


@pytest.mark.parametrize("place", range(9))
def test_parts_of_squares_of_pairs_are_products_of_parts(place: int) -> None:
    def weighted(number: int, width: int, part: int) -> int:
        return ((width - number) ** 2, 2 * number * (width - number), number**2)[part]

    expected = sum(weighted(q, V, place // 3) * weighted(r, W, place % 3) for q, r in BOTH)
    part = term("part", TermKind.PAIR_PART, place=place)
    assert over_pairs(pair_part(part, FACTORS, from_powers), PAIRS) == expected


def test_sums_of_powers_without_weight_are_not_computed() -> None:
    last = term("part", TermKind.PAIR_PART, place=8)
    assert pair_part(last, FACTORS, lambda powers: f"p{powers[0]}{powers[1]}") == "(p22 * 1)"


WIDTHS = [(V, W), (2**30, 2**10), (2**20, 2**20), (2**10, 2**30), (2**25, 2**15), (2**15, 2**25)]
"""The largest have 40 bits together, the most that pricing allows."""


@pytest.mark.parametrize("powers", list(product(range(3), range(3))))
@pytest.mark.parametrize(("first", "second"), WIDTHS)
def test_sums_of_powers_are_exact_up_to_the_widths(powers: tuple[int, int], first: int, second: int) -> None:
    pairs = [(q, r) for q in (0, 1, first // 3, first - 1, first) for r in (0, 1, second // 3, second - 1, second)]
    text = power_sum(powers, (first, second), ("q", "r"), DUCKDB)
    assert over_pairs(text, pairs) == sum(q ** powers[0] * r ** powers[1] for q, r in pairs)


@pytest.mark.parametrize("powers", [(0, 0), (1, 2), (2, 2)])
def test_powers_of_no_rows_add_up_to_zero(powers: tuple[int, int]) -> None:
    assert over_pairs(power_sum(powers, (2**30, 2**20), ("q", "r"), DUCKDB), []) == 0


@pytest.mark.parametrize(("condition", "expected"), [("", [(3, 4)]), ("q > 3", []), ("q > 2", [(3, 4)])])
def test_both_integers_are_there_or_none(condition: str, expected: list[tuple[int, int]]) -> None:
    first, second = both_there(("q", "r"), condition)
    rows = "(VALUES (3, 4), (3, NULL), (NULL, 4), (NULL, NULL)) AS t(q, r)"
    numbers = plain_duckdb().execute(f"SELECT {first}, {second} FROM {rows}").fetchall()
    assert [row for row in numbers if row != (None, None)] == expected
