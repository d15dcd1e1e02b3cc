"""Public rows that an outer join keeps although no protected row pairs with them: regions LEFT JOIN patients.

Such a row belongs to no unit, and its presence depends on all units: adding a unit may add pairs and remove the row. So no
block reads these rows. Only the pairs, an inner join, are measured, and a row without a partner must add nothing to any
aggregate: COUNT(x), SUM(x) and the like, where x is NULL as the protected side's columns are (for SUM also 0),
COUNT(DISTINCT unit), or any aggregate with a condition that excludes such rows. Then the answer is the same with and without
these rows, and so are price and noise. COUNT(*) counts them and is refused.

They do add groups: a region without patients has a count of 0. Public keys are listed from the text, the policy and public
tables; the rows without a partner are used for that, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dpsql.errors.exceptions import refuse
from dpsql.functions.key_columns import labelled
from dpsql.functions.key_narrowing import image, may_hold
from dpsql.plan.origins import Branch, UnknownOrigin, branches
from dpsql.plan.plan import Column, Expr, Literal, Measure, Project, Relation, Union_, filled

_ONE_VALUE = frozenset({
    "count", "count_distinct", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp", "bool_and", "bool_or",
    "quantile_cont", "quantile_disc", "listed_quantile_cont", "listed_quantile_disc", "mode",
})  # fmt: skip
"""Aggregates that skip a row whose first argument is NULL."""
_PAIRS = frozenset({
    "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_count",
})  # fmt: skip
"""Aggregates that skip a row in which either argument is NULL."""


_NULL = frozenset((None,))


@dataclass(frozen=True)
class UnpairedRows:
    """Rows of an outer join by whether they have a partner. `pairs`: joined rows with both sides, as in the plan. `alone`: public
    rows, each of which may be without a partner, with the same columns; `public`: these, with the public side's own columns.
    `position`: that of the join in the text."""

    pairs: Relation
    alone: Relation
    public: Relation
    position: int | None


def unpaired_rows(pairs: Relation, public: Relation, position: int | None) -> UnpairedRows | None:
    """Return the rows of `public` (the join's columns "b.<name>") as unpaired rows; None if the origin of columns is unknown."""
    try:
        columns = branches(pairs)[0].columns
        offered = branches(public)[0].columns
    except UnknownOrigin:
        return None
    items: list[tuple[str, Expr]] = []
    for name, value in columns.items():
        if name.startswith("b."):
            items.append((name, Column(name[2:], offered[name[2:]].facts)))
        else:
            items.append((name, Literal(None, replace(value.facts, nullable=True, values=None))))
    return UnpairedRows(pairs, Project(public, tuple(items)), public, position)


def also_missing(labels: Mapping[str, Expr], columns: Iterable[Column]) -> dict[str, Expr]:
    """Return what stands in keys for computed columns (`labelled`), NULL where unpaired rows have no value in the column."""
    nullable = {column.name for column in columns if column.facts.nullable}
    return {
        name: replace(value, facts=replace(value.facts, nullable=True)) if name in nullable else value
        for name, value in labels.items()
    }


def with_labels(
    source: Relation, unpaired: UnpairedRows | None, names: Iterable[str]
) -> tuple[Relation, UnpairedRows | None]:
    """Return the rows of `source` with further columns, which stand in keys for `names` (`labelled`), and the unpaired rows with
    the same columns: like all columns of the protected side, NULL."""
    relation, _, pairs = labelled(source, names, None if unpaired is None else unpaired.pairs)
    if unpaired is None or pairs is None or pairs is unpaired.pairs:
        return relation, unpaired
    return relation, unpaired_rows(pairs, unpaired.public, unpaired.position)


def with_unpaired_rows(source: Relation, unpaired: UnpairedRows | None) -> Relation:
    """Return the rows of `source` including those without a partner; public keys are listed for these rows."""
    if unpaired is None:
        return source
    both = Union_((unpaired.pairs, unpaired.alone))
    whole: Relation = filled(source, lambda part: both if part is unpaired.pairs else part)
    return whole


def check_unread(source: Relation, unpaired: UnpairedRows | None) -> None:
    """Refuse (join) a SELECT that returns rows, unless a condition excludes those without a partner."""
    check_ignored(source, unpaired, (Measure("", "count", (), False, None),))


def check_ignored(source: Relation, unpaired: UnpairedRows | None, measures: Sequence[Measure]) -> None:
    """Refuse (join) a measure that rows without a partner may change. `source`: the rows that are measured."""
    if unpaired is None or not measures:
        return
    try:
        alone = branches(filled(source, lambda part: unpaired.alone if part is unpaired.pairs else part))
        left = [branch for branch in alone if all(map(may_hold, branch.conditions))]
        counted = any(not _ignores(measure, branch) for branch in left for measure in measures)
    except UnknownOrigin:
        counted = True
    if counted:
        reason = "an aggregate may count rows of the public side that no protected row meets"
        hint = "aggregate a column of the protected table, as COUNT(its_key) for COUNT(*), or use an inner join"
        raise refuse("join", reason=reason, way=hint, position=unpaired.position)


def _ignores(measure: Measure, branch: Branch) -> bool:
    """Return whether a row of the branch adds nothing to a measure."""
    if measure.filter is not None and not may_hold(branch.written(measure.filter)):
        return True
    if measure.aggregate == "count_units":
        return True  # the row belongs to no unit
    values = [image(branch.written(argument)) for argument in measure.arguments]
    if measure.aggregate in _PAIRS:
        return any(value == _NULL for value in values)
    if measure.aggregate not in _ONE_VALUE or not values:
        return False
    return values[0] == _NULL or (measure.aggregate == "sum" and values[0] is not None and values[0] <= {None, 0})
