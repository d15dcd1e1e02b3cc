"""The protocol byte by byte: when queries are charged, portals, errors, transactions, cursors, COPY."""

import struct
from typing import Any

import pytest
from support.raw_client import (
    FLUSH,
    SYNC,
    Client,
    bind,
    columns_of,
    describe,
    error_of,
    execute,
    fields,
    framed,
    kinds,
    parse,
    rows_of,
)
from support.served_clinic import GROUPED, PASSWORD, SLOW, Served

from dpsql.errors.exceptions import refuse
from dpsql.frontends.pgwire.backend import in_words_of_postgresql


@pytest.fixture
def client(served: Served) -> Client:
    return served.client()


def _fresh(number: int) -> str:
    """Return a query that no other test sends, so that no store has its answer."""
    return f"SELECT sex, COUNT(*) AS n FROM patients WHERE age > {number} GROUP BY sex"


def test_describe_neither_charges_nor_runs(client: Client, served: Served) -> None:
    before = served.charges()
    client.send(parse(_fresh(31), "s"), describe(b"S", "s"), bind((), "p", "s"), describe(b"P", "p"), SYNC)
    found = client.until(b"Z")
    assert kinds(found) == "1tT2TZ"
    assert columns_of(found) == [("sex", 25), ("n", 20)]
    assert served.charges() == before
    client.query(f"DECLARE c CURSOR WITH HOLD FOR {_fresh(32)}")
    client.query(f"EXPLAIN {_fresh(33)}")
    assert served.charges() == before


def test_a_portal_in_pieces_is_asked_and_charged_once(client: Client, served: Served) -> None:
    before = served.charges()
    question = "SET dp.reuse = off", _fresh(34)
    client.query("BEGIN")
    client.query(question[0])
    client.send(parse(question[1]), bind((), "p"), execute("p", 1), execute("p", 1), execute("p", 1), SYNC)
    found = client.until(b"Z")
    assert kinds(found) == "12DsDsCZ"
    assert served.charges() == before + 1
    client.query(f"DECLARE c CURSOR FOR {_fresh(34)}")
    first, second = client.query("FETCH 1 FROM c"), client.query("FETCH ALL FROM c")
    assert (len(rows_of(first)), len(rows_of(second))) == (1, 1)
    assert served.charges() == before + 2


@pytest.mark.parametrize(("formats", "code"), [((1, 0, 1), "08P01"), ((7,), "22023"), ((0, 9), "22023")])
def test_formats_that_cannot_be_are_refused_before_the_charge(
    client: Client, served: Served, formats: tuple[int, ...], code: str
) -> None:
    before = served.charges()
    client.send(parse(_fresh(60 + sum(formats))), bind(formats=formats), execute(), SYNC)
    found = client.until(b"Z")
    assert (kinds(found), error_of(found)["C"], served.charges() - before) == ("12EZ", code, 0)


def test_formats_that_cannot_be_leave_the_rows_of_a_cursor_where_they_were(client: Client) -> None:
    client.query("BEGIN")
    client.query(f"DECLARE c CURSOR FOR {_fresh(70)}")
    client.query("SAVEPOINT s")
    client.send(parse("FETCH 1 FROM c"), bind(formats=(0, 0, 0)), execute(), SYNC)
    assert error_of(client.until(b"Z"))["C"] == "08P01"
    client.query("ROLLBACK TO s")
    assert len(rows_of(client.query("FETCH ALL FROM c"))) == 2


def test_errors_come_at_once_and_skip_to_sync(client: Client) -> None:
    client.send(parse("SELECT nope FROM patients"), describe(b"S"), FLUSH)
    found = client.until(b"E")
    assert fields(found[-1][1])["C"] == "42703"
    client.send(bind(), execute(), SYNC, parse("SELECT 1"), bind(), execute(), SYNC)
    assert kinds(client.until(b"Z")) == "Z"
    assert kinds(client.until(b"Z")) == "12DCZ"


_ONE = (parse("SELECT $1::text"), bind((b"x",)), describe(b"P"), execute())


@pytest.mark.parametrize("place", range(len(_ONE)))
@pytest.mark.parametrize("change", [lambda body: body[:-1], lambda body: body + b"x", lambda body: b"\xff" + body[1:]])
def test_a_broken_message_in_a_batch_is_an_error_up_to_sync(client: Client, place: int, change: Any) -> None:
    """As in PostgreSQL: what stood before it is answered, what stands behind it is skipped, and the connection goes on."""
    broken = framed(_ONE[place][:1], change(_ONE[place][5:]))
    client.send(*_ONE[:place], broken, *_ONE[place + 1 :], SYNC, *_ONE, SYNC)
    assert kinds(client.until(b"Z")) == f"{'12TDC'[:place]}EZ"
    assert kinds(client.until(b"Z")) == "12TDCZ"


