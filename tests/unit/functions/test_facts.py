"""Claims about an expression hold for every row within the declared facts: interval, NULL, and public keys."""

import math
import random
import time
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from support.random_expressions import BY_TYPE, LIBM, SPECS, B, D, I, R, S, T, apply, literal
from support.seeds import seeds

from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.functions.public_domains import MOST_VALUES, domain_of
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr

ROUNDING = {"floor", "ceil", "round", "to_integer", "intdiv", "width_bucket"}
"""One unit beyond the interval is tolerated above real arithmetic: 3 * 0.1 * 10 is slightly above 3."""
FIXED = {
    "north": Facts(T, values=("north", "south", "É", "")), "kind": Facts(T, values=("b", "a"), nullable=False),
    "flag": Facts(B), "sure": Facts(B, nullable=False), "step": Facts(R, Fraction(-1), Fraction(2), (Fraction(-1),
    Fraction(2)), False),
    "rank": Facts(I, Fraction(1), Fraction(9), (1, 3, 9)),
}  # fmt: skip


def declared(rng: random.Random) -> dict[str, Column]:
    """Return columns with random declared facts, small and huge."""
    facts = dict(FIXED)
    for number in range(2):
        low, wide = rng.choice((0, -5, 1, 10**6, -(2**62))), rng.choice((0, 1, 9, 120, 2**61))
        facts[f"i{number}"] = Facts(I, Fraction(low), Fraction(low + wide), nullable=rng.random() < 0.5)
        base = Fraction(rng.choice(("0", "-3.5", "1e-3", "-1e300", "7", "-0.1")))
        top = base + Fraction(rng.choice(("0", "1", "2.5", "1e6", "1e-9")))
        facts[f"r{number}"] = Facts(R, base, top, nullable=rng.random() < 0.5)
        first = date(1, 1, 1) + timedelta(days=rng.choice((0, 1, 700_000, 738_000)))
        facts[f"d{number}"] = Facts(
            D, first, first + timedelta(days=rng.choice((0, 1, 40, 900))), nullable=rng.random() < 0.5
        )
        start = datetime(2023, 12, 31, 23, 59, 30) + timedelta(days=rng.choice((0, -20_000)))
        facts[f"s{number}"] = Facts(
            S, start, start + timedelta(hours=rng.choice((0, 5, 9000))), nullable=rng.random() < 0.5
        )
    return {name: Column(name, known) for name, known in facts.items()}


def value_within(rng: random.Random, facts: Facts) -> Any:
    if facts.nullable and rng.random() < 0.15:
        return None
    if facts.values is not None:
        value = rng.choice([v for v in facts.values if v is not None])
        return float(value) if facts.type is R else value
    if facts.type is B:
        return rng.random() < 0.5
    end = rng.choice((facts.lower, facts.upper))
    if facts.type is I:
        return rng.choice((int(end), rng.randint(int(facts.lower), int(facts.upper))))
    if facts.type is R:
        return rng.choice(
            (
                float(end),
                min(max(rng.uniform(float(facts.lower), float(facts.upper)), float(facts.lower)), float(facts.upper)),
            )
        )
    if facts.type is D:
        return rng.choice((end, facts.lower + timedelta(days=rng.randint(0, (facts.upper - facts.lower).days))))
    seconds = int((facts.upper - facts.lower).total_seconds())
    return rng.choice((end, facts.lower + timedelta(seconds=rng.randint(0, seconds))))


def calls(expression: Expr) -> list[Call]:
    inner = [found for a in expression.arguments for found in calls(a)] if isinstance(expression, Call) else []
    return [expression, *inner] if isinstance(expression, Call) else inner


def slack(expression: Expr) -> Fraction:
    """Return the most that double rounding may add: 1e-9 of the largest known bound, and one where reals are rounded to
    integers."""
    parts = calls(expression)
    bounds = [abs(end) for part in parts for known in (part.facts, *(a.facts for a in part.arguments))
              for end in (known.lower, known.upper) if isinstance(end, Fraction)]  # fmt: skip
    real = any(known.facts.type is R for part in parts for known in (part, *part.arguments))
    rounds = any(part.function in ROUNDING | {"case"} for part in parts)
    return (max(bounds, default=Fraction(0)) / 10**9 if real else Fraction(0)) + (1 if real and rounds else 0)


