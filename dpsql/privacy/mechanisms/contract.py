"""Mechanisms as data: noise law, privacy loss and error. No randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsql.privacy.loss import PrivacyLoss

Floats = npt.NDArray[np.float64]


class Norm(str, Enum):
    """The norm of a unit's vector of sums that a mechanism is calibrated to."""

    L1 = "L1"
    L2 = "L2"


@dataclass(frozen=True)
class Sensitivity:
    """How far one unit can move a vector of integer sums, over all groups together (privacy.md 4).

    Units: row-grid units, integers rounded up. `l0` is the most entries that move, `linf` the most one entry moves.
    `l2_squared` bounds the square of the L2 distance. The factor of `neighbours` is already inside.
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
        """Return whether no unit can move any entry."""
        return self.l1 == 0


class Noise(Protocol):
    """One law of additive integer noise, symmetric around 0 and fully determined before data is touched.

    Implementations are frozen dataclasses whose fields, all of them whole numbers beside `sensitivity`, determine the law:
    they are what is stored (`registry.to_json`). `loss`, `upper_tail` and `tail_point` are exact; what is computed for error
    bars (errors, `summed`, `quantiles`) reads public laws alone, so floats are allowed there.

    The noise grid is the row grid times 2**shift: the exact sum is divided (floor) by 2**shift before the noise when
    shift > 0 and multiplied by 2**-shift when shift < 0; `noise_scale` is in noise-grid units.
    """

    def __hash__(self) -> int:
        """Hash of a frozen value, so that results derived from a law can be cached."""

    @property
    def mechanism(self) -> str:
        """The word of the registry, used in SQL, EXPLAIN and stored releases."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The sensitivity it was calibrated to, in row-grid units."""

    @property
    def shift(self) -> int:
        """Power of two between the row grid and the noise grid."""

    @property
    def noise_scale(self) -> Fraction:
        """Laplace: b = t/s; Gaussian: sigma; in noise-grid units."""

    @property
    def normal(self) -> bool:
        """Return whether sums with other noise of this kind have the normal quantiles of their variance."""

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of the noise really added."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` again, written independently from the definition; pricing compares the two (a difference: fault)."""

    def upper_tail(self, k: int) -> Fraction:
        """Return an upper bound of P(noise >= k), k >= 1, in noise-grid units."""

    def tail_point(self, probability: Fraction) -> int:
        """Return the smallest k >= 1 with `upper_tail(k)` <= probability, in noise-grid units."""

    def standard_deviation(self) -> float:
        """Return the standard deviation of the noise in row-grid units."""

    def half_width(self, confidence: float) -> float:
        """Return h in row-grid units with P(|noise| <= h) >= confidence, the rounding of a coarser noise grid included."""

    def expected_error(self) -> float:
        """Return E|noise| in row-grid units, the rounding of a coarser noise grid not included."""

    def weighted_half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Return h in row-grid units with P(|sum| <= h) = confidence for a weighted sum of independent draws.

        `weights` > 0, largest first.
        """

    def weighted_expected_error(self, weights: Sequence[float]) -> float:
        """Return E of the absolute weighted sum of independent draws, in row-grid units; `weights` as above."""

    def summed(self, count: int, whole: bool) -> Noise | None:
        """Return the law of the sum of `count` >= 1 cells that each got this noise, or None: not known.

        `whole`: each cell was rounded to an integer before it was summed.
        """

    def quantiles(self, uniform: Floats) -> Floats:
        """Return the noise at the quantiles `uniform`, in noise-grid units; increasing in `uniform`."""


class VectorNoise(Noise, Protocol):
    """A law by which the entries of one vector of noise are not independent: what a mechanism that is `shared` has beside
    `Noise`."""

    def joint_quantiles(self, shared: Floats, uniform: Floats) -> Floats:
        """Return the noise of whole vectors in noise-grid units, for replicates, at the quantiles `shared` of what a vector draws
        once (shape (vectors, 1)) and `uniform` of what each entry draws (shape (vectors, cells), in the order of the keys)."""


class SeriesNoise(VectorNoise, Protocol):
    """A law of vectors whose entries follow the values of an ordered key, made so that running totals err less than with
    independent noise: what a mechanism that is a `series` has beside `VectorNoise`."""

    @property
    def length(self) -> int:
        """The number of values of the key: cells of a vector."""

    def variances(self, weights: Floats) -> Floats:
        """Return the variances of weighted sums of cells, in squares of noise-grid units; `weights`: of shape (sums, cells),
        cells in the order of the keys. Such sums are normal, or nearly."""

    def running_deviation(self) -> float:
        """Return the root of the mean variance of the running totals of a vector, in row-grid units."""


@dataclass(frozen=True)
class Constant:
    """The answer to a term that no unit can move (SUM of a column clamped to [0, 0]): the integer 0, for nothing.

    Under add_remove every database is reached from the empty one by adding units, so a sum of zero sensitivity is the
    sum of the empty database: 0. (Under change_one dpsql doubles the add_remove sensitivity, which keeps this true.)
    The answer is that constant and not the engine's number: if ever a sensitivity were wrongly found to be zero, the
    answer would be wrong, but the data would not be seen.
    """

    sensitivity: Sensitivity

    def __post_init__(self) -> None:
        if not self.sensitivity.is_zero:
            raise ValueError("a term that can move needs noise")

    mechanism = "constant"
    shift = 0
    noise_scale = Fraction(0)
    normal = True

    @property
    def loss(self) -> PrivacyLoss:
        """Return no loss: the answer does not depend on data."""
        return PrivacyLoss.nothing()

    def recomputed_loss(self) -> PrivacyLoss:
        """Return no loss."""
        return PrivacyLoss.nothing()

    def upper_tail(self, k: int) -> Fraction:
        """Return 0 for k >= 1."""
        return Fraction(0)

    def tail_point(self, probability: Fraction) -> int:
        """Return 1, the least k that is asked for."""
        return 1

    def standard_deviation(self) -> float:
        """Return 0."""
        return 0.0

    def half_width(self, confidence: float) -> float:
        """Return 0."""
        return 0.0

    def expected_error(self) -> float:
        """Return 0."""
        return 0.0

    def weighted_half_width(self, weights: Sequence[float], confidence: float) -> float:
        """Return 0."""
        return 0.0

    def weighted_expected_error(self, weights: Sequence[float]) -> float:
        """Return 0."""
        return 0.0

    def summed(self, count: int, whole: bool) -> Noise:
        """Return this law: a sum of constants is constant."""
        return self

    def quantiles(self, uniform: Floats) -> Floats:
        """Return an array of zeros, of the shape of `uniform`."""
        return np.zeros_like(uniform)


@lru_cache(maxsize=1024, typed=True)
def scaled_half_width(noise: Noise, confidence: float) -> float:
    """Two-sided half width in row-grid units from the one-sided `tail_point` of a symmetric law.

    `confidence` in [0, 1). With a coarser noise grid the exact sum was rounded down by up to 2**shift - 1.
    """
    if not 0 <= confidence < 1:
        raise ValueError("confidence must be in [0, 1)")
    steps = noise.tail_point((1 - Fraction(confidence)) / 2) - 1
    rounding = (1 << noise.shift) - 1 if noise.shift > 0 else 0
    return float(steps * Fraction(2) ** noise.shift + rounding)


@dataclass(frozen=True)
class TermNoise:
    """One basis term to be measured: engine column `name`, its noise, and how the noisy integer is read.

    The released number is noisy_integer * 2**noise.shift * 2**-grid; with `whole` it is rounded to an integer
    (post-processing of counts). Terms that name the same set in `shares` are charged together (`mechanisms.shared`).
    """

    name: str
    noise: Noise
    grid: int
    whole: bool
    shares: str = ""


@dataclass(frozen=True, eq=False)
class KeyColumn:
    """One group key: engine column `name`; `values` (a pyarrow.Array in key order, nulls allowed) when it is public.

    Compared by identity.
    """

    name: str
    values: Any | None


class Selection(Protocol):
    """How private keys are admitted (partition selection), fully determined before data is touched."""

    @property
    def kind(self) -> str:
        """The word used in EXPLAIN: "truncated_geometric" or "threshold"."""

    @property
    def column(self) -> str:
        """The engine column that the rule reads: units per group (entity) or rows per group (row privacy)."""

    @property
    def noise(self) -> Noise | None:
        """The noise of the counts that the rule reads, which are released anyway; None: it reads exact counts."""

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of the selection, without the noise of a count that is released anyway."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` again, from the finished table or threshold; pricing compares the two (a difference: fault)."""

    def half_point(self) -> int:
        """Return the smallest exact count that is admitted with probability >= 1/2."""


