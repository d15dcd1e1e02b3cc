"""Money and geometric values: how PostgreSQL reads and writes them, and what it computes of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.conversions import CONVERSIONS
from dpsql.frontends.pgwire.constants.numbers import COMPARED
from dpsql.frontends.pgwire.constants.resolve import function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said
from dpsql.frontends.pgwire.encodings import float_text
from dpsql.storage.records import dataclass

_CLOSE = 1e-6
"""Numbers nearer than this are equal to geometric operators."""
Point = tuple[float, float]


# --- money ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Money:
    """An amount in cents."""

    cents: int

    def __str__(self) -> str:
        whole, rest = divmod(abs(self.cents), 100)
        return f"{'-' * (self.cents < 0)}${whole:,}.{rest:02}"


def _money(cents: Any) -> Money:
    if not -(1 << 63) <= cents < 1 << 63:
        raise said("22003", "money out of range")
    return Money(int(cents))


def _rounded(value: Any) -> Money:
    """Return an amount of a number, whose half cents go away from zero as numeric's do, or of a double to the even cent."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise said("22003", "money out of range")
        return _money(round(value))
    return _money(int(Decimal(value).to_integral_value("ROUND_HALF_UP")))


_MONEY = re.compile(
    r"\s*(?:(\()\s*|([+-])\s*)?(?:\$\s*)?(?:([+-])\s*)?([\d,]*)(?:\.(\d*))?\s*(?:(\))\s*)?(?:([+-])\s*)?(?:\$\s*)?"
)


def _read_money(text: str) -> Money:
    text = text.strip()  # the pattern may try each of two neighbouring blanks, so it reads short texts alone
    match = None if len(text) > 60 else _MONEY.fullmatch(text)
    if match is None or not (match[4] or match[5]):
        raise ValueError(text)
    negative = bool(match[1]) or "-" in (match[2], match[3], match[7])
    number = Decimal(f"{match[4].replace(',', '') or 0}.{match[5] or 0}") * 100
    cents = int(number.to_integral_value("ROUND_HALF_UP")) * (-1 if negative else 1)
    if not -(1 << 63) <= cents < 1 << 63:
        raise t.Outside
    return Money(cents)


t.READERS["money"] = _read_money
for _sign, _compare in COMPARED.items():
    function(f"{_sign}(money, money) bool")(_compare)
function("+(money, money) money")(lambda a, b: _money(a.cents + b.cents))
function("-(money, money) money")(lambda a, b: _money(a.cents - b.cents))


def _divided(a: int, b: Any) -> Any:
    if b == 0:
        raise said("22012", "division by zero")
    return a / b


function("/(money, money) float8")(lambda a, b: _divided(a.cents, b.cents))
for _type in ("int2", "int4", "int8"):
    function(f"*(money, {_type}) money")(lambda a, b: _money(a.cents * b))
    function(f"*({_type}, money) money")(lambda a, b: _money(a * b.cents))
    function(f"/(money, {_type}) money")(lambda a, b: _money(int(Decimal(_divided(a.cents, b) and a.cents) / b)))
for _type in ("float4", "float8"):
    function(f"*(money, {_type}) money")(lambda a, b: _rounded(a.cents * b))
    function(f"*({_type}, money) money")(lambda a, b: _rounded(a * b.cents))
    function(f"/(money, {_type}) money")(lambda a, b: _rounded(float(_divided(a.cents, b))))


def _add_all(context: t.Context, types: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Money:
    return _money(sum(row[0].cents for row in rows))


function("sum(money) money", kind="aggregate")(_add_all)
for _name, _index in (("min", 0), ("max", -1)):
    function(f"{_name}(money) money", kind="aggregate", sorted_=True)(
        lambda context, types, rows, index=_index: rows[index][0]
    )
for _type in ("int4", "int8", "numeric"):
    CONVERSIONS[_type, "money"] = lambda value, context: _rounded(Decimal(value) * 100)
CONVERSIONS["money", "numeric"] = lambda value, context: Decimal(value.cents).scaleb(-2)


# --- shapes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """A geometric value: its points, and beside them a radius, the numbers of a line, or whether a path is open."""

    type: str
    points: tuple[Point, ...]
    further: tuple[Any, ...] = ()

    def __str__(self) -> str:
        listed = [f"({float_text(x)},{float_text(y)})" for x, y in self.points]
        if self.type == "line":
            return "{" + ",".join(map(float_text, self.further)) + "}"
        if self.type == "circle":
            return f"<{listed[0]},{float_text(self.further[0])}>"
        if self.type == "lseg" or self.further == ("open",):
            return f"[{','.join(listed)}]"
        return f"({','.join(listed)})" if self.type in ("path", "polygon") else ",".join(listed)


_NUMBER = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|[+-]?(?:inf(?:inity)?|nan))\s*"
_PAIR = re.compile(rf"\s*(?:\(\s*)?{_NUMBER},\s*{_NUMBER}(?:\)\s*)?", re.IGNORECASE)
_MOST_POINTS = 10_000
_COUNTS = {"point": 1, "lseg": 2, "box": 2}


