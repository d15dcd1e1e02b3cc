"""Each cell of a file is read on its own: no other cell, and no other file, decides what it means or whether it is read.

The law: what is read from files is what is read from each of their cells alone. It is checked for columns of every type that
Parquet files and Arrow tables have, at the limits of the type, read in every type of a policy; for pairs of types in two files, in
both orders; for questions, for their conditions, and for `dpsql prepare --copy`. Two neighbours can then not differ by an error:
without a row, the same cells are read.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.effort import NIGHTLY, night, slow
from support.plain_duckdb import plain_duckdb
from support.stored_values import IN_FILES, NESTED, STORED

from dpsql.engine.duckdb.engine import DuckDBEngine, open_duckdb
from dpsql.engine.duckdb.literals import cast_column, constant
from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.policy.check import parse_policy

POLICY = """
dataset: types
privacy_unit: row
budget: {epsilon: 1, delta: 1e-6}
per_query: {epsilon: 1}
ledger: sqlite:///ledger.db
tables:
  t:
    SOURCE
    columns:
"""
BOUNDS = {
    "text": "", "boolean": "", "integer": ", lower: 0, upper: 9", "real": ", lower: 0, upper: 9",
    "date": ", lower: 2000-01-01, upper: 2030-01-01", "timestamp": ", lower: 2000-01-01, upper: 2030-01-01",
}  # fmt: skip
ROWS = max(map(len, STORED.values()))
BY_ARROW = [
    *(name for name in IN_FILES if name.startswith(("time32", "time64", "timestamp[ms"))),
    "halffloat", "json", "decimal(50,2)", "decimal(76,0)",
]  # fmt: skip
"""The types in files that DuckDB's own reader does not read."""
BY_DUCKDB = [name for name in IN_FILES if name not in BY_ARROW]
Cells = list[Counter[str]]
"""The values of each column, as often as they occur."""


def policy_of(type_: str, columns: int, folder: Path | None = None) -> Policy:
    """Return a policy with columns c0, c1, ... of one type, over the files of a folder."""
    text = POLICY.replace("SOURCE", "max_rows: 1" if folder is None else f'source: "{folder}/*.parquet"')
    lines = (f"      c{column}: {{type: {type_}{BOUNDS[type_]}}}" for column in range(columns))
    return parse_policy(text + "\n".join(lines), (folder or Path()) / "policy.yaml")


def table_of(types: Sequence[str], rows: Sequence[int] = range(ROWS)) -> pa.Table:
    """Return a table with a column of each type; each row has a value of every type."""
    columns = [pa.concat_arrays([STORED[type_].slice(row % len(STORED[type_]), 1) for row in rows]) for type_ in types]
    return pa.table(columns, names=[f"c{column}" for column in range(len(types))])


@contextmanager
def opened(type_: str, columns: int, source: Path | pa.Table | duckdb.DuckDBPyConnection) -> Iterator[DuckDBEngine]:
    of_files = isinstance(source, Path)
    engine = open_duckdb(policy_of(type_, columns, source if of_files else None), None if of_files else source)
    try:
        engine.check_readable(("t",))
        yield engine
    finally:
        engine.close()


def scanned(engine: DuckDBEngine, type_: str, columns: int, total: bool = False) -> tuple[list[str], str]:
    """Return the texts of the columns in their policy's type, and the FROM item."""
    source = engine.source("t", total=total)
    return [cast_column(f"c{at}", Type(type_), source.types[f"c{at}"]) for at in range(columns)], source.sql


def read(type_: str, columns: int, source: Path | pa.Table, *, total: bool = False) -> Cells:
    """Return what questions read of a table's columns, or (`total`) what `dpsql prepare --copy` reads."""
    with opened(type_, columns, source) as engine:
        texts, place = scanned(engine, type_, columns, total)
        items = ", ".join(f"{text} AS c{at}" for at, text in enumerate(texts))
        rows = engine.exact_rows(f"SELECT {items} FROM {place} AS s0")
    return [Counter(map(repr, rows.column(f"c{at}").to_pylist())) for at in range(columns)]


