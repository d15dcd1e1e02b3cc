"""Exact answer of the database to a question: no bounds, no clamping, no noise. For the owner, next to a noisy answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from sqlglot import exp

from dpsql.engine.contract import Engine
from dpsql.engine.emit.bounded_view import bounded_view
from dpsql.errors.exceptions import Error, refuse
from dpsql.policy import Policy
from dpsql.sql.lexer import DIALECT
from dpsql.sql.parser import parse_text

Exact = Mapping[tuple[Any, ...], Sequence[Any]]
"""The columns of a row, by the values of its keys."""


def plain_answer(policy: Policy, engine: Engine, sql: str, keys: Sequence[int]) -> Exact:
    """Return the rows of a question over all rows of its tables, by the values of their columns at the positions `keys`.

    Tables have the columns of the policy, in its types. Raises Refusal plot_exact for engines other than DuckDB, for a text that
    plain SQL does not answer, and for rows that have the same keys.
    """
    if engine.dialect.title != "DuckDB":
        raise refuse("plot_exact", problem=f"its tables are in {engine.dialect.title}")
    text = _over_all_rows(policy, engine, sql)
    try:
        rows = engine.exact_rows(text)
    except Error:
        raise refuse("plot_exact", problem="the database does not answer its text") from None
    columns = [[_plain(value) for value in column.to_pylist()] for column in rows.columns]
    answer = {tuple(columns[key][row] for key in keys): [column[row] for column in columns] for row in range(len(rows))}
    if len(answer) < len(rows):
        raise refuse("plot_exact", problem="several of its rows have the same keys")
    return answer


def _plain(value: Any) -> Any:
    """Return a value in the types of released numbers: DuckDB returns sums of integers as decimals."""
    return (
        value if not isinstance(value, Decimal) else int(value) if value == value.to_integral_value() else float(value)
    )


def _over_all_rows(policy: Policy, engine: Engine, sql: str) -> str:
    """Return the text of a question with every table of the policy replaced by all of its rows."""
    tree = parse_text(sql)
    common = {entry.alias.lower() for entry in tree.find_all(exp.CTE)}
    views: dict[str, str] = {}
    for node in list(tree.find_all(exp.Table)):
        table = policy.table(node.name)
        if table is None or node.name.lower() in common:
            continue
        name = views.setdefault(table.name, f"#{len(views)}")
        alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
        node.replace(exp.Table(this=exp.to_identifier(name, quoted=True), alias=alias.copy()))
    entries = ", ".join(f'"{name}" AS ({_all_rows(policy, engine, table)})' for table, name in views.items())
    return f"{f'WITH {entries} ' if entries else ''}SELECT * FROM ({tree.sql(dialect=DIALECT)}) AS answer"


def _all_rows(policy: Policy, engine: Engine, table: str) -> str:
    """Return a query for every row of a table of the policy, in the policy's columns."""
    text = engine.dialect
    if policy.tables[table].public:
        columns = ", ".join(text.identifier(name) for name in policy.tables[table].columns)
        return f"SELECT {columns} FROM {engine.source(table).sql}"
    view = bounded_view(text, policy, engine.source, table)
    return f"SELECT {', '.join(view.names)} FROM {text.derived(view.every)}"
