"""PostgreSQL's types that DuckDB lacks, each as a physical type that nothing else in the catalogs has.

A name of an object (regclass and the like) is its OID as a decimal without places, of a width of its own; int2vector and
oidvector, whose elements are counted from 0, are lists of unsigned integers. So a value keeps its type through subqueries, arrays
and unions, compares with numbers, and DuckDB's `typeof` tells the macros, and Arrow's types the protocol, what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.catalog.shape import PG_CATALOG, formatted_types, type_names

KINDS = {"regclass": 11, "regtype": 12, "regnamespace": 13, "regproc": 14, "regprocedure": 15, "regrole": 16}
"""The width of the decimals of each kind."""
VECTORS = {"int2vector": "USMALLINT[]", "oidvector": "UBIGINT[]"}
_BY_WIDTH = {width: kind for kind, width in KINDS.items()}
_PIECE = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".\s]+(?: [^".]+)*))\s*')

_SIZES = re.compile(r"\s*\([\d\s,]*\)")
"""The sizes behind a type, which its name does not have."""


def physical(kind: str) -> str | None:
    """Return DuckDB's type for one of these types; None for any other."""
    return f"DECIMAL({KINDS[kind]},0)" if kind in KINDS else VECTORS.get(kind)


def kind_of(type_: pa.DataType) -> str | None:
    """Return the kind whose values have an Arrow type; None for any other type."""
    return _BY_WIDTH.get(type_.precision) if pa.types.is_decimal(type_) and type_.scale == 0 else None


def quoted(name: str) -> str:
    """Return a name as PostgreSQL writes it: quoted only if necessary."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


class ObjectNames:
    """The objects that values of these kinds name. `database` may stand before a schema."""

    def __init__(self, database: str, rows: dict[str, Iterable[dict[str, Any]]]) -> None:
        """`rows`: those of pg_class, pg_namespace, pg_proc and pg_roles."""
        self._database = database
        schemas = {row["oid"]: row["nspname"] for row in rows["pg_namespace"]}
        self.names: dict[str, dict[int, tuple[str, str]]] = {kind: {} for kind in KINDS}
        """The schema ("" for what belongs to none) and the name of each object as it is written, by kind and OID."""
        for row in rows["pg_class"]:
            self.names["regclass"][row["oid"]] = (schemas[row["relnamespace"]], quoted(row["relname"]))
        self.names["regtype"] = {oid: ("", name) for oid, name in formatted_types().items()}
        self.names["regnamespace"] = {oid: ("", quoted(name)) for oid, name in schemas.items()}
        self.names["regrole"] = {row["oid"]: ("", quoted(row["rolname"])) for row in rows["pg_roles"]}
        for row in rows["pg_proc"]:
            types = ",".join(formatted_types().get(oid, '"any"') for oid in row["proargtypes"])
            self.names["regproc"][row["oid"]] = (schemas[row["pronamespace"]], row["proname"])
            self.names["regprocedure"][row["oid"]] = (schemas[row["pronamespace"]], f"{row['proname']}({types})")
        self._oids = {kind: dict(self._spelt(kind)) for kind in KINDS}

    def _spelt(self, kind: str) -> Iterator[tuple[str, int]]:
        """Yield each spelling of an object of a kind and its OID, those that hide others last."""
        if kind == "regtype":
            for name, oid in type_names().items():
                yield name, oid
                yield f"{PG_CATALOG}.{name}", oid
        ordered = sorted(self.names[kind].items(), key=lambda item: (item[1][0] == PG_CATALOG, -item[0]))
        for oid, (schema, name) in ordered:
            yield name, oid
            if schema:
                yield f"{quoted(schema)}.{name}", oid
                yield f"{quoted(self._database)}.{quoted(schema)}.{name}", oid

    def spellings(self) -> Iterator[tuple[str, str, int]]:
        """Yield (DuckDB's type, spelling, OID) of every object, for the lookup in SQL."""
        for kind, oids in self._oids.items():
            for spelling, oid in oids.items():
                yield physical(kind) or "", spelling, oid

    def rows(self) -> Iterator[tuple[str, int, str, str]]:
        """Yield (DuckDB's type, OID, schema, name) of every object."""
        for kind, named in self.names.items():
            for oid, (schema, name) in named.items():
                yield physical(kind) or "", oid, schema, name

    def oid(self, kind: str, text: str, path: Sequence[str]) -> int:
        """Return the OID of the object that a text names. Raises PostgreSQL's refusals of an unknown one."""
        if text.isascii() and text.isdecimal() and len(text) < 11:
            return int(text)
        if text == "-" and kind != "regrole":
            return 0
        spelt = _spelling(text)
        if kind == "regtype":
            bare = _SIZES.sub("", text).strip().lower().replace('"', "").removeprefix("pg_catalog.")
            oid = type_names().get(bare)
            if oid is None and bare.endswith("[]"):
                element = type_names().get(bare[:-2].strip())
                named = None if element is None else formatted_types().get(element)
                oid = None if named is None else self._oids[kind].get(f"{named}[]")
            if oid is None:
                raise refuse("catalog_type", name=text)
            return oid
        oids = self._oids[kind]
        for candidate in (*(f"{quoted(schema)}.{spelt}" for schema in path), spelt):
            if candidate in oids:
                return oids[candidate]
        slug = {"regclass": "unknown_table", "regnamespace": "catalog_schema", "regrole": "catalog_role"}.get(kind)
        if slug is None:
            raise refuse("catalog_function", name=f'function "{text}"')
        raise refuse(slug, name=text)

    def text(self, kind: str, oid: int, path: Sequence[str]) -> str:
        """Return what PostgreSQL shows for a value: the name, with its schema unless that is searched; an OID that names nothing
        as a number."""
        name = self.names[kind].get(oid)
        if name is None:
            return "-" if oid == 0 else str(oid)
        schema, plain = name
        return plain if schema in ("", PG_CATALOG, *path) else f"{quoted(schema)}.{plain}"

    def with_texts(self, table: pa.Table, path: Sequence[str]) -> pa.Table:
        """Return the rows of an answer with each value of a kind as a struct of its number and its text."""
        for position, field in enumerate(table.schema):
            inner = field.type.value_type if pa.types.is_list(field.type) else field.type
            kind = kind_of(inner)
            if kind is None:
                continue
            values = table.column(position).to_pylist()
            if inner is field.type:
                both: list[Any] = [self._both(kind, value, path) for value in values]
            else:
                both = [None if value is None else [self._both(kind, item, path) for item in value] for value in values]
            type_ = struct_of(kind)
            table = table.set_column(
                position, field.name, pa.array(both, type_ if inner is field.type else pa.list_(type_))
            )
        return table

    def _both(self, kind: str, value: Any, path: Sequence[str]) -> dict[str, Any] | None:
        return None if value is None else {kind: int(value), "text": self.text(kind, int(value), path)}


def struct_of(kind: str) -> pa.DataType:
    """Return the Arrow type of a shown value of a kind."""
    return pa.struct([(kind, pa.uint32()), ("text", pa.string())])


def _spelling(text: str) -> str:
    """Return a dotted name, with the types of arguments behind it, as it is written where quotes stand only if necessary."""
    path, bracket, arguments = text.strip().partition("(")
    pieces = [quoted(m[1].replace('""', '"')) if m[1] else m[2].lower() for m in _PIECE.finditer(path)]
    return ".".join(pieces) + bracket + arguments.replace(" ", "" if "," in arguments else " ")
