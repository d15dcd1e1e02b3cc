"""Mechanisms as data: noise law, privacy loss and error. Nothing here draws randomness."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import PrivacyLoss
from dpsql.storage.records import dataclass, field, hashed_once

Floats = npt.NDArray[np.float64]


class Norm(str, Enum):
    """The norm, taken of one unit's effect on the vector of sums, to which a mechanism is calibrated."""

    L1 = "L1"
    L2 = "L2"


@hashed_once
@dataclass(frozen=True)
class Sensitivity:
    """Bounds on how far one privacy unit can move a vector of integer sums, over all groups together (privacy.md 4).

    All are integers in row-grid units, rounded up. `l0` bounds the number of entries that move, `linf` the distance that one
    entry moves, `l1` the L1 distance, `l2_squared` the square of the L2 distance. The factor of `neighbours` is included.
    """

    l0: int
    l1: int
    l2_squared: int
    linf: int

    def __post_init__(self) -> None:
        for value in (self.l0, self.l1, self.l2_squared, self.linf):
            if type(value) is not int or value < 0:
                raise ValueError(f"sensitivities are integers >= 0, not {value!r}")
        norms = (self.l1, self.l2_squared, self.linf)
        if any(norms) != all(norms) or (self.l1 > 0 and self.l0 == 0):
            raise ValueError(f"one norm is zero and another is not: {self}")

    @property
    def is_zero(self) -> bool:
        return self.l1 == 0


class Noise(Protocol):
    """A law of additive integer noise, symmetric around 0 and fully determined before any data is read.

    Implementations are frozen dataclasses. Their fields, `sensitivity` and otherwise whole numbers, determine the law and are
    what is stored (`registry.to_json`). `loss`, `upper_tail` and `tail_point` are exact. Methods for error bars (errors,
    `summed`, `quantiles`) depend on public laws alone, so they may use floats.

    The step of the noise grid is 2**shift steps of the row grid: before noise is added, the exact sum is divided by 2**shift
    and rounded down when shift > 0, and multiplied by 2**-shift when shift < 0. `noise_scale` is in noise-grid units.
    """

    def __hash__(self) -> int:
        """Return the hash of the frozen value, so that results derived from a law can be cached."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name in the registry, used in SQL, EXPLAIN and stored releases."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity to which the noise is calibrated, in row-grid units."""

    @property
    def shift(self) -> int:
        """Binary logarithm of the noise-grid step in row-grid units."""

    @property
    def noise_scale(self) -> Fraction:
        """The noise scale in noise-grid units; Laplace: b = t/s; Gaussian: sigma."""

    @property
    def normal(self) -> bool:
        """Return whether sums of this noise with other such noise have the quantiles of the normal law with their variance."""

    @property
    def loss(self) -> PrivacyLoss:
        """The exact privacy loss of the noise that is really added."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss, recomputed independently from the definition. Pricing raises a fault if it exceeds `loss`."""

    def upper_tail(self, k: int) -> Fraction:
        """Return an upper bound of P(noise >= k), k >= 1, in noise-grid units."""

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability, in noise-grid units."""

    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise in row-grid units."""

    def half_width(self, confidence: float) -> float:
        """Return h in row-grid units with P(|noise| <= h) >= confidence, rounding to a coarser noise grid included."""

    def expected_error(self) -> float:
        """Return E|noise| in row-grid units, rounding to a coarser noise grid not included."""

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return the law of the sum of `count` >= 1 cells that each got this noise, or None if that law is not known.

        `whole`: each cell is rounded to an integer before summation.
        """

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the quantiles of the noise at the probabilities `uniform`, in noise-grid units; they rise with `uniform`."""


