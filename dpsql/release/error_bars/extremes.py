"""Outputs that are a maximum or minimum over groups. The extreme group is selected for its noise, which replicates cannot show.

Let each of k groups have a bar whose low and high ends miss the exact number b_i with probability at most a / 2k and a / 2.

- The largest high end is below the largest exact number only if the high end of the group with that number is: with probability
  at most a / 2, whatever the other groups are.
- The largest low end is above the largest exact number only if some group's low end is above its own exact number: with
  probability at most k (a / 2k) = a / 2 (Bonferroni).

So the maximum lies between the largest low and the largest high end with probability at least 1 - a, and the minimum, by
symmetry, between the smallest ends. This requires that the output is just the maximum of one measure, over rows that noise does
not choose. Other outputs that contain a maximum or minimum (a difference of two, a share of the largest) are computed over low
ends and over high ends that hold for all groups at once; the bar is the hull with replicates. `extreme_ends` has tighter low ends
of counts and sums.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from math import isfinite

from sqlglot import exp

from dpsql.release.error_bars.rowwise import Traced, trace
from dpsql.release.remainder import ReleasedBlock, Remainder

_AFTER_GROUPS = ("having", "qualify", "order", "limit", "offset", "distinct")


class Extreme(Enum):
    """The role of maxima and minima over groups in an output. HIGHEST, LOWEST: the output is the extreme of one measure; INSIDE:
    it contains an extreme."""

    NONE = 0
    HIGHEST = 1
    LOWEST = 2
    INSIDE = 3


_ALONE: dict[type[exp.Expr], Extreme] = {exp.Max: Extreme.HIGHEST, exp.Min: Extreme.LOWEST}
_NODES = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin)


def extremes(tree: exp.Query) -> tuple[Extreme, ...]:
    """Return the role of extremes in each output of `tree`, judged by its SQL; INSIDE for all outputs if a subquery or a clause
    after grouping contains an extreme."""
    everywhere = list(tree.find_all(*_NODES))
    width = len(tree.selects)
    if not everywhere:
        return (Extreme.NONE,) * width
    if not isinstance(tree, exp.Select) or any(node.find_ancestor(exp.Query) is not tree for node in everywhere):
        return (Extreme.INSIDE,) * width
    if any(tree.args.get(part) is not None and tree.args[part].find(*_NODES) for part in _AFTER_GROUPS):
        return (Extreme.INSIDE,) * width
    return tuple(_of_item(item) for item in tree.selects)


def _of_item(item: exp.Expr) -> Extreme:
    value = item.unalias().unnest()
    if not value.find(*_NODES):
        return Extreme.NONE
    alone = isinstance(value.this, exp.Column) and not value.args.get("expressions")
    return _ALONE.get(type(value), Extreme.INSIDE) if alone else Extreme.INSIDE


def rows_below(remainder: Remainder, tree: exp.Query, position: int) -> Traced | None:
    """Return the trace of the rows over which the extreme at `position` is taken: its argument, then the keys of its GROUP BY.

    Return None if the argument is not just a measure of a block, if the measure may have no bar, or if noisy numbers decide which
    rows are grouped together.
    """
    assert isinstance(tree, exp.Select)
    inner = tree.copy()
    value = inner.expressions[position].unalias().unnest()
    group = inner.args.get("group")
    keys = list(group.iter_expressions()) if group is not None else []
    if any(isinstance(key, exp.Literal) for key in keys) or (group is not None and group.args.get("all")):
        return None
    inner.set("expressions", [exp.alias_(part.copy(), f"v{place}") for place, part in enumerate([value.this, *keys])])
    for part in ("group", *_AFTER_GROUPS):
        inner.set(part, None)
    traced = trace(replace(remainder, tree=inner, written=""))
    block = None if traced is None else remainder.block(traced.block)
    if traced is None or block is None or traced.intervals or any(output is None for output in traced.outputs):
        return None
    value, *grouped = [output.unnest() for output in traced.outputs if output is not None]
    measured = isinstance(value, exp.Column) and value.name in block.plug_ins and _has_ends(block, value.name)
    of_noise = any(part.name in block.plug_ins for key in grouped for part in key.find_all(exp.Column))
    return traced if measured and not of_noise else None


def _has_ends(block: ReleasedBlock, measure: str) -> bool:
    """Return whether a measure has a bar whatever the noise, because it is a COUNT or SUM or cannot leave finite bounds."""
    low, high = block.extents[measure]
    return measure in block.groups.counts | block.groups.sums or (isfinite(low) and isfinite(high))
