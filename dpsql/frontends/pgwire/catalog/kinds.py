"""PostgreSQL's types that DuckDB lacks, each as a physical type that nothing else in the catalogs has.

A name of an object (regclass and the like) is its OID as a decimal without places, of a width of its own; int2vector and
oidvector, whose elements are counted from 0, are lists of unsigned integers. So a value keeps its type through subqueries, arrays
and unions, compares with numbers, and DuckDB's `typeof` tells the macros, and Arrow's types the protocol, what it is.
"""

from __future__ import annotations

import re
from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.pgwire.catalog.shape import PG_CATALOG, formatted_types, namespaces, quoted, static, type_names
from dpsql.frontends.pgwire.constants.tokens import said

KINDS = ("regclass", "regtype", "regnamespace", "regproc", "regprocedure", "regrole", "regoper", "regoperator", "regconfig",
         "regdictionary", "regcollation")  # fmt: skip
NAMING = ("pg_class", "pg_namespace", "pg_roles", "pg_type")
"""The relations with rows of the policy that are named by values of these kinds."""
_PIECE = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".\s]+(?: [^".]+)*))\s*')
_NAME = re.compile(r'\s*("([^"]|"")+"|[^".\s]+)\s*(\.\s*("([^"]|"")+"|[^".\s]+)\s*)*')
"""A name, with what it is in before it."""
_SIZES = re.compile(r"\s*\([\d\s,]*\)")
"""The sizes behind a type, which its name does not have."""
_LONGEST_TYPE = 1_000
"""Characters of a text that may name a type: it is searched for sizes and brackets from each of its places."""
_SEVERAL = 0
"""Stands for the OID of a name that several functions or operators have."""
_OTHERS = {
    "regconfig": ("pg_ts_config", "cfgname"),
    "regdictionary": ("pg_ts_dict", "dictname"),
    "regcollation": ("pg_collation", "collname"),
}
"""The relation and the column with the names of further kinds, none of which a policy has."""
Named = dict[int, tuple[str, str]]
"""The schema ("" for what belongs to none) and the name of each object as it is written, by its OID."""


@cache
def _named_everywhere() -> dict[str, Named]:
    """Return the objects that every database has, by kind."""
    schemas = {oid: schema for schema, oid in namespaces().items()}
    named: dict[str, Named] = {
        "regclass": {
            oid: (schemas[schema], quoted(name)) for oid, name, schema in _listed("pg_class", "relname", "relnamespace")
        },
        "regtype": {oid: ("", name) for oid, name in formatted_types().items()},
        "regnamespace": {oid: ("", quoted(name)) for name, oid in namespaces().items()},
        "regrole": {oid: ("", quoted(name)) for oid, name in _listed("pg_roles", "rolname")},
    }
    for kind, (table, column) in _OTHERS.items():
        named[kind] = {oid: (PG_CATALOG, quoted(name)) for oid, name in _listed(table, column)}
    functions = [
        (oid, schemas[schema], name, arguments)
        for oid, name, schema, arguments in _listed("pg_proc", "proname", "pronamespace", "proargtypes")
    ]
    operators = [
        (oid, PG_CATALOG, name, [left, right])
        for oid, name, left, right in _listed("pg_operator", "oprname", "oprleft", "oprright")
    ]
    for kind, calls in (("regproc", functions), ("regoper", operators)):
        several = Counter(name for _, _, name, _ in calls)
        write = quoted if kind == "regproc" else str
        named[kind] = {
            oid: ("", f"{PG_CATALOG}.{write(name)}") if several[name] > 1 else (schema, write(name))
            for oid, schema, name, _ in calls
        }
        named[{"regproc": "regprocedure", "regoper": "regoperator"}[kind]] = {
            oid: (schema, f"{write(name)}({','.join(formatted_types().get(type_, 'NONE') for type_ in arguments)})")
            for oid, schema, name, arguments in calls
        }
    return named


def _listed(table: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(static(table)[name] for name in ("oid", *columns)), strict=True)


