"""Conditions of which a part is unknown: the weakened condition is true wherever the condition can be."""

import random
from fractions import Fraction
from itertools import product

import pytest
from support.random_expressions import literal
from support.seeds import seeds

from dpsql.functions.evaluate import evaluate
from dpsql.functions.key_questions import Weakening, folded
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, names_read

KNOWN = [Column(name, Facts(Type.INTEGER, Fraction(0), Fraction(2))) for name in ("a", "c")]
UNKNOWN = [Column(name, Facts(Type.INTEGER)) for name in ("u", "v")]
TRUTH = Column("t", Facts(Type.BOOLEAN))


def condition(chance: random.Random, depth: int) -> Expr:
    if depth == 0 or chance.random() < 0.2:
        left, right = chance.choice([*KNOWN, *UNKNOWN]), chance.choice([*KNOWN, *UNKNOWN, literal(1), literal(None)])
        return chance.choice(
            [call(chance.choice(("eq", "ne", "lt", "ge", "not_distinct")), left, right), TRUTH, call("is_null", left)]
        )
    word = chance.choice(
        ("and", "or", "not", "is_true", "is_false", "eq", "not_distinct", "case", "coalesce", "is_null")
    )
    parts = [
        condition(chance, depth - 1)
        for _ in range({"not": 1, "is_true": 1, "is_false": 1, "is_null": 1, "case": 3}.get(word, 2))
    ]
    return call(word, *parts)


@pytest.mark.parametrize("seed", seeds(8, 1))
def test_a_weakened_condition_is_true_wherever_the_condition_can_be_with_variables(seed: int) -> None:
    """Unknown columns have every value; where the condition is true, some truth values make the weakened condition true."""
    chance = random.Random(seed)
    said = 0
    known = {column.name for column in KNOWN}
    for _ in range(60):
        asked = folded(condition(chance, 3))
        weakening = Weakening(
            lambda part: bool({name for name in names_read(part) if not name.startswith("#")} - known)
        )
        weak = weakening.weak(asked)
        assert names_read(weak) <= known | set(weakening.sizes), (asked, weak)
        tables = weakening.tables()
        for a, c in product((0, 1, 2, None), repeat=2):
            met = any(
                evaluate(asked, {"a": a, "c": c, "u": u, "v": v, "t": t}) is True
                for u, v, t in product((-1, 0, 1, 5, None), (0, 1, None), (True, False, None))
            )
            rows = product(*(list(table.values()) for table in tables))
            possible = any(
                evaluate(
                    weak,
                    {"a": a, "c": c, **{table.names[0]: value[0] for table, value in zip(tables, row, strict=True)}},
                )
                is True
                for row in rows
            )
            assert possible or not met, (asked, weak, a, c)
            said += not possible
    assert said > 40, "conditions that are always true say nothing"


def test_calls_that_are_null_whatever_their_columns_are_constants() -> None:
    null = Literal(None, Facts(Type.INTEGER))
    assert folded(call("add", KNOWN[0], null)) == Literal(None, call("add", KNOWN[0], null).facts)
    assert folded(call("coalesce", null, KNOWN[0])) == call("coalesce", null, KNOWN[0])
    assert folded(call("add", literal(1), literal(2))).value == 3  # type: ignore[union-attr]
    unknown = Call("sample.of", (null,), Facts(Type.REAL))
    assert folded(unknown) is unknown