def _read_number(text: str) -> float:
    number: float = t.READERS["float8"](text)
    return number


def _coordinates(text: str) -> tuple[Point, ...]:
    """Return the points of a list of them, with or without their brackets."""
    points, position = list[Point](), 0
    while True:
        match = _PAIR.match(text, position)
        if match is None or len(points) >= _MOST_POINTS:
            raise ValueError(text)
        points.append((_read_number(match[1]), _read_number(match[2])))
        position = match.end()
        if position == len(text):
            return tuple(points)
        if text[position] != ",":
            raise ValueError(text)
        position += 1


def _inner(text: str, opening: str) -> str:
    """Return what stands between the brackets around several points."""
    stripped = text.strip()
    closing = {"(": ")", "[": "]", "<": ">", "{": "}"}[opening]
    is_around = stripped[:1] == opening and stripped[-1:] == closing
    if opening == "(" and not re.match(r"\(\s*\(", stripped):
        is_around = is_around and stripped.count("(") == 1
    return stripped[1:-1] if is_around else stripped


def _reader(type_: str) -> Callable[[str], Shape]:
    def read(text: str) -> Shape:
        stripped = text.strip()
        if type_ == "point":
            points = _coordinates(stripped)
        elif type_ == "circle":
            return _read_circle(stripped)
        elif type_ == "line":
            return _read_line(stripped)
        else:
            is_open = stripped.startswith("[") and type_ in ("path", "lseg")
            points = _coordinates(_inner(stripped, "[" if is_open else "("))
            if type_ == "path":
                return Shape(type_, points, ("open",) * is_open)
        if len(points) != _COUNTS.get(type_, len(points)):
            raise ValueError(text)
        return _box(*points) if type_ == "box" else Shape(type_, points)

    return read


def _read_circle(text: str) -> Shape:
    inner = _inner(_inner(text, "<"), "(")
    centre, _, radius = inner.rpartition(",")
    points = _coordinates(centre)
    if len(points) != 1 or _read_number(radius) < 0:
        raise ValueError(text)
    return Shape("circle", points, (_read_number(radius),))


def _read_line(text: str) -> Shape:
    if not text.startswith("{"):
        points = _coordinates(_inner(text, "[" if text.startswith("[") else "("))
        if len(points) != 2:
            raise ValueError(text)
        return _line(*points)
    numbers = tuple(_read_number(part) for part in _inner(text, "{").split(","))
    if len(numbers) != 3:
        raise ValueError(text)
    if numbers[0] == numbers[1] == 0:
        raise said("22P02", "invalid line specification: A and B cannot both be zero")
    return Shape("line", (), numbers)


def _line(first: Point, second: Point) -> Shape:
    if first == second:
        raise said("22023", "invalid line specification: must be two distinct points")
    if _near(first[0], second[0]):
        return Shape("line", (), (-1.0, 0.0, first[0]))
    slope = (first[1] - second[1]) / (first[0] - second[0])
    if slope == 0:
        return Shape("line", (), (0.0, -1.0, first[1]))
    return Shape("line", (), (slope, -1.0, (first[1] - slope * first[0]) or 0.0))


def _box(first: Point, second: Point) -> Shape:
    xs, ys = sorted((first[0], second[0])), sorted((first[1], second[1]))
    return Shape("box", ((xs[1], ys[1]), (xs[0], ys[0])))


for _kind in ("point", "lseg", "box", "path", "polygon", "circle", "line"):
    t.READERS[_kind] = _reader(_kind)


