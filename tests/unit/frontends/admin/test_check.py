"""`dpsql check` reports all problems of a policy with their lines, and over servers the reason of a fault, as the custodian's
log does."""

import gzip
import json
import os
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.clinic_folder import process
from support.postgres_source import Server, server
from support.spark_source import needs_spark, spark

from dpsql.engine.contract import SourceTable
from dpsql.errors.exceptions import Exit
from dpsql.frontends.admin.answers import Answers
from dpsql.frontends.admin.check import Findings, check_policy_file
from dpsql.frontends.admin.policy_text import tables_for_policy, unit_of, write_starter
from dpsql.frontends.admin.wizard import ask_for_policy
from dpsql.frontends.cli import status_of
from dpsql.frontends.rendering.tables import table_comment
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session
from dpsql.testing import POLICY

__all__ = ["server", "spark"]


@pytest.fixture
def checked(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Findings]:
    """Return a function that checks the policy of the engine contract over a database with its tables, optionally with other
    entries."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    url = server.database()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("CREATE TABLE people (id bigint, height float8); CREATE TABLE wards (ward text, beds int)")
        owner.execute("CREATE TABLE visits (id int, ward text, day date, cost bigint)")

    def check(create: bool = False, **entries: object) -> Findings:
        place = tmp_path / "policy.yaml"
        place.write_text(json.dumps({**POLICY, "source": url, **entries}))
        return check_policy_file(place, create_ledger=create)

    check.url = url  # type: ignore[attr-defined]
    return check


@pytest.mark.slow
def test_init_reads_the_structure_of_a_catalog_of_spark(spark: Any, tmp_path: Path) -> None:
    """Columns and types of tables that are not temporary, from the catalog alone: their files are not there."""
    place = tmp_path / "ward.yaml"
    assert status_of(["init", "spark://local[2]", "--out", str(place)]) == 2 and not place.exists()
    columns = "person INT, cost DECIMAL(9,2), word STRING, day DATE, at TIMESTAMP, ok BOOLEAN, list ARRAY<INT>"
    spark.sql("CREATE DATABASE night")
    try:
        for name in ("people", "night.people", "night.stays"):
            folder = tmp_path / name
            folder.mkdir()
            spark.sql(f"CREATE TABLE {name} ({columns}) USING parquet LOCATION '{folder}'")
            folder.rmdir()
        spark.createDataFrame([(1,)], ["person"]).createOrReplaceTempView("passing")
        assert status_of(["init", "spark://local[2]", "--out", str(place), "--unit", "people.person"]) == 0
    finally:
        spark.sql("DROP TABLE people")
        spark.sql("DROP DATABASE night CASCADE")
    text = place.read_text()
    assert (
        text.count("schema: night") == 2
        and 'source: "night.people"' in text
        and "passing" not in text
        and 'source: "spark://local[2]"' in text
    )
    for line in (
        "person: {type: integer",
        "cost: {type: real",
        "word: {type: text",
        "day: {type: date",
    ):
        assert text.count(line) == 3, line
    assert "at: {type: timestamp" in text and "ok: {type: boolean" in text and "list" in text


def test_init_reads_the_structure_of_a_server(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keys, NOT NULL, types and schemas from the catalog; none of a ledger."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    url = server.database()
    open_ledger(url, "other", create=True).close()
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(
            "CREATE TYPE kind AS ENUM ('secret'); CREATE DOMAIN years AS int; CREATE DOMAIN money_ AS numeric(7, 3); CREATE SCHEMA other; CREATE TYPE other.pair AS (a int);"
            "CREATE TABLE people (id bigint PRIMARY KEY, age years, height float8 NOT NULL, kind kind, photo bytea, mail other.pair);"
            "CREATE TABLE visits (visit int, person bigint REFERENCES people, cost numeric(9, 2), tip money_, at timestamptz);"
            "CREATE TABLE other.dpsql_wards (ward varchar(9), beds smallint); CREATE TABLE other.people (secret text)"
        )
    Path("answers.yaml").write_text(
        "unit: people.id\ndpsql_wards: public\ndpsql_wards.key: ward\ndpsql_wards.beds: 0 to 99\npeople.age: 0 to 120\nvisits.max_rows: 9\n"
        "people: 500\nanalysts: ann 0.5\nother_people: '-'\n"
    )
    assert status_of(["init", url, "--out", "p.yaml", "--answers", "answers.yaml"]) == 0, capsys.readouterr().err
    policy = load_policy(Path("p.yaml"))
    assert policy.source == url and "secret" not in Path("p.yaml").read_text()
    types = {
        name: {column.name: column.type for column in table.columns.values()} for name, table in policy.tables.items()
    }
    assert types == {
        "people": {"id": "integer", "age": "integer", "height": "real", "kind": "text"},
        "visits": {"visit": "integer", "person": "integer", "cost": "real", "tip": "real", "at": "timestamp"},
        "dpsql_wards": {"ward": "text", "beds": "integer"},
    }
    assert policy.tables["visits"].foreign_keys == {"person": ("people", "id")}
    assert [policy.tables["visits"].columns[name].scale for name in ("cost", "tip", "at")] == [2, 3, None]
    assert not policy.tables["people"].columns["height"].nullable and policy.tables["dpsql_wards"].primary_key == (
        "ward",
    )
    assert status_of(["check", "p.yaml", "--create-ledger"]) == 0, capsys.readouterr().err
    assert status_of(["init", url, "--out", "s.yaml", "--starter", "--unit", "people.id"]) == 0
    assert "foreign_keys: {person: people.id}" in Path("s.yaml").read_text()
    assert "# mail is PAIR, which dpsql does not read" in Path("s.yaml").read_text()
    assert status_of(["init", "mysql://h/d"]) == 2
    assert status_of(["init", url.replace("//postgres:@", "//nobody:@"), "--starter"]) == 4


_YEARS = (
    "CREATE SCHEMA y23; CREATE SCHEMA y24; CREATE TABLE y23.people (id int PRIMARY KEY);"
    "CREATE TABLE y24.people (id int PRIMARY KEY); CREATE TABLE y23.stays (id int REFERENCES y23.people(id));"
    "CREATE TABLE y24.stays (id int REFERENCES y24.people(id), a int);"
    "CREATE TABLE {}.y23_people (x int); CREATE TABLE y24.alone (id int)"
)


@pytest.mark.parametrize("default", ["public", "main"])
def test_tables_of_one_name_are_those_of_their_schemas(server: Server, tmp_path: Path, default: str) -> None:
    """Every table of a database is in its new policy, with its keys, whichever reader; so are those of several ledgers not."""
    source: Path | str = server.database()
    if default == "public":
        with psycopg.connect(source, autocommit=True) as owner:
            owner.execute(_YEARS.format(default) + "; CREATE SCHEMA books; CREATE TABLE books.dpsql_heads (id int)")
            owner.execute("CREATE TABLE dpsql_heads (id int)")
    else:
        source = tmp_path / "years.duckdb"
        with duckdb.connect(str(source)) as file:
            file.execute(_YEARS.format(default))
    write_starter(source, tmp_path / "p.yaml", None)
    tables = yaml.safe_load((tmp_path / "p.yaml").read_text())["tables"]
    named = {name: (about.get("source"), *about.get("foreign_keys", {}).values()) for name, about in tables.items()}
    assert named == {
        "y23_people": (None,), "y23_people_2": ("y23.people",), "y24_people": ("y24.people",), "alone": (None,),
        "y23_stays": ("y23.stays", "y23_people_2.id"), "y24_stays": ("y24.stays", "y24_people.id"),
    }  # fmt: skip
    assert list(tables["y24_stays"]["columns"]) == ["id", "a"]
    of_owner = unit_of("y24.people.id", tables_for_policy(source, tmp_path / "new.yaml"))
    assert (
        of_owner == ("y24_people", "id") == unit_of("y24_people.id", tables_for_policy(source, tmp_path / "new.yaml"))
    )


@pytest.mark.parametrize(
    ("address", "written"),
    [
        ("postgresql://ann:open-sesame@h:5/db", "postgresql://ann@h:5/db"),
        ("postgresql://ann:p@ss@h/db?sslmode=require", "postgresql://ann@h/db?sslmode=require"),
        ("postgresql://ann@h/db?password=open-sesame&sslmode=require", "postgresql://ann@h/db?sslmode=require"),
        ("postgresql://h/db?sslmode=require&password=x", "postgresql://h/db?sslmode=require"),
        ("postgresql://h/db?password=x", "postgresql://h/db"),
        ("postgresql:///db?host=/run/a:b@c", "postgresql:///db?host=/run/a:b@c"),
    ],
)
def test_init_writes_no_password_into_the_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, written: str
) -> None:
    structure = {"people": SourceTable({"age": "INTEGER"})}
    monkeypatch.setattr("dpsql.frontends.admin.policy_text.structure_of", lambda source: structure)
    write_starter(address, tmp_path / "p.yaml", "row")
    policy = (tmp_path / "p.yaml").read_text()
    assert yaml.safe_load(policy)["source"] == written and "open-sesame" not in policy


def test_the_reason_of_a_refused_connection_is_in_the_report(checked: Callable[..., Findings]) -> None:
    url: str = checked.url  # type: ignore[attr-defined]
    for wrong, reason in (
        (url.replace("//postgres:@", "//nobody:open-sesame@"), 'role "nobody" does not exist'),
        (url.replace(f"/{url.split('?', maxsplit=1)[0].rsplit('/', 1)[1]}?", "/no_such_data?"), 'database "no_such_data" does not exist'),
        (f"{url}&sslmod=verify-full", 'invalid URI query parameter: "sslmod"'),
    ):  # fmt: skip
        (problem,) = checked(source=wrong).problems
        assert problem.startswith("the server that holds the data could not be reached") and reason in problem
        assert "open-sesame" not in problem
    assert checked().problems == []


def test_the_state_of_a_ledger_on_a_server_is_told(server: Server, checked: Callable[..., Findings]) -> None:
    """A missing database; a role that may read but not write; a role that may not use the schema, for which the ledger is not
    missing."""
    database = server.database().split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    server.admin.execute("DROP ROLE IF EXISTS bookkeeper; CREATE ROLE bookkeeper LOGIN")
    book, owned = server.url_of(database, "bookkeeper"), server.url_of(database)
    nowhere = checked(ledger=book.replace(database, "no_such_book"))
    assert len(nowhere.problems) == 1 and 'database "no_such_book" does not exist' in nowhere.problems[0]
    with psycopg.connect(owned, autocommit=True) as owner:
        refused = checked(create=True, ledger=book)
        assert (
            "permission denied for schema public" in refused.problems[0] and "cannot be written" in refused.problems[0]
        )
        owner.execute("GRANT ALL ON SCHEMA public TO bookkeeper")
        assert checked(create=True, ledger=book).notes[-1] == "ledger: holds, 2 entries"
        for table in ("dpsql_format", "dpsql_entries", "dpsql_accounts"):
            owner.execute(f"ALTER TABLE {table} OWNER TO postgres; GRANT SELECT ON {table} TO bookkeeper")
        reading = checked(ledger=book)
        assert reading.problems == [] and any("no question can be charged" in note for note in reading.notes)
        for table in ("dpsql_entries", "dpsql_accounts"):
            owner.execute(f"GRANT INSERT, UPDATE ON {table} TO bookkeeper")
        assert not any("can be charged" in note for note in checked(ledger=book).notes)
        owner.execute("REVOKE ALL ON SCHEMA public FROM bookkeeper, PUBLIC")
        (hidden,) = checked(ledger=book).problems
        assert hidden.startswith("the ledger cannot be written") and "gone" not in hidden
    server.admin.execute(f"DROP DATABASE {database} (FORCE)")
    server.admin.execute("DROP ROLE bookkeeper")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a script stands for Java")
def test_what_java_said_is_in_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_spark()
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'UnsupportedClassVersionError: a JDK of long ago' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    tables = {name: {**table, "source": f"{name}.parquet"} for name, table in POLICY["tables"].items()}
    place = tmp_path / "policy.yaml"
    place.write_text(json.dumps({**POLICY, "source": "spark://local[1]", "tables": tables}))
    checking = process("check", str(place))
    said = checking.communicate(timeout=300)[1]
    assert checking.returncode == 4
    assert said.startswith("Spark could not be started") and "UnsupportedClassVersionError: a JDK of long ago" in said


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes are files of POSIX systems")
@pytest.mark.parametrize("source", ["visits.csv", "visits.csv.gz", "visits*.csv", "visits.parquet", "visits*.parquet"])
def test_a_named_pipe_is_refused_instead_of_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    os.mkfifo(tmp_path / source.replace("*", "-1"))
    (tmp_path / "pipe.yaml").write_text(
        f"dataset: pipe\nsource: '{source}'\nprivacy_unit: row\nbudget: {{epsilon: 1, delta: 1e-6}}\n"
        "ledger: sqlite:///ledger.db\ntables: {visits: {columns: {day: {type: date}}}}\n"
    )
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    for command, words in (
        (("check", "pipe.yaml", "--create-ledger"), "is not a regular file"),
        (("query", "-p", "pipe.yaml", "SELECT count(*) FROM visits"), "the files of table visits cannot be read"),
        (("init", source, "--unit", "row"), "it is not a regular file"),
    ):
        run = process(*command, cwd=tmp_path)
        try:
            said = "".join(run.communicate(timeout=60))
        finally:
            run.kill()
        assert run.returncode != 0 and words in said, said


def _people(folder: Path, source: str, **csv: object) -> Path:
    """Write a policy over the files of people at `source`, and return its place."""
    columns = {
        "id": {"type": "text"}, "age": {"type": "integer", "lower": 0, "upper": 100}, "born": {"type": "date"},
        "salary": {"type": "real", "lower": 0, "upper": 1e6},
    }  # fmt: skip
    table = {
        "source": source,
        "max_rows": 1,
        "primary_key": ["id"],
        "columns": columns,
        **({"csv": csv} if csv else {}),
    }
    place = folder / "policy.yaml"
    place.write_text(
        json.dumps({
            "dataset": "people", "privacy_unit": {"table": "people", "column": "id"}, "ledger": "sqlite:///people.db",
            "budget": {"epsilon": 9, "delta": 1e-6, "accountant": "pure"}, "per_query": {"epsilon": 1}, "tables": {"people": table},
        })
    )  # fmt: skip
    return place


HEADER = "id,age,salary,born\n"


def _csv(line: str = "p{0},{1},10.5,2000-01-02\n", rows: int = 20) -> str:
    return HEADER + "".join(line.format(number, 20 + number) for number in range(rows))


GOOD = _csv()
LOST = "cells that cannot be read as {} and count as NULL: 20 of 20 in {{}}/p.csv"
UNREADABLE = "cannot read the header of {{}}/{}, a file of people: {}"
BROKEN: dict[str, tuple[dict[str, str | bytes], Exit, str]] = {
    "a comma between thousands": ({"p.csv": _csv('p{0},{1},"1,234",2000-01-02\n')}, Exit.REFUSAL, f"people.salary has {LOST.format('real')}"),
    "a decimal comma": ({"p.csv": _csv('p{0},{1},"80000,25",2000-01-02\n')}, Exit.REFUSAL, f"people.salary has {LOST.format('real')} (numbers are read as 1234.5, or as 1.234,5 below csv: {{decimal: ','}}; texts that stand for no value: csv: {{null: ['', NA]}})"),
    "a unit beside each number": ({"p.csv": _csv("p{0},{1} years,1.5,2000-01-02\n")}, Exit.REFUSAL, f"people.age has {LOST.format('integer')}"),
    "a currency before each number": ({"p.csv": _csv("p{0},{1},$10.5,2000-01-02\n")}, Exit.REFUSAL, f"people.salary has {LOST.format('real')}"),
    "days as Germans write them": ({"p.csv": _csv("p{0},{1},1.5,05.01.2024\n")}, Exit.REFUSAL, f"people.born has {LOST.format('date')} (days are read as 2024-01-31, or as 31.1.2024 below csv: {{days: dmy}}"),
    "days as Americans write them": ({"p.csv": _csv("p{0},{1},1.5,05/01/2024\n")}, Exit.REFUSAL, f"people.born has {LOST.format('date')}"),
    "years of two digits": ({"p.csv": _csv("p{0},{1},1.5,24-01-02\n")}, Exit.REFUSAL, f"people.born has {LOST.format('date')}"),
    "days, months, years": ({"p.csv": _csv("p{0},{1},1.5,1/2/24\n")}, Exit.REFUSAL, f"people.born has {LOST.format('date')}"),
    "NaN in each row": ({"p.csv": _csv("p{0},{1},nan,2000-01-02\n")}, Exit.REFUSAL, f"people.salary has {LOST.format('real')}"),
    "no key in any row": ({"p.csv": _csv(",{1},1.5,2000-01-02\n")}, Exit.REFUSAL, "people has rows that belong to no people.id and are in no answer: 20 of 20"),
    "carriage returns from the fourth line on": ({"p.csv": GOOD[:99] + GOOD[99:].replace("\n", "\r")}, Exit.REFUSAL, "people has carriage returns that end no line (after a first line feed, only line feeds end lines): 16 in {}/p.csv"),
    "a damaged end": ({"p.csv.gz": gzip.compress(GOOD.encode())[:-9]}, Exit.FAULT, "Compressed file ended before"),
    "no file": ({}, Exit.FAULT, "table people of the policy is not in the source (its source: {}/*.csv)"),
    "a header twice": ({"p.csv": GOOD.replace("salary", "age", 1)}, Exit.FAULT, "column people.salary of the policy is not in the source"),
    "NUL in each row": ({"p.csv": _csv("p{0},{1}\0,1.5,2000-01-02\n")}, Exit.REFUSAL, "such cells count as NULL: 20 in {}/p.csv"),
    "NA in each row": ({"p.csv": _csv("p{0},NA,1.5,2000-01-02\n")}, Exit.REFUSAL, f"people.age has {LOST.format('integer')}"),
    "numbers beyond integers": ({"p.csv": _csv("p{0},99999999999999999999,1.5,2000-01-02\n")}, Exit.REFUSAL, f"people.age has {LOST.format('integer')}"),
    "one of many files": ({"a.csv": GOOD, "b.csv": _csv("p{0},NA,1.5,2000-01-02\n", 3), "c.csv": GOOD}, Exit.REFUSAL, "count as NULL: 3 of 3 in {}/b.csv"),
    "a comma too many": ({"p.csv": _csv("p{0},{1},1,5,2000-01-02\n")}, Exit.REFUSAL, "people has lines with more or fewer cells than the header, which are dropped: 20 in {}/p.csv"),
    "quotes that stay open": ({"p.csv": _csv('"p{0},{1},1.5,2000-01-02\n')}, Exit.REFUSAL, "which are dropped: 20 in {}/p.csv"),
    "line breaks in cells": ({"p.csv": _csv('"p{0}\nx",{1},1.5,2000-01-02\n')}, Exit.REFUSAL, "(if cells hold line breaks: csv: {multiline: true}): 20 in {}/p.csv"),
    "names in Latin-1": ({"p.csv": _csv("p\xf6{0},{1},1.5,2000-01-02\n").encode("latin-1")}, Exit.REFUSAL, "no UTF-8 text (if it is Windows-1252: csv: {encoding: windows-1252}); such cells count as NULL: 20 in {}/p.csv"),
    "another delimiter": ({"p.csv": GOOD.replace(",", ";")}, Exit.FAULT, "the header line of people is one cell: if another character than ',' parts its cells"),
    "carriage returns alone": ({"p.csv": GOOD.replace("\n", "\r")}, Exit.FAULT, UNREADABLE.format("p.csv", "its lines end with carriage returns alone")),
    "gzip without its ending": ({"p.csv": gzip.compress(GOOD.encode())}, Exit.FAULT, UNREADABLE.format("p.csv", "it is compressed by gzip: give it a name that ends in .csv.gz")),
    "UTF-16": ({"p.csv": GOOD.encode("utf-16")}, Exit.FAULT, UNREADABLE.format("p.csv", "it is no UTF-8 text: UTF-16")),
    "UTF-16 without a mark": ({"p.csv": GOOD.encode("utf-16-be")}, Exit.FAULT, UNREADABLE.format("p.csv", "it is no UTF-8 text: UTF-16")),
    "a file of macOS beside each": ({"p.csv": GOOD, "._p.csv": b"\0\5\x16\7" + bytes(80)}, Exit.FAULT, UNREADABLE.format("._p.csv", "it is no UTF-8 text")),
    "an empty file": ({"a.csv": GOOD, "b.csv": ""}, Exit.FAULT, UNREADABLE.format("b.csv", "there is no header line")),
    "brackets in a name": ({"p[2024].csv": GOOD}, Exit.FAULT, "write {}/p[[]2024].csv"),
    "a Parquet file without its end": ({"p.parquet": b"PAR1" + bytes(90)}, Exit.FAULT, "No magic bytes found at end of file '{}/p.parquet'"),
    "a Parquet file of nothing": ({"p.parquet": b""}, Exit.FAULT, "cannot read the files of people: "),
    "tabs and their ending": ({"p.tsv": GOOD.replace(",", "\t")}, Exit.REFUSAL, "name others, such as .tsv and .txt, so"),
    "texts and their ending": ({"p.txt": GOOD}, Exit.REFUSAL, "name others, such as .tsv and .txt, so"),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    files, status, words = BROKEN[fault]
    folder = tmp_path / "files"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    source = str(folder / next(iter(files))) if len(files) == 1 else f"{folder}/*.csv"
    findings = check_policy_file(_people(tmp_path, source))
    assert findings.status is status
    assert words.replace("{}", str(folder)) in "\n".join(findings.problems)


@pytest.mark.parametrize(("line", "joined"), [('"p{0}\nx",{1},1.5,2000-01-02\n', 20), ("p{0},{1},1.5,2000-01-02\n", 0),
                                              ('"p{0},{1},1.5,2000-01-02\n', 10), ('p{0},{1},"1.5\n\n",2000-01-02\n', 40)])  # fmt: skip
def test_lines_that_quotes_join_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, joined: int
) -> None:
    """Where a quote is stray, rows of others are in its cell, and nothing else says that they are lost."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    (tmp_path / "p.csv").write_text(_csv(line))
    findings = check_policy_file(_people(tmp_path, str(tmp_path / "p.csv"), multiline=True))
    said = [
        sentence for sentence in findings.problems + findings.notes if "lines that continue a quoted cell" in sentence
    ]
    assert [sentence.rpartition(": ")[2].partition(" ")[0] for sentence in said] == [str(joined)] * (joined > 0)