class VectorNoise(Noise, Protocol):
    """A law of vectors of noise whose entries are not independent: the interface, beyond `Noise`, of mechanisms registered as
    `shared`."""

    def joint_quantiles(self, shared: Floats, uniform: Floats) -> Floats:
        """Return replicates of whole vectors of noise, in noise-grid units. `shared`: probabilities at which to take the variable
        that a vector draws once, shape (vectors, 1); `uniform`: those for each entry, shape (vectors, cells), in key order."""


class SeriesNoise(VectorNoise, Protocol):
    """A law of vectors with one entry per value of an ordered key, designed so that running totals have smaller errors than
    with independent noise: the interface, beyond `VectorNoise`, of mechanisms registered as `series`."""

    @property
    def length(self) -> int:
        """The number of values of the key, which is the number of cells of a vector."""

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of weighted sums of cells, in squares of noise-grid units. `weights` has shape (sums, cells),
        cells in key order. Such sums are normal, or nearly."""

    def running_deviation(self) -> float:
        """Return the square root of the mean variance of the running totals of a vector, in row-grid units."""


class Uncharged:
    """A law of what costs nothing: of a constant, or of what follows from numbers that were charged when they were measured."""

    loss = PrivacyLoss.nothing()

    def recomputed_loss(self) -> PrivacyLoss:
        return self.loss


@dataclass(frozen=True)
class Constant(Uncharged):
    """The answer to a term that no unit can move (SUM of a column clamped to [0, 0]): the integer 0, at no privacy loss.

    Under add_remove every database is reached from the empty one by adding units, so a sum of zero sensitivity equals the
    sum over the empty database: 0. (Under change_one dpsql doubles the add_remove sensitivity, so this holds as well.)
    The answer is this constant and not the engine's number: if a sensitivity were ever wrongly computed as zero, the
    answer would be wrong, but no data would be revealed.
    """

    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        if not self.sensitivity.is_zero:
            raise ValueError("a term that can move needs noise")

    mechanism = "constant"
    shift = 0
    noise_scale = Fraction(0)
    normal = True

    def upper_tail(self, k: int) -> Fraction:
        return Fraction(0)

    def tail_point(self, probability: Fraction) -> int:
        return 1

    def standard_deviation(self) -> float:
        return 0.0

    def half_width(self, confidence: float) -> float:
        return 0.0

    def expected_error(self) -> float:
        return 0.0

    def summed(self, count: int, whole: bool) -> Noise:
        return self

    def quantiles(self, uniform: Floats) -> Floats:
        return np.zeros_like(uniform)


@lru_cache(maxsize=1024, typed=True)
def scaled_half_width(noise: Noise, confidence: float) -> float:
    """Return the two-sided half width in row-grid units, from the one-sided `tail_point` of a symmetric law.

    `confidence` is in [0, 1), else ValueError. On a coarser noise grid (shift > 0) the exact sum was rounded down by up to
    2**shift - 1, which is included.
    """
    if not 0 <= confidence < 1:
        raise ValueError("confidence must be in [0, 1)")
    steps = noise.tail_point((1 - Fraction(confidence)) / 2) - 1
    rounding = (1 << noise.shift) - 1 if noise.shift > 0 else 0
    return float(steps * Fraction(2) ** noise.shift + rounding)


class GridNoise:
    """What laws of noise on a grid have in common."""

    def half_width(self: Noise, confidence: float) -> float:
        """Return h in row-grid units with P(|noise| <= h) >= confidence; at most one noise-grid step above the least."""
        return scaled_half_width(self, confidence)

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return None: the law of a sum is not known, because it depends on which cells of a vector are summed."""
        return None


@dataclass(frozen=True)
class TermNoise:
    """One basis term to be measured: engine column `name`, its noise, and how to read the noisy integer.

    The released number is noisy_integer * 2**noise.shift * 2**-grid; with `whole` it is rounded to an integer
    (post-processing of counts). Terms with the same set name in `shares` are charged together (`pricing.pricing`).
    """

    name: str
    noise: Noise
    grid: int
    whole: bool
    shares: str = ""


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """One group key: engine column `name`; `values` is a pyarrow.Array in key order, nulls allowed, or None for a private key.

    Instances are compared by identity.
    """

    name: str
    values: Any | None