def violated(expression: Call, value: Any) -> str:
    facts = expression.facts
    if value is None:
        return "" if facts.nullable else "NULL where none was expected"
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value)):
        return "not finite" if facts.bounded else ""
    exact, more = (Fraction(value), slack(expression)) if facts.type.numeric else (value, timedelta(0))
    if (
        facts.lower is not None and exact < facts.lower - more
        if facts.type.numeric
        else facts.lower is not None and exact < facts.lower
    ):
        return f"{value!r} below {facts.lower}"
    if facts.upper is not None and (exact > facts.upper + more if facts.type.numeric else exact > facts.upper):
        return f"{value!r} above {facts.upper}"
    return ""


@pytest.mark.parametrize("seed", seeds(6, 1))
def test_values_lie_in_the_interval(seed: int) -> None:
    rng = random.Random(seed)
    columns = declared(rng)
    rows = [{name: value_within(rng, column.facts) for name, column in columns.items()} for _ in range(60)]
    trees = [apply(rng, spec, 1, columns) for spec in SPECS]
    trees += [apply(rng, rng.choice(SPECS), rng.choice((2, 3)), columns) for _ in range(250)]
    for tree in trees:
        for row in rows:
            why = violated(tree, evaluate(tree, row))
            assert not why, (why, tree, row)


@pytest.mark.parametrize("seed", seeds(6, 1))
def test_public_keys_hold_every_value(seed: int) -> None:
    """A REAL rounded to an integer above inexact arithmetic may fall outside the range, so it is left out here."""
    rng = random.Random(seed + 50)
    columns = declared(rng)
    rows = [{name: value_within(rng, column.facts) for name, column in columns.items()} for _ in range(60)]
    specs = [spec for type_ in (I, T, B, D, S, R) for spec in BY_TYPE[type_] if spec[0] not in LIBM]
    found = 0
    for tree in [apply(rng, spec, 1, columns) for spec in specs] + [
        apply(rng, rng.choice(specs), 3, columns) for _ in range(250)
    ]:
        domain = domain_of(tree)
        if domain is None or (tree.facts.type.numeric and slack(tree)):
            continue
        found += 1
        known = [value for value in domain if value is not None]
        assert list(domain) == [*sorted(set(known)), *[None] * (None in domain)]
        for row in rows:
            value = evaluate(tree, row)
            assert value in domain or math.isnan(value), (value, tree, row)
            assert value is None or type(value) is type(known[0]), (value, known[0], tree)
    assert found > 150


AGE = Column("age", Facts(I, Fraction(0), Fraction(120), nullable=False))
INCOME = Column("income", Facts(R, Fraction(0), Fraction(250), nullable=False))
DAY = Column("day", Facts(D, date(2024, 1, 31), date(2024, 4, 1), nullable=False))
SEEN = Column("seen", Facts(S, datetime(2024, 1, 1, 5, 30), datetime(2024, 1, 1, 8), nullable=False))
LATE = Column("late", Facts(S, datetime(2024, 1, 1, 5, 30), datetime(2024, 1, 1, 8)))
SEX = Column("sex", Facts(T, values=("m", "f")))
SURE = Column("sure", Facts(T, values=("y", "n"), nullable=False))
LISTED = Column("listed", Facts(T, values=("z", "a", None)))

