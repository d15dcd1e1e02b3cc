"""VALUES, UNNEST and generate_series in FROM: rows that the query itself lists, read as a UNION ALL of SELECTs without FROM.

They are public, so a join with them is a join with a result: a protected row is paired with as many of them as agree on the
compared columns, with one where these are unique, and never with more than there are. These numbers are computed here from the
values as they are compared: integers exactly, numbers with a fraction as the doubles that they become, texts by their
characters. If values are not literals, only the number of rows is known.

Series of dates are timestamps, as in DuckDB and PostgreSQL, each made by adding the step to the one before (in months, a missing
day becomes the month's last day).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from functools import partial
from itertools import combinations, islice
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import literal
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.scalars import Scalars, literal_interval, literal_value, temporal
from dpsql.sql.binder.scope import HIDDEN, BindingContext, Environment, Released, Scope, only
from dpsql.sql.binder.trees import output_name
from dpsql.sql.lexer import place
from dpsql.storage.records import replace

MOST_COLUMNS = 20
MOST_ROWS = 1_000
_MOST_TOGETHER = 2
_TEMPORAL = {"DATE": Type.DATE, "TIMESTAMP": Type.TIMESTAMP}
Rows = Sequence[Sequence[exp.Expr]]


def written_rows(node: exp.Expr) -> tuple[exp.Query, Rows] | None:
    """Return a query for the rows of VALUES, UNNEST(ARRAY[...]) or a series, and the rows; None for anything else."""
    if isinstance(node, exp.Values):
        only(node, "expressions", "alias")
        rows: Rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in node.expressions]
    elif isinstance(node, exp.Unnest) and len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Array):
        only(node, "expressions", "alias")
        rows = [[item] for item in node.expressions[0].expressions]
    elif (series := series_rows(node)) is not None:
        rows = series
    else:
        return None
    if not rows or len(rows) > MOST_ROWS or len(rows[0]) > MOST_COLUMNS:
        raise refuse("clause", what=f"a list of no rows, or of more than {MOST_ROWS} rows", position=place(node))
    if len({len(row) for row in rows}) != 1:
        raise refuse("syntax", detail="rows of VALUES have different numbers of columns", position=place(node))
    return _stacked(rows), rows


def in_from(node: exp.Select) -> exp.Select:
    """Return a SELECT without FROM with the rows of the one UNNEST(...) of its list in FROM: `SELECT unnest(['a', 'b'])`,
    `SELECT unnest(generate_series(...))::date AS month`, and PostgreSQL's `SELECT generate_series(...)` (`rewrites.dialects`).
    Other SELECTs unchanged."""
    calls = [(number, call) for number, item in enumerate(node.expressions) for call in item.find_all(exp.Explode)]
    if len(calls) != 1 or calls[0][1].find_ancestor(exp.Select) is not node:
        return node
    copy: exp.Select = node.copy()
    item = copy.expressions[calls[0][0]]
    label, call = output_name(item), item.find(exp.Explode)
    rows = call.this.unnest()
    alias = exp.TableAlias(this=exp.to_identifier(_UNNESTED), columns=[exp.to_identifier(_UNNESTED)])
    is_series = isinstance(rows, exp.GenerateSeries)
    source = exp.Table(this=rows, alias=alias) if is_series else exp.Unnest(expressions=[rows], alias=alias)
    call.replace(exp.column(_UNNESTED, quoted=True))
    if not item.alias:
        item = copy.expressions[calls[0][0]]  # the call itself may be the item
        item.replace(exp.alias_(item.copy(), label, quoted=True))
    copy.set("from_", exp.From(this=source))
    return copy


_UNNESTED = "unnest"
_FIRST, _LAST = f"{HIDDEN}first", f"{HIDDEN}last"


def between_aggregates(context: BindingContext, node: exp.Select, environment: Environment) -> exp.Select:
    """Return `SELECT unnest(generate_series(date_trunc('month', MIN(day)), MAX(day), INTERVAL '1 month')) FROM visits` as those
    rows of a series between the bounds of the policy that lie between the released ends. Other SELECTs unchanged, also those
    whose series could begin between two rows of that one (its start is cut to the step, a day, or a whole number), and those
    with more of people's rows than the ends."""
    item = node.expressions[0]
    series = item.find(exp.GenerateSeries)
    if series is None or not isinstance(series.parent, exp.Explode) or not has_aggregate(series):
        return node
    shaped = {name: value for name, value in node.args.items() if value and name in ("order", "limit", "offset")}
    clauses = ("expressions", "from_", "joins", "where", "with_", *shaped)
    if any(value for name, value in node.args.items() if name not in clauses):
        return node
    label, listed = output_name(item), exp.Select(expressions=[item.copy()])
    value = exp.column(_UNNESTED, table="series", quoted=True)
    unnested, *further = listed.find_all(exp.Explode)
    unnested.replace(value)
    read = any(column != value for column in listed.find_all(exp.Column))
    if further or read or has_aggregate(listed.expressions[0]):
        return node
    start, end, step = series.args["start"], series.args["end"], series.args.get("step")
    ends = exp.Select(**{name: node.args.get(name) for name in ("from_", "joins", "where")}).copy()
    ends.set("expressions", [exp.alias_(start.copy(), _FIRST, quoted=True), exp.alias_(end.copy(), _LAST, quoted=True)])
    bound = context.source(exp.Subquery(this=ends), environment)[1]
    first, last = bound.column_facts if isinstance(bound, Released) else (None, None)
    if first is None or last is None or not (first.bounded and last.bounded):
        return node
    lowest = _lowest(start, step, first, series)
    if lowest is None:
        return node
    alias = exp.TableAlias(this=exp.to_identifier("series"), columns=[exp.to_identifier(_UNNESTED)])
    rows = exp.GenerateSeries(start=lowest, end=_constant(last.upper), step=step and step.copy())
    before = exp.LT if series.args.get("is_end_exclusive") else exp.LTE
    inside = (
        exp.GTE(this=value.copy(), expression=exp.column(_FIRST, table="ends", quoted=True)),
        before(this=value.copy(), expression=exp.column(_LAST, table="ends", quoted=True)),
    )
    copy = exp.Select(
        expressions=[exp.alias_(listed.expressions[0].unalias(), label, quoted=True)],
        from_=exp.From(this=exp.Subquery(this=ends, alias=exp.TableAlias(this=exp.to_identifier("ends")))),
        joins=[exp.Join(this=exp.Table(this=rows, alias=alias), on=exp.and_(*inside, copy=False))],
        **{name: clause.copy() for name, clause in shaped.items()},
    )
    copy.meta.update(node.meta)
    return copy


