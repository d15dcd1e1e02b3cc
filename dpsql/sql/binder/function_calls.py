"""Functions in row expressions, one handler per node type: rounding, text, dates, casts, and names unknown to sqlglot."""

from __future__ import annotations

import re
from datetime import datetime
from fractions import Fraction
from math import floor, isfinite, log, pi

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.dates import DATE_PARTS
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import REGISTRY
from dpsql.functions.values import BUCKETS, lower, midnight
from dpsql.plan.intervals import Type
from dpsql.plan.plan import Expr, Literal, columns_read, literal
from dpsql.privacy.loss import exact_number
from dpsql.sql.binder.allow_list import UTC_NAMES, check_format, only_utc, read_pattern
from dpsql.sql.binder.function_hints import type_hint
from dpsql.sql.binder.scalars import (
    SHORT_TRUTHS,
    Scalars,
    handles,
    literal_interval,
    moments_of,
    not_allowed,
    now,
    temporal,
)
from dpsql.sql.binder.scope import only, sql_word, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.spellings import NOT_FINITE

MOST_PADDED = 100
"""Largest length to which lpad and rpad pad a text."""
MOST_BASE = 1_000_000
MOST_ZEROS = 9
"""Most zeros to which round(x, -9) rounds."""
HALF_EVEN = "half even"
"""Mark of a call of round as PostgreSQL reads it: 2.5 and 1.5 are 2."""


@handles(exp.Round)
def _round(self: Scalars, node: exp.Round) -> Expr:
    """Bind round(x), round(x, 2), and round(x, -2) as hundreds. With HALF_EVEN, halves are even where a real column is read."""
    only(node, "this", "decimals")
    value, written = self.bind(node.this), node.args.get("decimals")
    digits = None if written is None else self.bind(written)
    reads_reals = node.meta_get(HALF_EVEN) and any(column.facts.type is Type.REAL for column in columns_read(value))
    if digits is None and reads_reals:
        return self.call("to_real", node, self.call("to_integer", node, value))
    if not isinstance(digits, Literal) or type(digits.value) is not int or not -MOST_ZEROS <= digits.value < 0:
        return self.call("round", node, value, *([] if digits is None else [digits]))
    unit = literal(10**-digits.value)
    units = self.call("round", node, self.call("div", node, value, unit))
    return self.call("mul", node, _to(self, node, units, value.facts.type), unit)


@handles(exp.Log)
def _log(self: Scalars, node: exp.Log) -> Expr:
    """Bind log10(x) and log(x), both base 10 as in DuckDB and PostgreSQL, and log(b, x) = ln(x) / ln(b) with a literal base."""
    only(node, "this", "expression")
    if node.expression is None or node.args.get("expression") is None:
        return self.call("log10", node, self.bind(node.this))
    if isinstance(node.this, exp.Literal) and node.this.name == "10":
        return self.call("log10", node, self.bind(node.expression))
    base = self.bind(node.this)
    value = base.value if isinstance(base, Literal) else None
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, Fraction))
        or value <= 0
        or value == 1
        or value > MOST_BASE
    ):
        raise wrong_call("LOG", f"takes a literal base above 0, other than 1, at most {MOST_BASE:,}", node.this, node)
    return self.call("div", node, self.call("ln", node, self.bind(node.expression)), literal(Fraction(log(value))))


@handles(exp.Trim)
def _trim(self: Scalars, node: exp.Trim) -> Expr:
    only(node, "this", "position", "expression")
    removed = node.args.get("expression")
    characters = [] if removed is None or (isinstance(removed, exp.Literal) and removed.name == " ") else [removed]
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return self.call(name, node, *(self.bind(part) for part in (node.this, *characters)))


@handles(exp.DPipe)
def _pipe(self: Scalars, node: exp.DPipe) -> Expr:
    only(node, "this", "expression", "safe")
    return self.call("concat", node, *_texts(self, node, list(node.flatten())))


