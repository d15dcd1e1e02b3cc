"""The mean of samples with additive noise: how far one unit moves it, its law through the real gate, and its error bar."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from dpsql.noise.group_layout import Groups
from dpsql.noise.perturb import Gate, released_sample_mean, sample_sums
from dpsql.noise.rank_histograms import laid_out
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import SampleMean
from dpsql.plan.plan import Caps, Column, Term, TermKind
from dpsql.policy.types import ContributionBounds
from dpsql.pricing.sample_values import SampleMeanPricing
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.gaussian import Gaussian
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.local_sensitivity import ends_of
from dpsql.privacy.mechanisms.sample_values import NoisySampleMean, SampleMeanPlan, sum_moved

CELLS, MIDDLE = 5, 2
ONE = PrivacyLoss(Fraction(1), Fraction(0), None)
RHO = PrivacyLoss(None, Fraction(0), Fraction(1, 2))
COLUMN = Column("value", Facts(Type.REAL, Fraction(0), Fraction(1)))


def measurement(by_unit: bool = True, mechanism: str = "auto", confidence: str = "0.95") -> SampleMean:
    term = Term("s0", TermKind.SUM, COLUMN, None, CELLS - 1)
    return SampleMean("s0", COLUMN, term, 6, by_unit, Fraction(confidence), mechanism)


def plan(part: PrivacyLoss = ONE, caps: Caps = Caps(1, 1), **changed: object) -> SampleMeanPlan:  # noqa: B008
    asked = measurement(**changed)  # type: ignore[arg-type]
    return SampleMeanPricing().planned(asked, caps, part, Neighbours.ADD_REMOVE)


def groups(count: int) -> Groups:
    return Groups(pa.table({"k0": pa.array(range(count))}), count, True)


def table(rows: list[tuple[int, int, int]]) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(("k0", "cell", "rows"))})


def summed(values: tuple[int | None, ...]) -> int:
    """Return the exact sum of one group, in which each sample has a cell or nothing."""
    cells = [value for value in values if value is not None]
    rows = [(0, cell, cells.count(cell)) for cell in sorted(set(cells))]
    empty = pa.table({name: pa.array([], pa.int64()) for name in ("k0", "cell", "rows")})
    (total,) = sample_sums(laid_out(table(rows) if rows else empty, CELLS, groups(1)), plan()).tolist()
    return int(total)


def test_one_sample_moves_the_sum_by_what_is_claimed_and_not_more() -> None:
    """All values of three samples, and all replacements of one of them, including none."""
    possible, largest = (*range(CELLS), None), 0
    for values in product(possible, repeat=3):
        for other in possible:
            largest = max(largest, abs(summed(values) - summed((*values[:2], other))))
    assert largest == plan().law.noise.sensitivity.l1 == CELLS - 1


def test_samples_without_a_value_count_as_the_middle() -> None:
    assert summed((None, None, None)) == 0 == summed((MIDDLE, None, MIDDLE))
    assert summed((CELLS - 1, 0, CELLS - 1)) == CELLS - 1 - MIDDLE


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize(
    ("by_unit", "caps", "entries", "squares"),
    [
        (True, Caps(20, 1), 1, 1),
        (True, Caps(20, 4), 4, 4),
        (True, Caps(20, 2, ContributionBounds(max_groups=2)), 2, 2),
        (False, Caps(1, 1), 1, 1),
        (False, Caps(20, 4), 20, 400),
    ],
)
def test_what_a_unit_moves_follows_from_whether_its_rows_are_in_one_sample(
    by_unit: bool, caps: Caps, entries: int, squares: int, neighbours: Neighbours
) -> None:
    law = SampleMeanPricing().planned(measurement(by_unit), caps, ONE, neighbours).law
    factor, steps = neighbours.factor, CELLS - 1
    moved = law.noise.sensitivity
    assert (moved.l1, moved.l2_squared) == (entries * factor * steps, squares * factor**2 * steps**2)
    assert law.loss == law.recomputed_loss() and law.loss.epsilon == 1


def test_noise_of_another_sensitivity_is_no_law() -> None:
    touched = Sensitivity(1, 1, 1, 1)
    noise = laplace.noise_for(Sensitivity(1, 2, 4, 2), Fraction(1))
    with pytest.raises(ValueError, match="another sensitivity"):
        NoisySampleMean(touched, 4, noise)
    with pytest.raises(ValueError, match="other cells"):
        SampleMeanPlan("s0", 9, plan().law, 6, 2, 1)
    assert sum_moved(Sensitivity(3, 5, 9, 2), 7) == Sensitivity(3, 35, 441, 14)


def test_the_mechanism_is_the_one_that_is_asked_for_or_the_better_one() -> None:
    assert isinstance(plan(ONE).law.noise, Laplace) and isinstance(plan(ONE, mechanism="gaussian").law.noise, Laplace)
    assert isinstance(plan(RHO, mechanism="laplace").law.noise, Laplace)
    assert isinstance(plan(RHO, mechanism="gaussian").law.noise, Gaussian)
    several = {word: plan(RHO, Caps(20, 9), mechanism=word).law.noise for word in ("auto", "laplace", "gaussian")}
    assert several["auto"] == min((several["laplace"], several["gaussian"]), key=lambda noise: noise.expected_error())
    assert all(law.loss.rho is not None and law.loss.rho <= Fraction(1, 2) for law in several.values())


DRAWS = 60_000
ALLOWED = math.sqrt(math.log(2 / 1e-9) / (2 * DRAWS))


def distance(drawn: np.ndarray, law: Laplace, exact: int, within: tuple[int, int]) -> float:
    """Return the largest distance between the empirical distribution and a discrete Laplace law around `exact`, cut to
    `within`."""
    rate, largest = float(1 / law.noise_scale), 0.0
    for number in range(within[0], within[1]):
        steps = number - exact
        tail = math.exp(-rate * (abs(steps) if steps < 0 else steps + 1)) / (1 + math.exp(-rate))
        through = tail if steps < 0 else 1 - tail
        largest = max(largest, abs(float((drawn <= number).mean()) - through))
    return largest


@pytest.mark.statistical
def test_the_mean_has_the_noise_of_its_law_and_no_other() -> None:
    """Through the real gate: six samples, two of which have no value, in many groups."""
    asked = plan()
    rows = [(group, cell, count) for group in range(DRAWS) for cell, count in ((0, 1), (4, 3))]
    numbers = released_sample_mean(table(rows), asked, groups(DRAWS), Gate())["s0"]
    noise = asked.law.noise
    assert isinstance(noise, Laplace) and noise.noise_scale == 4
    assert distance(numbers, noise, 4, asked.range) <= ALLOWED
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        other = laplace.noise_for(noise.sensitivity, 1 / factor)
        assert isinstance(other, Laplace)
        assert distance(numbers, other, 4, asked.range) > ALLOWED


@pytest.mark.statistical
@pytest.mark.parametrize("part", [ONE, RHO], ids=["pure", "zcdp"])
@pytest.mark.parametrize("confidence", ["0.5", "0.95"])
def test_bars_hold_as_often_as_they_say(part: PrivacyLoss, confidence: str) -> None:
    """Relative to the exact sum; a bar is at most one step and the rounding of its half width too wide."""
    asked = plan(part, confidence=confidence)
    rows = [(group, cell, count) for group in range(DRAWS) for cell, count in ((1, 3), (3, 2))]
    numbers = released_sample_mean(table(rows), asked, groups(DRAWS), Gate())
    low, high = (numbers[name] for name in ends_of("s0"))
    exact = 3 * (1 - MIDDLE) + 2 * (3 - MIDDLE)
    held = float(((low <= exact) & (exact <= high)).mean())
    assert held >= float(confidence) - ALLOWED
    least, most = asked.range
    assert (numbers["s0"] >= least).all() and (numbers["s0"] <= most).all()
    assert asked.width <= math.ceil(asked.law.noise.half_width(float(confidence))) + 1
