"""Exact samplers of window laws (`privacy.mechanisms.local_randomizers`), vectorised over rows.

An output owns as many consecutive integers as its weight, and a uniform integer below the sum of weights chooses an output:
nothing is rounded, and no float is involved. Rows are drawn independently, in blocks that fit into a processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, combinations
from math import comb, isqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.samplers import Randomness, guard, words
from dpsql.pricing.row_export import ExportedColumn, ExportPlan
from dpsql.privacy.mechanisms.local_randomizers import STEPS, CategoryLaw, NumberLaw, WindowWeights
from dpsql.storage.records import dataclass

Integers = NDArray[np.int64]
Codes = NDArray[np.int16]
"""Outputs of laws; outputs for categories are at most 1,000, those for numbers at most 3 * STEPS."""
_MOST_BARREN = 64
_BLOCK_ROWS = 1 << 16
_BLOCK_CELLS = 1 << 20
"""Rows times categories that are processed together."""
_LISTED_CELLS = 1 << 21
"""Size in bytes of the list of all sets of a law for all values up to which sets are drawn from such a list."""
_MOST_ROUNDS = 1 << 20
_PLACE_BITS = 20
"""Largest number of bits of a row's place that is stored in the word by which the row is sorted."""


def below(count: int, bound: int, randomness: Randomness) -> Integers:
    """Return `count` independent uniform integers in [0, bound), 1 <= bound <= 2**62.

    Words of at least share * bound are drawn again, so that each integer owns exactly `share` words.
    """
    guard(1 <= bound <= 1 << 62)
    bits = 16 if bound <= 1 << 8 else 32 if bound <= 1 << 24 else 64
    drawn = words(count, randomness, bits)
    whole = drawn.dtype.type
    share = whole(((1 << bits) - 1) // bound)
    end = whole(int(share) * bound)
    outside = (drawn >= end).nonzero()[0]
    if outside.size:
        drawn = drawn.copy()
    barren = 0
    while outside.size:
        drawn[outside] = words(outside.size, randomness, bits)
        outside = outside[drawn[outside] >= end]
        barren += 1
        guard(barren < _MOST_BARREN)
    numbers: Integers = (drawn // share).astype(np.int64)
    return numbers


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Return consecutive slices of `size` rows that together cover `count` rows."""
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def in_windows(starts: Integers, weights: WindowWeights, randomness: Randomness) -> Integers:
    """Return for each window an output drawn from its law; windows begin at `starts` among the outputs 0, 1, ..."""
    drawn = below(starts.size, weights.total, randomness)
    drawn -= weights.inside_weight * weights.inside
    inside = (drawn < 0).nonzero()[0]
    chosen = drawn >> weights.outside_bits
    chosen += (chosen >= starts) * np.int64(weights.inside)
    chosen[inside] = starts[inside] if weights.inside == 1 else starts[inside] + ~drawn[inside] // weights.inside_weight
    return chosen


def rounded_at_random(values: Integers, most: int, steps: int, randomness: Randomness) -> Integers:
    """Return for each of `values` in [0, most] a random whole number in [0, steps] whose mean is value * steps / most.

    `most` * `steps` stays below 2**62.
    """
    scaled = (values * steps).view(np.uint64)  # division is several times faster for unsigned integers
    whole = scaled // np.uint64(most)
    rest = scaled - whole * np.uint64(most)
    return whole.view(np.int64) + (below(values.size, most, randomness) < rest.view(np.int64))


def draw_categories(codes: NDArray[Any], law: CategoryLaw, randomness: Randomness) -> Codes:
    """Return one output for each code in [0, size): a code if sets have one value, else a row of ascending codes."""
    weights = law.weights
    if law.subset == 1:
        drawn = np.empty(codes.size, dtype=np.int16)
        for rows in _blocks(codes.size, _BLOCK_ROWS):
            starts = codes[rows].astype(np.int64)
            drawn[rows] = in_windows(starts, weights, randomness)
        return drawn
    sets = np.empty((codes.size, law.subset), dtype=np.int16)
    for rows in _blocks(codes.size, _rows_together(law)):
        values = codes[rows].astype(np.int64)
        included = below(values.size, weights.total, randomness) < weights.inside_weight * weights.inside
        sets[rows] = _sets(values, included, law, randomness)
    return sets


def padding_categories(count: int, law: CategoryLaw, randomness: Randomness) -> Codes:
    """Return `count` outputs, each uniform among all outputs of the law."""
    if law.subset == 1:
        return below(count, law.size, randomness).astype(np.int16)
    sets = np.empty((count, law.subset), dtype=np.int16)
    for rows in _blocks(count, _rows_together(law)):
        # A uniform set of d out of k values contains the first value with probability d / k.
        first = np.zeros(rows.stop - rows.start, dtype=np.int64)
        included = below(first.size, law.size, randomness) < law.subset
        sets[rows] = _sets(first, included, law, randomness)
    return sets


def _is_listed(law: CategoryLaw) -> bool:
    """Return whether the list of all sets of the law, for all values, is small enough."""
    return law.size * law.subset * comb(law.size, law.subset) <= _LISTED_CELLS


def _rows_together(law: CategoryLaw) -> int:
    return _BLOCK_ROWS if _is_listed(law) else max(1, _BLOCK_CELLS // law.size)


def _sets(codes: Integers, included: NDArray[np.bool_], law: CategoryLaw, randomness: Randomness) -> NDArray[Any]:
    """Return ascending sets of law.subset values, uniform among those with the row's code if `included`, else without it."""
    if not _is_listed(law):
        return _marked_sets(codes, included, law, randomness)
    having, lacking = comb(law.size - 1, law.subset - 1), comb(law.size - 1, law.subset)
    number = below(codes.size, lacking, randomness) + having
    number[included] = below(int(included.sum()), having, randomness)
    return np.take(_listed_sets(law.size, law.subset), codes * (having + lacking) + number, axis=0)


@lru_cache(maxsize=4)
def _listed_sets(size: int, subset: int) -> NDArray[np.uint8]:
    """Return for each value all sets of `subset` of the `size` values, one per row, those that contain the value first.

    The two arguments determine the list, so caching it by them is correct. The array is read-only.
    """
    count = comb(size, subset)
    flat = chain.from_iterable(combinations(range(size), subset))
    sets = np.fromiter(flat, dtype=np.uint8, count=count * subset).reshape(count, subset)
    has = [(sets == value).any(axis=1) for value in range(size)]
    listed = np.concatenate([part for rows in has for part in (sets[rows], sets[~rows])])
    listed.flags.writeable = False
    return listed


def _marked_sets(codes: Integers, included: NDArray[np.bool_], law: CategoryLaw, randomness: Randomness) -> Codes:
    """Return sets like `_sets`, from marks on the values other than the row's code.

    Each value is marked independently with the same probability, so all sets of equal size are equally likely to be the marked
    set. Then a uniform unmarked value is marked, or a uniform mark removed, until the number of marks is right: both steps keep
    sets of equal size equally likely.
    """
    count, size = codes.size, law.size
    marked = words(count * size, randomness, 8) < np.uint8(_mark_share(law))
    starts = np.arange(0, count * size, size)
    marked[starts + codes] = False
    wanting = law.subset - included - marked.reshape(count, size).sum(axis=1, dtype=np.int16)
    unfinished, rounds = wanting.nonzero()[0], 0
    while unfinished.size:
        indexes = below(unfinished.size, size, randomness)
        add = wanting[unfinished] > 0
        cells = starts[unfinished] + indexes
        changed = (marked[cells] != add) & (indexes != codes[unfinished])
        marked[cells[changed]] = add[changed]
        wanting[unfinished[changed]] -= np.where(add[changed], 1, -1)
        unfinished = unfinished[wanting[unfinished] != 0]
        rounds += 1
        guard(rounds < _MOST_ROUNDS)
    marked[starts + codes] = included
    flat = np.flatnonzero(marked)
    guard(flat.size == count * law.subset)
    return (flat.reshape(count, law.subset) - starts[:, None]).astype(np.int16)


def _mark_share(law: CategoryLaw) -> int:
    """Return how many of 256 words mark a value at first, chosen so that most rows then lack a few marks.

    This affects only the work, not the law.
    """
    return (law.subset - isqrt(law.subset)) * 256 // law.size


def draw_numbers(
    values: NDArray[Any], missing: NDArray[np.bool_], most: int, law: NumberLaw, randomness: Randomness
) -> tuple[Codes, NDArray[np.bool_]]:
    """Return for each value in [0, most] (or `missing`) an output, and whether it comes from the piecewise law.

    Outputs of the piecewise law are 0 to places - 1, those of the ends 0 and 1; larger outputs stand for NULL.
    """
    drawn, interval = np.empty(values.size, dtype=np.int16), np.empty(values.size, dtype=np.bool_)
    for rows in _blocks(values.size, _BLOCK_ROWS):
        drawn[rows], interval[rows] = _numbers(values[rows].astype(np.int64), missing[rows], most, law, randomness)
    return drawn, interval


def _numbers(
    values: Integers, missing: NDArray[np.bool_], most: int, law: NumberLaw, randomness: Randomness
) -> tuple[Integers, NDArray[np.bool_]]:
    interval = _interval_coins(values.size, law, randomness)
    drawn = np.empty(values.size, dtype=np.int64)
    for chosen, steps, weights, null in (
        (interval.nonzero()[0], STEPS, law.interval, law.places),
        ((~interval).nonzero()[0], 1, law.ends, 2),
    ):
        starts = rounded_at_random(values[chosen], most, steps, randomness)
        if law.missing:
            starts[missing[chosen]] = null
        drawn[chosen] = in_windows(starts, weights, randomness)
    return drawn, interval


def _interval_coins(count: int, law: NumberLaw, randomness: Randomness) -> NDArray[np.bool_]:
    """Return for each of `count` rows whether the piecewise law is used (`law.interval_share`), from words of 16 bits."""
    return words(count, randomness, 16) < law.interval_coin


def padding_numbers(count: int, law: NumberLaw, randomness: Randomness) -> tuple[Codes, NDArray[np.bool_]]:
    """Return `count` outputs, each uniform among those of the law that its coin chose, and whether that is piecewise."""
    interval = _interval_coins(count, law, randomness)
    ends = below(count, law.ends.inside + law.ends.outside, randomness)
    indexes = below(count, law.interval.inside + law.interval.outside, randomness)
    return np.where(interval, indexes, ends).astype(np.int16), interval


def random_order(count: int, randomness: Randomness) -> Integers:
    """Return a uniform permutation of 0, ..., count - 1: the order of random words, which are drawn again if two are equal."""
    bits = np.uint64(max(count - 1, 1).bit_length())
    if bits > _PLACE_BITS:
        return _order_of_words(count, randomness)
    place_mask = (np.uint64(1) << bits) - np.uint64(1)
    barren = 0
    while True:
        keys = words(count, randomness) & ~place_mask
        for rows in _blocks(count, _BLOCK_ROWS):
            keys[rows] |= np.arange(rows.start, rows.stop, dtype=np.uint64)
        keys.sort()  # several times faster than argsort
        # Adjacent keys that differ only in their places have equal words.
        pairs = ((keys[rows], keys[rows.start + 1 : rows.stop + 1]) for rows in _blocks(count - 1, _BLOCK_ROWS))
        if not any((lower ^ upper <= place_mask).any() for lower, upper in pairs):
            keys &= place_mask
            return keys.view(np.int64)
        barren += 1
        guard(barren < _MOST_BARREN)


def _order_of_words(count: int, randomness: Randomness) -> Integers:
    barren = 0
    while True:
        drawn = words(count, randomness)
        order: Integers = np.argsort(drawn)
        ascending = drawn[order]
        if not (ascending[1:] == ascending[:-1]).any():
            return order
        barren += 1
        guard(barren < _MOST_BARREN)


# --- rows -------------------------------------------------------------------------------------------------------------

# Rows of an export after their local randomizers: as many as the noisy count, in random order.
# The output depends on a row only through the laws of its columns (`pricing.row_export` has the argument).

_MOST_BITS = 50
"""Row integers with more bits are truncated to this many, so that their products with places stay below 2**62."""


@dataclass(frozen=True, eq=False)
class RandomisedColumn:
    """Outputs of one column's law, one per row (for sets of values, one row of the array each). `interval`: which outputs come
    from the piecewise law of a number; None for categories."""

    outputs: Codes
    interval: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The exact rows of a table: codes or row integers for each column; `missing` is True where a number is NULL."""

    count: int
    values: tuple[NDArray[Any], ...]
    missing: tuple[NDArray[np.bool_], ...]


def exact_rows(table: Any, plan: ExportPlan) -> ExactRows:
    """Return the exact rows from the engine's combinations. Rows with a value outside a column's list, or with a NULL that the
    column does not allow, are omitted, because they belong to no group of a query. Raises Fault noise_answer."""
    read = [_read(table.column(f"k{number}"), column) for number, column in enumerate(plan.columns)]
    counts = table.column("n").to_numpy()
    for _, _, belongs in read:
        if belongs is not None:
            counts = np.where(belongs, counts, 0)
    if (counts == 1).all():  # frequent for combinations with numbers
        return ExactRows(counts.size, tuple(v for v, _, _ in read), tuple(m for _, m, _ in read))
    values = tuple(np.repeat(v, counts) for v, _, _ in read)
    return ExactRows(int(counts.sum()), values, tuple(np.repeat(m, counts) for _, m, _ in read))


def _read(keys: Any, column: ExportedColumn) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return the codes or integers of one column, which of them are missing, and which rows belong to the export (None: all)."""
    present = np.zeros(len(keys), dtype=bool)
    if column.term is not None:
        missing = keys.is_null().to_numpy() if keys.null_count else present
        spare = spare_bits(column)
        keys = keys.cast(_narrowest(int(column.term.magnitude)))
        numbers = (keys.fill_null(0) if keys.null_count else keys).to_numpy()
        numbers = numbers >> spare if spare else numbers
        return numbers, missing, None if _may_be_missing(column) or not keys.null_count else ~missing
    assert column.values is not None
    try:
        codes = pc.index_in(keys, value_set=column.values.cast(keys.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # This depends on the column's type and the policy's values, not on rows.
        raise refuse("noise_answer", charged=True) from None
    inside = codes.is_valid().to_numpy() if codes.null_count else None
    codes = codes if inside is None else codes.fill_null(0)
    return codes.cast(_narrowest(len(column.values))).to_numpy(), present, inside


def _narrowest(most: int) -> Any:
    """Return the narrowest type for values in [0, most] from which numpy takes elements fast."""
    return pa.int16() if most < 1 << 15 else pa.int32() if most < 1 << 31 else pa.int64()


def _may_be_missing(column: ExportedColumn) -> bool:
    return not isinstance(column.law, CategoryLaw) and column.law.missing


def spare_bits(column: ExportedColumn) -> int:
    """Return the number of low bits by which the row integers of a number are truncated."""
    assert column.term is not None
    return max(0, int(column.term.magnitude).bit_length() - _MOST_BITS)


def randomise_rows(
    rows: ExactRows, written: int, plan: ExportPlan, randomness: Randomness
) -> tuple[RandomisedColumn, ...]:
    """Return `written` rows in random order: the exact rows, each randomised, plus padding rows if `written` is larger, else a
    uniform choice of the exact rows."""
    order = random_order(max(written, rows.count), randomness)[:written]
    padding = order >= rows.count
    columns, indexes = [], order
    if written > rows.count:
        indexes[padding] = 0
    for column, values, missing in zip(plan.columns, rows.values, rows.missing, strict=True):
        chosen = _taken(values, indexes)
        law = column.law
        if isinstance(law, CategoryLaw):
            outputs = draw_categories(chosen, law, randomness)
            outputs[padding] = padding_categories(int(padding.sum()), law, randomness)
            columns.append(RandomisedColumn(outputs))
            continue
        assert column.term is not None
        most = int(column.term.magnitude) >> spare_bits(column)
        nulls = _taken(missing, indexes) if law.missing else missing
        outputs, interval = draw_numbers(chosen, nulls, most, law, randomness)
        outputs[padding], interval[padding] = padding_numbers(int(padding.sum()), law, randomness)
        columns.append(RandomisedColumn(outputs, interval))
    return tuple(columns)


def _taken(values: NDArray[Any], indexes: Integers) -> NDArray[Any]:
    """Return the values at `indexes`; zeros if there are no rows."""
    return values[indexes] if values.size else np.zeros(indexes.size, dtype=values.dtype)
