"""Spellings of other systems, rewritten as DuckDB's: aggregates, lists of values, and brackets around joins.

Spark's and Trino's percentile_approx(x, q [, accuracy]), approx_percentile and percentile, and PostgreSQL's mode() WITHIN GROUP
(ORDER BY x). The accuracy limits the memory of an approximation; it is ignored, because dpsql does not approximate. For the same
reason APPROX_COUNT_DISTINCT(x) is COUNT(DISTINCT x). FETCH FIRST n ROWS ONLY is LIMIT n; OFFSET 0 and LIMIT ALL have no effect.

Casts are judged in the text, so that they mean the same over rows, over results and over public tables: those of literals that
have no such value are refused, and reals of single precision are read as double.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.functions.evaluate import evaluate
from dpsql.functions.numeric import call
from dpsql.plan.intervals import Type
from dpsql.plan.plan import literal
from dpsql.sql.lexer import place
from dpsql.sql.rewrites.comparisons import with_times_of_day
from dpsql.sql.rewrites.postgresql import LABEL
from dpsql.sql.rewrites.read_times import made_date, read_time, time_as_text

_APPROXIMATE = {"percentile_approx", "approx_percentile"}
_EXACT = "percentile"


def in_own_spelling(tree: exp.Query) -> exp.Query:
    """Return the tree in DuckDB's spellings, and without brackets around the first joins of a FROM: they have no effect, because
    joins are made from left to right."""
    for select in list(tree.find_all(exp.Select)):
        _without_brackets(select)
        if select is not tree:
            _numbered(select)
    for fetch in list(tree.find_all(exp.Fetch)):
        _as_limit(fetch)
    for clause in list(tree.find_all(exp.Limit, exp.Offset)):
        count = clause.args["expression"]
        none_skipped = isinstance(clause, exp.Offset) and isinstance(count, exp.Literal) and count.name == "0"
        if none_skipped or isinstance(count, exp.Null) or (isinstance(count, exp.Var) and count.name.upper() == "ALL"):
            clause.pop()
    for membership in tree.find_all(exp.In):
        _as_list(membership)
    spelt = (exp.Anonymous, exp.Extract, exp.WithinGroup, exp.ApproxDistinct, exp.DateFromParts, *SAME)
    for node in reversed(list(tree.find_all(*spelt))):  # arguments before the calls that repeat them
        respelt: exp.Expr | None
        if isinstance(node, SAME) or str(node.this).lower() in _RENAMED:
            respelt = _in_known_words(node)
        elif isinstance(node, (exp.ApproxDistinct, exp.DateFromParts)):
            respelt = _distinct_count(node) if isinstance(node, exp.ApproxDistinct) else _literal_date(node)
        elif isinstance(node, exp.WithinGroup):
            respelt = _ordered_mode(node)
        else:
            respelt = _years_of_age(node) or _percentile(node)
            _as_json(node)
        if respelt is not None:
            _check_size(node, respelt)
            node.replace(respelt)
    return tree


_MOST_WRITTEN = 3_000
"""Largest number of nodes of a call that is written with several copies of its arguments."""


def _check_size(node: exp.Expr, respelt: exp.Expr) -> None:
    """Refuse (slow_expression) calls within calls whose arguments are copied again and again."""
    size = sum(1 for _ in respelt.walk())
    if size > _MOST_WRITTEN and size > 2 * sum(1 for _ in node.walk()):
        raise refuse("slow_expression", way="compute the inner value in a subquery in FROM", position=place(node))


def _numbered(select: exp.Select) -> None:
    """Write DISTINCT ON (a) ... ORDER BY a, b in a subquery as QUALIFY row_number() OVER (PARTITION BY a ORDER BY a, b) = 1,
    which can be answered over protected rows where `a` is the unit's key."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = distinct.args.get("on") if distinct is not None else None
    clauses = ("group", "having", "qualify", "limit", "offset")
    if on is None or any(select.args.get(clause) is not None for clause in clauses):
        return
    if any(item.find(exp.AggFunc) for item in select.expressions):
        return
    keys = on.expressions if isinstance(on, exp.Tuple) else [on]
    ordered = order.expressions if order is not None else []
    outputs = _outputs(select)
    nodes = [*keys, *(item.this for item in ordered)]
    if any(
        isinstance(node, exp.Var) or (isinstance(node, exp.Literal) and _output(node) not in outputs) for node in nodes
    ):
        return  # ORDER BY ALL, or a position that only the engine can count
    keys = [outputs.get(_output(key), key).copy() for key in keys]
    sorted_by = [
        exp.Ordered(**{**item.args, "this": outputs.get(_output(item.this), item.this).copy()}) for item in ordered
    ]
    window = exp.Window(this=exp.RowNumber(), partition_by=keys, over="OVER")
    if sorted_by:
        window.set("order", exp.Order(expressions=sorted_by))
    select.set("distinct", None)
    select.set("order", None)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))


