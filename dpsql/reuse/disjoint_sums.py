"""Disjoint sums of stored cells, from which a derived answer is computed; and quantiles from stored counts of each value.

The noise of two disjoint sums is independent: no cell is in both, and cells whose noise is correlated enter only one sum for
each group (`add_vector`). A derived block passes the sums to the public remainder as its terms, with the law of their summed
noise, and its measures as formulas over them.

Quantiles. COUNT(*) ... GROUP BY x answers MEDIAN(x), quantiles, MIN(x) and MAX(x) for free.

A group has the values v_1 < ... < v_V with n_i rows each; n_i + z_i were released, where the z_i are independent and symmetric.
The quantile q lies where the noisy number of rows up to a value, minus the wanted noisy rank, changes its sign:

    F(c) = sum_{i <= c} (n_i + z_i) - q sum_i (n_i + z_i).

The answer is the v_k for which sum_{i < k} F(i) is least: the cut of the non-decreasing sums that fit F best by least squares
(isotonic regression). So F(k - 1) <= 0 <= F(k), and without noise it is SQL's discrete quantile.

Error. With A_c = sum_{i <= c} z_i and T = A_V, F is off by e_c = A_c - q T. If |e_c| <= W for all c, then below(k) - q n
<= W and q n - below(k) - n_k <= W: the rank error is at most W (if the noisy number of rows is negative, n max(q, 1 - q) <= W,
so any value is as near). W has two bounds, each with a probability of 1 - beta; the smaller one is used:

- e_c is a sum of z_i with weights of at most max(q, 1 - q), so P(|e_c| >= max(q, 1 - q) w) <= 2 P(|T| >= w) (the contraction
  principle for symmetric summands, Ledoux and Talagrand 1991, theorem 4.4), for each of V + 1 cuts;
- e_c = (1 - q) A_c - q (T - A_c), and Levy's inequality, P(max_c |A_c| >= w) <= 2 P(|T| >= w), holds from either side: |e_c| <= w
  except with a probability of 4 P(|T| >= w).

MIN returns the r-th smallest value, r > W, so that it lies inside the data: the wanted rank is min(r - 1/2, n / 2) as in
`privacy.mechanisms.exponential`, and the noise of that rank is between 0 and T / 2. So e_c lies between A_c and A_c - T / 2, and
the second bound holds; for MAX the same holds from the other side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from math import ceil, hypot
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpsql.functions.evaluate import evaluate
from dpsql.noise.group_layout import combinations_table
from dpsql.noise.perturb import ChosenNumber, NoisyTerm
from dpsql.plan.expression_text import expression_text
from dpsql.plan.formulas import Formula, NoisyValue, Number, substituted
from dpsql.plan.measurements import RankHistogram
from dpsql.plan.plan import Call, Column, Expr
from dpsql.pricing.measurements import PARTS as PRICING
from dpsql.pricing.pricing import PricedBlock
from dpsql.privacy.loss import plain_decimal
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.registry import series_law, summed
from dpsql.release.remainder import MOST_WEIGHTS, PooledTerm, ReleasedBlock, pooled
from dpsql.reuse.record import StoredTerm
from dpsql.storage.records import dataclass, replace

MOST_SUMS = 64
_MOST_CHOICES = 16
_MOST_WHOLE = (1 << 63) - 1024

Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]
Part = tuple[Fraction, StoredTerm, "frozenset[str]"]
"""Weight, stored term, and the fingerprints of the conditions that choose its cells."""


class Impossible(Exception):
    """The stored release does not contain the answer."""


def grid(priced: PricedBlock) -> pa.Table:
    """Return the block's groups of public keys; the first key varies slowest."""
    return combinations_table(priced.noise.keys, priced.noise.listed)


def disjoint(
    parts_by_term: Mapping[str, list[Part]], cells_of: Callable[[frozenset[str]], Mask]
) -> Iterator[tuple[StoredTerm, Mask, list[tuple[str, Fraction]]]]:
    """Partition the cells of each stored term. Yield it with each set of cells and the terms (with weights) that use the set."""
    uses: dict[str, tuple[StoredTerm, list[tuple[str, Fraction, frozenset[str]]]]] = {}
    for name, parts in parts_by_term.items():
        for weight, stored, chosen in parts:
            uses.setdefault(stored.name, (stored, []))[1].append((name, weight, chosen))
    for stored, users in uses.values():
        choices = list(dict.fromkeys(chosen for _, _, chosen in users))
        if len(choices) > _MOST_CHOICES:
            raise Impossible
        pattern = sum(cells_of(chosen).astype(np.int64) << bit for bit, chosen in enumerate(choices))
        for bits in np.unique(pattern):
            used = [(name, weight) for name, weight, chosen in users if bits >> choices.index(chosen) & 1]
            if used:
                yield stored, pattern == bits, used


