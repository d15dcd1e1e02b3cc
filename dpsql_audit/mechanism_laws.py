"""The law of the noise that is really drawn: the installed gate at exact zero, against the distribution of the requested scale.

The test is the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant (Annals of Probability 18, 1990): for n
independent draws the largest distance between the empirical and the true distribution function is above
sqrt(ln(2 / alpha) / (2 n)) with a probability of at most alpha, whatever n and the law are. So false alarms are bounded exactly.
The same is done with the rule that admits private keys and with the choice of a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.plan.measurements import Register
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.contract import Law, MeasurementPlan, Noise, Selection
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY, REFUSED, LocalSensitivityPlan
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.partition_selection import ONE, Threshold, TruncatedGeometric, WeightedThreshold
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES, SampleMeanPlan
from dpsql_audit.choice_laws import EXAMPLE_CELLS, ChoiceLaw, choice_of, log_law, runs
from dpsql_audit.local_laws import local_law_of, through
from dpsql_audit.lower_bounds import vectors
from dpsql_audit.noise_laws import AuditedLaw, audited, law_of

DRAWS = 100_000
CHOICES = 20_000
ALPHA = 1e-7
SMALL_RUNS, SMALL = 40, 500
"""Draws of few cells, whose random bytes come from another generator than those of many."""
VECTOR_DRAWS = 10
"""Draws for which one vector is drawn, where its entries are not independent."""
TESTS_OF_A_LAW = 6
"""Tests of one law by samples, each of which fails by chance with a probability of at most `ALPHA`."""


@dataclass(frozen=True)
class LawChecked:
    """One law: its mechanism, its scale (in grid units; for a rule, what it is about), the largest distance found and the
    largest that chance explains."""

    mechanism: str
    scale: float
    distance: float
    allowed: float
    problem: str = ""


def laws_of(price: Price) -> dict[tuple[str, int], Callable[[], LawChecked]]:
    """Return the check of every law that a price names, by mechanism and order of magnitude."""
    checks: dict[tuple[str, int], Callable[[], LawChecked]] = {}
    for priced in price.blocks:
        for term in priced.noise.terms:
            size = round(math.log2(float(term.noise.noise_scale))) if term.noise.noise_scale else 0
            checks.setdefault((term.noise.mechanism, size), partial(check_law, term.noise))
        if priced.noise.selection is not None:
            checks.setdefault((priced.noise.selection.kind, 0), partial(check_selection, priced.noise.selection))
        for plan in priced.noise.measurements:
            for name, check in MEASUREMENTS.of(plan.word)(plan):
                checks.setdefault(name, check)
    return checks


Checks = Iterator[tuple[tuple[str, int], Callable[[], LawChecked]]]


def _checks_of_choices(plan: MeasurementPlan) -> Checks:
    for _, law in plan.laws:
        choice = cast(ChoiceLaw, law)
        yield (choice_title(choice), round(math.log2(float(choice.rate)))), partial(check_choice, choice)


def _checks_of_local(plan: LocalSensitivityPlan) -> Checks:
    law: Any = plan.law
    yield (law.mechanism, 0), partial(check_local, law)


def _checks_of_sample_mean(plan: SampleMeanPlan) -> Checks:
    size = round(math.log2(float(plan.law.noise.noise_scale)))
    yield (plan.law.mechanism, size), partial(check_law, plan.law.noise)


MEASUREMENTS: Register[Callable[[Any], Checks]] = Register(
    "the audit's test of laws",
    {
        RANK_HISTOGRAM: _checks_of_choices,
        MOST_FREQUENT: _checks_of_choices,
        END_ROWS: _checks_of_choices,
        SAMPLE_VALUES: _checks_of_choices,
        SAMPLE_MEAN: _checks_of_sample_mean,
        LOCAL_SENSITIVITY: _checks_of_local,
    },
)
"""The checks of the laws of a measurement that is no sum, each by mechanism and order of magnitude."""


def check_law(noise: Noise, draws: int = DRAWS, alpha: float = ALPHA) -> LawChecked:
    """Draw from the real gate at exact zero, and compare with the law that the noise names."""
    shared = law_of(noise)
    if shared is not None and shared.vector_log_ratio is not None:
        return _check_vectors(noise, shared, draws, alpha)
    groups, gate = _groups(draws), Gate()
    drawn, second = gate.draw([noise, noise], groups)
    values = np.array(gate.add("t0", Int128.zeros(draws), noise, groups, drawn).to_ints(), dtype=np.float64)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    scale = float(noise.noise_scale)
    law = law_of(noise)
    if law is None or drawn is None or second is None:
        problem = "a constant is not 0" if np.any(values) else "" if law is None else "no noise is drawn"
        return LawChecked(noise.mechanism, scale, 0.0, allowed, problem)
    few = Groups(groups.keys.slice(0, SMALL), SMALL, True)
    small = np.concatenate([_drawn(noise, few) for _ in range(SMALL_RUNS)])
    distance = _distance(values, partial(law.distribution, noise))
    distance_of_few = _distance(small.astype(np.float64), partial(law.distribution, noise))
    too_far = distance > allowed or distance_of_few > allowed * math.sqrt(draws / small.size)
    problem = f"the noise drawn is not {noise.mechanism} of scale {scale:.6g}" if too_far else ""
    half, middle = draws // 2, small.size // 2
    copies = {
        "cells share their noise: {:.3g} of them repeat the cell half a vector before": (values[:half], values[half:]),
        "terms share their noise: {:.3g} of their cells are equal": (drawn[:half], second[:half]),
        "two runs share their noise: {:.3g} of their cells are equal": (drawn[:half], _drawn(noise, groups)[:half]),
        "small runs share their noise: {:.3g} of their cells are equal": (small[:middle], small[middle:]),
    }
    return LawChecked(noise.mechanism, scale, distance, allowed, problem or _copied(law.repeat(noise), copies, alpha))


def _copied(repeat: float, copies: Mapping[str, tuple[NDArray[Any], NDArray[Any]]], alpha: float) -> str:
    """Return the words of the first two samples that are equal in more places than by chance, "" for none. `repeat`: how often
    two independent draws are equal."""
    for words, (left, right) in copies.items():
        repeated = float((left == right).mean())
        if repeated > repeat + math.sqrt(math.log(1 / alpha) / (2 * left.size)):
            return words.format(repeated)
    return ""


def _check_vectors(noise: Noise, law: AuditedLaw, draws: int, alpha: float) -> LawChecked:
    """Return the check of a law whose entries of one vector share a part: of many vectors of two entries, each entry by itself,
    and that neither entries nor vectors are copies."""
    gate, count = Gate(), draws // VECTOR_DRAWS
    drawn = vectors(gate, noise, count, 2)
    groups = Groups(pa.table({}), count, True)
    allowed = math.sqrt(math.log(4 / alpha) / (2 * count))
    columns = [
        np.array(gate.add("t0", Int128.zeros(count), noise, groups, drawn[:, cell].copy()).to_ints(), dtype=np.float64)
        for cell in range(2)
    ]
    scale = float(noise.noise_scale)
    distance = max(
        _distance(values, partial(law.distribution, law.of_cell(noise, cell))) for cell, values in enumerate(columns)
    )
    problem = f"the noise drawn is not {noise.mechanism} of scale {scale:.6g}" if distance > allowed else ""
    half = count // 2
    copies = {
        "cells share their noise: {:.3g} of them are equal": (drawn[:, 0], drawn[:, 1]),
        "terms share their noise: {:.3g} of their cells are equal": (drawn[:half, 0], drawn[half : 2 * half, 0]),
    }
    return LawChecked(noise.mechanism, scale, distance, allowed, problem or _copied(law.repeat(noise), copies, alpha))


def _drawn(noise: Noise, groups: Groups) -> NDArray[Any]:
    """Return the first of two vectors that a new gate draws, one number for each group."""
    first = Gate().draw([noise, noise], groups)[0]
    assert first is not None
    return np.asarray(first)[: groups.count]


def _distance(values: NDArray[np.float64], distribution: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """Return the largest distance between the empirical distribution of whole numbers and `distribution`."""
    points, counts = np.unique(values, return_counts=True)
    empirical = np.cumsum(counts) / values.size
    exact, before = distribution(points), distribution(points - 1)
    # Between two values that were drawn the empirical function stays, and the true one has grown most just before the next.
    lower = np.concatenate(([0.0], empirical[:-1]))
    return float(max(np.abs(empirical - exact).max(), np.abs(before - lower).max()))


def check_selection(rule: Selection, draws: int = DRAWS, alpha: float = ALPHA) -> LawChecked:
    """Return how often the real gate admits keys of one unit, of as many as are admitted half the time, and of many; or, by a
    threshold, counts at it and just below it. Raises InternalError for a rule that is not registered."""
    return audited(SELECTIONS, rule, "a rule of partition selection")(rule, draws, alpha)


def _check_threshold(rule: Threshold, draws: int, alpha: float) -> LawChecked:
    groups = Groups(pa.table({"k0": pa.array([0, 1, 2])}), 3, False)
    admitted = Gate().select("t0", Int128.from_ints([rule.tau - 1, rule.tau, rule.tau + 1]), rule, groups).tolist()
    problem = "" if admitted == [False, True, True] else "keys are not admitted from the threshold on"
    return LawChecked(rule.kind, float(rule.tau), 0.0, 0.0, problem)


def _check_keep_table(rule: TruncatedGeometric, draws: int, alpha: float) -> LawChecked:
    gate = Gate()
    allowed = math.sqrt(math.log(2 / (alpha / 3)) / (2 * draws))
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, False)
    distance = 0.0
    for units in (1, rule.half_point(), rule.table.size + 5):
        chance = int(rule.table[min(units, rule.table.size - 1)]) / ONE
        admitted = gate.select("t0", Int128.from_ints([units] * draws), rule, groups)
        distance = max(distance, abs(float(admitted.mean()) - chance))
    problem = "keys are admitted with another probability than that of the rule" if distance > allowed else ""
    return LawChecked(rule.kind, float(rule.half_point()), distance, allowed, problem)


SELECTIONS: dict[type[Any], Callable[[Any, int, float], LawChecked]] = {
    TruncatedGeometric: _check_keep_table,
    Threshold: _check_threshold,
    WeightedThreshold: _check_threshold,
}


def choice_title(law: ChoiceLaw) -> str:
    """Return a description of the choice."""
    return f"{law.mechanism}, {choice_of(law).title(law)}"


def check_choice(law: ChoiceLaw, draws: int = CHOICES, alpha: float = ALPHA) -> LawChecked:
    """Cells that the real gate chooses of `draws` equal histograms, against the law from its definition (`choice_laws`)."""
    audited = choice_of(law)
    grid, rows = audited.example(law)
    chosen = Gate().release_numbers("q0", _equal_histograms(grid, rows, draws), law, _groups(draws))
    chances = np.exp(log_law(law, grid, rows))
    if not audited.by_cell(law):
        chances = np.repeat(chances, [run.width for run in runs(grid, sorted(rows), rows)])
    through = np.cumsum(chances)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    distance = _distance(
        chosen.astype(np.float64), lambda points: np.where(points < 0, 0.0, through[points.astype(np.int64)])
    )
    problem = "cells are chosen by another law than that of the mechanism" if distance > allowed else ""
    return LawChecked(choice_title(law), float(1 / law.rate), distance, allowed, problem)


def _equal_histograms(cells: int, rows: Mapping[int, int], groups: int) -> Histograms:
    """Return so many groups with the same rows by cell."""
    cell, count = (np.array(list(part), dtype=np.int64) for part in (rows, rows.values()))
    start = np.arange(groups + 1, dtype=np.int64) * cell.size
    return Histograms(cells, start, np.tile(cell, groups), np.tile(count, groups))


def _groups(count: int) -> Groups:
    return Groups(pa.table({"k0": pa.array(range(count))}), count, True)


def check_local(law: Law, draws: int = CHOICES, alpha: float = ALPHA) -> LawChecked:
    """Medians or means that the real gate releases of `draws` equal histograms, against the law from its definition
    (`local_laws`). Of propose-test-release another bound is proposed, so that the test is passed half of the time."""
    example, rows = local_law_of(law).example(law)
    histograms = _equal_histograms(EXAMPLE_CELLS, rows, draws)
    released = Gate().release_numbers("l0", histograms, example, _groups(draws))
    chances = through(example, EXAMPLE_CELLS, rows)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    distance = _distance(
        released.astype(np.float64),
        lambda points: np.where(points < REFUSED, 0.0, chances[np.maximum(points, REFUSED).astype(np.int64) - REFUSED]),
    )
    problem = f"numbers have another law than that of {example.mechanism}" if distance > allowed else ""
    return LawChecked(example.mechanism, float(1 / example.epsilon_0), distance, allowed, problem)
