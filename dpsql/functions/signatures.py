"""Registry of row functions: the type of its entries, and the common checks of arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import local
from typing import Any

from dpsql.plan.intervals import Facts, Interval, Type
from dpsql.plan.plan import Call, Expr, Literal
from dpsql.storage.records import dataclass, replace


class WrongArguments(Exception):
    """The function exists but does not take these arguments; the message says what it takes."""


Infer = Callable[[tuple[Expr, ...]], Facts]


@dataclass(frozen=True)
class Function:
    """One row function. `infer` returns the facts of the result for the arguments, or raises `WrongArguments`.

    `meaning`: the function in Python over values that are not NULL (a result of None and errors of arithmetic are NULL); None if
    `functions.evaluate` has it. `nodes`: the parser's nodes whose operands are the arguments in order. `spellings`: names of
    functions unknown to the parser. `repeated`: how often an engine's text repeats the argument. `cost` per row and `per_byte`
    of its texts: bounds in nanoseconds. `reads_text`: it reads its texts from the first to the last character.

    `coarse`: the function is meant to map many values to one.
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
    coarse: bool = False

    def of_values(self, *values: Any) -> Any:
        """Return the function's value for the values of its arguments."""
        assert self.meaning is not None, self.name
        return self.meaning(*values)


REGISTRY: dict[str, Function] = {}


def call(name: str, *arguments: Expr) -> Call:
    """Return the call of a registered function, with its facts. Raises WrongArguments if the arguments do not fit."""
    return Call(name, arguments, REGISTRY[name].infer(arguments))


def function(*names: str, **facts: Any) -> Callable[[Infer], Infer]:
    """Register the decorated `infer` as functions called `names`, with the fields `facts` of `Function`."""

    def enter(infer: Infer) -> Infer:
        for name in names:
            REGISTRY[name] = Function(name, infer, **facts)
        return infer

    return enter


def want(arguments: tuple[Expr, ...], *expected: tuple[Type, ...] | Type) -> None:
    """Raise WrongArguments unless the arguments have the types in `expected`, one entry for each; NULL literals always fit."""
    if len(arguments) != len(expected):
        raise WrongArguments(f"takes {len(expected)} argument{'s' if len(expected) != 1 else ''}, got {len(arguments)}")
    for position, (argument, types) in enumerate(zip(arguments, expected, strict=True), 1):
        allowed = types if isinstance(types, tuple) else (types,)
        if argument.facts.type not in (*allowed, Type.NULL):
            names = " or ".join(type_.value for type_ in allowed)
            raise WrongArguments(f"argument {position} must be {names}, not {argument.facts.type.value}")


def always(result: Facts, *expected: tuple[Type, ...] | Type) -> Infer:
    """Return the rule of a function of arguments of these types whose values have the facts `result` whatever the arguments
    are. It is NULL where an argument is, if not elsewhere."""

    def infer(arguments: tuple[Expr, ...]) -> Facts:
        want(arguments, *expected)
        return replace(result, nullable=result.nullable or any_nullable(arguments))

    return infer


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
    """Return the alternatives' common type: REAL with INTEGER, TIMESTAMP with DATE. Raises WrongArguments for others."""
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
    common_type(arguments)


def formed_once(form: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    """Return `form` so that its outermost call in a thread judges no expression twice, and no call a form that an earlier one has
    made: where a form asks for those of its parts three times, 20 CASE in one another would take 3**20 steps, and an expression
    that is bound from its parts would be judged once for each level. What is a form bears a mark beside its fields."""
    begun, mark = local(), f"_is_{form.__name__}"

    @wraps(form)
    def formed(expression: Expr) -> Expr:
        if not isinstance(expression, Call) or mark in vars(expression):
            return expression
        forms: dict[int, tuple[Expr, Expr]] | None = vars(begun).get("forms")
        if forms is None:
            begun.forms = {}
            try:
                return formed(expression)
            finally:
                del begun.forms
        if id(expression) not in forms:
            after = form(expression)
            if isinstance(after, Call):
                vars(after)[mark] = True
            forms[id(expression)] = expression, after  # the first is kept, and so its id
        return forms[id(expression)][1]

    return formed
