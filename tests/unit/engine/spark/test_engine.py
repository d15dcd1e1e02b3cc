"""Spark satisfies the engine contract in a real application; awkward data are counted correctly; its errors quote nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.spark_source import needs_spark, spark

from dpsql.engine.query import EngineQuery
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Fault
from dpsql.plan.intervals import Type
from dpsql.policy import Policy
from dpsql.testing import PEOPLE, SECRET, VISITS, WARDS, EngineContract, Loaded, contract_policy

__all__ = ["spark"]
SLOW = "SELECT count(*) AS m0 FROM range(1000) AS a, range(10000000000) AS b WHERE a.id + b.id < 0"
BROKEN = f"SELECT CAST(concat('{SECRET}', id) AS INT) AS m0 FROM range(1)"
TABLES = {
    "people": pa.table({"id": pa.array([r[0] for r in PEOPLE]), "height": pa.array([r[1] for r in PEOPLE])}),
    "visits": pa.table(dict(zip(("id", "ward", "day", "cost"), map(pa.array, zip(*VISITS, strict=True)), strict=True))),
    "wards": pa.table({"ward": [r[0] for r in WARDS], "beds": pa.array([r[1] for r in WARDS], pa.int16())}),
}


class TestContract(EngineContract):
    """Contract tests of every engine."""

    @pytest.fixture(params=["moment", "declared", "parquet"])
    def source(self, spark: Any, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Loaded]:
        policy = self.policy(tmp_path, request.param, spark)
        engine = open_engine(policy, spark)

        def execute(statement: str) -> None:
            """Run DROP TABLE, for a view or a folder of files."""
            name = statement.rsplit(" ", 1)[1]
            if request.param == "parquet":
                (tmp_path / f"{name}.parquet").unlink()
            else:
                spark.catalog.dropTempView(name)

        yield Loaded(policy, engine, SLOW, BROKEN, execute)
        engine.close()

    def policy(self, folder: Path, kind: str, spark: Any) -> Policy:
        more: dict[str, Any] = {"source": "spark://local[2]"}
        if kind == "declared":
            more["data_version"] = "spring"
        if kind != "parquet":
            for name, table in TABLES.items():
                spark.createDataFrame(table).createOrReplaceTempView(name)
            return contract_policy(folder, **more)
        from dpsql.testing import POLICY

        for name, table in TABLES.items():
            pq.write_table(table, folder / f"{name}.parquet")
        tables = {name: {**table, "source": f"{name}.parquet"} for name, table in POLICY["tables"].items()}
        return contract_policy(folder, tables=tables, **more)


def single(engine: Any, sql: str) -> Any:
    """Return the only value of a query."""
    return engine.run(EngineQuery(sql, (), ("m0",))).unseal().column(0)[0].as_py()


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Any]:
    policy = TestContract().policy(tmp_path, "moment", spark)
    opened = open_engine(policy, spark)
    yield opened
    opened.close()


# --- data -----------------------------------------------------------------------------------------------------------


AWKWARD = [
    ("char(5)", "text", "VALUES (0, 'a'), (1, 'b    '), (2, NULL)", ["a", "b", None]),
    ("string", "text", "VALUES (0, 'a'), (1, 'a  '), (2, ''), (3, 'A'), (4, CAST(X'61FF' AS STRING))",
     ["a", "a  ", "", "A", None]),
    ("bigint", "text", "VALUES (0, -7)", ["-7"]),
    ("decimal(38,2)", "integer", "VALUES (0, 2.5), (1, -2.5), (2, 9223372036854775807.4), (3, 9223372036854775807.5)",
     [3, -3, 2**63 - 1, None]),
    ("double", "integer", "VALUES (0, 2.5D), (1, 3.5D), (2, double('NaN')), (3, double('-Infinity')), (4, 9.3e18D), "
     "(5, 9223372036854775808D), (6, -9223372036854775808D)", [2, 4, None, None, None, None, -(2**63)]),
    ("smallint", "integer", "VALUES (0, -32768), (1, NULL)", [-32768, None]),
    ("decimal(10,1)", "real", "VALUES (0, 0.1), (1, NULL)", [0.1, None]),
    ("float", "real", "VALUES (0, 0.5), (1, double('Infinity'))", [0.5, float("inf")]),
    ("boolean", "boolean", "VALUES (0, true), (1, NULL), (2, false)", [True, None, False]),
    ("date", "date", "VALUES (0, DATE'2024-02-29'), (1, DATE'9999-12-31'), (2, DATE'+10000-01-01'), (3, DATE'0000-12-31')",
     ["2024-02-29", "9999-12-31", None, None]),
    ("timestamp", "date", "VALUES (0, TIMESTAMP'2024-02-29 23:59:59.999999 UTC')", ["2024-02-29"]),
    ("timestamp", "timestamp", "VALUES (0, TIMESTAMP'2024-01-01 00:30:00+02:00'), (1, TIMESTAMP'0001-01-01 00:00:00+14:00')",
     ["2023-12-31 22:30:00", None]),
    ("timestamp_ntz", "timestamp", "VALUES (0, TIMESTAMP_NTZ'2024-01-01 00:30:00')", ["2024-01-01 00:30:00"]),
    ("date", "timestamp", "VALUES (0, DATE'0001-01-01')", ["0001-01-01 00:00:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "wanted", "rows", "expected"), AWKWARD)
def test_a_column_is_read_in_the_type_of_the_policy(
    spark: Any, engine: Any, type_: str, wanted: str, rows: str, expected: list[Any]
) -> None:
    typed = f"SELECT place, CAST(v AS {type_.replace('char(5)', 'STRING')}) AS v FROM ({rows}) AS t (place, v)"
    text = engine.dialect.cast_column("v", next(t for t in Type if t.value == wanted), type_)
    values = engine.public_table(f"SELECT {text} AS x FROM ({typed}) ORDER BY place").column(0).to_pylist()
    assert [str(v) if wanted in ("date", "timestamp") and v is not None else v for v in values] == expected


def test_texts_are_compared_byte_by_byte_whatever_the_collation(spark: Any, engine: Any) -> None:
    spark.sql(
        "SELECT collate(v, 'UNICODE_CI') AS v FROM VALUES ('b'), ('B'), ('é'), ('a'), ('Z') AS t (v)"
    ).createOrReplaceTempView("collated")
    declared = spark.table("collated").schema["v"].dataType.simpleString()
    assert "UNICODE_CI" in declared
    text = engine.dialect.cast_column("v", Type.TEXT, declared)
    spark.table("collated").createOrReplaceGlobalTempView("collated")
    table = engine.public_table(
        f"SELECT {text} AS x, count(*) AS n FROM global_temp.collated GROUP BY {text} ORDER BY x"
    )
    assert table.column(0).to_pylist() == ["B", "Z", "a", "b", "é"]


def test_signed_zeros_are_one_group_and_differ_as_content(engine: Any) -> None:
    zeros = "(VALUES (0.0D), (-0.0D), (double('NaN')), (-double('NaN'))) AS z (v)"
    key, sign = engine.dialect.real_key('"v"'), engine.dialect.sign_of('"v"')
    assert single(engine, f"SELECT count(*) AS m0 FROM (SELECT CAST({key} AS STRING) FROM {zeros} GROUP BY {key})") == 2
    assert single(engine, f"SELECT count(DISTINCT {sign}) AS m0 FROM {zeros}") == 2


@pytest.mark.parametrize("most", [2**22 - 1, 2**43 - 1, 2**63])
def test_limbs_of_a_sum_add_up_to_the_sum(engine: Any, most: int) -> None:
    """Both limits of each number of limbs, with signs, NULL and a FILTER."""
    ends = [most - 1, -most, 0, 1, -1, most // 2, -(most // 3), 2**21 % most, -(2**21 % most) - 1]
    rows = ", ".join(f"({engine.dialect.constant(value)}, {number})" for number, value in enumerate(ends))
    total = engine.dialect.exact_sum("v", " FILTER (WHERE p < 100)", most)
    source = f"(VALUES {rows}, (CAST(NULL AS BIGINT), 0), (77L, 100)) AS t (v, p), range(1000)"
    assert int(single(engine, f"SELECT {total} AS m0 FROM {source}")) == 1000 * sum(ends)
    assert single(engine, f"SELECT {total} AS m0 FROM {source} WHERE p > 100") is None


@pytest.mark.parametrize(
    "value", ["array(1)", "X'00'", "named_struct('a', 1)", "INTERVAL '1' DAY", "map(1, 2)", "parse_json('1')"]
)
def test_other_types_are_refused_before_anything_is_charged(
    spark: Any, tmp_path: Path, engine: Any, value: str
) -> None:
    spark.sql(f"SELECT id, {value} AS ward, DATE'2024-01-01' AS day, 1L AS cost FROM range(3)").createOrReplaceTempView(
        "visits"
    )
    with pytest.raises(Fault) as fault:
        engine.check_readable(("visits",))
    assert fault.value.slug == "source_column_type"


def test_files_that_do_not_fit_together_are_noticed_before_anything_is_charged(spark: Any, tmp_path: Path) -> None:
    policy = TestContract().policy(tmp_path, "parquet", spark)
    from dataclasses import replace

    folder = tmp_path / "many"
    folder.mkdir()
    many = replace(
        policy, tables={**policy.tables, "visits": replace(policy.tables["visits"], source=f"file://{folder}")}
    )
    opened = open_engine(many, spark)
    pq.write_table(TABLES["visits"], folder / "a.parquet")
    opened.check_readable(("visits",))
    wrong = TABLES["visits"].set_column(3, "cost", pa.array(["x"] * 6))
    pq.write_table(wrong, folder / "b.parquet")
    for content, slug in ((None, "source_files_differ"), (b"PAR1 no footer", "source_table_unreadable")):
        if content is not None:
            (folder / "b.parquet").write_bytes(content)
        with pytest.raises(Fault) as fault:
            opened.check_readable(("visits",))
        assert fault.value.slug == slug
    opened.close()


def test_footers_are_read_again_only_where_files_changed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from dpsql.engine.spark.tables import Tables

    policy = TestContract().policy(tmp_path, "parquet", spark)
    folder = tmp_path / "many"
    folder.mkdir()
    many = replace(
        policy, tables={**policy.tables, "visits": replace(policy.tables["visits"], source=f"file://{folder}")}
    )
    read: list[str] = []
    rows_of = Tables._rows
    monkeypatch.setattr(Tables, "_rows", lambda tables, table: (read.append(table), rows_of(tables, table))[1])
    pq.write_table(TABLES["visits"], folder / "a.parquet")
    opened = open_engine(many, spark)

    def counted() -> tuple[list[str], int]:
        """Return the tables whose footers were read for a query, and the number of rows that it counts."""
        read.clear()
        opened.check_readable(("visits",))
        return list(read), int(single(opened, f"SELECT count(*) AS m0 FROM {opened.source('visits').sql}"))

    rows, tables = TABLES["visits"].num_rows, sorted({"visits", *(hop[2] for hop in policy.unit_joins("visits"))})
    assert counted() == (tables, rows)
    assert counted() == ([], rows)
    pq.write_table(TABLES["visits"], folder / "b.parquet")
    assert counted() == (["visits"], 2 * rows)
    pq.write_table(TABLES["visits"].slice(0, 1), folder / "b.parquet")  # another length under the same name
    assert counted() == (["visits"], rows + 1)
    written = (folder / "b.parquet").stat()
    os.utime(folder / "b.parquet", ns=(written.st_atime_ns, written.st_mtime_ns + 10**9))  # only another time
    assert counted() == (["visits"], rows + 1)
    assert counted() == ([], rows + 1)
    (folder / "a.parquet").unlink()
    assert counted() == (["visits"], 1)
    (folder / "b.parquet").unlink()
    folder.rmdir()
    with pytest.raises(Fault) as fault:
        opened.check_readable(("visits",))
    assert fault.value.slug == "source_table_missing"
    opened.close()


def test_a_query_runs_as_it_was_rehearsed_and_is_planned_once(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []
    frame_of = engine._frame
    monkeypatch.setattr(engine, "_frame", lambda sql, released: (planned.append(sql), frame_of(sql, released))[1])
    query, equal = (EngineQuery("SELECT sum(id) AS m0 FROM range(4)", (), ("m0",)) for _ in range(2))
    engine.rehearse(query)
    assert [engine.run(query).unseal().column(0)[0].as_py() for _ in range(2)] == [6, 6]
    assert len(planned) == 2  # the second run of one query is planned separately
    engine.rehearse(query)
    assert engine.run(equal).unseal().column(0)[0].as_py() == 6
    assert len(planned) == 4  # another query with the same text was not rehearsed
    assert len(engine._rehearsed) == 1
    del query
    assert len(engine._rehearsed) == 0  # nothing is kept for a query that was refused or abandoned


# --- settings and messages -------------------------------------------------------------------------------------------


def test_settings_of_the_given_session_change_no_meaning(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time zone, ANSI, case, escapes, variable substitution, and a function with the engine's names; the given session is
    unchanged."""
    hostile = {
        "spark.sql.session.timeZone": "Pacific/Kiritimati", "spark.sql.ansi.enabled": "false",
        "spark.sql.caseSensitive": "false", "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.timeParserPolicy": "LEGACY", "spark.sql.files.ignoreCorruptFiles": "true",
    }  # fmt: skip
    monkeypatch.setenv("DPSQL_CANARY", SECRET)
    before = {name: spark.conf.get(name) for name in hostile}
    for name, value in hostile.items():
        spark.conf.set(name, value)
    spark.udf.register("sha2", lambda text, bits: "evil")
    try:
        opened = open_engine(TestContract().policy(tmp_path, "moment", spark), spark)
        substituted = opened.dialect.constant("${env:HOME}${spark.app.name}")
        assert single(opened, f"SELECT {substituted} AS m0") == "${env:HOME}${spark.app.name}"
        assert single(opened, "SELECT '${env:HOME}' AS m0") == "${env:HOME}"
        assert single(opened, "SELECT hour(TIMESTAMP'2024-01-01 00:30:00+00:00') AS m0") == 0
        assert single(opened, r"SELECT length('a\\b') AS m0") == 3
        order = opened.dialect.keyed_order("k", ["id"])
        assert single(opened, f"SELECT count(DISTINCT {order}) AS m0 FROM range(5)") == 5
        with pytest.raises(Fault):
            single(opened, "SELECT sum(id) AS m0 FROM VALUES (9223372036854775807L), (1L) AS t (id)")
        opened.close()
        assert {name: spark.conf.get(name) for name in hostile} == hostile
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
        spark.sql("DROP TEMPORARY FUNCTION sha2")