def read_one_by_one(type_: str, types: Sequence[str], folder: Path | None, rows: Sequence[int]) -> Cells:
    """Return what is read of each row where it is the only one: in a file of its own, or (no folder) in an Arrow table."""
    found: Cells = [Counter() for _ in types]
    for row in rows:
        source: Path | pa.Table = table_of(types, [row])
        if folder is not None:
            pq.write_table(source, folder / "1.parquet")
            source = folder
        for cells, cell in zip(found, read(type_, len(types), source), strict=True):
            cells.update(cell)
    return found


def differing(types: Sequence[Any], left: Cells, right: Cells, copied: bool = False) -> dict[str, Any]:
    """Return the values that are only on one side, by type. `copied`: one of them is what `dpsql prepare --copy` reads."""
    sides = zip(map(str, types), left, right, strict=True)
    found = {type_: (dict(one - other), dict(other - one)) for type_, one, other in sides if one != other}
    if (
        copied and duckdb.__version__ < "2"
    ):  # this takes -infinity in nanoseconds for an instant of 1677, if pyarrow reads it
        found = {type_: values for type_, values in found.items() if "timestamp[ns, tz" not in type_}
    return found


def few_or_all(few: dict[Any, Any], every: Sequence[Any], most: Any, by_night: Container[Any] = ()) -> list[Any]:
    """Return the cases of `few`, with how much of each a quick run tries, and for a long run all of every case."""
    slow = [
        pytest.param(
            (case, most), id=f"all of {case}", marks=pytest.mark.nightly if case in by_night else pytest.mark.slow
        )
        for case in every
    ]
    return [*(pytest.param(case, id=f"few of {case[0]}") for case in few.items()), *slow]


SOME, ALL = (0, 4, 5, 7, 12), range(ROWS)
READERS = {"duckdb": BY_DUCKDB, "arrow": BY_ARROW}
PAIRS = [("duckdb", "duckdb"), ("arrow", "arrow"), ("duckdb", "arrow")]


@pytest.mark.parametrize(
    "case",
    few_or_all(
        {("text", "duckdb"): SOME, ("date", "arrow"): SOME},
        [(type_, reader) for type_ in BOUNDS for reader in READERS],
        ALL,
        {(type_, reader) for at, type_ in enumerate(BOUNDS) for turn, reader in enumerate(READERS) if (at + turn) % 2},
    ),
)
def test_a_cell_of_a_file_is_read_whatever_the_others_are(case: Any, tmp_path: Path) -> None:
    (type_, reader), rows = case
    types = READERS[reader]
    alone = read_one_by_one(type_, types, tmp_path, rows)
    pq.write_table(table_of(types, rows), tmp_path / "1.parquet")
    assert differing(types, read(type_, len(types), tmp_path), alone) == {}
    assert differing(types, read(type_, len(types), tmp_path, total=True), alone, copied=True) == {}


@pytest.mark.parametrize("case", few_or_all({"text": SOME}, list(BOUNDS), ALL, list(BOUNDS)[::2]))
def test_a_cell_of_an_arrow_table_is_read_whatever_the_others_are(case: Any) -> None:
    type_, rows = case
    alone = read_one_by_one(type_, list(STORED), None, rows)
    assert differing(list(STORED), read(type_, len(STORED), table_of(list(STORED), rows)), alone) == {}


@pytest.mark.parametrize("type_", STORED)
def test_no_cell_of_a_database_fails(type_: str) -> None:
    """Tables that an owner filled from Arrow hold values that DuckDB did not check."""
    connection, imported = plain_duckdb().cursor(), 0
    for row in range(len(STORED[type_])):
        try:
            connection.register("given", pa.table({"c0": STORED[type_].slice(row, 1)}))
            connection.execute(
                f"{'INSERT INTO' if imported else 'CREATE TEMP TABLE'} cells {'' if imported else 'AS'} FROM given"
            )
            imported += 1
        except duckdb.Error:  # DuckDB reads this value, or this type, from no Arrow table
            continue
    ((_, engine_type, *_),) = connection.execute("DESCRIBE cells").fetchall() if imported else [("c0", "")]
    for policy_type in BOUNDS if imported else ():
        text = cast_column("c0", Type(policy_type), engine_type)
        assert len(connection.execute(f"SELECT {text} FROM cells").fetchall()) == imported
    connection.execute("DROP TABLE IF EXISTS cells")
    assert imported or type_ in ("halffloat", "decimal(50,2)", "decimal(76,0)"), "this type tests something"


