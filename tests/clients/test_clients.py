"""Real clients against the served clinic: they connect, read the catalog, run queries, and use each client's special features."""

import asyncio
import io
import os
import subprocess
from datetime import date, datetime, time, timedelta
from decimal import Decimal

import asyncpg
import pandas
import psycopg
import psycopg2
import pytest
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine
from support.served_clinic import GROUPED, PASSWORD, Served

from clients.matrix import tries
from clients.programs import needs

BY_SEX = "SELECT COUNT(*) FROM patients WHERE sex = 'male'"
TYPES = (
    "SELECT CAST(1.5 AS double precision), CAST(7 AS bigint), CAST('x' AS text), TRUE, CAST('2026-01-02' AS date), "
    "CAST('2026-01-02 03:04:05' AS timestamp), CAST(-12.34 AS numeric(10,2)), NULL, interval '3 days', ARRAY[1,2,3], "
    "'12:30'::time, CAST(70000 AS int4), CAST(2.5 AS real), ARRAY['a b', NULL]"
)
VALUES = (
    1.5, 7, "x", True, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5), Decimal("-12.34"), None, timedelta(days=3),
    [1, 2, 3], time(12, 30), 70000, 2.5, ["a b", None],
)  # fmt: skip


# --- psql -------------------------------------------------------------------------------------------------------------


