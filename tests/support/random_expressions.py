"""Random row expressions over columns of every type, and rows full of values that break naive code."""

import math
import random
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from dpsql.functions import numeric as functions
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import Call, Column, Expr, Literal

I, R, T, B, D, S = Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP  # noqa: E741
COLUMNS = {
    f"{type_.value}{number}": Column(f"{type_.value}{number}", Facts(type_))
    for type_ in (I, R, T, B, D, S)
    for number in (1, 2)
}
INTEGERS = (
    0, 1, -1, 2, 3, 7, 10, -10, 12, 99, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**62, -(2**63) + 1,
)  # fmt: skip
REALS = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999999999999994, 0.1, 1 / 3, 1e-320, 5e-324, -1e-310, 1e300,
    -1e300, 1.7976931348623157e308, -1.7976931348623157e308, math.inf, -math.inf, math.nan, 9.2233720368547758e18,
    -9.2233720368547758e18, 4503599627370497.5, 123.456, -7.005, 2.675,
)  # fmt: skip
TEXTS = (
    "", " ", "a", "A", "abc", "north", "  pad  ", "\u00a0nb\u00a0", "\tx\t", "äß", "İstanbul", "ΣΑΣ", "日本", "👍🏽",
    "e\u0301",
    "%", "_", "a%b_c", "\\", "'", '"', "12", " 12 ", "-7", "+5", "1e3", "1.5", ".5", "1_0", "0x10", "nan",
    "infinity", "-inf",
    "1e999", "9223372036854775808", "2024-02-29", "2023-02-29", "2024-1-5", "20240105", "0000-01-01", "10000-01-01",
    "epoch",
    "2024-01-05 10:00", "a\x00b", "١٢", "ı", "ſ", "K",
)  # fmt: skip
BOOLEANS = (True, False)
DATES = (
    date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(2023, 12, 31),
    date(2024, 1, 1), date(2020, 12, 28), date(2021, 1, 3), date(1900, 3, 1), date(2000, 2, 29), date(1, 1, 7),
    date(4, 2, 29),
)  # fmt: skip
TIMESTAMPS = (
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(1969, 12, 31, 23,
    59, 59, 1),
    datetime(2024, 2, 29, 12, 34, 56, 789000), datetime(2023, 12, 31, 23, 30), datetime(2024, 1, 1, 0, 30),
    datetime(1960, 5, 5, 5, 5, 5),
    datetime(2024, 1, 31, 0, 0, 0, 1),
)  # fmt: skip
POOLS: dict[Type, Sequence[Any]] = {I: INTEGERS, R: REALS, T: TEXTS, B: BOOLEANS, D: DATES, S: TIMESTAMPS}
PATTERNS = (
    "", "%", "_", "a%", "%a", "%b%", "_%_", "a%b_c", "İ%", "i%", "Σ%", "\\%", "%%", "__", "äß", "ÄSS", "k", "K", "s",
)  # fmt: skip

REGULAR = (
    "", "a", "^a", "b$", "a+b?", "[0-9]+", r"\d{1,3}", "(?i)äß", "[^a-z]", ".", "(a|b)*", r"\s", "^$", r"\bab\b", "x*", "(?s).",
    "[[:alpha:]]", r"\p{Lu}", "(?i)k", r"\.", "^.{2}",
)  # fmt: skip
FORMATS = ("%Y-%m-%d", "%Y", "%b %y", "%A, %d. %B", "%H:%M:%S", "%j%%", "%I %p", "%a", "week", "%m")

Maker = Callable[[random.Random], Expr]
Spec = tuple[str, Type, tuple[Type | Maker, ...]]


def literal(value: Any) -> Literal:
    return Literal(value, literal_facts(value))


def one_of(*values: Any) -> Maker:
    return lambda rng: literal(rng.choice(values))


def random_value(rng: random.Random, type_: Type) -> Any:
    """Return a random value of `type_`: in half of the cases, from the list of difficult values."""
    if rng.random() < 0.5:
        return rng.choice(POOLS[type_])
    if type_ is I:
        return rng.choice((rng.randint(-20, 20), rng.randint(-(2**63), 2**63 - 1)))
    if type_ is R:
        return rng.choice(
            (rng.uniform(-20, 20), rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300), float(rng.randint(-9, 9)) / 8)
        )
    if type_ is T:
        return "".join(rng.choice("abAB %_12é İß") for _ in range(rng.randint(0, 6)))
    if type_ is D:
        return date(1, 1, 1) + timedelta(days=rng.randint(0, 3652058))
    if type_ is S:
        return datetime(1, 1, 1) + timedelta(seconds=rng.randint(0, 315537897599), microseconds=rng.randint(0, 999999))
    return rng.choice(BOOLEANS)


def random_rows(rng: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {name: None if rng.random() < 0.1 else random_value(rng, column.facts.type) for name, column in COLUMNS.items()}
        for _ in range(count)
    ]


