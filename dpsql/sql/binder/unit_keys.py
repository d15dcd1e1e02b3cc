"""The privacy unit's key behind expressions: which have a different value for each unit, and which may not.

GROUP BY with the key makes one row for each unit (`per_unit_aggregation`). So does GROUP BY with an injective function of the
key. A function that is not proven injective would silently become a private key that hardly any two units share, so it is
refused, unless it is a function that is meant to combine many keys (`uid % 10`).
"""

from __future__ import annotations

from collections.abc import Mapping

from dpsql.functions.signatures import REGISTRY
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Call, Column, Expr, Literal, columns_read
from dpsql.sql.binder.scope import Kind, Protected, Scope

_WRITTEN_APART = (Type.INTEGER, Type.TEXT, Type.DATE, Type.TIMESTAMP, Type.BOOLEAN)
"""Types whose equal values have equal texts and whose different values have different texts. Not reals: 0.0 equals -0.0."""
_EXACT_REALS = 2**53


def kind(node: Expr, columns: Protected | Scope) -> Kind:
    """Return how an expression over `columns` depends on the unit's key."""
    return _kind(node, columns.units)


def kept_apart(node: Expr) -> Column | None:
    """Return the column whose different values have different values of an expression; None if there is none, or it is not
    proven."""
    columns = {column.name: column for column in columns_read(node)}
    if len(columns) != 1 or _kind(node, dict.fromkeys(columns, Kind.KEY)) < Kind.IMAGE:
        return None
    return next(iter(columns.values()))


def _kind(node: Expr, units: Mapping[str, Kind]) -> Kind:
    if isinstance(node, Column):
        return units.get(node.name, Kind.OTHER)
    if not isinstance(node, Call) or not units:
        return Kind.OTHER
    kinds = [_kind(argument, units) for argument in node.arguments]
    if max(kinds, default=Kind.OTHER) is Kind.OTHER or node.facts.type is Type.BOOLEAN:
        return Kind.OTHER
    if _injective(node, kinds):
        return Kind.IMAGE
    return Kind.OTHER if REGISTRY[node.function].coarse else Kind.MIXED


def _injective(node: Call, kinds: list[Kind]) -> bool:
    """Return whether different keys have different values. Where the engine's function would fail (an integer beyond 64 bits),
    dpsql returns NULL for several keys; these stay separate rows, because SQL defines no answer there."""
    unit_arguments = [index for index, argument_kind in enumerate(kinds) if argument_kind is not Kind.OTHER]
    if node.function == "coalesce":
        return (
            unit_arguments[0] == 0 and kinds[0] >= Kind.IMAGE
        )  # rows without a key belong to no unit and are left out
    constants = [argument for index, argument in enumerate(node.arguments) if index != unit_arguments[0]]
    if len(unit_arguments) > 1 or kinds[unit_arguments[0]] < Kind.IMAGE or not all(map(_constant, constants)):
        return False
    type_, to = node.arguments[unit_arguments[0]].facts.type, node.facts.type
    if node.function in ("add", "sub", "neg", "floor", "ceil", "round"):
        return to is Type.INTEGER
    if node.function == "mul":
        return to is Type.INTEGER and all(isinstance(other, Literal) and other.value for other in constants)
    if node.function in ("concat", "concat_ws"):
        return type_ is Type.TEXT
    if node.function == "to_text":
        return type_ in _WRITTEN_APART
    if node.function == "to_real":
        facts = node.arguments[unit_arguments[0]].facts
        return type_ is Type.INTEGER and facts.bounded and max(abs(facts.lower), abs(facts.upper)) <= _EXACT_REALS
    widened = {
        "to_integer": (Type.INTEGER, Type.BOOLEAN),
        "to_date": (Type.DATE,),
        "to_timestamp": (Type.DATE, Type.TIMESTAMP),
    }
    return type_ in widened.get(node.function, ())


def _constant(node: Expr) -> bool:
    """Return whether an expression has the same value in all rows, which is not NULL."""
    if isinstance(node, Call):
        return not node.facts.nullable and all(map(_constant, node.arguments))
    return isinstance(node, Literal) and node.value is not None