@handles(exp.Concat)
def _concat(self: Scalars, node: exp.Concat) -> Expr:
    """Bind concat(a, b), which skips NULL (|| does not)."""
    only(node, "expressions", "safe", "coalesce")
    texts = _texts(self, node, node.expressions)
    return self.call("concat", node, *(self.call("coalesce", node, text, literal("")) for text in texts))


def _texts(self: Scalars, node: exp.Expr, parts: list[exp.Expr]) -> list[Expr]:
    """Bind the parts of a concatenation. If one of them is a text, cast integers, dates and booleans to text as CAST does."""
    bound = [self.bind(part) for part in parts]
    if not any(part.facts.type is Type.TEXT for part in bound):
        return bound
    if node.meta_get(SHORT_TRUTHS):
        bound = [_short_truth(self, node, part) if part.facts.type is Type.BOOLEAN else part for part in bound]
    return [_to(self, node, part, Type.TEXT) if part.facts.type in _READ_AS_TEXT else part for part in bound]


def _short_truth(self: Scalars, node: exp.Expr, value: Expr) -> Expr:
    return self.call("case", node, value, literal("t"), self.call("not", node, value), literal("f"), literal(None))


_READ_AS_TEXT = (Type.INTEGER, Type.DATE, Type.BOOLEAN)


@handles(exp.Pad)
def _pad(self: Scalars, node: exp.Pad) -> Expr:
    """Bind lpad and rpad, to a literal length and with one literal character, as parts of the text around it."""
    only(node, "this", "expression", "fill_pattern", "is_left")
    filling, length = node.args.get("fill_pattern") or exp.Literal.string(" "), node.expression
    literals = (
        isinstance(length, exp.Literal) and length.is_int and isinstance(filling, exp.Literal) and filling.is_string
    )
    if not literals or len(filling.name) != 1 or int(length.name) > MOST_PADDED:
        raise wrong_call(node, f"takes a literal length of at most {MOST_PADDED} and one literal character")
    if self.bind(node.this).facts.type not in (Type.TEXT, Type.NULL):
        raise wrong_call(node, "takes a text")
    filled, text = exp.Literal.string(filling.name * int(length.name)), node.this
    if not node.args.get("is_left"):
        return self.bind(exp.Left(this=exp.DPipe(this=text, expression=filled), expression=length))
    padded = exp.Right(this=exp.DPipe(this=filled, expression=text), expression=length)
    is_short = exp.LT(this=exp.Length(this=text), expression=length)
    branch = exp.If(this=is_short, true=padded)
    return self.bind(exp.Case(ifs=[branch], default=exp.Left(this=text, expression=length)))


@handles(exp.Trunc)
def _truncated(self: Scalars, node: exp.Trunc) -> Expr:
    only(node, "this")
    branch = exp.If(this=exp.LT(this=node.this, expression=exp.Literal.number(0)), true=exp.Ceil(this=node.this))
    return self.bind(exp.Case(ifs=[branch], default=exp.Floor(this=node.this)))


@handles(exp.DateAdd)
def _date_add(self: Scalars, node: exp.DateAdd) -> Expr:
    only(node, "this", "expression")
    return self.bind(exp.Add(this=node.this, expression=node.expression))


@handles(exp.TimestampTrunc, exp.DateTrunc)
def _trunc(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "unit", "input_type_preserved", "unabbreviate")
    unit = node.text("unit").lower()
    return self.call("date_trunc", node, literal(_PART_NAMES.get(unit, unit)), self.bind(node.this))


_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.WeekOfYear: "week",
    exp.Day: "day", exp.DayOfMonth: "day", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow", exp.DayOfYear: "doy",
    exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip
_PART_NAMES = {
    "dayofweek": "dow", "dayofyear": "doy", "weekofyear": "week", "weekday": "dow", "dayofmonth": "day",
    **{f"{unit}s": unit for unit in DATE_PARTS}, "decades": "decade", "centuries": "century", "millennia": "millennium",
}  # fmt: skip
_YEARS_OF = {"decade": (0, 10), "century": (99, 100), "millennium": (999, 1000)}
"""Parts that count years: what is added to the year, and the years of each. The first century has the years 1 to 100."""