@pytest.mark.parametrize("kind", [b"F", b"Q", b"S"])
def test_a_broken_message_that_ends_a_batch_is_an_error(client: Client, kind: bytes) -> None:
    client.send(framed(kind, b"\0x"), *_ONE, SYNC)
    assert kinds(client.until(b"Z")) == "EZ"
    assert kinds(client.until(b"Z")) == "12TDCZ"


@pytest.mark.parametrize("formats", [(0,), (1,)])
@pytest.mark.parametrize(("value", "found"), [(b"a\0b", "0x00"), (b"a\xc3(", "0xc3 0x28"), (b"\xe2\x82", "0xe2 0x82")])
def test_texts_that_no_text_can_be_are_refused(
    client: Client, value: bytes, found: str, formats: tuple[int, ...]
) -> None:
    values = b"".join((b"\0\1", formats[0].to_bytes(2, "big"), b"\0\1", len(value).to_bytes(4, "big"), value, b"\0\0"))
    for sql in ("SELECT $1::text", "SELECT COUNT(*) FROM patients WHERE sex = $1"):
        client.send(parse(sql), framed(b"B", b"\0\0" + values), execute(), SYNC)
        error = error_of(client.until(b"Z"))
        assert (error["C"], error["M"]) == ("22021", f'invalid byte sequence for encoding "UTF8": {found}')


def test_the_unnamed_statement_ends_with_the_next_text(client: Client) -> None:
    client.send(parse("SELECT 1"), SYNC)
    client.until(b"Z")
    client.query("SELECT 2")
    client.send(bind(), execute(), SYNC)
    assert error_of(client.until(b"Z"))["C"] == "26000"


@pytest.mark.parametrize("slip", ["SELEC 2", "SELECT COUNT(*) FROM", "SELECT 1 +", "SET", "SELECT (1"])
def test_a_statement_that_is_no_sql_stops_those_before_it(client: Client, served: Served, slip: str) -> None:
    """PostgreSQL reads a message whole before it runs any of it, so nothing is charged for the statements before a slip."""
    before, question = served.charges(), "SELECT COUNT(*) AS asked_before_a_slip FROM patients WHERE age > 31"
    replies = client.query(f"{question}; {slip}")
    assert error_of(replies)["C"] == "42601" and int(error_of(replies)["P"]) > len(question)
    assert not [body for kind, body in replies if kind == b"D"] and served.charges() == before


def test_errors_carry_sqlstate_place_hint_and_charge(client: Client) -> None:
    found = error_of(client.query("SELECT 1; SELECT  nope FROM patients"))
    assert found["C"] == "42703"
    assert found["M"] == 'column "nope" does not exist'
    assert found["P"] == "19"
    assert found["D"] == "nothing was charged"
    raw = error_of(client.query("SELECT * FROM patients"))
    assert raw["C"].startswith("ZP")
    assert "metric" in raw["H"]


def test_a_failed_transaction_waits_for_its_end(client: Client) -> None:
    assert client.query("BEGIN")[-1] == (b"Z", b"T")
    client.query("SAVEPOINT a")
    assert client.query("SELECT nope FROM patients")[-1] == (b"Z", b"E")
    assert error_of(client.query("SELECT 1"))["C"] == "25P02"
    assert client.query("ROLLBACK TO a")[-1] == (b"Z", b"T")
    client.query("SELECT nope FROM patients")
    found = client.query("COMMIT")
    assert (b"C", b"ROLLBACK\0") in found
    assert found[-1] == (b"Z", b"I")


