"""The expected error for each value of a contribution bound: bias, estimated from noisy histograms, and noise.

Everything here is post-processing of released histograms and of prices. The estimates are averages over the groups of the answer:
bias is the part of the sum that all units lose, divided by the number of groups; noise is E|noise| of one group.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsql.aggregates.contract import SharedPart, aggregate_of
from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import call
from dpsql.plan.expression_text import expression_text
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.measurements import Quantile, SampleMean, SampleValues
from dpsql.plan.plan import (
    Block,
    BoundedBlock,
    Column,
    Expr,
    Filter,
    Key,
    Measure,
    Plan,
    Relation,
    Term,
    TermKind,
    TotalCut,
    UnitAggregate,
    literal,
)
from dpsql.planning.planner import Planned, Planner
from dpsql.pricing.budget_parts import expected_error
from dpsql.pricing.pricing import price
from dpsql.pricing.sum_terms import EMPTY_CELLS, cut_at, is_share, last_cell, units_above
from dpsql.privacy.mechanisms.contract import Noise, Norm
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL, Choice
from dpsql.privacy.mechanisms.sample_values import SampleMeanPlan, SampleValuesPlan, enough_samples
from dpsql.sql.parser import parse_text
from dpsql.storage.records import dataclass, replace

LEAST_ROWS = 10
"""Number of rows that a sample should have: with fewer, most statistics mean little."""
_NUMBERS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
_LIKELY_ERROR = 0.95


@dataclass(frozen=True)
class SampleChoice:
    """The accuracy with `samples` samples. `rows`: rows of each sample in a group of `dp.assume_rows` rows. `rank_error`: the
    share of the samples by which the median may be off in rank in 95 % of cases, whatever the data (from 0.5 on it may be any
    value). `mean_error`: the half width of a 95 % error bar of the mean's noise, in the unit of the answer. `recommended`:
    "median", "mean" or ""."""

    samples: int
    rows: float
    rank_error: float
    mean_error: float
    recommended: str = ""


@dataclass(frozen=True)
class SampleTable:
    """The choices for one SAMPLE_AGGREGATE. `samples`, `combined`: the number of samples in the question, and how it combines
    them. `enough`: the number of samples from which on the median stays among the middle half of them."""

    statistic: str
    samples: int
    combined: str
    enough: int
    choices: tuple[SampleChoice, ...]

    @property
    def recommended(self) -> SampleChoice | None:
        return next((choice for choice in self.choices if choice.recommended), None)


def sample_tables(planned: Planned, planner: Planner) -> tuple[SampleTable, ...]:
    """Return a table for each SAMPLE_AGGREGATE of a planned question, at the question's price."""
    blocks = tuple(priced.block for priced in planned.price.blocks)
    if not any(_is_sampled(measurement) for block in blocks for measurement in block.measurements):
        return ()
    options = replace(planned.options, quantile_bars=False)
    medians, means = (
        price(
            tuple(_combined(block, combination, options) for block in blocks),
            options,
            planner.policy,
            planner.accountant,
        )
        for combination in (_as_median, _as_mean)
    )
    tables = []
    for as_medians, as_means in zip(medians.blocks, means.blocks, strict=True):
        by_name = {plan.name: plan for plan in as_means.noise.measurements}
        requested = next(block for block in blocks if block.name == as_medians.block.name)
        measurements: dict[str, Any] = {measurement.name: measurement for measurement in requested.measurements}
        for plan in as_medians.noise.measurements:
            mean, measurement = by_name[plan.name], measurements[plan.name]
            if isinstance(plan, SampleValuesPlan) and isinstance(mean, SampleMeanPlan):
                tables.append(_table(measurement, plan, mean, int(options.assume_rows)))
    return tuple(tables)


def _is_sampled(measurement: Any) -> bool:
    return isinstance(measurement, (SampleValues, SampleMean))


def _combined(block: BoundedBlock, combination: Any, options: Any) -> BoundedBlock:
    """Return the block with `combination` applied to each of its combinations of samples."""
    changed = (
        combination(measurement, options) if _is_sampled(measurement) else measurement
        for measurement in block.measurements
    )
    return replace(block, measurements=tuple(changed))


