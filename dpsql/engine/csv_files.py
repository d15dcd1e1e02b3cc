"""The CSV files of a table as a dataset that DuckDB can scan repeatedly, a few columns at a time."""

from __future__ import annotations

import codecs
import gzip
import logging
import os
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
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
    Broken,
    CellLayout,
    LineBlock,
    TooLong,
    fields,
    records,
    whole_lines,
)
from dpsql.engine.files import check_openable, identity_of
from dpsql.errors.exceptions import refuse
from dpsql.policy.types import CsvDialect

_log = logging.getLogger("dpsql.custodian")
_DELIMITERS = (",", ";", "\t", "|")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WORKERS = min(4, os.cpu_count() or 1)
_UNREADABLE = (OSError, EOFError, zlib.error, TooLong)
"""Exceptions that opening, reading and unpacking a file may raise."""


class CsvFiles:
    """The files of one table. Thread-safe: the cached dataset is replaced as a whole."""

    def __init__(
        self, table: str, files: Callable[[], list[Path]], dialect: CsvDialect, columns: Mapping[str, str], public: bool
    ) -> None:
        """`files` returns the present files; `columns` maps names in the policy to names in the header, and no other columns
        are read."""
        self.table = table
        self.dialect = dialect
        self._files = files
        self._columns = columns
        self._read_first = dialect.multiline and public
        self._current: tuple[str, CsvDataset] | None = None

    @property
    def current(self) -> CsvDataset | None:
        """The last result of `dataset`."""
        return None if self._current is None else self._current[1]

    def names(self) -> list[str]:
        """Return the names of the columns in the files. Raises Fault source_table_missing, source_table_unreadable,
        source_files_differ."""
        return self._files_and_header()[1]

    def dataset(self) -> CsvDataset:
        """Return the current dataset; the files are inspected again if one was replaced or written to.

        Raises Fault source_table_missing, source_table_unreadable, source_files_differ, source_column_missing.
        """
        now = identity_of(self._files())
        current = self._current
        if current is not None and now is not None and current[0] == now.text:
            return current[1]
        paths, header = self._files_and_header()
        layout = self._layout(header)
        dataset = CsvDataset(paths, layout, tuple(header))
        if self._read_first or any(path.suffix.lower() == ".gz" for path in paths):
            self._read_through(dataset)
        self._current = (now.text if now is not None else "", dataset)
        return dataset

    def _files_and_header(self) -> tuple[list[Path], list[str]]:
        """Return the files and their common header."""
        paths = self._files()
        if not paths:
            raise refuse("source_table_missing", table=self.table)
        headers = {}
        for path in paths:
            try:
                headers[path] = tuple(header_of(path, self.dialect))
            except (*_UNREADABLE, UnicodeDecodeError) as error:
                _log.error("cannot read the header of %s, a file of %s: %s", path, self.table, error)
                raise refuse("source_table_unreadable", table=self.table) from None
        if len(set(headers.values())) > 1:
            other = next(path for path in paths if headers[path] != headers[paths[0]])
            _log.error("the header of %s is not that of %s", other, paths[0])
            raise refuse("source_files_differ", table=self.table, what="their header lines")
        return paths, list(headers[paths[0]])

    def _layout(self, header: list[str]) -> CellLayout:
        folded = [name.lower() for name in header]
        for column, in_header in self._columns.items():
            if folded.count(in_header.lower()) != 1:
                slug = "source_column_twice" if in_header.lower() in folded else "source_column_missing"
                raise refuse(slug, table=self.table, column=column)
        places = tuple(folded.index(in_header.lower()) for in_header in self._columns.values())
        return CellLayout(self.dialect, len(header), tuple(self._columns), places)

    def _read_through(self, dataset: CsvDataset) -> None:
        """Read every byte once: a truncated gzip file fails only at its end."""
        try:
            for _ in dataset.blocks():
                pass
        except _UNREADABLE as error:
            _log.error("cannot read the files of %s: %s", self.table, error)
            raise refuse("source_table_unreadable", table=self.table) from None

    def broken(self) -> Broken:
        """Count the malformed lines and cells, for the owner. Raises the same faults as `dataset`."""
        dataset, counts = self.dataset(), Broken()
        try:
            for _, broken in _parsed(dataset.blocks(), dataset.layout):
                counts.add(broken)
        except _UNREADABLE as error:
            _log.error("cannot read the files of %s: %s", self.table, error)
            raise refuse("source_table_unreadable", table=self.table) from None
        return counts


