"""From exact to noisy: the only module that opens an exact answer, and the only gate through which all noise passes.

The mechanism, the noise scale and the cells are fixed before the exact vector is read. Rows of the result are in key
order, never in the engine's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, inf
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.engine.contract import ExactAnswer, Sealed
from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups, Int128, lay_out, parts
from dpsql.noise.local_randomizers import ExactRows, RandomisedColumn, exact_rows, randomise_rows
from dpsql.noise.local_sensitivity import released_local
from dpsql.noise.noise_samplers import VECTOR_SAMPLERS, sample, sample_numbers, select_keys
from dpsql.noise.rank_histograms import (
    Histograms,
    NumberGate,
    ReleaseNumbers,
    chosen_quantiles,
    laid_out,
    released_quantiles,
    with_rows,
)
from dpsql.noise.samplers import Integers, KernelRandomness, Randomness, guard
from dpsql.plan.measurements import Register
from dpsql.pricing.row_export import ExportPlan
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, NoisePlan, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY, ends_of
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT, EndRowsPlan, MostFrequentPlan
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES, SampleMeanPlan, SampleValuesPlan
from dpsql.storage.records import dataclass

# --- functions that release measurements other than sums (`dpsql.plan.measurements`) ----------------------------------
# From exact to noisy numbers.
#
# A function gets the unsealed table of its own engine query from `perturb`, which alone opens exact answers, and takes
# every random decision from the gate.

# --- From the values of samples to the cells that are released as their quantiles, or to their noisy sums ---
# (`plan.measurements.SampleValues` and `SampleMean`).
#
# The engine returns for each group and cell how many samples have their value there. Every group has as many values as there are
# samples, whatever the data: samples for which the engine has no value are put into the cell in the middle.


def released_sample_values(
    table: Any, plan: SampleValuesPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return by quantile the number of a cell for each group. Raises Fault noise_answer for a table of the wrong shape."""
    return chosen_quantiles(completed(laid_out(table, plan.cells, groups), plan), plan, groups, gate)


def completed(histograms: Histograms, plan: SampleValuesPlan) -> Histograms:
    """Return the histograms with `plan.samples` values in every group. Raises Fault noise_answer for a group that has more."""
    missing = _missing(histograms, plan.samples)
    return with_rows(histograms, plan.middle, missing)


