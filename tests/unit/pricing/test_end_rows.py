"""ARG_MAX and ARG_MIN as measurements: each row's cell stands in the order of its value, then of its key, and a key costs its part."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest

from dpsql.functions.evaluate import evaluate
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import EndRows
from dpsql.plan.plan import Caps, Column, Expr, Measure
from dpsql.pricing.most_frequent import EndRowsPricing, requested_key
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.most_frequent import EndKey, EndRowsPlan

KEY = Column("k", Facts(Type.TEXT, values=("b", "a", None, "c")))
"""Its values in the order of cells: a, b, c."""


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
    (
        Column("v", Facts(Type.TIMESTAMP, NOON, NOON + timedelta(seconds=3))),
        [NOON + timedelta(seconds=n) for n in range(4)],
    ),
    (Column("v", Facts(Type.TEXT, values=("z", "", "m", None))), ["", "m", "z"]),
    (Column("v", Facts(Type.BOOLEAN)), [False, True]),
    (reals("1.5", "1.5"), [1.5]),
]
"""Values of which each has a cell of its own, in ascending order."""


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
