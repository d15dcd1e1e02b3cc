"""Sample and aggregate: exact laws of small histograms of samples' values, all their neighbours, and the charge."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import pyarrow as pa
import pytest

from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate, completed, released_sample_values
from dpsql.noise.rank_histograms import laid_out
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import SampleValues
from dpsql.plan.plan import Caps, Column, Term, TermKind
from dpsql.policy.types import ContributionBounds
from dpsql.pricing.sample_values import SampleValuesPricing
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import CHOICE_MECHANISMS, EXPONENTIAL, Choice, choice_for
from dpsql.privacy.mechanisms.rank_histogram import QuantileChoice, Search
from dpsql.privacy.mechanisms.sample_values import SampleValuesPlan, enough_samples, entries_moved
from dpsql_audit import choice_laws

CELLS = 5
MEDIAN = Fraction(1, 2)


def choice(groups: int = 1, epsilon: Fraction = Fraction(1)) -> Choice:
    """Return the median of samples, where a unit is in one sample of each of `groups` groups."""
    touched = Sensitivity(groups, groups, groups, 1)
    return choice_for(entries_moved(touched), MEDIAN, CELLS, PrivacyLoss(epsilon, Fraction(0), None))


def plan(samples: int, law: Choice | None = None) -> SampleValuesPlan:
    law = law or choice()
    return SampleValuesPlan(
        "h0", CELLS, (QuantileChoice("q", Search(MEDIAN, 0), law),), samples=samples, middle=CELLS // 2
    )


def histogram(cells: tuple[int, ...]) -> dict[int, int]:
    return {cell: cells.count(cell) for cell in set(cells)}


@pytest.mark.parametrize("mechanism", CHOICE_MECHANISMS)
@pytest.mark.parametrize("samples", [1, 2, 3, 6, 7])
def test_one_sample_with_another_value_is_as_hidden_as_is_charged_and_not_more(samples: int, mechanism: str) -> None:
    """All histograms of `samples` samples, and all replacements of one of their values."""
    law = replace(choice(), mechanism=mechanism)
    largest = widest = 0.0
    for cells in combinations_with_replacement(range(CELLS), samples):
        for changed in sorted(map(cells.index, set(cells))):
            for value in set(range(CELLS)) - {cells[changed]}:
                other = (*cells[:changed], *cells[changed + 1 :], value)
                ratios = choice_laws.log_ratios(law, CELLS, histogram(cells), histogram(other))
                largest = max(largest, *map(abs, ratios))
                widest = max(widest, max(ratios) - min(ratios))
    claimed = float(law.loss.epsilon or 0)
    assert claimed == 1
    assert largest <= claimed + 1e-11
    if mechanism == EXPONENTIAL:
        assert widest <= claimed + 1e-12
    assert widest >= 0.49 * claimed if samples == 1 else widest >= 0.999 * claimed, "what is charged is reached"


def test_a_unit_in_several_groups_pays_for_each_of_them() -> None:
    for groups in (1, 3):
        law = choice(groups)
        assert law.rate == Fraction(1, 2 * groups)
        assert law.loss.epsilon == 1 and law.loss == law.recomputed_loss()


def test_an_entry_that_is_replaced_is_one_that_goes_and_one_that_comes() -> None:
    assert entries_moved(Sensitivity(3, 5, 9, 2)) == Sensitivity(3, 10, 36, 4)


def groups(count: int) -> Groups:
    return Groups(pa.table({"k0": pa.array(range(count))}), count, True)


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(("k0", "cell", "rows"))})


def test_samples_without_a_value_are_in_the_middle_of_every_group() -> None:
    exact = laid_out(table([(0, 4, 2), (0, 0, 1), (2, 2, 5)]), CELLS, groups(4))
    whole = completed(exact, plan(5))
    assert whole.start.tolist() == [0, 3, 4, 5, 6]
    assert whole.cell.tolist() == [0, 2, 4, 2, 2, 2]
    assert whole.count.tolist() == [1, 2, 2, 5, 5, 5]


def distance(drawn: list[int], law: Choice, rows: dict[int, int]) -> float:
    """Return the largest distance between the empirical distribution of cells and the law."""
    parts = choice_laws.log_law(law, CELLS, rows, list(range(CELLS)))
    exact = [math.exp(part) for part in parts]
    through = [sum(drawn.count(cell) for cell in range(last + 1)) / len(drawn) for last in range(CELLS)]
    return max(abs(through[last] - sum(exact[: last + 1])) for last in range(CELLS))


DRAWS = 60_000
ALLOWED = math.sqrt(math.log(2 / 1e-9) / (2 * DRAWS))


@pytest.mark.statistical
def test_the_median_of_samples_is_drawn_with_the_epsilon_of_its_law_and_with_no_other() -> None:
    """Through the real gate: five samples, one of which has no value, in many groups."""
    law = choice(epsilon=Fraction(6))
    rows = [(group, cell, count) for group in range(DRAWS) for cell, count in ((0, 2), (4, 2))]
    numbers = released_sample_values(table(rows), plan(5, law), groups(DRAWS), Gate())["q"].tolist()
    exact = {0: 2, 2: 1, 4: 2}
    assert distance(numbers, law, exact) <= ALLOWED
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        assert distance(numbers, choice(epsilon=6 * factor), exact) > ALLOWED


def test_enough_samples_keep_the_rank_error_within_a_quarter_of_them() -> None:
    law = choice()
    enough = enough_samples(law, 32769, 0.05)
    assert law.rank_error(32769, 0.05) <= enough / 4 < law.rank_error(32769, 0.05) + 1


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("by_unit", "caps", "entries", "squares"),
    [
        (True, Caps(20, 1), 2, 4),
        (True, Caps(20, 4), 8, 16),
        (True, Caps(20, 2, ContributionBounds(max_groups=2)), 4, 8),
        (False, Caps(1, 1), 2, 4),
        (False, Caps(20, 4), 40, 1600),
    ],
)
def test_what_a_unit_moves_follows_from_whether_its_rows_are_in_one_sample(
    by_unit: bool, caps: Caps, entries: int, squares: int, neighbours: Neighbours
) -> None:
    column = Column("value", Facts(Type.REAL))
    term = Term("h0", TermKind.SUM, column, None, 4)
    measurement = SampleValues("h0", column, term, (), samples=7, by_unit=by_unit)
    factor = neighbours.factor
    moved = SampleValuesPricing().moved(measurement, caps, neighbours)
    assert (moved.l1, moved.l2_squared) == (entries * factor, squares * factor**2)