def psql(served: Served, *commands: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    place = f"host=127.0.0.1 port={served.port} dbname=nafld user=research sslmode=require"
    arguments = [part for command in commands for part in ("-c", command)]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    return subprocess.run(
        ["psql", place, "-X", *options, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("\\d", "patients | table"),
        ("\\dt", "labs"),
        ("\\l", "nafld"),
        ("\\dn", "public"),
        ("\\du", "research"),
        ("\\df", "(0 rows)"),
        ("\\dv", "Did not find any relations"),
        ("\\dp", "labs"),
        ("\\di", "patients_pkey"),
        ("\\dT", "(0 rows)"),
        ("\\dx", "plpgsql"),
        ("\\dt+", "protected table: up to 60 rows of one patients.patient_id are counted"),
        ("\\d labs", 'FOREIGN KEY (patient_id) REFERENCES patients(patient_id)'),
        ("\\d patients", '"patients_pkey" PRIMARY KEY, btree (patient_id)'),
        ("\\d+ patients", "years at entry into the cohort; clamped to 18 .. 110"),
        ("\\conninfo", "TLS"),
    ],
)  # fmt: skip
@needs("psql")
@tries("psql 15", connects="TLS", looks_around=r"`\d \dt \l \dn \du \df \dv \di \dp \dT \dx \dt+ \d TABLE \d+ TABLE`")
def test_psql_looks_around_with_its_commands(served: Served, command: str, wanted: str) -> None:
    found = psql(served, command)
    assert found.returncode == 0, found.stderr
    assert wanted in found.stdout + found.stderr
    assert "ERROR" not in found.stderr


@needs("psql")
@tries("psql 15", asks=r"`-At`, `\gdesc`", in_pieces="`FETCH_COUNT`", errors_and_notices="place, price")
def test_psql_asks_whole_and_in_pieces(served: Served) -> None:
    whole = psql(served, GROUPED, options=("-At",))
    assert [line.split("|")[0] for line in whole.stdout.splitlines()] == ["female", "male"]
    assert "NOTICE" in whole.stderr
    pieces = psql(served, GROUPED, options=("-At", "-v", "FETCH_COUNT=1"))
    assert pieces.stdout == whole.stdout
    described = subprocess.run(
        ["psql", f"host=127.0.0.1 port={served.port} dbname=nafld user=research", "-XAt"], text=True,
        capture_output=True,
        input=f"{GROUPED} \\gdesc\n", env={**os.environ, "PGPASSWORD": PASSWORD}, timeout=60, check=False,
    )  # fmt: skip
    assert described.stdout.splitlines() == ["sex|text", "n|bigint"]
    wrong = psql(served, "SELECT nope FROM patients")
    assert "LINE 1: SELECT nope FROM patients" in wrong.stderr


# --- psycopg 2 and 3 --------------------------------------------------------------------------------------------------


@tries(
    "psycopg2", connects="TLS", asks="literals, parameters", in_pieces="named cursor", COPY="text",
    errors_and_notices="SQLSTATE, place",
)  # fmt: skip
def test_psycopg2_reads_cursors_and_positions_of_errors(served: Served) -> None:
    connection = psycopg2.connect(sslmode="require", **served.place)
    cursor = connection.cursor()
    cursor.execute(GROUPED)
    rows = cursor.fetchall()
    assert [row[0] for row in rows] == ["female", "male"]
    cursor.execute("SELECT COUNT(*) FROM patients WHERE sex = %s", ("male",))
    assert cursor.fetchone()[0] > 5000
    with pytest.raises(psycopg2.errors.UndefinedColumn) as caught:
        cursor.execute("SELECT nope FROM patients")
    assert caught.value.diag.statement_position == "8"
    connection.rollback()
    named = connection.cursor("by_name")
    named.itersize = 1
    named.execute(GROUPED)
    assert list(named) == rows
    target = io.StringIO()
    cursor.copy_expert(f"COPY ({GROUPED}) TO STDOUT", target)
    assert target.getvalue() == "".join(f"{sex}\t{n}\n" for sex, n in rows)
    connection.close()


@tries(
    "psycopg 3", connects="channel binding", asks="text, binary, prepared, pipeline", in_pieces="named cursor",
    COPY="binary",
)  # fmt: skip
def test_psycopg_reads_equal_values_as_text_as_binary_and_in_pipelines(served: Served) -> None:
    with psycopg.connect(sslmode="require", channel_binding="require", **served.place) as connection:
        assert connection.info.server_version == 160014
        rows = connection.execute(GROUPED).fetchall()
        assert connection.execute(GROUPED, binary=True).fetchall() == rows
        for binary in (False, True):
            found = connection.execute(TYPES, binary=binary).fetchone()
            assert found == VALUES
        by_age = "SELECT COUNT(*) FROM patients WHERE sex = %s AND age > %s"
        counts = {
            connection.execute(by_age, ("male", 50), prepare=prepare).fetchall()[0] for prepare in (False, True, True)
        }
        assert len(counts) == 1
        with connection.cursor("c1") as named:
            named.execute(GROUPED)
            assert [*named.fetchmany(1), *named.fetchall()] == rows
        with connection.pipeline():
            first, second = connection.execute(GROUPED), connection.execute("SELECT 1")
            assert (first.fetchall(), second.fetchall()) == (rows, [(1,)])
        with connection.cursor().copy(f"COPY ({GROUPED}) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["text", "int8"])
            assert list(copy.rows()) == rows


@tries("psycopg 3", errors_and_notices="SQLSTATE, failed transaction, nested transactions, price")
def test_psycopg_gets_notices_and_states_of_transactions(served: Served) -> None:
    with psycopg.connect(**served.place) as connection:
        heard: list[str] = []
        connection.add_notice_handler(lambda notice: heard.append(notice.message_detail or ""))
        connection.execute(BY_SEX)
        assert "remaining" in heard[0]
        with pytest.raises(psycopg.errors.UndefinedTable, match='relation "nope" does not exist'):
            connection.execute("SELECT COUNT(*) FROM nope")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.rollback()
        with connection.transaction(), connection.transaction():
            assert connection.execute("SELECT 1").fetchone() == (1,)


# --- asyncpg ----------------------------------------------------------------------------------------------------------


@tries(
    "asyncpg", connects="TLS, pool", looks_around="information_schema", asks="binary, parameters, prepared, types",
    in_pieces="cursor", errors_and_notices="SQLSTATE",
)  # fmt: skip
def test_asyncpg_reads_types_and_cursors_from_a_pool(served: Served) -> None:
    place = {**served.place, "database": served.place["dbname"], "ssl": "require"}
    del place["dbname"]

    async def ask() -> None:
        async with asyncpg.create_pool(min_size=1, max_size=2, **place) as pool:
            for _ in range(2):
                async with pool.acquire() as connection:
                    rows = [tuple(row) for row in await connection.fetch(GROUPED)]
                    assert [row[0] for row in rows] == ["female", "male"]
                    by_age = "SELECT COUNT(*) FROM patients WHERE sex = $1 AND age > $2"
                    assert await connection.fetchval(by_age, "male", 50) > 3000
                    assert tuple(await connection.fetchrow(TYPES)) == VALUES
                    statement = await connection.prepare(GROUPED)
                    assert [one.name for one in statement.get_attributes()] == ["sex", "n"]
                    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY 1 DESC"
                    assert [row[0] for row in await connection.fetch(columns, "labs")] == [
                        "value", "test", "patient_id", "day",
                    ]  # fmt: skip
                    async with connection.transaction():
                        assert [tuple(row) async for row in connection.cursor(GROUPED, prefetch=1)] == rows
                    with pytest.raises(asyncpg.UndefinedColumnError):
                        await connection.fetch("SELECT nope FROM patients")

    asyncio.run(ask())


# --- SQLAlchemy and pandas --------------------------------------------------------------------------------------------


@tries(
    "SQLAlchemy 2 on psycopg2, psycopg", connects="engine", looks_around="inspector, reflection, comments",
    asks="Core, pandas",
)  # fmt: skip
@pytest.mark.parametrize("driver", ["psycopg2", "psycopg"])
def test_sqlalchemy_reflects_tables_and_asks(served: Served, driver: str) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+{driver}://{served.url}")
    seen = sqlalchemy.inspect(engine)
    assert seen.get_table_names() == ["patients", "labs", "events"]
    assert seen.get_schema_names() == ["information_schema", "public"]
    assert seen.get_pk_constraint("patients")["constrained_columns"] == ["patient_id"]
    assert [key["referred_table"] for key in seen.get_foreign_keys("labs")] == ["patients"]
    columns = {column["name"]: column for column in seen.get_columns("patients")}
    assert columns["age"]["comment"] == "years at entry into the cohort; clamped to 18 .. 110"
    assert not columns["patient_id"]["nullable"]
    assert [str(columns[name]["type"]) for name in ("age", "bmi", "sex", "died")] == [
        "BIGINT", "DOUBLE PRECISION", "TEXT", "BOOLEAN",
    ]  # fmt: skip
    text = seen.get_table_comment("labs")["text"]
    assert text is not None
    assert "up to 60 rows" in text
    assert (seen.get_indexes("patients"), seen.get_view_names(), seen.get_check_constraints("labs")) == ([], [], [])
    assert seen.has_table("labs")
    patients = sqlalchemy.Table("patients", sqlalchemy.MetaData(), autoload_with=engine)
    question = sqlalchemy.select(patients.c.sex, sqlalchemy.func.count().label("n")).where(patients.c.age > 40)
    with engine.connect() as connection:
        assert len(connection.execute(question.group_by(patients.c.sex)).fetchall()) == 2
    frame = pandas.read_sql(GROUPED, engine)
    assert list(frame.columns) == ["sex", "n"]
    assert frame["n"].sum() > 15_000
    engine.dispose()


@tries("SQLAlchemy 2 on asyncpg", connects="engine", looks_around="inspector", asks="text")
def test_sqlalchemy_over_asyncpg_reflects_and_asks(served: Served) -> None:
    engine = create_async_engine(f"postgresql+asyncpg://{served.url}")

    async def ask() -> None:
        async with engine.connect() as connection:
            assert len((await connection.execute(sqlalchemy.text(GROUPED))).fetchall()) == 2
            names = await connection.run_sync(lambda real: sqlalchemy.inspect(real).get_table_names())
            assert names == ["patients", "labs", "events"]
            keys = await connection.run_sync(lambda real: sqlalchemy.inspect(real).get_foreign_keys("labs"))
            assert keys[0]["referred_table"] == "patients"
            columns = await connection.run_sync(lambda real: sqlalchemy.inspect(real).get_columns("labs"))
            assert len(columns) == 4
        await engine.dispose()

    asyncio.run(ask())
