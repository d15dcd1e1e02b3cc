"""Recommend contribution bounds for a question, from private measurements that are charged.

A bound that is too small cuts off real contributions; one that is too large adds noise for contributions that nobody makes. How
much people contribute is private, so it is measured by small histograms (`choices`): one question, paid for like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.expression_text import expression_text
from dpsql.plan.plan import Block, Column, Plan, Term, TermKind, group_count
from dpsql.plan.stability import owned, rows_per_unit, tables
from dpsql.policy.types import UNBOUNDED, ContributionBounds
from dpsql.pricing.bounding import bounded
from dpsql.pricing.budget_parts import expected_error
from dpsql.pricing.explain import used_by
from dpsql.pricing.pricing import PricedBlock, price
from dpsql.session.explanation import PrivacyPlan
from dpsql.storage.records import dataclass, replace
from dpsql.tuning.choices import (
    ChoiceTable,
    ChosenBounds,
    NoisyHistogram,
    SampleTable,
    Summed,
    WayTable,
    bound_choice,
    histogram_plan,
    histograms_of,
    least_count,
    marked_table,
    sample_tables,
    total_of_norm,
    way_table,
)

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.release.release import Release
    from dpsql.session.session import Session

MOST_DOUBLINGS = 20
"""Histograms of rows reach 2**20 rows of one unit, fewer if the rows of several tables multiply (MOST_ROWS_PER_UNIT)."""
MOST_CHOICES = 12


@dataclass(frozen=True)
class Advice:
    """A recommendation. `tables`: one for each bound that matters; `price`: the loss that was charged; `people`: the estimated
    number of units; `rows`: the upper edge of the last bin of rows that is not empty; `notes`: sentences for the reader."""

    tables: tuple[ChoiceTable, ...]
    price: str
    receipt: str
    people: float
    rows: float
    notes: tuple[str, ...]
    samples: tuple[SampleTable, ...] = ()
    """One table for each SAMPLE_AGGREGATE, from public parameters, not measured."""
    ways: tuple[WayTable, ...] = ()
    """One table for each SUM: whether the policy's bound, a number or `max_total = auto` is best."""

    @property
    def settings(self) -> dict[str, float | str]:
        """The one proposal: the value of each setting, the largest one if several outputs share it. Where each sum is bounded
        best by `max_total = auto`, or by max_rows alone, that is proposed instead of a number.

        With a clip, max_rows adds no noise: it is set to twice the largest number of rows in the histogram, so that no rows are
        dropped.
        """
        values: dict[str, Any] = {}
        for choice_table in self.tables:
            if choice_table.recommended is not None:
                values[choice_table.setting] = max(
                    values.get(choice_table.setting, 0.0), choice_table.recommended.value
                )
        best = {table.recommended.name for table in self.ways if table.recommended is not None}
        if best and "number" not in best:
            del values["max_total"]
            values |= {"max_total": "auto"} if "auto" in best else {}
        if self.rows and not values.keys().isdisjoint(("max_count", "max_total")):
            values["max_rows"] = 2 * self.rows
        return values


