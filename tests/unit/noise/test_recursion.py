"""Several quantiles of one histogram, chosen recursively: their joint law costs what is charged, and repeated values distort
none."""

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from support.gates import NoiselessGate
from support.noise_laws import Seeded

from dpsql.noise import cell_choice
from dpsql.noise.cell_choice import choose, choose_in_spans
from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms, between, laid_out, released_quantiles, sliced
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Law, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice, choice_for
from dpsql.privacy.mechanisms.rank_histogram import QuantileChoice, RankHistogramPlan, Search, recursion, split
from dpsql_audit.choice_laws import log_law

NOBODY = Groups(pa.table({}), 1, True)
DECILES = [Fraction(tenth, 10) for tenth in range(1, 10)]
QUARTERS = [Fraction(quarter, 4) for quarter in range(5)]


def plan(
    quantiles: list[Fraction],
    cells: int,
    epsilon: Fraction = Fraction(1),
    slices: int = 1,
    searches: list[Search] | None = None,
    moved: int = 1,
) -> RankHistogramPlan:
    """Return a plan of the quantiles; `epsilon` is that of one level."""
    rows = Sensitivity(1, moved, moved**2, moved)
    part = PrivacyLoss(epsilon, Fraction(0), None)
    chosen = [
        QuantileChoice(f"q{search.quantile}", search, choice_for(rows, search.relative, cells, part, slices))
        for search in (recursion(quantiles) if searches is None else searches)
    ]
    return RankHistogramPlan("h0", cells, tuple(chosen), slices)


def table(rows: list[int]) -> pa.Table:
    """Return the engine's answer for one group, from the rows in every cell."""
    there = [(cell, count) for cell, count in enumerate(rows) if count]
    return pa.table({
        "cell": pa.array([cell for cell, _ in there], pa.int64()), "rows": pa.array([count for _, count in there], pa.int64())
    })  # fmt: skip


class ChosenGate(Gate):
    """A gate that returns the test's places, and records the inspected histograms and the laws."""

    def __init__(self, places: dict[str, int]) -> None:
        super().__init__()
        self.places = places
        self.seen: dict[str, tuple[Choice, Histograms]] = {}

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        assert isinstance(law, Choice)
        self.seen[name] = (law, histograms.taken_apart())
        return np.array([self.places[name]])


def log_probabilities(stated: RankHistogramPlan, rows: list[int]) -> dict[tuple[int, ...], float]:
    """Return the log probability of every sequence of places that the gate may return, from the definition of each choice."""
    ordered = sorted(stated.quantiles, key=lambda one: one.search.level)
    size = stated.cells * stated.slices
    found: dict[tuple[int, ...], float] = {(): 0.0}
    for one in ordered:
        longer = {}
        for places, before in found.items():
            answers = {other.name: 0 for other in ordered} | {
                other.name: place for other, place in zip(ordered, places, strict=False)
            }
            gate = ChosenGate(answers)
            released_quantiles(table(rows), stated, NOBODY, gate)
            law, seen = gate.seen[one.name]
            counts = dict(zip(seen.cell.tolist(), seen.count.tolist(), strict=True))
            for place, log in enumerate(log_law(law, size, counts, list(range(size)))):
                longer[*places, place] = before + log
        found = longer
    return found


def neighbours(seed: int, cells: int) -> Iterator[tuple[list[int], list[int], int]]:
    """Yield rows by cell with and without those of one unit, and its number of rows."""
    generator = np.random.default_rng(seed)
    for _ in range(6):
        rows = generator.integers(0, 4, cells) * generator.integers(0, 2, cells)
        unit = int(generator.integers(1, 3))
        more = np.bincount(generator.integers(0, cells, unit), minlength=cells)
        yield rows.tolist(), (rows + more).tolist(), unit
    yield [0] * cells, [1] + [0] * (cells - 1), 1
    yield [6] + [0] * (cells - 1), [7] + [0] * (cells - 1), 1
    yield [0] * (cells - 1) + [6], [1] + [0] * (cells - 2) + [6], 1


