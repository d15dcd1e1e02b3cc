"""The cells of an answer: the groups that are measured, their order, and the cell of each engine row.

Cells are in key order, never in the order in which the engine returned its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.samplers import LEAST_DRAW
from dpsql.plan.plan import positions
from dpsql.privacy.mechanisms.contract import KeyColumn
from dpsql.storage.records import dataclass

# --- vectors of 128-bit integers as two numpy vectors, in the layout of Arrow's decimal128 ----------------------------

PART = 1 << 15
"""Number of elements of a vector that are processed together."""
_LOW = (1 << 64) - 1
_PAIR = np.dtype("V16")
"""An element of decimal128, copied as a whole."""


def parts(count: int) -> Iterator[slice]:
    """Return slices of a vector of `count` elements, small enough for intermediate results to stay in the processor's cache."""
    return (slice(start, min(start + PART, count)) for start in range(0, count, PART))


class Int128:
    """A vector of two's complement integers high * 2**64 + low. Its repr does not show values."""

    __slots__ = ("_high", "low")

    def __init__(self, high: NDArray[np.int64] | None, low: NDArray[np.uint64]) -> None:
        """Take `high` and `low` of equal length; without `high`, `low` holds signed 64-bit integers."""
        self._high = high
        self.low = low

    @property
    def high(self) -> NDArray[np.int64]:
        """The upper halves; computed at every use if the numbers are stored as 64 bits."""
        return self.low.view(np.int64) >> 63 if self._high is None else self._high

    @classmethod
    def zeros(cls, count: int) -> Int128:
        return cls(None, np.zeros(count, dtype=np.uint64))

    @classmethod
    def from_int64(cls, values: NDArray[np.int64]) -> Int128:
        return cls(None, values.astype(np.int64, copy=False).view(np.uint64))

    @classmethod
    def from_ints(cls, values: Iterable[int]) -> Int128:
        """Return Python integers in [-2**127, 2**127) as a vector. Raises OverflowError for others."""
        numbers = list(values)
        if any(not -(1 << 127) <= value < 1 << 127 for value in numbers):
            raise OverflowError("not a 128-bit integer")
        high = np.array([value >> 64 for value in numbers], dtype=np.int64)
        return cls(high, np.array([value & _LOW for value in numbers], dtype=np.uint64))

    @classmethod
    def placed(cls, values: Any, cells: NDArray[np.int64], count: int) -> Int128:
        """Return `count` zeros except that cell `cells[i]` holds element i of a pyarrow.Array; cell `count` is dropped.

        The array has signed integers or decimal128(p, 0); NULL, the sum of no rows, becomes 0. Raises Fault noise_answer
        for any other type, which depends on the engine's columns and not on its rows.
        """
        if pa.types.is_signed_integer(values.type):
            cell_values = np.zeros(count + 1, dtype=np.int64)
            numbers = values.cast(pa.int64())
            cell_values[cells] = numbers.fill_null(0) if values.null_count else numbers
            return cls.from_int64(cell_values[:count])
        if not (pa.types.is_decimal128(values.type) and values.type.scale == 0):
            raise refuse("noise_answer", charged=True)
        pairs = np.zeros(count + 1, dtype=_PAIR)
        if len(values) and values.buffers()[1] is not None:
            raw = np.frombuffer(values.buffers()[1], dtype=_PAIR, count=len(values), offset=16 * values.offset)
            if values.null_count:  # the engine leaves arbitrary memory there
                raw = np.where(values.is_null().to_numpy(zero_copy_only=False), np.zeros(1, dtype=_PAIR), raw)
            pairs[cells] = raw
        halves = pairs[:count].view(np.int64).reshape(-1, 2)
        return cls(halves[:, 1], halves[:, 0].view(np.uint64))

    def __len__(self) -> int:
        return int(self.low.size)

    def to_ints(self) -> list[int]:
        return [high * (1 << 64) + low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]

    def to_float64(self) -> NDArray[np.float64]:
        """Return the nearest floats, up to one additional rounding."""
        high, narrow = self.high, self.low.view(np.int64)
        wide = high.astype(np.float64) * 2.0**64 + self.low.astype(np.float64)
        # -1 is high = -1 and low = 2**64 - 1, which would cancel to 0 in floats.
        return np.where(high == narrow >> 63, narrow.astype(np.float64), wide)

    def part(self, elements: slice) -> Int128:
        """Return the slice `elements`, which shares its memory with this vector."""
        return Int128(None if self._high is None else self._high[elements], self.low[elements])

    def widened(self) -> Int128:
        """Return a 128-bit vector in this vector's memory, to be filled by `put`: new upper halves are not initialised."""
        return self if self._high is not None else Int128(np.empty(len(self), dtype=np.int64), self.low)

    def put(self, elements: slice, numbers: Int128) -> None:
        """Overwrite the slice `elements` of a `widened` vector with `numbers`."""
        self.high[elements] = numbers.high
        self.low[elements] = numbers.low

    def where(self, mask: NDArray[np.bool_]) -> Int128:
        return Int128(None if self._high is None else self._high[mask], self.low[mask])

    def saturated(self, bits: int) -> Int128:
        """Return every element clamped to [-2**bits, 2**bits - 1]; 64 <= bits <= 127."""
        edge, high = np.int64((1 << (bits - 64)) - 1), self.high
        # The low half becomes all ones above the upper edge, and all zeros below the lower edge.
        low = self.low | (-(high > edge).astype(np.int64)).view(np.uint64)
        low &= ((high < ~edge).astype(np.int64) - 1).view(np.uint64)
        return Int128(np.minimum(np.maximum(high, ~edge), edge), low)

    def shifted(self, shift: int) -> Int128:
        """Return floor(x / 2**shift); for a negative shift x * 2**-shift, which the caller has proven to fit.

        -63 <= shift <= 127.
        """
        if shift == 0:
            return self
        if shift < 0:
            up = np.uint64(-shift)
            return Int128(
                (self.high << np.int64(-shift)) | (self.low >> (np.uint64(64) - up)).view(np.int64), self.low << up
            )
        if shift >= 64:
            return Int128.from_int64(self.high >> np.int64(shift - 64))
        low = (self.low >> np.uint64(shift)) | (self.high.view(np.uint64) << np.uint64(64 - shift))
        return Int128(self.high >> np.int64(shift), low)

    def plus(self, addend: NDArray[np.int64]) -> Int128:
        """Return x + addend; the caller has proven that |x| < 2**126."""
        low = self.low + addend.view(np.uint64)
        carry = (low < self.low).astype(np.int64)
        return Int128(self.high + (addend >> 63) + carry, low)

    def at_least(self, bound: int) -> NDArray[np.bool_]:
        high, low = bound >> 64, np.uint64(bound & _LOW)
        ours = self.high
        result: NDArray[np.bool_] = (ours > high) | ((ours == high) & (self.low >= low))
        return result

    def clipped_index(self, length: int) -> NDArray[np.int64]:
        """Return x clamped to [0, length - 1], as an index into a table."""
        inside = np.minimum(self.low, np.uint64(length - 1)).astype(np.int64)
        high = self.high
        return np.where(high < 0, 0, np.where(high > 0, length - 1, inside))