class Selection(Protocol):
    """A rule of partition selection, which admits private keys; fully determined before any data is read."""

    @property
    def kind(self) -> str:
        """The word used in EXPLAIN, such as "truncated_geometric" or "threshold"."""

    @property
    def column(self) -> str:
        """The engine column that the rule reads: units per group (entity) or rows per group (row privacy)."""

    @property
    def noise(self) -> Noise | None:
        """The noise of the counts that the rule reads, which are released anyway; None if the rule reads exact counts."""

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the selection, without the loss of a noisy count that is released anyway."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss, recomputed from the finished table or threshold. Pricing raises a fault if it exceeds `loss`."""

    def half_point(self) -> int:
        """Return the smallest exact count that is admitted with probability >= 1/2."""


class Law(Protocol):
    """The law of one released number per group of a measurement other than a sum; determined before any data is read."""

    @property
    def loss(self) -> PrivacyLoss:
        """The exact privacy loss of releasing the numbers of all groups."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return the loss, recomputed independently from the definition. Pricing raises a fault if it exceeds `loss`."""


class MeasurementPlan(Protocol):
    """The noise plan of one measurement other than a sum (`plan.measurements`): its kind `word` and its `name`."""

    @property
    def word(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of each released number."""

    @property
    def charged(self) -> tuple[Law, ...]:
        """The laws whose losses add up to the loss of the measurement."""


@dataclass(frozen=True)
class NumberPlan:
    """The measurement of one number per group, which `law` describes, from a histogram of `cells` cells."""

    name: str
    cells: int
    law: Law

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of the number, and of what is released beside it."""
        return ((self.name, self.law),)

    @property
    def charged(self) -> tuple[Law, ...]:
        """The law of the number alone: the numbers of all groups are one release, and what is beside it follows from it."""
        return (self.law,)


@dataclass(frozen=True)
class NoisePlan:
    """Everything that `perturb` needs for one private block; a function of SQL, policy and options only.

    `listed`: the groups to release when keys are public, as ascending cell numbers in the grid of all combinations of key
    values, first key slowest; None: all cells.
    """

    keys: tuple[KeyColumn, ...]
    terms: tuple[TermNoise, ...]
    selection: Selection | None
    measurements: tuple[MeasurementPlan, ...] = ()
    listed: npt.NDArray[np.int64] | None = field(default=None, compare=False)

    @property
    def charged(self) -> tuple[Law, ...]:
        """The laws that are charged for all numbers that are not sums."""
        return tuple(law for measurement in self.measurements for law in measurement.charged)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of all numbers released per group: terms, then the numbers of measurements."""
        return (
            *(term.name for term in self.terms),
            *(name for measurement in self.measurements for name, _ in measurement.laws),
        )


# --- sums of noise ----------------------------------------------------------------------------------------------------

# Common properties of the noise of a sum of released cells, for any law of the cells; for error bars.
# Nothing is drawn from these laws for a release. They describe noise that was added and charged before, so they are post-
# processing of public facts, and doubles are allowed here.


@dataclass(frozen=True)
class SummedNoise(Uncharged):
    """The law of `count` independent draws of the noise `summand`. Units as in `contract.Noise`."""

    summand: Noise
    count: int

    mechanism = "summed"

    @property
    def sensitivity(self) -> Sensitivity:
        return self.summand.sensitivity

    @property
    def shift(self) -> int:
        return self.summand.shift

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return None: only measured cells are summed, not sums of them."""
        return None

    def _half_width(self, steps: float) -> float:
        """Return `steps` of the noise grid in row-grid units, plus what flooring each cell to a coarser grid may have lost."""
        rounding = self.count * ((1 << self.shift) - 1) if self.shift > 0 else 0
        return float(steps * 2.0**self.shift + rounding)