@pytest.mark.parametrize("is_set", [False, True])
def test_what_a_policy_has_is_not_proposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_set: bool) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    (tmp_path / "p.csv").write_bytes(_csv("p{0}\xff,{1},1.5,2000-01-02\n").encode("latin-1") + b'"p,1,1,\xff\n')
    csv = {"multiline": True, "encoding": "utf-16"} if is_set else {"delimiter": ","}
    if is_set:
        text = (tmp_path / "p.csv").read_bytes().decode("latin-1").replace("\xff", "\ud800")
        (tmp_path / "p.csv").write_bytes(text.encode("utf-16", "surrogatepass"))
    findings = check_policy_file(_people(tmp_path, str(tmp_path / "p.csv"), **csv))
    said = "\n".join(findings.problems + findings.notes)
    assert "a quote that is never closed" in said and "bytes that are no UTF-8 text" in said, said
    assert ("csv: {multiline" in said, "csv: {encoding" in said) == (not is_set, not is_set), said


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"type": "date"', '"type": "date", "from": "2000-01-02"', "columns with the names 2000-01-02: if the first line"),
        ('"tables"', '"analysts": {"ann": {"epsilon": 2, "people": {"b": {"epsilon": 3}}}}, "tables"', "epsilon 3, but the login only 2,"),
        ('"type": "date"', '"type": "timestamp", "lower": "2024-01-01", "upper": "2025-12-31"', "later times of it are out of bounds; say 2025-12-31 23:59:59 if"),
    ],
)  # fmt: skip
def test_what_a_policy_may_not_mean_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    place = _people(tmp_path, str(tmp_path / "p.csv"))
    (tmp_path / "p.csv").write_text(GOOD.replace("born", "2000-01-02") if "from" in new else GOOD)
    assert words not in " ".join(check_policy_file(place).notes)
    place.write_text(place.read_text().replace(old, new))
    assert words in " ".join(check_policy_file(place).notes)


