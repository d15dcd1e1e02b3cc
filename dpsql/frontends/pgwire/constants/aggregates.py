"""Aggregates and window functions: each is called with the context, the types of its arguments and a list of their values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import Any

from dpsql.frontends.pgwire.constants import bounds, numbers
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.clocks import mean_span
from dpsql.frontends.pgwire.constants.collections_of_values import common
from dpsql.frontends.pgwire.constants.conversions import converter, in_range
from dpsql.frontends.pgwire.constants.documents import to_json
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import said

Values = list[tuple[Any, ...]]
_ORDERED = ("int2", "int4", "int8", "oid", "numeric", "float4", "float8", "text", "bpchar", "date", "time", "timetz", "timestamp",
            "timestamptz", "interval", "inet", "anyarray")  # fmt: skip


def _aggregate(signatures: str, call: Callable[[list[Any]], Any], **options: Any) -> None:
    """Register an aggregate of one argument, called with the values of this argument."""
    function(signatures, kind="aggregate", **options)(lambda context, types, rows: call([row[0] for row in rows]))


def _exact(values: list[Any]) -> Decimal:
    total = Decimal(0)
    for value in values:
        bounds.step()
        total = numbers.add(total, Decimal(value))
    return total


def _mean(values: list[Any]) -> Decimal:
    mean: Decimal = numbers.divide(_exact(values), Decimal(len(values)))
    return mean


function("count() int8; count(any) int8", kind="aggregate", strict=False)(
    lambda context, types, rows: sum(not row or row[0] is not None for row in rows)
)
_aggregate("sum(int2) int8; sum(int4) int8", lambda values: in_range(sum(values), "int8"))
_aggregate("sum(int8) numeric; sum(numeric) numeric", _exact)
_aggregate("sum(float4) float4", lambda values: t.single(sum(values)))
_aggregate("sum(float8) float8", sum)
_aggregate("sum(interval) interval", lambda values: reduce(lambda a, b: a.plus(b), values))
_aggregate("avg(int2) numeric; avg(int4) numeric; avg(int8) numeric; avg(numeric) numeric", _mean)
_aggregate("avg(float4) float8; avg(float8) float8", lambda values: sum(values) / len(values))
_aggregate("avg(interval) interval", mean_span)
_aggregate("bool_and(bool) bool; every(bool) bool", all)
_aggregate("bool_or(bool) bool", any)
_aggregate("range_agg(anyrange) anymultirange", t.united)
_aggregate("range_intersect_agg(anyrange) anyrange", lambda values: reduce(common, values))
for _type in ("int2", "int4", "int8"):
    _aggregate(f"bit_and({_type}) {_type}", lambda values: reduce(lambda a, b: a & b, values))
    _aggregate(f"bit_or({_type}) {_type}", lambda values: reduce(lambda a, b: a | b, values))
    _aggregate(f"bit_xor({_type}) {_type}", lambda values: reduce(lambda a, b: a ^ b, values))
for _type in _ORDERED:
    function(f"min({_type}) {_type}", kind="aggregate", sorted_=True)(lambda context, types, rows: rows[0][0])
    function(f"max({_type}) {_type}", kind="aggregate", sorted_=True)(lambda context, types, rows: rows[-1][0])
_aggregate("any_value(anyelement) anyelement", lambda values: values[0])
_aggregate("array_agg(anynonarray) anyarray", lambda values: values or None, strict=False)


@function("array_agg(anyarray) anyarray", kind="aggregate", strict=False)
def _arrays(context: t.Context, types: tuple[str, ...], rows: Values) -> list[Any] | None:
    if any(not row[0] for row in rows):
        null = any(row[0] is None for row in rows)
        raise said("22004" if null else "2202E", f"cannot accumulate {'null' if null else 'empty'} arrays")
    sizes = {tuple(high - low for low, high in t.bounds_of(row[0])) for row in bounds.counted(rows)}
    if len(sizes) > 1:
        raise said("2202E", "cannot accumulate arrays of different dimensionality")
    return [row[0] for row in rows] or None


@function("string_agg(text, text) text; string_agg(bytea, bytea) bytea", kind="aggregate", strict=False)
def _joined(context: t.Context, types: tuple[str, ...], rows: Values) -> Any:
    present = [row for row in rows if row[0] is not None]
    if not present:
        return None
    empty = present[0][0][:0]
    return empty.join(
        part for row in present for part in ((row[1] or empty) if row is not present[0] else empty, row[0])
    )


for _prefix in ("json", "jsonb"):

    @function(f"{_prefix}_agg(anyelement) {_prefix}", kind="aggregate", strict=False)
    def _listed(context: t.Context, types: tuple[str, ...], rows: Values, prefix: str = _prefix) -> Any:
        between = ", \n " if types[0] == "record" or types[0].startswith("_") else ", "
        parts = ((", " if row[0] is None else between) + to_json(context, row[0], types[0]) for row in rows)
        text = "[" + "".join(parts).removeprefix(between).removeprefix(", ") + "]"
        return None if not rows else t.Json(t.read_json(text)) if prefix == "jsonb" else text

    @function(f"{_prefix}_object_agg(any, any) {_prefix}", kind="aggregate", strict=False)
    def _keyed(context: t.Context, types: tuple[str, ...], rows: Values, prefix: str = _prefix) -> Any:
        if any(key is None for key, _ in rows):
            words = ("22004", "null value not allowed for object key"), ("22023", "field name must not be null")
            raise said(*words[prefix == "jsonb"])
        if types[0] in ("record", "json", "jsonb") or types[0].startswith("_"):
            raise said("22023", "key value must be scalar, not array, composite, or json")
        as_text = converter(types[0], "text", context)
        pairs = [f"{t.quoted_json(as_text(key))} : {to_json(context, value, types[1])}" for key, value in rows]
        text = "{ " + ", ".join(pairs) + " }"
        return None if not rows else t.Json(t.read_json(text)) if prefix == "jsonb" else text


# --- statistics -------------------------------------------------------------------------------------------------------


def _spread(values: list[Any], divisor: int) -> Any:
    """Return the variance with this divisor; None if it is 0."""
    if divisor == 0:
        return None
    if isinstance(values[0], float):
        mean = math.fsum(values) / len(values)
        return math.fsum((value - mean) ** 2 for value in values) / divisor
    total, squares = _exact(values), _exact([numbers.multiply(Decimal(v), Decimal(v)) for v in values])
    moment = numbers.multiply(squares, Decimal(len(values))) - numbers.multiply(total, total)
    return numbers.divide(moment, Decimal(len(values) * divisor)) if moment > 0 else Decimal(0)


def _root(value: Any) -> Any:
    return value if not value else math.sqrt(value) if isinstance(value, float) else numbers.root(value)


def _spreads(names: str, less: int, final: Callable[[Any], Any]) -> None:
    for name, type_ in itertools.product(names.split(), t.NUMBERS):
        result = "float8" if type_.startswith("float") else "numeric"
        _aggregate(f"{name}({type_}) {result}", lambda values: final(_spread(values, len(values) - less)))


_spreads("var_samp variance", 1, lambda variance: variance)
_spreads("var_pop", 0, lambda variance: variance)
_spreads("stddev_samp stddev", 1, _root)
_spreads("stddev_pop", 0, _root)


def _moments(rows: Values) -> tuple[float, float, float, float, float]:
    """Return the means of x and y, and the sums of squares and products around them; arguments are (y, x)."""
    mean_x, mean_y = (math.fsum(row[k] for row in rows) / len(rows) for k in (1, 0))
    squares_x, squares_y = (math.fsum((row[k] - mean) ** 2 for row in rows) for k, mean in ((1, mean_x), (0, mean_y)))
    return mean_x, mean_y, squares_x, squares_y, math.fsum((y - mean_y) * (x - mean_x) for y, x in rows)


def _quotient(a: float, b: float) -> float | None:
    return a / b if b else None


_PAIRS: dict[str, Callable[[int, float, float, float, float, float], Any]] = {
    "corr": lambda n, mx, my, xx, yy, xy: _quotient(xy, math.sqrt(xx * yy)),
    "covar_pop": lambda n, mx, my, xx, yy, xy: xy / n,
    "covar_samp": lambda n, mx, my, xx, yy, xy: _quotient(xy, n - 1),
    "regr_slope": lambda n, mx, my, xx, yy, xy: _quotient(xy, xx),
    "regr_intercept": lambda n, mx, my, xx, yy, xy: (n * my - n * mx * xy / xx) / n if xx else None,
    "regr_r2": lambda n, mx, my, xx, yy, xy: None if not xx else 1.0 if not yy else xy * xy / (xx * yy),
    "regr_sxx": lambda n, mx, my, xx, yy, xy: xx, "regr_syy": lambda n, mx, my, xx, yy, xy: yy,
    "regr_sxy": lambda n, mx, my, xx, yy, xy: xy,
    "regr_avgx": lambda n, mx, my, xx, yy, xy: mx, "regr_avgy": lambda n, mx, my, xx, yy, xy: my,
}  # fmt: skip
for _name, _pair in _PAIRS.items():
    function(f"{_name}(float8, float8) float8", kind="aggregate")(
        lambda context, types, rows, pair=_pair: pair(len(rows), *_moments(rows))
    )

function("regr_count(float8, float8) int8", kind="aggregate", strict=False)(
    lambda context, types, rows: sum(None not in row for row in rows)
)


def _discrete(share: float, values: list[Any]) -> Any:
    return values[max(math.ceil(share * len(values)) - 1, 0)]


def _continuous(share: float, values: list[Any]) -> float:
    index = share * (len(values) - 1)
    low, high = values[math.floor(index)], values[math.ceil(index)]
    return float(low + (high - low) * (index - math.floor(index)))


def _percentile(signatures: str, pick: Callable[[float, list[Any]], Any]) -> None:
    """Register an aggregate that is called with a share, or with an array of them, and sorted values."""

    @function(signatures, kind="aggregate", within=True)
    def percentile(context: t.Context, types: tuple[str, ...], rows: Values) -> Any:
        shares, values = rows[0][0], [row[1] for row in rows]
        for share in shares if isinstance(shares, list) else [shares]:
            if share is not None and not 0 <= share <= 1:
                raise said("22003", f"percentile value {share:g} is not between 0 and 1")
        if not isinstance(shares, list):
            return pick(shares, values)
        return [None if share is None else pick(share, values) for share in shares]


_percentile("percentile_disc(float8, anyelement) anyelement; percentile_disc(_float8, anyelement) anyarray", _discrete)
_percentile("percentile_cont(float8, float8) float8; percentile_cont(_float8, float8) _float8", _continuous)


@function("mode(anyelement) anyelement", kind="aggregate", within=True)
def _mode(context: t.Context, types: tuple[str, ...], rows: Values) -> Any:
    counts = Counter(str(row[0]) for row in rows)
    return max(rows, key=lambda row: counts[str(row[0])])[0]


# --- windows ----------------------------------------------------------------------------------------------------------


def _window(signatures: str, call: Callable[[Values, list[Any]], list[Any]]) -> None:
    """Register a window function, called with the arguments for each row of a part and with what the order compares."""
    function(signatures, kind="window", strict=False)(lambda context, types, rows, peers: call(rows, peers))


def _ranked(signature: str, rank: Callable[[int, int, int, int], Any]) -> None:
    """Register a rank: of the number of rows before the peers of a row, of different peers before, of rows up to its last peer,
    and of rows in all. Each is looked up, as the time must grow with the rows alone."""

    def values(rows: Values, peers: list[Any]) -> list[Any]:
        lasts = {peer: k for k, peer in enumerate(peers, 1)}
        firsts = {peer: len(peers) - k for k, peer in enumerate(reversed(peers), 1)}
        different = {peer: k for k, peer in enumerate(firsts)}
        return [rank(firsts[peer], len(different) - 1 - different[peer], lasts[peer], len(peers)) for peer in peers]

    _window(signature, values)


_window("row_number() int8", lambda rows, peers: list(range(1, len(rows) + 1)))
_ranked("rank() int8", lambda before, different, last, count: before + 1)
_ranked("dense_rank() int8", lambda before, different, last, count: different + 1)
_ranked("percent_rank() float8", lambda before, different, last, count: before / max(count - 1, 1))
_ranked("cume_dist() float8", lambda before, different, last, count: last / count)
_window("first_value(anyelement) anyelement", lambda rows, peers: [rows[0][0]] * len(rows))


def _last_values(rows: Values, peers: list[Any]) -> list[Any]:
    lasts = {peer: k for k, peer in enumerate(peers)}
    return [rows[lasts[peer]][0] for peer in peers]


_window("last_value(anyelement) anyelement", _last_values)


def _moved(sign: int) -> Callable[[Values, list[Any]], list[Any]]:
    def values(rows: Values, peers: list[Any]) -> list[Any]:
        results = list[Any]()
        for k, (_, *rest) in enumerate(rows):
            by, default = rest[0] if rest else 1, rest[1] if len(rest) > 1 else None
            index = -1 if by is None else k + sign * by
            results.append(None if by is None else rows[index][0] if 0 <= index < len(rows) else default)
        return results

    return values


for _name, _sign in (("lag", -1), ("lead", 1)):
    _window(
        f"{_name}(anyelement) anyelement; {_name}(anyelement, int4) anyelement; "
        f"{_name}(anycompatible, int4, anycompatible) anycompatible",
        _moved(_sign),
    )


def _tiles(rows: Values, peers: list[Any]) -> list[Any]:
    count = rows[0][0]
    if count is None:
        return [None] * len(rows)
    if count <= 0:
        raise said("22014", "argument of ntile must be greater than zero")
    size, more = divmod(len(rows), count)
    return [k // (size + 1) + 1 if k < more * (size + 1) else (k - more) // max(size, 1) + 1 for k in range(len(rows))]


_window("ntile(int4) int4", _tiles)


def _nth_values(rows: Values, peers: list[Any]) -> list[Any]:
    if any(row[1] is not None and row[1] <= 0 for row in rows):
        raise said("22016", "argument of nth_value must be greater than zero")
    lasts = {peer: k for k, peer in enumerate(peers, 1)}
    return [
        rows[row[1] - 1][0] if row[1] is not None and row[1] <= lasts[peer] else None
        for row, peer in zip(rows, peers, strict=True)
    ]


_window("nth_value(anyelement, int4) anyelement", _nth_values)


def framed(
    rows: list[Any],
    peers: list[Any],
    frame: tuple[str, float, float] | None,
    edges: list[list[int] | None],
    measure: Callable[[list[Any]], Any],
    merge: Callable[[Any, Any], Any] | None,
    excluded: str = "",
) -> list[Any]:
    """Return an aggregate of the frame of each row; without one it is of the rows up to the last peer. `edges`: where frames
    begin and end if that is known. `merge`: how that of the rows that a frame has beyond the one before is added to it."""
    word, low, high = frame or ("range", -math.inf, 0)
    firsts = {peer: len(peers) - k for k, peer in enumerate(reversed(peers), 1)}
    lasts = {peer: k for k, peer in enumerate(peers, 1)}
    groups, spans = (
        {peer: number for number, peer in enumerate(lasts)},
        [(firsts[p], stop) for p, stop in lasts.items()],
    )
    results, before, last = list[Any](), (0, 0), measure([])
    for k, peer in enumerate(peers):
        if word == "groups":
            first, last_one = max(groups[peer] + low, 0), min(groups[peer] + high, len(spans) - 1)
            start, stop = (spans[int(first)][0], spans[int(last_one)][1]) if first <= last_one else (0, 0)
        else:
            start, stop = (firsts[peer], lasts[peer]) if word == "range" else (k, k + 1)
            start = 0 if low == -math.inf else max(start + int(low), 0) if low < math.inf else len(rows)
            stop = len(rows) if high == math.inf else max(stop + int(high), 0) if high > -math.inf else 0
            start = start if edges[0] is None else edges[0][k]
            stop = max(start, stop if edges[1] is None else edges[1][k])
        if excluded:
            out = (
                {k}
                if excluded == "current row"
                else set(range(firsts[peer], lasts[peer])) - ({k} if excluded == "ties" else set())
            )
            results.append(
                measure([rows[number] for number in range(start, min(stop, len(rows))) if number not in out])
            )
            continue
        if merge is not None and start == before[0] and stop > before[1]:
            further = measure(rows[before[1] : stop])
            last = further if last is None else last if further is None else merge(last, further)
        elif (start, stop) != before:
            last = measure(rows[start:stop])
        before = start, stop
        results.append(last)
    return results
