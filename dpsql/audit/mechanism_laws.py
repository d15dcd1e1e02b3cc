"""The law of the noise that is really drawn: the installed gate at exact zero, against the distribution of the requested scale.

The test is the inequality of Dvoretzky, Kiefer and Wolfowitz with Massart's constant (Annals of Probability 18, 1990): for n
independent draws the largest distance between the empirical and the true distribution function is above
sqrt(ln(2 / alpha) / (2 n)) with a probability of at most alpha, whatever n and the law are. So false alarms are bounded exactly.
The same is done with the rule that admits private keys and with the choice of a cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.audit.choice_laws import AnyChoice, log_law, runs
from dpsql.audit.local_laws import through
from dpsql.audit.lower_bounds import vectors
from dpsql.audit.noise_laws import AuditedLaw, law_of
from dpsql.errors.exceptions import refuse
from dpsql.noise.group_layout import Groups
from dpsql.noise.int128 import Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.pricing.pricing import Price
from dpsql.privacy.mechanisms.contract import Law, Noise, Selection
from dpsql.privacy.mechanisms.end_rows import EndKey
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import (
    REFUSED,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    propose_for,
)
from dpsql.privacy.mechanisms.most_frequent import MostFrequent
from dpsql.privacy.mechanisms.partition_selection import ONE, Threshold, TruncatedGeometric
from dpsql.privacy.mechanisms.sample_values import SampleMeanPlan

DRAWS = 100_000
CHOICES = 20_000
ALPHA = 1e-7
SMALL_RUNS, SMALL = 40, 500
"""Draws of few cells, whose random bytes come from another generator than those of many."""
VECTOR_DRAWS = 10
"""Draws for which one vector is drawn, where its entries are not independent."""
TESTS_OF_A_LAW = 6
"""Tests of one law by samples, each of which fails by chance with a probability of at most `ALPHA`."""
EXAMPLE_ROWS = {30: 2, 31: 1, 500: 6, 740: 1}
"""Rows by cell of the histogram from which quantiles are chosen, of `EXAMPLE_CELLS` cells."""
EXAMPLE_CELLS = 1_000
LEANING_CELLS = 40
"""Of a leaning choice every cell is looked at, so that its histogram has few."""


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
            if isinstance(plan, LocalSensitivityPlan):
                assert isinstance(plan.law, (SmoothSensitivity, ProposeTestRelease))
                checks.setdefault((plan.law.mechanism, 0), partial(check_local, plan.law))
                continue
            if isinstance(plan, SampleMeanPlan):
                size = round(math.log2(float(plan.law.noise.noise_scale)))
                checks.setdefault((plan.law.mechanism, size), partial(check_law, plan.law.noise))
                continue
            for _, law in plan.laws:
                choice = audited_choice(law)
                size = round(math.log2(float(choice.rate)))
                checks.setdefault((choice_words(choice), size), partial(check_choice, choice))
    return checks


def check_law(noise: Noise, draws: int = DRAWS, alpha: float = ALPHA) -> LawChecked:
    """Draw from the real gate at exact zero, and compare with the law that the noise names."""
    shared = law_of(noise)
    if shared is not None and shared.vector_log_ratio is not None:
        return _check_vectors(noise, shared, draws, alpha)
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, True)
    gate = Gate()
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
    for words, (left, right) in copies.items():
        repeated = float((left == right).mean())
        if repeated > law.repeat(noise) + math.sqrt(math.log(1 / alpha) / (2 * left.size)) and not problem:
            problem = words.format(repeated)
    return LawChecked(noise.mechanism, scale, distance, allowed, problem)


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
    for words, (left, right) in copies.items():
        repeated = float((left == right).mean())
        if repeated > law.repeat(noise) + math.sqrt(math.log(1 / alpha) / (2 * left.size)) and not problem:
            problem = words.format(repeated)
    return LawChecked(noise.mechanism, scale, distance, allowed, problem)


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
    threshold, counts at it and just below it."""
    gate = Gate()
    if isinstance(rule, Threshold):
        groups = Groups(pa.table({"k0": pa.array([0, 1, 2])}), 3, False)
        admitted = gate.select("t0", Int128.from_ints([rule.tau - 1, rule.tau, rule.tau + 1]), rule, groups).tolist()
        problem = "" if admitted == [False, True, True] else "keys are not admitted from the threshold on"
        return LawChecked(rule.kind, float(rule.tau), 0.0, 0.0, problem)
    if not isinstance(rule, TruncatedGeometric):
        raise refuse("internal", what="a rule of partition selection that is not audited")
    allowed = math.sqrt(math.log(2 / (alpha / 3)) / (2 * draws))
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, False)
    distance = 0.0
    for units in (1, rule.half_point(), rule.table.size + 5):
        chance = int(rule.table[min(units, rule.table.size - 1)]) / ONE
        admitted = gate.select("t0", Int128.from_ints([units] * draws), rule, groups)
        distance = max(distance, abs(float(admitted.mean()) - chance))
    problem = "keys are admitted with another probability than that of the rule" if distance > allowed else ""
    return LawChecked(rule.kind, float(rule.half_point()), distance, allowed, problem)


