"""The store of a ledger in a SQLite file: writes are whole or absent, failures are faults, and no missing file is recreated."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from dpsql.errors.exceptions import Error
from dpsql.ledger.database import parse_location
from dpsql.ledger.store import Store

INSERT = "INSERT INTO numbers VALUES (:n)"
ALL = "SELECT n FROM numbers ORDER BY n"
FULL, NORMAL = 2, 1


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE numbers (n INTEGER PRIMARY KEY)")
    connection.close()
    return path


@pytest.fixture
def steps() -> list[str]:
    return []


@pytest.fixture
def store(file: Path, steps: list[str]) -> Iterator[Store]:
    opened = Store(parse_location(f"sqlite:///{file}"), 5.0, steps.append)
    yield opened
    opened.close()


def numbers_in(file: Path) -> list[int]:
    """Return the numbers that another process reads."""
    connection = sqlite3.connect(file)
    try:
        return [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
    finally:
        connection.close()


def pragma(store: Store, name: str) -> Any:
    """Return the setting of the store's open connection."""
    assert store._connection is not None
    return store._connection.value(f"PRAGMA {name}")


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("login", ["", "ann@", "a%40b:s%3Acret/@", ":@"])
@pytest.mark.parametrize("host", ["", "host", "[::1]", "host:5433", ":5433", "db.example.org:05433"])
@pytest.mark.parametrize(
    "rest", ["", "/", "/db", "/a%20b?sslmode=require&connect_timeout=3", "?host=/run/x", "/db?host=a:1&host=b:2"]
)
def test_servers_are_those_that_sqlalchemy_names(login: str, host: str, rest: str) -> None:
    """Addresses of ledgers were recorded by it."""
    text = f"postgresql+psycopg://{login}{host}{rest}"
    url, place = sqlalchemy.make_url(text), parse_location(text)
    without = sqlalchemy.URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    assert place.address == without.render_as_string()
    options = PGDialect_psycopg().create_connect_args(url)[1]
    assert place.options == {name: str(value) for name, value in options.items()}


@pytest.mark.parametrize(
    "text",
    [
        "", "postgresql://host:port/db", "ledger.db", "mysql://host/db", "sqlite://", "sqlite:///:memory:",
        "sqlite:///a.db?mode=ro", "duckdb:///a.db",
    ],
)  # fmt: skip
def test_other_places_are_refused(text: str) -> None:
    with pytest.raises(Error) as error:
        parse_location(text)
    assert error.value.slug == "ledger_url"


# --- transactions -----------------------------------------------------------------------------------------------------


def test_what_must_be_durable_is_flushed_and_other_writes_are_not(store: Store) -> None:
    for durable, synchronous in ((True, FULL), (False, NORMAL), (True, FULL)):
        with store.writing(durable=durable):
            assert pragma(store, "synchronous") == synchronous
    store.write(INSERT, n=1)
    assert pragma(store, "synchronous") == NORMAL


def test_a_connection_writes_ahead_flushes_fully_and_trusts_no_schema(store: Store) -> None:
    with store.reading():
        settings = {name: pragma(store, name) for name in ("journal_mode", "fullfsync", "checkpoint_fullfsync")}
        assert settings == {"journal_mode": "wal", "fullfsync": 1, "checkpoint_fullfsync": 1}
        assert pragma(store, "trusted_schema") == 0 and pragma(store, "busy_timeout") == 5000


def test_a_process_that_stops_before_the_commit_has_written_nothing(file: Path) -> None:
    def stop(step: str) -> None:
        if step == "before commit":
            raise KeyboardInterrupt

    stopping = Store(parse_location(f"sqlite:///{file}"), step=stop)
    with pytest.raises(KeyboardInterrupt), stopping.writing() as connection:
        connection.run(INSERT, n=1)
    with pytest.raises(KeyboardInterrupt):
        stopping.write(INSERT, n=1)
    assert numbers_in(file) == []


