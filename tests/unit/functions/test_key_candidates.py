"""Candidates of a column: for each value there is one that every use of the column treats alike."""

import math
import random
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from support.random_expressions import literal
from support.seeds import seeds

from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_candidates import MOST_VALUES, Uses, cells, domain
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr

WIDE = {
    "i": Column("i", Facts(Type.INTEGER)), "r": Column("r", Facts(Type.REAL)), "w": Column("w", Facts(Type.TEXT)),
    "d": Column("d", Facts(Type.DATE)), "s": Column("s", Facts(Type.TIMESTAMP)),
}  # fmt: skip
POINTS: dict[str, list[Any]] = {
    "i": [0, -3, 7, 2**63 - 1, Fraction(5, 2)], "r": [Fraction(0), Fraction(3, 2), 4], "w": ["", "a", "b"],
    "d": [date(2024, 2, 29), date.max, datetime(2024, 3, 1, 12)], "s": [datetime(2024, 2, 29, 12), date(2024, 3, 1)],
}  # fmt: skip
VALUES: dict[str, list[Any]] = {
    "i": [*range(-6, 10), -(2**63), 2**63 - 1, 2**62, None], "r": [0.0, -0.0, 1.5, 4.0, 3.9, math.inf, -math.inf, math.nan, -1e300, None],
    "w": ["", "a", "b", "zz", None], "d": [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(2024, 3, 2), date.min, date.max, None],
    "s": [datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, 0, 0, 1), datetime(2024, 3, 1), datetime.min, datetime.max, None],
}  # fmt: skip


def candidates(column: Column, uses: list[Expr], within: bool = False) -> list[Any] | None:
    noted = Uses(column)
    for use in uses:
        assert noted.read(use, lambda found: found) == use
    if noted.unknown:
        return None
    found = cells(noted, within)
    return None if found is None else [value for (value,) in found.values()]


@pytest.mark.parametrize("seed", seeds(60, 5))
def test_cells_have_a_candidate_for_the_results_of_every_value(seed: int) -> None:
    chance = random.Random(seed)
    for name, column in WIDE.items():
        words = ("eq", "ne", "not_distinct") if name == "w" else ("eq", "ne", "lt", "le", "gt", "ge", "not_distinct")
        uses: list[Expr] = [call(chance.choice(words), column, literal(chance.choice(POINTS[name]))) for _ in range(3)]
        uses += [call("in", column, *(literal(point) for point in POINTS[name][:2])), call("is_null", column)]
        listed = candidates(column, uses)
        assert listed is not None
        known = {tuple(evaluate(use, {name: value}) for use in uses) for value in listed}
        for value in VALUES[name]:
            assert tuple(evaluate(use, {name: value}) for use in uses) in known, (uses, value)


REAL = Column("x", Facts(Type.REAL, Fraction(-3), Fraction(20)))
TIME = Column("x", Facts(Type.TIMESTAMP, datetime(2024, 1, 30, 22), datetime(2024, 3, 2, 3)))
LONG = Column("x", Facts(Type.INTEGER, Fraction(-(10**7)), Fraction(10**7)))
STEPS: list[tuple[Column, Expr]] = [
    (REAL, call("floor", call("div", REAL, literal(3)))), (REAL, call("round", REAL)), (REAL, call("to_integer", REAL)),
    (REAL, call("ceil", call("sub", literal(5), call("mul", REAL, literal(Fraction(1, 2)))))), (REAL, call("floor", REAL)),
    (TIME, call("date_trunc", literal("hour"), TIME)), (TIME, call("date_trunc", literal("week"), TIME)),
    (TIME, call("date_part", literal("month"), TIME)), (TIME, call("strftime", TIME, literal("%d %H"))), (TIME, call("to_date", TIME)),
    (TIME, call("time_bucket", TIME, literal(7200), literal(datetime(2000, 1, 1)))),
    (LONG, call("intdiv", LONG, literal(10**6))), (LONG, call("eq", LONG, literal(5))),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(STEPS)))
def test_step_functions_have_all_their_values(at: int) -> None:
    column, step = STEPS[at]
    listed = candidates(column, [step, call("lt", column, literal(column.facts.lower))], True)
    assert listed is not None
    found = {evaluate(step, {"x": value}) for value in listed}
    chance = random.Random(at)
    for _ in range(3000):
        value: Any = None
        if column is REAL:
            value = chance.choice([chance.uniform(-3, 20), -3.0, 20.0, float(chance.randrange(-3, 21))])
        elif column is TIME:
            value = TIME.facts.lower + timedelta(
                seconds=chance.randrange(int((TIME.facts.upper - TIME.facts.lower).total_seconds()) + 1)
            )
        else:
            value = chance.choice([chance.randrange(-(10**7), 10**7 + 1), -(10**7), 10**7, 5, -(10**6), 10**6])
        assert evaluate(step, {"x": value}) in found, value
    assert None in listed and found <= {evaluate(step, {"x": value}) for value in listed}


def test_functions_without_known_cells_have_no_candidates() -> None:
    for column, use in (
        (REAL, call("mul", REAL, literal(2))), (REAL, call("eq", REAL, REAL)), (TIME, call("epoch", TIME)),
        (LONG, call("mod", LONG, literal(7))), (WIDE["r"], call("floor", WIDE["r"])), (WIDE["w"], call("upper", WIDE["w"])),
        (REAL, call("floor", call("mul", REAL, literal(10**6)))), (WIDE["s"], call("date_trunc", literal("day"), WIDE["s"])),
    ):  # fmt: skip
        assert candidates(column, [use], column not in WIDE.values()) is None, use


def test_domains_are_lists_or_spans_that_are_short_enough() -> None:
    def listed(facts: Facts) -> list[Any] | None:
        found = domain(Column("x", facts))
        return None if found is None else [value for (value,) in found.values()]

    assert listed(Facts(Type.INTEGER, Fraction(1), Fraction(3))) == [None, 1, 2, 3]
    assert listed(Facts(Type.DATE, date(2024, 2, 28), date(2024, 3, 1), nullable=False)) == [
        date(2024, 2, 28),
        date(2024, 2, 29),
        date(2024, 3, 1),
    ]
    assert listed(Facts(Type.BOOLEAN, nullable=False)) == [True, False]
    assert listed(Facts(Type.TEXT, values=("b", "a"))) == ["b", "a", None]
    assert listed(Facts(Type.INTEGER, Fraction(0), Fraction(MOST_VALUES))) is None
    assert listed(Facts(Type.REAL, Fraction(0), Fraction(1))) is None
