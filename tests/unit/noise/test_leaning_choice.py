"""The sampler of leaning choices has exactly their law."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from support.noise_laws import ALPHA, Seeded, fit_choice, tiled

from dpsql.errors.exceptions import Fault
from dpsql.noise.group_layout import Groups
from dpsql.noise.noise_samplers import MOST_CELLS, choose_leaning
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import CHOICE_MECHANISMS, Choice

ROW = Sensitivity(1, 1, 1, 1)
DRAWS = 60_000
HISTOGRAMS = ([0, 3, 0, 0, 1, 4, 0, 2, 0, 0, 0, 0], [0] * 12, [1] * 12, [500, 0, 0, 0, 60, 1, 1, 0, 0, 0, 0, 0])


def law(mechanism: str, epsilon: Fraction = Fraction(1), lean: int = 9) -> Choice:
    return Choice(ROW, Fraction(1), epsilon, 2, mechanism=mechanism, lean=lean)


def drawn(choice: Choice, rows: list[int], draws: int = DRAWS) -> np.ndarray:
    parts = []
    for begin in range(0, draws, 20_000):
        source = Seeded(f"leaning {choice.mechanism} {rows} {begin}")
        parts.append(choose_leaning(len(rows), *tiled(rows, min(20_000, draws - begin)), choice, 0, source))
    return np.concatenate(parts)


@pytest.mark.statistical
@pytest.mark.parametrize("mechanism", CHOICE_MECHANISMS)
@pytest.mark.parametrize("rows", HISTOGRAMS, ids=str)
def test_cells_have_the_law_and_not_that_of_another_epsilon_or_lean(rows: list[int], mechanism: str) -> None:
    choice = law(mechanism)
    seen = drawn(choice, rows)
    assert fit_choice(seen, choice, rows) > ALPHA
    for other in (
        law(mechanism, Fraction(7, 10), 9), law(mechanism, Fraction(13, 10), 9), law(mechanism, Fraction(1), 6),
        law(mechanism, Fraction(1), 12),
    ):  # fmt: skip
        assert fit_choice(seen, other, rows) < 1e-6


@pytest.mark.statistical
def test_groups_are_chosen_each_for_itself() -> None:
    """Two alternating histograms: each has its own law, and the choices are independent."""
    choice = law(CHOICE_MECHANISMS[0])
    both = [[0, 3, 0, 0], [1, 0, 0, 5]]
    groups = 20_000
    start = np.cumsum([0, *[1, 2] * (groups // 2)])
    cell, count = np.tile([1, 0, 3], groups // 2), np.tile([3, 1, 5], groups // 2)
    seen = choose_leaning(4, start, cell, count, choice, 0, Seeded("in turn"))
    assert all(fit_choice(seen[place::2], choice, rows) > ALPHA for place, rows in enumerate(both))
    table = np.histogram2d(seen[0::2], seen[1::2], bins=4)[0]
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > ALPHA


def test_the_gate_hands_leaning_laws_to_this_sampler_and_takes_spans_apart() -> None:
    gate = Gate()
    groups = Groups(pa.table({}), 1, public=True)
    spans = Histograms(8, np.array([0, 1]), np.array([2]), np.array([5]), np.array([3]))
    for lean, cell in ((1, 4), (1000, 0)):
        choice = Choice(ROW, Fraction(1), Fraction(1000), 1, lean=lean)
        assert gate.release_numbers("q", spans, choice, groups).tolist() == [cell]


def test_what_is_no_leaning_law_is_not_drawn() -> None:
    one = np.array([0, 1]), np.array([1]), np.array([2])
    with pytest.raises(Fault):
        choose_leaning(4, *one, Choice(ROW, Fraction(1), Fraction(1), 2), 0, Seeded("plain"))
    with pytest.raises(Fault):
        choose_leaning(MOST_CELLS + 1, *one, law(CHOICE_MECHANISMS[0]), 0, Seeded("many"))
