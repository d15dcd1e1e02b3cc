"""Functions of row expressions, one handler per node type: rounding, text, dates, casts, and names sqlglot does not know."""

from __future__ import annotations

from datetime import datetime

from sqlglot import exp

from dpsql.bind.names import only
from dpsql.bind.scalars import Scalars, handles, literal, not_allowed, now, temporal
from dpsql.errors import refuse
from dpsql.functions import REGISTRY
from dpsql.parse import place
from dpsql.plan import Expr, Literal
from dpsql.ranges import Type


@handles(exp.Round)
def _round(self: Scalars, node: exp.Round) -> Expr:
    only(node, "this", "decimals")
    digits = node.args.get("decimals")
    return self.call("round", node, self.bind(node.this), *([] if digits is None else [self.bind(digits)]))


@handles(exp.Log)
def _log(self: Scalars, node: exp.Log) -> Expr:
    """log10(x) and log(x), both of base 10 as in DuckDB and PostgreSQL."""
    only(node, "this", "expression")
    if node.expression is None or node.args.get("expression") is None:
        return self.call("log10", node, self.bind(node.this))
    if isinstance(node.this, exp.Literal) and node.this.name == "10":
        return self.call("log10", node, self.bind(node.expression))
    raise not_allowed(node)


@handles(exp.Trim)
def _trim(self: Scalars, node: exp.Trim) -> Expr:
    only(node, "this", "position")
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return self.call(name, node, self.bind(node.this))


@handles(exp.Substring)
def _substring(self: Scalars, node: exp.Substring) -> Expr:
    only(node, "this", "start", "length")
    parts = [node.this, node.args.get("start"), node.args.get("length")]
    return self.call("substr", node, *(self.bind(part) for part in parts if part is not None))


@handles(exp.DPipe)
def _pipe(self: Scalars, node: exp.DPipe) -> Expr:
    only(node, "this", "expression", "safe")
    return self.call("concat", node, *(self.bind(part) for part in node.flatten()))


@handles(exp.Concat)
def _concat(self: Scalars, node: exp.Concat) -> Expr:
    """concat(a, b) skips NULL (|| does not)."""
    only(node, "expressions", "safe", "coalesce")
    parts = [self.call("coalesce", node, self.bind(part), literal("")) for part in node.expressions]
    return self.call("concat", node, *parts)


@handles(exp.Replace)
def _replace(self: Scalars, node: exp.Replace) -> Expr:
    only(node, "this", "expression", "replacement")
    parts = (node.this, node.expression, node.args.get("replacement") or exp.Literal.string(""))
    return self.call("replace", node, *(self.bind(part) for part in parts))


@handles(exp.TimestampTrunc, exp.DateTrunc)
def _trunc(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "unit", "input_type_preserved", "unabbreviate")
    return self.call("date_trunc", node, literal(node.text("unit").lower()), self.bind(node.this))


_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Week: "week", exp.WeekOfYear: "week",
    exp.Day: "day", exp.DayOfMonth: "day", exp.DayOfWeek: "dow", exp.DayOfWeekIso: "isodow", exp.DayOfYear: "doy",
    exp.Hour: "hour", exp.Minute: "minute", exp.Second: "second",
}  # fmt: skip
_PART_NAMES = {"dayofweek": "dow", "dayofyear": "doy", "weekofyear": "week", "weekday": "dow", "dayofmonth": "day"}


