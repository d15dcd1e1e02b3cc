"""A condition and its canonical form have the same value on every row, and texts that mean the same have one form."""

import random
import sys
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from support.random_expressions import SPECS, apply, literal_of, random_rows, same
from support.seeds import seeds

from dpsql.functions.canonical_conditions import canonical_condition, filter_condition
from dpsql.functions.evaluate import evaluate
from dpsql.functions.kept_rows import named_rows, row_condition
from dpsql.functions.public_domains import as_key
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Call, Column, Expr, Literal, literal

DAY = date(2024, 2, 28)
NULL = literal(None)
VALUES: dict[str, tuple[Type, list[Any]]] = {
    "n": (Type.INTEGER, [None, -3, 0, 1, 2, 3, 4, 2**62]),
    "m": (Type.INTEGER, [None, 0, 2, 3]),
    "x": (Type.REAL, [None, -0.0, 0.5, 1.0, 2.0, 3.0, float("inf"), float("nan")]),
    "t": (Type.TEXT, [None, "", "a", "b", "B"]),
    "b": (Type.BOOLEAN, [None, True, False]),
    "d": (Type.DATE, [None, *(DAY + timedelta(days=step) for step in range(-1, 4)), date.max]),
}
COLUMNS = {name: Column(name, Facts(type_, nullable=name != "m")) for name, (type_, _) in VALUES.items()}
"""The policy says that `m` has no NULL, and some is stored."""
LITERALS: dict[str, list[Any]] = {
    "n": [0, 1, 2, 3, Fraction(2), Fraction(5, 2), Fraction(-1, 3), 2**63 - 1, -(2**63), Fraction(2**60)],
    "m": [0, 2, Fraction(3)],
    "x": [0, 1, 2, Fraction(1, 2), Fraction(2)],
    "t": ["", "a", "b"],
    "b": [True, False],
    "d": [DAY, DAY + timedelta(days=1), DAY + timedelta(days=2), date.max, date.min],
}
ORDERS = ("lt", "le", "gt", "ge")


def atom(chance: random.Random) -> Expr:
    name = chance.choice(list(COLUMNS))
    column, literals = COLUMNS[name], LITERALS[name]
    kind = chance.randrange(8)
    if kind == 0:
        several = [literal(chance.choice(literals)) for _ in range(chance.randrange(1, 5))]
        return call("in", column, *several, *([NULL] if chance.random() < 0.2 else []))
    if kind == 1:
        return call("is_null", column)
    if kind == 2:
        return chance.choice([COLUMNS["b"], literal(True), literal(False), NULL])
    word = chance.choice([*ORDERS, "eq", "ne", "eq", "ne", "not_distinct"])
    if kind == 3:
        return call(word, *chance.sample([COLUMNS["n"], COLUMNS["m"], COLUMNS["x"]], 2))
    sides = [column, NULL if chance.random() < 0.1 else literal(chance.choice(literals))]
    return call(word, *(sides[::-1] if chance.random() < 0.3 else sides))


def condition(chance: random.Random, depth: int = 3) -> Expr:
    if not depth or chance.random() < 0.2:
        return atom(chance)
    word = chance.choice(["and", "or", "and", "or", "not", "is_true", "is_false", "case", "coalesce"])
    if word in ("case", "coalesce"):
        truths = [literal(truth) for truth in chance.sample((True, False), 2)]
        return call(word, condition(chance, depth - 1), *truths[: 2 if word == "case" else 1])
    parts = [condition(chance, depth - 1) for _ in range(chance.randrange(2, 4) if word in ("and", "or") else 1)]
    return call(word, *parts)


def shown(part: Expr) -> str:
    if isinstance(part, Call):
        return f"{part.function}({', '.join(map(shown, part.arguments))})"
    return part.name if isinstance(part, Column) else str(getattr(part, "value", part))


def rows(chance: random.Random) -> list[dict[str, Any]]:
    return [{name: chance.choice(values) for name, (_, values) in VALUES.items()} for _ in range(40)]


