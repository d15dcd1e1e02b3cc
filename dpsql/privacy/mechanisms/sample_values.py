"""Sample and aggregate (Nissim, Raskhodnikova and Smith 2007, section 4): a statistic without a known sensitivity, made private
by computing it on disjoint samples of units and choosing a quantile of the samples' values, or adding noise to their mean.

Why it is private. Units are split into B samples by a keyed hash of the unit's key (under row privacy, and above DISTINCT, rows
are split by a keyed hash of their content and of the number of equal rows before). So the sample of a row does not depend on
other units, and the rows of one unit are in one sample. In each group every sample has exactly one value, a cell of a grid that
follows from the bounds in the query: the value is a function of the rows of the sample alone, and a sample without a value has
the cell in the middle of the bounds. Hence a group's histogram has B entries whatever the data are.

An added or removed unit changes rows of its own sample, in each group g that it touches. So it replaces at most n_g entries of
the histogram of g, where n_g is 1 for each group that it touches (its rows there are in one sample), or the number of its rows
in g if each row may have a different sample. Replacing an entry removes one entry and adds one. By `exponential`, n added or
removed rows cost epsilon_0 n and the range epsilon_0 n, so n_g replaced entries cost as much as 2 n_g rows, and the vector of
2 n_g over all groups has twice the norms of the vector of n_g:

    epsilon = 2 epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum (2 n_g)^2.

The bound is tight: with an odd number of samples, half of them at each end, the middle one decides (tests reach the bound).
Under change_one the rows of a unit are removed first and other rows added then, in the same sample or another one: the triangle
inequality doubles all norms, as for counts (the factor is included in `Sensitivity`).

**The mean.** For the B values of a group, cells 0 to m, T = sum over samples of (cell - middle) is a sum of integers, to which
samples without a value add 0, because they have the cell in the middle. A replaced entry moves T by at most m, so a unit moves T
of group g by at most m n_g, and the vector of T over all groups has at most m times the norms of the vector of n_g. Additive
noise for these norms (`laplace`, `gaussian`) makes all T private, like any sum; (middle + noisy T / B), clamped to [0, m], is
post-processing, as B is public. (`Sensitivity` includes the factor of change_one here, too: a replaced unit changes the
samples of its old rows and those of its new ones.) Its noise is as large as m n_g / B, whatever the samples' values are.

A released median is near the median of the samples' values in rank (`Choice.rank_error`, in samples). How far that (or the
mean) is from the statistic over all rows together depends on the statistic and on the data: nothing is claimed about it.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Law, Noise, NumberPlan, Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.local_sensitivity import ends_that_follow
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan
from dpsql.storage.records import dataclass

SAMPLE_VALUES, SAMPLE_MEAN = "sample values", "sample mean"
"""The names of these kinds of measurement (`dpsql.plan.measurements`)."""
_QUARTER = 4


def entries_moved(touched: Sensitivity) -> Sensitivity:
    """Return the sensitivity of the histograms of samples, in added and removed entries; `touched`: of the vector of n_g."""
    return Sensitivity(touched.l0, 2 * touched.l1, 4 * touched.l2_squared, 2 * touched.linf)


def enough_samples(law: Choice, cells: int, missed: float) -> int:
    """Return a number of samples from which on the released value lies in the middle half of the samples' values, except with
    probability `missed`, whatever these values are."""
    return max(2, int(_QUARTER * law.rank_error(cells, missed)) + 1)


@dataclass(frozen=True)
class SampleValuesPlan(RankHistogramPlan):
    """The measurement of quantiles chosen among the values of `samples` samples in each group. A sample for which the engine has
    no value has the cell `middle`."""

    samples: int = 1
    middle: int = 0

    word = SAMPLE_VALUES


def sum_moved(touched: Sensitivity, steps: int) -> Sensitivity:
    """Return the sensitivity of the sums of the samples' cells, which go from 0 to `steps`; `touched`: of the vector of n_g."""
    return Sensitivity(touched.l0, steps * touched.l1, steps * steps * touched.l2_squared, steps * touched.linf)


def bar_steps(noise: Noise, confidence: Fraction) -> int:
    """Return the half width, in steps, of the error bar of a noisy sum of cells at `confidence`: one step more than that of the
    noise, because the sum is rounded down."""
    return ceil(noise.half_width(float(confidence))) + 1


@dataclass(frozen=True)
class NoisySampleMean:
    """The sum of (cell - middle) over the samples of each group with additive `noise`, for cells from 0 to `steps`.

    `sensitivity`: of the vector of n_g, the samples of a group that one unit touches.
    """

    sensitivity: Sensitivity
    steps: int
    noise: Noise

    def __post_init__(self) -> None:
        if self.noise.sensitivity != sum_moved(self.sensitivity, self.steps):
            raise ValueError("noise of another sensitivity")

    @property
    def mechanism(self) -> str:
        return self.noise.mechanism

    @property
    def epsilon_0(self) -> Fraction:
        """The inverse of the noise's standard deviation, by which two laws of one number are compared."""
        return 1 / Fraction(self.noise.standard_deviation())

    @property
    def loss(self) -> PrivacyLoss:
        return self.noise.loss

    def recomputed_loss(self) -> PrivacyLoss:
        return self.noise.recomputed_loss()


@dataclass(frozen=True)
class SampleMeanPlan(NumberPlan):
    """The measurement of the noisy sum of the cells of `samples` samples in each group, with both ends of its error bar, `width`
    steps away. `median`: the choice of the samples' median at the same price, for comparison."""

    law: NoisySampleMean
    samples: int
    middle: int
    width: int
    median: Choice | None = None

    word = SAMPLE_MEAN

    def __post_init__(self) -> None:
        if self.law.steps != self.cells - 1 or not 0 <= self.middle < self.cells or self.samples < 1 or self.width < 0:
            raise ValueError("a sum of other cells than those of its noise")

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        return (*super().laws, *ends_that_follow(self.name, self.law.sensitivity, self.width))

    @property
    def range(self) -> tuple[int, int]:
        return -self.middle * self.samples, (self.cells - 1 - self.middle) * self.samples
