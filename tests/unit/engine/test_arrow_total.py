"""Arrow values that DuckDB cannot read become NULL individually; all others stay unchanged."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
import pytest
from support.plain_duckdb import plain_duckdb

from dpsql.engine.duckdb.parquet_files import TotalParquet, total, total_table, total_type

MOST = 2**63 - 1
DAY = 86_400


def cast(numbers: list[int | None], type_: pa.DataType, storage: pa.DataType | None = None) -> pa.Array:
    return pc.cast(pa.array(numbers, storage or pa.int64()), type_)


def texts(*values: bytes | None) -> pa.Array:
    """Return texts from bytes, without validation."""
    return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())


def numbers_of(column: Any) -> list[int | None]:
    return pc.cast(column, pa.int64()).to_pylist()


STRUCT_OF_TIMES = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.timestamp("s")))])
TYPES = [
    (pa.int64(), pa.int64()),
    (pa.string(), pa.string()),
    (pa.timestamp("s"), pa.timestamp("us")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    (pa.timestamp("ns"), pa.timestamp("ns")),
    (pa.duration("s"), pa.duration("us")),
    (pa.duration("ms"), pa.duration("us")),
    (pa.duration("ns"), pa.duration("ns")),
    (pa.time32("s"), pa.time32("s")),
    (pa.float16(), pa.float32()),
    (pa.float64(), pa.float64()),
    (pa.decimal256(50, 2), pa.string()),
    (pa.decimal128(20, 2), pa.decimal128(20, 2)),
    (pa.dictionary(pa.int8(), pa.string()), pa.string()),
    (pa.dictionary(pa.int8(), pa.timestamp("s")), pa.timestamp("us")),
    (pa.list_(pa.int64()), pa.list_(pa.int64())),
    (STRUCT_OF_TIMES, STRUCT_OF_TIMES),
    (pa.run_end_encoded(pa.int32(), pa.timestamp("s")), pa.timestamp("us")),
    (pa.string_view(), pa.string()),
    (pa.binary_view(), pa.binary()),
    (pa.uuid(), pa.uuid()),
    (pa.json_(pa.large_string()), pa.large_string()),
    (pa.bool8(), pa.int8()),
]


@pytest.mark.parametrize(("type_", "expected"), TYPES, ids=str)
def test_a_column_has_the_type_that_is_claimed(type_: pa.DataType, expected: pa.DataType) -> None:
    assert total_type(type_) == expected
    assert total(pa.nulls(2, type_)).type == expected
    assert total(pa.nulls(2, type_)).to_pylist() == [None, None]
    assert total(pa.nulls(0, type_)).to_pylist() == []


@pytest.mark.parametrize("kind", [pa.timestamp, pa.duration])
@pytest.mark.parametrize(("unit", "factor"), [("s", 10**6), ("ms", 10**3)])
def test_times_beyond_64_bits_of_microseconds_are_null(kind: Any, unit: str, factor: int) -> None:
    most = MOST // factor
    column = cast([0, 1, -1, most, most + 1, -most, -most - 1, MOST, -MOST, None], kind(unit))
    expected = [0, factor, -factor, most * factor, None, -most * factor, None, None, None, None]
    assert numbers_of(total(column)) == expected


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_finer_times_stay_what_they_are(unit: str) -> None:
    column = cast([MOST, -MOST, 5, None], pa.timestamp(unit))
    assert total(column).equals(column)


@pytest.mark.parametrize(
    ("type_", "per_second"),
    [(pa.time32("s"), 1), (pa.time32("ms"), 10**3), (pa.time64("us"), 10**6), (pa.time64("ns"), 10**9)],
    ids=str,
)
def test_times_outside_a_day_are_null(type_: pa.DataType, per_second: int) -> None:
    storage = pa.int32() if pa.types.is_time32(type_) else pa.int64()
    numbers = [0, -1, 7, DAY * per_second, DAY * per_second + 1, None]
    column = cast(numbers, type_, storage)
    assert pc.cast(total(column), storage).to_pylist() == [0, None, 7, DAY * per_second, None, None]
    assert total(column).type == type_


def test_a_text_that_is_not_utf8_is_null_alone() -> None:
    column = texts(b"a", b"\xff\xfe", None, "é".encode(), b"")
    assert total(column).to_pylist() == ["a", None, None, "é", ""]
    chunked = pa.chunked_array([column, texts(b"\xc3"), texts(b"z")])
    assert total(chunked).to_pylist() == ["a", None, None, "é", "", None, "z"]
    total(chunked).validate(full=True)


def test_other_types_are_cast_without_loss() -> None:
    halves = pa.array([0.5, None, -2.0], pa.float32()).cast(pa.float16())
    assert total(halves).to_pylist() == [0.5, None, -2.0]
    assert total(pa.array(["1.25", None]).cast(pa.decimal256(50, 2))).to_pylist() == ["1.25", None]


def test_duckdb_reads_every_column_of_a_total_table() -> None:
    table = total_table(
        pa.table({
            "s": cast([MOST, 1], pa.timestamp("s")),
            "d": cast([MOST, 2], pa.duration("ms")),
            "t": cast([-1, 3], pa.time64("us")),
            "X": texts(b"\xff", b"x"),
            "hidden": [1, 2],
        }),
        ["s", "d", "t", "x"],
    )  # fmt: skip
    assert table.column_names == ["s", "d", "t", "X"]
    connection = plain_duckdb()
    connection.register("odd", table)
    rows = connection.execute("SELECT epoch(s), epoch(d), epoch(t), x FROM odd").fetchall()
    assert rows == [(None, None, None, None), (1.0, 0.002, 0.000003, "x")]


# --- Parquet ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parquet")
    paths = [folder / "1.parquet", folder / "2.parquet"]
    for number, path in enumerate(paths):
        day = cast([number, MOST // 1000 + 1], pa.timestamp("ms"))
        table = pa.table({"Id": [2 * number, 2 * number + 1], "day": day, "hidden": ["h", "i"], "name": ["a", "b"]})
        pyarrow.parquet.write_table(table, path)
    return paths


def test_values_have_the_type_that_they_have_for_duckdb(tmp_path: Path) -> None:
    """What pyarrow wrote beside the file's own schema does not change what a value means."""
    file = tmp_path / "region=%C3%A9" / "1.parquet"
    file.parent.mkdir()
    columns = {
        "waited": pa.array([5, None], pa.duration("s")), "key": pa.array([b"a" * 16, None], pa.binary(16)),
        "noted": pa.array([b"{x", b"\xff"]), "word": pa.array(["a", None]).dictionary_encode(),
    }  # fmt: skip
    pyarrow.parquet.write_table(pa.table(columns), file)
    meanings = {"waited": pa.int64(), "key": pa.uuid(), "noted": pa.string(), "word": pa.string()}
    dataset = TotalParquet([file], meanings, ["region"])
    assert dataset.schema == pa.schema([*meanings.items(), ("region", pa.string())])
    connection = plain_duckdb()
    connection.register("meant", dataset)
    rows = connection.execute("SELECT waited, key::VARCHAR, noted, word, region FROM meant").fetchall()
    assert rows == [
        (5, "-".join(["61616161", *["6161"] * 3, "6161" * 3]), "{x", "a", "é"),
        (None, None, None, None, "é"),
    ]


def test_old_timestamps_of_any_year_are_read(tmp_path: Path) -> None:
    """INT96 holds nanoseconds of a day and a day; in 64 bits of nanoseconds other years would be wrong ones."""
    moments = pa.array([datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None], pa.timestamp("us"))
    pyarrow.parquet.write_table(pa.table({"at": moments}), tmp_path / "1.parquet", use_deprecated_int96_timestamps=True)
    dataset = TotalParquet([tmp_path / "1.parquet"], {"at": None})
    assert dataset.scanner().to_table().column("at").combine_chunks().equals(moments)
