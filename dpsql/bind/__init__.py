"""Names, types and ranges attached; private blocks cut out; the public remainder kept (privacy.md 6)."""

from __future__ import annotations

from sqlglot import exp

from dpsql.bind.cut import Cutter
from dpsql.bind.names import Environment, Protected
from dpsql.bind.trees import as_query
from dpsql.errors import Error, refuse
from dpsql.parse import Statement, place
from dpsql.plan import Plan
from dpsql.policy import Policy

MOST_REMAINDER_NODES = 50_000


def bind(statement: Statement, policy: Policy) -> Plan:
    """Bind one query or explained query to the policy. Raises a refusal with the place in the text."""
    assert statement.query is not None
    try:
        cutter = Cutter(policy)
        bound = cutter.query(statement.query, Environment())
        if isinstance(bound, Protected):
            raise refuse("raw_rows", position=place(statement.query))
        query = as_query(bound)
        if cutter.common:
            names = [
                exp.CTE(this=tree, alias=exp.TableAlias(this=exp.to_identifier(name))) for name, tree in cutter.common
            ]
            query.set("with_", exp.With(expressions=names))
        return Plan(
            statement.sql, tuple(cutter.blocks.values()), tuple(cutter.public.values()), query, tuple(bound.columns)
        )
    except Error as error:
        raise error.at(statement.sql)
    except RecursionError:
        raise refuse("too_deep", most=150).at(statement.sql) from None
