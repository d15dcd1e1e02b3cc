"""Error bars of remainders that are not row by row: the parametric bootstrap (Efron and Tibshirani 1993, chapter 6).

The whole remainder runs over tables with the noise drawn once more, once for each replicate, as one lateral join over
replicates. Each row of the answer is found again by its exact columns. The last replicate has what is shown and must give the
answer itself; if it does not, the engine did not repeat the question, and nothing is claimed.

A third of the replicates are t - z*, for percentiles. The next are u + z* beside u, for errors: u is t with its groups drawn
together until they vary as much as the exact ones are estimated to (Louis 1984), because what is released varies more
than the exact numbers, and a spread or an extreme over groups errs by what noise adds to *their* variation. `ends` has the
rule. The last are e + z*, where e has all groups equal to their mean: where the answer is among what these give, the data
may be such, and the bar reaches to T(e) (a test is inverted; it is how a spread of 0 stays in a bar).
What aggregates over groups has moreover replicates of what the exact groups are likely to be, b*: normal around a mean and with a
variance that are drawn as uncertain as the groups leave them, given t (empirical Bayes with a bootstrap of its parameters: Morris
1983, Laird and Louis 1987). A sum of the groups above a threshold jumps where groups pass it, and u alone is on one side.
A maximum or minimum is moreover chosen for its noise, which no replicate can see. So more replicates have all measures
at the lower and at the upper ends of their bars (`extremes`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.privacy.mechanisms.registry import is_shared
from dpsql.release.error_bars.conditional import values_given_shown
from dpsql.release.error_bars.draws import Floats, known_law, replicates, uniforms
from dpsql.release.error_bars.ends import Interval, hull_of, number_of_draws, percentiles
from dpsql.release.error_bars.extreme_ends import bring_near
from dpsql.release.error_bars.extremes import Extreme, rows_below
from dpsql.release.error_bars.intervals import intervals
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
from dpsql.release.error_bars.simulation import Measures, ReleasedGroups
from dpsql.release.pooled import PooledTerm
from dpsql.release.reconciled import ConsistentTerm
from dpsql.release.remainder import ReleasedBlock, ReleasedTerm, column, runnable
from dpsql.release.sandbox import Room, Sandbox, floats

_MOST_CELLS = 1_000_000
_MOST_REPLICATES = 399
_MOST_ROWS = 200_000
_LEAST_PRESENT = 0.5
_LEAST_GROUPS = 8
"""Of fewer groups the variation is not estimated."""
_CANDIDATE_DRAWS = 39
_MORE_NOISE = 1.5
"""Times the noise with which rows have to stay the same for noise not to choose them: of e to the -d at this noise, e to the
-1.5 d is left at the true one."""
_BOUNDS = {Extreme.NONE: (), Extreme.INSIDE: (0, 1), Extreme.HIGHEST: (4, 3), Extreme.LOWEST: (2, 5)}
"""Which ends say where an extreme is, by their places in `_ends`: a low and a high one."""


def bootstrap(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]) -> dict[int, Interval]:
    """Return the interval of each column at `positions` in `answer`, which has the columns of `rerun.tree`.

    Raises Unmatched, and the refusals of `Room.query`.
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
        replicates = min(replicates, _CANDIDATE_DRAWS)  # ends of bars say all
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
            # Of these replicates nothing was present before: fewer places than rows means that a place was met twice.
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
    """Return what a column has of extremes, and of one of a measure the rows that it is taken of: INSIDE, too, where it is one
    over rows that noise chooses.

    Where more noise than there is leaves the same rows in every one of a few replicates, it does not choose.
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
    """Return how many different rows might have been shown: those that are in some of a few replicates. Their noise is doubled,
    because a row that is shown had luck with its own. Column `row` of `rerun.tree` says which row is which.

    Rows in one replicate alone say how likely one is that none has shown (Good 1953), with a deviation to be sure (Esty 1983).

    Raises the refusals of `Room.query`, and Unmatched.
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
    """Return the answer of `sql` for a few replicates t - z*: rows `q`, columns `labels` and the number of the replicate."""
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
    """Return how many rows, by the columns `rerun.keys`, there are in all of a few replicates t - z*, and in any of them.
    `spread` multiplies their noise.

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
    """Return the terms of a block: as released, t - z* for each draw, u, u + z* for each draw, e, e + z* for each draw, and where
    there are four families t, b* for each draw. `spread` multiplies the noise of t - z*."""
    terms = {term.name: _replicated(rerun, block, term, draws, spread) for term in block.terms}
    return Variants(rerun, block, terms, rerun.families * (draws + 1), appended)


def _replicated(rerun: Rerun, block: ReleasedBlock, term: ReleasedTerm, draws: int, spread: float) -> Floats:
    """Return the shape (families (draws + 1), groups)."""
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
    """Return all measures at the low and at the high ends of bars that hold for all groups at once, where an extreme is asked
    for, then of bars that hold for each of them (`extremes`); a measure without ends as it is. After them the first two again,
    for `bring_near`."""
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
    """Return the measures of the answer itself."""
    terms = {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    return Measures(block).values(set(block.plug_ins), terms) | block.estimates


def _drawn_together(values: Floats, deviation: float) -> Floats:
    """Numbers of groups moved toward their mean until their variance is that of `values` less that of the noise."""
    if len(values) < _LEAST_GROUPS or deviation == 0:
        return values
    if (unit := _unit_of(values, deviation)) != 1:
        return unit * _drawn_together(values / unit, deviation / unit)
    variance, mean = float(np.var(values)), float(np.mean(values))
    share = np.sqrt(max(0.0, 1 - deviation**2 / variance)) if variance > 0 else 0.0
    return np.asarray(mean + share * (values - mean))


def _unit_of(values: Floats, deviation: float) -> float:
    """Return a power of two in which the squares of all numbers are doubles: 1 unless one of them is huge."""
    largest = max(deviation, float(np.max(np.abs(values), initial=0.0)))
    return 2.0**600 if 2.0**500 < largest < math.inf else 1.0


def _likely(values: Floats, deviation: float, key: str, draws: int, joint: Floats | None = None) -> Floats:
    """Return draws of what the exact numbers of groups may be, shape (draws, groups); NaN for fewer than `_LEAST_GROUPS`.

    `joint`: draws of the noise of all groups together, where it is not independent.

    The variance of the released numbers is drawn as that of a normal sample (chi-square by Wilson and Hilferty 1931), less
    that of the noise; then the mean, then each group between it and its own number.
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
    """`cells`: as `Replicates` orders them, then so many `ends` and the answer, by rows of the answer. Not known where a row is
    in fewer than half of the replicates. Raises Unmatched when the last replicate is not the answer."""
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
    # Rows that are in all replicates are computed together, the others one by one.
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
    """Return the hull of percentiles, of reflected errors, of the answer for equal groups where they may be so, of likely
    answers, and of `bounds`; of `bounds` alone where these say all of an extreme.

    `drawn` and `centres`: of t - z*, u + z*, e + z* and b*, by rows and draws, and of t, u and e by rows.
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
