"""Public keys that remain under conditions, compared with brute force: rows of raw values, inside and outside the declared
bounds.

Sound: a removed value is the key of no row for which the conditions are true, if its keys read values within the policy's lists
and bounds. Useful: for plain conditions exactly the keys of rows within the bounds remain.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import pytest
from support.random_expressions import literal
from support.seeds import seeds

from dpsql.functions import key_questions
from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_narrowing import PublicRows, RemainingKeys, _without_partner, remaining
from dpsql.functions.key_questions import PublicValues
from dpsql.functions.numeric import call
from dpsql.functions.public_domains import domain_of
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import Branch, UnmatchedRows
from dpsql.plan.plan import (
    Call,
    Column,
    Expr,
    Filter,
    Join,
    Project,
    Relation,
    ReleasedValue,
    Scan,
    SemiJoin,
    Union_,
)  # fmt: skip
from dpsql.planning.planner import AskedValues
from dpsql.release.sandbox import shared_sandbox

AGE = Column("age", Facts(Type.INTEGER, Fraction(0), Fraction(12)))
RANK = Column("rank", Facts(Type.INTEGER, Fraction(0), Fraction(3), nullable=False))
SEX = Column("sex", Facts(Type.TEXT, values=("f", "m", "x")))
CODE = Column("code", Facts(Type.INTEGER))
COST = Column("cost", Facts(Type.REAL, Fraction(0), Fraction(50)))
DAY = Column("day", Facts(Type.DATE, date(2024, 1, 30), date(2024, 3, 2)))
SEEN = Column("seen", Facts(Type.TIMESTAMP, datetime(2024, 1, 31, 22), datetime(2024, 2, 2, 3)))
OLD = Column("old", Facts(Type.BOOLEAN))
COLUMNS = (AGE, RANK, SEX, CODE, COST, DAY, SEEN, OLD)
TABLE = Scan("t", COLUMNS)
ENGINE = AskedValues(shared_sandbox()).for_engine("duckdb")
RAW: dict[str, list[Any]] = {
    "age": [*range(-3, 18), None, 2**63 - 1, -(2**63)],
    "rank": [0, 1, 2, 3, 9],
    "sex": ["f", "m", "x", "zz", "", "F", None],
    "code": [-5, 0, 3, 7, 10**12, None],
    "cost": [-1.0, -0.0, 0.0, 9.999, 10.0, 49.99, 50.0, 1e9, float("inf"), float("-inf"), float("nan"), None],
    "day": [date(2024, 1, 1) + timedelta(days=at) for at in range(0, 100, 3)] + [date.min, date.max, None],
    "seen": [datetime(2024, 1, 31) + timedelta(minutes=at) for at in range(0, 5000, 173)] + [datetime.max, None],
    "old": [True, False, None],
}
INSIDE = {
    "age": range(13), "rank": range(4), "sex": ("f", "m", "x"), "code": RAW["code"][:-1], "cost": [0.0, 9.5, 10.0, 29.99, 31.0, 50.0],
    "day": [DAY.facts.lower + timedelta(days=at) for at in range(33)],
    "seen": [datetime(2024, 1, 31, 22) + timedelta(minutes=at) for at in range(0, 29 * 60, 7)], "old": [True, False],
}  # fmt: skip


def rows_for(columns: set[str], chance: random.Random, raw: dict[str, Any], most: int = 400) -> list[dict[str, Any]]:
    """Return every combination of raw values, or a random `most` of them; only these are made into rows."""
    names, total = sorted(columns), prod(len(raw[name]) for name in columns)
    numbers = range(total) if total <= most else chance.sample(range(total), most)
    return [numbered_row(names, raw, number) for number in numbers]


def numbered_row(names: list[str], raw: dict[str, Any], number: int) -> dict[str, Any]:
    """Return the combination with this number in the order of `itertools.product`."""
    row = {}
    for name in reversed(names):
        number, place = divmod(number, len(raw[name]))
        row[name] = raw[name][place]
    return row


def named(expression: Expr) -> set[str]:
    if isinstance(expression, Column):
        return {expression.name}
    return set().union(*map(named, getattr(expression, "arguments", ())))


def keys() -> list[Expr]:
    return [
        AGE, SEX, DAY, OLD, RANK, call("intdiv", AGE, literal(5)), call("mod", AGE, literal(4)), call("neg", AGE),
        call("mul", call("floor", call("div", COST, literal(10))), literal(10)), call("upper", SEX),
        call("width_bucket", COST, literal(0), literal(50), literal(5)), call("sub", literal(3), RANK),
        call("case", call("lt", AGE, literal(4)), literal("young"), call("lt", AGE, literal(9)), literal("old"),
             literal(None)),
        call("coalesce", SEX, literal("?")), call("date_trunc", literal("month"), DAY), call("gt", AGE, literal(6)),
        call("date_trunc", literal("hour"), SEEN), call("strftime", DAY, literal("%Y-%m")), call("add", AGE, RANK),
        call("date_part", literal("month"), DAY), call("is_null", AGE), call("last_day", DAY), call("nullif", RANK, AGE),
        call("time_bucket", SEEN, literal(7200), literal(datetime(2000, 1, 1))), call("clamp", CODE, literal(0), literal(4)),
        call("date_trunc", literal("week"), DAY), call("strftime", SEEN, literal("%H")), call("length", SEX),
    ]  # fmt: skip


def condition(chance: random.Random, depth: int, about: Expr | None = None) -> Expr:
    """Return a condition, often on `about` or on a column of it."""
    if depth and chance.random() < 0.6:
        word = chance.choice(("and", "or", "not"))
        if word == "not":
            return call("not", condition(chance, depth - 1, about))
        return call(word, condition(chance, depth - 1, about), condition(chance, depth - 1, about))
    value = chance.choice([*COLUMNS, *keys()])
    if about is not None and chance.random() < 0.7:
        value = chance.choice([about, *(column for column in COLUMNS if column.name in named(about))])
    if chance.random() < 0.15:
        return call(chance.choice(("is_null", "is_null")), value)
    if value.facts.type is Type.BOOLEAN:
        return call(chance.choice(("is_true", "is_false")), value)
    if value.facts.type is Type.TEXT and chance.random() < 0.4:
        return call("like", value, literal(chance.choice(("f%", "%2%", "_", "young"))))
    others = [literal(one) for one in sample(chance, value)]
    if chance.random() < 0.3:
        return call("in", value, *others)
    word = chance.choice(("eq", "ne", "lt", "le", "gt", "ge", "not_distinct"))
    if value.facts.type is Type.INTEGER and chance.random() < 0.2:
        return call(word, value, chance.choice((AGE, RANK, CODE)))
    return call(word, value, others[0])


def sample(chance: random.Random, value: Expr) -> list[Any]:
    """Return literals near possible values of the expression, including ends of ranges."""
    known = [one for one in domain_of(value) or () if one is not None]
    if not known:
        known = [one for one in RAW.get(getattr(value, "name", ""), [3]) if one is not None and one == one]
    picked = [chance.choice(known), chance.choice(known), known[0], known[-1]]
    found = [Fraction(one) if isinstance(one, float) and abs(one) < 1e300 else one for one in picked]
    return [one for one in found if not isinstance(one, float)] or [Fraction(1)]


def within(key: Expr, row: dict[str, Any]) -> bool:
    """Return whether a key reads only values within the policy's lists and bounds; others belong to no group."""
    for column in COLUMNS:
        facts, value = column.facts, row.get(column.name)
        if column.name not in named(key):
            continue
        if value is None:
            inside = facts.nullable
        elif facts.values is not None or not facts.bounded:
            inside = facts.values is None or value in facts.values
        else:
            inside = facts.lower <= value <= facts.upper
        if not inside:
            return False
    return True


