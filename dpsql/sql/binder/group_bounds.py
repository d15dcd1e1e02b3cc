"""Bounds and least numbers of privacy units in each group.

Aggregates with contribution_bounds_per_group => (low, high): each unit's contribution to a group is clamped to both.

The rows of a unit in a group first become one row (`UnitAggregate`, by the unit and the query's keys), whose value is the
unit's sum, count or average there. It is clamped to the bounds, and summed (averages: averaged) over units. A unit has at most
one such row in a group of the answer, so it changes the group's sum by at most max(|low|, |high|), however many rows it has;
pricing learns this from `stability.rows_in_group`. Everything else is as in the same query written with GROUP BY the unit's
key in FROM: its relation, clamp and sums.

By the rule `min_units`, groups that too few privacy units share are not shown. Every SELECT that aggregates protected rows also
measures the number of units in each group, COUNT(DISTINCT unit), with noise and at its usual price, and its groups are filtered
by that released number as by HAVING. So the rule is a function of released numbers and needs no separate privacy argument:
differential privacy is closed under post-processing (Dwork and Roth, The Algorithmic Foundations of Differential Privacy, 2014,
Proposition 2.1). Private keys are admitted by a threshold tau on the same noisy number (`partition_selection.Threshold`), so
that they are shown from max(tau, min_units) on.

Under row privacy, rows are the units, and the rows of a group are counted. (A row of SELECT DISTINCT then represents at
least one unit.) Under entity privacy, the owner of a row of SELECT DISTINCT is unknown, so that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.contract import aggregate_of
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Block, Column, Distinct, Expr, Measure, Relation, UnitAggregate, literal
from dpsql.plan.stability import owned, parts, rows_per_unit
from dpsql.policy import Policy
from dpsql.privacy.loss import exact_number
from dpsql.sql.lexer import place

_OVER_UNITS = {"sum": "sum", "count": "sum", "avg": "avg"}
"""Aggregates over units that combine the results of single units, keyed by the aggregate within a unit."""
_EXAMPLE = "SUM(x, contribution_bounds_per_group => (0, 100))"


def within_group_bounds(measure: Measure, node: exp.Expr, bounds: exp.Tuple, per_unit: bool) -> Measure:
    """Return the measure of a call with both bounds. Refuses (group_bounds) other aggregates than SUM, COUNT and AVG."""
    position = place(node)
    if per_unit:
        reason, hint = "these are the rows of one unit already", "write clamp(SUM(x), 0, 100)"
        raise refuse("group_bounds", reason=reason, way=hint, position=position)
    if measure.aggregate not in _OVER_UNITS or measure.distinct:
        reason = "an aggregate of distinct values is not made of what single units add"
        raise refuse("group_bounds", reason=reason, way="leave DISTINCT or the bounds out", position=position)
    low, high = (_number(part) for part in bounds.expressions)
    if low > high:
        raise refuse("group_bounds", reason="the lower bound stands first", way=f"write {_EXAMPLE}", position=position)
    whole = low.denominator == high.denominator == 1
    ends = (int(low), int(high)) if whole else (low, high)
    literals = [literal(end) for end in ends]
    return replace(measure, per_group=(literals[0], literals[1]))


def _number(node: exp.Expr) -> Fraction:
    """Return the number of a literal with any minus signs in front of it."""
    if isinstance(node, exp.Neg):
        return -_number(node.this)
    text = str(node.this).replace("_", "")
    try:
        number = exact_number(text)
    except ValueError:
        raise refuse("bad_number", text=text, position=place(node)) from None
    if abs(number) >= 2**63:
        raise refuse("bad_number", text=text, position=place(node))
    return number


def of_units(block: Block, policy: Policy, position: int | None) -> Block:
    """Return the block over one row for each unit and group if a measure has bounds per group, else the block itself.

    Refuses (group_bounds) rows that belong to no unit. Of measures without bounds, only the number of units may accompany them.
    """
    if all(measure.per_group is None for measure in block.measures):
        return block
    if policy.privacy_unit is None and rows_per_unit(block.source, policy) == 1 and not _has_distinct(block.source):
        return replace(block, measures=tuple(_of_row(measure, position) for measure in block.measures))
    if not owned(block.source, policy):
        reason, hint = "these rows belong to no unit", "write clamp(x, low, high), which bounds each row"
        raise refuse("group_bounds", reason=reason, way=hint, position=position)
    most = rows_per_unit(block.source, policy)
    columns: list[tuple[str, str, Expr | None, Expr | None, Facts]] = []
    measures = []
    for measure in block.measures:
        if measure.per_group is None:
            if measure.aggregate != "count_units" or measure.filter is not None:
                reason = "another aggregate of this SELECT has no such bounds"
                hint = "give all of them bounds, COUNT(*, contribution_bounds_per_group => (0, 10)) too, or ask apart"
                raise refuse("group_bounds", reason=reason, way=hint, position=position)
            measures.append(measure)
            continue
        of_unit = aggregate_of(measure.aggregate).of_unit
        assert of_unit is not None
        facts = of_unit(measure, most)
        name = f"a{len(columns)}"
        argument = measure.arguments[0] if measure.arguments else None
        columns.append((name, measure.aggregate, argument, measure.filter, facts))
        value = call("clamp", Column(name, facts), *measure.per_group)
        measures.append(Measure(measure.name, _OVER_UNITS[measure.aggregate], (value,), False, None))
    keys = tuple((f"g{number}", key.expression) for number, key in enumerate(block.keys))
    source = UnitAggregate(block.source, keys, tuple(columns))
    of_keys = tuple(
        replace(key, expression=Column(name, key.expression.facts))
        for key, (name, _) in zip(block.keys, keys, strict=True)
    )
    return replace(block, source=source, keys=of_keys, measures=tuple(measures))


def _has_distinct(relation: Relation) -> bool:
    return isinstance(relation, Distinct) or any(map(_has_distinct, parts(relation)))


def _of_row(measure: Measure, position: int | None) -> Measure:
    """Return a measure whose bounds per group bound single rows, because each row is a unit of its own. Refuses (group_bounds)
    bounds that change what a row adds to a count."""
    if measure.per_group is None:
        return measure
    low, high = measure.per_group
    if measure.aggregate == "count":
        if not low.value <= 1 <= high.value:
            reason, hint = "a row adds 1 to a count", "write bounds with 1 between them"
            raise refuse("group_bounds", reason=reason, way=hint, position=position)
        return replace(measure, per_group=None)
    return replace(measure, arguments=(call("clamp", measure.arguments[0], low, high),), per_group=None)


_UNITS = Measure("", "count_units", (), True, None)
_ROWS = Measure("", "count", (), False, None)


def with_unit_count(
    select: exp.Select, source: Relation, measures: Sequence[Measure], least: int, policy: Policy, position: int | None
) -> tuple[Measure, ...]:
    """Return `measures` including a count of the units of a group, and add to `select` (over the block) the condition that this
    count is at least `least`. Refuses (min_units) rows that belong to no unit."""
    if policy.privacy_unit is not None and not owned(source, policy):
        raise refuse("min_units", reason="nothing says whose rows of SELECT DISTINCT are", position=position)
    counted = _ROWS if policy.privacy_unit is None else _UNITS
    name = next((entered.name for entered in measures if replace(counted, name=entered.name) == entered), "")
    if not name:
        name = f"m{len(measures)}"
        measures = (*measures, replace(counted, name=name))
    condition: exp.Expr = exp.GTE(this=exp.column(name, quoted=True), expression=exp.Literal.number(least))
    if (where := select.args.get("where")) is not None:
        condition = exp.And(this=exp.Paren(this=where.this), expression=condition)
    select.set("where", exp.Where(this=condition))
    return tuple(measures)