def literal_of(type_: Type) -> Maker:
    """Return a generator of literals that SQL text can express: neither NaN nor infinity; reals are exact decimals."""

    def make(rng: random.Random) -> Expr:
        value = random_value(rng, type_)
        if isinstance(value, float):
            return literal(Fraction(value) if math.isfinite(value) and abs(value) < 1e300 else Fraction(1, 10))
        return literal(value)

    return make


ANGLES = ("sin", "cos", "tan", "asin", "acos", "atan", "radians", "degrees")


def _specs() -> list[Spec]:
    """Return every registered function with every choice of argument types (fixed literals where it accepts only these)."""
    specs: list[Spec] = []
    for name in ("add", "sub", "mul"):
        specs += [(name, I, (I, I)), (name, R, (R, R)), (name, R, (I, R)), (name, R, (R, I))]
    specs += [("div", R, (a, b)) for a in (I, R) for b in (I, R)]
    specs += [
        ("intdiv", I, (I, I)),
        ("mod", I, (I, I)),
        ("mod", I, (I, one_of(1, -1, 7, 10))),
        ("intdiv", I, (I, one_of(-1, 10))),
    ]
    for name in ("neg", "abs", "floor", "ceil", "round"):
        specs += [(name, I, (I,)), (name, R, (R,))]
    specs += [
        ("round", R, (R, one_of(0, 1, 2, 5, 15))),
        ("round", I, (I, one_of(0, 2))),
        ("sign", I, (I,)),
        ("sign", I, (R,)),
    ]
    specs += [(name, R, (a,)) for name in ("sqrt", "ln", "log10", "exp", *ANGLES) for a in (I, R)]
    specs += [("atan2", R, (a, b)) for a in (I, R) for b in (I, R)]
    specs += [("power", R, (a, b)) for a in (I, R) for b in (I, R, one_of(0, 1, 2, 3, 8, -1, Fraction(1, 2)))]
    specs += [("clamp", I, (I, one_of(-5, 0, 3), one_of(3, 9, 2**62)))]
    specs += [("clamp", R, (a, one_of(Fraction(-5), 0), one_of(Fraction(7, 2), 10**6))) for a in (I, R)]
    for name in ("least", "greatest"):
        specs += [(name, a, (a, a)) for a in (I, R, T, D, S)] + [
            (name, R, (I, R)),
            (name, S, (D, S)),
            (name, R, (R, R, R)),
        ]
    specs += [("coalesce", a, (a, a)) for a in (I, R, T, B, D, S)] + [
        ("coalesce", R, (I, R)),
        ("coalesce", S, (D, S, S)),
    ]
    specs += [("nullif", a, (a, a)) for a in (I, R, T, B, D, S)] + [
        ("nullif", I, (I, R)),
        ("nullif", R, (R, I)),
        ("nullif", D, (D, S)),
    ]
    specs += [("case", a, (B, a, a)) for a in (I, R, T, B, D, S)]
    specs += [("case", R, (B, I, B, R, I)), ("case", S, (B, D, S)), ("case", T, (B, T, B, T, T))]
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "not_distinct"):
        specs += [(name, B, (a, a)) for a in (I, R, T, B, D, S)] + [
            (name, B, (I, R)),
            (name, B, (D, S)),
            (name, B, (S, D)),
        ]
    specs += [
        (word, result, (a, literal_of(a), literal_of(a)))
        for word, result in (("in", B), ("place_in", I))
        for a in (I, R, T, B, D, S)
    ]
    specs += [
        ("in", B, (I, literal_of(R), literal_of(I))),
        ("in", B, (R, literal_of(I))),
        ("in", B, (D, literal_of(S))),
    ]
    specs += [("in", B, (I, one_of(None), literal_of(I)))]
    specs += [(name, B, (B, B)) for name in ("and", "or")] + [("and", B, (B, B, B)), ("not", B, (B,))]
    specs += [("is_null", B, (a,)) for a in (I, R, T, B, D, S)] + [("is_true", B, (B,)), ("is_false", B, (B,))]
    specs += [(name, B, (T, one_of(*PATTERNS))) for name in ("like", "ilike")]
    specs += [(name, B, (T, T)) for name in ("starts_with", "ends_with", "contains")]
    specs += [(name, T, (T,)) for name in ("lower", "upper", "trim", "ltrim", "rtrim")] + [
        (name, T, (T, one_of("a", " ", "xİ%-]^"))) for name in ("trim", "ltrim", "rtrim")
    ]
    specs += [(name, T, (T, one_of(0, 1, 2, 5, 10_000, -1, -2, -10_000))) for name in ("left", "right")]
    specs += [("substr", T, (T, one_of(1, 2, 9), one_of(0, 1, 3))), ("substr", T, (T, one_of(1, 2, 10_000)))]
    specs += [("concat", T, (T, T)), ("concat", T, (T, T, T)), ("length", I, (T,))]
    specs += [
        ("replace", T, (T, one_of("", "a", "ab", "İ", " "), one_of("", "x", "a%"))),
        ("md5", T, (T,)),
        ("translate", T, (T, one_of("", "a", "aab ", "éaİ"), one_of("", "x", "𝄞yz"))),
    ]
    units = functions.TRUNC_UNITS
    specs += [("date_trunc", D, (one_of(*units[:5]), D)), ("date_trunc", S, (one_of(*units), S))]
    specs += [
        ("date_part", I, (one_of(*functions.DATE_PARTS[:8]), D)),
        ("date_part", I, (one_of(*functions.DATE_PARTS), S)),
    ]
    specs += [("date_diff", I, (one_of(*functions.DIFF_UNITS), a, a)) for a in (D, S)]
    specs += [("add_days", a, (a, b)) for a in (D, S) for b in (I, one_of(0, 1, -1, 30, -400, 10**6))]
    specs += [("add_months", a, (a, one_of(0, 1, -1, 12, -13, 25, 10**6, -(10**6)))) for a in (D, S)]
    specs += [("add_seconds", S, (S, one_of(0, 1, -1, 3600, -86400, 10**6))), ("add_seconds", S, (S, I))]
    specs += [("add_months", a, (a, I)) for a in (D, S)] + [("epoch", R, (a,)) for a in (D, S)]
    origins = one_of(datetime(2000, 1, 3), datetime(1, 1, 1), datetime(1970, 1, 1, 0, 7, 3, 5))
    specs += [("time_bucket", S, (S, one_of(1, 300, 3600, 86400 * 7, 10**9), origins))]
    specs += [("time_bucket", D, (D, one_of(86400, 86400 * 7, 86400 * 365), one_of(datetime(2000, 1, 3))))]
    specs += [("last_day", D, (a,)) for a in (D, S)]
    specs += [("strftime", T, (a, one_of(*FORMATS))) for a in (D, S)]
    specs += [
        ("regexp_matches", B, (T, one_of(*REGULAR))),
        ("regexp_replace", T, (T, one_of(*REGULAR), one_of("", "x", "[\\0]", "\\\\"), one_of(True, False))),
    ]
    specs += [("split_part", T, (T, one_of(" ", "a", "ab", "İ", "."), one_of(1, 2, 3, 10_000, -1, -2, -10_000)))]
    specs += [("regexp_extract", T, (T, one_of(*patterns), one_of(*groups))) for patterns, groups in (
        (REGULAR, (0,)), (("(a+)|(b)", "(?i)(.)(.)", "(^|a)(.*?)\\b"), (0, 1, 2)))]  # fmt: skip
    specs += [("strlen", I, (T,)), ("strpos", I, (T, T)), ("strpos", I, (T, one_of("", "a", "é", "\u0301")))]
    specs += [("concat_ws", T, (one_of("", "-", ", "), T)), ("concat_ws", T, (one_of("-"), T, T, T))]
    specs += [("width_bucket", I, (a, *ends, one_of(1, 3, 10))) for a in (I, R) for ends in (
        (one_of(0, -5), one_of(9, 10)), (one_of(Fraction(1, 10)), one_of(Fraction(3, 10), 10**18)))]  # fmt: skip
    for target, sources in functions._CASTS.items():
        specs += [(f"to_{target.value}", target, (source,)) for source in sources]
    return specs