def test_cells_of_another_kind_in_one_of_many_parquet_files_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    columns = {"id": ["a", "b"], "salary": [1.5, 2.5], "born": [date(2000, 1, 2)] * 2}
    pq.write_table(pa.table({**columns, "age": [30, 40]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({**columns, "age": ["x", "3,5"]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({**columns, "age": [30, 40], "born": [True, False]}), tmp_path / "c.parquet")
    pq.write_table(pa.table({**columns, "age": pa.array([2**63, 2**64 - 1], pa.uint64())}), tmp_path / "d.parquet")
    late, endless = pa.array([2**62] * 2, pa.timestamp("us")), [float("inf"), float("-inf")]
    pq.write_table(pa.table({**columns, "age": endless, "born": late}), tmp_path / "e.parquet")
    nothing = pa.table({**columns, "age": [float("nan")] * 2, "salary": [float("nan")] * 2})
    pq.write_table(nothing, tmp_path / "f.parquet")
    findings = check_policy_file(_people(tmp_path, f"{tmp_path}/*.parquet"))
    assert findings.status is Exit.REFUSAL
    lost = [f"{column} has cells that cannot be read" for column in ("people.age", "people.born")]
    assert [problem[: len(words)] for problem, words in zip(findings.problems, lost, strict=True)] == lost
    assert [problem.partition("NULL: ")[2] for problem in findings.problems] == [
        ", ".join(f"2 of 2 in {tmp_path}/{name}.parquet" for name in names) for names in ("bde", "ce")
    ]
    assert f"note: people.age and salary has no filled cell: in {tmp_path}/f.parquet" in findings.notes
    damaged = tmp_path / "f.parquet"
    pq.write_table(
        nothing.set_column(2, "born", pa.array([10**12] * 2, pa.timestamp("ms"))), damaged
    )  # pyarrow reads it
    page = pq.read_metadata(damaged).row_group(0).column(3)
    end = (page.dictionary_page_offset or page.data_page_offset) + page.total_compressed_size
    content = damaged.read_bytes()
    damaged.write_bytes(content[: end - 6] + b"\xf3" * 6 + content[end:])
    told = " ".join(check_policy_file(_people(tmp_path, f"{tmp_path}/*.parquet"), scan=True).problems)
    assert "people.age cannot be read" in told and "incident" in told and "Traceback" not in told


def test_what_check_counts_reaches_no_analyst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A cell that cannot be read changes neither EXPLAIN nor a log."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    place, seen = _people(tmp_path, str(tmp_path / "p.csv")), set()
    for cell in ("33", "NA"):
        (tmp_path / "p.csv").write_text(f"{GOOD}p90,{cell},1.5,2000-01-02\n")
        with open_session(place, create_ledger=not seen) as session:
            seen.add((str(session.explain("SELECT COUNT(age) AS n FROM people")), caplog.text))
    assert len(seen) == 1


UNPROTECTED = "people named by dst are not protected in rows of calls, however many of these name them (unprotected)"


def _calls(folder: Path, source: str, **calls: object) -> Path:
    """Write a policy over people and their calls, and return its place."""
    number: dict[str, object] = {"type": "integer"}
    people = {"max_rows": 1, "primary_key": ["id"], "columns": {"id": number, "mother": number}, "unprotected": []}
    keys = {"foreign_keys": {"src": "people.id"}, "max_rows": 9}
    keys["columns"] = dict.fromkeys(("src", "dst", "grade"), number)
    place = folder / "policy.yaml"
    place.write_text(
        json.dumps({
            "dataset": "calls", "source": source, "privacy_unit": {"table": "people", "column": "id"},
            "ledger": "sqlite:///calls.db", "budget": {"epsilon": 90, "delta": 1e-6}, "per_query": {"epsilon": 1},
            "tables": {"people": people, "calls": {**keys, **calls}},
        })
    )  # fmt: skip
    return place


@pytest.mark.parametrize("keyed", [True, False], ids=["foreign keys in the source", "values alone"])
@pytest.mark.parametrize("where", ["duckdb", "postgresql"])
def test_columns_that_name_further_people_are_declared_and_every_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str], where: str, keyed: bool
) -> None:  # fmt: skip
    """Whoever is called is in any number of rows: `check` asks for a declaration, which changes no charge and no stored answer."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    refers = " REFERENCES people" if keyed else ""
    texts = (
        "CREATE TABLE people (id int PRIMARY KEY, mother int)", f"CREATE TABLE calls (src int{refers}, dst int{refers}, grade int)",
        "INSERT INTO people SELECT i, NULL FROM generate_series(0, 40) AS t(i)",
        "INSERT INTO calls SELECT i, (i * 7) % 41, i % 6 FROM generate_series(0, 40) AS t(i)",
    )  # fmt: skip
    if where == "postgresql":
        source = request.getfixturevalue("server").database()
        with psycopg.connect(source, autocommit=True) as owner:
            for text in texts:
                owner.execute(text)
    else:
        source = "duckdb:///calls.duckdb"
        with duckdb.connect(str(tmp_path / "calls.duckdb")) as connection:
            for text in texts:
                connection.execute(text)
    silent = check_policy_file(_calls(tmp_path, source), create_ledger=True, scan=True)
    way_out = "say `unprotected: [dst]` below calls"
    assert silent.status is (Exit.REFUSAL if keyed else Exit.DONE)
    assert [way_out in problem for problem in silent.problems] == ([True] if keyed else [])
    assert sum(way_out in note for note in silent.notes) == (not keyed)
    assert not any("calls.grade" in note for note in silent.notes)
    question = "SELECT COUNT(*) AS n FROM calls"
    with open_session(tmp_path / "policy.yaml") as session:
        first = session.execute(question)
    assert UNPROTECTED not in first.notices
    both = {"src": "people.id", "dst": "people.id"}
    place = _calls(tmp_path, source, foreign_keys=both, unprotected=["dst"])
    said = check_policy_file(place)
    assert (
        said.status is Exit.DONE and f"note: {UNPROTECTED}" in said.notes and not any(way_out in n for n in said.notes)
    )
    with open_session(place) as session:
        again = session.execute(question)
        assert UNPROTECTED in again.notices and UNPROTECTED in session.explain(question).notes
        assert where == "postgresql" or [*again.rows()] == [*first.rows()]
        assert any("not protected" in str(row) for row in session.execute("DESCRIBE calls").rows())
        assert UNPROTECTED in table_comment(session.policy, session.policy.tables["calls"])
    (tmp_path / "q.sql").write_text(question)
    monkeypatch.chdir(tmp_path)
    capfd.readouterr()
    for command in (["budget", "show"], ["risk", "calls", "--columns", "src"]):
        assert status_of([*command, "-p", "policy.yaml"]) == 0 and UNPROTECTED in capfd.readouterr().err
    assert status_of(["run", "q.sql", "--out", "o", "--report", "r.html", "-p", "policy.yaml"]) == 0
    assert UNPROTECTED in (tmp_path / "r.html").read_text()
    assert check_policy_file(_calls(tmp_path, source, unprotected=[])).status is Exit.DONE


def test_init_asks_whose_row_it_is(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "calls.duckdb")) as connection:
        connection.execute("CREATE TABLE people (id int PRIMARY KEY, mother int REFERENCES people)")
        connection.execute("CREATE TABLE calls (src int REFERENCES people, dst int REFERENCES people)")
    given = {
        "unit": "people.id", "calls": "protected", "calls.person": "dst", "calls.max_rows": "9", "people": "500",
    }  # fmt: skip
    place = tmp_path / "new.yaml"
    ask_for_policy(tmp_path / "calls.duckdb", place, Answers(given, "given", lambda text: None))
    tables = load_policy(place).tables
    assert {name: table.unprotected for name, table in tables.items()} == {"people": ("mother",), "calls": ("src",)}
    assert list(tables["calls"].foreign_keys) == ["dst"]
