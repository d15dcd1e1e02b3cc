"""PostgreSQL's catalogs as data: relations, columns, static rows (postgresql.json, see build.py), and rows made for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PG_CATALOG, INFORMATION_SCHEMA = "pg_catalog", "information_schema"
SCHEMAS = {PG_CATALOG: "pgc", INFORMATION_SCHEMA: "pgi"}
"""PostgreSQL's schemas and their names in the private DuckDB, which reserves the original names."""

OWNER = 10
"""OID of the role that owns everything."""

_DUCKDB = {
    "bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE",
    "oid": "UINTEGER", "xid": "UINTEGER", "bytea": "BLOB", "interval": "INTERVAL", "numeric": "DECIMAL(38, 6)",
    "cardinal_number": "INTEGER", "timestamptz": "TIMESTAMP", "time_stamp": "TIMESTAMP",
    "int2vector": "USMALLINT[]", "oidvector": "UBIGINT[]", "regproc": "DECIMAL(14,0)", "regtype": "DECIMAL(12,0)",
}  # fmt: skip
"""As `kinds`, which tells these types apart by what they are in DuckDB."""
VECTORS = ("int2vector", "oidvector")


@dataclass(frozen=True)
class Relation:
    """One catalog relation: `columns` maps a name to (PostgreSQL type, NOT NULL)."""

    schema: str
    name: str
    oid: int
    kind: str
    columns: Mapping[str, tuple[str, bool]]

    def duckdb_type(self, column: str) -> str:
        """Return the column's type in the private DuckDB: UINTEGER for oid, text for every type without a counterpart."""
        type_ = self.columns[column][0]
        return duckdb_type(type_[1:]) + "[]" if type_.startswith("_") else duckdb_type(type_)

    def row(self, **values: Any) -> tuple[Any, ...]:
        """Return one row. A column that is not given is NULL, or an empty value if NULL is not allowed: drivers rely on that."""
        unknown = set(values) - set(self.columns)
        if unknown:
            raise KeyError(f"{self.name} has no columns {sorted(unknown)}")
        return tuple(values.get(name, self._empty(name)) for name in self.columns)

    def _empty(self, column: str) -> Any:
        if not self.columns[column][1]:
            return None
        type_ = self.duckdb_type(column)
        if type_.endswith("[]"):
            return []
        return {"BOOLEAN": False, "VARCHAR": ""}.get(type_, 0)


def duckdb_type(type_: str) -> str:
    """Return DuckDB's type for a scalar type of PostgreSQL."""
    return _DUCKDB.get(type_, "VARCHAR")


@cache
def relations() -> dict[tuple[str, str], Relation]:
    """Return every relation by (schema, name)."""
    return {
        (schema, name): Relation(
            schema, name, facts["oid"], facts["kind"], {c: (t, bool(n)) for c, t, n in facts["columns"]}
        )
        for schema, named in _data()["relations"].items()
        for name, facts in named.items()
    }


def relation(name: str, schema: str = PG_CATALOG) -> Relation:
    """Return one relation. Raises KeyError if PostgreSQL has none of that name."""
    return relations()[schema, name]


@cache
def static_rows() -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of pg_catalog relations that are the same in every database."""
    by_relation: dict[str, list[tuple[Any, ...]]] = {}
    for name, rows in _data()["rows"].items():
        vectors = [index for index, (type_, _) in enumerate(relation(name).columns.values()) if type_ in VECTORS]
        by_relation[name] = [tuple(_list(v) if index in vectors else v for index, v in enumerate(row)) for row in rows]
    owner = list(relation("pg_namespace").columns).index("nspowner")
    by_relation["pg_namespace"] = [(*row[:owner], OWNER, *row[owner + 1 :]) for row in by_relation["pg_namespace"]]
    return by_relation


def _list(value: Any) -> Any:
    return [int(part) for part in value.split()] if isinstance(value, str) else value


@cache
def namespaces() -> dict[str, int]:
    """Return the OID of each schema that every database has."""
    return {row[1]: row[0] for row in static_rows()["pg_namespace"]}


def views() -> dict[tuple[str, str], str]:
    """Return PostgreSQL's definitions of the views that are computed from other relations, by (schema, name)."""
    return {tuple(name.split(".")): text.rstrip().rstrip(";") for name, text in _data()["views"].items()}


def keywords() -> list[list[Any]]:
    """Return the rows of pg_get_keywords()."""
    rows: list[list[Any]] = _data()["keywords"]
    return rows


@cache
def type_names() -> dict[str, int]:
    """Return the OID of each type by its own name and by its SQL name."""
    oids = {row[1]: row[0] for row in static_rows()["pg_type"]}
    return (
        oids
        | {sql: oids[short] for short, sql in SQL_NAMES.items() if short in oids}
        | {"int": 23, "decimal": 1700, "float": 701}
    )


SQL_NAMES = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision",
    "varchar": "character varying", "bpchar": "character", "time": "time without time zone", "varbit": "bit varying",
    "timetz": "time with time zone", "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "char": '"char"',
}  # fmt: skip


@cache
def formatted_types() -> dict[int, str]:
    """Return the result of format_type for each type without a modifier."""
    rows = static_rows()["pg_type"]
    formatted = {row[0]: SQL_NAMES.get(row[1], row[1]) for row in rows}
    elements = {row[0]: row[13] for row in rows if row[1].startswith("_") and row[13] in formatted}
    return {oid: formatted[elements[oid]] + "[]" if oid in elements else name for oid, name in formatted.items()}


@cache
def _data() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(files(__package__).joinpath("postgresql.json").read_text(encoding="utf-8"))
    return facts