# --- the cells of an answer -------------------------------------------------------------------------------------------

Positions = NDArray[np.int64]
Places = Callable[[slice], NDArray[Any]]
"""A function that returns, for a slice of rows, their positions among the values of a public key."""

_KEPT = 64
_MOST_KEPT_CELLS = 1 << 15
"""Largest number of combinations of public keys whose layout is cached for later queries with the same plan."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The cells that are measured: their keys (pyarrow.Table, in key order), their number, and whether this number is public."""

    keys: Any
    count: int
    public: bool

    @property
    def draws(self) -> int:
        """The number of values to draw. A private number of cells is rounded up, because the time of a draw reveals its size."""
        return self.count if self.public else max(LEAST_DRAW, 1 << (self.count - 1).bit_length())


@dataclass(frozen=True, eq=False)
class GroupLayout:
    """The cell of each engine row: row i belongs to cell `cells[i]` of `groups`, or to no cell if this is `groups.count`. A cell
    without a row is 0."""

    groups: Groups
    cells: Positions

    def integers(self, table: Any, name: str) -> Int128:
        """Return column `name` of the engine's `table`, one number per cell. Raises Fault noise_answer."""
        return Int128.placed(plain_column(table, name), self.cells, self.groups.count)


def lay_out(table: Any, keys: tuple[KeyColumn, ...], listed: Positions | None = None) -> GroupLayout:
    """Return the cells for the engine's `table` (pyarrow.Table).

    No keys: one cell. Only public keys: every combination of their values, first key slowest, or those `listed` (ascending
    numbers of combinations in that order). Any private key: the combinations in the table, public keys in the order of their
    values, private keys ascending, NULL last. Rows with a public key outside its values, or with a combination that is not
    listed, belong to no cell. Raises Fault noise_answer for a table of the wrong shape.
    """
    if not keys:
        if table.num_rows > 1:
            raise refuse("noise_answer", charged=True)
        return GroupLayout(Groups(pa.table({}), 1, True), np.arange(table.num_rows))
    domains = [key.values for key in keys]
    columns = [plain_column(table, key.name) for key in keys]
    indexes = [None if key.values is None else _places(column, key) for column, key in zip(columns, keys, strict=True)]
    if None in domains:
        return _observed(keys, columns, indexes)
    return _product(keys, [index for index in indexes if index is not None], table.num_rows, listed)


