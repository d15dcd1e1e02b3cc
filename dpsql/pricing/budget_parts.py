"""The division of a question's budget: one part for everything that it measures, and the noise that a part buys.

Parts are even in the unit of the accountant, epsilon or rho. Tables of a workload get unequal shares (`workloads`).

The error of the quantity that each measured term represents in the answer is known before anything is measured. Most terms are
shown as they are. Where terms share each row (`joint_sums`), COUNT and SUM are weighted sums of them, with a different error
and unit: the sum around the lower bound represents SUM, the sum around the upper bound the number of rows that contribute to
both, and the count of rows without a value the number of all rows. Among shared squares, the first term represents the number
of rows with a value, the second SUM, and the last itself, the sum of (x - L)^2. Among shared products and squares of pairs,
the first term represents the number of rows with both values, the others themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from dpsql.errors.exceptions import Refusal, refuse
from dpsql.plan.expression_text import column_texts, expression_text
from dpsql.plan.formulas import Formula, Operation, Operator, weights_of
from dpsql.plan.plan import BoundedBlock, Caps, Term, TermKind
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.options import Options
from dpsql.pricing.running_totals import candidate, running_error
from dpsql.pricing.sensitivity import sensitivity
from dpsql.pricing.sharing import NoiseLaw
from dpsql.privacy.accounting import Accountant
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import Noise, Norm, Sensitivity, TermNoise
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism, askable, registered
from dpsql.privacy.mechanisms.weighted_sums import weighted
from dpsql.storage.records import dataclass, replace


@dataclass(frozen=True)
class TermError:
    """Unit and error of a term. `unit`: size of one step of the term's integers in the answer. `half_width` (at the requested
    confidence) is in the unit of the answer, without rounding to integers and to the row grid."""

    unit: float
    half_width: float


def term_errors(block: BoundedBlock, noises: Sequence[TermNoise], confidence: float) -> dict[str, TermError]:
    """Return the error of each term by name. `confidence` in [0, 1)."""
    named = {term.name: term for term in block.terms}
    return {noise.name: _error(named.get(noise.name), noise, confidence) for noise in noises}


def _error(term: Term | None, noisy: TermNoise, confidence: float) -> TermError:
    unit, weights = _stands_for(term, 2.0**-noisy.grid)
    law, factor = weighted(registered(noisy.noise), weights)
    return TermError(unit, law.half_width(confidence) * factor * unit)


def expected_error(term: Term, noisy: TermNoise) -> float:
    """Return the expected absolute error of the quantity that a term represents, in the unit of the answer, as in `TermError`."""
    unit, weights = _stands_for(term, 2.0**-noisy.grid)
    law, factor = weighted(registered(noisy.noise), weights)
    return law.expected_error() * factor * unit


def measure_half_width(measure: Formula, noises: Sequence[TermNoise], confidence: float) -> float:
    """Return the half width, in the answer's unit, of a COUNT or SUM that is a weighted sum of one set, `noises`."""
    if isinstance(measure, Operation) and measure.operator is Operator.WHOLE:
        (measure,) = measure.operands
    weights = weights_of(measure)
    read = [noise for noise in noises if weights.get(noise.name)]
    if not read:
        return 0.0
    law, factor = weighted(registered(read[0].noise), [abs(weights[noise.name]) for noise in read])
    return law.half_width(confidence) * factor * 2.0 ** -read[0].grid


