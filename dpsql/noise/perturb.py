"""From exact to noisy: the one place that opens an exact answer, and the one gate that all noise passes.

Which noise, how much, and for which cells is decided before the exact vector is looked at; the order of the result is
that of the keys, never the engine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.engine.contract import ExactAnswer
from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups, lay_out
from dpsql.noise.int128 import Int128, parts
from dpsql.noise.measurements import PARTS
from dpsql.noise.noise_samplers import VECTOR_SAMPLERS, sample
from dpsql.noise.noisy_threshold import NoisyThreshold
from dpsql.noise.number_samplers import sample_numbers, select_keys
from dpsql.noise.randomised_rows import ExactRows, RandomisedColumn, exact_rows, randomise_rows
from dpsql.noise.randomness import KernelRandomness, Randomness, guard
from dpsql.noise.rank_histograms import Histograms
from dpsql.noise.samplers import Integers
from dpsql.pricing.row_export import ExportPlan
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, NoisePlan, Selection, Sensitivity, TermNoise

_WIDTH = 125
"""Exact sums are kept within 2**125, so that noise (below 2**62) never carries out of 128 bits."""
_MOST_COUNT = float((1 << 63) - 1024)
_NOTHING: Mapping[str, ExactAnswer] = {}
_NO_NOISE = Constant(Sensitivity(0, 0, 0, 0))


class Gate:
    """Every random decision about protected data is made here and nowhere else.

    The audit replaces it by one that records its arguments and answers fixed vectors.
    """

    def __init__(self, randomness: Randomness | None = None) -> None:
        """`randomness`: the operating system's unless a test passes its own."""
        self._randomness: Randomness = KernelRandomness() if randomness is None else randomness

    def draw(self, noises: Sequence[Noise], groups: Groups) -> list[Integers | None]:
        """For each term its noise, at least one value per group; None where there is none.

        Terms of one law share one draw, of which each gets values of its own: the values of a draw are independent. Where they
        are not, each term has a draw of its own.
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

        `exact` is in row-grid units, one per group, and is used up: its memory becomes the answer's. `drawn` is the
        term's own part of `draw`.
        """
        if drawn is None:
            return Int128.zeros(groups.count)
        # Clamping is 1-Lipschitz, so it may follow the data where a fault would betray it; 2**85 rows do not exist.
        width = _WIDTH + min(0, noise.shift)
        noisy = exact.widened()
        for rows in parts(groups.count):
            noisy.put(rows, exact.part(rows).saturated(width).shifted(noise.shift).plus(drawn[: groups.count][rows]))
        return noisy

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        """Return which groups appear.

        `counts`: where the rule names their noise, the noisy counts that are released, in noise-grid units; otherwise exact
        numbers of privacy units. Raises InternalError noise_plan for a rule without a selector.
        """
        return select_keys(selection, counts, groups, self._randomness)

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """For each group its number, drawn from its exact histogram by the law's own sampler.

        Raises Fault noise_guard when a sampler's guard fires, InternalError noise_plan for a law without a sampler.
        """
        return sample_numbers(law, histograms, groups, self._randomness)

    def release_sums(self, name: str, sums: NDArray[np.int64], noise: Noise, groups: Groups) -> NDArray[np.float64]:
        """Return sums that the noise floor has computed, one for each group, with noise of their own, in row-grid units.

        Raises as `draw` does, and Fault noise_guard for a law that adds nothing.
        """
        (drawn,) = self.draw([noise], groups)
        guard(drawn is not None)
        return self.add(name, Int128.from_int64(sums), noise, groups, drawn).to_float64() * 2.0**noise.shift

    def count_rows(self, exact: int, noise: Noise | None) -> int:
        """Draw the number of rows that an export writes: the exact number with its noise, never below 0; as it is without noise.

        Raises as `draw` does.
        """
        drawn = None if noise is None else self._draw(noise, 1)
        guard(noise is None or (drawn is not None and noise.shift == 0))
        return exact if drawn is None else max(0, exact + int(drawn[0]))

    def randomise(self, rows: ExactRows, plan: ExportPlan) -> tuple[RandomisedColumn, ...]:
        """Return the rows of an export, each changed by the local randomizers of its columns. Raises Fault noise_guard."""
        return randomise_rows(rows, self.count_rows(rows.count, plan.count_noise), plan, self._randomness)

    def _draw(self, noise: Noise, count: int) -> Integers | None:
        return sample(noise, count, self._randomness)

    def _vectors(self, noise: Noise, vectors: int, cells: int) -> Integers | list[Integers | None] | None:
        """So many independent vectors of values; those of most laws in one draw, as all their values are independent."""
        if type(noise) in VECTOR_SAMPLERS:
            return [self._draw(noise, cells) for _ in range(vectors)]
        drawn = self._draw(noise, vectors * cells)
        return None if drawn is None else drawn.reshape(vectors, cells)


