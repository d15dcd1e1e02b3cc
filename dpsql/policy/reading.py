"""The parts of a policy that decide what a stored release measured, each with a mark that changes when the part does.

A release reads tables and columns. The mark of a table covers the source, the way of its rows to their privacy unit and the rows
that a unit may bring; the mark of a column covers everything that the policy says of it. What a release does not read has no
part in its identity: a new table or column, or another column's bounds, make no stored release unusable (docs/reuse.md).

Marks are complete by construction: they are fingerprints of the policy's own dataclasses, from which only what is listed here is
left out, so that a new field of a table or column counts until somebody decides otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsql.policy.fields import fingerprint
from dpsql.policy.types import UNBOUNDED, Policy, PolicyColumn, Table

_NO_KEYS: dict[str, Any] = {
    "columns": {}, "primary_key": (), "unique": (), "max_multiplicity": {}, "foreign_keys": {}, "same_unit": {},
}  # fmt: skip
"""Columns have marks of their own; keys decide only the price and the caps, which are parts of a block."""
_NOT_COMPARED: dict[str, Any] = {
    "lower": None, "upper": None, "domain": None, "nullable": True, "max_total": None, "outside": None, "scale": None,
}  # fmt: skip
"""What the policy says of the values of a key does not decide which rows it joins."""


def table_mark(policy: Policy, name: str) -> str:
    """Return the mark of a table: its source and how it is read, and the same of each table on the way to the privacy unit, the
    keys of this way, the unit, and the table's own contribution bounds."""
    table, path = policy.tables[name], policy.unit_path(name)
    above = [replace(policy.tables[hop[2]], bounds=UNBOUNDED) for hop in path]
    keys = [pair for child, column, parent, key in path for pair in ((child, column), (parent, key))]
    unit = policy.privacy_unit
    if unit is not None and not table.public:
        keys.append((unit.table, unit.column))
    columns = tuple(replace(policy.tables[owner].columns[column], **_NOT_COMPARED) for owner, column in keys)
    chain = tuple(replace(each, **_NO_KEYS) for each in (table, *above))
    return fingerprint((policy.dataset, policy.source, unit, policy.neighbours, path, chain, columns))


def column_mark(column: PolicyColumn) -> str:
    """Return the mark of a column."""
    return fingerprint(column)


def mark(policy: Policy, name: str) -> str | None:
    """Return the mark of `TABLE` or `TABLE.COLUMN` under a policy; None if the policy has no such table or column."""
    marks = policy.marks
    if name not in marks:
        table, _, column = name.partition(".")
        about: Table | None = policy.tables.get(table)
        if about is None or (column and column not in about.columns):
            return None
        marks[name] = column_mark(about.columns[column]) if column else table_mark(policy, table)
    return marks[name]


def changed(policy: Policy, reads: Mapping[str, str]) -> list[str]:
    """Return the names of tables and columns that a release read and that a policy no longer has as they were."""
    return [name for name, read in reads.items() if mark(policy, name) != read]