class Law(Protocol):
    """The law of one released number per group of a measurement other than sums, determined before data is touched."""

    @property
    def loss(self) -> PrivacyLoss:
        """The exact cost of releasing the number of every group."""

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss` again, written independently from the definition; pricing compares the two (a difference: fault)."""


class MeasurementPlan(Protocol):
    """The noise plan of one measurement other than sums (`plan.measurements`). `name` is that of the measurement."""

    @property
    def word(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def laws(self) -> tuple[tuple[str, Law], ...]:
        """Name and law of each released number."""

    @property
    def charged(self) -> tuple[Law, ...]:
        """The laws whose losses add up to what the measurement costs."""


@dataclass(frozen=True)
class NoisePlan:
    """All that `perturb` needs for one private block; a function of SQL, policy and options only.

    `listed`: the groups of public keys as numbers of cells in the grid of all combinations of their values, first key slowest,
    ascending (None: all).
    """

    keys: tuple[KeyColumn, ...]
    terms: tuple[TermNoise, ...]
    selection: Selection | None
    measurements: tuple[MeasurementPlan, ...] = ()
    listed: npt.NDArray[np.int64] | None = field(default=None, compare=False)

    @property
    def charged(self) -> tuple[Law, ...]:
        """The laws that are charged for all numbers that are no sums."""
        return tuple(law for measurement in self.measurements for law in measurement.charged)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of everything that is released for a group: terms, then the numbers of measurements."""
        return (
            *(term.name for term in self.terms),
            *(name for measurement in self.measurements for name, _ in measurement.laws),
        )