def test_set_config_of_an_option_is_refused_where_its_name_is_a_parameter(client: Client) -> None:
    error = error_of(client.query("SELECT set_config('dp.epsilon', '0.5', false)"))
    assert (error["C"], error["H"]) == ("0A000", "write SET dp.epsilon = 0.5")
    client.send(parse("SELECT set_config($1, '0.5', false)"), bind((b"dp.epsilon",)), execute(), SYNC)
    assert error_of(client.until(b"Z"))["C"] == "0A000"
    assert rows_of(client.query("SHOW dp.epsilon")) == [[b"dp.epsilon", b"0.1"]]


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("INSERT INTO patients VALUES (1)", "25006"),
        ("CREATE TEMP TABLE x (a int)", "25006"),
        ("COPY patients TO STDOUT", "ZP001"),
        ("COPY patients (age) TO STDOUT", "ZP001"),
        ("COPY patients FROM STDIN", "25006"),
        ("COPY (SELECT * FROM patients) TO STDOUT", "ZP001"),
        ("SET ROLE clinic", "22023"),
        ("SET ROLE owner", "42501"),
        ("SELECT pg_read_file('/etc/passwd')", "42501"),
        ("SELECT * FROM read_csv('/etc/passwd')", "42883"),
        ("SELECT * FROM duckdb_settings()", "42883"),
        ("SELECT getenv('HOME')", "42883"),
        ("SELECT p.sex FROM patients p, pg_catalog.pg_class c", "0A000"),
        ("SELECT relname FROM pg_class WHERE nope = 1", "42703"),
        ("SELECT * FROM pg_catalog.nope", "42P01"),
        ("FETCH 1 FROM nowhere", "34000"),
        ("SELECT 'open", "42601"),
        *(
            (f"DEALLOCATE ALL; PREPARE p (int) AS {_fresh('$1')}; EXECUTE p({values})", sqlstate)  # type: ignore[arg-type]
            for values, sqlstate in (
                ("(SELECT COUNT(*) FROM patients)", "0A000"), ("generate_series(50, 51)", "0A000"), ("COUNT(*)", "42803"),
                ("1 FROM generate_series(1, 1)", "42601"), ("1 AS x", "42601"), ("1 ORDER BY 1", "42601"),
                ("1 WHERE false", "42601"), ("age FROM patients", "42601"), ("DISTINCT 1", "42601"), ("1,", "42601"),
            )
        ),
    ],
)  # fmt: skip
def test_refused_statements_have_the_sqlstate_of_postgresql(
    client: Client, served: Served, sql: str, sqlstate: str
) -> None:
    before = served.charges()
    assert (error_of(client.query(sql))["C"], served.charges()) == (sqlstate, before)


@pytest.mark.slow
def test_catalog_questions_end_within_their_limits(client: Client) -> None:
    assert error_of(client.query(SLOW))["C"] == "57014"
    assert rows_of(client.query("SELECT 1")) == [[b"1"]]


def test_probes_of_a_table_give_columns_without_rows(client: Client, served: Served) -> None:
    before = served.charges()
    for probe in (
        "SELECT * FROM labs LIMIT 1",
        "SELECT day, value FROM labs WHERE 1 = 0",
        "SELECT * FROM labs LIMIT 0",
    ):
        found = client.query(probe)
        assert ("value", 701) in columns_of(found)
        assert rows_of(found) == []
    # Sequel asks so whether there is such a table.
    assert rows_of(client.query("SELECT NULL AS nil FROM labs LIMIT 1")) == []
    assert served.charges() == before


@pytest.mark.parametrize(
    "lookup",
    [
        "SELECT 1 AS a FROM patients LIMIT 1",
        "SELECT (1) AS a FROM patients WHERE sex = 'male' LIMIT 1",
        "SELECT TRUE WHERE EXISTS (SELECT 1 FROM patients) LIMIT 1",
        "SELECT * FROM patients WHERE patient_id = 7 LIMIT 1",
        "SELECT sex FROM patients WHERE age > 40 LIMIT 1",
    ],
)
def test_a_lookup_of_one_row_is_not_answered_by_no_row(client: Client, lookup: str) -> None:
    """Programs take an empty answer for the fact that there is no such person."""
    assert error_of(client.query(lookup))["C"].startswith("ZP0")