def _outputs(select: exp.Select) -> dict[str | int | None, exp.Expr]:
    """Return what the names and the positions of a SELECT's columns stand for; no positions beside *."""
    items = select.expressions
    outputs: dict[str | int | None, exp.Expr] = {item.alias.lower(): item.unalias() for item in items if item.alias}
    starred = any(item.find(exp.Star, exp.Columns) for item in items)
    return outputs | {number: item.unalias() for number, item in enumerate(() if starred else items, 1)}


def _output(node: exp.Expr) -> str | int | None:
    """Return the name or the position of a column in ORDER BY; None for an expression."""
    if isinstance(node, exp.Literal):
        return int(node.name) if node.is_int else None
    return node.name.lower() if isinstance(node, exp.Column) and not node.table else None


_RENAMED = {
    "btrim": ("trim", 1), "cardinality": ("len", 1), "datepart": ("date_part", 2), "iff": ("if", 3), "isfinite": ("isfinite", 1),
    "octet_length": ("strlen", 1), "to_date": ("to_date", 2), "strptime": ("strptime", 2),
    "try_strptime": ("strptime", 2),
}  # fmt: skip
"""Functions that DuckDB has under another name or not for all types, with that name and the number of their arguments."""
_READING = {"to_date": Type.DATE, "strptime": Type.TIMESTAMP}
SAME = (
    exp.ArrayContains, exp.ArraySize, exp.Bracket, exp.IsInf, exp.IsNan, exp.SafeDivide, exp.StrToTime, exp.ToChar,
    exp.UnixToTime,
)  # fmt: skip
"""Functions that are written with others, so that they mean the same over rows, results and public tables."""


def _in_known_words(node: exp.Expr) -> exp.Expr | None:
    """Return a function of `SAME` or `_RENAMED` in words of rows, results and public tables; None if used otherwise."""
    value, label = node.this, node.sql_name().lower() if isinstance(node, exp.Func) else ""
    written: exp.Expr | None = None
    if isinstance(node, exp.Anonymous):
        label = str(value).lower()
        (name, most), parts = _RENAMED[label], node.expressions
        if len(parts) == most == 2 and name in _READING:
            written = read_time(node, parts[0], parts[1], _READING[name])
        elif len(parts) == most:
            written = _is_finite(parts[0]) if name == "isfinite" else exp.func(name, *parts, dialect="duckdb")
    elif isinstance(node, (exp.ArraySize, exp.Bracket)):
        written = _of_list(node)
    elif isinstance(node, exp.ArrayContains):
        if isinstance(value, exp.Array):
            items = [item for item in value.expressions if not isinstance(item, exp.Null)]
            written = exp.In(this=node.expression, expressions=items) if items else None
    elif isinstance(node, exp.IsInf):
        written = exp.Paren(this=exp.Not(this=exp.Or(this=_is_finite(value), expression=_is_nan(value))))
    elif isinstance(node, exp.IsNan):
        written = _is_nan(value)
    elif isinstance(node, exp.SafeDivide):
        divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number(0))
        written = exp.Div(this=exp.cast(value, "DOUBLE", dialect="duckdb"), expression=divisor)
    elif isinstance(node, (exp.StrToTime, exp.UnixToTime)):
        parts = list(node.iter_expressions())
        written = read_time(node, parts[0], parts[1], Type.TIMESTAMP) if len(parts) == 2 else None
    else:
        written = time_as_text(node, value, node.args.get("format"))
    if written is not None and label:
        written.meta[LABEL] = label
    return written


