"""PostgreSQL's types: their names and casts (from its own catalogs), and their values read from texts and written as texts.

A value is a bool, int, float, Decimal, str (texts, bits, JSON as it is written), bytes, date, datetime (a
timestamptz in UTC), time,
`TimeTz`, `Interval`, `Range`, `Json` (jsonb), an address of ipaddress, or a list (an array); of `regclass` and
the like its number.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal, InvalidOperation
from functools import cache, cached_property
from typing import Any, NamedTuple

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.catalog.shape import formatted_types, static
from dpsql.frontends.pgwire.catalog.tables import CatalogContext, Vector, counted_from, first_index
from dpsql.frontends.pgwire.constants import bounds
from dpsql.frontends.pgwire.constants.moments import (
    INTERVAL_STYLES,
    read_interval,
    read_moment,
    write_moment,
    zone,
)
from dpsql.frontends.pgwire.constants.scalars import (
    MOST_DIGITS,
    READERS,
    BadBits,
    BadJson,
    Json,
    Outside,
    OutsideFloat,
    read_bits,
    read_json,
    read_numeric,
    single,
)
from dpsql.frontends.pgwire.constants.tokens import NO_SEARCH, SEARCH_TYPES, Elsewhere, Large, said
from dpsql.frontends.pgwire.encodings import BOUNDS, NAMED, array_rows, float_text, multirange_parts, range_parts
from dpsql.media import text as media
from dpsql.sql.rewrites.comparisons import read_list
from dpsql.storage.records import dataclass, field

MOST_CHARACTERS = 100_000
__all__ = [
    "MOST_DIGITS",
    "READERS",
    "BadJson",
    "Json",
    "Outside",
    "OutsideFloat",
    "read_bits",
    "read_json",
    "read_numeric",
    "single",
]
"""Names of `scalars` that are used as those of this module."""
WHOLE = {"int2": 1 << 15, "int4": 1 << 31, "int8": 1 << 63}
NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
TEXTS = frozenset({"text", "varchar", "bpchar", "name", "char", "unknown"})
RANGES = {"int4range": "int4", "int8range": "int8", "numrange": "numeric", "daterange": "date", "tsrange": "timestamp",
          "tstzrange": "timestamptz"}  # fmt: skip
MULTIRANGES = {name.replace("range", "multirange"): name for name in RANGES}
MOMENTS = ("date", "time", "timetz", "timestamp", "timestamptz")
BITS = ("bit", "varbit")


class Range(NamedTuple):
    """A range; both bounds None and neither inclusive is one without bounds, `empty` has nothing in it."""

    low: Any
    high: Any
    low_in: bool
    high_in: bool
    empty: bool = False


@dataclass(frozen=True)
class Record:
    """A row's values, the types of its columns, and their names if they have any."""

    values: tuple[Any, ...]
    types: tuple[str, ...]
    names: tuple[str, ...] = ()


def is_null(value: Any, negated: bool) -> bool:
    """Return whether a value is NULL, or (`negated`) is not; of a row, whether all its values are."""
    if isinstance(value, Record):
        return all((item is None) != negated for item in value.values)
    return (value is None) != negated