def _near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= _CLOSE


def _distance(a: Point, b: Point) -> float:
    return math.hypot(a[0] - b[0], a[1] - b[1])


def _of_one(type_: str, point: Point) -> Shape:
    return Shape(type_, (point,))


def _point(shape: Shape) -> Point:
    return shape.points[0]


def _edges(shape: Shape) -> list[tuple[Point, Point]]:
    points = shape.points
    following = points[1:] if shape.type == "lseg" or shape.further == ("open",) else (*points[1:], points[0])
    return list(zip(points, following, strict=False))


def _centre(shape: Shape) -> Shape:
    count = len(shape.points)
    return _of_one("point", (sum(p[0] for p in shape.points) / count, sum(p[1] for p in shape.points) / count))


def _twice_area(points: Sequence[Point]) -> float:
    pairs = zip(points, (*points[1:], points[0]), strict=True)
    return abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in pairs))


def _moved(sign: int) -> Callable[[Shape, Shape], Shape]:
    def move(shape: Shape, by: Shape) -> Shape:
        x, y = _point(by)
        return Shape(shape.type, tuple((a + sign * x, b + sign * y) for a, b in shape.points), shape.further)

    return move


def _scaled(shape: Shape, by: Shape) -> Shape:
    x, y = _point(by)
    points = tuple((a * x - b * y, a * y + b * x) for a, b in shape.points)
    if shape.type == "box":
        return _box(*points)
    return Shape(
        shape.type, points, (shape.further[0] * math.hypot(x, y),) if shape.type == "circle" else shape.further
    )


def _in_box(box: Shape, point: Point) -> bool:
    (high_x, high_y), (low_x, low_y) = box.points
    return low_x - _CLOSE <= point[0] <= high_x + _CLOSE and low_y - _CLOSE <= point[1] <= high_y + _CLOSE


function("point(float8, float8) point")(lambda x, y: _of_one("point", (x, y)))
function("box(point, point) box")(lambda a, b: _box(_point(a), _point(b)))
function("box(point) box")(lambda a: _box(_point(a), _point(a)))
function("lseg(point, point) lseg")(lambda a, b: Shape("lseg", (_point(a), _point(b))))
function("line(point, point) line")(lambda a, b: _line(_point(a), _point(b)))
function("circle(point, float8) circle")(lambda a, radius: Shape("circle", a.points, (radius,)))
function("polygon(box) polygon")(lambda v: Shape("polygon", (v.points[1], (v.points[1][0], v.points[0][1]), v.points[0],
                                                            (v.points[0][0], v.points[1][1]))))  # fmt: skip


@function("polygon(path) polygon")
def _closed(path: Shape) -> Shape:
    if path.further:
        raise said("22023", "open path cannot be converted to polygon")
    return Shape("polygon", path.points)


function("path(polygon) path; pclose(path) path")(lambda v: Shape("path", v.points))
function("popen(path) path")(lambda v: Shape("path", v.points, ("open",)))
function("isopen(path) bool")(lambda v: v.further == ("open",))
function("isclosed(path) bool")(lambda v: v.further != ("open",))
function("npoints(path) int4; npoints(polygon) int4; #(path) int4; #(polygon) int4")(lambda v: len(v.points))
function("area(box) float8")(lambda v: (v.points[0][0] - v.points[1][0]) * (v.points[0][1] - v.points[1][1]))
function("area(circle) float8")(lambda v: math.pi * v.further[0] ** 2)
function("area(path) float8")(lambda v: None if v.further else _twice_area(v.points) / 2)
function("center(box) point; point(box) point; @@(box) point; point(lseg) point; @@(lseg) point")(_centre)
function("point(polygon) point; @@(polygon) point")(_centre)
function("center(circle) point; point(circle) point; @@(circle) point")(lambda v: _of_one("point", _point(v)))
function("radius(circle) float8")(lambda v: v.further[0])
function("diameter(circle) float8")(lambda v: 2 * v.further[0])
function("width(box) float8")(lambda v: v.points[0][0] - v.points[1][0])
function("height(box) float8")(lambda v: v.points[0][1] - v.points[1][1])
function("length(lseg) float8; length(path) float8; @-@(lseg) float8; @-@(path) float8")(
    lambda v: math.fsum(_distance(a, b) for a, b in _edges(v))
)
function("diagonal(box) lseg")(lambda v: Shape("lseg", v.points))
function("slope(point, point) float8")(
    lambda a, b: (
        math.inf if _near(_point(a)[0], _point(b)[0]) else (_point(a)[1] - _point(b)[1]) / (_point(a)[0] - _point(b)[0])
    )
)
for _type in ("point", "box", "path", "circle"):
    function(f"+({_type}, point) {_type}")(_moved(1))
    function(f"-({_type}, point) {_type}")(_moved(-1))
    function(f"*({_type}, point) {_type}")(_scaled)
