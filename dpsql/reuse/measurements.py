"""Records of measurements that are not sums (`dpsql.plan.measurements`): how their numbers are stored and read back.

A released number is stored with a label that says which number it is and with the mechanism that chose it. It answers any
question about the same number of the same cells of the same rows; nothing else is derived from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.measurements import (
    EndRows,
    LocalNumber,
    MostFrequentValue,
    Quantile,
    RankHistogram,
    Register,
    SampleMean,
    SampleValues,
)
from dpsql.pricing.measurements import PARTS as PRICING
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.exponential import Choice
from dpsql.privacy.mechanisms.laplace import Laplace
from dpsql.privacy.mechanisms.local_sensitivity import (
    LOCAL_SENSITIVITY,
    FollowsFrom,
    LocalSensitivityPlan,
    ProposeTestRelease,
    SmoothSensitivity,
    ends_of,
)
from dpsql.privacy.mechanisms.most_frequent import (
    END_ROWS,
    MOST_FREQUENT,
    EndKey,
    EndRowsPlan,
    MostFrequent,
    MostFrequentPlan,
)
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM, EndChoice, QuantileChoice, RankHistogramPlan, Search
from dpsql.privacy.mechanisms.registry import from_json, to_json
from dpsql.privacy.mechanisms.sample_values import (
    SAMPLE_MEAN,
    SAMPLE_VALUES,
    NoisySampleMean,
    SampleMeanPlan,
    SampleValuesPlan,
    bar_steps,
)
from dpsql.storage.records import dataclass, fields, replace

# Stored means of samples: their stored form, and the choice of the one that answers a question at its confidence.
# The ends of an error bar follow from the released mean and the law of its noise, which is stored with it. So a stored mean can
# be given an error bar of any confidence (post-processing), whatever bar it was released with.

# --- Stored numbers of measurements that are not sums, and the names of their measures ---


@dataclass(frozen=True)
class StoredNumber:
    """A released number of a measurement. `measure` names the value, its filter and its cells; `what` labels the number within
    that measure; `mechanism` is the law by which it was chosen, for a quantile after the search `search`."""

    name: str
    word: str
    measure: str
    what: str
    mechanism: Any
    search: Search | None = None


def measure_of(measurement: RankHistogram | MostFrequentValue | EndRows | LocalNumber | SampleMean) -> str:
    """Return the name of a measurement's measure (the value, its bounds, cells, filter and key), which depends neither on the
    name of the measurement nor on the numbers that are chosen from it."""
    key = measurement.key if isinstance(measurement, EndRows) else None
    more = (measurement.samples, measurement.by_unit) if isinstance(measurement, (SampleValues, SampleMean)) else ()
    return fingerprint((measurement.word, measurement.value, replace(measurement.term, name=""), key, *more))


@dataclass(frozen=True)
class EndOfBar:
    """An end of an error bar that follows from a released number: `away` steps from it, within `low` and `high`."""

    away: int
    low: int
    high: int

    def ends(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.clip(numbers + self.away, self.low, self.high)


# --- laws, stored by their fields ---

_LOCAL = (FollowsFrom, SmoothSensitivity, ProposeTestRelease)
_SCALARS: dict[str, type[Any]] = {"int": int, "bool": bool, "str": str}


def written_law(law: Any) -> dict[str, Any]:
    """Return a law as plain JSON: mechanism, and fields by name without those that were added later, at their defaults."""
    names = (
        entry.name for entry in fields(law)
        if not (entry.metadata.get("added") and getattr(law, entry.name) == entry.default)
    )  # fmt: skip
    return {"mechanism": law.mechanism, **{name: _written(getattr(law, name)) for name in names}}


def _written(value: Any) -> Any:
    if isinstance(value, Sensitivity):
        return [value.l0, value.l1, value.l2_squared, value.linf]
    if isinstance(value, (int, str)):
        return value
    return str(value) if isinstance(value, Fraction) else to_json(value)


def read_law(facts: Mapping[str, Any], *kinds: type[Any]) -> Any:
    """Return the law of one of `kinds` that `written_law` described. Raises KeyError, TypeError or ValueError for any other, and
    for fields that this version does not know: a law is never read as another one."""
    word = facts["mechanism"]
    kind = next(kind for kind in (*kinds, None) if kind is None or _has_word(kind, word))
    if kind is None:
        raise ValueError("no law that is known")
    types = {entry.name: str(entry.type) for entry in fields(kind)}
    values = {name: value for name, value in facts.items() if name in types or name != "mechanism"}
    law = kind(**{name: _read(types[name], value) for name, value in values.items()})
    if law.mechanism != word:
        raise ValueError("a law of another mechanism")
    return law


def _has_word(kind: type[Any], word: str) -> bool:
    """Return whether laws of a class may have this mechanism: it is that of the class, or differs from law to law."""
    of_class = getattr(kind, "mechanism", None)
    return not isinstance(of_class, str) or of_class == word or any(entry.name == "mechanism" for entry in fields(kind))


def _read(kind: str, value: Any) -> Any:
    if kind == "Sensitivity":
        return Sensitivity(*value)
    if kind == "Fraction":
        return Fraction(value)
    if kind in _SCALARS:
        if type(value) is not _SCALARS[kind]:
            raise ValueError("a field of another type")
        return value
    noise = from_json(value)
    if kind == "Laplace" and not isinstance(noise, Laplace):
        raise ValueError("a test or an answer with other noise than Laplace's")
    return noise


# --- how each kind of measurement is stored ---

Numbers = Mapping[str, StoredNumber]
"""Stored numbers of one measure by their labels."""
Answering = tuple[Any, dict[str, tuple[StoredNumber, EndOfBar | None]]]
"""The plan by which stored numbers were released, and for each name in a measurement the number, or the end of its bar."""


@dataclass(frozen=True)
class MeasurementRecord:
    """How the numbers of one kind of measurement are stored, each under a label and with a law of one of the kinds `laws`.

    `labels`: the label of each number of a measurement by name, `StoredNumber.what` of the same number in any release. `plan_of`:
    the plan by which stored numbers of a measurement were released. `is_right`: whether a number may have its label.
    """

    word: str
    laws: tuple[type[Any], ...]
    labels: Callable[[Any], dict[str, str]]
    plan_of: Callable[[Any, Numbers], Any]
    is_right: Callable[[StoredNumber], bool] = lambda number: True

    def written(self, measurement: Any, plan: Any) -> list[dict[str, Any]]:
        """Return descriptions of a measurement's released numbers as plain JSON, each with its name."""
        labels, measure = self.labels(measurement), measure_of(measurement)
        return [
            {"name": name, "measure": measure, "mechanism": written_law(law), **self.facts(name, labels[name], plan)}
            for name, law in plan.laws
        ]

    def facts(self, name: str, label: str, plan: Any) -> dict[str, Any]:
        return {"what": label}

    def read(self, facts: Mapping[str, Any]) -> StoredNumber:
        """Return one number that `written` described. Raises KeyError, TypeError or ValueError for any other description."""
        label = facts["what"] + facts.get("end", "") + facts.get("lean", "")
        law, search = read_law(facts["mechanism"], *self.laws), self.search(facts)
        number = StoredNumber(facts["name"], self.word, facts["measure"], label, law, search)
        if not self.is_right(number):
            raise ValueError(f"no {self.word} that is known by this label")
        return number

    def search(self, facts: Mapping[str, Any]) -> Search | None:
        return None

    def answering(self, measurement: Any, plan: Any, numbers: Sequence[StoredNumber]) -> Answering | None:
        """Return what answers a measurement among stored `numbers` of its measure; None if a number with its label is missing.
        `plan`: how the question would measure it."""
        by_label, labels = {number.what: number for number in numbers}, self.labels(measurement)
        if not by_label.keys() >= set(labels.values()):
            return None
        return self.plan_of(measurement, by_label), {name: (by_label[label], None) for name, label in labels.items()}


