"""Formulas are trees of the written arithmetic, equal if they mean the same, and rebuilt part by part."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import date as date_type
from datetime import datetime
from typing import Any

import pytest

from dpsql.plan.formulas import (
    Deviation,
    Element,
    Estimate,
    Formula,
    NoisyValue,
    Number,
    Operand,
    Operation,
    Operator,
    ReleasedNumber,
    date,
    estimated,
    formula,
    greatest,
    least,
    null_if,
    plugged_in,
    settled,
    shrinks,
    square_root,
    substituted,
    terms_of,
    timestamp,
    waits,
    weights_of,
    whole,
    within,
)

A, B, C = NoisyValue("a"), NoisyValue("b"), NoisyValue("c")
R = ReleasedNumber("r")
TWO = Number(2.0)
DEEP: dict[str, Callable[[Formula], Formula]] = {
    "itself": lambda part: part,
    "operand": lambda part: null_if(B, part / 2),
    "list": lambda part: Element(("x", "y"), part + 1),
    "deviation": lambda part: Deviation(B - part),
    "plug-in": lambda part: Estimate(part, B) * 2,
    "shrunk": lambda part: Estimate(B, -part),
    "estimate of a list": lambda part: whole(Element((1, 2), Estimate(B, least(B, part)))),
}
"""Formulas with a part in each place that a formula has."""
places = pytest.mark.parametrize("place", DEEP.values(), ids=DEEP.keys())


# --- arithmetic -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "operator_", "operands"),
    [
        (A + B, Operator.ADD, (A, B)),
        (A + 2, Operator.ADD, (A, TWO)),
        (2 + A, Operator.ADD, (TWO, A)),
        (A - B, Operator.SUBTRACT, (A, B)),
        (A - 2.0, Operator.SUBTRACT, (A, TWO)),
        (A * B, Operator.MULTIPLY, (A, B)),
        (2 * A, Operator.MULTIPLY, (TWO, A)),
        (A / B, Operator.DIVIDE, (A, B)),
        (-A, Operator.NEGATE, (A,)),
        (A.at_least(2), Operator.AT_LEAST, (A, TWO)),
        (A.below(B), Operator.LESS, (A, B)),
        (least(A, 2, B), Operator.LEAST, (A, TWO, B)),
        (greatest(A), Operator.GREATEST, (A,)),
        (square_root(A), Operator.SQUARE_ROOT, (A,)),
        (null_if(A, 2), Operator.NULL_IF, (A, TWO)),
        (whole(A), Operator.WHOLE, (A,)),
        (whole(2), Operator.WHOLE, (TWO,)),
        (date(A), Operator.DATE, (A,)),
        (timestamp(A), Operator.TIMESTAMP, (A,)),
        (R + 2, Operator.ADD, (R, TWO)),
        (Deviation(A) - 2, Operator.SUBTRACT, (Deviation(A), TWO)),
    ],
)
def test_what_is_written_is_the_operator_with_its_operands_in_order(
    written: Operation, operator_: Operator, operands: tuple[Formula, ...]
) -> None:
    assert written == Operation(operator_, operands)


def test_a_value_is_kept_within_both_ends() -> None:
    assert within(A, 1, 2) == least(greatest(A, 1), 2)


@pytest.mark.parametrize("value", [whole(A + 1), Element((1, 2), A)])
def test_what_is_whole_is_not_rounded_again(value: Formula) -> None:
    assert whole(value) is value


@pytest.mark.parametrize(("value", "expected"), [("a", A), (A, A), (2, TWO), (2.0, TWO), (True, Number(1.0))])
def test_texts_name_terms_and_numbers_are_numbers(value: Operand | str, expected: Formula) -> None:
    assert formula(value) == expected


def test_what_is_no_number_is_no_formula() -> None:
    unreadable: Any = None
    with pytest.raises(AssertionError):
        formula(unreadable)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="in a formula"):
        Number(value)
    with pytest.raises(ValueError, match="in a formula"):
        A + value


def test_a_number_is_a_double_with_one_zero() -> None:
    assert type(Number(3).value) is float and Number(2**53 + 1).value == 2.0**53
    assert math.copysign(1, Number(-0.0).value) == 1
    assert Number(-0.5).value == -0.5


# --- identity ---------------------------------------------------------------------------------------------------------


def test_equal_operations_have_equal_hashes_the_second_time_as_well() -> None:
    first, second = (A + B) * 2, (A + B) * 2
    assert first == second and first is not second
    assert [hash(first), hash(first)] == [hash(second), hash((Operator.MULTIPLY, (A + B, TWO)))]
    assert len({first, second, (B + A) * 2, (A - B) * 2}) == 3


def test_the_hash_that_is_kept_is_no_part_of_the_state() -> None:
    value = A + B
    hash(value)
    assert value.__getstate__() == {"operator": Operator.ADD, "operands": (A, B)}


LISTS: list[tuple[Any, ...]] = [
    (0, 1), (False, True), (0.0, 1.0), ("0", "1"), (date_type(2024, 1, 1),), (datetime(2024, 1, 1),), (1, 0), (0,),
]  # fmt: skip


@pytest.mark.parametrize("values", LISTS, ids=str)
def test_a_list_equals_lists_of_the_same_values_and_type_alone(values: tuple[Any, ...]) -> None:
    element = Element(values, A)
    assert [Element(further, A) == element for further in LISTS] == [further is values for further in LISTS]
    assert hash(Element(tuple(values), A)) == hash(element)
    assert element != Element(values, B) and element != (type(values[0]), values, A) and element != A


def test_lists_of_different_types_are_apart_in_a_set() -> None:
    assert len({Element(values, A) for values in LISTS}) == len(LISTS)


@pytest.mark.parametrize("values", [(), (1, "1"), (0, False), (1, 1.0), (None,), (None, 1), (b"x",), ((1,), (2,))])
def test_values_of_a_list_have_one_type_that_lists_have(values: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="no list of values of one type"):
        Element(values, A)


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [Number(1), R, R + 1, Deviation(R)])
def test_numbers_and_results_are_no_terms(value: Formula) -> None:
    assert terms_of(value) == frozenset()


@places
def test_terms_are_collected_and_replaced_in_every_place(place: Callable[[Formula], Formula]) -> None:
    value = place(A + C)
    fixed = terms_of(place(TWO))
    assert terms_of(value) == {"a", "c"} | fixed
    assert substituted(value, {"a": TWO, "b": B, "c": -A}) == place(TWO + -A)
    with pytest.raises(KeyError, match="c"):
        substituted(value, {"a": A, "b": B})


def test_what_is_put_in_place_of_a_term_is_not_replaced_again() -> None:
    assert substituted(A + B, {"a": B, "b": A}) == B + A
    assert substituted(R + 1, {}) == R + 1


# --- released numbers -------------------------------------------------------------------------------------------------


@places
def test_released_numbers_become_constants_in_every_place(place: Callable[[Formula], Formula]) -> None:
    value = place(R)
    assert waits(value) and not waits(place(A))
    assert settled(value, {"r": 2, "s": 3}) == place(TWO)
    assert settled(value, {"s": 3}) == value
    assert settled(place(A), {"r": 2}) == place(A)


def test_a_formula_that_waits_for_nothing_stays_the_very_same() -> None:
    value = (A + B) * 2
    assert settled(value, {"r": 2}) is value


def test_a_number_that_is_not_released_yet_is_still_waited_for() -> None:
    value = settled(R + ReleasedNumber("s"), {"s": -0.0})
    assert value == R + 0 and waits(value)
    assert not waits(settled(value, {"r": 7}))


# --- estimates --------------------------------------------------------------------------------------------------------


@places
def test_estimates_give_way_to_their_plug_in_formula_in_every_place(place: Callable[[Formula], Formula]) -> None:
    value = place(Estimate(A, C + 1))
    assert shrinks(value)
    rest = plugged_in(place(A))
    assert plugged_in(value) == rest and not shrinks(rest)


def test_an_estimate_of_an_estimate_gives_way_as_well() -> None:
    inner = Estimate(A, B)
    assert plugged_in(Estimate(inner + 1, C)) == A + 1
    assert estimated(Estimate(C, inner + 1), {"a": 1, "b": 0, "c": 0}) == A + 1
    assert estimated(Estimate(C, inner + 1), {"a": 0, "b": 1, "c": 0}) == B + 1


def test_a_formula_without_an_estimate_stays_the_very_same() -> None:
    value = Deviation(A) + B
    assert plugged_in(value) is value and not shrinks(value)


@pytest.mark.parametrize(
    ("deviations", "expected"),
    [
        ({"a": 0, "b": 0, "c": 0}, A - 1),
        ({"a": 0, "b": 1, "c": 0}, B * C - 1),
        ({"a": 0, "b": 0, "c": 1e-300}, B * C - 1),
        ({"a": 1, "b": 0, "c": 0}, A - 1),
    ],
)
def test_an_estimate_is_shown_where_its_terms_have_noise(deviations: dict[str, float], expected: Formula) -> None:
    assert estimated(Estimate(A, B * C) - 1, deviations) == expected


@pytest.mark.parametrize(
    ("linear", "expected"),
    [
        (A, 3.0),
        (A + B, 5.0),
        (A - B, 5.0),
        (-A, 3.0),
        (A * 2 - B, math.sqrt(36 + 16)),
        (A + A, 6.0),
        (A - A, 0.0),
        ((A + B) / 4, 1.25),
        (A - C, 3.0),
    ],
)
def test_the_noise_of_a_sum_is_the_root_of_the_squares_of_its_terms(linear: Formula, expected: float) -> None:
    value = estimated(Deviation(linear) + C, {"a": 3.0, "b": 4.0, "c": 0.0})
    assert isinstance(value, Operation) and value.operator is Operator.ADD and value.operands[1] == C
    (deviation, _) = value.operands
    assert isinstance(deviation, Number) and deviation.value == pytest.approx(expected, rel=1e-15)


def test_every_term_needs_its_noise_and_others_are_not_looked_up() -> None:
    with pytest.raises(KeyError, match="b"):
        estimated(A + B, {"a": 1.0})
    assert estimated(A, {"a": 1.0, "b": math.nan}) == A


def test_estimates_under_other_noise_are_others() -> None:
    value = Estimate(A, A * Deviation(A))
    assert [estimated(value, {"a": noise}) for noise in (1.0, 2.0, 0.0, -0.0)] == [A * 1, A * 2, A, A]


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linear", "weights"),
    [
        (A, {"a": 1.0}),
        (A + B, {"a": 1.0, "b": 1.0}),
        (A - B, {"a": 1.0, "b": -1.0}),
        (B - A, {"a": -1.0, "b": 1.0}),
        (-(A - B), {"a": -1.0, "b": 1.0}),
        (A + B - (A - C), {"a": 0.0, "b": 1.0, "c": 1.0}),
        (A * 3, {"a": 3.0}),
        (3 * A, {"a": 3.0}),
        (A / 4, {"a": 0.25}),
        ((A * 8 - B) / -2, {"a": -4.0, "b": 0.5}),
        (0 * A, {"a": 0.0}),
    ],
)
def test_weights_are_the_slopes_of_a_sum(linear: Formula, weights: dict[str, float]) -> None:
    assert weights_of(linear) == weights


@pytest.mark.parametrize(
    "value",
    [TWO, A + 1, A * B, A / B, TWO / A, R, Deviation(A), whole(A), least(A, B), null_if(A, B), A.below(B), Estimate(A, A)],
    ids=str,
)  # fmt: skip
def test_what_is_no_sum_of_terms_has_no_weights(value: Formula) -> None:
    with pytest.raises(ValueError, match="no sum of terms"):
        weights_of(value)


@pytest.mark.parametrize("apply", [operator.add, operator.sub], ids=["sum", "difference"])
def test_a_weight_is_what_the_sum_moves_by_when_one_term_moves(apply: Callable[[Any, Any], Any]) -> None:
    def evaluate(a: float, b: float, c: float) -> float:
        return float(apply(apply(a * 3, b / 4), -(c - a)))

    start = evaluate(5, 6, 7)
    slopes = {"a": evaluate(6, 6, 7) - start, "b": evaluate(5, 7, 7) - start, "c": evaluate(5, 6, 8) - start}
    assert weights_of(apply(apply(A * 3, B / 4), -(C - A))) == slopes
