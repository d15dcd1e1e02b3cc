"""The rule `min_units`: groups that too few privacy units share are not shown.

Every SELECT that aggregates protected rows also measures the number of units in each group, COUNT(DISTINCT unit), with noise
and at its usual price, and its groups are filtered by that released number as by HAVING. So the rule is a function of released
numbers and needs no separate privacy argument: differential privacy is closed under post-processing (Dwork and Roth, The
Algorithmic Foundations of Differential Privacy, 2014, Proposition 2.1). Private keys are admitted by a threshold tau on the
same noisy number (`partition_selection.Threshold`), so that they are shown from max(tau, min_units) on.

Under row privacy, rows are the units, and the rows of a group are counted. (A row of SELECT DISTINCT then represents at
least one unit.) Under entity privacy, the owner of a row of SELECT DISTINCT is unknown, so that is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import Measure, Relation
from dpsql.plan.stability import owned
from dpsql.policy import Policy

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
