"""Where DuckDB and PostgreSQL read one text differently, and the text of the one in the words of the other.

`dp.dialect = postgresql`: a quotient of integers is whole (16 documentation, 9.3), a backslash in a pattern of LIKE takes the
next character as it is (9.7.1), a cast to varchar(n) cuts (8.3), generate_series in the list of a SELECT gives rows (and no
list, 9.25), SIMILAR TO has the wildcards of LIKE (9.7.2), halves of doubles are rounded to even numbers (9.3), names without
quotes are in lower case (4.1.1), and SELECT * shows first what USING merges (7.2.1.1). Parts of
dates, and what rounds a number, are no integers there: `EXTRACT(year FROM d) / 10` is a real number. A quotient of noisy results
is a real number in both, because a noisy count is an estimate and no integer; one person's count is an integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.sql.binder.aggregates import has_aggregate
from dpsql.sql.binder.function_calls import HALF_EVEN
from dpsql.sql.binder.scalars import SHORT_TRUTHS, WHOLE
from dpsql.sql.binder.select_lists import MERGED_FIRST
from dpsql.sql.binder.trees import output_name
from dpsql.sql.lexer import place
from dpsql.sql.parse import Statement
from dpsql.sql.rewrites.bigquery import REPORT, with_reports
from dpsql.sql.rewrites.postgresql import LABEL
from dpsql.storage.records import replace

DIALECTS = ("duckdb", "postgresql")


def in_dialect(statement: Statement, dialect: str, confidence: Fraction) -> Statement:
    """Return a statement of a dialect in dpsql's words, which are DuckDB's. `confidence`: of the error bars in reports."""
    calls = statement.query.find_all(exp.Anonymous) if statement.query and exp.Anonymous in statement.kinds else ()
    if statement.query is not None and any(call.this == REPORT for call in calls):
        statement = replace(statement, query=with_reports(statement.query.copy(), confidence))
    if dialect != "postgresql" or statement.query is None:
        return statement
    nodes = statement.query.find_all(exp.Identifier, exp.GenerateSeries, exp.Join, *_READ_OTHERWISE)
    query = statement.query
    if not all(isinstance(node, exp.Identifier) and _is_folded(node) for node in nodes):
        query = statement.query.copy()
        _rewrite(query)
    _require_distinct_names(query)
    return replace(statement, query=query)


def _rewrite(query: exp.Query) -> None:
    """Write what PostgreSQL reads otherwise in DuckDB's words."""
    _rows_of_series(query)
    for star in query.find_all(exp.Star) if query.find(exp.Join) else ():
        star.meta[MERGED_FIRST] = True
    reals = _real_outputs(query) if query.find(exp.Div) else frozenset()
    for node in reversed(list(query.find_all(exp.Identifier, *_READ_OTHERWISE))):
        if isinstance(node, exp.Identifier):
            if not _is_folded(node):
                node.set("this", _folded(node.name))
        elif isinstance(node, exp.Div):
            _mark_whole(node, reals)
        elif isinstance(node, (exp.Concat, exp.ConcatWs, exp.Round, exp.SimilarTo)):
            _write_call(node)
        elif isinstance(node, exp.Cast):
            if (length := _cast_length(node)) is not None:
                if length.name == "0":
                    raise refuse("unknown_type", type=node.to.sql("duckdb"), position=place(node))
                whole = node.copy()
                whole.to.set("expressions", None)
                limited = exp.Left(this=whole, expression=length.copy())
                limited.meta[LABEL] = output_name(node)
                node.replace(limited)
        elif isinstance(node, (exp.Extract, exp.Anonymous)):
            if (moment := _seconds_of(node)) is not None:
                seconds = exp.Paren(this=_with_fraction(moment))
                seconds.meta[LABEL] = output_name(node)
                node.replace(seconds)
        elif _has_backslash(node):
            node.replace(exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")))


_READ_OTHERWISE = (
    exp.Div, exp.Like, exp.ILike, exp.Cast, exp.Extract, exp.Anonymous, exp.Concat, exp.ConcatWs, exp.Round, exp.SimilarTo,
)  # fmt: skip
"""Nodes that PostgreSQL may read otherwise than DuckDB."""

_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.LogicalAnd, exp.LogicalOr)


def _write_short_truths(node: exp.Concat | exp.ConcatWs) -> None:
    """Have concat(...) write truth values as t and f. Those of columns are known in the binder alone."""
    node.meta[SHORT_TRUTHS] = True
    for part in node.expressions:
        if isinstance(part.unnest(), _TRUTHS):
            words = [exp.If(this=part.copy(), true=exp.Literal.string("t"))]
            words.append(exp.If(this=exp.Not(this=exp.paren(part.copy())), true=exp.Literal.string("f")))
            part.replace(exp.Case(ifs=words))


