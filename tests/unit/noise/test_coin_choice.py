"""The sampler of permute-and-flip has exactly its law: single coins, runs of coins, distant coins, and the choice among heads."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.noise_laws import ALPHA, Scripted, Seeded, fit_choice, tiled

from dpsql.errors.exceptions import Fault
from dpsql.noise import cell_choice
from dpsql.noise.cell_choice import choose, choose_in_spans, flipped
from dpsql.noise.noise_samplers import choose_most
from dpsql.noise.weighted_runs import ONE_BITS, Runs, exp_tables
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, PERMUTE_AND_FLIP, Choice
from dpsql.privacy.mechanisms.most_frequent import MostFrequent
from dpsql_audit.choice_laws import log_law

ROW = Sensitivity(1, 1, 1, 1)
HALF = Fraction(1, 2)
DRAWS = 100_000
ONES = (1 << 64) - 1


def choice(quantile: Fraction, epsilon: Fraction, mechanism: str = PERMUTE_AND_FLIP) -> Choice:
    return Choice(ROW, quantile, epsilon, 2 if quantile in (0, 1) else 0, mechanism=mechanism)


LAWS = [
    ([0, 0, 3, 0, 0, 1, 4, 0, 0, 0], HALF, HALF),
    ([5, 1, 0, 0, 0, 2], Fraction(1, 4), Fraction(1)),
    ([0] * 20 + [7] + [0] * 3 + [1, 1, 1, 1] + [0] * 40, Fraction(9, 10), Fraction(1, 3)),
    ([20, 0, 0, 0, 0, 0, 0, 30], Fraction(1, 3), Fraction(1, 10)),
    ([1, 1, 1, 1], Fraction(0), Fraction(1)),
    ([1, 1, 1, 1], Fraction(1), Fraction(1)),
    ([4] * 12, HALF, Fraction(1, 9)),
]


@pytest.mark.statistical
@pytest.mark.parametrize(("rows", "quantile", "epsilon"), LAWS)
def test_cells_have_their_chances_and_those_of_no_other_epsilon_or_mechanism(
    rows: list[int], quantile: Fraction, epsilon: Fraction
) -> None:
    law = choice(quantile, epsilon)
    drawn = choose(len(rows), *tiled(rows, DRAWS), law, 0, Seeded("coins"))
    assert fit_choice(drawn, law, rows) > ALPHA
    for share in (Fraction(7, 10), Fraction(13, 10)):
        assert fit_choice(drawn, choice(quantile, epsilon * share), rows) < 1e-12
    if len(rows) < 40 and rows[0] != 20:  # wide gaps make hardly any difference
        assert fit_choice(drawn, choice(quantile, epsilon, EXPONENTIAL), rows) < 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [[7, 7, 6, 5], [0, 0, 3, 0, 0, 1, 4, 0, 0, 0], [9, 0, 0, 2]], ids=str)
def test_most_frequent_values_have_their_chances_and_those_of_no_other_epsilon(rows: list[int]) -> None:
    law = MostFrequent(ROW, HALF, PERMUTE_AND_FLIP)
    drawn = choose_most(len(rows), *tiled(rows, DRAWS), law, 0, Seeded("modes"))
    assert fit_choice(drawn, law, rows) > ALPHA
    for share in (Fraction(7, 10), Fraction(13, 10)):
        assert fit_choice(drawn, MostFrequent(ROW, HALF * share, PERMUTE_AND_FLIP), rows) < 1e-12


@pytest.mark.statistical
def test_wide_gaps_have_their_share_whatever_is_drawn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rows on each side of 3,000 empty cells, whose runs of coins are read together; then in portions of one group."""
    rows = [0] * 700 + [3] + [0] * 900 + [2] + [0] * 3000 + [4]
    law = choice(Fraction(1, 5), HALF)
    edges = np.array([0, 700, 701, 1601, 1602, 4602, 4603])
    chances = np.exp(log_law(law, len(rows), {700: 3, 1601: 2, 4602: 4}, list(range(len(rows)))))
    expected = np.add.reduceat(chances, edges[:-1])
    for most, groups in ((1 << 21, 40_000), (1, 3_000)):
        monkeypatch.setattr(cell_choice, "_MOST_WORDS", most)
        drawn = choose(len(rows), *tiled(rows, groups), law, 0, Seeded("gaps"))
        seen = np.histogram(drawn, edges)[0]
        often = expected * groups >= 20
        assert stats.chisquare(seen[often], expected[often] / expected[often].sum() * seen[often].sum()).pvalue > ALPHA
        assert abs(drawn[(drawn > 1601) & (drawn < 4602)].mean() - 3101.5) < 6.5 * 3000 / math.sqrt(12 * seen[4])


