"""Row expressions as short text for people: plans, stored releases, remarks."""

from __future__ import annotations

from fractions import Fraction

from dpsql.plan.plan import Call, Column, Expr, Literal, ReleasedValue
from dpsql.privacy.loss import plain_decimal

_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%", "eq": "=", "ne": "<>", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or", "like": "like", "ilike": "ilike",
}  # fmt: skip


def expression_text(expression: Expr) -> str:
    """A row expression as short text for people."""
    if isinstance(expression, (Column, ReleasedValue)):
        return expression.name
    if isinstance(expression, Literal):
        if isinstance(expression.value, Fraction):
            return plain_decimal(expression.value)
        return "null" if expression.value is None else repr(expression.value)
    assert isinstance(expression, Call)
    parts = [expression_text(argument) for argument in expression.arguments]
    if expression.function in _INFIX:
        return "(" + f" {_INFIX[expression.function]} ".join(parts) + ")"
    return f"{expression.function}({', '.join(parts)})"