def _of_list(node: exp.ArraySize | exp.Bracket) -> exp.Expr | None:
    """Return a list's length, and GoogleSQL's list[OFFSET(n)], list[ORDINAL(n)] and SAFE_ forms with an index from 1."""
    if isinstance(node, exp.ArraySize):
        along = node.args.get("expression")
        return exp.Length(this=node.this) if along is None or along == exp.Literal.number(1) else None
    index = node.expressions[0]
    first = (
        _FIRST.get(str(index.this).upper()) if isinstance(index, exp.Anonymous) and len(node.expressions) == 1 else None
    )
    number = index.expressions[0] if first is not None and len(index.expressions) == 1 else None
    if not isinstance(number, exp.Literal) or not number.is_int:
        return None
    index_from_one = int(number.name) + 1 - (first or 0)
    if (quantiles := equal_parts(node.this)) and 1 <= index_from_one <= len(quantiles):
        return quantiles[index_from_one - 1]
    copy = node.copy()
    copy.set("expressions", [exp.Literal.number(index_from_one)])
    return copy


MOST_SHARES = 101
"""Largest number of shares in one call: all percentiles and both ends."""
_DECIMALS = 6


def equal_parts(call: exp.Expr) -> list[exp.Expr]:
    """Return the quantiles that APPROX_QUANTILES(x, n) lists, to six decimals, each with its FILTER; nothing for other calls."""
    if isinstance(call, exp.Filter):
        return [exp.Filter(this=part, expression=call.expression.copy()) for part in equal_parts(call.this)]
    count = call.args.get("expression") if isinstance(call, exp.ApproxQuantiles) else None
    number = int(count.name) if isinstance(count, exp.Literal) and not count.is_string and count.name.isdecimal() else 0
    shares = [exp.Literal.number(f"{part / number:.{_DECIMALS}f}") for part in range(number + 1)] if number else []
    return [exp.Quantile(this=call.this.copy(), quantile=share) for share in shares] if number < MOST_SHARES else []


_FIRST = {"OFFSET": 0, "SAFE_OFFSET": 0, "ORDINAL": 1, "SAFE_ORDINAL": 1}


def _is_nan(value: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.EQ(this=value.copy(), expression=_not_finite("nan")))


def _is_finite(value: exp.Expr) -> exp.Expr:
    above = exp.GT(this=value.copy(), expression=_not_finite("-inf"))
    return exp.Paren(this=exp.And(this=above, expression=exp.LT(this=value.copy(), expression=_not_finite("inf"))))


def _not_finite(text: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), "DOUBLE", dialect="duckdb")


def _as_json(node: exp.Expr) -> None:
    """Write PostgreSQL's json_agg(x) and jsonb_agg(x) as the text of the list of all x."""
    name = str(node.this).lower()
    if not isinstance(node, exp.Anonymous) or name not in ("json_agg", "jsonb_agg") or len(node.expressions) != 1:
        return
    whole = node.parent if isinstance(node.parent, exp.Filter) else node
    values: exp.Expr = exp.ArrayAgg(this=node.expressions[0])
    if whole is not node:
        values = exp.Filter(this=values, expression=whole.expression)
    listed = exp.Anonymous(this="to_json", expressions=[values])
    listed.meta[LABEL] = name
    whole.replace(exp.cast(listed, "VARCHAR", dialect="duckdb"))


