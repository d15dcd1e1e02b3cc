"""Whole queries over real sources: no row changes how others are read, and an unavailable source costs nothing."""

import gzip
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.effort import night

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.csv_files import CsvFiles
from dpsql.engine.duckdb.sources import Sources
from dpsql.errors.exceptions import Error
from dpsql.frontends.admin.check import check_policy_file
from dpsql.policy.types import CsvDialect
from dpsql.session.session import Session, open_session

POLICY = """
dataset: t
source: {source}
privacy_unit: {unit}
budget: {{epsilon: 10000, delta: 1e-6, accountant: pure}}
per_query: {{epsilon: 100}}
ledger: sqlite:///ledger.db
{more}
tables:
  t:
    max_rows: 1
    columns:
      i: {{type: integer, lower: 0, upper: 1000}}
      n: {{type: {type}, {domain}}}
"""
SUM = "SELECT n, COUNT(*) AS c FROM t GROUP BY n"


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))


Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def policy(source: str, unit: str = "row", more: str = "", type: str = "text", domain: str = "") -> Path:
        path = tmp_path / "t.yaml"
        domain = domain or ("domain: [n, a]" if type == "text" else "")
        path.write_text(POLICY.format(source=source, unit=unit, more=more, type=type, domain=domain))
        return path

    return policy


def counts(session: Session) -> dict[str, int]:
    """Return the number of rows with each value of the domain; rows without a value are a separate group."""
    found = session.execute(SUM).table.to_pydict()
    return {n: c for n, c in zip(found["n"], found["c"], strict=True) if n is not None}


def count(session: Session) -> int:
    return int(session.execute("SELECT COUNT(*) AS c FROM t").table.column("c")[0].as_py())


def spent(session: Session) -> str:
    return str(session.budget().spent)


ROWS = b"".join(b'%d,"n"\n' % number for number in range(500))


@pytest.mark.parametrize(
    ("packed", "unit"),
    [(False, "row"), night(False, "{table: t, column: i}"), night(True, "row"), (True, "{table: t, column: i}")],
)
@pytest.mark.parametrize(
    ("line", "more"),
    [
        (b"#501,n", 1), (b'501,"n', 1), (b'"501,n', 0), (b"501;n", 0), (b'501,"n"n', 0), (b"501,n\rx", 0), (b"\r", 0),
        (b"501,\xff\xfe", 0), (b"501,n\0", 0), (b"501," + b"n" * 3_000_000, 0), (b'501,"a\nb"', 0), (b"501,n,n", 0),
        (b"'501','n'", 0), (b"501,n", 1), (b"", 0), (b"501|n\n501\tn\n501:n", 0), (b"\\,n", 1),
    ],
)  # fmt: skip
def test_no_line_of_a_csv_file_changes_how_others_are_read(
    tmp_path: Path, make: Make, unit: str, line: bytes, more: int, packed: bool
) -> None:
    """The line is first, in the middle or last; no row of anyone else is lost, duplicated or changed."""
    name = "t.csv.gz" if packed else "t.csv"
    if unit != "row" and not line.startswith(b"501"):
        more = 0  # the key is not an integer, so the row belongs to no one
    path, create = make(name, unit), True
    for text in (line + b"\n" + ROWS, ROWS + line, ROWS.replace(b"250,", line + b"\n250,")):
        (tmp_path / name).write_bytes((gzip.compress if packed else bytes)(b"i,n\n" + text))
        with open_session(path, create_ledger=create) as session:
            create = False
            assert counts(session)["n"] == 500 + more


