"""What a bound would cost: the bias of what it takes away, estimated from noisy histograms, beside the noise it needs.

Everything here is post-processing of released histograms and of prices. The estimates are averages over the groups of the
answer: bias is how much of the sum all units lose, over the number of groups; noise is E|noise| of one group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsql.privacy.mechanisms.contract import Noise
from dpsql.tuning.histograms import Histogram, middle

CHANCE = 0.001
"""That noise alone makes any bin of a histogram look as if somebody were in it. A bin far out weighs as much as its edge, so
one that is noise moves every recommendation."""


def least_seen(noise: Noise, bins: int) -> float:
    """From how many noisy units on a bin of a histogram of `bins` is taken to have some."""
    return noise.half_width(1 - CHANCE / bins)


@dataclass(frozen=True)
class Seen:
    """A measured histogram. `units`: noisy numbers, 0 where they could be noise alone (below `least`); `deviation` of
    the noise of one bin."""

    histogram: Histogram
    units: tuple[float, ...]
    least: float
    deviation: float

    def total(self) -> float:
        """The sum over all units of what the histogram is about."""
        return self.beyond(0.0)

    def beyond(self, bound: float) -> float:
        """How much units have beyond `bound` each, all together."""
        return sum(n * over for n, over in zip(self.units, self._overs(bound), strict=True))

    def doubt(self, bound: float) -> float:
        """The standard deviation of `beyond`, as far as it comes from bins where somebody was seen."""
        overs = zip(self.units, self._overs(bound), strict=True)
        return self.deviation * math.sqrt(sum(over * over for n, over in overs if n))

    def people(self) -> float:
        """How many units there are."""
        return sum(self.units)

    def mean(self) -> float:
        """What one unit has on average; 0 where nobody is seen."""
        people = self.people()
        return self.total() / people if people else 0.0

    def largest(self) -> float:
        """The end of the last bin where somebody was seen; 0 where nobody was."""
        return max((float(edge) for n, edge in zip(self.units, self.histogram.edges, strict=True) if n), default=0.0)

    def unseen(self) -> float:
        """The most that as many units as a bin hides could have beyond the last bin where somebody was seen, all together."""
        return self.least * (float(self.histogram.edges[-1]) - self.largest())

    def _overs(self, bound: float) -> list[float]:
        return [max(0.0, middle(self.histogram, index) - bound) for index in range(len(self.units))]


@dataclass(frozen=True)
class Choice:
    """One value of a bound. `lost`: share of the sum that is lost; `bias` and `noise`: expected size in one group, in the
    unit of the answer; `doubt`: standard deviation of the estimate of the bias."""

    value: float
    lost: float
    bias: float
    noise: float
    doubt: float
    recommended: bool = False

    @property
    def together(self) -> float:
        """Bias and noise."""
        return self.bias + self.noise


@dataclass(frozen=True)
class ChoiceTable:
    """Choices for one bound. `setting`: its name in SQL or in the policy; `of`: the output it is about; `now`: the value
    that applies without a change; `why` tells why nothing is recommended."""

    setting: str
    of: str
    choices: tuple[Choice, ...]
    now: float | None
    why: str = ""

    @property
    def recommended(self) -> Choice | None:
        """The choice with the least expected error."""
        return next((choice for choice in self.choices if choice.recommended), None)


def choice(value: float, bound: float, seen: Seen, groups: float, unit: float, noise: float) -> Choice:
    """What it costs that each unit keeps at most `bound` of what `seen` counts; `unit`: what one of it adds to a sum."""
    total, beyond = seen.total(), seen.beyond(bound)
    lost = beyond / total if total else 0.0
    return Choice(value, lost, beyond * unit / groups, noise, seen.doubt(bound) * unit / groups)


def table(setting: str, of: str, choices: list[Choice], now: float | None, seen: Seen) -> ChoiceTable:
    """Marks the choice of the least expected error, unless noise drowns what it would rest on."""
    if seen.people() < 3 * seen.least:
        why = (
            f"noise drowns the histogram (a bin counts from {seen.least:.3g} privacy units): give it a larger --epsilon"
        )
        return ChoiceTable(setting, of, tuple(choices), now, why)
    best = min(range(len(choices)), key=lambda at: choices[at].together)
    if choices[best].doubt > choices[best].together:
        why = "noise drowns the estimate of the bias: give it a larger --epsilon"
        return ChoiceTable(setting, of, tuple(choices), now, why)
    marked = (replace(one, recommended=index == best) for index, one in enumerate(choices))
    return ChoiceTable(setting, of, tuple(marked), now)