@pytest.mark.statistical
def test_spans_have_the_law_of_their_cells() -> None:
    law = Choice(ROW, HALF, Fraction(1), slices=4, mechanism=PERMUTE_AND_FLIP)
    groups = 40_000
    first, width = np.tile([4, 12, 20], groups), np.tile([4, 4, 4], groups)
    count, start = np.tile([2, 1, 2], groups), np.arange(groups + 1) * 3
    rows = [0] * 4 + [2] * 4 + [0] * 4 + [1] * 4 + [0] * 4 + [2] * 4 + [0] * 4
    drawn = choose_in_spans(28, start, first, width, count, law, 0, Seeded("spans"))
    assert fit_choice(drawn, law, rows) > ALPHA
    assert fit_choice(drawn, Choice(ROW, HALF, Fraction(7, 10), slices=4, mechanism=PERMUTE_AND_FLIP), rows) < 1e-12


# --- coins -----------------------------------------------------------------------------------------------------------


def some_runs(distances: list[int], widths: list[int], rate: Fraction) -> Runs:
    tables = exp_tables(rate)
    distance, width = np.array(distances), np.array(widths)
    nothing = np.zeros(width.size, dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(width)[:-1]])
    value = tables.lower(distance)
    return Runs(nothing, first, width, value, value, distance, tables.error + 1, np.array([width.size]))


def heads(runs: Runs, rate: Fraction, source: Seeded | Scripted) -> np.ndarray:
    return cell_choice._heads(runs, slice(0, runs.width.size), rate, source)


def chance(rate: Fraction, distance: int) -> Decimal:
    """Return exp(-rate distance), to 120 digits."""
    with localcontext(Context(prec=120)):
        x = rate * distance
        return (-Decimal(x.numerator) / Decimal(x.denominator)).exp()


@pytest.mark.parametrize("rate", [HALF, Fraction(1, 7_000), Fraction(20), Fraction(1, 10**9)])
def test_single_coins_show_heads_below_their_chance(rate: Fraction) -> None:
    """The same words give the same heads as comparisons with 120 digits."""
    distances = [0, *range(1, min(exp_tables(rate).last, 3000) + 1)]
    again = np.frombuffer(Seeded("coins").read(8 * (len(distances) - 1)), dtype="<u8")
    found = heads(some_runs(distances, [1] * len(distances), rate), rate, Seeded("coins")).tolist()
    uniform = [Decimal(int(word) >> 2) / Decimal(1 << ONE_BITS) for word in again]
    assert found == [1, *(int(u < chance(rate, d)) for d, u in zip(distances[1:], uniform, strict=True))]


@pytest.mark.parametrize("width", [5, 64, 1000, 200_000])
def test_coins_of_a_run_are_read_together_and_decided_apart(width: int) -> None:
    """Coins whose words agree with the first bits of p remain undecided; any other bit decides as for a single coin."""
    rate, distance = Fraction(1, 3), 4
    exact = int(chance(rate, distance) * (1 << 32))
    source = Seeded(f"run {width}")
    runs = some_runs([distance], [width], rate)
    seen: list[int] = []

    class Reading:
        def read(self, size: int) -> bytes:
            seen.append(size)
            return source.read(size)

    (found,) = heads(runs, rate, Reading()).tolist()
    again, left, won = Seeded(f"run {width}"), width, 0
    for read, size in enumerate(seen):
        bits = np.frombuffer(again.read(size), dtype="<u8")
        if read == len(seen) - 1 and left <= 4:
            begins = [exact >> 32 - read << ONE_BITS - read | int(word) >> 2 + read for word in bits.tolist()]
            won += sum(Decimal(begin) < chance(rate, distance) * (1 << ONE_BITS) for begin in begins)
            assert len(begins) == left
            break
        ones = sum(int(word).bit_count() for word in bits[:-1].tolist())
        ones += (int(bits[-1]) >> -left % 64).bit_count()
        one = exact >> 31 - read & 1
        won, left = won + (left - ones if one else 0), ones if one else left - ones
    assert found == won


@pytest.mark.statistical
@pytest.mark.parametrize(("width", "distance"), [(6, 1), (64, 2), (65, 1), (1000, 3), (5000, 9)])
def test_a_run_has_a_binomial_number_of_heads(width: int, distance: int) -> None:
    rate, runs = Fraction(1, 2), 20_000
    found = heads(some_runs([distance] * runs, [width] * runs, rate), rate, Seeded(f"heads {width}"))
    for wrong, fits in ((1.0, True), (0.97, False), (1.03, False)):
        p = min(1.0, math.exp(-distance / 2) * wrong)
        law = stats.binom(width, p)
        edges = np.unique(law.ppf(np.linspace(0.02, 0.98, 25)))
        shares = np.diff(np.concatenate([[0], law.cdf(edges), [1]]))
        seen = np.bincount(np.searchsorted(edges, found), minlength=shares.size)
        share = shares * runs >= 20
        value = stats.chisquare(
            np.append(seen[share], seen[~share].sum() + 1e-9), np.append(shares[share], shares[~share].sum() + 1e-9 / runs) * runs,
            sum_check=False,
        ).pvalue  # fmt: skip
        assert value > ALPHA if fits else value < (1e-9 if width > 6 else 1e-4)


