"""Values in PostgreSQL's text and binary formats, in both directions, for each type that an answer or a parameter can have.

Sources: PostgreSQL 16's *_send and *_recv functions (src/backend/utils/adt). Dates are counted from 2000-01-01.
"""

from __future__ import annotations

import ipaddress
import math
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

from numpy import float32

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.constants.moments import read_interval
from dpsql.frontends.pgwire.messages import text_of
from dpsql.release.value_text import interval_parts, interval_text
from dpsql.sql.rewrites.comparisons import read_list
from dpsql.storage.records import dataclass

BOOL, BYTEA, NAME, INT8, INT2, INT2VECTOR, INT4, TEXT, OID, OIDVECTOR = 16, 17, 19, 20, 21, 22, 23, 25, 26, 30
JSON, FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR, DATE, TIME = 114, 700, 701, 705, 1042, 1043, 1082, 1083
TIMESTAMP, TIMESTAMPTZ, INTERVAL, NUMERIC, UUID, JSONB = 1114, 1184, 1186, 1700, 2950, 3802
CHAR, XID, ACLITEM, RECORD = 18, 28, 1033, 2249
NAMED = {
    "regclass": 2205, "regtype": 2206, "regnamespace": 4089, "regproc": 24, "regprocedure": 2202, "regrole": 4096,
    "regoper": 2203, "regoperator": 2204, "regconfig": 3734, "regdictionary": 3769, "regcollation": 4191,
}  # fmt: skip
"""OIDs of the types whose values name an object: a value is a dict of its number, under the name of the type, and its text; that
of a record is one of its binary form, under `record`, and its text."""

_EPOCH_DAY = date(2000, 1, 1).toordinal()
_EPOCH = datetime(2000, 1, 1)
_INFINITE = {"infinity": math.inf, "+infinity": math.inf, "inf": math.inf, "-infinity": -math.inf, "nan": math.nan}


@dataclass(frozen=True)
class Codec:
    """Encodings of one type. `size` is the type's length in RowDescription, -1 if it varies.

    `write` and `send` return text and binary of a Python value; `read` and `receive` parse a parameter's text and binary.
    """

    name: str
    size: int
    write: Callable[[Any], str]
    send: Callable[[Any], bytes]
    read: Callable[[str], Any]
    receive: Callable[[bytes], Any]


def _packed(form: str, convert: Callable[[Any], Any]) -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    packer = struct.Struct(form)

    def send(value: Any) -> bytes:
        try:
            return packer.pack(convert(value))
        except (struct.error, OverflowError, ValueError):
            raise refuse("wire_range") from None

    return send, lambda data: packer.unpack(data)[0]


def _whole(low: int, high: int) -> Callable[[Any], int]:
    """Return a function that converts a value to an integer in range: an answer may hold a double where an integer was described
    (a sum beyond 64 bits)."""

    def convert(value: Any) -> int:
        number = int(value)
        if not low <= number <= high:
            raise OverflowError
        return number

    return convert