def _is_folded(name: exp.Identifier) -> bool:
    return bool(name.args.get("quoted")) or name.name == _folded(name.name)


def _folded(name: str) -> str:
    return name.lower() if name.isascii() else "".join(c.lower() if c.isascii() else c for c in name)


def _rows_of_series(query: exp.Query) -> None:
    """Write each generate_series outside FROM as unnest(generate_series(...))."""
    for series in list(query.find_all(exp.GenerateSeries)):
        if not isinstance(series.parent, (exp.Table, exp.Explode)):
            rows = exp.Explode(this=series.copy())
            rows.meta[LABEL] = "generate_series"
            series.replace(rows)


def _require_distinct_names(query: exp.Query) -> None:
    """Refuse (ambiguous_column) a SELECT that has "N" and n as outputs where names are looked up in them: dpsql and DuckDB find
    columns whatever their case, so that n would be read as "N"."""
    for select in query.find_all(exp.Select):
        if select is query and not select.args.get("order"):
            continue
        spelt: dict[str, str] = {}
        for name in map(output_name, select.expressions):
            if spelt.setdefault(name.lower(), name) != name:
                raise refuse("ambiguous_column", name=name, hint="give the columns names that differ not only in case")


def _mark_whole(node: exp.Div, reals: frozenset[str]) -> None:
    """Note whether a quotient is whole over rows; one of whole literals is whole everywhere, because they are no estimates."""
    sides = (node.this, node.expression)
    node.meta[WHOLE] = not any(_is_real(side, reals) for side in sides)
    parts = [part for side in sides for part in side.walk()]
    if all(part.is_int if isinstance(part, exp.Literal) else isinstance(part, _ARITHMETIC) for part in parts):
        node.replace(exp.IntDiv(this=sides[0].copy(), expression=sides[1].copy()))


_ARITHMETIC = (exp.Neg, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod)
_REAL = (
    exp.Extract, exp.Floor, exp.Ceil, exp.Round, exp.Trunc, exp.Sign, exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day,
    exp.Hour, exp.Minute, exp.Second, exp.DayOfWeek, exp.DayOfYear,
)  # fmt: skip
"""Functions with whole results that PostgreSQL gives as real numbers."""


def _is_real(node: exp.Expr, names: frozenset[str]) -> bool:
    """Return whether PostgreSQL computes an operand as a real number by its functions, or by columns of these names."""
    if isinstance(node, _REAL) or (isinstance(node, exp.Anonymous) and str(node.this).lower() == "date_part"):
        return True
    if isinstance(node, exp.Column):
        return node.name.lower() in names
    if isinstance(node, (exp.Case, exp.If)):
        results = (*node.args.get("ifs", ()), *(node.args.get(name) for name in ("true", "false", "default")))
        return any(_is_real(result, names) for result in results if result is not None)
    whole = isinstance(node, (exp.Cast, exp.Query, exp.Length, exp.StrPosition))
    return not whole and any(_is_real(part, names) for part in node.iter_expressions())


def _real_outputs(query: exp.Query) -> frozenset[str]:
    """Return the names of outputs of subqueries that are such real numbers."""
    inner = (select for select in query.find_all(exp.Select) if select is not query)
    outputs = [(output_name(item), item) for select in inner for item in select.expressions]
    for alias in query.find_all(exp.TableAlias):
        named = alias.parent.this if alias.parent is not None else None
        outputs += zip((name.name for name in alias.columns), _items(named), strict=False)
    for union in query.find_all(exp.SetOperation):
        outputs += zip(map(output_name, _items(union.this)), _items(union.expression), strict=False)
    names: frozenset[str] = frozenset()
    while more := {name.lower() for name, item in outputs if _is_real(item.unalias(), names)} - names:
        names |= more
    return names


def _items(node: Any) -> list[exp.Expr]:
    return list(node.selects) if isinstance(node, exp.Query) else []


def _cast_length(cast: exp.Cast) -> exp.Expr | None:
    """Return the length to which a cast to varchar(n), char(n) or char cuts; None for other casts."""
    texts = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.NCHAR, exp.DType.NVARCHAR)
    lengths = cast.to.expressions if cast.to.is_type(*texts) else []
    if not lengths and cast.to.is_type(exp.DType.CHAR, exp.DType.NCHAR):
        return exp.Literal.number(1)
    return lengths[0].this if len(lengths) == 1 and isinstance(lengths[0].this, exp.Literal) else None


def _seconds_of(node: exp.Expr) -> exp.Expr | None:
    """Return the moment whose seconds EXTRACT or date_part gives; None for other nodes, and for differences."""
    parts = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    if isinstance(node, exp.Anonymous) and str(node.this).lower() != "date_part":
        return None
    if len(parts) != 2 or str(parts[0].name).lower() not in ("second", "seconds"):
        return None
    return None if isinstance(parts[1].unnest(), (exp.Sub, exp.Interval)) else parts[1]


