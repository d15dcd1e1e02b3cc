"""The privacy plan of a question: what would be measured, with what noise and error, at what price.

A function of SQL, policy and options (and of whether a stored release answers); it never reads data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from itertools import islice
from statistics import NormalDist
from typing import Any

from sqlglot import exp

from dpsql.plan.expression_text import expression_text
from dpsql.plan.plan import Block, Literal, Plan, Term, TermKind
from dpsql.pricing.expected_error import term_errors
from dpsql.pricing.explained_sums import (
    PLUS_MINUS,
    TIMES_THE_CUT,
    TIMES_THE_PLACES,
    in_cuts,
    made_of,
    of_cut,
    reading,
    text_of,
)
from dpsql.pricing.local_sensitivity import WAYS as LOCAL
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.pricing import Price, PricedBlock, shown_half_of_the_time
from dpsql.pricing.running_totals import mean_terms, mean_variances
from dpsql.pricing.sensitivity import places_of
from dpsql.pricing.workloads import Workload, variance
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.privacy.mechanisms.contract import Noise, TermNoise


@dataclass(frozen=True)
class PlannedOutput:
    """One noisy output: a basis term, a chosen number, or the partition selection of a block. Columns as in EXPLAIN
    (docs/sql.md).

    Sensitivities, `noise_scale` and `error_95` (half width at the requested confidence, 95 % by default) are in the unit of the
    answer; `grid` is the width of one integer step in that unit; an epsilon or rho of None is infinite. `bound` names the
    contribution bounds that determine the sensitivities, with their values.
    For a number that is chosen instead of perturbed, sensitivities and `noise_scale` are in rows of rank, and `bound` ends with
    the worst-case rank error; `error_95` is None, because the distance between values of neighbouring ranks is unknown. For
    partition selection, `noise_scale` is the size of a key that is shown with probability 1/2, and `bound` says what is counted:
    units or rows. For a sum under `dp.max_total = auto` (a COUNT(DISTINCT) under `dp.max_values = auto`), all of these are in
    multiples of the bound that is chosen first, `error_95` is None and `bound` ends with `TIMES_THE_CUT` (`TIMES_THE_PLACES`).
    `stored_error_95` is the error of the stored release that will answer; None where the output will be measured.
    """

    block: str
    output: str
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
    bound: str = ""


@dataclass(frozen=True)
class PrivacyPlan:
    """All noisy outputs of a question, its price, and what is known about it before it runs.

    `loss` is the price without stored releases; `charged` is what would be charged now; `remaining` is what each scope has left
    before the question; `lines` are sentences on the accuracy of each output, the price, and what to know about the rows;
    `engine_sql` has the generated text of each block that would run (for the owner only).
    """

    outputs: tuple[PlannedOutput, ...]
    loss: PrivacyLoss
    charged: PrivacyLoss
    remaining: tuple[tuple[str, str], ...]
    stored: tuple[str, ...]
    engine_sql: tuple[tuple[str, str], ...]
    confidence: float
    columns: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @property
    def price(self) -> str:
        """The charge in words."""
        return describe_loss(self.charged)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return one row for each output, in the order of the fields of `PlannedOutput`."""
        return [tuple(getattr(output, field.name) for field in fields(PlannedOutput)) for output in self.outputs]

    def to_text(self) -> str:
        """Return the text of EXPLAIN: a few lines for people."""
        return "\n".join(self.lines)

    def details(self) -> str:
        """Return the text of EXPLAIN VERBOSE: the noise of each measured number, and the exact price."""
        lines = []
        for row in self.outputs:
            described = f"{row.output}: {row.aggregate}" if row.output else row.aggregate
            if row.mechanism in ("truncated_geometric", "threshold", "weighted_threshold"):
                lines.append(
                    f"{row.block}  {described}, shown from about {row.noise_scale:.4g} {row.bound} (delta {row.delta:.3g})"
                )
                continue
            if row.error_95 is None and row.bound.endswith((TIMES_THE_CUT, TIMES_THE_PLACES)):
                factor = "that bound" if row.bound.endswith(TIMES_THE_CUT) else "that number of values"
                scale = f"{row.mechanism} noise of scale {row.noise_scale:.4g} times {factor}"
                lines.append(f"{row.block}  {described}, {row.keys} keys: {scale} ({row.bound})")
                continue
            if row.error_95 is None and row.mechanism in LOCAL:
                lines.append(f"{row.block}  {described}, {row.keys} keys: {row.mechanism} ({row.bound})")
                continue
            if row.error_95 is None:
                lines.append(
                    f"{row.block}  {described}, {row.keys} keys: chosen by the {row.mechanism} mechanism, its weights fall by e "
                    f"every {row.noise_scale:.4g} rows of rank ({row.bound})"
                )
                continue
            stored = "" if row.stored_error_95 is None else f" (from the store within +/- {row.stored_error_95:.4g})"
            lines.append(
                f"{row.block}  {described}, {row.keys} keys: {row.mechanism} noise of scale {row.noise_scale:.4g}, "
                f"within +/- {row.error_95:.4g}{stored} in {self.confidence:.0%} of cases "
                f"(L1 {row.l1_sensitivity:.4g}, L2 {row.l2_sensitivity:.4g}, {row.bound})"
            )
        lines.append(f"price: {describe_loss(self.loss)}")
        if self.stored:
            lines.append(f"stored releases answer {', '.join(self.stored)}; now charged: {describe_loss(self.charged)}")
        lines += [f"remaining ({scope}): {left}" for scope, left in self.remaining]
        return "\n".join([*lines, *self.notes])


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
        block = blocks[priced_block.block.name]
        noises_after = _shown_noises(priced_block, after or {})
        term_rows = _terms(
            block, priced_block, used_by(plan, block.name), float(confidence), stored.get(block.name, {}), noises_after
        )
        rows += in_cuts(term_rows, priced_block, plan, float(confidence))
        rows += of_cut(_numbers(block, priced_block, used_by(plan, block.name), float(confidence)), plan, priced_block)
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
    used: dict[str, list[str]],
    confidence: float,
    stored: Mapping[str, tuple[float, float]],
    noises_after: Sequence[TermNoise],
) -> list[PlannedOutput]:
    rows = []
    named = {term.name: term for term in priced.block.terms}
    errors = term_errors(priced.block, noises_after, confidence)
    stored_errors = shown_errors(stored, priced, confidence) if stored else {}
    for noisy in priced.noise.terms:
        term = named.get(noisy.name) or Term(noisy.name, TermKind.UNITS, None, None, 1)  # counted for selection alone
        names = [name for measure in made_of(term, block, priced) for name in used.get(measure.name, [])]
        step, error = errors[noisy.name].unit, errors[noisy.name].half_width
        noise, loss = noisy.noise, noisy.noise.loss
        if noisy.shares not in ("", noisy.name):  # the price of a set is shown at its first term
            loss = PrivacyLoss.nothing()
        rows.append(
            PlannedOutput(
                block=block.name,
                output=", ".join(dict.fromkeys(names)),
                aggregate=text_of(term, priced),
                keys=_kind(priced),
                mechanism=noise.mechanism,
                l0=noise.sensitivity.l0,
                l1_sensitivity=noise.sensitivity.l1 * step,
                l2_sensitivity=math.sqrt(noise.sensitivity.l2_squared) * step,
                noise_scale=float(noise.noise_scale) * 2.0**noise.shift * step,
                error_95=error,
                epsilon=None if loss.epsilon is None else float(loss.epsilon),
                delta=float(loss.delta),
                rho=None if loss.rho is None else float(loss.rho),
                rows_per_unit=priced.block.caps.rows_per_unit,
                grid=2.0**noise.shift * step,
                stored_error_95=stored_errors.get(noisy.name),
                bound=_bound(term, priced),
            )
        )
    return rows


