"""Outputs that are a maximum or minimum over groups, which are chosen for their noise: no replicate of it can see that.

Let each of k groups have a bar whose low and high ends miss the exact number b_i with a probability of at most a / 2k and a / 2.

- The largest high end is below the largest exact number only if that group's own high end is: with a probability of at most
  a / 2, whatever the others are.
- The largest low end is above the largest exact number only if some group's low end is above its own: with a probability of
  at most k (a / 2k) = a / 2 (Bonferroni).

So the maximum lies between the largest low and the largest high end with 1 - a at least, and the minimum, mirrored, between
the smallest ends. That needs an output that is the maximum of one measure as it stands, over rows that noise does not choose.
Other outputs with a maximum or minimum in them (a difference of two, a share of the largest) are computed over low ends and
over high ends that hold for all groups at once, in a hull with replicates.

Of a COUNT or SUM, t_i = b_i + z_i with z_i of one known law, T(x) = P(Z >= x), the low end is nearer: a group that is far
behind cannot be what made the largest number large (in two steps, as Romano, Shaikh and Wolf 2014, Econometrica 82(5)). Let
M be the largest t_i, and the largest exact number be tested for being m, with c + d = a / 2:

- With 1 - d at least no z_i is below -e, P(Z < -e) <= d / k, so that every b_i is at most t_i + e.
- m is rejected where the sum of T(max(M - m, M - t_i - e)) over all groups is at most c. If b_i <= t_i + e for all i, then m -
  b_i >= m - t_i - e, so that the sum of T((M - m) + (m - b_i)) is at most c as well. That is a fixed falling function of M - m,
  and bounds the probability that M - m, the largest of z_i - (m - b_i), is so large (Bonferroni; no independence is needed).
  So the true m is rejected with a probability of c + d = a / 2 at most.
- The sum falls as m falls, so that what is not rejected is all from M - q on: q is `reach`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite

import numpy as np
import numpy.typing as npt
from sqlglot import exp

from dpsql.release.error_bars.affine import parts
from dpsql.release.error_bars.draws import Floats, known_law, tabled
from dpsql.release.error_bars.extents import EVERYTHING, extent
from dpsql.release.error_bars.rowwise import Traced, trace
from dpsql.release.error_bars.vectors import clamped
from dpsql.release.reconciled import ConsistentTerm
from dpsql.release.remainder import ReleasedBlock, ReleasedTerm, Remainder

_AFTER_GROUPS = ("having", "qualify", "order", "limit", "offset", "distinct")
_FAR_BEHIND = 1 / 20
"""Of the chance that a low end misses: the part d that some group is thought too small."""


class Extreme(Enum):
    """What an output has of maxima and minima over groups. HIGHEST and LOWEST: it is that of one measure."""

    NONE = 0
    HIGHEST = 1
    LOWEST = 2
    INSIDE = 3


_ALONE: dict[type[exp.Expr], Extreme] = {exp.Max: Extreme.HIGHEST, exp.Min: Extreme.LOWEST}
_NODES = (exp.Max, exp.Min, exp.ArgMax, exp.ArgMin)


def extremes(tree: exp.Query) -> tuple[Extreme, ...]:
    """Return for each output of `tree` what it has of extremes, by its text; INSIDE for all where a subquery has one."""
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
    """Return the trace of the rows that the extreme at `position` is taken of: its argument, then the keys it is grouped by.

    None where the argument is not a measure of a block as it stands, or one that may have no bar, and where noisy numbers
    decide which rows are together.
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
    """Return whether a measure has a bar whatever the noise: a COUNT or SUM, or one that cannot leave finite bounds."""
    low, high = extent(block.plug_ins[measure], lambda _: EVERYTHING)
    return measure in block.groups.counts | block.groups.sums or (isfinite(low) and isfinite(high))


@dataclass(frozen=True, eq=False)
class Tails:
    """The law of the error of a released number: `points`, increasing, and the chance of each of them or more, then 0."""

    points: Floats
    chances: Floats

    @classmethod
    def of(cls, term: ReleasedTerm) -> Tails:
        """Those of `term`, in the unit of its values. A coarse grid's sum was rounded down by less than a step."""
        step, masses = tabled(term.noise)
        places = np.arange(len(masses)) - len(masses) // 2
        points = places * (step * term.noise_unit) + (term.noise_unit if term.noise.shift > 0 else 0.0)
        points = np.asarray(np.rint(points) if term.whole else points, dtype=np.float64)
        points, first = np.unique(points, return_index=True)
        return cls(points, np.concatenate((np.cumsum(masses[::-1])[::-1][first], np.zeros(1))))

    def from_point(self, errors: Floats) -> Floats:
        """Return the probability of so large an error or a larger one."""
        return np.asarray(self.chances[np.searchsorted(self.points, errors, side="left")])

    def beyond(self, errors: Floats) -> Floats:
        """Return the probability of a larger error."""
        return np.asarray(self.chances[np.searchsorted(self.points, errors, side="right")])


def reach(tails: Tails, noisy: Floats, missed: float) -> float:
    """Return how far below the largest of `noisy` (at least one) the largest exact number may be: it is farther with a
    probability of `missed` at most."""
    points, gaps = tails.points[tails.points >= 0], noisy.max() - noisy
    too_small = missed * _FAR_BEHIND if len(noisy) > 1 else 0.0
    beyond = tails.beyond(points)
    if too_small:
        gaps = gaps - points[np.argmax(beyond <= too_small / len(noisy))]
    behind = tails.from_point(gaps)

    def rejected(place: int) -> bool:
        chances = np.where(gaps > points[place], behind, beyond[place])
        return bool(chances.sum() <= missed - too_small)

    least, most = 0, len(points) - 1
    while least < most:
        middle = (least + most) // 2
        least, most = (least, middle) if rejected(middle) else (middle + 1, most)
    return float(points[most])


def only_term(block: ReleasedBlock, measure: str) -> ReleasedTerm | None:
    """Return the term that a COUNT or SUM rises with, alone and by a law that is the same for all groups; None for any other."""
    inner, *bounds = clamped(block.plug_ins[measure])
    terms = {term.name: term for term in block.terms}
    columns = {node.name for node in inner.find_all(exp.Column)}
    if measure not in block.groups.counts | block.groups.sums or len(columns) != 1 or not columns <= terms.keys():
        return None
    (name,) = columns
    linear = parts(inner, terms)
    fixed = not any(bound is not None and bound.find(exp.Column) for bound in bounds)
    usual = known_law(terms[name]) and terms[name].standard_deviation() > 0 and name not in block.shown_from
    usual = usual and not isinstance(terms[name], ConsistentTerm)
    return terms[name] if linear is not None and len(linear) == 1 and fixed and usual else None


def moved(values: Floats, groups: Sequence[npt.NDArray[np.int64]], tails: Tails, missed: float, side: int) -> Floats:
    """Return noisy numbers moved by the `reach` of their groups, sets of places in `values` with an extreme each: down for the
    low end of a maximum (`side` -1), up for the high end of a minimum (1)."""
    result = values + side * reach(tails, np.zeros(1), missed)
    for places in groups:
        if len(places) > 1:
            result[places] = values[places] + side * reach(tails, -side * values[places], missed)
    return result
