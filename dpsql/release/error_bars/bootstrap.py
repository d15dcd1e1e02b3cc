"""Error bars of remainders that are not row by row: the parametric bootstrap (Efron and Tibshirani 1993, chapter 6).

The whole remainder runs over tables in which the noise is drawn again for each replicate, as one lateral join over replicates.
Rows of the answer are matched by their exact columns. The last replicate has the numbers shown and must reproduce the answer;
if it does not, the engine did not repeat the query, and no error bar is given.

There are several families of replicates (`ends` has the rule that combines them):

- t - z*, for percentiles.
- u + z* together with u, for errors. u is t with its groups shrunk toward their mean until they vary as much as the exact groups
  are estimated to (Louis 1984). For released numbers vary more than exact ones, and the error of a spread or an extreme over
  groups is what noise adds to the variation of the *exact* groups.
- e + z*, where e has all groups equal to their mean. If the answer is among the results of this family, the data may be such,
  and the bar reaches to T(e) (a test is inverted; this keeps a spread of 0 inside a bar).
- b*, for outputs that aggregate over groups: likely exact groups given t, normal around a mean and with a variance that are drawn
  with the uncertainty that the groups leave (empirical Bayes with a bootstrap of its parameters: Morris 1983, Laird and Louis
  1987). A sum of the groups above a threshold jumps where groups pass it, and u alone is on one side.

A maximum or minimum is selected for its noise, which no replicate can reproduce. So further replicates have all measures at the
lower and at the upper ends of their bars (`extremes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.privacy.mechanisms.registry import is_shared
from dpsql.release.error_bars.draws import Floats, known_law, replicates, uniforms, values_given_shown
from dpsql.release.error_bars.ends import Interval, hull_of, number_of_draws, percentiles
from dpsql.release.error_bars.extremes import Extreme, bring_near, rows_below
from dpsql.release.error_bars.intervals import Measures, ReleasedGroups, intervals
from dpsql.release.error_bars.reruns import (
    DRAW,
    DRAWS,
    Rerun,
    Unmatched,
    Variants,
    in_parts,
    run_again,
    this_draw,
)
from dpsql.release.error_bars.rowwise import Traced
from dpsql.release.reconciled import ConsistentTerm, PooledTerm
from dpsql.release.remainder import ReleasedBlock, ReleasedTerm, column, runnable
from dpsql.release.sandbox import Room, Sandbox, floats

_MOST_CELLS = 1_000_000
_MOST_REPLICATES = 399
_MOST_ROWS = 200_000
_LEAST_PRESENT = 0.5
_LEAST_GROUPS = 8
"""Least number of groups whose variation is estimated."""
_CANDIDATE_DRAWS = 39
_MORE_NOISE = 1.5
"""Factor of the noise under which rows must stay the same to count as not chosen by noise: a probability of e**-d at this noise
is e**(-1.5 d) at the true noise."""
_BOUNDS = {Extreme.NONE: (), Extreme.INSIDE: (0, 1), Extreme.HIGHEST: (4, 3), Extreme.LOWEST: (2, 5)}
"""The low and the high end between which an extreme lies, by their places in the result of `_ends`."""


def bootstrap(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]) -> dict[int, Interval]:
    """Return the interval of each column at `positions` in `answer`, which has the columns of `rerun.tree`.

    Raises Unmatched if rows cannot be matched or noise cannot be drawn, and the refusals of `Room.query`.
    """
    blocks = rerun.remainder.blocks
    groups = sum(block.rows for block in blocks) + len(answer)
    if groups > _MOST_ROWS:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    found_at = {position: _extreme_at(sandbox, rerun, position) for position in positions}
    kinds = {position: kind for position, (kind, _) in found_at.items()}
    below = [(kind, rows) for kind, rows in found_at.values() if rows is not None]
    replicates = number_of_draws(groups, _MOST_CELLS, _MOST_REPLICATES, rerun.confidence)
    if set(kinds.values()) <= {Extreme.HIGHEST, Extreme.LOWEST}:
        replicates = min(replicates, _CANDIDATE_DRAWS)  # the ends of bars suffice
    with sandbox.room() as room:
        last = {block.name: [*_ends(room, rerun, block, set(kinds.values())), _as_displayed(block)] for block in blocks}
        if below:
            bring_near(room, rerun.remainder, rerun.confidence, below, last[below[0][1].block])
        ends = max((len(appended) for appended in last.values()), default=1) - 1
        shape = (rerun.families * (replicates + 1) + ends + 1, len(answer))
        present = np.zeros(shape, dtype=bool)
        cells = {position: np.full(shape, np.nan) for position in positions}
        tables = {block.name: _replicates(rerun, block, replicates, last[block.name]) for block in blocks}
        for part in in_parts(shape[0], groups):
            result = run_again(room, rerun, answer, positions, tables, part)
            draw, row = (result.column(i).to_numpy().astype(np.int64) for i in (0, 1))
            place = draw * len(answer) + row
            present.flat[place] = True
            # This part's replicates had no rows before: fewer places than rows means that two rows have the same place.
            if np.count_nonzero(present[part.start : part.stop]) < len(place):
                raise Unmatched("its rows have no key; select the group keys too")
            for number, position in enumerate(positions, 2):
                cells[position].flat[place] = floats(result.column(number))
    return {
        position: _interval(
            floats(answer.column(position)), cells[position], present, rerun, position, ends, kinds[position]
        )
        for position in positions
    }


def _extreme_at(sandbox: Sandbox, rerun: Rerun, position: int) -> tuple[Extreme, Traced | None]:
    """Return how extremes enter a column and, if it is the extreme of one measure, the trace of the rows that it is taken over.
    An extreme over rows that noise chooses counts as INSIDE.

    Noise does not choose the rows if they are the same in each of a few replicates with `_MORE_NOISE` times the noise.
    """
    kind = rerun.extremes[position] if position < len(rerun.extremes) else Extreme.INSIDE
    if kind not in (Extreme.HIGHEST, Extreme.LOWEST):
        return kind, None
    below = rows_below(rerun.remainder, rerun.tree, position)
    if below is None:
        return Extreme.INSIDE, None
    if not below.selected:
        return kind, below
    width = len(below.outputs) + 1
    rows = Rerun(rerun.remainder, below.tree, width, (width - 1,), below.extra, {}, rerun.confidence, rerun.seed, ())
    always, ever = surely_and_maybe(sandbox, rows, spread=_MORE_NOISE)
    return (kind, below) if always == ever else (Extreme.INSIDE, None)


def candidates(sandbox: Sandbox, rerun: Rerun, row: int) -> int:
    """Return how many different rows might have been shown: those that are in any of a few replicates. Their noise is doubled,
    because the noise of a row that is shown is biased. Column `row` of `rerun.tree` identifies rows.

    Rows in exactly one replicate tell how likely a row is that no replicate has shown (Good 1953); one standard deviation is
    added to be safe (Esty 1983). Raises the refusals of `Room.query`, and Unmatched.
    """
    labels = ", ".join(f'"c{place}"' for place in range(row + 1))
    counts = "SELECT COUNT(*), COUNT(*) FILTER (WHERE n = 1), COUNT(*) FILTER (WHERE n = 2), SUM(n)::BIGINT FROM ({})"
    times = f'SELECT COUNT(*) AS n FROM {{}} GROUP BY q."c{row}"'
    result = _replicated_rows(sandbox, rerun, counts.format(times), labels, 2.0)
    different, singles, pairs, total = (int(column[0].as_py() or 0) for column in result.columns)
    if not singles:
        return different
    coverage = 1 - (singles + math.sqrt(singles + 2 * pairs)) / total
    return math.ceil(different / coverage) if coverage > 0 else sum(block.rows for block in rerun.remainder.blocks)


def _replicated_rows(sandbox: Sandbox, rerun: Rerun, sql: str, labels: str, spread: float) -> pa.Table:
    """Return the result of `sql` over a few replicates t - z*: rows `q` with columns `labels` and the number of the replicate."""
    blocks = rerun.remainder.blocks
    if sum(block.rows for block in blocks) > _MOST_ROWS:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    part = range(_CANDIDATE_DRAWS + 1)
    tables = dict(rerun.remainder.public)
    tables |= {block.name: _replicates(rerun, block, _CANDIDATE_DRAWS, spread=spread).table(part) for block in blocks}
    tables[DRAWS] = pa.table({DRAW: pa.array(np.arange(len(part)))})
    inner = runnable(rerun.tree.copy(), rerun.remainder, rerun.hidden, this_draw)
    with sandbox.room() as room:
        return room.query(sql.format(f'"{DRAWS}" CROSS JOIN LATERAL ({inner}) AS q({labels})'), tables)


def surely_and_maybe(sandbox: Sandbox, rerun: Rerun, spread: float = 1.0) -> tuple[int, int]:
    """Return how many rows, identified by the columns `rerun.keys`, are in all of a few replicates t - z*, and in any of them.
    `spread` multiplies the noise.

    Raises the refusals of `Room.query`, and Unmatched.
    """
    labels = ", ".join(f'"c{place}"' for place in range(rerun.width))
    keys = ", ".join(f'q."c{place}"' for place in rerun.keys)
    rows = f'SELECT COUNT(DISTINCT "{DRAW}") AS draws FROM {{}} GROUP BY {keys}'
    sql = f"SELECT COUNT(*) FILTER (WHERE draws = {_CANDIDATE_DRAWS + 1}), COUNT(*) FROM ({rows})"
    always, ever = _replicated_rows(sandbox, rerun, sql, labels, spread).to_pylist()[0].values()
    return int(always), int(ever)


def _replicates(
    rerun: Rerun,
    block: ReleasedBlock,
    draws: int,
    appended: Sequence[Mapping[str, Floats]] = (),
    spread: float = 1.0,
) -> Variants:
    """Return variants of the terms of a block: t (as released), t - z* for each draw, u, u + z* for each draw, e, e + z* for each
    draw, and if there are four families t, b* for each draw. `spread` multiplies the noise of t - z*."""
    terms = {term.name: _replicated(rerun, block, term, draws, spread) for term in block.terms}
    return Variants(rerun, block, terms, rerun.families * (draws + 1), appended)


def _replicated(rerun: Rerun, block: ReleasedBlock, term: ReleasedTerm, draws: int, spread: float) -> Floats:
    """Return the variants of one term in the order of `_replicates`, shape (families (draws + 1), groups)."""
    released = np.asarray(term.values, dtype=np.float64)
    key = f"{rerun.seed}/{block.name}/{term.name}"
    noise, drawn = replicates(term, rerun.seed, block.name, draws)
    least = block.shown_from.get(term.name)
    if least is None:
        again = released - spread * noise
    else:
        uniform = uniforms(key, 2 * draws * len(released)).reshape(2, draws, len(released))
        again = np.empty_like(uniform[0])  # there may be no group
        for group in range(len(released)):
            again[:, group] = values_given_shown(term, released[[group]], least, uniform[0][:, group])[0]
    shrunk = _drawn_together(released, term.standard_deviation())
    equal = np.full_like(released, released.mean() if len(released) >= _LEAST_GROUPS else np.nan)
    parts = [released[None], again, shrunk[None], shrunk + drawn, equal[None], equal + drawn]
    if rerun.families == 4:
        joint = drawn if isinstance(term, (ConsistentTerm, PooledTerm)) or is_shared(term.noise) else None
        parts += [released[None], _likely(released, term.standard_deviation(), f"{key}/likely", draws, joint)]
    return np.concatenate(parts)


def _ends(room: Room, rerun: Rerun, block: ReleasedBlock, kinds: set[Extreme]) -> list[dict[str, Floats]]:
    """Return, if any column has an extreme, all measures at the low and the high ends of bars that hold for all groups at once,
    then of bars that hold for each group (`extremes`), then the first two again, for `bring_near`. A measure without ends has
    its released value."""
    if kinds <= {Extreme.NONE}:
        return []
    names = [name for name, _, _ in block.formulas]
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    released = Measures(block).values(set(names), terms)
    ends = []
    for confidence in (1 - (1 - rerun.confidence) / max(1, block.rows), rerun.confidence):
        groups = ReleasedGroups(block, {}, None, confidence, rerun.seed)
        bars = dict(zip(names, intervals(room, groups, [column(name) for name in names]), strict=True))
        for side in ("low", "high"):
            of_side = {name: getattr(bars[name], side) for name in names}
            ends.append({name: np.where(np.isfinite(of_side[name]), of_side[name], released[name]) for name in names})
    return [*ends, *(dict(side) for side in ends[:2])]


def _as_displayed(block: ReleasedBlock) -> dict[str, Floats]:
    """Return the measures that the answer itself was computed from."""
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    return Measures(block).values(set(block.plug_ins), terms) | block.estimates


def _drawn_together(values: Floats, deviation: float) -> Floats:
    """Return the numbers of groups shrunk toward their mean until their variance is that of `values` minus that of the noise."""
    if len(values) < _LEAST_GROUPS or deviation == 0:
        return values
    if (unit := _unit_of(values, deviation)) != 1:
        return unit * _drawn_together(values / unit, deviation / unit)
    variance, mean = float(np.var(values)), float(np.mean(values))
    share = np.sqrt(max(0.0, 1 - deviation**2 / variance)) if variance > 0 else 0.0
    return np.asarray(mean + share * (values - mean))


def _unit_of(values: Floats, deviation: float) -> float:
    """Return a power of two as a unit in which no square of the numbers overflows a double: 1 unless one of them is huge."""
    largest = max(deviation, float(np.max(np.abs(values), initial=0.0)))
    return 2.0**600 if 2.0**500 < largest < math.inf else 1.0


def _likely(values: Floats, deviation: float, key: str, draws: int, joint: Floats | None = None) -> Floats:
    """Return draws of likely exact numbers of groups, shape (draws, groups); NaN for fewer than `_LEAST_GROUPS`.

    `joint`: draws of the noise of all groups together, if it is not independent.

    First draw the variance of the released numbers as for a normal sample (chi-square by Wilson and Hilferty 1931) and subtract
    that of the noise; then draw the mean, then each group between the mean and its released number.
    """
    if (unit := _unit_of(values, deviation)) != 1:
        return unit * _likely(values / unit, deviation / unit, key, draws, None if joint is None else joint / unit)
    groups = len(values)
    if groups < _LEAST_GROUPS or deviation == 0:
        return np.full((draws, groups), np.nan if groups < _LEAST_GROUPS else values)
    normal = _normal(f"{key}/groups", draws * (groups + 2)).reshape(draws, groups + 2)
    freedom = 2 / (9 * (groups - 1))
    chi = np.maximum(1 - freedom + np.sqrt(freedom) * normal[:, :1], 0.05) ** 3
    between = np.maximum(np.var(values) / chi - deviation**2, 0.0)
    whole = between + deviation**2
    mean = np.mean(values) + np.sqrt(whole / groups) * normal[:, 1:2]
    share = between / whole
    noise = deviation * normal[:, 2:] if joint is None else joint
    return np.asarray(mean + share * (values - mean) + np.sqrt(share) * noise)


def _normal(key: str, count: int) -> Floats:
    """Return standard normal numbers from `key` (Box and Muller 1958)."""
    uniform = uniforms(key, 2 * count).reshape(2, count)
    return np.asarray(np.sqrt(-2 * np.log(uniform[0])) * np.cos(2 * np.pi * uniform[1]))


def _interval(
    displayed: Floats,
    cells: Floats,
    present: npt.NDArray[np.bool_],
    rerun: Rerun,
    position: int,
    ends: int,
    extreme: Extreme,
) -> Interval:
    """Return the interval of one column. `cells`, by rows of the answer: replicates in the order of `_replicates`, then `ends`
    variants at ends of bars, then the answer. Rows in fewer than half of the replicates get no ends. Raises Unmatched when the
    last replicate is not the answer."""
    if not np.allclose(cells[-1], displayed, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise Unmatched("the order of its rows decides the result")
    value, last = cells[0], len(cells) - 1 - ends
    bounds, cells, present = cells[last:-1][list(_BOUNDS[extreme])], cells[:last], present[:last]
    shape = (rerun.families, len(cells) // rerun.families, len(value))
    finite = np.where(np.isfinite(cells), cells, np.nan).reshape(shape)
    present_by_family = present.reshape(shape)
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    seldom = present_by_family[0, 1:].mean(axis=0) < _LEAST_PRESENT
    always = present.all(axis=0)
    # Rows that are in all replicates are computed together, other rows one by one.
    for rows in [np.flatnonzero(always), *np.flatnonzero(~always & ~seldom)[:, None]]:
        if len(rows):
            families = [finite[family][:, rows] for family in range(rerun.families)]
            present_in = [present_by_family[family, 1:, rows[0]] for family in range(rerun.families)]
            drawn = [family[1:][draws].T for family, draws in zip(families, present_in, strict=True)]
            centres = [family[0] for family in families]
            low[rows], high[rows] = _ends_of(value[rows], drawn, centres, bounds[:, rows], rerun, position, extreme)
    interval = Interval.of(value, low, high, rerun.extents[position])
    return Interval(value, interval.low, interval.high, interval.unknown & ~seldom).around_displayed(displayed)


def _ends_of(
    value: Floats,
    drawn: Sequence[Floats],
    centres: Sequence[Floats],
    bounds: Floats,
    rerun: Rerun,
    position: int,
    extreme: Extreme,
) -> tuple[Floats, Floats]:
    """Return the hull of percentiles, of reflected errors, of the answer for equal groups if the groups may be equal, of likely
    answers, and of `bounds`; `bounds` alone where an extreme lies between them.

    `drawn`: outputs for t - z*, u + z*, e + z* and b*, by rows and draws; `centres`: for t, u and e, by rows.
    """
    if extreme in (Extreme.HIGHEST, Extreme.LOWEST) and np.isfinite(bounds).all():
        return hull_of([(bounds[0], bounds[1])], rerun.extents[position])
    ends = [percentiles(drawn[0], rerun.confidence)]
    with np.errstate(invalid="ignore"):
        if drawn[1].size:
            first, last = percentiles(drawn[1], rerun.confidence)
            ends.append((value - last + centres[1], value - first + centres[1]))
        if drawn[2].size:
            first, last = percentiles(drawn[2], rerun.confidence)
            equal = np.where((first <= value) & (value <= last), centres[2], np.nan)
            ends.append((equal, equal))
    if len(drawn) == 4 and drawn[3].size:
        first, last = percentiles(drawn[3], rerun.confidence)
        ends.append((np.where(np.isfinite(first), first, np.nan), np.where(np.isfinite(last), last, np.nan)))
    if len(bounds):
        ends.append((np.fmin.reduce(bounds), np.fmax.reduce(bounds)))
    return hull_of(ends, rerun.extents[position])
