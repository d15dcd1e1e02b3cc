"""Row expressions as short SQL for people: plans, stored releases, remarks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from dpsql.plan.plan import (
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    ReleasedRows,
    ReleasedValue,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
)
from dpsql.privacy.loss import plain_decimal

MOST_READ = 1_000
"""Characters of a text that row functions read, unless the query limits it by left() or substr()."""
MOST_MATCHED = 500
"""Characters of a text that regular expressions read, under the same condition."""
_INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "intdiv": "//", "mod": "%", "eq": "=", "ne": "<>", "lt": "<",
    "le": "<=", "gt": ">", "ge": ">=", "and": "and", "or": "or", "like": "like", "ilike": "ilike",
    "not_distinct": "is not distinct from",
}  # fmt: skip
_AROUND = {
    "neg": "-{0}", "not": "not {0}", "is_null": "{0} is null", "is_true": "{0} is true", "is_false": "{0} is false",
    **{f"to_{type_}": f"cast({{0}} as {type_})" for type_ in ("integer", "real", "text", "boolean", "date", "timestamp")},
}  # fmt: skip
"""Formats that write functions of one argument in SQL."""


def expression_text(expression: Expr, columns: Mapping[str, str] | None = None) -> str:
    """Return a row expression as short text for people, with `(select ...)` for a subquery's value. `columns`: texts of columns
    that have no name in the question (`column_texts`)."""
    if isinstance(expression, ReleasedValue):
        return "(select ...)"
    if isinstance(expression, Column):
        named = (columns or {}).get(expression.name)
        return named or expression.name.rpartition(".")[2]  # without the side of a join, which only the plan names
    if isinstance(expression, Literal):
        return _value(expression.value)
    assert isinstance(expression, Call)
    name, parts = expression.function, [expression_text(_whole(argument), columns) for argument in expression.arguments]
    if name in _INFIX:
        return "(" + f" {_INFIX[name]} ".join(parts) + ")"
    if name in _AROUND and len(parts) == 1:
        return _AROUND[name].format(parts[0])
    if name == "in":
        return f"{parts[0]} in ({', '.join(parts[1:])})"
    if name == "case":
        return _case(parts)
    return f"{name}({', '.join(parts)})"


def with_filter(text: str, condition: Expr | None, columns: Mapping[str, str] | None = None) -> str:
    """Return the text of an aggregate with its FILTER."""
    return text if condition is None else f"{text} filter (where {expression_text(condition, columns)})"


def _whole(argument: Expr) -> Expr:
    """Return the argument of a function without the cut to the characters that are read (`functions.row_costs`)."""
    if isinstance(argument, Call) and argument.function == "left":
        text, count = argument.arguments
        if isinstance(count, Literal) and count.value in (MOST_READ, MOST_MATCHED):
            return text
    return argument


def column_texts(relation: Relation) -> dict[str, str]:
    """Return texts, in the question's words, of the columns of a relation that the plan has named itself."""
    match relation:
        case Filter() | Distinct():
            return column_texts(relation.source)
        case SemiJoin():
            return column_texts(relation.left)
        case Join():
            sides = (("a", relation.left), ("b", relation.right))
            return {f"{side}.{name}": text for side, source in sides for name, text in column_texts(source).items()}
        case Project():
            inner = column_texts(relation.source)
            return inner | {name: expression_text(value, inner) for name, value in relation.columns}
        case UnitAggregate():
            inner = column_texts(relation.source)
            keys = {name: expression_text(value, inner) for name, value in relation.keys}
            texts = {name: _applied(word, value, inner) for name, word, value, _, _ in relation.columns}
            single = {name: value for name in texts if (value := relation.value(name)) is not None}
            return keys | texts | {name: expression_text(value, inner) for name, value in single.items()}
        case UnitWindow():
            inner = column_texts(relation.source)
            return inner | {window.name: _applied(window.word, window.argument, inner) for window in relation.windows}
        case ReleasedRows():
            return {column.name: label for column, label in zip(relation.columns, relation.labels, strict=False)}
        case Union_():
            return _of_branches([source for source in relation.sources if isinstance(source, Project)])
        case _:
            return {}


def _of_branches(sources: list[Project]) -> dict[str, str]:
    """Return the texts of the columns of a UNION ALL, which are named as in its first branch."""
    columns = zip(*(source.columns for source in sources), strict=False)
    texts = [column_texts(source) for source in sources]
    either = ([branch[name] for branch, (name, _) in zip(texts, column, strict=True)] for column in columns)
    names = [name for source in sources[:1] for name, _ in source.columns]
    return {name: " or ".join(dict.fromkeys(written)) for name, written in zip(names, either, strict=False)}


def _applied(word: str, argument: Expr | None, columns: Mapping[str, str]) -> str:
    return f"{word}({'*' if argument is None else expression_text(argument, columns)})"


def _case(parts: list[str]) -> str:
    """Return a CASE expression from alternating conditions and values, and an optional last value."""
    pairs = [f"when {parts[number]} then {parts[number + 1]}" for number in range(0, len(parts) - 1, 2)]
    return " ".join(["case", *pairs, *([f"else {parts[-1]}"] if len(parts) % 2 else []), "end"])


def _value(value: Any) -> str:
    """Return a value as an SQL literal."""
    if isinstance(value, Fraction):
        return plain_decimal(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
