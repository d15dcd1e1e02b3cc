"""Functions and operators of numbers, truth values, bits and comparisons."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Context as DecimalContext
from decimal import Decimal, localcontext
from typing import Any

from dpsql.frontends.pgwire.constants import conversions
from dpsql.frontends.pgwire.constants import types as t
from dpsql.frontends.pgwire.constants.resolve import each, function
from dpsql.frontends.pgwire.constants.tokens import Elsewhere, said

_INTEGERS = ("int2", "int4", "int8")
_FLOATS = ("float4", "float8")
_EXACT = DecimalContext(prec=2 * t.MOST_DIGITS + 50, Emax=10_000, Emin=-10_000)
MOST_SCALE = 16_383


def bounded(value: Decimal) -> Decimal:
    """Return a number if it has not too many digits to be computed with here."""
    if (
        value.is_finite()
        and value
        and (abs(value.adjusted()) > t.MOST_DIGITS or len(value.as_tuple().digits) > t.MOST_DIGITS)
    ):
        raise Elsewhere
    return value


def scale(value: Decimal) -> int:
    """Return the number of digits behind the point."""
    exponent = value.as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _float(value: float, *operands: float) -> float:
    """Return a result, checked as PostgreSQL does: infinite only if an operand is."""
    if math.isinf(value) and not any(map(math.isinf, operands)):
        raise said("22003", "value out of range: overflow")
    return value


def _arithmetic(sign: str, compute: Callable[[Any, Any], Any]) -> Callable[[Decimal, Decimal], Decimal]:
    for index, first in enumerate(_INTEGERS):
        for other, second in enumerate(_INTEGERS):
            result = _INTEGERS[max(index, other)]
            function(f"{sign}({first}, {second}) {result}")(
                lambda a, b, result=result: conversions.in_range(compute(a, b), result)
            )

    @function(f"{sign}(numeric, numeric) numeric")
    def exact(a: Decimal, b: Decimal) -> Decimal:
        if not (a.is_finite() and b.is_finite()):
            raise Elsewhere
        with localcontext(_EXACT):
            return bounded(compute(a, b))

    for first in _FLOATS:
        for second in _FLOATS:
            result = "float4" if first == second == "float4" else "float8"
            call = (
                (lambda a, b: t.single(_float(compute(a, b), a, b)))
                if result == "float4"
                else (lambda a, b: _float(compute(a, b), a, b))
            )
            function(f"{sign}({first}, {second}) {result}")(call)
    return exact


add = _arithmetic("+", lambda a, b: a + b)
_arithmetic("-", lambda a, b: a - b)
multiply = _arithmetic("*", lambda a, b: a * b)
_ZERO = ("22012", "division by zero")


def _whole_quotient(a: int, b: int) -> int:
    if b == 0:
        raise said(*_ZERO)
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


for _index, _first in enumerate(_INTEGERS):
    for _other, _second in enumerate(_INTEGERS):
        _result = _INTEGERS[max(_index, _other)]
        function(f"/({_first}, {_second}) {_result}")(
            lambda a, b, result=_result: conversions.in_range(_whole_quotient(a, b), result)
        )
    each("% mod", (_first,), "({}, {}) {}", lambda a, b: a - _whole_quotient(a, b) * b)


def _float_quotient(a: float, b: float) -> float:
    if b == 0:
        if math.isnan(a):
            return a
        raise said(*_ZERO)
    return _float(a / b, a)


each("/", _FLOATS, "({}, {}) {}", _float_quotient)
function("/(float4, float8) float8; /(float8, float4) float8")(_float_quotient)


def _weight(value: Decimal) -> tuple[int, int]:
    """Return the weight of the first digit to the base 10,000, and this digit."""
    if not value:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(abs(value).scaleb(-4 * weight))


@function("/(numeric, numeric) numeric")
def divide(a: Decimal, b: Decimal) -> Decimal:
    """Divide with as many digits as PostgreSQL keeps: at least 16 that matter."""
    if not (a.is_finite() and b.is_finite()):
        raise Elsewhere
    if not b:
        raise said(*_ZERO)
    (first, digit), (second, other) = _weight(a), _weight(b)
    quotient_weight = first - second - (digit <= other)
    decimals = min(max(16 - quotient_weight * 4, scale(a), scale(b), 0), t.MOST_DIGITS)
    with localcontext(_EXACT):
        return (a / b).quantize(Decimal(1).scaleb(-decimals), "ROUND_HALF_UP")


@function("%(numeric, numeric) numeric; mod(numeric, numeric) numeric")
def _remainder(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise said(*_ZERO)
    with localcontext(_EXACT):
        return bounded(a % b)


@function("div(numeric, numeric) numeric")
def _div(a: Decimal, b: Decimal) -> Decimal:
    if not b:
        raise said(*_ZERO)
    with localcontext(_EXACT):
        return bounded((a // b).quantize(Decimal(1)))


each("-", ("numeric", *_FLOATS), "({}) {}", lambda v: -v)
each("+", t.NUMBERS, "({}) {}", lambda v: v)
each("abs @", ("numeric", *_FLOATS), "({}) {}", abs)
for _type in _INTEGERS:
    each("abs @", (_type,), "({}) {}", lambda v, type_=_type: conversions.in_range(abs(v), type_))
    each("-", (_type,), "({}) {}", lambda v, type_=_type: conversions.in_range(-v, type_))
each("~", _INTEGERS, "({}) {}", lambda v: ~v)
each("&", _INTEGERS, "({}, {}) {}", lambda a, b: a & b)
each("|", _INTEGERS, "({}, {}) {}", lambda a, b: a | b)
each("#", _INTEGERS, "({}, {}) {}", lambda a, b: a ^ b)
for _type, _size in (("int2", 32), ("int4", 32), ("int8", 64)):
    function(f"<<({_type}, int4) {_type}")(lambda a, b, size=_size, type_=_type: _wrapped(a << b % size, type_))
    function(f">>({_type}, int4) {_type}")(lambda a, b, size=_size: a >> b % size)


def _wrapped(value: int, type_: str) -> int:
    most = t.WHOLE[type_]
    return (value + most) % (2 * most) - most


each("ceil ceiling", ("float8",), "({}) {}", lambda v: math.copysign(float(math.ceil(v)), v) if math.isfinite(v) else v)
each("floor", ("float8",), "({}) {}", lambda v: math.copysign(float(math.floor(v)), v) if math.isfinite(v) else v)
each("round", ("float8",), "({}) {}", lambda v: math.copysign(float(round(v)), v) if math.isfinite(v) else v)
each("trunc", ("float8",), "({}) {}", lambda v: math.copysign(float(math.trunc(v)), v) if math.isfinite(v) else v)
each("sign", ("float8",), "({}) {}", lambda v: float((v > 0) - (v < 0)))
each("sign", ("numeric",), "({}) {}", lambda v: Decimal((v > 0) - (v < 0)))
for _names, _rounding in (
    ("ceil ceiling", "ROUND_CEILING"),
    ("floor", "ROUND_FLOOR"),
    ("round", "ROUND_HALF_UP"),
    ("trunc", "ROUND_DOWN"),
):
    each(_names, ("numeric",), "({}) {}", lambda v, rounding=_rounding: _to_decimals(v, 0, rounding))
for _names, _rounding in (("round", "ROUND_HALF_UP"), ("trunc", "ROUND_DOWN")):
    function(f"{_names}(numeric, int4) numeric")(
        lambda v, decimals, rounding=_rounding: _to_decimals(v, decimals, rounding)
    )


def _to_decimals(value: Decimal, decimals: int, rounding: str) -> Decimal:
    if not value.is_finite():
        return value
    if abs(decimals) > t.MOST_DIGITS:
        raise Elsewhere
    with localcontext(_EXACT):
        rounded = value.quantize(Decimal(1).scaleb(-decimals), rounding)
        return rounded if decimals >= 0 else Decimal(int(rounded))


# --- functions of real numbers ----------------------------------------------------------------------------------------


def _of_float(name: str, compute: Callable[[float], float]) -> None:
    def call(value: float) -> float:
        if math.isnan(value):
            return value
        try:
            return _float(compute(value), value)
        except ValueError:
            raise said("22003", "input is out of range") from None
        except OverflowError:
            if name in ("sinh", "cosh"):
                return math.copysign(math.inf, value if name == "sinh" else 1)
            raise said("22003", "value out of range: overflow") from None

    function(f"{name}(float8) float8")(call)


def _root(value: float) -> float:
    if value < 0:
        raise said("2201F", "cannot take square root of a negative number")
    return math.sqrt(value)


def _logarithm(compute: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if value <= 0:
            raise said("2201E", f"cannot take logarithm of {'zero' if value == 0 else 'a negative number'}")
        return compute(value)

    return call


for _name, _compute in {
    "sqrt": _root, "|/": _root, "cbrt": math.cbrt, "||/": math.cbrt, "exp": math.exp, "ln": _logarithm(math.log),
    "dexp": math.exp,
    "log": _logarithm(math.log10), "log10": _logarithm(math.log10), "degrees": math.degrees,
    "radians": math.radians, "sin": math.sin,
    "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan, "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh, "asinh": math.asinh, "acosh": math.acosh, "atanh": math.atanh, "erf": math.erf, "erfc": math.erfc,
    "cot": lambda v: 1 / math.tan(v),
}.items():  # fmt: skip
    _of_float(_name, _compute)
function("atan2(float8, float8) float8")(math.atan2)


# PostgreSQL's functions of degrees, which are exact where the result is a number of few digits.


def _sine_to_30(degrees: float) -> float:
    return math.sin(math.radians(degrees)) / math.sin(math.radians(30)) / 2


def _cosine_to_60(degrees: float) -> float:
    return 1 - (1 - math.cos(math.radians(degrees))) / (1 - math.cos(math.radians(60))) / 2


def _sine(degrees: float) -> float:
    """Return the sine of an angle."""
    sign, degrees = math.copysign(1, degrees), math.fmod(abs(degrees), 360)
    if degrees > 180:
        sign, degrees = -sign, 360 - degrees
    degrees = min(degrees, 180 - degrees)
    return sign * (_sine_to_30(degrees) if degrees <= 30 else _cosine_to_60(90 - degrees))


def _cosine(degrees: float) -> float:
    degrees = math.fmod(abs(degrees), 360)
    degrees, sign = min(degrees, 360 - degrees), 1
    if degrees > 90:
        degrees, sign = 180 - degrees, -1
    return sign * (_cosine_to_60(degrees) if degrees <= 60 else _sine_to_30(90 - degrees))


def _tangent(above: float, below: float) -> float:
    return above / below / (_sine(45) / _cosine(45)) if below else math.copysign(math.inf, above)


def _arc_sine(value: float) -> float:
    size = abs(value)
    small = size <= 0.5
    angle = math.asin(size) / math.asin(0.5) * 30 if small else 90 - math.acos(size) / math.acos(0.5) * 60
    return math.copysign(angle, value)


def _arc_cosine(value: float) -> float:
    size = abs(value)
    angle = 90 - math.asin(size) / math.asin(0.5) * 30 if size <= 0.5 else math.acos(size) / math.acos(0.5) * 60
    return angle if value >= 0 else 180 - angle


for _name, _compute in {
    "sind": _sine, "cosd": _cosine, "asind": _arc_sine, "acosd": _arc_cosine,
    "atand": lambda v: math.atan(v) / math.atan(1) * 45,
}.items():  # fmt: skip
    _of_float(_name, _compute)
function("tand(float8) float8")(lambda v: _tangent(_sine(v), _cosine(v)))
function("cotd(float8) float8")(lambda v: _tangent(_cosine(v), _sine(v)))
function("atan2d(float8, float8) float8")(lambda a, b: math.atan2(a, b) / math.atan(1) * 45)
function("pi() float8")(lambda: math.pi)


@function(
    "power(float8, float8) float8; pow(float8, float8) float8; ^(float8, float8) float8; dpow(float8, float8) float8"
)
def _power(a: float, b: float) -> float:
    if a == 0 and b < 0:
        raise said("2201F", "zero raised to a negative power is undefined")
    if a < 0 and b != math.floor(b):
        raise said("2201F", "a negative number raised to a non-integer power yields a complex result")
    try:
        if (power := float(a**b)) == 0 and a and math.isfinite(b):
            raise said("22003", "value out of range: underflow")
        return power
    except OverflowError:
        raise said("22003", "value out of range: overflow") from None


def _with_decimals(value: Decimal, decimals: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-min(max(decimals, 0), t.MOST_DIGITS)), "ROUND_HALF_UP")


@function("sqrt(numeric) numeric")
def root(value: Decimal) -> Decimal:
    """Return a square root with as many digits as PostgreSQL keeps."""
    if value < 0:
        raise said("2201F", "cannot take square root of a negative number")
    weight = _weight(value)[0]
    with localcontext(_EXACT) as context:
        context.prec = 1100
        half = (weight + 1) * 2 - 1 if weight >= 0 else weight * 2 + 1
        return _with_decimals(value.sqrt(), max(16 - half, scale(value)))


@function("exp(numeric) numeric")
def _numeric_exp(value: Decimal) -> Decimal:
    if abs(value) > 1000:
        raise Elsewhere
    with localcontext(_EXACT) as context:
        context.prec = 500
        return _with_decimals(value.exp(), max(16 - int(float(value) * 0.434294481903252), scale(value)))


def _ln_weight(value: Decimal) -> int:
    """Return PostgreSQL's estimate of the decimal weight of a logarithm."""
    if Decimal("0.9") <= value <= Decimal("1.1"):
        return (value - 1).adjusted() if value != 1 else 0
    logarithm = abs(math.log(float(value))) if value.adjusted() < 300 else abs(value.adjusted() * 2.302585)
    return int(math.log10(logarithm))