@dataclass(frozen=True, eq=False)
class NoisyTerm:
    """One released basis term. `values`: numpy float64, or int64 when `whole`; `noise_unit`: one step of the noise."""

    name: str
    values: NDArray[Any]
    noise_unit: float
    noise: Noise
    grid: int
    whole: bool

    def half_width(self, confidence: float) -> float:
        """Return h with P(|value - exact value| <= h) >= confidence, in the units of `values`; the row grid not included."""
        width = self.noise.half_width(confidence) * 2.0**-self.grid
        return float(floor(width + 0.5)) if self.whole else width

    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise, in the units of `values`."""
        return self.noise.standard_deviation() * 2.0**-self.grid


@dataclass(frozen=True, eq=False)
class ChosenNumber:
    """One released number of a measurement that is no sum: int64, chosen near the exact one.

    Nothing was added to it, so that there is no law of its error: `half_width` is infinite, and replicates leave it as it is.
    """

    name: str
    values: NDArray[np.int64]

    noise: Noise = _NO_NOISE
    noise_unit: float = 1.0
    grid: int = 0
    whole: bool = True

    def half_width(self, confidence: float) -> float:
        """Return infinity: the error in value depends on the data, and no bound on it is known."""
        return inf

    def standard_deviation(self) -> float:
        """Return 0: nothing is added to a chosen number."""
        return 0.0


@dataclass(frozen=True, eq=False)
class NoisyAnswer:
    """A private block's answer: nothing exact is reachable from it. Rows are in key order."""

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
    """Return the exact answer of a block that no data can move: there is no row, and its public keys are filled in."""
    keys = {}
    for key in plan.keys:
        if key.values is None:
            raise refuse("internal", what="private keys that cost nothing")
        keys[key.name] = pa.array([], key.values.type)
    return ExactAnswer(pa.table(keys | {term.name: pa.array([], pa.int64()) for term in plan.terms}))


def perturb(
    exact: ExactAnswer, plan: NoisePlan, gate: Gate, measurement_answers: Mapping[str, ExactAnswer] = _NOTHING
) -> NoisyAnswer:
    """Measure every term of `plan` on `exact` through `gate` and select the keys that appear; then every other measurement,
    over the groups that appear, on its own exact answer in
    `measurement_answers`.

    Public keys: every combination of `KeyColumn.values` (or those of `plan.listed`), first key slowest, noise alone where the
    engine has no row.
    No keys: one row. Any private key: the combinations the engine saw, as far as `plan.selection` admits them, sorted
    (public keys in the order of their values, private keys ascending, NULL last). Raises InternalError noise_plan,
    and Fault noise_answer or noise_guard with the charge kept.
    """
    _check(plan)
    table = exact.unseal()
    layout = lay_out(table, plan.keys, plan.listed)
    drawn = gate.draw([term.noise for term in plan.terms], layout.groups)
    shares = {term.name: (term.noise, noise) for term, noise in zip(plan.terms, drawn, strict=True)}

    def measured(name: str) -> Int128:
        """Return one term's noisy integers, made when they are needed: one after the other, they use the same memory."""
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
    """Randomise the rows of an export through `gate`. Raises Fault noise_answer or noise_guard with the charge kept."""
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
    """Return the gap in noise-grid steps between the sum in column `name` and `threshold`, each with its noise; None: it is
    below.

    `secret` was drawn for the run that this question belongs to; noise of its own is drawn for the question. Raises Fault
    noise_answer for an answer that is not one sum, and as `noisy_threshold` does.
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
    """Check the properties of a noise plan on which the guarantee relies. Raises InternalError noise_plan."""
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
