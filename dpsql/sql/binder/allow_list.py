"""Allow-list of the sqlglot nodes and function names in the public remainder.

The remainder runs over released and public tables in an engine that holds nothing else (`sandbox`), so this list protects
against excessive resources and surprises (files, settings, randomness, endless series); it is not needed for privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isinf
from typing import Any

from sqlglot import exp

from dpsql.aggregates.contract import spelled
from dpsql.errors.exceptions import Error, refuse
from dpsql.sql.binder.function_hints import expression_hint, unknown_function
from dpsql.sql.binder.scope import lacks_argument, sql_word, wrong_call
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.bigquery import PER_GROUP

NODES: frozenset[type[exp.Expr]] = frozenset({
    # clauses; tables, joins, subqueries and set operations are bound one by one (`query`), never copied
    exp.Where, exp.Having, exp.Qualify, exp.Group, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.Alias,
    exp.Identifier, exp.Column, exp.Star, exp.Distinct, exp.Tuple, exp.Rollup, exp.Cube,
    exp.GroupingSets, exp.Grouping, exp.Paren, exp.Filter, exp.Window, exp.WindowSpec, exp.WithinGroup, exp.IgnoreNulls,
    exp.RespectNulls, exp.Var, exp.DataType, exp.DataTypeParam, exp.Interval,
    # literals and operators
    exp.Literal, exp.Boolean, exp.Null, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Not, exp.Is,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
    exp.In, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.DPipe, exp.Case, exp.If, exp.Exists, exp.Any, exp.All,
    # scalar functions
    exp.Abs, exp.Sign, exp.Round, exp.Floor, exp.Ceil, exp.Trunc, exp.Sqrt, exp.Exp, exp.Ln, exp.Log, exp.Least,
    exp.Greatest, exp.Coalesce, exp.Nullif, exp.Cast, exp.TryCast, exp.Lower, exp.Upper, exp.Trim, exp.Substring,
    exp.Left, exp.Right, exp.Length, exp.Concat, exp.Replace, exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition,
    exp.TimestampTrunc, exp.DateTrunc, exp.Extract, exp.DateDiff, exp.TimestampDiff, exp.DateAdd, exp.Year, exp.Quarter,
    exp.Month, exp.Week, exp.WeekOfYear, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear,
    exp.Hour, exp.Minute, exp.Second, exp.LastDay, exp.IsNan, exp.TimeToStr, exp.Initcap,
    exp.Dayname, exp.Monthname, exp.ConcatWs, exp.SplitPart, exp.RegexpLike, exp.DateBin, exp.SimilarTo,
    exp.Pad, exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Degrees, exp.Radians, exp.Pi,
    exp.RegexpReplace, exp.RegexpExtract, exp.RegexpILike, exp.Translate, exp.MD5, exp.TimeToUnix, exp.Date, exp.Cbrt,
    # window functions, and aggregates over results that `dpsql.aggregates` does not have
    exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile, exp.ArgMax, exp.ArgMin,
    exp.Mode, exp.AnyValue, exp.First, exp.Last, exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist,
    exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.GroupConcat, exp.ArrayAgg, exp.Bracket, exp.BitwiseAndAgg, exp.BitwiseOrAgg, exp.BitwiseXorAgg,
    exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
})  # fmt: skip
NAMES = frozenset({
    "dp_interval_low", "dp_interval_high", "dp_error", "prefix", "suffix", "date_part", "strlen", "to_json",
})  # fmt: skip
OTHER_DIALECTS = frozenset({
    "accuracy", "binary", "casts_non_integer_decimals", "culture", "deterministic", "encoding",
    "fractions_supported", "full_match", "json_scope", "mode", "negative_length_returns_empty",
    "null_on_zero_variance", "occurrence", "position", "to", "truncate", "zero_on_all_null", "zero_start", "zone",
})  # fmt: skip
"""Slots of sqlglot's nodes that only other dialects fill. A surplus argument is parsed into such a slot, and the engine's text
may omit it: length(x, y) would become length(x)."""
_MORE_SLOTS: dict[type[exp.Expr], str] = {exp.LastDay: "unit", exp.Ceil: "decimals", exp.Floor: "decimals"}
MOST_DIGITS = 38
"""Largest number of digits of an integer: any integer with so many fits into 128 bits."""
UTC_NAMES = ("UTC", "ETC/UTC", "GMT", "Z")
DISTANCE = {"dp_interval_low", "dp_interval_high", "dp_error"}


def only_utc(zone: exp.Expr) -> Error:
    """Return the refusal of AT TIME ZONE with another zone."""
    hint = "the owner states the clock of a column (timezone: Europe/Berlin in the policy); hours and days are then of that clock"
    return wrong_call("AT TIME ZONE", "takes 'UTC' alone", zone, hint=hint)


def _check_number(node: exp.Literal) -> None:
    """Refuse a number beyond the range of doubles, and an integer with more digits than any integer type has: the sandbox would
    fail, or answer in a type unknown to clients."""
    text = str(node.this).replace("_", "")
    if len(text.lstrip("0")) > MOST_DIGITS if text.isdigit() else isinf(float(text)):
        raise refuse("bad_number", text=text, position=place(node))


def _check_slots(node: exp.Func) -> None:
    """Refuse calls without their first argument, which sqlglot parses but cannot write as text, and bounds per unit and group."""
    if node.arg_types.get("this") and node.args.get("this") is None:
        raise lacks_argument(node)
    if node.args.get(PER_GROUP) is not None:
        reason, hint = "results belong to no unit", "bound the aggregate below, over protected rows"
        raise refuse("group_bounds", reason=reason, way=hint, position=place(node))


def _is_zero(divisor: object) -> bool:
    """Return whether a divisor is the literal 0, with which no quotient has a value."""
    while isinstance(divisor, (exp.Neg, exp.Paren)):
        divisor = divisor.this
    return isinstance(divisor, exp.Literal) and not divisor.is_string and float(str(divisor.this).replace("_", "")) == 0


def check_node(node: exp.Expr) -> None:
    """Refuse a node of the remainder that is not on the allow-list. Its children are not checked."""
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        if name == "clamp":
            raise refuse("clamp_over_results", position=place(node))
        if name not in NAMES and not _aggregates_results(name):
            raise unknown_function(node)
        if name in DISTANCE and len(node.expressions) != 1:
            raise wrong_call(name.upper(), "takes one output expression", node)
        return
    if type(node) not in NODES and not _aggregates_results(type(node).__name__):
        if isinstance(node, exp.Func):
            raise unknown_function(node)
        ties = isinstance(node, exp.LimitOptions) and node.args.get("with_ties")
        with_ties = "write LIMIT n, or QUALIFY rank() OVER (ORDER BY ...) <= n, which keeps rows with ties"
        hint = with_ties if ties else expression_hint(node)
        raise refuse("clause", what=sql_word(node), position=place(node), hint=hint)
    if isinstance(node, exp.Literal) and not node.is_string:
        _check_number(node)
    if isinstance(node, (exp.Mod, exp.IntDiv, exp.Div)) and _is_zero(node.expression):
        raise wrong_call(node, "divides by zero here")
    if isinstance(node, exp.Func):
        _check_slots(node)
    if type(node) in _CHECKS:
        _CHECKS[type(node)](node)
    for slot, value in node.args.items():
        foreign = slot in OTHER_DIALECTS and not isinstance(node, (exp.Cast, exp.Translate))
        foreign |= slot == _MORE_SLOTS.get(type(node))
        if foreign and isinstance(value, exp.Expr):
            raise wrong_call(node, "takes fewer arguments", value)


def _aggregates_results(spelling: str) -> bool:
    entry = spelled(spelling)
    return entry is not None and entry[0].over_results


def read_pattern(node: exp.Escape, constant: object = None) -> list[tuple[bool, str]]:
    """Return the characters of a pattern with ESCAPE, each with whether it stands for itself. `constant`: the value of a pattern
    that is computed from literals. Refuses (wrong_arguments) other patterns, an escape of other than one character, and one with
    nothing behind it."""
    like, escape = node.this, node.expression
    pattern = exp.Literal.string(constant) if isinstance(constant, str) else like.expression.unnest()
    texts = [part.name for part in (pattern, escape) if isinstance(part, exp.Literal) and part.is_string]
    if len(texts) != 2 or len(texts[1]) != 1:
        raise wrong_call("ESCAPE", "takes a literal pattern and one literal character", like, node)
    characters, escaped = list[tuple[bool, str]](), False
    for character in texts[0]:
        if character == texts[1] and not escaped:
            escaped = True
            continue
        characters.append((escaped or character not in "%_", character))
        escaped = False
    if escaped:
        raise wrong_call("LIKE", "needs a character behind the escape", pattern)
    return characters


def check_format(node: exp.Expr) -> None:
    """Refuse an empty date format, which the parser turns into the word None."""
    format_ = node.args.get("format")
    if isinstance(format_, exp.Literal) and format_.name == "None":
        raise wrong_call("STRFTIME", "needs a format", node)


def _check_window(node: exp.Expr) -> None:
    """Refuse the constants of windows and limits with which the sandbox would fail for every row."""
    word, reason = sql_word(node), "counts rows from 0 on"
    if isinstance(node, exp.WindowSpec):
        numbers, word = [node.args.get("start"), node.args.get("end")], "a frame"
    elif isinstance(node, (exp.Limit, exp.Offset)):
        numbers = [node.expression]
    else:
        numbers = [node.this if isinstance(node, exp.Ntile) else node.args.get("offset")]
        reason = "takes a number from 1 on"
    for number in numbers:
        if isinstance(number, exp.Neg) or (_is_zero(number) and reason.endswith("1 on")):
            raise wrong_call(word, reason, number, node)


def _check_subscript(node: exp.Bracket) -> None:
    """Refuse other subscripts of a list than one literal, which every engine counts from 1."""
    index = node.expressions[0]
    named = isinstance(index, exp.Literal) and index.is_int and len(index.name) <= MOST_DIGITS // 4
    if len(node.expressions) != 1 or not named or int(index.name) == 0:
        raise wrong_call("[...]", "takes one literal number from 1 on; GoogleSQL's OFFSET(n) counts from 0", node)


_CHECKS: dict[type[exp.Expr], Callable[[Any], object]] = {
    exp.TimeToStr: check_format, exp.Escape: read_pattern, exp.WindowSpec: _check_window, exp.Ntile: _check_window,
    exp.NthValue: _check_window, exp.Bracket: _check_subscript, exp.Limit: _check_window, exp.Offset: _check_window,
}  # fmt: skip