@dataclass
class Context:
    """What values depend on beside the text: the connection, and the time of the statement."""

    catalog: CatalogContext
    now: datetime
    parameters: dict[int, str] = field(default_factory=dict)
    """The types of the parameters that are known."""
    values: Sequence[str | None] | None = None
    """The texts of the parameters, once they are known."""
    columns_read: set[tuple[int, int]] = field(default_factory=set)
    """The columns, by their question and number, that what is compiled reads."""
    work: int = 0
    """What has been computed: characters and elements of values, and calls."""

    def __post_init__(self) -> None:
        bounds.begin(self.catalog.check, self.catalog.turn)

    def spent(self, value: Any) -> Any:
        """Return a value that was computed. Raises sandbox_time, and Large beyond `MOST_WORK`."""
        bounds.step()
        self.work += 1 + bounds.weight(value)
        if self.work > bounds.MOST_WORK:
            raise Large
        return value

    def counted(self, values: list[Any]) -> list[Any]:
        """Return values that are kept a second time. Raises as `spent`."""
        self.work += len(values)
        self.spent(None)
        return values

    @cached_property
    def zone(self) -> tzinfo:
        """The time zone of the session."""
        name = self.catalog.settings.get("TimeZone")
        offset = re.fullmatch(r"<[^>]*>([+-]?[\d:]+)", name)
        return zone(name if offset is None else offset[1] if offset[1][0] in "+-" else f"+{offset[1]}")

    def number_of(self, kind: str, text: str, position: int | None) -> int:
        """Return the number of the object that a text names."""
        try:
            return self.catalog.names.oid(kind, text, self.catalog.path)
        except Exception as error:
            if getattr(error, "position", 0) is None:
                error.position = position  # type: ignore[attr-defined]
                error.hint = ""  # type: ignore[attr-defined]
            raise


@cache
def _types() -> dict[str, tuple[int, str, bool]]:
    """Return the OID, the category and whether it is preferred, of each type."""
    rows = static("pg_type")
    facts = zip(rows["oid"], rows["typcategory"], rows["typispreferred"], strict=True)
    return dict(zip(rows["typname"], facts, strict=True))


@cache
def names_of_types() -> dict[int, str]:
    """Return the types by their OIDs."""
    return {facts[0]: name for name, facts in _types().items()}


def oid(type_: str) -> int:
    return _types()[type_][0]


def named(number: int) -> str:
    """Return the type of an OID. Raises `Elsewhere` for one that there is not."""
    if number not in names_of_types():
        raise Elsewhere
    return names_of_types()[number]


def exists(type_: str) -> bool:
    return type_ in _types()


def category(type_: str) -> str:
    return "X" if type_ == "unknown" else _types()[type_][1] if type_ in _types() else "U"


def preferred(type_: str) -> bool:
    return type_ in _types() and _types()[type_][2]


def sql_name(type_: str) -> str:
    """Return a type's name in messages: integer for int4."""
    return formatted_types().get(oid(type_), type_) if exists(type_) else type_.strip('"')


_PARTS = {"month": 1, "year": 2, "day": 3, "hour": 10, "minute": 11, "second": 12}
"""Bits of an interval's fields."""
_IN_ORDER = ("year", "month", "day", "hour", "minute", "second")


_SIZED = {"numeric", "varchar", "bpchar", *BITS, "time", "timetz", "timestamp", "timestamptz"}
"""Types that have sizes, beside `interval`."""


def modifier(type_: str, sizes: tuple[int, ...], fields: str = "", position: int | None = None) -> int:
    """Return the sizes of a type as PostgreSQL keeps them; -1 for none. Raises 22023 for sizes that the type does not have."""
    if type_ == "interval":
        first, _, last = fields.partition(" to ")
        parts = _IN_ORDER[_IN_ORDER.index(first) : _IN_ORDER.index(last or first) + 1] if fields else ()
        mask = sum(1 << _PARTS[part] for part in parts) or 0x7FFF
        return -1 if not sizes and not fields else mask << 16 | (sizes[0] if sizes else 0xFFFF)
    if not sizes:
        return -1
    if type_ not in _SIZED:
        raise said("42601", f'type modifier is not allowed for type "{type_}"', position)
    if type_ == "numeric":
        if not 1 <= sizes[0] <= 1000:
            raise said("22023", f"NUMERIC precision {sizes[0]} must be between 1 and 1000", position)
        scale = sizes[1] if len(sizes) > 1 else 0
        if abs(scale) > 1000:
            raise said("22023", f"NUMERIC scale {scale} must be between -1000 and 1000", position)
        return (sizes[0] << 16 | scale & 0x7FF) + 4
    if type_ in ("varchar", "bpchar", *BITS) and sizes[0] < 1:
        name = "char" if type_ == "bpchar" else type_
        raise said("22023", f"length for type {name} must be at least 1", position)
    return sizes[0] + 4 * (type_ in ("varchar", "bpchar"))


