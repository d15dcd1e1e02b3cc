"""Error bars of remainders that are not row by row: the parametric bootstrap (Efron and Tibshirani 1993, chapter 6).

The whole remainder runs over tables with the noise drawn once more (t - z*), once for each replicate, as one lateral
join over replicates. Each row of the answer is found again by its exact columns. Replicate 0 has no noise and must give
the answer itself; if it does not, the engine did not repeat the question, and nothing is claimed.

Intervals are bias-corrected percentiles (Efron 1981; chapter 14.3 with a = 0), which stay inside the range of the
expression. Where the replicates lie mostly on one side of the answer (a maximum over groups that noise cannot tell
apart), the interval is the hull with the reflected one (2 answer - q). A maximum or minimum is moreover chosen for its
noise, which no replicate can see: its bar is always that hull, and may miss with (1 - confidence) / groups only, so
that it holds for all groups at once (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.draws import Floats, deviates, known_law, uniforms
from dpsql.release.error_bars.intervals import Interval
from dpsql.release.remainder import DIALECT, Remainder, column, runnable
from dpsql.release.sandbox import Room, Sandbox, floats

_MOST_CELLS = 4_000_000
_MOST_REPLICATES = 1000
_LEAST_REPLICATES = 100
_LEAST_PRESENT = 0.5
_LARGE_BIAS = 0.5
_DRAWS, _DRAW, _ROWS, _AT = "dp#draws", "dp#draw", "dp#answer", "dp#at"


@dataclass(frozen=True, eq=False)
class Rerun:
    """The remainder to be run again: `tree` has `width` columns, of which `keys` (positions) say which row is which.

    `hidden` and `extra`: hidden columns of the blocks, as for the answer. `seed` names the draws.
    """

    remainder: Remainder
    tree: exp.Query
    width: int
    keys: tuple[int, ...]
    hidden: Mapping[str, Sequence[str]]
    extra: Mapping[str, Mapping[str, Floats]]
    confidence: float
    seed: str


class Unmatched(Exception):
    """The rows of the answer cannot be found again in its replicates; the text says why."""


def bootstrap(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, wanted: Sequence[int]) -> dict[int, Interval]:
    """The interval of each column of `wanted`, positions in `answer`, which has the columns of `rerun.tree`.

    Raises Unmatched, and the refusals of `Room.query`.
    """
    blocks = rerun.remainder.blocks
    groups = sum(block.rows for block in blocks) + len(answer)
    replicates = min(_MOST_REPLICATES, _MOST_CELLS // max(1, groups))
    if replicates < _LEAST_REPLICATES:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    with sandbox.room() as room:
        result = _run(room, rerun, answer, wanted, replicates + 1)
    draw, at = (result.column(i).to_numpy().astype(np.int64) for i in (0, 1))
    place = draw * len(answer) + at
    if len(np.unique(place)) < len(place):
        raise Unmatched("its rows have no key; select the group keys too")
    shape = (replicates + 1, len(answer))
    present = np.zeros(shape, dtype=bool)
    present.flat[place] = True
    found = {}
    extreme = rerun.tree.find(exp.Max, exp.Min, exp.ArgMax, exp.ArgMin) is not None
    miss = (1 - rerun.confidence) / (max(block.rows for block in blocks) if extreme and blocks else 1)
    for number, position in enumerate(wanted, 2):
        cells = np.full(shape, np.nan)
        cells.flat[place] = floats(result.column(number))
        value = floats(answer.column(position))
        if not np.allclose(cells[0], value, rtol=1e-9, atol=1e-12, equal_nan=True):
            raise Unmatched("the order of its rows decides the result")
        found[position] = _corrected(value, cells[1:], present[1:], 1 - miss, extreme)
    return found


def _run(room: Room, rerun: Rerun, answer: pa.Table, wanted: Sequence[int], draws: int) -> pa.Table:
    """Columns: replicate, row of the answer, and the wanted columns."""
    names = [f"c{at}" for at in range(rerun.width)]
    inner = runnable(rerun.tree, rerun.remainder, rerun.hidden, _this_draw)
    labels = ", ".join(f'"{name}"' for name in names)
    on = " AND ".join(f'q."c{at}" IS NOT DISTINCT FROM a."c{at}"' for at in rerun.keys) or "TRUE"
    picked = "".join(f', q."c{at}"' for at in wanted)
    sql = (
        f'SELECT "{_DRAWS}"."{_DRAW}", a."{_AT}"{picked} FROM "{_DRAWS}" CROSS JOIN LATERAL ({inner}) AS q({labels}) '
        f'JOIN "{_ROWS}" AS a ON {on}'
    )
    rows = pa.table({_AT: pa.array(np.arange(len(answer)))} | {f"c{at}": answer.column(at) for at in rerun.keys})
    tables = dict(rerun.remainder.public) | _noisy_again(rerun, draws)
    tables |= {_ROWS: rows, _DRAWS: pa.table({_DRAW: pa.array(np.arange(draws))})}
    return room.query(sql, tables, most_rows=2 * _MOST_CELLS)


def _this_draw(query: exp.Select) -> exp.Select:
    """A block's query, cut down to one replicate."""
    return query.where(exp.EQ(this=column(_DRAW), expression=column(_DRAW, _DRAWS)), dialect=DIALECT)


def _noisy_again(rerun: Rerun, draws: int) -> dict[str, pa.Table]:
    """Every block once for each replicate; replicate 0 as released."""
    tables = {}
    for block in rerun.remainder.blocks:
        noise = []
        for term in block.terms:
            drawn = deviates(term, uniforms(f"{rerun.seed}/{block.name}/{term.name}", draws * block.rows))
            drawn[: block.rows] = 0.0
            noise.append(drawn)
        table = block.table(rerun.extra.get(block.name, {}), noise, draws)
        replicate = pa.array(np.repeat(np.arange(draws), block.rows))
        tables[block.name] = table.append_column(_DRAW, replicate)
    return tables


def _corrected(
    value: Floats, cells: Floats, present: npt.NDArray[np.bool_], confidence: float, extreme: bool
) -> Interval:
    """Bias-corrected percentiles of each row. Unknown when a replicate has no number more often than an end may be
    missed, or when the row is in fewer than half of the replicates."""
    normal, tail = NormalDist(), NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    for row in np.flatnonzero(np.isfinite(value)):
        there = present[:, row]
        drawn = cells[there, row]
        drawn = np.sort(drawn[np.isfinite(drawn)])
        if there.mean() < _LEAST_PRESENT or len(drawn) < there.sum() * (1 + confidence) / 2:
            continue
        below = np.searchsorted(drawn, value[row], "left") + np.searchsorted(drawn, value[row], "right")
        share = min(max(below / 2 / len(drawn), 0.5 / len(drawn)), 1 - 0.5 / len(drawn))
        bias = normal.inv_cdf(share)
        low[row], high[row] = np.quantile(drawn, [normal.cdf(2 * bias - tail), normal.cdf(2 * bias + tail)])
        if extreme or abs(bias) > _LARGE_BIAS:
            first, last = np.quantile(drawn, [normal.cdf(-tail), normal.cdf(tail)])
            low[row], high[row] = min(low[row], 2 * value[row] - last), max(high[row], 2 * value[row] - first)
    return Interval(value, low, high)