def _as_limit(fetch: exp.Fetch) -> None:
    """Read FETCH FIRST n ROWS ONLY as LIMIT n."""
    options = fetch.args.get("limit_options")
    if options is None or not (options.args.get("percent") or options.args.get("with_ties")):
        fetch.replace(exp.Limit(expression=fetch.args.get("count") or exp.Literal.number(1)))


def _as_list(membership: exp.In) -> None:
    """Read x IN (VALUES (1), (2)) and x IN (SELECT unnest([1, 2])) as x IN (1, 2)."""
    query, written = membership.args.get("query"), membership.expressions
    items = _listed(query or written[0]) if query or (len(written) == 1 and isinstance(written[0], exp.Values)) else []
    if items and not any(item.find(exp.Column, exp.Query) for item in items):
        membership.set("query", None)
        membership.set("expressions", items)


def _listed(query: exp.Expr) -> list[exp.Expr]:
    """Return the items of one column of rows that stand in the text: VALUES, unnest(ARRAY[...]), SELECT of a constant, and SELECT
    and UNION of such; none for anything else."""
    written = {name for name, value in query.args.items() if value}
    if isinstance(query, exp.Subquery) and written == {"this"}:
        return _listed(query.this)
    if isinstance(query, exp.Values):
        items = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in query.expressions]
        return [item for (item,) in items] if all(len(item) == 1 for item in items) else []
    if isinstance(query, (exp.Unnest, exp.Explode)):
        array = query.this or query.expressions[0]
        return array.expressions if isinstance(array, exp.Array) and len(query.expressions) < 2 else []
    if isinstance(query, exp.Union) and written <= {"this", "expression", "distinct"}:
        sides = [_listed(query.this), _listed(query.expression)]
        return sides[0] + sides[1] if all(sides) else []
    if not isinstance(query, exp.Select) or not written <= {"expressions", "from_"} or len(query.expressions) != 1:
        return [query] if isinstance(query, exp.Literal) else []
    (item,), source = query.expressions, query.args.get("from_")
    if source is None:
        return _listed(item)
    alias = source.this.args.get("alias")
    names = [column.name.lower() for column in alias.columns] if alias else []
    is_column = isinstance(item, exp.Column) and not item.table and [item.name.lower()] == names
    return _listed(source.this) if is_column or isinstance(item, exp.Star) else []


def _without_brackets(select: exp.Select) -> None:
    """Read a SELECT without brackets around joins where joins from left to right mean the same: around the first joins of FROM,
    around inner joins that are joined by a comma or an inner join, and around the right side of the first join, whose sides
    change places. No brackets but several ON at the end mean the same as brackets."""
    first = select.args.get("from_")
    if first is None:
        return
    source, joins = _opened(first.this)
    joins = [*joins, *(select.args.get("joins") or ())]
    position = 0
    while position < len(joins):
        join = joins[position]
        inner, within = _opened(join.this)
        opened = exp.Join(**{**join.args, "this": inner})
        if not within or _opens(join, within):
            joins[position : position + 1] = _flat(opened, within)
        elif position == 0 and not join.args.get("method") and not any(item.is_star for item in select.expressions):
            side = _OTHER_SIDE.get(join.side, join.side)
            last = exp.Join(**{**join.args, "this": source, "side": side or None})
            source, joins[:1] = inner, [*within, last]
            continue
        position += 1
    first.set("this", source)
    select.set("joins", joins or None)


_OTHER_SIDE = {"LEFT": "RIGHT", "RIGHT": "LEFT"}


def _is_inner(join: exp.Join) -> bool:
    return not join.side and not join.args.get("method") and join.kind in ("", "INNER", "CROSS")


