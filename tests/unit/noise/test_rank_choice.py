"""The choice of a cell near a quantile has exactly the law of the exponential mechanism, for any histogram."""

import itertools
import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from support.noise_laws import ALPHA, Scripted, Seeded, fit_cells, fit_choice, laid_out, tiled

from dpsql.errors.exceptions import Fault
from dpsql.noise import cell_choice, weighted_runs
from dpsql.noise.cell_choice import choose, exact_runs
from dpsql.noise.samplers import KernelRandomness
from dpsql.noise.weighted_runs import EXACT_BITS, ONE_BITS, exp_bounds, exp_tables, product
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, Choice

HALF = Fraction(1, 2)
QUANTILES = [
    HALF, Fraction(1, 4), Fraction(9, 10), Fraction(0), Fraction(1), Fraction(1, 3), Fraction(123_457, 999_983),
]  # fmt: skip
RATES = [Fraction(1, 2), Fraction(1), Fraction(7, 100), Fraction(20), Fraction(1, 3)]
Histogram = list[int]


@dataclass(frozen=True)
class Near:
    """The quantile q of each group."""

    quantile: Fraction
    rate: Fraction
    mechanism: str = EXPONENTIAL

    @property
    def denominator(self) -> int:
        return self.quantile.denominator

    def targets(self, rows: np.ndarray) -> np.ndarray:
        return rows // self.denominator * self.denominator * self.quantile.numerator + (
            rows % self.denominator * self.quantile.numerator
        )


def distances(rows: Histogram, quantile: Fraction) -> list[Fraction]:
    """Return d(c) of every cell, by definition."""
    n, found = sum(rows), []
    for c in range(len(rows)):
        below, above = sum(rows[:c]), sum(rows[c + 1 :])
        found.append(max(Fraction(0), below - quantile * n, above - (1 - quantile) * n))
    return found


def law(rows: Histogram, quantile: Fraction, rate: Fraction) -> list[Decimal]:
    """Return P(c) of every cell, to 120 digits."""
    with localcontext(Context(prec=120)):
        weights = []
        for distance in distances(rows, quantile):
            x = rate * distance
            weights.append((-Decimal(x.numerator) / Decimal(x.denominator)).exp())
        total = sum(weights)
        return [weight / total for weight in weights]


def drawn(rows: Histogram, quantile: Fraction, rate: Fraction, size: int) -> np.ndarray:
    return choose(len(rows), *tiled(rows, size), Near(quantile, rate), size, KernelRandomness())


LAWS = [
    ([0, 0, 3, 0, 0, 1, 4, 0, 0, 0], HALF, Fraction(1, 2)),
    ([5, 1, 0, 0, 0, 2], Fraction(1, 4), Fraction(1)),
    ([0] * 20 + [7] + [0] * 3 + [1, 1, 1, 1] + [0] * 40, Fraction(9, 10), Fraction(1, 3)),
    ([20, 0, 0, 0, 0, 0, 0, 30], Fraction(1, 3), Fraction(1, 10)),
    ([1, 1, 1, 1], Fraction(0), Fraction(1)),
    ([1, 1, 1, 1], Fraction(1), Fraction(1)),
    ([4] * 12, HALF, Fraction(1, 9)),
]


@pytest.mark.parametrize(("rows", "quantile", "rate"), LAWS)
def test_cells_have_their_chances_and_those_of_no_other_epsilon(
    rows: Histogram, quantile: Fraction, rate: Fraction
) -> None:
    found = drawn(rows, quantile, rate, 200_000)
    assert fit_cells(found, law(rows, quantile, rate)) > ALPHA
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert fit_cells(found, law(rows, quantile, rate * wrong)) < 1e-12


def test_an_empty_group_has_the_uniform_law() -> None:
    start, cell, count = laid_out([[0] * 7] * 70_000)
    found = choose(7, start, cell, count, Near(HALF, Fraction(1)), 0, KernelRandomness())
    assert fit_cells(found, [Decimal(1) / 7] * 7) > ALPHA