def _numbers(block: Block, priced: PricedBlock, used: dict[str, list[str]], confidence: float) -> list[PlannedOutput]:
    """Return the rows of measurements other than sums. Their `error_95` is None: the error of a chosen number has no known half
    width."""
    rows = []
    for measurement, plan in zip(priced.block.measurements, priced.noise.measurements, strict=True):
        part = PARTS.of(measurement.word)
        for name, law in plan.laws:
            if law.loss == PrivacyLoss.nothing():
                continue  # an end of an error bar that follows from the number itself
            number, loss = part.explained(measurement, plan, name, confidence), law.loss
            names = [label for measure in reading(name, block, priced) for label in used.get(measure.name, [])]
            rows.append(
                PlannedOutput(
                    block=block.name,
                    output=", ".join(dict.fromkeys(names)),
                    aggregate=number.aggregate,
                    keys=_kind(priced),
                    mechanism=number.mechanism,
                    l0=number.sensitivity.l0,
                    l1_sensitivity=float(number.sensitivity.l1),
                    l2_sensitivity=math.sqrt(number.sensitivity.l2_squared),
                    noise_scale=number.scale,
                    error_95=None,
                    epsilon=None if loss.epsilon is None else float(loss.epsilon),
                    delta=float(loss.delta),
                    rho=None if loss.rho is None else float(loss.rho),
                    rows_per_unit=priced.block.caps.rows_per_unit,
                    grid=number.grid,
                    bound=f"{_caps(priced)}; {number.error}",
                )
            )
    return rows


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
    """Describe the bounds on a unit's rows and groups."""
    caps = priced.block.caps
    bounds = [f"{name} {most}" for name, most in caps.bounds.declared().items()]
    return ", ".join([f"{caps.rows_per_unit} rows per unit", *bounds])