def plain_column(table: Any, name: str) -> Any:
    """Return one column as a plain pyarrow.Array. Raises Fault noise_answer for a missing column, which is the engine's mistake
    and does not depend on data."""
    index = table.schema.get_field_index(name)  # also -1 for a name that occurs twice
    if index < 0:
        raise refuse("noise_answer", charged=True)
    column = table.column(index)
    if column.num_chunks == 1:
        return _plain(column.chunk(0))
    return _plain(pa.concat_arrays([pa.array([], column.type), *column.chunks]))


def _plain(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _places(column: Any, key: KeyColumn) -> Places:
    """Return a function for the positions of elements of `column` among the key's values. An element outside, or NULL where it is
    not listed, gets the number of values."""
    domain, first = _domain(key)
    size = len(domain)
    if first is not None and pa.types.is_signed_integer(column.type):
        least, missing = first, first + size - 1 if domain.null_count else first - 1

        def by_distance(rows: slice) -> NDArray[Any]:
            part = column.slice(rows.start, rows.stop - rows.start).cast(pa.int64())
            numbers = part.fill_null(missing).to_numpy()
            if domain.null_count:  # NULL has the place of the integer after the last one
                outside = part.is_valid().to_numpy(zero_copy_only=False) & (numbers == missing)
                numbers = np.where(outside, least - 1, numbers)
            # As unsigned numbers, differences below 0 and those that wrap are huge.
            distances: NDArray[Any] = np.minimum((numbers - least).view(np.uint64), np.uint64(size)).view(np.int64)
            return distances

        return by_distance
    try:
        indexes: NDArray[Any] = pc.index_in(column, value_set=domain.cast(column.type)).fill_null(size).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # This depends on the column's type and the policy's values, not on rows.
        raise refuse("noise_answer", charged=True) from None
    return indexes.__getitem__


@lru_cache(maxsize=_KEPT)
def _domain(key: KeyColumn) -> tuple[Any, int | None]:
    """Return the values of a public key, and the first one if they are consecutive integers, possibly followed by NULL."""
    values = _plain(key.values)
    present = values.drop_null()
    if not pa.types.is_signed_integer(values.type) or not len(present) or (values.null_count and values[-1].is_valid):
        return values, None
    first, after = present[0].as_py(), present[0].as_py() + len(present)
    follows = first > -(1 << 63) and after < 1 << 63
    follows = follows and bool((present.cast(pa.int64()).to_numpy() == np.arange(first, after)).all())
    return values, first if follows else None


def _product(
    keys: tuple[KeyColumn, ...], indexes: list[Places], row_count: int, listed: Positions | None
) -> GroupLayout:
    """Return the layout of all combinations of the values of public keys, or of the `listed` ones."""
    sizes = [len(key.values) for key in keys if key.values is not None]
    count, inside = prod(sizes) if listed is None else len(listed), 0
    cells = np.empty(row_count, dtype=np.int64)
    taken = np.zeros(count + 1, dtype=bool)
    for rows in parts(row_count):
        numbers = np.zeros(rows.stop - rows.start, dtype=np.int64)
        nowhere = np.zeros(numbers.size, dtype=bool)
        for index, size in zip(indexes, sizes, strict=True):
            position = index(rows)
            numbers *= size
            numbers += position
            nowhere |= position == size
        if listed is not None:
            numbers, unlisted = among(listed, numbers)
            nowhere |= unlisted
        cells[rows] = np.where(nowhere, count, numbers)  # takes the same time for any number of rows outside
        taken[cells[rows]] = True
        inside += int(numbers.size - np.count_nonzero(nowhere))
    if np.count_nonzero(taken[:count]) != inside:
        raise refuse("noise_answer", charged=True)
    if listed is not None:
        grid = combinations_table(keys, listed)
    else:
        grid = _kept_grid(keys) if count <= _MOST_KEPT_CELLS else _grid(keys)
    return GroupLayout(Groups(grid, count, True), cells)


def among(listed: Positions, numbers: Positions) -> tuple[Positions, NDArray[np.bool_]]:
    """Return the places of `numbers` in `listed`, and which numbers are not listed."""
    indexes = np.searchsorted(listed, numbers)
    padded = np.append(listed, -1)
    return indexes, padded[indexes] != numbers


def combinations_table(keys: tuple[KeyColumn, ...], listed: Positions | None) -> Any:
    """Return combinations of the values of public keys as a table, first key slowest: all, or those `listed` by number."""
    if listed is None:
        return _grid(keys)
    domains = [key.values for key in keys if key.values is not None]
    indexes = positions(listed, [len(domain) for domain in domains])
    columns = {
        key.name: domain.take(pa.array(index)) for key, domain, index in zip(keys, domains, indexes, strict=True)
    }
    return pa.table(columns)


def _grid(keys: tuple[KeyColumn, ...]) -> Any:
    """Return all combinations of the values of public keys, as a table."""
    domains = [key.values for key in keys if key.values is not None]
    count = fastest = prod(len(domain) for domain in domains)
    columns = {}
    for key, domain in zip(keys, domains, strict=True):
        fastest //= len(domain) or 1
        once = domain.take(pa.array(np.repeat(np.arange(len(domain), dtype=np.int32), fastest if count else 0)))
        times = count // (len(once) or 1)
        columns[key.name] = pa.concat_arrays([once] * times) if times > 1 else once
    return pa.table(columns)


_kept_grid = lru_cache(maxsize=_KEPT)(_grid)


def _observed(keys: tuple[KeyColumn, ...], columns: list[Any], indexes: list[Places | None]) -> GroupLayout:
    """Return the layout of the combinations that the engine returned, sorted."""
    inside = np.ones(len(columns[0]), dtype=bool)
    key_places = [None if index is None else index(slice(0, inside.size)) for index in indexes]
    for key, index in zip(keys, key_places, strict=True):
        if index is not None:
            inside &= index < len(key.values or ())
    sources = inside.nonzero()[0]
    public = any(index is not None for index in key_places)
    key_columns, ranks = {}, {}
    for i, (key, column, index) in enumerate(zip(keys, columns, key_places, strict=True)):
        if key.values is None or index is None:
            key_columns[key.name] = ranks[str(i)] = column.take(pa.array(sources)) if public else column
        else:
            ranks[str(i)] = pa.array(index[sources])
            key_columns[key.name] = key.values.take(ranks[str(i)])
    try:
        order = None if _ascending(list(ranks.values())) else _order(ranks)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        # A key type without an order; this depends on the engine's types, not on data.
        raise refuse("noise_answer", charged=True) from None
    table = pa.table(key_columns)
    if order is not None:
        table, sources = table.take(order), sources[order.to_numpy()]
    cells = np.full(inside.size, sources.size)
    cells[sources] = np.arange(sources.size)
    return GroupLayout(Groups(table, sources.size, False), cells)


def _order(ranks: dict[str, Any]) -> Any:
    """Return the positions of the rows in ascending order, NULL last."""
    return pc.sort_indices(pa.table(ranks), sort_keys=[(name, "ascending") for name in ranks])


def _ascending(columns: list[Any]) -> bool:
    """Return whether rows are strictly ascending in the order of `_order`, with two passes instead of a sort.

    The engine sorts on all cores, but its order is not trusted. NaN is above nothing here, so it leads to a sort.
    """
    tied = before = None
    for column in columns:
        this, following = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        less = pc.if_else(following.is_null(), this.is_valid(), pc.less(this, following)).fill_null(False)
        before = less if tied is None else pc.or_(before, pc.and_(tied, less))
        both = pc.and_(this.is_null(), following.is_null())
        equal = pc.or_(both, pc.equal(this, following).fill_null(False))
        tied = equal if tied is None else pc.and_(tied, equal)
    return bool(pc.all(before, min_count=0).as_py())