def test_groups_are_chosen_independently_each_from_its_own_histogram() -> None:
    rows = [[9, 0, 0, 0], [0, 0, 0, 9], [0, 0, 0, 0], [0, 5, 5, 0]]
    start, cell, count = laid_out(rows * 20_000)
    found = choose(4, start, cell, count, Near(HALF, Fraction(1, 2)), 0, KernelRandomness()).reshape(-1, 4)
    for group, histogram in enumerate(rows):
        assert fit_cells(found[:, group], law(histogram, HALF, Fraction(1, 2))) > ALPHA
    for one, other in itertools.combinations(range(4), 2):
        correlation = np.corrcoef(found[:, one], found[:, other])[0, 1]
        assert abs(correlation) * math.sqrt(20_000) < 6.5
    assert abs(np.corrcoef(found[1:, 3], found[:-1, 3])[0, 1]) * math.sqrt(20_000) < 6.5


def some_histograms(count: int, seed: int) -> list[Histogram]:
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        cells = 40
        rows = draw.integers(0, 30, cells) * (draw.random(cells) < draw.choice([0.05, 0.3, 1.0]))
        found.append([int(n) for n in rows])
    return found


def decided(rows: Histogram, quantile: Fraction, rate: Fraction, u: Fraction) -> tuple[int, int]:
    """Return the first cell and the width of the run that U = `u` chooses, from sums with 120 digits."""
    chances = law(rows, quantile, rate)
    with localcontext(Context(prec=120)):
        total, place = Decimal(0), Decimal(u.numerator) / Decimal(u.denominator)
        for first, width, _ in all_runs(rows, quantile):
            total += sum(chances[first : first + width], Decimal(0))
            if place < total:
                return first, width
    raise AssertionError("U is below 1")


def all_runs(rows: Histogram, quantile: Fraction) -> list[tuple[int, int, int]]:
    places, counts = [c for c, n in enumerate(rows) if n], [n for n in rows if n]
    return exact_runs(len(rows), places, counts, sum(rows) * quantile.numerator, quantile.denominator)


def near_runs(start: np.ndarray, cell: np.ndarray, count: np.ndarray, law: Near) -> weighted_runs.Runs:
    through = np.concatenate([[0], np.cumsum(count)])
    return cell_choice._near_runs(40, start, cell, through, law.targets(np.diff(through[start])), law)


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("rate", RATES)
def test_choices_are_those_of_120_digits(quantile: Fraction, rate: Fraction) -> None:
    """The same words lead to the same cell; a sum or a distance that is off by a part in 2**40 would not."""
    histograms = some_histograms(60, 3)
    start, cell, count = laid_out(histograms)
    source, again = Seeded("choices"), Seeded("choices")
    found = choose(40, start, cell, count, Near(quantile, rate), len(histograms), source)
    begins, places = (np.frombuffer(again.read(8 * len(histograms)), dtype="<u8") for _ in range(2))
    assert len(source.sizes) == 2, "the first bits decide"
    for group, rows in enumerate(histograms):
        u = Fraction(int(begins[group]) >> 2, 1 << ONE_BITS)
        first, width = decided(rows, quantile, rate, u)
        assert found[group] == first + int(places[group]) // ((1 << 64) // width)


@pytest.mark.parametrize(("rows", "quantile", "rate"), LAWS)
def test_bits_that_end_at_a_boundary_are_read_further(rows: Histogram, quantile: Fraction, rate: Fraction) -> None:
    """U agrees with the boundary between two runs in its first bits: later bits decide, on both sides."""
    start, cell, count = laid_out([rows])
    chances = law(rows, quantile, rate)
    runs = all_runs(rows, quantile)
    tested = 0
    for one, other in itertools.pairwise(runs):
        with localcontext(Context(prec=120)):
            boundary = sum(chances[: other[0]], Decimal(0))
            begin = int(boundary * (1 << ONE_BITS))
            rest = boundary * (1 << ONE_BITS) - begin
            if not Decimal("0.01") < rest < Decimal("0.99"):
                continue
            middle = int(rest * (1 << 64))
        for second, wanted in ((0, one), (middle - 1, one), (middle + 1, other), ((1 << 64) - 1, other)):
            source = Scripted([begin << 2, second, 0, 0, 0])
            found = choose(len(rows), start, cell, count, Near(quantile, rate), 1, source)
            assert found[0] == wanted[0]
            tested += 1
    assert tested or len(runs) < 3


def test_what_all_bits_leave_open_raises() -> None:
    """U is as near to a boundary as its bits can express."""
    start, cell, count = laid_out([[0, 3, 0]])
    chances = law([0, 3, 0], HALF, Fraction(1))
    with localcontext(Context(prec=120)):
        exact = int(chances[0] * (1 << (ONE_BITS + 192)))
    pieces = [exact >> 192 << 2, *((exact >> shift) & (1 << 64) - 1 for shift in (128, 64, 0))]
    with pytest.raises(Fault) as caught:
        choose(3, start, cell, count, Near(HALF, Fraction(1)), 1, Scripted([*pieces, 0]))
    assert caught.value.slug == "noise_guard" and caught.value.charged