def test_many_groups_come_back_in_pieces(spark: Any, tmp_path: Path) -> None:
    """A million groups are never in one piece, whatever the given session's settings, and come in order. The application has one
    gigabyte of memory."""
    policy = TestContract().policy(tmp_path, "moment", spark)
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "0")  # all of a partition at once
    opened = open_engine(policy, spark)
    try:
        rows = "(SELECT 'group ' || id AS k, id FROM range(1000000)) AS t"
        groups = f"SELECT k, count(*) AS m0, max(id) AS m1 FROM {rows} GROUP BY k ORDER BY m1"
        table = opened.run(EngineQuery(groups, ("k",), ("m0", "m1"))).unseal()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
        opened.close()
    sizes = [len(chunk) for chunk in table.column("m1").chunks]
    assert len(sizes) >= 100 and max(sizes) <= 10_000
    assert table.column("m1").equals(pa.chunked_array([pa.array(range(1_000_000))]))
    assert table.column("k")[-1].as_py() == "group 999999" and sum(table.column("m0").to_pylist()) == 1_000_000


def test_nothing_of_an_error_is_on_standard_error(engine: Any, capfd: pytest.CaptureFixture[str]) -> None:
    for wrong in (BROKEN, f"SELECT '{SECRET}' + no_such_column AS m0"):
        with pytest.raises(Fault):
            single(engine, wrong)
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err