@pytest.mark.parametrize(
    "case",
    few_or_all(
        {("text", *PAIRS[0]): 1, ("timestamp", *PAIRS[1]): 1, ("real", *PAIRS[2]): 1},
        [(type_, *pair) for type_ in BOUNDS for pair in PAIRS],
        len(IN_FILES) if NIGHTLY else len(IN_FILES) // 3,
        {(type_, *pair) for at, type_ in enumerate(BOUNDS) for turn, pair in enumerate(PAIRS) if (at + turn) % 3},
    ),
)
def test_a_file_is_read_in_its_own_types_whatever_the_other_is(case: Any, tmp_path: Path) -> None:
    """Every type meets others; at night all others: the second file is turned all the way."""
    (type_, one_reader, other_reader), turns = case
    first, pool = READERS[one_reader], READERS[other_reader]
    alone: dict[str, Counter[str]] = {}
    for types in (first, pool):
        pq.write_table(table_of(types), tmp_path / "1.parquet")
        alone.update(zip(types, read(type_, len(types), tmp_path), strict=True))
    step = max(1, len(pool) // turns)
    for turn in range(1, len(pool), step):
        second = [pool[(at + turn) % len(pool)] for at in range(len(first))]
        pairs = list(zip(first, second, strict=True))
        expected = [alone[one] + alone[other] for one, other in pairs]
        for order in (first, second), (second, first):
            for number, types in enumerate(order):
                pq.write_table(table_of(types), tmp_path / f"{number}.parquet")
            (tmp_path / "1.parquet").touch()
            for total in (False, True):
                found = read(type_, len(pairs), tmp_path, total=total)
                assert differing(pairs, found, expected, total) == {}, (turn, order[0] is first, total)
        (tmp_path / "0.parquet").unlink()


def test_what_pyarrow_wrote_beside_the_types_decides_about_its_own_file_alone(tmp_path: Path) -> None:
    """Durations are plain integers in the files; pyarrow would convert their units, and raise."""
    for number, type_ in enumerate(("duration[ns]", "duration[s]")):
        pq.write_table(pa.table({"c0": STORED[type_]}), tmp_path / f"{number}.parquet")
    assert read("text", 1, tmp_path, total=True) == read("text", 1, tmp_path)


@pytest.mark.parametrize(
    ("type_", "files"),
    [case for at, type_ in enumerate(BOUNDS) for case in (slow(type_, 1 + at % 2), night(type_, 2 - at % 2))],
)
def test_a_condition_counts_the_cells_that_meet_it(type_: str, files: int, tmp_path: Path) -> None:
    """Readers decide by a file's statistics which rows they pass over: these statistics depend on all rows."""
    for number in range(files):
        turned = BY_DUCKDB[number:] + BY_DUCKDB[:number]
        pq.write_table(table_of(turned), tmp_path / f"{number}.parquet", row_group_size=5)
    with opened(type_, len(BY_DUCKDB), tmp_path) as engine:
        texts, place = scanned(engine, type_, len(BY_DUCKDB))
        for at, text in enumerate(texts):
            values = engine.exact_rows(f"SELECT {text} AS v FROM {place} AS s0").column("v").to_pylist()
            for value in {repr(v): v for v in values}.values():
                same = "IS NULL" if value is None else f"= {constant(value)}"
                expected = sum(v is value or v == value or (v != v and value != value) for v in values)
                counted = engine.exact_rows(f"SELECT count(*) AS n FROM {place} AS s0 WHERE {text} {same}")
                assert counted.column("n").to_pylist() == [expected], (BY_DUCKDB[at], value)


@pytest.mark.parametrize("type_", NESTED)
def test_a_column_with_parts_is_refused_by_its_schema(type_: str, tmp_path: Path) -> None:
    table = pa.table({"c0": NESTED[type_]})
    pq.write_table(table, tmp_path / "1.parquet")
    for source in (tmp_path, table):
        with pytest.raises(Error) as caught:
            read("text", 1, source)
        assert caught.value.slug == "source_column_type" and not caught.value.charged


def test_intervals_are_refused_by_their_schema(tmp_path: Path) -> None:
    plain_duckdb().execute(f"COPY (SELECT INTERVAL 1 DAY AS c0) TO '{tmp_path}/1.parquet'")
    assert slug_of(tmp_path) == "source_column_type"


def test_a_part_of_a_column_is_not_the_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"c0": 1}], "s.c0": [2]}), tmp_path / "1.parquet")
    with pytest.raises(Error) as caught:
        read("text", 1, tmp_path)
    assert caught.value.slug == "source_column_missing" and not caught.value.charged