@pytest.mark.parametrize("quantile", QUANTILES)
def test_runs_cover_all_cells_with_their_distances(quantile: Fraction) -> None:
    for rows in [*some_histograms(20, 5), [0] * 5, [1], [0, 2], [2, 0], [1, 1, 1]]:
        wanted = distances(rows, quantile)
        seen = []
        for first, width, distance in all_runs(rows, quantile):
            assert width > 0 and all(wanted[c] * quantile.denominator == distance for c in range(first, first + width))
            seen += range(first, first + width)
        assert seen == list(range(len(rows)))


@pytest.mark.parametrize("quantile", QUANTILES)
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(60), Fraction(1, 1000)])
def test_near_runs_have_lower_bounds_of_their_weights(quantile: Fraction, rate: Fraction) -> None:
    histograms = [[n * 7 for n in rows] for rows in some_histograms(25, 9)]
    start, cell, count = laid_out(histograms)
    runs = near_runs(start, cell, count, Near(quantile, rate))
    unit = Fraction(1 << (40).bit_length() + 1, 1 << ONE_BITS)
    for group, rows in enumerate(histograms):
        told = {
            int(runs.first[i]): (int(runs.width[i]), int(runs.weight[i])) for i in (runs.group == group).nonzero()[0]
        }
        left_out = Fraction(0)
        for first, width, distance in all_runs(rows, quantile):
            low, high = exp_bounds(rate / quantile.denominator, [distance])[0]
            weights = [Fraction(width * bound, 1 << EXACT_BITS) / unit for bound in (low, high)]
            if first in told:
                assert (
                    told[first][0] == width
                    and told[first][1] <= weights[0]
                    and weights[1] < told[first][1] + runs.error
                )
            else:
                left_out += weights[1]
        assert left_out < 1


