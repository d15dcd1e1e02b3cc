"""Vectors of 128-bit integers as two numpy vectors, in the layout of Arrow's decimal128."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.errors import refuse

_LOW = (1 << 64) - 1


class Int128:
    """Immutable vector of two's complement integers high * 2**64 + low; no repr of its values."""

    __slots__ = ("high", "low")

    def __init__(self, high: NDArray[np.int64], low: NDArray[np.uint64]) -> None:
        """`high` and `low` have equal length."""
        self.high = high
        self.low = low

    @classmethod
    def zeros(cls, count: int) -> Int128:
        """`count` zeros."""
        return cls(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint64))

    @classmethod
    def from_int64(cls, values: NDArray[np.int64]) -> Int128:
        """The same numbers, wider."""
        return cls(values >> 63, values.astype(np.int64, copy=False).view(np.uint64))

    @classmethod
    def from_ints(cls, values: Iterable[int]) -> Int128:
        """From Python integers in [-2**127, 2**127)."""
        numbers = list(values)
        if any(not -(1 << 127) <= value < 1 << 127 for value in numbers):
            raise OverflowError("not a 128-bit integer")
        high = np.array([value >> 64 for value in numbers], dtype=np.int64)
        return cls(high, np.array([value & _LOW for value in numbers], dtype=np.uint64))

    @classmethod
    def from_arrow(cls, values: Any) -> Int128:
        """From a pyarrow.Array of signed integers or decimal128(p, 0); NULL, the sum of no rows, is 0.

        Raises Fault noise_answer for any other type, which depends on the engine's columns and not on its rows.
        """
        missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
        if pa.types.is_signed_integer(values.type):
            numbers = values.cast(pa.int64())
            wide = cls.from_int64(np.array(numbers.fill_null(0) if values.null_count else numbers))
        elif pa.types.is_decimal128(values.type) and values.type.scale == 0:
            wide = cls._from_decimal(values)
        else:
            raise refuse("noise_answer", charged=True)
        if missing is not None:
            wide.high[missing] = 0
            wide.low[missing] = 0
        return wide

    @classmethod
    def _from_decimal(cls, values: Any) -> Int128:
        buffer = values.buffers()[1]
        if buffer is None or len(values) == 0:
            return cls.zeros(len(values))
        pairs = np.frombuffer(buffer, dtype="<u8", count=2 * len(values), offset=16 * values.offset).reshape(-1, 2)
        return cls(pairs[:, 1].view(np.int64).copy(), pairs[:, 0].copy())

    def __len__(self) -> int:
        return int(self.high.size)

    def to_ints(self) -> list[int]:
        """As Python integers."""
        return [high * (1 << 64) + low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]

    def to_float64(self) -> NDArray[np.float64]:
        """The nearest floats, up to one rounding more."""
        narrow = self.low.view(np.int64)
        wide = self.high.astype(np.float64) * 2.0**64 + self.low.astype(np.float64)
        # -1 is high = -1 and low = 2**64 - 1, which would cancel to 0 in floats.
        return np.where(self.high == narrow >> 63, narrow.astype(np.float64), wide)

    def placed(self, sources: NDArray[np.int64], cells: NDArray[np.int64], count: int) -> Int128:
        """A vector of `count` zeros in which cell `cells[i]` holds element `sources[i]`."""
        result = Int128.zeros(count)
        result.high[cells] = self.high[sources]
        result.low[cells] = self.low[sources]
        return result

    def where(self, mask: NDArray[np.bool_]) -> Int128:
        """The elements where `mask` is true."""
        return Int128(self.high[mask], self.low[mask])

    def saturated(self, bits: int) -> Int128:
        """Every element clamped to [-2**bits, 2**bits - 1]; 64 <= bits <= 127."""
        edge = (1 << (bits - 64)) - 1
        over, under = self.high > edge, self.high < ~edge
        high = np.clip(self.high, ~edge, edge)
        low = np.where(over, np.uint64(_LOW), np.where(under, np.uint64(0), self.low))
        return Int128(high, low)

    def shifted(self, shift: int) -> Int128:
        """floor(x / 2**shift); for a negative shift x * 2**-shift, whose caller has proven that it fits.

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
        """x + addend; the caller has proven that |x| < 2**126."""
        low = self.low + addend.view(np.uint64)
        carry = (low < self.low).astype(np.int64)
        return Int128(self.high + (addend >> 63) + carry, low)

    def at_least(self, bound: int) -> NDArray[np.bool_]:
        """x >= bound, a 128-bit integer."""
        high, low = bound >> 64, np.uint64(bound & _LOW)
        result: NDArray[np.bool_] = (self.high > high) | ((self.high == high) & (self.low >= low))
        return result

    def clipped_index(self, length: int) -> NDArray[np.int64]:
        """x clamped to [0, length - 1], to look up a table."""
        inside = np.minimum(self.low, np.uint64(length - 1)).astype(np.int64)
        return np.where(self.high < 0, 0, np.where(self.high > 0, length - 1, inside))