class QuantilesRecord(MeasurementRecord):
    """How quantiles are stored: also with their search, and ends of error bars and leaning ones as such."""

    def facts(self, name: str, label: str, plan: RankHistogramPlan) -> dict[str, Any]:
        word, blank, more = label.partition(" ")
        search = next((choice.search for choice in plan.quantiles if choice.name == name), None)
        if search is None:
            return {"what": word, "end": blank + more}
        between = [None if index is None else str(index) for index in (search.low, search.high)]
        lean = {"lean": blank + more} if more else {}
        return {"what": word, "search": {"level": search.level, "between": between}, **lean}

    def search(self, facts: Mapping[str, Any]) -> Search:
        """Return the search of a quantile; releases of versions that chose every quantile separately do not describe one."""
        search = facts.get("search", {"level": 0, "between": (None, None)})
        low, high = (None if index is None else Fraction(index) for index in search["between"])
        return Search(Fraction(facts["what"]), search["level"], low, high)


def _quantile_labels(measurement: RankHistogram) -> dict[str, str]:
    quantiles = {quantile.name: f"{quantile.quantile}{_lean(quantile)}" for quantile in measurement.quantiles}
    return quantiles | {end.name: f"{end.quantile}{_end(end.low, end.missed)}" for end in measurement.ends}