def _lowest(start: exp.Expr, step: exp.Expr | None, first: Facts, series: exp.GenerateSeries) -> exp.Expr | None:
    """Return the earliest start of a series between aggregates, if every start is a whole number of steps behind it."""
    if first.type is Type.INTEGER:
        return _constant(first.lower) if step is None or step == exp.Literal.number(1) else None
    interval = _interval(step)
    if interval is None:
        return None
    bare, by = start.unnest(), literal_interval(interval, series)
    if first.type is Type.DATE and by == ("add_days", 1):
        return _constant(first.lower)
    if not isinstance(bare, (exp.TimestampTrunc, exp.DateTrunc)):
        return None
    unit = exp.Interval(this=exp.Literal.string("1"), unit=exp.Var(this=bare.text("unit")))
    if bare.text("unit").lower() == "quarter":
        unit = exp.Interval(this=exp.Literal.string("3"), unit=exp.Var(this="month"))
    if by != literal_interval(unit, series):
        return None
    lowest: exp.Expr = bare.copy()
    lowest.set("this", _constant(first.lower))
    return lowest


def _constant(value: Any) -> exp.Expr:
    if isinstance(value, date):
        return exp.Cast(this=exp.Literal.string(str(value)), to=exp.DataType.build("timestamp"))
    return _written(int(value))


def column_names(node: exp.Expr, rows: Rows) -> tuple[str, ...]:
    """Return the column names: those of the alias, or defaults; in UNNEST(...) AS name, the column is called `name` as well."""
    names = (
        tuple(column.name for column in (node.args["alias"].args.get("columns") or ()))
        if node.args.get("alias")
        else ()
    )
    if not names and isinstance(node, exp.Unnest):
        return (node.alias or "unnest",)
    if not names and isinstance(node, exp.Table):
        return (series_name(node),)
    return names or tuple(f"col{number}" for number in range(len(rows[0])))