@pytest.mark.parametrize("case", few_or_all({"timestamp": range(3, 7)}, list(BOUNDS), range(10)))
def test_timestamps_of_96_bits_are_read_on_their_own(case: Any, tmp_path: Path) -> None:
    type_, rows = case
    types = ["timestamp[us]", "timestamp[us, tz=UTC]", "timestamp[ns]"]

    def write(rows: Sequence[int]) -> Cells:
        pq.write_table(table_of(types, rows), tmp_path / "1.parquet", use_deprecated_int96_timestamps=True)
        return read(type_, len(types), tmp_path)

    alone: Cells = [Counter() for _ in types]
    for row in rows:
        for cells, cell in zip(alone, write([row]), strict=True):
            cells.update(cell)
    assert differing(types, write(rows), alone) == {}


def described(folder: Path) -> str:
    """Return how DuckDB plans a question over the files of a folder."""
    with opened("integer", 2, folder) as engine:
        texts, place = scanned(engine, "integer", 2)
        plan = engine.exact_rows(f"EXPLAIN SELECT sum({texts[0]}) FROM {place} AS s0 WHERE {texts[0]} > 5")
        assert ("UNION" in place) == (len({pq.read_schema(file) for file in folder.iterdir()}) > 1)
    return str(plan.column("explain_value")[0].as_py())


@pytest.mark.parametrize("second", [pa.int64(), pa.int16()], ids=str)
def test_columns_and_conditions_reach_the_readers_of_files(second: pa.DataType, tmp_path: Path) -> None:
    """Files of one type are one scan of the glob itself, as fast as if nobody had looked at their types."""
    for number, type_ in enumerate((pa.int64(), second)):
        columns = {"c0": pa.array([1, 7, 9], type_), "c1": [1, 2, 3], "unread": [{"part": number}] * 3}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    plan = described(tmp_path).replace(" ", "")
    assert "c1" not in plan and "unread" not in plan and "FILTER" not in plan.replace("Filters", "")
    assert "READPARQUET" in plan.upper().replace("_", "")
    assert "c0>5" in plan


def test_values_of_paths_are_texts_whatever_the_other_paths_are(tmp_path: Path) -> None:
    """As DuckDB detects types, '-0' is 0 unless another folder has a name that is no number."""
    read_of = {}
    for values in (["-0", "1"], ["-0", "1", "x"]):
        for value in values:
            (tmp_path / f"c1={value}").mkdir(exist_ok=True)
            pq.write_table(pa.table({"c0": ["a"]}), tmp_path / f"c1={value}" / "1.parquet")
        policy = parse_policy(
            POLICY.replace("SOURCE", f'source: "{tmp_path}/*/*.parquet"')
            + "      c0: {type: text}\n      c1: {type: text}",
            tmp_path / "policy.yaml",
        )
        for total in (False, True):
            engine = open_duckdb(policy)
            source = engine.source("t", total=total)
            found = engine.exact_rows(f"SELECT c1 FROM {source.sql} AS s0").column("c1").to_pylist()
            read_of[len(values), total] = sorted(found)
            engine.close()
    assert read_of == {
        (2, False): ["-0", "1"],
        (2, True): ["-0", "1"],
        (3, False): ["-0", "1", "x"],
        (3, True): ["-0", "1", "x"],
    }


