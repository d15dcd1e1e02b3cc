"""One form for conditions that mean the same: `3 < x`, `x >= 4`, `NOT x <= 3`; `x = 1 OR x = 2`, `x IN (2, 1)`; `1 = 1 AND c`.

Tools write the same filter in many ways: around every condition, in the order of clicks, with parameters of other types. In one
form the query equals the one that was asked before, and is free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from math import ceil, floor
from typing import Any

from dpsql.functions.evaluate import evaluate
from dpsql.functions.signatures import call
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.intervals import Type
from dpsql.plan.plan import (
    Block,
    Call,
    Expr,
    Filter,
    Join,
    Literal,
    Measure,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    filled,
    literal,
)

_MIRRORED = {"eq": "eq", "ne": "ne", "not_distinct": "not_distinct", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "and": "or", "or": "and"}
_EQUATING = ("eq", "ne", "not_distinct")
_TESTS = frozenset((*_MIRRORED, "in", "is_null", "is_true", "is_false"))
_EXACT_REALS = 2**52
"""Smaller doubles are compared exactly with every integer of 64 bits, although that is cast to a double."""


def with_canonical_conditions(block: Block) -> Block:
    """Return the block with every condition in its canonical form; the same object if nothing changes."""
    source = filled(block.source, _in_canonical_form)
    measures = tuple(_filtered(measure) for measure in block.measures)
    same = source is block.source and all(a is b for a, b in zip(measures, block.measures, strict=True))
    return block if same else replace(block, source=source, measures=measures)


def with_joined_filters(block: Block, owners: Callable[[str], object]) -> Block:
    """Return the block with one filter for several on the same rows: the condition of a subquery and that of the query around it
    are those of one WHERE. The owner's condition on a table, if `owners` has one for its name, stays apart."""
    conditions: list[Expr] = []
    rows = block.source
    while isinstance(rows, Filter) and not (isinstance(rows.source, Scan) and owners(rows.source.table)):
        conditions.append(rows.predicate)
        rows = rows.source
    return replace(block, source=Filter(rows, call("and", *conditions))) if len(conditions) > 1 else block


def with_counts(block: Block) -> Block:
    """Return the block with COUNT(*) FILTER (WHERE c) for SUM(CASE WHEN c THEN 1 ELSE 0 END), SUM(c::INTEGER) and the like: a
    SUM over no rows is shown as 0 too. A sum that another aggregate reads (AVG) stays: it costs nothing more."""
    shared = [measure.arguments for measure in block.measures if measure.aggregate not in ("sum", "count")]
    measures = tuple(m if m.arguments in shared else counted(m) for m in block.measures)
    same = all(a is b for a, b in zip(measures, block.measures, strict=True))
    return block if same else replace(block, measures=measures)


def counted(measure: Measure) -> Measure:
    """Return COUNT(*) FILTER (WHERE c) for a sum of 1 where c is true and of 0 or NULL for all else; other measures stay."""
    if measure.aggregate != "sum" or measure.distinct or measure.per_group is not None:
        return measure
    condition = _indicated(measure.arguments[0])
    if condition is None:
        return measure
    both = condition if measure.filter is None else call("and", measure.filter, condition)
    return replace(measure, aggregate="count", arguments=(), filter=None if _is_true(both) else both)


def _indicated(value: Expr) -> Expr | None:
    """Return the condition for which a whole number is 1, if it is 0 or NULL for all else; None for other values."""
    if isinstance(value, Literal):
        return literal(True) if type(value.value) is int and value.value == 1 else None
    if not isinstance(value, Call) or value.facts.type is not Type.INTEGER:
        return None
    if value.function == "to_integer" and value.arguments[0].facts.type is Type.BOOLEAN:
        return value.arguments[0]
    if value.function != "case":
        return None
    conditions, chosen = value.arguments[:-1:2], (*value.arguments[1:-1:2], value.arguments[-1])
    numbers = [part.value if isinstance(part, Literal) else 2 for part in chosen]
    if numbers[:-1] == [1] * len(conditions) and numbers[-1] in (0, None):
        return conditions[0] if len(conditions) == 1 else call("or", *conditions)
    if numbers != [0, 1]:
        return None
    return call("not", call("is_true", conditions[0]) if conditions[0].facts.nullable else conditions[0])


def filter_condition(condition: Expr) -> Expr:
    """Return the canonical form of a condition that decides which rows stay, so that FALSE and NULL mean the same. A condition
    whose parts exclude each other is FALSE."""
    canonical = _where_true(canonical_condition(condition))
    return literal(False) if _is_excluded((canonical,)) else canonical