def with_facts(bound: Released, rows: Rows) -> Released:
    """Return the rows with the facts of their columns, the sets of columns that are unique, and the repeats of other sets."""
    columns = [_column([row[number] for row in rows]) for number in range(len(rows[0]))]
    facts = tuple(column if column is None else column[0] for column in columns)
    exact = {number: column[1] for number, column in enumerate(columns) if column is not None}
    unique, null_repeats = set(), False
    repeats = {frozenset[int](): len(rows)}
    for size in range(1, _MOST_TOGETHER + 1):
        for numbers in combinations(exact, size):
            together = [
                values for values in zip(*(exact[number] for number in numbers), strict=True) if None not in values
            ]
            if len(set(together)) == len(together):
                unique.add(frozenset(numbers))
                null_repeats = null_repeats or len(together) < len(rows)
            else:
                repeats[frozenset(numbers)] = max(Counter(together).values())
    return replace(
        bound,
        facts=facts,
        unique=frozenset(unique),
        work=0,
        null_repeats=null_repeats,
        repeats=tuple(repeats.items()),
        exact=frozenset(range(len(facts))),
    )


def _stacked(rows: Rows) -> exp.Query:
    """Return a UNION ALL of rows, split in halves, so that 1,000 rows are nested ten levels deep."""
    if len(rows) == 1:
        return exp.Select(expressions=[exp.alias_(item.copy(), f"col{number}") for number, item in enumerate(rows[0])])
    middle = (len(rows) + 1) // 2
    return exp.Union(this=_stacked(rows[:middle]), expression=_stacked(rows[middle:]), distinct=False)


def _column(items: Sequence[exp.Expr]) -> tuple[Facts, list[Any]] | None:
    """Return the facts of a column of literals and its values as they are compared; None for any other column."""
    try:
        values = [_value(item) for item in items]
    except _NoLiteral:
        return None
    present = [value for value in values if value is not None]
    nullable = len(present) < len(values)
    kinds = {type(value) for value in present}
    listed = (*dict.fromkeys(present), *([None] if nullable else []))
    if kinds == {str}:
        return Facts(Type.TEXT, values=listed, nullable=nullable), values
    if kinds == {bool}:
        return Facts(Type.BOOLEAN, values=listed, nullable=nullable), values
    if kinds in ({datetime}, {date}):
        type_ = Type.TIMESTAMP if kinds == {datetime} else Type.DATE
        return Facts(type_, min(present), max(present), listed, nullable), values
    if kinds == {int}:
        low, high = Fraction(min(present)), Fraction(max(present))
        return Facts(Type.INTEGER, low, high, listed, nullable), values
    if kinds and kinds <= {int, Fraction}:
        doubles = [None if value is None else float(value) for value in values]
        return Facts(Type.REAL, min(map(Fraction, present)), max(map(Fraction, present)), None, nullable), doubles
    return None


class _NoLiteral(Exception):
    """An item of the list is not a literal."""


def _value(item: exp.Expr) -> Any:
    bare = item.unalias().unnest()
    if isinstance(bare, exp.Null):
        return None
    if isinstance(bare, exp.Boolean):
        return bool(bare.this)
    if isinstance(bare, exp.Literal):
        return literal_value(bare)
    if isinstance(bare, exp.Cast) and isinstance(bare.this, exp.Literal) and bare.this.is_string:
        type_ = _TEMPORAL.get(bare.to.sql("duckdb"))
        if type_ is not None:
            value = temporal(bare.this.name, type_, item)
            return value.date() if type_ is Type.DATE and isinstance(value, datetime) else value
    if isinstance(bare, exp.Neg) and isinstance(bare.this, exp.Literal) and not bare.this.is_string:
        return -literal_value(bare.this)
    raise _NoLiteral


# --- series -----------------------------------------------------------------------------------------------------------

MOST_IN_SERIES = 366
"""Largest number of rows, a year of days: a short text must not cause much work."""