@pytest.mark.parametrize("before", [[1.0, 2.0], [5.0]], ids=["different values", "one value"])
@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ("COUNT(*) AS c FROM t WHERE n > 128", 1),
        ("COUNT(*) AS c FROM t WHERE n < 100", 1),
        ("SUM(clamp(n, 0, 256)) AS c FROM t", 256),
        ("SUM(clamp(n * n, 0, 256)) AS c FROM t", 256),
    ],
)
def test_no_value_of_a_parquet_file_changes_how_rows_with_nan_are_counted(
    tmp_path: Path, make: Make, before: list[float], asked: str, most: int
) -> None:
    """The statistics of a file ignore NaN and change with the added row."""
    path, found = make("t.parquet", type="real", domain="lower: 0, upper: 256"), []
    for number, values in enumerate((before, [*before, 200.0])):
        rows = [*values, *([float("nan")] * 50)]
        pq.write_table(pa.table({"i": list(range(len(rows))), "n": rows}), tmp_path / "t.parquet")
        with open_session(path, create_ledger=number == 0) as session:
            found.append(session.execute(f"SELECT {asked}").table.column("c")[0].as_py())
    assert abs(found[1] - found[0]) <= most + 40, "noise of epsilon 100 is below 40 but for a chance of e**-15"


@pytest.mark.parametrize("source", ["t.csv", "t.csv.gz", "t.parquet", "duckdb:///t.duckdb"])
def test_refreshes_while_the_source_is_away_cost_nothing(tmp_path: Path, make: Make, source: str) -> None:
    write(tmp_path, source)
    file = tmp_path / source.removeprefix("duckdb:///")
    with open_session(make(source), create_ledger=True) as session:
        assert count(session) == 500
        before = spent(session)
        file.rename(tmp_path / "away")
        for number in range(19):
            with pytest.raises(Error) as caught:
                session.execute(f"SELECT COUNT(*) FROM t WHERE i > {number}")
            assert not caught.value.charged and caught.value.slug in ("source_missing", "source_table_missing")
            assert str(tmp_path) not in caught.value.text()
        assert spent(session) == before
        (tmp_path / "away").rename(file)
        assert session.execute("SELECT COUNT(*) AS c FROM t WHERE i > 249").table.to_pydict() == {"c": [250]}


def write(folder: Path, source: str, columns: str = "i, 'n' AS n", rows: int = 500) -> None:
    name = source.removeprefix("duckdb:///")
    file = folder / f"new {name}"  # another process would write it; in this process DuckDB knows the path as open
    select = f"SELECT {columns} FROM range({rows}) t(i)"
    if source.startswith("duckdb"):
        with duckdb.connect(str(file)) as connection:
            connection.execute(f"CREATE TABLE t AS {select}")
    else:
        format = "PARQUET" if source.endswith("parquet") else "CSV, HEADER"
        duckdb.sql(f"COPY ({select}) TO '{file}' (FORMAT {format})")
    file.rename(folder / name)


