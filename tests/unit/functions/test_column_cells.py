"""The cells of a column: every value that it may hold is in exactly one of them, and each literal stands apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.column_cells import MOST_POINTS, cut, named_cells, typed
from dpsql.functions.possible_values import Possible
from dpsql.plan.intervals import Facts, Type

INT, R, T, B, D, S = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP
NOON, TICK = datetime(2024, 1, 1, 12), timedelta(microseconds=1)
VALUES: dict[Type, list[Any]] = {
    INT: [-(2**63), -1, 0, 1, 2, 3, 4, 5, 6, 7, 2**63 - 1, None],
    R: [
        -math.inf,
        -1.0,
        0.0,
        math.nextafter(1.5, 0),
        1.5,
        math.nextafter(1.5, 2),
        2.0,
        3.0,
        1e300,
        math.inf,
        math.nan,
        None,
    ],
    T: ["", "a", "b", "é", None],
    B: [True, False, None],
    D: [date.min, date(2023, 12, 31), date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3), date.max, None],
    S: [datetime.min, NOON - TICK, NOON, NOON + TICK, datetime(2024, 1, 2), datetime.max, None],
}
CUTS: list[tuple[Facts, Sequence[Any]]] = [
    (Facts(INT), []),
    (Facts(INT), [3]),
    (Facts(INT), [3, 4, 6]),
    (Facts(INT), [Fraction(5, 2)]),
    (Facts(INT), [-(2**63), 2**63 - 1]),
    (Facts(INT), ["a", None, True, date(2024, 1, 1), math.inf]),
    (Facts(INT, Fraction(1), Fraction(4)), [2]),
    (Facts(INT, values=(1, 5, None)), []),
    (Facts(R), [1.5, 2.0]),
    (Facts(R), [Fraction(3, 2)]),
    (Facts(R, Fraction(0), Fraction(2)), [3]),
    (Facts(T), ["a", "b", 7]),
    (Facts(T, values=("b", "é")), ["a"]),
    (Facts(T), []),
    (Facts(B), [True]),
    (Facts(D), [date(2024, 1, 2)]),
    (Facts(D), [date(1, 1, 2), date(9999, 12, 30)]),
    (Facts(D), [date.min, date(2024, 1, 2), date.max]),
    (Facts(S), [datetime.min, datetime.max]),
    (Facts(D, date(2024, 1, 1), date(2024, 1, 2)), [datetime(2024, 1, 3, 4)]),
    (Facts(S), [NOON]),
    (Facts(S), [date(2024, 1, 2), NOON]),
    (Facts(S, NOON, datetime(2024, 1, 2)), []),
]
"""Facts of a column, and the literals of a query."""


def holding(cells: list[Possible], value: Any) -> list[Possible]:
    return [cell for cell in cells if cell.holds(value)]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("facts", "literals"), CUTS)
def test_every_value_is_in_exactly_one_cell(facts: Facts, literals: Sequence[Any], inside: bool) -> None:
    cells = cut(facts, literals, inside)
    assert [len(holding(cells, value)) for value in VALUES[facts.type]] == [1] * len(VALUES[facts.type])


@pytest.mark.parametrize(("facts", "literals"), CUTS)
def test_a_literal_and_null_have_cells_of_their_own(facts: Facts, literals: Sequence[Any]) -> None:
    cells = cut(facts, literals, False)
    for value in [*(point for literal in literals if (point := typed(literal, facts.type)) is not None), None]:
        (cell,) = holding(cells, value)
        assert cell.listed == (value,)


def test_there_are_no_more_cells_than_literals_make() -> None:
    assert len(cut(Facts(INT), [3], False)) == 4, "NULL, 3, below and above"
    assert len(cut(Facts(INT), [3, 4], False)) == 5, "nothing lies between 3 and 4"
    assert len(cut(Facts(INT), [3, 5], False)) == 6
    assert len(cut(Facts(R), [1.0, math.nextafter(1.0, 2)], False)) == 5
    assert len(cut(Facts(T), ["a", "b"], False)) == 4 and len(cut(Facts(B), [], False)) == 3
    assert len(cut(Facts(Type.NULL), [], True)) == 1


def test_with_the_policys_values_each_of_these_stands_apart() -> None:
    for facts, named in (
        (Facts(INT, Fraction(1), Fraction(4)), [1, 2, 3, 4]),
        (Facts(INT, values=(1, 5, None)), [1, 5]),
        (Facts(T, values=("b", "é")), ["b", "é"]),
        (Facts(D, date(2024, 3, 1), date(2024, 3, 2)), [date(2024, 1, 1), date(2024, 12, 31), date(2025, 1, 1)]),
        (Facts(S, NOON, NOON), [datetime(2024, 1, 1), datetime(2024, 12, 31)]),
    ):
        cells = cut(facts, [], True)
        assert all(holding(cells, value)[0].listed == (value,) for value in named)
        assert len(cut(facts, [], False)) < len(cells)


def test_more_values_than_are_cut_are_one_interval() -> None:
    within = cut(Facts(INT, Fraction(1), Fraction(MOST_POINTS)), [], True)
    assert len(within) == MOST_POINTS + 3
    assert len(cut(Facts(INT, Fraction(1), Fraction(MOST_POINTS + 1)), [], True)) == 2
    years = Facts(D, date(2000, 6, 1), date(2009, 6, 1))
    assert len(cut(years, [], True)) > 3_600
    assert len(cut(Facts(D, date(2000, 6, 1), date(2010, 6, 1)), [], True)) == 2
    assert len(cut(Facts(D, date(9999, 6, 1), date.max), [], True)) > 200, "the calendar ends there"


@pytest.mark.parametrize(
    ("value", "type_", "point"),
    [
        (3, INT, 3), (Fraction(5, 2), INT, 2), (Fraction(-5, 2), INT, -3), (2.5, INT, 2), (True, INT, None), ("3", INT, None), (None, INT, None),
        (math.inf, INT, None), (date(2024, 1, 1), INT, None), (3, R, 3.0), (Fraction(1, 10), R, 0.1), (math.nan, R, None),
        (False, R, None), ("a", T, "a"), (3, T, None), (None, T, None), (date(2024, 1, 1), D, date(2024, 1, 1)),
        (NOON, D, date(2024, 1, 1)), (3, D, None), ("2024-01-01", D, None), (NOON, S, NOON),
        (date(2024, 1, 1), S, datetime(2024, 1, 1)), (None, S, None),
    ],
)  # fmt: skip
def test_a_literal_is_a_point_of_the_columns_type_or_none(value: Any, type_: Type, point: Any) -> None:
    found = typed(value, type_)
    assert found == point and type(found) is type(point)


# --- values that the policy names -----------------------------------------------------------------------------------

NAMED: list[tuple[Facts, list[Any]]] = [
    (Facts(INT, Fraction(1), Fraction(4)), [1, 2, 3, 4, None]),
    (Facts(INT, Fraction(1), Fraction(4), nullable=False), [1, 2, 3, 4]),
    (Facts(INT, values=(1, 5)), [1, 5, None]),
    (Facts(INT, values=(1, 5, None), nullable=False), [1, 5, None]),
    (Facts(INT, values=(1, 5), nullable=False), [1, 5]),
    (Facts(INT), [None]),
    (Facts(T, values=("b", "é"), nullable=False), ["b", "é"]),
    (Facts(T), [None]),
    (Facts(B, nullable=False), [True, False]),
    (Facts(B), [True, False, None]),
    (Facts(D, date(2024, 1, 1), date(2024, 1, 2)), [date(2024, 1, 1), date(2024, 1, 2), None]),
    (Facts(S, NOON, NOON + TICK, nullable=False), [NOON, NOON + TICK]),
    (
        Facts(R, Fraction(0), Fraction(2), nullable=False),
        [0.0, math.nextafter(1.5, 0), 1.5, math.nextafter(1.5, 2), 2.0],
    ),
]
LITERALS: dict[Type, list[Sequence[Any]]] = {
    INT: [[], [2], [0, 5], [3, 9]], R: [[], [1.5], [-1, 3]], T: [[], ["a"], ["b"]], B: [[], [True]],
    D: [[], [date(2024, 1, 1)], [date(2023, 12, 31)]], S: [[], [NOON]],
}  # fmt: skip


@pytest.mark.parametrize(("facts", "named"), NAMED)
def test_each_value_is_in_one_cell_that_says_whether_the_policy_names_it(facts: Facts, named: list[Any]) -> None:
    for literals in LITERALS[facts.type]:
        cells = named_cells(facts, literals)
        for value in VALUES[facts.type]:
            (within,) = [within for cell, within in cells if cell.holds(value)]
            assert within is (value in named), (value, literals)


def test_listed_values_that_no_literal_names_share_a_cell() -> None:
    facts = Facts(T, values=("a", "b", "c", "d"), nullable=False)
    cells = [cell for cell, within in named_cells(facts, ["b", "x"]) if within]
    assert sorted(sorted(cell.values or ()) for cell in cells) == [["a", "c", "d"], ["b"]]
    assert len(named_cells(Facts(INT, Fraction(0), Fraction(10**9)), [5])) <= 9