def test_a_text_that_spark_refuses_is_not_charged(engine: Any) -> None:
    with pytest.raises(Fault) as fault:
        engine.rehearse(EngineQuery("SELECT sum(no_such_column) AS m0 FROM range(3)", (), ("m0",)))
    assert fault.value.slug == "engine_cannot_run"
    engine.rehearse(EngineQuery(SLOW, (), ("m0",)))  # planned, not run


@pytest.mark.parametrize("refused", [True, False])
def test_an_application_that_has_ended_is_named(engine: Any, monkeypatch: pytest.MonkeyPatch, refused: bool) -> None:
    """Later queries, planned queries and running queries all report that dpsql has to be restarted."""
    from py4j.protocol import Py4JNetworkError

    def fail(*_: object) -> None:
        raise ConnectionRefusedError(111, SECRET) if refused else Py4JNetworkError(SECRET)

    query = EngineQuery("SELECT count(*) AS m0 FROM range(3)", (), ("m0",))
    monkeypatch.setattr(engine, "_frame", fail)
    monkeypatch.setattr(engine._tables, "_is_local", fail)
    for act in (
        lambda: engine.check_readable(("visits",)), lambda: engine.rehearse(query), lambda: engine.run(query),
        lambda: engine.columns("visits"),
    ):  # fmt: skip
        with pytest.raises(Fault) as fault:
            act()
        assert fault.value.slug == "source_spark_ended" and SECRET not in fault.value.text()


