"""`dpsql check` over servers gives the owner the reason of a fault in its report, as the custodian's log does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from support.clinic_folder import process
from support.engine_contract import POLICY
from support.postgres_source import Server, server
from support.spark_source import needs_spark

from dpsql.frontends.admin.check import Findings, check_policy_file

__all__ = ["server"]


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


def test_a_table_is_missed_where_the_policy_says_that_it_is(checked: Callable[..., Findings]) -> None:
    visits = {**POLICY["tables"]["visits"], "source": "clinic.visits"}
    tables = {**POLICY["tables"], "visits": visits}
    assert checked(tables=tables).problems == [
        "table visits of the policy is not in the source (its source: clinic.visits)"
    ]


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
