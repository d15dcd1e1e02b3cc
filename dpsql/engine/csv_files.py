"""The CSV files of a table as a dataset that DuckDB can scan repeatedly, a few columns at a time.

CSV text as records: one line is one record, and no byte of a line affects another line (privacy.md 1).

A line ends with a line feed, or with the file. Its meaning depends only on its own bytes, the policy's dialect and the
header:

- a carriage return right before the line feed belongs to the line's end; anywhere else it is an ordinary byte;
- a quoted cell, one that begins with a quote, ends at the next quote; two quotes in a row mean one quote in the text, and
  an unclosed quote ends with the line; anything after a closing quote within the cell is text; elsewhere a quote is text;
- a byte order mark at the beginning is not part of the line if files have no header line (else the header loses it);
- an empty line, a line longer than `MOST_LINE` bytes, and a line that has more or fewer cells than the header are not
  records;
- a cell with a NUL byte, or whose bytes are not UTF-8, is NULL; so is one that equals a `null` text of the dialect.

Under `multiline` a record continues while its number of quotes is odd, so that one quote may join lines of other people:
such files of protected tables are read only by the owner's `dpsql prepare`, and a record longer than `MOST_LINE` is an error
(`TooLong`).

`fields` and `cells` implement these rules directly. pyarrow's parser reads the lines of a block for which it provably gives
the same result (`_odd_lines` finds the others, which `fields` reads).
"""

from __future__ import annotations

import codecs
import gzip
import io
import logging
import os
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from dpsql.engine.contract import Broken
from dpsql.engine.query import check_openable, identity_of
from dpsql.errors.exceptions import refuse
from dpsql.policy.types import CsvDialect
from dpsql.storage.records import dataclass, field, replace

# --- lines ------------------------------------------------------------------------------------------------------------

MOST_LINE = 1 << 20
"""Bytes of the longest line that is a record, without its line feed."""
BLOCK_BYTES = 4 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIRST_MARK = re.compile(b"^" + BYTE_ORDER_MARK, re.MULTILINE)
_LINE_FEED, _CARRIAGE_RETURN = 10, 13

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CellLayout:
    """The cells to read: a line has `width` cells; those at `indexes` are read under `names`."""

    dialect: CsvDialect
    width: int
    names: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def schema(self) -> pa.Schema:
        """The columns to read, all of them text."""
        return pa.schema([(name, pa.string()) for name in self.names])


class TooLong(Exception):
    """A multiline record is longer than `MOST_LINE`: most likely a quote was never closed."""

    def __init__(self) -> None:
        super().__init__(f"a record has more than {MOST_LINE} bytes; most likely a quote is never closed")


@dataclass(frozen=True)
class LineBlock:
    """Whole lines, each with its line feed; `broken`: counts of lines that were left out before this block."""

    text: bytes
    broken: Broken = field(default_factory=Broken)


# --- one line -------------------------------------------------------------------------------------------------------


def fields(line: bytes, dialect: CsvDialect) -> tuple[list[bytes], bool]:
    """Return the cells of one line (without its end), and whether it ends inside quotes."""
    delimiter, quote = dialect.delimiter.encode(), dialect.quote.encode()
    if not quote or quote not in line:
        return line.split(delimiter), False
    read, index, opened = [], 0, False
    while True:
        text = b""
        if line.startswith(quote, index):
            text, index, opened = _quoted(line, index + 1, quote)
        end = line.find(delimiter, index)
        if end < 0:
            read.append(text + line[index:])
            return read, opened
        read.append(text + line[index:end])
        index = end + 1


def _quoted(line: bytes, index: int, quote: bytes) -> tuple[bytes, int, bool]:
    """Return the text from `index` to the closing quote, the position after it, and whether the quote is missing."""
    parts = []
    while (end := line.find(quote, index)) >= 0:
        parts.append(line[index:end])
        if not line.startswith(quote, end + 1):
            return quote.join(parts), end + 1, False
        index = end + 2
    return quote.join([*parts, line[index:]]), len(line), True