def _spelt(kind: str, named: Named) -> dict[str, int]:
    """Return the OID of each spelling of the objects of a kind; those that hide others are last."""
    oids: dict[str, int] = {}
    if kind == "regtype":
        for name, oid in type_names().items():
            oids |= {name: oid, f"{PG_CATALOG}.{name}": oid}
    for oid, (schema, name) in sorted(named.items(), key=lambda item: (item[1][0] == PG_CATALOG, -item[0])):
        if name.startswith(f"{PG_CATALOG}."):
            oids |= {name: _SEVERAL, name.removeprefix(f"{PG_CATALOG}."): _SEVERAL}
            continue
        oids[name] = oid
        if schema:
            oids[f"{quoted(schema)}.{name}"] = oid
    return oids


@cache
def _spelt_everywhere() -> dict[str, dict[str, int]]:
    return {kind: _spelt(kind, named) for kind, named in _named_everywhere().items()}


_LISTED = {
    "has_database_privilege": ("database", ""), "has_language_privilege": ("language", "lanname"),
    "has_tablespace_privilege": ("tablespace", "spcname"), "has_server_privilege": ("server", ""),
    "has_foreign_data_wrapper_privilege": ("foreign-data wrapper", ""),
}  # fmt: skip
"""Functions about objects that have no type of their own: their kind, and the column with their names."""


def check_listed(function: str, name: str, database: str, position: int | None) -> None:
    """Raise PostgreSQL's refusal of an object, given to one of these functions as a literal, that does not exist."""
    kind, column = _LISTED.get(function, ("", ""))
    listed = static(f"pg_{kind}")[column] if column else [database] if kind == "database" else []
    if kind and name not in listed:
        raise said("3D000" if kind == "database" else "42704", f'{kind} "{name}" does not exist', position)


