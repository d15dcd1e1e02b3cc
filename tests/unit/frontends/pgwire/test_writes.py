"""Statements that write or maintain tables are refused in the words that PostgreSQL has for a role which may only read."""

import psycopg
import pytest
from support.served_clinic import Served

from dpsql.frontends.pgwire import writes as w


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("WITH w AS ( SELECT 1 ) INSERT INTO t SELECT * FROM w", "INSERT"),
        ("WITH w AS ( SELECT 1 ) , v AS ( SELECT 2 ) DELETE FROM t", "DELETE"),
        ("WITH w AS ( DELETE FROM t RETURNING * ) SELECT * FROM w", "SELECT"),
        ("WITH w AS ( SELECT ( 1 ) AS update ) SELECT * FROM w", ""),
        ("WITH w AS ( SELECT delete FROM t ) SELECT * FROM w", ""),
    ],
)
def test_with_is_a_write_only_where_a_write_stands(sql: str, word: str) -> None:
    assert w.change_in_with(sql.split()) == word


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("TABLE a , ONLY b . c NOWAIT", ("ACCESS EXCLUSIVE", ("a", "b.c"))),
        ("a IN SHARE UPDATE EXCLUSIVE MODE", ("SHARE UPDATE EXCLUSIVE", ("a",))),
        ("a IN NOSUCH MODE", 2),
        ("a IN SHARE", 3),
        ("a b", 1),
        ("1", 0),
    ],
)
def test_locks_have_a_mode_and_tables(sql: str, read: object) -> None:
    assert w.locked(sql.split()) == read


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("( ANALYZE , VERBOSE ) a ( x , y ) , b . c", ("a", "b.c")),
        ("FULL FREEZE VERBOSE a", ("a",)),
        ("a USING i", ("a",)),
        ("", ()),
        ("a b", 1),
    ],
)
def test_tables_stand_between_options_and_columns(sql: str, names: object) -> None:
    assert w.maintained(sql.split()) == names


@pytest.mark.parametrize(
    ("sql", "state", "words"),
    [
        ("CHECKPOINT", "42501", "permission denied to execute CHECKPOINT command"),
        ("LOAD 'x'", "42501", 'access to library "x" is not allowed'),
        ("DO $$ BEGIN END $$", "42501", "permission denied for language plpgsql"),
        ("ALTER SYSTEM SET work_mem = 1", "42501", 'permission denied to set parameter "work_mem"'),
        ("ALTER SYSTEM RESET ALL", "42501", "permission denied to perform ALTER SYSTEM RESET ALL"),
        ("REINDEX TABLE patients", "42501", "must be owner of table patients"),
        ("REINDEX TABLE nosuch", "42P01", 'relation "nosuch" does not exist'),
        ("CLUSTER patients", "42501", "must be owner of table patients"),
        ("VACUUM nosuch", "42P01", 'relation "nosuch" does not exist'),
        ("BEGIN; VACUUM", "25001", "VACUUM cannot run inside a transaction block"),
        ("INSERT INTO nosuch VALUES (1)", "42P01", 'relation "nosuch" does not exist'),
        ("INSERT INTO", "25006", "cannot execute INSERT in a read-only transaction"),
        ("UPDATE ONLY other.nosuch SET a = 1", "42P01", 'relation "other.nosuch" does not exist'),
        ('DELETE FROM public . "patients"', "25006", "cannot execute DELETE in a read-only transaction"),
        ("LOCK patients", "25P01", "LOCK TABLE can only be used in transaction blocks"),
        ("BEGIN; LOCK patients", "42501", "permission denied for table patients"),
        ("LOCK patients IN NOSUCH MODE", "42601", 'syntax error at or near "NOSUCH"'),
        ("CALL nosuch(1, 'a')", "42883", "procedure nosuch(integer, unknown) does not exist"),
        ("PRAGMA x", "42601", 'syntax error at or near "PRAGMA"'),
        ("BEGIN; SELECT 1/0; DELETE FROM patients", "22012", "division by zero"),
        ("PREPARE w AS DELETE FROM patients WHERE patient_id = $1; EXECUTE w(1)", "25006",
         "cannot execute DELETE in a read-only transaction"),
        ("PREPARE w AS CREATE TABLE x (a int)", "42601", 'syntax error at or near "CREATE"'),
        ("DECLARE c CURSOR FOR DELETE FROM patients", "42601", 'syntax error at or near "DELETE"'),
        ("EXPLAIN ANALYZE DELETE FROM patients", "25006", "cannot execute DELETE in a read-only transaction"),
        ("SELECT count(*) FROM patients WHERE", "42601", "syntax error at end of input"),
    ],
)  # fmt: skip
def test_words_are_those_of_postgresql(served: Served, sql: str, state: str, words: str) -> None:
    with psycopg.connect(**served.place) as connection, pytest.raises(psycopg.Error) as raised:
        connection.pgconn.exec_(b"COMMIT")
        connection.autocommit = True
        connection.execute(sql)  # type: ignore[call-overload]
    assert (raised.value.sqlstate, raised.value.diag.message_primary) == (state, words)


def test_a_failed_transaction_comes_before_a_write(served: Served) -> None:
    with psycopg.connect(**served.place) as connection:
        for sql in ("SELECT 1/0", "DELETE FROM patients"):
            with pytest.raises(psycopg.Error) as raised:
                connection.execute(sql)  # type: ignore[call-overload]
    assert raised.value.sqlstate == "25P02"


def test_tables_of_others_are_skipped_with_a_notice(served: Served) -> None:
    with psycopg.connect(**served.place, autocommit=True) as connection:
        heard = list[str]()
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
        assert connection.execute("ANALYZE patients").statusmessage == "ANALYZE"
        assert connection.execute("BEGIN READ WRITE").statusmessage == "BEGIN"
    assert heard == ['permission denied to analyze "patients", skipping it', "transactions are read-only here"]
