"""Error bars of remainders that are not row by row: the parametric bootstrap (Efron and Tibshirani 1993, chapter 6).

The whole remainder runs again and again over tables with the noise drawn once more (t - z*), and each row of the
answer is found again in every replicate: by its exact columns, or by its place where noise cannot change which rows
there are. Intervals are bias-corrected percentiles (Efron 1981; chapter 14.3 with a = 0): they stay inside the
range of the expression, and they see that a maximum over noisy groups is too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pyarrow as pa

from dpsql.error_bars.draws import Floats, deviates, known_law, uniforms
from dpsql.error_bars.intervals import Interval
from dpsql.remainder import Remainder
from dpsql.sandbox import Sandbox, floats

_MOST_CELLS = 4_000_000
_MOST_REPLICATES = 400
_LEAST_REPLICATES = 100
_SECONDS = 60.0
_LEAST_PRESENT = 0.5


@dataclass(frozen=True, eq=False)
class Rerun:
    """The remainder to be run again: its SQL text, the columns that say which row is which, and hidden columns.

    `keys` are positions of exact columns; None when rows are matched by their place. `seed` names the draws.
    """

    sql: str
    keys: tuple[int, ...] | None
    extra: Mapping[str, Mapping[str, Floats]]
    confidence: float
    seed: str


class Unmatched(Exception):
    """The rows of the answer cannot be found again in its replicates; the text says why."""


def bootstrap(
    sandbox: Sandbox, remainder: Remainder, rerun: Rerun, answer: pa.Table, wanted: Sequence[int]
) -> dict[int, Interval]:
    """The interval of each column of `wanted` (positions in `answer`, which has the columns of `rerun.sql`).

    Raises Unmatched, and the refusals of `Room.query`.
    """
    groups = sum(block.rows for block in remainder.blocks) + len(answer)
    replicates = min(_MOST_REPLICATES, _MOST_CELLS // max(1, groups))
    if replicates < _LEAST_REPLICATES:
        raise Unmatched("the results have too many groups")
    if not all(known_law(term) for block in remainder.blocks for term in block.terms):
        raise Unmatched("a mechanism has no law of noise to draw from")
    index = None if rerun.keys is None else _index(answer, rerun.keys)
    cells = {at: np.full((replicates, len(answer)), np.nan) for at in wanted}
    present = np.zeros((replicates, len(answer)), dtype=bool)
    with sandbox.room(_SECONDS) as room:
        for replicate in range(replicates):
            tables = dict(remainder.public) | _noisy_again(remainder, rerun, f"{rerun.seed}/{replicate}")
            result = room.query(rerun.sql, tables)
            here, there = _matched(result, rerun.keys, index, len(answer))
            present[replicate, here] = True
            for at in wanted:
                cells[at][replicate, here] = floats(result.column(at))[there]
    return {at: _corrected(floats(answer.column(at)), cells[at], present, rerun.confidence) for at in wanted}


def _noisy_again(remainder: Remainder, rerun: Rerun, key: str) -> dict[str, pa.Table]:
    tables = {}
    for block in remainder.blocks:
        noise = [deviates(t, uniforms(f"{key}/{block.name}/{t.name}", block.rows)) for t in block.terms]
        tables[block.name] = block.table(rerun.extra.get(block.name, {}), noise)
    return tables


Key = tuple[object, ...]


def _keys(table: pa.Table, columns: tuple[int, ...]) -> list[Key]:
    return list(zip(*(table.column(at).to_pylist() for at in columns), strict=True))


def _index(answer: pa.Table, columns: tuple[int, ...]) -> dict[Key, int]:
    index = {key: at for at, key in enumerate(_keys(answer, columns))} if columns else {}
    if len(index) < len(answer):
        raise Unmatched("its rows have no key; select the group keys too")
    return index


def _matched(
    result: pa.Table, columns: tuple[int, ...] | None, index: dict[Key, int] | None, rows: int
) -> tuple[list[int], list[int]]:
    """Rows of the answer, and the rows of this replicate that they are."""
    if columns is None or index is None:
        if len(result) != rows:
            raise Unmatched("noise decides how many rows there are")
        return list(range(rows)), list(range(rows))
    places = [(index[key], at) for at, key in enumerate(_keys(result, columns)) if key in index]
    if len({here for here, _ in places}) < len(places):
        raise Unmatched("its rows have no key; select the group keys too")
    return [here for here, _ in places], [there for _, there in places]


def _corrected(value: Floats, cells: Floats, present: np.ndarray, confidence: float) -> Interval:
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
    return Interval(value, low, high)