def _positive(value: Decimal) -> Decimal:
    if value <= 0:
        raise said("2201E", f"cannot take logarithm of {'zero' if value == 0 else 'a negative number'}")
    return value


@function("ln(numeric) numeric")
def _numeric_ln(value: Decimal) -> Decimal:
    with localcontext(_EXACT) as context:
        context.prec = 100
        return _with_decimals(_positive(value).ln(), max(16 - _ln_weight(value), scale(value)))


@function("log(numeric) numeric; log10(numeric) numeric")
def _numeric_log(value: Decimal) -> Decimal:
    logarithm: Decimal = _log_of(Decimal(10), _positive(value))
    return logarithm


@function("log(numeric, numeric) numeric")
def _log_of(base: Decimal, value: Decimal) -> Decimal:
    _positive(base), _positive(value)
    with localcontext(_EXACT) as context:
        context.prec = 100
        if base == 1:
            raise said(*_ZERO)
        weight = _ln_weight(value) - _ln_weight(base)
        return _with_decimals(value.ln() / base.ln(), max(16 - weight, scale(base), scale(value)))


@function("power(numeric, numeric) numeric; pow(numeric, numeric) numeric; ^(numeric, numeric) numeric")
def _numeric_power(a: Decimal, b: Decimal) -> Decimal:
    if a == 0 and b < 0:
        raise said("2201F", "zero raised to a negative power is undefined")
    if a < 0 and b != b.to_integral_value():
        raise said("2201F", "a negative number raised to a non-integer power yields a complex result")
    weight = float(b) * (float(abs(a).log10()) if a else 0)
    if not -300 < weight < 300:
        raise Elsewhere
    with localcontext(_EXACT) as context:
        context.prec = 400
        return _with_decimals(a**b, max(16 - int(weight), scale(a), scale(b)))