class DisjointSums:
    """The derived block under construction: its terms are disjoint sums, and each term of the query is a weighted sum of them.
    `numbers`: stored numbers that a mechanism chose, under the names by which the query reads them."""

    def __init__(self, priced: PricedBlock, keys: pa.Table) -> None:
        self.priced = priced
        self.keys = keys
        self.rows = keys.num_rows if priced.block.keys else 1
        self.terms: list[NoisyTerm | PooledTerm] = []
        self.vectors: set[str] = set()
        """Names of the stored terms with correlated noise that already have sums."""
        self.numbers: list[ChosenNumber] = []
        self.sums: dict[str, list[tuple[Fraction, NoisyTerm | PooledTerm]]] = {
            term.name: [] for term in priced.block.terms
        }

    def add(
        self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions, used: list[tuple[str, Fraction]]
    ) -> None:
        """Add the sum of `values` (one for each cell) by `group` of the answer. `used`: the terms that use it, with weights.

        Groups left empty by conditions on their own keys are 0 and get error bars like the others. Raises Impossible if
        groups have different numbers of cells, because their noise then has different laws.
        """
        sizes = np.unique(np.bincount(group, minlength=self.rows))
        sizes = sizes[sizes > 0]
        if len(sizes) != 1 or len(self.terms) >= MOST_SUMS:
            raise Impossible
        noise = summed(stored.noise, int(sizes[0]), stored.whole)
        if noise is None:
            raise Impossible
        unit = 2.0 ** (noise.shift - stored.grid)
        total = self._totals(stored, values, group)
        self._append(NoisyTerm(f"a{len(self.terms)}", total, unit, noise, stored.grid, stored.whole), used)

    def add_vector(
        self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions, used: list[tuple[str, Fraction]]
    ) -> None:
        """Add the sums of a vector whose cells have correlated noise: `values` and `group` of all its cells, group -1 for cells
        that are not summed.

        Groups may have different numbers of cells. Raises Impossible for other laws, and if the same vector already has a
        sum: the noise of both would not be independent.
        """
        law, cells = series_law(stored.noise), np.flatnonzero(group >= 0)
        if law is None or stored.name in self.vectors or len(self.terms) >= MOST_SUMS:
            raise Impossible
        if not cells.size or self.rows * group.size > MOST_WEIGHTS:
            raise Impossible
        self.vectors.add(stored.name)
        name, total = f"a{len(self.terms)}", self._totals(stored, values[cells], group[cells])
        if np.array_equal(group, np.arange(self.rows)):
            self._append(NoisyTerm(name, total, 2.0 ** (law.shift - stored.grid), law, stored.grid, stored.whole), used)
        else:
            self._append(pooled(name, total, group, law, stored.grid, stored.whole), used)

    def _append(self, summed_cells: NoisyTerm | PooledTerm, used: list[tuple[str, Fraction]]) -> None:
        self.terms.append(summed_cells)
        for name, weight in used:
            self.sums[name].append((weight, summed_cells))

    def _totals(self, stored: StoredTerm, values: npt.NDArray[Any], group: Positions) -> npt.NDArray[Any]:
        """Return the sums of cells by group; whole sums are clamped to 64 bits."""
        most = int(np.bincount(group).max())
        wide = stored.whole and float(np.abs(values.astype(np.float64)).max()) * most >= _MOST_WHOLE
        total = np.zeros(self.rows, dtype=np.float64 if wide else values.dtype)
        np.add.at(total, group, values)
        return np.clip(total, -_MOST_WHOLE, _MOST_WHOLE).astype(np.int64) if wide else total

    def released(self, confidence: float) -> tuple[ReleasedBlock, dict[str, tuple[float, float]]]:
        """Return the block over its disjoint sums, and the errors of the terms of the query (see `Derived.errors`)."""
        if not all(self.sums.values()):
            raise Impossible
        sums = {name: _weighted_sum(parts) for name, parts in self.sums.items()}
        read = sums | {number.name: NoisyValue(number.name) for number in self.numbers}
        formulas = tuple(
            (name, substituted(formula, read), type_) for name, formula, type_ in self.priced.block.formulas
        )
        terms: tuple[NoisyTerm | PooledTerm | ChosenNumber, ...] = (*self.terms, *self.numbers)
        block = ReleasedBlock(self.priced.block.name, self.keys, terms, formulas, self.rows, self.priced.block.groups)
        return block, {name: _error(parts, confidence) for name, parts in self.sums.items()}