def _opens(join: exp.Join, within: Sequence[exp.Join]) -> bool:
    """Return whether joins mean the same without the brackets to the right of `join`. USING in them names only what stands in
    them, and so does all after a comma."""
    names = any(inner.args.get("using") for inner in within)
    comma = not join.kind and join.args.get("on") is None
    return (
        _is_inner(join)
        and not join.args.get("using")
        and (comma or not names)
        and all(_is_inner(inner) for inner in within)
    )


def _flat(join: exp.Join, within: list[exp.Join]) -> list[exp.Join]:
    """Return an inner join and then those `within` its brackets. Its condition holds after the last of them."""
    condition = join.args.get("on")
    if not within or condition is None:
        return [join, *within]
    *before, last = within
    joined = [part for part in (last.args.get("on"), condition) if part is not None]
    kind = last.args.get("kind") if last.args.get("on") else None
    ended = exp.Join(**{**last.args, "kind": kind, "on": exp.and_(*joined, copy=False)})
    return [exp.Join(this=join.this, kind="CROSS"), *before, ended]


def _opened(source: exp.Expr) -> tuple[exp.Expr, list[exp.Join]]:
    """Return a source of FROM without the brackets around it, and the joins that stood within them."""
    joins: list[exp.Join] = []
    while (
        isinstance(source, exp.Subquery)
        and isinstance(source.this, (exp.Table, exp.Subquery))
        and not any(value for name, value in source.args.items() if name not in ("this", "joins"))
    ):
        if isinstance(source.this, exp.Table) and not (source.args.get("joins") or source.this.args.get("joins")):
            hint = f"write {source.this.sql(dialect='duckdb')} without them; brackets stand around a join or a SELECT"
            raise refuse("syntax", detail="brackets stand around one table", hint=hint, position=place(source))
        joins[:0] = source.args.get("joins") or ()
        source = source.this
    if isinstance(source, (exp.Table, exp.Subquery)) and source.args.get("joins"):
        joins[:0] = source.args["joins"]
        source.set("joins", None)
    return source, joins


def _percentile(node: exp.Expr) -> exp.Expr | None:
    if not isinstance(node, exp.Anonymous):
        return None
    name, arguments = str(node.this).lower(), node.expressions
    if name == "var" and len(arguments) == 1:
        return exp.Variance(this=arguments[0])
    if name == _EXACT and len(arguments) == 2:
        return exp.PercentileCont(this=arguments[0], expression=arguments[1])
    if name not in _APPROXIMATE or not 2 <= len(arguments) <= 3:
        return None
    if len(arguments) == 3 and not (isinstance(arguments[2], exp.Literal) and not arguments[2].is_string):
        return None
    return exp.ApproxQuantile(this=arguments[0], quantile=arguments[1])


_IN_YEAR = "%m%d%H%M%S"
"""The moment within its year, as a text that is ordered as the moments are."""


def _years_of_age(node: exp.Expr) -> exp.Expr | None:
    """Return the whole years from one date to another for EXTRACT(YEAR FROM age(later, earlier)) and date_part('year', age(...)),
    where age(earlier) counts to the day of the question; None for other expressions."""
    if isinstance(node, exp.Extract):
        unit, span = node.this, node.expression
    elif isinstance(node, exp.Anonymous) and str(node.this).lower() == "date_part" and len(node.expressions) == 2:
        unit, span = node.expressions
    else:
        return None
    if str(unit.name).lower() not in ("year", "years") or not isinstance(span, exp.Anonymous):
        return None
    if str(span.this).lower() != "age" or len(span.expressions) not in (1, 2):
        return None
    *until, since = span.expressions
    later = until[0] if until else exp.CurrentDate()
    forward, back = _whole_years(later, since), exp.Neg(this=exp.paren(_whole_years(since, later)))
    return exp.Case(ifs=[exp.If(this=exp.GTE(this=later.copy(), expression=since.copy()), true=forward)], default=back)