@pytest.mark.parametrize(("text", "of_source"), [
    ("[FAILED_READ_FILE] Lost task 0.0 in stage 3.0: ExecutorLostFailure (executor 0 exited) Reason: code 137", False),
    ("Job 3 cancelled part of cancelled job tags", False), ("Lost task 0.0: ParquetDecodingException: no page", True),
    ("[CAST_INVALID_INPUT] The value 'x' of the type STRING cannot be cast to INT. SQLSTATE: 22018", False), ("[DIVIDE_BY_ZERO]", False),
])  # fmt: skip
def test_what_another_question_would_meet_too_is_a_fault_of_the_source(
    engine: Any, monkeypatch: pytest.MonkeyPatch, text: str, of_source: bool
) -> None:
    """The tables of such a query are closed to other queries for a while, so a lost executor must not count as one."""
    from pyspark.errors import PySparkException

    def fail(*_: object) -> None:
        raise PySparkException(text)

    monkeypatch.setattr(engine, "_frame", fail)
    with pytest.raises(Fault) as fault:
        engine.run(EngineQuery("SELECT 1 AS m0", (), ("m0",)))
    assert (fault.value.slug, fault.value.of_source) == ("engine_failed", of_source)


def test_without_java_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_spark()
    policy = contract_policy(tmp_path, source="spark://local[2]")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # if it is wrong, Spark does not look at the PATH
    with pytest.raises(Fault, match="JAVA_HOME names") as wrong:
        open_engine(policy)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME")
    with pytest.raises(Fault, match="on the PATH") as none:
        open_engine(policy)
    assert wrong.value.slug == none.value.slug == "source_java"


def test_bounds_that_clip_or_fail_are_noted_for_the_owner(spark: Any, tmp_path: Path) -> None:
    from dpsql.testing import POLICY

    visits = POLICY["tables"]["visits"]
    cost = {**visits["columns"]["cost"], "max_total": 10}
    clipping = {**visits, "max_count": 2, "columns": {**visits["columns"], "cost": cost}}
    opened = open_engine(contract_policy(tmp_path, tables={**POLICY["tables"], "visits": clipping}), spark)
    notes = opened.advice()
    assert any("more than 1g fails after it was charged" in note for note in notes)  # the limit of a given session
    bounds = [note.split(":")[0] for note in notes if "clipped" in note]
    assert bounds == ["max_count of table visits", "max_total of visits.cost"]
    opened.close()