SPECS = _specs()
BY_TYPE = {type_: [spec for spec in SPECS if spec[1] is type_] for type_ in POOLS}
LIBM = {"ln", "log10", "exp", "power", "atan2", *ANGLES}
"""Functions whose last digit depends on the C library. They occur only at the root of a tree: a FLOOR above them could differ by
one."""


def grow(rng: random.Random, type_: Type, depth: int, columns: dict[str, Column] = COLUMNS) -> Expr:
    """Return a random expression of `type_`, at most `depth` calls deep."""
    if depth <= 0 or rng.random() < 0.1:
        if rng.random() < 0.25:
            return literal(None) if rng.random() < 0.15 else literal_of(type_)(rng)
        return rng.choice([column for column in columns.values() if column.facts.type is type_])
    specs = [spec for spec in BY_TYPE[type_] if spec[0] not in LIBM]
    return apply(rng, rng.choice(specs), depth, columns)


def apply(rng: random.Random, spec: Spec, depth: int, columns: dict[str, Column] = COLUMNS) -> Call:
    """Return a call of `spec` whose arguments are at most `depth - 1` calls deep."""
    name, result, wanted = spec
    while True:
        arguments = [grow(rng, w, depth - 1, columns) if isinstance(w, Type) else w(rng) for w in wanted]
        typed = all(
            a.facts.type in (w, Type.NULL) for a, w in zip(arguments, wanted, strict=True) if isinstance(w, Type)
        )
        if typed and (made := functions.call(name, *arguments)).facts.type is result:
            return made


def same(ours: Any, theirs: Any, relative: float = 0.0) -> bool:
    """Return whether values and types are equal; NaN equals NaN, and the two zeros are equal."""
    if isinstance(ours, float) and isinstance(theirs, float):
        both = math.isnan(ours) and math.isnan(theirs)
        return ours == theirs or both or math.isclose(ours, theirs, rel_tol=relative)
    return type(ours) is type(theirs) and bool(ours == theirs)