class Tuning:
    """The tuning of one question in a session: `plan` first, then `measure`."""

    def __init__(
        self, session: Session, sql: str, *, epsilon: Fraction | None = None, groups: int | None = None
    ) -> None:
        """`epsilon`: the price of the histograms, by default the session's option; `groups`: the number of groups of the answer,
        if keys are private. Raises Refusal fit_blocks, fit_results, fit_distinct, fit_rows, fit_nothing, and what planning a
        question raises."""
        statement = session.planner.parse(sql, None)
        if statement.query is None:
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).placed_in(sql)
        if session.policy.privacy_unit is None:
            raise refuse("fit_rows").placed_in(sql)
        planned = session.plan(statement, options=session.options.with_no_choice())
        if len(planned.plan.blocks) != 1:
            raise refuse("fit_blocks", count=len(planned.plan.blocks)).placed_in(sql)
        (self.block,) = planned.plan.blocks
        if planned.plan.results:
            raise refuse("fit_results").placed_in(sql)
        if not owned(self.block.source, session.policy):
            raise refuse("fit_distinct").placed_in(sql)
        self.question = planned
        self.session = session
        self.policy = session.planner.bound_policy(statement)[0]
        if rows_per_unit(self.block.source, self.policy) == 1:
            raise refuse("fit_nothing").placed_in(sql)
        self._groups = groups
        policy = _with_rows(session.policy, self.block)
        self.rows = rows_per_unit(self.block.source, _with_rows(self.policy, self.block))
        self.histograms = histograms_of(self.block, self.rows)
        self.measuring = session.over(policy)
        options = (
            planned.options if epsilon is None else planned.options.with_value("epsilon", str(float(epsilon)), policy)
        )
        options = replace(options.with_no_choice(), target_error=None, bounds=UNBOUNDED)
        question = histogram_plan(sql, self.block, self.histograms, self.rows)
        self.planned = self.measuring.planner.priced(statement, question, options)

    @cached_property
    def plan(self) -> PrivacyPlan:
        """The price of the histograms; nothing is charged and no data is read."""
        return self.measuring.explain_planned(self.planned)

    def measure(self, request_id: str | None = None) -> Advice:
        """Measure the histograms (charged) and return the advice computed from them (free).

        A failure after the measurement is raised as a Fault that says that it was charged, never as a refusal.
        """
        release = self.measuring.answer(self.planned, request_id)
        with registering(charged=release.receipt.is_paid):
            return self._advice(release)

    def _advice(self, release: Release) -> Advice:
        counts: dict[int, list[float]] = {}
        for histogram, _, units in release.rows():
            counts.setdefault(int(histogram), []).append(float(units))
        measured = [self._noisy_histogram(index, counts[index]) for index in range(len(self.histograms))]
        rows = measured[0]
        groups = next((entry for entry in measured if entry.histogram.counted == "groups"), None)
        spread = groups.mean() if groups is not None else 1.0
        count, why = self._number_of_groups(groups)
        work = _Work(self, rows, max(1.0, spread), count)
        summed = [(entry, work.totals(entry)) for entry in measured if entry.histogram.summed is not None]
        tables = [*work.counts(), *(table for _, of_sum in summed for table in of_sum)]
        ways = [work.ways(entry, of_sum) for entry, of_sum in summed]
        if groups is not None:
            tables += work.groups(groups)
        notes = [
            *why,
            f"a bin of a histogram counts from {rows.least:.3g} persons on; fewer with more are not seen",
        ]
        notes += [_margin(choices) for choices in tables if choices.recommended is not None]
        notes.append(_hidden(measured))
        notes.append("error bars of answers hold the noise alone, not the bias")
        return Advice(
            tuple(tables), release.receipt.price or release.receipt.charged, release.receipt_id, rows.people(),
            rows.largest(), tuple(notes), ways=tuple(table for table in ways if table is not None),
        )  # fmt: skip

    def _noisy_histogram(self, index: int, counts: list[float]) -> NoisyHistogram:
        noise = self.planned.price.blocks[index].noise.terms[0].noise
        least = least_count(noise, len(counts))
        return NoisyHistogram(
            self.histograms[index],
            tuple(count if count >= least else 0.0 for count in counts),
            least,
            noise.standard_deviation(),
        )

    def _number_of_groups(self, groups: NoisyHistogram | None) -> tuple[float, list[str]]:
        """Return the number of groups of the answer, with a note if it is a guess: exact for public keys, else the caller's
        number, else the most groups that partition selection can release."""
        if groups is None:
            return 1.0, []
        if self._groups is not None:
            return float(self._groups), []
        if all(key.values is not None for key in self.block.keys):
            return float(group_count([key.values for key in self.block.keys], self.block.combinations)), []
        selection = self.question.price.blocks[0].noise.selection
        least = 1 if selection is None else max(1, selection.half_point())
        count = max(1.0, groups.total() / least)
        return count, [
            f"private keys: at most about {count:.3g} groups can be shown; --groups N says how many there are"
        ]


def _margin(table: ChoiceTable) -> str:
    """Return a sentence with the error bar of a recommendation's bias, from the noise of the histogram."""
    best = table.recommended
    assert best is not None
    return (
        f"{table.setting} {best.value:.6g} for {table.of}: its bias of {best.bias:.3g} is known within +/- {best.margin:.3g} "
        "(95 %), as far as nobody is beyond the next bin"
    )


def _hidden(measured: Sequence[NoisyHistogram]) -> str:
    """Return a sentence on what no estimate includes: a few units with large contributions look like noise in their bins."""
    widest = max(measured, key=lambda part: part.unseen())
    most = float(widest.histogram.edges[-1])
    return (
        f"up to about {widest.least:.3g} persons beyond {widest.largest():.4g} {widest.histogram.counted} may be hidden "
        f"by noise; each may have up to {most:.4g}, which no bias here holds: one person with very much is not seen"
    )


def free_advice(session: Session, sql: str) -> tuple[tuple[SampleTable, ...], bool]:
    """Return the advice on every SAMPLE_AGGREGATE of a question, for which nothing is measured, and whether there is nothing else
    to advise on. Raises what planning a question raises."""
    statement = session.planner.parse(sql, None)
    if statement.query is None:
        return (), False
    planned = session.plan(statement)
    tables = sample_tables(planned, session.planner)
    policy = session.planner.bound_policy(statement)[0]
    return tables, bool(tables) and all(_sampled_alone(planned.plan, block, policy) for block in planned.plan.blocks)