def _weighted_sum(parts: list[tuple[Fraction, NoisyTerm | PooledTerm]]) -> Formula:
    """Return the formula of a term as a sum over disjoint sums, evaluated from the left."""
    summands: list[Formula] = [
        NoisyValue(summand.name) if weight == 1 else Number(float(weight)) * NoisyValue(summand.name)
        for weight, summand in parts
    ]
    return reduce(lambda total, part: total + part, summands)


def _error(parts: list[tuple[Fraction, NoisyTerm | PooledTerm]], confidence: float) -> tuple[float, float]:
    deviation = hypot(*(float(weight) * summand.standard_deviation() for weight, summand in parts))
    if len(parts) == 1:
        weight, summand = parts[0]
        return abs(float(weight)) * summand.half_width(confidence), deviation
    return NormalDist().inv_cdf((1 + confidence) / 2) * deviation, deviation


Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CountedNumber:
    """The number `name` of a question, computed for each group from stored counts. `error` says in words how far off it may be,
    `worst_error` in rows; `error_ratio` divides that by the worst error of a new choice."""

    name: str
    values: Integers
    error: str
    worst_error: float
    error_ratio: float

    @property
    def placed(self) -> ChosenNumber:
        """Return the number in the form that the public remainder reads: without a law of its error in value."""
        return ChosenNumber(self.name, self.values)


@dataclass(frozen=True, eq=False)
class RankedCounts:
    """Noisy row counts by group (first axis) and value (second axis), values ascending. `cells`: the number of each value's cell.
    `summands`: the most stored counts in a group, each with the noise of `term`."""

    rows: Floats
    cells: Integers
    term: StoredTerm
    summands: int

    def __post_init__(self) -> None:
        """Raise Impossible for noise that is not symmetric (exact sums are rounded down to a coarser grid first)."""
        if self.term.noise.shift > 0 or not self.cells.size:
            raise Impossible

    def most_off(self, quantile: Fraction, beta: float) -> float:
        """Return W: a rank is off by more than W rows with a probability of at most `beta`."""
        noise = summed(self.term.noise, self.summands, self.term.whole)
        if noise is None:
            raise Impossible
        total = NoisyTerm(
            "", np.empty(0), 2.0 ** (noise.shift - self.term.grid), noise, self.term.grid, self.term.whole
        )
        from_either_side = total.half_width(1 - beta / 4)
        if quantile in (0, 1):
            return from_either_side
        every_cut = total.half_width(1 - beta / (2 * (self.cells.size + 1)))
        return min(from_either_side, float(max(quantile, 1 - quantile)) * every_cut)

    def before_rank(self, ranks: Floats) -> Floats:
        """Return F: for each group and value the noisy number of rows up to it, minus the group's wanted rank."""
        return np.asarray(np.cumsum(self.rows, axis=1) - ranks[:, None])

    def chosen(self, quantile: Fraction, rank: int) -> Integers:
        """Return for each group the index of the value chosen for the quantile; `rank` is r, used for quantiles 0 and 1."""
        total = self.rows.sum(axis=1)
        inside = np.minimum(rank - 0.5, total / 2)
        ranks = {Fraction(0): inside, Fraction(1): total - inside}.get(quantile, total * float(quantile))
        steps = self.before_rank(ranks)[:, :-1]
        behind = np.concatenate([np.zeros((len(total), 1)), np.cumsum(steps, axis=1)], axis=1)
        return np.asarray(np.argmin(behind, axis=1))

    def ends(self, quantile: Fraction, low: bool, missed: Fraction) -> Integers:
        """Return for each group the index of an end of an error bar, beyond which the exact quantile lies with a probability of
        at most `missed`. Allow one row more, because SQL's continuous quantiles lie between neighbouring rows."""
        most_off = self.most_off(quantile, float(missed)) + 1
        past = self.before_rank(self.rows.sum(axis=1) * float(quantile))
        last = self.cells.size - 1
        if low:
            reached = past >= -most_off
            return np.where(reached.any(axis=1), np.argmax(reached, axis=1), last)
        before = np.concatenate([np.full((len(past), 1), -np.inf), past[:, :-1]], axis=1) <= most_off
        return np.asarray(last - np.argmax(before[:, ::-1], axis=1))