def _end(low: bool, missed: Fraction) -> str:
    """Return the words that describe an end of an error bar. They include the missed probability, because ends of bars with
    different confidences are different numbers."""
    return f" {'low' if low else 'high'} {missed}"


def _lean(quantile: Quantile) -> str:
    """Return the words that describe a lean. A bound to which sums are cut is a different number from the largest value."""
    return "" if quantile.lean is None else f" for cuts in {quantile.lean.groups} groups, {quantile.lean.fall}"


def _is_searched(number: StoredNumber) -> bool:
    return number.search is not None and bool(number.mechanism.quantile == number.search.relative)


def _quantiles_plan(measurement: RankHistogram, numbers: Numbers) -> RankHistogramPlan:
    quantiles, ends = [], []
    for number in numbers.values():
        assert number.search is not None
        if number.mechanism.padding:
            ends.append(EndChoice(number.name, number.search.quantile, number.mechanism))
        else:
            quantiles.append(QuantileChoice(number.name, number.search, number.mechanism))
    slices = max((choice.law.slices for choice in quantiles if isinstance(choice.law, Choice)), default=1)
    return RankHistogramPlan(measurement.name, measurement.cells, tuple(quantiles), slices, tuple(ends))


def _samples_plan(measurement: SampleValues, numbers: Numbers) -> SampleValuesPlan:
    plan = _quantiles_plan(measurement, numbers)
    samples = (measurement.samples, measurement.middle)
    return SampleValuesPlan(plan.name, plan.cells, plan.quantiles, plan.slices, plan.ends, *samples)


def _side(last: bool) -> str:
    return "key of the last rows" if last else "key of the first rows"


def _end_rows_plan(measurement: EndRows, numbers: Numbers) -> EndRowsPlan:
    number = numbers[_side(measurement.last)]
    return EndRowsPlan(number.name, measurement.cells, number.mechanism)


def _most_frequent_plan(measurement: MostFrequentValue, numbers: Numbers) -> MostFrequentPlan:
    number = numbers[MOST_FREQUENT]
    return MostFrequentPlan(number.name, measurement.cells, number.mechanism)


def _local_labels(measurement: LocalNumber) -> dict[str, str]:
    kind = f"{measurement.mechanism} {'mean' if measurement.mean else 'median'} {measurement.bound}"
    ends = zip(ends_of(measurement.name), ("low", "high"), strict=True)
    sides = {name: f"{kind} {side} {measurement.confidence}" for name, side in ends}
    return {name: sides.get(name, kind) for name in measurement.numbers}


def _local_plan(measurement: LocalNumber, numbers: Numbers) -> LocalSensitivityPlan:
    number, *ends = (numbers[label] for label in _local_labels(measurement).values())
    width = ends[0].mechanism.width if ends else None
    return LocalSensitivityPlan(number.name, measurement.cells, number.mechanism, width)


def _mean_labels(measurement: SampleMean) -> dict[str, str]:
    """Return the labels under which the numbers are stored; `answering` decides which stored numbers answer a question."""
    kind = f"{SAMPLE_MEAN} {measurement.mechanism}"
    ends = zip(ends_of(measurement.name), ("low", "high"), strict=True)
    return {measurement.name: kind} | {name: f"{kind} {side} {measurement.confidence}" for name, side in ends}


def _mean_plan(measurement: SampleMean, numbers: Numbers) -> SampleMeanPlan:
    """Return the plan of the stored mean with the error bar that the question asks for."""
    number = next(number for number in numbers.values() if isinstance(number.mechanism, NoisySampleMean))
    law, width = number.mechanism, bar_steps(number.mechanism.noise, measurement.confidence)
    return SampleMeanPlan(number.name, measurement.cells, law, measurement.samples, measurement.middle, width)


class SampleMeanRecord(MeasurementRecord):
    """How the noisy mean of the values of samples is stored, and the ends of its error bar."""

    def answering(
        self, measurement: SampleMean, plan: SampleMeanPlan, numbers: Sequence[StoredNumber]
    ) -> Answering | None:
        """Return the plan of the stored mean among `numbers` of the same measure, and under each name that the question reads
        the mean or the end of its bar; None if no mean is stored.

        If the question names a mechanism, only a mean with the noise of that mechanism answers it; otherwise any does.
        """
        means = (number for number in numbers if isinstance(number.mechanism, NoisySampleMean))
        any_noise, word = measurement.mechanism == "auto", plan.law.mechanism
        mean = next((number for number in means if any_noise or number.mechanism.mechanism == word), None)
        if mean is None:
            return None
        released = _mean_plan(measurement, {mean.what: mean})
        laws, (low, high) = dict(released.laws), ends_of(measurement.name)
        end = replace(mean, mechanism=laws[ends_of(mean.name)[0]])
        ends = {
            name: (end, EndOfBar(away, *released.range))
            for name, away in ((low, -released.width), (high, released.width))
        }
        return released, {measurement.name: (mean, None), **ends}


