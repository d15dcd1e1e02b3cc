"""Error bars of sums of noisy numbers over any rows, from the covariance of their noise.

Let an output be T(t) = T(0) + sum of w_j t_j over the cells t_j of all released terms, with weights that do not depend on noise
(`linear`). Then its error is the sum of w_j e_j with e_j the error of t_j. If all noise is normal, so is that sum: the bar is the
normal quantile of its standard deviation, whatever the covariance of e. Nothing is drawn, so there is no Monte Carlo error.

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
from dpsql.release.error_bars.draws import Floats, known_law
from dpsql.release.error_bars.ends import Interval, hull_of
from dpsql.release.error_bars.half_widths import deviation_of, normal_quantile
from dpsql.release.error_bars.reruns import Rerun, Variants, in_parts, run_again
from dpsql.release.pooled import PooledTerm
from dpsql.release.reconciled import ConsistentTerm
from dpsql.release.remainder import ReleasedBlock, ReleasedTerm
from dpsql.release.sandbox import Room, Sandbox, floats

MOST_CELLS = 2_000
"""Most cells of all terms together, because each cell needs a variant of all groups."""
_MOST_ROWS = 4_000_000
_CLOSE = 1e-9


def linear_intervals(sandbox: Sandbox, rerun: Rerun, answer: pa.Table, positions: Sequence[int]) -> dict[int, Interval]:
    """Return the intervals of those columns at `positions` in `answer` that are linear in normal noise. `answer` has the columns
    of `rerun.tree`. Raises the refusals of `Room.query`."""
    blocks = rerun.remainder.blocks
    terms = [(block, term) for block in blocks for term in block.terms]
    cells = sum(len(term.values) for _, term in terms)
    rows = sum(block.rows for block in blocks) + len(answer)
    if not 0 < cells <= MOST_CELLS or cells * rows > _MOST_ROWS or not all(_is_normal(term) for _, term in terms):
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
        half = _half_widths(numbers[position], value, [term for _, term in terms], rerun.confidence)
        if half is not None:
            half = np.floor(half + 0.5) if forms[position] is Form.WHOLE else half
            low, high = hull_of([(value - half, value + half)], rerun.extents[position])
            bar = Interval.of(value, low, high, rerun.extents[position])
            intervals[position] = Interval(value, bar.low, bar.high, bar.unknown & np.isfinite(value))
    return intervals


def _is_normal(term: ReleasedTerm) -> bool:
    """Return whether the noise of a term is normal with known covariance; the covariance of consistent estimates is not known."""
    return known_law(term) and term.noise.normal and not isinstance(term, ConsistentTerm)


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


def _half_widths(numbers: Floats, value: Floats, terms: Sequence[ReleasedTerm], confidence: float) -> Floats | None:
    """Return the half width of each row, NaN where the row has no value; None if some row is not a weighted sum of the terms."""
    nothing = np.isnan(value)
    if not np.isfinite(numbers[:, ~nothing]).all():
        return None
    constant, above = numbers[0], numbers[1:] - numbers[0]
    variance, total, size = np.zeros(len(value)), constant.copy(), np.abs(constant)
    first = 0
    for term in terms:
        weights = above[first : first + len(term.values)].T / _unit(term)
        released = np.asarray(term.values, dtype=np.float64)
        total, size = total + weights @ released, size + np.abs(weights) @ np.abs(released)
        variance += _variances(term, weights)
        first += len(term.values)
    if not (np.abs(total - value) <= _CLOSE * np.maximum(size, 1e-300))[~nothing].all():
        return None
    return np.where(nothing, np.nan, normal_quantile(confidence) * np.sqrt(variance))


def _variances(term: ReleasedTerm, weights: Floats) -> Floats:
    """Return the variances of the errors of weighted sums of the cells of a term; `weights` has shape (sums, cells)."""
    if isinstance(term, PooledTerm):
        return term.variances(weights)
    if (law := series_law(term.noise)) is not None:
        return np.asarray(law.variances(weights) * term.noise_unit**2)
    return np.asarray(deviation_of(term) ** 2 * np.sum(weights**2, axis=1))
