"""PostgreSQL satisfies the engine contract on a real server; awkward data are counted correctly; its errors quote nothing."""

import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pyarrow as pa
import pytest
from support.places import policy as policy_of
from support.postgres_source import Server, ServerWorld, server

from dpsql.engine.postgresql import engine as catalog
from dpsql.engine.postgresql import engine as module
from dpsql.engine.postgresql import engine as rows_module
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.engine.query import EngineQuery
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error, Fault
from dpsql.frontends.admin.check import check_policy_file
from dpsql.policy import Policy
from dpsql.testing import PEOPLE, SECRET, VISITS, WARDS, EngineContract, Loaded, contract_policy

__all__ = ["server"]
SLOW = "SELECT count(*) AS m0 FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b WHERE a * b < 0"
BROKEN = f"SELECT CAST('{SECRET}' AS integer) AS m0"


def fill(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE people (id bigint, height double precision)")
    connection.execute("CREATE TABLE visits (id integer, ward varchar(9), day date, cost bigint)")
    connection.execute("CREATE TABLE wards (ward text, beds smallint)")
    with connection.cursor() as cursor:
        for table, rows in (("people", PEOPLE), ("visits", VISITS), ("wards", WARDS)):
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(rows[0]))})", rows)


@pytest.fixture
def url(server: Server) -> str:
    found = server.database()
    with psycopg.connect(found, autocommit=True) as connection:
        fill(connection)
    return found


class TestContract(EngineContract):
    """Contract tests of every engine."""

    @pytest.fixture(params=["moment", "declared"])
    def source(self, url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Loaded]:
        more = {"data_version": "spring"} if request.param == "declared" else {}
        policy = contract_policy(tmp_path, source=url, **more)
        engine = open_engine(policy)
        owner = psycopg.connect(url, autocommit=True)
        yield Loaded(policy, engine, SLOW, BROKEN, owner.execute)
        engine.close()
        owner.close()


def test_transactions_are_read_only_snapshots(url: str, tmp_path: Path) -> None:
    engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
    setting = "SELECT CAST(current_setting('transaction_{}') AS text) AS m0"
    assert one(engine, setting.format("read_only")) == "on"
    assert one(engine, setting.format("isolation")) == "repeatable read"
    with pytest.raises(Fault):
        one(engine, "SELECT lo_create(0) AS m0")
    engine.close()


def one(engine: PostgreSQLEngine, sql: str) -> Any:
    table = engine.run(EngineQuery(sql, (), ("m0",))).unseal()
    return table.column(0)[0].as_py()


# --- data -----------------------------------------------------------------------------------------------------------


