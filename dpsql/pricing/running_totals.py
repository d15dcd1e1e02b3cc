"""Running totals and ranges over an ordered key: the same sums by wider and wider ranges of the key, measured as one workload.

A running total over n values is a sum of up to n noisy sums, and its error grows like the square root of n. If ranges of b, b**2,
... values are measured as well, it is a sum of few numbers (Hay, Rastogi, Miklau and Suciu 2010, arXiv 0904.0942, with least
squares; Chan, Shi and Song 2011 for running totals). Each of these tables is an ordinary block of integer sums with its own noise
and price; together they have the budget that the table alone would have had, in the shares that minimize the error of running
totals. The tables are a workload (`workloads`) whose keys are the digits of a value's place: a range of b**l values consists of
the places with the same leading digits. So least squares is that of `workloads`; places beyond the last value have no rows and
are known to be 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial
from math import sqrt

import numpy as np

from dpsql.functions.signatures import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Block, BoundedBlock, Expr, Filter, Key, Term, literal
from dpsql.pricing.workloads import (
    ADDING_UP,
    MOST_KEYS,
    Floats,
    Marginals,
    Tile,
    Workload,
    adding_up,
    axes_of,
    in_steps,
    variance,
)
from dpsql.privacy.mechanisms import gaussian, square_root
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.privacy.mechanisms.registry import MECHANISMS, Mechanism, series_law
from dpsql.privacy.mechanisms.square_root import MOST_LENGTH
from dpsql.storage.records import dataclass, replace

LEAST_VALUES = 8
"""Least number of values of a key with ranges; fewer values are summed without ranges."""
BASES = range(2, 17)
"""Numbers of ranges that may form one range of the next table."""
NEARLY_BEST = 1.02
"""Fewer tables are measured if the variance of running totals is then at most this multiple of that of the best number of
tables."""
LEAST_SHARE = 1 / 16
"""Least share of every table, relative to an even share."""
_ROUNDS = 12
_A_LITTLE = 1e-4


def levels(blocks: Sequence[Block], bounded: Sequence[BoundedBlock], power: int) -> tuple[list[Block], list[Workload]]:
    """Return further blocks by ranges of the last keys of `blocks`, and the workloads of these together with the blocks
    themselves.

    `bounded`: the same blocks with their sums. `power`: if k tables share a budget equally, the variance of each is that of a
    single table times k**power (1 for rho, 2 for epsilon).
    """
    further: list[Block] = []
    workloads: list[Workload] = []
    for block, sums in zip(blocks, bounded, strict=True):
        widths = _widths(sums, power)
        if len(widths) < 2:
            continue
        tables = [block, *(_by_ranges(block, width) for width in widths[1:])]
        further += tables[1:]
        marginals = _marginals(sums, widths)
        shares = best_shares(marginals.lengths[0], widths, power)
        for terms in adding_up(sums):
            names = tuple(term.name for term in terms)
            workloads.append(Workload(marginals, tuple(Tile(table.name, names) for table in tables), shares))
    return further, workloads


def _widths(block: BoundedBlock, power: int) -> tuple[int, ...]:
    """Return the widths of the measured ranges, 1 first; (1,) for a block without an ordered key that can have ranges."""
    axes = axes_of(block)
    added_up = sum(map(len, adding_up(block))) == len(block.terms) > 0
    if not axes or not added_up or block.measurements or not is_ordered(block.keys[-1]):
        return (1,)
    count = len(block.keys[-1].values or ())
    return best_widths(count, MOST_KEYS + 1 - len(axes), power) if count >= LEAST_VALUES else (1,)


@lru_cache(maxsize=64)
def best_widths(count: int, most: int, power: int) -> tuple[int, ...]:
    """Return the widths 1, b, b**2, ... below `count`, at most `most` of them, with the least error of running totals, or nearly
    that with fewer tables; (1,) where there are none. `power`: as in `levels`."""
    every = {base: tuple(base**level for level in range(64) if base**level < count) for base in BASES}
    errors = {
        widths: _mean_variances(count, widths, (1.0,) * len(widths))[0] * len(widths) ** power
        for widths in every.values()
        if 2 <= len(widths) <= most
    }
    least = min(errors.values(), default=0.0)
    near = (widths for widths, error in errors.items() if error <= NEARLY_BEST * least)
    return min(near, key=lambda widths: (len(widths), errors[widths]), default=(1,))


@lru_cache(maxsize=64)
def best_shares(count: int, widths: tuple[int, ...], power: int) -> tuple[Fraction, ...]:
    """Return the share of each table by ranges of `widths`, relative to an even share: their sum is at most the number of tables.

    `count` values; `power`: as in `levels`. The mean variance f of running totals is homogeneous of degree 1 in the variances of
    the tables, so its elasticities e in them add up to 1. With v = s**-power, f is least at a given sum of shares where s is
    proportional to e; each round goes a part of the way there, on a logarithmic scale. (For power 1, f is convex, and this is the
    multiplicative algorithm for A-optimal designs: Silvey, Titterington and Torsney 1978.) The best of all rounds is taken, even
    shares included. Floats are rounded down, so however inaccurate the shares are, the tables together cost no more.
    """
    number = len(widths)
    shares = np.ones(number)
    candidates = {(Fraction(1),) * number: _errors(count, widths, shares**-power)[0]}
    for _ in range(_ROUNDS):
        variances = shares**-power
        least = _errors(count, widths, variances)[0]
        more = [_errors(count, widths, variances * (1 + _A_LITTLE * only))[0] for only in np.eye(number)]
        elasticities = np.maximum(np.array(more) / least - 1, 0) / _A_LITTLE
        moved = (shares**power * elasticities) ** (1 / (1 + power))
        shares = LEAST_SHARE + (1 - LEAST_SHARE) * number * moved / moved.sum()
        rounded = in_steps(shares)
        candidates[rounded] = _errors(count, widths, np.array([float(share) for share in rounded]) ** -power)[0]
    return min(candidates, key=lambda chosen: candidates[chosen])


def is_ordered(key: Key) -> bool:
    """Return whether the values of a key are consecutive days or integers, without NULL."""
    values = key.values or ()
    if key.expression.facts.type not in (Type.INTEGER, Type.DATE) or None in values:
        return False
    indexes = [value if isinstance(value, int) else value.toordinal() for value in values]
    return indexes == list(range(indexes[0], indexes[0] + len(indexes)))


def _by_ranges(block: Block, width: int) -> Block:
    """Return the block with its sums by ranges of `width` values of the last key, over rows with one of these values."""
    key = block.keys[-1]
    values = key.values or ()
    first, last = literal(values[0]), literal(values[-1])
    inside = call("and", call("ge", key.expression, first), call("le", key.expression, last))
    expression = call("intdiv", _distance(key.expression, first), literal(width))
    ranges = Key(key.name, expression, tuple(range(-(-len(values) // width))), key.left)
    return replace(
        block, name=f"{block.name}_by_{width}", source=Filter(block.source, inside), keys=(*block.keys[:-1], ranges)
    )


def _distance(value: Expr, first: Expr) -> Expr:
    if value.facts.type is Type.DATE:
        return call("date_diff", literal("day"), first, value)
    return call("sub", value, first)


def _marginals(block: BoundedBlock, widths: Sequence[int]) -> Marginals:
    """Return the tables by the other keys and the leading digits of places; the first digit has only as many values as occur."""
    *earlier_sizes, count = [len(key.values or ()) for key in block.keys]
    digits = (-(-count // widths[-1]), *([widths[1]] * (len(widths) - 1)))
    keys = len(earlier_sizes) + len(digits)
    tiles = tuple(tuple(range(keys - level)) for level in range(len(widths)))
    return Marginals((*earlier_sizes, *digits), tiles, tuple(-(-count // width) for width in widths))


def mean_variances(workload: Workload, variances: Sequence[float]) -> tuple[float, float]:
    """Return the variances of a running total over the last key, and of one value's sum, after least squares, averaged over the
    values.

    `variances`: the variance of a measured cell of each table.
    """
    count = workload.marginals.lengths[0]
    widths = tuple(workload.marginals.sizes[-1] ** level for level in range(len(workload.tiles)))
    running, single = _mean_variances(count, widths, tuple(variance / variances[0] for variance in variances))
    return running * variances[0], single * variances[0]


@lru_cache(maxsize=64)
def _mean_variances(count: int, widths: tuple[int, ...], relative: tuple[float, ...]) -> tuple[float, float]:
    """Return `mean_variances` from a cache, keyed by numbers: equal keys have equal results."""
    return _errors(count, widths, np.array(relative))


def _errors(count: int, widths: Sequence[int], relative: Floats) -> tuple[float, float]:
    """Compute `mean_variances` in a few steps for each value and width.

    Least squares has the covariance M**-1, where M is D + 1 1' / v in each range of a width measured with variance v, and D is M
    of the ranges inside. So M**-1 = D**-1 - r r' / (v + s), r = D**-1 1, s = 1' r (Sherman and Morrison 1950), and the variances
    of one value and of the first values of a range follow from the same numbers of the ranges inside.
    """
    indexes = np.arange(count)
    totals = np.full(count, relative[0])
    rows, single, first, first_of_all = (np.full(count, relative[0]) for _ in range(4))
    inner_width = 1
    for width, measured in zip(widths[1:], relative[1:], strict=True):
        inside = indexes // inner_width
        ranges = np.arange(len(totals)) // (width // inner_width)
        earlier = np.cumsum(totals) - totals
        earlier = (earlier - earlier[ranges * (width // inner_width)])[inside]
        sums = np.bincount(ranges, totals)
        more = (measured + sums)[ranges[inside]]
        first_of_all = first_of_all + earlier
        first = first + earlier - first_of_all**2 / more
        single = single - rows**2 / more
        rows, first_of_all = rows * measured / more, first_of_all * measured / more
        totals, inner_width = sums * measured / (measured + sums), width
    running = first + (np.cumsum(totals) - totals)[indexes // inner_width]
    return float(np.mean(running)), float(np.mean(single))


def is_better(workload: Workload, measured: Sequence[float], alone: float) -> bool:
    """Return whether running totals have less error by ranges. `measured`: the variance of a cell of each table, `alone`: that of
    the table alone, at the same price."""
    return mean_variances(workload, measured)[0] < alone * mean_terms(workload)


def mean_terms(workload: Workload) -> float:
    return (workload.marginals.lengths[0] + 1) / 2


# --- noise for running totals -----------------------------------------------------------------------------------------

# Tables of an ordered key that are measured for their running totals, with noise by the square root of their matrix.
# The table stays a single block. Only its sums get other noise (`privacy.mechanisms.square_root`), where that makes running
# totals more exact; this follows from the laws: from contribution bounds, accountant, and number of values. Under bounds on
# groups or totals a unit may move many cells, and the noise is larger accordingly. No further table is needed, so such bounds
# are no obstacle.


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
    """Return the number of the last key's values of each block with all combinations of public values, that key in order."""
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