class ObjectNames:
    """The objects that values of these kinds name. `database` may stand before a schema."""

    def __init__(self, database: str, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """`rows`: those of the policy in the relations of `NAMING`."""
        schemas = {row["oid"]: row["nspname"] for row in rows["pg_namespace"]}
        self._schemas = {oid: schema for schema, oid in namespaces().items()} | schemas
        self._of_policy: dict[str, Named] = {kind: {} for kind in KINDS}
        for row in rows["pg_class"]:
            self._of_policy["regclass"][row["oid"]] = (self._schemas[row["relnamespace"]], quoted(row["relname"]))
        for row in rows.get("pg_type", ()):
            element = next((other for other in rows["pg_type"] if other["oid"] == row["typelem"]), None)
            name = quoted(row["typname"]) if element is None else f"{quoted(element['typname'])}[]"
            self._of_policy["regtype"][row["oid"]] = (self._schemas[row["typnamespace"]], name)
        self._of_policy["regnamespace"] = {oid: ("", quoted(name)) for oid, name in schemas.items()}
        self._of_policy["regrole"] = {row["oid"]: ("", quoted(row["rolname"])) for row in rows["pg_roles"]}
        self._database = f"{quoted(database)}."
        self._oids = {kind: _spelt(kind, named) for kind, named in self._of_policy.items()}

    def _oid_of(self, kind: str, spelling: str) -> int | None:
        """Return the OID of an object that is spelt in full or with its schema searched."""
        everywhere = _spelt_everywhere()[kind]
        within = spelling.removeprefix(self._database)
        spelling = within if "." in within else spelling
        return everywhere[spelling] if spelling in everywhere else self._oids[kind].get(spelling)

    def type_name(self, oid: int) -> str | None:
        """Return the SQL name of a type; None for an OID of none."""
        name = self._of_policy["regtype"].get(oid) or _named_everywhere()["regtype"].get(oid)
        return None if name is None else name[1]

    def oid(self, kind: str, text: str, path: Sequence[str]) -> int:
        """Return the OID of the object that a text names. Raises PostgreSQL's refusals of an unknown one."""
        if text.isascii() and text.isdecimal() and len(text) < 11:
            return int(text)
        if text == "-" and kind not in ("regrole", "regoper", "regoperator"):
            return 0
        if kind in ("regprocedure", "regoperator"):
            oid = self._call(kind, text, path)
        elif kind == "regtype":
            oid = self._type(text, path)
        else:
            if kind != "regoper" and not _NAME.fullmatch(text):
                raise said("42602", "invalid name syntax")
            spelt = text.strip() if kind == "regoper" else _spelling(text)
            if kind == "regclass" and len(_PIECE.findall(text.strip())) > 3:
                raise said("42601", f"improper relation name (too many dotted names): {spelt}")
            candidates = (*(f"{quoted(schema)}.{spelt}" for schema in path), spelt)
            oid = next((oid for name in candidates if (oid := self._oid_of(kind, name)) is not None), None)
        if oid is None or oid == _SEVERAL:
            raise _unknown(kind, text, several=oid is not None)
        return oid

    def _type(self, text: str, path: Sequence[str]) -> int | None:
        """Return the OID of a type, which may have sizes or be an array."""
        if len(text := text.strip()) > _LONGEST_TYPE:
            return None
        bare = _spelling(_SIZES.sub("", text))
        element, array = re.subn(r"(?:\s*\[\d*\])+$", "", bare)
        plain = element.removeprefix(f"{PG_CATALOG}.").replace('"', "")
        oid = type_names()["bpchar"] if element == "char" else type_names().get(plain)
        for name in (*(f"{quoted(schema)}.{element}" for schema in path), element):
            oid = self._oid_of("regtype", name) if oid is None else oid
        if oid is None or not array:
            return oid
        schema, name = ChainMap(self._of_policy["regtype"], _named_everywhere()["regtype"])[oid]
        return self._oid_of("regtype", f"{quoted(schema)}.{name}[]" if schema else f"{name}[]")

    def _call(self, kind: str, text: str, path: Sequence[str]) -> int | None:
        """Return the OID of a function or an operator that is named with the types of its arguments."""
        name, bracket, arguments = text.strip().partition("(")
        if not bracket or not arguments.endswith(")"):
            raise refuse("catalog_call", name="a left parenthesis" if not bracket else "a right parenthesis")
        types = [part for part in arguments[:-1].split(",") if part.strip()]
        oids = [0 if part.strip().upper() == "NONE" else self.oid("regtype", part, path) for part in types]
        listed = ",".join("NONE" if oid == 0 else self.text("regtype", oid, path) for oid in oids)
        return self._oid_of(kind, f"{_spelling(name) if kind == 'regprocedure' else name.strip()}({listed})")

    def text(self, kind: str, oid: int, path: Sequence[str]) -> str:
        """Return what PostgreSQL shows for a value: the name, with its schema unless that is searched; an OID that names nothing
        as a number."""
        name = self._of_policy[kind].get(oid) or _named_everywhere()[kind].get(oid)
        if name is None:
            return "-" if oid == 0 else str(oid)
        schema, plain = name
        return plain if schema in ("", PG_CATALOG, *path) else f"{quoted(schema)}.{plain}"


def struct_of(kind: str) -> pa.DataType:
    """Return the Arrow type of a shown value of a kind."""
    return pa.struct([(kind, pa.uint32()), ("text", pa.string())])


_MISSING = {
    "regclass": ("unknown_table", "{}"), "regtype": ("catalog_type", "{}"), "regnamespace": ("catalog_schema", "{}"),
    "regrole": ("catalog_role", "{}"), "regconfig": ("catalog_object", 'text search configuration "{}"'),
    "regdictionary": ("catalog_object", 'text search dictionary "{}"'),
    "regcollation": ("catalog_object", 'collation "{}" for encoding "UTF8"'),
    "regproc": ("catalog_function", 'function "{}"'), "regprocedure": ("catalog_function", 'function "{}"'),
}  # fmt: skip
"""What is said of a name that no object of a kind has."""


def _unknown(kind: str, text: str, several: bool) -> Error:
    """Return PostgreSQL's refusal of a name that no object of a kind has, or several."""
    if several:
        return refuse(
            "catalog_several", name=f'function named "{text}"' if kind == "regproc" else f"operator named {text}"
        )
    if kind not in _MISSING:
        return refuse("catalog_no_operator", name=text)
    slug, name = _MISSING[kind]
    lowered = text.lower() if kind == "regcollation" and '"' not in text else text
    if kind == "regclass":
        lowered = ".".join(m[1].replace('""', '"') if m[1] else m[2].lower() for m in _PIECE.finditer(text.strip()))
    return refuse(slug, name=name.format(lowered))


def _spelling(text: str) -> str:
    """Return a dotted name as it is written where quotes stand only if necessary."""
    pieces = [quoted(m[1].replace('""', '"')) if m[1] else m[2].lower() for m in _PIECE.finditer(text.strip())]
    return ".".join(pieces)
