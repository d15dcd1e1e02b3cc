"""The structure of a DuckDB, Parquet or CSV file, read by DuckDB. Values are never read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dpsql.engine.contract import SourceTable, plain_name, tables_of_schemas
from dpsql.engine.csv_files import dialect_of, header_of
from dpsql.engine.duckdb.literals import constant
from dpsql.engine.lake_tables import columns_of, format_of, snapshot
from dpsql.engine.query import check_openable, matching
from dpsql.errors.exceptions import refuse
from dpsql.policy.reach import is_file, within
from dpsql.storage.records import replace

_VALUE = re.compile(r"[-+]?[0-9]+([.,:/-][0-9]+)*")
"""A text that is no name of a column. In the first cell of a file it says that the first line is a row, of secret values."""


def structure_of_file(source: Path) -> dict[str, SourceTable]:
    """Return tables by name from a file, a glob of files (one table), the folder of a lake table, or a folder of Parquet and CSV
    files and lake tables (a table for each).

    Raises InterfaceError init_source.
    """
    if source.is_dir():
        return _of_folder(source)
    first = source if source.is_file() else next(iter(matching(source)), None)
    if first is None or (first != source and not is_file(source.name)):
        raise refuse("init_source", place=str(source), problem="it is not there")
    name = plain_name(re.sub(r"(\.csv)?\.[^.]*$", "", source.name.replace("*", "").replace("?", "")).strip("-_. "))
    try:
        check_openable([first])
    except OSError:
        raise refuse("init_source", place=str(first), problem="it is not a regular file") from None
    try:
        if is_file(first.name):
            return {name: _of_parquet(first) if first.suffix.lower() == ".parquet" else _of_csv(first)}
        if first.suffix.lower() in (".tsv", ".txt"):
            problem = "files of cells have names that end in .csv or .csv.gz, whatever separates the cells: rename it"
            raise refuse("init_source", place=str(first), problem=problem)
        return _database(source)
    except (OSError, UnicodeDecodeError) as error:
        raise refuse("init_source", place=str(first), problem=f"it has no header ({error})") from None
    except (duckdb.Error, pa.ArrowException) as error:
        problem = f"DuckDB cannot open it ({type(error).__name__})"
        if "conflicting lock" in str(error).lower():
            problem = "another program has it open for writing: close it first"
        elif not is_file(first.name):
            problem += (
                "; of other kinds of files make Parquet files first, in DuckDB: COPY (FROM 'a.json') TO 'a.parquet';"
                " of a workbook save each sheet as CSV in UTF-8"
            )
        raise refuse("init_source", place=str(source), problem=problem) from None


def _of_folder(source: Path) -> dict[str, SourceTable]:
    """Return the tables of a folder, which may be one lake table."""
    if (lake := format_of(source)) is not None:
        return {plain_name(source.name): _of_lake(lake, source)}
    files = sorted(file for file in source.iterdir() if format_of(file) or (file.is_file() and is_file(file.name)))
    if not files:
        problem = (
            "the folder has no Parquet or CSV files; if folders within it have some, name a glob: 'FOLDER/**/*.csv'"
        )
        raise refuse("init_source", place=str(source), problem=problem)
    tables: dict[str, SourceTable] = {}
    for file in files:
        ((name, table),) = structure_of_file(file).items()
        if name in tables:
            problem = f"two of its files would both be table {name}"
            raise refuse("init_source", place=str(source), problem=problem)
        tables[name] = replace(table, source=within(file.name, table.source or ""))
    return tables


def _of_lake(kind: str, folder: Path) -> SourceTable:
    try:
        return SourceTable(columns_of(snapshot(kind, str(folder))), source=f"{kind}:.")
    except OSError as error:
        raise refuse("init_source", place=str(folder), problem=str(error)) from None


def _of_parquet(file: Path) -> SourceTable:
    described = _described(f"read_parquet({constant(str(file))})")
    names = pq.read_schema(file).names  # DuckDB gives another name to one of two that differ in case alone
    return SourceTable(_unrepeated([*names, *list(described)[len(names) :]], described.values()))


def _of_csv(file: Path) -> SourceTable:
    """Return the columns in the header of a file. Types would be guessed from values, which are not read."""
    dialect = dialect_of(file)
    header = header_of(file, dialect)
    if _VALUE.fullmatch(header[0]):
        problem = "its first line begins with a number or a date, as rows do: add a line with names of the columns"
        raise refuse("init_source", place=str(file), problem=problem)
    named = sum(map(bool, header))
    if not named or (named == 1 < len(header) - 1) or header[0].lower().startswith("sep="):
        problem = "its first line is empty, a title, or Excel's sep=: delete what is above the names of the columns"
        raise refuse("init_source", place=str(file), problem=problem)
    columns = _unrepeated(header, repeat("VARCHAR"))
    return SourceTable(columns, delimiter=dialect.delimiter, encoding=dialect.encoding)


def _unrepeated(names: list[str], types: Iterable[str]) -> dict[str, str]:
    """Return types by name. A policy cannot name a column without a name, which most often numbers the rows, nor one of two whose
    names differ at most in case."""
    times = Counter(map(str.lower, names))
    repeated = "A NAME THAT THE HEADER REPEATS"
    return {
        name: repeated if times[name.lower()] > 1 else type_ for name, type_ in zip(names, types, strict=False) if name
    }


def _described(scan: str) -> dict[str, str]:
    with duckdb.connect() as connection:
        return {name: type_ for name, type_, *_ in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}


def _database(source: Path) -> dict[str, SourceTable]:
    with duckdb.connect(str(source), read_only=True) as connection:
        in_file = "database_name = current_database()"
        columns = "SELECT schema_name, table_name, column_name, data_type, is_nullable FROM duckdb_columns()"
        columns += f" WHERE {in_file} AND NOT internal ORDER BY table_oid, column_index"
        rows = connection.execute(columns).fetchall()
        named = tables_of_schemas(((schema, table) for schema, table, *_ in rows), "main")
        for schema, table, column, type_, nullable in rows:
            entry = named[schema, table][1]
            entry.columns[column] = type_
            if not nullable:
                entry.filled.add(column)
        keys = "SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table"
        for schema, table, kind, names, parent, parents in connection.execute(
            f"{keys}, referenced_column_names FROM duckdb_constraints() WHERE {in_file} ORDER BY constraint_index"
        ).fetchall():
            entry = named[schema, table][1]
            if kind == "PRIMARY KEY":
                entry.primary_key = list(names)
            elif kind == "FOREIGN KEY" and len(names) == 1:
                entry.foreign_keys[names[0]] = (named[schema, parent][0], parents[0])
    return dict(named.values())