function("<->(point, point) float8")(lambda a, b: _distance(_point(a), _point(b)))
function("<->(box, box) float8")(lambda a, b: _distance(_point(_centre(a)), _point(_centre(b))))
function("<->(circle, circle) float8")(
    lambda a, b: max(_distance(_point(a), _point(b)) - a.further[0] - b.further[0], 0.0)
)
function("<->(point, circle) float8")(lambda a, b: max(_distance(_point(a), _point(b)) - b.further[0], 0.0))
function("~=(point, point) bool")(lambda a, b: all(map(_near, _point(a), _point(b))))
function("~=(box, box) bool")(
    lambda a, b: all(_near(x, y) for p, q in zip(a.points, b.points, strict=True) for x, y in zip(p, q, strict=True))
)
function("@>(box, point) bool")(lambda a, b: _in_box(a, _point(b)))
function("<@(point, box) bool")(lambda a, b: _in_box(b, _point(a)))
function("@>(box, box) bool")(lambda a, b: all(_in_box(a, point) for point in b.points))
function("<@(box, box) bool")(lambda a, b: all(_in_box(b, point) for point in a.points))
function("@>(circle, point) bool")(lambda a, b: _distance(_point(a), _point(b)) <= a.further[0])
function("<@(point, circle) bool")(lambda a, b: _distance(_point(a), _point(b)) <= b.further[0])
function("@>(circle, circle) bool")(
    lambda a, b: _distance(_point(a), _point(b)) <= a.further[0] - b.further[0] + _CLOSE
)
function("&&(circle, circle) bool")(
    lambda a, b: _distance(_point(a), _point(b)) <= a.further[0] + b.further[0] + _CLOSE
)


@function("&&(box, box) bool; ?#(box, box) bool")
def _overlap(a: Shape, b: Shape) -> bool:
    (high_x, high_y), (low_x, low_y) = a.points
    (upper_x, upper_y), (lower_x, lower_y) = b.points
    over_x = low_x <= upper_x + _CLOSE and lower_x <= high_x + _CLOSE
    return over_x and low_y <= upper_y + _CLOSE and lower_y <= high_y + _CLOSE


@function("#(box, box) box")
def _common(a: Shape, b: Shape) -> Shape | None:
    if not _overlap(a, b):
        return None
    highs = tuple(map(min, a.points[0], b.points[0]))
    return _box((highs[0], highs[1]), (max(a.points[1][0], b.points[1][0]), max(a.points[1][1], b.points[1][1])))


_LEFT: dict[str, Callable[[Point, Point], bool]] = {
    "<<": lambda a, b: a[0] + _CLOSE < b[0], ">>": lambda a, b: b[0] + _CLOSE < a[0],
    "<<|": lambda a, b: a[1] + _CLOSE < b[1], "|>>": lambda a, b: b[1] + _CLOSE < a[1],
    "?-": lambda a, b: _near(a[1], b[1]), "?|": lambda a, b: _near(a[0], b[0]),
}  # fmt: skip
for _sign, _test in _LEFT.items():
    function(f"{_sign}(point, point) bool")(lambda a, b, test=_test: test(_point(a), _point(b)))


def _coordinate(shape: Shape, index: int) -> Any:
    """Return what stands at a place of a value that has subscripts from 0."""
    if shape.type == "point":
        return _point(shape)[index] if 0 <= index < 2 else None
    if shape.type not in ("box", "lseg"):
        raise Elsewhere
    return _of_one("point", shape.points[index]) if 0 <= index < 2 else None


for _type, _result in (("point", "float8"), ("box", "point"), ("lseg", "point")):
    function(f"[]({_type}, int4) {_result}")(_coordinate)