def test_a_lookup_by_parameters_is_not_answered_by_no_row(client: Client) -> None:
    for sql in ("SELECT * FROM patients WHERE sex = $1 LIMIT 1", "SELECT sex FROM patients WHERE age > 3 LIMIT $1"):
        client.send(parse(sql), SYNC)
        assert error_of(client.until(b"Z"))["C"].startswith("ZP0")


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("SELECT COUNT(*) FROM labs WHERE timestamp '2024-01-01' - $1 IS NULL", "42883"),
        ("SELECT patient_id FROM patients WHERE age > $1", "ZP001"),
        ("SELECT COUNT(*) FROM patients WHERE age + $1", "42804"),
        ("SELECT patient_id FROM patients WHERE age > $1 ORDER BY 1 LIMIT 5", "ZP002"),
    ],
)
def test_what_no_value_can_mend_is_refused_when_it_is_prepared(client: Client, sql: str, state: str) -> None:
    """pg8000 sends the values before it reads an error of Describe, and then loses its place."""
    client.send(parse(sql), SYNC)
    assert error_of(client.until(b"Z"))["C"] == state


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DATE_TRUNC($1, DATE '2024-01-01' + day) AS d, COUNT(*) FROM labs GROUP BY 1", "SELECT TO_CHAR(DATE '2024-01-01' + day, $1) AS d, COUNT(*) FROM labs GROUP BY 1",
        "SELECT sex, COUNT(*) FROM patients WHERE sex = $1 GROUP BY sex", "SELECT age // $1 AS a, COUNT(*) FROM patients GROUP BY 1",
        "SELECT WIDTH_BUCKET(age, $1, $2, $3) AS w, COUNT(*) FROM patients GROUP BY 1", "SELECT SUM(CLAMP(age, $1, $2)) FROM patients",
        "SELECT QUANTILE_CONT(age, $1) FROM patients",
    ],
)  # fmt: skip
def test_columns_do_not_depend_on_values_that_are_not_known_yet(client: Client, sql: str) -> None:
    client.send(parse(sql), describe(b"S"), SYNC)
    assert kinds(client.until(b"Z")) == "1tTZ"


def test_parameters_without_types_are_inferred(client: Client) -> None:
    client.send(parse("SELECT COUNT(*) FROM patients WHERE sex = $1 AND age > $2 AND bmi < $3"), describe(b"S"), SYNC)
    found = client.until(b"Z")
    assert next(body for kind, body in found if kind == b"t") == struct.pack("!HIII", 3, 25, 20, 701)
    client.send(bind((b"male", b"seventy", b"30")), SYNC)
    assert error_of(client.until(b"Z"))["C"] == "22P02"
    client.send(parse("SELECT COUNT(*) FROM patients WHERE age = $1"), bind((b"1e999999999",)), SYNC)
    assert error_of(client.until(b"Z"))["C"] == "22P02"


def test_logins_that_fail_do_not_tell_who_exists(served: Served) -> None:
    wrong = Client(served.port).login("research", "wrong", "nafld")
    assert error_of(wrong)["C"] == "28P01"
    for user, password in (("nobody", ""), ("nobody", PASSWORD), ("planning", ""), ("owner", "")):
        assert error_of(Client(served.port).login(user, password, "nafld"))["C"] == "28P01"
    assert error_of(Client(served.port).login("research", PASSWORD, "postgres"))["C"] == "3D000"


