"""Which contribution bounds suit a question: measured privately, charged, and told with the bias and noise of each.

A bound that is too small loses what people really have, one that is too large buys noise for people who do not exist.
How much people have is private, so it is measured: small histograms (`histograms`), one question, paid like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.combinations import group_count
from dpsql.plan.expression_text import expression_text
from dpsql.plan.plan import Block, Term, TermKind
from dpsql.plan.stability import owned, rows_per_unit, tables
from dpsql.policy.bounds import UNBOUNDED, ContributionBounds
from dpsql.pricing.bounding import bounded
from dpsql.pricing.expected_error import term_errors
from dpsql.pricing.explain import PrivacyPlan
from dpsql.pricing.pricing import PricedBlock, price
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Norm
from dpsql.tuning.choices import ChoiceTable, Seen, choice, least_seen, table
from dpsql.tuning.histograms import Summed, histogram_plan, histograms_of

if TYPE_CHECKING:
    from dpsql.policy import Policy
    from dpsql.release.release import Release
    from dpsql.session.session import Session

MOST_DOUBLINGS = 20
"""Rows of one unit are looked at up to 2**20; less where several tables multiply, within MOST_ROWS_PER_UNIT."""
MOST_CHOICES = 12


@dataclass(frozen=True)
class Advice:
    """What came out. `tables`: one for each bound that matters; `price`: what was charged; `people`: how many there are,
    about; `rows`: the end of the last bin of rows where somebody was seen; `notes` for the reader."""

    tables: tuple[ChoiceTable, ...]
    price: str
    receipt: str
    people: float
    rows: float
    notes: tuple[str, ...]

    @property
    def settings(self) -> dict[str, float]:
        """The recommended value of each setting; where several outputs share one, the largest.

        Beside a clip max_rows costs no noise: twice the most rows that were seen, so that nobody's are dropped.
        """
        found: dict[str, float] = {}
        for one in self.tables:
            if one.recommended is not None:
                found[one.setting] = max(found.get(one.setting, 0.0), one.recommended.value)
        if self.rows and not found.keys().isdisjoint(("max_count", "max_total")):
            found["max_rows"] = 2 * self.rows
        return found


class Tuning:
    """The tuning of one question in a session: `plan` first, then `measure`."""

    def __init__(
        self, session: Session, sql: str, *, epsilon: Fraction | None = None, groups: int | None = None
    ) -> None:
        """`epsilon`: what the histograms may cost, the session's own when it is not said; `groups`: how many groups the answer
        has, where keys are private. Raises Refusal tune_blocks, tune_results, tune_distinct, tune_rows, tune_nothing, and
        what a question raises."""
        statement = session.planner.parse(sql, None)
        if statement.query is None:
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).at(sql)
        if session.policy.privacy_unit is None:
            raise refuse("tune_rows").at(sql)
        planned = session.plan(statement)
        if len(planned.plan.blocks) != 1:
            raise refuse("tune_blocks", count=len(planned.plan.blocks)).at(sql)
        (self.block,) = planned.plan.blocks
        if planned.plan.results:
            raise refuse("tune_results").at(sql)
        if not owned(self.block.source, session.policy):
            raise refuse("tune_distinct").at(sql)
        self.asked = planned
        self.session = session
        if rows_per_unit(self.block.source, session.policy) == 1:
            raise refuse("tune_nothing").at(sql)
        self._groups = groups
        policy = _with_rows(session.policy, self.block)
        self.rows = rows_per_unit(self.block.source, policy)
        self.histograms = histograms_of(self.block, self.rows)
        self.measuring = session.over(policy)
        options = (
            planned.options if epsilon is None else planned.options.with_value("epsilon", str(float(epsilon)), policy)
        )
        options = replace(options, target_error=None, bounds=UNBOUNDED)
        question = histogram_plan(sql, self.block, self.histograms, self.rows)
        self.planned = self.measuring.planner.priced(statement, question, options)

    @cached_property
    def plan(self) -> PrivacyPlan:
        """What the histograms cost; nothing is charged, data is not touched."""
        return self.measuring.explain_planned(self.planned)

    def measure(self, request_id: str | None = None) -> Advice:
        """Measure the histograms (charged) and work out the advice (free).

        What fails after the measurement is a fault and says that it was charged, never a refusal.
        """
        release = self.measuring.answer(self.planned, request_id)
        try:
            return self._advice(release)
        except Exception as error:
            fault = refuse("internal", what="advice from measured histograms")
            fault.charged = not release.reused and release.loss != PrivacyLoss.nothing()
            raise fault from error

    def _advice(self, release: Release) -> Advice:
        counts: dict[int, list[float]] = {}
        for at, _, units in release.rows():
            counts.setdefault(int(at), []).append(float(units))
        seen = [self._seen(index, counts[index]) for index in range(len(self.histograms))]
        rows = seen[0]
        groups = next((one for one in seen if one.histogram.what == "groups"), None)
        spread = groups.mean() if groups is not None else 1.0
        count, why = self._number_of_groups(groups)
        work = _Work(self, rows, max(1.0, spread), count)
        found = [*work.counts(), *(total for s in seen if s.histogram.summed is not None for total in work.totals(s))]
        if groups is not None:
            found += work.groups(groups)
        notes = [
            *why,
            f"a bin of a histogram counts from {rows.least:.3g} privacy units on; fewer with more are not seen",
        ]
        notes += [_margin(choices) for choices in found if choices.recommended is not None]
        notes.append(_hidden(seen))
        notes.append("error bars of answers hold the noise alone, not the bias")
        return Advice(
            tuple(found), release.receipt.charged, release.receipt_id, rows.people(), rows.largest(), tuple(notes)
        )

    def _seen(self, index: int, counts: list[float]) -> Seen:
        noise = self.planned.price.blocks[index].noise.terms[0].noise
        least = least_seen(noise, len(counts))
        return Seen(
            self.histograms[index],
            tuple(count if count >= least else 0.0 for count in counts),
            least,
            noise.standard_deviation(),
        )

    def _number_of_groups(self, groups: Seen | None) -> tuple[float, list[str]]:
        """How many groups the answer has: known for public keys, else told, else at most as many as can be shown."""
        if groups is None:
            return 1.0, []
        if self._groups is not None:
            return float(self._groups), []
        if all(key.values is not None for key in self.block.keys):
            return float(group_count([key.values for key in self.block.keys], self.block.combinations)), []
        selection = self.asked.price.blocks[0].noise.selection
        least = 1 if selection is None else max(1, selection.half_point())
        count = max(1.0, groups.total() / least)
        return count, [
            f"private keys: at most about {count:.3g} groups can be shown; --groups N says how many there are"
        ]


def _margin(table: ChoiceTable) -> str:
    """The error bar of a recommendation: what the noise of the histogram leaves open of its bias."""
    best = table.recommended
    assert best is not None
    margin = 1.96 * best.doubt
    return f"{table.setting} {best.value:.6g} for {table.of}: its bias of {best.bias:.3g} is known within +/- {margin:.3g} (95 %)"


def _hidden(seen: Sequence[Seen]) -> str:
    """What no estimate holds: a few units that have very much are no more than noise in their bins."""
    widest = max(seen, key=lambda part: part.unseen())
    most = float(widest.histogram.edges[-1])
    return (
        f"up to about {widest.least:.3g} privacy units beyond {widest.largest():.4g} {widest.histogram.what} may be hidden "
        f"by noise; each may have up to {most:.4g}, which no bias here holds: one unit with very much is not seen"
    )


def tune(session: Session, sql: str, *, epsilon: Fraction | None = None, groups: int | None = None) -> Advice:
    """Measure and advise in one step; see `Tuning`."""
    return Tuning(session, sql, epsilon=epsilon, groups=groups).measure()


def _with_rows(policy: Policy, block: Block, rows: int | None = None) -> Policy:
    """The policy with another `max_rows` (by default, a very generous one) for what the block reads, and without caps.

    The histograms count units, so that their sensitivity is 1 whatever max_rows is.
    """
    read = _many_rows(policy, block)
    most = 2 ** min(MOST_DOUBLINGS, 29 // len(read)) if rows is None else rows
    changed = {name: replace(policy.tables[name], bounds=ContributionBounds(max_rows=most)) for name in read}
    return replace(policy, tables={**policy.tables, **changed})


def _many_rows(policy: Policy, block: Block) -> list[str]:
    """The protected tables of a block in which a unit may have more than one row."""
    return [
        name for name in tables(block.source) if policy.is_protected(name) and policy.tables[name].bounds.max_rows != 1
    ]


class _Work:
    """Tables of choices for one tuned question."""

    def __init__(self, tuning: Tuning, rows: Seen, spread: float, groups: float) -> None:
        """`spread`: groups of an average unit; `groups`: of the answer."""
        self.tuning = tuning
        self.rows = rows
        self.spread = spread
        self.number = groups

    def counts(self) -> list[ChoiceTable]:
        """max_count and max_rows for COUNT."""
        if not any(measure.aggregate == "count" for measure in self.tuning.block.measures):
            return []
        return [*self._clip("max_count", "COUNT", self.rows, None), *self._rows("COUNT", None, 1.0)]

    def totals(self, seen: Seen) -> list[ChoiceTable]:
        """max_total and max_rows for one SUM."""
        summed = seen.histogram.summed
        assert summed is not None
        of = f"SUM({expression_text(summed.value)})"
        rows = self.rows.total()
        return [
            *self._clip("max_total", of, seen, summed),
            *self._rows(of, summed, seen.total() / rows if rows else 0.0),
        ]

    def _clip(self, setting: str, of: str, seen: Seen, summed: Summed | None) -> list[ChoiceTable]:
        """A unit in `spread` groups whose L1 norm is t has an L2 norm between t / sqrt(spread), where its groups are equal, and
        t, where one group has nearly all; the geometric mean of the two is taken."""
        choices = []
        for edge in _around(seen):
            bounds = ContributionBounds(max_count=int(edge)) if summed is None else ContributionBounds(max_total=edge)
            try:
                found = self._noise(self.tuning.session.policy, bounds, summed, widened=True)
            except Error as error:
                if error.slug != "max_total_small":
                    raise
                found = None  # no bound that a question could ask for
            if found is None:
                continue
            term, noise = found
            wide = self.spread**0.25 if term.clip is not None and term.clip.norm is Norm.L2 else 1.0
            choices.append(choice(float(edge), float(edge) * wide, seen, self.number, 1.0, noise))
        return [table(setting, of, choices, None, seen)] if choices else []

    def _rows(self, of: str, summed: Summed | None, each: float) -> list[ChoiceTable]:
        """Rows that are dropped take their share of the sum with them; `each`: what a row adds."""
        policy = self.tuning.session.policy
        if len(_many_rows(policy, self.tuning.block)) != 1:
            return []
        now = rows_per_unit(self.tuning.block.source, policy)
        choices = []
        for edge in sorted({*map(int, _around(self.rows)), *([now] if now <= self.rows.histogram.edges[-1] else [])}):
            found = self._noise(_with_rows(policy, self.tuning.block, edge), UNBOUNDED, summed)
            if found is not None:
                choices.append(choice(edge, edge, self.rows, self.number, each, found[1]))
        return [table("max_rows", of, choices, now, self.rows)] if choices else []

    def groups(self, seen: Seen) -> list[ChoiceTable]:
        """max_groups for COUNT(DISTINCT unit), the one aggregate that it gives less noise."""
        if not any(measure.aggregate == "count_units" for measure in self.tuning.block.measures):
            return []
        choices = []
        for edge in _around(seen):
            blocks = self._priced(self.tuning.session.policy, ContributionBounds(max_groups=int(edge)))
            noise = _noise_of(blocks, lambda term: term.kind is TermKind.UNITS)
            if noise is not None:
                choices.append(choice(float(edge), float(edge), seen, self.number, 1.0, noise[1]))
        return [table("max_groups", "COUNT(DISTINCT unit)", choices, None, seen)] if choices else []

    def _noise(
        self, policy: Policy, bounds: ContributionBounds, summed: Summed | None, widened: bool = False
    ) -> tuple[Term, float] | None:
        """The term that COUNT (`summed` None) or a SUM is made of, and E|noise| in the unit of the answer."""
        policy = _with_rows(policy, self.tuning.block) if widened else policy

        one = self._priced(policy, bounds)
        if summed is None:
            return _noise_of(one, lambda term: _counts_rows(term, one))
        return _noise_of(one, lambda term: term.kind is TermKind.SUM
                         and (term.value, term.filter) == (summed.value, summed.filter))  # fmt: skip

    def _priced(self, policy: Policy, bounds: ContributionBounds) -> PricedBlock:
        """The tuned question under other bounds, at its own epsilon."""
        options = replace(self.tuning.asked.options, target_error=None)
        block = bounded(self.tuning.block, policy, bounds)
        return price((block,), options, policy, self.tuning.session.planner.accountant).blocks[0]


def _noise_of(priced: PricedBlock, wanted: Callable[[Term], bool]) -> tuple[Term, float] | None:
    """The term, and E of the absolute error of what it stands for, in the unit of the answer."""
    errors = term_errors(priced.block, priced.noise.terms, 0.5)
    return next(((term, errors[term.name].expected) for term in priced.block.terms if wanted(term)), None)


def _counts_rows(term: Term, priced: PricedBlock) -> bool:
    """Whether a term stands for COUNT(*): where terms share each row, the last of them does."""
    if not term.shares:
        return term.kind is TermKind.COUNT and term.filter is None
    own = [other for other in priced.block.terms if other.shares == term.shares]
    return term is own[-1] and own[0].filter is None


def _around(seen: Seen) -> list[Fraction]:
    """Choices worth a look: ends of bins from where the first people are to one beyond the last."""
    edges = seen.histogram.edges
    inside = [index for index, units in enumerate(seen.units) if units]
    if not inside:
        return list(edges[:: max(1, len(edges) // MOST_CHOICES)])
    last = min(len(edges) - 1, inside[-1] + 1)
    return list(edges[max(0, inside[0], last - MOST_CHOICES + 1) : last + 1])
