"""No byte of a line changes how another line is read, whatever the bytes, the blocks and the dialect."""

import gzip
import io
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsql.engine import csv_files
from dpsql.engine.contract import Broken
from dpsql.engine.csv_files import CellLayout, CsvDataset, cells, fields, records, whole_lines
from dpsql.policy.types import CsvDialect

Rows = Counter[tuple[str | None, ...]]
DIALECTS = (
    CsvDialect(),
    CsvDialect(delimiter=";", quote="'", null=("", "NULL", "-")),
    CsvDialect(delimiter="\t", quote="", null=()),
    CsvDialect(header=("a", "b")),
)
PIECES = (
    b"a", b"b", b"1", b" ", b",", b",", b",", b";", b"\t", b'"', b'"', b'""', b"'", b"''", b"#", b"\\", b"\r", b"\0",
    b"NULL", b"-", b"\xef\xbb\xbf", b"\xc3\xbc", b"\xff", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x0b", b"\x1a", b"=",
)  # fmt: skip
LINE = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join),
    st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")),
)
FILE = st.lists(st.tuples(LINE, st.sampled_from((b"\n", b"\r\n"))).map(b"".join), max_size=8).map(b"".join)


def layout(dialect: CsvDialect, width: int = 2) -> CellLayout:
    return CellLayout(dialect, width, ("a", "b")[:width], tuple(range(width)))


def read(text: bytes, of: CellLayout, block_bytes: int = 64) -> tuple[Rows, Broken]:
    rows: Rows = Counter()
    broken = Broken()
    for block in whole_lines(io.BytesIO(text).read, of.dialect, block_bytes):
        batches, said = records(block, of)
        broken.add(said)
        for batch in batches:
            rows.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows, broken


def plainly(text: bytes, of: CellLayout) -> tuple[Rows, Broken]:
    """Apply the module's rules to one line after the other."""
    rows: Rows = Counter()
    broken = Broken()
    for line in (ended.removesuffix(b"\r") for ended in text.split(b"\n")):
        if len(line) > csv_files.MOST_LINE:
            broken.too_long += 1
        elif (row := cells(line, of, broken)) is not None:
            rows[tuple(row)] += 1
    return rows, broken


each_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=["default", "semicolon", "tab", "no header"])


@each_dialect
@settings(max_examples=300, deadline=None)
@given(text=FILE, tail=LINE, width=st.integers(1, 2), block_bytes=st.sampled_from((1, 2, 3, 7, 64)))
@example(text=b'1,"a\n2,b\n', tail=b'3"', width=2, block_bytes=64)
@example(text=b'x"y,"z\n1,2\n', tail=b"", width=2, block_bytes=64)
@example(text=b"\xef\xbb\xbfa,b\n", tail=b"\xef\xbb\xbfa,b", width=2, block_bytes=1)
@example(text=b"a,b\r\r\n\r\n\r,\n", tail=b"a,b\r", width=2, block_bytes=2)
@example(text=b'"a""b",c\n"",""\n"""",\n', tail=b'"""', width=2, block_bytes=64)
def test_a_block_is_read_as_its_lines_are(
    dialect: CsvDialect, text: bytes, tail: bytes, width: int, block_bytes: int
) -> None:
    """Rows and the owner's counts are equal, with and without a line feed at the end."""
    of = layout(dialect, width)
    expected = plainly(text + tail, of)
    rows, broken = read(text + tail, of, block_bytes)
    assert rows == expected[0]
    assert (broken.wrong_width, broken.open_quote, broken.not_text) == (
        expected[1].wrong_width, expected[1].open_quote, expected[1].not_text,
    )  # fmt: skip
    assert read(text + tail + b"\n", of, block_bytes)[0] == rows


@each_dialect
@settings(max_examples=300, deadline=None)
@given(before=FILE, line=LINE, after=FILE, block_bytes=st.sampled_from((1, 5, 64)))
def test_one_more_line_adds_its_own_records_and_nothing_else(
    dialect: CsvDialect, before: bytes, line: bytes, after: bytes, block_bytes: int
) -> None:
    of = layout(dialect)
    with_it = read(before + line + b"\n" + after, of, block_bytes)[0]
    assert with_it == read(before + after, of, block_bytes)[0] + read(line + b"\n", of)[0]


@settings(max_examples=200, deadline=None)
@given(lines=st.lists(st.tuples(st.integers(0, 30), st.sampled_from((b"\n", b"\r\n"))), max_size=8),
       block_bytes=st.sampled_from((1, 3, 16, 17, 100)))  # fmt: skip