def test_unknown_users_look_like_known_ones(served: Served) -> None:
    """The same salt at each attempt, the same iteration count, the same messages in the same order."""
    seen = {}
    for user in ("research", "nobody"):
        heads = set()
        for _ in range(2):
            client = Client(served.port)
            client.start(user, "nafld")
            client.until(b"R")
            first = b"n,,n=,r=abcdefgh"
            client.send(framed(b"p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
            answer = client.until(b"R", b"E")[-1]
            heads.add(answer[1].split(b",", 1)[1])
            client.close()
        assert len(heads) == 1
        seen[user] = heads.pop()
    assert [len(value) for value in seen.values()] == [len(seen["research"])] * 2
    assert seen["research"].split(b",i=")[1] == seen["nobody"].split(b",i=")[1]


def test_a_connection_may_name_its_project_and_options(served: Served) -> None:
    """Options of the startup packet apply to the session and are restored by RESET; a wrong one ends the login."""
    client = served.client(options="-c dp.project=flu -c dp.epsilon=0.2 -c dp.on_behalf_of=Ann\\ Smith")
    assert rows_of(client.query("SHOW dp.on_behalf_of")) == [[b"dp.on_behalf_of", b"Ann Smith"]]
    assert rows_of(client.query("SHOW dp.epsilon")) == [[b"dp.epsilon", b"0.2"]]
    client.query(_fresh(37))
    charged = served.charged()[-1]
    assert charged["scopes"] == ["analyst:research", "dataset", "project:flu"]
    assert int(charged["charge"]["rho"]) == 2 * 10**34
    client.query("SET dp.project = none; SET dp.epsilon = 0.1")
    assert len(rows_of(client.query("SHOW dp.budget"))) == 4
    client.query("RESET ALL")
    assert {row[0] for row in rows_of(client.query("SHOW dp.budget"))} == {
        b"dataset", b"analyst:research", b"project:flu",
    }  # fmt: skip
    for options, sqlstate in (
        ("-c dp.project=flue", "28000"),
        ("-c dp.epsilom=1", "42704"),
        ("--dp.epsilon=9", "22023"),
        ("-c dp.on_behalf_of=a\x07b", "22023"),
    ):
        refused = Client(served.port)
        found = error_of(refused.login("research", PASSWORD, "nafld", options=options))
        assert (found["S"], found["C"]) == ("FATAL", sqlstate)


def test_a_setting_is_changed_by_a_function_as_by_set(served: Served) -> None:
    client = served.client()

    def lock_timeout() -> list[list[bytes | None]]:
        return rows_of(client.query("SHOW lock_timeout"))

    client.send(parse("SELECT set_config($1, '7', false)"), describe(b"S"), bind((b"lock_timeout",)), SYNC)
    client.until(b"Z")
    assert lock_timeout() == [[b"0"]], "only an execution changes it"
    client.query("SELECT set_config('lock_timeout', '7', false) FROM pg_am LIMIT 1")
    assert lock_timeout() == [[b"7ms"]]
    assert error_of(client.query("SELECT set_config('lock_timeout', '8', false), 1 / 0"))["C"] == "22012"
    assert lock_timeout() == [[b"7ms"]]
    client.query("BEGIN; SELECT pg_catalog.set_config('lock_timeout', '9', true)")
    assert lock_timeout() == [[b"9ms"]]
    client.query("COMMIT")
    assert lock_timeout() == [[b"7ms"]]
    assert "S" in kinds(client.query("SELECT set_config('application_name', 'tool', false)"))
    assert error_of(client.query("SELECT set_config('nosuch', '1', false)"))["C"] == "42704"
    client.close()


def test_a_setting_that_ends_with_its_message_is_not_reported(client: Client) -> None:
    reported = [kind for kind, _ in client.query("SELECT set_config('application_name', 'x', true)")]
    assert b"S" not in reported and b"D" in reported
    assert b"S" in [kind for kind, _ in client.query("SELECT set_config('application_name', 'x', false)")]
    assert b"S" not in [kind for kind, _ in client.query("SET application_name = 'x'")]


# --- SQLSTATEs as in PostgreSQL ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("SELECT COUNT(nope) FROM patients", "42703"),
        ("SELECT COUNT(*) FROM patients WHERE nope > $1", "42703"),
        ("SELECT COUNT(*) FROM nowhere", "42P01"),
        ("SELECT nope FROM pg_class WHERE oid = $1", "42703"),
        ("SELEC 1", "42601"),
    ],
)
def test_a_name_that_does_not_exist_is_told_when_a_statement_is_prepared(
    client: Client, sql: str, sqlstate: str
) -> None:
    client.send(parse(sql, "named"), SYNC)
    found = client.until(b"Z")
    assert error_of(found)["C"] == sqlstate and kinds(found) == "EZ"
    client.send(parse("SELECT COUNT(*) FROM patients WHERE age > $1", "named"), SYNC)
    assert kinds(client.until(b"Z")) == "1Z", "the name is free"


def test_error_bars_are_columns_of_statements_prepared_while_they_are_on(client: Client) -> None:
    client.query(GROUPED)
    plain, number = [("sex", 25), ("n", 20)], 701
    client.send(parse(GROUPED, "before"), SYNC)
    client.until(b"Z")
    client.query("SET dp.bars = on")
    found = client.query(GROUPED)
    assert columns_of(found) == [*plain, ("n_low", number), ("n_high", number)]
    assert all(float(row[2]) < float(row[1]) < float(row[3]) for row in rows_of(found))
    assert columns_of(client.query("SELECT oid FROM pg_class LIMIT 1")) == [("oid", 26)]
    client.send(parse(GROUPED, "after"), SYNC)
    client.until(b"Z")
    client.query("SET dp.bars = off")
    for name, columns in (("before", plain), ("after", [*plain, ("n_low", number), ("n_high", number)])):
        client.send(describe(b"S", name), bind(name=name), execute(), SYNC)
        answer = client.until(b"Z")
        assert columns_of(answer) == columns and {len(row) for row in rows_of(answer)} == {len(columns)}