@function("factorial(int8) numeric")
def _factorial(value: int) -> Decimal:
    if value < 0:
        raise said("22003", "factorial of a negative number is undefined")
    if value > 400:
        raise Elsewhere
    return Decimal(math.factorial(value))


each("gcd", ("int4", "int8"), "({}, {}) {}", math.gcd)


@function("gcd(numeric, numeric) numeric")
def _common_divisor(a: Decimal, b: Decimal) -> Decimal:
    if not (a.is_finite() and b.is_finite()):
        return Decimal("NaN")
    places = max(scale(a), scale(b))
    numbers = (int(bounded(value).scaleb(places, _EXACT)) for value in (a, b))
    return Decimal(math.gcd(*numbers)).scaleb(-places, _EXACT)


@function("width_bucket(anycompatible, anycompatiblearray) int4", typed=True)
def _bucket_of(context: t.Context, types: tuple[str, ...], value: Any, limits: list[Any] | None) -> int | None:
    if value is None or limits is None:
        return None
    if None in limits:
        raise said("22004", "thresholds array must not contain NULLs")
    return sum(bool(_key(limit) <= _key(value)) for limit in limits)


each("lcm", ("int4",), "({}, {}) {}", lambda a, b: conversions.in_range(math.lcm(a, b), "int4"))
each("lcm", ("int8",), "({}, {}) {}", lambda a, b: conversions.in_range(math.lcm(a, b), "int8"))


