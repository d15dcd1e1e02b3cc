"""Small random databases for any policy that satisfy all of its promises: bounds, domains, keys, max_rows.

The rows of a privacy unit depend only on its number, so the database without it is a neighbour.
"""

import random
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.policy import Policy, PolicyColumn, Table

Rows = list[dict[str, Any]]
ARROW = {
    "integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip
TEXTS = ("flu", "cold", "Flu", "a b", "", "x_y%", "2024-01-31", "12", "köln")
PUBLIC_ROWS, ROWS_OF_UNIT = 12, 5
UNITS = range(1, 17)


def database(policy: Policy, units: Iterable[int] = UNITS) -> dict[str, pa.Table]:
    """Return tables with the given privacy units; the public tables are always the same."""
    data: dict[str, Rows] = {name: _public_rows(table) for name, table in policy.tables.items() if table.public}
    protected = sorted((name for name in policy.tables if policy.is_protected(name)), key=lambda n: _depth(policy, n))
    data.update({name: [] for name in protected})
    for unit in units:
        own: dict[str, Rows] = {}
        for name in protected:
            own[name] = _rows_of_unit(policy, name, unit, {**data, **own})
        for name, rows in own.items():
            data[name] = data[name] + rows
    return {
        name: pa.Table.from_pylist(data[name], pa.schema([(c.name, ARROW[c.type]) for c in table.columns.values()]))
        for name, table in policy.tables.items()
    }


def connect(tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with the tables and a `clamp` macro in plain DuckDB SQL."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE SCHEMA public")
    for name, rows in tables.items():
        connection.register("rows", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        connection.execute(f"CREATE VIEW public.{name} AS FROM main.{name}")
    connection.unregister("rows")
    connection.execute("CREATE MACRO clamp(x, l, u) AS CASE WHEN x IS NOT NULL THEN greatest(least(x, u), l) END")
    return connection


def _depth(policy: Policy, name: str) -> int:
    """Return the length of the longest chain of foreign keys from a table through protected parents."""
    parents = {table for table, _ in policy.tables[name].foreign_keys.values() if policy.is_protected(table)} - {name}
    return max((1 + _depth(policy, parent) for parent in parents), default=0)


def _rows_of_unit(policy: Policy, name: str, unit: int, data: dict[str, Rows]) -> Rows:
    table, rng = policy.tables[name], random.Random(f"{name}/{unit}")
    unit_column = None if policy.unit_joins(name) else policy.unit_column(name)
    own = policy.privacy_unit is not None and policy.privacy_unit.table == name
    most = min(ROWS_OF_UNIT, table.bounds.max_rows or 1)
    rows: Rows = []
    for at in range(1 if own and table.bounds.max_rows == 1 else rng.randint(0, most)):
        row = {column.name: _value(rng, column) for column in table.columns.values()}
        for key in table.primary_key:
            if row[key] is not None and table.columns[key].type == "integer":
                row[key] = unit * 100 + at if len(table.primary_key) == 1 else at + 1
        for key, (parent, column) in table.foreign_keys.items():
            # Rows that belong to this unit refer to its own rows; rows of public parents may be shared.
            known = [
                r[column] for r in data[parent] if policy.tables[parent].public or _belongs(policy, parent, r, unit)
            ]
            row[key] = rng.choice(known) if known else None
        if unit_column is not None:
            row[unit_column] = unit
        if None not in [row[key] for key in table.foreign_keys]:
            rows.append(row)
    return rows


def _belongs(policy: Policy, name: str, row: dict[str, Any], unit: int) -> bool:
    """Return whether a parent's row belongs to this unit, whose number is in its unit column or times 100 in its key."""
    column = policy.unit_column(name) if policy.privacy_unit is not None and not policy.unit_joins(name) else None
    if column is not None and column in row:
        return bool(row[column] == unit)
    return any(isinstance(row[key], int) and row[key] // 100 == unit for key in policy.tables[name].primary_key)


def _public_rows(table: Table) -> Rows:
    rng = random.Random(table.name)
    rows: Rows = []
    for at in range(PUBLIC_ROWS):
        row = {column.name: _value(rng, column) for column in table.columns.values()}
        for key in table.primary_key:
            column = table.columns[key]
            row[key] = at + int(column.lower or 0) if column.type == "integer" else f"{key}-{at}"
        for keys in table.max_multiplicity:
            for key in keys:
                row[key] = (
                    at // 2 + 1 if table.columns[key].type == "integer" else (("er", "icu", "day") * 3 + TEXTS)[at]
                )
        rows.append(row)
    _meet_domains(table, rows)
    return [row for row in rows if all(_inside(table.columns[name], value) for name, value in row.items())]


def _meet_domains(table: Table, rows: Rows) -> None:
    """Set keys of public rows to the texts that protected tables refer to: the domains in schemas/policies."""
    known = {"region": ["north", "south", "east", "west"], "code": ["AT", "BR", "DE", "FR", "IN", "US"]}
    for key in table.primary_key:
        for row, value in zip(rows, known.get(key, []), strict=False):
            row[key] = value


def _inside(column: PolicyColumn, value: Any) -> bool:
    low, high = column.lower, column.upper
    return low is None or high is None or value is None or low <= value <= high  # type: ignore[operator]


def _value(rng: random.Random, column: PolicyColumn) -> Any:
    if column.nullable and rng.random() < 0.15 and not (column.domain and None not in column.domain):
        return None
    if column.domain is not None:
        return rng.choice(column.domain)
    low, high = column.lower, column.upper
    if column.type == "integer":
        low, high = (0, 9) if low is None else (int(low), int(high))  # type: ignore[arg-type]
        return rng.choice([low, high, *(rng.randint(low, min(high, low + 9)) for _ in range(4))])
    if column.type == "real":
        low, high = (-5.0, 5.0) if low is None else (float(low), float(high))  # type: ignore[arg-type]
        return rng.choice([low, high, *(low + (high - low) * rng.randint(0, 64) / 64 for _ in range(4))])
    if column.type == "boolean":
        return rng.random() < 0.5
    if column.type == "text":
        return rng.choice(TEXTS)
    start = datetime(2024, 1, 1) if low is None else datetime.fromisoformat(str(low))
    end = start + timedelta(days=400) if high is None else datetime.fromisoformat(str(high))
    moment = start + timedelta(days=rng.randint(0, min(90, (end - start).days)))
    if column.type == "date":
        return date(moment.year, moment.month, moment.day)
    return min(end, moment + timedelta(minutes=17 * rng.randint(0, 80)))