@cache
def casts() -> dict[tuple[str, str], str]:
    """Return PostgreSQL's casts from one type to another: i (implicit), a (in assignments), e (explicit)."""
    rows, names = static("pg_cast"), names_of_types()
    pairs = zip(rows["castsource"], rows["casttarget"], rows["castcontext"], strict=True)
    return {
        (names[source], names[target]): kind for source, target, kind in pairs if source in names and target in names
    }


def element(type_: str) -> str:
    """Return the type of an array's elements; "" if it is no array."""
    return type_[1:] if type_.startswith("_") else {"int2vector": "int2", "oidvector": "oid"}.get(type_, "")


def implicit(source: str, target: str) -> bool:
    """Return whether a value of a type may stand where another type is wanted."""
    if source != target and element(source) and target.startswith("_"):
        source, target = element(source), target[1:]
    return source in (target, "unknown") or casts().get((source, target)) == "i" or target == "any"


def castable(source: str, target: str) -> bool:
    """Return whether x::type exists."""
    if source in (target, "unknown") or (source, target) in casts():
        return True
    if element(source) and element(target):
        return castable(element(source), element(target))
    return category(target) == "S" or category(source) == "S" or (source == "record" and category(target) == "S")


def assignable(source: str, target: str) -> bool:
    """Return whether a value of one type may be given where a value of another is expected, as in EXECUTE."""
    if element(source) and element(target):
        return assignable(element(source), element(target))
    return source in (target, "unknown") or casts().get((source, target)) in ("i", "a") or category(target) == "S"


# --- reading ----------------------------------------------------------------------------------------------------------


_UNSUPPORTED = {"xml": ("0A000", "unsupported XML feature"), **dict.fromkeys(SEARCH_TYPES, NO_SEARCH)}


def read(text: str, type_: str, context: Context, position: int | None = None) -> Any:
    """Return the value of a type that a text means. Raises what PostgreSQL's input functions raise."""
    if len(text) > MOST_CHARACTERS:
        raise Elsewhere
    if type_ in TEXTS:
        return text[:63] if type_ == "name" else text[:1] if type_ == "char" else text
    if type_ in _OF_DIGITS and any(sign.isdecimal() and not sign.isascii() for sign in text):
        state = "22007" if type_ == "interval" or type_ in MOMENTS else "22P02"
        raise said(state, f'invalid input syntax for type {sql_name(type_)}: "{text}"', position)
    if type_ in MOMENTS:
        return read_moment(text, type_, position, context)
    if type_.startswith("_"):
        return _read_array(text, type_[1:], context, position)
    if element(type_):
        return Vector(read(part, element(type_), context, position) for part in text.split())
    if type_ == "interval":
        return read_interval(text, position)
    if type_ in NAMED:
        return context.number_of(type_, text, position)
    if type_ in RANGES or type_ in MULTIRANGES:
        return _read_ranges(text, type_, context, position)
    if type_ in OBJECT_READERS:
        return OBJECT_READERS[type_](text, context, position)
    if type_ in _UNSUPPORTED:
        raise said(*_UNSUPPORTED[type_], position)
    if type_ not in READERS:
        raise Elsewhere
    return _read_scalar(text, type_, position)


_OF_DIGITS = frozenset((
    *NUMBERS, *MOMENTS, "interval", "oid", "xid", "xid8", "cid", "tid", "money",
    "point", "lseg", "line", "box", "path", "polygon", "circle",
))  # fmt: skip
"""Types whose texts have no digits but 0 to 9; Python reads those of other scripts, too."""
OBJECT_READERS: dict[str, Callable[[str, Context, int | None], Any]] = {}
"""Readers of types whose values name objects of the database."""


