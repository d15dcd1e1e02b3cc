"""Arrow columns of every type that a Parquet file or an Arrow table may have, with values at each limit of the type.

Values beyond the limits of a logical type are included where a writer does not check them (times outside a day, decimals with too
many digits, timestamps beyond any calendar).
"""

from decimal import Decimal

import numpy as np
import pyarrow as pa

INSTANTS = [0, 1, -1, 1_700_000_000_000, 1_700_000_000_123_456, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, None]
"""Raw 64-bit values of instants: valid in some units and far beyond any calendar in others."""
TEXTS = [
    "", "a", "A", " 30", "30", "30.2", "1e400", "nan", "inf", "2024-02-30", "2024-06-01", "10000-01-01", "24:00:00", "{x", '{"a": 1}',
    "true", "T", "\0", "a\0b", "é", "00000000-0000-0000-0000-000000000000", "170141183460469231731687303715884105728", None,
]  # fmt: skip
BYTES = [b"", b"a", b"\0", b"\xff\xfe", b"30", b"\x01" + b"\0" * 20, None]


def _integers(type_: pa.DataType) -> pa.Array:
    bits, signed = type_.bit_width, pa.types.is_signed_integer(type_)
    ends = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] if signed else [2**bits - 1]
    return pa.array([0, 1, 100, *ends, None], type_)


def _reals(type_: pa.DataType) -> pa.Array:
    most = {16: 65504.0, 32: 3.4028234663852886e38, 64: 1.7976931348623157e308}[type_.bit_width]
    values = [0.0, -0.0, 1.5, 3.0, most, -most, float("inf"), float("-inf"), float("nan"), None]
    return (
        pa.array(np.array([v for v in values if v is not None]), pa.float64()).cast(type_, safe=False)
        if (type_.bit_width == 16)
        else pa.array(values, type_)
    )


def _raw(numbers: list[int | None], storage: pa.DataType, type_: pa.DataType) -> pa.Array:
    return pa.array(numbers, storage).view(type_)


def _decimals(digits: int, scale: int) -> pa.Array:
    type_ = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    most = f"{'9' * (digits - scale)}.{'9' * scale}"
    fitting = pa.array([Decimal(0), Decimal(most), Decimal(f"-{most}"), None], type_)
    if digits != 38 or scale:
        return fitting
    wild = (2**127 - 1).to_bytes(16, "little") + (1 << 127).to_bytes(16, "little")
    return pa.concat_arrays([fitting, pa.Array.from_buffers(type_, 2, [None, pa.py_buffer(wild)])])


def stored_values() -> dict[str, pa.Array]:
    """Return a column of each type that has no parts, by the name of the type."""
    found: dict[str, pa.Array] = {}
    for type_ in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        found[str(type_)] = _integers(type_)
    for type_ in (pa.float16(), pa.float32(), pa.float64()):
        found[str(type_)] = _reals(type_)
    for digits, scale in ((5, 2), (9, 0), (18, 4), (21, 2), (38, 30), (38, 0), (38, 38), (50, 2), (76, 0)):
        found[f"decimal({digits},{scale})"] = _decimals(digits, scale)
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Asia/Tokyo"):
            type_ = pa.timestamp(unit, zone)
            found[str(type_)] = _raw(INSTANTS, pa.int64(), type_)
        found[f"duration[{unit}]"] = _raw(INSTANTS, pa.int64(), pa.duration(unit))
    for unit, per_second in (("s", 1), ("ms", 10**3)):
        ends = [
            0, 1, 86_400 * per_second - 1, 86_400 * per_second, 86_400 * per_second + 1, -1, 2**31 - 1, -(2**31),
            None,
        ]  # fmt: skip
        found[f"time32[{unit}]"] = _raw(ends, pa.int32(), pa.time32(unit))
    for unit, per_second in (("us", 10**6), ("ns", 10**9)):
        ends = [
            0, 1, 86_400 * per_second - 1, 86_400 * per_second, 86_400 * per_second + 1, -1, 2**63 - 1, -(2**63),
            None,
        ]  # fmt: skip
        found[f"time64[{unit}]"] = _raw(ends, pa.int64(), pa.time64(unit))
    days = [0, 1, -719_162, -719_163, 2_932_896, 2_932_897, 2**31 - 1, -(2**31), -(2**31) + 1, None]
    found["date32"] = _raw(days, pa.int32(), pa.date32())
    found["date64"] = _raw([d and d * 86_400_000 for d in days], pa.int64(), pa.date64())
    most = 2**31 - 1
    spans = [(most, most, 2**63 - 1), (-most - 1, -most - 1, -(2**63)), (1, -1, 1), (0, 0, 0), None]
    found["month_day_nano"] = pa.array(spans, pa.month_day_nano_interval())
    found["bool"] = pa.array([True, False, None])
    found["null"] = pa.nulls(2)
    found["string"] = pa.array(TEXTS, pa.string())
    found["large_string"] = pa.array(TEXTS, pa.large_string())
    found["string_view"] = pa.array(TEXTS, pa.string_view())
    found["dictionary"] = pa.array(TEXTS, pa.string()).dictionary_encode()
    found["binary"] = pa.array(BYTES, pa.binary())
    found["large_binary"] = pa.array(BYTES, pa.large_binary())
    found["binary_view"] = pa.array(BYTES, pa.binary_view())
    found["binary(3)"] = pa.array([b"\0\0\0", b"abc", b"\xff\xff\xff", None], pa.binary(3))
    keys = pa.array([b"\0" * 16, b"\xff" * 16, b"a" * 16, None], pa.binary(16))
    found["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), keys)
    found["json"] = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(TEXTS, pa.string()))
    return found


def nested_values() -> dict[str, pa.Array]:
    """Return columns of types with parts, by the name of the type."""
    keys = pa.array(["k", "k"])
    return {
        "list": pa.array([[1], None]),
        "struct": pa.array([{"n": 1}, None]),
        "map": pa.MapArray.from_arrays(pa.array([0, 2]), keys, pa.array([1, 2])),
        "list of times": pa.array([[2**62]]).cast(pa.list_(pa.timestamp("us"))),
        "list of texts": pa.array([["a"], None]),
    }


STORED = stored_values()
NESTED = nested_values()
IN_FILES = [name for name in STORED if "_view" not in name and not name.startswith(("timestamp[s", "month_day_nano"))]
"""The types that Parquet files may have: they have no seconds, pyarrow writes no intervals, and views are written as what they
show."""