def has_no_rows(relation: Relation) -> bool:
    """Return whether a relation with canonical conditions has no rows, whatever the data are."""
    if isinstance(relation, Union_):
        return all(map(has_no_rows, relation.sources))
    if isinstance(relation, Join):
        return has_no_rows(relation.left) or (relation.kind == "inner" and has_no_rows(relation.right))
    if isinstance(relation, SemiJoin):
        unmatched = _is_false(relation.condition) or has_no_rows(relation.right)
        return has_no_rows(relation.left) or (unmatched and not relation.negated)
    if isinstance(relation, (Scan, ReleasedRows)):
        return False
    conditions: list[Expr] = []
    inner: Relation = relation
    while isinstance(inner, Filter):
        conditions.append(inner.predicate)
        inner = inner.source
    return _is_excluded(conditions) or has_no_rows(inner if conditions else relation.source)


def canonical_condition(condition: Expr) -> Expr:
    """Return the canonical form of a condition; its value (true, false or NULL) is the same on every row.

    Constants are evaluated. Parts of AND and OR that have no effect are dropped, and the others are sorted. NOT stands only
    before what has no opposite. A literal stands on the right of a comparison. Whole numbers and dates are compared with
    literals by `=`, `<>`, `<=` and `>=`. Several equalities of one operand are one IN with a sorted list.
    """
    if not isinstance(condition, Call):
        return condition
    if condition.function in ("and", "or"):
        return _joined(condition.function, condition)
    if condition.function == "not":
        return _negated(canonical_condition(condition.arguments[0]), condition)
    if condition.function not in _TESTS:
        return condition
    arguments = tuple(map(canonical_condition, condition.arguments))
    if any(a is not b for a, b in zip(arguments, condition.arguments, strict=True)):
        condition = call(condition.function, *arguments)
    if all(isinstance(part, Literal) for part in condition.arguments):
        return literal(evaluate(condition, {}))
    if condition.function == "in":
        return _same_or(condition, _listed(condition))
    if condition.function in _MIRRORED:
        return _same_or(condition, _comparison(condition))
    return condition


def _same_or(before: Call, after: Expr) -> Expr:
    """Return `before` itself if `after` equals it, so that what does not change is not built again."""
    return before if after == before else after


def _negated(inner: Expr, negation: Call) -> Expr:
    """Return the canonical form of NOT `inner`, which is canonical itself."""
    if isinstance(inner, Literal):
        return literal(None if inner.value is None else not inner.value)
    if isinstance(inner, Call):
        if inner.function == "not":
            return inner.arguments[0]
        if inner.function in ("and", "or"):
            parts = tuple(_negated(part, call("not", part)) for part in inner.arguments)
            return _joined(_OPPOSITE[inner.function], call(_OPPOSITE[inner.function], *parts))
        if inner.function in _OPPOSITE:
            return canonical_condition(call(_OPPOSITE[inner.function], *inner.arguments))
    return negation if inner is negation.arguments[0] else call("not", inner)


def _joined(word: str, condition: Call) -> Expr:
    """Return the canonical form of AND or OR. A constant that decides the whole is the whole."""
    deciding = word == "or"
    undecided: dict[str, Expr] = {}
    for part in _flat(word, map(canonical_condition, condition.arguments)):
        value = part.value if isinstance(part, Literal) else None
        if value is deciding:
            return literal(deciding)
        if value is None:
            undecided.setdefault(canonical_text(part), part)
    undecided = _with_lists(word, undecided)
    parts = tuple(undecided[text] for text in sorted(undecided))
    if len(parts) < 2:
        return parts[0] if parts else literal(not deciding)
    same = len(parts) == len(condition.arguments) and all(
        a is b for a, b in zip(parts, condition.arguments, strict=True)
    )
    return condition if same else call(word, *parts)


def _flat(word: str, parts: Iterable[Expr]) -> Iterable[Expr]:
    for part in parts:
        yield from part.arguments if isinstance(part, Call) and part.function == word else (part,)


