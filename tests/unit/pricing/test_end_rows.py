"""ARG_MAX and ARG_MIN as measurements: each row's cell stands in the order of its value, then of its key, and a key costs its part."""

import math
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from dpsql.errors.exceptions import Refusal
from dpsql.functions.evaluate import evaluate
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.measurements import EndRows, RankHistogram
from dpsql.plan.plan import Call, Caps, Column, Expr, Literal, Measure
from dpsql.pricing.most_frequent import EndRowsPricing, requested_key
from dpsql.pricing.rank_histograms import cell_term
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.most_frequent import EndKey, EndRowsPlan

KEY = Column("k", Facts(Type.TEXT, values=("b", "a", None, "c")))
"""Its values in the order of cells: a, b, c."""
CONDITION = Call("gt", (Column("x", Facts(Type.INTEGER)), Literal(0, literal_facts(0))), Facts(Type.BOOLEAN))


@dataclass
class Block:
    """What a measurement is entered in."""

    groups: int = 1
    measurements: list[Any] = field(default_factory=list)
    one_row: bool = False
    bars: Fraction | None = None
    means: Any = None


def asked(value: Expr, key: Expr = KEY, aggregate: str = "arg_max", condition: Expr | None = None) -> Measure:
    return Measure("m", aggregate, (key, value), False, condition)


def entered(value: Expr, key: Expr = KEY, groups: int = 1) -> EndRows:
    block = Block(groups)
    requested_key(block, asked(value, key))
    (measurement,) = block.measurements
    assert isinstance(measurement, EndRows)
    return measurement


def cell(measurement: EndRows, value: Any, key: Any) -> int | None:
    found: int | None = evaluate(measurement.term.value, {"v": value, "k": key}) if measurement.term.value else None
    return found


def integers(lower: int, upper: int) -> Column:
    return Column("v", Facts(Type.INTEGER, Fraction(lower), Fraction(upper)))


def reals(lower: str, upper: str) -> Column:
    return Column("v", Facts(Type.REAL, Fraction(lower), Fraction(upper)))


# --- cells ----------------------------------------------------------------------------------------------------------

NOON = datetime(2024, 1, 1, 12)
EXACT: list[tuple[Column, list[Any]]] = [
    (integers(-2, 3), [-2, -1, 0, 1, 2, 3]),
    (integers(7, 7), [7]),
    (
        Column("v", Facts(Type.DATE, date(2024, 2, 27), date(2024, 3, 1))),
        [date(2024, 2, 27) + timedelta(days=n) for n in range(4)],
    ),
    (Column("v", Facts(Type.TIMESTAMP, NOON, NOON + timedelta(seconds=3))), [NOON + timedelta(seconds=n) for n in range(4)]),
    (Column("v", Facts(Type.TEXT, values=("z", "", "m", None))), ["", "m", "z"]),
    (Column("v", Facts(Type.BOOLEAN)), [False, True]),
    (reals("1.5", "1.5"), [1.5]),
]  # fmt: skip
"""Values of which each has a cell of its own, in ascending order."""


@pytest.mark.parametrize(("value", "values"), EXACT)
def test_few_values_have_a_cell_for_each_value_and_key_in_the_order_of_values(value: Column, values: list[Any]) -> None:
    measurement = entered(value)
    cells = [cell(measurement, element, key) for element in values for key in ("a", "b", "c")]
    assert cells == list(range(len(values) * 3)) and measurement.cells == len(cells)


def test_a_row_without_a_value_or_a_key_of_the_list_is_in_no_cell() -> None:
    measurement = entered(integers(0, 9))
    for value, key in ((None, "a"), (3, None), (3, "d"), (3, "A")):
        assert cell(measurement, value, key) is None
    assert cell(entered(Column("v", Facts(Type.TEXT, values=("x",)))), "y", "a") is None