@pytest.mark.parametrize("seed", seeds(20, 1))
def test_the_value_is_the_same_on_every_row(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(400):
        before = condition(chance)
        after, kept = canonical_condition(before), filter_condition(before)
        for row in rows(chance):
            assert evaluate(after, row) is evaluate(before, row), (shown(before), shown(after), row)
            assert (evaluate(kept, row) is True) is (evaluate(before, row) is True), (shown(before), shown(kept), row)
        assert canonical_condition(after) == after and filter_condition(kept) == kept, shown(before)


@pytest.mark.parametrize("seed", seeds(20, 1))
def test_expressions_of_all_functions_keep_their_values(seed: int) -> None:
    """Over NULL, NaN, infinities and the largest integers; `test_evaluate` compares these values with the engine's."""
    chance, changed = random.Random(f"expressions {seed}"), 0
    sample = random_rows(chance, 60)
    for number in range(1200):
        before = apply(chance, SPECS[number % len(SPECS)], 3)
        after = canonical_condition(before)
        changed += after != before
        for row in sample:
            assert same(evaluate(after, row), evaluate(before, row)), (shown(before), shown(after), row)
        assert canonical_condition(after) == after, shown(before)
    assert changed > 200


@pytest.mark.parametrize("seed", seeds(20, 1))
def test_compared_expressions_of_all_functions_keep_their_rows(seed: int) -> None:
    """`row_condition` reads through functions: `floor(x / 10) = 2` is a range of x, and a CASE of texts is none."""
    chance = random.Random(f"compared {seed}")
    sample = random_rows(chance, 60)
    for number in range(1200):
        value = apply(chance, SPECS[number % len(SPECS)], 2)
        items = [literal_of(value.facts.type)(chance) for _ in range(chance.randrange(1, 3))]
        before = (
            call("in", value, *items) if len(items) > 1 else call(chance.choice([*ORDERS, "eq", "ne"]), value, *items)
        )
        kept = row_condition(before)
        for row in sample:
            assert (evaluate(kept, row) is True) is (evaluate(before, row) is True), (shown(before), shown(kept), row)


def _rewritten(part: Expr, chance: random.Random) -> Expr:
    """Return a condition that means the same, written in another way."""
    if not isinstance(part, Call):
        return chance.choice([part, call("not", call("not", part))]) if part.facts.type is Type.BOOLEAN else part
    word, arguments = part.function, part.arguments
    if word in ("and", "or"):
        parts = [_rewritten(argument, chance) for argument in arguments]
        chance.shuffle(parts)
        parts += [chance.choice(parts)] if chance.random() < 0.3 else []
        parts += [literal(word == "and")] if chance.random() < 0.3 else []
        if len(parts) > 2 and chance.random() < 0.5:
            parts = [call(word, *parts[:2]), *parts[2:]]
        other = call("and" if word == "or" else "or", *(call("not", each) for each in parts))
        return call("not", other) if chance.random() < 0.3 else call(word, *parts)
    if word == "in":
        items = [*arguments[1:], chance.choice(arguments[1:])]
        chance.shuffle(items)
        # beside one literal that is compared as a double, the engine compares a whole list so
        whole = arguments[0].facts.type is not Type.INTEGER or not any(_is_double(item) for item in items)
        apart = whole and chance.random() < 0.5
        return (
            call("or", *(call("eq", arguments[0], item) for item in items))
            if apart
            else call("in", arguments[0], *items)
        )
    if word in _WAYS:
        return chance.choice(_WAYS[word])(*arguments)
    return call(word, *(_rewritten(argument, chance) for argument in arguments))


def _is_double(item: Expr) -> bool:
    """Return whether a literal is compared with whole numbers as a double."""
    value = item.value if isinstance(item, Literal) else None
    return isinstance(value, Fraction | float) and (value != int(value) or abs(value) >= 2**53)


_WAYS: dict[str, list[Callable[[Expr, Expr], Expr]]] = {
    "eq": [lambda a, b: call("eq", b, a), lambda a, b: call("not", call("ne", a, b))],
    "ne": [lambda a, b: call("ne", b, a), lambda a, b: call("not", call("eq", b, a))],
    "lt": [lambda a, b: call("gt", b, a), lambda a, b: call("not", call("ge", a, b))],
    "le": [lambda a, b: call("ge", b, a), lambda a, b: call("not", call("lt", b, a))],
    "gt": [lambda a, b: call("lt", b, a), lambda a, b: call("not", call("le", a, b))],
    "ge": [lambda a, b: call("le", b, a), lambda a, b: call("not", call("gt", b, a))],
}


@pytest.mark.parametrize("seed", seeds(20, 1))
def test_another_way_of_writing_has_the_same_form(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(600):
        before = condition(chance)
        other = _rewritten(before, chance)
        forms = [shown(canonical_condition(written)) for written in (before, other)]
        assert forms[0] == forms[1], (shown(before), shown(other), forms)


EXCLUDED = [
    (("ge", "n", 41), ("le", "n", 29)), (("gt", "n", 2), ("lt", "n", 3)), (("eq", "n", Fraction(41, 2)),),
    (("eq", "t", "a"), ("eq", "t", "b")), (("eq", "t", "a"), ("ne", "t", "a")), (("gt", "x", 2), ("le", "x", 2)),
    (("eq", "n", 1), ("gt", "n", 1)), (("is_null", "n"), ("ge", "n", 1)), (("eq", "n", None),), (("lt", "n", None),),
    (("ge", "d", DAY), ("lt", "d", DAY)), (("eq", "n", 1), ("eq", "n", Fraction(3, 2))), (("is_true", "b"), ("is_false", "b")),
]  # fmt: skip
POSSIBLE = [
    (("ge", "n", 2**60), ("le", "n", Fraction(2**60))), (("ge", "n", 2**60 + 1), ("le", "n", Fraction(2**60))),
    (("ge", "x", Fraction(1, 10)), ("le", "x", Fraction(1, 10) - Fraction(1, 10**30))), (("ge", "t", "b"), ("le", "t", "a")),
    (("ge", "n", 2), ("le", "m", 1)), (("is_null", "n"), ("ge", "m", 1)), (("ge", "n", 2), ("le", "n", 2)),
]  # fmt: skip


def joined(parts: tuple[tuple[Any, ...], ...]) -> Expr:
    written = [call(word, COLUMNS[name], *map(literal, values)) for word, name, *values in parts]
    return call("and", *written) if len(written) > 1 else written[0]


@pytest.mark.parametrize("parts", EXCLUDED)
def test_conditions_that_exclude_each_other_are_false(parts: tuple[tuple[Any, ...], ...]) -> None:
    condition = joined(parts)
    assert filter_condition(condition) == literal(False)
    other = call("eq", COLUMNS["m"], literal(0))
    assert filter_condition(call("and", call("or", condition, call("ne", COLUMNS["m"], literal(0))), other)) == literal(
        False
    )
    assert filter_condition(call("or", condition, other)) != literal(False)


@pytest.mark.parametrize("parts", POSSIBLE)
def test_conditions_that_some_row_may_satisfy_are_not_false(parts: tuple[tuple[Any, ...], ...]) -> None:
    assert filter_condition(joined(parts)) != literal(False)


def test_a_column_with_a_label_is_known_in_every_form() -> None:
    region = Column("region", Facts(Type.TEXT, values=("south", "a"), nullable=True, outside="other"))
    key = as_key(region)
    assert canonical_condition(key) is key
    chosen = canonical_condition(call("case", call("eq", COLUMNS["m"], literal(2)), literal("two"), key))
    assert isinstance(chosen, Call) and chosen.arguments[-1] == key


_SET, _UNSET, _LOW, _HIGH = (
    call("not", call("is_null", COLUMNS["n"])), call("is_null", COLUMNS["n"]), call("lt", COLUMNS["n"], literal(3)),
    call("gt", COLUMNS["n"], literal(8)),
)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "left", "other"),
    [
        (((_LOW, 1), (_HIGH, 1), (call("or", _LOW, _HIGH), 2)), ((call("or", _LOW, _HIGH), 1),), 0),
        (((_LOW, 1), (_LOW, 2), (_HIGH, 1)), ((call("or", _LOW, _HIGH), 1),), 0),
        (((_LOW, 2), (_UNSET, 1), (_SET, 1), (_HIGH, 1), (_LOW, 3)), ((_LOW, 2),), 1),
        (((_LOW, 1), (_HIGH, 1), (_LOW, 2)), ((call("or", _LOW, _HIGH), 1), (_LOW, 2)), 0),
    ],
    ids=["of both tests", "between two tests", "behind what is always true", "of one of two tests"],
)  # fmt: skip
def test_branches_that_are_never_chosen_leave_the_form_that_names_releases(written: Any, left: Any, other: int) -> None:
    """The last form keeps such a branch, as the names of stored releases do."""

    def case(branches: Any, other: int) -> Call:
        return call("case", *(part for test, value in branches for part in (test, literal(value))), literal(other))

    form, expected = canonical_condition(case(written, 0)), case(left, other)
    assert form == canonical_condition(expected)
    assert isinstance(form, Call) and len(form.arguments) == len(expected.arguments)