@pytest.mark.parametrize(
    ("quantiles", "cells", "slices"),
    [
        ([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], 4, 1),
        ([Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)], 2, 3),
        ([Fraction(0), Fraction(1, 2), Fraction(1)], 3, 2),
        ([Fraction(1, 10), Fraction(1, 5), Fraction(9, 10)], 3, 2),
    ],
)
def test_all_places_together_are_as_private_as_the_levels_that_are_charged(
    quantiles: list[Fraction], cells: int, slices: int
) -> None:
    """Every sequence of places, for histograms with and without a unit of one or two rows: the log ratio of the joint
    probabilities is within the sum over levels, and some pair comes near that sum."""
    nearest = 0.0
    for without, with_unit, unit in neighbours(7, cells):
        stated = plan(quantiles, cells, slices=slices, moved=unit)
        charged = sum((law.loss.epsilon or Fraction(0) for law in stated.charged), Fraction(0))
        assert len(stated.charged) == 2 and charged == 2
        first, second = log_probabilities(stated, without), log_probabilities(stated, with_unit)
        assert math.isclose(math.fsum(map(math.exp, first.values())), 1) and first.keys() == second.keys()
        ratio = max(abs(first[places] - second[places]) for places in first)
        assert ratio <= charged + Fraction(1, 10**9)
        nearest = max(nearest, ratio / float(charged))
    assert nearest > 0.4


def test_a_level_costs_what_one_choice_costs_and_levels_add_up() -> None:
    for count, levels in ((1, 1), (2, 2), (3, 2), (4, 3), (7, 3), (8, 4), (9, 4), (100, 7)):
        searches = recursion([Fraction(place, count + 1) for place in range(1, count + 1)])
        assert 1 + max(search.level for search in searches) == levels and len(searches) == count
    nine = plan(DECILES, 10, Fraction(1, 4), slices=4)
    assert [law.loss for law in nine.charged] == [law.recomputed_loss() for law in nine.charged]
    assert sum((law.loss.epsilon or 0) for law in nine.charged) == 1


def test_the_two_ends_part_nothing_off_while_others_are_to_be_chosen() -> None:
    found = recursion(QUARTERS)
    assert {search.quantile: search.level for search in found} == {
        Fraction(1, 2): 0, Fraction(1, 4): 1, Fraction(3, 4): 1, Fraction(0): 2, Fraction(1): 2,
    }  # fmt: skip
    assert [search.relative for search in found if search.quantile in (0, 1)] == [0, 1]


@pytest.mark.parametrize(
    "searches",
    [
        [Search(DECILES[0], 0), Search(DECILES[1], 0)],
        [Search(DECILES[4], 0), Search(DECILES[0], 1, None, DECILES[4]), Search(DECILES[1], 1, None, DECILES[4])],
        [Search(DECILES[4], 0), Search(DECILES[0], 1, None, DECILES[4]), Search(DECILES[8], 1)],
        [Search(DECILES[4], 0), Search(DECILES[0], 1), Search(DECILES[8], 1, DECILES[4], None)],
    ],
    ids=["two of all rows", "two of the same part", "one of all rows, above", "one of all rows, below"],
)
def test_two_choices_of_one_level_never_look_at_the_same_rows(searches: list[Search]) -> None:
    with pytest.raises(ValueError, match="same rows"):
        plan([], 10, searches=searches)


def test_no_law_of_another_quantile_or_another_size_of_rows_is_taken() -> None:
    (one,) = plan([DECILES[0]], 10).quantiles
    for search, slices in ((Search(DECILES[1], 0), 1), (Search(DECILES[0], 0), 2)):
        with pytest.raises(ValueError, match="another"):
            RankHistogramPlan("h0", 10, (QuantileChoice("q", search, one.law),), slices)


def random_spans(seed: int) -> Histograms:
    """Return three groups with many, few and no rows."""
    generator = np.random.default_rng(seed)
    sizes = [40, 3, 0]
    cell = np.concatenate([np.sort(generator.choice(60, size, replace=False)) for size in sizes]).astype(np.int64)
    count = generator.integers(1, 30, cell.size) * generator.integers(1, 9, cell.size)
    return sliced(Histograms(60, np.concatenate([[0], np.cumsum(sizes)]), cell, count), 16)