def _whole_years(later: exp.Expr, since: exp.Expr) -> exp.Expr:
    """Return the difference of the calendar years, less one before the day of the year is reached."""
    of_later, of_since = (
        exp.TimeToStr(this=moment.copy(), format=exp.Literal.string(_IN_YEAR)) for moment in (later, since)
    )
    years = exp.Sub(this=exp.Year(this=later.copy()), expression=exp.Year(this=since.copy()))
    unfinished = exp.If(this=exp.LT(this=of_later, expression=of_since), true=exp.Literal.number(1))
    return exp.Sub(this=years, expression=exp.Case(ifs=[unfinished], default=exp.Literal.number(0)))


def _literal_date(node: exp.DateFromParts) -> exp.Expr | None:
    """Return make_date(2024, 1, 31) as DATE '2024-01-31', and of computed parts as a cast of a text."""
    parts = [node.args.get(part) for part in ("year", "month", "day")]
    if not all(isinstance(part, (exp.Literal, exp.Neg)) for part in parts) and len(list(node.iter_expressions())) == 3:
        return made_date([part for part in parts if part is not None])
    days = [part.name.zfill(2) for part in parts if isinstance(part, exp.Literal) and part.is_int]
    written = exp.cast(exp.Literal.string("-".join(days)), "date", dialect="duckdb")
    written.this.meta.update(node.meta)
    return written if len(days) == 3 else None


def _distinct_count(node: exp.ApproxDistinct) -> exp.Expr | None:
    """Return COUNT(DISTINCT x) for APPROX_COUNT_DISTINCT(x), None with an accuracy: approximating saves no noise."""
    if node.args.get("accuracy") is not None:
        return None
    return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)


def _ordered_mode(node: exp.WithinGroup) -> exp.Expr | None:
    """Return MODE(x) for MODE() WITHIN GROUP (ORDER BY x), whose order only names the values; None for other aggregates."""
    order = node.expression
    if not isinstance(node.this, exp.Mode) or node.this.args.get("this") is not None or len(order.expressions) != 1:
        return None
    return exp.Mode(this=order.expressions[0].this)


# --- casts ------------------------------------------------------------------------------------------------------------

NOT_FINITE = re.compile(r"\s*(nan|[+-]?inf(inity)?)\s*", re.IGNORECASE)
"""Texts of reals that are no finite numbers."""
_READ_AS = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT), Type.INTEGER),
    **dict.fromkeys((exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL), Type.REAL),
    exp.DType.BOOLEAN: Type.BOOLEAN,
}
_CALLED = {
    Type.INTEGER: ("an integer", "digits alone, as in '40'"),
    Type.REAL: ("a number", "it with a decimal point, as in '1234.5'"),
    Type.BOOLEAN: ("a truth value", "'true' or 'false'"),
}


def with_plain_casts(tree: exp.Query) -> exp.Query:
    """Return the tree with DOUBLE for FLOAT and REAL, and times of day compared as moments. Refuses (unreadable_literal) a cast,
    not a TRY_CAST, of a text literal that is no value of the type: it would be NULL, and the charged answer one about nothing."""
    for cast in with_times_of_day(tree).find_all(exp.Cast):
        if cast.to.this is exp.DType.FLOAT:
            cast.set("to", exp.DataType(this=exp.DType.DOUBLE))
        if not isinstance(cast, exp.TryCast):
            _check(cast)
    return tree


def _check(cast: exp.Cast) -> None:
    value, type_ = cast.this.unnest(), _READ_AS.get(cast.to.this)
    if type_ is None or not isinstance(value, exp.Literal) or not value.is_string:
        return
    text = str(value.this)
    if type_ is Type.REAL and NOT_FINITE.fullmatch(text):
        return
    if evaluate(call(f"to_{type_.value}", literal(text)), {}) is None:
        called, such = _CALLED[type_]
        raise refuse("unreadable_literal", text=text, called=called, such=such, position=place(value))