def series_rows(node: exp.Expr) -> list[list[exp.Expr]] | None:
    """Return the rows of a series in FROM, with one column each; None for anything else. Refuses (series) ends and steps that are
    not constants, series without rows, and series of more than `MOST_IN_SERIES` rows."""
    series = node.this if isinstance(node, exp.Table) else None
    if not isinstance(series, exp.GenerateSeries):
        return None
    only(node, "this", "alias")
    only(series, "start", "end", "step", "is_end_exclusive")
    start, end = _end(series, "start"), _end(series, "end")
    step = series.args.get("step")
    after, is_upward = _steps(series, start, step)
    if type(start) is not type(end):
        raise _refusal(series, "start and end are both numbers, or both dates or timestamps")
    values = [start]
    exclusive = bool(series.args.get("is_end_exclusive"))

    def is_inside(value: Any) -> bool:
        return bool(value < end if is_upward else value > end) or (value == end and not exclusive)

    while len(values) <= MOST_IN_SERIES and is_inside(values[-1]):
        values.append(after(values[-1]))
    rows = [[_written(value)] for value in islice(values, len(values) - 1)]
    if not rows:
        raise _refusal(series, "it has no row")
    if is_inside(values[-1]):
        raise _refusal(series, "it has more rows")
    return rows


def series_name(node: exp.Table) -> str:
    """Return the column name of a series whose alias names no column: the series' alias, or else its function."""
    return node.alias or ("range" if node.this.args.get("is_end_exclusive") else "generate_series")


def _end(series: exp.GenerateSeries, name: str) -> int | datetime:
    """Return start or end as an integer or a timestamp, of constants alone (`CURRENT_DATE - INTERVAL '6 months'`)."""
    node = series.args.get(name)
    written = isinstance(node, exp.Literal) and node.is_string
    if node is None or (isinstance(node.unnest(), (exp.Literal, exp.Neg)) and not written):
        return _whole(series, node)
    try:
        value = temporal(node.name, Type.TIMESTAMP, series) if written else evaluate(Scalars(Scope([])).bind(node), {})
    except Error:
        raise _refusal(series, _CONSTANT) from None
    if type(value) is int or isinstance(value, datetime):
        return value
    if not isinstance(value, date):
        raise _refusal(series, _CONSTANT)
    return datetime.combine(value, time())


_CONSTANT = "start, end and step are constants, and a step of dates an INTERVAL"


def _whole(series: exp.GenerateSeries, node: exp.Expr | None) -> int:
    """Return the integer of a literal with or without a sign."""
    bare = node.unnest() if node is not None else None
    inner = bare.this if isinstance(bare, exp.Neg) else bare
    value = literal_value(inner) if isinstance(inner, exp.Literal) and not inner.is_string else None
    if not isinstance(value, int):
        raise _refusal(series, _CONSTANT)
    return -value if isinstance(bare, exp.Neg) else value


_WRITTEN_STEP = re.compile(r" *(-?[0-9]+) +([A-Za-z]+) *")
"""A step that is written as a text, '1 month'."""


def _interval(step: exp.Expr | None) -> exp.Interval | None:
    """Return a step of dates, which may be written as a text; None for other steps."""
    if isinstance(step, exp.Interval):
        return step
    written = _WRITTEN_STEP.fullmatch(step.name) if isinstance(step, exp.Literal) else None
    return written and exp.Interval(this=exp.Literal.string(written[1]), unit=exp.Var(this=written[2]))


def _steps(
    series: exp.GenerateSeries, start: int | datetime, step: exp.Expr | None
) -> tuple[Callable[[Any], Any], bool]:
    """Return the function from one value to the next, and whether the values increase."""
    if isinstance(start, int):
        by = 1 if step is None else _whole(series, step)
        after: Callable[[Any], Any] = lambda value: value + by  # noqa: E731
    elif (interval := _interval(step)) is not None:
        function, by = literal_interval(interval, series)
        after = partial(_later, series, function, by)
    else:
        raise _refusal(series, "a step of dates is an INTERVAL")
    if by == 0:
        raise _refusal(series, "its step is 0")
    return after, by > 0


def _later(series: exp.GenerateSeries, function: str, by: int, moment: datetime) -> datetime:
    value = evaluate(call(function, literal(moment), literal(by)), {})
    if not isinstance(value, datetime):
        raise _refusal(series, "it leaves the years 1 to 9999")
    return value


def _written(value: int | datetime) -> exp.Expr:
    if isinstance(value, int):
        number = exp.Literal.number(abs(value))
        return exp.Neg(this=number) if value < 0 else number
    return exp.Cast(this=exp.Literal.string(value.isoformat(" ")), to=exp.DataType.build("timestamp"))


def _refusal(series: exp.GenerateSeries, reason: str) -> Error:
    return refuse("series", reason=reason, most=f"{MOST_IN_SERIES:,}", position=place(series) or place(series.parent))