def test_many_values_share_cells_and_none_is_moved_past_another() -> None:
    """Values beyond the bounds have cells of their own at both ends."""
    for value, values in (
        (reals("-10", "10"), [-1e300, -10.001, -10, -9.9999, -1e-9, 0, 1e-9, 9.9999, 10, 11, math.inf]),
        (integers(-(2**40), 2**40), [-(2**62), -(2**40), -1, 0, 1, 2**40 - 1, 2**40, 2**62]),
        (
            Column("v", Facts(Type.TIMESTAMP, datetime(2000, 1, 1), datetime(2030, 1, 1))),
            [
                datetime(1, 1, 1),
                datetime(2000, 1, 1),
                datetime(2015, 1, 1),
                datetime(2029, 12, 31),
                datetime(9999, 1, 1),
            ],
        ),
    ):
        measurement = entered(value)
        cells = [cell(measurement, element, key) for element in values for key in ("a", "c")]
        present = [found for found in cells if found is not None]
        assert len(present) == len(cells) and [found % 3 for found in present] == [0, 2] * len(values)
        places = [found // 3 for found in present[::2]]
        assert places == sorted(places) and places == [found // 3 for found in present[1::2]]
        assert places[0] == 0 and max(present) == measurement.cells - 1, "the ends are used, and nothing is beyond"
        assert len(set(places)) >= 5


def test_groups_and_keys_that_leave_too_few_cells_are_refused() -> None:
    for keys, groups, fits in ((1, 1 << 16, True), (1, (1 << 16) + 1, False), (2, 1 << 15, True), (3, 21846, False)):
        block, key = Block(groups), Column("k", Facts(Type.TEXT, values=tuple("abc"[:keys])))
        if fits:
            requested_key(block, asked(reals("0", "1"), key))
            continue
        with pytest.raises(Refusal) as caught:
            requested_key(block, asked(reals("0", "1"), key))
        assert caught.value.slug == "many_cells" and block.measurements == []


# --- what is released -----------------------------------------------------------------------------------------------


def test_an_equal_measurement_is_made_once_and_any_difference_makes_another() -> None:
    value, other = integers(0, 4), Column("w", Facts(Type.INTEGER, Fraction(0), Fraction(4)))
    block = Block(measurements=[RankHistogram("h0", value, cell_term(value, None, 1), ())])
    first, _ = requested_key(block, asked(value))
    again, _ = requested_key(block, replace(asked(value), name="n"))
    assert first == again and [measurement.name for measurement in block.measurements] == ["h0", "e0"]
    for different in (
        asked(value, aggregate="arg_min"),
        asked(other),
        asked(value, Column("k", Facts(Type.TEXT, values=("a", "b")))),
        asked(value, condition=CONDITION),
    ):
        requested_key(block, different)
    assert [measurement.name for measurement in block.measurements] == ["h0", "e0", "e1", "e2", "e3", "e4"]
    assert [measurement.term.name for measurement in block.measurements[1:]] == ["e0", "e1", "e2", "e3", "e4"]
    assert [measurement.last for measurement in block.measurements[1:]] == [True, False, True, True, True]


# --- price ----------------------------------------------------------------------------------------------------------

PRICING = EndRowsPricing()
PURE, ZCDP = PrivacyLoss.pure(Fraction(1, 2), Fraction(0)), PrivacyLoss(None, Fraction(0), Fraction(1, 50))


def planned(
    measurement: EndRows,
    part: PrivacyLoss = PURE,
    caps: Caps | None = None,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> tuple[EndRowsPlan, EndKey]:
    plan = PRICING.planned(measurement, caps or Caps(1, 1), part, neighbours)
    assert isinstance(plan, EndRowsPlan) and isinstance(plan.law, EndKey)
    return plan, plan.law


@pytest.mark.parametrize(
    ("caps", "neighbours", "rows", "squares"),
    [
        (Caps(1, 1), Neighbours.ADD_REMOVE, 1, 1),
        (Caps(1, 1), Neighbours.CHANGE_ONE, 2, 4),
        (Caps(5, 1), Neighbours.ADD_REMOVE, 5, 25),
        (Caps(6, 3), Neighbours.CHANGE_ONE, 12, 144),
    ],
)
def test_the_loss_is_that_of_the_rows_of_a_unit_and_uses_up_the_part(
    caps: Caps, neighbours: Neighbours, rows: int, squares: int
) -> None:
    """The loss of one row times the rows (pure), and an eighth of the sum of squares of losses (zCDP)."""
    measurement = entered(integers(0, 4))
    for part in (PURE, ZCDP):
        plan, law = planned(measurement, part, caps, neighbours)
        assert (law.sensitivity.l1, law.sensitivity.l2_squared) == (rows, squares)
        assert (plan.name, plan.cells, law.keys, law.last) == ("e0", 15, 3, True)
        if part is PURE:
            assert law.epsilon_0 * rows == part.epsilon
        else:
            assert float(law.epsilon_0**2 * squares / 8) == pytest.approx(0.02, rel=1e-9)
            assert law.epsilon_0**2 * squares / 8 <= Fraction(1, 50)
