"""Vectors of 128-bit integers as two numpy vectors, in the layout of Arrow's decimal128."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse

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
        """Return an array of `count` zeros."""
        return cls(None, np.zeros(count, dtype=np.uint64))

    @classmethod
    def from_int64(cls, values: NDArray[np.int64]) -> Int128:
        """Return 64-bit integers as 128-bit integers."""
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
        """Return the elements as Python integers."""
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
        """Return the elements where `mask` is true."""
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
        """Return whether x >= `bound`, a 128-bit integer."""
        high, low = bound >> 64, np.uint64(bound & _LOW)
        ours = self.high
        result: NDArray[np.bool_] = (ours > high) | ((ours == high) & (self.low >= low))
        return result

    def clipped_index(self, length: int) -> NDArray[np.int64]:
        """Return x clamped to [0, length - 1], as an index into a table."""
        inside = np.minimum(self.low, np.uint64(length - 1)).astype(np.int64)
        high = self.high
        return np.where(high < 0, 0, np.where(high > 0, length - 1, inside))