def test_large_ranks_do_not_wrap() -> None:
    """With 2**42 rows and a quantile of six decimals, the cell that contains the quantile is chosen."""
    n, quantile = 1 << 42, Fraction(666_667, 10**6)
    start, cell, count = laid_out([[n // 4, n // 4, 0, n // 4, n // 4]] * 50)
    assert (choose(5, start, cell, count, Near(quantile, Fraction(1)), 0, KernelRandomness()) == 3).all()
    start, cell, count = laid_out([[1 << 60, 1 << 60, 1 << 60]])
    assert choose(3, start, cell, count, Near(HALF, Fraction(1, 10**6)), 0, KernelRandomness()) == [1]


def test_targets_that_are_no_ranks_raise() -> None:
    for wrong in (-1, 4):

        class Beyond(Near):
            def targets(self, rows: np.ndarray) -> np.ndarray:
                return rows * 0 + wrong * self.denominator  # noqa: B023

        start, cell, count = laid_out([[1, 2, 0]])
        with pytest.raises(Fault):
            choose(3, start, cell, count, Beyond(HALF, Fraction(1)), 0, KernelRandomness())


def test_a_median_is_less_than_a_row_off_on_average() -> None:
    """500 rows of a bell curve over 2**14 cells at epsilon 1: the error is 0.9 rows on average; with twice the sensitivity it
    would be 2."""
    draw = np.random.default_rng(2)
    errors = []
    for _ in range(30):
        values = np.clip(draw.normal(8192, 1500, 500), 0, (1 << 14) - 1).astype(np.int64)
        cell, count = np.unique(values, return_counts=True)
        many = np.arange(101) * cell.size
        found = choose(
            1 << 14, many, np.tile(cell, 100), np.tile(count, 100), Near(HALF, Fraction(1)), 100, KernelRandomness()
        )
        below, through = np.searchsorted(np.sort(values), found), np.searchsorted(np.sort(values), found, side="right")
        errors.append(np.maximum(0, np.maximum(below - 250, 250 - through)).mean())
    assert 0.5 < np.mean(errors) < 1.3


def test_at_a_huge_epsilon_the_cell_holds_the_quantile() -> None:
    for rows in [rows for rows in some_histograms(40, 11) if sum(rows)]:
        start, cell, count = laid_out([rows])
        for quantile in QUANTILES:
            (found,) = choose(40, start, cell, count, Near(quantile, Fraction(10**6)), 0, KernelRandomness())
            assert distances(rows, quantile)[found] == 0


def test_no_group_reads_as_many_words_as_are_asked() -> None:
    for groups in (1, 3):
        source = Seeded("size")
        start, cell, count = laid_out([[1, 2, 3]] * groups)
        choose(3, start, cell, count, Near(HALF, Fraction(1)), 1024, source)
        assert source.sizes == [8 * 1024, 8 * 1024]
    assert choose(3, np.zeros(1, dtype=np.int64), cell[:0], count[:0], Near(HALF, Fraction(1)), 8, source).size == 0


@pytest.mark.parametrize(
    ("cells", "start", "cell", "count", "quantile", "rate"),
    [
        (3, [0, 1], [3], [1], HALF, 1),
        (3, [0, 2], [2, 1], [1, 1], HALF, 1),
        (3, [0, 2], [1, 1], [1, 1], HALF, 1),
        (3, [0, 1], [1], [4], Fraction(3, 2), 1),
        (3, [0, 1], [1], [4], Fraction(-1, 2), 1),
        (3, [0, 0], [], [], Fraction(1, (1 << 20) + 1), 1),
        (3, [0, 0], [], [], HALF, 0),
        (3, [0, 0], [], [], HALF, Fraction(1, 1 << 70)),
    ],
)
def test_what_is_no_histogram_or_no_quantile_raises(
    cells: int, start: list[int], cell: list[int], count: list[int], quantile: Fraction, rate: Fraction
) -> None:
    arrays = (np.array(numbers, dtype=np.int64) for numbers in (start, cell, count))
    with pytest.raises(Fault) as caught:
        choose(cells, *arrays, Near(quantile, Fraction(rate)), 0, KernelRandomness())
    assert caught.value.slug == "noise_guard" and caught.value.charged


# --- exp in integers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rate", [Fraction(1, 2), Fraction(1, 7_000), Fraction(100), Fraction(3, 10**8), Fraction(1, 10**14)]
)
def test_exp_is_enclosed_by_the_table_and_its_error(rate: Fraction) -> None:
    tables, draw = exp_tables(rate), np.random.default_rng(1)
    places = [0, 1, tables.last, tables.last - 1, *draw.integers(0, tables.last + 1, 200).tolist()]
    places = sorted({place for place in places if 0 <= place <= tables.last})
    told = tables.lower(np.array(places))
    assert told[0] == 1 << ONE_BITS
    with localcontext(Context(prec=120)):
        for place, lower, (low, high) in zip(places, told.tolist(), exp_bounds(rate, places), strict=True):
            exact = (-Decimal((rate * place).numerator) / Decimal((rate * place).denominator)).exp()
            assert lower <= exact * (1 << ONE_BITS) <= lower + tables.error
            assert low <= exact * (1 << EXACT_BITS) <= high and high - low <= 3
        beyond = (
            -Decimal((rate * (tables.last + 1)).numerator) / Decimal((rate * (tables.last + 1)).denominator)
        ).exp()
        assert beyond < Decimal(2) ** -64
    ((low, high),) = exp_bounds(rate, [10**30])
    assert low == 0 < high <= 1


def test_products_are_floors_of_exact_products() -> None:
    draw = np.random.default_rng(4)
    one = 1 << ONE_BITS
    values = [0, 1, one, one - 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, *draw.integers(0, one, 50).tolist()]
    for x in values:
        found = product(np.full(len(values), x, dtype=np.uint64), np.array(values, dtype=np.uint64)).tolist()
        assert found == [x * y >> ONE_BITS for y in values]


# --- the priced law is the drawn law ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quantile", "rank"), [(HALF, 0), (Fraction(1, 10), 0), (Fraction(0), 2), (Fraction(1), 1), (Fraction(0), 30)]
)
def test_priced_choices_are_drawn_at_their_own_epsilon_and_at_no_other(quantile: Fraction, rank: int) -> None:
    rows = [0, 4, 9, 0, 0, 6, 2, 0, 3]
    priced = Choice(Sensitivity(1, 1, 1, 1), quantile, Fraction(1), rank)
    found = choose(9, *tiled(rows, 100_000), priced, 0, KernelRandomness())
    for share, fits in ((Fraction(1), True), (Fraction(7, 10), False), (Fraction(13, 10), False)):
        p = fit_choice(found, replace(priced, epsilon_0=share), rows)
        assert p > ALPHA if fits else p < 1e-9