def test_error_bars_are_columns_from_the_start_of_a_connection(served: Served) -> None:
    asked = served.client(options="-c dp.bars=on")
    found = asked.query("SELECT sex, COUNT(*) AS n, AVG(age) AS years FROM patients GROUP BY sex")
    assert [name for name, _ in columns_of(found)] == [
        "sex", "n", "years", "n_low", "n_high", "years_low", "years_high",
    ]  # fmt: skip
    for _, count, years, *ends in rows_of(found):
        low, high, youngest, oldest = map(float, ends)
        assert low < float(count) < high and youngest < float(years) < oldest


def test_a_syntax_error_in_postgresqls_words_keeps_our_sentence_and_hint() -> None:
    sql = "SELECT COUNT(*) FROM t WHERE union = 1"
    error = refuse("syntax", detail="WHERE lacks a part", hint='write "union"', position=30)
    said = in_words_of_postgresql(error, sql)
    assert (said.sqlstate, said.message, said.position) == ("42601", 'syntax error at or near "union"', 30)
    assert said.hint == f'{error.message}; write "union"'


@pytest.mark.parametrize("sql", ["EXPLAIN SELECT COUNT(*) FROM patients WHERE age > $1", "EXPLAIN SELECT $1::int"])
def test_explain_takes_the_parameters_of_its_question(client: Client, sql: str) -> None:
    client.send(parse(sql), bind((b"30",)), execute(), SYNC)
    found = client.until(b"Z")
    assert "E" not in kinds(found) and any(row[0].startswith(b"price: ") for row in rows_of(found))


def test_explain_of_a_question_about_the_catalogs_says_that_it_costs_nothing(client: Client) -> None:
    assert rows_of(client.query("EXPLAIN (COSTS OFF) SELECT * FROM pg_class")) == [[b"price: nothing"]]


@pytest.mark.parametrize("value", [b"abc", b"9999999999", b""])
def test_a_declared_parameter_that_nothing_uses_is_read_at_bind(client: Client, value: bytes) -> None:
    client.send(parse("SELECT 1", oids=(23,)), bind((value,)), execute(), SYNC)
    found = client.until(b"Z")
    assert (kinds(found), error_of(found)["C"][:2]) == ("1EZ", "22")


def test_fetch_from_a_binary_cursor_sends_binary_values(client: Client) -> None:
    client.query("BEGIN")
    client.query("DECLARE c BINARY CURSOR FOR SELECT 258")
    assert rows_of(client.query("FETCH c")) == [[b"\0\0\1\2"]]
    client.query("DECLARE d CURSOR FOR SELECT 258")
    assert rows_of(client.query("FETCH d")) == [[b"258"]]


def test_columns_of_the_catalogs_name_their_relation(client: Client) -> None:
    sql = "SELECT x.k, x.relname, x.relname || 'a', count(*) FROM (SELECT relkind AS k, relname FROM pg_class) x GROUP BY 1, 2"
    client.send(parse(sql), describe(b"S"), SYNC)
    body = next(body for kind, body in client.until(b"Z") if kind == b"T")
    origins = [
        struct.unpack("!IH", part[:6]) for part in (body[2:].split(name + b"\0", 1)[1] for name in (b"k", b"relname"))
    ]
    assert origins == [(1259, 17), (1259, 2)]
    assert (
        struct.unpack("!IH", body.split(b"?column?\0", 1)[1][:6])
        == struct.unpack("!IH", body.split(b"count\0")[1][:6])
        == (0, 0)
    )


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (framed(b"D", b"Xa\0"), "invalid DESCRIBE message subtype 88"), (framed(b"C", b"Xa\0"), "invalid CLOSE message subtype 88"),
        (framed(b"B", b"\0"), "invalid string in message"), (framed(b"P", b"\0SELECT 1\0\0\1"), "insufficient data left in message"),
        (framed(b"E", b"\0\0\0\0\0x"), "invalid message format"),
    ],
)  # fmt: skip
def test_broken_messages_are_refused_in_the_words_of_postgresql(client: Client, message: bytes, words: str) -> None:
    client.send(message, SYNC)
    assert error_of(client.until(b"Z"))["M"] == words


def test_a_setting_is_reported_at_the_end_of_its_message(client: Client) -> None:
    assert kinds(client.query("SET application_name TO 'x'")) == "CSZ"
    assert kinds(client.query("BEGIN; SET application_name TO 'y'; SET application_name TO 'z'; COMMIT")) == "CCCCSZ"
