"""Error bars of remainders that are not row by row: the parametric bootstrap (Efron and Tibshirani 1993, chapter 6).

The whole remainder runs over tables with the noise drawn once more, once for each replicate, as one lateral join over
replicates. Each row of the answer is found again by its exact columns. Replicate 0 has no noise and must give the answer
itself; if it does not, the engine did not repeat the question, and nothing is claimed.

A third of the replicates are t - z*, for percentiles. The next are u + z* beside u, for errors: u is t with its groups drawn
together until they vary as much as the exact ones are estimated to (Louis 1984), because what is released varies more
than the exact numbers, and a spread or an extreme over groups errs by what noise adds to *their* variation. `ends` has the
rule. The last are e + z*, where e has all groups equal to their mean: where the answer is among what these give, the data
may be such, and the bar reaches to T(e) (a test is inverted; it is how a spread of 0 stays in a bar).
A maximum or minimum is moreover chosen for its noise, which no replicate can see. So two more replicates have all measures
at the lower and at the upper ends of bars that hold for all groups at once, each missing with (1 - confidence) / groups
only (Bonferroni): the exact extreme of numbers that are all within their bars lies between the extremes of the ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.conditional import values_given_shown
from dpsql.release.error_bars.draws import Floats, deviates, known_law, uniforms
from dpsql.release.error_bars.ends import Interval, hull_of, number_of_draws, percentiles
from dpsql.release.error_bars.extents import Extent
from dpsql.release.error_bars.intervals import intervals
from dpsql.release.error_bars.simulation import Groups, Measures, typed
from dpsql.release.remainder import DIALECT, ReleasedBlock, ReleasedTerm, Remainder, column, runnable
from dpsql.release.sandbox import Room, Sandbox, floats

_MOST_CELLS = 1_000_000
_MOST_REPLICATES = 399
_MOST_ROWS = 200_000
_PART_ROWS = 1_000_000
_LEAST_PRESENT = 0.5
_LEAST_GROUPS = 8
"""Of fewer groups the variation is not estimated."""
_CANDIDATE_DRAWS = 39
_DRAWS, _DRAW, _ROWS, _AT = "dp#draws", "dp#draw", "dp#answer", "dp#at"


@dataclass(frozen=True, eq=False)
class Rerun:
    """The remainder to be run again: `tree` has `width` columns, of which `keys` (positions) say which row is which.

    `hidden` and `extra`: hidden columns of the blocks, as for the answer. `seed` names the draws. `extents`: what each
    column cannot leave.
    """

    remainder: Remainder
    tree: exp.Query
    width: int
    keys: tuple[int, ...]
    hidden: Mapping[str, Sequence[str]]
    extra: Mapping[str, Mapping[str, Floats]]
    confidence: float
    seed: str
    extents: Sequence[Extent]

    @property
    def extreme(self) -> bool:
        """Whether the remainder asks for a maximum or minimum of groups."""
        return self.tree.find(exp.Max, exp.Min, exp.ArgMax, exp.ArgMin) is not None


class Unmatched(Exception):
    """The rows of the answer cannot be found again in its replicates; the text says why."""


def bootstrap(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, wanted: Sequence[int]) -> dict[int, Interval]:
    """The interval of each column of `wanted`, positions in `answer`, which has the columns of `rerun.tree`.

    Raises Unmatched, and the refusals of `Room.query`.
    """
    blocks = rerun.remainder.blocks
    groups = sum(block.rows for block in blocks) + len(answer)
    if groups > _MOST_ROWS:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    replicates = number_of_draws(groups, _MOST_CELLS, _MOST_REPLICATES, rerun.confidence)
    shape = (3 * replicates + 3 + 2 * rerun.extreme, len(answer))
    present = np.zeros(shape, dtype=bool)
    cells = {position: np.full(shape, np.nan) for position in wanted}
    with sandbox.room() as room:
        tables = {block.name: Replicates(rerun, block, replicates, _ends(room, rerun, block)) for block in blocks}
        for part in _parts(shape[0], groups):
            result = _run(room, rerun, answer, wanted, tables, part)
            draw, at = (result.column(i).to_numpy().astype(np.int64) for i in (0, 1))
            place = draw * len(answer) + at
            if len(np.unique(place)) < len(place):
                raise Unmatched("its rows have no key; select the group keys too")
            present.flat[place] = True
            for number, position in enumerate(wanted, 2):
                cells[position].flat[place] = floats(result.column(number))
    return {
        position: _interval(floats(answer.column(position)), cells[position], present, rerun, position)
        for position in wanted
    }


def candidates(sandbox: Sandbox, rerun: Rerun, row: int) -> int:
    """How many different rows might have been shown: those that are in some of a few replicates. Their noise is doubled,
    because a row that is shown had luck with its own. Column `row` of `rerun.tree` says which row is which.

    Raises the refusals of `Room.query`, and Unmatched.
    """
    blocks = rerun.remainder.blocks
    if not all(known_law(term) for block in blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    part = range(_CANDIDATE_DRAWS + 1)
    tables = dict(rerun.remainder.public)
    tables |= {block.name: Replicates(rerun, block, _CANDIDATE_DRAWS, spread=2.0).table(part) for block in blocks}
    tables[_DRAWS] = pa.table({_DRAW: pa.array(np.arange(len(part)))})
    inner = runnable(rerun.tree.copy(), rerun.remainder, rerun.hidden, _this_draw)
    labels = ", ".join(f'"c{at}"' for at in range(row + 1))
    sql = f'SELECT COUNT(DISTINCT q."c{row}") FROM "{_DRAWS}" CROSS JOIN LATERAL ({inner}) AS q({labels})'
    with sandbox.room() as room:
        return int(room.query(sql, tables).column(0)[0].as_py())


def _parts(draws: int, groups: int) -> Iterator[range]:
    """Replicates, as many together as the sandbox has room for."""
    size = max(1, _PART_ROWS // max(1, groups))
    return (range(start, min(start + size, draws)) for start in range(0, draws, size))


class Replicates:
    """The terms of a block: as released, t - z* for each draw, u, u + z* for each draw, e, e + z* for each draw; after
    them `ends`, the measures at the lower and at the upper ends of bars. `spread` multiplies the noise of t - z*."""

    def __init__(
        self,
        rerun: Rerun,
        block: ReleasedBlock,
        draws: int,
        ends: Sequence[Mapping[str, Floats]] = (),
        spread: float = 1.0,
    ) -> None:
        self.ends = ends
        self.spread = spread
        self.block = block
        self.extra = rerun.extra.get(block.name, {})
        self.measures = Measures(block)
        self.draws = draws
        self.terms = {
            term.name: self._replicated(term, f"{rerun.seed}/{block.name}/{term.name}") for term in block.terms
        }

    def _replicated(self, term: ReleasedTerm, key: str) -> Floats:
        """Shape (3 draws + 3, groups)."""
        released = np.asarray(term.values, dtype=np.float64)
        uniform = uniforms(key, 2 * self.draws * len(released)).reshape(2, self.draws, len(released))
        drawn = deviates(term, uniform[1].reshape(-1)).reshape(uniform[1].shape)
        least = self.block.shown_from.get(term.name)
        if least is None:
            again = released - self.spread * deviates(term, uniform[0].reshape(-1)).reshape(uniform[0].shape)
        else:
            columns = [
                values_given_shown(term, released[[at]], least, uniform[0][:, at])[0] for at in range(len(released))
            ]
            again = np.stack(columns, axis=1)
        shrunk = _drawn_together(released, term.standard_deviation())
        equal = np.full_like(released, released.mean() if len(released) >= _LEAST_GROUPS else np.nan)
        return np.concatenate([released[None], again, shrunk[None], shrunk + drawn, equal[None], equal + drawn])

    def table(self, part: range) -> pa.Table:
        """Keys, measures and hidden columns for some of the replicates."""
        rows = self.block.rows
        places = pa.array(np.tile(np.arange(rows, dtype=np.int64), len(part)))
        known = self.block.table(self.extra)
        known = known.select([name for name in known.column_names if name not in self.terms]).take(places)
        terms = {name: values[part.start : part.stop] for name, values in self.terms.items()}
        measures = self.measures.values({name for name, _, _ in self.block.formulas}, terms)
        last = 3 * self.draws + 3
        for place, end in enumerate(self.ends):
            if last + place in part:
                measures = {name: np.concatenate((values, end[name][None])) for name, values in measures.items()}
        for name, _, type_ in self.block.formulas:
            flat = np.broadcast_to(measures[name], (len(part), rows)).reshape(-1)
            known = known.append_column(name, typed(np.where(np.isfinite(flat), flat, np.nan), type_))
        return known.append_column(_DRAW, pa.array(np.repeat(np.arange(part.start, part.stop), rows)))


def _ends(room: Room, rerun: Rerun, block: ReleasedBlock) -> list[dict[str, Floats]]:
    """The ends of all measures that hold at once, where an extreme is asked for; a measure without ends as it is."""
    if not rerun.extreme:
        return []
    confidence = 1 - (1 - rerun.confidence) / max(1, block.rows)
    groups = Groups(block, {}, None, confidence, rerun.seed)
    names = [name for name, _, _ in block.formulas]
    found = dict(zip(names, intervals(room, groups, [column(name) for name in names]), strict=True))
    released = Measures(block).values(
        set(names), {term.name: np.asarray(term.values, dtype=float) for term in block.terms}
    )
    low = {name: np.where(np.isfinite(found[name].low), found[name].low, released[name]) for name in names}
    high = {name: np.where(np.isfinite(found[name].high), found[name].high, released[name]) for name in names}
    return [low, high]


def _drawn_together(values: Floats, deviation: float) -> Floats:
    """Numbers of groups moved toward their mean until their variance is that of `values` less that of the noise."""
    if len(values) < _LEAST_GROUPS or deviation == 0:
        return values
    variance, mean = float(np.var(values)), float(np.mean(values))
    share = np.sqrt(max(0.0, 1 - deviation**2 / variance)) if variance > 0 else 0.0
    return np.asarray(mean + share * (values - mean))


def _run(
    room: Room, rerun: Rerun, answer: pa.Table, wanted: Sequence[int], blocks: Mapping[str, Replicates], part: range
) -> pa.Table:
    """Columns: replicate, row of the answer, and the wanted columns."""
    names = [f"c{at}" for at in range(rerun.width)]
    inner = runnable(rerun.tree.copy(), rerun.remainder, rerun.hidden, _this_draw)
    labels = ", ".join(f'"{name}"' for name in names)
    on = " AND ".join(f'q."c{at}" IS NOT DISTINCT FROM a."c{at}"' for at in rerun.keys) or "TRUE"
    picked = "".join(f', q."c{at}"' for at in wanted)
    sql = (
        f'SELECT "{_DRAWS}"."{_DRAW}", a."{_AT}"{picked} FROM "{_DRAWS}" CROSS JOIN LATERAL ({inner}) AS q({labels}) '
        f'JOIN "{_ROWS}" AS a ON {on}'
    )
    rows = pa.table({_AT: pa.array(np.arange(len(answer)))} | {f"c{at}": answer.column(at) for at in rerun.keys})
    tables = dict(rerun.remainder.public) | {name: block.table(part) for name, block in blocks.items()}
    tables |= {_ROWS: rows, _DRAWS: pa.table({_DRAW: pa.array(np.arange(part.start, part.stop))})}
    return room.query(sql, tables, most_rows=2 * _PART_ROWS + len(part) * len(answer))


def _this_draw(query: exp.Select) -> exp.Select:
    """A block's query over its measures, cut down to one replicate."""
    query.set("expressions", [column(item.alias_or_name) for item in query.expressions])
    return query.where(exp.EQ(this=column(_DRAW), expression=column(_DRAW, _DRAWS)), dialect=DIALECT)


