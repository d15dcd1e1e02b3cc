"""The registers of samplers by law: of additive noise, and of numbers that are drawn from groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.cell_choice import CHOOSERS, choose, choose_in_spans
from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.local_sensitivity import smooth_medians, tested_numbers
from dpsql.noise.rank_histograms import Histograms
from dpsql.noise.samplers import (
    MOST_SIGMA,
    Integers,
    Randomness,
    bernoulli_exp_unseen,
    discrete_gaussian,
    discrete_laplace,
    first_kept,
    gaussian_of_variance,
    guard,
    tails,
    words,
)
from dpsql.noise.weighted_runs import Run, check_shape, exp_tables, gaps, near_runs
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, Selection
from dpsql.privacy.mechanisms.correlated_laplace import STEPS, TIES, CorrelatedLaplace, wide_bits
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.local_sensitivity import ProposeTestRelease, SmoothSensitivity
from dpsql.privacy.mechanisms.most_frequent import EndKey, MostFrequent
from dpsql.privacy.mechanisms.partition_selection import Threshold, TruncatedGeometric, WeightedThreshold
from dpsql.privacy.mechanisms.rational_bounds import ceil_sqrt
from dpsql.privacy.mechanisms.square_root import SquareRoot, unrolled
from dpsql.privacy.mechanisms.square_root import wide_bits as bits_of_sigma

# Exact draws of noise for running totals (`privacy.mechanisms.square_root`): Gaussians, and the noise they cause on the sums.


def running_vectors(noise: SquareRoot, vectors: int, cells: int, randomness: Randomness) -> Integers:
    """Return `vectors` independent draws of `cells` entries, shape (vectors, cells), in noise-grid units. The cells of a draw are
    runs of `noise.length` entries that are not independent. Raises Fault noise_guard when a guard fires."""
    count, wide = vectors * cells, bits_of_sigma(noise.sigma)
    square = (noise.sigma >> wide) ** 2
    drawn = wide_gaussian(count, square, wide, randomness) if wide else gaussian_of_variance(count, square, randomness)
    return unrolled(drawn.reshape(vectors, cells), noise.length)


# --- Exact draws of discrete Gaussians whose sigma is 2**k times one that `samplers` draws, k from 1 to 7 ---
# P(Z = z) is proportional to exp(-f(|z|)), f(y) = y**2 / (2 4**k square). A magnitude y = 2**k a + b has
#
#     f(y) = a**2 / (2 square) + x,    x = b (2**(k + 1) a + b) / (2**(2 k + 1) square) >= 0.
#
# So a is proposed with P(a) proportional to exp(-a**2 / (2 square)), b uniformly below 2**k, and y is accepted with probability
# exp(-x), by an exact coin; its sign is a fair bit, and one of the two signs of zero is rejected. Accepted numbers have P(z)
# proportional to exp(-f(|z|)) for every z, because each z != 0 has exactly one (sign, a, b), and so has zero.
#
# (sign, a) come from signed draws A with |A| = a: A = 0 is accepted with the sign of a fair bit, any other A only if that bit is
# 0. So (+, 0) and (-, 0) have half the mass of 0, and (sign, a) half that of A: each a mass proportional to
# exp(-a**2 / (2 square)).

MOST_BITS = 7
LEAST_SQUARE = 1 << 12
"""From this square on, x is at most (a + 1) / square < 1 for each of the at most 262 blocks of a that 192 bits can yield."""


def wide_gaussian(count: int, square: int, bits: int, randomness: Randomness) -> Integers:
    """Return `count` independent integers with P(Z = z) proportional to exp(-z**2 / (2 square 4**bits)).

    2**12 <= square <= 2**40, 1 <= bits <= 7. Raises Fault noise_guard when a guard fires.
    """
    guard(LEAST_SQUARE <= square <= MOST_SIGMA**2 and 1 <= bits <= MOST_BITS)

    def candidates(size: int) -> Integers:
        return wide_candidates(gaussian_of_variance(size, square, randomness), square, bits, randomness)

    return first_kept(count, lambda missing: 2 * missing * 33 // 32 + 256, candidates)


def wide_candidates(coarse: Integers, square: int, bits: int, randomness: Randomness) -> Integers:
    """Return the accepted numbers of candidates with the signed draws `coarse` as A, in order. Each candidate reads a word of 8
    bits: b, and the bit of the sign."""
    drawn = words(coarse.size, randomness, 8).astype(np.int64)
    minus, b = drawn >> 7, drawn & ((1 << bits) - 1)
    halved = (coarse == 0) | (minus == 0)
    a, b, sign = np.abs(coarse)[halved], b[halved], np.where(coarse == 0, minus, coarse < 0)[halved]
    numerators = (b * ((a << bits + 1) + b)).astype(np.uint64)
    survives = bernoulli_exp_unseen(numerators, square << 2 * bits + 1, randomness)
    y = (a << bits) + b
    survives &= (y != 0) | (sign == 0)
    return np.asarray(np.where(sign == 1, -y, y)[survives])


FRACTION = 16
"""Number of fractional bits in a series of tied noise."""

# Exact draws of multivariate Laplace noise (`privacy.mechanisms.correlated_laplace`): V by inversion, then Gaussians.


def correlated_vectors(noise: CorrelatedLaplace, vectors: int, cells: int, randomness: Randomness) -> Integers:
    """Return `vectors` independent vectors of `cells` entries, shape (vectors, cells), in noise-grid units: one V per vector.

    Vectors with equal V are drawn together: given V, all entries are independent. Raises Fault noise_guard when a guard fires.
    """
    steps = tails(Fraction(1, STEPS), Fraction(0)).draw(words(vectors, randomness, 16), randomness).astype(np.int64) + 1
    drawn = np.empty((vectors, cells), dtype=np.int64)
    for step in np.unique(steps).tolist():
        alike = np.flatnonzero(steps == step)
        entries = _entries(alike.size * cells, step, noise.least_sigma, randomness)
        drawn[alike] = entries.reshape(alike.size, cells)
    return tied(drawn, noise.tie) if noise.tie else drawn


def _entries(count: int, step: int, least_sigma: int, randomness: Randomness) -> Integers:
    """Return `count` entries given that W is `step` / 64."""
    wide = wide_bits(least_sigma)
    square = step * (least_sigma >> wide) ** 2
    return wide_gaussian(count, square, wide, randomness) if wide else gaussian_of_variance(count, square, randomness)


def tied(drawn: Integers, tie: int) -> Integers:
    """Return the noise that `drawn` on B x leaves on x: e_1 = G_1 / s, e_i = (G_i + p e_(i-1)) / 64 in steps of 2**-16, rounded.

    `drawn` has a vector in each row, with entries below 2**32; p is `tie`. The time does not depend on the values.
    """
    series = np.empty_like(drawn)
    state = (drawn[:, 0] << FRACTION) // ceil_sqrt(TIES**2 - tie**2)
    for cell in range(drawn.shape[1]):
        if cell:
            state = ((drawn[:, cell] << FRACTION) + tie * state) // TIES
        series[:, cell] = (state + (1 << FRACTION - 1)) >> FRACTION
    return series


Drawing = TypeVar("Drawing")
Sampler = Callable[[Any, int, Randomness], Integers | None]
"""A function of (law, count, randomness) that returns one vector of `count` values in noise-grid units, which are independent
unless the law is in `VECTOR_SAMPLERS`; None if the law adds nothing."""

SAMPLERS: dict[type[Any], Sampler] = {
    Laplace: lambda noise, count, randomness: discrete_laplace(count, noise.t, noise.s, randomness),
    Gaussian: lambda noise, count, randomness: discrete_gaussian(count, noise.sigma, randomness),
    CorrelatedLaplace: lambda noise, count, randomness: correlated_vectors(noise, 1, count, randomness).reshape(-1),
    SquareRoot: lambda noise, count, randomness: running_vectors(noise, 1, count, randomness).reshape(-1),
    Constant: lambda noise, count, randomness: None,
}
"""Samplers by the exact type of the law: a subclass of one of these may have another law, and has no sampler."""


# --- the register, by law ---


def sample(noise: Noise, count: int, randomness: Randomness) -> Integers | None:
    """Return one vector of `count` values with exactly the law `noise`, in noise-grid units; None for a constant.

    Raises InternalError noise_plan for a law without a sampler, Fault noise_guard when a sampler's guard fires.
    """
    return registered(SAMPLERS, noise, "mechanism")(noise, count, randomness)


def registered(samplers: Mapping[type[Any], Drawing], law: object, kind: str) -> Drawing:
    """Return the sampler of a law by its exact type. Raises InternalError noise_plan if there is none."""
    sampler = samplers.get(type(law))
    if sampler is None:
        raise refuse("noise_plan", charged=True, problem=f"unknown {kind}")
    return sampler


VectorSampler = Callable[[Any, int, int, Randomness], Integers]
"""A function of (law, vectors, cells, randomness) that returns an array of shape (vectors, cells) with independent rows."""

VECTOR_SAMPLERS: dict[type[Any], VectorSampler] = {CorrelatedLaplace: correlated_vectors, SquareRoot: running_vectors}
"""Samplers of laws under which the entries of one vector are not independent (`registry.Mechanism.shared`)."""


# ----------------------------------------------------------------------------------------------------------------------
# The registers of samplers that draw numbers from exact histograms, by law, and of selectors that admit keys from
# counts, by rule. Samplers of noise that is added to sums are in `noise_samplers`.

# --- choices over counts ----------------------------------------------------------------------------------------------

# The exact sampler of choices over counts: for each group one of its most frequent cells, or keys at an end.
# A group has h(c) rows in cell c, which has the distance d(c) = max h - h(c) (`privacy.mechanisms.most_frequent`). The
# exponential mechanism chooses cell c with probability proportional to exp(-rate d(c)); permute-and-flip chooses among the
# cells whose coins show heads, each with probability exp(-rate d(c)) (`privacy.mechanisms.exponential`). All empty cells
# have the distance max h: adjacent ones form one run (`weighted_runs`).


class CountLaw(Protocol):
    """The mechanism of a choice, and how fast weights fall with the distance of a cell."""

    @property
    def mechanism(self) -> str:
        """The mechanism that chooses a cell, given the distances of all cells: one of `exponential.CHOICE_MECHANISMS`."""

    @property
    def rate(self) -> Fraction:
        """The decrease of a log weight per row; above 0."""


def choose_most(
    cells: int, start: Integers, cell: Integers, count: Integers, law: CountLaw, draws: int, randomness: Randomness
) -> Integers:
    """Return for each group the number of a cell, chosen independently by the law's mechanism.

    Histograms, `draws` and Fault noise_guard are as for `cell_choice.choose`.
    """
    groups = start.size - 1
    check_shape(cells, start, cell, count)
    guard(law.rate > 0 and law.mechanism in CHOOSERS)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    tables, between = exp_tables(law.rate), gaps(cells, start, cell)
    most = np.zeros(groups, dtype=np.int64)
    np.maximum.at(most, np.repeat(np.arange(groups), np.diff(start)), count)
    distance = np.empty((between.group.size, 2), dtype=np.int64)
    distance[:, 0] = most[between.group]
    inner = np.ones(between.group.size, dtype=bool)
    inner[between.closes] = False
    distance[inner, 1] = distance[inner, 0] - count

    def runs_of(group: int) -> list[Run]:
        part = slice(int(start[group]), int(start[group + 1]))
        return exact_runs(cells, cell[part].tolist(), count[part].tolist())

    runs = near_runs(cells, groups, between, distance, tables)
    return CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate, draws, randomness)


def end_keys(start: Integers, cell: Integers, count: Integers, law: EndKey) -> tuple[Integers, Integers, Integers]:
    """Return the histogram of the keys of the end rows of each group, as `choose_most` reads it: starts of groups, keys, rows.

    Cells ascend within a group, and cell c has key c modulo `law.keys`.
    """
    groups = start.size - 1
    through = np.concatenate([[0], np.cumsum(count)])  # over all groups; no data has 2**63 rows
    of_cell = np.repeat(np.arange(groups), np.diff(start))
    first, last = through[start[:-1]][of_cell], through[start[1:]][of_cell]
    rows = law.end_counts(count, through[:-1] - first, last - first)
    inside = rows > 0
    numbered = of_cell[inside] * law.keys + cell[inside] % law.keys
    different, index = np.unique(numbered, return_inverse=True)
    totals = np.zeros(different.size, dtype=np.int64)
    np.add.at(totals, index, rows[inside])
    starts = np.searchsorted(different, np.arange(groups + 1) * law.keys)
    return starts.astype(np.int64), different % law.keys, totals


def exact_runs(cells: int, cell: list[int], count: list[int]) -> list[Run]:
    """Return all runs of one group in the order of cells: first cell, width and distance of each."""
    most, left = max(count, default=0), -1
    runs = []
    for index, rows in zip(cell, count, strict=True):
        runs.append((left + 1, index - left - 1, most))
        runs.append((index, 1, most - rows))
        left = index
    runs.append((left + 1, cells - left - 1, most))
    return [run for run in runs if run[1]]


# --- number samplers --------------------------------------------------------------------------------------------------

# The exact sampler of leaning choices: for each group a cell near a target rank, with lower cells preferred to higher ones.
# The distance d(c) of cell c is the number of rows above it beyond the rank, plus lean c / b (`privacy.mechanisms.exponential`).
# So cells need not have equal distances, and each is a run of its own; grids are short. The least distance in a group is
# subtracted from all, because the probabilities of both mechanisms depend on differences alone.

MOST_CELLS = 1 << 20
"""Largest number of cells in all groups together, because every cell is processed."""


def choose_leaning(
    cells: int, start: Integers, cell: Integers, count: Integers, law: Choice, draws: int, randomness: Randomness
) -> Integers:
    """Return for each group the number of a cell, chosen independently by the law's mechanism.

    Histograms, `draws` and Fault noise_guard are as for `cell_choice.choose`.
    """
    groups, b = start.size - 1, law.denominator
    check_shape(cells, start, cell, count)
    guard(law.rate > 0 and law.lean >= 1 and law.mechanism in CHOOSERS and groups * cells <= MOST_CELLS)
    if groups == 0:
        return np.empty(0, dtype=np.int64)
    inside = np.zeros((groups, cells), dtype=np.int64)
    inside[np.repeat(np.arange(groups), np.diff(start)), cell] = count
    through = np.cumsum(inside, axis=1)
    target = law.targets(through[:, -1])[:, np.newaxis]
    distance = np.maximum(target - b * through, 0) + law.lean * np.arange(cells)
    distance -= distance.min(axis=1, keepdims=True)
    tables = exp_tables(law.rate / b)
    between = gaps(cells, np.arange(groups + 1) * cells, np.tile(np.arange(cells), groups))
    of_runs = np.full((between.group.size, 2), tables.last + 1, dtype=np.int64)
    inner = np.ones(between.group.size, dtype=bool)
    inner[between.closes] = False
    of_runs[inner, 1] = distance.ravel()

    def runs_of(group: int) -> list[Run]:
        return [(index, 1, int(far)) for index, far in enumerate(distance[group])]

    runs = near_runs(cells, groups, between, of_runs, tables)
    return CHOOSERS[law.mechanism](cells, runs, runs_of, law.rate / b, draws, randomness)


# --- the register, by law ---

NumberSampler = Callable[[Any, Histograms, int, Randomness], Integers]
"""A function of (law, exact histograms, draws, randomness) that returns one number per group. `draws`: the least number of values
to draw, so that the amount of randomness does not depend on the number of private keys."""
KeySelector = Callable[[Any, Int128, Groups, Randomness], NDArray[np.bool_]]
"""A function of (rule, counts, groups, randomness) that returns for each group whether it appears."""


def _quantile(law: Choice, histograms: Histograms, draws: int, randomness: Randomness) -> Integers:
    if law.lean:
        alone = histograms.taken_apart()
        return choose_leaning(alone.cells, alone.start, alone.cell, alone.count, law, draws, randomness)
    cells = (histograms.cells, histograms.start, histograms.cell)
    if histograms.width is None:
        return choose(*cells, histograms.count, law, draws, randomness)
    return choose_in_spans(*cells, histograms.width, histograms.count, law, draws, randomness)


def _most_frequent(law: MostFrequent, histograms: Histograms, draws: int, randomness: Randomness) -> Integers:
    shape = (histograms.cells, histograms.start, histograms.cell, histograms.count)
    return choose_most(*shape, law, draws, randomness)


def _end_key(law: EndKey, histograms: Histograms, draws: int, randomness: Randomness) -> Integers:
    start, key, count = end_keys(histograms.start, histograms.cell, histograms.count, law)
    return choose_most(law.keys, start, key, count, law, draws, randomness)


def _tested(law: ProposeTestRelease, histograms: Histograms, draws: int, randomness: Randomness) -> Integers:
    test, noise = (sample(step, draws, randomness) for step in (law.test, law.noise))
    guard(test is not None and noise is not None)
    return tested_numbers(histograms, law, np.asarray(test), np.asarray(noise))


NUMBER_SAMPLERS: dict[type[Any], NumberSampler] = {
    Choice: _quantile,
    MostFrequent: _most_frequent,
    EndKey: _end_key,
    SmoothSensitivity: lambda law, histograms, draws, randomness: smooth_medians(histograms, law, draws, randomness),
    ProposeTestRelease: _tested,
}
"""Samplers by the exact type of the law: a subclass of one of these may have another law, and has no sampler."""


def sample_numbers(law: Law, histograms: Histograms, groups: Groups, randomness: Randomness) -> Integers:
    """Return one number per group, drawn from the group's exact histogram.

    Raises InternalError noise_plan for a law without a sampler, Fault noise_guard when a sampler's guard fires.
    """
    return registered(NUMBER_SAMPLERS, law, "mechanism")(law, histograms, groups.draws, randomness)


def _by_units(rule: TruncatedGeometric, counts: Int128, groups: Groups, randomness: Randomness) -> NDArray[np.bool_]:
    uniform = words(groups.draws, randomness)[: groups.count] >> np.uint64(2)
    table = rule.table
    return uniform < table[counts.clipped_index(table.size)].view(np.uint64)


def _by_threshold(rule: Threshold, counts: Int128, groups: Groups, randomness: Randomness) -> NDArray[np.bool_]:
    return counts.at_least(rule.tau)


KEY_SELECTORS: dict[type[Any], KeySelector] = {
    TruncatedGeometric: _by_units,
    Threshold: _by_threshold,
    WeightedThreshold: _by_threshold,
}


def select_keys(rule: Selection, counts: Int128, groups: Groups, randomness: Randomness) -> NDArray[np.bool_]:
    """Return for each group whether it appears. Raises InternalError noise_plan for a rule without a selector."""
    return registered(KEY_SELECTORS, rule, "partition selection")(rule, counts, groups, randomness)
