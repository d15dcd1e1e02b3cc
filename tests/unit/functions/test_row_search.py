"""Combinations of public keys that remain under conditions and public rows, compared with brute force over raw values.

Sound: a removed combination is that of no row for which the conditions are true. Useful: plain conditions leave exactly the
combinations of rows within the bounds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import product
from typing import Any

import pytest
from support.seeds import seeds

from dpsql.functions import row_search
from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_branches import PublicRows, _without_partner
from dpsql.functions.key_narrowing import RemainingKeys, remaining
from dpsql.functions.numeric import call
from dpsql.functions.possible_values import single
from dpsql.functions.row_search import Row, _Test
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.origins import Branch, UnmatchedRows
from dpsql.plan.plan import Column, Expr, Filter, Join, Relation, Scan, SemiJoin
from unit.functions.test_key_narrowing import (
    AGE,
    DAY,
    INSIDE,
    MONTH,
    RANK,
    RAW,
    SEX,
    STAGE,
    TABLE,
    condition,
    keys,
    literal,
    named,
    rows_for,
    values_of,
)


def tuples(left: RemainingKeys) -> set[tuple[Any, ...]]:
    """Return the remaining combinations."""
    every = list(product(*left.values))
    return set(every) if left.numbers is None else {every[at] for at in left.numbers}


def asked(chosen: Sequence[Expr]) -> list[tuple[Expr, tuple[Any, ...]]]:
    return [(key, values_of(key)) for key in chosen]


@pytest.mark.parametrize("seed", seeds(10, 3))
def test_no_combination_that_a_row_can_have_is_left_out(seed: int) -> None:
    chance = random.Random(seed + 1000)
    gone = 0
    for _ in range(40):
        chosen = chance.sample(keys(), 2)
        where = condition(chance, chance.randrange(1, 4), chance.choice(chosen))
        left = remaining(Filter(TABLE, where), asked(chosen), ())
        kept, domains = tuples(left), [set(values_of(key)) for key in chosen]
        gone += len(domains[0]) * len(domains[1]) - len(kept)
        for row in rows_for(named(chosen[0]) | named(chosen[1]) | named(where), chance, RAW, 300):
            if evaluate(where, row) is True:
                found = tuple(evaluate(key, row) for key in chosen)
                inside = all(one in domain for one, domain in zip(found, domains, strict=True))
                assert found in kept or not inside, (chosen, where, row)
    assert gone > 400, "conditions that leave everything prove nothing"


def _both(a: Expr, low: Any, b: Expr, high: Any) -> Expr:
    return call("and", call("eq", a, literal(low)), call("eq", b, literal(high)))


PLAIN: list[tuple[tuple[Expr, ...], Expr | None]] = [
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


@pytest.mark.parametrize("at", range(len(PLAIN)))
def test_plain_conditions_leave_exactly_the_combinations_of_rows_within_the_bounds(at: int) -> None:
    chosen, where = PLAIN[at]
    source: Relation = TABLE if where is None else Filter(TABLE, where)
    names = set().union(*map(named, chosen)) | (named(where) if where is not None else set())
    raw = {name: [*INSIDE[name], *([None] if name != "rank" else [])] for name in names}
    there = {
        tuple(evaluate(key, row) for key in chosen)
        for row in rows_for(names, random.Random(0), raw, 100_000)
        if where is None or evaluate(where, row) is True
    }
    left = remaining(source, asked(chosen), ())
    assert tuples(left) == there
    assert [list(one) for one in left.values] == [
        [value for value in values_of(key) if any(one[at] == value for one in there)] for at, key in enumerate(chosen)
    ]


MOMENTS = [
    call("date_part", literal("month"), DAY), call("strftime", DAY, literal("%B")), call("date_part", literal("dow"), DAY),
    call("strftime", DAY, literal("%A")), call("date_part", literal("quarter"), DAY), call("date_part", literal("day"), DAY),
    call("case", call("in", call("date_part", literal("dow"), DAY), literal(0), literal(6)), literal("end"), literal("week")),
    call("date_part", literal("doy"), DAY), call("strftime", DAY, literal("%d.%m.")),
]  # fmt: skip


@pytest.mark.parametrize("seed", seeds(6, 2))
def test_parts_of_dates_that_repeat_depend_on_each_other(seed: int) -> None:
    """Days of any year, inside the bounds and far outside of them: their months have one name, and nothing more is shown."""
    chance = random.Random(seed)
    chosen = tuple(chance.sample(MOMENTS, 2))
    days = [date(1, 1, 1) + timedelta(days=chance.randrange(3_652_000)) for _ in range(20_000)]
    every = {tuple(evaluate(key, {"day": day}) for key in chosen) for day in [*days, *INSIDE["day"], None]}
    listed = [tuple(dict.fromkeys(one[at] for one in every)) for at in range(2)]
    left = tuples(remaining(TABLE, list(zip(chosen, listed, strict=True)), ()))
    assert every <= left
    cycle = [*(date(2000, 1, 1) + timedelta(days=at) for at in range(10_300)), None]
    assert left <= {tuple(evaluate(key, {"day": day}) for key in chosen) for day in cycle}
    later = Filter(TABLE, call("ge", DAY, literal(date(2024, 3, 1))))
    assert tuples(remaining(later, list(zip(chosen, listed, strict=True)), ())) >= {
        tuple(evaluate(key, {"day": day}) for key in chosen) for day in days if day >= date(2024, 3, 1)
    }


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
        left = remaining(source, list(zip(chosen, listed, strict=True)), (), PUBLIC)
        assert tuples(left) == brute(kind, other, where, chosen), (where, chosen)
    shop = remaining(source, [(SHOP, (*range(7), None)), (TOWN, TOWNS)], (), PUBLIC)
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
        assert remaining(kept, [(shop, values)], (), PUBLIC).values == (there,)
    towns = ((Column("shop", INTEGER), Column("land", INTEGER)),)
    assert remaining(SemiJoin(SALES, SHOPS, towns, False, True, True), [(shop, values)], (), PUBLIC).values == ((),)
    none = Filter(SHOPS, call("eq", Column("land", INTEGER), literal(9)))
    assert remaining(SemiJoin(SALES, none, pair, False, True, True), [(shop, values)], (), PUBLIC).values == (values,)


def test_a_public_table_that_is_too_long_to_look_at_leaves_every_value() -> None:
    where = Filter(joined(), call("eq", LAND, literal("norway")))
    assert remaining(where, [(TOWN, TOWNS)], ()).values == (TOWNS,)
    long = {**PUBLIC, "shops": (PUBLIC["shops"][0], [(at, f"t{at}", 1) for at in range(70_000)])}
    assert remaining(where, [(TOWN, TOWNS)], (), long).values == (TOWNS,)


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_work_grows_with_values_of_long_public_tables_and_not_with_their_rows(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition on a town is evaluated once for each town; the condition that a shop equals itself costs nothing."""
    towns = tuple(f"t{number}" for number in range(9))
    where = Filter(joined(kind, "left"), call("like", TOWN, literal("%1%")))
    tried: list[Expr] = []

    def counted(expression: Expr, values: Any) -> Any:
        tried.append(expression)
        return evaluate(expression, values)

    monkeypatch.setattr(row_search, "evaluate", counted)
    works = []
    for rows in (900, 3600):
        tried.clear()
        listed = [(number, towns[number % 9], None) for number in range(rows)]
        long = {**PUBLIC, "shops": (PUBLIC["shops"][0], listed)}
        left = remaining(where, [(TOWN, (*towns, None))], (), long)
        assert left.values == (("t1",),)
        works.append(len(tried))
    assert works[0] == works[1] < 100