def test_bits_that_are_those_of_the_chance_are_read_further() -> None:
    """U agrees with p in its first bits: later bits decide, on both sides, and a remaining tie raises."""
    rate = Fraction(1, 3)
    runs = some_runs([2], [1], rate)
    with localcontext(Context(prec=120)):
        scaled = chance(rate, 2) * (1 << ONE_BITS)
        begin = int(scaled)
        further = int((scaled - begin) * (1 << 192))
    for rest, wanted in ((0, 1), (further - (1 << 20), 1), (further + (1 << 20), 0), ((1 << 192) - 1, 0)):
        script = Scripted([begin << 2, *(rest >> shift & ONES for shift in (128, 64, 0))])
        assert heads(runs, rate, script).tolist() == [wanted]
    with pytest.raises(Fault) as caught:
        heads(runs, rate, Scripted([begin << 2, *(further >> shift & ONES for shift in (128, 64, 0))]))
    assert caught.value.slug == "noise_guard" and caught.value.charged


def test_a_chance_that_is_hardly_below_a_power_of_two_has_its_own_first_bits() -> None:
    """exp(-d 10**-14) begins with as many ones as are read, and its enclosure reaches 1."""
    rate = Fraction(1, 10**14)
    runs = some_runs([1, 2, 3], [1, 1, 1], rate)
    assert cell_choice._prefixes(runs.value, runs.distance, 1 << 40, rate).tolist() == [(1 << 32) - 1] * 3


# --- coins that begin with 64 zeros --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 1 << 29])
def test_the_number_of_coins_that_begin_with_zeros_is_that_of_the_binomial_law(count: int) -> None:
    """The bounds: P(K >= k) exactly for a small count, and its leading term for a large one. The inversion of U: on both sides of
    them."""
    tiny = Fraction(1, 1 << 64)
    for k in range(1, min(count, 3) + 1):
        low, high = cell_choice._at_least(k, count)
        assert low <= high and high - low < Fraction(1, 1 << 256)
        if count <= 5:
            exact = sum(math.comb(count, j) * tiny**j * (1 - tiny) ** (count - j) for j in range(k, count + 1))
            assert low <= exact <= high
        else:
            assert 1 - Fraction(1, 1 << 30) < high / (math.comb(count, k) * tiny**k) < 1
        edge = math.floor((1 - high) * (1 << 256))
        assert cell_choice._number_of_zeros(count, edge - 2) == k - 1
        assert cell_choice._number_of_zeros(count, edge + 2) == k
    assert cell_choice._number_of_zeros(count, 0) == 0


def choose_far(words: list[int]) -> list[int]:
    """Return the cell chosen among 4, where all rows are in cell 1 and the other cells have probability exp(-90)."""
    law = Choice(ROW, HALF, Fraction(45), mechanism=PERMUTE_AND_FLIP)
    start, cell, count = np.array([0, 1]), np.array([1]), np.array([4])
    return choose(4, start, cell, count, law, 1, Scripted(words)).tolist()


def test_cells_far_away_are_chosen_as_seldom_as_they_should_be() -> None:
    """exp(-90) is 2**-129.8: after 64 zeros, a coin shows heads with another 65.8 zeros."""
    last = (ONES >> 28) << 28  # 1 - U is about 2**-100, so that one coin begins with zeros
    far = [ONES, last, 0, 0]
    assert choose_far([ONES - 4, 0, 0]) == [1], "no coin begins with zeros"
    third = ONES // 3
    for place, cell in ((0, 0), (third, 2), (2 * third, 3)):
        # the cell whose coin begins with zeros; the rest of its bits; which of the two with heads; which cell of its run
        assert choose_far([*far, place, 0, 0, 0, 3 << 62, 0]) == [cell]
        assert choose_far([*far, place, 0, 0, 0, 0, 0]) == [1], "the other one with heads"
        assert choose_far([*far, place, 0, 1 << 63, 0, 0, 0]) == [1], "no heads"
    with localcontext(Context(prec=120)):
        edge = int(chance(Fraction(45), 2) * Decimal(2) ** 256)
    for moved, cell in ((-(1 << 20), 0), (1 << 20, 1)):
        rest = [edge + moved >> shift & ONES for shift in (128, 64, 0)]
        assert choose_far([*far, 0, *rest, 3 << 62, 0]) == [cell]


def test_what_is_no_law_raises() -> None:
    start, cell, count = np.array([0, 1]), np.array([1]), np.array([4])

    class Odd:
        mechanism = "gumbel"
        rate = HALF

    with pytest.raises(Fault):
        choose_most(3, start, cell, count, Odd(), 0, Seeded("odd"))
    empty = np.array([], dtype=np.int64)
    without = Runs(empty, empty, empty, empty.view(np.uint64), empty.view(np.uint64), empty, 3, np.array([0]))
    with pytest.raises(Fault):
        flipped(3, without, lambda group: [], HALF, 1, Seeded("none"))


def test_a_group_reads_as_many_words_as_are_asked() -> None:
    source = Seeded("size")
    start, cell, count = tiled([1, 2, 3], 3)
    choose(3, start, cell, count, choice(HALF, Fraction(1)), 1024, source)
    assert source.sizes[1:] == [8 * 1024] * 3