@handles(*_PARTS)
def _part(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this")
    return self.call("date_part", node, literal(_PARTS[type(node)]), self.bind(node.this))


@handles(exp.Extract)
def _extract(self: Scalars, node: exp.Extract) -> Expr:
    only(node, "this", "expression")
    part = node.this.name.lower()
    return self.call("date_part", node, literal(_PART_NAMES.get(part, part)), self.bind(node.expression))


@handles(exp.DateDiff, exp.TimestampDiff)
def _date_diff(self: Scalars, node: exp.Expr) -> Expr:
    only(node, "this", "expression", "unit", "date_part_boundary")
    unit = literal((node.text("unit") or "day").lower())
    return self.call("date_diff", node, unit, self.bind(node.expression), self.bind(node.this))


@handles(exp.WidthBucket)
def _bucket(self: Scalars, node: exp.WidthBucket) -> Expr:
    only(node, "this", "min_value", "max_value", "num_buckets")
    parts = (node.this, node.args["min_value"], node.args["max_value"], node.args["num_buckets"])
    return self.call("width_bucket", node, *(self.bind(part) for part in parts))


_TYPES = {
    Type.INTEGER: ("INT", "BIGINT", "SMALLINT", "TINYINT"), Type.REAL: ("DOUBLE", "FLOAT"),
    Type.TEXT: ("TEXT", "VARCHAR"), Type.BOOLEAN: ("BOOLEAN",), Type.DATE: ("DATE",),
    Type.TIMESTAMP: ("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"),
}  # fmt: skip


@handles(exp.Cast, exp.TryCast)
def _cast(self: Scalars, node: exp.Cast) -> Expr:
    only(node, "this", "to", "safe")
    name = node.to.this.name if isinstance(node.to.this, exp.DType) else str(node.to.this)
    if name == "DECIMAL" and len(node.to.expressions) == 2:
        digits = literal(int(node.to.expressions[1].name))
        return self.call("round", node, self.call("to_real", node, self.bind(node.this)), digits)
    target = next((type_ for type_, names in _TYPES.items() if name in names), None)
    if target is None or node.to.expressions or node.to.args.get("nested"):
        raise refuse("unknown_type", type=node.to.sql("duckdb"), position=place(node))
    inner = self.bind(node.this)
    if isinstance(inner, Literal) and isinstance(inner.value, str) and target.temporal:
        value = temporal(inner.value, target, node)
        return literal(value.date() if target is Type.DATE and isinstance(value, datetime) else value)
    return self.call(f"to_{target.value}", node, inner)


_DATE_FORMATS = {"YYYY-MM-DD", "YYYY-MM-DD HH24:MI:SS", "YYYY-MM-DD HH24:MI:SS.US", "YYYY-MM-DD HH24:MI:SS.MS"}


@handles(exp.UnixToTime)
def _to_timestamp(self: Scalars, node: exp.UnixToTime) -> Expr:
    """PostgreSQL's to_timestamp('2024-01-31 00:00:00', 'YYYY-MM-DD HH24:MI:SS') with literals: a timestamp."""
    only(node, "this", "scale")
    return _formatted(node, [node.this, node.args.get("scale")], Type.TIMESTAMP)


def _formatted(node: exp.Expr, parts: list[exp.Expr | None], wanted: Type) -> Expr:
    texts = [part.name for part in parts if isinstance(part, exp.Literal) and part.is_string]
    if len(texts) != 2 or texts[1] not in _DATE_FORMATS:
        reason = "takes a literal text and a literal format such as 'YYYY-MM-DD HH24:MI:SS.US'"
        raise refuse("wrong_arguments", function=f"TO_{wanted.value.upper()}", reason=reason, position=place(node))
    return literal(temporal(texts[0], wanted, node))


@handles(exp.Date)
def _date(self: Scalars, node: exp.Date) -> Expr:
    only(node, "this")
    return _cast(self, exp.Cast(this=node.this, to=exp.DataType.build("date")))


_ANONYMOUS = {"clamp": "clamp", "prefix": "starts_with", "suffix": "ends_with", "iff": "case"}


@handles(exp.Anonymous)
def _anonymous(self: Scalars, node: exp.Anonymous) -> Expr:
    name = str(node.this).lower()
    parts = node.expressions
    if name in ("date_part", "datepart", "date_trunc") and len(parts) == 2 and isinstance(parts[0], exp.Literal):
        part = parts[0].name.lower()
        word = "date_trunc" if name == "date_trunc" else "date_part"
        return self.call(word, node, literal(_PART_NAMES.get(part, part)), self.bind(parts[1]))
    if name == "to_date":
        return _formatted(node, list(parts), Type.DATE)
    if name in ("now", "today") and not parts:
        return now(self, exp.CurrentDate() if name == "today" else exp.CurrentTimestamp())
    ours = _ANONYMOUS.get(name)
    if ours is None or ours not in REGISTRY:
        raise not_allowed(node)
    return self.call(ours, node, *(self.bind(part) for part in parts))
