"""Removal of conditions that have no effect: `WHERE TRUE`, `1 = 1 AND c`, `c OR FALSE`, `c AND c`.

Tools write them around every condition. Without them the query equals one that was asked before, and is free.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.intervals import literal_facts
from dpsql.plan.plan import Block, Call, Expr, Filter, Literal, Measure, SemiJoin, filled

_TESTS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct", "is_null", "is_true", "is_false", "not"))


def without_neutral(block: Block) -> Block:
    """Return the block with every condition simplified; the same object if nothing changes."""
    source = filled(block.source, _plainer)
    measures = tuple(_filtered(measure) for measure in block.measures)
    same = source is block.source and all(a is b for a, b in zip(measures, block.measures, strict=True))
    return block if same else replace(block, source=source, measures=measures)


def plain_condition(condition: Expr) -> Expr:
    """Simplify a condition without changing its value (true, false or NULL) on any row: evaluate constants, and drop parts of
    AND and OR that do not affect the result."""
    if not isinstance(condition, Call):
        return condition
    if condition.function in ("and", "or"):
        return _joined(condition)
    if condition.function == "not" and isinstance(condition.arguments[0], Call):
        inner = plain_condition(condition.arguments[0])
        condition = condition if inner is condition.arguments[0] else replace(condition, arguments=(inner,))
    constant = condition.function in _TESTS and all(isinstance(part, Literal) for part in condition.arguments)
    value = evaluate(condition, {}) if constant else None
    return condition if value is None else _truth(value)


def _joined(condition: Call) -> Expr:
    """Simplify AND by dropping true parts, OR by dropping false ones, and duplicates; return the deciding constant, if any."""
    deciding = condition.function == "or"
    undecided: dict[str, Expr] = {}
    for part in map(plain_condition, condition.arguments):
        value = part.value if isinstance(part, Literal) else None
        if value is deciding:
            return _truth(deciding)
        if value is None:
            undecided.setdefault(fingerprint(part), part)
    parts = tuple(undecided.values())
    if len(parts) < 2:
        return parts[0] if parts else _truth(not deciding)
    same = len(parts) == len(condition.arguments) and all(
        a is b for a, b in zip(parts, condition.arguments, strict=True)
    )
    return condition if same else replace(condition, arguments=parts)


def _plainer(part: Any) -> Any:
    """Return a part of a plan with simplified conditions, without those that are always true. If a part is returned unchanged,
    `filled` continues inside it."""
    if isinstance(part, Filter):
        predicate = plain_condition(part.predicate)
        if _is_true(predicate):
            return filled(part.source, _plainer)
        return part if predicate is part.predicate else Filter(filled(part.source, _plainer), predicate)
    if isinstance(part, SemiJoin) and part.condition is not None:
        condition = plain_condition(part.condition)
        if _is_true(condition):
            return filled(replace(part, condition=None), _plainer)
        if condition is not part.condition:
            return filled(replace(part, condition=condition), _plainer)
    return part


def _filtered(measure: Measure) -> Measure:
    if measure.filter is None:
        return measure
    condition = plain_condition(measure.filter)
    if _is_true(condition):
        return replace(measure, filter=None)
    return measure if condition is measure.filter else replace(measure, filter=condition)


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Literal) and condition.value is True


def _truth(value: bool) -> Literal:
    return Literal(value, literal_facts(value))
