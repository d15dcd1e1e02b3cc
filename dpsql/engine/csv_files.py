"""The CSV files of a table as a source that DuckDB scans as often as it likes, a few columns at a time."""

from __future__ import annotations

import gzip
import logging
import os
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.dataset

from dpsql.engine.csv_lines import (
    BYTE_ORDER_MARK,
    MOST_LINE,
    Block,
    Broken,
    Layout,
    TooLong,
    fields,
    records,
    whole_lines,
)
from dpsql.engine.files import identity_of, matching
from dpsql.errors.exceptions import refuse
from dpsql.policy.types import CsvDialect

_log = logging.getLogger("dpsql.custodian")
_DELIMITERS = (",", ";", "\t", "|")
_WORKERS = min(4, os.cpu_count() or 1)
_UNREADABLE = (OSError, EOFError, zlib.error, TooLong)
"""What opening, reading and unpacking a file may raise."""


class CsvFiles:
    """The files of one table. Thread-safe: what is known of them is replaced as a whole."""

    def __init__(self, table: str, pattern: str, dialect: CsvDialect, columns: tuple[str, ...], public: bool) -> None:
        """`pattern`: a path, perhaps with wildcards; `columns`: those of the policy, which alone are ever read."""
        self.table = table
        self.dialect = dialect
        self._pattern = pattern
        self._columns = columns
        self._whole = pattern.lower().endswith(".gz") or (dialect.multiline and public)
        self._known: tuple[str, CsvDataset] | None = None

    @property
    def known(self) -> CsvDataset | None:
        """What `dataset` gave last."""
        return None if self._known is None else self._known[1]

    def names(self) -> list[str]:
        """Names of the columns in the files. Raises Fault source_table_missing, source_table_unreadable,
        source_files_differ."""
        return self._look()[1]

    def dataset(self) -> CsvDataset:
        """The source as it is now; looked at again when a file is another one or was written to.

        Raises Fault source_table_missing, source_table_unreadable, source_files_differ, source_column_missing.
        """
        now = identity_of(matching(self._pattern))
        known = self._known
        if known is not None and now is not None and known[0] == now.text:
            return known[1]
        paths, header = self._look()
        layout = self._layout(header)
        dataset = CsvDataset(paths, layout, tuple(header))
        if self._whole:
            self._read_through(dataset)
        self._known = (now.text if now is not None else "", dataset)
        return dataset

    def _look(self) -> tuple[list[Path], list[str]]:
        """The files and their one header."""
        paths = matching(self._pattern)
        if not paths:
            raise refuse("source_table_missing", table=self.table)
        try:
            headers = {path: tuple(header_of(path, self.dialect)) for path in paths}
        except (*_UNREADABLE, UnicodeDecodeError) as error:
            _log.error("cannot read the header of %s: %s", self._pattern, error)
            raise refuse("source_table_unreadable", table=self.table) from None
        if len(set(headers.values())) > 1:
            raise refuse("source_files_differ", table=self.table)
        return paths, list(headers[paths[0]])

    def _layout(self, header: list[str]) -> Layout:
        folded = [name.lower() for name in header]
        for column in self._columns:
            if folded.count(column.lower()) != 1:
                slug = "source_column_twice" if column.lower() in folded else "source_column_missing"
                raise refuse(slug, table=self.table, column=column)
        places = tuple(folded.index(column.lower()) for column in self._columns)
        return Layout(self.dialect, len(header), self._columns, places)

    def _read_through(self, dataset: CsvDataset) -> None:
        """Read every byte once: a packed file that was cut short shows it at its end alone."""
        try:
            for _ in dataset.blocks():
                pass
        except _UNREADABLE as error:
            _log.error("cannot read %s: %s", self._pattern, error)
            raise refuse("source_table_unreadable", table=self.table) from None

    def broken(self) -> Broken:
        """Count the lines and cells that are not what the dialect promises, for the owner. Raises as `dataset`."""
        dataset, found = self.dataset(), Broken()
        try:
            for _, broken in _parsed(dataset.blocks(), dataset.layout):
                found.add(broken)
        except _UNREADABLE as error:
            _log.error("cannot read %s: %s", self._pattern, error)
            raise refuse("source_table_unreadable", table=self.table) from None
        return found


class CsvDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """Some files under one layout. DuckDB asks a dataset for its `schema`, and at each scan for a `scanner`."""

    def __init__(self, paths: list[Path], layout: Layout, header: tuple[str, ...]) -> None:
        """`header`: what the first line of each file must say when it is scanned."""
        self.layout = layout
        self._paths = paths
        self._header = header

    @property
    def schema(self) -> pa.Schema:
        """The columns of the policy, all of them text."""
        return self.layout.schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> Any:
        """A scan of `columns`, of the rows for which `filter` (a pyarrow expression) is true."""
        if columns is None or not columns:
            columns = list(self.layout.names[:1] if columns is not None else self.layout.names)
        if filter is None:
            return _Scan(self._reader(columns))
        # A filter names its columns in its text; one name inside another only means that a column is read in vain.
        said = str(filter)
        read = [name for name in self.layout.names if name in columns or name in said]
        return pyarrow.dataset.Scanner.from_batches(self._reader(read), columns=columns, filter=filter)

    def _reader(self, columns: list[str]) -> pa.RecordBatchReader:
        places = dict(zip(self.layout.names, self.layout.places, strict=True))
        layout = replace(self.layout, names=tuple(columns), places=tuple(places[name] for name in columns))
        batches = (batch for found, _ in _parsed(self.blocks(), layout) for batch in found)
        return pa.RecordBatchReader.from_batches(layout.schema, batches)

    def blocks(self) -> Iterator[Block]:
        """The files' lines below the header, in whole records."""
        for path in self._paths:
            with closing(_opened(path)) as file:
                if self.layout.dialect.header is None and tuple(_names_in(file, self.layout.dialect)) != self._header:
                    raise OSError(f"{path.name} has another header than it had")
                yield from whole_lines(file.read, self.layout.dialect)


class _Scan:
    """What DuckDB reads a scan from."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows, once."""
        return self._reader


def _parsed(blocks: Iterator[Block], layout: Layout) -> Iterator[tuple[list[pa.RecordBatch], Broken]]:
    """The records of each block, parsed by a few threads ahead of the reader; a single block by the reader itself."""
    first, second = next(blocks, None), next(blocks, None)
    if first is None or second is None:
        if first is not None:
            yield records(first, layout)
        return
    pool = ThreadPoolExecutor(_WORKERS, "dpsql-csv")
    pending: deque[Future[tuple[list[pa.RecordBatch], Broken]]] = deque()
    try:
        pending.extend(pool.submit(records, block, layout) for block in (first, second))
        for block in blocks:
            pending.append(pool.submit(records, block, layout))
            if len(pending) > _WORKERS + 1:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _opened(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def delimiter_of(source: Path) -> str:
    """The character that cuts the header line into the most names; a comma where none does."""
    return max(_DELIMITERS, key=lambda character: len(header_of(source, CsvDialect(delimiter=character))))


def header_of(path: Path, dialect: CsvDialect) -> list[str]:
    """The names of a file's columns. Raises what reading raises, and UnicodeDecodeError."""
    with closing(_opened(path)) as file:
        if dialect.header is not None:
            file.read(1)  # it can be opened and unpacked
            return list(dialect.header)
        return _names_in(file, dialect)


def _names_in(file: BinaryIO, dialect: CsvDialect) -> list[str]:
    line = file.readline(MOST_LINE + 1)
    if not line or len(line) > MOST_LINE:
        raise OSError("there is no header line" if not line else "the header line is too long")
    line = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
    return [cell.decode().strip() for cell in fields(line, dialect)[0]]
