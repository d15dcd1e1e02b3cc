"""Structure of a DuckDB, Parquet or CSV file, read by DuckDB. Values are never read."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpsql.engine.csv_files import delimiter_of, header_of
from dpsql.engine.duckdb.literals import constant
from dpsql.engine.structure import SourceTable, plain_name
from dpsql.errors.exceptions import refuse
from dpsql.policy.types import CsvDialect


def structure_of_file(source: Path) -> dict[str, SourceTable]:
    """Tables by name. Raises InterfaceError init_source."""
    suffix = source.suffix.lower()
    if not source.is_file():
        raise refuse("init_source", place=str(source), problem="it is not there")
    try:
        if suffix == ".parquet":
            return {plain_name(source.stem): SourceTable(_described(f"read_parquet({constant(str(source))})"))}
        if suffix == ".csv":  # types would be guessed from values: the header alone is read
            dialect = CsvDialect(delimiter=delimiter_of(source))
            return {plain_name(source.stem): SourceTable(dict.fromkeys(header_of(source, dialect), "VARCHAR"))}
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
        in_file = "database_name = current_database() AND schema_name = 'main'"
        columns = "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns()"
        columns += f" WHERE {in_file} AND NOT internal ORDER BY table_oid, column_index"
        for table, column, type_, nullable in connection.execute(columns).fetchall():
            entry = tables.setdefault(table, SourceTable({}))
            entry.columns[column] = type_
            if not nullable:
                entry.filled.add(column)
        keys = "SELECT table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names"
        for table, kind, names, parent, parents in connection.execute(
            f"{keys} FROM duckdb_constraints() WHERE {in_file} ORDER BY constraint_index"
        ).fetchall():
            if kind == "PRIMARY KEY":
                tables[table].primary_key = list(names)
            elif kind == "FOREIGN KEY" and len(names) == 1:
                tables[table].foreign_keys[names[0]] = (parent, parents[0])
    return tables
