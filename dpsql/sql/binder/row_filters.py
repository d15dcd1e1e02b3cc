"""Row filters of the policy: the rows of a protected table that exist for one analyst.

A filter is a WHERE clause written by the owner. It is applied directly above the table's bounded view, so stability and
sensitivity are those of the same WHERE in the analyst's query: whether a row passes depends on that row alone
(privacy.md 3, Filter). It is part of the block, hence of its release's name and of the releases that answers are derived from.
"""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import Filter, Scan
from dpsql.sql.binder.scalars import Scalars
from dpsql.sql.binder.scope import Protected, Scope, only
from dpsql.sql.parse import parse


@lru_cache(maxsize=1024)
def filtered(scan: Scan, condition: str) -> Filter:
    """Return the rows of `scan` that satisfy `condition`. Refuses anything except a condition over the columns of one row, and
    a condition that reads the clock, since plans are cached."""
    statement = parse(f'SELECT 1 FROM "{scan.table}" WHERE {condition}')
    select = statement.query
    if statement.reads_the_clock:
        raise refuse("clause", what="a row filter that reads the clock")
    if statement.kind != "query" or not isinstance(select, exp.Select) or select.args.get("where") is None:
        raise refuse("syntax", detail="a row filter is one condition, as after WHERE")
    only(select, "expressions", "from_", "where")
    rows = Protected(scan, tuple((column.name, column) for column in scan.columns))
    return Filter(scan, Scalars(Scope([(scan.table, rows)])).boolean(select.args["where"].this))