DOMAINS: list[tuple[Expr, tuple[Any, ...] | None]] = [
    (AGE, tuple(range(121))),
    (SEX, ("m", "f", None)),
    (Column("rank", Facts(I, Fraction(1), Fraction(3))), (1, 2, 3, None)),
    (call("date_trunc", literal("hour"), LATE), (*(datetime(2024, 1, 1, hour) for hour in range(5, 9)), None)),
    (call("case", call("gt", INCOME, literal(5)), LATE, LATE), None),
    (call("is_null", SEX), (False, True)),
    (call("eq", SEX, literal("m")), (False, True, None)),
    (call("intdiv", AGE, call("intdiv", AGE, literal(100))), (*range(100, 121), None)),
    (call("to_integer", SEX), (None,)),
    (
        call("coalesce", call("date_trunc", literal("hour"), LATE), literal(datetime(2024, 1, 1, 5))),
        tuple(datetime(2024, 1, 1, hour) for hour in range(5, 9)),
    ),
    (LISTED, ("z", "a", None)),
    (call("mul", call("floor", call("div", AGE, literal(10))), literal(10)), tuple(float(10 * n) for n in range(13))),
    (call("mul", call("floor", call("div", INCOME, literal(50))), literal(50)), (0.0, 50.0, 100.0, 150.0, 200.0, 250.0)),
    (call("mul", call("intdiv", AGE, literal(50)), literal(50)), (0, 50, 100)),
    (call("date_trunc", literal("month"), DAY), (date(2024, 1, 1), date(2024, 2, 1), date(2024, 3, 1), date(2024, 4, 1))),
    (call("date_trunc", literal("hour"), SEEN), tuple(datetime(2024, 1, 1, hour) for hour in range(5, 9))),
    (call("date_part", literal("month"), DAY), (1, 2, 3, 4)),
    (call("date_part", literal("hour"), SEEN), tuple(range(24))),
    (call("width_bucket", INCOME, literal(0), literal(100), literal(2)), (0, 1, 2, 3, None)),
    (call("gt", INCOME, literal(5)), (False, True)),
    (call("concat", SEX, literal("-"), SURE), ("f-n", "f-y", "m-n", "m-y", None)),
    (call("upper", SEX), ("F", "M", None)),
    (call("coalesce", SEX, literal("?")), ("?", "f", "m")),
    (call("coalesce", SURE, literal("?")), ("n", "y")),
    (call("case", call("eq", SEX, literal("m")), literal(1), literal(0)), (0, 1)),
    (call("case", call("gt", INCOME, literal(5)), literal("rich"), literal(None)), ("rich", None)),
    (call("case", call("gt", INCOME, literal(5)), literal(1), literal(Fraction(1, 2))), (0.5, 1.0)),
    (call("case", call("is_null", INCOME), DAY, literal(datetime(2024, 1, 1, 6))), None),
    (call("sign", INCOME), (-1, 0, 1)),
    (
        call("time_bucket", SEEN, literal(3600), literal(datetime(2000, 1, 1, 0, 15))),
        tuple(datetime(2024, 1, 1, hour, 15) for hour in range(5, 8)),
    ),
    (
        call("time_bucket", DAY, literal(30 * 86400), literal(datetime(2000, 1, 3))),
        (date(2024, 1, 27), date(2024, 2, 26), date(2024, 3, 27)),
    ),
    (call("strftime", DAY, literal("%Y-%m")), ("2024-01", "2024-02", "2024-03", "2024-04")),
    (call("strftime", SEEN, literal("%H h")), ("05 h", "06 h", "07 h", "08 h")),
    (call("strftime", call("date_trunc", literal("month"), DAY), literal("%B")), ("April", "February", "January", "March")),
    (call("last_day", SEEN), (date(2024, 1, 31),)),
    (call("last_day", DAY), (date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 31), date(2024, 4, 30))),
    (
        call("mul", call("floor", call("div", call("epoch", SEEN), literal(3600))), literal(3600)),
        tuple(1704085200.0 + 3600 * hour for hour in range(4)),
    ),
    (call("concat_ws", literal("-"), SEX, SURE), ("f-n", "f-y", "m-n", "m-y", "n", "y")),
    (call("regexp_replace", SEX, literal("[f]"), literal("w"), literal(False)), ("m", "w", None)),
    (call("split_part", SURE, literal("y"), literal(1)), ("", "n")),
    (call("case", call("regexp_matches", SURE, literal("^y")), literal("yes"), SURE), ("n", "yes")),
    (
        call(
            "add_seconds",
            call("date_trunc", literal("hour"), SEEN),
            call("mul", literal(1800), call("intdiv", call("date_part", literal("minute"), SEEN), literal(30))),
        ),
        tuple(datetime(2024, 1, 1, 5) + timedelta(minutes=30 * at) for at in range(8)),
    ),
    (call("length", SEX), (1, None)),
    (
        call("add_months", Column("d", Facts(D, date(2024, 1, 31), date(2024, 2, 1))), literal(1)),
        (date(2024, 2, 29), date(2024, 3, 1), None),
    ),
    (INCOME, None),
    (call("lower", Column("free", Facts(T))), None),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(DOMAINS)))
def test_usual_keys_have_the_domain_of_their_values(at: int) -> None:
    expression, expected = DOMAINS[at]
    found = domain_of(expression)
    if expected is None:
        assert found is None or len(found) > 50
    else:
        assert found == expected
        assert [type(value) for value in found] == [type(value) for value in expected]


def test_nan_is_no_public_key() -> None:
    values = (Fraction(-1), Fraction(0), Fraction(4))
    column = Column("x", Facts(R, Fraction(-1), Fraction(4), values, nullable=False))
    assert domain_of(call("power", column, literal(Fraction(1, 2)))) == (0.0, 2.0)
    assert domain_of(call("div", literal(1), column)) == (-1.0, 0.25, None)