def _with_fraction(moment: exp.Expr) -> exp.Expr:
    """Return the seconds of a moment with their fraction: those since 1970, less those at the beginning of the minute, of which
    only the last microseconds are not exact."""
    minute = exp.TimestampTrunc(this=moment.copy(), unit=exp.Var(this="MINUTE"))
    since, start = (exp.Extract(this=exp.Var(this="EPOCH"), expression=each) for each in (moment.copy(), minute))
    limits = (exp.Literal.number(0), exp.Literal.number(60))
    bounded = exp.Least(this=exp.Sub(this=since, expression=start), expressions=[limits[1]])
    return exp.Round(this=exp.Greatest(this=bounded, expressions=[limits[0]]), decimals=exp.Literal.number(6))


def _write_call(node: exp.Concat | exp.ConcatWs | exp.Round | exp.SimilarTo) -> None:
    if isinstance(node, (exp.Concat, exp.ConcatWs)):
        _write_short_truths(node)
    elif isinstance(node, exp.Round):
        if _has_even_halves(node):
            node.meta[HALF_EVEN] = True
    elif isinstance(node.expression, exp.Literal):
        node.set("expression", exp.Literal.string(_as_regular_expression(node.expression.name)))


def _has_even_halves(node: exp.Round) -> bool:
    """Return whether PostgreSQL may round the operand of a call as a double, by which halves become even; numeric has others."""
    return node.args.get("decimals") is None and node.this.find(exp.Cast) is None and not has_aggregate(node.this)


_SIMILAR = {"%": r"(.|\n)*", "_": r"(.|\n)", **{sign: f"\\{sign}" for sign in ".^$"}}


def _as_regular_expression(pattern: str) -> str:
    """Return a pattern of SIMILAR TO, which has the wildcards of LIKE, as a regular expression (9.7.2)."""
    parts = re.findall(r"\\.|\[[^\]]*\]|.", pattern, re.DOTALL)
    return "".join(re.escape(part[1]) if part[0] == "\\" and part[1:] else _SIMILAR.get(part, part) for part in parts)


def _has_backslash(node: exp.Expr) -> bool:
    texts = [text.name for text in node.expression.find_all(exp.Literal) if text.is_string]
    return any("\\" in text for text in texts) and not isinstance(node.parent, exp.Escape)


def differences(statement: Statement) -> tuple[str, ...]:
    """Return what a text says that the two dialects read differently, in words."""
    if statement.query is None or not statement.has(exp.Join, *_READ_OTHERWISE):
        return ()
    texts = dict.fromkeys(_orders_of_stars(statement.query))
    texts |= dict.fromkeys(text for node in statement.query.find_all(*_READ_OTHERWISE) if (text := _difference(node)))
    return tuple(texts)


def _difference(node: exp.Expr) -> str:
    """Return what the two dialects read differently in a node, empty if nothing."""
    differs = True
    if isinstance(node, exp.Div):
        select = node.find_ancestor(exp.Select)
        by_unit = select is not None and select.parent is not None and select.args.get("group")
        differs = not has_aggregate(node) or bool(by_unit)
        text = "a / b of two integers is whole in postgresql, real in duckdb"
    elif isinstance(node, exp.Cast):
        differs = _cast_length(node) is not None
        text = "a cast to varchar(n) or char cuts in postgresql, and does not in duckdb"
    elif isinstance(node, exp.Round):
        differs = _has_even_halves(node)
        text = "round(x) of a double 2.5 is 2 in postgresql, and 3 in duckdb"
    elif isinstance(node, exp.SimilarTo):
        text = "SIMILAR TO has the wildcards of LIKE in postgresql, and is a regular expression in duckdb"
    elif isinstance(node, (exp.Extract, exp.Anonymous)):
        differs = _seconds_of(node) is not None
        text = "the seconds of a timestamp have a fraction in postgresql, and are whole in duckdb"
    elif isinstance(node, (exp.Concat, exp.ConcatWs)):
        differs = any(isinstance(part.unnest(), _TRUTHS) for part in node.expressions)
        text = "concat writes truth values as t and f in postgresql, as true and false in duckdb"
    else:
        differs = _has_backslash(node)
        text = "a backslash in LIKE is an escape in postgresql, a character in duckdb"
    return text if differs else ""


def _orders_of_stars(query: exp.Query) -> Iterator[str]:
    """Yield what is said of SELECT * over joins that merge columns."""
    for join in query.find_all(exp.Join):
        items = join.parent.expressions if isinstance(join.parent, exp.Select) else ()
        if (join.args.get("using") or join.args.get("method")) and any(isinstance(item, exp.Star) for item in items):
            yield "SELECT * shows columns of USING first in postgresql, where the first table has them in duckdb"