def cells(line: bytes, layout: CellLayout, broken: Broken) -> list[str | None] | None:
    """Return the cells to read of one line (without its end); None if the line is not a record."""
    if layout.dialect.header is not None:
        line = line.removeprefix(BYTE_ORDER_MARK)
    if not line:
        return None
    texts, opened = fields(line, layout.dialect)
    broken.open_quote += opened
    if len(texts) != layout.width:
        broken.wrong_width += 1
        return None
    values = [_text(texts[index], layout.dialect) for index in layout.places]
    broken.not_text += any(_text(cell, _NO_NULL) is None for cell in texts)
    return values


_NO_NULL = CsvDialect(null=())


def _text(cell: bytes, dialect: CsvDialect) -> str | None:
    if b"\0" in cell:
        return None
    try:
        text = cell.decode()
    except UnicodeDecodeError:
        return None
    return None if text in dialect.null else text


# --- lines of a file ------------------------------------------------------------------------------------------------


def whole_lines(
    read: Callable[[int], bytes], dialect: CsvDialect, block_bytes: int = BLOCK_BYTES
) -> Iterator[LineBlock]:
    """Yield the text from `read` in blocks that end after records; lines that are too long are left out, whatever
    surrounds them.

    At most `MOST_LINE` and twice `block_bytes` are in memory. A last line without a line feed gets one. Raises TooLong.
    """
    rest, skipping, broken = b"", False, Broken()
    while chunk := read(block_bytes):
        if skipping:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, skipping = chunk[end + 1 :], False
        chunk = rest + chunk
        end = _last_end(chunk, dialect)
        if end:
            yield _without_long(chunk[:end], dialect, broken)
            broken = Broken()
        rest = chunk[end:]
        if len(rest) > MOST_LINE + 1:  # one more: a carriage return may belong to the line's end
            if dialect.multiline:
                raise TooLong
            rest, skipping = b"", True
            broken.too_long += 1
    if rest or broken.too_long:
        yield _without_long(rest + b"\n", dialect, broken)


def _last_end(text: bytes, dialect: CsvDialect) -> int:
    """Return the end of the last whole record of `text`, after its line feed; 0 if there is none."""
    if not dialect.multiline:
        return text.rfind(b"\n") + 1
    ends = _ends(text, dialect)
    return int(ends[-1]) + 1 if len(ends) else 0


def _ends(text: bytes, dialect: CsvDialect) -> Positions:
    """Return the positions of line feeds that end records; under `multiline` those after an even number of quotes."""
    ends = _places(text, _LINE_FEED)
    if not (dialect.multiline and dialect.quote):
        return ends
    even: Positions = ends[np.searchsorted(_places(text, ord(dialect.quote)), ends) % 2 == 0]
    return even


def _without_long(text: bytes, dialect: CsvDialect, broken: Broken) -> LineBlock:
    """Return `text` without lines that are too long; these are searched only if half of `MOST_LINE` has no line feed."""
    text = text.replace(b"\r\n", b"\n")
    step = MOST_LINE // 2
    if not dialect.multiline and all(
        text.find(b"\n", start, start + step) >= 0 for start in range(0, len(text) - step, step)
    ):
        return LineBlock(text, broken)
    ends = _ends(text, dialect)
    long = np.flatnonzero(np.diff(ends, prepend=-1) - 1 > MOST_LINE)
    if dialect.multiline and len(long):
        raise TooLong
    broken.too_long += len(long)
    return LineBlock(_split(text, ends, long)[0], broken)


# --- blocks ---------------------------------------------------------------------------------------------------------


