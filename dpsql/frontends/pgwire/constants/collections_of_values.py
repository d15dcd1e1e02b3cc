"""Functions and operators of arrays, ranges, multiranges and network addresses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from dpsql.frontends.pgwire.catalog.tables import counted_from, first_index
from dpsql.frontends.pgwire.constants import bounds, conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.numbers import _key as key
from dpsql.frontends.pgwire.constants.resolve import each, function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.constants.types import MULTIRANGES, RANGES, Range

MOST_ITEMS = 10_000
_EMPTY = Range(None, None, False, False, True)


def flat(values: list[Any]) -> Iterator[Any]:
    """Yield the elements of an array of any dimensions."""
    for value in values:
        if isinstance(value, list):
            yield from flat(value)
        else:
            yield value


def _sizes(values: list[Any]) -> list[int]:
    sizes = list[int]()
    inner: Any = values
    while isinstance(inner, list) and inner:
        sizes.append(len(inner))
        inner = inner[0]
    return sizes


def _same(a: Any, b: Any) -> bool:
    bounds.step()
    return (a is None) == (b is None) and (a is None or bool(key(a) == key(b)))


def _in(value: Any, values: Any) -> bool:
    return any(_same(value, other) for other in values)


# --- arrays -----------------------------------------------------------------------------------------------------------


@function(
    "||(anycompatiblearray, anycompatiblearray) anycompatiblearray; "
    "array_cat(anycompatiblearray, anycompatiblearray) anycompatiblearray",
    strict=False,
)
def _concatenated(a: list[Any] | None, b: list[Any] | None) -> list[Any] | None:
    if a is None or b is None:
        return a if b is None else b
    if not a or not b:
        return a or b
    first, second = _sizes(a), _sizes(b)
    if len(first) == len(second):
        if first[1:] != second[1:]:
            raise said("2202E", "cannot concatenate incompatible arrays")
        return counted_from(first_index(a), a + b)
    if first[1:] == second:
        return counted_from(first_index(a), [*a, b])
    if second[1:] == first:
        return counted_from(first_index(b), [a, *b])
    raise said("2202E", "cannot concatenate incompatible arrays")


def _appended(a: list[Any] | None, value: Any) -> list[Any]:
    if a and isinstance(a[0], list):
        raise said("22023", "argument must be empty or one-dimensional array")
    return counted_from(first_index(a or []), [*(a or []), value])


function(
    "||(anycompatiblearray, anycompatible) anycompatiblearray; "
    "array_append(anycompatiblearray, anycompatible) anycompatiblearray",
    strict=False,
)(_appended)
function(
    "||(anycompatible, anycompatiblearray) anycompatiblearray; "
    "array_prepend(anycompatible, anycompatiblearray) anycompatiblearray",
    strict=False,
)(lambda value, a: counted_from(first_index(a or []), [value, *(a or [])]))
function("@>(anyarray, anyarray) bool")(
    lambda a, b: all(value is not None and _in(value, flat(a)) for value in flat(b))
)
function("<@(anyarray, anyarray) bool")(
    lambda a, b: all(value is not None and _in(value, flat(b)) for value in flat(a))
)
function("&&(anyarray, anyarray) bool")(
    lambda a, b: any(value is not None and _in(value, flat(b)) for value in flat(a))
)
function("array_ndims(anyarray) int4")(lambda v: len(_sizes(v)) or None)
function("array_dims(anyarray) text")(lambda v: t.written_bounds(v) or None)
function("array_length(anyarray, int4) int4")(lambda v, n: _sizes(v)[n - 1] if 0 < n <= len(_sizes(v)) else None)
for _end, _which in (("lower", 0), ("upper", 1)):
    function(f"array_{_end}(anyarray, int4) int4")(
        lambda v, n, which=_which: t.bounds_of(v)[n - 1][which] if 0 < n <= len(t.bounds_of(v)) else None
    )
function("cardinality(anyarray) int4")(lambda v: sum(1 for _ in flat(v)))
function("unnest(anyarray) *anyelement")(lambda v: list(flat(v)))


def _dimension(values: list[Any]) -> None:
    if len(_sizes(values)) > 1:
        raise said("0A000", "searching for elements in multidimensional arrays is not supported")


@function("array_position(anycompatiblearray, anycompatible, start int4?) int4", strict=False)
def _position(values: list[Any] | None, value: Any, start: int | None = 1) -> int | None:
    if values is None or start is None:
        return None
    _dimension(values)
    listed = enumerate(values, first_index(values))
    return next((k for k, item in listed if k >= start - 1 + first_index(values) and _same(item, value)), None)


@function("array_positions(anycompatiblearray, anycompatible) _int4", strict=False)
def _positions(values: list[Any] | None, value: Any) -> list[int] | None:
    return None if values is None else [k for k, item in enumerate(values, first_index(values)) if _same(item, value)]


@function("array_remove(anycompatiblearray, anycompatible) anycompatiblearray", strict=False)
def _remove(values: list[Any] | None, value: Any) -> list[Any] | None:
    if values and isinstance(values[0], list):
        raise said("0A000", "removing elements from multidimensional arrays is not supported")
    return None if values is None else [item for item in values if not _same(item, value)]


@function("array_replace(anycompatiblearray, anycompatible, anycompatible) anycompatiblearray", strict=False)
def _replace(values: list[Any] | None, old: Any, new: Any) -> list[Any] | None:
    if values is None:
        return None
    return [
        _replace(item, old, new) if isinstance(item, list) else new if _same(item, old) else item for item in values
    ]


@function("array_to_string(anyarray, text, null text?) text", typed=True)
def _to_string(
    context: t.Context, types: tuple[str, ...], values: list[Any] | None, between: str | None, null: str | None = None
) -> str | None:
    if values is None or between is None:
        return None
    written_out = [null if item is None else t.write(item, types[0][1:], context) for item in flat(values)]
    return between.join(text for text in written_out if text is not None)


@function("array_fill(anyelement, _int4, lower _int4?) anyarray", strict=False)
def _fill(value: Any, sizes: list[Any] | None, lower: list[Any] | None = None) -> list[Any]:
    if sizes is None:
        raise said("22004", "dimension array or low bound array cannot be null")
    if lower is not None and len(lower) != len(sizes):
        raise said("2202E", "wrong number of array subscripts", None)
    filled: Any = value
    count = 1
    for size, low in zip(reversed(sizes), reversed(lower or [1] * len(sizes)), strict=True):
        count *= size
        if size < 0 or count > 134_217_727:
            raise said("54000", "array size exceeds the maximum allowed (134217727)")
        if count > MOST_ITEMS:
            raise Elsewhere
        filled = counted_from(low, [filled] * size)
    return filled if isinstance(filled, list) else []


@function("array_sample(anyarray, int4) anyarray")
def _sampled(values: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(values):
        raise said("22023", f"sample size must be between 0 and {len(values)}")
    return list(__import__("random").sample(values, count))


function("array_shuffle(anyarray) anyarray")(lambda values: _sampled(values, len(values)))


@function("trim_array(anyarray, int4) anyarray")
def _trim(values: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(values):
        raise said("2202E", f"number of elements to trim must be between 0 and {len(values)}")
    return values[: len(values) - count]


@function("generate_subscripts(anyarray, int4, reverse bool?) *int4")
def _subscripts(values: list[Any], dimension: int, backwards: bool = False) -> list[int]:
    limits = t.bounds_of(values)
    low, high = limits[dimension - 1] if 0 < dimension <= len(limits) else (1, 0)
    listed = list(range(low, high + 1))
    return listed[::-1] if backwards else listed


function("num_nulls(*any) int4", typed=True)(lambda c, types, *values: sum(v is None for v in values))
function("num_nonnulls(*any) int4", typed=True)(lambda c, types, *values: sum(v is not None for v in values))


def element_at(values: Any, indexes: list[Any]) -> Any:
    """Return what stands at a place of an array; None for one that it lacks, or with more or fewer numbers than dimensions."""
    for index in indexes:
        number = index - first_index(values)
        if not isinstance(values, list) or not 0 <= number < len(values):
            return None
        values = values[number]
    return None if isinstance(values, list) else values


def part_of(values: Any, limits: list[Any]) -> list[Any]:
    """Return the part of an array between limits in each of its dimensions."""
    if not isinstance(values, list):
        return []
    (low, high), *further = limits
    offset = 1 - first_index(values)
    part = values[max((1 if low is None else low + offset) - 1, 0) : None if high is None else max(high + offset, 0)]
    inner = [part_of(value, further) for value in part] if further else list(part)
    return [] if further and not all(inner) else inner


# --- ranges -----------------------------------------------------------------------------------------------------------


def _ends(flags: str | None) -> str:
    if flags is None:
        raise said("22000", "range constructor flags argument must not be null")
    return flags


for _range, _element in RANGES.items():
    function(f"{_range}({_element}, {_element}, ends text?) {_range}", strict=False)(
        lambda low, high, ends="[)", range_=_range: t.new_range(range_, low, high, _ends(ends))
    )
for _multi, _range in MULTIRANGES.items():
    function(f"{_multi}(*{_range}) {_multi}")(lambda *ranges: t.united(list(ranges)))
function("multirange(anyrange) anymultirange")(lambda v: t.united([v]))
function("unnest(anymultirange) *anyrange")(list)


def _whole(value: Any) -> Range:
    """Return a range, or the smallest one around a multirange."""
    if isinstance(value, Range):
        return value
    return _EMPTY if not value else t.hull(value[0], value[-1])


each("lower", ("anyrange", "anymultirange"), "({}) anyelement", lambda v: _whole(v).low)
each("upper", ("anyrange", "anymultirange"), "({}) anyelement", lambda v: _whole(v).high)
each("isempty", ("anyrange", "anymultirange"), "({}) bool", lambda v: _whole(v).empty)
each("lower_inc", ("anyrange", "anymultirange"), "({}) bool", lambda v: _whole(v).low_in)
each("upper_inc", ("anyrange", "anymultirange"), "({}) bool", lambda v: _whole(v).high_in)
each("lower_inf", ("anyrange", "anymultirange"), "({}) bool", lambda v: not _whole(v).empty and _whole(v).low is None)
each("upper_inf", ("anyrange", "anymultirange"), "({}) bool", lambda v: not _whole(v).empty and _whole(v).high is None)
function("range_merge(anyrange, anyrange) anyrange")(t.hull)
function("range_merge(anymultirange) anyrange")(_whole)


def _holds(value: Range, item: Any) -> bool:
    if value.empty:
        return False
    above = value.low is None or item > value.low or (item == value.low and value.low_in)
    return bool(above and (value.high is None or item < value.high or (item == value.high and value.high_in)))


def _covers(outer: Range, inner: Range) -> bool:
    bounds.step()
    return inner.empty or (
        not outer.empty and t.low_key(outer) <= t.low_key(inner) and t.high_key(inner) <= t.high_key(outer)
    )


def common(a: Range, b: Range) -> Range:
    bounds.step()
    if a.empty or b.empty:
        return _EMPTY
    low, high = max(a, b, key=t.low_key), min(a, b, key=t.high_key)
    if low.low is not None and high.high is not None and (
        low.low > high.high or (low.low == high.high and not (low.low_in and high.high_in))
    ):  # fmt: skip
        return _EMPTY
    return Range(low.low, high.high, low.low_in, high.high_in)


def _before(a: Range, b: Range) -> bool:
    if a.empty or b.empty or a.high is None or b.low is None:
        return False
    return bool(a.high < b.low or (a.high == b.low and not (a.high_in and b.low_in)))


function("@>(anyrange, anyelement) bool")(_holds)
function("<@(anyelement, anyrange) bool")(lambda item, v: _holds(v, item))
function("@>(anyrange, anyrange) bool")(_covers)
function("<@(anyrange, anyrange) bool")(lambda a, b: _covers(b, a))
function("&&(anyrange, anyrange) bool")(lambda a, b: not common(a, b).empty)
function("<<(anyrange, anyrange) bool")(_before)
function(">>(anyrange, anyrange) bool")(lambda a, b: _before(b, a))
function("*(anyrange, anyrange) anyrange")(common)
function("=(anyrange, anyrange) bool")(lambda a, b: a == b)
function("<>(anyrange, anyrange) bool")(lambda a, b: a != b)
function("<(anyrange, anyrange) bool")(lambda a, b: _range_order(a) < _range_order(b))
function(">(anyrange, anyrange) bool")(lambda a, b: _range_order(b) < _range_order(a))
function("@>(anymultirange, anyelement) bool")(lambda v, item: any(_holds(part, item) for part in v))
function("<@(anyelement, anymultirange) bool")(lambda item, v: any(_holds(part, item) for part in v))
function("@>(anymultirange, anyrange) bool")(lambda v, inner: inner.empty or any(_covers(part, inner) for part in v))
function("@>(anymultirange, anymultirange) bool")(
    lambda v, inner: all(any(_covers(part, item) for part in v) for item in inner)
)
function("&&(anymultirange, anymultirange) bool")(lambda a, b: any(not common(x, y).empty for x in a for y in b))
function("=(anymultirange, anymultirange) bool")(lambda a, b: a == b)
function("<>(anymultirange, anymultirange) bool")(lambda a, b: a != b)


def _range_order(value: Range) -> Any:
    return (0,) if value.empty else (1, t.low_key(value), t.high_key(value))


def _adjacent(a: Range, b: Range) -> bool:
    return not a.empty and not b.empty and a.high is not None and a.high == b.low and a.high_in != b.low_in


@function("+(anyrange, anyrange) anyrange")
def _union(a: Range, b: Range) -> Range:
    if a.empty or b.empty or not common(a, b).empty or _adjacent(a, b) or _adjacent(b, a):
        return t.hull(a, b)
    raise said("22000", "result of range union would not be contiguous")


@function("-(anyrange, anyrange) anyrange")
def _difference(a: Range, b: Range) -> Range:
    rest = _without(a, b)
    if len(rest) > 1:
        raise said("22000", "result of range difference would not be contiguous")
    return rest[0] if rest else _EMPTY


def _without(a: Range, b: Range) -> list[Range]:
    """Return what a range has outside of another: before it, and behind it."""
    if common(a, b).empty:
        return [a] * (not a.empty)
    parts = []
    if t.low_key(a) < t.low_key(b):
        parts.append(Range(a.low, b.low, a.low_in, not b.low_in))
    if t.high_key(b) < t.high_key(a):
        parts.append(Range(b.high, a.high, not b.high_in, a.high_in))
    return parts


def _rest(a: tuple[Range, ...], b: tuple[Range, ...]) -> tuple[Range, ...]:
    parts = list(a)
    for hole in b:
        parts = [piece for part in parts for piece in _without(part, hole)]
    return t.united(parts)


function("-|-(anyrange, anyrange) bool")(lambda a, b: _adjacent(a, b) or _adjacent(b, a))
function("&<(anyrange, anyrange) bool")(lambda a, b: not a.empty and not b.empty and t.high_key(a) <= t.high_key(b))
function("&>(anyrange, anyrange) bool")(lambda a, b: not a.empty and not b.empty and t.low_key(b) <= t.low_key(a))
function("+(anymultirange, anymultirange) anymultirange")(lambda a, b: t.united([*a, *b]))
function("-(anymultirange, anymultirange) anymultirange")(_rest)
function("*(anymultirange, anymultirange) anymultirange")(lambda a, b: t.united([common(x, y) for x in a for y in b]))


# --- network addresses ------------------------------------------------------------------------------------------------


def _within(inner: Any, outer: Any, equal: bool) -> bool:
    if inner.version != outer.version:
        return False
    return bool(inner.network.subnet_of(outer.network)) and (equal or inner.network.prefixlen > outer.network.prefixlen)


function("<<(inet, inet) bool")(lambda a, b: _within(a, b, equal=False))
function("<<=(inet, inet) bool")(lambda a, b: _within(a, b, equal=True))
function(">>(inet, inet) bool")(lambda a, b: _within(b, a, equal=False))
function(">>=(inet, inet) bool")(lambda a, b: _within(b, a, equal=True))
function("&&(inet, inet) bool")(lambda a, b: _within(a, b, equal=True) or _within(b, a, equal=True))


@function("abbrev(cidr) text; abbrev(inet) text", typed=True)
def _abbreviated(context: t.Context, types: tuple[str, ...], value: Any) -> str | None:
    if value is None:
        return None
    if types[0] == "inet":
        return t.write(value, "inet", context)
    if value.version != 4:
        return str(value.network)
    octets = str(value.ip).split(".")[: max((value.network.prefixlen + 7) // 8, 1)]
    return f"{'.'.join(octets)}/{value.network.prefixlen}"


function("host(inet) text")(lambda v: str(v.ip))
function("family(inet) int4")(lambda v: v.version)
function("masklen(inet) int4")(lambda v: v.network.prefixlen)
function("netmask(inet) inet")(lambda v: ipaddress.ip_interface(str(v.netmask)))
function("network(inet) cidr")(lambda v: ipaddress.ip_interface(str(v.network)))
function("broadcast(inet) inet")(
    lambda v: ipaddress.ip_interface(f"{v.network.broadcast_address}/{v.network.prefixlen}")
)


def _merged(a: Any, b: Any) -> Any:
    """Return the smallest network around two addresses."""
    if a.version != b.version:
        raise said("22023", "cannot merge addresses from different families")
    size = min(a.network.prefixlen, b.network.prefixlen)
    equal = a.max_prefixlen - (int(a.ip) ^ int(b.ip)).bit_length()
    return ipaddress.ip_interface(str(ipaddress.ip_network(f"{a.ip}/{min(size, equal)}", strict=False)))


def _moved(address: Any, by: int) -> Any:
    number = int(address.ip) + by
    if not 0 <= number < 1 << address.max_prefixlen:
        raise said("22003", "result is out of range")
    return ipaddress.ip_interface(f"{type(address.ip)(number)}/{address.network.prefixlen}")


def _masked(address: Any, size: int) -> Any:
    size = address.max_prefixlen if size == -1 else size
    if not 0 <= size <= address.max_prefixlen:
        raise said("22023", f"invalid mask length: {size}")
    return ipaddress.ip_interface(f"{address.ip}/{size}")


def _both(a: Any, b: Any, number: int) -> Any:
    if a.version != b.version:
        raise said("22023", "cannot AND inet values of different sizes")
    return ipaddress.ip_interface(f"{type(a.ip)(number)}/{max(a.network.prefixlen, b.network.prefixlen)}")


def _distance(a: Any, b: Any) -> int:
    if a.version != b.version:
        raise said("22023", "cannot subtract inet values of different sizes")
    return conversions.in_range(int(a.ip) - int(b.ip), "int8")


function("hostmask(inet) inet")(lambda v: ipaddress.ip_interface(str(v.hostmask)))
function("set_masklen(inet, int4) inet")(_masked)
function("inet_same_family(inet, inet) bool")(lambda a, b: a.version == b.version)
function("inet_merge(inet, inet) cidr")(_merged)
function("+(inet, int8) inet")(_moved)
function("+(int8, inet) inet")(lambda by, address: _moved(address, by))
function("-(inet, int8) inet")(lambda address, by: _moved(address, -by))
function("-(inet, inet) int8")(_distance)
function("~(inet) inet")(lambda v: _moved(v, (1 << v.max_prefixlen) - 1 - 2 * int(v.ip)))
function("&(inet, inet) inet")(lambda a, b: _both(a, b, int(a.ip) & int(b.ip)))
function("|(inet, inet) inet")(lambda a, b: _both(a, b, int(a.ip) | int(b.ip)))
function("trunc(macaddr) macaddr")(lambda v: v[:8] + ":00" * 3)
function("trunc(macaddr8) macaddr8")(lambda v: v[:8] + ":00" * 5)
function("macaddr8_set7bit(macaddr8) macaddr8")(lambda v: f"{int(v[:2], 16) | 2:02x}{v[2:]}")
