"""The files of a table form one dataset of texts; unreadable or differing files are refused by the table's name."""

import gzip
from pathlib import Path

import pytest

from dpsql.engine.csv_files import MOST_LINE, CsvFiles, dialect_of, header_of
from dpsql.errors.exceptions import Error
from dpsql.policy.types import CsvDialect

COMMA = CsvDialect()
HEADERLESS = CsvDialect(header=("id", "name"))


def files(
    paths: list[Path], dialect: CsvDialect = COMMA, columns: dict[str, str] | None = None, *, public: bool = False
) -> CsvFiles:
    return CsvFiles("visits", lambda: paths, dialect, columns or {"id": "id", "name": "name"}, public)


def written(folder: Path, *contents: str | bytes, suffix: str = "csv") -> list[Path]:
    paths = [folder / f"{number}.{suffix}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(data)
    return paths


def refusal_of(table: CsvFiles) -> str:
    with pytest.raises(Error) as refused:
        table.dataset()
    assert "visits" in str(refused.value)
    return refused.value.slug


def test_a_header_that_changed_under_a_dataset_stops_the_scan(tmp_path: Path) -> None:
    paths = written(tmp_path, "id,name\n1,a\n")
    dataset = files(paths).dataset()
    paths[0].write_text("name,id\n1,a\n")
    with pytest.raises(OSError, match="another header"):
        list(dataset.blocks())


@pytest.mark.parametrize(
    ("contents", "slug"),
    [
        ([], "source_table_missing"),
        (["id,name\n", "name,id\n"], "source_files_differ"),
        (["id,other\n"], "source_column_missing"),
        (["id,name,NAME\n"], "source_column_twice"),
        ([""], "source_table_unreadable"),
        ([b"id,\xff\n"], "source_table_unreadable"),
        (["id,name" + "x" * MOST_LINE + "\n"], "source_table_unreadable"),
    ],
    ids=["no files", "other header", "no column", "twice", "empty", "not UTF-8", "long header"],
)
def test_files_without_one_readable_header_are_refused(tmp_path: Path, contents: list[str], slug: str) -> None:
    assert refusal_of(files(written(tmp_path, *contents))) == slug


# --- compressed files, records of several lines -----------------------------------------------------------------------


def test_a_truncated_compressed_file_is_refused_before_it_is_scanned(tmp_path: Path) -> None:
    content = b"id,name\n" + b"".join(b"%d,%d\n" % (number, number**3) for number in range(50_000))
    paths = written(tmp_path, gzip.compress(content)[:-20], suffix="csv.gz")
    assert files(paths).names() == ["id", "name"]
    assert refusal_of(files(paths)) == "source_table_unreadable"


def test_a_quote_that_is_never_closed_is_refused_in_public_tables(tmp_path: Path) -> None:
    """A private table is not read ahead: whether a quote is closed depends on its rows."""
    paths = written(tmp_path, 'id,name\n1,"a\n' + "2,b\n" * (MOST_LINE // 4 + 1))
    dialect = CsvDialect(multiline=True)
    assert refusal_of(files(paths, dialect, public=True)) == "source_table_unreadable"
    assert files(paths, dialect).dataset() is not None
    assert files(paths, COMMA, public=True).dataset() is not None
    with pytest.raises(Error) as refused:
        files(paths, dialect).broken()
    assert refused.value.slug == "source_table_unreadable"


# --- headers ----------------------------------------------------------------------------------------------------------


def test_names_in_the_policy_stand_for_a_header_line(tmp_path: Path) -> None:
    paths = written(tmp_path, "1,a\n2,b\n", "3,c\n")
    assert header_of(paths[0], HEADERLESS) == ["id", "name"]
    dataset = files(paths, HEADERLESS).dataset()
    assert dataset.scanner().to_reader().read_all().to_pydict() == {"id": ["1", "2", "3"], "name": ["a", "b", "c"]}
    with pytest.raises(FileNotFoundError):
        header_of(tmp_path / "gone.csv", HEADERLESS)
    with pytest.raises(OSError):
        header_of(written(tmp_path, b"no gzip", suffix="csv.gz")[0], HEADERLESS)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (b"\xef\xbb\xbfid,name\n", ["id", "name"]),
        (b" id ,\tname\r\n", ["id", "name"]),
        (b'"a,b",c', ["a,b", "c"]),
        (b"\n", [""]),
        ("é,ß\n".encode(), ["é", "ß"]),
    ],
)
def test_names_of_a_header_are_without_blanks_and_marks(tmp_path: Path, line: bytes, names: list[str]) -> None:
    assert header_of(written(tmp_path, line)[0], COMMA) == names


@pytest.mark.parametrize(
    ("line", "delimiter"),
    [("a,b;c;d", ";"), ("a;b,c,d", ","), ("a\tb\tc,d", "\t"), ("a|b", "|"), ("alone", ","), ("a,b;c", ",")],
)
def test_the_delimiter_is_that_which_gives_the_most_names(tmp_path: Path, line: str, delimiter: str) -> None:
    assert dialect_of(written(tmp_path, line + "\n")[0]) == CsvDialect(delimiter=delimiter)
    for encoding in ("utf-16", "windows-1252"):
        (path,) = written(tmp_path, f"{line}ö€\n1\n".encode(encoding))
        assert dialect_of(path) == CsvDialect(delimiter=delimiter, encoding=encoding)
        assert header_of(path, dialect_of(path))[-1].endswith("ö€")
