"""PostgreSQL's catalogs as data: relations, columns, static rows (postgresql.json, see build.py), and rows made for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

PG_CATALOG, INFORMATION_SCHEMA = "pg_catalog", "information_schema"
SCHEMAS = (PG_CATALOG, INFORMATION_SCHEMA)

OWNER = 10
"""OID of the role that owns everything."""

VECTORS = ("int2vector", "oidvector")


@dataclass(frozen=True)
class Relation:
    """One catalog relation: `columns` maps a name to (PostgreSQL type, NOT NULL)."""

    schema: str
    name: str
    oid: int
    kind: str
    columns: Mapping[str, tuple[str, bool]]

    def row(self, **values: Any) -> tuple[Any, ...]:
        """Return one row. A column that is not given is NULL, or an empty value if NULL is not allowed: drivers rely on that."""
        unknown = set(values) - set(self.columns)
        if unknown:
            raise KeyError(f"{self.name} has no columns {sorted(unknown)}")
        return tuple(values.get(name, self._empty(name)) for name in self.columns)

    def _empty(self, column: str) -> Any:
        if not self.columns[column][1]:
            return None
        type_ = self.columns[column][0]
        if type_.startswith("_") or type_ in VECTORS:
            return []
        return False if type_ == "bool" else 0 if type_ in _NUMBERS else ""


_NUMBERS = {
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "oid",
    "xid",
    "cardinal_number",
    "regproc",
    "regtype",
    "numeric",
}


@cache
def relations() -> dict[tuple[str, str], Relation]:
    """Return every relation by (schema, name)."""
    types = dict(zip(*(static("pg_type")[name] for name in ("oid", "typname")), strict=True))
    columns: dict[int, list[tuple[int, str, str, bool]]] = {}
    listed = (static("pg_attribute")[name] for name in ("attrelid", "attnum", "attname", "atttypid", "attnotnull"))
    for oid, number, name, type_, not_null in zip(*listed, strict=True):
        if number > 0:
            columns.setdefault(oid, []).append((number, name, types[type_], not_null))
    schemas = {oid: schema for schema, oid in namespaces().items() if schema in SCHEMAS}
    facts = zip(*(static("pg_class")[name] for name in ("relnamespace", "relname", "oid", "relkind")), strict=True)
    return {
        (schemas[schema], name): Relation(
            schemas[schema],
            name,
            oid,
            kind,
            {column: (type_, bool(fixed)) for _, column, type_, fixed in sorted(columns[oid])},
        )
        for schema, name, oid, kind in sorted(facts)
        if schema in schemas and kind in ("r", "v")
    }


def relation(name: str, schema: str = PG_CATALOG) -> Relation:
    """Return one relation. Raises KeyError if PostgreSQL has none of that name."""
    return relations()[schema, name]


@cache
def static(name: str, schema: str = PG_CATALOG) -> dict[str, list[Any]]:
    """Return the columns of the rows that a relation has in every database."""
    columns: dict[str, Any] = _data()["rows"][f"{schema}.{name}"]
    return {column: _expanded(values) for column, values in columns.items()}


def _expanded(values: list[Any] | dict[str, list[Any]]) -> list[Any]:
    if isinstance(values, list):
        return values
    runs = values["runs"]
    return [value for length, value in zip(runs[::2], runs[1::2], strict=True) for _ in range(length)]


def static_rows(name: str, schema: str, database: str) -> list[tuple[Any, ...]]:
    """Return the rows that a relation has in every database, in the order of its columns."""
    if name == "pg_init_privs":
        return list(_first_rights())
    if f"{schema}.{name}" not in _data()["rows"]:
        return []
    columns = static(name, schema)
    count = len(next(iter(columns.values())))
    listed = [
        [value and database for value in columns[column]]
        if column.endswith("_catalog")
        else columns[column]
        if column in columns
        else [None] * count
        for column in relations()[schema, name].columns
    ]
    return list(zip(*listed, strict=True))


def _first_rights() -> Iterator[tuple[Any, ...]]:
    """Yield rows of pg_init_privs: the rights that the objects of pg_catalog have in every database."""
    for name, schema, rights in (
        ("class", "relnamespace", "relacl"),
        ("proc", "pronamespace", "proacl"),
        ("namespace", "oid", "nspacl"),
    ):
        rows = static(f"pg_{name}")
        for oid, space, granted in zip(rows["oid"], rows[schema], rows[rights], strict=True):
            if granted and space != namespaces()[INFORMATION_SCHEMA]:
                yield oid, relation(f"pg_{name}").oid, 0, "i", granted
    rows = static("pg_attribute")
    for oid, number, granted in zip(rows["attrelid"], rows["attnum"], rows["attacl"], strict=True):
        if granted:
            yield oid, relation("pg_class").oid, number, "i", granted


DOMAINS = {
    "sql_identifier": "name", "cardinal_number": "int4", "character_data": "varchar", "yes_or_no": "varchar",
    "time_stamp": "timestamptz",
}  # fmt: skip
"""The types on which those of information_schema are based."""


@cache
def namespaces() -> dict[str, int]:
    """Return the OID of each schema that every database has."""
    return dict(zip(*(static("pg_namespace")[name] for name in ("nspname", "oid")), strict=True))


_VIEWS = {
    (PG_CATALOG, "pg_indexes"), (INFORMATION_SCHEMA, "collations"), (INFORMATION_SCHEMA, "role_table_grants"),
    (INFORMATION_SCHEMA, "constraint_table_usage"), (INFORMATION_SCHEMA, "collation_character_set_applicability"),
    (PG_CATALOG, "pg_prepared_statements"), (PG_CATALOG, "pg_cursors"), (INFORMATION_SCHEMA, "usage_privileges"),
    (INFORMATION_SCHEMA, "udt_privileges"),
    (PG_CATALOG, "pg_settings"), (PG_CATALOG, "pg_stat_activity"), (PG_CATALOG, "pg_stat_ssl"), (PG_CATALOG, "pg_stat_gssapi"),
    (PG_CATALOG, "pg_stat_bgwriter"), (PG_CATALOG, "pg_stat_archiver"), (PG_CATALOG, "pg_stat_wal"),
    *((INFORMATION_SCHEMA, name) for name in ("table_privileges", "column_privileges", "role_column_grants", "routine_privileges",
      "data_type_privileges")),
}  # fmt: skip


@cache
def views() -> dict[tuple[str, str], str]:
    """Return PostgreSQL's definitions of the views that are computed from other relations, by (schema, name)."""
    listed = zip(*(static("pg_views")[name] for name in ("schemaname", "viewname", "definition")), strict=True)
    return {
        (schema, name): text.rstrip().rstrip(";").replace("pg_authid", "pg_roles")  # which a view of theirs may read
        for schema, name, text in listed
        if (schema, name) in _VIEWS
    }


