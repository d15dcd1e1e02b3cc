"""Ends of error bars of quantiles: the exact quantile is between them with the stated probability, whatever the data."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import ALPHA, Seeded

from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms, padded, released_quantiles
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, PERMUTE_AND_FLIP, Choice, choice_for, end_for
from dpsql.privacy.mechanisms.rank_histogram import EndChoice, QuantileChoice, RankHistogramPlan, Search
from dpsql_audit.choice_laws import log_law, log_ratios

ROW = Sensitivity(1, 1, 1, 1)
PART = PrivacyLoss(Fraction(1, 3), Fraction(0), None)
MISSED = Fraction(1, 40)
CELLS = 1 << 10
GROUPS = 1500


def bars(cells: list[int], quantile: Fraction, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return low end, quantile, and high end of many groups with the same rows, given as cells."""
    cell, count = np.unique(np.array(cells, dtype=np.int64), return_counts=True)
    groups = Groups(pa.table({"k0": pa.array(np.arange(GROUPS))}), GROUPS, True)
    table = pa.table({
        "k0": np.repeat(np.arange(GROUPS), cell.size), "cell": np.tile(cell, GROUPS), "rows": np.tile(count, GROUPS)
    })  # fmt: skip
    chosen = QuantileChoice("q", Search(quantile, 0), choice_for(ROW, quantile, CELLS, PART))
    ends = tuple(
        EndChoice(name, quantile, end_for(ROW, quantile, name == "low", CELLS, PART, MISSED))
        for name in ("low", "high")
    )
    plan = RankHistogramPlan("h0", CELLS, (chosen,), ends=ends)
    numbers = released_quantiles(table, plan, groups, Gate(Seeded(seed)))
    return numbers["low"], numbers["q"], numbers["high"]


def rows(kind: str) -> list[int]:
    generator = np.random.default_rng(5)
    if kind == "ties":
        return [*([0] * 300), *([7] * 400), *generator.integers(0, 1000, 300).tolist()]
    if kind == "spread":
        return [int(v) for v in np.clip(np.exp(generator.normal(0, 1, 800)) * 40, 0, CELLS - 1)]
    sizes = {"few": 12, "one": 1, "none": 0, "at the end": 90}
    return [CELLS - 1] * sizes[kind] if kind == "at the end" else generator.integers(300, 700, sizes[kind]).tolist()


@pytest.mark.statistical
@pytest.mark.parametrize("quantile", [Fraction(1, 2), Fraction(9, 10), Fraction(0), Fraction(1)], ids=str)
@pytest.mark.parametrize("kind", ["ties", "spread", "few", "one", "none", "at the end"])
def test_the_exact_quantile_is_between_the_ends_as_often_as_is_said(kind: str, quantile: Fraction) -> None:
    cells = rows(kind)
    low, chosen, high = bars(cells, quantile, 3)
    assert (low <= chosen).all() and (chosen <= high).all()
    for exact in (
        [float(np.quantile(cells, float(quantile), method=method)) for method in ("inverted_cdf", "linear")]
        if cells
        else []
    ):
        missed = int(((low > exact) | (high < exact)).sum())
        assert stats.binom.sf(missed - 1, GROUPS, float(2 * MISSED)) > ALPHA


@pytest.mark.statistical
def test_the_worst_case_of_an_end_comes_near_its_chance() -> None:
    """All rows are in the first cell: every other cell is only D rows from the low end's target, and from there on none."""
    low, _, _ = bars([0] * 2000, Fraction(1, 2), 9)
    high = bars([CELLS - 1] * 2000, Fraction(1, 2), 9)[2]
    assert (low == 0).all() and (high == CELLS - 1).all()
    half = [0] * 1000 + [CELLS - 1] * 1000
    beyond = float(np.mean(bars(half, Fraction(1, 2), 4)[0] > 0))
    law = end_for(ROW, Fraction(1, 2), True, CELLS, PART, MISSED)
    # The last cell of the rows is chosen unless one of the others, as distant as possible, shows heads and is preferred.
    logs = log_law(law, CELLS, {0: 1000 - law.padding, CELLS - 1: 1000})
    exact = 1 - float(np.exp(logs[0]))
    assert stats.binomtest(round(beyond * GROUPS), GROUPS, exact).pvalue > ALPHA
    assert 0.2 * float(MISSED) < exact <= float(MISSED)


def test_rows_that_are_no_ones_stand_in_the_first_or_the_last_cell_of_every_group() -> None:
    histograms = Histograms(4, np.array([0, 2, 2]), np.array([0, 3]), np.array([2, 5]))
    below, above = padded(histograms, -7), padded(histograms, 7)
    assert (below.start.tolist(), below.cell.tolist(), below.count.tolist()) == ([0, 2, 3], [0, 3, 0], [9, 5, 7])
    assert (above.start.tolist(), above.cell.tolist(), above.count.tolist()) == ([0, 2, 3], [0, 3, 3], [2, 12, 7])


@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1, 3), Fraction(1)], ids=str)
def test_an_end_costs_its_part_whatever_its_padding(quantile: Fraction) -> None:
    for low in (True, False):
        law = end_for(Sensitivity(3, 6, 12, 2), quantile, low, CELLS, PART, MISSED)
        assert law.loss.epsilon == PART.epsilon and law.recomputed_loss() == law.loss
        assert (law.padding < 0) is low
        plan = RankHistogramPlan(
            "h0", CELLS, (QuantileChoice("q", Search(quantile, 0), choice_for(ROW, quantile, CELLS, PART)),),
            ends=(EndChoice("low", quantile, law),),
        )  # fmt: skip
        assert sum((one.loss.epsilon or 0) for one in plan.charged) == 2 * Fraction(1, 3)


@pytest.mark.parametrize("low", [True, False])
@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1, 4), Fraction(1, 2), Fraction(1)], ids=str)
def test_one_row_moves_the_law_of_an_end_within_its_range(quantile: Fraction, low: bool) -> None:
    """Every pair of small histograms that differ in one row: the log ratio is at most epsilon_0, and under the exponential
    mechanism its range is."""

    law = end_for(ROW, quantile, low, 4, PrivacyLoss(Fraction(1), Fraction(0), None), Fraction(1, 4))

    def laid(counts: tuple[int, ...]) -> dict[int, int]:
        whole = list(counts)
        whole[0 if low else -1] += abs(law.padding)
        return {cell: count for cell, count in enumerate(whole) if count}

    def ratios(chosen: Choice, *histograms: tuple[int, ...]) -> list[float]:
        return log_ratios(chosen, 4, *map(laid, histograms))

    widest = largest = 0.0
    for counts in product(range(4), repeat=4):
        for cell in range(4):
            more = tuple(count + (place == cell) for place, count in enumerate(counts))
            found = ratios(replace(law, mechanism=EXPONENTIAL), counts, more)
            assert max(found) >= -1e-9 and min(found) <= 1e-9
            widest = max(widest, max(found) - min(found))
            largest = max(largest, *map(abs, ratios(law, counts, more)))
    assert 0.45 < widest <= 1 + 1e-9
    assert law.mechanism == PERMUTE_AND_FLIP and 0.4 < largest <= 1 + 1e-9