def counted_numbers(
    measurement: RankHistogram, plan: Any, counts: RankedCounts, confidence: float
) -> list[CountedNumber]:
    """Compute all numbers of a measurement from the counts of its values; `plan` is the plan of a fresh measurement."""
    indexes: dict[str, Integers] = {}
    numbers, beta = [], 1 - confidence
    ranks: dict[str, int] = {}
    ascending = sorted(measurement.quantiles, key=lambda quantile: quantile.quantile)
    for requested in ascending:
        most_off = counts.most_off(requested.quantile, beta)
        ranks[requested.name] = ceil(most_off) + 1 if requested.quantile in (0, 1) else 0
        indexes[requested.name] = counts.chosen(requested.quantile, ranks[requested.name])
    ordered = np.sort(np.array([indexes[requested.name] for requested in ascending]), axis=0)
    of_quantile = {requested.quantile: ordered[index] for index, requested in enumerate(ascending)}
    text = expression_text(measurement.value)
    for requested in ascending:
        worst = ranks[requested.name] + counts.most_off(requested.quantile, beta)
        fresh = PRICING.of(RANK_HISTOGRAM).worst_error(measurement, plan, requested.name, confidence)
        words = f"quantile {plain_decimal(requested.quantile)} of {text} from the noisy counts of its values: "
        words += f"rank error of at most {worst:.4g} rows in {confidence:.0%} of cases"
        cells = counts.cells[of_quantile[requested.quantile]]
        numbers.append(CountedNumber(requested.name, cells, words, worst, worst / fresh))
    for end in measurement.ends:
        nearest = np.minimum if end.low else np.maximum
        chosen = nearest(counts.ends(end.quantile, end.low, end.missed), of_quantile[end.quantile])
        words = f"{'low' if end.low else 'high'} end of the error bar from the same counts"
        numbers.append(CountedNumber(end.name, counts.cells[chosen], words, 0.0, 0.0))
    return numbers


def ranked_counts(term: StoredTerm, released: Floats, cells: Integers, group: Integers, groups: int) -> RankedCounts:
    """Return `term`'s `released` counts by group and cell, without those in negative cells. Raises Impossible."""
    used = cells >= 0
    ascending, index = np.unique(cells[used], return_inverse=True)
    rows = np.zeros((groups, ascending.size))
    np.add.at(rows, (group[used], index), released[used])
    return RankedCounts(rows, ascending, term, int(np.bincount(group[used], minlength=1).max()))


def cells_of(measurement: RankHistogram, name: str, values: Sequence[Any]) -> Integers:
    """Return the cell number of each of `values`, the values of the key called `name` that the measurement ranks; -1 for values
    in no cell. Raises Impossible if cells are not whole values."""
    term = measurement.term
    if isinstance(term.lower, float) or term.value is None:
        raise Impossible
    cell = _over_key(term.value, measurement.value, Column(name, measurement.value.facts))
    numbers = [_cell(evaluate(cell, {name: value}), term.lower, term.upper) for value in values]
    return np.array(numbers, dtype=np.int64)


def _cell(number: Any, lower: Any, upper: Any) -> int:
    if number is None:
        return -1
    if isinstance(number, bool) or not isinstance(number, int):
        raise Impossible
    return int(min(max(number, lower), upper) - lower)


def _over_key(expression: Expr, value: Expr, key: Column) -> Expr:
    """Replace `value` by the key in the expression. Raises Impossible if it reads anything else of a row."""
    if expression == value:
        return key
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_over_key(part, value, key) for part in expression.arguments))
    if isinstance(expression, Column):
        raise Impossible
    return expression
