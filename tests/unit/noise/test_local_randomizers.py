"""Samplers of local randomizers follow their laws, and not those at 0.7 or 1.3 times the epsilon."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.effort import slow
from support.noise_laws import ALPHA, fit_counts

from dpsql.noise import local_randomizers
from dpsql.noise.local_randomizers import (
    below,
    draw_categories,
    draw_numbers,
    in_windows,
    padding_categories,
    padding_numbers,
    random_order,
    rounded_at_random,
)
from dpsql.noise.samplers import KernelRandomness
from dpsql.privacy.mechanisms.local_randomizers import CategoryLaw, NumberLaw

R = KernelRandomness()
DRAWS = 200_000
FACTORS = (Fraction(7, 10), Fraction(1), Fraction(13, 10))

pytestmark = pytest.mark.statistical


def sets_of(law: CategoryLaw, code: int, ratio: float) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return every set, and its probability if the row has `code`."""
    sets = list(itertools.combinations(range(law.size), law.subset))
    weights = np.array([ratio if code in chosen else 1.0 for chosen in sets])
    return sets, weights / weights.sum()


@pytest.fixture(params=["listed", "marked"])
def _sets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take sets from a list of all, or from marks in blocks of several thousand rows."""
    if request.param == "marked":
        monkeypatch.setattr(local_randomizers, "_LISTED_CELLS", 0)
        monkeypatch.setattr(local_randomizers, "_BLOCK_CELLS", 1 << 17)


@pytest.mark.parametrize("size", [2, slow(4), 7, slow(12)])
@pytest.mark.parametrize("factor", FACTORS, ids=float)
@pytest.mark.usefixtures("_sets")
def test_categories_follow_the_law_of_their_epsilon_alone(size: int, factor: Fraction) -> None:
    claimed = CategoryLaw.for_epsilon(Fraction(1), size)
    code = size - 2
    sets, chance = sets_of(claimed, code, float(np.exp(float(factor))))
    drawn = draw_categories(np.full(DRAWS, code), claimed, R).reshape(DRAWS, claimed.subset)
    numbers = {chosen: number for number, chosen in enumerate(sets)}
    observed = np.zeros(len(sets))
    for chosen, count in zip(*np.unique(drawn, axis=0, return_counts=True), strict=True):
        observed[numbers[tuple(chosen)]] = count
    assert (fit_counts(observed, chance) > ALPHA) == (factor == 1)


@pytest.mark.parametrize("code", [0, 40, 99])
def test_large_sets_have_every_other_value_equally_often_alone_and_in_pairs(code: int) -> None:
    law = CategoryLaw.for_epsilon(Fraction(1), 100)
    drawn = draw_categories(np.full(DRAWS // 4, code), law, R)
    assert drawn.shape == (DRAWS // 4, law.subset) == (DRAWS // 4, 27)
    assert (np.diff(drawn, axis=1) > 0).all() and drawn.min() >= 0 and drawn.max() < 100
    has = np.zeros((len(drawn), 100), dtype=np.float32)
    has[np.arange(len(drawn))[:, None], drawn] = 1
    own = has[:, code].mean()
    assert stats.binomtest(int(has[:, code].sum()), len(drawn), float(law.own_share)).pvalue > ALPHA
    others = np.delete(has, code, axis=1)
    # For uniform sets, the counts of values and of pairs have chi-square laws after scaling for the fixed set size.
    share = (law.subset - own) / 99
    deviations = others.sum(axis=0) - share * len(drawn)
    scaled = float((deviations**2).sum() / (share * (1 - share) * len(drawn)) * 98 / 99)
    assert ALPHA < stats.chi2.sf(scaled, 98) < 1 - ALPHA
    together = (others.T @ others)[np.triu_indices(99, 1)]
    expected = len(drawn) * (
        own * (law.subset - 1) * (law.subset - 2) + (1 - own) * law.subset * (law.subset - 1)
    ) / (99 * 98)  # fmt: skip
    assert np.abs(together - expected).max() < stats.norm.isf(ALPHA / together.size) * np.sqrt(expected)


def test_blocks_of_rows_are_drawn_each_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond the first block follow the law of their own value, and no two blocks are alike."""
    monkeypatch.setattr(local_randomizers, "_BLOCK_ROWS", 1_000)
    codes = np.arange(4_500) % 3
    drawn = draw_categories(codes, CategoryLaw.for_epsilon(Fraction(15), 3), R)
    assert (drawn != codes).sum() < 20
    uniform = draw_categories(codes, CategoryLaw.for_epsilon(Fraction(1, 100), 3), R)
    assert len({uniform[start : start + 1_000].tobytes() for start in range(0, 4_000, 1_000)}) == 4
    law = NumberLaw.for_epsilon(Fraction(15), False)
    outputs, interval = draw_numbers(np.arange(4_500) % 2, np.zeros(4_500, bool), 1, law, R)
    high = np.where(interval, outputs > law.places / 2, outputs == 1)
    assert (high != np.arange(4_500) % 2).sum() < 20