def records(block: LineBlock, layout: CellLayout) -> tuple[list[pa.RecordBatch], Broken]:
    """Return the records of whole lines (only line feeds end them), in any order."""
    broken, text, odd_rows = Broken(), block.text, []
    broken.add(block.broken)
    if layout.dialect.header is not None and BYTE_ORDER_MARK in text:
        text = _FIRST_MARK.sub(b"", text)
    ends = _ends(text, layout.dialect)
    if not len(ends) or ends[-1] != len(text) - 1:  # a multiline file ends inside quotes: its last record ends there
        ends = np.append(ends, len(text) - 1)
    if layout.dialect.multiline:
        broken.joined += text.count(b"\n") - len(ends)
    odd = _odd_lines(text, ends, layout.dialect)
    if len(odd):
        text, lines = _split(text, ends, odd)
        odd_rows = [row for line in lines if (row := cells(line, layout, broken)) is not None]
    batches = _parsed_lines(text, layout, broken) if text else []
    if odd_rows:
        columns = [pa.array(column, pa.string()) for column in zip(*odd_rows, strict=True)]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=layout.schema))
    return batches, broken


def _parsed_lines(text: bytes, layout: CellLayout, broken: Broken) -> list[pa.RecordBatch]:
    """Return the records of lines without odd ones, read by pyarrow's parser."""

    def dropped(row: Any) -> str:
        broken.wrong_width += 1
        return "skip"

    dialect, quoted = layout.dialect, bool(layout.dialect.quote) and layout.dialect.quote.encode() in text
    if text.startswith(BYTE_ORDER_MARK):  # the parser would remove it from the first line of a block
        text = b"\n" + text
    names = [str(index) for index in range(layout.width)]
    read = [names[index] for index in layout.places]
    try:
        table = pyarrow.csv.read_csv(
            pa.py_buffer(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
            pyarrow.csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote if quoted else False,
                double_quote=quoted,
                escape_char=False,
                newlines_in_values=dialect.multiline,
                ignore_empty_lines=True,
                invalid_row_handler=dropped,
            ),
            pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types={name: pa.string() for name in read},
                include_columns=read,
                null_values=list(dialect.null),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
            ),
        )
    except pa.ArrowInvalid:
        if text.strip(b"\n"):
            raise
        return []  # "empty CSV file"
    return table.rename_columns(list(layout.names)).to_batches()  # type: ignore[no-any-return]


def _odd_lines(text: bytes, ends: Positions, dialect: CsvDialect) -> Positions:
    """Return the numbers of the lines that the parser may read differently from `fields` and `cells`, ascending."""
    odd: list[Positions] = []
    if b"\r" in text:
        odd.append(np.searchsorted(ends, _places(text, _CARRIAGE_RETURN)))
    if b"\0" in text:
        odd.append(np.searchsorted(ends, _places(text, 0)))
    if not text.isascii() and not _is_utf8(text):
        odd.append(_not_utf8(text, ends))
    if dialect.quote and dialect.quote.encode() in text:
        odd.append(_misquoted(text, ends, dialect))
    return np.unique(np.concatenate(odd)) if odd else np.empty(0, np.int64)


def _places(text: bytes, byte: int) -> Positions:
    return np.flatnonzero(np.frombuffer(text, np.uint8) == byte)


