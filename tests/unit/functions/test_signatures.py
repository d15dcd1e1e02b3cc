"""A registered entry's claims about a function's values hold for its implementation in Python."""

from __future__ import annotations

import itertools
import math
import random
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from support.random_expressions import SPECS, R, Spec, T, literal, random_value

from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr

VALUES = 60


def numbered(flag: str) -> list[Any]:
    specs = [spec for spec in SPECS if getattr(REGISTRY[spec[0]], flag)]
    assert {spec[0] for spec in specs} == {name for name, entry in REGISTRY.items() if getattr(entry, flag)}
    return [pytest.param(spec, id=f"{spec[0]}-{number}") for number, spec in enumerate(specs)]


def constant(rng: random.Random, type_: Type) -> Expr:
    """Return a literal that SQL text can hold."""
    while True:
        value = random_value(rng, type_)
        if type_ is not R:
            return literal(value)
        if math.isfinite(value) and abs(value) < 1e300:
            return literal(Fraction(value))


def images(spec: Spec, varying: int, rng: random.Random) -> list[tuple[Any, Any]]:
    """Return values of argument number `varying`, ascending, and the function's value for each, with literals for all other
    arguments."""
    name, _, wanted = spec
    type_ = wanted[varying]
    assert isinstance(type_, Type)
    values = [value for value in (random_value(rng, type_) for _ in range(VALUES)) if value == value]
    others = [constant(rng, kind) if isinstance(kind, Type) else kind(rng) for kind in wanted]
    others[varying] = Column("x", Facts(type_))
    expression = call(name, *others)
    return [(value, evaluate(expression, {"x": value})) for value in sorted(values)]


def place(name: str, value: Any) -> Any:
    """Return the value to compare: for timestamps shifted by months their day, because ends of months coincide."""
    return date(value.year, value.month, value.day) if name == "add_months" and isinstance(value, datetime) else value


@pytest.mark.parametrize("spec", numbered("rising"))
def test_rising_functions_rise(spec: Spec) -> None:
    rng = random.Random(str(spec[:2]))
    varying = [index for index, kind in enumerate(spec[2]) if isinstance(kind, Type) and kind is not T]
    for index in varying if spec[0] == "add" else varying[:1]:
        for _ in range(10):
            found = [place(spec[0], image) for _, image in images(spec, index, rng) if image is not None]
            found = [image for image in found if image == image]
            assert all(low <= high for low, high in itertools.pairwise(found))


@pytest.mark.parametrize("spec", numbered("total"))
def test_total_functions_have_a_value_for_every_number_and_moment(spec: Spec) -> None:
    rng = random.Random(str(spec[:2]))
    varying = [index for index, kind in enumerate(spec[2]) if isinstance(kind, Type) and kind is not T]
    for index in varying[:1]:
        assert all(image is not None for _ in range(10) for _, image in images(spec, index, rng))


@pytest.mark.parametrize("spec", numbered("strict"))
def test_strict_functions_are_null_only_where_an_argument_is(spec: Spec) -> None:
    rng = random.Random(str(spec[:2]))
    varying = [index for index, kind in enumerate(spec[2]) if isinstance(kind, Type)]
    for index in varying:
        assert all(image is not None for _ in range(10) for _, image in images(spec, index, rng))
