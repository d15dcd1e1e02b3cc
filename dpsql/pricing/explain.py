"""What a question would measure, with what noise and error, at what price.

A function of SQL, policy and options (and of whether a stored release answers); it never reads data.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from itertools import islice
from statistics import NormalDist
from typing import Any

from sqlglot import exp

from dpsql.aggregates.contract import SharedPart, aggregate_of
from dpsql.aggregates.moments import distance
from dpsql.functions.numeric import call, clamped, constant
from dpsql.plan.expression_text import column_texts, expression_text, with_filter
from dpsql.plan.formulas import terms_of
from dpsql.plan.plan import Block, Call, Expr, Literal, Measure, Plan, Relation, Term, TermKind, TotalCut
from dpsql.plan.stability import tables
from dpsql.pricing.budget_parts import term_errors
from dpsql.pricing.joint_sums import indexes_of
from dpsql.pricing.local_sensitivity import WAYS as LOCAL
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.pricing import Price, PricedBlock, shown_half_of_the_time
from dpsql.pricing.running_totals import mean_terms, mean_variances
from dpsql.pricing.sensitivity import places_of
from dpsql.pricing.sum_terms import is_share, whole_share
from dpsql.pricing.workloads import Workload, variance
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import Noise, TermNoise
from dpsql.storage.records import dataclass, replace

# --- sums in EXPLAIN --------------------------------------------------------------------------------------------------

# Sums in EXPLAIN: their text as short SQL, and the measures that they stand for.

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def cut_text(cut: TotalCut, plan: Plan) -> str:
    """Describe a sum whose bound is chosen privately, as SQL-like text."""
    source = next(block.source for block in plan.blocks if block.name in cut.readers)
    kind = {"max_values": "distinct", "max_count": "count"}.get(cut.option, "sum")
    return term_text(kind, None if kind == "count" else cut.value, cut.filter, False, source)


def term_text(
    kind: str, value: Expr | None, condition: Expr | None, centred: bool, source: Relation | None = None
) -> str:
    """Describe a term as SQL-like text; `source`: the summed relation, whose columns may have no names in the question."""
    columns = {} if source is None else column_texts(source)
    inside = "*" if value is None else expression_text(value, columns)
    text = {
        "count": f"count({inside})", "sum": f"{'centred ' if centred else ''}sum({inside})",
        "units": "count(distinct unit)", "distinct": f"count(distinct {inside})", "distinct share": f"count(distinct {inside})",
        "distinct sum": f"{'centred ' if centred else ''}sum(distinct {inside})",
    }[kind]  # fmt: skip
    return with_filter(text, condition, columns)


def reading(name: str, block: Block, priced: PricedBlock) -> list[Measure]:
    """Return the measures whose formula reads the released number `name`."""
    formulas = zip(block.measures, priced.block.formulas, strict=True)
    return [measure for measure, (_, formula, _) in formulas if name in terms_of(formula)]


def made_of(term: Term, block: Block, priced: PricedBlock) -> list[Measure]:
    """Return the measures that read a term; of terms that share each row, those that it represents (`term_errors`)."""
    measures = reading(term.name, block, priced)
    if not term.shares:
        return measures
    if term.kind in _OF_PAIRS:
        counting = [measure for measure in measures if _shared(measure) == SharedPart.COUNT]
        return counting or measures if not term.place else [m for m in measures if m not in counting]
    if term.kind is TermKind.SQUARE_PART or term.place:
        return _made_of_squares(term, measures, priced)
    summing = term.kind is TermKind.SUM and term.centre == term.lower
    chosen = [measure for measure in measures if (_shared(measure) == SharedPart.COUNT) is not summing]
    last = next(
        (other for other in priced.block.terms if other.shares == term.shares and other.kind is TermKind.COUNT), None
    )
    if term.kind is TermKind.SUM and last is not None and not summing:
        rows = {measure.name for measure in made_of(last, block, priced)}
        chosen = [measure for measure in chosen if measure.name not in rows]
    return chosen or [measure for measure in measures if _shared(measure) == SharedPart.SUM | SharedPart.COUNT]


def _made_of_squares(term: Term, measures: list[Measure], priced: PricedBlock) -> list[Measure]:
    """Return the measures of a term of shared squares, by its place: count of values, SUM, readers of squares, COUNT(*)."""
    stands_for = (SharedPart.COUNT, SharedPart.SUM, None, SharedPart.COUNT)[term.place]
    if stands_for is None:
        return [measure for measure in measures if SharedPart.SQUARES in (_shared(measure) or SharedPart(0))]
    chosen = [measure for measure in measures if _shared(measure) == stands_for]
    last = next((t.name for t in priced.block.terms if t.shares == term.shares and t.place == 3), None)
    if term.place == 0 and last is not None:
        rows = {name for name, formula, _ in priced.block.formulas if last in terms_of(formula)}
        chosen = [measure for measure in chosen if measure.name not in rows]
    return chosen or [
        measure for measure in measures if SharedPart.SUM | SharedPart.COUNT in (_shared(measure) or SharedPart(0))
    ]


def _shared(measure: Measure) -> SharedPart | None:
    return aggregate_of(measure.aggregate).shared


def text_of(term: Term, priced: PricedBlock) -> str:
    if priced.block.unit_weights and term.name == priced.block.selection_term:
        return "units, one weight each shared among its keys"
    if not term.shares:
        return term_text(term.kind.value, term.value, term.filter, bool(term.centre))
    if term.kind in _OF_PAIRS:
        return _text_of_product(term)
    summed = (TermKind.SUM, TermKind.SQUARE_PART)
    low = next(other for other in priced.block.terms if other.shares == term.shares and other.kind in summed)
    if term.kind is TermKind.SQUARE_PART and term.place:
        assert term.value is not None
        d = distance(clamped(term.value), term.lower)
        value = term.value if term.place == 1 else call("mul", d, d)
        return term_text("sum", value, term.filter, False)
    if term.kind is TermKind.SUM and term.centre == term.lower:
        return term_text("sum", term.value, term.filter, False)
    everything = term.kind is TermKind.COUNT or term.absent
    return term_text("count", None if everything else low.value, low.filter, False)


_OF_PAIRS = (TermKind.PRODUCT_PART, TermKind.PAIR_PART)


def _text_of_product(term: Term) -> str:
    if term.place == 0:
        return term_text("count", None, term.filter, False)
    assert isinstance(term.value, Call)
    factors: list[Expr] = []
    for (power, index), value in zip(indexes_of(term), term.value.arguments, strict=True):
        inside = clamped(value)
        above, below = distance(inside, value.facts.lower), call("sub", constant(value.facts.upper, value), inside)
        ends = [below] * (power - index) + [above] * index
        factors.append(call("mul", *ends) if power > 1 else ends[0])
    return term_text("sum", call("mul", *factors), term.filter, False)


# --- Names of a plan's blocks in notices: the outputs that read a block, or else its tables and keys ---
# The names of blocks in a plan (`dp_0`) mean nothing to the analyst. Outputs, tables and keys occur in the analyst's own text.

MOST_NAMED = 5
"""Most outputs, tables or keys that are named; further ones are counted."""


def block_names(plan: Plan) -> dict[str, str]:
    """Return each block's name in words: "the aggregation behind mean, n" where outputs read it and no other block has the same
    outputs, otherwise "the aggregation of patients by region"."""
    outputs = {block.name: _listed(list(_names(block.measures, used_by(plan, block.name)))) for block in plan.blocks}
    readers = Counter(outputs.values())
    return {
        block.name: _of_rows(block, behind) if not behind or readers[behind] > 1 else f"the aggregation behind {behind}"
        for block in plan.blocks
        for behind in (outputs[block.name],)
    }


def _of_rows(block: Block, behind: str) -> str:
    columns = column_texts(block.source)
    keys = [expression_text(key.expression, columns) for key in block.keys]
    by = f" by {_listed(keys)}" if keys else ""
    return f"the aggregation of {_listed(sorted(tables(block.source)))}{by}{f' behind {behind}' if behind else ''}"


def _listed(names: list[str]) -> str:
    further = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {further} more" if further > 0 else "")


class Figures(Enum):
    """What the sensitivities, scale and error of a planned output are measured in.

    ANSWER: the unit of the answer. RANK: rows of rank, of a number that is chosen. SECRET: rows of rank, of a number whose noise
    follows the data. CUT, PLACES: multiples of the bound, or of the number of values, that is chosen first. KEYS: the units or
    rows of a key, in partition selection.
    """

    ANSWER = "answer"
    RANK = "rank"
    SECRET = "secret"
    CUT = "bound"
    PLACES = "number of values"
    KEYS = "keys"

    @property
    def chosen_first(self) -> bool:
        """Return whether the figures are multiples of a number that an earlier stage chooses."""
        return self in (Figures.CUT, Figures.PLACES)


COLUMNS = (
    "block", "output", "aggregate", "keys", "mechanism", "l0", "l1_sensitivity", "l2_sensitivity", "noise_scale", "error_95",
    "epsilon", "delta", "rho", "rows_per_unit", "grid", "stored_error_95", "bound",
)  # fmt: skip
"""Columns of EXPLAIN VERBOSE (docs/sql.md), the attributes of a `PlannedOutput`."""


@dataclass(frozen=True)
class PlannedOutput:
    """One noisy output: a basis term, a chosen number, or the partition selection of a block.

    `names`: the outputs of the question that read it. Sensitivities, `noise_scale` and `error_95` (half width at the requested
    confidence, 95 % by default) are in what `figures` says; `grid` is the width of one integer step in the unit of the answer; an
    epsilon or rho of None is infinite. `error_95` is None where no half width in the unit of the answer is known: `error` then
    says in words what is. `limits` names the contribution bounds that determine the sensitivities, with their values. For
    partition selection, `noise_scale` is the size of a key that is shown with probability 1/2, and `limits` says what is counted.
    `stored_error_95` is the error of the stored release that will answer; None where the output will be measured.
    """

    block: str
    names: tuple[str, ...]
    aggregate: str
    keys: str
    mechanism: str
    l0: int
    l1_sensitivity: float
    l2_sensitivity: float
    noise_scale: float
    error_95: float | None
    epsilon: float | None
    delta: float
    rho: float | None
    rows_per_unit: int
    grid: float
    stored_error_95: float | None = None
    limits: tuple[str, ...] = ()
    error: str = ""
    figures: Figures = Figures.ANSWER

    @property
    def output(self) -> str:
        return ", ".join(self.names)

    @property
    def bound(self) -> str:
        """The limits, and what is known of the error, in one text."""
        limits = ", ".join(self.limits)
        return f"{limits}; {self.error}" if self.error else limits

    def row(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in COLUMNS)

    def text(self, confidence: float) -> str:
        """Return the output as a line for people; `confidence` is that of `error_95`."""
        named = f"{self.block}  {self.output}: {self.aggregate}" if self.names else f"{self.block}  {self.aggregate}"
        if self.figures is Figures.KEYS:
            return f"{named}, shown from about {self.noise_scale:.4g} {self.bound} (delta {self.delta:.3g})"
        named = f"{named}, {self.keys} keys"
        if self.figures is Figures.SECRET:
            return f"{named}: {self.mechanism} ({self.bound})"
        if self.figures is Figures.RANK:
            falling = f"its weights fall by e every {self.noise_scale:.4g} rows of rank"
            return f"{named}: chosen by the {self.mechanism} mechanism, {falling} ({self.bound})"
        noise = f"{named}: {self.mechanism} noise of scale {self.noise_scale:.4g}"
        if self.error_95 is None:
            return f"{noise} times that {self.figures.value} ({self.bound})"
        stored = "" if self.stored_error_95 is None else f" (from the store within +/- {self.stored_error_95:.4g})"
        return (
            f"{noise}, within +/- {self.error_95:.4g}{stored} in {confidence:.0%} of cases "
            f"(L1 {self.l1_sensitivity:.4g}, L2 {self.l2_sensitivity:.4g}, {self.bound})"
        )


def confidence_text(confidence: float) -> str:
    """Return a confidence as a text such as 95 %."""
    return f"{confidence * 100:.4g} %"


def describe_loss(loss: PrivacyLoss) -> str:
    """Return a privacy loss in words, with exact numbers where those are short."""
    if loss == PrivacyLoss.nothing():
        return "nothing"
    parts = []
    if loss.epsilon is not None:
        parts.append(f"epsilon {plain_decimal(loss.epsilon)}")
    if loss.rho is not None:
        parts.append(f"rho {plain_decimal(loss.rho)}")
    if loss.delta:
        parts.append(f"delta {plain_decimal(loss.delta)}")
    return ", ".join(parts) or "infinite"


def planned_outputs(
    plan: Plan,
    priced: Sequence[PricedBlock],
    confidence: Fraction,
    stored: Mapping[str, Mapping[str, tuple[float, float]]],
    after: Mapping[tuple[str, str], Noise] | None = None,
) -> tuple[PlannedOutput, ...]:
    """Return the rows of EXPLAIN. `stored`: the errors of the terms of each block that is answered from the store; `after`: the
    error laws that least squares leaves for the noise of terms, by block and term."""
    rows: list[PlannedOutput] = []
    blocks = {block.name: block for block in plan.blocks}
    for priced_block in priced:
        block, level = blocks[priced_block.block.name], float(confidence)
        noises_after, used = _shown_noises(priced_block, after or {}), used_by(plan, block.name)
        measured = _terms(block, priced_block, plan, used, level, stored.get(block.name, {}), noises_after)
        measured += _numbers(block, priced_block, plan, used, level)
        rows += sorted(measured, key=lambda row: list(used).index(row.names[0]) if row.names else len(used))
        if priced_block.noise.selection is not None:
            rows.append(_selection(priced_block))
    return tuple(rows)


def _shown_noises(priced: PricedBlock, after: Mapping[tuple[str, str], Noise]) -> list[TermNoise]:
    """Return the terms of a block, each with the law of the error that is shown."""
    name = priced.block.name
    return [replace(noise, noise=after.get((name, noise.name), noise.noise)) for noise in priced.noise.terms]


@dataclass(frozen=True)
class TileRow:
    """One table of a workload: the keys of its groups in words; its sums, each with the half widths before and after least
    squares; and its `share` of the budget part that it would have alone."""

    block: str
    table: str
    sums: tuple[tuple[str, float, float], ...]
    share: Fraction


def tile_rows(price: Price, confidence: Fraction) -> Iterator[TileRow]:
    """Yield the tables of all workloads except workloads by ranges."""
    named = {priced.block.name: priced for priced in price.blocks}
    after = price.laws_after
    for workload in price.workloads:
        if workload.marginals.lengths:
            continue
        for tile, apart, share in zip(workload.tiles, workload.apart, workload.shares, strict=True):
            priced = named[tile.block]
            noises = [noise for noise in priced.noise.terms if noise.name in tile.terms]
            alone = [replace(noise, noise=law) for noise, law in zip(noises, apart, strict=True)]
            now_noises = [replace(noise, noise=after[tile.block, noise.name]) for noise in noises]
            before, now = (term_errors(priced.block, laws, float(confidence)) for laws in (alone, now_noises))
            sums = tuple(
                (text_of(term, priced), before[term.name].half_width, now[term.name].half_width)
                for term in priced.block.terms
                if term.name in tile.terms
            )
            keys = ", ".join(expression_text(key.expression) for key in priced.block.keys)
            yield TileRow(tile.block, f"by {keys}" if keys else "in all", sums, share)


def tile_lines(price: Price, confidence: Fraction, most: int) -> tuple[str, ...]:
    """Return one line each for the first `most` tables of workloads: the error bars of its sums after least squares, and those
    that they would have if every table had an even share of the budget and no other table were used."""
    named = {priced.block.name: priced for priced in price.blocks}
    after = price.laws_after
    running = [
        _running_line(workload, named, after, float(confidence))
        for workload in price.workloads
        if workload.marginals.lengths
    ]
    tiles = (
        f"{row.table}: "
        + ", ".join(f"{sum_text} {PLUS_MINUS} {now:.3g} ({alone:.3g} apart)" for sum_text, alone, now in row.sums)
        for row in tile_rows(price, confidence)
    )
    return tuple(islice((*running, *tiles), most))


def tile_count(price: Price) -> int:
    """Return the number of lines that `tile_lines` has without a limit."""
    return sum(1 if workload.marginals.lengths else len(workload.tiles) for workload in price.workloads)


def _running_line(
    workload: Workload, named: Mapping[str, PricedBlock], after: Mapping[tuple[str, str], Noise], confidence: float
) -> str:
    """Return the error bars of a table that is also measured by ranges of its last key, and of running totals over that key."""
    finest, (alone, *_) = workload.tiles[0], workload.apart[0]
    priced = named[finest.block]
    noises = [next(n for n in named[t.block].noise.terms if n.name == t.terms[0]) for t in workload.tiles]
    before, now = (
        term_errors(priced.block, [replace(noises[0], noise=law)], confidence)[noises[0].name]
        for law in (alone, after[finest.block, noises[0].name])
    )
    variances = [variance(noise.noise, noise.whole) for noise in noises]
    running, single = mean_variances(workload, variances)
    summed = math.sqrt(mean_terms(workload))
    key = expression_text(priced.block.keys[-1].expression)
    term = next(term for term in priced.block.terms if term.name == noises[0].name)
    return (
        f"by {key}: {text_of(term, priced)} {PLUS_MINUS} {now.half_width:.3g} ({before.half_width:.3g} apart); its running "
        f"totals about {PLUS_MINUS} {now.half_width * math.sqrt(running / single):.3g} ({before.half_width * summed:.3g} apart)"
    )


def running_lines(price: Price, confidence: Fraction, most: int) -> tuple[str, ...]:
    """Return one line each for the first `most` sums with noise for running totals: its error bars, the approximate error bars of
    its running totals, and those of running totals without such noise and by ranges."""
    named = {priced.block.name: priced for priced in price.blocks}
    scale = NormalDist().inv_cdf((1 + float(confidence)) / 2)
    lines = []
    for table in price.running[:most]:
        priced = named[table.block]
        error = term_errors(priced.block, priced.noise.terms, float(confidence))[table.term]
        term = next(term for term in priced.block.terms if term.name == table.term)
        totals, apart = (scale * width * 2.0**-term.grid for width in (table.error, table.alone))
        ranges = "" if table.ranges is None else f", {scale * table.ranges * 2.0**-term.grid:.3g} by ranges"
        lines.append(
            f"by {expression_text(priced.block.keys[-1].expression)}: {text_of(term, priced)} {PLUS_MINUS} "
            f"{error.half_width:.3g}; its running totals about {PLUS_MINUS} {totals:.3g} ({apart:.3g} apart{ranges})"
        )
    return tuple(lines)


def _kind(priced: PricedBlock) -> str:
    if not priced.block.keys:
        return "no"
    return "private" if any(key.values is None for key in priced.block.keys) else "public"


def _terms(
    block: Block,
    priced: PricedBlock,
    plan: Plan,
    used: Mapping[str, set[str]],
    confidence: float,
    stored: Mapping[str, tuple[float, float]],
    noises_after: Sequence[TermNoise],
) -> list[PlannedOutput]:
    rows = []
    cuts = [cut for cut in plan.cuts if block.name in cut.readers]
    named = {term.name: term for term in priced.block.terms}
    errors = term_errors(priced.block, noises_after, confidence)
    stored_errors = shown_errors(stored, priced, confidence) if stored else {}
    for noisy in priced.noise.terms:
        term = named.get(noisy.name) or Term(noisy.name, TermKind.UNITS, None, None, 1)  # counted for selection alone
        cut = next((cut for cut in cuts if noisy.name in named and is_share(term, cut)), None)
        step, error = errors[noisy.name].unit, errors[noisy.name].half_width
        noise, loss = noisy.noise, noisy.noise.loss
        if noisy.shares not in ("", noisy.name):  # the price of a set is shown at its first term
            loss = PrivacyLoss.nothing()
        output = PlannedOutput(
            block=block.name,
            names=_names(made_of(term, block, priced), used),
            aggregate=text_of(term, priced),
            keys=_kind(priced),
            mechanism=noise.mechanism,
            l0=noise.sensitivity.l0,
            l1_sensitivity=noise.sensitivity.l1 * step,
            l2_sensitivity=math.sqrt(noise.sensitivity.l2_squared) * step,
            noise_scale=float(noise.noise_scale) * 2.0**noise.shift * step,
            error_95=error,
            **_price(loss),
            rows_per_unit=priced.block.caps.rows_per_unit,
            grid=2.0**noise.shift * step,
            stored_error_95=stored_errors.get(noisy.name),
            limits=_limits(term, priced, cut),
        )
        rows.append(output if cut is None else _in_multiples(output, cut, plan, confidence))
    return rows


def _in_multiples(output: PlannedOutput, cut: TotalCut, plan: Plan, confidence: float) -> PlannedOutput:
    """Return the output of a sum in multiples of the bound that is chosen first: on what one unit adds in total, which is
    `whole_share` steps of its noise, or on the number of its values."""
    figures = Figures.CUT
    if cut.places:
        scaled = ("l1_sensitivity", "l2_sensitivity", "noise_scale", "error_95", "grid")
        output = replace(output, **{name: getattr(output, name) / whole_share(cut) for name in scaled})
        figures = Figures.PLACES
    times = f"times the {figures.value} that is chosen first (dp.{cut.option} = auto)"
    error = f"{PLUS_MINUS} {output.error_95:.3g} ({confidence_text(confidence)}) {times}"
    return replace(output, aggregate=cut_text(cut, plan), error_95=None, error=error, figures=figures)


def _names(measures: Sequence[Measure], used: Mapping[str, set[str]]) -> tuple[str, ...]:
    read = {measure.name for measure in measures}
    return tuple(name for name, named in used.items() if not named.isdisjoint(read))


def _price(loss: PrivacyLoss) -> dict[str, Any]:
    return {
        "epsilon": None if loss.epsilon is None else float(loss.epsilon),
        "delta": float(loss.delta),
        "rho": None if loss.rho is None else float(loss.rho),
    }


def _numbers(
    block: Block, priced: PricedBlock, plan: Plan, used: Mapping[str, set[str]], confidence: float
) -> list[PlannedOutput]:
    """Return the rows of measurements other than sums, without `error_95`: a chosen number has no known half width."""
    rows = []
    cut = next((cut for cut in plan.cuts if cut.block == block.name), None)
    for measurement, planned in zip(priced.block.measurements, priced.noise.measurements, strict=True):
        part = PARTS.of(measurement.word)
        laws: tuple[tuple[str, Any], ...] = planned.laws
        for name, law in laws:
            if law.loss == PrivacyLoss.nothing():
                continue  # an end of an error bar that follows from the number itself
            number = part.explained(measurement, planned, name, confidence)
            rows.append(
                PlannedOutput(
                    block=block.name,
                    names=_names(reading(name, block, priced), used),
                    aggregate=number.aggregate if cut is None else _cut_aggregate(cut, plan),
                    keys=_kind(priced),
                    mechanism=law.mechanism,
                    l0=law.sensitivity.l0,
                    l1_sensitivity=float(law.sensitivity.l1),
                    l2_sensitivity=math.sqrt(law.sensitivity.l2_squared),
                    noise_scale=number.scale,
                    error_95=None,
                    **_price(law.loss),
                    rows_per_unit=priced.block.caps.rows_per_unit,
                    grid=number.grid,
                    limits=(_caps(priced),),
                    error=number.error,
                    figures=Figures.SECRET if law.mechanism in LOCAL else Figures.RANK,
                )
            )
    return rows


def _cut_aggregate(cut: TotalCut, plan: Plan) -> str:
    """Describe the number that a block chooses as a bound."""
    summed = cut_text(cut, plan)
    return f"values of a unit in the {summed}" if cut.places else f"bound on the {summed} of a unit"


def shown_errors(errors: Mapping[str, tuple[float, float]], priced: PricedBlock, confidence: float) -> dict[str, float]:
    """Return half widths of the quantities that the terms of a released block represent. `errors`: half widths and deviations of
    the terms themselves. Assumes that the noise of a released term follows the planned law."""
    fresh = {term.name: (term.noise.half_width(confidence) * 2.0**-term.grid) for term in priced.noise.terms}
    planned = term_errors(priced.block, priced.noise.terms, confidence)
    return {
        name: error * (planned[name].half_width / fresh[name] if fresh.get(name) else 1.0)
        for name, (error, _) in errors.items()
    }


def _caps(priced: PricedBlock) -> str:
    caps = priced.block.caps
    bounds = [f"{name} {most}" for name, most in caps.bounds.declared().items()]
    return ", ".join([f"{caps.rows_per_unit} rows per unit", *bounds])


def _limits(term: Term, priced: PricedBlock, cut: TotalCut | None) -> tuple[str, ...]:
    """Describe the bounds on a unit's contribution to a term; of a bound chosen first, not what comes with clipping."""
    limits = [_caps(priced)]
    if term.clip is not None and term.clip.norm is not None:
        if cut is not None:
            return tuple(limits)
        option = "max_count" if term.kind is TermKind.COUNT else "max_total"
        most = plain_decimal(term.clip.most / Fraction(2) ** term.grid)
        limits.append(f"clipped to {option} {most} in {term.clip.norm.value}")
    if isinstance(term.places, Literal) and term.kind is TermKind.DISTINCT:
        limits.append(f"max_values {places_of(term)} per unit")
    if term.shares:
        first = next(other for other in priced.block.terms if other.name == term.shares)
        companions = "sums" if first.kind in (TermKind.SQUARE_PART, TermKind.PAIR_PART) else "counts"
        with_ = f"the {companions} beside it" if first.name == term.name else text_of(first, priced)
        limits.append(f"shares each row, and its price, with {with_}")
    return tuple(limits)


