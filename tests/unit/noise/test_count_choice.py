"""The choice of a frequent cell has exactly the law of the exponential mechanism over counts, for any histogram."""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.noise_laws import ALPHA, Scripted, Seeded, fit_cells, laid_out, tiled

from dpsql.noise.group_layout import Groups
from dpsql.noise.noise_samplers import choose_most, end_keys, exact_runs
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.noise.samplers import KernelRandomness
from dpsql.noise.weighted_runs import ONE_BITS
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL
from dpsql.privacy.mechanisms.most_frequent import EndKey

Histogram = list[int]
DRAWS = 200_000
HISTOGRAMS = [
    ([0, 0, 3, 0, 0, 1, 4, 0, 0, 0], Fraction(1, 2)),
    ([5, 1, 0, 0, 0, 2], Fraction(1, 3)),
    ([7, 7, 6, 5], Fraction(1)),
    ([1_000_003, 1_000_000, 999_999], Fraction(1, 2)),
    ([0, 2], Fraction(1)),
]


@dataclass(frozen=True)
class Counted:
    """A choice among counts."""

    rate: Fraction
    mechanism: str = EXPONENTIAL


def chances(rows: Histogram, rate: Fraction) -> list[Decimal]:
    """Return exp(rate h(c)) divided by the sum over all cells, to 120 digits."""
    with localcontext(Context(prec=120)):
        scale = Decimal(rate.numerator) / Decimal(rate.denominator)
        weights = [(scale * (n - max(rows))).exp() for n in rows]
        total = sum(weights)
        return [weight / total for weight in weights]


@pytest.mark.parametrize(("rows", "rate"), HISTOGRAMS)
def test_cells_have_their_chances_and_those_of_no_other_epsilon(rows: Histogram, rate: Fraction) -> None:
    drawn = choose_most(len(rows), *tiled(rows, DRAWS), Counted(rate), DRAWS, KernelRandomness())
    assert fit_cells(drawn, chances(rows, rate)) > ALPHA
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert fit_cells(drawn, chances(rows, rate * wrong)) < 1e-12


def test_an_empty_group_has_the_uniform_law_and_equal_counts_have_equal_chances() -> None:
    start, cell, count = laid_out([[0] * 7, [4, 0, 4]] * 40_000)
    drawn = choose_most(7, start, cell, count, Counted(Fraction(20)), 0, KernelRandomness()).reshape(-1, 2)
    assert fit_cells(drawn[:, 0], [Decimal(1) / 7] * 7) > ALPHA
    assert fit_cells(drawn[:, 1] // 2, [Decimal(1) / 2] * 2) > ALPHA and set(drawn[:, 1].tolist()) == {0, 2}
    assert abs(np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]) * math.sqrt(40_000) < 6.5


@pytest.mark.parametrize("last", [True, False])
def test_keys_of_rows_at_an_end_have_their_chances_and_those_of_no_other_epsilon(last: bool) -> None:
    """Six values of three keys: among the 7 rows at each end, rows of a boundary cell count in part."""
    rows = [2, 0, 1, 0, 3, 4, 0, 0, 90, 0, 5, 0, 0, 1, 2, 0, 0, 1]
    law = EndKey(Sensitivity(1, 1, 1, 1), Fraction(1), 3, 7, last)
    # Cells 17, 14, 13 and then 3 of the 5 rows in cell 10; cells 0, 2, 4 and then 1 of the 4 rows in cell 5.
    at_end = [0, 1 + 3, 2 + 1] if last else [2, 3, 1 + 1]
    histograms = Histograms(len(rows), *tiled(rows, DRAWS))
    groups = Groups(pa.table({"k0": pa.array(range(DRAWS))}), DRAWS, True)
    drawn = Gate().release_numbers("e0", histograms, law, groups)
    assert fit_cells(drawn, chances(at_end, Fraction(1, 2))) > ALPHA
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert fit_cells(drawn, chances(at_end, Fraction(1, 2) * wrong)) < 1e-12


def test_groups_with_fewer_rows_than_are_chosen_from_and_with_none_have_their_own_keys() -> None:
    start, cell, count = laid_out([[0] * 6, [0, 3, 0, 1, 0, 0], [0, 0, 9, 0, 8, 0], [0] * 6])
    law = EndKey(Sensitivity(1, 1, 1, 1), Fraction(1), 2, 10, True)
    starts, keys, rows = end_keys(start, cell, count, law)
    assert (starts.tolist(), keys.tolist(), rows.tolist()) == ([0, 0, 1, 2, 2], [1, 0], [4, 10])


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(7, 100), Fraction(20)])
def test_choices_are_those_of_120_digits(rate: Fraction) -> None:
    """The same words lead to the same cell; a weight that is off by a part in 2**40 would not."""
    draw = np.random.default_rng(5)
    histograms = [
        (draw.integers(0, 30, 40) * (draw.random(40) < draw.choice([0.05, 0.3, 1.0]))).tolist() for _ in range(60)
    ]
    start, cell, count = laid_out(histograms)
    again = Seeded("modes")
    drawn = choose_most(40, start, cell, count, Counted(rate), len(histograms), Seeded("modes"))
    begins, places = (np.frombuffer(again.read(8 * len(histograms)), dtype="<u8") for _ in range(2))
    for group, rows in enumerate(histograms):
        law = chances(rows, rate)
        with localcontext(Context(prec=120)):
            reached, u = Decimal(0), Decimal(int(begins[group]) >> 2) / Decimal(1 << ONE_BITS)
            for first, width, _ in exact_runs(40, [c for c, n in enumerate(rows) if n], [n for n in rows if n]):
                reached += sum(law[first : first + width], Decimal(0))
                if u < reached:
                    break
        assert drawn[group] == first + int(places[group]) // ((1 << 64) // width)


def test_bits_that_end_at_a_boundary_are_read_further() -> None:
    """U agrees with the boundary between two cells in its first bits: later bits decide, on both sides."""
    rows, rate = [3, 1, 2], Fraction(1, 3)
    start, cell, count = laid_out([rows])
    with localcontext(Context(prec=120)):
        boundary = chances(rows, rate)[0] * (1 << ONE_BITS)
        begin = int(boundary)
        middle = int((boundary - begin) * (1 << 64))
    for second, wanted in ((0, 0), (middle - 1, 0), (middle + 1, 1), ((1 << 64) - 1, 1)):
        source = Scripted([begin << 2, second, 0, 0, 0])
        assert choose_most(3, start, cell, count, Counted(rate), 1, source).tolist() == [wanted]
