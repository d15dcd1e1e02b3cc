"""Binding of a parsed statement to the policy: private blocks and the public remainder, with types (privacy.md 6)."""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.key_questions import EVALUATED, PublicValues
from dpsql.functions.public_domains import domain_of
from dpsql.plan.plan import Block, Filter, Plan, Project, Relation, Result, UnitAggregate, base_scan, results_read
from dpsql.policy import Policy
from dpsql.policy.types import DEFAULT_SCHEMAS
from dpsql.sql.binder import function_calls  # noqa: F401 (enters its handlers)
from dpsql.sql.binder.combined_rows import check_shown
from dpsql.sql.binder.private_block import measures
from dpsql.sql.binder.query import QueryBinder
from dpsql.sql.binder.scope import Environment, Protected
from dpsql.sql.binder.trees import (
    as_query,
    asks_no_rows,
    condition_of,
    conjuncts,
    is_constantly_false,
    literal_limit,
    put_in_front,
)
from dpsql.sql.lexer import place
from dpsql.sql.parse import Statement
from dpsql.sql.rewrites.pivots import listed_values, without_pivots


def bind(
    statement: Statement, policy: Policy, min_units: int | None = None, public_values: PublicValues = EVALUATED
) -> Plan:
    """Bind one query or explained query to the policy and return its plan. `min_units`: groups with fewer counted units are not
    shown (None: all are). `public_values`: how the values of public keys are found. Refusals carry the position in the text."""
    assert statement.query is not None
    query = statement.query
    try:
        if exp.Pivot in statement.kinds:
            query = without_pivots(query.copy(), partial(_listed, policy, query))
        _unqualified(query, policy)
        binder = QueryBinder(policy, query, min_units, public_values)
        bound = binder.query(query, Environment())
        if isinstance(bound, Protected):
            raise refuse("unit_key" if _per_unit(bound.relation) else "raw_rows", position=place(query))
        check_shown(query, bound)
        remainder = as_query(bound)
        put_in_front(remainder, binder.common)
        blocks, results, read = _read(binder, remainder)
        public = tuple(entry for entry in binder.public.values() if entry.name in read)
        return Plan(
            statement.sql, blocks, public, remainder, tuple(bound.columns), results, empty=_shows_no_rows(query)
        )
    except Error as error:
        raise error.placed_in(statement.sql) from None
    except RecursionError:
        raise refuse("too_deep", most=150).placed_in(statement.sql) from None


def _listed(policy: Policy, query: exp.Query, source: exp.Expr, key: exp.Column) -> list[exp.Expr]:
    """Return the values that the policy lists for a column of a table, or of a SELECT of its columns. Refuses (pivot) others."""
    column: exp.Expr = key
    while (
        isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select) and not source.this.args.get("joins")
    ):
        named = [
            item.unalias() for item in source.this.expressions if item.alias_or_name.lower() == column.name.lower()
        ]
        if len(named) != 1 or not isinstance(named[0], exp.Column) or source.this.args.get("from_") is None:
            break
        column, source = named[0], source.this.args["from_"].this
    written = {common.alias.lower() for common in query.find_all(exp.CTE)}
    plain = isinstance(source, exp.Table) and source.name.lower() not in written
    table = policy.table_at(*(part.name for part in source.parts)) if plain and isinstance(source, exp.Table) else None
    columns = () if table is None else base_scan(table).columns
    values = [domain_of(each) for each in columns if each.name.lower() == column.name.lower()]
    return listed_values(values[0] if values else None, key)


def _shows_no_rows(query: exp.Query) -> bool:
    """Return whether an answer has no rows because its query says so outright: LIMIT 0, HAVING FALSE, or WHERE FALSE unless a
    total over all rows has a row of its own."""
    if not isinstance(query, exp.Select):
        return literal_limit(query) == 0
    if literal_limit(query) == 0 or any(map(is_constantly_false, conjuncts(condition_of(query, "having")))):
        return True
    group = query.args.get("group")
    if group is None:
        return asks_no_rows(query) and not measures(query)
    plain = group.expressions and not any(value for name, value in group.args.items() if name != "expressions")
    sets = (exp.Cube, exp.GroupingSets, exp.Rollup, exp.Tuple)
    return bool(plain) and not any(isinstance(key, sets) for key in group.expressions) and asks_no_rows(query)


def _read(binder: QueryBinder, query: exp.Query) -> tuple[tuple[Block, ...], tuple[Result, ...], set[str]]:
    """Return the blocks, results and names of tables that the remainder reads, directly or through others. Only these are
    measured."""
    named = {result.name: result for result in binder.results.values()}
    read = {table.name for table in query.find_all(exp.Table)}
    for block in reversed(binder.blocks.values()):  # a block reads only results of earlier blocks
        for name in results_read(block) if named and block.name in read else ():
            read |= {name} | {table.name for table in named[name].query.find_all(exp.Table)}
    blocks = tuple(block for block in binder.blocks.values() if block.name in read)
    return blocks, tuple(entry for entry in named.values() if entry.name in read), read


def _unqualified(query: exp.Query, policy: Policy) -> None:
    """Remove the schema from columns written [dataset.]schema.table.column, as BI tools write them.

    Any other schema stays and is refused later with its position. Before an alias, which is not a table of the policy, a default
    schema is accepted.
    """
    for column in query.find_all(exp.Column):
        table = policy.table(column.table) if column.db else None
        in_schema = column.db.lower() in DEFAULT_SCHEMAS if table is None else table.is_in(column.db)
        if column.db and in_schema and column.catalog.lower() in ("", policy.dataset.lower()):
            column.set("db", None)
            column.set("catalog", None)


def _per_unit(relation: Relation) -> bool:
    """Return whether each row is the result of an aggregation over one privacy unit."""
    while isinstance(relation, (Filter, Project)):
        relation = relation.source
    return isinstance(relation, UnitAggregate)
