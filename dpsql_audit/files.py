"""Databases made from a policy, written as files of its own kind: CSV in its dialect, Parquet, DuckDB with collated texts."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet

from dpsql.engine.duckdb.literals import TYPES
from dpsql.media.text import sql_name
from dpsql.plan.intervals import Type
from dpsql.policy import Policy, Table
from dpsql.policy.reach import is_csv, is_file
from dpsql.policy.source_kinds import source_kind
from dpsql.policy.types import CsvDialect
from dpsql_audit.synthetic import as_sql

COLLATIONS = ("", " COLLATE NOCASE", " COLLATE NOACCENT", " COLLATE NOCASE.NOACCENT")
"""Of columns with a list in turn; a text without one has the last, which takes most texts for equal."""


def written(policy: Policy, tables: Mapping[str, pa.Table], folder: Path, broken: int | None) -> Policy:
    """Return the policy over `tables` in `folder`, in files of its own kind.

    `broken`: number of the unit to whom malformed lines belong, among the rows of a protected CSV table; None: there are none.
    """
    placed = {}
    in_process = source_kind(policy.source).in_process  # the owner's cluster is not asked
    for name, table in policy.tables.items():
        source = f"{name}.parquet" if in_process else policy.table_source(name)
        if not is_file(source):
            placed[name] = replace(table, source=None)
            continue
        ending = ".parquet" if not is_csv(source) else ".csv.gz" if source.lower().endswith(".gz") else ".csv"
        place = folder / f"{name}{ending}"
        placed[name] = replace(table, source=place.name)
        if ending == ".parquet":
            parquet.write_table(tables[name], place)
        else:
            text = _as_csv(table, tables[name], _repeated_unit(policy, table), broken)
            place.write_bytes(gzip.compress(text, 1) if ending.endswith("gz") else text)
    in_file = [name for name, table in placed.items() if table.source is None]
    if in_file:
        _as_duckdb(folder / "data.duckdb", policy, {name: tables[name] for name in in_file})
    return replace(
        policy,
        source=in_process or ("duckdb:///data.duckdb" if in_file else None),
        tables=placed,
        folder=folder,
        timing="plain",
        constant_seconds=None,
        data_version="audit",
        prepare=replace(
            policy.prepare, into=str(folder / "copies") if in_process else None, role=None, automatic=False
        ),
    )


def statements(policy: Policy, tables: Mapping[str, pa.Table], broken: int | None) -> list[str]:
    """Return statements that make the tables anew, and comments about what only their files have: collations, malformed lines."""
    remarks = []
    for name in tables:
        in_csv = is_csv(policy.table_source(name)) and _repeated_unit(policy, policy.tables[name]) is not None
        if in_csv and broken is not None:
            cells = ", ".join(map(repr, MALFORMED))
            remarks.append(
                f"-- {name}: among its lines stand those of unit {broken} whose other cells are each of {cells}"
            )
    in_file = [name for name in tables if not is_file(policy.table_source(name))]
    if not source_kind(policy.source).is_server:
        texts = (text for text in _collated(policy, in_file) if text[2])
        remarks += [f"-- {sql_name(name)}.{sql_name(column)} has{collation}" for name, column, collation in texts]
    return [*as_sql(policy, tables), *remarks]


def _repeated_unit(policy: Policy, table: Table) -> str | None:
    """Return the column of the privacy unit's key, None where the table has none or a unit has one row."""
    column = None if table.public or policy.unit_joins(table.name) else policy.unit_column(table.name)
    return None if column is None or table.is_unique((column,)) else column


def _as_duckdb(place: Path, policy: Policy, tables: Mapping[str, pa.Table]) -> None:
    """Write a DuckDB file; its texts have every collation in turn, which may not matter to anything."""
    collations = {(name, column): collation for name, column, collation in _collated(policy, tables)}
    with duckdb.connect(str(place)) as connection:
        for name, rows in tables.items():
            columns = policy.tables[name].columns.values()
            typed = [f"{sql_name(c.name)} {TYPES[Type(c.type)]}{collations.get((name, c.name), '')}" for c in columns]
            connection.execute(f"CREATE TABLE {sql_name(name)} ({', '.join(typed)})")
            connection.register("rows", rows)
            connection.execute(f"INSERT INTO {sql_name(name)} SELECT * FROM rows")
            connection.unregister("rows")


def _collated(policy: Policy, names: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Table, column and collation of every text."""
    collations = cycle(COLLATIONS)
    for name in names:
        for column in policy.tables[name].columns.values():
            if column.type == "text":
                yield name, column.name, COLLATIONS[-1] if column.domain is None else next(collations)


def _as_csv(table: Table, rows: pa.Table, unit: str | None, broken: int | None) -> bytes:
    """Return a CSV file in the dialect of the table; malformed lines stand apart, each before sound ones that could be read into
    it."""
    dialect = table.csv or CsvDialect()
    names = list(rows.column_names)
    lines = [] if dialect.header is not None else [_line(names, dialect)]
    for row in rows.to_pylist():
        ordered = {name: row.get(name) for name in dialect.header or names}
        lines.append(_line([_cell(value, dialect) for value in ordered.values()], dialect))
    if broken is not None and unit is not None:
        place = list(dialect.header or names).index(unit)
        apart = 1 + len(lines) // (len(MALFORMED) + 1)
        for number, cell in enumerate(MALFORMED, 1):
            lines.insert(min(len(lines), number * apart), _malformed(cell, place, broken, len(names), dialect))
    return b"".join(lines)


MALFORMED = (b'"unclosed', b'"un,closed', b'a"b', b'"a"b', b'"a""', b"\xff\xfe", b"\x00", b"a\rb")


def _malformed(cell: bytes, place: int, unit: int, width: int, dialect: CsvDialect) -> bytes:
    cells = [cell] * width
    cells[place] = str(unit).encode()
    return dialect.delimiter.encode().join(cells) + b"\n"


def _cell(value: Any, dialect: CsvDialect) -> str:
    if value is None:
        return dialect.null[0] if dialect.null else ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if dialect.multiline else text.replace("\n", " ")


def _line(cells: Sequence[str], dialect: CsvDialect) -> bytes:
    out = io.StringIO()
    quoted = bool(dialect.quote)
    if not quoted:
        cells = [cell.replace(dialect.delimiter, " ").replace("\r", " ") for cell in cells]
        return (dialect.delimiter.join(cells) + "\n").encode()
    csv.writer(out, delimiter=dialect.delimiter, quotechar=dialect.quote, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()
