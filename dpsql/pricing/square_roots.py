"""Tables of an ordered key that are measured for their running totals, with noise by the square root of their matrix.

The table stays a single block. Only its sums get other noise (`privacy.mechanisms.square_root`), where that makes running totals
more exact; this follows from the laws: from contribution bounds, accountant, and number of values. Under bounds on groups or
totals a unit may move many cells, and the noise is larger accordingly. No further table is needed, so such bounds are no
obstacle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt

from dpsql.plan.plan import BoundedBlock, Term
from dpsql.pricing.running_totals import LEAST_VALUES, is_ordered
from dpsql.pricing.workloads import ADDING_UP, variance
from dpsql.privacy.mechanisms import gaussian, square_root
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism, series_law
from dpsql.privacy.mechanisms.square_root import MOST_LENGTH


@dataclass(frozen=True)
class RunningTable:
    """A sum (the first of those that share its rows) of a block over `length` ordered values, and the root mean square error of
    its running totals, in row-grid units: as measured, without `dp.workload` (`alone`), and by ranges (None: not measured by
    ranges)."""

    block: str
    term: str
    length: int
    error: float
    alone: float
    ranges: float | None = None


def lengths(blocks: Sequence[BoundedBlock]) -> dict[str, int]:
    """Return the number of values of the last key of each block whose groups are all combinations of public values, with the last
    key's values in order."""
    return {block.name: len(block.keys[-1].values or ()) for block in blocks if _is_eligible(block)}


def _is_eligible(block: BoundedBlock) -> bool:
    if block.reads_results or block.combinations is not None or block.measurements or not block.keys:
        return False
    if block.selection_term is not None:
        return False
    if not all(key.values and key.whole for key in block.keys) or not is_ordered(block.keys[-1]):
        return False
    return LEAST_VALUES <= len(block.keys[-1].values or ()) <= MOST_LENGTH


def candidate(term: Term, block: BoundedBlock, length: int, mechanisms: Sequence[Mechanism]) -> Mechanism | None:
    """Return the mechanism by the square root for a sum over vectors of `length`, if Gaussian noise may be used and the sum and
    all that share its rows add up; otherwise None. Its noise is on no finer grid than the sums, so that nothing is rounded after
    it."""
    together = [other for other in block.terms if other.shares == term.shares] if term.shares else [term]
    if not all(other.kind in ADDING_UP and other.magnitude for other in together):
        return None
    if all(mechanism.law is not gaussian.Gaussian for mechanism in mechanisms):
        return None
    calibration = partial(square_root.noise_for, length=length, finest=0)
    return replace(MECHANISMS[square_root.SQUARE_ROOT], calibrations={"rho": calibration})


def running_error(noise: Noise, length: int, whole: bool) -> float:
    """Return the root mean square error of running totals over `length` values with `noise`, in row-grid units."""
    if (law := series_law(noise)) is not None:
        return law.running_deviation()
    return sqrt(variance(noise, whole) * (length + 1) / 2)