def _interval(value: Floats, cells: Floats, present: npt.NDArray[np.bool_], rerun: Rerun, position: int) -> Interval:
    """`cells`: (released, draws, u, draws) by rows of the answer. Not known where a row is in fewer than half of the
    replicates. Raises Unmatched when the first replicate is not the answer."""
    if not np.allclose(cells[0], value, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise Unmatched("the order of its rows decides the result")
    extreme = rerun.extreme
    bounds, cells, present = (cells[-2:], cells[:-2], present[:-2]) if extreme else (cells[:0], cells, present)
    third = len(cells) // 3
    finite = np.where(np.isfinite(cells), cells, np.nan).reshape(3, third, len(value))
    there = present.reshape(3, third, len(value))
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    seldom = there[0, 1:].mean(axis=0) < _LEAST_PRESENT
    always = present.all(axis=0)
    # Rows that are in all replicates are computed together, the others one by one.
    for rows in [np.flatnonzero(always), *np.flatnonzero(~always & ~seldom)[:, None]]:
        if len(rows):
            families = [finite[family][:, rows] for family in range(3)]
            present_in = [there[family, 1:, rows[0]] for family in range(3)]
            drawn = [family[1:][draws].T for family, draws in zip(families, present_in, strict=True)]
            centres = [family[0] for family in families]
            low[rows], high[rows] = _ends_of(value[rows], drawn, centres, bounds[:, rows], rerun, position)
    found = Interval.of(value, low, high, rerun.extents[position])
    return Interval(value, found.low, found.high, found.unknown & ~seldom)


def _ends_of(
    value: Floats, drawn: Sequence[Floats], centres: Sequence[Floats], bounds: Floats, rerun: Rerun, position: int
) -> tuple[Floats, Floats]:
    """The hull of percentiles, of reflected errors, of the answer for equal groups where they may be so, and of `bounds`.

    `drawn` and `centres`: of t - z*, u + z* and e + z*, by rows and draws, and of t, u and e by rows.
    """
    ends = [percentiles(drawn[0], rerun.confidence)]
    with np.errstate(invalid="ignore"):
        if drawn[1].size:
            first, last = percentiles(drawn[1], rerun.confidence)
            ends.append((value - last + centres[1], value - first + centres[1]))
        if drawn[2].size:
            first, last = percentiles(drawn[2], rerun.confidence)
            equal = np.where((first <= value) & (value <= last), centres[2], np.nan)
            ends.append((equal, equal))
    if len(bounds):
        ends.append((np.fmin.reduce(bounds), np.fmax.reduce(bounds)))
    return hull_of(ends, rerun.extents[position])