function("scale(numeric) int4")(lambda v: scale(v) if v.is_finite() else None)
function("min_scale(numeric) int4")(lambda v: max(scale(v.normalize()), 0))
function("trim_scale(numeric) numeric")(lambda v: _to_decimals(v, max(scale(v.normalize()), 0), "ROUND_DOWN"))


@function("setseed(float8) void")
def _seed(value: float) -> str:
    """Refuse a seed outside of its range; numbers are drawn anew all the same."""
    if not -1 <= value <= 1:
        raise said("22023", f"setseed parameter {value:g} is out of allowed range [-1,1]")
    return ""


function("random() float8", strict=False)(lambda: __import__("random").random())


@function("width_bucket(float8, float8, float8, int4) int4; width_bucket(numeric, numeric, numeric, int4) int4")
def _bucket(value: Any, low: Any, high: Any, count: int) -> int:
    if count <= 0:
        raise said("2201G", "count must be greater than zero")
    if low == high:
        raise said("2201G", "lower bound cannot equal upper bound")
    share = (value - low) / (high - low)
    return conversions.in_range(0 if share < 0 else count + 1 if share >= 1 else int(share * count) + 1, "int4")


# --- comparisons ------------------------------------------------------------------------------------------------------


def _lsn_number(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def _key(value: Any) -> Any:
    """Return what a value is compared by: NULLs in arrays are last, and NaN is greater than all numbers."""
    if isinstance(value, list):
        return [(item is None, () if item is None else _key(item)) for item in value]
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    if isinstance(value, Decimal):
        return (value.is_nan(), Decimal(0) if value.is_nan() else value)
    return value


def _compared(keys: Callable[[Any], Any], types: tuple[str, ...]) -> None:
    for sign, compare in COMPARED.items():
        each(sign, types, "({}, {}) bool", lambda a, b, compare=compare: compare(keys(a), keys(b)))


_compared(_key, ("numeric", "float4", "float8", "anyarray"))
_compared(
    lambda v: v,
    ("bool", "text", "name", "bytea", "oid", "uuid", "time", "macaddr", "macaddr8", "bit", "varbit", "char"),
)
_compared(lambda v: v.rstrip(" "), ("bpchar",))
_compared(lambda v: v, ("xid8",))
_compared(_lsn_number, ("pg_lsn",))
_compared(lambda v: tuple(map(int, v.strip("()").split(","))), ("tid",))
function("-(pg_lsn, pg_lsn) numeric; pg_wal_lsn_diff(pg_lsn, pg_lsn) numeric")(
    lambda a, b: Decimal(_lsn_number(a) - _lsn_number(b))
)
for _kind in ("xid", "cid"):
    function(f"=({_kind}, {_kind}) bool")(lambda a, b: a == b)
function("=(xid, int4) bool")(lambda a, b: a == b)
function("<>(xid, xid) bool; <>(xid, int4) bool")(lambda a, b: a != b)
_compared(lambda v: v.order, ("interval",))
_compared(lambda v: v.micros - v.offset * 10**6, ("timetz",))
_compared(lambda v: (v.version, int(v.network.network_address), v.network.prefixlen, int(v.ip)), ("inet",))
for _sign, _compare in COMPARED.items():
    for _first in _INTEGERS:
        for _second in _INTEGERS:
            function(f"{_sign}({_first}, {_second}) bool")(_compare)
    function(f"{_sign}(float4, float8) bool; {_sign}(float8, float4) bool")(
        lambda a, b, compare=_compare: compare(_key(a), _key(b))
    )
    function(f"{_sign}(name, text) bool; {_sign}(text, name) bool")(_compare)


function("||(varbit, varbit) varbit")(lambda a, b: a + b)
function("length(bit) int4; bit_length(bit) int4")(len)
function("octet_length(bit) int4")(lambda v: (len(v) + 7) // 8)
function("bit_count(bit) int8")(lambda v: v.count("1"))


def _checked(index: int, size: int, name: str = "bit") -> int:
    if not 0 <= index < size:
        raise said("2202E", f"{name} index {index} out of valid range, 0..{size - 1}")
    return index


@function("get_bit(bit, int4) int4")
def _bit(value: str, index: int) -> int:
    return int(value[_checked(index, len(value))])


@function("set_bit(bit, int4, int4) bit")
def _with_bit(value: str, index: int, bit: int) -> str:
    if bit not in (0, 1):
        raise said("22023", "new bit must be 0 or 1")
    return value[: _checked(index, len(value))] + str(bit) + value[index + 1 :]


@function("get_bit(bytea, int8) int4")
def _bit_of_bytes(value: bytes, index: int) -> int:
    return value[_checked(index, 8 * len(value), "index") // 8] >> index % 8 & 1


@function("set_bit(bytea, int8, int4) bytea")
def _bytes_with_bit(value: bytes, index: int, bit: int) -> bytes:
    number, mask = value[_checked(index, 8 * len(value), "index") // 8], 1 << index % 8
    if bit not in (0, 1):
        raise said("22023", "new bit must be 0 or 1")
    changed = number | mask if bit else number & ~mask
    return value[: index // 8] + bytes([changed]) + value[index // 8 + 1 :]


@function("set_byte(bytea, int4, int4) bytea")
def _bytes_with(value: bytes, index: int, byte: int) -> bytes:
    return value[: _checked(index, len(value), "index")] + bytes([byte & 255]) + value[index + 1 :]


function("bit_count(bytea) int8")(lambda v: int.from_bytes(v).bit_count())
function("~(bit) bit")(lambda v: v.translate(str.maketrans("01", "10")))
function(">>(bit, int4) bit")(lambda v, count: _shifted(v, -count))


@function("<<(bit, int4) bit")
def _shifted(bits: str, count: int) -> str:
    """Return bits moved to the left."""
    return bits[count:].ljust(len(bits), "0") if count >= 0 else bits[:count].rjust(len(bits), "0")


for _name, _word, _joined in (("&", "AND", operator.and_), ("|", "OR", operator.or_), ("#", "XOR", operator.xor)):

    @function(f"{_name}(bit, bit) bit")
    def _of_bits(a: str, b: str, word: str = _word, joined: Callable[[int, int], int] = _joined) -> str:
        if len(a) != len(b):
            raise said("22026", f"cannot {word} bit strings of different sizes")
        return f"{joined(int(a, 2), int(b, 2)):0{len(a)}b}" if a else ""
