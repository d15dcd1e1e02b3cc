"""Sample and aggregate (Nissim, Raskhodnikova and Smith 2007, section 4): a statistic without a known sensitivity, made private
by computing it on disjoint samples of units and choosing a quantile of the samples' values.

Why it is private. Units are split into B samples by a keyed hash of the unit's key (under row privacy, and above DISTINCT, rows
by one of their content and of how many equal rows came before). So the sample of a row does not depend on other units, and the
rows of one unit are in one sample. In each group every sample has exactly one value, a cell of a grid that follows from the
bounds in the question: the value is a function of the rows of the sample alone, and a sample without a value has the cell in the
middle of the bounds. Hence a group's histogram has B entries whatever the data are.

A unit that comes or goes changes rows of its own sample, in each group g that it touches. So it replaces at most n_g entries of
the histogram of g, where n_g is 1 for each group that it touches (its rows there are in one sample), and the number of its rows
in g where each row has a sample of its own. An entry that is replaced is one that goes and one that comes. By `exponential`, n
rows that come or go cost epsilon_0 n and the range epsilon_0 n, so n_g replaced entries cost as much as 2 n_g rows, and the
vector of 2 n_g over all groups has twice the norms of the vector of n_g:

    epsilon = 2 epsilon_0 sum n_g,    rho = epsilon_0^2 / 8 sum (2 n_g)^2.

It is not less: of an odd number of samples half of which lie at each end, the middle one decides (tests reach the bound). Under
change_one the rows of a unit are taken away first and others are put in then, in the same sample or another one: the triangle
inequality doubles all norms, as for counts (the factor is inside `Sensitivity`).

What is released is near the median of the samples' values in rank (`Choice.rank_error`, in samples). How far that is from the
statistic of all rows together depends on the statistic and on data, and nothing is claimed about it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.rank_histogram import RankHistogramPlan

SAMPLE_VALUES = "sample values"
"""The word of the measurement (`dpsql.plan.measurements`)."""
_QUARTER = 4


def entries_moved(touched: Sensitivity) -> Sensitivity:
    """Return how many entries of all histograms of samples come or go, `touched` being the sensitivity of the vector of n_g."""
    return Sensitivity(touched.l0, 2 * touched.l1, 4 * touched.l2_squared, 2 * touched.linf)


def enough_samples(law: Choice, cells: int, missed: float) -> int:
    """The number of samples from which on the released value lies, but for a probability `missed`, among the middle half of the
    samples' values, whatever these are."""
    return max(2, int(_QUARTER * law.rank_error(cells, missed)) + 1)


@dataclass(frozen=True)
class SampleValuesPlan(RankHistogramPlan):
    """The quantiles that are chosen among the values of `samples` samples of each group. A sample that the engine has no value of
    has the cell `middle`."""

    samples: int = 1
    middle: int = 0

    word = SAMPLE_VALUES
