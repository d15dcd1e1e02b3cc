"""Footers of Parquet files: types that differ between files are found before a charge, for files, views and tables of a catalog."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.server_sources import Kind, policy_of
from support.spark_source import spark

from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Fault

__all__ = ["spark"]
NUMBERS = itertools.count()
WIDE, NARROW = pa.array([2**40]), pa.array([7], pa.int32())
DAY = pa.array([0], pa.timestamp("ms"))


def folder_of(place: Path, *parts: pa.Array) -> Path:
    """Return a folder with a file for each array, the values of a column c0."""
    place.mkdir()
    for number, part in enumerate(parts):
        pq.write_table(
            pa.table({"person": ["p"] * len(part), "c0": part}), place / f"{number}.parquet", store_schema=False
        )
    return place


def slug_of(spark: Any, folder: Path, type_: str, source: str) -> str:
    """Return the fault before a charge for a table of the source."""
    engine = open_engine(policy_of((Kind(type_, "", ()),), "spark://local[2]", source, folder), spark)
    try:
        engine.check_readable(("t",))
    except Fault as fault:
        return fault.slug
    finally:
        engine.close()
    return ""


@pytest.mark.parametrize(("parts", "schema", "type_", "slug"), [
    ((NARROW, WIDE), "c0 INT", "integer", "source_files_differ"), ((NARROW, WIDE), "c0 BIGINT", "integer", ""),
    ((WIDE,), "c0 INT", "integer", "source_files_differ"), ((WIDE, pa.array(["x"])), "c0 BIGINT", "integer", "source_files_differ"),
    ((pa.array([1.5]), pa.array([1.5], pa.float32())), "c0 DOUBLE", "real", ""), ((pa.array([1.5]),), "c0 FLOAT", "real", "source_files_differ"),
    ((DAY,), "c0 TIMESTAMP_NTZ", "timestamp", ""), ((DAY,), "c0 DATE", "timestamp", "source_files_differ"),
])  # fmt: skip
def test_views_over_files_have_the_types_of_the_files(
    spark: Any, tmp_path: Path, parts: tuple[pa.Array, ...], schema: str, type_: str, slug: str
) -> None:
    """A view with a schema of its own is read file by file in that schema, which some files may not have."""
    view = f"footers{next(NUMBERS)}"
    rows = spark.read.schema(f"person STRING, {schema}").parquet(str(folder_of(tmp_path / "f", *parts)))
    rows.createOrReplaceTempView(view)
    assert slug_of(spark, tmp_path, type_, view) == slug
    if not slug:
        assert len(rows.collect()) == len(parts)


def test_footers_of_views_are_read_again_only_where_files_changed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsql.engine.spark import tables
    from dpsql.engine.spark.tables import footers_of

    read: list[int] = []
    monkeypatch.setattr(tables, "footers_of", lambda rows, columns: (read.append(1), footers_of(rows, columns))[1])
    view, folder = f"footers{next(NUMBERS)}", folder_of(tmp_path / "f", WIDE)
    spark.read.parquet(str(folder)).createOrReplaceTempView(view)
    engine = open_engine(policy_of((Kind("integer", "", ()),), "spark://local[2]", view, tmp_path), spark)
    engine.check_readable(("t",))
    engine.check_readable(("t",))
    assert len(read) == 1
    pq.write_table(pa.table({"person": ["p"], "c0": ["x"]}), folder / "1.parquet")
    spark.read.parquet(str(folder)).createOrReplaceTempView(view)
    with pytest.raises(Fault) as fault:
        engine.check_readable(("t",))
    assert fault.value.slug == "source_files_differ" and len(read) == 2
    engine.close()


def test_files_that_mix_units_of_time_are_refused(spark: Any, tmp_path: Path) -> None:
    """Integers of milliseconds and of microseconds would be read as the same times."""
    folder = folder_of(tmp_path / "f", DAY, pa.array([0], pa.timestamp("us")))
    assert slug_of(spark, tmp_path, "timestamp", f"file://{folder}") == "source_files_differ"