def _bound(term: Term, priced: PricedBlock) -> str:
    """Describe the bound on a unit's contribution to a term."""
    words = [_caps(priced)]
    if term.clip is not None and term.clip.norm is not None:
        option = "max_count" if term.kind is TermKind.COUNT else "max_total"
        most = plain_decimal(term.clip.most / Fraction(2) ** term.grid)
        words.append(f"clipped to {option} {most} in {term.clip.norm.value}")
    if isinstance(term.places, Literal) and term.kind is TermKind.DISTINCT:
        words.append(f"max_values {places_of(term)} per unit")
    if term.shares:
        first = next(other for other in priced.block.terms if other.name == term.shares)
        companions = "sums" if first.kind in (TermKind.SQUARE_PART, TermKind.PAIR_PART) else "counts"
        with_ = f"the {companions} beside it" if first.name == term.name else text_of(first, priced)
        words.append(f"shares each row, and its price, with {with_}")
    return ", ".join(words)


def _selection(priced: PricedBlock) -> PlannedOutput:
    rule = priced.noise.selection
    assert rule is not None
    loss = rule.loss
    half, counted = shown_half_of_the_time(priced)
    private = ", ".join(expression_text(key.expression) for key in priced.block.keys if key.values is None)
    return PlannedOutput(
        priced.block.name, "", f"partition selection of {private}", "private", rule.kind, 0, 0.0, 0.0, float(half), 0.0,
        None if loss.epsilon is None else float(loss.epsilon), float(loss.delta),
        None if loss.rho is None else float(loss.rho), priced.block.caps.rows_per_unit, 1.0, bound=counted,
    )  # fmt: skip


def used_by(plan: Plan, block: str) -> dict[str, list[str]]:
    """Return the output names of the remainder that directly read each measure of `block`."""
    used: dict[str, list[str]] = {}
    for select in plan.remainder.find_all(exp.Select):
        source = select.args.get("from_")
        if source is None or not isinstance(source.this, exp.Table) or source.this.name != block:
            continue
        for item in select.expressions:
            for column in item.find_all(exp.Column):
                used.setdefault(column.name, []).append(item.alias_or_name)
    return used
