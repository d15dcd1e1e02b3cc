"""The register of mechanisms: each with its name, the laws of its noise, and its calibration.

A mechanism is one file of this package and one entry of `MECHANISMS`; the shape of its weighted sums is registered in
`weighted_sums.LOGARITHMS`, its sampler in `dpsql.noise.noise_samplers`, and the law against which the audit tests it in
`dpsql_audit.noise_laws`. Unregistered laws are refused: they have no error bars,
are not drawn from and are not read from a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from dpsql.errors.exceptions import refuse
from dpsql.privacy.mechanisms import correlated_laplace, gaussian, laplace, square_root
from dpsql.privacy.mechanisms.contract import Constant, Noise, Norm, Sensitivity, SeriesNoise, VectorNoise
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES
from dpsql.privacy.mechanisms.weighted_sums import LEAST_DEVIATION, LOGARITHMS, WeightedSum
from dpsql.storage.records import dataclass, fields

Calibration = Callable[[Sensitivity, Fraction], Noise]
"""A function of sensitivity and loss that returns the least noise whose loss in one dimension is at most this; `Constant` where
no unit moves anything."""


@dataclass(frozen=True)
class Mechanism:
    """An additive mechanism. `law` is drawn from and stored; `sums` is the law of sums of its cells, if it has a special one.

    `norm`: the norm of a unit's contribution to which the noise is calibrated (None for `Constant`, which is never requested).
    `calibrations`: by the dimension of the loss ("epsilon", "rho") in which it is calibrated; without "epsilon" it has no
    finite pure epsilon. `offered`: `dp.mechanism = auto` considers it. `shared`: entries of a vector are not independent, and
    `law` is a `VectorNoise`; `series`: entries follow the values of an ordered key, and `law` is a `SeriesNoise`.
    `correlated`: its calibration by rho with noise that is correlated between groups (`dp.correlation`; None: not possible).
    `named`: a query may request it by name; a mechanism that is not `named` is chosen for a shape of query (`dp.workload`).
    """

    word: str
    law: type[Any]
    sums: type[Any] | None = None
    norm: Norm | None = None
    calibrations: Mapping[str, Calibration] | None = None
    offered: bool = True
    shared: bool = False
    series: bool = False
    correlated: Callable[[Fraction], Calibration] | None = None
    named: bool = True

    @property
    def pure(self) -> bool:
        return self.calibrations is None or "epsilon" in self.calibrations

    def calibrated(self, dimension: str, sensitivity: Sensitivity, most: Fraction) -> Noise:
        """Return the least noise whose loss in `dimension` is at most `most`; `calibrations` must contain the dimension."""
        assert self.calibrations is not None
        return self.calibrations[dimension](sensitivity, most)


_LAPLACE = {"epsilon": laplace.noise_for, "rho": laplace.noise_for_rho}

MECHANISMS: dict[str, Mechanism] = {
    mechanism.word: mechanism
    for mechanism in (
        Mechanism("laplace", laplace.Laplace, laplace.SummedLaplace, Norm.L1, _LAPLACE),
        Mechanism("gaussian", gaussian.Gaussian, gaussian.SummedGaussian, Norm.L2, {"rho": gaussian.noise_for}),
        Mechanism(
            correlated_laplace.CORRELATED,
            correlated_laplace.CorrelatedLaplace,
            None,
            Norm.L2,
            {"rho": correlated_laplace.noise_for},
            offered=False,
            shared=True,
            correlated=correlated_laplace.with_correlation,
        ),
        Mechanism(
            square_root.SQUARE_ROOT,
            square_root.SquareRoot,
            None,
            Norm.L2,
            {"rho": square_root.noise_for},
            offered=False,
            shared=True,
            series=True,
            named=False,
        ),
        Mechanism("constant", Constant),
    )
}
"""Mechanisms by name. Among equally good ones the first is used."""

ABOVE_THRESHOLD = "above_threshold"
RANDOMISED_ROWS = "randomised_rows"
ANNEXES: Mapping[str, tuple[str, ...]] = {
    "local_sensitivity": (LOCAL_SENSITIVITY,),
    "samples": (SAMPLE_VALUES, SAMPLE_MEAN),
    "comparisons": (ABOVE_THRESHOLD,),
    "randomised_rows": (RANDOMISED_ROWS,),
    "correlated_noise": (correlated_laplace.CORRELATED, square_root.SQUARE_ROOT),
    "most_frequent": (MOST_FREQUENT, END_ROWS),
}
"""The rare mechanisms, by the names under which a policy's `mechanisms` allows them: words of mechanisms and of measurements.
What stands in none of them is the core: sums with Laplace and Gaussian noise, quantiles and thresholds."""

ANNEX_OF = {word: annex for annex, words in ANNEXES.items() for word in words}


def require_allowed(words: Iterable[str], allowed: Sequence[str]) -> None:
    """Check that what is called `words` is of the core or `allowed` annexes. Raises Refusal mechanism_off."""
    for word in words:
        annex = ANNEX_OF.get(word)
        if annex is not None and annex not in allowed:
            raise refuse("mechanism_off", mechanism=annex)


def askable() -> tuple[Mechanism, ...]:
    return tuple([mechanism for mechanism in MECHANISMS.values() if mechanism.calibrations and mechanism.named])


def registered(noise: Noise) -> Noise:
    """Return `noise` if its law is registered. Raises InternalError for any other: its error is unknown."""
    if not is_registered(noise):
        raise refuse("internal", what=f"noise of a law that is not known: {noise.mechanism}")
    return noise


def is_registered(noise: Noise) -> bool:
    """Return whether `noise` has the law of a registered mechanism, or of sums of its cells."""
    if type(noise) is WeightedSum:
        return all(_has_weighted_law(part.noise) for part in noise.parts)
    return any(type(noise) in (mechanism.law, mechanism.sums) for mechanism in MECHANISMS.values())


def is_shared(noise: Noise) -> bool:
    """Return whether the entries of one vector with this noise are not independent."""
    mechanism = MECHANISMS.get(noise.mechanism)
    return mechanism is not None and type(noise) is mechanism.law and mechanism.shared


def vector_law(noise: Noise) -> VectorNoise:
    """Return `noise` as a law of whole vectors. Raises InternalError unless `is_shared`: other laws have no joint quantiles."""
    if not is_shared(noise):
        raise refuse("internal", what=f"noise of vectors that is not known: {noise.mechanism}")
    return cast(VectorNoise, noise)


def series_law(noise: Noise) -> SeriesNoise | None:
    """Return `noise` as a law of series, or None if its mechanism is not for ordered cells."""
    return cast(SeriesNoise, noise) if is_shared(noise) and MECHANISMS[noise.mechanism].series else None


def can_be_weighted(noise: Noise) -> bool:
    """Return whether the law of weighted sums of cells with this noise is known (`weighted_sums`) and doubles can hold it."""
    return _has_weighted_law(noise) and not is_shared(noise) and noise.standard_deviation() > LEAST_DEVIATION


def _has_weighted_law(noise: Noise) -> bool:
    mechanism = MECHANISMS.get(noise.mechanism)
    return mechanism is not None and type(noise) is mechanism.law and noise.mechanism in LOGARITHMS


def summed(noise: Noise, count: int, whole: bool) -> Noise | None:
    """Return the law of the sum of `count` cells that each got `noise`, or None if it is not known (`Noise.summed`)."""
    return noise.summed(count, whole) if is_registered(noise) else None


def to_json(noise: Noise) -> dict[str, Any]:
    """Return the law as plain JSON: mechanism, sensitivity, shift, and the law's own whole numbers by name.

    Raises InternalError for noise that is not drawn (a sum of cells) or not known.
    """
    mechanism = MECHANISMS.get(noise.mechanism)
    if mechanism is None or type(noise) is not mechanism.law:
        raise refuse("internal", what=f"noise of a law that cannot be stored: {noise.mechanism}")
    moved = noise.sensitivity
    return {
        "mechanism": noise.mechanism, "sensitivity": [moved.l0, moved.l1, moved.l2_squared, moved.linf],
        "shift": noise.shift, **{name: getattr(noise, name) for name in _own_fields(mechanism.law)},
    }  # fmt: skip


def from_json(facts: Mapping[str, Any]) -> Noise:
    """Return the law that `to_json` wrote. Raises KeyError, TypeError or ValueError when there is no such law."""
    mechanism = MECHANISMS[facts["mechanism"]]
    names = {field.name for field in fields(mechanism.law)}
    numbers = {name: value for name, value in facts.items() if name not in ("mechanism", "sensitivity")}
    if any(type(value) is not int for value in numbers.values()):
        raise ValueError("a law of noise is written in whole numbers")
    if "shift" not in names and numbers.pop("shift") != 0:
        raise ValueError("this law has no noise grid of its own")
    noise: Noise = mechanism.law(sensitivity=Sensitivity(*facts["sensitivity"]), **numbers)
    return noise


def _own_fields(law: type[Any]) -> list[str]:
    return [field.name for field in fields(law) if field.name not in ("sensitivity", "shift")]
