"""Error bars of sums of noisy numbers over any rows, from the joint law of their noise.

Let an output be T(t) = T(0) + sum of w_j t_j over the cells t_j of all released terms, with weights that do not depend on noise
(`column_facts.Form`). Then its error is the sum of w_j e_j with e_j the error of t_j. If all noise is normal, so is that sum: the
bar is the normal quantile of its standard deviation, whatever the covariance of e, without Monte Carlo error. Otherwise it is the
quantile of the same sum of drawn noise (`draws.replicates` has the joint law of all cells of a term).

The weights are found by running the remainder again over unit vectors: w_j = T(j-th unit vector) - T(0), all of them as variants
of one query. The number shown must equal T(0) + sum of w_j t_j, or no bar is given: this check detects an expression that was
wrongly taken to be linear.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from dpsql.privacy.mechanisms.registry import series_law
from dpsql.release.error_bars.column_facts import Form, column_facts
from dpsql.release.error_bars.draws import Floats, known_law, replicates
from dpsql.release.error_bars.ends import Interval, hull_of
from dpsql.release.error_bars.half_widths import deviation_of, normal_quantile
from dpsql.release.error_bars.reruns import Rerun, Variants, in_parts, run_again
from dpsql.release.reconciled import ConsistentTerm, PooledTerm
from dpsql.release.remainder import ReleasedBlock, ReleasedTerm
from dpsql.release.sandbox import Room, Sandbox, floats

MOST_CELLS = 2_000
"""Most cells of all terms together, because each cell needs a variant of all groups."""
_DRAWS = (3_999, 1_999, 999)
_MOST_DRAWN = 2_000_000
"""Numbers of draws, and most drawn cells above which fewer are drawn."""
_SEED = "weighted sums"
_MOST_ROWS = 4_000_000
_CLOSE = 1e-9


def linear_intervals(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]) -> dict[int, Interval]:
    """Return the intervals of those columns at `positions` in `answer` that are linear in noise. `answer` has the columns of
    `rerun.tree`. Raises the refusals of `Room.query`."""
    blocks = rerun.remainder.blocks
    terms = [(block, term) for block in blocks for term in block.terms]
    cells = sum(len(term.values) for _, term in terms)
    rows = sum(block.rows for block in blocks) + len(answer)
    if not 0 < cells <= MOST_CELLS or cells * rows > _MOST_ROWS or not all(known_law(term) for _, term in terms):
        return {}
    forms = column_facts(rerun.remainder, rerun.tree).sums
    chosen = [position for position in positions if position in forms]
    if not chosen:
        return {}
    with sandbox.room() as room:
        numbers = _over_unit_vectors(room, rerun, answer, chosen, cells, rows)
    intervals = {}
    for position in chosen:
        value = floats(answer.column(position))
        half = _half_widths(numbers[position], value, terms, rerun.confidence)
        if half is not None:
            half = np.floor(half + 0.5) if forms[position] is Form.WHOLE else half
            low, high = hull_of([(value - half, value + half)], rerun.extents[position])
            bar = Interval.of(value, low, high, rerun.extents[position])
            intervals[position] = Interval(value, bar.low, bar.high, bar.unknown & np.isfinite(value))
    return intervals


def _over_unit_vectors(
    room: Room, rerun: Rerun, answer: pa.Table, positions: Sequence[int], cells: int, rows: int
) -> dict[int, Floats]:
    """Return for each position T(0) followed by T of each unit vector (scaled by `_unit`), by rows of the answer; NaN where T has
    no value."""
    tables, first = {}, 1
    for block in rerun.remainder.blocks:
        terms, first = _unit_vectors(block, cells, first)
        tables[block.name] = Variants(rerun, block, terms, cells + 1)
    numbers = {position: np.full((cells + 1, len(answer)), np.nan) for position in positions}
    for part in in_parts(cells + 1, rows):
        result = run_again(room, rerun, answer, positions, tables, part)
        variant, row = (result.column(place).to_numpy().astype(np.int64) for place in (0, 1))
        for place, position in enumerate(positions, 2):
            numbers[position][variant, row] = floats(result.column(place))
    return numbers


def _unit_vectors(block: ReleasedBlock, cells: int, first: int) -> tuple[Mapping[str, Floats], int]:
    """Return the terms of a block in all variants, each with at most one cell that is not 0, and the number of the variant after
    the last one of this block. `first`: the variant of the block's first cell."""
    terms = {}
    for term in block.terms:
        terms[term.name] = np.zeros((cells + 1, block.rows))
        terms[term.name][first + np.arange(block.rows), np.arange(block.rows)] = _unit(term)
        first += block.rows
    return terms, first


