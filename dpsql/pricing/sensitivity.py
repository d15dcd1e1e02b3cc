"""From contribution bounds to the sensitivity of one basis term (privacy.md 4); and the interface of pricing for
measurements other than sums, of which `pricing.measurements` registers each kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any, Protocol

from dpsql.errors.exceptions import refuse
from dpsql.plan.formulas import Formula
from dpsql.plan.plan import Caps, Clip, Literal, Measure, Term, TermKind
from dpsql.privacy.loss import Neighbours, PrivacyLoss
from dpsql.privacy.mechanisms.contract import MeasurementPlan, Norm, Sensitivity
from dpsql.storage.records import dataclass, replace


@dataclass(frozen=True)
class ExplainedNumber:
    """One released number as shown by EXPLAIN, beside its law.

    `aggregate`: the number as SQL-like text. `scale` is in rows of rank; `grid` is the distance between
    neighbouring values that may be released, in the unit of the answer. `error`: what is known about its error, in words.
    `aim`: the value that it would be exactly, if its error is known in rows of rank (`worst_error`); "" if it is not.
    """

    aggregate: str
    scale: float
    grid: float
    error: str
    aim: str = ""


class MeasuredBlock(Protocol):
    """The block in which a number is entered, as far as it affects how the number is measured.

    `measurements`: those entered so far; equal ones are entered once. `groups`: number of groups of the answer, as far as it is
    public. `one_row`: a unit has at most one row. `bars`: confidence of the error bars that are measured for quantiles (None: no
    error bars). `means`: options of means of samples.
    """

    measurements: list[Any]
    groups: int
    one_row: bool
    bars: Fraction | None
    means: Any


Ends = tuple[Formula, Formula]
"""Both ends of an error bar that is measured together with a number."""
Request = Callable[[MeasuredBlock, Measure], tuple[Formula, Ends | None]]
"""Function that enters the measurement of a measure in the block. Returns a formula over the released number, and the ends of its
error bar if it has one. Raises a refusal for a measure that cannot be measured this way."""


class MeasurementPricing(Protocol):
    """Pricing of one kind of measurement. Everything follows from SQL, policy and options. One number, or one vector of numbers,
    is paid for, without delta, unless a kind says otherwise."""

    def parts(self, measurement: Any) -> int:
        """Return the number of parts of the question's budget that the measurement takes."""
        return 1

    def deltas(self, measurement: Any) -> int:
        """Return the measurement's parts of delta: none for a choice; Gaussian noise is used only where rho is charged."""
        return 0

    def planned(self, measurement: Any, caps: Caps, part: PrivacyLoss, neighbours: Neighbours) -> MeasurementPlan:
        """Return the mechanisms of a measurement, each of which costs at most one `part` (epsilon, or rho where epsilon is None,
        and delta for mechanisms that use it)."""

    def explained(self, measurement: Any, plan: Any, number: str, confidence: float) -> ExplainedNumber:
        """Return the description of one of the measurement's released numbers for EXPLAIN, with the noise of `plan`."""

    def worst_error(self, measurement: Any, plan: Any, number: str, confidence: float) -> float:
        """Return the number of rows by which a released number may be off with a probability of at most 1 - `confidence`,
        whatever the data are; `dp.target_error` limits it. 0 for ends of error bars, infinite where no such bound is known."""
        return math.inf


def entered(measurements: list[Any], described: Any, letter: str) -> Any:
    """Return the measurement that is equal to `described`, which has no name. Where there is none, enter it in `measurements`,
    under a name that begins with `letter`."""
    alike = [measurement for measurement in measurements if isinstance(measurement, type(described))]
    for measurement in alike:
        if replace(measurement, name="", term=replace(measurement.term, name="")) == described:
            return measurement
    name = f"{letter}{len(alike)}"
    measurements.append(replace(described, name=name, term=replace(described.term, name=name)))
    return measurements[-1]


def groups_per_unit(caps: Caps, neighbours: Neighbours) -> int:
    """Return the most groups whose sums one change can move: a replaced unit leaves groups and enters others."""
    return caps.groups * neighbours.factor


