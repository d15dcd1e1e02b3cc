"""Comments on tables and columns of a policy, as catalogs show them to analysts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dpsql.policy import Policy, Table
from dpsql.policy.types import PolicyColumn

_MOST_LISTED = 12


def table_comment(policy: Policy, table: Table) -> str:
    """Return the comment of a table for a BI user: its description, whether it is protected, and how much of a unit counts."""
    if table.public:
        kind = "public table"
    elif policy.privacy_unit is None:
        kind = "protected table, each row by itself"
    else:
        unit_table = policy.visible.get(policy.privacy_unit.table)
        is_visible = unit_table is not None and policy.privacy_unit.column in unit_table.columns
        unit = f"{policy.privacy_unit.table}.{policy.privacy_unit.column}" if is_visible else "privacy unit"
        kind = f"protected table: up to {table.bounds.max_rows} rows of one {unit} are counted"
    return "; ".join(filter(None, (table.description, kind, policy.unprotected.get(table.name))))


def column_comment(policy: Policy, table: Table, column: PolicyColumn) -> str:
    """Return description, bounds, public keys and the column's part in the privacy unit; empty if there is nothing to say."""
    parts = [column.remark] if column.remark else []
    if column.lower is not None:
        parts.append(f"clamped to {_as_text(column.lower)} .. {_as_text(column.upper)}")
    if column.domain is not None:
        listed = [_as_text(value) for value in column.domain[:_MOST_LISTED]]
        more = f" ... ({len(column.domain)} in all)" if len(column.domain) > _MOST_LISTED else ""
        parts.append("public keys: " + ", ".join(listed) + more)
    if not policy.unit_joins(table.name) and policy.unit_column(table.name) == column.name:
        parts.append("privacy unit")
    if column.name in (table.unprotected or ()):
        parts.append("people who are not protected")
    return "; ".join(parts)


def _as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    denominator = getattr(value, "denominator", 1)
    return str(value) if denominator == 1 else f"{float(value):g}"