def values_of(key: Expr) -> tuple[Any, ...]:
    found = domain_of(key)
    assert found is not None, key
    return found


@pytest.mark.parametrize("seed", seeds(12, 1))
def test_no_value_that_a_row_can_have_is_left_out(seed: int) -> None:
    chance = random.Random(seed)
    gone = 0
    for _ in range(60):
        key = chance.choice(keys())
        where = condition(chance, chance.randrange(3), key)
        values = values_of(key)
        (left,) = remaining(Filter(TABLE, where), [(key, values)], (), public_values=ENGINE).values
        assert left is not None
        assert left == tuple(value for value in values if value in left)
        gone += len(values) - len(left)
        out = set(values) - set(left)
        for row in rows_for(named(key) | named(where), chance, RAW):
            if evaluate(where, row) is True and within(key, row):
                assert evaluate(key, row) not in out, (key, where, row)
    assert gone > 50, "conditions that leave everything prove nothing"


@pytest.mark.parametrize("seed", seeds(6, 2))
def test_no_key_is_left_out_for_any_unreleased_value(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns become values of earlier stages, in keys and conditions, and the work of a search is limited at each step."""
    chance = random.Random(seed + 300)
    for _ in range(40):
        expressions = chance.sample(keys(), 2)
        values = [values_of(key) for key in expressions]
        parts = [*expressions, condition(chance, chance.randrange(3), chance.choice(expressions))]
        unreleased = chance.choice(sorted(set().union(*map(named, parts))))
        *expressions, where = (_unreleased(part, unreleased) for part in parts)
        for name in ("FEW", "MOST_EVALUATED"):
            monkeypatch.setattr(key_questions, name, chance.choice((0, 20, 300, 20_000)))
        left = remaining(Filter(TABLE, where), list(zip(expressions, values, strict=True)), ())
        for row in rows_for(set().union(*map(named, parts)), chance, RAW, 100):
            found = [evaluate(key, row) for key in expressions]
            if not all(within(key, row) for key in expressions) or evaluate(where, row) is not True:
                continue
            if all(map(tuple.__contains__, values, found)):
                assert all(map(tuple.__contains__, left.values, found)), (expressions, where, row)
                number = 0
                for value, listed in zip(found, left.values, strict=True):
                    number = number * len(listed) + listed.index(value)
                assert left.numbers is None or number in left.numbers, (expressions, where, row)


def _unreleased(expression: Expr, name: str) -> Expr:
    """Return an expression in which the column `name` is a value that is not released yet."""
    if isinstance(expression, Column):
        return ReleasedValue(name, expression.facts) if expression.name == name else expression
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_unreleased(part, name) for part in expression.arguments))
    return expression


def _between(value: Expr, low: Any, high: Any) -> Expr:
    return call("and", call("ge", value, literal(low)), call("le", value, literal(high)))


DECADE = call("intdiv", AGE, literal(5))
MONTH = call("date_trunc", literal("month"), DAY)
STAGE = call(
    "case", call("lt", AGE, literal(4)), literal("young"), call("lt", AGE, literal(9)), literal("old"), literal("x")
)
FLOOR = call("mul", call("floor", call("div", COST, literal(10))), literal(10))
PLAIN: list[tuple[Expr, Expr]] = [
    (AGE, _between(AGE, 3, 5)), (AGE, call("in", AGE, literal(2), literal(7), literal(40))), (AGE, call("is_null", AGE)),
    (AGE, call("not", call("is_null", AGE))), (AGE, call("ne", AGE, literal(4))), (AGE, call("lt", AGE, literal(0))),
    (AGE, call("or", call("lt", AGE, literal(2)), call("gt", AGE, literal(11)))), (AGE, call("eq", DECADE, literal(1))),
    (DECADE, _between(AGE, 5, 9)), (call("mod", AGE, literal(4)), _between(AGE, 4, 5)), (DECADE, call("gt", DECADE, literal(0))),
    (SEX, call("like", SEX, literal("f%"))), (SEX, call("not", call("in", SEX, literal("f"), literal("m")))),
    (call("upper", SEX), call("eq", SEX, literal("m"))), (call("upper", SEX), call("eq", call("upper", SEX), literal("M"))),
    (STAGE, call("ge", AGE, literal(4))), (STAGE, call("eq", STAGE, literal("old"))), (AGE, call("eq", STAGE, literal("old"))),
    (DAY, _between(DAY, date(2024, 2, 28), date(2024, 3, 1))), (MONTH, call("ge", DAY, literal(date(2024, 2, 10)))),
    (MONTH, call("eq", call("date_part", literal("month"), DAY), literal(2))), (DAY, call("eq", MONTH, literal(date(2024, 2, 1)))),
    (call("strftime", DAY, literal("%Y-%m")), call("lt", DAY, literal(date(2024, 2, 1)))),
    (call("date_trunc", literal("hour"), SEEN),
     call("and", call("ge", SEEN, literal(datetime(2024, 2, 1))), call("lt", SEEN, literal(datetime(2024, 2, 1, 2))))),
    (FLOOR, call("and", call("ge", COST, literal(10)), call("lt", COST, literal(30)))), (OLD, call("is_true", OLD)), (OLD, OLD),
    (OLD, call("not", OLD)), (call("gt", AGE, literal(6)), call("gt", AGE, literal(8))),
    (AGE, call("and", call("eq", AGE, RANK), call("eq", RANK, literal(2)))), (AGE, call("eq", literal(1), literal(2))),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(PLAIN)))
def test_plain_conditions_leave_exactly_the_keys_of_rows_within_the_bounds(at: int) -> None:
    key, where = PLAIN[at]
    values = values_of(key)
    (left,) = remaining(Filter(TABLE, where), [(key, values)], (), public_values=ENGINE).values
    names = named(key) | named(where)
    raw = {name: [*INSIDE[name], *([None] if name != "rank" else [])] for name in names}
    there = {
        evaluate(key, row) for row in rows_for(names, random.Random(0), raw, 100_000) if evaluate(where, row) is True
    }
    assert left == tuple(value for value in values if value in there)


def test_rows_of_an_outer_join_without_a_partner_keep_null_alone() -> None:
    right = Filter(Scan("r", (SEX, AGE)), call("eq", SEX, literal("f")))
    pair = ((Column("a.age", AGE.facts), Column("b.age", AGE.facts)),)
    joined = Join(Scan("l", (AGE,)), right, "left", pair, False)
    sex, here = Column("b.sex", SEX.facts), Column("a.age", AGE.facts)
    assert remaining(joined, [(sex, ("f", "m", "x", None))], ()).values == (("f", None),)
    assert remaining(Filter(joined, call("eq", sex, literal("m"))), [(sex, ("f", "m", "x", None))], ()).values == ((),)
    inner = Filter(Join(Scan("l", (AGE,)), right, "inner", pair, False), call("lt", here, literal(2)))
    assert remaining(inner, [(sex, ("f", "m", "x", None))], ()).values == (("f",),)
    there = Column("b.age", AGE.facts)
    assert remaining(inner, [(there, (*range(13), None))], ()).values == ((0, 1),)


def test_a_union_keeps_what_one_of_its_parts_may_have() -> None:
    def part(where: Expr) -> Relation:
        return Project(Filter(TABLE, where), (("p0", AGE),))

    union = Union_((part(call("lt", AGE, literal(2))), part(call("gt", AGE, literal(11)))))
    assert remaining(union, [(Column("p0", AGE.facts), (*range(13), None))], ()).values == ((0, 1, 12),)


# --- combinations of keys -----------------------------------------------------------------------------------------------


def tuples(left: RemainingKeys) -> set[tuple[Any, ...]]:
    """Return the remaining combinations."""
    every = list(product(*(values or () for values in left.values)))
    return set(every) if left.numbers is None else {every[at] for at in left.numbers}


def asked(chosen: Sequence[Expr]) -> list[tuple[Expr, tuple[Any, ...]]]:
    return [(key, values_of(key)) for key in chosen]


@pytest.mark.parametrize("seed", seeds(10, 1))
def test_no_combination_that_a_row_can_have_is_left_out(seed: int) -> None:
    chance = random.Random(seed + 1000)
    gone = 0
    for _ in range(40):
        chosen = chance.sample(keys(), 2)
        where = condition(chance, chance.randrange(1, 4), chance.choice(chosen))
        left = remaining(Filter(TABLE, where), asked(chosen), (), public_values=ENGINE)
        kept, domains = tuples(left), [set(values_of(key)) for key in chosen]
        gone += len(domains[0]) * len(domains[1]) - len(kept)
        for row in rows_for(named(chosen[0]) | named(chosen[1]) | named(where), chance, RAW, 300):
            if evaluate(where, row) is True and all(within(key, row) for key in chosen):
                found = tuple(evaluate(key, row) for key in chosen)
                inside = all(map(set.__contains__, domains, found))
                assert found in kept or not inside, (chosen, where, row)
    assert gone > 400, "conditions that leave everything prove nothing"


def _both(a: Expr, low: Any, b: Expr, high: Any) -> Expr:
    return call("and", call("eq", a, literal(low)), call("eq", b, literal(high)))


PAIRS: list[tuple[tuple[Expr, ...], Expr | None]] = [
    ((AGE, SEX), call("or", _both(AGE, 3, SEX, "f"), _both(AGE, 4, SEX, "m"))),
    ((DAY, MONTH), None),
    ((MONTH, DAY), call("ge", DAY, literal(DAY.facts.upper))),
    ((AGE, STAGE), None),
    ((AGE, STAGE, SEX), call("or", call("lt", AGE, literal(2)), call("eq", SEX, literal("x")))),
    ((AGE, RANK), call("eq", AGE, RANK)),
    ((AGE, RANK), call("lt", AGE, RANK)),
    ((RANK, SEX), call("or", call("is_null", SEX), call("eq", RANK, literal(1)))),
    ((call("mod", AGE, literal(4)), call("intdiv", AGE, literal(4))),
     call("and", call("ge", AGE, literal(0)), call("le", AGE, literal(9)))),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(PAIRS)))
def test_plain_conditions_leave_exactly_the_combinations_of_rows_within_the_bounds(at: int) -> None:
    chosen, where = PAIRS[at]
    source: Relation = TABLE if where is None else Filter(TABLE, where)
    names = set().union(*map(named, chosen)) | (named(where) if where is not None else set())
    raw = {name: [*INSIDE[name], *([None] if name != "rank" else [])] for name in names}
    there = {
        tuple(evaluate(key, row) for key in chosen)
        for row in rows_for(names, random.Random(0), raw, 100_000)
        if where is None or evaluate(where, row) is True
    }
    left = remaining(source, asked(chosen), (), public_values=ENGINE)
    assert tuples(left) == there
    assert [list(one or ()) for one in left.values] == [
        [value for value in values_of(key) if any(one[at] == value for one in there)] for at, key in enumerate(chosen)
    ]


# --- rows of public tables ----------------------------------------------------------------------------------------------

INTEGER, TEXT = Facts(Type.INTEGER), Facts(Type.TEXT)
SALES = Scan("sales", (Column("shop", INTEGER), AGE))
SHOPS = Scan("shops", (Column("id", INTEGER), Column("town", TEXT), Column("land", INTEGER)))
LANDS = Scan("lands", (Column("nr", INTEGER), Column("name", TEXT)))
PUBLIC: PublicRows = {
    "shops": (("id", "town", "land"), [(1, "oslo", 1), (2, "bergen", 1), (3, "rome", 2), (4, None, 2), (5, "pisa", None)]),
    "lands": (("nr", "name"), [(1, "norway"), (2, "italy"), (3, "spain")]),
}  # fmt: skip
TOWNS, NAMES = ("bergen", "oslo", "pisa", "rome", None), ("italy", "norway", "spain", None)


def joined(kind: str = "inner", other: str = "inner") -> Relation:
    first = Join(SALES, SHOPS, kind, ((Column("a.shop", INTEGER), Column("b.id", INTEGER)),), False)
    return Join(first, LANDS, other, ((Column("a.b.land", INTEGER), Column("b.nr", INTEGER)),), False)


TOWN, LAND, SHOP = Column("a.b.town", TEXT), Column("b.name", TEXT), Column("a.a.shop", INTEGER)


def brute(kind: str, other: str, where: Expr | None, chosen: Sequence[Expr]) -> set[tuple[Any, ...]]:
    """Return the combinations over sales in every shop, and in unknown shops."""
    found = set()
    for shop, age in product((*range(7), None), (*range(13), None)):
        met = [one for one in PUBLIC["shops"][1] if one[0] == shop] or ([(None, None, None)] if kind == "left" else [])
        for one in met:
            lands = [land for land in PUBLIC["lands"][1] if land[0] == one[2] and one[2] is not None]
            for land in lands or ([(None, None)] if other == "left" else []):
                row = {"a.a.shop": shop, "a.a.age": age, "a.b.id": one[0], "a.b.town": one[1], "a.b.land": one[2],
                       "b.nr": land[0], "b.name": land[1]}  # fmt: skip
                if where is None or evaluate(where, row) is True:
                    found.add(tuple(evaluate(key, row) for key in chosen))
    return found


JOINED: list[tuple[str, str, Expr | None]] = [
    ("inner", "inner", call("eq", LAND, literal("norway"))),
    ("inner", "left", call("like", TOWN, literal("%s%"))),
    ("left", "left", None),
    ("left", "left", call("is_null", LAND)),
    ("left", "inner", call("eq", Column("b.nr", INTEGER), literal(2))),
    ("inner", "inner", call("eq", SHOP, literal(3))),
    ("left", "left", call("in", SHOP, literal(3), literal(6))),
    ("inner", "left", call("ne", LAND, TOWN)),
    ("left", "left", call("or", call("eq", TOWN, literal("rome")), call("eq", LAND, literal("norway")))),
    ("inner", "inner", call("eq", LAND, literal("spain"))),
]


@pytest.mark.parametrize("at", range(len(JOINED)))
def test_rows_of_public_tables_are_known(at: int) -> None:
    kind, other, where = JOINED[at]
    source = joined(kind, other) if where is None else Filter(joined(kind, other), where)
    for chosen, listed in (((TOWN, LAND), (TOWNS, NAMES)), ((LAND,), (NAMES,)), ((TOWN,), (TOWNS,))):
        left = remaining(source, list(zip(chosen, listed, strict=True)), (), PUBLIC, ENGINE)
        assert tuples(left) == brute(kind, other, where, chosen), (where, chosen)
    shop = remaining(source, [(SHOP, (*range(7), None)), (TOWN, TOWNS)], (), PUBLIC, ENGINE)
    assert tuples(shop) == brute(kind, other, where, (SHOP, TOWN))


def test_semi_joins_with_public_rows_leave_the_values_that_match() -> None:
    right = Filter(SHOPS, call("eq", Column("land", INTEGER), literal(2)))
    pair = ((Column("shop", INTEGER), Column("id", INTEGER)),)
    shop, values = Column("shop", INTEGER), (*range(7), None)
    for negated, in_list, there in (
        (False, True, (3, 4)),
        (True, False, (0, 1, 2, 5, 6, None)),
        (True, True, (0, 1, 2, 5, 6)),
    ):
        kept = SemiJoin(SALES, right, pair, False, negated, in_list)
        assert remaining(kept, [(shop, values)], (), PUBLIC, ENGINE).values == (there,)
    towns = ((Column("shop", INTEGER), Column("land", INTEGER)),)
    assert remaining(SemiJoin(SALES, SHOPS, towns, False, True, True), [(shop, values)], (), PUBLIC, ENGINE).values == (
        (),
    )
    none = Filter(SHOPS, call("eq", Column("land", INTEGER), literal(9)))
    assert remaining(SemiJoin(SALES, none, pair, False, True, True), [(shop, values)], (), PUBLIC, ENGINE).values == (
        values,
    )


@pytest.mark.parametrize(("other", "said"), [(200, 200), (201, 0)])
def test_of_rows_that_meet_none_nothing_is_said_where_these_are_many(other: int, said: int) -> None:
    branch = Branch({}, tables=(("b.", "shops"),))
    unmatched = UnmatchedRows(((SHOP, Column("b.id", INTEGER)),), branch, False)
    long = {**PUBLIC, "shops": (PUBLIC["shops"][0], [(number, "oslo", 1) for number in range(other)])}
    assert len(list(_without_partner(unmatched, long, ENGINE))) == said


def test_two_wide_keys_are_compared_without_listing_their_combinations() -> None:
    wide = [Column(name, Facts(Type.INTEGER, Fraction(0), Fraction(2999))) for name in ("u", "v")]
    source = Filter(Scan("t", tuple(wide)), call("and", call("lt", *wide), call("ge", wide[0], literal(1000))))
    left = remaining(source, [(one, (*range(3000), None)) for one in wide], (), public_values=ENGINE)
    assert left.numbers is None and left.values[0] == tuple(range(1000, 3000))


def test_a_key_that_no_question_lists_has_the_values_of_its_expression() -> None:
    """Where the source's engine does not share a function, a key behind a subquery has the values that it has in GROUP BY."""
    source, apart = Project(TABLE, (("p0", call("upper", SEX)),)), PublicValues(functions=frozenset())
    (values,) = remaining(source, [(Column("p0", Facts(Type.TEXT)), None)], public_values=apart).values
    assert values is not None and values == domain_of(call("upper", SEX))