@handles(*_PARTS)
def _part(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this")
    return self.call("date_part", node, literal(_PARTS[type(node)]), self.bind(node.this))


@handles(exp.Extract)
def _extract(self: Scalars, node: exp.Extract) -> Expr:
    only(node, "this", "expression")
    return _part_of(self, node, node.this.name.lower(), node.expression)


_WHOLE_PARTS = {"day": (86400, None), "hour": (3600, 24), "minute": (60, 60)}
"""Parts of a difference of timestamps, which has days and a time: their seconds, and where they begin again."""


def _whole_part(self: Scalars, node: exp.Expr, part: str, seconds: Expr) -> Expr:
    """Return the days, hours or minutes of a difference, toward zero as PostgreSQL and DuckDB count them."""
    divisor, most = _WHOLE_PARTS[part]
    positive = self.call("ge", node, seconds, literal(0))
    whole = (self.call(name, node, seconds) for name in ("floor", "ceil"))
    toward_zero = self.call("to_integer", node, self.call("case", node, positive, *whole))
    parts = self.call("intdiv", node, toward_zero, literal(divisor))
    return parts if most is None else self.call("mod", node, parts, literal(most))


def _part_of(self: Scalars, node: exp.Expr, part: str, moment: exp.Expr) -> Expr:
    part = _PART_NAMES.get(part, part)
    moments = moments_of(self, moment) if part in _WHOLE_PARTS or part == "epoch" else None
    if moments is not None:
        difference = self.call("sub", node, *(self.call("epoch", node, side) for side in moments))
        seconds = self.call(
            "round", node, difference, literal(6)
        )  # each is a double, whose last microseconds may differ
        return seconds if part == "epoch" else _whole_part(self, node, part, seconds)
    if part == "epoch":
        return self.call("epoch", node, self.bind(moment))
    bound = self.bind(moment)
    if part == "isoyear":  # the year of the Thursday in its week
        ahead = self.call("sub", node, literal(4), self.call("date_part", node, literal("isodow"), bound))
        part, bound = "year", self.call("add_days", node, bound, ahead)
    more, years = _YEARS_OF.get(part, (0, 1))
    number = self.call("date_part", node, literal("year" if years > 1 else part), bound)
    return (
        number
        if years == 1
        else self.call("intdiv", node, self.call("add", node, number, literal(more)), literal(years))
    )


@handles(exp.DateDiff, exp.TimestampDiff)
def _date_diff(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "expression", "unit", "date_part_boundary")
    written = node.args.get("unit")
    if isinstance(written, exp.Interval) or (isinstance(node, exp.TimestampDiff) and written is None):
        raise wrong_call(node, "takes a unit such as DAY")
    unit = literal((node.text("unit") or "day").lower())
    return self.call("date_diff", node, unit, self.bind(node.expression), self.bind(node.this))


_TYPES = {
    Type.INTEGER: ("INT", "BIGINT", "SMALLINT", "TINYINT"), Type.REAL: ("DOUBLE", "FLOAT"),
    Type.TEXT: ("TEXT", "VARCHAR", "CHAR", "NCHAR"), Type.BOOLEAN: ("BOOLEAN",), Type.DATE: ("DATE",),
    Type.TIMESTAMP: ("TIMESTAMP", "TIMESTAMPNTZ", "TIMESTAMPTZ", "DATETIME"),
}  # fmt: skip


@handles(exp.Cast, exp.TryCast)
def _cast(self: Scalars, node: exp.Cast) -> Expr:
    only(node, "this", "to", "safe")
    name = node.to.this.name if isinstance(node.to.this, exp.DType) else str(node.to.this)
    if name == "DECIMAL" and node.to.expressions:
        numbers = [int(part.name) if part.name.isdecimal() else -1 for part in node.to.expressions]
        width, digits = [*numbers, 0][:2]
        if not 0 <= digits <= width <= MOST_DIGITS or not width:
            hint = f"DECIMAL(p, s) has p from 1 to {MOST_DIGITS} digits, s of them behind the point"
            raise refuse("unknown_type", type=node.to.sql("duckdb"), position=place(node), hint=hint)
        real = _to(self, node, self.bind(node.this), Type.REAL)
        if not isinstance(real, Literal) or real.value is None:
            return self.call("round", node, real, literal(digits))
        exact = _half_away(real.value * 10**digits) if isfinite(real.value) else None
        number = real.value if exact is None else Fraction(exact, 10**digits)
        return _within(node, literal(number), Fraction(10) ** (width - digits))
    target = next((type_ for type_, names in _TYPES.items() if name in names), None)
    written = node.to.expressions and target is not Type.TEXT  # varchar(2) has any length, as in DuckDB
    if target is None or written or node.to.args.get("nested"):
        raise refuse("unknown_type", type=node.to.sql("duckdb"), position=place(node), hint=type_hint(node.to))
    inner = self.bind(node.this)
    if target is Type.INTEGER and _is_decimal(self, node.this):  # engines round the half of a decimal away from zero
        constant = inner.value if isinstance(inner, Literal) else None
        inner = self.call("round", node, inner) if constant is None else literal(_half_away(constant))
    if isinstance(inner, Literal) and isinstance(inner.value, str) and target.temporal:
        value = temporal(inner.value, target, node, name == "TIMESTAMPTZ")
        return literal(value.date() if target is Type.DATE and isinstance(value, datetime) else value)
    return _within(node, _to(self, node, inner, target), _BEYOND.get(name))


MOST_DIGITS = 38
"""Most digits of a DECIMAL in DuckDB."""
_BEYOND = {"INT": 2**31, "SMALLINT": 2**15, "TINYINT": 2**7}


def _half_away(value: Fraction) -> int:
    """Return the nearest integer, for halves the one away from zero."""
    whole = floor(abs(value) + Fraction(1, 2))
    return whole if value >= 0 else -whole


def _is_decimal(self: Scalars, node: exp.Expr) -> bool:
    """Return whether engines compute an expression in decimals: 2.5, and what + - * make of it and integers. Halves of real
    numbers become even integers in a cast, those of decimals do not."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return not node.is_string and "." in node.name and "e" not in node.name.lower()
    if isinstance(node, (exp.Neg, exp.Cast)):
        return node.to.is_type(exp.DType.DECIMAL) if isinstance(node, exp.Cast) else _is_decimal(self, node.this)
    if not isinstance(node, (exp.Add, exp.Sub, exp.Mul)):
        return False
    sides = [(_is_decimal(self, side), side) for side in (node.this, node.expression)]
    whole = all(
        decimal or self.bind(side).facts.type is Type.INTEGER for decimal, side in sides if any(d for d, _ in sides)
    )
    return whole and any(decimal for decimal, _ in sides)


def _within(node: exp.Cast, bound: Expr, beyond: int | Fraction | None) -> Expr:
    """Return a number that is cast to a type of numbers below `beyond`; columns are read in 64 bits. A constant beyond it has no
    value, and is NULL in a TRY_CAST."""
    if beyond is None or not isinstance(bound, Literal) or bound.value is None or -beyond <= bound.value < beyond:
        return bound
    if not isinstance(node, exp.TryCast):
        raise refuse("no_value", function=sql_word(node), position=place(node.this) or place(node))
    return literal(None)


def _to(self: Scalars, node: exp.Expr, inner: Expr, target: Type) -> Expr:
    """Bind a cast. A cast of a literal becomes a literal, so that '5'::int4 (as drivers send parameters) equals 5, and
    'infinity'::float8 is infinite, whereas such a text in a column is no number. A truth value becomes 1 or 0, also as a real."""
    if target is Type.REAL and inner.facts.type is Type.BOOLEAN:
        inner = _to(self, node, inner, Type.INTEGER)
    cast = self.call(f"to_{target.value}", node, inner)
    text = inner.value if isinstance(inner, Literal) and isinstance(inner.value, str) else ""
    if target is Type.REAL and NOT_FINITE.fullmatch(text):
        return literal(float(text))
    if not isinstance(inner, Literal) or isinstance(cast, Literal):
        return cast
    value = evaluate(cast, {})
    if not isinstance(value, float):
        return cast if value is None else literal(value)
    if not isfinite(value):
        raise refuse("bad_number", text=text, position=place(node.this) or place(node))
    try:  # exact, as the literal 0.1 is
        return literal(exact_number(inner.value) if isinstance(inner.value, str) else Fraction(inner.value))
    except ValueError:
        return literal(Fraction(value))


@handles(exp.UnixToTime)
def _to_timestamp(self: Scalars, node: exp.UnixToTime) -> Expr:
    """Bind to_timestamp of whole seconds since 1970."""
    only(node, "this")
    seconds = self.bind(node.this)
    if seconds.facts.type not in (Type.INTEGER, Type.NULL):
        raise wrong_call("TO_TIMESTAMP", "takes whole seconds since 1970; write CAST(x AS BIGINT)", node)
    return self.call("add_seconds", node, literal(datetime(1970, 1, 1)), seconds)


@handles(exp.DateBin)
def _bin(self: Scalars, node: exp.DateBin) -> Expr:
    """Bind date_bin(width, t[, origin]) and time_bucket, with a literal interval and origin."""
    only(node, "this", "expression", "unit")
    width = node.this
    if isinstance(width, exp.Literal) and width.is_string:
        width = exp.Interval(this=width)
    if not isinstance(width, exp.Interval):
        raise refuse("bad_interval", position=place(node))
    function, steps = literal_interval(_with_unit(width), node)
    moment, start = self.bind(node.expression), node.args.get("unit")
    if function == "add_months":
        unit = {1: "month", 3: "quarter", 12: "year"}.get(steps)
        if unit is None or start is not None:
            raise refuse("bad_interval", position=place(node))
        return self.call("date_trunc", node, literal(unit), moment)
    if isinstance(start, exp.Var):
        start = exp.Literal.string(start.name)  # sqlglot parses a text in this place as a Var
    origin = BUCKETS if start is None else _literal_moment(self.bind(start), start)
    seconds = steps * 86400 if function == "add_days" else steps
    return self.call("time_bucket", node, moment, literal(seconds), literal(origin))


def _with_unit(interval: exp.Interval) -> exp.Interval:
    """Return an interval whose text has its unit ('5 minutes', as in PostgreSQL's date_bin) with the unit separated."""
    words = interval.this.name.split() if isinstance(interval.this, exp.Literal) else []
    if interval.args.get("unit") is None and len(words) == 2:
        return exp.Interval(this=exp.Literal.string(words[0]), unit=exp.Var(this=words[1].upper()))
    return interval


def _literal_moment(bound: Expr, node: exp.Expr) -> object:
    """Return the value of a literal point in time, which may be written as a text."""
    value = bound.value if isinstance(bound, Literal) else None
    return midnight(temporal(value, Type.TIMESTAMP, node) if isinstance(value, str) else value)


@handles(exp.AtTimeZone)
def _at_time_zone(self: Scalars, node: exp.AtTimeZone) -> Expr:
    """Bind AT TIME ZONE 'UTC' as the timestamp itself, because timestamps are in UTC. Refuses other zones."""
    only(node, "this", "zone")
    zone = node.args["zone"]
    moment = self.bind(node.this)
    if not (isinstance(zone, exp.Literal) and zone.is_string and zone.name.upper() in UTC_NAMES):
        raise only_utc(zone)
    return self.call("to_timestamp", node, moment)


@handles(exp.TimeToStr)
def _to_text(self: Scalars, node: exp.TimeToStr) -> Expr:
    """Bind strftime(t, '%Y-%m')."""
    only(node, "this", "format")
    check_format(node)
    form, moment = node.args.get("format"), node.this
    if isinstance(moment, exp.Literal) and not isinstance(form, exp.Literal):  # DuckDB reads both orders
        form, moment = moment, form
    if not (isinstance(form, exp.Literal) and form.is_string):
        raise wrong_call(node, "takes a literal format of words such as %Y", form, node)
    return self.call("strftime", node, self.bind(moment), literal(form.name))


@handles(exp.Dayname, exp.Monthname)
def _name(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this")
    return self.call("strftime", node, self.bind(node.this), literal("%A" if isinstance(node, exp.Dayname) else "%B"))


@handles(exp.RegexpLike, exp.RegexpILike)
def _matches(self: Scalars, node: exp.Expr) -> Expr:
    """Bind t ~ 'pattern', t ~* 'pattern' (ignoring case) and regexp_matches(t, 'pattern', 'i'), which match anywhere in t."""
    only(node, "this", "expression", "flag")
    options = _options(node, "flag", "cis") + ("i" if isinstance(node, exp.RegexpILike) else "")
    return self.call("regexp_matches", node, self.bind(node.this), _with_options(self.bind(node.expression), options))


@handles(exp.SimilarTo)
def _similar(self: Scalars, node: exp.SimilarTo) -> Expr:
    """Bind t SIMILAR TO 'pattern' as DuckDB reads it: the pattern is a regular expression of the whole text."""
    only(node, "this", "expression")
    pattern = self.bind(node.expression)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise wrong_call("SIMILAR TO", "takes a literal pattern", node)
    signs = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern.value)  # a backslash at the end stays
    alone = not re.search(r"[|\\]", re.sub(r"\([^()]*\)", "", signs))
    whole = f"^{pattern.value}$" if alone else f"^({pattern.value})$"
    return self.call("regexp_matches", node, self.bind(node.this), literal(whole))


@handles(exp.RegexpReplace)
def _regexp_replace(self: Scalars, node: exp.RegexpReplace) -> Expr:
    """Bind regexp_replace(t, 'pattern', 'replacement'[, 'g']), which replaces the first match, or all with 'g'."""
    only(node, "this", "expression", "replacement", "modifiers", "single_replace")
    options = _options(node, "modifiers", "cisg")
    pattern = _with_options(self.bind(node.expression), options.replace("g", ""))
    replacement = self.bind(node.args.get("replacement"))
    return self.call("regexp_replace", node, self.bind(node.this), pattern, replacement, literal("g" in options))


def _options(node: exp.Expr, slot: str, allowed: str) -> str:
    options = node.args.get(slot)
    if options is None:
        return ""
    if not (isinstance(options, exp.Literal) and options.is_string and set(options.name) <= set(allowed)):
        raise wrong_call(node, f"takes the options {', '.join(allowed)} as a literal", options, node)
    return options.name


def _with_options(pattern: Expr, options: str) -> Expr:
    """Return a pattern with its options written in, which every RE2 reads alike. Of c (the default) and i, the later counts."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return pattern
    inside = ("i" if options.rfind("i") > options.rfind("c") else "") + ("s" if "s" in options else "")
    return literal(f"(?{inside}){pattern.value}") if inside else pattern


@handles(exp.Escape)
def _escape(self: Scalars, node: exp.Escape) -> Expr:
    """Bind x LIKE 'a\\_%' ESCAPE '\\' by functions that search texts without wildcards. Refuses patterns with an escaped
    wildcard and others than % at the ends."""
    like = node.this
    if not isinstance(like, (exp.Like, exp.ILike)):
        raise not_allowed(like)
    only(node, "this", "expression")
    only(like, "this", "expression", "negate")
    name, text = "ilike" if isinstance(like, exp.ILike) else "like", self.bind(like.this)
    written = self.bind(like.expression)
    pattern = read_pattern(node, written.value if isinstance(written, Literal) else None)
    if not any(literal_ and character in "%_" for literal_, character in pattern):
        matched = self.call(name, node, text, literal("".join(character for _, character in pattern)))
    else:
        ends = [pattern[:1] == [(False, "%")], pattern[-1:] == [(False, "%")]]
        inside = pattern[ends[0] : len(pattern) - ends[1]]
        if not all(literal_ for literal_, _ in inside):
            raise wrong_call(name.upper(), "takes an escaped % or _ with % at the ends alone", like.expression)
        searched = "".join(character for _, character in inside)
        if name == "ilike":
            text, searched = self.call("lower", node, text), lower(searched)
        test = {
            (False, False): "eq",
            (False, True): "starts_with",
            (True, False): "ends_with",
            (True, True): "contains",
        }
        matched = self.call(test[ends[0], ends[1]], node, text, literal(searched))
    return self.call("not", node, matched) if like.args.get("negate") else matched


_SLOTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.SplitPart: ("split_part", "delimiter", "part_index"), exp.Translate: ("translate", "from_", "to"),
    exp.Substring: ("substr", "start", "length"), exp.Replace: ("replace", "expression", "replacement"),
    exp.WidthBucket: ("width_bucket", "min_value", "max_value", "num_buckets"), exp.StrPosition: ("strpos", "substr"),
    **{getattr(exp, node): (entry.name, "expression") for entry in REGISTRY.values() for node in entry.nodes},
}  # fmt: skip
"""Nodes whose operands are the arguments of a registered function: its name, and the operands behind the first."""


@handles(*_SLOTS)
def _of_slots(self: Scalars, node: exp.Expr) -> Expr:
    name, *slots = _SLOTS[type(node)]
    only(node, "this", *slots)
    parts = (node.args.get(slot) for slot in ("this", *slots))
    return self.call(name, node, *(self.bind(part) for part in parts if part is not None))


@handles(exp.RegexpExtract)
def _regexp_extract(self: Scalars, node: exp.RegexpExtract) -> Expr:
    """Bind regexp_extract(t, 'pattern'[, group[, 'i']])."""
    only(node, "this", "expression", "group", "parameters", "null_if_pos_overflow")
    pattern, group = (
        _with_options(self.bind(node.expression), _options(node, "parameters", "cis")),
        node.args.get("group"),
    )
    return self.call(
        "regexp_extract", node, self.bind(node.this), pattern, literal(0) if group is None else self.bind(group)
    )


@handles(exp.ConcatWs)
def _concat_ws(self: Scalars, node: exp.ConcatWs) -> Expr:
    only(node, "expressions", "safe", "coalesce")
    return self.call("concat_ws", node, *_texts(self, node, node.expressions))


@handles(exp.Date)
def _date(self: Scalars, node: exp.Date) -> Expr:
    only(node, "this")
    return _cast(self, exp.Cast(this=node.this, to=exp.DataType.build("date")))


MOST_SHIFT = 62


@handles(exp.BitwiseLeftShift, exp.BitwiseRightShift)
def _shifted(self: Scalars, node: exp.Expr) -> Expr:
    """Bind x << 3 as x * 8, and x >> 3 as the floor of x / 8, as in two's complement."""
    only(node, "this", "expression")
    value, steps = _integer(self, node, node.this), self.bind(node.expression)
    if not isinstance(steps, Literal) or type(steps.value) is not int or not 0 <= steps.value <= MOST_SHIFT:
        raise wrong_call(node, f"takes a literal number of bits from 0 to {MOST_SHIFT}")
    factor = 2**steps.value
    if isinstance(node, exp.BitwiseLeftShift):
        return self.call("mul", node, value, literal(factor))
    return _whole_parts(self, node, value, factor)


@handles(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
def _masked(self: Scalars, node: exp.Expr) -> Expr:
    """Bind x & 6, x | 6 and xor(x, 6) with a literal number: its bits of x are remainders of quotients."""
    only(node, "this", "expression")
    value, mask = (_integer(self, node, side) for side in (node.this, node.expression))
    if isinstance(value, Literal):
        value, mask = mask, value
    if not isinstance(mask, Literal) or mask.value is None or mask.value.bit_length() > MOST_SHIFT:
        raise wrong_call(node, f"takes a literal number of at most {MOST_SHIFT} bits")
    common = _bits_of(self, node, value, mask.value)
    if isinstance(node, exp.BitwiseAnd):
        return common
    twice = common if isinstance(node, exp.BitwiseOr) else self.call("mul", node, common, literal(2))
    return self.call("add", node, self.call("sub", node, value, twice), mask)


@handles(exp.BitwiseNot)
def _inverted(self: Scalars, node: exp.BitwiseNot) -> Expr:
    only(node, "this")
    return self.call("sub", node, literal(-1), _integer(self, node, node.this))


def _integer(self: Scalars, node: exp.Expr, side: exp.Expr) -> Expr:
    value = self.bind(side)
    if value.facts.type is not Type.INTEGER:
        raise wrong_call(node, "takes integers")
    return value


def _whole_parts(self: Scalars, node: exp.Expr, value: Expr, size: int) -> Expr:
    """Return the floor of value / size."""
    return self.call("intdiv", node, self.call("sub", node, value, _above(self, node, value, size)), literal(size))


def _above(self: Scalars, node: exp.Expr, value: Expr, size: int) -> Expr:
    """Return what a value has above a multiple of `size`, the remainder of a quotient that is rounded down."""
    remainder = self.call("mod", node, value, literal(size))
    return self.call("mod", node, self.call("add", node, remainder, literal(size)), literal(size))


def _bits_of(self: Scalars, node: exp.Expr, value: Expr, mask: int) -> Expr:
    """Return the bits of an integer that are in a mask: for each run of ones in it, a remainder."""
    if mask < 0:
        return self.call("sub", node, value, _bits_of(self, node, value, ~mask))
    parts, start = list[Expr](), 0
    while mask >> start:
        start += (mask >> start & -(mask >> start)).bit_length() - 1
        length = (~(mask >> start) & (mask >> start) + 1).bit_length() - 1
        shifted = value if start == 0 else _whole_parts(self, node, value, 2**start)
        parts.append(self.call("mul", node, _above(self, node, shifted, 2**length), literal(2**start)))
        start += length
    total = parts[0] if parts else self.call("mul", node, value, literal(0))
    for part in parts[1:]:
        total = self.call("add", node, total, part)
    return total


@handles(exp.Pi)
def _pi(self: Scalars, node: exp.Pi) -> Expr:
    only(node)
    return literal(Fraction(pi))


_SPELLED = {spelling: entry.name for entry in REGISTRY.values() for spelling in entry.spellings}
CALLED = {*_SPELLED, "date_part", "date_trunc", "now", "today"}
"""Functions of one row that sqlglot does not know by these names."""


@handles(exp.Anonymous)
def _anonymous(self: Scalars, node: exp.Anonymous) -> Expr:
    name = str(node.this).lower()
    parts = node.expressions
    if name in ("date_part", "date_trunc") and len(parts) == 2 and isinstance(parts[0], exp.Literal):
        part = parts[0].name.lower()
        if name != "date_trunc":
            return _part_of(self, node, part, parts[1])
        return self.call("date_trunc", node, literal(_PART_NAMES.get(part, part)), self.bind(parts[1]))
    if name in ("now", "today") and not parts:
        return now(self, exp.CurrentDate() if name == "today" else exp.CurrentTimestamp())
    ours = _SPELLED.get(name)
    if ours is None:
        raise not_allowed(node)
    return self.call(ours, node, *(self.bind(part) for part in parts))
