"""`dpsql check` names what may fail at a value, and `dpsql check --scan` finds the rows at which it does, on every engine."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support.postgres_source import Server, server
from support.spark_source import spark

from dpsql.disclosure.scan import Failure, failures
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Exit
from dpsql.frontends.admin.check import Findings, check_policy_file
from dpsql.policy import Policy, load_policy

__all__ = ["server", "spark"]
COLUMNS = {"person": {"type": "text", "nullable": False}, "note": {"type": "integer"}, "town": {"type": "text"}}


def policy_file(folder: Path, source: str, table: str = "visits", columns: Any = None) -> Path:
    """Write a policy over one table, and return its place."""
    place = folder / "policy.yaml"
    place.write_text(
        json.dumps({
            "dataset": "scanned", "source": source, "privacy_unit": {"table": "visits", "column": "person"},
            "budget": {"epsilon": 9, "delta": 1e-6, "accountant": "pure"}, "per_query": {"epsilon": 1}, "ledger": "sqlite:///scanned.db",
            "tables": {"visits": {"source": table, "max_rows": 1, "columns": columns or COLUMNS}},
        })
    )  # fmt: skip
    return place


def found(policy: Policy, source: Any = None) -> list[Failure]:
    engine = open_engine(policy, source)
    try:
        return list(failures(policy, engine))
    finally:
        engine.close()


@pytest.fixture
def view(server: Server) -> Iterator[str]:
    """Yield a database with a view that fails at two of thirty rows, one of which has no town."""
    url = server.database()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE TABLE raw (person text, note text, town text)")
        with owner.cursor() as cursor:
            rows = [
                (f"p{number:02}", "secret" if number in (3, 20) else str(number), None if number == 20 else "Ulm")
                for number in range(30)
            ]
            cursor.executemany("INSERT INTO raw VALUES (%s, %s, %s)", rows)
        owner.execute("CREATE VIEW visits AS SELECT person, CAST(note AS integer) AS note, town FROM raw")
    yield url


def checked(place: Path, **options: Any) -> Findings:
    return check_policy_file(place, **options)


def test_rows_of_a_view_that_fail_are_counted(view: str, tmp_path: Path) -> None:
    policy = load_policy(policy_file(tmp_path, view))
    assert found(policy) == [Failure("visits", "note", "", 2, 2, 30)]


def test_check_names_a_view_and_a_scan_finds_its_rows(
    view: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = policy_file(tmp_path, view)
    before = checked(place)
    assert before.status is Exit.DONE and "note: visits is a view" in before.notes
    with caplog.at_level(logging.DEBUG):
        after = checked(place, scan=True)
    assert after.status == 1 and after.problems[0].startswith("visits.note cannot be read: it fails at 2 of 30 rows\n")
    assert "secret" not in caplog.text, "what a scan meets is for its report alone"
    with psycopg.connect(view, autocommit=True) as owner:
        owner.execute("UPDATE raw SET note = NULL WHERE note = 'secret'")
    cured = checked(place, scan=True)
    assert cured.status is Exit.DONE and "scan: every value of every table can be read" in cured.notes


def test_parts_of_a_table_on_a_server_are_named(server: Server, tmp_path: Path) -> None:
    url = server.database()
    virtual = (
        "note integer GENERATED ALWAYS AS (10 / a)" if server.admin.info.server_version >= 180000 else "note integer"
    )
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE TABLE visits (person text, a integer, town jsonb, {virtual})")
        owner.execute("INSERT INTO visits (person, a) VALUES ('p', 1), ('q', 2), ('r', 0)")
    place = policy_file(tmp_path, url)
    notes = " ".join(checked(place).notes)
    assert "visits.town is jsonb" in notes and "visits is a view" not in notes
    if "GENERATED" in virtual:
        assert "visits.note is computed when it is read" in notes
        assert found(load_policy(place)) == [Failure("visits", "note", "", 1, 1, 3)]


def test_a_view_in_a_duckdb_file_is_named_and_read(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as owner:
        owner.execute(
            "CREATE TABLE raw AS SELECT 'p' || i AS person, CASE i WHEN 4 THEN 'x' ELSE '7' END AS note, 'Ulm' AS town FROM range(9) t (i)"
        )
        owner.execute("CREATE VIEW visits AS SELECT person, CAST(note AS INTEGER) AS note, town FROM raw")
        owner.execute(
            "CREATE TABLE computed (person VARCHAR, a INTEGER, town VARCHAR, note INTEGER GENERATED ALWAYS AS (a + 1))"
        )
    place = policy_file(tmp_path, "duckdb:///d.duckdb")
    assert "note: visits is a view" in checked(place).notes
    assert found(load_policy(place)) == [Failure("visits", "note", "", 1, 1, 9)]
    assert (
        "note: visits has generated columns" in checked(policy_file(tmp_path, "duckdb:///d.duckdb", "computed")).notes
    )
    assert not [
        note
        for note in checked(
            policy_file(tmp_path, "duckdb:///d.duckdb", "raw", {k: COLUMNS[k] for k in ("person", "town")})
        ).notes
        if "is a view" in note
    ]


def test_the_file_that_fails_is_named(tmp_path: Path) -> None:
    for number, text in enumerate((b"Ulm", b"\xff", b"Bonn")):
        towns = pc.cast(
            pa.array([b"Ulm", text], pa.binary()), options=pc.CastOptions(pa.string(), allow_invalid_utf8=True)
        )
        pq.write_table(
            pa.table({"person": [f"p{number}", f"q{number}"], "note": [1, 2], "town": towns}),
            tmp_path / f"{number}.parquet",
        )
    place = tmp_path / "policy.yaml"
    policy_file(tmp_path, "x", str(tmp_path / "*.parquet"))
    place.write_text(json.dumps({**json.loads(place.read_text()), "source": None}))
    failing = found(load_policy(place))
    assert [(failure.column, Path(failure.file).name, failure.rows) for failure in failing] == [
        ("town", "1.parquet", 2)
    ]
    assert "1.parquet" in checked(place, scan=True).problems[0]


@pytest.mark.slow
def test_rows_of_a_view_of_spark_that_fail_are_counted(spark: Any, tmp_path: Path) -> None:
    spark.range(40).selectExpr(
        "concat('p', id) AS person", "CAST(if(id = 7, 'x', '3') AS INT) AS note", "'Ulm' AS town"
    ).createOrReplaceTempView("scanned")
    policy = load_policy(policy_file(tmp_path, "spark://local[2]", "scanned"))
    assert found(policy, spark) == [Failure("visits", "note", "", 1, 1, 40)]
    engine = open_engine(policy, spark)
    assert [doubt.kind for doubt in engine.doubts("visits")] == ["is a view, or a table in another format than Parquet"]
    engine.close()


@pytest.mark.slow
def test_the_file_of_spark_that_fails_is_named(spark: Any, tmp_path: Path) -> None:
    """A file of decimals that have more digits than it declares, which Spark refuses to read."""
    folder = tmp_path / "f"
    folder.mkdir()
    for number, value in enumerate((5, 2**71 - 1)):
        raw = b"".join(v.to_bytes(16, "little", signed=True) for v in (7, value))
        notes = pa.Array.from_buffers(pa.decimal128(21, 0), 2, [None, pa.py_buffer(raw)])
        pq.write_table(
            pa.table({"person": ["p", "q"], "note": notes, "town": ["Ulm", "Bonn"]}),
            folder / f"{number}.parquet",
            store_schema=False,
        )
    policy = load_policy(policy_file(tmp_path, "spark://local[2]", f"file://{folder}"))
    (failure,) = found(policy, spark)
    assert (failure.column, Path(failure.file).name, failure.rows) == ("note", "1.parquet", 2)
    engine = open_engine(policy, spark)
    assert [doubt.column for doubt in engine.doubts("visits")] == ["note"]
    engine.close()