def sensitivity(term: Term, caps: Caps, neighbours: Neighbours) -> Sensitivity:
    """Return the L0, L1, L2 (squared) and Linf distance, in grid units, between the vectors of sums of two neighbours.

    With c = rows_per_unit, k = groups, m = max_rows_per_group and b = magnitude of one row, a unit adds a vector v over disjoint
    groups with at most k non-zero entries, each |v_g| <= n_g b, n_g <= m, sum of n_g <= c (m is the smaller of max_rows_per_group
    and rows_in_group, which holds for the relation whatever is dropped):
    L1 = sum n_g b <= min(c, k m) b; L2^2 = sum n_g^2 b^2 <= b^2 max(n_g) sum(n_g) <= b^2 min(c, m) min(c, k m),
    which is min(c^2, k m^2, c m) b^2 or less. UNITS adds 0 or 1 to each touched group, whatever the rows.
    A clipped term adds a vector whose norm is also at most C (`emit.clipping`), so the smaller bound of each norm holds: clipped
    in L1, no norm exceeds C; clipped in L2, neither L2 nor Linf does, and L1 <= sqrt(k) L2 (Cauchy-Schwarz).
    Where units have `places` l, an added unit adds only values in its own first l places (`emit.value_places`): at most 1 for
    each of l values in total, so l replaces c and k where it is smaller. A DISTINCT_SHARE adds b / l, an integer, for each of at
    most l values: b in total, whichever l is released (`planning.total_cuts`). No norm of a vector exceeds its L1 norm.
    change_one moves v_old to v_new: the triangle inequality doubles every norm (and quadruples the square).
    """
    factor = neighbours.factor
    groups = caps.groups
    if term.kind is TermKind.UNITS:
        return Sensitivity(groups * factor, groups * factor, groups * factor * factor, min(1, groups) * factor)
    rows = caps.rows_per_unit
    if term.kind is TermKind.DISTINCT_SHARE:
        return _of_shares(term, min(rows, groups), factor)
    if term.places is not None:
        rows = min(rows, places_of(term))
        groups = min(groups, rows)
    in_group = min(rows, *(m for m in (caps.bounds.max_rows_per_group, caps.rows_in_group) if m is not None), rows)
    total = min(rows, groups * in_group)
    b = term.magnitude
    if b == 0 or groups == 0:  # constants, and grids of public keys without any key (every value of them is NULL)
        return Sensitivity(0, 0, 0, 0)
    free = Sensitivity(
        l0=groups * factor,
        l1=total * b * factor,
        l2_squared=in_group * total * b * b * factor * factor,
        linf=in_group * b * factor,
    )
    return free if term.clip is None else _clipped(free, term.clip, groups, factor)


def rows_moved(caps: Caps, neighbours: Neighbours) -> Sensitivity:
    """Return how far a unit moves a histogram of rows. A unit adds n_g rows to group g, whichever cells they are in, as to a
    count of all rows: so the vector of n_g has the norms of a COUNT's sensitivity."""
    return sensitivity(Term("", TermKind.COUNT, None, None, 1), caps, neighbours)


def _of_shares(term: Term, groups: int, factor: int) -> Sensitivity:
    """Return how far a unit moves a sum over `groups` groups to which it adds at most the term's magnitude in total."""
    most = term.magnitude * factor
    return Sensitivity(groups * factor, most, most * most, most)


def places_of(term: Term) -> int:
    """Return the most different values that a unit brings to a term. Raises InternalError where that number is unknown."""
    if not isinstance(term.places, Literal) or type(term.places.value) is not int or term.places.value < 1:
        raise refuse("internal", what="places of values whose number is not known")
    return term.places.value


def _clipped(free: Sensitivity, clip: Clip, groups: int, factor: int) -> Sensitivity:
    if clip.norm is None:
        raise refuse("internal", what="a clip without a norm")
    most = clip.most * factor
    l1 = most if clip.norm is Norm.L1 else isqrt(groups * clip.most * clip.most) * factor
    return Sensitivity(free.l0, min(free.l1, l1), min(free.l2_squared, most * most), min(free.linf, most))