def _of_squares(term: Term, step: float) -> tuple[float, list[float]]:
    width = isqrt(term.magnitude)
    if term.place == 0:
        return 1 / term.magnitude, [1.0, 1.0, 1.0]
    if term.place == 2:
        return step, [1.0]
    lowest = float(Fraction(term.lower) * Fraction(2) ** (term.grid // 2) / width)
    values = sorted((abs(lowest + above) for above in (0.0, 0.5, 1.0)), reverse=True)
    return 2.0 ** -(term.grid // 2) / width, [value for value in values if value]


def _stands_for(term: Term | None, step: float) -> tuple[float, list[float]]:
    """Return the unit, and the weights, largest first, of independent noises of one law. SUM is low + L (low - high) / W; with
    squares it is the sum of the parts times the values L, L + W / 2 and L + W, over W^2."""
    if term is None or not term.shares:
        return step, [1.0]
    if term.kind is TermKind.PRODUCT_PART:
        return (step, [1.0]) if term.place else (1 / term.magnitude, [1.0] * 4)
    if term.kind is TermKind.PAIR_PART:
        return (step, [1.0]) if term.place else (1 / term.magnitude, [1.0] * 9)
    if term.kind is TermKind.SQUARE_PART:
        return _of_squares(term, step)
    if term.kind is not TermKind.SUM:
        return 1 / term.magnitude, [1.0] * (4 if term.place else 3)
    if term.centre != term.lower:
        return 1 / term.magnitude, [1.0, 1.0]
    moved = float(Fraction(term.lower) * Fraction(2) ** term.grid / term.magnitude)
    return step, sorted((abs(weight) for weight in (1 + moved, moved) if weight), reverse=True)


_ALL = Fraction(1)
_NO_LENGTHS: Mapping[str, int] = {}


class BudgetParts:
    """The division of a question's budget among its terms, selections and other measurements."""

    def __init__(
        self,
        blocks: tuple[BoundedBlock, ...],
        options: Options,
        accountant: Accountant,
        lengths: Mapping[str, int] = _NO_LENGTHS,
    ) -> None:
        """Divide the budget. `lengths`: the numbers of ordered values of blocks with running totals (`running_totals`)."""
        self.options = options
        self.accountant = accountant
        self.lengths = lengths
        self.mechanisms = mechanisms_of(options, accountant)
        # A block without keys has only one group, so there is no other group whose noise could be correlated: correlation would
        # only cost.
        self._mechanisms_of_one_group = mechanisms_of(replace(options, correlation=Fraction(0)), accountant)
        self.allowed = accountant.request(options.epsilon)
        self.selecting = [block for block in blocks if block.selection_term is not None]
        private = (
            expression_text(key.expression, column_texts(block.source))
            for block in self.selecting
            for key in block.keys
            if key.values is None
        )
        if self.selecting and options.delta == 0:
            raise refuse("selection_needs_delta", keys=f"private keys ({', '.join(dict.fromkeys(private))})")
        if self.selecting and any(mechanism.shared for mechanism in self.mechanisms):
            names = ", ".join(dict.fromkeys(private))
            raise refuse("shared_noise_keys", mechanism=options.mechanism, keys=names)
        measured = sum(len(sets_of(block)) for block in blocks)
        weighted = sum((parts - 1 for block in blocks for _, parts in block.set_parts), Fraction(0))
        numbers = sum(
            PARTS.of(measurement.word).parts(measurement) for block in blocks for measurement in block.measurements
        )
        apart = sum(1 for block in self.selecting if block.selection_term not in {t.name for t in block.terms})
        self.parts = max(Fraction(1), measured + weighted + apart + numbers)
        spending = [mechanism.word for mechanism in self.mechanisms if accountant.spends_delta(mechanism)]
        deltas = sum(
            PARTS.of(measurement.word).deltas(measurement) for block in blocks for measurement in block.measurements
        )
        sharing = len(self.selecting) + (measured + apart if spending else 0) + deltas
        if spending and measured + apart and options.delta == 0:
            raise refuse("mechanism_needs_delta", mechanism=spending[0].capitalize())
        self.delta = options.delta / max(1, sharing)
        self.loss = self.allowed.times(1 / self.parts)
        """Loss of one part, in the unit of the accountant."""
        self.of_sets: Mapping[tuple[str, str], Fraction] = {}
        """Fraction of one part that a set of terms gets, by block and set, where it is not the whole part (`workloads`)."""

    def measured(
        self, term: Term, block: BoundedBlock, neighbours: Neighbours, share: Fraction | None = None
    ) -> tuple[Term, Noise]:
        """Return the term and its noise: from the requested mechanism, or else the one with the lowest expected error. `share`:
        fraction of one part (None: the fraction of the term's set).

        A clip uses the norm of the mechanism; it is omitted where the bounded view alone keeps every unit within the bound.
        """
        name = term.shares or term.name
        share = self.of_sets.get((block.name, name), _ALL) if share is None else share
        part = self.loss.times(share * dict(block.set_parts).get(name, _ALL))
        moved = _moved(term, block, neighbours) if term.clip is None else None

        def measured_with(mechanism: Mechanism) -> tuple[Term, Noise]:
            bounded = term if moved is not None else _clipped_in(term, mechanism.norm, block.caps, neighbours)
            norms = moved or _moved(bounded, block, neighbours)
            return bounded, self.accountant.noise_for(mechanism, norms, part, self.delta)

        mechanisms = self.mechanisms if block.keys else self._mechanisms_of_one_group
        least = min(map(measured_with, mechanisms), key=lambda choice: choice[1].expected_error())
        length = self.lengths.get(block.name)
        root = None if length is None else candidate(term, block, length, self.mechanisms)
        if root is None or length is None:
            return least
        try:
            for_totals = measured_with(root)
        except Refusal:  # noise_too_large, where the other mechanisms can still measure
            return least
        whole = is_whole(term)
        errors = [running_error(noise, length, whole) for _, noise in (for_totals, least)]
        return for_totals if errors[0] < errors[1] else least

    def noise_of(self, neighbours: Neighbours, term: Term, block: BoundedBlock, share: Fraction) -> Noise:
        return self.measured(term, block, neighbours, share)[1]

    def charged(self, noise: Noise) -> PrivacyLoss:
        return self.accountant.charge(_loss(noise), self.delta)


def mechanisms_of(options: Options, accountant: Accountant) -> tuple[Mechanism, ...]:
    """Return the mechanisms that may be used: the requested one, or all that the accountant counts without additional delta."""
    if options.mechanism in MECHANISMS:
        mechanism = MECHANISMS[options.mechanism]
        if mechanism.correlated is not None and options.correlation:
            mechanism = replace(mechanism, calibrations={"rho": mechanism.correlated(options.correlation)})
        return (mechanism,)
    return tuple(mechanism for mechanism in askable() if mechanism.offered and not accountant.spends_delta(mechanism))


def is_whole(term: Term) -> bool:
    """Return whether the released numbers of a term are rounded to integers."""
    return term.kind not in (TermKind.SUM, TermKind.DISTINCT_SUM) and not term.shares


def noise_law(options: Options, accountant: Accountant) -> NoiseLaw:
    """Return how errors follow from sensitivities and parts of the budget, with the mechanisms that may be used."""
    in_l1 = all(mechanism.norm is Norm.L1 for mechanism in mechanisms_of(options, accountant))
    by_epsilon = accountant.request(options.epsilon).epsilon is not None
    return NoiseLaw(Norm.L1 if in_l1 else Norm.L2, 1.0 if by_epsilon else 0.5)


@lru_cache(maxsize=1024, typed=True)
def _loss(noise: Noise) -> PrivacyLoss:
    return noise.loss


@lru_cache(maxsize=1024, typed=True)
def recomputed_loss(noise: Noise) -> PrivacyLoss:
    """Return the independently recomputed loss of one mechanism (its second road), cached for all questions that use it."""
    return noise.recomputed_loss()


def _moved(term: Term, block: BoundedBlock, neighbours: Neighbours) -> Sensitivity:
    """Return the sensitivity of a term; for a term that shares each row, the sensitivity of all terms of its set as one vector.

    A row adds to the terms of a set at most `magnitude` in total, so the L1 norm of what a unit adds to a group is that of one
    term, n_g b, and no L2 or Linf norm exceeds L1. The number of entries is that of one term times the number of terms in the
    set.
    """
    moved = sensitivity(term, block.caps, neighbours)
    sharing = sum(1 for other in block.terms if other.shares == term.shares) if term.shares else 1
    return replace(moved, l0=moved.l0 * sharing)


def _clipped_in(term: Term, norm: Norm | None, caps: Caps, neighbours: Neighbours) -> Term:
    """Return a term under max_total or max_count with its clip's norm; without a clip where none could bind."""
    assert term.clip is not None
    free = sensitivity(replace(term, clip=None), caps, neighbours)
    most = term.clip.most * neighbours.factor
    if most >= free.l1 if norm is Norm.L1 else most * most >= free.l2_squared:
        return replace(term, clip=None)
    return replace(term, clip=replace(term.clip, norm=norm))


def sets_of(block: BoundedBlock) -> set[str]:
    """Return the separately charged sets of terms: each term that a unit can move, or all terms that share each row."""
    return {term.shares or term.name for term in block.terms if term.magnitude}
