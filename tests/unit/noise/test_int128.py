"""128-bit vectors agree with Python's integers at every extreme."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.errors.exceptions import Fault
from dpsql.noise.group_layout import Int128

EDGES = [0, 1, -1, 2**63, 2**63 - 1, -(2**63), -(2**63) - 1, 2**64, 2**64 - 1, -(2**64), 2**125 - 1, -(2**125)]
small = st.integers(-(2**61), 2**61)
wide = st.one_of(st.sampled_from(EDGES), st.integers(-(2**125), 2**125 - 1), small)


def whole(values: pa.Array) -> Int128:
    """Return a vector with every element in a separate cell, in order."""
    return Int128.placed(values, np.arange(len(values)), len(values))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(wide, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=8))
def test_sums_carry_into_the_high_half(pairs: list[tuple[int, int]]) -> None:
    left, right = zip(*pairs, strict=True)
    total = Int128.from_ints(left).plus(np.array(right, dtype=np.int64))
    assert total.to_ints() == [a + b for a, b in pairs]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), st.integers(0, 127))
def test_right_shifts_are_floors(values: list[int], shift: int) -> None:
    assert Int128.from_ints(values).shifted(shift).to_ints() == [value >> shift for value in values]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), st.integers(1, 40))
def test_left_shifts_after_saturation_are_exact(values: list[int], up: int) -> None:
    bits = 125 - up
    clamped = [min(max(value, -(2**bits)), 2**bits - 1) for value in values]
    assert Int128.from_ints(values).saturated(bits).to_ints() == clamped
    assert Int128.from_ints(values).saturated(bits).shifted(-up).to_ints() == [value << up for value in clamped]


@settings(max_examples=200, deadline=None)
@given(st.lists(wide, min_size=1, max_size=8), wide, st.integers(1, 2**20))
def test_comparisons_indexes_and_floats_equal_those_of_python_integers(
    values: list[int], bound: int, length: int
) -> None:
    vector = Int128.from_ints(values)
    assert vector.at_least(bound).tolist() == [value >= bound for value in values]
    assert vector.clipped_index(length).tolist() == [min(max(value, 0), length - 1) for value in values]
    for got, value in zip(vector.to_float64().tolist(), values, strict=True):
        assert abs(got - value) <= abs(value) * 2.0**-51


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8), st.integers(-40, 127), wide)
def test_64_bits_are_the_same_numbers(values: list[int], shift: int, bound: int) -> None:
    narrow, full = Int128.from_int64(np.array(values, dtype=np.int64)), Int128.from_ints(values)
    assert narrow.to_ints() == narrow.part(slice(0, 9)).to_ints() == full.saturated(125).to_ints() == values
    assert narrow.high.tolist() == full.high.tolist() and narrow.to_float64().tolist() == full.to_float64().tolist()
    assert narrow.at_least(bound).tolist() == full.at_least(bound).tolist()
    assert narrow.clipped_index(7).tolist() == full.clipped_index(7).tolist()
    odd = np.array(values) % 2 == 1
    assert narrow.where(odd).to_ints() == full.where(odd).to_ints()
    for bits in (64, 70, 125):
        assert narrow.saturated(bits).to_ints() == full.saturated(bits).to_ints() == values
    assert narrow.shifted(shift).to_ints() == full.shifted(shift).to_ints()
    assert narrow.shifted(0).plus(np.full(len(values), 2**62)).to_ints() == [value + 2**62 for value in values]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.none(), st.integers(-(10**38) + 1, 10**38 - 1)), max_size=8), st.integers(0, 3))
def test_decimals_from_arrow_are_exact_integers(values: list[int | None], skipped: int) -> None:
    array = pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(38, 0)).slice(skipped)
    assert whole(array).to_ints() == [v or 0 for v in values[skipped:]]


def test_integers_from_arrow_are_exact_integers() -> None:
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64()):
        low = -(2 ** (kind.bit_width - 1))
        array = pa.array([low, None, -1, 0, -low - 1], kind)
        assert whole(array).to_ints() == [low, 0, -1, 0, -low - 1]
    assert whole(pa.array([], pa.int64())).to_ints() == []
    assert whole(pa.array([1, 2, 3], pa.int64()).slice(1)).to_ints() == [2, 3]


@pytest.mark.parametrize("kind", [pa.float64(), pa.string(), pa.decimal128(38, 2), pa.bool_(), pa.uint64()])
def test_other_types_are_a_charged_fault(kind: pa.DataType) -> None:
    with pytest.raises(Fault) as caught:
        whole(pa.array([None], kind))
    assert caught.value.slug == "noise_answer" and caught.value.charged


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(38, 0)])
def test_elements_go_to_their_cells(kind: pa.DataType) -> None:
    values = pa.array([9, 5, None, -7, 8], kind).slice(1)
    cells = np.array([1, 2, 3, 4])
    assert Int128.placed(values, cells, 6).to_ints() == [0, 5, 0, -7, 8, 0]
    assert Int128.placed(values, cells, 4).to_ints() == [0, 5, 0, -7]
    assert Int128.placed(values, np.array([3, 0, 4, 4]), 4).to_ints() == [0, 0, 0, 5]
    assert Int128.placed(values.slice(0, 0), cells[:0], 2).to_ints() == [0, 0]


def test_parts_are_read_and_written_and_wider_integers_refused() -> None:
    vector, other = Int128.from_ints([5, -(2**100), 3]), Int128.zeros(3).widened()
    assert vector.part(slice(1, 9)).to_ints() == [-(2**100), 3]
    other.put(slice(0, 1), Int128.from_ints([7]))
    other.put(slice(1, 9), vector.part(slice(1, 9)))
    assert other.to_ints() == [7, -(2**100), 3] and other.widened() is other
    with pytest.raises(OverflowError):
        Int128.from_ints([2**127])
    assert "1267650600228229401496703205376" not in repr(vector)