def _as_median(measurement: SampleValues | SampleMean, options: Any) -> SampleValues:
    quantiles = (Quantile(f"{measurement.name}q0", Fraction(1, 2)),)
    return SampleValues(
        measurement.name,
        measurement.value,
        measurement.term,
        quantiles,
        samples=measurement.samples,
        by_unit=measurement.by_unit,
    )


def _as_mean(measurement: SampleValues | SampleMean, options: Any) -> SampleMean:
    confidence = Fraction(options.confidence)
    return SampleMean(
        measurement.name,
        measurement.value,
        measurement.term,
        measurement.samples,
        measurement.by_unit,
        confidence,
        options.mechanism,
    )


def _table(
    measurement: SampleValues | SampleMean, median: SampleValuesPlan, mean: SampleMeanPlan, rows: int
) -> SampleTable:
    law = median.quantiles[0].law
    assert isinstance(law, Choice)
    rank, enough = law.rank_error(median.cells, 1 - _LIKELY_ERROR), enough_samples(law, median.cells, 1 - _LIKELY_ERROR)
    width = mean.law.noise.half_width(_LIKELY_ERROR) * 2.0**-measurement.term.grid
    numbers = sorted({*(number for number in _NUMBERS if number * LEAST_ROWS <= rows), enough, measurement.samples})
    best = _recommended(rows, enough)
    choices = tuple(
        SampleChoice(
            number, rows / number, rank / number, width / number, best[1] if best and best[0] == number else ""
        )
        for number in sorted({*numbers, *([best[0]] if best else [])})
    )
    combined = "mean" if isinstance(measurement, SampleMean) else "median"
    return SampleTable(expression_text(measurement.value), measurement.samples, combined, enough, choices)


def _recommended(rows: int, enough: int) -> tuple[int, str] | None:
    """Return a number of samples for a group of `rows` rows, and how to combine them: the median of `enough` samples if each gets
    `LEAST_ROWS` rows, else the mean of as many samples as get that; None for fewer than 2 samples."""
    if enough * LEAST_ROWS <= rows:
        return enough, "median"
    most = math.floor(rows / LEAST_ROWS)
    return (most, "mean") if most >= 2 else None


# --- histograms -------------------------------------------------------------------------------------------------------

# Private histograms of what one unit contributes: rows, groups, and the total of a summed value, as one question.
# Each is an ordinary private block over a per-unit aggregation of the rows that the tuned question reads: one row for each
# unit, counted in public bins that double in width. A unit is in one bin of each histogram, so each has sensitivity 1,
# whatever its rows (privacy.md 3 and 4). The blocks are priced, reserved, measured and stored like those of any question.

DOUBLINGS = 20
"""Bins of totals reach from 2**-20 to at most 2**20 times the largest value of one row."""
MOST_LISTED = 1_000


@dataclass(frozen=True)
class Summed:
    """The summed expression and filter of a SUM or AVG of the tuned question."""

    value: Expr
    filter: Expr | None


@dataclass(frozen=True)
class Histogram:
    """One histogram. `counted`: "rows", "groups" or "total"; bin i contains the units above `edges[i - 1]` (0 for the first bin)
    and up to `edges[i]`."""

    counted: str
    edges: tuple[Fraction, ...]
    summed: Summed | None = None


def sums_of(block: Block) -> tuple[Summed, ...]:
    """Return the distinct summed expressions of SUM and AVG in a block."""
    summed = [
        Summed(measure.arguments[0], measure.filter)
        for measure in block.measures
        if SharedPart.SUM in (aggregate_of(measure.aggregate).shared or SharedPart(0)) and not measure.distinct
    ]
    return tuple(dict.fromkeys(part for part in summed if _largest(part.value) > 0))


def histograms_of(block: Block, rows: int) -> tuple[Histogram, ...]:
    """Return the histograms to measure for a block whose units have at most `rows` rows: rows, groups (with keys), totals."""
    counts = tuple(Fraction(2**index) for index in range((rows - 1).bit_length() + 1))
    histograms = [Histogram("rows", counts)]
    if block.keys:
        histograms.append(Histogram("groups", counts))
    for summed in sums_of(block):
        largest = Fraction(float(_largest(summed.value)))
        steps = range(-DOUBLINGS, min(DOUBLINGS, len(counts) - 1) + 1)
        histograms.append(Histogram("total", tuple(largest * Fraction(2) ** step for step in steps), summed))
    return tuple(histograms)


