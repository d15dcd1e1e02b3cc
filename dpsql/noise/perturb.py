"""From exact to noisy: the one place that opens an exact answer, and the one gate that all noise passes.

Which noise, how much, and for which cells is decided before the exact vector is looked at; the order of the result is
that of the keys, never the engine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
from dpsql.noise.noise_samplers import sample
from dpsql.noise.randomness import KernelRandomness, Randomness, words
from dpsql.noise.rank_choice import choose
from dpsql.noise.rank_histograms import Histograms
from dpsql.noise.samplers import Integers
from dpsql.privacy.mechanisms.contract import Constant, Law, Noise, NoisePlan, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.partition_selection import Threshold, TruncatedGeometric

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

        Terms of one law share one draw, of which each gets values of its own: the values of a draw are independent.
        Raises Fault noise_guard when a sampler's guard fires, InternalError noise_plan for an unknown mechanism.
        """
        found: list[Integers | None] = [None] * len(noises)
        for noise, count in Counter(noises).items():
            drawn = self._draw(noise, count * groups.draws)
            if drawn is not None:
                parts = iter(drawn.reshape(count, groups.draws))
                found = [next(parts) if one == noise else kept for one, kept in zip(noises, found, strict=True)]
        return found

    def add(self, name: str, exact: Int128, noise: Noise, groups: Groups, drawn: Integers | None) -> Int128:
        """The noisy integers of term `name` in noise-grid units.

        `exact` is in row-grid units, one per group, and is used up: its memory becomes the answer's. `drawn` is the
        term's own part of `draw`.
        """
        if drawn is None:
            return Int128.zeros(groups.count)
        # Clamping is 1-Lipschitz, so it may follow the data where a fault would betray it; 2**85 rows do not exist.
        width = _WIDTH + min(0, noise.shift)
        noisy = exact.widened()
        for at in parts(groups.count):
            noisy.put(at, exact.part(at).saturated(width).shifted(noise.shift).plus(drawn[: groups.count][at]))
        return noisy

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        """Which groups appear.

        `counts`: the noisy counts that are released (Threshold, noise-grid units) or exact numbers of privacy units
        (TruncatedGeometric).
        """
        if isinstance(selection, Threshold):
            return counts.at_least(selection.tau)
        if isinstance(selection, TruncatedGeometric):
            uniform = words(groups.draws, self._randomness)[: groups.count] >> np.uint64(2)
            table = selection.table
            return uniform < table[counts.clipped_index(table.size)].view(np.uint64)
        raise refuse("noise_plan", charged=True, problem="unknown partition selection")

    def choose(
        self, name: str, histograms: Histograms, quantile: Fraction, law: Law, groups: Groups
    ) -> NDArray[np.int64]:
        """For each group the number of a cell, chosen near `quantile` of its exact histogram.

        Raises Fault noise_guard when a sampler's guard fires, InternalError noise_plan for a law that is no choice among cells.
        """
        if isinstance(law, Choice) and law.quantile == quantile:
            found = histograms
            return choose(found.cells, found.start, found.cell, found.count, law, groups.draws, self._randomness)
        raise refuse("noise_plan", charged=True, problem="unknown mechanism")

    def _draw(self, noise: Noise, count: int) -> Integers | None:
        return sample(noise, count, self._randomness)


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
        """h with P(|value - exact value| <= h) >= confidence, in the units of `values`; the row grid not included."""
        width = self.noise.half_width(confidence) * 2.0**-self.grid
        return float(floor(width + 0.5)) if self.whole else width

    def standard_deviation(self) -> float:
        """Of the noise, in the units of `values`."""
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
        """Not known before data is looked at: how far values are apart where the ranks are near depends on them."""
        return inf

    def standard_deviation(self) -> float:
        """Of what was added: 0."""
        return 0.0


@dataclass(frozen=True, eq=False)
class NoisyAnswer:
    """A private block's answer: nothing exact is reachable from it. Rows are in key order."""

    keys: Any
    terms: tuple[NoisyTerm | ChosenNumber, ...]
    row_count: int

    def term(self, name: str) -> NoisyTerm | ChosenNumber:
        """The term called `name`; raises KeyError."""
        for term in self.terms:
            if term.name == name:
                return term
        raise KeyError(name)


def unmoved(plan: NoisePlan) -> ExactAnswer:
    """The exact answer of a block that no data can move: there is no row, and its public keys are filled in."""
    keys = {}
    for key in plan.keys:
        if key.values is None:
            raise refuse("internal", what="private keys that cost nothing")
        keys[key.name] = pa.array([], key.values.type)
    return ExactAnswer(pa.table(keys | {term.name: pa.array([], pa.int64()) for term in plan.terms}))


def perturb(
    exact: ExactAnswer, plan: NoisePlan, gate: Gate, others: Mapping[str, ExactAnswer] = _NOTHING
) -> NoisyAnswer:
    """Measure every term of `plan` on `exact` through `gate` and select the keys that appear; then every other measurement,
    over the groups that appear, on its own exact answer in `others`.

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
        """One term's noisy integers, made when they are needed: one after the other, they use the same memory."""
        noise, part = shares[name]
        return gate.add(name, layout.integers(table, name), noise, layout.groups, part)

    keys, count, kept, known = layout.groups.keys, layout.groups.count, None, {}
    if plan.selection is not None:
        column = plan.selection.column
        if isinstance(plan.selection, Threshold):
            known[column] = measured(column)
        counts = known[column] if column in known else layout.integers(table, column)
        kept = gate.select(column, counts, plan.selection, layout.groups)
        keys, count = keys.filter(pa.array(kept)), int(kept.sum())
    terms = []
    for term in plan.terms:
        noisy = known[term.name] if term.name in known else measured(term.name)
        terms.append(_released(term, noisy if kept is None else noisy.where(kept)))
    groups = layout.groups if kept is None else Groups(keys, count, layout.groups.public)
    chosen = []
    for one in plan.measurements:
        numbers = PARTS.of(one.word)(others[one.name].unseal(), one, groups, gate)
        chosen += [ChosenNumber(name, numbers[name]) for name, _ in one.laws]
    return NoisyAnswer(keys, (*terms, *chosen), count)


def _check(plan: NoisePlan) -> None:
    """What pricing promises and privacy hangs on."""
    names = list(plan.numbers)
    private = any(key.values is None for key in plan.keys)
    if len(set(names)) != len(names) or len({key.name for key in plan.keys}) != len(plan.keys):
        raise refuse("noise_plan", charged=True, problem="a name occurs twice")
    if private != (plan.selection is not None):
        raise refuse("noise_plan", charged=True, problem="private keys and partition selection come together")
    if isinstance(plan.selection, Threshold):
        counted = [term.noise for term in plan.terms if term.name == plan.selection.column]
        if counted != [plan.selection.noise]:
            raise refuse("noise_plan", charged=True, problem="the threshold was made for other noise")


def _released(term: TermNoise, noisy: Int128) -> NoisyTerm:
    unit = 2.0 ** (term.noise.shift - term.grid)
    values: NDArray[Any] = np.empty(len(noisy), dtype=np.int64 if term.whole else np.float64)
    for at in parts(len(noisy)):
        part = noisy.part(at).to_float64()
        part *= unit
        values[at] = np.minimum(np.maximum(np.rint(part), -_MOST_COUNT), _MOST_COUNT) if term.whole else part
    return NoisyTerm(term.name, values, unit, term.noise, term.grid, term.whole)