def _with_lists(word: str, parts: dict[str, Expr]) -> dict[str, Expr]:
    """Return the parts of OR with one IN for all equalities of one operand with literals; of AND alike, with NOT IN."""
    lists: dict[str, dict[str, Call]] = {}
    for text, part in parts.items():
        equality = part if word == "or" else _without_not(part)
        if isinstance(equality, Call) and equality.function in ("eq", "in"):
            operand, *literals = equality.arguments
            if all(isinstance(literal, Literal) for literal in literals):
                lists.setdefault(canonical_text(operand), {})[text] = equality
    several = [equalities for equalities in lists.values() if len(equalities) > 1]
    left = {text: part for text, part in parts.items() if not any(text in equalities for equalities in several)}
    for equalities in several:
        operand = next(iter(equalities.values())).arguments[0]
        listed = _listed(call("in", operand, *(item for each in equalities.values() for item in each.arguments[1:])))
        part = listed if word == "or" else _negated(listed, call("not", listed))
        left[canonical_text(part)] = part
    return left


def _without_not(part: Expr) -> Expr | None:
    """Return the equality of which a condition is the opposite; None for any other condition."""
    if isinstance(part, Call) and part.function == "not":
        return part.arguments[0]
    return call("eq", *part.arguments) if isinstance(part, Call) and part.function == "ne" else None


def _listed(condition: Call) -> Expr:
    """Return x IN (literals) with each literal once, in the order of their texts; of one literal x = literal."""
    operand, *items = condition.arguments
    if operand.facts.type is Type.BOOLEAN:
        return _joined("or", call("or", *(call("eq", operand, item) for item in items)))
    literals = (_as_compared(operand, item) for item in items)
    once = {canonical_text(item): item for item in literals}
    listed = [once[text] for text in sorted(once)]
    return _comparison(call("eq", operand, *listed)) if len(listed) == 1 else call("in", operand, *listed)


def _comparison(condition: Call) -> Expr:
    word, (left, right) = condition.function, condition.arguments
    if isinstance(left, Literal) or (not isinstance(right, Literal) and _is_turned(word, left, right)):
        word, left, right = _MIRRORED[word], right, left
    if not isinstance(right, Literal):
        return call(word, left, right)
    if isinstance(right.value, bool) and left.facts.type is Type.BOOLEAN and word in ("eq", "ne"):
        return left if right.value is (word == "eq") else canonical_condition(call("not", left))
    right = _as_compared(left, right)
    bound, type_ = right.value, left.facts.type
    if word in _EQUATING:
        return call(word, left, right)
    rises = word in ("ge", "gt")
    if type_ is Type.INTEGER and _is_real(bound):  # it is no whole number
        return call("ge" if rises else "le", left, literal(ceil(bound) if rises else floor(bound)))
    if word in ("gt", "lt"):
        if type_ is Type.INTEGER and type(bound) is int and abs(bound) < 2**63 - 1:
            return call("ge" if rises else "le", left, literal(bound + (1 if rises else -1)))
        if type_ is Type.DATE and type(bound) is date and date.min < bound < date.max:
            return call("ge" if rises else "le", left, literal(bound + timedelta(days=1 if rises else -1)))
    return call(word, left, right)


def _is_turned(word: str, left: Expr, right: Expr) -> bool:
    """Return whether a comparison without a literal is the mirrored form of its canonical one."""
    return word in ("gt", "ge") or (word in _EQUATING and canonical_text(right) < canonical_text(left))


def _as_compared(operand: Expr, compared: Expr) -> Literal:
    """Return a number in the type of the operand with which it is compared, where that changes no comparison."""
    assert isinstance(compared, Literal)
    value, type_ = compared.value, operand.facts.type
    if type_ is Type.INTEGER and _is_real(value):
        double = Fraction(float(value))  # the value that the engine compares
        return literal(int(double) if double.denominator == 1 else double)
    if type_ is Type.REAL and type(value) is int and abs(value) < _EXACT_REALS:
        return literal(Fraction(value))
    return compared


def _is_real(value: Any) -> bool:
    return isinstance(value, Fraction) and abs(value) < _EXACT_REALS


def _where_true(condition: Expr) -> Expr:
    """Return a condition that is true on the same rows, without IS TRUE around it or around parts of its ANDs and ORs."""
    if isinstance(condition, Call) and condition.function == "is_true":
        return filter_condition(condition.arguments[0])
    if isinstance(condition, Call) and condition.function in ("and", "or"):
        parts = tuple(map(_where_true, condition.arguments))
        if any(a is not b for a, b in zip(parts, condition.arguments, strict=True)):
            return filter_condition(call(condition.function, *parts))
    return condition