@cache
def denied() -> frozenset[str]:
    """Return the names of the relations that only superusers read."""
    return frozenset(_data()["denied"])


def definitions() -> list[list[Any]]:
    """Return OIDs of constraints and of their indexes, or 0, with both as SQL, the index also without its schema, and columns."""
    rows: list[list[Any]] = _data()["definitions"]
    return rows


@cache
def signatures() -> list[tuple[int, str, str, str | None]]:
    """Return the OID of each function, its arguments, those without their defaults, and its result, as SQL."""
    written: dict[int, str] = dict(_data()["arguments"])
    rows = []
    names = ("oid", "prokind", "proretset", "prorettype", "proargtypes", "proallargtypes", "proargmodes", "proargnames")
    for oid, kind, many, result, inputs, types, modes, labels in zip(
        *(static("pg_proc")[name] for name in names), strict=True
    ):
        every = types or inputs
        columns: dict[bool, list[str]] = {True: [], False: []}
        for type_, mode, label in zip(every, modes or "i" * len(every), labels or [""] * len(every), strict=True):
            words = (_MODES[mode], quoted(label) if label else "", formatted_types()[type_])
            columns[mode == "t"].append(" ".join(filter(None, words)))
        plain, returned = ", ".join(columns[False]), formatted_types()[result]
        described = f"TABLE({', '.join(columns[True])})" if columns[True] else "SETOF " * many + returned
        arguments = written.get(oid, plain)
        identity = arguments if "ORDER BY" in arguments else plain
        rows.append((oid, arguments, identity, None if kind == "p" else described))
    return rows


_MODES = {"i": "", "o": "OUT", "b": "INOUT", "v": "VARIADIC", "t": ""}


def keywords() -> list[list[Any]]:
    """Return the rows of pg_get_keywords()."""
    rows: list[list[Any]] = _data()["keywords"]
    return rows


def zones() -> list[list[str]]:
    """Return time zones with their abbreviations without and with daylight saving."""
    rows: list[list[str]] = _data()["zones"]
    return rows


@cache
def _reserved() -> frozenset[str]:
    return frozenset(word for word, category, *_ in keywords() if category != "U")


def quoted(name: str) -> str:
    """Return a name as PostgreSQL writes it: quoted only if necessary."""
    plain = name.isascii() and name.isidentifier() and name == name.lower() and name not in _reserved()
    return name if plain else '"' + name.replace('"', '""') + '"'


@cache
def type_names() -> dict[str, int]:
    """Return the OID of each type by its own name and by its SQL name."""
    listed = zip(*(static("pg_type")[name] for name in ("typname", "oid", "typrelid", "typnamespace")), strict=True)
    oids = {
        name: oid
        for name, oid, row_of, schema in sorted(listed, key=lambda type_: type_[3] == namespaces()[PG_CATALOG])
    }
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
    "char": '"char"', "bit": "bit", "interval": "interval", "numeric": "numeric",
}  # fmt: skip


@cache
def formatted_types() -> dict[int, str]:
    """Return the result of format_type for each type without a modifier."""
    names = ("oid", "typname", "typelem", "typnamespace", "typarray")
    rows = list(zip(*(static("pg_type")[name] for name in names), strict=True))
    formatted = {
        oid: SQL_NAMES.get(name)
        or ("" if schema == namespaces()[PG_CATALOG] else f"{INFORMATION_SCHEMA}.") + quoted(name)
        for oid, name, _, schema, _ in rows
    }
    arrays = {array: oid for oid, *_, array in rows if array}
    return {oid: f"{formatted[arrays[oid]]}[]" if oid in arrays else name for oid, name in formatted.items()}


@cache
def _data() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(files(__package__).joinpath("postgresql.json").read_text(encoding="utf-8"))
    return facts