def _integer(name: str, size: int, form: str, unsigned: bool = False) -> Codec:
    bits = size * 8
    convert = _whole(0, 2**bits - 1) if unsigned else _whole(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    send, receive = _packed(form, convert)

    def write(value: Any) -> str:
        try:
            return str(convert(value))
        except (OverflowError, ValueError):
            raise refuse("wire_range") from None

    return Codec(name, size, write, send, lambda text: convert(text.strip()), receive)


# --- numbers ----------------------------------------------------------------------------------------------------------


def float_text(value: Any, single: bool = False, digits: int = 1) -> str:
    """Return the text of a floating-point number, of single or double precision: as few digits as tell it apart, or with
    `digits` (extra_float_digits) of 0 or less so many fewer than 15 (or 6)."""
    number = float(value)
    if -1e15 < number < 1e15 and digits > 0 and not single and "e" not in (text := repr(number)):
        return text.removesuffix(".0")  # Python's own text of these is PostgreSQL's
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    most = 6 if single else 15
    if digits <= 0:
        return f"{number:.{max(most + digits, 1)}g}"
    text = str(float32(number)) if single else repr(number)
    sign, power = "-" * text.startswith("-"), Decimal(text).adjusted()
    significant = re.sub(r"[-.]", "", text.partition("e")[0]).strip("0") or "0"
    if number == 0 or -5 < power < most:
        return format(Decimal(text), "f").removesuffix(".0")
    point = "." if len(significant) > 1 else ""
    return f"{sign}{significant[0]}{point}{significant[1:]}e{'-' if power < 0 else '+'}{abs(power):02}"


def _read_float(text: str) -> float:
    special = _INFINITE.get(text.strip().lower())
    return float(text) if special is None else special


def _write_numeric(value: Any) -> str:
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if number.is_nan():
        return "NaN"
    if number.is_infinite():
        return "Infinity" if number > 0 else "-Infinity"
    return format(number, "f")


def _send_numeric(value: Any) -> bytes:
    """Encode as numeric_send does: number of base-10000 digits, weight of the first, sign, decimal places, digits."""
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not number.is_finite():
        sign = 0xC000 if number.is_nan() else 0xD000 if number > 0 else 0xF000
        return struct.pack("!hhHH", 0, 0, sign, 0)
    whole, _, fraction = format(abs(number), "f").partition(".")
    whole = whole.zfill(-(-len(whole) // 4) * 4)
    padded = whole + fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    digits = [int(padded[index : index + 4]) for index in range(0, len(padded), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    sign = 0x4000 if number < 0 else 0
    head = struct.pack("!hhHH", len(digits), weight if digits else 0, sign, len(fraction))
    return head + struct.pack(f"!{len(digits)}h", *digits)


def _sized(number: Decimal) -> Decimal:
    """Return a decimal if its digits are bounded in number, else raise ValueError: 1e999999999 has ten characters, and would be
    written as a gigabyte."""
    if number.is_finite() and abs(number.adjusted()) > 1_000:
        raise ValueError("out of range")
    return number


_DIGITS = Context(prec=1_000)


def _receive_numeric(data: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack("!hhHH", data[:8])
    if sign in (0xC000, 0xD000, 0xF000):
        return Decimal({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
    digits = struct.unpack(f"!{count}h", data[8:])
    if (count and abs(weight) > 100) or count > 100 or scale > 400:
        raise ValueError("out of range")
    text = "".join(f"{digit:04}" for digit in digits) or "0"
    total = Decimal(text).scaleb(4 * (weight - max(count, 1) + 1)).quantize(Decimal(1).scaleb(-scale), context=_DIGITS)
    return total.copy_negate() if sign == 0x4000 else total


# --- times ------------------------------------------------------------------------------------------------------------


def _micros(value: timedelta) -> int:
    return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds


def _read_timestamp(text: str) -> datetime:
    moment = datetime.fromisoformat(text.strip())
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def _write_timestamptz(value: datetime) -> str:
    moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(" ") + "+00"


def _timestamp(value: Any) -> int:
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return _micros((moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)) - _EPOCH)


def _time_micros(value: time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


def _receive_time(data: bytes) -> time:
    return (datetime.min + timedelta(microseconds=struct.unpack("!q", data)[0])).time()


def _write_interval(value: Any) -> str:
    return interval_text(*interval_parts(value))


def _send_interval(value: Any) -> bytes:
    months, days, micros = read_interval(value, None) if isinstance(value, str) else interval_parts(value)
    return struct.pack("!qii", micros, days, months)


def _receive_interval(data: bytes) -> str:
    micros, days, months = struct.unpack("!qii", data)
    return interval_text(months, days, micros)


# --- others -----------------------------------------------------------------------------------------------------------


def _read_bool(text: str) -> bool:
    word = text.strip().lower()
    if word in ("t", "true", "yes", "y", "on", "1"):
        return True
    if word in ("f", "false", "no", "n", "off", "0"):
        return False
    raise ValueError(text)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)


def _text(name: str, size: int = -1) -> Codec:
    return Codec(name, size, _as_text, lambda v: _as_text(v).encode("utf-8", "replace"), str, text_of)


def _floating(name: str, size: int, form: str) -> Codec:
    send, receive = _packed(form, float)
    write = partial(float_text, single=True) if size == 4 else float_text
    return Codec(name, size, write, send, _read_float, receive)


def receive_array(data: bytes) -> list[Any]:
    """Decode as array_recv does. Raises ValueError for elements of other types, and for more than six dimensions."""
    dimensions, _, element = struct.unpack("!iiI", data[:12])
    if not 0 <= dimensions <= _MOST_DIMENSIONS or (dimensions and element not in CODECS):
        raise ValueError("an array")
    sizes = [struct.unpack("!i", data[12 + 8 * k : 16 + 8 * k])[0] for k in range(dimensions)]
    offset, elements = 12 + 8 * dimensions, list[Any]()
    for _ in range(math.prod(sizes) if sizes else 0):
        size = struct.unpack("!i", data[offset : offset + 4])[0]
        offset += 4
        elements.append(None if size < 0 else CODECS[element].receive(data[offset : offset + size]))
        offset += max(size, 0)
    for size in reversed(sizes[1:]):
        elements = [elements[k : k + size] for k in range(0, len(elements), size)] if size > 0 else []
    return elements


_MOST_DIMENSIONS = 6


def _vector(name: str, element: int) -> Codec:
    """Return the codec of int2vector or oidvector: written with blanks, sent as an array that starts at 0."""
    return Codec(
        name, -1, lambda v: " ".join(map(str, v)), lambda v: send_array(element, v, lower=0),
        lambda text: [int(part) for part in text.split()], receive_array,
    )  # fmt: skip


def _named(name: str) -> Codec:
    """Return the codec of a type whose values name an object; a parameter of it is a text."""
    return Codec(name, 4, lambda v: str(v["text"]), lambda v: struct.pack("!I", v[name]), str, text_of)


def _record_bytes(value: Any) -> bytes:
    """Return the binary form that is kept beside a value's text. Raises ValueError if there is none."""
    if not isinstance(value, dict) or value["record"] is None:
        raise ValueError(value)
    return bytes(value["record"])


def send_record(items: Sequence[tuple[int, bytes | None]]) -> bytes:
    """Encode a row as record_send does, from the OIDs and binary forms of its values."""
    parts = [struct.pack("!i", len(items))]
    parts += [struct.pack("!Ii", oid, -1 if data is None else len(data)) + (data or b"") for oid, data in items]
    return b"".join(parts)


# --- texts that have a binary form of their own: addresses, bits, clocks of zones, ranges -----------------------------


def _send_inet(kind: int) -> Callable[[str], bytes]:
    def send(text: str) -> bytes:
        value = ipaddress.ip_interface(text)
        family = 2 if value.version == 4 else 3
        return struct.pack("!BBBB", family, value.network.prefixlen, kind, len(value.ip.packed)) + value.ip.packed

    return send


def _receive_inet(data: bytes) -> str:
    _, size, kind, length = struct.unpack("!BBBB", data[:4])
    address = ipaddress.ip_address(data[4 : 4 + length])
    return str(address) if size == address.max_prefixlen and not kind else f"{address}/{size}"


def _send_bits(text: str) -> bytes:
    padded = text.ljust(-(-len(text) // 8) * 8, "0")
    return struct.pack("!i", len(text)) + bytes(int(padded[k : k + 8], 2) for k in range(0, len(padded), 8))


def _receive_bits(data: bytes) -> str:
    return "".join(f"{byte:08b}" for byte in data[4:])[: struct.unpack("!i", data[:4])[0]]


def _send_timetz(text: str) -> bytes:
    value = time.fromisoformat(text)
    offset = value.utcoffset() or timedelta(0)
    return struct.pack("!qi", _time_micros(value), -int(offset.total_seconds()))


def _receive_timetz(data: bytes) -> str:
    zone = timezone(timedelta(seconds=-struct.unpack("!i", data[8:])[0]))
    return _receive_time(data[:8]).replace(tzinfo=zone).isoformat()


_BOUND = r'((?:[^\[\](),"\\]|"(?:[^"\\]|\\.|"")*+"|\\.)*+)'
_RANGE_FORM = re.compile(rf"\s*([\[(]){_BOUND},{_BOUND}([\])])\s*")
_PIECE = re.compile(r"empty|[\[(][^\[\]()]*+[\])]")
_MULTIRANGE_FORM = re.compile(rf"\s*\{{\s*((?:(?:{_PIECE.pattern})\s*(?:,\s*(?:{_PIECE.pattern})\s*)*)?)\}}\s*")


def range_parts(text: str) -> tuple[str, str, str] | None:
    """Return the brackets of a range and the texts of its bounds, "" for none; None for what is no range, or empty."""
    match = _RANGE_FORM.fullmatch(text)
    if match is None:
        return None
    low, high = (
        re.sub(r'"((?:[^"\\]|\\.|"")*+)"', lambda m: re.sub(r"\\(.)", r"\1", m[1].replace('""', '"')), bound)
        for bound in match.groups()[1:3]
    )
    return match[1] + match[4], low, high


def multirange_parts(text: str) -> list[str] | None:
    """Return the ranges of a multirange; None for what is none."""
    pieces = _MULTIRANGE_FORM.fullmatch(text)
    return None if pieces is None else _PIECE.findall(pieces[1])


def _send_range(element: int) -> Callable[[str], bytes]:
    def send(text: str) -> bytes:
        if text == "empty":
            return b"\1"
        parts = range_parts(text)
        if parts is None:
            raise ValueError(text)
        ends, *bounds = parts
        flags = 2 * (ends[0] == "[") | 4 * (ends[1] == "]") | 8 * (not bounds[0]) | 16 * (not bounds[1])
        sent = [binary_of_text(element, bound) for bound in bounds if bound]
        return bytes([flags]) + b"".join(struct.pack("!i", len(data)) + data for data in sent)

    return send


def _receive_range(element: int) -> Callable[[bytes], str]:
    def receive(data: bytes) -> str:
        if data[0] & 1:
            return "empty"
        bounds, position, kind = list[str](), 1, codec(element)
        for infinite in (8, 16):
            if data[0] & infinite:
                bounds.append("")
                continue
            size = struct.unpack("!i", data[position : position + 4])[0]
            bounds.append(kind.write(kind.receive(data[position + 4 : position + 4 + size])))
            position += 4 + size
        return f'{"[" if data[0] & 2 else "("}"{bounds[0]}","{bounds[1]}"{"]" if data[0] & 4 else ")"}'.replace(
            '""', ""
        )

    return receive


def _send_multirange(number: int) -> Callable[[str], bytes]:
    def send(text: str) -> bytes:
        sent = [binary_of_text(number, piece) for piece in multirange_parts(text) or []]
        return struct.pack("!i", len(sent)) + b"".join(struct.pack("!i", len(data)) + data for data in sent)

    return send


def _receive_multirange(number: int) -> Callable[[bytes], str]:
    def receive(data: bytes) -> str:
        pieces, position = list[str](), 4
        for _ in range(struct.unpack("!i", data[:4])[0]):
            size = struct.unpack("!i", data[position : position + 4])[0]
            pieces.append(codec(number).receive(data[position + 4 : position + 4 + size]))
            position += 4 + size
        return "{" + ",".join(pieces) + "}"

    return receive


_COORDINATE = re.compile(r"[^\s()\[\]<>{},]+")


def _send_shape(head: str) -> Callable[[str], bytes]:
    """Return a function that encodes a shape: what `head` says (? if a path is closed, i how many points), and its numbers."""

    def send(text: str) -> bytes:
        numbers = [_read_float(number) for number in _COORDINATE.findall(text)]
        first = [text[0] != "["] * ("?" in head) + [len(numbers) // 2] * ("i" in head)
        return struct.pack(f"!{head}{len(numbers)}d", *first, *numbers)

    return send


def _receive_shape(head: str, form: str) -> Callable[[bytes], str]:
    """Return a function that reads a shape; `form` is its text, with {} for each number, or for all points of any number."""

    def receive(data: bytes) -> str:
        size = struct.calcsize("!" + head)
        first = struct.unpack("!" + head, data[:size])
        count = first[-1] * 2 if head else form.count("{}")
        numbers = [float_text(number) for number in struct.unpack(f"!{count}d", data[size:])]
        if not head:
            return form.format(*numbers)
        points = ",".join(f"({x},{y})" for x, y in zip(numbers[::2], numbers[1::2], strict=True))
        return f"[{points}]" if first[0] is False else f"({points})"

    return receive


def _money(text: str) -> bytes:
    return struct.pack("!q", int(re.sub(r"[^\d-]", "", text)))


def _receive_money(data: bytes) -> str:
    return format(Decimal(struct.unpack("!q", data)[0]).scaleb(-2), "f")


_SHAPES = (
    (600, 1017, "point", 16, "", "({},{})"), (601, 1018, "lseg", 32, "", "[({},{}),({},{})]"),
    (602, 1019, "path", -1, "?i", ""), (603, 1020, "box", 32, "", "({},{}),({},{})"),
    (604, 1027, "polygon", -1, "i", ""), (628, 629, "line", 24, "", "{{{},{},{}}}"),
    (718, 719, "circle", 24, "", "<({},{}),{}>"),
)  # fmt: skip
"""OIDs of shapes and of their arrays, names, sizes, what stands before the numbers in the binary form, and texts. An array
of boxes has other commas, and no binary form here."""

CODECS: dict[int, Codec] = {
    BOOL: Codec("bool", 1, lambda v: "t" if v else "f", lambda v: b"\1" if v else b"\0", _read_bool,
    lambda b: b != b"\0"),
    BYTEA: Codec("bytea", -1, lambda v: "\\x" + v.hex(), bytes, lambda t: bytes.fromhex(t.removeprefix("\\x")), bytes),
    CHAR: _text("char", 1),
    NAME: _text("name", 64),
    2278: _text("void", 4),
    INT8: _integer("int8", 8, "!q"),
    INT2: _integer("int2", 2, "!h"),
    INT2VECTOR: _vector("int2vector", INT2),
    INT4: _integer("int4", 4, "!i"),
    TEXT: _text("text"),
    OID: _integer("oid", 4, "!I", unsigned=True),
    XID: _integer("xid", 4, "!I", unsigned=True),
    OIDVECTOR: _vector("oidvector", OID),
    JSON: _text("json"),
    JSONB: Codec("jsonb", -1, str, lambda v: b"\1" + str(v).encode(), str, lambda b: text_of(b[1:])),
    FLOAT4: _floating("float4", 4, "!f"),
    FLOAT8: _floating("float8", 8, "!d"),
    UNKNOWN: _text("unknown", -2),
    BPCHAR: _text("bpchar"),
    VARCHAR: _text("varchar"),
    DATE: Codec(
        "date", 4, lambda v: v.isoformat()[:10], lambda v: struct.pack("!i", v.toordinal() - _EPOCH_DAY),
        lambda text: date.fromisoformat(text.strip()[:10]),
        lambda data: date.fromordinal(struct.unpack("!i", data)[0] + _EPOCH_DAY),
    ),
    TIME: Codec(
        "time", 8, lambda v: v.isoformat(), lambda v: struct.pack("!q", _time_micros(v)),
        lambda text: time.fromisoformat(text.strip()), _receive_time,
    ),
    TIMESTAMP: Codec(
        "timestamp", 8, lambda v: (v if isinstance(v, datetime) else datetime(v.year, v.month, v.day)).isoformat(" "),
        lambda v: struct.pack("!q", _timestamp(v)), _read_timestamp,
        lambda data: _EPOCH + timedelta(microseconds=struct.unpack("!q", data)[0]),
    ),
    TIMESTAMPTZ: Codec(
        "timestamptz", 8, _write_timestamptz, lambda v: struct.pack("!q", _timestamp(v)), _read_timestamp,
        lambda data: _EPOCH + timedelta(microseconds=struct.unpack("!q", data)[0]),
    ),
    INTERVAL: Codec("interval", 16, _write_interval, _send_interval, str, _receive_interval),
    NUMERIC: Codec("numeric", -1, _write_numeric, _send_numeric, lambda t: _sized(Decimal(t.strip())),
    _receive_numeric),
    **{oid: _named(name) for name, oid in NAMED.items()},
    ACLITEM: _text("aclitem"),
    RECORD: Codec("record", -1, lambda v: str(v["text"]), _record_bytes, str, text_of),
    UUID: Codec("uuid", 16, str, lambda v: uuid.UUID(str(v)).bytes, lambda t: str(uuid.UUID(t)),
    lambda b: str(uuid.UUID(bytes=b))),
    869: Codec("inet", -1, str, _send_inet(0), str, _receive_inet),
    650: Codec("cidr", -1, str, _send_inet(1), str, _receive_inet),
    829: Codec("macaddr", 6, str, lambda v: bytes.fromhex(v.replace(":", "")), str, lambda b: b.hex(":")),
    774: Codec("macaddr8", 8, str, lambda v: bytes.fromhex(v.replace(":", "")), str, lambda b: b.hex(":")),
    1560: Codec("bit", -1, str, _send_bits, str, _receive_bits),
    1562: Codec("varbit", -1, str, _send_bits, str, _receive_bits),
    1266: Codec("timetz", 12, str, _send_timetz, str, _receive_timetz),
    5069: _integer("xid8", 8, "!Q", unsigned=True),
    3220: Codec("pg_lsn", 8, str, lambda v: struct.pack("!II", *(int(part, 16) for part in v.split("/"))), str,
    lambda b: "{:X}/{:X}".format(*struct.unpack("!II", b))),
    27: Codec("tid", 6, str, lambda v: struct.pack("!IH", *map(int, v[1:-1].split(","))), str,
    lambda b: "({},{})".format(*struct.unpack("!IH", b))),
    4072: Codec("jsonpath", -1, str, lambda v: b"\1" + v.encode(), str, lambda b: text_of(b[1:])),
    790: Codec("money", 8, str, _money, str, _receive_money),
    **{
        oid: Codec(name, size, str, _send_shape(head), str, _receive_shape(head, form))
        for oid, _, name, size, head, form in _SHAPES
    },
}  # fmt: skip

_RANGES = (
    ("int4", INT4, 3904, 4451), ("int8", INT8, 3926, 4536), ("num", NUMERIC, 3906, 4532), ("date", DATE, 3912, 4535),
    ("ts", TIMESTAMP, 3908, 4533), ("tstz", TIMESTAMPTZ, 3910, 4534),
)  # fmt: skip
"""Names, elements, and OIDs of ranges and of multiranges; the arrays of ranges have the number behind theirs."""
for _name, _element, _range, _multirange in _RANGES:
    CODECS[_range] = Codec(f"{_name}range", -1, str, _send_range(_element), str, _receive_range(_element))
    CODECS[_multirange] = Codec(
        f"{_name}multirange", -1, str, _send_multirange(_range), str, _receive_multirange(_range)
    )

ARRAYS: dict[int, int] = {
    1000: BOOL, 1001: BYTEA, 1002: CHAR, 1003: NAME, 1005: INT2, 1006: INT2VECTOR, 1007: INT4, 1009: TEXT, 1014: BPCHAR,
    1015: VARCHAR, 1016: INT8, 1021: FLOAT4, 1022: FLOAT8, 1028: OID, 1115: TIMESTAMP, 1182: DATE, 1183: TIME,
    1185: TIMESTAMPTZ, 1187: INTERVAL, 1231: NUMERIC, 2951: UUID, 199: JSON, 3807: JSONB, 2287: RECORD,
    2210: NAMED["regclass"], 2211: NAMED["regtype"], 4090: NAMED["regnamespace"], 1008: NAMED["regproc"],
    2207: NAMED["regprocedure"], 4097: NAMED["regrole"], 2208: NAMED["regoper"], 2209: NAMED["regoperator"],
    3735: NAMED["regconfig"], 3770: NAMED["regdictionary"], 4192: NAMED["regcollation"], 1034: ACLITEM,
    1041: 869, 651: 650, 1040: 829, 775: 774, 1561: 1560, 1563: 1562, 1270: 1266, 6150: 4451, 6151: 4532, 6152: 4533, 6153: 4534,
    6155: 4535, 6157: 4536, 791: 790, 271: 5069,
    3221: 3220, 1010: 27, 4073: 4072, **{array: oid for oid, array, *_ in _SHAPES if oid != 603},
    **{number + 1: number for _, _, number, _ in _RANGES},
}  # fmt: skip
"""OIDs of array types and of their elements."""
ARRAY_OF = {element: array for array, element in ARRAYS.items()}


# --- arrays ------------------------------------------------------------------------------------------------------


def write_array(element: int, values: list[Any]) -> str:
    """Return an array's text: {1,NULL,"a b"}, and {{1,2},{3,4}} for one of two dimensions."""
    write = CODECS[element].write
    items = [
        "NULL" if v is None else write_array(element, v) if isinstance(v, list) else _array_item(write(v))
        for v in values
    ]
    return "{" + ",".join(items) + "}"


def _array_item(text: str) -> str:
    plain = text != "" and text.lower() != "null" and not any(c in text for c in '{},"\\') and text.strip() == text
    if plain and not any(c.isspace() for c in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


BOUNDS = re.compile(r"\s*(?:\[\s*[+-]?[0-9]{1,10}\s*:\s*[+-]?[0-9]{1,10}\s*\]){1,6}\s*=\s*")
"""What stands before an array of which an element other than the one with number 1 is the first."""


def send_array(element: int, values: list[Any], lower: int = 1, lows: Sequence[int] = ()) -> bytes:
    """Encode as array_send does. `lows`: the numbers of the first elements of each dimension."""
    send, sizes = CODECS[element].send, []
    while values and isinstance(values[0], list):
        sizes.append(len(values))
        values = [item for row in values for item in row]
    if values:
        sizes.append(len(values) // math.prod(sizes))
    has_null = any(value is None for value in values)
    parts = [
        struct.pack("!iiI", len(sizes), int(has_null), element),
        *(struct.pack("!ii", size, low) for size, low in zip(sizes, lows or [lower] * len(sizes), strict=True)),
    ]
    for value in values:
        data = None if value is None else binary_of_text(element, value) if isinstance(value, str) else send(value)
        parts.append(struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + data)
    return b"".join(parts)


def read_array(element: int, text: str) -> list[Any]:
    """Return the items of an array literal; blanks outside of quotes are ignored."""
    if re.match(r"\s*\{\s*\{", text):
        rows = array_rows(text.strip())
        if rows is None:
            raise ValueError(text)
        return [read_array(element, row) for row in rows]
    texts = read_list(text)
    if texts is None:
        raise ValueError(text)
    return [None if item is None else CODECS[element].read(item) for item in texts]


def array_rows(text: str) -> list[str] | None:
    """Return the texts of the rows of an array of several dimensions; None for what is none."""
    rows, depth, start, in_quotes, position = list[str](), 0, 0, False, 1
    while position < len(text):
        sign = text[position]
        if sign == "\\":
            position += 1
        elif sign == '"':
            in_quotes = not in_quotes
        elif not in_quotes and sign == "{":
            start = position if depth == 0 else start
            depth += 1
        elif not in_quotes and sign == "}":
            if depth == 0:
                return rows if not text[position + 1 :].strip() else None
            depth -= 1
            if depth == 0:
                rows.append(text[start : position + 1])
        elif not in_quotes and depth == 0 and sign != "," and not sign.isspace():
            return None
        position += 1
    return None


# --- any type ---------------------------------------------------------------------------------------------------------


def codec(oid: int) -> Codec:
    """Return the codec of a type, including arrays; that of text for an unknown type."""
    if oid in ARRAYS:
        element = ARRAYS[oid]
        return Codec(
            CODECS[element].name + "[]", -1, lambda v: v["text"] if isinstance(v, dict) else write_array(element, v),
            lambda v: _record_bytes(v) if isinstance(v, dict) else send_array(element, v), lambda text: read_array(element, text),
            receive_array,
        )  # fmt: skip
    return CODECS.get(oid, CODECS[TEXT])


def _first(oid: int) -> bytes:
    """Return the binary form of -infinity."""
    return b"\x80" + b"\0" * (codec(oid).size - 1)


def _last(oid: int) -> bytes:
    """Return the binary form of infinity."""
    return b"\x7f" + b"\xff" * (codec(oid).size - 1)


def binary_of_text(oid: int, text: str) -> bytes:
    """Return the binary form of a value, from PostgreSQL's text of it. Raises ValueError for what has none here."""
    if oid in (DATE, TIMESTAMP, TIMESTAMPTZ) and text.endswith("infinity"):
        return _first(oid) if text[0] == "-" else _last(oid)
    kind, written = codec(oid), BOUNDS.match(text)
    if oid in ARRAYS:
        lows = [int(low) for low in re.findall(r"\[\s*([+-]?\d+)", written[0])] if written else []
        return send_array(ARRAYS[oid], read_array(TEXT, text[written.end() :] if written else text), lows=lows)
    return kind.send(kind.read(text))


def read_parameter(oid: int, form: int, data: bytes | None, number: int) -> Any:
    """Return a parameter's Python value. Raises wire_parameter, which names the parameter and its type."""
    if data is None:
        return None
    kind = codec(oid)
    try:
        return kind.receive(data) if form == 1 else kind.read(text_of(data))
    except (ValueError, struct.error, InvalidOperation, OverflowError, IndexError, KeyError):
        raise refuse("wire_parameter", number=number, type=kind.name) from None


def parameter_text(oid: int, form: int, data: bytes | None, number: int) -> str | None:
    """Return a parameter's text, as PostgreSQL would write it. Raises wire_parameter."""
    if data is None:
        return None
    if form == 1 and oid in (DATE, TIMESTAMP, TIMESTAMPTZ) and data in (_first(oid), _last(oid)):
        return "-infinity" if data == _first(oid) else "infinity"
    try:
        value = read_parameter(oid, form, data, number) if form == 1 else text_of(data)
        return value if isinstance(value, str) else codec(oid).write(value)
    except UnicodeDecodeError:
        raise refuse("wire_parameter", number=number, type=codec(oid).name) from None
