"""Weighted sums of stored joint sums are the counts and sums that they stand for, over any rows; and what does not follow has none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from math import isqrt

import pytest

from dpsql.aggregates.distances import can_be_missing
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Clip, Column, Expr, Term, TermKind
from dpsql.pricing.joint_sums import factors_of, pair_parts, product_parts, square_parts
from dpsql.pricing.sum_terms import summed
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.reuse.record import StoredFactor, StoredTerm, measure_of, value_mark
from dpsql.reuse.stored_sets import Weighted, counts_of_sets, parts_of_pairs, product_of_squares, sum_of_squares

NOISE = laplace.noise_for(Sensitivity(1, 1, 1, 1), Fraction(1))


def integers(name: str, lower: int, upper: int, *, nullable: bool = False) -> Column:
    return Column(name, Facts(Type.INTEGER, Fraction(lower), Fraction(upper), nullable=nullable))


X, Y, Z = integers("x", -3, 7), integers("y", 5, 9), integers("z", 0, 7)
GAPS = integers("x", -3, 7, nullable=True)
"""As X, but with rows without a value."""
REAL = Column("r", Facts(Type.REAL, Fraction(0), Fraction(8)))
DAY = Column("d", Facts(Type.DATE, date(2024, 1, 1), date(2024, 1, 9), nullable=False))
ROWS: list[dict[str, int | None]] = [
    {"x": x, "y": y} for x, y in ((-3, 5), (7, 9), (0, 6), (1, 9), (7, 5), (-2, 8), (4, 7), (4, 7))
]


# --- what is stored, and what a row adds to it ----------------------------------------------------------------------


def stored(term: Term, name: str, *, everything: bool = False) -> StoredTerm:
    """Return a term as a release describes it."""
    width: Fraction | None = None
    factors: tuple[StoredFactor, ...] = ()
    if term.kind is TermKind.SQUARE_PART:
        width = Fraction(isqrt(term.magnitude)) / Fraction(2) ** (term.grid // 2)
    if term.kind in (TermKind.PRODUCT_PART, TermKind.PAIR_PART):
        factors = tuple(
            StoredFactor(
                value_mark(factor.value),
                Fraction(factor.magnitude) / Fraction(2) ** factor.grid,
                Fraction(factor.lower),
            )
            for factor in factors_of(term)
            if factor.value is not None
        )
    return StoredTerm(
        name, term.kind.value, measure_of(term), frozenset(), Fraction(term.centre), NOISE, term.grid, True, term.shares,
        term.absent, everything, width, factors, term.place,
    )  # fmt: skip


def in_set(terms: Iterable[Term], shares: str, *, absent: bool = False, everything: bool = False) -> list[StoredTerm]:
    return [
        stored(replace(term, shares=shares, absent=absent), f"{shares}.{number}", everything=everything)
        for number, term in enumerate(terms)
    ]


def ends(value: Column, shares: str = "t0", *, absent: bool = False, everything: bool = False) -> list[StoredTerm]:
    """Return a set around both ends of a value."""
    sums = [summed(value, None, Fraction(end))[0] for end in (value.facts.lower, value.facts.upper)]
    return in_set(sums, shares, absent=absent, everything=everything)


def squares(value: Expr, shares: str = "t0", *, absent: bool = False, everything: bool = False) -> list[StoredTerm]:
    return in_set(square_parts(value, None), shares, absent=absent, everything=everything)


def missing(value: Column, of: str, shares: str = "t0") -> StoredTerm:
    """Return the count of rows without a value that belongs to a set, in steps of W or W^2."""
    width = int(value.facts.upper - value.facts.lower)
    condition = call("is_null", value)
    magnitude = width if of == "ends" else width**2
    return stored(Term("", TermKind.COUNT, None, condition, magnitude, shares=shares), f"{shares}.missing")


def column_of(term: StoredTerm, columns: Sequence[Column]) -> Column:
    return next(
        column
        for column in columns
        if term.measure
        in {measure_of(summed(column, None, False)[0]), *(measure_of(t) for t in square_parts(column, None))}
    )


def parts_of_square(column: Column, row: dict[str, int | None], width: Fraction) -> list[Fraction]:
    value = row[column.name]
    if value is None:
        return [Fraction(0)] * 3
    q = Fraction(value) - column.facts.lower
    return [(width - q) ** 2, 2 * q * (width - q), q**2]


def added(term: StoredTerm, row: dict[str, int | None], columns: Sequence[Column]) -> Fraction:
    """Return what a row adds to a stored term, by the definition of its kind and not by the weights that are tested."""
    if term.kind == "count":
        (column,) = columns
        width = column.facts.upper - column.facts.lower
        step = width if term.name.startswith("ends") else width**2
        return step if row[column.name] is None else Fraction(0)
    if term.kind == "sum":
        value = row[column_of(term, columns).name]
        return Fraction(0) if value is None else Fraction(value) - term.centre
    if term.kind == "square part":
        assert term.width is not None
        measured = {measure_of(part): part for column in columns for part in square_parts(column, None)}[term.measure]
        return parts_of_square(column_of(term, columns), row, term.width)[measured.place]
    first, second = columns
    if term.kind == "product part":
        q, r = (Fraction(row[column.name] or 0) - column.facts.lower for column in columns)
        v, w = (column.facts.upper - column.facts.lower for column in columns)
        return Fraction((q if term.place & 1 else v - q) * (r if term.place & 2 else w - r))
    by_place = [parts_of_square(column, row, column.facts.upper - column.facts.lower) for column in (first, second)]
    return by_place[0][term.place // 3] * by_place[1][term.place % 3]


def over_rows(weights: Weighted, columns: Sequence[Column], rows: Sequence[dict[str, int | None]] = ROWS) -> Fraction:
    return sum((weight * added(term, row, columns) for weight, term in weights for row in rows), start=Fraction(0))


def count(value: Expr | None = None) -> Term:
    return Term("", TermKind.COUNT, value, None, 1)


def total(value: Column, centre: int | Fraction) -> Term:
    return replace(summed(value, None, False)[0], centre=float(centre))


def first_of(weights: Iterable[Weighted]) -> Weighted:
    return next(iter(weights))


# --- counts of rows -------------------------------------------------------------------------------------------------


def test_the_two_ends_of_a_set_differ_by_its_width_for_each_row() -> None:
    weights = first_of(counts_of_sets(ends(X), count(X)))
    assert over_rows(weights, [X]) == len(ROWS)
    assert weights[0][0] == Fraction(1, 10) == -weights[1][0]


def test_the_three_squares_add_up_to_the_square_of_the_width_for_each_row() -> None:
    weights = first_of(counts_of_sets(squares(X), count(X)))
    assert over_rows(weights, [X]) == len(ROWS) and len(weights) == 3


@pytest.mark.parametrize("made", [ends, squares])
def test_all_rows_follow_from_a_set_that_has_a_part_of_each(made: Callable[..., list[StoredTerm]]) -> None:
    assert over_rows(first_of(counts_of_sets(made(X, everything=True), count())), [X]) == len(ROWS)
    assert list(counts_of_sets(made(X), count())) == []


def test_all_rows_follow_from_those_with_a_value_and_those_without() -> None:
    rows = [*ROWS, {"x": None, "y": 5}, {"x": None, "y": 6}]
    for made, of, name in ((ends, "ends", "ends"), (squares, "squares", "t0")):
        set_and_missing = [*made(GAPS, name), missing(GAPS, of, name)]
        weights = first_of(counts_of_sets(set_and_missing, count()))
        assert over_rows(weights, [GAPS], rows) == len(rows)
        with_value = first_of(counts_of_sets(set_and_missing, count(GAPS)))
        assert over_rows(with_value, [GAPS], rows) == len(ROWS)


def test_rows_with_a_value_do_not_follow_where_rows_without_one_are_read_as_the_lower_end() -> None:
    absent = ends(GAPS, absent=True, everything=True)
    assert list(counts_of_sets(absent, count(GAPS))) == []
    assert len(first_of(counts_of_sets(absent, count()))) == 2


def test_a_count_of_values_follows_from_a_set_of_the_same_value_alone() -> None:
    wider, computed = integers("x", -3, 8), call("add", X, X)
    for made in (ends, squares):
        for other in (Y, Z, wider, computed, REAL, DAY, Column("x", Facts(Type.INTEGER))):
            assert list(counts_of_sets(made(X, everything=True), count(other))) == []


def test_each_set_that_is_stored_gives_the_count_apart_from_others() -> None:
    both = [*ends(X, "t0", everything=True), *ends(Y, "t1", everything=True), *squares(X, "t2", everything=True)]
    found = list(counts_of_sets(both, count()))
    assert [{term.shares for _, term in weights} for weights in found] == [{"t0"}, {"t1"}, {"t2"}]
    of_x = list(counts_of_sets(both, count(X)))
    assert [{term.shares for _, term in weights} for weights in of_x] == [{"t0"}, {"t2"}]


def test_sums_that_share_nothing_and_half_of_a_set_give_no_count() -> None:
    alone = [replace(term, shares="") for term in ends(X, everything=True)]
    assert list(counts_of_sets(alone, count())) == []
    assert list(counts_of_sets(ends(X, everything=True)[:1], count())) == []
    assert list(counts_of_sets([], count(X))) == []


def test_a_count_of_rows_without_a_value_follows_from_one_in_squared_steps() -> None:
    """One in steps of W from one in steps of W^2, and from nothing else."""
    in_squares, in_ends = missing(GAPS, "squares"), missing(GAPS, "ends")
    wanted = Term("", TermKind.COUNT, None, call("is_null", GAPS), 10, shares="s")
    (weights,) = counts_of_sets([in_squares], wanted)
    assert weights == [(Fraction(1, 10), in_squares)]
    assert list(counts_of_sets([in_ends, *ends(X, everything=True)], wanted)) == []


# --- sums from squares ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [-3, 0, 2, 7, Fraction(5, 2), 100])
def test_a_sum_around_any_centre_follows_from_squares(centre: int | Fraction) -> None:
    weights = sum_of_squares(squares(X), total(X, centre))
    assert over_rows(weights, [X]) == sum(Fraction(row["x"] or 0) - centre for row in ROWS)
    assert len(weights) == (2 if centre in (-3, 7, 2) else 3), "parts without a weight are left out"


def test_a_sum_does_not_follow_from_squares_of_another_value_or_of_fewer_parts() -> None:
    for place in range(3):
        parts = squares(X)
        del parts[place]
        assert sum_of_squares(parts, total(X, 0)) == []
    assert sum_of_squares(squares(X), total(Y, 0)) == sum_of_squares(squares(X), total(integers("x", -3, 8), 0)) == []
    assert sum_of_squares(ends(X), total(X, 0)) == sum_of_squares([], total(X, 0)) == []


def test_other_kinds_of_sums_do_not_follow_from_squares() -> None:
    wanted = total(X, 0)
    for other in (
        replace(wanted, clip=Clip(9)),
        replace(wanted, kind=TermKind.DISTINCT_SUM),
        replace(wanted, kind=TermKind.COUNT),
        replace(wanted, value=None),
    ):
        assert sum_of_squares(squares(X), other) == []


def test_a_sum_in_which_a_missing_value_is_zero_follows_only_where_none_can_be_missing() -> None:
    assert not can_be_missing(X) and can_be_missing(GAPS)
    assert len(sum_of_squares(squares(X), replace(total(X, 0), absent=True))) == 3
    assert sum_of_squares(squares(GAPS), replace(total(GAPS, 0), absent=True)) == []
    assert len(sum_of_squares(squares(GAPS), total(GAPS, 0))) == 3


def test_dates_have_bounds_and_no_sums() -> None:
    term = Term("", TermKind.SUM, DAY, None, 8)
    assert sum_of_squares(squares(X), term) == [] and list(parts_of_pairs(pairs(), replace(term, value=DAY))) == []


# --- pairs ----------------------------------------------------------------------------------------------------------


def products(shares: str = "p") -> list[StoredTerm]:
    return in_set(product_parts((X, Y), None), shares)


def pairs(shares: str = "p") -> list[StoredTerm]:
    return in_set(pair_parts((X, Y), None), shares)


@pytest.mark.parametrize("place", range(4))
def test_each_part_of_a_product_follows_from_the_squares_of_the_pair(place: int) -> None:
    """With q and r the distances from the lower bounds: the part multiplies q or V - q by r or W - r."""
    wanted = product_parts((X, Y), None)[place]
    weights = product_of_squares(pairs(), wanted)
    expected = sum(
        (Fraction(row["x"] or 0) + 3 if place & 1 else 7 - Fraction(row["x"] or 0))
        * (Fraction(row["y"] or 0) - 5 if place & 2 else 9 - Fraction(row["y"] or 0))
        for row in ROWS
    )
    assert over_rows(weights, [X, Y]) == expected
    assert len(weights) == 4, "parts without a weight are left out"


def test_products_follow_from_all_squares_of_the_same_pair_alone() -> None:
    wanted = product_parts((X, Y), None)[3]
    for place in range(9):
        parts = pairs()
        del parts[place]
        assert product_of_squares(parts, wanted) == []
    assert product_of_squares(pairs(), product_parts((X, Z), None)[3]) == []
    assert product_of_squares(products(), wanted) == []
    assert product_of_squares(pairs(), replace(wanted, kind=TermKind.SUM)) == []
    assert product_of_squares(pairs(), replace(wanted, value=X)) == []


@pytest.mark.parametrize("made", [products, pairs])
def test_counts_and_sums_of_either_number_follow_from_a_stored_pair(made: Callable[[], list[StoredTerm]]) -> None:
    stored_pair = made()
    for value in (None, X, Y):
        weights = first_of(parts_of_pairs(stored_pair, count(value)))
        assert over_rows(weights, [X, Y]) == len(ROWS) and len(weights) == len(stored_pair)
    for column in (X, Y):
        for centre in (column.facts.lower, column.facts.upper, Fraction(1, 2)):
            weights = first_of(parts_of_pairs(stored_pair, total(column, centre)))
            expected = sum(Fraction(row[column.name] or 0) - centre for row in ROWS)
            assert over_rows(weights, [X, Y]) == expected
            assert all(weight for weight, _ in weights)


@pytest.mark.parametrize("place", range(3))
def test_squares_of_either_number_follow_from_the_squares_of_a_pair_alone(place: int) -> None:
    for column in (X, Y):
        wanted = square_parts(column, None)[place]
        weights = first_of(parts_of_pairs(pairs(), wanted))
        width = column.facts.upper - column.facts.lower
        expected = sum(parts_of_square(column, row, width)[place] for row in ROWS)
        assert over_rows(weights, [X, Y]) == expected and len(weights) == 3
        assert list(parts_of_pairs(products(), wanted)) == []


def test_squares_of_a_real_are_scaled_to_the_width_that_its_own_grid_has() -> None:
    """In a pair it has fewer bits than alone, so its bounds are rounded to another width."""
    real = Column("r", Facts(Type.REAL, Fraction(0), Fraction(1, 10)))
    other = Column("o", Facts(Type.REAL, Fraction(0), Fraction(8)))
    of_pair = in_set(pair_parts((real, other), None), "p")
    alone, within_pair = squares(real)[0].width, of_pair[0].factors[0].width
    assert alone is not None and alone != within_pair
    for place, wanted in enumerate(square_parts(real, None)):
        weights = first_of(parts_of_pairs(of_pair, wanted))
        assert [term.place for _, term in weights] == [3 * place, 3 * place + 1, 3 * place + 2]
        assert {weight for weight, _ in weights} == {(alone / within_pair) ** 2 / 8**2}


def test_other_values_and_other_kinds_do_not_follow_from_a_pair() -> None:
    for stored_pair in (products(), pairs()):
        for term in (
            count(Z),
            count(integers("x", -3, 8)),
            count(DAY),
            total(Z, 0),
            replace(total(X, 0), clip=Clip(9)),
            replace(count(), clip=Clip(9)),
            replace(count(), shares="s"),
            replace(total(X, 0), kind=TermKind.DISTINCT_SUM),
            replace(count(), kind=TermKind.UNITS),
        ):
            assert list(parts_of_pairs(stored_pair, term)) == [], term
    assert list(parts_of_pairs([*ends(X), *squares(X, "t1")], count())) == []


def test_a_missing_value_that_is_zero_is_in_no_pair() -> None:
    of_gaps = in_set(pair_parts((GAPS, Y), None), "p")
    assert len(first_of(parts_of_pairs(of_gaps, total(GAPS, 0)))) == 9
    assert list(parts_of_pairs(of_gaps, replace(total(GAPS, 0), absent=True))) == []
    assert len(first_of(parts_of_pairs(pairs(), replace(total(X, 0), absent=True)))) == 9


def test_every_pair_that_is_stored_gives_the_count() -> None:
    found = list(parts_of_pairs([*products("p"), *pairs("q")], count(X)))
    assert [{term.shares for _, term in weights} for weights in found] == [{"p"}, {"q"}]