def histogram_plan(sql: str, block: Block, histograms: tuple[Histogram, ...], rows: int) -> Plan:
    """Return one plan for all histograms; its rows are (histogram number, bin, noisy count of units), in ascending order."""
    units = _units(block, histograms, rows)
    blocks, selects = [], []
    for index, histogram in enumerate(histograms):
        key = _bin(Column(_name(histogram, index), _facts(histogram, rows)), histogram.edges)
        counted = Measure("m0", "count", (), False, None)
        blocks.append(Block(f"dp_{index}", units, (Key("k0", key, domain_of(key)),), (counted,)))
        selects.append(f'SELECT {index} AS histogram, "k0" AS bin, "m0" AS units FROM dp_{index}')
    remainder = parse_text(" UNION ALL ".join(selects) + " ORDER BY 1, 2")
    return Plan(sql, tuple(blocks), (), remainder, ("histogram", "bin", "units"))  # type: ignore[arg-type]


def _units(block: Block, histograms: tuple[Histogram, ...], rows: int) -> Relation:
    """Return a relation with a row for each unit: its numbers of groups and rows, and the sum over groups of |sum|."""
    whole = Facts(Type.INTEGER, Fraction(1), Fraction(rows), nullable=False)
    columns: list[tuple[str, str, Expr | None, Expr | None, Facts]] = [("n", "count", None, None, whole)]
    totals: list[tuple[str, str, Expr | None, Expr | None, Facts]] = [
        ("groups", "count", None, None, whole),
        ("rows", "sum", Column("n", whole), None, whole),
    ]
    for index, histogram in enumerate(histograms):
        if histogram.summed is not None:
            most = Fraction(float(_largest(histogram.summed.value))) * rows
            sums = Facts(Type.REAL, -most, most)
            value = call("to_real", histogram.summed.value)
            columns.append((f"s{index}", "sum", value, histogram.summed.filter, sums))
            size = call("abs", Column(f"s{index}", sums))
            totals.append((_name(histogram, index), "sum", size, None, _facts(histogram, rows)))
    keys = tuple((f"g{index}", key.expression) for index, key in enumerate(block.keys))
    return UnitAggregate(UnitAggregate(_inside(block), keys, tuple(columns)), (), tuple(totals))


def _inside(block: Block) -> Relation:
    """Return the rows in groups of the answer; public keys with a long domain, or one of truth values or reals, are ignored."""
    relation = block.source
    for key in block.keys:
        if key.values is None or not len(key.values) <= MOST_LISTED:
            continue
        values = [value for value in key.values if value is not None]
        if not any(isinstance(value, (bool, float)) for value in values):
            listed = list(map(literal, values))
            inside = call("in", key.expression, *listed) if listed else literal(False)
            missing = call("is_null", key.expression)
            relation = Filter(relation, call("or", inside, missing) if None in key.values else inside)
    return relation


def _bin(value: Expr, edges: tuple[Fraction, ...]) -> Expr:
    """Return the number of a value's bin; larger values fall into the last bin, NULL (a unit without values) into the first."""
    cases: list[Expr] = [call("is_null", value), literal(0)]
    for index, edge in enumerate(edges[:-1]):
        last = int(edge) if value.facts.type is Type.INTEGER else edge
        cases += [call("le", value, literal(last)), literal(index)]
    return call("case", *cases, literal(len(edges) - 1))


def _name(histogram: Histogram, index: int) -> str:
    return f"total{index}" if histogram.summed is not None else histogram.counted


def _facts(histogram: Histogram, rows: int) -> Facts:
    if histogram.summed is None:
        return Facts(Type.INTEGER, Fraction(1), Fraction(rows), nullable=False)
    return Facts(Type.REAL, Fraction(0), Fraction(float(_largest(histogram.summed.value))) * rows)


def _largest(value: Expr) -> Fraction:
    return max(abs(Fraction(value.facts.lower)), abs(Fraction(value.facts.upper)))