@pytest.mark.parametrize("epsilon", [Fraction(1, 50), Fraction(1, 2), Fraction(20)], ids=str)
@pytest.mark.parametrize("quantile", [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(1)], ids=str)
def test_spans_are_chosen_from_as_their_cells_are(
    quantile: Fraction, epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same random bits choose the same cell, so both have one law, in portions and in one piece."""
    law = choice_for(Sensitivity(1, 1, 1, 1), quantile, 60, PrivacyLoss(epsilon, Fraction(0), None), 16)
    low, high = np.array([100, 0, 0]), np.array([901, 960, 960])
    for seed in range(30):
        spans = between(random_spans(seed), low, high)
        apart = spans.taken_apart()
        assert spans.width is not None and apart.width is None
        expected = choose(apart.cells, apart.start, apart.cell, apart.count, law, 3, Seeded(seed))
        rows = (spans.cells, spans.start, spans.cell, spans.width, spans.count)
        assert choose_in_spans(*rows, law, 3, Seeded(seed)).tolist() == expected.tolist()
        one = Histograms(spans.cells, spans.start[:2], spans.cell[: spans.start[1]], spans.count, spans.width)
        first = choose_in_spans(
            one.cells,
            one.start,
            one.cell,
            spans.width[: spans.start[1]],
            spans.count[: spans.start[1]],
            law,
            1,
            Seeded(seed),
        )
        with monkeypatch.context() as patched:
            patched.setattr(cell_choice, "_MOST_TAKEN_APART", 1)
            assert choose_in_spans(*rows, law, 3, Seeded(seed)).size == 3
            alone = (one.cells, one.start, one.cell, spans.width[: spans.start[1]], spans.count[: spans.start[1]])
            assert choose_in_spans(*alone, law, 1, Seeded(seed)).tolist() == first.tolist()


def test_the_runs_of_doubt_are_those_of_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the first bits decide nothing, all cells of all spans are examined."""
    law = choice_for(Sensitivity(1, 1, 1, 1), Fraction(1, 2), 60, PrivacyLoss(Fraction(1), Fraction(0), None), 16)
    spans = random_spans(3)
    apart = spans.taken_apart()
    assert spans.width is not None
    seen = []
    real = cell_choice.CHOOSERS[law.mechanism]

    def noting(cells, runs, runs_of, rate, draws, randomness):  # type: ignore[no-untyped-def]
        seen.append([runs_of(group) for group in range(runs.end.size)])
        return real(cells, runs, runs_of, rate, draws, randomness)

    monkeypatch.setitem(cell_choice.CHOOSERS, law.mechanism, noting)
    choose(apart.cells, apart.start, apart.cell, apart.count, law, 3, Seeded(1))
    choose_in_spans(spans.cells, spans.start, spans.cell, spans.width, spans.count, law, 3, Seeded(1))
    assert seen[0] == seen[1] and len(seen[0][0]) > 600


def test_equal_values_bend_no_other_quantile() -> None:
    """Of 1,000 rows, 400 have one value, around the median: without noise, other deciles are off by at most one of its 16 slices,
    and by many more rows if cells are not sliced."""
    rows = [10] * 30 + [400] + [10] * 30
    through = np.cumsum(rows)

    def farthest(slices: int) -> float:
        found = released_quantiles(table(rows), plan(DECILES, len(rows), slices=slices), NOBODY, NoiselessGate())
        cells = [(int(found[f"q{tenth}"][0]), float(tenth) * sum(rows)) for tenth in DECILES]
        return max(max(0.0, through[cell] - rows[cell] - rank, rank - through[cell]) for cell, rank in cells)

    assert farthest(16) <= 400 / 16 and farthest(1) > 80


def test_rows_between_two_places_are_those_of_the_cells_there() -> None:
    histograms = sliced(laid_out(table([0, 2, 0, 5]), 4, NOBODY), 4)
    part = between(histograms, np.array([6]), np.array([14])).taken_apart()
    assert dict(zip(part.cell.tolist(), part.count.tolist(), strict=True)) == {6: 2, 7: 2, 12: 5, 13: 5}
    assert between(histograms, np.array([9]), np.array([9])).cell.size == 0


@pytest.mark.statistical
def test_deciles_are_nearer_together_than_apart() -> None:
    """5,000 rows in 2**12 cells at epsilon 0.1: the mean rank error is less than 0.6 times that of separate choices."""
    generator = np.random.default_rng(11)
    values = np.clip(np.exp(generator.normal(0, 1, 5_000)) * 200, 0, 4095).astype(int)
    rows = np.bincount(values, minlength=4096)
    through, size = np.cumsum(rows), rows.size

    def error(stated: RankHistogramPlan, seed: int) -> float:
        found = released_quantiles(table(rows.tolist()), stated, NOBODY, Gate(Seeded(seed)))
        errors = []
        for tenth in DECILES:
            cell, wanted = int(found[f"q{tenth}"][0]), float(tenth) * 5_000
            errors.append(max(0.0, through[cell] - rows[cell] - wanted, wanted - through[cell]))
        return float(np.mean(errors))

    together = plan(DECILES, size, Fraction(1, 40), 16)
    apart = plan([], size, Fraction(1, 90), searches=split(DECILES))
    assert np.mean([error(together, seed) for seed in range(40)]) < 0.6 * np.mean(
        [error(apart, seed) for seed in range(40)]
    )
