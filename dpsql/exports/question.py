"""Questions that a table of randomised rows answers: a small part of SQL, read by an allow-list.

SELECT category, ..., COUNT(*), COUNT(c), SUM(c), AVG(c) FROM rows [WHERE category = value AND category IN (...) AND category IS
[NOT] NULL ...] [GROUP BY category, ...]; conditions may also be <>, NOT, and tests of truth values. Everything else is refused: a
result without an unbiased estimate here would be wrong without anybody noticing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.errors.exceptions import Error, refuse, suggestion
from dpsql.exports.description import CategoryColumn, Description, NumberColumn
from dpsql.sql.lexer import POSTGRESQL, as_piece
from dpsql.sql.parser import parse_tokens

_PARTS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.EQ: ("this", "expression"),
    exp.NEQ: ("this", "expression"),
    exp.In: ("this", "expressions"),
    exp.Is: ("this", "expression", "negate"),
}
"""The parts of a condition that are read; a condition with any other part is refused."""
_AGGREGATES: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


@dataclass(frozen=True)
class EstimateOutput:
    """One output column: `key` (the position of a grouped column), or an aggregate of `column` (None: of rows)."""

    name: str
    aggregate: str
    column: CategoryColumn | NumberColumn | None
    key: int | None = None


@dataclass(frozen=True)
class EstimateQuestion:
    """A question that was read. `allowed`: for each column with a condition, the codes of the values that satisfy it."""

    outputs: tuple[EstimateOutput, ...]
    keys: tuple[CategoryColumn, ...]
    allowed: dict[str, frozenset[int]]


def read_question(sql: str, description: Description) -> EstimateQuestion:
    """Read one SELECT. Raises Refusal estimate_sql, unknown_table, unknown_column."""
    try:
        statements = parse_tokens(as_piece(sql).tokens(POSTGRESQL), sql, POSTGRESQL)
    except (Error, SqlglotError, RecursionError):
        raise _refused("this is not SQL") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise _refused("one SELECT is answered at a time")
    select = statements[0]
    for name, part in select.args.items():
        if part and name not in ("expressions", "from_", "from", "where", "group", "kind"):
            raise _refused(f"{name.rstrip('_').upper()} is not answered")
    _check_source(select, description)
    group = select.args.get("group")
    keys: list[CategoryColumn] = []
    for entry in [] if group is None else _grouped(group):
        column = _column(entry, description)
        if isinstance(column, NumberColumn):
            raise _refused(f"GROUP BY {column.name} is not answered: it holds randomised numbers")
        if column not in keys:
            keys.append(column)
    outputs = tuple(_output(item, keys, description) for item in select.expressions)
    if all(output.key is not None for output in outputs):
        raise _refused("a SELECT without COUNT, SUM or AVG is not answered")
    where = select.args.get("where")
    allowed: dict[str, frozenset[int]] = {}
    for condition in [] if where is None else _conjuncts(where.this):
        category, codes = _condition(condition, description)
        allowed[category.name] = allowed.get(category.name, codes) & codes
    return EstimateQuestion(outputs, tuple(keys), allowed)


def _has_only(node: exp.Expr, *parts: str) -> bool:
    """Return whether a node has no parts other than `parts`, which are read."""
    return not any(value for name, value in node.args.items() if name not in parts)


def _refused(problem: str) -> Error:
    return refuse("estimate_sql", problem=problem)


def _check_source(select: exp.Select, description: Description) -> None:
    source = select.args.get("from_") or select.args.get("from")
    table = None if source is None else source.this
    if not isinstance(table, exp.Table) or any(value for name, value in table.args.items() if name != "this"):
        raise _refused("FROM names the one table, without an alias")
    if table.name.lower() not in (description.table.lower(), "rows"):
        raise refuse("unknown_table", name=table.name, hint=suggestion(table.name, [description.table, "rows"]))


def _grouped(group: exp.Group) -> list[exp.Expr]:
    if any(part for name, part in group.args.items() if name != "expressions"):
        raise _refused("GROUP BY names columns: no ALL, no grouping sets")
    return list(group.expressions)


def _column(node: exp.Expr, description: Description) -> CategoryColumn | NumberColumn:
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or not _has_only(node, "this"):
        raise _refused(f"{node.sql()[:60]} stands where a column has to")
    column = description.column(node.name)
    if column is None:
        names = [entry.name for entry in description.columns]
        raise refuse("unknown_column", name=node.name, hint=suggestion(node.name, names))
    return column


def _output(item: exp.Expr, keys: list[CategoryColumn], description: Description) -> EstimateOutput:
    alias = item.alias if isinstance(item, exp.Alias) else ""
    node = item.this if isinstance(item, exp.Alias) else item
    if isinstance(node, exp.Column):
        column = _column(node, description)
        if column not in keys:
            raise _refused(f"{column.name} has to stand in GROUP BY")
        return EstimateOutput(alias or node.name, "", column, keys.index(column))
    word = _AGGREGATES.get(type(node))
    if word is None or not _has_only(node, "this", "big_int"):
        raise _refused(f"{node.sql()[:60]} is not answered")
    if isinstance(node.this, exp.Star):
        return EstimateOutput(alias or "count", word, None)
    column = _column(node.this, description)
    if word != "count" and isinstance(column, CategoryColumn) and column.type not in ("int64", "double"):
        raise _refused(f"{word.upper()}({column.name}) is not answered: it holds no numbers")
    return EstimateOutput(alias or word, word, column)


def _conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.And):
        yield from _conjuncts(node.left)
        yield from _conjuncts(node.right)
    else:
        yield node


def _condition(node: exp.Expr, description: Description) -> tuple[CategoryColumn, frozenset[int]]:
    """Return the column of a condition on categories, and the codes of the values that satisfy it; NULL satisfies no
    comparison."""
    if isinstance(node, exp.Not) and _has_only(node, "this"):
        category, codes = _condition(node.this.unnest(), description)
        nulls = frozenset() if isinstance(node.this.unnest(), exp.Is) else _nulls(category)
        return category, frozenset(range(len(category.values))) - codes - nulls
    if isinstance(node, exp.Column):
        node = exp.EQ(this=node, expression=exp.true())
    if not isinstance(node, (exp.EQ, exp.NEQ, exp.In, exp.Is)) or not _has_only(node, *_PARTS[type(node)]):
        raise _refused(f"the condition {node.sql()[:60]} is not answered")
    column = _column(node.this, description)
    if isinstance(column, NumberColumn):
        raise _refused(f"a condition on {column.name} is not answered: it holds randomised numbers")
    if isinstance(node, exp.Is):
        if not isinstance(node.expression, (exp.Null, exp.Boolean)):
            raise _refused(f"the condition {node.sql()[:60]} is not answered")
        codes = _codes(column, [node.expression])
        return column, frozenset(range(len(column.values))) - codes if node.args.get("negate") else codes
    listed = node.expressions if isinstance(node, exp.In) else [node.expression]
    if not listed or any(isinstance(entry, exp.Null) for entry in listed):
        raise _refused(f"the condition {node.sql()[:60]} is not answered")
    codes = _codes(column, listed)
    remaining = frozenset(range(len(column.values))) - codes - _nulls(column)
    return column, remaining if isinstance(node, exp.NEQ) else codes


def _nulls(column: CategoryColumn) -> frozenset[int]:
    return frozenset(code for code, value in enumerate(column.values) if value is None)


def _codes(column: CategoryColumn, listed: list[exp.Expr]) -> frozenset[int]:
    """Return the codes of literals. Refuse a literal that is none of the column's values, because its count would be 0 for
    certain."""
    texts = {_text(value): code for code, value in enumerate(column.values)}
    codes = set()
    for node in listed:
        text = _literal(node)
        if text not in texts:
            raise _refused(f"{node.sql()[:60]} is none of the values of {column.name}")
        codes.add(texts[text])
    return frozenset(codes)


def _text(value: Any) -> str | None:
    """Return a value as its literal is written; numbers have a single spelling."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{float(value)!r}" if isinstance(value, (int, float)) else str(value)


def _literal(node: exp.Expr) -> str | None:
    negative = isinstance(node, exp.Neg)
    inner = node.this if negative else node
    if isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return "true" if node.this else "false"
    if isinstance(inner, exp.Literal) and not (negative and inner.is_string):
        return inner.name if inner.is_string else f"{(-1 if negative else 1) * float(inner.name)!r}"
    raise _refused(f"{node.sql()[:60]} stands where a value has to")
