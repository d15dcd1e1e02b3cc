"""asyncpg's query for unknown types: a recursive query that sqlglot cannot parse, answered directly.

It asks for types by OID together with their element types, base types and attributes. Answers have scalar types and
arrays of scalar types only, so an array and its element suffice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dpsql.frontends.pgwire.catalog.shape import formatted_types, relation, static_rows

TYPE_TREE = re.compile(r"\s*WITH\s+RECURSIVE\s+typeinfo_tree\s*\(\s*oid,\s*ns,\s*name,\s*kind,", re.IGNORECASE)
_SCHEMA = pa.schema([
    ("oid", pa.uint32()), ("ns", pa.string()), ("name", pa.string()), ("kind", pa.string()), ("basetype", pa.uint32()),
    ("elemtype", pa.uint32()), ("elemdelim", pa.string()), ("range_subtype", pa.uint32()),
    ("attrtypoids", pa.list_(pa.uint32())), ("attrnames", pa.list_(pa.string())), ("depth", pa.int32()),
    ("basetype_name", pa.string()), ("elemtype_name", pa.string()), ("range_subtype_name", pa.string()),
])  # fmt: skip


def type_tree(oids: Sequence[Any]) -> pa.Table:
    """Return the rows for types by OID, elements before their arrays."""
    columns = list(relation("pg_type").columns)
    types = {row[0]: dict(zip(columns, row, strict=True)) for row in static_rows()["pg_type"]}
    requested = [(int(oid), 0) for oid in oids if oid is not None and int(oid) in types]
    elements = [(types[oid]["typelem"], 1) for oid, _ in requested if types[oid]["typelem"] in types]
    rows = []
    for oid, depth in sorted(set(requested + elements), key=lambda entry: -entry[1]):
        facts = types[oid]
        element = facts["typelem"] if facts["typelem"] in types else None
        delimiter = types[element]["typdelim"] if element is not None and facts["typlen"] == -1 else None
        name = None if element is None else formatted_types()[element]
        row = (oid, "pg_catalog", facts["typname"], facts["typtype"], None, facts["typelem"], delimiter)
        rows.append((*row, None, None, None, depth, None, name, None))
    turned = zip(*rows, strict=True) if rows else [[] for _ in _SCHEMA]
    return pa.Table.from_arrays([pa.array(v, f.type) for v, f in zip(turned, _SCHEMA, strict=True)], schema=_SCHEMA)