def _read_ranges(text: str, type_: str, context: Context, position: int | None) -> Any:
    if type_ in RANGES:
        return _read_range(text, type_, context, position)
    return _read_multirange(text, MULTIRANGES[type_], context, position)


def _read_scalar(text: str, type_: str, position: int | None) -> Any:
    reader = READERS[type_]
    try:
        return reader(text)
    except Error as error:
        error.position = error.position or position
        raise
    except (ValueError, InvalidOperation):
        words = {"cidr": "cidr", "inet": "inet"}.get(type_, sql_name(type_))
        raise said("22P02", f'invalid input syntax for type {words}: "{text}"', position) from None
    except Outside:
        value = "" if type_.startswith("float") else "value "
        raise said("22003", f'{value}"{text}" is out of range for type {sql_name(type_)}', position) from None
    except BadJson as error:
        raise said("22P02", "invalid input syntax for type json", position) from error
    except BadBits as error:
        raise said("22P02", str(error), position) from None


def _read_array(text: str, element: str, context: Context, position: int | None) -> list[Any]:
    malformed = said("22P02", f'malformed array literal: "{text}"', position)
    stripped = text.strip()
    if stripped.startswith("["):
        return _read_bounded(stripped, element, context, position)
    if re.match(r"(?:\{\s*){7}", stripped):
        raise said("54000", "number of array dimensions (7) exceeds the maximum allowed (6)", position)
    if not stripped.startswith("{"):
        raise malformed
    if re.match(r"\{\s*\{", stripped):
        rows = array_rows(stripped)
        if rows is None:
            raise malformed
        inner = [_read_array(row, element, context, position) for row in rows]
        if len({len(row) for row in inner}) != 1:
            raise malformed
        return inner if inner[0] else []
    texts = read_list(stripped)
    if texts is None:
        raise malformed
    return [None if item is None else read(item, element, context, position) for item in texts]


def _read_bounded(text: str, element: str, context: Context, position: int | None) -> list[Any]:
    """Return an array whose text begins with the numbers of its first and last elements."""
    written = BOUNDS.match(text)
    if written is None:
        raise said("22P02", f'malformed array literal: "{text}"', position)
    limits = [(int(low), int(high)) for low, high in re.findall(r"([+-]?\d+)\s*:\s*([+-]?\d+)", written[0])]
    if any(not -WHOLE["int4"] <= number < WHOLE["int4"] for pair in limits for number in pair):
        raise said("22P02", f'malformed array literal: "{text}"', position)
    if any(high < low for low, high in limits):
        raise said("2202E", "upper bound cannot be less than lower bound", position)
    values = _read_array(text[written.end() :], element, context, position)
    if [high - low for low, high in limits] != [high - low for low, high in bounds_of(values)]:
        raise said("22P02", f'malformed array literal: "{text}"', position)
    return _numbered(values, [low for low, _ in limits])


def _numbered(values: list[Any], lows: list[int]) -> list[Any]:
    return counted_from(lows[0], [_numbered(value, lows[1:]) for value in values] if lows[1:] else values)


def bounds_of(values: Any) -> list[tuple[int, int]]:
    """Return the numbers of the first and the last element in each dimension of an array."""
    limits = list[tuple[int, int]]()
    while isinstance(values, list) and values:
        limits.append((first_index(values), first_index(values) + len(values) - 1))
        values = values[0]
    return limits


def written_bounds(values: list[Any]) -> str:
    return "".join(f"[{low}:{high}]" for low, high in bounds_of(values))


def _read_range(text: str, type_: str, context: Context, position: int | None) -> Range:
    if text.strip().lower() == "empty":
        return Range(None, None, False, False, True)
    parts = range_parts(text)
    if parts is None:
        raise said("22P02", f'malformed range literal: "{text}"', position)
    ends, *texts = parts
    bounds = [None if bound == "" else read(bound, RANGES[type_], context, position) for bound in texts]
    return new_range(type_, bounds[0], bounds[1], ends, position)