class CsvDataset(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """Some files under one layout. DuckDB asks a dataset for its `schema`, and at each scan for a `scanner`."""

    def __init__(self, paths: list[Path], layout: CellLayout, header: tuple[str, ...]) -> None:
        """`header`: the names that the first line of each file must have when it is scanned."""
        self.layout = layout
        self._paths = paths
        self._header = header

    @property
    def schema(self) -> pa.Schema:
        """The columns of the policy, all of them text."""
        return self.layout.schema

    def scanner(self, columns: list[str] | None = None, filter: Any = None, **_: Any) -> Any:
        """Return a scan of `columns` over the rows for which `filter` (a pyarrow expression) is true."""
        if columns is None or not columns:
            columns = list(self.layout.names[:1] if columns is not None else self.layout.names)
        if filter is None:
            return _Scan(self._reader(columns))
        # A filter's text contains the names of its columns; if one name is inside another, one column too many is read.
        said = str(filter)
        read = [name for name in self.layout.names if name in columns or name in said]
        return pyarrow.dataset.Scanner.from_batches(self._reader(read), columns=columns, filter=filter)

    def _reader(self, columns: list[str]) -> pa.RecordBatchReader:
        places = dict(zip(self.layout.names, self.layout.places, strict=True))
        layout = replace(self.layout, names=tuple(columns), places=tuple(places[name] for name in columns))
        batches = (batch for parsed, _ in _parsed(self.blocks(), layout) for batch in parsed)
        return pa.RecordBatchReader.from_batches(layout.schema, batches)

    def blocks(self) -> Iterator[LineBlock]:
        """Yield the files' lines below the header, in whole records."""
        for path in self._paths:
            with closing(_opened(path)) as file:
                if self.layout.dialect.header is None and tuple(_names_in(file, self.layout.dialect)) != self._header:
                    raise OSError(f"{path.name} has another header than it had")
                yield from whole_lines(file.read, self.layout.dialect)


class _Scan:
    """The object from which DuckDB reads a scan."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader = reader

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows, which can be read once."""
        return self._reader


def _parsed(blocks: Iterator[LineBlock], layout: CellLayout) -> Iterator[tuple[list[pa.RecordBatch], Broken]]:
    """Yield the records of each block, parsed ahead by a few threads; a single block is parsed by the reading thread."""
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
    check_openable([path])
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def delimiter_of(source: Path) -> str:
    """Return the character that splits the header line into the most names; a comma if none does."""
    return max(_DELIMITERS, key=lambda character: len(header_of(source, CsvDialect(delimiter=character))))


def header_of(path: Path, dialect: CsvDialect) -> list[str]:
    """Return the names of a file's columns. Raises the exceptions of reading, and UnicodeDecodeError."""
    with closing(_opened(path)) as file:
        if dialect.header is not None:
            file.read(1)  # fails if the file cannot be opened and unpacked
            return list(dialect.header)
        return _names_in(file, dialect)


def _names_in(file: BinaryIO, dialect: CsvDialect) -> list[str]:
    line = file.readline(MOST_LINE + 1)
    if not line or len(line) > MOST_LINE:
        raise OSError("there is no header line" if not line else "the header line is too long")
    if b"\0" in line or line.startswith(_UTF_16):
        raise OSError("it is no UTF-8 text: UTF-16, which has to be converted, or no CSV file (as ._ files of macOS)")
    if b"\r" in line[:-1] and not line.endswith(b"\n"):
        raise OSError("its lines end with carriage returns alone; they have to end with line feeds")
    line = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
    return [cell.decode().strip() for cell in fields(line, dialect)[0]]