@pytest.mark.parametrize("factor", FACTORS, ids=float)
@pytest.mark.parametrize("missing", [False, True])
def test_numbers_follow_the_law_of_their_epsilon_alone(missing: bool, factor: Fraction) -> None:
    """Value 1 of 0 to 4 is exactly at place 1,024, and at the upper end once in four."""
    claimed, ratio = NumberLaw.for_epsilon(Fraction(1), missing), float(np.exp(float(factor)))
    outputs, interval = draw_numbers(np.full(DRAWS, 1), np.zeros(DRAWS, bool), 4, claimed, R)
    assert interval.mean() == pytest.approx(float(claimed.interval_share), abs=0.01)
    weights = np.ones(claimed.interval.inside + claimed.interval.outside)
    weights[1024 : 1024 + claimed.width] = ratio
    observed = np.bincount(outputs[interval], minlength=weights.size)
    cells = np.append(np.arange(0, weights.size, 50), weights.size)
    binned = np.array([(observed[a:b].sum(), weights[a:b].sum()) for a, b in itertools.pairwise(cells)])
    assert (fit_counts(binned[:, 0], binned[:, 1] / weights.sum()) > ALPHA) == (factor == 1)
    ends = np.ones(3 if missing else 2)
    ends[0] += 0.75 * (ratio - 1)
    ends[1] += 0.25 * (ratio - 1)
    assert (fit_counts(np.bincount(outputs[~interval], minlength=ends.size), ends / ends.sum()) > ALPHA) == (
        factor == 1
    )


def test_a_missing_number_has_a_window_of_its_own() -> None:
    law = NumberLaw.for_epsilon(Fraction(1), True)
    outputs, interval = draw_numbers(np.zeros(DRAWS, np.int64), np.ones(DRAWS, bool), 4, law, R)
    null = np.where(interval, outputs >= law.places, outputs == 2)
    expected = [float(Fraction(w.inside_weight * w.inside, w.total)) for w in (law.interval, law.ends)]
    for branch, share in ((interval, expected[0]), (~interval, expected[1])):
        assert null[branch].mean() == pytest.approx(share, abs=0.01)
    assert outputs.max() < law.interval.inside + law.interval.outside


@pytest.mark.parametrize("size", [2, 7])
@pytest.mark.usefixtures("_sets")
def test_padding_is_uniform_among_all_sets(size: int) -> None:
    law = CategoryLaw.for_epsilon(Fraction(1), size)
    drawn = padding_categories(DRAWS, law, R).reshape(DRAWS, law.subset)
    sets, _ = sets_of(law, 0, 1.0)
    _, observed = np.unique(drawn, axis=0, return_counts=True)
    assert observed.size == len(sets)
    assert fit_counts(observed, np.full(len(sets), 1 / len(sets))) > ALPHA


