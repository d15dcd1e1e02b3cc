"""Binding of single parts of queries over the hospital, and short texts that describe relations and expressions for
comparison."""

import pytest
from sqlglot import exp

from dpsql.errors.exceptions import Error
from dpsql.plan.plan import (
    Call,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Plan,
    Project,
    Relation,
    ReleasedValue,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
)
from dpsql.plan.stability import matches, rows_per_unit
from dpsql.policy import Policy
from dpsql.sql.binder.query import QueryBinder, bind
from dpsql.sql.binder.scope import Bound, Environment
from dpsql.sql.parse import parse
from support.places import policy

HOSPITAL = policy("hospital")
"""Patients (one row each), visits (at most 20) and labs (at most 12), all protected; regions and prices (at most 3 per ward),
public."""
HOSPITAL_ROWS = policy("hospital_rows")
"""The same tables with single rows as the privacy unit."""


def select(sql: str) -> exp.Select:
    """Return the syntax tree of a SELECT."""
    query = parse(sql).query
    assert isinstance(query, exp.Select)
    return query


def binder_of(node: exp.Query, policy: Policy = HOSPITAL) -> QueryBinder:
    return QueryBinder(policy, node)


def sources_of(binder: QueryBinder, node: exp.Select) -> list[tuple[str, Bound]]:
    """Return the items of FROM, each bound separately, in textual order."""
    items = [node.args["from_"].this, *(join.this for join in node.args.get("joins") or ())]
    return [binder.source(item, binder.environment(node, Environment())) for item in items]


def planned(sql: str, policy: Policy = HOSPITAL) -> Plan:
    return bind(parse(sql), policy)


def refusal(sql: str, policy: Policy = HOSPITAL) -> Error:
    """Return the error that binding a query raises."""
    with pytest.raises(Error) as caught:
        planned(sql, policy)
    return caught.value


def in_words(expression: Expr) -> str:
    """Describe a row expression: names, constants as Python literals, and calls."""
    if isinstance(expression, (Column, ReleasedValue)):
        return expression.name
    if isinstance(expression, Literal):
        return repr(expression.value)
    assert isinstance(expression, Call)
    return f"{expression.function}({', '.join(map(in_words, expression.arguments))})"


def described(relation: Relation, policy: Policy = HOSPITAL) -> str:
    """Describe a relation: tables by name inside the operations applied to them, without the columns of projections and
    windows."""
    if isinstance(relation, Scan):
        return relation.table
    if isinstance(relation, Filter):
        return f"{described(relation.source, policy)} where {in_words(relation.predicate)}"
    if isinstance(relation, (Join, SemiJoin)):
        keys = " and ".join(f"{in_words(a)} = {in_words(b)}" for a, b in relation.keys)
        unit = " of one unit" if relation.on_unit else ""
        left, right = described(relation.left, policy), described(relation.right, policy)
        if isinstance(relation, SemiJoin):
            word = ("not " if relation.negated else "") + ("in" if relation.in_list else "exists")
            more = "" if relation.condition is None else f" if {in_words(relation.condition)}"
            return f"({left} {word} {right} on {keys}{unit}{more})"
        met, back = matches(relation, policy)
        most = rows_per_unit(relation.right, policy) if met is None else met
        other = "" if back is None else f", back {back}"
        return f"({left} {relation.kind} {right} on {keys}{unit}, {most}{other})"
    if isinstance(relation, Union_):
        return " + ".join(described(source, policy) for source in relation.sources)
    names = {Project: "columns", UnitAggregate: "units", UnitWindow: "windows", Distinct: "distinct"}
    if type(relation) in names:
        assert isinstance(relation, (Project, UnitAggregate, UnitWindow, Distinct))
        return f"{names[type(relation)]}({described(relation.source, policy)})"
    return "result"