GROWING: dict[str, Callable[[int], Expr]] = {
    "branches of one value": lambda n: call("case", *(part for k in range(n) for part in (_of_number("eq", k), literal(1))), literal(0)),
    "branches of their own": lambda n: call("case", *(part for k in range(n) for part in (_of_number("eq", k), literal(k))), literal(-1)),
    "values": lambda n: call("coalesce", *(call("add", COLUMNS["n"], literal(k)) for k in range(n))),
    "gaps": lambda n: call("and", *(_of_number("ne", 3 * k) for k in range(n))),
    "gaps and spans": lambda n: call("and", *(call("or", _of_number("lt", 3 * k), _of_number("gt", 3 * k + 1)) for k in range(n))),
    "spans": lambda n: call("or", *(call("and", _of_number("ge", 3 * k), _of_number("le", 3 * k + 1)) for k in range(n))),
    "of two columns": lambda n: call("or", *(call("and", _of_number("eq", k), call("eq", COLUMNS["t"], literal(f"{k}"))) for k in range(n))),
}  # fmt: skip


def _of_number(word: str, number: int) -> Expr:
    return call(word, COLUMNS["n"], literal(number))


def work(expression: Expr) -> int:
    """Return how many calls name the rows that an expression keeps or has."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        row_condition(expression) if expression.facts.type is Type.BOOLEAN else named_rows(expression)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("long", GROWING.values(), ids=GROWING)
def test_what_is_twice_as_long_takes_about_twice_the_work(long: Callable[[int], Expr]) -> None:
    work(long(7))
    assert work(long(240)) < 2.3 * work(long(120))


@pytest.mark.parametrize("seed", seeds(4, 1))
def test_no_row_satisfies_what_is_false(seed: int) -> None:
    chance, false = random.Random(seed), 0
    for _ in range(1500):
        before = call("and", *(condition(chance, 2) for _ in range(chance.randrange(1, 4))))
        if filter_condition(before) == literal(False):
            false += 1
            assert not any(evaluate(before, row) is True for row in rows(chance)), shown(before)
    assert false > 100