def _unit(term: ReleasedTerm) -> float:
    """Return a power of two near the standard deviation of a term, an integer for whole terms: differences of sums of such
    numbers are exact, or nearly."""
    near = 2.0 ** round(math.log2(deviation)) if (deviation := term.standard_deviation()) > 0 else 1.0
    return max(near, 1.0) if term.whole else near


def _half_widths(
    numbers: Floats, value: Floats, terms: Sequence[tuple[ReleasedBlock, ReleasedTerm]], confidence: float
) -> Floats | None:
    """Return the half width of each row, NaN where the row has no value; None if some row is not a weighted sum of the terms."""
    nothing = np.isnan(value)
    if not np.isfinite(numbers[:, ~nothing]).all():
        return None
    constant, above = numbers[0], np.where(nothing, 0.0, numbers[1:] - numbers[0])
    ends = np.cumsum([len(term.values) for _, term in terms])
    weights = [part.T / _unit(term) for part, (_, term) in zip(np.split(above, ends[:-1]), terms, strict=True)]
    total, size = constant.copy(), np.abs(constant)
    for of_term, (_, term) in zip(weights, terms, strict=True):
        released = np.asarray(term.values, dtype=np.float64)
        total, size = total + of_term @ released, size + np.abs(of_term) @ np.abs(released)
    if not (np.abs(total - value) <= _CLOSE * np.maximum(size, 1e-300))[~nothing].all():
        return None
    if all(term.noise.normal and not isinstance(term, ConsistentTerm) for _, term in terms):
        variance = sum(_variances(term, of_term) for of_term, (_, term) in zip(weights, terms, strict=True))
        half = normal_quantile(confidence) * np.sqrt(variance)
    else:
        half = _drawn(weights, terms, confidence)
    return np.where(nothing, np.nan, half)


def _drawn(weights: Sequence[Floats], terms: Sequence[tuple[ReleasedBlock, ReleasedTerm]], confidence: float) -> Floats:
    """Return for each row the quantile of the size of a weighted sum of drawn noise. Noise is drawn twice `draws` times."""
    cells = sum(len(term.values) for _, term in terms)
    draws = next((number for number in _DRAWS if 2 * number * cells <= _MOST_DRAWN), _DRAWS[-1])
    noise = [replicates(term, _SEED, block.name, draws).reshape(2 * draws, -1).T for block, term in terms]
    rank = min(math.ceil(confidence * (2 * draws + 1)), 2 * draws) - 1
    rows, half = len(weights[0]), []
    for start in range(0, rows, size := max(1, _MOST_DRAWN // (2 * draws))):
        parts = (of_term[start : start + size] @ drawn for of_term, drawn in zip(weights, noise, strict=True))
        half.append(np.partition(np.abs(sum(parts)), rank, axis=1)[:, rank])
    return np.concatenate([np.empty(0), *half])


def _variances(term: ReleasedTerm, weights: Floats) -> Floats:
    """Return the variances of the errors of weighted sums of the cells of a term; `weights` has shape (sums, cells)."""
    if isinstance(term, PooledTerm):
        return term.variances(weights)
    if (law := series_law(term.noise)) is not None:
        return np.asarray(law.variances(weights) * term.noise_unit**2)
    return np.asarray(deviation_of(term) ** 2 * np.sum(weights**2, axis=1))
