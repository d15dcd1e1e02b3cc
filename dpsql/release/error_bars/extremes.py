"""Outputs that are a maximum or minimum over groups. The extreme group is selected for its noise, which replicates cannot show.

Let each of k groups have a bar whose low and high ends miss the exact number b_i with probability at most a / 2k and a / 2.

- The largest high end is below the largest exact number only if the high end of the group with that number is: with probability
  at most a / 2, whatever the other groups are.
- The largest low end is above the largest exact number only if some group's low end is above its own exact number: with
  probability at most k (a / 2k) = a / 2 (Bonferroni).

So the maximum lies between the largest low and the largest high end with probability at least 1 - a, and the minimum, by
symmetry, between the smallest ends. This requires that the output is just the maximum of one measure, over rows that noise does
not choose. Other outputs that contain a maximum or minimum (a difference of two, a share of the largest) are computed over low
ends and over high ends that hold for all groups at once; the bar is the hull with replicates. Counts and sums have tighter
low ends (`reach`).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import isfinite

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.noise.perturb import ReleasedTerm
from dpsql.plan.formulas import terms_of
from dpsql.release.error_bars.intervals import Measures
from dpsql.release.error_bars.laws import Floats, known_law, tabled
from dpsql.release.error_bars.rowwise import Traced, trace
from dpsql.release.formulas import clamped, linear
from dpsql.release.remainder import ConsistentTerm, PooledTerm, ReleasedBlock, Remainder, runnable
from dpsql.release.sandbox import Scratch
from dpsql.storage.records import dataclass, replace

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
    inner.set("expressions", [exp.alias_(part.copy(), f"v{index}") for index, part in enumerate([value.this, *keys])])
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


# --- tighter ends of extremes --------------------------------------------------------------------------------------

# Tighter low ends of maxima, and high ends of minima, of counts and sums over groups.
#
# For a COUNT or SUM, t_i = b_i + z_i with z_i from one known law, T(x) = P(Z >= x). Its low end can be tighter than above,
# because a group that is far behind cannot have made the largest number large (in two steps, as Romano, Shaikh and Wolf 2014,
# Econometrica 82(5)). Let M be the largest t_i. Test whether the largest exact number is m, with c + d = a / 2:
#
# - With probability at least 1 - d no z_i is below -e, where P(Z < -e) <= d / k, so that every b_i is at most t_i + e.
# - Reject m if the sum of T(max(M - m, M - t_i - e)) over all groups is at most c. If b_i <= t_i + e for all i, then
#   m - b_i >= m - t_i - e, so the sum of T((M - m) + (m - b_i)) is at most c as well. That sum is a fixed falling function of
#   M - m, and bounds the probability that M - m, the largest of z_i - (m - b_i), is so large (Bonferroni; no independence is
#   needed). So the true m is rejected with probability at most c + d = a / 2.
# - The sum falls as m falls, so all m from some M - q on are not rejected: q is `reach`.

_FAR_BEHIND = 1 / 20
"""Share of the probability of a miss that goes to d, the probability that some group is taken to be too small."""


@dataclass(frozen=True, eq=False)
class ErrorTails:
    """The law of the error of a released number: increasing `points`, and for each the probability of an error at least as large,
    followed by 0."""

    points: Floats
    chances: Floats

    @classmethod
    def of_term(cls, term: ReleasedTerm) -> ErrorTails:
        """Return the tails of the error of `term`, in the unit of its values. On a coarse noise grid the sum was rounded down by
        less than one step, which is included."""
        step, masses = tabled(term.noise)
        indexes = np.arange(len(masses)) - len(masses) // 2
        points = indexes * (step * term.noise_unit) + (term.noise_unit if term.noise.shift > 0 else 0.0)
        points = np.asarray(np.rint(points) if term.whole else points, dtype=np.float64)
        points, first = np.unique(points, return_index=True)
        return cls(points, np.concatenate((np.cumsum(masses[::-1])[::-1][first], np.zeros(1))))

    def from_point(self, errors: Floats) -> Floats:
        """Return the probability of an error at least as large as each of `errors`."""
        return np.asarray(self.chances[np.searchsorted(self.points, errors, side="left")])

    def beyond(self, errors: Floats) -> Floats:
        return np.asarray(self.chances[np.searchsorted(self.points, errors, side="right")])


def reach(tails: ErrorTails, noisy: Floats, missed: float) -> float:
    """Return the distance below the largest of `noisy` (at least one number) within which the largest exact number lies, except
    with probability at most `missed`."""
    points, gaps = tails.points[tails.points >= 0], noisy.max() - noisy
    too_small = missed * _FAR_BEHIND if len(noisy) > 1 else 0.0
    beyond = tails.beyond(points)
    if too_small:
        gaps = gaps - points[np.argmax(beyond <= too_small / len(noisy))]
    behind = tails.from_point(gaps)

    def rejected(index: int) -> bool:
        chances = np.where(gaps > points[index], behind, beyond[index])
        return bool(chances.sum() <= missed - too_small)

    least, most = 0, len(points) - 1
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if rejected(middle) else (middle + 1, most)
    return float(points[most])


def only_term(block: ReleasedBlock, measure: str) -> ReleasedTerm | None:
    """Return the only term of a COUNT or SUM that rises with it, if its noise has one law in all groups; else None."""
    inner, *bounds = clamped(block.plug_ins[measure])
    terms = {term.name: term for term in block.terms}
    names = terms_of(inner)
    if measure not in block.groups.counts | block.groups.sums or len(names) != 1:
        return None
    (name,) = names
    form = linear(inner, names, frozenset(), {})
    fixed = not any(bound is not None and terms_of(bound) for bound in bounds)
    usual = known_law(terms[name]) and terms[name].standard_deviation() > 0 and name not in block.shown_from
    usual = usual and not isinstance(terms[name], (ConsistentTerm, PooledTerm))
    return terms[name] if form is not None and len(form) == 1 and fixed and usual else None


def moved(
    values: Floats, groups: Sequence[npt.NDArray[np.int64]], tails: ErrorTails, missed: float, side: int
) -> Floats:
    """Return noisy numbers moved by the `reach` of their set: down for the low end of a maximum (`side` -1), up for the high end
    of a minimum (1). `groups` are sets of places in `values`, each with an extreme of its own."""
    result = values + side * reach(tails, np.zeros(1), missed)
    for indexes in groups:
        if len(indexes) > 1:
            result[indexes] = values[indexes] + side * reach(tails, -side * values[indexes], missed)
    return result


def bring_near(
    scratch: Scratch,
    remainder: Remainder,
    confidence: float,
    below: Sequence[tuple[Extreme, Traced]],
    ends: Sequence[dict[str, Floats]],
) -> None:
    """Replace, for counts and sums, the low ends of maxima (place 4 of `ends`) and the high ends of minima (place 5) by tighter
    ones, by measure.

    `below`: each extreme with the trace of the rows that it is taken over; these differ only in their value. Raises the refusals
    of `Scratch.query`.
    """
    rows = below[0][1]
    block = remainder.block(rows.block)
    assert block is not None
    tables = dict(remainder.public) | {each.name: each.table({}) for each in remainder.blocks}
    table = scratch.query(runnable(rows.tree.copy(), remainder, rows.extra), tables)
    together = _equal_rows(table.columns[1:-1], table.columns[-1].to_numpy())
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    sides = {(kind, rows.outputs[0].unnest().name) for kind, rows in below if rows.outputs[0] is not None}
    for kind, measure in sides:
        term = only_term(block, measure)
        if term is not None:
            index, side = (4, -1) if kind is Extreme.HIGHEST else (5, 1)
            ends_of_term = moved(terms[term.name], together, ErrorTails.of_term(term), (1 - confidence) / 2, side)
            near = Measures(block).values({measure}, terms | {term.name: ends_of_term})[measure]
            ends[index][measure] = np.broadcast_to(near, block.rows)


def _equal_rows(keys: Sequence[pa.ChunkedArray], numbers: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Return `numbers`, one per row, split into sets of rows with equal keys."""
    if not keys or not len(numbers):
        return [numbers] if len(numbers) else []
    codes = [key.combine_chunks().dictionary_encode("encode").indices.to_numpy() for key in keys]
    _, of_row = np.unique(np.column_stack(codes), axis=0, return_inverse=True)
    order = np.argsort(of_row.reshape(-1), kind="stable")
    return np.split(numbers[order], np.flatnonzero(np.diff(of_row.reshape(-1)[order])) + 1)