def middle(histogram: Histogram, index: int) -> float:
    """Return the typical size of a unit in a bin: the mean of a log-uniform distribution over the bin."""
    high = float(histogram.edges[index])
    low = float(histogram.edges[index - 1]) if index else high / 2
    if histogram.counted != "total":
        low, high = (low + 0.5 if index else 0.5), high + 0.5
        return float(histogram.edges[index]) if high - low <= 1 else (high - low) / math.log(high / low)
    return (high - low) / math.log(high / low)


# --- choices ----------------------------------------------------------------------------------------------------------

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
        return sum(n * over for n, over in zip(self.units, self._overs(bound), strict=True))

    def units_above(self, bound: float) -> float:
        """Return the estimated number of units above `bound`, for units log-uniform over each bin."""
        edges = [float(edge) for edge in self.histogram.edges]
        lows = [edges[0] / 2, *edges[:-1]]
        parts = (_part_above(low, high, bound) for low, high in zip(lows, edges, strict=True))
        return sum(n * part for n, part in zip(self.units, parts, strict=True) if n)

    def with_hidden(self) -> NoisyHistogram:
        """Return the histogram with `least` units in the bin after the last nonempty one: as many as noise can hide there."""
        last = max((index for index, n in enumerate(self.units) if n), default=-1) + 1
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


def bound_choice(
    value: float, bound: float, measured: NoisyHistogram, groups: float, unit: float, noise: float
) -> BoundChoice:
    """Return the errors if each unit keeps `bound` of the quantity in `measured`; `unit`: what one unit of it adds to a sum."""
    total, beyond = measured.total(), measured.beyond(bound)
    lost = beyond / total if total else 0.0
    doubt, margin = measured.doubt(bound) * unit / groups, measured.margin(bound) * unit / groups
    return BoundChoice(value, lost, beyond * unit / groups, noise, doubt, margin)


def marked_table(
    setting: str, output: str, choices: list[BoundChoice], now: float | None, measured: NoisyHistogram
) -> ChoiceTable:
    """Return the choices with the one of the least expected error marked as recommended, unless noise drowns the histogram."""
    if measured.people() < 3 * measured.least:
        why = f"noise drowns the histogram (a bin counts from {measured.least:.3g} persons): give it a larger --epsilon"
        return ChoiceTable(setting, output, tuple(choices), now, why)
    best = min(range(len(choices)), key=lambda number: choices[number].together)
    if choices[best].doubt > choices[best].together:
        why = "noise drowns the estimate of the bias: give it a larger --epsilon"
        return ChoiceTable(setting, output, tuple(choices), now, why)
    marked = (replace(entry, recommended=index == best) for index, entry in enumerate(choices))
    return ChoiceTable(setting, output, tuple(marked), now)


# --- ways -------------------------------------------------------------------------------------------------------------

# Comparison of ways of bounding what a unit adds to a SUM: the policy's bound alone, a `max_total` from the histogram of
# totals, or `max_total = auto`, which chooses a bound for each question with a part of its price.
# Everything is computed from the released histogram of totals and from prices. For `auto` the law of the choice is known:
# given the number of units above each cell, according to the histogram, each cell has a probability
# (`privacy.mechanisms.exponential`), a bias and a noise.

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
        """Take a question and one of its sums. `groups`: the answer's number of groups; `spread`: an average unit's."""
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
    least = min(range(len(ways)), key=lambda index: ways[index].hidden)
    marked = (replace(candidate, recommended=index == least) for index, candidate in enumerate(ways))
    return WayTable(totals.of, tuple(marked), auto.enough)


def choice_chances(law: Choice, above: Floats) -> Floats:
    """Return each cell's probability in a choice that leans to lower cells, given the number of units `above` each."""
    distances = np.maximum(above - (law.rank - 0.5), 0.0) + law.lean * np.arange(above.size) / law.denominator
    heads = np.exp(-float(law.rate) * (distances - distances.min()))
    if law.mechanism == EXPONENTIAL:
        return np.asarray(heads / heads.sum())
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    tails = 1 - heads[:, np.newaxis] * (nodes + 1) / 2
    together = np.exp(np.log(tails).sum(axis=0))
    chances = heads * ((together / tails) @ weights) / 2
    return np.asarray(chances / chances.sum())
