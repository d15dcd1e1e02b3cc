"""PostgreSQL's catalogs as data: relations, columns, static rows (postgresql.json, see build.py), and rows made for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import pyarrow as pa
from sqlglot import exp

from dpsql.sql.binder.scope import function_word

PG_CATALOG, INFORMATION_SCHEMA = "pg_catalog", "information_schema"
SCHEMAS = {PG_CATALOG: "pgc", INFORMATION_SCHEMA: "pgi"}
"""PostgreSQL's schemas and their names in the private DuckDB, which reserves the original names."""

OWNER = 10
"""OID of the role that owns everything."""

_DUCKDB = {
    "bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "float4": "FLOAT", "float8": "DOUBLE",
    "oid": "UINTEGER", "xid": "UINTEGER", "bytea": "BLOB", "interval": "INTERVAL", "numeric": "DECIMAL(38, 6)",
    "cardinal_number": "INTEGER", "timestamptz": "TIMESTAMP WITH TIME ZONE", "time_stamp": "TIMESTAMP WITH TIME ZONE",
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

    def arrow_type(self, column: str) -> pa.DataType:
        """Return the Arrow type of the column's values."""
        return _arrow(self.duckdb_type(column))

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


_ARROW = {
    "BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(), "UINTEGER": pa.uint32(), "USMALLINT": pa.uint16(), "UBIGINT": pa.uint64(),
}  # fmt: skip


def _arrow(type_: str) -> pa.DataType:
    if type_.endswith("[]"):
        return pa.list_(_arrow(type_[:-2]))
    if type_.startswith("DECIMAL"):
        return pa.int64()
    return _ARROW.get(type_, pa.string())


def duckdb_type(type_: str) -> str:
    """Return DuckDB's type for a scalar type of PostgreSQL."""
    return _DUCKDB.get(type_, "VARCHAR")


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


@cache
def static_tables(database: str) -> dict[tuple[str, str], pa.Table]:
    """Return the rows of every relation that are the same in every database but for its name."""
    tables = {}
    for key in _data()["rows"]:
        schema, _, name = key.partition(".")
        arrays = {}
        for column, values in static(name, schema).items():
            named = column.endswith("_catalog")
            listed = [value and database for value in values] if named else values
            arrays[column] = pa.array(listed, relation(name, schema).arrow_type(column))
        tables[schema, name] = pa.table(arrays)
    return tables


@cache
def namespaces() -> dict[str, int]:
    """Return the OID of each schema that every database has."""
    return dict(zip(*(static("pg_namespace")[name] for name in ("nspname", "oid")), strict=True))


_VIEWS = {
    (PG_CATALOG, "pg_indexes"), (INFORMATION_SCHEMA, "collations"), (INFORMATION_SCHEMA, "role_table_grants"),
    (INFORMATION_SCHEMA, "constraint_table_usage"), (INFORMATION_SCHEMA, "collation_character_set_applicability"),
}  # fmt: skip


@cache
def views() -> dict[tuple[str, str], str]:
    """Return PostgreSQL's definitions of the views that are computed from other relations, by (schema, name)."""
    listed = zip(*(static("pg_views")[name] for name in ("schemaname", "viewname", "definition")), strict=True)
    return {(schema, name): text.rstrip().rstrip(";") for schema, name, text in listed if (schema, name) in _VIEWS}


@cache
def denied() -> frozenset[str]:
    """Return the names of the relations that only superusers read."""
    return frozenset(_data()["denied"])


def definitions() -> list[list[Any]]:
    """Return OIDs of constraints and of their indexes, or 0, with both as SQL, the index also without its schema, and columns."""
    rows: list[list[Any]] = _data()["definitions"]
    return rows


@cache
def signatures() -> pa.Table:
    """Return the arguments of each function, those without their defaults, and its result, as SQL."""
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
    texts = [(name, pa.string()) for name in ("arguments", "identity", "result")]
    return pa.table(
        [list(column) for column in zip(*rows, strict=True)], schema=pa.schema([("oid", pa.uint32()), *texts])
    )


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


# ----------------------------------------------------------------------------------------------------------------------
# Names that PostgreSQL gives to outputs without an alias (count, ?column?, case), which clients use, and types that are
# seen in a text.


def output_names(tree: exp.Query) -> list[str]:
    """Return the name of each output."""
    return [output_name(select) for select in tree.selects]


def called(node: exp.Expr) -> str:
    """Return the name by which a function is called in the text, in lower case."""
    written = node.meta.get("word")
    if written is None and isinstance(node, exp.Func):
        written = node.name if isinstance(node, exp.Anonymous) else function_word(node)
    return str(written or "").lower()


def output_name(node: exp.Expr) -> str:
    """Return the name that PostgreSQL gives to an output without an alias."""
    return _named(node)[0]


_UNNAMED = ("?column?", 0)


def _named(node: exp.Expr) -> tuple[str, int]:
    """Return the name of an output and how strong it is: 2 that of a column or function, 1 that of a type or CASE, 0 none."""
    if isinstance(node, (exp.Alias, exp.Column)):
        return str(node.alias_or_name), 2
    if isinstance(node, exp.Cast):
        inner = _named(node.this)
        return inner if inner[1] == 2 else (internal_name(node.to), 1)
    if isinstance(node, (exp.Paren, exp.Collate, exp.Bracket, exp.Filter, exp.Window, exp.WithinGroup)):
        return _named(node.this)
    if isinstance(node, exp.Dot):
        return _named(node.expression) if isinstance(node.expression, exp.Func) else (str(node.name), 2)
    if isinstance(node, exp.Case):
        default = node.args.get("default")
        inner = _UNNAMED if default is None else _named(default)
        return inner if inner[1] == 2 else ("case", 1)
    if isinstance(node, (exp.Array, exp.Tuple)):
        return "array" if isinstance(node, exp.Array) else "row", 2
    if isinstance(node, exp.AtTimeZone):
        return "timezone", 2
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position")), "btrim"), 2
    if node.meta.get("word") and not isinstance(node, exp.Connector):
        return called(node), 2
    if isinstance(node, exp.Explode):
        return "unnest", 2
    if isinstance(node, exp.Subquery):
        query = node.unnest()
        return _named(query.selects[0]) if isinstance(query, exp.Query) and query.selects else _UNNAMED
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Binary, exp.Interval)):
        return _OWN_WORDS.get(type(node)) or called(node), 2
    return ("interval", 1) if isinstance(node, exp.Interval) else _UNNAMED


