"""Release of the quantiles of a rank histogram by the exponential mechanism over the cells of its grid, either separately or
several by recursion (Kaplan, Schnapp and Stemmer 2022, "Differentially private approximate quantiles").

Recursion. Of quantiles q_1 < ... < q_k the middle one is chosen first, from all rows of a group. It splits the grid into the
cells before it and the cells from it on. The quantiles below it are then chosen from the rows before, those above from the
rows behind, each part in the same way: floor(log2 k) + 1 levels. Between the places of q_a and q_b, the quantile q is the
quantile (q - q_a) / (q_b - q_a) of the rows there.

What it costs. The places that split the grid are released, so a level may depend on all levels before it: their losses
add up, in epsilon and in rho, like those of any adaptively chosen mechanisms. In one level, the parts of the grid are disjoint
and each is read by one choice. A unit with n_g rows in group g has n_gs of them in part s, with sum_s n_gs <= n_g. By
`exponential`, given the levels before, one level loses at most

    epsilon = epsilon_0 sum_gs n_gs <= epsilon_0 sum_g n_g,
    rho = epsilon_0^2 / 8 sum_gs n_gs^2 <= epsilon_0^2 / 8 sum_g n_g^2,

because sum_s n_gs^2 <= (sum_s n_gs)^2 for numbers above 0: as much as one choice from all rows, however many parts there are.

Equal values. Where many rows have the same value, the grid cannot be split at a rank between them: all of them would lie on
one side, and later ranks would be wrong by that many rows. So cells are cut into slices (`exponential`), places are slices, and
n_gs are multiples of 1 / slices: a row whose cell is split belongs to both sides, with shares that sum to 1. The argument above
needs no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Law
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.storage.records import dataclass

RANK_HISTOGRAM = "rank histogram"
"""The name of this kind of measurement (`dpsql.plan.measurements`)."""
_ENDS = (Fraction(0), Fraction(1))


@dataclass(frozen=True)
class Search:
    """The step and range in which a quantile is searched: in `level` (from 0), between the places of the quantiles `low` and
    `high`, which earlier levels chose (None: no limit on that side)."""

    quantile: Fraction
    level: int
    low: Fraction | None = None
    high: Fraction | None = None

    @property
    def relative(self) -> Fraction:
        """The quantile among the rows between `low` and `high` that corresponds to `quantile`."""
        low, high = self.low or _ENDS[0], _ENDS[1] if self.high is None else self.high
        return (self.quantile - low) / (high - low)


def split(quantiles: Sequence[Fraction]) -> list[Search]:
    """Return separate searches for distinct quantiles, each over all rows and with its own privacy loss."""
    return [Search(quantile, level) for level, quantile in enumerate(quantiles)]


def recursion(
    quantiles: Sequence[Fraction], low: Fraction | None = None, high: Fraction | None = None, level: int = 0
) -> list[Search]:
    """Return the searches for distinct ascending `quantiles` in the order of levels. The smallest and the largest value do not
    split the grid while there are other quantiles to choose."""
    if not quantiles:
        return []
    middle = len(quantiles) // 2
    if quantiles[middle] in _ENDS and len(quantiles) > 1:
        middle -= 1
    index = quantiles[middle]
    below = recursion(quantiles[:middle], low, index, level + 1)
    above = recursion(quantiles[middle + 1 :], index, high, level + 1)
    return sorted([Search(index, level, low, high), *below, *above], key=lambda search: (search.level, search.quantile))


@dataclass(frozen=True)
class QuantileChoice:
    """The released number called `name`: a cell near the quantile `search.quantile`, chosen by `law`."""

    name: str
    search: Search
    law: Law

    @property
    def quantile(self) -> Fraction:
        return self.search.quantile


@dataclass(frozen=True)
class EndChoice:
    """The released number called `name`: an end of the error bar of the quantile `quantile`, chosen by `law` from all rows."""

    name: str
    quantile: Fraction
    law: Choice


@dataclass(frozen=True)
class ChoiceLevel:
    """The choices of one level, which read disjoint parts of the data: together they cost as much as the most expensive one."""

    laws: tuple[Law, ...]

    @property
    def loss(self) -> PrivacyLoss:
        return _largest([law.loss for law in self.laws])

    def recomputed_loss(self) -> PrivacyLoss:
        return _largest([law.recomputed_loss() for law in self.laws])


def _largest(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    def largest(values: Sequence[Fraction | None]) -> Fraction | None:
        stated = [value for value in values if value is not None]
        return max(stated) if len(stated) == len(values) else None

    return PrivacyLoss(
        largest([loss.epsilon for loss in losses]),
        max(loss.delta for loss in losses),
        largest([loss.rho for loss in losses]),
    )


@dataclass(frozen=True)
class RankHistogramPlan:
    """The measurement of quantiles of one histogram per group, with `cells` cells of `slices` slices each."""

    name: str
    cells: int
    quantiles: tuple[QuantileChoice, ...]
    slices: int = 1
    ends: tuple[EndChoice, ...] = ()

    word = RANK_HISTOGRAM

    def __post_init__(self) -> None:
        """Raise ValueError if two choices of one level could read the same rows, or if a law belongs to another choice."""
        for choice in self.quantiles:
            search = choice.search
            stated = (search.relative, self.slices)
            if isinstance(choice.law, Choice) and (choice.law.quantile, choice.law.slices) != stated:
                raise ValueError(f"a quantile that is chosen as another one: {search.quantile}")
            level_searches = [other.search for other in self.quantiles if other.search.level == search.level]
            if len(level_searches) == 1:
                continue
            earlier = sorted(other.quantile for other in self.quantiles if other.search.level < search.level)
            low = max((index for index in earlier if index < search.quantile), default=None)
            high = min((index for index in earlier if index > search.quantile), default=None)
            same = [other for other in level_searches if (other.low, other.high) == (low, high)]
            if (search.low, search.high) != (low, high) or same != [search]:
                raise ValueError(f"two quantiles of one level are chosen from the same rows: {search.quantile}")

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of each quantile, then of each end of an error bar."""
        quantiles = ((quantile.name, quantile.law) for quantile in self.quantiles)
        return (*quantiles, *((end.name, end.law) for end in self.ends))

    @property
    def charged(self) -> tuple[Law, ...]:
        """One law for each level and for each end: the cells of all groups are one release."""
        steps = sorted({choice.search.level for choice in self.quantiles})
        levels = (
            ChoiceLevel(tuple(choice.law for choice in self.quantiles if choice.search.level == step)) for step in steps
        )
        return (*levels, *(end.law for end in self.ends))