def _in_canonical_form(part: Any) -> Any:
    """Return a part of a plan with canonical conditions, without those that are always true. If a part is returned unchanged,
    `filled` continues inside it."""
    if isinstance(part, Filter):
        predicate = filter_condition(part.predicate)
        if _is_true(predicate):
            return filled(part.source, _in_canonical_form)
        same = predicate is part.predicate
        return part if same else Filter(filled(part.source, _in_canonical_form), predicate)
    if isinstance(part, SemiJoin) and part.condition is not None:
        condition = filter_condition(part.condition)
        if _is_true(condition):
            return filled(replace(part, condition=None), _in_canonical_form)
        if condition is not part.condition:
            return filled(replace(part, condition=condition), _in_canonical_form)
    return part


def _filtered(measure: Measure) -> Measure:
    if measure.filter is None:
        return measure
    condition = filter_condition(measure.filter)
    if _is_true(condition):
        return replace(measure, filter=None)
    return measure if condition is measure.filter else replace(measure, filter=condition)


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Literal) and condition.value is True


def _is_false(condition: Expr | None) -> bool:
    return isinstance(condition, Literal) and not condition.value


# --- Conditions that no row satisfies ---


def _is_excluded(parts: Iterable[Expr]) -> bool:
    """Return whether canonical conditions are never true together, by their constants alone.

    The values of each operand that satisfy its comparisons with literals are bounded by an interval, or listed. An operand is
    NULL, or it is compared. Of OR every branch must be excluded beside the other conditions.
    """
    joined = list(_flat("and", parts))
    either = [part for part in joined if isinstance(part, Call) and part.function == "or"]
    single = [part for part in joined if not (isinstance(part, Call) and part.function == "or")]
    if any(map(_is_false, single)) or _contradict(single):
        return True
    return any(all(_is_excluded((*single, branch)) for branch in part.arguments) for part in either)


def _contradict(parts: list[Expr]) -> bool:
    """Return whether conditions without AND and OR are never true together."""
    every = set(parts)
    tests: dict[Expr, list[tuple[str, Expr, list[Any]]]] = {}
    for part in parts:
        if not isinstance(part, Call):
            continue
        word, (operand, *items) = part.function, part.arguments
        if word in ("not", "is_false"):
            if operand in every:
                return True
            if word == "not" and isinstance(operand, Call) and operand.function == "in":
                word, (operand, *items) = "not_in", operand.arguments
        values = [item.value for item in items if isinstance(item, Literal)]
        if word in (*_MIRRORED, "in", "not_in", "is_null") and len(values) == len(items):
            tests.setdefault(operand, []).append((word, operand, values))
    return any(map(_no_value, tests.values()))


def _no_value(tests: list[tuple[str, Expr, list[Any]]]) -> bool:
    """Return whether no value of an operand passes all tests, each a word, the operand and the values it is compared with.

    Numbers are compared as doubles where one of them is no whole number; a whole number as a double may then equal another.
    """
    null = [word == "is_null" or (word == "not_distinct" and None in values) for word, _, values in tests]
    type_ = tests[0][1].facts.type
    every = [value for _, _, values in tests for value in values if value is not None]
    exact = type_ is not Type.INTEGER or all(type(value) is int for value in every)
    if any(null) or (len({type(value) for value in every}) > 1 and not type_.numeric):
        return not all(null) and any(null)
    low: list[tuple[Any, bool]] = []
    high: list[tuple[Any, bool]] = []
    listed: list[set[Any]] = []
    excluded: set[Any] = set()
    for word, _, written in tests:
        values = [
            value
            for value in written
            if value is not None and not (type_ is Type.INTEGER and _is_real(value) and value.denominator != 1)
        ]
        if type_ is Type.REAL or not exact:
            values = [float(value) for value in values]
        if word in ("eq", "in", "not_distinct"):
            listed.append(set(values))
        elif None in written:
            return True
        elif word in ("ne", "not_in"):
            excluded |= set(values) if exact else set()
        elif values and type_ is not Type.TEXT:  # the order of texts is the engine's own
            (low if word in ("ge", "gt") else high).append((values[0], word in ("gt", "lt") and exact))

    def passes(value: Any) -> bool:
        above = all(value > end or (value == end and not strict) for end, strict in low)
        below = all(value < end or (value == end and not strict) for end, strict in high)
        return above and below and value not in excluded

    if listed:
        return not any(map(passes, set.intersection(*listed)))
    ends = {end for end, _ in low} & {end for end, _ in high}
    return any(first > last for first, _ in low for last, _ in high) or not all(map(passes, ends))