_OWN_WORDS: dict[type[exp.Expr], str] = {
    exp.CurrentVersion: "version", exp.ArrayAgg: "array_agg", exp.GroupConcat: "string_agg", exp.StrPosition: "position",
    exp.JSONArrayAgg: "json_agg",
}  # fmt: skip


def internal_name(to: exp.Expr) -> str:
    """Return the name under which pg_type has a type: int4 for integer."""
    if isinstance(to, exp.ObjectIdentifier):
        return str(to.this).lower()
    kind = to.args.get("kind")
    text = ((kind if isinstance(kind, exp.Expr) else to).sql("postgres", comments=False)).lower()
    if text == '"char"':
        return "char"
    word = text.split("(")[0].split("[")[0].rpartition(".")[2].replace('"', "").strip()
    return _INTERNAL.get(word, word)


_INTERNAL = {sql: short for short, sql in SQL_NAMES.items()} | {
    "int": "int4", "char": "bpchar", "decimal": "numeric", "varchar": "varchar", "timestamp": "timestamp", "time": "time",
    "timestamp with time zone": "timestamptz", "double": "float8", "float": "float8",
}  # fmt: skip


def name_outputs(tree: exp.Query, names: list[str]) -> None:
    """Give these names, as aliases, to the outputs without an alias."""
    select: exp.Expr = tree
    while isinstance(select, (exp.SetOperation, exp.Subquery)):
        select = select.this
    if not isinstance(select, exp.Select):
        return
    for node, name in zip(list(select.expressions), names, strict=True):
        if not isinstance(node, (exp.Alias, exp.Column, exp.Star)) and not node.is_star:
            node.replace(exp.alias_(node.copy(), name, quoted=True))


@cache
def column_types() -> dict[str, set[str]]:
    """Return the types that catalog columns of each name have."""
    types: dict[str, set[str]] = {}
    for relation in relations().values():
        for name, (type_, _) in relation.columns.items():
            types.setdefault(name, set()).add(type_)
    return types


def is_of(node: exp.Expr, types: set[str]) -> bool:
    """Return whether a value visibly has one of these types: a column of the catalogs, whose name is no alias in the question."""
    node = node.unnest()
    if not isinstance(node, exp.Column):
        return False
    outputs = node.root().find_all(exp.Alias)
    aliases = {
        output.alias
        for output in outputs
        if not (isinstance(output.this, exp.Column) and output.this.name == output.alias)
    }
    return node.name not in aliases and column_types().get(node.name, {""}) <= types