def _selection(priced: PricedBlock) -> PlannedOutput:
    rule = priced.noise.selection
    assert rule is not None
    half, counted = shown_half_of_the_time(priced)
    private = ", ".join(expression_text(key.expression) for key in priced.block.keys if key.values is None)
    return PlannedOutput(
        priced.block.name, (), f"partition selection of {private}", "private", rule.kind, 0, 0.0, 0.0, float(half), 0.0,
        **_price(rule.loss), rows_per_unit=priced.block.caps.rows_per_unit, grid=1.0, limits=(counted,),
        figures=Figures.KEYS,
    )  # fmt: skip


_OWN_NAMES = "dp#"
"""Prefix of the names of outputs that no question has written."""


def used_by(plan: Plan, block: str) -> dict[str, set[str]]:
    """Return the measures of `block` that each output of the remainder directly reads, by its name, in the order of SELECT."""
    used: dict[str, set[str]] = {}
    for select in plan.remainder.find_all(exp.Select):
        source = select.args.get("from_")
        if source is None or not isinstance(source.this, exp.Table) or source.this.name != block:
            continue
        for item in select.expressions:
            if not item.alias_or_name.startswith(_OWN_NAMES):
                used.setdefault(item.alias_or_name, set()).update(column.name for column in item.find_all(exp.Column))
    return used