def slug_of(folder: Path, columns: int = 1) -> str:
    with pytest.raises(Error) as caught:
        read("text", columns, folder)
    assert not caught.value.charged and str(folder) not in caught.value.text()
    return caught.value.slug


def test_what_the_files_lack_is_refused_by_their_schemas(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"c0": ["a"], "c1": ["b"]}), first)
    pq.write_table(pa.table({"C0": ["a"]}), second)
    assert slug_of(tmp_path, 2) == "source_files_differ" and str(second) in caplog.text
    assert read("text", 1, tmp_path) == [Counter({"'a'": 2})]
    pq.write_table(pa.table([pa.array(["a"])] * 2, names=["C0", "c0"]), second)
    assert slug_of(tmp_path) == "source_column_twice"
    second.unlink()
    assert slug_of(tmp_path, 3) == "source_column_missing"


@pytest.mark.parametrize("repeated", [("x", "X"), ("X", "x")])
def test_a_column_is_read_by_its_own_name_beside_repeated_ones(repeated: tuple[str, str], tmp_path: Path) -> None:
    """DuckDB calls the second `x_1`, and would read it in place of the column of that name."""
    columns = [pa.array([number, number + 1]) for number in (1, 10, 100)]
    pq.write_table(pa.table(columns, names=[*repeated, "x_1"]), tmp_path / "1.parquet")
    text = POLICY.replace("SOURCE", f'source: "{tmp_path}/*.parquet"') + "      x_1: {type: integer}"
    engine = open_duckdb(parse_policy(text, tmp_path / "policy.yaml"))
    try:
        engine.check_readable(("t",))
        rows = engine.exact_rows(f"SELECT x_1 FROM {engine.source('t').sql}")
        assert rows.column("x_1").to_pylist() == [100, 101]
    finally:
        engine.close()


def test_names_that_are_no_texts_are_a_fault(tmp_path: Path) -> None:
    pq.write_table(pa.table({"c0": ["a"], "zqzq": [1]}), tmp_path / "1.parquet", store_schema=False)
    file = tmp_path / "1.parquet"
    file.write_bytes(file.read_bytes().replace(b"zqzq", b"\xff\xfe\xff\xfe"))
    assert slug_of(tmp_path) == "source_table_unreadable"


GEOMETRIES = '{"version": "1.0.0", "primary_column": "C", "columns": {"C": {"encoding": "WKB", "geometry_types": []}}}'


@pytest.mark.parametrize(
    ("about", "slug"),
    [
        (GEOMETRIES.replace('"C"', '"c0"'), "source_column_type"),
        ("{", "source_table_unreadable"),
        (GEOMETRIES.replace('"C"', '"shape"'), None),
    ],
    ids=["read", "damaged", "not read"],
)
def test_geometries_are_refused_by_their_schema(about: str, slug: str | None, tmp_path: Path) -> None:
    """DuckDB validates each of them."""
    shapes = [b"\x01\x01", None]
    table = pa.table({"c0": shapes, "shape": shapes}).replace_schema_metadata({b"geo": about.encode()})
    pq.write_table(table, tmp_path / "1.parquet")
    if slug is not None:
        assert slug_of(tmp_path) == slug
    else:
        assert read("text", 1, tmp_path) == [Counter({r"'\\x01\\x01'": 1, "None": 1})]


@pytest.mark.parametrize("given", [[{"n": 1}], "rows", iter(())], ids=lambda given: type(given).__name__)
def test_other_objects_than_arrow_tables_are_refused(given: Any) -> None:
    with pytest.raises(Error) as caught:
        open_duckdb(policy_of("text", 1), given)
    assert caught.value.slug == "source_unsupported"
