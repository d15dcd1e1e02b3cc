"""The expected error for each value of a contribution bound: bias, estimated from noisy histograms, and noise.

Everything here is post-processing of released histograms and of prices. The estimates are averages over the groups of the answer:
bias is the part of the sum that all units lose, divided by the number of groups; noise is E|noise| of one group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsql.privacy.mechanisms.contract import Noise
from dpsql.tuning.histograms import Histogram, middle

CHANCE = 0.001
"""Probability that noise alone lifts any empty bin of a histogram above `least_count`. A bin far out weighs as much as its edge,
so an empty one that is taken for a filled one would move every recommendation."""


HALF_WIDTH = 2.12
"""Half width of a 95 % error bar in standard deviations: that of Laplace noise, which is larger than those of Gaussian noise
(1.96) and of sums."""


def least_count(noise: Noise, bins: int) -> float:
    """Return the noisy count from which on a bin, in a histogram of `bins` bins, is considered not empty."""
    return noise.half_width(1 - CHANCE / bins)


@dataclass(frozen=True)
class NoisyHistogram:
    """A measured histogram. `units`: noisy counts of units, set to 0 below `least`, because those could be noise alone;
    `deviation`: the standard deviation of the noise of one bin."""

    histogram: Histogram
    units: tuple[float, ...]
    least: float
    deviation: float

    def total(self) -> float:
        """Return the sum over all units of the quantity that the histogram counts."""
        return self.beyond(0.0)

    def beyond(self, bound: float) -> float:
        """Return the sum over all units of the part beyond `bound`."""
        return sum(n * over for n, over in zip(self.units, self._overs(bound), strict=True))

    def units_above(self, bound: float) -> float:
        """Return the estimated number of units above `bound`, for units log-uniform over each bin."""
        edges = [float(edge) for edge in self.histogram.edges]
        lows = [edges[0] / 2, *edges[:-1]]
        parts = (_part_above(low, high, bound) for low, high in zip(lows, edges, strict=True))
        return sum(n * part for n, part in zip(self.units, parts, strict=True) if n)

    def with_hidden(self) -> NoisyHistogram:
        """Return the histogram with `least` units in the bin after the last one that is not empty: as many as noise can hide
        there."""
        last = max((place for place, n in enumerate(self.units) if n), default=-1) + 1
        if last == len(self.units):
            return self
        return replace(self, units=(*self.units[:last], self.least, *self.units[last + 1 :]))

    def doubt(self, bound: float) -> float:
        """Return the standard deviation of `beyond` that comes from bins that are not empty."""
        overs = zip(self.units, self._overs(bound), strict=True)
        return self.deviation * math.sqrt(sum(over * over for n, over in overs if n))

    def margin(self, bound: float) -> float:
        """Return the half width within which `beyond` is known (95 %), if no unit has more than twice `largest`.

        A bin that is not empty errs by its noise; one considered empty may hide `least` units. Errors of bins are independent, so
        their squares add up.
        """
        near = 2 * self.largest()
        bins = zip(self.units, self._overs(bound), self.histogram.edges, strict=True)
        widths = ((HALF_WIDTH * self.deviation if n else self.least) * over for n, over, edge in bins if edge <= near)
        return math.sqrt(sum(width * width for width in widths))

    def people(self) -> float:
        """Return the estimated number of units."""
        return sum(self.units)

    def mean(self) -> float:
        """Return the mean of one unit; 0 if every bin is empty."""
        people = self.people()
        return self.total() / people if people else 0.0

    def largest(self) -> float:
        """Return the upper edge of the last bin that is not empty; 0 if every bin is empty."""
        return max((float(edge) for n, edge in zip(self.units, self.histogram.edges, strict=True) if n), default=0.0)

    def unseen(self) -> float:
        """Return the largest sum beyond the last bin that is not empty of the `least` units that one bin can hide."""
        return self.least * (float(self.histogram.edges[-1]) - self.largest())

    def _overs(self, bound: float) -> list[float]:
        return [max(0.0, middle(self.histogram, index) - bound) for index in range(len(self.units))]


def _part_above(low: float, high: float, bound: float) -> float:
    """Return the share of a log-uniform distribution from `low` to `high` that is above a bound."""
    if bound <= low:
        return 1.0
    return 0.0 if bound >= high else math.log(high / bound) / math.log(high / low)


@dataclass(frozen=True)
class BoundChoice:
    """One value of a bound. `lost`: share of the sum that is lost; `bias` and `noise`: their expected sizes in one group, in the
    unit of the answer; `doubt`: standard deviation of the estimated bias, from bins that are not empty; `margin`: half width
    within which the bias is known (95 %)."""

    value: float
    lost: float
    bias: float
    noise: float
    doubt: float
    margin: float
    recommended: bool = False

    @property
    def together(self) -> float:
        """The expected error: bias plus noise."""
        return self.bias + self.noise


@dataclass(frozen=True)
class ChoiceTable:
    """Choices for one bound. `setting`: its name in SQL or in the policy; `of`: the output that it bounds; `now`: the value in
    force (None: not known here); `why`: the reason if nothing is recommended."""

    setting: str
    of: str
    choices: tuple[BoundChoice, ...]
    now: float | None
    why: str = ""

    @property
    def recommended(self) -> BoundChoice | None:
        """The choice with the least expected error, None if nothing is recommended."""
        return next((choice for choice in self.choices if choice.recommended), None)


def expected_error(
    value: float, bound: float, measured: NoisyHistogram, groups: float, unit: float, noise: float
) -> BoundChoice:
    """Return the errors if each unit keeps at most `bound` of the quantity in `measured`; `unit`: what one unit of that quantity
    adds to a sum."""
    total, beyond = measured.total(), measured.beyond(bound)
    lost = beyond / total if total else 0.0
    doubt, margin = measured.doubt(bound) * unit / groups, measured.margin(bound) * unit / groups
    return BoundChoice(value, lost, beyond * unit / groups, noise, doubt, margin)


def marked_table(
    setting: str, output: str, choices: list[BoundChoice], now: float | None, measured: NoisyHistogram
) -> ChoiceTable:
    """Return the choices with the one of the least expected error marked as recommended, unless noise drowns the histogram."""
    if measured.people() < 3 * measured.least:
        why = f"noise drowns the histogram (a bin counts from {measured.least:.3g} privacy units): give it a larger --epsilon"
        return ChoiceTable(setting, output, tuple(choices), now, why)
    best = min(range(len(choices)), key=lambda number: choices[number].together)
    if choices[best].doubt > choices[best].together:
        why = "noise drowns the estimate of the bias: give it a larger --epsilon"
        return ChoiceTable(setting, output, tuple(choices), now, why)
    marked = (replace(entry, recommended=index == best) for index, entry in enumerate(choices))
    return ChoiceTable(setting, output, tuple(marked), now)