@pytest.mark.parametrize("source", ["t.csv", "t.csv.gz", "t.parquet", "duckdb:///t.duckdb"])
def test_a_source_that_lost_a_column_or_is_damaged_costs_nothing(tmp_path: Path, make: Make, source: str) -> None:
    write(tmp_path, source)
    file = tmp_path / source.removeprefix("duckdb:///")
    with open_session(make(source), create_ledger=True) as session:
        assert count(session) == 500
        before = spent(session)
        write(tmp_path, source, "i, 'n' AS other")
        with pytest.raises(Error) as caught:
            count(session)
        assert caught.value.slug == "source_column_missing" and not caught.value.charged
        write(tmp_path, source)
        whole = file.read_bytes()
        for damaged in (b"", whole[: len(whole) // 2]):
            if damaged and source == "t.csv":
                continue  # half of a CSV file is a valid CSV file
            file.unlink()
            file.write_bytes(damaged)
            with pytest.raises(Error) as caught:
                count(session)
            assert caught.value.slug in ("source_unreadable", "source_table_unreadable"), caught.value.text()
            assert not caught.value.charged
        assert spent(session) == before
        write(tmp_path, source, rows=300)
        assert count(session) == 300


@pytest.mark.parametrize(
    ("second", "slug"), [(b"i;n\n1;n\n", "source_files_differ"), (b"n,i\nn,1\n", "source_files_differ")]
)
def test_files_of_one_glob_have_one_header(tmp_path: Path, make: Make, second: bytes, slug: str) -> None:
    (tmp_path / "t1.csv").write_bytes(b"\xef\xbb\xbfi,n\r\n" + ROWS)
    (tmp_path / "t2.csv").write_bytes(b"i,n\n" + ROWS)
    with open_session(make("t*.csv"), create_ledger=True) as session:
        assert count(session) == 1000
        (tmp_path / "t2.csv").write_bytes(second)
        before = spent(session)
        with pytest.raises(Error) as caught:
            count(session)
        assert caught.value.slug == slug and not caught.value.charged and spent(session) == before


MILLIS = pa.array([0, 1], pa.timestamp("ms"))
PAIRS = {
    "a month with a gap": (pa.array([1, 2]), pa.array([3.0, 4.0, 1.5])),
    "a wider integer": (pa.array([1, 2], pa.int8()), pa.array([1, 2**40])),
    "a number and a text": (pa.array([1, 2]), pa.array(["n/a"])),
    "a time and a text": (pa.array([0], pa.time32("s")), pa.array(["n/a"])),
    "decimals": (pa.array([Decimal("1.25")], pa.decimal128(5, 2)), pa.array([Decimal(10**20)], pa.decimal128(38, 0))),
    "milliseconds and microseconds": (MILLIS, pa.array([1_001], pa.timestamp("us"))),
    "milliseconds and a text": (MILLIS, pa.array(["n/a"])),
    "a day and nanoseconds": (pa.array([-719_162], pa.int32()).cast(pa.date32()), pa.array([1], pa.timestamp("ns"))),
    "a text and a UUID": (pa.array(["n/a"]), pa.array([b"a" * 16], pa.uuid())),
    "a text and JSON": (pa.array(["{x"]), pa.array(["{}"], pa.json_())),
    "nothing and a text": (pa.nulls(2), pa.array(["n/a"])),
}


@pytest.mark.parametrize(
    ("pair", "order"),
    [case for at, pair in enumerate(PAIRS) for case in ((pair, (-1) ** at), night(pair, -((-1) ** at)))],
)
def test_parquet_files_of_one_glob_may_have_different_types(tmp_path: Path, make: Make, pair: str, order: int) -> None:
    """Types of one file, or common to both, would raise at a value of the other. A column of milliseconds, which pyarrow reads,
    makes no difference."""
    total = sum(map(len, PAIRS[pair]))
    with_moments = {"at": MILLIS[:1]} if order > 0 else {}
    for number, values in enumerate(PAIRS[pair][::order]):
        columns = {"i": range(len(values)), "n": values, **{k: [v[0]] * len(values) for k, v in with_moments.items()}}
        pq.write_table(
            pa.table({k: v if isinstance(v, pa.Array) else pa.array(v) for k, v in columns.items()}),
            tmp_path / f"t{number}.parquet",
        )
    for type_ in ("text", "real", "timestamp"):
        path = make('"t*.parquet"', "{table: t, column: i}", type=type_)
        with open_session(path, create_ledger=type_ == "text") as session:
            counted = [session.execute("SELECT COUNT(n) AS c FROM t").table.column("c")[0].as_py()]
            assert count(session) == max(map(len, PAIRS[pair])), "one row of each unit is within max_rows"
            prepare(session, copy=True)
            counted.append(session.execute("SELECT COUNT(n) AS c FROM t WHERE i >= 0").table.column("c")[0].as_py())
        assert counted[0] == counted[1] <= total


def test_parquet_files_without_a_column_are_refused(tmp_path: Path, make: Make) -> None:
    write(tmp_path, "t1.parquet", "i::TINYINT AS i, 'n' AS n", 100)
    write(tmp_path, "t2.parquet", "i + 500 AS i, 'n' AS n")
    with open_session(make('"t*.parquet"'), create_ledger=True) as session:
        assert count(session) == 600
        write(tmp_path, "t2.parquet", "i, 'n' AS other")
        with pytest.raises(Error) as caught:
            count(session)
        assert (
            caught.value.slug == "source_files_differ"
            and not caught.value.charged
            and "column n" in caught.value.text()
        )


def test_a_dialect_of_the_policy_and_what_the_owner_learns(tmp_path: Path, make: Make) -> None:
    more = "csv: {delimiter: ';', quote: \"'\", header: [n, x, i], null: ['', '-']}"
    (tmp_path / "t.csv").write_bytes(b"'n';;1\n'n';'a;b';2\n-;;3\na,b,4\n'n';\xff;5\n'n';;6;7\n'n;;7\n")
    path = make("t.csv", more=more)
    with open_session(path, create_ledger=True) as session:
        assert counts(session) == {"n": 3, "a": 0} and count(session) == 4
    notes = [note for note in check_policy_file(path).notes if "line" in note]
    assert [note.rpartition(": ")[2] for note in notes] == [f"{number} in {tmp_path / 't.csv'}" for number in (3, 1, 1)]


def prepare(session: Session, **options: Any) -> None:
    ContributionIndex(session.policy, session.context.engine, lambda: session.ledger.witness.key).prepare(**options)


@pytest.mark.parametrize("unit", ["row", "{table: t, column: i}"])
def test_multiline_files_are_answered_once_they_are_prepared(tmp_path: Path, make: Make, unit: str) -> None:
    (tmp_path / "t.csv").write_bytes(b'i,n\n1,n\n2,"a\r\nb"\n3,"n"\n4,"n""\n"\n')
    path = make("t.csv", unit, "csv: {multiline: true}", domain='domain: [n, "a\\nb"]')
    with open_session(path, create_ledger=True) as session:
        for _ in range(2):
            with pytest.raises(Error) as caught:
                counts(session)
            assert caught.value.slug == "source_multiline" and not caught.value.charged
            assert "dpsql prepare" in caught.value.hint
        prepare(session)
        assert counts(session) == {"n": 2, "a\nb": 1} and count(session) == 4
        (tmp_path / "t.csv").write_bytes(b"i,n\n1,n\n")
        with pytest.raises(Error) as caught:
            count(session)
        assert caught.value.slug == "source_multiline" and not caught.value.charged


# --- extreme cells --------------------------------------------------------------------------------------------------

EDGES = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, None]


def bad_text(type_: pa.DataType) -> pa.Array:
    ends = struct.pack("<iii" if type_ == pa.string() else "<qqq", 0, 1, 3)
    return pa.Array.from_buffers(type_, 2, [None, pa.py_buffer(ends), pa.py_buffer(b"n\xff\xfe")])


def extremes() -> dict[str, pa.Array]:
    found = {"string": bad_text(pa.string()), "large_string": bad_text(pa.large_string())}
    for unit in ("s", "ms", "us", "ns"):
        numbers = pa.array(EDGES, pa.int64())
        found[f"timestamp {unit}"] = numbers.cast(pa.timestamp(unit))
        found[f"timestamptz {unit}"] = numbers.cast(pa.timestamp(unit, "UTC"))
        found[f"duration {unit}"] = numbers.cast(pa.duration(unit))
        if unit in ("us", "ns"):
            found[f"time {unit}"] = numbers.view(pa.time64(unit))
        else:
            found[f"time {unit}"] = pa.array([0, -1, 2**31 - 1, None], pa.int32()).view(pa.time32(unit))
    found["dictionary"] = pa.DictionaryArray.from_arrays(pa.array([0, 1]), bad_text(pa.string()))
    found["half"] = pa.array([1.5, None]).cast(pa.float16())
    found["decimal"] = pa.array(["9" * 70, None]).cast(pa.decimal256(70, 0))
    found["date64"] = pa.array(EDGES, pa.int64()).view(pa.date64())
    found["double"] = pa.array([float("nan"), float("inf"), float("-inf"), -0.0, 1e308, None])
    return found


TYPES = ["integer", "real", "text", "boolean", "date", "timestamp"]


@pytest.mark.parametrize("type_", TYPES)
def test_no_value_given_by_arrow_ends_a_question(make: Make, type_: str) -> None:
    create = True
    for kind, values in extremes().items():
        table = pa.table({"i": pa.array(range(len(values))), "n": values})
        path = make("t.parquet", "{table: t, column: i}", type=type_)
        path.write_text(path.read_text().replace("source: t.parquet\n", ""))
        with open_session(path, source=table, create_ledger=create) as session:
            create = False
            assert count(session) == len(values), kind
            session.execute("SELECT COUNT(n) FROM t")


@pytest.mark.parametrize("type_", ["text", "date", "timestamp"])
def test_no_value_of_a_parquet_file_ends_a_question(tmp_path: Path, make: Make, type_: str) -> None:
    """Texts that are not UTF-8 need rows that the owner has prepared; everything else is read directly."""
    create = True
    for kind, values in extremes().items():
        if kind == "dictionary" or kind.endswith(" s"):
            continue  # Parquet has no seconds, and Arrow itself cannot read such a dictionary
        pq.write_table(pa.table({"i": pa.array(range(len(values))), "n": values}), tmp_path / "t.parquet")
        with open_session(make("t.parquet", "{table: t, column: i}", type=type_), create_ledger=create) as session:
            create = False
            if kind in ("string", "large_string"):
                prepare(session, copy=True)
            assert count(session) == len(values), kind
            session.execute("SELECT COUNT(n) FROM t")


def test_a_connection_with_views_over_arrow_reads_what_has_a_value(make: Make) -> None:
    connection = duckdb.connect()
    connection.register(
        "arrow", pa.table({"i": list(range(8)), "n": pa.array(EDGES, pa.int64()).cast(pa.timestamp("s"))})
    )
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    path = make("t.parquet", "{table: t, column: i}")
    path.write_text(path.read_text().replace("source: t.parquet\n", ""))
    with open_session(path, source=connection, create_ledger=True) as session:
        assert count(session) == 8
        assert session.execute("SELECT COUNT(n) AS c FROM t").table.to_pydict() == {"c": [3]}


def test_a_connection_is_looked_at_with_one_cursor_for_each_question(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables may have changed since; and if it is closed, the question that finds it costs nothing."""
    cursors: list[str] = []
    cursor = Sources.cursor
    monkeypatch.setattr(Sources, "cursor", lambda sources: (cursors.append(""), cursor(sources))[1])
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS i, 'n' AS n")
        with open_session(make("duckdb:///t.duckdb"), source=connection, create_ledger=True) as session:
            session.context.engine.check_readable(("t",))
            cursors.clear()
            before = spent(session)
            session.context.engine.check_readable(("t",))
            assert len(cursors) == 1
            connection.execute("ALTER TABLE t RENAME n TO m")
            with pytest.raises(Error, match="source_column_missing"):
                session.execute(SUM)
            connection.close()
            with pytest.raises(Error, match="source_table_missing"):
                session.execute(SUM)
            assert spent(session) == before


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_starter_policy_reads_the_header_alone(tmp_path: Path, delimiter: str) -> None:
    from dpsql.frontends.admin.policy_text import write_starter

    (tmp_path / "s.csv").write_bytes(delimiter.join(["i", '"n m"', "x", "X"]).encode() + b'\n1,"\xff')
    write_starter(tmp_path / "s.csv", tmp_path / "s.yaml", "row")
    text = (tmp_path / "s.yaml").read_text()
    assert "      i: {type: text}" in text and '      n_m: {type: text, from: "n m"}' in text
    assert ("csv: {delimiter:" in text) == (delimiter != ",")
    assert "# x is A NAME THAT THE HEADER REPEATS" in text and "X: {" not in text


def test_too_many_open_files_tell_no_path(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state directory and the ledger's id are only for the owner."""
    import errno
    import os

    write(tmp_path, "t.parquet")
    real = os.open
    with open_session(make("t.parquet"), create_ledger=True) as session:
        count(session)

        def full(path: Any, *rest: Any, **options: Any) -> int:
            if str(path).startswith(str(tmp_path / "state")):
                raise OSError(errno.EMFILE, "Too many open files", str(path))
            return real(path, *rest, **options)

        monkeypatch.setattr(os, "open", full)
        with pytest.raises(Error) as caught:
            session.execute("SELECT COUNT(*) FROM t WHERE i > 5")
        monkeypatch.undo()
        assert caught.value.slug == "ledger_state_busy" and not caught.value.charged
        assert (
            str(tmp_path) not in caught.value.text()
            and session.ledger.witness.directory.name not in caught.value.text()
        )


def test_a_column_is_read_under_the_name_that_its_header_has(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,Alk.Phos,my age,alk_phos\n1,2.5,40,wrong\n2,3.5,50,wrong\n", encoding="utf-8")
    names = {"years": "my age", "alk_phos": "alk.phos"}
    dataset = CsvFiles("t", lambda: [tmp_path / "t.csv"], CsvDialect(), names, False).dataset()
    with duckdb.connect() as connection:
        connection.register("t", dataset)
        assert connection.execute("SELECT years, alk_phos FROM t ORDER BY 1").fetchall() == [
            ("40", "2.5"),
            ("50", "3.5"),
        ]
    for header, slug in (
        ("age,years,my age", "source_column_missing"),
        ("my age,ALK.PHOS,alk.phos", "source_column_twice"),
    ):
        (tmp_path / "t.csv").write_text(f"{header}\n1,2,3\n")
        with pytest.raises(Error) as error:
            CsvFiles("t", lambda: [tmp_path / "t.csv"], CsvDialect(), names, False).dataset()
        assert error.value.slug == slug and "alk_phos" in error.value.message, (
            "header names may be hidden from analysts"
        )


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("kind", ["one Parquet file", "files of several types", "a database", "a table in Python"])
def test_a_column_is_read_under_the_name_that_its_source_has(
    tmp_path: Path, make: Make, kind: str, twice: bool
) -> None:
    """Errors give the policy's name: those of the source may be hidden from analysts."""
    more = {"I Nr": [1, 2, 3, 2_000], "Größe cm": ["n", "n", "a", "b"], "n": ["a", "a", "a", "a"]}
    rows = pa.table(more)
    path = make("data/*.parquet")
    path.write_text(
        path.read_text()
        .replace("{type: integer,", "{type: integer, from: i nr,")
        .replace("{type: text,", "{type: text, from: Größe cm,")
        .replace("      n:", "      j: {type: text, from: I NR}\n      n:" if twice else "      n:")
    )
    place = tmp_path / "data" / "1.parquet"
    place.parent.mkdir()
    source: Any = None
    if kind == "one Parquet file":
        pq.write_table(rows, place)
    elif kind == "files of several types":
        pq.write_table(rows.slice(0, 2), place)
        pq.write_table(
            rows.slice(2).set_column(0, "I Nr", pa.array([3, 2_000], pa.int32())), place.with_name("2.parquet")
        )
    elif kind == "a database":
        path.write_text(path.read_text().replace("data/*.parquet", "duckdb:///t.duckdb"))
        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            connection.execute("CREATE TABLE t AS SELECT * FROM rows")
    else:
        path.write_text(path.read_text().replace("source: data/*.parquet", ""))
        source = {"t": rows}
    with open_session(path, source=source, create_ledger=True) as session:
        assert counts(session) == {"n": 2, "a": 1}
        assert session.execute("SELECT SUM(i) AS s FROM t").table.column("s")[0].as_py() == pytest.approx(
            1 + 2 + 3 + 1_000, abs=300
        )
    path.write_text(path.read_text().replace("from: i nr", "from: other").replace("ledger.db", "second.db"))
    with (
        pytest.raises(Error, match=r"column t\.i ") as caught,
        open_session(path, source=source, create_ledger=True) as session,
    ):
        session.execute(SUM)
    assert caught.value.slug == "source_column_missing" and "other" not in caught.value.text()
