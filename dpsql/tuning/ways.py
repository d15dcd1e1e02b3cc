"""Which way of bounding what a unit adds to a SUM suits: the policy's bound alone, a `max_total` from the histogram of totals, or
`max_total = auto`, which chooses a bound anew with a part of the price of each question.

All is computed from the released histogram of totals and from prices. For `auto` the law of the choice is known: with the number
of units above each cell, as the histogram has it, each cell has a chance (`privacy.mechanisms.exponential`), a bias and a noise.
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
"""Of the integral of permute-and-flip."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Way:
    """One way of bounding a sum. `name`: POLICY, NUMBER or AUTO; `bound`: what a unit may add in all, of AUTO the median of what
    may be chosen; `lost`, `bias`, `noise`: as of a `BoundChoice`, of AUTO on average over the choice; `hidden`: bias and noise
    together if the next bin of the histogram holds as many units as noise can hide there."""

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
    """The ways of bounding the sum `output`. `enough`: the number of units with values from which on AUTO follows them, but for a
    chance of 5 %, whatever their values are: with fewer the bound may be the policy's own. `why`: the reason if none is
    recommended."""

    output: str
    ways: tuple[Way, ...]
    enough: int
    why: str = ""

    @property
    def recommended(self) -> Way | None:
        """The way with the least expected error even if units are hidden."""
        return next((candidate for candidate in self.ways if candidate.recommended), None)


class ChosenBounds:
    """What `max_total = auto` would do to one sum of a question that is planned with it."""

    def __init__(self, planned: Planned, cut: TotalCut, groups: float, spread: float) -> None:
        """Take a question and one of its sums. `groups`: of the answer; `spread`: groups of an average unit."""
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
        """Return the way AUTO."""
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
    """Return by how much the total of a unit exceeds its norm in the clip of a term: a unit in `spread` groups whose L1 norm is t
    has an L2 norm between t / sqrt(spread), where its groups are equal, and t, where one has nearly all; the geometric mean of
    both is taken."""
    return spread**0.25 if term.clip is not None and term.clip.norm is Norm.L2 else 1.0


def way_table(
    totals: ChoiceTable, now: tuple[BoundChoice, float] | None, measured: NoisyHistogram, auto: ChosenBounds
) -> WayTable:
    """Return the ways with the one of the least expected error, even if units are hidden, marked. `totals`: choices of max_total;
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
    """Return the chance of each cell of a leaning choice, given how many units are `above` each."""
    distances = np.maximum(above - (law.rank - 0.5), 0.0) + law.lean * np.arange(above.size) / law.denominator
    heads = np.exp(-float(law.rate) * (distances - distances.min()))
    if law.mechanism == EXPONENTIAL:
        return np.asarray(heads / heads.sum())
    places, weights = np.polynomial.legendre.leggauss(_NODES)
    tails = 1 - heads[:, np.newaxis] * (places + 1) / 2
    together = np.exp(np.log(tails).sum(axis=0))
    chances = heads * ((together / tails) @ weights) / 2
    return np.asarray(chances / chances.sum())
