"""SUM terms claim a row's contribution on their grid, exactly at both ends, and leave room for a clipped unit in 64 bits."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from dpsql.errors.exceptions import Error
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Clip, Column, Expr, TermKind
from dpsql.pricing.sum_terms import (
    FINER_BITS,
    GRID_BITS,
    KEPT_BITS,
    LEAST_CLIP,
    LEAST_FINER,
    MOST_GRID,
    UNIT_BITS,
    clipped,
    grid_value,
    summed,
)

CONDITION = Column("c", Facts(Type.BOOLEAN))


def integers(lower: int, upper: int) -> Column:
    return Column("x", Facts(Type.INTEGER, Fraction(lower), Fraction(upper)))


def reals(lower: str | Fraction, upper: str | Fraction) -> Column:
    return Column("x", Facts(Type.REAL, Fraction(lower), Fraction(upper)))


def computed(value: Column) -> Call:
    """Return an expression with the same facts, which no copy stores."""
    return Call("coalesce", (value,), value.facts)


def test_grids_fill_what_the_engines_integers_hold() -> None:
    assert 2**GRID_BITS * 2**63 < 2**127, "a sum of all rows in 128 bits"
    assert (GRID_BITS, KEPT_BITS, UNIT_BITS) == (52, 30, 62)


# --- integers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lower", "upper", "centred", "centre", "magnitude"),
    [
        (0, 9, False, 0, 9),
        (0, 9, True, 4, 5),
        (-9, 0, True, -5, 5),
        (-3, 9, False, 0, 9),
        (-9, 3, False, 0, 9),
        (-9, 3, True, -3, 6),
        (5, 5, False, 0, 5),
        (5, 5, True, 5, 0),
        (0, 0, False, 0, 0),
        (2, 9, Fraction(2), 2, 7),
        (2, 9, Fraction(9), 9, 7),
        (-(2**GRID_BITS) + 1, 0, False, 0, 2**GRID_BITS - 1),
    ],
)
def test_integers_are_summed_as_they_are(
    lower: int, upper: int, centred: bool | Fraction, centre: int, magnitude: int
) -> None:
    value = integers(lower, upper)
    term, returned = summed(value, CONDITION, centred)
    assert (term.kind, term.value, term.filter) == (TermKind.SUM, value, CONDITION)
    assert (term.lower, term.upper, term.grid, term.centre) == (lower, upper, 0, centre)
    assert term.magnitude == magnitude and returned == centre and type(returned) is int
    assert (term.clip, term.finer, term.shares) == (None, 0, "")


@pytest.mark.parametrize(("lower", "upper"), [(0, 2**GRID_BITS), (-(2**GRID_BITS), 0), (-(2**63), 2**63 - 1)])
def test_large_integers_are_read_as_reals(lower: int, upper: int) -> None:
    term, centre = summed(computed(integers(lower, upper)), None, False)
    assert type(term.lower) is type(term.upper) is type(centre) is float
    assert 2**51 <= term.magnitude <= 2**GRID_BITS
    assert term.magnitude == max(abs(lower), abs(upper)) * Fraction(2) ** term.grid


@pytest.mark.parametrize(("lower", "upper"), [(None, Fraction(1)), (Fraction(1), None), (None, None)])
def test_values_without_bounds_are_not_summed(lower: Fraction | None, upper: Fraction | None) -> None:
    with pytest.raises(Error) as refused:
        summed(Column("x", Facts(Type.REAL, lower, upper)), None, False)
    assert refused.value.slug == "sum_out_of_range"


# --- reals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [None, 20, KEPT_BITS, GRID_BITS])
@pytest.mark.parametrize("centred", [False, True, "lower", "upper"])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [("0", "1"), ("-0.1", "0.3"), ("-7", "2.5"), ("1e-9", "1e-8"), ("-1e300", "1e300"), ("0.1", "3")],
)
def test_no_real_within_its_bounds_adds_more_than_is_claimed(
    lower: str, upper: str, centred: bool | str, bits: int | None
) -> None:
    value = reals(lower, upper)
    around = value.facts.lower if centred == "lower" else value.facts.upper if centred == "upper" else centred
    term, centre = summed(value, None, around, bits)
    assert centre == term.centre
    assert centre == {"lower": float(lower), "upper": float(upper), False: 0.0}.get(
        centred, (float(lower) + float(upper)) / 2
    )
    low, high = float(term.lower), float(term.upper)
    assert (low, high) == (float(lower), float(upper))
    most = max(abs(low - centre), abs(high - centre))
    width = KEPT_BITS if bits is None else bits
    assert 2 ** (width - 1) <= most * Fraction(2) ** term.grid <= 2**width, "the finest grid with room"
    chance = random.Random(4)
    drawn = [low, high, *(min(high, max(low, low + (high / 2 - low / 2) * 2 * chance.random())) for _ in range(50))]
    assert max(abs(grid_value(x, float(centre), term.grid)) for x in drawn) == term.magnitude <= 2**width


@pytest.mark.parametrize(("value", "bits"), [(reals("0", "1"), KEPT_BITS), (computed(reals("0", "1")), GRID_BITS)])
def test_columns_have_fewer_bits_than_what_is_computed(value: Expr, bits: int) -> None:
    term, _ = summed(value, CONDITION, False)
    assert (term.grid, term.magnitude) == (bits - 1, 2 ** (bits - 1))
    assert (term.kind, term.value, term.filter) == (TermKind.SUM, value, CONDITION)


def test_a_constant_and_tiny_values_have_a_grid_as_well() -> None:
    constant, centre = summed(reals("2.5", "2.5"), None, True)
    assert (constant.magnitude, constant.grid, centre) == (0, 0, 2.5)
    tiny, _ = summed(reals("0", Fraction(1, 2**1000)), None, False)
    assert tiny.grid == MOST_GRID == 900 and tiny.magnitude == 0


@pytest.mark.parametrize(
    ("value", "centre", "grid", "integer"),
    [
        (0.5, 0.0, 0, 0), (1.5, 0.0, 0, 2), (2.5, 0.0, 0, 2), (-0.5, 0.0, 0, 0), (-1.5, 0.0, 0, -2),
        (0.75, 0.0, 2, 3), (3.0, 1.0, 1, 4), (5.0, 0.0, -1, 2), (7.0, 0.0, -1, 4), (1.0, 4.0, 3, -24),
    ],
)  # fmt: skip
def test_halves_are_rounded_to_even(value: float, centre: float, grid: int, integer: int) -> None:
    assert grid_value(value, centre, grid) == integer


# --- clipped sums -----------------------------------------------------------------------------------------------------

NARROW, WIDE, FRACTIONS = integers(-3, 100), integers(0, 2**40), reals("-7.3", "2.5")


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 1000, 2**20, 2**20 + 1, 10**9])
@pytest.mark.parametrize("value", [NARROW, WIDE, FRACTIONS, computed(FRACTIONS), integers(0, 2**51)], ids=str)
@pytest.mark.parametrize("share", [Fraction(1), Fraction(3), Fraction(1, 3)], ids=str)
def test_a_clipped_unit_has_room_in_64_bits_and_a_fine_grid(value: Expr, rows: int, share: Fraction) -> None:
    most = max(abs(value.facts.lower), abs(value.facts.upper))
    total = share * most
    term = clipped(value, CONDITION, total, rows)
    assert (term.kind, term.value, term.filter, term.centre) == (TermKind.SUM, value, CONDITION, 0)
    assert rows * term.magnitude <= 2**UNIT_BITS
    assert LEAST_FINER <= term.finer <= FINER_BITS
    step = Fraction(2) ** -term.grid
    assert isinstance(term.clip, Clip) and term.clip.norm is None
    assert total - step < term.clip.most * step <= total, "the bound in whole steps, rounded down"
    assert abs(term.magnitude * step - most) <= most / 2 ** (KEPT_BITS - 10)


@pytest.mark.parametrize(
    ("value", "rows", "finer"),
    [
        (NARROW, 1, 20),
        (NARROW, 2**35, 20),
        (NARROW, 2**35 + 1, 19),
        (WIDE, 1, 20),
        (WIDE, 2, 20),
        (WIDE, 3, 19),
        (WIDE, 1024, 11),
        (integers(-(2**40), 0), 3, 19),
    ],
)
def test_integers_have_the_finest_grid_that_there_is_room_for(value: Column, rows: int, finer: int) -> None:
    most = int(max(abs(value.facts.lower), abs(value.facts.upper)))
    term = clipped(value, None, Fraction(most), rows)
    assert (term.finer, term.grid, term.magnitude) == (finer, finer, most * 2**finer)
    assert type(term.lower) is type(term.upper) is int
    assert term.clip == Clip(most * 2**finer)


@pytest.mark.parametrize(("rows", "type_"), [(2**11, int), (2**11 + 1, float), (2**12, float)])
def test_integers_without_room_are_read_as_reals(rows: int, type_: type) -> None:
    assert type(clipped(integers(0, 2**41 - 1), None, Fraction(2**41), rows).lower) is type_


@pytest.mark.parametrize(
    ("value", "total", "rows", "bits", "finer"),
    [
        (reals("0", "1"), Fraction(1), 1, KEPT_BITS, 20),
        (reals("0", "1"), Fraction(2), 1, KEPT_BITS, 20),
        (reals("0", "1"), Fraction(99, 100), 1, 42, 20),
        (computed(reals("0", "1")), Fraction(1), 1, 42, 20),
        (computed(reals("0", "1")), Fraction(1), 2**10, 32, 20),
        (computed(reals("0", "1")), Fraction(1), 2**14, KEPT_BITS, 18),
        (reals("0", "1"), Fraction(1), 2**14, KEPT_BITS, 18),
        (reals("0", "1"), Fraction(1), 2**22, KEPT_BITS, 10),
        (reals("0", "1"), Fraction(1), 2**24, 28, 10),
    ],
)
def test_reals_have_kept_bits_where_a_copy_keeps_them_and_more_under_small_totals(
    value: Expr, total: Fraction, rows: int, bits: int, finer: int
) -> None:
    term = clipped(value, None, total, rows)
    assert (term.grid - term.finer, term.finer) == (bits - 1, finer)
    assert term.magnitude == 2 ** (bits - 1 + finer)


@pytest.mark.parametrize(
    ("value", "least"),
    [
        (integers(0, 2**40), Fraction(LEAST_CLIP, 2**20)),
        (computed(reals("0", "1")), Fraction(LEAST_CLIP, 2**41)),
        (reals("0", "1024"), Fraction(LEAST_CLIP, 2**31)),
    ],
    ids=["integers", "computed reals", "reals"],
)
def test_a_total_of_fewer_than_a_thousand_steps_is_refused(value: Expr, least: Fraction) -> None:
    clip = clipped(value, None, least, 1).clip
    assert clip is not None and clip.most >= LEAST_CLIP
    with pytest.raises(Error) as refused:
        clipped(value, None, least * Fraction(999, 1000), 1)
    assert refused.value.slug == "max_total_small"


def test_a_real_just_above_a_power_of_two_keeps_to_its_bits() -> None:
    end = math.nextafter(1.0, 2.0)
    term, _ = summed(call("abs", reals("0", Fraction(end))), None, False)
    assert term.grid == GRID_BITS - 1 and term.magnitude == round(math.ldexp(end, GRID_BITS - 1)) <= 2**GRID_BITS
