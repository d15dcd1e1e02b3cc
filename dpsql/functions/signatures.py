"""The register of row functions: what an entry is, and what the checks of arguments share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsql.plan.intervals import Facts, Interval, Type
from dpsql.plan.plan import Call, Expr, Literal


class WrongArguments(Exception):
    """The function exists and does not take these arguments; the text says what it takes."""


Infer = Callable[[tuple[Expr, ...]], Facts]


@dataclass(frozen=True)
class Function:
    """`infer` gives the facts of the result from the arguments, or raises `WrongArguments`.

    `meaning`: the function in Python, of values that are not NULL (None, and errors of arithmetic, are NULL); None where
    `functions.evaluate` has it. `nodes`: names of the parser's nodes whose operands are the arguments in order. `cost`: of
    one row in nanoseconds (None: as `functions.row_costs` says).
    """

    name: str
    infer: Infer
    meaning: Callable[..., Any] | None = None
    nodes: tuple[str, ...] = ()
    cost: int | None = None


REGISTRY: dict[str, Function] = {}
REPEATED = {
    "clamp": 4, "width_bucket": 7, "add_days": 2, "add_months": 2, "add_seconds": 2,
    "nullif": 2, "to_integer": 2, "to_real": 2, "to_boolean": 2, "to_date": 2, "to_timestamp": 2,
    "time_bucket": 4, "strlen": 2,
}  # fmt: skip
"""How often an engine's text names the argument, where it names it more than once."""


def call(name: str, *arguments: Expr) -> Call:
    """The call of a registered function, with its facts. Raises WrongArguments."""
    return Call(name, arguments, REGISTRY[name].infer(arguments))


def function(
    *names: str,
    meaning: Callable[..., Any] | None = None,
    nodes: tuple[str, ...] = (),
    repeated: int = 1,
    cost: int | None = None,
) -> Callable[[Infer], Infer]:
    """Enter functions under `names`; the other arguments are as in `Function` and `REPEATED`."""

    def enter(infer: Infer) -> Infer:
        for name in names:
            REGISTRY[name] = Function(name, infer, meaning, nodes, cost)
            if repeated > 1:
                REPEATED[name] = repeated
        return infer

    return enter


def want(arguments: tuple[Expr, ...], *wanted: tuple[Type, ...] | Type) -> None:
    """One entry per argument: the types it may have; NULL literals fit everywhere."""
    if len(arguments) != len(wanted):
        raise WrongArguments(f"takes {len(wanted)} argument{'s' if len(wanted) != 1 else ''}, got {len(arguments)}")
    for position, (argument, types) in enumerate(zip(arguments, wanted, strict=True), 1):
        allowed = types if isinstance(types, tuple) else (types,)
        if argument.facts.type not in (*allowed, Type.NULL):
            names = " or ".join(type_.value for type_ in allowed)
            raise WrongArguments(f"argument {position} must be {names}, not {argument.facts.type.value}")


def interval_of(argument: Expr) -> Interval:
    return (argument.facts.lower, argument.facts.upper)


def any_nullable(arguments: tuple[Expr, ...]) -> bool:
    return any(argument.facts.nullable for argument in arguments)


NUMERIC = (Type.INTEGER, Type.REAL)
TEMPORAL = (Type.DATE, Type.TIMESTAMP)


def literal_int(argument: Expr, low: int, high: int) -> None:
    value = argument.value if isinstance(argument, Literal) else None
    if type(value) is not int or not low <= value <= high:
        raise WrongArguments(f"takes a literal integer from {low} to {high}")


def common_type(arguments: tuple[Expr, ...]) -> Type:
    """The one type that several alternatives share; INTEGER and REAL meet in REAL, DATE and TIMESTAMP in TIMESTAMP."""
    types = {argument.facts.type for argument in arguments} - {Type.NULL}
    if not types:
        return Type.NULL
    if types == {Type.INTEGER, Type.REAL}:
        return Type.REAL
    if types == {Type.DATE, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    if len(types) > 1:
        raise WrongArguments("mixes " + " and ".join(sorted(type_.value for type_ in types)))
    return types.pop()


def comparable(arguments: tuple[Expr, ...]) -> None:
    """Raise WrongArguments unless all arguments can be compared with each other."""
    common_type(arguments)