def test_lines_that_are_too_long_are_left_out_wherever_blocks_end(
    lines: list[tuple[int, bytes]], block_bytes: int
) -> None:
    text = b"".join(b"," + b"x" * size + end for size, end in lines)
    before = csv_files.MOST_LINE
    csv_files.MOST_LINE = 16
    try:
        assert read(text, layout(CsvDialect()), block_bytes) == plainly(text, layout(CsvDialect()))
        assert read(text, layout(CsvDialect()), block_bytes)[1].too_long == sum(size > 15 for size, _ in lines)
    finally:
        csv_files.MOST_LINE = before


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.tuples(LINE, LINE), max_size=6), block_bytes=st.sampled_from((3, 64)))
def test_multiline_records_are_those_that_were_written(rows: list[tuple[bytes, bytes]], block_bytes: int) -> None:
    def quoted(cell: bytes) -> bytes:
        return b'"' + cell.replace(b"1", b"1\n2").replace(b'"', b'""') + b'"'

    of = layout(CsvDialect(multiline=True, null=()))
    text = b"".join(quoted(a) + b"," + quoted(b) + b"\n" for a, b in rows)
    expected: Rows = Counter()
    for row in rows:
        line = b",".join(map(quoted, row)).replace(b"\r\n", b"\n")
        expected[tuple(cells(line, of, Broken()) or ())] += 1
    assert read(text, of, block_bytes)[0] == expected


def test_a_multiline_record_that_never_ends_is_an_error() -> None:
    of = layout(CsvDialect(multiline=True))
    with pytest.raises(csv_files.TooLong):
        read(b'a,"' + b"b\n" * csv_files.MOST_LINE, of, 1 << 20)
    assert read(b'a,"b\nc', of)[0] == {("a", "b\nc"): 1}, "a file may end in the middle of a record"


@pytest.mark.parametrize("size", [1, 2, 3])
def test_both_readers_call_the_same_bytes_text(size: int) -> None:
    """Every text of two or three bytes that begins beyond ASCII, and the boundary cases with four bytes."""
    starts = [bytes([first, second]) for first in range(128, 256) for second in range(128, 256)]
    tails: Callable[[bytes], list[bytes]] = {
        1: lambda start: [start],
        2: lambda start: [start + bytes([third]) for third in (0x01, 0x7F, 0x80, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF)],
        3: lambda start: [start + bytes([third, 0x80]) for third in (0x7F, 0x80, 0x8F, 0x90, 0xBF, 0xC0)],
    }[size]
    for start in starts:
        for text in tails(start):
            try:
                text.decode()
                proper = True
            except UnicodeDecodeError:
                proper = False
            assert csv_files._is_utf8(text) == proper, text


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'a,"b,c",d', [b"a", b"b,c", b"d"]), (b'"a""b",', [b'a"b', b""]), (b'"a"b,c', [b"ab", b"c"]),
        (b'a"b",c', [b'a"b"', b"c"]), (b'a,"b,c', [b"a", b"b,c"]), (b'"a"",b', [b'a",b']), (b'""', [b""]),
        (b'"', [b""]), (b"", [b""]), (b"a,", [b"a", b""]), (b' "a",b', [b' "a"', b"b"]),
    ],
)  # fmt: skip
def test_a_line_is_parted_into_cells_as_duckdb_parts_it(line: bytes, found: list[bytes]) -> None:
    assert fields(line, CsvDialect())[0] == found


def test_many_blocks_and_packed_files_hold_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More blocks than are parsed ahead, two files, and a scan that is abandoned in the middle."""
    monkeypatch.setattr("dpsql.engine.csv_files.whole_lines", lambda read, dialect: whole_lines(read, dialect, 1000))
    lines = [f'{n},"name, {n}"' if n % 3 else f"{n},name" for n in range(5000)] + ['17,"', "x,y,z", "\0,1"]
    text = ("a,b\n" + "\n".join(lines)).encode()
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text[:20_000]) + gzip.compress(text[20_000:]))
    expected = plainly(text[4:], layout(CsvDialect()))[0]
    for paths, times in (([plain], 1), ([packed], 1), ([plain, packed], 2)):
        dataset = CsvDataset(paths, layout(CsvDialect()), ("a", "b"))
        found = Counter(tuple(row.values()) for row in dataset.scanner().to_reader().read_all().to_pylist())
        assert found == Counter({row: n * times for row, n in expected.items()})
        reader = dataset.scanner(["b"]).to_reader()
        assert reader.read_next_batch().schema.names == ["b"]
        del reader
