"""DuckDB's names, constants with their types, and source columns read in the types of the policy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any

import duckdb

from dpsql.engine.contract import SourceTable, plain_name
from dpsql.engine.csv_files import check_openable, dialect_of, header_of, matching
from dpsql.engine.dialect import constant_of, in_calendar
from dpsql.engine.query import DECIMAL_COMMA, stored_as
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Type
from dpsql.policy.reach import is_file
from dpsql.policy.types import DEFAULT_SCHEMAS

TYPES = {
    Type.INTEGER: "BIGINT", Type.REAL: "DOUBLE", Type.TEXT: "VARCHAR", Type.BOOLEAN: "BOOLEAN", Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP", Type.NULL: "INTEGER",
}  # fmt: skip

BINARY = "C"
"""The collation under which texts are equal exactly if their bytes are."""


def name(identifier: str) -> str:
    """Return a quoted identifier."""
    return '"' + identifier.replace('"', '""') + '"'


def constant(value: Any) -> str:
    """Return a constant with its type, so that the engine promotes no operand by its own rules."""
    return constant_of(value, lambda whole: f"CAST({whole} AS BIGINT)", _real, _text)


def _real(number: float) -> str:
    text = repr(number)
    if not isfinite(number):
        return f"CAST('{text}' AS DOUBLE)"
    return f"CAST({text if 'e' in text else text + 'e0'} AS DOUBLE)"


def _text(value: str) -> str:
    parts = ["'" + part.replace("'", "''") + "'" for part in value.split("\0")]
    # A released key may contain any character; before DuckDB 2 a text ended at its first NUL.
    return parts[0] if len(parts) == 1 else f"({' || chr(0) || '.join(parts)})"


_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"})
_NARROWER = {Type.INTEGER: _INTEGERS, Type.REAL: _INTEGERS | {"BIGINT", "FLOAT"}}
"""Types of which every value has one in ours: no cast from them can fail."""


def cast_column(source: str, type_: Type, engine_type: str) -> str:
    """Return a source column in our type; a value that does not fit (a text that is not a number, a date beyond 9999) is NULL.

    A column that is cast is also read without the cast: DuckDB pushes a lone TRY_CAST into the reader of CSV files, where it
    raises (duckdb/duckdb issue 23818). The resulting texts are compared byte by byte: under a collation of the column (which
    the engine's type does not show), rows of one unit could decide to which group the rows of other units belong.
    """
    target = TYPES[type_]
    engine_type, rule = stored_as(engine_type)
    if rule == DECIMAL_COMMA:
        return _with_decimal_comma(source, target)
    if rule is not None:
        return _local_time(source, type_, engine_type, rule)
    if engine_type.upper() in _NARROWER.get(type_, ()):
        return f"CAST({source} AS {target})"
    same = engine_type.upper() == target
    castable = _castable(source, type_, engine_type)
    if type_ is Type.INTEGER and engine_type == "TIME":  # seconds since midnight
        castable = f"floor(date_part('epoch', {castable}))"
    value = source if same else f"TRY_CAST({castable} AS {target})"
    value = f"({value} COLLATE {BINARY})" if type_ is Type.TEXT else value
    value = in_calendar(type_, value) if type_.temporal else value
    if type_.temporal and engine_type == "VARCHAR":
        # 1/2/24 and 24-01-02 are no days of the years 1 and 24. Few texts are matched: years have four digits since 1000.
        value = (
            f"(CASE WHEN {value} >= DATE '1000-01-01' OR regexp_matches({source}, '^\\s*[0-9]{{4}}') THEN {value} END)"
        )
    return value if same else f"(CASE WHEN {source} IS NOT NULL THEN {value} END)"


OFFSET = r"^\s*[0-9]{4}.*[0-9]:[0-9]{2}.*([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
"""Texts with a time and an offset from UTC."""
POINTS_OF_TIME = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS", "VARCHAR")
"""The types of columns whose values may be points of time, which a clock in some zone shows."""


_COMMA = r"\s*[+-]?([0-9]+|[0-9]{1,3}([.][0-9]{3})+)?(,[0-9]*)?([eE][+-]?[0-9]+)?\s*"


def _with_decimal_comma(source: str, target: str) -> str:
    """Return numbers from texts with a comma before the tenths, and perhaps points between thousands."""
    number = f"replace(replace({source}, '.', ''), ',', '.')"
    return f"(CASE WHEN regexp_full_match({source}, '{_COMMA}') THEN TRY_CAST({number} AS {target}) END)"


def _local_time(source: str, type_: Type, engine_type: str, zone: str) -> str:
    """Return points of time by the clock of a zone. Texts without an offset are what a clock has shown already."""
    moment = f"TRY_CAST({source} AS TIMESTAMP WITH TIME ZONE)"
    first, last = (f"CAST('{day} 00:00:00+00' AS TIMESTAMP WITH TIME ZONE)" for day in ("0001-01-03", "9999-12-29"))
    local = f"(CASE WHEN {moment} BETWEEN {first} AND {last} THEN timezone('{zone}', {moment}) END)"
    local = f"CAST({local} AS DATE)" if type_ is Type.DATE else local
    if engine_type == "VARCHAR":
        text = cast_column(source, type_, engine_type)
        return f"(CASE WHEN regexp_matches({source}, '{OFFSET}') THEN {local} ELSE {text} END)"
    return f"(CASE WHEN {source} IS NOT NULL THEN {local} END)"


_READABLE = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|BIGNUM|FLOAT|DOUBLE|DECIMAL\(\d+,\d+\)|VARCHAR|JSON|BLOB|BIT|UUID|"
    r"ENUM\(.*\)|DATE|TIME(_NS)?|TIME WITH TIME ZONE|TIMESTAMP(_S|_MS|_NS)?|TIMESTAMP WITH TIME ZONE|TIMESTAMPTZ_NS|"
    r"INTERVAL|\"NULL\"",
    re.DOTALL,
)
"""The types of columns that `cast_column` reads, whatever their values. Types with parts are none of them: their values may hold
parts at which a conversion raises (a map with a repeated key, times outside a day)."""


def is_readable(engine_type: str) -> bool:
    """Return whether columns of a type of DuckDB are read."""
    return _READABLE.fullmatch(engine_type) is not None


_CASTABLE = {
    "TIMESTAMP_S": ("0001-01-01", "9999-12-31 23:59:59"), "TIMESTAMP_MS": ("0001-01-01", "9999-12-31 23:59:59.999"),
    "TIME": ("00:00:00", "24:00:00"), "TIME_NS": ("00:00:00", "24:00:00"),
}  # fmt: skip
"""Types of which files and connections may hold values at which even TRY_CAST to text raises, with the least and the greatest
value at which it does not. So may decimals (with more digits than their type has), for which `_castable` computes them."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


_LONG = {
    "BIT": "(CASE WHEN bit_length({0}) < 64 THEN TRY_CAST({0} AS BIGINT) END)", "BIGNUM": "CAST({0} AS VARCHAR)",
}  # fmt: skip
"""How values of any length are read as others than texts: before DuckDB 2, TRY_CAST raises at those that are too long. (And it
makes a double of 64 bits as if they were its own.)"""


def _castable(source: str, type_: Type, engine_type: str) -> str:
    if engine_type.upper() == "JSON" and type_ is not Type.TEXT:  # read from Arrow, it may be no JSON
        return f"(CASE WHEN json_valid({source}) THEN {source} END)"
    if engine_type.upper() in _LONG and type_ is not Type.TEXT:
        return _LONG[engine_type.upper()].format(source)
    ends = _CASTABLE.get(engine_type.upper())
    if decimal := _DECIMAL.fullmatch(engine_type.upper()):
        digits, scale = map(int, decimal.groups())
        most = f"{'9' * (digits - scale)}.{'9' * scale}"
        ends = (f"-{most}", most)
    if ends is None:
        return source
    least, most = (f"CAST('{end}' AS {engine_type})" for end in ends)
    return f"(CASE WHEN {source} BETWEEN {least} AND {most} THEN {source} END)"


# --- the structure of a DuckDB, Parquet or CSV file, read by DuckDB ---------------------------------------------------
# Values are never read.


def structure_of_file(source: Path) -> dict[str, SourceTable]:
    """Return tables by name from a file, a glob of files (one table), or a folder of Parquet and CSV files (a table for each).

    Raises InterfaceError init_source.
    """
    if source.is_dir():
        files = sorted(file for file in source.iterdir() if file.is_file() and is_file(file.name))
        if not files:
            raise refuse("init_source", place=str(source), problem="the folder has no Parquet or CSV files")
        tables: dict[str, SourceTable] = {}
        for file in files:
            ((name, table),) = structure_of_file(file).items()
            if name in tables:
                problem = f"two of its files would both be table {name}"
                raise refuse("init_source", place=str(source), problem=problem)
            tables[name] = replace(table, source=file.name)
        return tables
    first = source if source.is_file() else next(iter(matching(source)), None)
    if first is None or (first != source and not is_file(source.name)):
        raise refuse("init_source", place=str(source), problem="it is not there")
    name = plain_name(re.sub(r"(\.csv)?\.[^.]*$", "", source.name.replace("*", "").replace("?", "")).strip("-_. "))
    try:
        check_openable([first])
    except OSError:
        raise refuse("init_source", place=str(first), problem="it is not a regular file") from None
    try:
        if first.suffix.lower() == ".parquet":
            return {name: SourceTable(_described(f"read_parquet({constant(str(first))})"))}
        if is_file(first.name):  # types would be guessed from values: only the header is read
            dialect = dialect_of(first)
            header = header_of(first, dialect)
            # A policy cannot name a column without a name: most often it numbers the rows.
            columns = dict.fromkeys(filter(None, header), "VARCHAR")
            return {name: SourceTable(columns, delimiter=dialect.delimiter, encoding=dialect.encoding)}
        if first.suffix.lower() in (".tsv", ".txt"):
            problem = "files of cells have names that end in .csv or .csv.gz, whatever separates the cells: rename it"
            raise refuse("init_source", place=str(first), problem=problem)
        return _database(source)
    except (OSError, UnicodeDecodeError) as error:
        raise refuse("init_source", place=str(source), problem=f"it has no header ({error})") from None
    except duckdb.Error as error:
        problem = f"DuckDB cannot open it ({type(error).__name__})"
        raise refuse("init_source", place=str(source), problem=problem) from None


def _described(scan: str) -> dict[str, str]:
    with duckdb.connect() as connection:
        return {name: type_ for name, type_, *_ in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}


def _database(source: Path) -> dict[str, SourceTable]:
    tables: dict[str, SourceTable] = {}
    with duckdb.connect(str(source), read_only=True) as connection:
        in_file = "database_name = current_database()"
        listed = f"SELECT DISTINCT schema_name, table_name FROM duckdb_columns() WHERE {in_file} AND NOT internal"
        named = _names(connection.execute(listed).fetchall())
        columns = "SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns()"
        columns += f" WHERE {in_file} AND NOT internal ORDER BY table_oid, column_index"
        for schema, table, column, type_, nullable in connection.execute(columns).fetchall():
            entry = tables.setdefault(named[schema, table], _empty(schema, table, named[schema, table]))
            entry.columns[column] = type_
            if not nullable:
                entry.filled.add(column)
        keys = "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table"
        for schema, table, kind, names, parent, parents in connection.execute(
            f"{keys}, referenced_column_names FROM duckdb_constraints() WHERE {in_file} ORDER BY constraint_index"
        ).fetchall():
            entry = tables[named[schema, table]]
            if kind == "PRIMARY KEY":
                entry.primary_key = list(names)
            elif kind == "FOREIGN KEY" and len(names) == 1:
                entry.foreign_keys[names[0]] = (named[schema, parent], parents[0])
    return tables


def _names(tables: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the name in the policy of each (schema, table): its own name if no other schema has it or if it is in `main`;
    otherwise the name preceded by its schema."""
    listed = list(tables)
    times = Counter(table.lower() for _, table in listed)
    return {
        (schema, table): table if schema == "main" or times[table.lower()] == 1 else f"{schema}_{table}"
        for schema, table in listed
    }


def _empty(schema: str, table: str, name: str) -> SourceTable:
    """Return a table without columns. A schema whose name is not plain cannot be the policy's `schema`, only part of `source`."""
    if schema == "main":
        return SourceTable({})
    plain = plain_name(schema) == schema and schema.lower() not in DEFAULT_SCHEMAS
    same = plain and name == table
    return SourceTable({}, source=None if same else f"{schema}.{table}", schema=schema if plain else None)