def _is_utf8(text: bytes) -> bool:
    ends = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        pa.Array.from_buffers(pa.large_string(), 1, [None, ends, pa.py_buffer(text)]).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _not_utf8(text: bytes, ends: Positions) -> Positions:
    beyond_ascii = np.unique(np.searchsorted(ends, np.flatnonzero(np.frombuffer(text, np.uint8) >= 128)))
    return np.array([n for n in beyond_ascii if not _is_text(text[_start(ends, n) : ends[n]])], np.int64)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _misquoted(text: bytes, ends: Positions, dialect: CsvDialect) -> Positions:
    """Return the lines with a quote that is neither at the ends of a cell nor doubled inside a quoted cell.

    In other lines the first, third, ... quote must begin a cell or directly follow the previous quote, the second,
    fourth, ... must end a cell or be directly followed by the next quote, and the number of quotes must be even. By
    induction over these pairs, the parser is inside quotes exactly between the quotes of a pair, and so never at the
    end of such a line.
    """
    data, quotes = np.frombuffer(text, np.uint8), _places(text, ord(dialect.quote))
    may_touch = np.zeros(256, bool)
    may_touch[[ord(dialect.delimiter), ord(dialect.quote), _LINE_FEED]] = True
    even = not len(quotes) % 2 and not (np.searchsorted(quotes, ends) % 2).any()
    # Position -1 is the last line feed, which counts as the end of the line before the first.
    if even and may_touch[data[quotes[0::2] - 1]].all() and may_touch[data[quotes[1::2] + 1]].all():
        return np.empty(0, np.int64)
    before_line = np.searchsorted(quotes, ends)  # the number of quotes before the end of each line
    counts = np.diff(before_line, prepend=0)
    line = np.repeat(np.arange(len(ends)), counts)
    opening = (np.arange(len(quotes)) - np.repeat(before_line - counts, counts)) % 2 == 0
    fits = may_touch[data[np.where(opening, quotes - 1, quotes + 1)]]
    return np.union1d(line[~fits], np.flatnonzero(counts % 2))


def _start(ends: Positions, line: int) -> int:
    return int(ends[line - 1]) + 1 if line else 0


def _split(text: bytes, ends: Positions, chosen: Sequence[int] | Positions) -> tuple[bytes, list[bytes]]:
    """Return `text` without the `chosen` lines (ascending), and these lines without their line feeds."""
    rest, lines, behind = [], [], 0
    for line in chosen:
        start, end = _start(ends, line), int(ends[line])
        rest.append(text[behind:start])
        lines.append(text[start:end])
        behind = end + 1
    return b"".join([*rest, text[behind:]]), lines


# --- csv files --------------------------------------------------------------------------------------------------------

_log = logging.getLogger("dpsql.custodian")
_DELIMITERS = (",", ";", "\t", "|")
_GZIP = (b"\x1f\x8b", b"\x1f\x8b".decode("windows-1252").encode())
"""The first bytes of a compressed file, as they are and read as Windows-1252."""
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WORKERS = min(4, os.cpu_count() or 1)
_UNREADABLE = (OSError, EOFError, zlib.error, TooLong)
"""Exceptions that opening, reading and unpacking a file may raise."""


class CsvFiles:
    """The files of one table. Thread-safe: the cached dataset is replaced as a whole."""

    def __init__(
        self, table: str, files: Callable[[], list[Path]], dialect: CsvDialect, columns: Mapping[str, str], public: bool
    ) -> None:
        """`files` returns the present files; `columns` maps names in the policy to names in the header; no others are read."""
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
        """Return the files' columns. Raises Fault source_table_missing, source_table_unreadable, source_files_differ."""
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
        indexes = tuple(folded.index(in_header.lower()) for in_header in self._columns.values())
        return CellLayout(self.dialect, len(header), tuple(self._columns), indexes)

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
            for _, broken in _parsed(_counting_returns(dataset.blocks(), counts), dataset.layout):
                counts.add(broken)
        except _UNREADABLE as error:
            _log.error("cannot read the files of %s: %s", self.table, error)
            raise refuse("source_table_unreadable", table=self.table) from None
        return counts


def _counting_returns(blocks: Iterator[LineBlock], counts: Broken) -> Iterator[LineBlock]:
    """Yield blocks, and count their carriage returns that end no line: lines of old Macs that the end of another kind joins."""
    for block in blocks:
        counts.inner_return += block.text.count(b"\r") - block.text.count(b"\r\n")
        yield block


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
        indexes = dict(zip(self.layout.names, self.layout.places, strict=True))
        layout = replace(self.layout, names=tuple(columns), places=tuple(indexes[name] for name in columns))
        batches = (batch for parsed, _ in _parsed(self.blocks(), layout) for batch in parsed)
        return pa.RecordBatchReader.from_batches(layout.schema, batches)

    def blocks(self) -> Iterator[LineBlock]:
        """Yield the files' lines below the header, in whole records."""
        for path in self._paths:
            with closing(_opened(path, self.layout.dialect)) as file:
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