def test_values_that_are_equal_but_of_other_types_are_tried_apart() -> None:
    test = _Test(call("eq", call("add", AGE, literal(0)), literal(1)), frozenset({"age"}))
    tried = [test.may_be_true(Row({"age": value})) for value in (1, True, 1, 0, False, None)]
    assert tried == [evaluate(test._condition, {"age": value}) is True for value in (1, True, 1, 0, False, None)]
    real = Column("real", Facts(Type.REAL))
    near = _Test(call("eq", call("add", real, literal(0)), literal(0)), frozenset({"real"}))
    assert near.may_be_true(Row({"real": 0.0})) and near.may_be_true(Row({"real": -0.0})) and near._by_value == {}


def test_a_column_that_is_itself_is_not_null() -> None:
    same = _Test(call("eq", AGE, AGE), frozenset({"age"}))
    assert [same.may_be_true(Row({"age": value})) for value in (3, None, 0)] == [True, False, True]
    assert same.may_be_true(Row({}, {"age": single(None)})) is False


@pytest.mark.parametrize(("other", "said"), [(200, 200), (201, 0)])
def test_of_rows_that_meet_none_nothing_is_said_where_these_are_many(other: int, said: int) -> None:
    branch = Branch({}, tables=(("b.", "shops"),))
    unmatched = UnmatchedRows(((SHOP, Column("b.id", INTEGER)),), branch, False)
    long = {**PUBLIC, "shops": (PUBLIC["shops"][0], [(number, "oslo", 1) for number in range(other)])}
    assert len(list(_without_partner(unmatched, long))) == said


def test_many_values_are_narrowed_one_by_one() -> None:
    """Two wide keys that are compared with each other: no more combinations are examined than permitted."""
    wide = [Column(name, Facts(Type.INTEGER, lower=0, upper=2999)) for name in ("u", "v")]
    source = Filter(Scan("t", tuple(wide)), call("and", call("lt", *wide), call("ge", wide[0], literal(1000))))
    left = remaining(source, [(one, (*range(3000), None)) for one in wide], ())
    assert left.numbers is None and left.values == (tuple(range(1000, 3000)), tuple(range(1001, 3000)))
