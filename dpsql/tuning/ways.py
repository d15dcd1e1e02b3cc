"""Comparison of ways of bounding what a unit adds to a SUM: the policy's bound alone, a `max_total` from the histogram of totals,
or `max_total = auto`, which chooses a bound for each question with a part of its price.

Everything is computed from the released histogram of totals and from prices. For `auto` the law of the choice is known: given the
number of units above each cell, according to the histogram, each cell has a probability (`privacy.mechanisms.exponential`), a
bias and a noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.plan import Term, TermKind, TotalCut
from dpsql.planning.planner import Planned
from dpsql.pricing.expected_error import expected_error
from dpsql.pricing.total_cuts import EMPTY_CELLS, cut_at, is_share, last_cell, units_above
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.permute_and_flip import EXPONENTIAL
from dpsql.tuning.choices import BoundChoice, ChoiceTable, NoisyHistogram

POLICY, NUMBER, AUTO = "policy", "number", "auto"
_LIKELY = 0.95
_NODES = 256
"""Number of nodes of the integral for permute-and-flip."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """One way of bounding a sum. `name`: POLICY, NUMBER or AUTO; `bound`: what a unit may add in total (for AUTO the median of
    the chosen bound); `lost`, `bias`, `noise`: as in `BoundChoice` (for AUTO the means over the choice); `hidden`: bias plus
    noise if the next bin of the histogram holds as many units as noise can hide there."""

    name: str
    bound: float
    lost: float
    bias: float
    noise: float
    hidden: float
    recommended: bool = False

    @property
    def together(self) -> float:
        """The expected error: bias plus noise."""
        return self.bias + self.noise


@dataclass(frozen=True)
class WayTable:
    """The ways of bounding the sum `output`. `enough`: the number of units with values from which on AUTO follows the values,
    except with probability 5 %, whatever they are; with fewer units the bound may be the policy's own. `why`: the reason if no
    way is recommended."""

    output: str
    ways: tuple[Way, ...]
    enough: int
    why: str = ""

    @property
    def recommended(self) -> Way | None:
        """The way with the least expected error even if units are hidden, None if no way is recommended."""
        return next((candidate for candidate in self.ways if candidate.recommended), None)


class ChosenBounds:
    """The effect of `max_total = auto` on one sum of a question that is planned with it."""

    def __init__(self, planned: Planned, cut: TotalCut, groups: float, spread: float) -> None:
        """Take a question and one of its sums. `groups`: the number of groups of the answer; `spread`: that of an average
        unit."""
        by_name = {priced.block.name: priced for priced in planned.price.blocks}
        ((_, law),) = by_name[cut.block].noise.measurements[0].laws
        assert isinstance(law, Choice)
        reading = by_name[cut.readers[0]]
        noises = {noise.name: noise for noise in reading.noise.terms}
        term = next(term for term in reading.block.terms if term.kind is TermKind.SUM and is_share(term, cut))
        self.law, self.groups, self.wide = law, groups, total_of_norm(term, spread)
        self.error = expected_error(term, noises[term.name])
        self.ends = np.array([cut_at(cut, cell) for cell in range(last_cell(cut) + 1)])
        self.enough = units_above(cut, law, 0, 1 - _LIKELY)

    def expected(self, measured: NoisyHistogram) -> Way:
        """Return the way AUTO, for the units in a measured histogram."""
        chances, hidden = self._chances(measured), measured.with_hidden()
        order, total = np.argsort(self.ends), measured.total()
        median = self.ends[order][int(np.searchsorted(np.cumsum(chances[order]), 0.5))]
        bias, noise = self._errors(measured)
        return Way(
            AUTO, float(median), bias * self.groups / total if total else 0.0, bias, noise, sum(self._errors(hidden))
        )

    def _errors(self, measured: NoisyHistogram) -> tuple[float, float]:
        chances = self._chances(measured)
        beyond = [measured.beyond(end * self.wide) for end in self.ends]
        return float(chances @ beyond) / self.groups, float(chances @ self.ends) * self.error

    def _chances(self, measured: NoisyHistogram) -> Floats:
        least = [0.0 if cell < EMPTY_CELLS else end * self.wide for cell, end in enumerate(self.ends)]
        return choice_chances(self.law, np.array([measured.units_above(end) for end in least]))


def total_of_norm(term: Term, spread: float) -> float:
    """Return the factor by which the total of a unit exceeds its norm in the clip of a term. A unit in `spread` groups whose L1
    norm is t has an L2 norm between t / sqrt(spread), if its groups are equal, and t, if one group has nearly all; the geometric
    mean of both is taken."""
    return spread**0.25 if term.clip is not None and term.clip.norm is Norm.L2 else 1.0


def way_table(
    totals: ChoiceTable, now: tuple[BoundChoice, float] | None, measured: NoisyHistogram, auto: ChosenBounds
) -> WayTable:
    """Return the ways, with the one of the least expected error even if units are hidden marked. `totals`: choices of max_total;
    `now`: the choice of the policy's max_rows, and the bound on a unit that follows from it."""
    ways, best = [], totals.recommended
    if now is not None:
        choice, bound = now
        ways.append(Way(POLICY, bound, choice.lost, choice.bias, choice.noise, choice.together))
    if best is not None:
        hidden = measured.with_hidden().beyond(best.value * auto.wide) / auto.groups + best.noise
        ways.append(Way(NUMBER, best.value, best.lost, best.bias, best.noise, hidden))
    ways.append(auto.expected(measured))
    if best is None:
        return WayTable(totals.of, tuple(ways), auto.enough, totals.why)
    least = min(range(len(ways)), key=lambda place: ways[place].hidden)
    marked = (replace(candidate, recommended=place == least) for place, candidate in enumerate(ways))
    return WayTable(totals.of, tuple(marked), auto.enough)


def choice_chances(law: Choice, above: Floats) -> Floats:
    """Return the probability of each cell in a choice that leans towards lower cells, given the number of units `above` each
    cell."""
    distances = np.maximum(above - (law.rank - 0.5), 0.0) + law.lean * np.arange(above.size) / law.denominator
    heads = np.exp(-float(law.rate) * (distances - distances.min()))
    if law.mechanism == EXPONENTIAL:
        return np.asarray(heads / heads.sum())
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    tails = 1 - heads[:, np.newaxis] * (places + 1) / 2
    together = np.exp(np.log(tails).sum(axis=0))
    chances = heads * ((together / tails) @ weights) / 2
    return np.asarray(chances / chances.sum())