def _opened(path: Path, dialect: CsvDialect) -> BinaryIO:
    """Open a file as UTF-8, whatever its encoding is."""
    check_openable([path])
    file: Any = gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # noqa: SIM115
    return file if dialect.encoding == "utf-8" else io.BufferedReader(_AsUtf8(file, dialect.encoding), BLOCK_BYTES)


class _AsUtf8(io.RawIOBase):
    """A file of another encoding as UTF-8. Where it holds no character, the bytes are no UTF-8 either, so that the cell is NULL,
    and characters before and after it stay as they are."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file, self._rest, self._ended = file, b"", False
        first = b""
        if encoding == "utf-16":
            first = file.read(2)
            encoding = "utf-16-be" if first == codecs.BOM_UTF16_BE else "utf-16-le"
        self._errors = "surrogatepass" if encoding.startswith("utf-16") else "surrogateescape"
        self._decoder = codecs.getincrementaldecoder(encoding)(self._errors)
        self._rest = self._encoded(first)

    def readable(self) -> bool:
        """Return True: the file is read, and never written."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, at least in part; 0 at the end of the file."""
        while not self._rest and not self._ended:
            read = self._file.read(len(buffer))
            self._ended = not read
            self._rest = self._encoded(read) if read else self._end()
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        """Close the file itself, too."""
        self._file.close()
        super().close()

    def _encoded(self, read: bytes) -> bytes:
        return self._decoder.decode(read).encode("utf-8", self._errors)

    def _end(self) -> bytes:
        """Return what a part of a character at the end of the file stands for."""
        try:
            return self._decoder.decode(b"", True).encode("utf-8", self._errors)
        except UnicodeDecodeError:
            return b"\xff"


def dialect_of(source: Path) -> CsvDialect:
    """Return how the header line of a file is written: in UTF-16 if it begins with the mark of that, in Windows-1252 if it is no
    UTF-8, and with the delimiter that makes the most names of it (a comma if none does). Raises OSError."""
    with closing(_opened(source, CsvDialect())) as file:
        line = file.readline(MOST_LINE)
    encoding = (
        "utf-16" if line.startswith(_UTF_16) else "utf-8" if _text(line, _NO_NULL) is not None else "windows-1252"
    )
    dialects = [CsvDialect(delimiter=character, encoding=encoding) for character in _DELIMITERS]
    return max(dialects, key=lambda dialect: len(header_of(source, dialect)))


def header_of(path: Path, dialect: CsvDialect) -> list[str]:
    """Return the names of a file's columns. Raises the exceptions of reading, and UnicodeDecodeError."""
    with closing(_opened(path, dialect)) as file:
        if dialect.header is not None:
            file.read(1)  # fails if the file cannot be opened and unpacked
            return list(dialect.header)
        return _names_in(file, dialect)


def _names_in(file: BinaryIO, dialect: CsvDialect) -> list[str]:
    line = file.readline(MOST_LINE + 1)
    if line.startswith(_GZIP):
        raise OSError("it is compressed by gzip: give it a name that ends in .csv.gz")
    if not line or len(line) > MOST_LINE:
        raise OSError("there is no header line" if not line else "the header line is too long")
    if b"\0" in line or line.startswith(_UTF_16):
        raise OSError(
            "it is no UTF-8 text: UTF-16 (say csv: {encoding: utf-16}), or no CSV file (as ._ files of macOS)"
        )
    if b"\r" in line[:-1] and not line.endswith(b"\n"):
        raise OSError("its lines end with carriage returns alone; they have to end with line feeds")
    line = line.removeprefix(BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
    return [cell.decode().strip() for cell in fields(line, dialect)[0]]