def test_a_reader_sees_one_state_and_writes_nothing(store: Store, file: Path) -> None:
    store.write(INSERT, n=1)
    with store.reading() as connection:
        assert connection.rows(ALL) == [(1,)]
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("INSERT INTO numbers VALUES (2)")
        other.close()
        assert connection.rows(ALL) == [(1,)]
    assert numbers_in(file) == [1, 2] and store.rows(ALL) == [(1,), (2,)]


def test_a_second_writer_waits_no_longer_than_the_timeout(store: Store, file: Path) -> None:
    impatient = Store(parse_location(f"sqlite:///{file}"), 0.05, name="the second store")
    with store.writing() as connection:
        connection.run(INSERT, n=1)
        with pytest.raises(Error) as error, impatient.writing():
            pass
    assert error.value.slug == "ledger_locked" and not error.value.charged
    assert "the second store" in error.value.message and "0.05" in error.value.message
    impatient.write(INSERT, n=2)
    assert numbers_in(file) == [1, 2]
    impatient.close()


def test_a_thread_waits_no_longer_than_the_timeout_for_another(store: Store) -> None:
    store.timeout_seconds = 0.05
    entered, done = threading.Event(), threading.Event()

    def hold() -> None:
        with store.alone():
            entered.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(30)
    with pytest.raises(Error) as error:
        store.rows(ALL)
    done.set()
    thread.join()
    assert error.value.slug == "ledger_locked"
    assert store.rows(ALL) == []


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_not_there_is_a_fault_and_stays_absent(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "gone.db"
    with pytest.raises(Error) as error:
        Store(parse_location(f"sqlite:///{path}"), read_only=read_only).table_names()
    assert error.value.slug == "ledger_read_only" and not path.exists()


def test_a_statement_over_a_table_that_is_gone_is_a_fault(store: Store, file: Path) -> None:
    assert store.table_names() == {"numbers"} and store.may_charge()
    connection = sqlite3.connect(file)
    connection.execute("DROP TABLE numbers")
    connection.close()
    with pytest.raises(Error) as error:
        store.rows(ALL)
    assert error.value.slug == "ledger_damaged"
    assert store.table_names() == set()


def reader_of(file: Path) -> sqlite3.Connection:
    """Return a transaction that reads a file without a log, so that no one can add one to it."""
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN")
    connection.execute("SELECT * FROM numbers").fetchall()
    return connection


def test_a_new_file_that_others_read_for_long_is_locked(file: Path) -> None:
    impatient = Store(parse_location(f"sqlite:///{file}"), 0.05)
    reader = reader_of(file)
    with pytest.raises(Error) as error:
        impatient.table_names()
    reader.close()
    assert error.value.slug == "ledger_locked"
    assert impatient.table_names() == {"numbers"}
    impatient.close()


def test_a_read_only_file_is_read_with_its_log_and_nothing_is_written_beside_it(store: Store, file: Path) -> None:
    """The last commits are only in the log until it is copied into the file."""
    store.write(INSERT, n=1)
    beside = sorted(os.listdir(file.parent))
    assert file.with_name("ledger.db-wal").stat().st_size > 0
    reader = Store(parse_location(f"sqlite:///{file}"), read_only=True)
    assert reader.rows(ALL) == [(1,)]
    reader.write(INSERT, n=2)
    assert numbers_in(file) == [1] and sorted(os.listdir(file.parent)) == beside
    reader.close()


def test_a_child_process_connects_anew_and_the_parent_goes_on(store: Store, file: Path) -> None:
    store.write(INSERT, n=1)
    child = os.fork()
    if not child:
        code = 1
        try:
            store.write(INSERT, n=2)
            code = 0 if store._process == os.getpid() else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    store.write(INSERT, n=3)
    assert numbers_in(file) == [1, 2, 3]


def test_a_connection_that_a_fork_outside_python_carried_over_is_not_used(store: Store) -> None:
    store.write(INSERT, n=1)
    carried = store._connection
    store._process = -1
    assert store.rows(ALL) == [(1,)]
    assert store._process == os.getpid() and store._connection is not carried
    assert carried is not None and carried.rows(ALL) == [(1,)]
