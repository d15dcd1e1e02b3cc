"""What an expression may be, given what its columns may be: no value is missing, and where little is possible little is claimed.

`test_key_narrowing` tries random expressions; here every rule stands by itself, with the ends at which it changes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from itertools import product
from typing import Any

import pytest

from dpsql.functions.evaluate import evaluate
from dpsql.functions.possible_values import ANYTHING, MOST_LISTED, Possible, follows_order, possible, single
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue

INT, J = Column("i", Facts(Type.INTEGER)), Column("j", Facts(Type.INTEGER))
R = Column("r", Facts(Type.REAL))
T, U = Column("t", Facts(Type.TEXT)), Column("u", Facts(Type.TEXT))
B, C = Column("b", Facts(Type.BOOLEAN)), Column("c", Facts(Type.BOOLEAN))
D, S = Column("d", Facts(Type.DATE)), Column("s", Facts(Type.TIMESTAMP))
NAN = math.nan


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


def listed(*values: Any) -> Possible:
    return Possible(frozenset(value for value in values if value is not None), null=None in values)


def between(lower: Any, upper: Any, *, null: bool = False, excluded: frozenset[Any] = frozenset()) -> Possible:
    return Possible(None, lower, upper, null, excluded)


def of(expression: Expr, **columns: Possible) -> Possible:
    return possible(expression, columns)


NULL = listed(None)
TRUE, FALSE, EITHER = listed(True), listed(False), listed(True, False)
ALL_THREE = listed(True, False, None)


# --- sets of values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "inside", "outside"),
    [
        (listed(1, 2), [1, 2], [0, 3, None]),
        (listed(1, None), [1, None], [2]),
        (NULL, [None], [0, "", False]),
        (between(1, 3), [1, 2, 3], [0, 4, None]),
        (between(1, 3, null=True), [1, None], [0]),
        (between(None, 3), [-(10**9), 3], [4, None]),
        (between(1, None), [1, 10**9, NAN], [0, None]),
        (between(1.0, 3.0), [1.0, 3.0], [NAN, math.inf]),
        (between(1, 5, excluded=frozenset({3})), [2, 4], [3, 0]),
        (ANYTHING, [0, "x", None, NAN], []),
    ],
)
def test_a_set_holds_its_values_both_ends_and_null_where_it_may_be(
    cell: Possible, inside: list[Any], outside: list[Any]
) -> None:
    assert [cell.holds(value) for value in inside] == [True] * len(inside)
    assert [cell.holds(value) for value in outside] == [False] * len(outside)


def test_ends_are_those_of_the_list_or_of_the_interval() -> None:
    assert listed(3, 1, 2).ends == (1, 3) and listed("b", "a", None).ends == ("a", "b")
    assert between(1, None).ends == (1, None) and ANYTHING.ends == (None, None)
    assert listed(1.0, NAN).ends == (None, None), "NaN stands in no order of Python's"
    assert NULL.never and not listed(1).never and not between(1, 1).never and not ANYTHING.never


def test_few_values_are_listed_with_null_among_them() -> None:
    assert set(listed(1, 2, None).listed or ()) == {1, 2, None} and listed(1).listed == (1,)
    assert len(listed(*range(MOST_LISTED - 1)).listed or ()) == MOST_LISTED - 1
    assert listed(*range(MOST_LISTED)).listed is None and between(1, 2).listed is None


# --- columns and constants ------------------------------------------------------------------------------------------


def test_a_column_may_be_what_is_known_of_it_or_anything_of_its_type() -> None:
    assert of(INT, i=listed(4)) == listed(4)
    assert of(INT) == ANYTHING and of(INT, j=listed(4)) == ANYTHING
    assert of(B) == ALL_THREE
    assert of(literal(4)) == listed(4) and of(literal(None)) == NULL == single(None)
    assert of(ReleasedValue("v", Facts(Type.INTEGER))) == ANYTHING


# --- images ---------------------------------------------------------------------------------------------------------


def test_few_combinations_are_evaluated_each_and_missing_ones_are_null() -> None:
    assert of(call("add", INT, J), i=listed(1, 2), j=listed(10, 20)) == listed(11, 12, 21, 22)
    assert of(call("add", INT, J), i=listed(1, None), j=listed(10)) == listed(11, None)
    assert of(call("div", INT, J), i=listed(6), j=listed(0, 3)) == listed(2.0, None), "no value where the divisor is 0"
    assert of(call("upper", T), t=listed("a", "A", "b")) == listed("A", "B")


def test_what_reads_only_null_is_null_unless_a_function_passes_it_over() -> None:
    for expression in (call("add", INT, J), call("upper", T), call("like", T, literal("a%")), call("eq", INT, J)):
        assert of(expression, i=NULL, t=NULL) == NULL
    assert of(call("greatest", INT, J), i=NULL, j=listed(3)) == listed(3)
    assert of(call("concat_ws", literal(","), T, U), t=NULL, u=listed("x")) == listed("x")


def test_many_combinations_are_not_evaluated() -> None:
    eight = listed(*range(8))
    assert of(call("mod", INT, J), i=eight, j=eight).values is not None
    assert of(call("mod", INT, J), i=eight, j=listed(*range(9))).values is None
    assert of(call("starts_with", T, literal("a"))) == ALL_THREE
    assert of(call("starts_with", T, literal("a")), t=between("a", "b")) == EITHER, "a strict function of no NULL"


# --- functions that keep or turn the order ----------------------------------------------------------------------------

MONOTONE: list[tuple[Expr, dict[str, Possible], Possible]] = [
    (call("add", INT, literal(5)), {"i": between(1, 9)}, between(6, 14)),
    (call("add", literal(5), INT), {"i": between(1, 9)}, between(6, 14)),
    (call("sub", INT, literal(5)), {"i": between(1, 9)}, between(-4, 4)),
    (call("sub", literal(5), INT), {"i": between(1, 9)}, between(-4, 4)),
    (call("sub", literal(5), INT), {"i": between(1, 6)}, between(-1, 4)),
    (call("neg", INT), {"i": between(1, 9)}, between(-9, -1)),
    (call("mul", INT, literal(3)), {"i": between(1, 9)}, between(3, 27)),
    (call("mul", literal(-3), INT), {"i": between(1, 9)}, between(-27, -3)),
    (call("div", INT, literal(2)), {"i": between(1, 9)}, between(0.5, 4.5)),
    (call("div", INT, literal(-2)), {"i": between(1, 9)}, between(-4.5, -0.5)),
    (call("intdiv", INT, literal(2)), {"i": between(1, 9)}, between(0, 4)),
    (call("date_part", literal("year"), D), {"d": between(date(2023, 5, 1), date(2024, 2, 1))}, between(2023, 2024)),
    (call("date_part", literal("month"), D), {"d": between(date(2024, 2, 9), date(2024, 5, 1))}, between(2, 5)),
    (call("date_part", literal("day"), D), {"d": between(date(2024, 2, 9), date(2024, 2, 11))}, between(9, 11)),
    (
        call("date_part", literal("hour"), S),
        {"s": between(datetime(2024, 1, 1, 3), datetime(2024, 1, 1, 5))},
        between(3, 5),
    ),
    (
        call("date_trunc", literal("month"), D),
        {"d": between(date(2024, 2, 9), date(2024, 4, 1))},
        between(date(2024, 2, 1), date(2024, 4, 1)),
    ),
    (call("add", INT, literal(5)), {"i": between(1, 9, null=True)}, between(6, 14, null=True)),
    (call("mul", R, literal(2)), {"r": between(1.0, None)}, between(2.0, None)),
    (call("neg", R), {"r": between(1.0, 3.0)}, between(-3.0, -1.0)),
]


@pytest.mark.parametrize(("expression", "columns", "image"), MONOTONE)
def test_an_interval_becomes_the_interval_between_the_images_of_its_ends(
    expression: Expr, columns: Mapping[str, Possible], image: Possible
) -> None:
    assert possible(expression, columns) == image


NOT_MONOTONE: list[tuple[Expr, dict[str, Possible]]] = [
    (call("mul", INT, literal(0)), {"i": between(1, 9)}),
    (call("mod", INT, literal(3)), {"i": between(1, 9)}),
    (call("mul", INT, J), {"i": between(1, 9), "j": between(1, 9)}),
    (call("add", INT, J), {"i": between(1, 9), "j": listed(1, None)}),
    (call("div", literal(1), INT), {"i": between(1, 9)}),
    (call("div", literal(1), INT), {"i": listed(*range(-80, 0))}),
    (call("date_part", literal("month"), D), {"d": between(date(2023, 12, 9), date(2024, 1, 1))}),
    (call("date_part", literal("day"), D), {"d": between(date(2024, 1, 31), date(2024, 2, 1))}),
    (call("date_part", literal("day"), D), {"d": between(None, date(2024, 2, 1))}),
    (call("date_part", literal("week"), D), {"d": between(date(2024, 1, 8), date(2024, 1, 16))}),
    (call("upper", T), {"t": between("a", "b")}),
    (call("abs", INT), {"i": between(-1, 9)}),
]


@pytest.mark.parametrize(("expression", "columns"), NOT_MONOTONE)
def test_a_function_that_may_turn_back_within_an_interval_has_no_ends(
    expression: Expr, columns: Mapping[str, Possible]
) -> None:
    found = possible(expression, columns)
    assert (found.values, found.lower, found.upper) == (None, None, None)


def test_results_that_may_be_missing_may_be_null() -> None:
    """Beyond 64 bits or the calendar, and where an end is not known, as it may be there."""
    last = 2**63 - 1
    plus_one = call("add", INT, literal(1))
    assert of(plus_one, i=between(0, last - 1)) == between(1, last)
    assert of(plus_one, i=between(0, last)).null and of(plus_one, i=between(0, last)).upper is None
    assert of(plus_one, i=between(0, None)).null
    assert not of(call("add", R, literal(1)), r=between(0.0, None)).null
    assert not of(call("date_trunc", literal("day"), D), d=between(date(2024, 1, 1), None)).null
    tomorrow = call("add_days", D, literal(1))
    assert of(tomorrow, d=between(date(2024, 1, 1), date.max)).null
    assert not of(tomorrow, d=between(date(2024, 1, 1), date(2024, 1, 2))).null


def test_nan_is_above_all_numbers_and_stays() -> None:
    assert of(call("neg", R), r=between(1.0, None)).holds(NAN), (
        "a real without an upper end may be NaN, and so may its negative"
    )
    assert of(call("mul", R, literal(-2)), r=between(1.0, None)).holds(NAN)
    assert of(call("sub", R, literal(2)), r=between(1.0, None)).holds(NAN)


def test_a_moved_timestamp_at_the_end_of_a_month_may_be_at_any_time_of_that_day() -> None:
    moved = call("add_months", S, literal(-1))
    found = of(moved, s=between(datetime(2024, 3, 30, 4), datetime(2024, 3, 31, 1)))
    assert found.holds(datetime(2024, 2, 29, 23)) and found.holds(datetime(2024, 2, 29, 0))
    assert not found.holds(datetime(2024, 3, 1)) and not found.holds(datetime(2024, 2, 28, 23))


DAY_TEXT = [
    ("%Y-%m", date(2024, 2, 1), date(2024, 2, 29), "2024-02"),
    ("%Y", date(2024, 1, 1), date(2024, 12, 31), "2024"),
    ("%m", date(2024, 2, 1), date(2024, 2, 2), "02"),
    ("%H", date(2024, 2, 1), date(2024, 2, 1), "00"),
    ("%M", datetime(2024, 2, 1, 3, 5), datetime(2024, 2, 1, 3, 5, 59), "05"),
]


@pytest.mark.parametrize(("form", "low", "high", "text"), DAY_TEXT)
def test_a_text_of_moments_in_one_of_its_units_is_one_text(form: str, low: Any, high: Any, text: str) -> None:
    column = S if isinstance(low, datetime) else D
    written = call("strftime", column, literal(form))
    assert possible(written, {column.name: between(low, high)}) == listed(text)
    assert possible(written, {column.name: between(low, high, null=True)}) == listed(text, None)


def test_texts_of_moments_stand_in_the_order_of_time_where_large_units_come_first() -> None:
    days = between(date(2024, 1, 31), date(2024, 3, 1))
    assert of(call("strftime", D, literal("%Y-%m")), d=days) == between("2024-01", "2024-03")
    assert of(call("strftime", D, literal("in %Y, %m/%d")), d=days) == between("in 2024, 01/31", "in 2024, 03/01")
    years = between(date(2023, 12, 31), date(2024, 3, 1))
    for form in ("%m-%Y", "%d", "%Y-%d", "%y", "%Y-%B"):
        assert of(call("strftime", D, literal(form)), d=years).ends == (None, None)


# --- logic ----------------------------------------------------------------------------------------------------------

STATES = {
    "T": TRUE,
    "F": FALSE,
    "N": NULL,
    "TF": EITHER,
    "TN": listed(True, None),
    "FN": listed(False, None),
    "TFN": ALL_THREE,
}


@pytest.mark.parametrize("left", STATES)
@pytest.mark.parametrize("right", STATES)
def test_and_and_or_are_true_or_false_exactly_where_their_arguments_allow_it(left: str, right: str) -> None:
    cells = {"b": STATES[left], "c": STATES[right]}
    for word in ("and", "or"):
        expression = call(word, B, C)
        pairs = product(cells["b"].listed or (), cells["c"].listed or ())
        outcomes = {evaluate(expression, {"b": b, "c": c}) for b, c in pairs}
        found = possible(expression, cells)
        assert set(found.listed or ()) >= outcomes, word
        assert found.holds(True) is (True in outcomes) and found.holds(False) is (False in outcomes), word
        assert word == "and" or found == listed(*outcomes)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("word", ["not", "is_null", "is_true", "is_false"])
def test_tests_of_one_condition_have_exactly_the_outcomes_that_it_allows(word: str, state: str) -> None:
    expression = call(word, B)
    outcomes = {evaluate(expression, {"b": value}) for value in STATES[state].listed or ()}
    assert of(expression, b=STATES[state]) == listed(*outcomes)


# --- comparisons ----------------------------------------------------------------------------------------------------

COMPARED = {"eq", "ne", "lt", "le", "gt", "ge"}
CELLS = {
    "2": listed(2), "1,3": listed(1, 3), "2,3": listed(2, 3), "1..2": between(1, 2), "2..4": between(2, 4), "3..4": between(3, 4),
    "..2": between(None, 2), "3..": between(3, None), "1..3 but 2": between(1, 3, excluded=frozenset({2})),
}  # fmt: skip
SMALL = range(-2, 8)


@pytest.mark.parametrize("left", CELLS)
@pytest.mark.parametrize("right", CELLS)
def test_a_comparison_is_only_what_some_pair_of_values_makes_it(left: str, right: str) -> None:
    """Never less; and no more, but for equality of values that are not listed."""
    a, b = CELLS[left], CELLS[right]
    pairs = [(i, j) for i in SMALL for j in SMALL if a.holds(i) and b.holds(j)]
    for word in sorted(COMPARED):
        expression = call(word, INT, J)
        outcomes = {evaluate(expression, {"i": i, "j": j}) for i, j in pairs}
        found = of(expression, i=a, j=b)
        assert set(found.listed or ()) >= outcomes, word
        listed_ones = a.values is not None or b.values is not None
        if (word in ("eq", "ne") and not listed_ones) or "but" in left + right:
            continue
        assert set(found.listed or ()) == outcomes, word


@pytest.mark.parametrize("word", sorted(COMPARED))
def test_a_comparison_with_what_may_be_null_may_be_null(word: str) -> None:
    assert of(call(word, INT, J), i=listed(1, None), j=listed(2)).null
    assert of(call(word, INT, J), i=listed(1), j=between(2, 3, null=True)).null
    assert not of(call(word, INT, J), i=listed(1), j=listed(2)).null
    assert of(call(word, INT, J), i=NULL, j=listed(2)) == NULL == of(call(word, INT, J), i=listed(2), j=NULL)


def test_an_excluded_value_equals_nothing_in_the_set() -> None:
    cell = between(1, 9, excluded=frozenset({4, 5}))
    assert of(call("eq", INT, literal(4)), i=cell) == FALSE == of(call("eq", literal(5), INT), i=cell)
    assert of(call("eq", INT, literal(6)), i=cell) == EITHER
    assert of(call("in", INT, literal(4), literal(5)), i=cell) == FALSE


IN_LIST: list[tuple[Possible, list[Any], Possible]] = [
    (listed(1), [1, 2], TRUE),
    (listed(3), [1, 2], FALSE),
    (listed(1, 3), [1, 2], EITHER),
    (listed(3), [1, None], NULL),
    (listed(1), [1, None], TRUE),
    (listed(1, 3), [1, None], listed(True, None)),
    (listed(1, None), [1], listed(True, None)),
    (NULL, [1], NULL),
    (between(3, 9), [1, 2], FALSE),
    (between(2, 9), [1, 2], EITHER),
]


@pytest.mark.parametrize(("cell", "items", "outcomes"), IN_LIST)
def test_a_value_is_in_a_list_as_sql_says(cell: Possible, items: list[Any], outcomes: Possible) -> None:
    assert of(call("in", INT, *map(literal, items)), i=cell) == outcomes


@pytest.mark.parametrize(
    ("a", "b", "outcomes"),
    [
        (NULL, NULL, TRUE),
        (NULL, listed(1), FALSE),
        (listed(1), listed(1), TRUE),
        (listed(1), listed(2), FALSE),
        (listed(1, None), listed(1), EITHER),
        (listed(1, None), listed(2), FALSE),
        (listed(1, None), listed(2, None), EITHER),
        (listed(1, None), NULL, EITHER),
        (between(1, 5), listed(7), FALSE),
    ],
)
def test_null_is_not_distinct_from_null_and_the_test_itself_is_never_null(
    a: Possible, b: Possible, outcomes: Possible
) -> None:
    assert of(call("not_distinct", INT, J), i=a, j=b) == outcomes == of(call("not_distinct", J, INT), i=a, j=b)


# --- one of several -------------------------------------------------------------------------------------------------


def case(*parts: Expr) -> Call:
    return call("case", *parts)


def test_a_case_is_one_of_the_results_whose_conditions_may_hold() -> None:
    expression = case(B, literal(1), C, literal(2), literal(3))
    assert of(expression) == listed(1, 2, 3)
    assert of(expression, b=FALSE) == listed(2, 3) == of(expression, b=NULL) == of(expression, b=listed(False, None))
    assert of(expression, b=TRUE) == listed(1)
    assert of(expression, b=listed(True, None)) == listed(1, 2, 3)
    assert of(expression, b=FALSE, c=TRUE) == listed(2)
    assert of(expression, b=EITHER, c=TRUE) == listed(1, 2)
    assert of(case(B, literal(1), literal(None)), b=EITHER) == listed(1, None)


def test_the_results_of_a_case_are_of_its_type() -> None:
    expression = case(B, literal(1), R)
    found = of(expression, b=EITHER, r=listed(2.5))
    assert found == listed(1.0, 2.5) and all(type(value) is float for value in found.values or ())


def test_results_that_are_intervals_are_held_by_one_interval() -> None:
    expression = case(B, INT, J)
    assert of(expression, b=EITHER, i=between(1, 2), j=between(5, 9)) == between(1, 9)
    assert of(expression, b=EITHER, i=between(1, 2), j=listed(7)) == between(1, 7)
    assert of(expression, b=EITHER, i=between(1, None), j=listed(0)) == between(0, None)
    assert of(expression, b=EITHER, i=between(None, 1), j=between(3, 4)) == between(None, 4)
    assert of(expression, b=EITHER, i=between(1, 2), j=NULL) == between(1, 2, null=True)
    assert of(expression, b=EITHER, i=between(1, 2, null=True), j=between(3, 4)).null


def test_a_coalesce_is_the_first_that_is_not_null() -> None:
    expression = call("coalesce", INT, J)
    assert of(expression, i=listed(1), j=listed(2)) == listed(1)
    assert of(expression, i=listed(1, None), j=listed(2)) == listed(1, 2)
    assert of(expression, i=listed(1, None), j=listed(2, None)) == listed(1, 2, None)
    assert of(expression, i=NULL, j=listed(2)) == listed(2)
    assert of(expression, i=NULL, j=NULL) == NULL


def test_a_nullif_may_be_null_and_otherwise_is_its_first_argument() -> None:
    assert of(call("nullif", INT, literal(1)), i=listed(1, 2)) == listed(1, 2, None)


# --- order ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "column"),
    [
        (INT, INT),
        (call("add", INT, literal(1)), INT),
        (call("sub", literal(1), call("mul", literal(-2), INT)), INT),
        (call("date_trunc", literal("month"), D), D),
        (call("date_part", literal("year"), call("add_days", D, literal(3))), D),
        (call("strftime", D, literal("%Y-%m")), D),
        (call("strftime", D, literal("%m-%Y")), None),
        (call("date_part", literal("month"), D), None),
        (call("add", INT, J), None),
        (call("mul", INT, literal(0)), None),
        (call("abs", INT), None),
        (call("add", call("abs", INT), literal(1)), None),
        (T, None),
        (literal(3), None),
        (call("add", literal(1), literal(2)), None),
    ],
)
def test_an_expression_rises_or_falls_with_one_column_or_with_none(expression: Expr, column: Column | None) -> None:
    assert follows_order(expression) == column
