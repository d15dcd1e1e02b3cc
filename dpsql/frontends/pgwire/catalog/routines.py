"""The rows of information_schema.routines and information_schema.parameters: PostgreSQL's own functions, as it lists them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from dpsql.frontends.pgwire.catalog.shape import (
    INFORMATION_SCHEMA,
    PG_CATALOG,
    formatted_types,
    namespaces,
    relation,
    static,
)

_MODES = {"i": "IN", "o": "OUT", "b": "INOUT", "v": "IN", "t": "OUT"}


def _facts(name: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    rows = static(name)
    return zip(*(rows[column] for column in columns), strict=True)


@cache
def _types() -> dict[int, tuple[str, str, str]]:
    """Return the schema and the name of each type, and what information_schema calls it."""
    schemas = {oid: schema for schema, oid in namespaces().items()}
    facts = _facts("pg_type", "oid", "typname", "typnamespace", "typelem", "typlen")
    return {
        oid: (
            schemas[space],
            name,
            "ARRAY"
            if element and size == -1
            else formatted_types()[oid]
            if schemas[space] == PG_CATALOG
            else "USER-DEFINED",
        )
        for oid, name, space, element, size in facts
    }


def _functions() -> Iterator[dict[str, Any]]:
    """Yield the facts of each function that everybody may call, with the names of its schema and language."""
    columns = (
        "oid", "proname", "pronamespace", "prolang", "prokind", "prosecdef", "proisstrict", "provolatile", "prorettype",
        "proargtypes", "proallargtypes", "proargmodes", "proargnames", "prosrc", "proacl",
    )  # fmt: skip
    schemas = {oid: schema for schema, oid in namespaces().items()}
    languages = dict(_facts("pg_language", "oid", "lanname"))
    for row in _facts("pg_proc", *columns):
        facts = dict(zip(columns, row, strict=True))
        if facts["proacl"] is None or re.search(r"(?<!\w)=X", str(facts["proacl"])):
            facts |= {"schema": schemas[facts["pronamespace"]], "language": languages[facts["prolang"]]}
            facts["specific"] = f"{facts['proname'][: 62 - len(str(facts['oid']))]}_{facts['oid']}"
            yield facts


def routine_rows(database: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of information_schema.routines."""
    listing = relation("routines", INFORMATION_SCHEMA)
    for f in _functions():
        schema, type_, described = _types()[f["prorettype"]] if f["prokind"] != "p" else (None, None, None)
        yield listing.row(
            specific_catalog=database, specific_schema=f["schema"], specific_name=f["specific"], routine_catalog=database,
            routine_schema=f["schema"], routine_name=f["proname"],
            routine_type={"f": "FUNCTION", "p": "PROCEDURE"}.get(f["prokind"]),
            data_type=described, type_udt_catalog=schema and database, type_udt_schema=schema, type_udt_name=type_,
            dtd_identifier=schema and "0", routine_body="SQL" if f["language"] == "sql" else "EXTERNAL",
            external_name=f["prosrc"] if f["language"] == "c" else None, external_language=f["language"].upper(),
            parameter_style="GENERAL", is_deterministic="YES" if f["provolatile"] == "i" else "NO", sql_data_access="MODIFIES",
            is_null_call=schema and ("YES" if f["proisstrict"] else "NO"), schema_level_routine="YES", max_dynamic_result_sets=0,
            security_type="DEFINER" if f["prosecdef"] else "INVOKER", as_locator="NO", is_udt_dependent="NO",
        )  # fmt: skip


def parameter_rows(database: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of information_schema.parameters."""
    listing = relation("parameters", INFORMATION_SCHEMA)
    for f in _functions():
        for index, oid in enumerate(f["proallargtypes"] or f["proargtypes"]):
            schema, type_, described = _types()[oid]
            yield listing.row(
                specific_catalog=database, specific_schema=f["schema"], specific_name=f["specific"], ordinal_position=index + 1,
                parameter_mode=_MODES[f["proargmodes"][index]] if f["proargmodes"] else "IN", is_result="NO", as_locator="NO",
                parameter_name=(f["proargnames"][index] or None) if f["proargnames"] else None, data_type=described,
                udt_catalog=database, udt_schema=schema, udt_name=type_, dtd_identifier=str(index + 1),
            )  # fmt: skip