def audited_choice(law: Law) -> AnyChoice:
    """`law`, of a type that the audit has a definition of. Raises InternalError for any other."""
    if isinstance(law, (Choice, EndKey, MostFrequent)):
        return law
    raise refuse("internal", what="a choice of a law that is not audited")


def choice_words(law: AnyChoice) -> str:
    """Return a description of the choice."""
    if isinstance(law, Choice) and law.lean:
        return f"{law.mechanism}, leaning to lower cells"
    if isinstance(law, Choice):
        return f"{law.mechanism}, quantile {float(law.quantile):.3g}"
    return f"{law.mechanism}, {'key of rows at an end' if isinstance(law, EndKey) else 'most frequent'}"


def check_choice(law: AnyChoice, draws: int = CHOICES, alpha: float = ALPHA) -> LawChecked:
    """Cells that the real gate chooses of `draws` equal histograms, against the law from its definition (`choice_laws`)."""
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, True)
    leaning = isinstance(law, Choice) and law.lean > 0
    rows = _large_totals(law) if leaning else EXAMPLE_ROWS if isinstance(law, Choice) else _near_ties(law)
    grid = LEANING_CELLS if leaning else EXAMPLE_CELLS
    cells, counts = (np.array(list(part), dtype=np.int64) for part in (rows, rows.values()))
    start = np.arange(draws + 1, dtype=np.int64) * cells.size
    histograms = Histograms(grid, start, np.tile(cells, draws), np.tile(counts, draws))
    if isinstance(law, Choice):
        chosen = Gate().choose("q0", histograms, law.quantile, law, groups)
    elif isinstance(law, EndKey):
        chosen = Gate().choose_end_key("e0", histograms, law, groups)
    else:
        chosen = Gate().choose_most("m0", histograms, law, groups)
    chances = np.exp(log_law(law, grid, rows))
    if not leaning and not isinstance(law, EndKey):
        chances = np.repeat(chances, [run.width for run in runs(grid, sorted(rows), rows)])
    through = np.cumsum(chances)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    distance = _distance(
        chosen.astype(np.float64), lambda points: np.where(points < 0, 0.0, through[points.astype(np.int64)])
    )
    problem = "cells are chosen by another law than that of the mechanism" if distance > allowed else ""
    return LawChecked(choice_words(law), float(1 / law.rate), distance, allowed, problem)


def check_local(law: Law, draws: int = CHOICES, alpha: float = ALPHA) -> LawChecked:
    """Medians or means that the real gate releases of `draws` equal histograms, against the law from its definition
    (`local_laws`). Of propose-test-release another bound is proposed, so that the test is passed half of the time."""
    if not isinstance(law, (SmoothSensitivity, ProposeTestRelease)):
        raise refuse("internal", what="noise by local sensitivity of a law that is not audited")
    rows = {30: 40 * law.sensitivity.linf, 31: 1, 500: 61 * law.sensitivity.linf, 740: 40 * law.sensitivity.linf}
    if isinstance(law, ProposeTestRelease):
        law = propose_for(law.sensitivity, replace(law.loss, rho=None), 10)
        rows = {480: law.sensitivity.linf * (law.threshold + 2), 485: law.sensitivity.linf}
    groups = Groups(pa.table({"k0": pa.array(range(draws))}), draws, True)
    cells, counts = (np.array(list(part), dtype=np.int64) for part in (rows, rows.values()))
    start = np.arange(draws + 1, dtype=np.int64) * cells.size
    histograms = Histograms(EXAMPLE_CELLS, start, np.tile(cells, draws), np.tile(counts, draws))
    released = Gate().release_local("l0", histograms, law, groups)
    chances = through(law, EXAMPLE_CELLS, rows)
    allowed = math.sqrt(math.log(2 / alpha) / (2 * draws))
    distance = _distance(
        released.astype(np.float64),
        lambda points: np.where(points < REFUSED, 0.0, chances[np.maximum(points, REFUSED).astype(np.int64) - REFUSED]),
    )
    problem = f"numbers have another law than that of {law.mechanism}" if distance > allowed else ""
    return LawChecked(law.mechanism, float(1 / law.epsilon_0), distance, allowed, problem)


def _large_totals(law: AnyChoice) -> dict[int, int]:
    """Return rows of which those beyond the rank of a leaning choice, from cell 14 to 19, weigh about as much as its lean."""
    assert isinstance(law, Choice)
    return {14: 4 * law.rank, 20: math.ceil(1 / law.rate), 25: law.rank}


def _near_ties(law: MostFrequent | EndKey) -> dict[int, int]:
    """Return rows by cell whose chances are of one size, so that each step of the weights shows: the most frequent cell is as
    likely as all empty ones together, or half of the keys lead the others by about one power of e."""
    if isinstance(law, EndKey):
        most = max(1, law.rows // law.keys)
        lead = min(most, math.ceil(1 / float(law.rate)))
        keys = min(law.keys, EXAMPLE_CELLS)
        leading = min((keys + 1) // 2, law.rows)
        return {key: count for key in range(keys) if (count := most if key < leading else most - lead)}
    most = max(2, round(math.log(EXAMPLE_CELLS) / float(law.rate)))
    return {30: most, 31: most - 1, 500: most // 2 + 1, 740: most}