def test_wide_domains_are_cheap() -> None:
    """No image is evaluated with more than MOST_STEPS calls, counted in calls and not in seconds."""
    wide = Column("w", Facts(I, Fraction(0), Fraction(MOST_VALUES - 1), nullable=False))
    days = Column("d", Facts(D, date(1900, 1, 1), date(2100, 1, 1), nullable=False))
    assert domain_of(wide) == tuple(range(MOST_VALUES))
    assert domain_of(Column("w", Facts(I, Fraction(0), Fraction(MOST_VALUES)))) is None
    heavy = [
        call("concat", call("to_text", wide), literal("x")),
        call("sub", wide, wide),
        call("upper", call("to_text", days)),
    ]
    started = time.process_time()
    assert [domain_of(expression) for expression in heavy] == [None, None, None]
    assert domain_of(call("date_part", literal("month"), days)) == tuple(range(1, 13))
    assert len(domain_of(call("date_trunc", literal("month"), days)) or ()) == 2401
    assert time.process_time() - started < 30


def test_ends_of_the_calendar_and_long_fractions_are_inferred_without_error() -> None:
    first = Column("d", Facts(D, date(1, 1, 1), date(9999, 12, 31)))
    assert call("date_trunc", literal("week"), first).facts.lower == date(1, 1, 1)
    assert call("add_days", first, literal(1)).facts.bounded is False
    assert call("add_months", first, literal(-1)).facts.nullable
    x: Expr = Column("x", Facts(R, Fraction("-0.123456789"), Fraction("1.123456789")))
    for _ in range(12):
        x = call("power", x, literal(8))
    assert x.facts.lower is None or x.facts.lower.denominator <= 2**1200
    big = Column("b", Facts(R, Fraction(10) ** 300, Fraction(10) ** 300))
    assert call("mul", big, big).facts == Facts(Type.REAL, None, None, nullable=True)


@pytest.mark.parametrize(("first", "last"), [("29 23:59:30", "30 04:59:30"), ("28 23:59:30", "29 00:00:00"),
                                             ("27 12:00:00", "31 01:00:00"), ("27 12:00:00", "27 13:00:00")])  # fmt: skip
def test_times_moved_to_the_last_day_of_a_month_stay_within_their_ends(first: str, last: str) -> None:
    """The last days of a long month map to one day, and the later of them may have the earlier time."""
    low, high = (datetime.fromisoformat(f"1969-03-{end}") for end in (first, last))
    moved = call("add_months", Column("t", Facts(S, low, high)), literal(-1))
    step = (high - low) / 997
    values = [evaluate(moved, {"t": low + number * step}) for number in range(998)]
    assert moved.facts.lower <= min(values) and max(values) <= moved.facts.upper


ZERO = Column("z", Facts(I, Fraction(-1), Fraction(1), nullable=False))
ONE = Column("o", Facts(I, Fraction(1), Fraction(1), nullable=False))
FREE = Column("f", Facts(I, nullable=False))
WORD = Column("w", Facts(T, nullable=False))
PART = Column("p", Facts(R, Fraction(0), Fraction(1), nullable=False))
NULLABLE: list[tuple[Call, bool]] = [
    (call("div", ONE, ZERO), True), (call("div", ONE, ONE), False), (call("intdiv", ONE, ZERO), True),
    (call("mod", ONE, ZERO), True), (call("mod", FREE, literal(3)), False), (call("intdiv", FREE, literal(-1)), True),
    (call("add", FREE, ONE), True), (call("add", ONE, ONE), False), (call("neg", FREE), True), (call("abs", FREE),
    True),
    (call("sqrt", ZERO), True), (call("sqrt", ONE), False), (call("ln", ONE), True), (call("to_integer", PART), True),
    (call("to_integer", WORD), True), (call("to_date", WORD), True), (call("to_real", ONE), False),
    (call("width_bucket", PART, literal(0), literal(1), literal(2)), True), (call("nullif", ONE, ONE), True),
    (call("case", call("eq", ONE, ONE), ONE, literal(None)), True), (call("coalesce", literal(None), ONE), False),
    (call("concat_ws", literal(""), literal(None)), False), (call("split_part", WORD, literal("a"), literal(9)), False),
    (call("add_seconds", Column("s", Facts(S, nullable=False)), ONE), True),
    (call("time_bucket", Column("s", Facts(S, nullable=False)), literal(60), literal(datetime(2000, 1, 1))), True),
    (call("least", ZERO, literal(None)), False), (call("is_null", ZERO), False),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(NULLABLE)))
def test_facts_say_exactly_which_expressions_may_be_null(at: int) -> None:
    """COUNT(x) shares COUNT(*) if x is never NULL: a wrong claim here is a wrong count."""
    expression, nullable = NULLABLE[at]
    assert expression.facts.nullable is nullable
