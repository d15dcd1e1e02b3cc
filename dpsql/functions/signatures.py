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
    `functions.evaluate` has it. `nodes`: names of the parser's nodes whose operands are the arguments in order, `spellings`:
    names of functions that the parser keeps as they are. `repeated`: how often an engine's text names the argument. `cost`
    of one row, and `per_byte` of its texts, in nanoseconds at most; `reads_text`: from the first character to the last.

    What holds of its values, all arguments but one being literals: `strict`, NULL only where an argument is; `total`, a value for
    every value of that argument; `rising` with it, where it is a number or moment that is read from the row; `coarse`, the
    function is meant to have one value for many of them.
    """

    name: str
    infer: Infer
    meaning: Callable[..., Any] | None = None
    nodes: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    repeated: int = 1
    cost: int = 0
    per_byte: int = 0
    reads_text: bool = False
    strict: bool = False
    total: bool = False
    rising: bool = False
    coarse: bool = False

    def of_values(self, *values: Any) -> Any:
        """Return the function's value for these values of its arguments."""
        assert self.meaning is not None, self.name
        return self.meaning(*values)


REGISTRY: dict[str, Function] = {}


def call(name: str, *arguments: Expr) -> Call:
    """Return the call of a registered function, with its facts. Raises WrongArguments."""
    return Call(name, arguments, REGISTRY[name].infer(arguments))


def function(*names: str, **facts: Any) -> Callable[[Infer], Infer]:
    """Enter functions under `names`, with further `facts` as in `Function`."""

    def enter(infer: Infer) -> Infer:
        for name in names:
            REGISTRY[name] = Function(name, infer, **facts)
        return infer

    return enter


def want(arguments: tuple[Expr, ...], *expected: tuple[Type, ...] | Type) -> None:
    """Check arguments, of which `expected` has the types that each may have; NULL literals fit everywhere."""
    if len(arguments) != len(expected):
        raise WrongArguments(f"takes {len(expected)} argument{'s' if len(expected) != 1 else ''}, got {len(arguments)}")
    for position, (argument, types) in enumerate(zip(arguments, expected, strict=True), 1):
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


def literal_text(argument: Expr, description: str) -> str:
    value = argument.value if isinstance(argument, Literal) else None
    if not isinstance(value, str):
        raise WrongArguments(f"takes a literal {description}")
    return value


def common_type(arguments: tuple[Expr, ...]) -> Type:
    """Return the one type that several alternatives share; INTEGER and REAL meet in REAL, DATE and TIMESTAMP in TIMESTAMP."""
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