PARTS: Register[MeasurementRecord] = Register(
    "reuse",
    {
        record.word: record
        for record in (
            QuantilesRecord(RANK_HISTOGRAM, (Choice,), _quantile_labels, _quantiles_plan, _is_searched),
            QuantilesRecord(SAMPLE_VALUES, (Choice,), _quantile_labels, _samples_plan, _is_searched),
            MeasurementRecord(
                MOST_FREQUENT,
                (MostFrequent,),
                lambda measurement: {measurement.name: MOST_FREQUENT},
                _most_frequent_plan,
                lambda number: number.what == MOST_FREQUENT,
            ),
            MeasurementRecord(
                END_ROWS,
                (EndKey,),
                lambda measurement: {measurement.name: _side(measurement.last)},
                _end_rows_plan,
                lambda number: number.what == _side(number.mechanism.last),
            ),
            MeasurementRecord(LOCAL_SENSITIVITY, _LOCAL, _local_labels, _local_plan),
            SampleMeanRecord(SAMPLE_MEAN, (FollowsFrom, NoisySampleMean), _mean_labels, _mean_plan),
        )
    },
)


# --- stored numbers that answer a question ---

_MOST_EXPLAINED = 3


@dataclass(frozen=True)
class Match:
    """The stored number that answers the number `name` of a question, for which the mechanism `fresh` would choose a new one.
    `error` says in words how far off the stored number may be, `worst_error` in rows (`MeasurementPricing`). `end`: the
    question reads this end of the stored number's error bar instead."""

    name: str
    number: StoredNumber
    fresh: Any
    error: str
    worst_error: float
    end: EndOfBar | None = None

    @property
    def error_ratio(self) -> float:
        """Return by what factor the stored number may be farther off than a new one, by the epsilon of a row."""
        return float(self.fresh.epsilon_0 / self.number.mechanism.epsilon_0)


def matches(
    measurements: tuple[Any, ...], plans: tuple[Any, ...], stored: Sequence[StoredNumber], confidence: float
) -> tuple[Match, ...] | None:
    """Return the stored number for each number of `measurements`, over the same groups and rows; None if one is not stored."""
    pairs = []
    for measurement, plan in zip(measurements, plans, strict=True):
        measure, part = measure_of(measurement), PARTS.of(measurement.word)
        numbers = [number for number in stored if number.measure == measure]
        answered_by = part.answering(measurement, plan, numbers)
        if answered_by is None:
            return None
        released, answered = answered_by
        fresh, pricing = dict(plan.laws), PRICING.of(measurement.word)
        for name, (number, end) in answered.items():
            law = number.name if end is None else ends_of(number.name)[end.away > 0]
            explained = pricing.explained(measurement, released, law, confidence)
            worst = pricing.worst_error(measurement, released, law, confidence)
            words = f"{explained.aggregate}: {explained.error}"
            pairs.append(Match(name, number, fresh[name], words, worst, end))
    return tuple(pairs)


def errors_in_words(numbers: Sequence[Any]) -> str:
    """Return in words how far off stored numbers may be: their shares of a budget may differ from those that EXPLAIN shows."""
    sentences = list(dict.fromkeys(match.error for match in numbers))
    more = len(sentences) - _MOST_EXPLAINED
    return "; ".join([*sentences[:_MOST_EXPLAINED], *([f"{more} more alike"] if more > 0 else [])])


def written(measurements: tuple[Any, ...], plans: tuple[Any, ...]) -> dict[str, Any]:
    """Return the entry for measurements in a release's description; empty without any, so that other descriptions stay equal."""
    if not measurements:
        return {}
    both = zip(measurements, plans, strict=True)
    return {
        "measurements": [
            {"word": measurement.word, "numbers": PARTS.of(measurement.word).written(measurement, plan)}
            for measurement, plan in both
        ]
    }


def read(facts: Mapping[str, Any]) -> tuple[StoredNumber, ...]:
    """Return the numbers that `written` described. Raises KeyError, TypeError or ValueError for any other kind."""
    words = set(PARTS)
    entries = facts.get("measurements", [])
    if any(entry["word"] not in words for entry in entries):
        raise ValueError("a measurement of a kind that is not known")
    return tuple(PARTS.of(entry["word"]).read(number) for entry in entries for number in entry["numbers"])