def test_many_groups_come_back_in_pieces(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never more than one piece of their text is held; no key is split, whatever quotes and line ends it contains."""
    engine, sizes, parse = PostgreSQLEngine(contract_policy(tmp_path, source=url)), [], rows_module._parsed
    monkeypatch.setattr(rows_module, "PIECE_BYTES", 1000)
    monkeypatch.setattr(rows_module, "_parsed", lambda piece, schema: sizes.append(len(piece)) or parse(piece, schema))
    keys = """CASE n % 5 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN E'"\\n",' || n WHEN 3 THEN E'\\n\\n""' ELSE 'k' || n END"""
    table = engine.run(
        EngineQuery(f"SELECT {keys} AS k, n AS m0 FROM generate_series(1, 20000) AS g(n)", ("k",), ("m0",))
    )
    made = (lambda n: None, lambda n: "", lambda n: f'"\n",{n}', lambda n: '\n\n""', lambda n: f"k{n}")
    assert table.unseal().to_pydict() == {
        "k": [made[n % 5](n) for n in range(1, 20001)], "m0": list(range(1, 20001)),
    }  # fmt: skip
    assert len(sizes) > 100 and max(sizes) < 1100
    engine.close()


@pytest.mark.parametrize("size", [1, 3, 64])
def test_a_record_may_come_in_any_blocks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server sends one row per message, but nothing guarantees that."""
    monkeypatch.setattr(rows_module, "PIECE_BYTES", 1)
    records = [b'"a\n",1\n', b'"""\n""",2\n', b",3\n", b'"\n",4\n']
    text = b"".join(records)
    blocks = [text[start : start + size] for start in range(0, len(text), size)]
    pieces = list(rows_module._pieces(blocks))
    assert b"".join(pieces) == text and (size > 1 or pieces == records)
    schema = pa.schema([("k", pa.string()), ("m0", pa.int64())])
    read = pa.concat_tables([rows_module._parsed(piece, schema) for piece in pieces])
    assert read.to_pydict() == {"k": ["a\n", '"\n"', None, "\n"], "m0": [1, 2, 3, 4]}


class TestAwkwardColumns:
    """Every type of a column is read as the policy states: by bytes, in UTC, within the calendar; no value fails."""

    POLICY: ClassVar[dict[str, Any]] = {
        "dataset": "awkward", "privacy_unit": "row", "budget": {"epsilon": 9, "delta": 1e-6, "accountant": "pure"},
        "per_query": {"epsilon": 1}, "ledger": "sqlite:///awkward.db",
    }  # fmt: skip

    def values(self, server: Server, folder: Path, ddl: str, type_: str, values: str, options: str = "") -> list[Any]:
        """Return the values of a server column as dpsql reads them, in the order of its rows."""
        import json

        from dpsql.policy import parse_policy

        url = server.database(options)
        with psycopg.connect(url, autocommit=True) as owner:
            for statement in ddl.split(";")[:-1]:
                owner.execute(statement)
            owner.execute(f"CREATE TABLE t (place serial, v {ddl.rsplit(';', maxsplit=1)[-1]})")
            owner.execute(f"INSERT INTO t (v) VALUES {values}")
        tables = {"t": {"columns": {"v": {"type": type_}}}}
        policy = parse_policy(json.dumps({**self.POLICY, "source": url, "tables": tables}), folder=folder)
        engine = PostgreSQLEngine(policy)
        try:
            source = engine.source("t")
            text = engine.dialect.cast_column("v", next(c for c in module.Type if c.value == type_), source.types["v"])
            table = engine.public_table(
                f"SELECT x FROM (SELECT place, {text} AS x FROM {source.sql}) AS s ORDER BY place"
            )
            return list(table.column(0).to_pylist())
        finally:
            engine.close()

    @pytest.mark.parametrize(("ddl", "type_", "values", "expected"), [
        ("char(5)", "text", "('a'), ('a  '), ('b'), (NULL)", ["a", "a", "b", None]),
        ("varchar", "text", "('a'), ('a  '), (''), ('A')", ["a", "a  ", "", "A"]),
        ("uuid", "text", "('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11')", ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"]),
        ("json", "text", """('{"a" : 1}')""", ['{"a" : 1}']),
        ("CREATE TYPE mood AS ENUM ('sad', 'ok');mood", "text", "('ok'), ('sad'), (NULL)", ["ok", "sad", None]),
        ("CREATE DOMAIN name_ AS varchar(9);name_", "text", "('x')", ["x"]),
        ("bigint", "text", "(-7)", ["-7"]),
        ("numeric", "integer", "(2.5), (-2.5), (9223372036854775807.4), (9223372036854775807.5), ('NaN'), ('Infinity')",
         [3, -3, 2**63 - 1, None, None, None]),
        ("float8", "integer", "(2.5), (3.5), ('NaN'), ('-Infinity'), (9.3e18), (-9.223372036854775808e18)",
         [2, 4, None, None, None, -(2**63)]),
        ("smallint", "integer", "(-32768), (NULL)", [-32768, None]),
        ("numeric", "real", "(0.1), (1e308), (1e309), (-1e309), (1e-330), ('Infinity'), (NULL)",
         [0.1, 1e308, float("inf"), float("-inf"), 0.0, float("inf"), None]),
        ("real", "real", "(0.5), ('Infinity')", [0.5, float("inf")]),
        ("boolean", "boolean", "(true), (NULL), (false)", [True, None, False]),
        ("date", "date", "('2024-02-29'), ('infinity'), ('0044-03-15 BC'), ('10000-01-01'), ('9999-12-31')",
         ["2024-02-29", None, None, None, "9999-12-31"]),
        ("timestamp", "date", "('2024-02-29 23:59:59.999999'), ('infinity'), ('294276-01-01')", ["2024-02-29", None, None]),
        ("date", "timestamp", "('0001-01-01'), ('5874897-12-31'), ('-infinity')", ["0001-01-01 00:00:00", None, None]),
        ("timestamptz", "timestamp", "('2024-01-01 00:30:00+02'), ('infinity'), ('0001-01-01 00:00:00+14')",
         ["2023-12-31 22:30:00", None, None]),
        ("timestamptz", "date", "('2024-01-01 00:30:00+02')", ["2023-12-31"]),
    ])  # fmt: skip
    def test_a_column_is_read_in_the_type_of_the_policy(
        self, server: Server, tmp_path: Path, ddl: str, type_: str, values: str, expected: list[Any]
    ) -> None:
        found = self.values(server, tmp_path, ddl, type_, values)
        assert [str(v) if type_ in ("date", "timestamp") and v is not None else v for v in found] == expected

    def test_not_a_number_is_read_as_itself(self, server: Server, tmp_path: Path) -> None:
        assert [v != v for v in self.values(server, tmp_path, "numeric", "real", "('NaN')")] == [True]

    def test_signed_zeros_are_one_group_and_differ_as_content(self, url: str, tmp_path: Path) -> None:
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
        zeros = "(VALUES (CAST('0' AS double precision)), (CAST('-0' AS double precision))) AS z (v)"
        key, sign = engine.dialect.real_key('"v"'), engine.dialect.sign_of('"v"')
        assert one(engine, f"SELECT count(DISTINCT CAST({key} AS text)) AS m0 FROM {zeros}") == 1
        assert one(engine, f"SELECT count(DISTINCT {sign}) AS m0 FROM {zeros}") == 2
        engine.close()

    @pytest.mark.parametrize("type_", ["money", "interval", "integer[]", "bytea", "timetz", "point"])
    def test_other_types_are_refused_before_anything_is_charged(
        self, server: Server, tmp_path: Path, type_: str
    ) -> None:
        with pytest.raises(Fault) as fault:
            self.values(server, tmp_path, type_, "text", "(NULL)")
        assert fault.value.slug == "source_column_type"

    @pytest.mark.parametrize("type_", ["integer", "real", "date", "timestamp"])
    def test_texts_are_not_read_as_other_types(self, server: Server, tmp_path: Path, type_: str) -> None:
        with pytest.raises(Fault) as fault:
            self.values(server, tmp_path, "text", type_, "('1')")
        assert fault.value.slug == "source_column_type"


def test_settings_of_the_database_and_the_role_change_no_meaning(server: Server, url: str, tmp_path: Path) -> None:
    """Time zone, formats, NULL comparisons, and a table and a function with the engine's names in the role's search path."""
    database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    with psycopg.connect(url, autocommit=True) as owner:
        for setting in (
            "TimeZone TO 'Pacific/Kiritimati'", "DateStyle TO 'German'", "transform_null_equals TO on",
            "extra_float_digits TO -15", "standard_conforming_strings TO off", "search_path TO evil, pg_catalog, public",
            "statement_timeout TO '1ms'", "client_encoding TO 'LATIN1'",
        ):  # fmt: skip
            owner.execute(f"ALTER DATABASE {database} SET {setting}")
        owner.execute("CREATE SCHEMA evil; CREATE TABLE evil.visits AS SELECT * FROM public.visits LIMIT 0")
        owner.execute("CREATE FUNCTION evil.sha256(bytea) RETURNS bytea LANGUAGE sql AS $$ SELECT '\\x00'::bytea $$")
        owner.execute("CREATE FUNCTION public.left(text, bigint) RETURNS text LANGUAGE sql AS $$ SELECT 'evil' $$")
    engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
    assert one(engine, "SELECT count(*) AS m0 FROM (SELECT 'a\\' AS x) AS q WHERE length(x) = 2") == 1
    assert one(engine, f"SELECT count(*) AS m0 FROM {engine.source('visits').sql} WHERE ward = NULL") == 0
    assert engine.source("visits").sql == '"public"."visits"'
    assert (
        one(engine, f"SELECT count(DISTINCT {engine.dialect.keyed_order('k', ['id'])}) AS m0 FROM public.visits") == 4
    )
    hours = "SELECT CAST(date_part('hour', CAST('2024-01-01 00:30+00' AS timestamptz)) AS bigint) AS m0"
    assert one(engine, hours) == 0
    assert one(engine, "SELECT CAST(length(CAST(CAST('0.1' AS float8) + 0.2 AS text)) AS bigint) AS m0") == 19
    engine.close()


def test_texts_are_ordered_by_code_point_in_every_database(server: Server, tmp_path: Path) -> None:
    """The server of these tests is built without ICU, so the column's collation is one of its C library's."""
    policy = contract_policy(tmp_path, source=server.database("LOCALE 'C.utf8'"))
    engine = PostgreSQLEngine(policy)
    constants = [engine.dialect.constant(value) for value in ("b", "B", "é", "a", "Z")]
    rows = " UNION ALL ".join(f'SELECT ({text} COLLATE "C.utf8") AS v' for text in constants)
    cast = engine.dialect.cast_column("v", module.Type.TEXT, "text")
    assert cast.endswith('COLLATE "C")')
    table = engine.public_table(f"SELECT x FROM (SELECT {cast} AS x FROM ({rows}) AS r) AS s ORDER BY x")
    assert table.column(0).to_pylist() == ["B", "Z", "a", "b", "é"]
    engine.close()


# --- queries sent to the server, and its replies --------------------------------------------------------------------


class Wire:
    """A socket between a client and the server that records every byte that the server sends."""

    def __init__(self, folder: Path, server_folder: str) -> None:
        self.heard = bytearray()
        self._target = f"{server_folder}/.s.PGSQL.5432"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._target)
            threading.Thread(target=self._pump, args=(client, upstream, None), daemon=True).start()
            threading.Thread(target=self._pump, args=(upstream, client, self.heard), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, heard: bytearray | None) -> None:
        try:
            while data := source.recv(65536):
                if heard is not None:
                    heard += data
                target.sendall(data)
        except OSError:
            return

    def close(self) -> None:
        self._listener.close()


ASKED = frozenset(
    {
        "aggregates", "filters", "per_unit", "clipping", "private_keys", "public_keys", "quantiles", "local_sensitivity", "samples",
        "modes", "min_units",
    }
)  # fmt: skip


def test_no_row_of_a_person_leaves_the_server(server: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keys of units and cells of columns that are not group keys are canaries: none is among the bytes that the server sends."""
    from sql.corpus import ACCEPTED
    from support.corpus_neighbours import Hospital
    from support.neighbouring_hospitals import together

    folder = tmp_path_factory.mktemp("w")
    wire = Wire(folder, server.folder)
    hospital = Hospital("hospital")
    url = server.database()
    world = ServerWorld(hospital.policy, url, wire=url.replace(f"host={server.folder}", f"host={folder}"))
    data = {name: [dict(row) for row in rows] for name, rows in together(hospital.base, {}).items()}
    shift, cost = 7_310_000_000, 137.0625
    for table in ("patients", "visits"):
        for row in data[table]:
            row["patient_id"] += shift
            if "cost" in row:
                row["cost"] = cost
    world.load(data)
    answered = 0
    for case in ACCEPTED:
        if case.group in ASKED:
            with world.options(case.marks.get("set", [])):
                world.observe(case.sql, case.parameters)
                answered += 1
    assert answered > 130
    heard = bytes(wire.heard)
    assert b"COPY" in heard and b"north" in heard  # group keys are sent
    for canary in (b"7310000", b"137.0625"):
        assert canary not in heard, canary
    wire.close()
    world.close()


def role(server: Server, url: str, name: str, *grants: str) -> str:
    """Return the URL of a new role with these rights."""
    database = url.split("?", maxsplit=1)[0].rsplit("/", 1)[1]
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"DROP ROLE IF EXISTS {name}")
        owner.execute(f"CREATE ROLE {name} LOGIN")
        for grant in grants:
            owner.execute(grant)
    return server.url_of(database, name)


class TestFaults:
    """Faults of the server, the role or a table are reported before anything is charged, with registered messages."""

    def slug(self, act: Any) -> str:
        with pytest.raises(Error) as error:
            act()
        assert "postgres" not in error.value.message.lower().replace("postgresql", "")
        return error.value.slug

    def test_a_server_that_is_not_there(self, tmp_path: Path) -> None:
        policy = contract_policy(tmp_path, source=f"postgresql:///nowhere?host={tmp_path}")
        assert self.slug(lambda: open_engine(policy)) == "source_connection"

    def test_a_role_that_is_not_let_in(self, server: Server, url: str, tmp_path: Path, caplog: Any) -> None:
        wrong = url.replace("//postgres:@", "//nobody:open-sesame@")
        with caplog.at_level(logging.ERROR, "dpsql.custodian"):
            assert self.slug(lambda: open_engine(contract_policy(tmp_path, source=wrong))) == "source_connection"
        assert "nobody" in caplog.text and "open-sesame" not in caplog.text

    @pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
    def test_a_database_that_is_not_in_utf8_is_refused(self, server: Server, tmp_path: Path, encoding: str) -> None:
        """SQL_ASCII means no encoding: such a database holds any bytes."""
        url = server.database(f"ENCODING '{encoding}' LOCALE 'C'")
        assert self.slug(lambda: open_engine(contract_policy(tmp_path, source=url))) == "source_server"

    def test_an_old_server_is_refused(self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "LEAST_VERSION", 990000)
        assert self.slug(lambda: open_engine(contract_policy(tmp_path, source=url))) == "source_server"

    def test_a_driver_that_is_not_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "dpsql.engine.postgresql.engine", None)
        policy = contract_policy(tmp_path, source="postgresql://host/db")
        assert self.slug(lambda: open_engine(policy)) == "source_driver"

    def test_a_file_as_source_beside_a_server_is_refused(self, url: str, tmp_path: Path) -> None:
        policy = contract_policy(tmp_path, source=url)
        tables = {**policy.tables, "wards": replace(policy.tables["wards"], source="wards.parquet")}
        assert self.slug(lambda: open_engine(replace(policy, tables=tables))) == "source_file_beside_server"

    def test_changes_of_a_table_are_seen_by_the_next_look(self, url: str, tmp_path: Path) -> None:
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
        with psycopg.connect(url, autocommit=True) as owner:
            engine.check_readable(("visits",))
            owner.execute("ALTER TABLE visits ALTER cost TYPE text")
            assert self.slug(lambda: engine.check_readable(("visits",))) == "source_column_type"
            owner.execute("ALTER TABLE visits DROP cost")
            assert self.slug(lambda: engine.check_readable(("visits",))) == "source_column_missing"
            owner.execute("DROP TABLE visits")
            assert self.slug(lambda: engine.check_readable(("visits",))) == "source_table_missing"
        engine.close()

    def test_a_role_that_may_not_read_a_column_is_a_fault_that_names_it(
        self, server: Server, url: str, tmp_path: Path
    ) -> None:
        grants = ("GRANT SELECT ON people, wards TO reader", "GRANT SELECT (id, ward, day) ON visits TO reader")
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=role(server, url, "reader", *grants)))
        engine.check_readable(("people",))
        with pytest.raises(Fault, match=r"visits\.cost") as fault:
            engine.check_readable(("visits",))
        assert fault.value.slug == "source_rights"
        engine.close()

    def test_rights_below_a_view_are_missed_before_the_charge(self, server: Server, url: str, tmp_path: Path) -> None:
        """The server checks the tables of a view and its functions when it plans a query."""
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ALTER TABLE visits RENAME TO visits_of_all")
            owner.execute("CREATE VIEW visits WITH (security_invoker = true) AS SELECT * FROM visits_of_all")
        grants = ("GRANT SELECT ON people, wards, visits TO viewer",)
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=role(server, url, "viewer", *grants)))
        engine.check_readable(("visits",))
        query = EngineQuery("SELECT count(*) AS m0 FROM public.visits", (), ("m0",))
        assert self.slug(lambda: engine.rehearse(query)) == "source_rights"
        engine.close()

    def test_a_connection_that_was_lost_is_made_again(self, url: str, tmp_path: Path) -> None:
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
        for _ in range(2):
            engine.check_readable(("visits",))
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpsql'")
        engine.check_readable(("visits",))
        engine.close()

    def test_a_server_that_goes_while_it_works(self, url: str, tmp_path: Path) -> None:
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))

        def cut() -> None:
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dpsql' AND "
                    "state = 'active'"
                )

        timer = threading.Timer(0.5, cut)
        timer.start()
        assert self.slug(lambda: engine.run(EngineQuery(SLOW, (), ("m0",)))) == "engine_failed"
        timer.join()
        assert one(engine, "SELECT count(*) AS m0 FROM public.visits") == len(VISITS)
        engine.close()

    def test_a_text_that_the_server_refuses_is_not_charged(self, url: str, tmp_path: Path) -> None:
        engine = PostgreSQLEngine(contract_policy(tmp_path, source=url))
        wrong = EngineQuery("SELECT sum(ward) AS m0 FROM public.visits", (), ("m0",))
        assert self.slug(lambda: engine.rehearse(wrong)) == "engine_cannot_run"
        engine.rehearse(EngineQuery(SLOW, (), ("m0",)))  # planned, not run
        engine.close()


def test_nothing_is_charged_for_a_text_that_the_server_does_not_plan(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ServerWorld(policy_of("hospital"), server.database())
    monkeypatch.setattr(PostgreSQLDialect, "wide", lambda self, value: f"no_such_function({value})")
    observed = world.observe("SELECT COUNT(*), AVG(nights) FROM visits")
    assert observed.outcome.startswith("0A000 engine_cannot_run") and (observed.charged, observed.charges) == (
        False,
        [],
    )
    assert observed.engine_sql == [] and "no_such_function" not in observed.outcome
    monkeypatch.undo()
    assert world.observe("SELECT COUNT(*), AVG(nights) FROM visits").outcome == "answered"
    world.close()


class TestCheck:
    """`dpsql check` over a server: structure, and rights of the role that reading does not require."""

    def notes(self, folder: Path, url: str) -> tuple[list[str], list[str]]:
        import json

        from dpsql.testing import POLICY

        place = folder / "policy.yaml"
        place.write_text(json.dumps({**POLICY, "source": url, "data_version": "daily"}))
        found = check_policy_file(place)
        return found.problems, [note for note in found.notes if note.startswith("note")]

    def test_a_role_that_may_only_read_has_no_notes(self, server: Server, url: str, tmp_path: Path) -> None:
        reader = role(server, url, "only_reader", "GRANT SELECT ON people, visits, wards TO only_reader")
        assert self.notes(tmp_path, reader) == ([], [])

    def test_rights_that_reading_does_not_need_are_noted(self, server: Server, url: str, tmp_path: Path) -> None:
        writer = role(
            server, url, "writer", "GRANT SELECT ON people, wards TO writer", "GRANT ALL ON visits TO writer",
            "ALTER ROLE writer BYPASSRLS", "GRANT CREATE ON SCHEMA public TO writer", "ALTER TABLE people ENABLE ROW LEVEL SECURITY",
        )  # fmt: skip
        problems, notes = self.notes(tmp_path, writer)
        said = " ".join(notes)
        assert problems == []
        for words in (
            "may write to visits",
            "BYPASSRLS",
            "create tables in the schema of wards",
            "people has row security",
        ):
            assert words in said, words
        assert "may write to people" not in said

    def test_a_superuser_is_noted(self, url: str, tmp_path: Path) -> None:
        assert any("superuser" in note for note in self.notes(tmp_path, url)[1])

    def test_a_missing_column_is_a_problem(self, url: str, tmp_path: Path) -> None:
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ALTER TABLE visits RENAME cost TO costs")
        assert self.notes(tmp_path, url)[0] == ["column visits.cost of the policy is not in the source"]

    def test_missing_rights_and_types_that_are_not_read_are_problems(
        self, server: Server, url: str, tmp_path: Path
    ) -> None:
        """Each problem that a query would meet before its charge is reported once."""
        grants = ("GRANT SELECT ON people TO half", "GRANT SELECT (id, ward, day) ON visits TO half")
        reader = role(server, url, "half", *grants)
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("ALTER TABLE wards ALTER ward TYPE bytea USING NULL")
        problems = " ".join(self.notes(tmp_path, reader)[0])
        assert problems.count("may not read visits.cost") == 1 and problems.count("wards.ward is bytea") == 1
        assert "people" not in problems


def test_a_table_is_named_with_its_schema_and_database(url: str, tmp_path: Path) -> None:
    policy: Policy = contract_policy(tmp_path, source=url)

    def place(source: str) -> catalog.ServerTable:
        tables = {**policy.tables, "visits": replace(policy.tables["visits"], source=source)}
        return catalog.place_of(replace(policy, tables=tables), "visits", "here")

    assert place("log") == catalog.ServerTable("public", "log")
    assert place("a.log") == catalog.ServerTable("a", "log")
    assert place("here.a.log").sql == '"a"."log"'
    with pytest.raises(Fault):
        place("there.a.log")