def _sampled_alone(plan: Plan, block: Block, policy: Policy) -> bool:
    """Return whether there is no bound to advise on for a block: it shows only means and medians of samples (`min_units` is a
    condition on a count that it does not show), or each unit has one row."""
    read_by = set[str]().union(*used_by(plan, block.name).values())
    measures = {measure.aggregate for measure in block.measures if measure.name in read_by}
    return measures == {"sample_aggregate"} or rows_per_unit(block.source, policy) == 1


def tune(session: Session, sql: str, *, epsilon: Fraction | None = None, groups: int | None = None) -> Advice:
    """Measure and advise in one step; see `Tuning` and `free_advice`."""
    samples, nothing_else = free_advice(session, sql)
    if nothing_else:
        return Advice((), "nothing", "", 0.0, 0.0, (), samples)
    return replace(Tuning(session, sql, epsilon=epsilon, groups=groups).measure(), samples=samples)


def _with_rows(policy: Policy, block: Block, rows: int | None = None) -> Policy:
    """Return the policy with another `max_rows` (by default a very large one) for the tables that the block reads, and without
    other bounds.

    The histograms count units, so that their sensitivity is 1 whatever max_rows is.
    """
    read = _many_rows(policy, block)
    most = 2 ** min(MOST_DOUBLINGS, 29 // len(read)) if rows is None else rows
    changed = {name: replace(policy.tables[name], bounds=ContributionBounds(max_rows=most)) for name in read}
    return replace(policy, tables={**policy.tables, **changed})


def _many_rows(policy: Policy, block: Block) -> list[str]:
    """Return the protected tables of a block in which a unit may have more than one row."""
    return [
        name for name in tables(block.source) if policy.is_protected(name) and policy.tables[name].bounds.max_rows != 1
    ]


class _Work:
    """The tables of choices for one tuned question."""

    def __init__(self, tuning: Tuning, rows: NoisyHistogram, spread: float, groups: float) -> None:
        """`spread`: the number of groups of an average unit; `groups`: that of the answer."""
        self.tuning = tuning
        self.rows = rows
        self.spread = spread
        self.number = groups

    def counts(self) -> list[ChoiceTable]:
        if not any(measure.aggregate == "count" for measure in self.tuning.block.measures):
            return []
        return [*self._clip("max_count", "COUNT", self.rows, None), *self._rows("COUNT", None, 1.0)]

    def totals(self, measured: NoisyHistogram) -> list[ChoiceTable]:
        summed = measured.histogram.summed
        assert summed is not None
        output = f"SUM({expression_text(summed.value)})"
        rows = self.rows.total()
        return [
            *self._clip("max_total", output, measured, summed),
            *self._rows(output, summed, measured.total() / rows if rows else 0.0),
        ]

    def _clip(self, setting: str, output: str, measured: NoisyHistogram, summed: Summed | None) -> list[ChoiceTable]:
        """Return the table of `setting`, a bound on a clip; no table if the engine does not clip."""
        if self.tuning.session.context.engine.dialect.without_clipping:
            return []
        choices = []
        for edge in _around(measured):
            bounds = ContributionBounds(max_count=int(edge)) if summed is None else ContributionBounds(max_total=edge)
            try:
                priced = self._noise(self.tuning.policy, bounds, summed, widened=True)
            except Error as error:
                if error.slug != "max_total_small":
                    raise
                priced = None  # no bound that a question could ask for
            if priced is None:
                continue
            term, noise = priced
            wide = total_of_norm(term, self.spread)
            choices.append(bound_choice(float(edge), float(edge) * wide, measured, self.number, 1.0, noise))
        return [marked_table(setting, output, choices, None, measured)] if choices else []

    def _rows(self, output: str, summed: Summed | None, each: float) -> list[ChoiceTable]:
        """Return the table of max_rows. Dropped rows take their share of the sum with them; `each`: what one row adds."""
        policy = self.tuning.policy
        if len(_many_rows(policy, self.tuning.block)) != 1:
            return []
        now = rows_per_unit(self.tuning.block.source, policy)
        choices = []
        for edge in sorted({*map(int, _around(self.rows)), *([now] if now <= self.rows.histogram.edges[-1] else [])}):
            priced = self._noise(_with_rows(policy, self.tuning.block, edge), UNBOUNDED, summed)
            if priced is not None:
                choices.append(bound_choice(edge, edge, self.rows, self.number, each, priced[1]))
        return [marked_table("max_rows", output, choices, now, self.rows)] if choices else []

    def ways(self, measured: NoisyHistogram, tables: Sequence[ChoiceTable]) -> WayTable | None:
        """Return the ways of bounding one SUM, whose `tables` are for max_total and max_rows; None if units are not clipped."""
        summed, by_setting = measured.histogram.summed, {table.setting: table for table in tables}
        auto = self._auto(summed) if summed is not None and "max_total" in by_setting else None
        if auto is None or summed is None:
            return None
        rows, now = by_setting.get("max_rows"), None
        # What a declared max_total of the column cuts off is in no histogram of rows.
        if rows is not None and not (isinstance(summed.value, Column) and summed.value.facts.max_total is not None):
            most = float(max(abs(Fraction(end)) for end in (summed.value.facts.lower, summed.value.facts.upper)))
            now = next(((choice, choice.value * most) for choice in rows.choices if choice.value == rows.now), None)
        return way_table(by_setting["max_total"], now, measured, auto)

    def _auto(self, summed: Summed) -> ChosenBounds | None:
        """Return the effect of `max_total = auto`, with the rows that `Advice.settings` recommends; None if it cannot be used."""
        session, question = self.tuning.session, self.tuning.question
        rows = max(rows_per_unit(self.tuning.block.source, self.tuning.policy), int(2 * self.rows.largest()))
        planner = session.over(_with_rows(session.policy, self.tuning.block, rows)).planner
        try:
            options = replace(question.options, target_error=None, bounds=UNBOUNDED, cut_totals=True)
            planned = planner.priced(question.statement, question.plan, options)
        except Error:
            return None  # the question cannot be asked with it
        cuts = [cut for cut in planned.plan.cuts if (cut.value, cut.filter) == (summed.value, summed.filter)]
        return ChosenBounds(planned, cuts[0], self.number, self.spread) if cuts else None

    def groups(self, measured: NoisyHistogram) -> list[ChoiceTable]:
        """Return the table of max_groups for COUNT(DISTINCT unit), the only aggregate whose noise it reduces."""
        if not any(measure.aggregate == "count_units" for measure in self.tuning.block.measures):
            return []
        choices = []
        for edge in _around(measured):
            blocks = self._priced(self.tuning.policy, ContributionBounds(max_groups=int(edge)))
            noise = _noise_of(blocks, lambda term: term.kind is TermKind.UNITS)
            if noise is not None:
                choices.append(bound_choice(float(edge), float(edge), measured, self.number, 1.0, noise[1]))
        return [marked_table("max_groups", "COUNT(DISTINCT unit)", choices, None, measured)] if choices else []

    def _noise(
        self, policy: Policy, bounds: ContributionBounds, summed: Summed | None, widened: bool = False
    ) -> tuple[Term, float] | None:
        """Return the term from which COUNT (`summed` None) or a SUM is computed, and E|noise| in the unit of the answer."""
        policy = _with_rows(policy, self.tuning.block) if widened else policy

        priced = self._priced(policy, bounds)
        if summed is None:
            return _noise_of(priced, lambda term: _counts_rows(term, priced))
        return _noise_of(
            priced, lambda term: _sums(term) and (term.value, term.filter) == (summed.value, summed.filter)
        )

    def _priced(self, policy: Policy, bounds: ContributionBounds) -> PricedBlock:
        """Return the tuned question's block, priced under other bounds at the question's epsilon."""
        options = replace(self.tuning.question.options, target_error=None)
        block = bounded(self.tuning.block, policy, bounds, row_filters=self.tuning.session.planner.row_filters)
        return price((block,), options, policy, self.tuning.session.planner.accountant).blocks[0]


def _noise_of(priced: PricedBlock, matches: Callable[[Term], bool]) -> tuple[Term, float] | None:
    """Return the first term that matches, and the expected absolute error of its measure in the unit of the answer."""
    noises = {noise.name: noise for noise in priced.noise.terms}
    return next(((term, expected_error(term, noises[term.name])) for term in priced.block.terms if matches(term)), None)


def _sums(term: Term) -> bool:
    """Return whether a term measures SUM: of squares that share each row, the second one (`pricing.budget_parts`)."""
    return term.kind is TermKind.SUM or (term.kind is TermKind.SQUARE_PART and term.place == 1)


def _counts_rows(term: Term, priced: PricedBlock) -> bool:
    """Return whether a term measures COUNT(*): of terms that share each row the last, of a set of squares the first."""
    if not term.shares:
        return term.kind is TermKind.COUNT and term.filter is None
    set_terms = [other for other in priced.block.terms if other.shares == term.shares]
    last = set_terms[-1] if set_terms[-1].kind in (TermKind.COUNT, TermKind.SUM) else set_terms[0]
    return term is last and set_terms[0].filter is None


def _around(measured: NoisyHistogram) -> list[Fraction]:
    """Return the candidate bounds: upper edges of bins from the first that is not empty to one beyond the last."""
    edges = measured.histogram.edges
    inside = [index for index, units in enumerate(measured.units) if units]
    if not inside:
        return list(edges[:: max(1, len(edges) // MOST_CHOICES)])
    last = min(len(edges) - 1, inside[-1] + 1)
    return list(edges[max(0, inside[0], last - MOST_CHOICES + 1) : last + 1])
