"""Tables of the policy as relations of a plan, with the facts that the policy declares."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Scan
from dpsql.policy import PolicyColumn, Table


def facts_of(column: PolicyColumn) -> Facts:
    """Return the facts of a column (type, bounds, domain, nullability, ...) as the policy declares them."""
    type_ = Type(column.type)
    lower: Any = column.lower
    upper: Any = column.upper
    domain = column.domain
    present = [value for value in domain or () if value is not None]
    if present and (type_.numeric or type_.temporal):
        lower, upper = min(present), max(present)
    if type_.numeric:
        lower, upper = (None if bound is None else Fraction(bound) for bound in (lower, upper))
    values = None if domain is None else tuple(domain)
    return Facts(type_, lower, upper, values, column.nullable, column.max_total, column.outside)


@lru_cache(maxsize=1024)
def base_scan(table: Table) -> Scan:
    """Return the scan of all columns of a policy table. It is cached, so that `plan.canonical_text` writes it only once."""
    return Scan(table.name, tuple(Column(column.name, facts_of(column)) for column in table.columns.values()))