def released_sample_mean(
    table: Any, plan: SampleMeanPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return each group's noisy sum within its range, and both ends of its bar. Raises Fault noise_answer for a wrong table."""
    sums = sample_sums(laid_out(table, plan.cells, groups), plan)
    noisy = gate.release_sums(plan.name, sums, plan.law.noise, groups)
    low, high = plan.range
    number = np.floor(np.clip(noisy, low, high)).astype(np.int64)
    ends = zip(ends_of(plan.name), (number - plan.width, number + plan.width), strict=True)
    return {plan.name: number} | {name: np.clip(end, low, high) for name, end in ends}


def sample_sums(histograms: Histograms, plan: SampleMeanPlan) -> NDArray[np.int64]:
    """Return the sum of (cell - middle) over each group's samples. Raises Fault noise_answer for more than `plan.samples`."""
    _missing(histograms, plan.samples)
    return _in_groups(histograms, (histograms.cell - plan.middle) * histograms.count)


def _missing(histograms: Histograms, samples: int) -> NDArray[np.int64]:
    """Return how many samples of each group have no value. Raises Fault noise_answer if a group has more than `samples`."""
    missing = samples - _in_groups(histograms, histograms.count)
    if (missing < 0).any():
        raise refuse("noise_answer", charged=True)
    return missing


def _in_groups(histograms: Histograms, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum over each group of `numbers`, one for each nonempty cell."""
    through = np.concatenate([[0], np.cumsum(numbers)])
    return np.asarray(through[histograms.start[1:]] - through[histograms.start[:-1]])


# From exact histograms to the most frequent value of each group, or the key of most end rows, released as a number.


def released_choice(
    table: Any, plan: MostFrequentPlan | EndRowsPlan, groups: Groups, gate: NumberGate
) -> dict[str, NDArray[np.int64]]:
    """Return the number of a cell, or of a key, for each group. Raises Fault noise_answer for a table of the wrong shape."""
    histograms = laid_out(table, plan.cells, groups)
    return {plan.name: gate.release_numbers(plan.name, histograms, plan.law, groups)}


PARTS: Register[ReleaseNumbers] = Register(
    "noise",
    {
        RANK_HISTOGRAM: released_quantiles,
        MOST_FREQUENT: released_choice,
        END_ROWS: released_choice,
        LOCAL_SENSITIVITY: released_local,
        SAMPLE_VALUES: released_sample_values,
        SAMPLE_MEAN: released_sample_mean,
    },
)


# --- from exact to noisy ----------------------------------------------------------------------------------------------

# The secret of a run of AboveThreshold: the noise of its threshold, which never leaves the memory of this process.


class NoisyThreshold(Sealed):
    """The sealed noise of a threshold, which cannot be shown, pickled or copied; only `perturb` compares with it.

    Anyone who knew this noise would learn as much from each "below" as from a released sum.
    """

    __slots__ = ("__noise",)

    def __init__(self, noise: int) -> None:
        """Seal `noise`, in steps of the noise grid."""
        self.__noise = noise

    def gap(self, noisy_sum: int, threshold: int) -> int:
        """Return the number of steps by which `noisy_sum` exceeds `threshold` plus its noise; negative if it is below."""
        return noisy_sum - threshold - self.__noise


_WIDTH = 125
"""Exact sums are clamped to +-2**125, so that adding noise (below 2**62) never overflows 128 bits."""
_MOST_COUNT = float((1 << 63) - 1024)
_NOTHING: Mapping[str, ExactAnswer] = {}
_NO_NOISE = Constant(Sensitivity(0, 0, 0, 0))


class Gate:
    """The only place where random decisions about protected data are made.

    The audit replaces it by a gate that records its arguments and returns fixed vectors.
    """

    def __init__(self, randomness: Randomness | None = None) -> None:
        """Use `randomness`: that of the operating system unless a test passes its own."""
        self._randomness: Randomness = KernelRandomness() if randomness is None else randomness

    def draw(self, noises: Sequence[Noise], groups: Groups) -> list[Integers | None]:
        """Return for each term its noise, with at least one value per group, or None if its law adds no noise.

        Terms with equal laws share one draw, and each gets its own part of it, because the values of a draw are independent.
        For laws whose values are not independent, make a separate draw for each term.
        Raises Fault noise_guard when a sampler's guard fires, InternalError noise_plan for an unknown mechanism.
        """
        by_term: list[Integers | None] = [None] * len(noises)
        for noise, count in Counter(noises).items():
            drawn = self._vectors(noise, count, groups.draws)
            if drawn is not None:
                parts = iter(drawn)
                by_term = [
                    next(parts) if other == noise else before for other, before in zip(noises, by_term, strict=True)
                ]
        return by_term

    def add(self, name: str, exact: Int128, noise: Noise, groups: Groups, drawn: Integers | None) -> Int128:
        """Return the noisy integers of term `name` in noise-grid units.

        `exact` holds one sum per group in row-grid units; its memory is reused for the result, so it must not be read
        afterwards. `drawn` is this term's part of the result of `draw`.
        """
        if drawn is None:
            return Int128.zeros(groups.count)
        # Clamp instead of raising: a fault would depend on the data. Clamping is 1-Lipschitz, so it does not raise the
        # sensitivity; it cannot take effect below 2**85 rows.
        width = _WIDTH + min(0, noise.shift)
        noisy = exact.widened()
        for rows in parts(groups.count):
            noisy.put(rows, exact.part(rows).saturated(width).shifted(noise.shift).plus(drawn[: groups.count][rows]))
        return noisy

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        """Return a boolean per group: True for the groups that appear in the release.

        `counts`: if `selection.noise` is set, the noisy counts that are released anyway, in noise-grid units; otherwise exact
        numbers of privacy units. Raises InternalError noise_plan for a rule without a selector.
        """
        return select_keys(selection, counts, groups, self._randomness)

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """Return one number per group, drawn from the group's exact histogram by the sampler of `law`.

        Raises Fault noise_guard when a sampler's guard fires, InternalError noise_plan for a law without a sampler.
        """
        return sample_numbers(law, histograms, groups, self._randomness)

    def release_sums(self, name: str, sums: NDArray[np.int64], noise: Noise, groups: Groups) -> NDArray[np.float64]:
        """Return `sums`, one per group, computed inside the noise package, with fresh noise added, in row-grid units.

        Raises as `draw` does, and Fault noise_guard for a law that adds nothing.
        """
        (drawn,) = self.draw([noise], groups)
        guard(drawn is not None)
        return self.add(name, Int128.from_int64(sums), noise, groups, drawn).to_float64() * 2.0**noise.shift

    def count_rows(self, exact: int, noise: Noise | None) -> int:
        """Return the number of rows that an export writes: `exact` plus noise, at least 0; `exact` itself if `noise` is None.

        Raises as `draw` does.
        """
        drawn = None if noise is None else self._draw(noise, 1)
        guard(noise is None or (drawn is not None and noise.shift == 0))
        return exact if drawn is None else max(0, exact + int(drawn[0]))

    def randomise(self, rows: ExactRows, plan: ExportPlan) -> tuple[RandomisedColumn, ...]:
        """Return the rows of an export, each randomised by the local randomizers of its columns. Raises Fault noise_guard."""
        return randomise_rows(rows, self.count_rows(rows.count, plan.count_noise), plan, self._randomness)

    def _draw(self, noise: Noise, count: int) -> Integers | None:
        return sample(noise, count, self._randomness)

    def _vectors(self, noise: Noise, vectors: int, cells: int) -> Integers | list[Integers | None] | None:
        """Return `vectors` independent vectors of noise; where all values of a law are independent, one draw serves them all."""
        if type(noise) in VECTOR_SAMPLERS:
            return [self._draw(noise, cells) for _ in range(vectors)]
        drawn = self._draw(noise, vectors * cells)
        return None if drawn is None else drawn.reshape(vectors, cells)


class NoisyNumbers:
    """The size of the errors of numbers, from the law of their noise: they differ from the exact ones by integer noise times
    `noise_unit`, rounded to an integer when `whole`."""

    noise: Noise
    noise_unit: float
    whole: bool

    def half_width(self, confidence: float) -> float:
        """Return h with P(|value - exact value| <= h) >= confidence, in the units of `values`; row-grid rounding not included."""
        width = self.noise.half_width(confidence) * 2.0**-self.noise.shift * self.noise_unit
        return float(floor(width + 0.5)) if self.whole else width

    def standard_deviation(self) -> float:
        """Return the standard deviation of the error, in the units of `values`."""
        return self.noise.standard_deviation() * 2.0**-self.noise.shift * self.noise_unit


class ReleasedTerm(NoisyNumbers):
    """One released term, with one number per group."""

    name: str
    values: NDArray[Any]


@dataclass(frozen=True, eq=False)
class NoisyTerm(ReleasedTerm):
    """One released basis term. `values`: numpy float64, or int64 when `whole`; `noise_unit`: 2 ** (noise.shift - grid)."""

    name: str
    values: NDArray[Any]
    noise_unit: float
    noise: Noise
    grid: int
    whole: bool


@dataclass(frozen=True, eq=False)
class ChosenNumber(ReleasedTerm):
    """One released number per group of a measurement that is not a sum: int64, chosen randomly near the exact number.

    No noise was added, so its error has no known law: `half_width` is infinite, and replicates leave the number unchanged.
    """

    name: str
    values: NDArray[np.int64]

    noise: Noise = _NO_NOISE
    noise_unit: float = 1.0
    grid: int = 0
    whole: bool = True

    def half_width(self, confidence: float) -> float:
        """Return infinity: the error depends on the data, and no bound on it is known."""
        return inf

    def standard_deviation(self) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class NoisyAnswer:
    """The noisy answer of a private block; it holds no reference to exact values. Rows are in key order."""

    keys: Any
    terms: tuple[NoisyTerm | ChosenNumber, ...]
    row_count: int

    def term(self, name: str) -> NoisyTerm | ChosenNumber:
        """Return the term called `name`; raises KeyError."""
        for term in self.terms:
            if term.name == name:
                return term
        raise KeyError(name)


def unmoved(plan: NoisePlan) -> ExactAnswer:
    """Return the exact answer of a block that no data can change: a table without rows, since `perturb` fills in public keys."""
    keys = {}
    for key in plan.keys:
        if key.values is None:
            raise refuse("internal", what="private keys that cost nothing")
        keys[key.name] = pa.array([], key.values.type)
    return ExactAnswer(pa.table(keys | {term.name: pa.array([], pa.int64()) for term in plan.terms}))


def perturb(
    exact: ExactAnswer, plan: NoisePlan, gate: Gate, measurement_answers: Mapping[str, ExactAnswer] = _NOTHING
) -> NoisyAnswer:
    """Add noise to every term of `plan` through `gate` and select the keys that appear. Then perform every other measurement
    for the groups that appear, each on its own exact answer in `measurement_answers`.

    Public keys: one row for every combination of `KeyColumn.values` (or those in `plan.listed`), first key slowest; a
    combination for which the engine returned no row gets noise alone. No keys: one row. Any private key: the combinations
    that the engine returned and `plan.selection` admits, sorted (public keys in the order of their values, private keys
    ascending, NULL last). Raises InternalError noise_plan, and Fault noise_answer or noise_guard; after a Fault the charge
    is kept.
    """
    _check(plan)
    table = exact.unseal()
    layout = lay_out(table, plan.keys, plan.listed)
    drawn = gate.draw([term.noise for term in plan.terms], layout.groups)
    shares = {term.name: (term.noise, noise) for term, noise in zip(plan.terms, drawn, strict=True)}

    def measured(name: str) -> Int128:
        """Return one term's noisy integers. Called one term after the other, so that all terms use the same memory."""
        noise, part = shares[name]
        return gate.add(name, layout.integers(table, name), noise, layout.groups, part)

    keys, count, selected, noisy_terms = layout.groups.keys, layout.groups.count, None, {}
    if plan.selection is not None:
        column = plan.selection.column
        if plan.selection.noise is not None:
            noisy_terms[column] = measured(column)
        counts = noisy_terms[column] if column in noisy_terms else layout.integers(table, column)
        selected = gate.select(column, counts, plan.selection, layout.groups)
        keys, count = keys.filter(pa.array(selected)), int(selected.sum())
    terms = []
    for term in plan.terms:
        noisy = noisy_terms[term.name] if term.name in noisy_terms else measured(term.name)
        terms.append(_released(term, noisy if selected is None else noisy.where(selected)))
    groups = layout.groups if selected is None else Groups(keys, count, layout.groups.public)
    chosen = []
    for measurement in plan.measurements:
        numbers = PARTS.of(measurement.word)(measurement_answers[measurement.name].unseal(), measurement, groups, gate)
        chosen += [ChosenNumber(name, numbers[name]) for name, _ in measurement.laws]
    return NoisyAnswer(keys, (*terms, *chosen), count)


def randomise(exact: ExactAnswer, plan: ExportPlan, gate: Gate) -> tuple[RandomisedColumn, ...]:
    """Randomise the rows of an export through `gate`. Raises Fault noise_answer or noise_guard; the charge is kept."""
    return gate.randomise(exact_rows(exact.unseal(), plan), plan)


def noisy_threshold(law: AboveThreshold, gate: Gate) -> NoisyThreshold:
    """Draw the noise of a run's threshold. Raises InternalError noise_plan for a law without a sampler, Fault noise_guard."""
    (drawn,) = gate.draw([law.noise], Groups(pa.table({}), 1, True))
    if drawn is None:
        raise refuse("noise_plan", charged=True, problem="a threshold without noise")
    return NoisyThreshold(int(drawn[0]))


def compare(
    exact: ExactAnswer, name: str, threshold: int, law: AboveThreshold, secret: NoisyThreshold, gate: Gate
) -> int | None:
    """Return the gap in noise-grid steps by which the noisy sum in column `name` exceeds the noisy `threshold`, or None if the
    sum is below it.

    `secret` holds the noise of the threshold, drawn once for the run to which this query belongs; the sum gets fresh noise.
    Raises Fault noise_answer for an answer that is not one sum, and the errors of `noisy_threshold`.
    """
    table = exact.unseal()
    layout = lay_out(table, ())
    (drawn,) = gate.draw([law.noise], layout.groups)
    if drawn is None:
        raise refuse("noise_plan", charged=True, problem="a comparison without noise")
    (noisy,) = gate.add(name, layout.integers(table, name), law.noise, layout.groups, drawn).to_ints()
    gap = secret.gap(noisy, threshold)
    return gap if gap >= 0 else None


def _check(plan: NoisePlan) -> None:
    """Check the properties of a noise plan on which the privacy guarantee relies. Raises InternalError noise_plan."""
    names = list(plan.numbers)
    private = any(key.values is None for key in plan.keys)
    if len(set(names)) != len(names) or len({key.name for key in plan.keys}) != len(plan.keys):
        raise refuse("noise_plan", charged=True, problem="a name occurs twice")
    if private != (plan.selection is not None):
        raise refuse("noise_plan", charged=True, problem="private keys and partition selection come together")
    if plan.selection is not None and plan.selection.noise is not None:
        counted = [term.noise for term in plan.terms if term.name == plan.selection.column]
        if counted != [plan.selection.noise]:
            raise refuse("noise_plan", charged=True, problem="the threshold was made for other noise")


def _released(term: TermNoise, noisy: Int128) -> NoisyTerm:
    unit = 2.0 ** (term.noise.shift - term.grid)
    values: NDArray[Any] = np.empty(len(noisy), dtype=np.int64 if term.whole else np.float64)
    for rows in parts(len(noisy)):
        part = noisy.part(rows).to_float64()
        part *= unit
        values[rows] = np.minimum(np.maximum(np.rint(part), -_MOST_COUNT), _MOST_COUNT) if term.whole else part
    return NoisyTerm(term.name, values, unit, term.noise, term.grid, term.whole)