def new_range(type_: str, low: Any, high: Any, ends: str = "[)", position: int | None = None) -> Range:
    """Return a range, of whole numbers and days with its lower bound in it and the upper one not."""
    if ends not in ("[]", "[)", "(]", "()"):
        raise said("42601", "invalid range bound flags", None, 'Valid values are "[]", "[)", "(]", and "()".')
    if low is not None and high is not None and low > high:
        raise said("22000", "range lower bound must be less than or equal to range upper bound", position)
    low_in, high_in = ends[0] == "[" and low is not None, ends[1] == "]" and high is not None
    if RANGES[type_] in ("int4", "int8", "date"):
        step: Any = 1
        if RANGES[type_] == "date":
            step = timedelta(days=1)
        if low is not None and not low_in:
            low, low_in = low + step, True
        if high is not None and high_in:
            high, high_in = high + step, False
    if low is not None and high is not None and (low > high or (low == high and not (low_in and high_in))):
        return Range(None, None, False, False, True)
    return Range(low, high, low_in, high_in)


def _read_multirange(text: str, type_: str, context: Context, position: int | None) -> tuple[Range, ...]:
    pieces = multirange_parts(text)
    if pieces is None:
        raise said("22P02", f'malformed multirange literal: "{text}"', position)
    return united([_read_range(piece, type_, context, position) for piece in pieces])


def united(ranges: list[Range]) -> tuple[Range, ...]:
    """Return ranges as a multirange: in order, and those that touch as one."""
    whole = list[Range]()
    for part in sorted((r for r in ranges if not r.empty), key=low_key):
        if whole and touch(whole[-1], part):
            whole[-1] = hull(whole[-1], part)
        else:
            whole.append(part)
    return tuple(whole)


class _Key:
    """A bound of a range with an order: one that is None is below or above all others."""

    def __init__(self, value: Any, side: int, infinite: int) -> None:
        self.value, self.side, self.infinite = value, side, infinite

    def __lt__(self, other: _Key) -> bool:
        if self.infinite or other.infinite:
            return self.infinite < other.infinite
        return bool((self.value, self.side) < (other.value, other.side))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and not self < other and not other < self

    def __le__(self, other: _Key) -> bool:
        return not other < self

    __hash__ = None  # type: ignore[assignment]


def low_key(value: Range) -> _Key:
    return _Key(value.low, 0 if value.low_in else 1, -1 if value.low is None else 0)


def high_key(value: Range) -> _Key:
    return _Key(value.high, 0 if value.high_in else -1, 1 if value.high is None else 0)


def touch(first: Range, second: Range) -> bool:
    """Return whether a range meets one that does not begin before it."""
    if first.high is None or second.low is None:
        return True
    return bool(first.high > second.low or (first.high == second.low and (first.high_in or second.low_in)))


def hull(first: Range, second: Range) -> Range:
    """Return the smallest range around two."""
    if first.empty or second.empty:
        return second if first.empty else first
    low, high = min(first, second, key=low_key), max(first, second, key=high_key)
    return Range(low.low, high.high, low.low_in, high.high_in)


# --- writing ----------------------------------------------------------------------------------------------------------


