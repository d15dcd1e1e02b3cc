"""What must hold between two neighbours, from the definitions: distances, exact privacy loss, chance of lone keys.

Nothing is taken from the claims but the finished mechanisms (their scales and tables); losses are recomputed from how
far the exact vectors really moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, TypeVar

from dpsql.plan.measurements import Register
from dpsql.pricing.pricing import Price, PricedBlock
from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan, Noise, Selection, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.exponential import EXPONENTIAL
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY, LocalSensitivityPlan
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.partition_selection import ONE, Threshold, TruncatedGeometric, WeightedThreshold
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM, RankHistogramPlan
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES, SampleMeanPlan, SampleValuesPlan
from dpsql_audit.choice_laws import ChoiceLaw, choice_of, log_ratios
from dpsql_audit.local_laws import delta_needed
from dpsql_audit.noise_laws import audited, law_of, pure_rho
from dpsql_audit.observation import Key, Measured, Vector
from dpsql_audit.verify_export import PLACES

Distance = TypeVar("Distance", int, Fraction)
EXACT = 1 + 1e-9
"""Room for the rounding of floats where a probability is computed in them."""


@dataclass
class Verdict:
    """Problems found, and for each term, or set of terms that share each row, the largest share of its claimed L1 that a
    pair reached."""

    problems: list[str] = field(default_factory=list)
    reached: dict[tuple[int, str], Fraction] = field(default_factory=dict)

    def expect(self, holds: bool, problem: str) -> None:
        """Note a problem where something does not hold."""
        if not holds:
            self.problems.append(problem)

    def within(self, subject: str, moved: Mapping[Key, Distance], claimed: Sensitivity, whose: str = "") -> None:
        """Note each norm of what `moved` that is beyond the claim."""
        sizes = [abs(distance) for distance in moved.values()]
        norms = (
            ("L0", len(sizes), claimed.l0), ("L1", sum(sizes), claimed.l1),
            ("L2^2", sum(size * size for size in sizes), claimed.l2_squared), ("Linf", max(sizes, default=0), claimed.linf),
        )  # fmt: skip
        for norm, distance, claim in norms:
            self.expect(distance <= claim, f"{subject}: {norm} distance {distance}{whose} > claimed {claim}")

    def reach(self, reached: dict[tuple[int, str], Fraction]) -> None:
        """Keep the larger share of every term."""
        for term, share in reached.items():
            self.reached[term] = max(share, self.reached.get(term, Fraction(0)))


def moves(left: Vector, right: Vector) -> dict[Key, int]:
    """Return how far each entry moved; a key that one side lacks has 0 there."""
    keys = {**dict.fromkeys(left), **dict.fromkeys(right)}
    return {key: moved for key in keys if (moved := right.get(key, 0) - left.get(key, 0))}


def measuring(price: Price) -> list[PricedBlock]:
    """Return the blocks that measure something."""
    return [
        priced for priced in price.blocks
        if priced.noise.terms or priced.noise.measurements or priced.noise.selection is not None
    ]  # fmt: skip


def compare(price: Price, left: list[Measured], right: list[Measured]) -> Verdict:
    """Return every release within its claims, and all of them together within what is charged. Runs may be compared up to some
    block only; then both sides have as many."""
    verdict = Verdict()
    epsilon, delta, rho = Fraction(0), 0.0, Fraction(0)
    blocks = measuring(price)
    verdict.expect(len(left) == len(right) <= len(blocks), "numbers of blocks")
    for number, (priced, left_block, right_block) in enumerate(zip(blocks, left, right, strict=False)):
        shares: Shares = {}
        spent, concentrated = compared_sums(verdict, (number, priced.noise.terms), shares, left_block, right_block)
        epsilon, rho = epsilon + spent, rho + concentrated
        for (_, name), share in shares.items():
            verdict.expect(
                share <= 1, f"block {number} {name}: terms that share a row move {float(share)} of one claim"
            )
        for plan in priced.noise.measurements:
            compared = MEASUREMENTS.of(plan.word)
            parts = compared(verdict, (number, plan), shares, left_block, right_block)
            epsilon, delta, rho = epsilon + parts[0], delta + parts[1], rho + parts[2]
        verdict.reach(shares)
        if priced.noise.selection is not None:
            parts = selected(verdict, priced.noise.selection, left_block.counts, right_block.counts)
            epsilon, delta, rho = epsilon + parts[0], delta + parts[1], rho + parts[2]
    price_loss = price.loss
    verdict.expect(delta <= float(price_loss.delta) * EXACT, f"delta {delta} > charged {float(price_loss.delta)}")
    if price_loss.epsilon is not None:
        verdict.expect(epsilon <= price_loss.epsilon, f"epsilon {float(epsilon)} > charged {float(price_loss.epsilon)}")
    if price_loss.rho is not None:
        verdict.expect(rho <= price_loss.rho, f"rho {float(rho)} > charged {float(price_loss.rho)}")
    return verdict


def compared_sums(
    verdict: Verdict,
    place: tuple[int, Sequence[TermNoise]],
    shares: Shares,
    left_block: Measured,
    right_block: Measured,
) -> tuple[Fraction, Fraction]:
    """Return (epsilon, rho) that the sums of a block cost between two neighbours; notes in `shares` the part of each claim that
    they reached. Terms of a set, to which each row adds at most one claim in all, are one vector, within every norm of the
    claim."""
    number, terms = place
    epsilon = rho = Fraction(0)
    sets: dict[str, tuple[Sensitivity, dict[Key, int]]] = {}
    for term in terms:
        vectors = [block.terms.get(term.name, block.counts) for block in (left_block, right_block)]
        moved = moves(*vectors)
        verdict.within(f"block {number} {term.name}", moved, term.noise.sensitivity)
        if term.shares:
            together = sets.setdefault(term.shares, (term.noise.sensitivity, {}))[1]
            together.update({(term.name, *key): distance for key, distance in moved.items()})
        spent, concentrated = loss(term.noise, *vectors)
        epsilon, rho = epsilon + spent, rho + concentrated
        claimed = term.noise.sensitivity.l1
        share = Fraction(sum(map(abs, moved.values())), claimed) if claimed else Fraction(1)
        charged = (number, term.shares or term.name)
        shares[charged] = shares.get(charged, Fraction(0)) + share
    for name, (claimed_together, together) in sets.items():
        verdict.within(f"block {number} {name}", together, claimed_together, " of terms that share a row")
    return epsilon, rho


Shares = dict[tuple[int, str], Fraction]
Loss = tuple[Fraction, float, Fraction]
"""(epsilon, delta, rho) that something costs between two neighbours."""


def compared_choices(
    verdict: Verdict, place: tuple[int, MeasurementPlan], shares: Shares, left: Measured, right: Measured
) -> Loss:
    """Return the cost of numbers that are all chosen from the same rows."""
    return _chosen_numbers(verdict, place, shares, {}, _histograms(left, right))


def compared_quantiles(
    verdict: Verdict, place: tuple[int, RankHistogramPlan], shares: Shares, left: Measured, right: Measured
) -> Loss:
    """Return the cost of the quantiles of a histogram; those of one level are chosen from disjoint sets of rows. A group that one
    side lacks has there the additional rows of each end of an error bar, which belong to no unit."""
    plan, histograms = place[1], _histograms(left, right)
    padding = {end.name: end.law.padding for end in plan.ends}

    def padded(name: str) -> list[Histograms]:
        rows = padding.get(name, 0)
        first = (plan.cells - 1) * plan.slices if rows > 0 else 0
        sides, empty = histograms(name), dict.fromkeys(range(first, first + plan.slices), abs(rows))
        return [{**dict.fromkeys({**sides[0], **sides[1]}, empty), **side} for side in sides] if rows else sides

    return _chosen_numbers(verdict, place, shares, _levels(plan), padded)


def compared_sample_quantiles(
    verdict: Verdict, place: tuple[int, SampleValuesPlan], shares: Shares, left: Measured, right: Measured
) -> Loss:
    """Return the cost of quantiles of the values of samples."""
    plan, histograms = place[1], _histograms(left, right)
    return _chosen_numbers(
        verdict, place, shares, _levels(plan), lambda name: with_empty_groups(plan, *histograms(name))
    )


def _levels(plan: RankHistogramPlan) -> dict[str, int]:
    """Return the step in which each number is chosen, by name: ends of error bars after all quantiles, each from all rows."""
    ends = {end.name: len(plan.quantiles) + number for number, end in enumerate(plan.ends)}
    return {choice.name: choice.search.level for choice in plan.quantiles} | ends


def _histograms(left: Measured, right: Measured) -> Callable[[str], list[Histograms]]:
    return lambda name: [by_group(block.histograms.get(name, {})) for block in (left, right)]


def _chosen_numbers(
    verdict: Verdict,
    place: tuple[int, Any],
    shares: Shares,
    levels: Mapping[str, int],
    histograms: Callable[[str], list[Histograms]],
) -> Loss:
    """Return the cost of all choices of a measurement, and record the share of its claim that the choices of each step
    reached."""
    number, plan = place
    epsilon = rho = Fraction(0)
    for name, law in plan.laws:
        sides, slices = histograms(name), choice_of(law).slices(law)
        rows = {key: Fraction(units, slices) for key, units in rows_moved(*sides).items()}
        verdict.within(f"block {number} {name}", rows, law.sensitivity)
        spent, concentrated = chosen(law, plan.cells * slices, *sides)
        epsilon, rho = epsilon + spent, rho + concentrated
        step = (number, f"{plan.name} level {levels.get(name, 0)}")
        shares[step] = shares.get(step, Fraction(0)) + sum(rows.values(), Fraction(0)) / law.sensitivity.l1
        verdict.expect(shares[step] <= 1, f"block {number} {step[1]}: choices move {float(shares[step])} of one claim")
    return epsilon, 0.0, rho


def released_local(
    verdict: Verdict, place: tuple[int, LocalSensitivityPlan], shares: Shares, left: Measured, right: Measured
) -> Loss:
    """Return the cost (epsilon, delta, rho) between two neighbours of numbers with noise by local sensitivity: for each group
    that moved, the epsilon of its law, and the delta that its two laws need at this epsilon."""
    number, plan = place
    law: Any = plan.law
    sides = [by_group(block.histograms.get(plan.name, {})) for block in (left, right)]
    moved = rows_moved(*sides)
    verdict.within(f"block {number} {plan.name}", moved, law.sensitivity)
    delta = sum(delta_needed(law, plan.cells, *(side.get(key, {}) for side in sides)) for key in moved)
    verdict.reach({(number, plan.name): Fraction(sum(moved.values()), law.sensitivity.l1)})
    share = Fraction(len(moved), law.sensitivity.l0)
    cost = law.loss
    return (cost.epsilon or Fraction(0)) * share, delta, (cost.rho or Fraction(0)) * share


def summed_samples(
    verdict: Verdict, place: tuple[int, SampleMeanPlan], shares: Shares, left: Measured, right: Measured
) -> Loss:
    """Return the cost (epsilon, delta, rho) of sums of the values of samples between two neighbours."""
    number, plan = place
    noise = plan.law.noise
    vectors = [block.terms.get(plan.name, {}) for block in (left, right)]
    moved = moves(*vectors)
    verdict.within(f"block {number} {plan.name}", moved, noise.sensitivity)
    verdict.reach({(number, plan.name): Fraction(sum(map(abs, moved.values())), noise.sensitivity.l1)})
    epsilon, rho = loss(noise, *vectors)
    return epsilon, 0.0, rho


MEASUREMENTS: Register[Callable[[Verdict, Any, Shares, Measured, Measured], Loss]] = Register(
    "the audit of neighbours",
    {
        RANK_HISTOGRAM: compared_quantiles,
        MOST_FREQUENT: compared_choices,
        END_ROWS: compared_choices,
        SAMPLE_VALUES: compared_sample_quantiles,
        SAMPLE_MEAN: summed_samples,
        LOCAL_SENSITIVITY: released_local,
    },
)
"""For each kind of measurement other than sums, its cost between two neighbours, given its place in the price (number of the
block, plan). Problems are added to the verdict, and the reached part of each claim to `shares`."""


def covers(charge: Mapping[str, int], price: Price) -> bool:
    """Return whether a charge in ledger units is at least the exact sum of the costs of the blocks, in each of its dimensions."""
    loss = sum((priced.loss for priced in price.blocks), PrivacyLoss.nothing())
    amounts = {"epsilon": loss.epsilon, "delta": loss.delta, "rho": loss.rho}
    paid = {name: Fraction(amount, 10 ** PLACES[name]) for name, amount in charge.items()}
    owed = [(paid[name], amounts[name]) for name in paid]
    return "delta" in paid and len(paid) == 2 and all(loss is not None and amount >= loss for amount, loss in owed)


Histograms = Mapping[Key, Mapping[int, int]]


def by_group(vector: Vector) -> dict[Key, dict[int, int]]:
    """Return the number of rows by cell for every group, from rows by key and cell."""
    histograms: dict[Key, dict[int, int]] = {}
    for key, rows in vector.items():
        histograms.setdefault(key[:-1], {})[key[-1]] = rows
    return histograms


def with_empty_groups(plan: SampleValuesPlan, *histograms: Histograms) -> list[Histograms]:
    """Return both histograms with the groups of either. In a group that one side lacks all samples are in the middle cell, as
    none of them has a value."""
    empty = {plan.middle: plan.samples}
    keys = dict.fromkeys(key for groups in histograms for key in groups)
    return [{key: groups.get(key, empty) for key in keys} for groups in histograms]


def rows_moved(left: Histograms, right: Histograms) -> dict[Key, int]:
    """Return by group how many rows were added or removed, in any cell."""
    keys = {**dict.fromkeys(left), **dict.fromkeys(right)}
    both = {key: (left.get(key, {}), right.get(key, {})) for key in keys}
    differ = {key: dict.fromkeys(cell for cell, _ in a.items() ^ b.items()) for key, (a, b) in both.items()}
    moved = {key: sum(abs(b.get(c, 0) - a.get(c, 0)) for c in differ[key]) for key, (a, b) in both.items()}
    return {key: rows for key, rows in moved.items() if rows}


def chosen(law: ChoiceLaw, cells: int, left: Histograms, right: Histograms) -> tuple[Fraction, Fraction]:
    """Return the cost (epsilon, rho) of this choice between these histograms, from the ratios of the two laws in every group.

    epsilon is the largest absolute log ratio. rho is an eighth of the squared range of log ratios for the exponential mechanism
    (Cesar and Rogers 2021), and the rho of the largest one for any other (Bun and Steinke 2016). Computed in floats: differences
    below 1e-12 are ignored.
    """
    epsilon = rho = Fraction(0)
    for key in rows_moved(left, right):
        ratios = log_ratios(law, cells, left.get(key, {}), right.get(key, {}))
        largest = Fraction(max(map(abs, ratios)) / EXACT)
        epsilon += largest
        if law.mechanism == EXPONENTIAL:
            rho += Fraction(((max(ratios) - min(ratios)) / EXACT) ** 2) / 8
        else:
            rho += pure_rho(largest)
    return epsilon, rho


def loss(noise: Noise, left: Vector, right: Vector) -> tuple[Fraction, Fraction]:
    """Return the cost (epsilon, rho) of this noise between these two vectors; a Gaussian has no epsilon and counts as 0 there."""
    law = law_of(noise)
    steps = [abs(distance) for distance in moves(on_grid(noise, left), on_grid(noise, right)).values()]
    return (Fraction(0), Fraction(0)) if law is None else law.loss(noise, steps)


def on_grid(noise: Noise, vector: Vector) -> Vector:
    """Return the exact integers on the grid of the noise, rounded down where that grid is coarser."""
    return {key: value >> noise.shift if noise.shift >= 0 else value << -noise.shift for key, value in vector.items()}


def selected(verdict: Verdict, rule: Selection, left: Vector, right: Vector) -> Loss:
    """Return the cost (epsilon, delta, rho) of partition selection between these two tables of privacy units per key. Raises
    InternalError for a rule that is not registered."""
    return audited(SELECTIONS, rule, "a rule of partition selection")(verdict, rule, left, right)


def _by_units(verdict: Verdict, rule: TruncatedGeometric, left: Vector, right: Vector) -> Loss:
    moved = moves(left, right)
    verdict.expect(len(moved) <= rule.l0, f"selection: {len(moved)} keys moved, claimed {rule.l0}")
    with localcontext() as context:
        context.prec = 60
        share = rule.epsilon_per_key
        ratio = Fraction((Decimal(share.numerator) / Decimal(share.denominator)).exp())
    delta = sum(_lone(rule, ratio, left.get(key, 0), right.get(key, 0)) for key in moved)
    return share * len(moved), float(delta), pure_rho(share) * len(moved)


def _by_threshold(verdict: Verdict, rule: Threshold, left: Vector, right: Vector) -> Loss:
    lone = {key: max(left.get(key, 0), right.get(key, 0)) for key in left.keys() ^ right.keys()}
    chances = [_tail(rule.noise, rule.tau - on_grid(rule.noise, {(): count})[()]) for count in lone.values()]
    return Fraction(0), sum(chances), Fraction(0)


SELECTIONS: dict[type[Any], Callable[[Verdict, Any, Vector, Vector], Loss]] = {
    TruncatedGeometric: _by_units,
    Threshold: _by_threshold,
    WeightedThreshold: _by_threshold,
}


def _lone(rule: TruncatedGeometric, ratio: Fraction, before: int, after: int) -> Fraction:
    """Return the delta that the selection of this key needs at its share of epsilon, over both directions and both outcomes."""
    last = len(rule.table) - 1
    low, high = sorted(Fraction(int(rule.table[min(count, last)]), ONE) for count in (before, after))
    return max(Fraction(0), high - ratio * low, (1 - low) - ratio * (1 - high))


def _tail(noise: Noise, least: int) -> float:
    """Return P(noise >= least), from the definition of the law."""
    law = law_of(noise)
    assert law is not None
    return law.upper_tail(noise, least)