def test_padding_of_numbers_is_uniform_under_the_law_of_its_coin() -> None:
    law = NumberLaw.for_epsilon(Fraction(1), True)
    outputs, interval = padding_numbers(DRAWS, law, R)
    assert interval.mean() == pytest.approx(float(law.interval_share), abs=0.01)
    assert fit_counts(np.bincount(outputs[~interval], minlength=3), np.full(3, 1 / 3)) > ALPHA
    size = law.interval.inside + law.interval.outside
    observed = np.bincount(outputs[interval].astype(np.int64) * 64 // size, minlength=64)
    law_of_cells = np.bincount(np.arange(size) * 64 // size, minlength=64) / size
    assert fit_counts(observed, law_of_cells) > ALPHA


@pytest.mark.parametrize("bound", [2, 3, 200, 1000, 3 << 22, 3 << 40, 3 << 60])
def test_whole_numbers_below_a_bound_are_uniform(bound: int) -> None:
    drawn = below(DRAWS, bound, R)
    assert drawn.min() >= 0 and drawn.max() < bound
    cells = min(bound, 50)
    observed = np.bincount((drawn // -(-bound // cells)).astype(np.int64), minlength=cells)
    width = -(-bound // cells)
    law = np.array([max(0, min(bound, (cell + 1) * width) - cell * width) / bound for cell in range(cells)])
    assert fit_counts(observed, law) > ALPHA


def test_rounding_at_random_has_the_number_as_its_mean_and_meets_both_ends() -> None:
    drawn = rounded_at_random(np.full(DRAWS, 10), 30, 4, R)
    assert set(np.unique(drawn)) == {1, 2}
    assert fit_counts(np.bincount(drawn - 1), np.array([2 / 3, 1 / 3])) > ALPHA
    assert (rounded_at_random(np.array([0, 30]), 30, 4, R) == [0, 4]).all()
    assert rounded_at_random(np.array([(1 << 50) - 1]), (1 << 50) - 1, 4096, R)[0] == 4096


def test_windows_at_the_end_of_all_outputs_leave_none_out() -> None:
    law = NumberLaw.for_epsilon(Fraction(1), False)
    drawn = in_windows(np.full(DRAWS, law.places - law.width), law.interval, R)
    assert drawn.max() == law.places - 1 and drawn.min() < 10


@pytest.fixture(params=["in words", "beside words"])
def _places(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "beside words":
        monkeypatch.setattr(local_randomizers, "_PLACE_BITS", 0)


@pytest.mark.usefixtures("_places")
def test_every_order_is_equally_likely() -> None:
    orders = [tuple(random_order(3, R)) for _ in range(6_000)]
    observed = np.array([orders.count(order) for order in itertools.permutations(range(3))])
    assert fit_counts(observed, np.full(6, 1 / 6)) > ALPHA
    assert random_order(0, R).size == 0


@pytest.mark.usefixtures("_places")
def test_equal_words_are_drawn_again() -> None:
    """Otherwise the sort would order equal words, not chance."""

    class Twice:
        calls = 0

        def read(self, size: int) -> bytes:
            self.calls += 1
            return bytes(size) if self.calls == 1 else R.read(size)

    source = Twice()
    assert sorted(random_order(5, source)) == [0, 1, 2, 3, 4]
    assert source.calls == 2


@pytest.mark.parametrize("place", range(6))
def test_two_equal_words_are_seen_wherever_a_block_ends(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven words, which are compared in blocks of two, those at `place` and after it are equal."""
    monkeypatch.setattr(local_randomizers, "_BLOCK_ROWS", 2)

    class PairFirst:
        calls = 0

        def read(self, size: int) -> bytes:
            self.calls += 1
            drawn = np.arange(7, dtype="<u8") << 40
            drawn[place + 1] = drawn[place] if self.calls == 1 else drawn[place + 1]
            return drawn.tobytes()

    source = PairFirst()
    assert random_order(7, source).tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert source.calls == 2