def write(value: Any, type_: str, context: Context) -> str:
    """Return the text of a value, as PostgreSQL's output functions write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    if type_ in MOMENTS or type_ == "interval":
        style = context.catalog.settings.get("IntervalStyle")
        if type_ == "interval" and style != "postgres" and not isinstance(value, float):
            return INTERVAL_STYLES[style](value)
        return write_moment(value, type_, context)
    if isinstance(value, list):
        return _write_list(value, type_, context)
    if isinstance(value, (Json, Range, Record, tuple)):
        return _write_composed(value, type_, context)
    if type_ in NAMED:
        return context.catalog.names.text(type_, value, context.catalog.path)
    if isinstance(value, float):
        return float_text(
            value, single=type_ == "float4", digits=int(context.catalog.settings.get("extra_float_digits"))
        )
    if isinstance(value, Decimal):
        return numeric_text(value)
    if isinstance(value, bytes):
        if context.catalog.settings.get("bytea_output") == "escape":
            return "".join(chr(b) if 32 <= b < 127 and b != 92 else "\\\\" if b == 92 else f"\\{b:03o}" for b in value)
        return "\\x" + value.hex()
    if isinstance(value, (ipaddress.IPv4Interface, ipaddress.IPv6Interface)):
        whole = value.network.prefixlen == value.max_prefixlen and type_ == "inet"
        address = value.ip if value.version == 4 else value.ip.ipv4_mapped or value.ip
        prefix = "::ffff:" * (address.version < value.version)
        return f"{prefix}{address}" + ("" if whole else f"/{value.network.prefixlen}")
    return str(value)


def _write_composed(value: Any, type_: str, context: Context) -> str:
    if isinstance(value, Json):
        return json_text(value.value)
    if isinstance(value, Range):
        return _write_range(value, type_, context)
    if isinstance(value, Record):
        return (
            "("
            + ",".join(
                "" if v is None else _record_item(write(v, t, context), context)
                for v, t in zip(value.values, value.types, strict=True)
            )
            + ")"
        )
    return "{" + ",".join(_write_range(part, MULTIRANGES[type_], context) for part in value) + "}"


def numeric_text(value: Decimal) -> str:
    """Return the text of a numeric."""
    if not value.is_finite():
        return "NaN" if value.is_nan() else "Infinity" if value > 0 else "-Infinity"
    text = format(value, "f")
    return text[1:] if text.startswith("-") and not value else text


def json_text(value: Any) -> str:
    """Return the text of jsonb: keys in the order of their lengths, a blank behind each comma and colon."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{quoted_json(key)}: {json_text(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(json_text, value)) + "]"
    if isinstance(value, Decimal):
        return numeric_text(value)
    return quoted_json(value) if isinstance(value, str) else json.dumps(value)


def quoted_json(text: str) -> str:
    """Return a text as a JSON string, with escapes for what a terminal would obey."""
    return media.json_text(text)


def _write_list(value: list[Any], type_: str, context: Context) -> str:
    if not type_.startswith("_"):
        return " ".join(map(str, value))  # int2vector and oidvector
    is_shifted = any(low != 1 for low, _ in bounds_of(value))
    return f"{written_bounds(value)}=" * is_shifted + _write_array(value, type_[1:], context)


def _write_array(values: list[Any], element: str, context: Context) -> str:
    items = list[str]()
    for value in values:
        if value is None:
            items.append("NULL")
        elif isinstance(value, list):
            items.append(_write_array(value, element, context))
        else:
            text = write(value, element, context)
            plain = text and text.lower() != "null" and not re.search(r'[{},"\\\s]', text)
            items.append(text if plain else context.spent('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'))
    return "{" + ",".join(items) + "}"


def _record_item(text: str, context: Context) -> str:
    """Return the text of a value as it stands in a row. It is counted: rows within rows double their quotes at each level."""
    plain = text and not re.search(r'[(),"\\\s]', text)
    return text if plain else context.spent('"' + text.replace("\\", "\\\\").replace('"', '""') + '"')


def _write_range(value: Range, type_: str, context: Context) -> str:
    if value.empty:
        return "empty"
    bounds = [
        "" if bound is None else _record_item(write(bound, RANGES[type_], context), context)
        for bound in (value.low, value.high)
    ]
    return ("[" if value.low_in else "(") + ",".join(bounds) + ("]" if value.high_in else ")")
