"""One client sends the texts that take the parser longest; every other client is answered meanwhile, and the server ends."""

import signal
import threading
import time
import tracemalloc
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from support.gated_engine import gated
from support.places import CLINIC
from support.raw_client import Client, error_of, free_port, kinds
from support.served_clinic import Served, logged_in

from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.catalog.tables import CatalogContext, CatalogTables
from dpsql.frontends.pgwire.constants.answers import answerable, parsed
from dpsql.frontends.pgwire.constants.tokens import Elsewhere
from dpsql.frontends.pgwire.questions import LONG_TEXT, Questions
from dpsql.frontends.pgwire.rows import ResultField, writers
from dpsql.frontends.pgwire.settings import Settings
from dpsql.policy import parse_policy

LONGEST_SECONDS = 10.0
"""Most that another client may wait on a machine with other work: one such text held up everybody for 70 seconds, and one more
level for twice as long."""
WORST = (
    "EXPLAIN SELECT " + "date(" * 40 + "'2024-01-01'" + ")" * 40,
    "SELECT COUNT(*) FROM patients WHERE " + "bigint(" * 55 + "age" + ")" * 55 + " > 1",
    "SELECT * FROM pg_class WHERE oid = " + "x" + "[1][1]" * 1_500,
    "SELECT " + " + ".join(["timestamp(age)"] * 1_500) + " FROM patients",
    "SELECT " + "(" * 59 + "date(a)" + ")" * 59 + " FROM patients JOIN " * 40 + "patients",
    "SELECT " + ", ".join(f"CASE WHEN date(a) = {n} THEN interval(b) END" for n in range(900)) + " FROM patients",
)


LONG = "(SELECT jsonb_agg(a) FROM generate_series(1, 90000) a)"
RING = "('(' || repeat('(1,2),', 1600) || '(1,3))')"
WIDE = ", ".join(f"1 AS c{n}" for n in range(1_000))
CONSTANTS = (
    "SELECT " + "+" * 3_000 + "1",
    "SELECT '[" + '""' * 26 + "x'::int4range",
    "SELECT '" + "9" * 20_000 + "'::point",
    "SELECT '(1,2)," + " " * 20_000 + "x'::polygon",
    *(f"SELECT '{first}{' ' * 40_000}x'::{kind}" for first in ("", "1") for kind in ("money", "regtype")),
    "SELECT '" + "[1]" * 30_000 + "x'::regtype",
    # Rows within rows double their quotes at each level.
    *("SELECT " + form.replace("#", "(" * 40 + "1" + ", 1)" * 40) for form in ("#", "ARRAY[#]", "ROW(ARRAY[#])")),
    "SELECT sqrt(x::numeric / 3) FROM generate_series(1, 100000) x",
    "SELECT regexp_count(repeat('a', 1000), 'a') FROM generate_series(1, 1000)",
    "SELECT rank() OVER (ORDER BY x), dense_rank() OVER (ORDER BY x), last_value(x) OVER (ORDER BY x) FROM generate_series(1, 50000) x",
    "SELECT count(*) FROM generate_series(1, 90000) a, generate_series(1, 90000) b",
    # Each asks as much of every row as its text has room for.
    "SELECT a FROM generate_series(1, 90000) a ORDER BY " + "a," * 5_000 + "a",
    "SELECT row_number() OVER (PARTITION BY " + "a," * 3_000 + "a) FROM generate_series(1, 30000) a",
    *(
        f"SELECT {form} FROM generate_series(1, 90000) a".replace("#", "true AND " * 9_000 + "true")
        for form in (
            "count(#)", "count(ROW(a, " + "a, " * 9_000 + "a))", "count(*) FILTER (WHERE #)", "array_agg(a ORDER BY #)",
            "rank() OVER (ORDER BY #)", "sum(CASE" + " WHEN false THEN 1" * 4_000 + " ELSE a END)", "count(a::bit(10000))",
        )
    ),
    "SELECT a FROM generate_series(1, 90000) a GROUP BY a HAVING " + "true AND " * 9_000 + "true",
    "SELECT count(*) FROM generate_series(1, 9000) a FULL JOIN generate_series(1, 9000) b ON " + "true AND " * 9_000 + "false",
    "SELECT count(*) FROM generate_series(1, 9000) a(x) FULL JOIN generate_series(1, 9000) b(x) USING (x)",
    "SELECT avg(x) OVER (ORDER BY x RANGE 90000 PRECEDING) FROM generate_series(1, 90000) x",
    "SELECT DISTINCT x FROM (SELECT jsonb_agg(a) x FROM generate_series(1, 9000) a) q, generate_series(1, 9000)",
    "SELECT count(*) FROM generate_series(1, 90000) a WHERE nullif(a, a) IN (" + "1," * 800 + "1)",
    "SELECT coalesce(" + "nullif(a, a)," * 900 + "a) FROM generate_series(1, 90000) a",
    "SELECT CASE a " + "WHEN 0 THEN 1 " * 1_000 + "END FROM generate_series(1, 90000) a",
    f"WITH x AS (SELECT {WIDE}) SELECT count(*) FROM x a, generate_series(1, 90000) c",
    f"WITH x AS (SELECT {WIDE}) SELECT count(*) FROM x" + "".join(f" NATURAL JOIN x x{n}" for n in range(20)),
    "SELECT '" + "{" * 9000 + "}" * 9000 + "'::int[]",
    *(f"SELECT {call}, '" + '"' + '\\"' * 45_000 + "')" for call in ("to_char(now()", "to_char(1", "to_date('2024'")),
    "SELECT repeat('a', 10000) ~ '(" + "a?" * 900 + "){1,100}b'",
    "SELECT (array_fill(1, ARRAY[9999]) || 2) @> array_fill(2, ARRAY[10000])",
    "SELECT '[" + "1," * 4_900 + "2]'::jsonb @> '[" + "2," * 4_900 + "2]'",
    "SELECT array_fill(repeat('x', 10000), ARRAY[10000])",
    "SELECT ARRAY[" + "1," * 9_000 + "true]",
    "SELECT 1 IN (" + "2," * 9_000 + "3)",
    "SELECT '2000-01-01 00:00:00" + " " * 9_000 + "x'::timestamptz",
    "SELECT '" + "{" * 4_900 + "1" + "}" * 4_900 + "'::int[]",
    "SELECT * FROM " + "((SELECT * FROM " * 29 + "!", "SELECT * FROM " + "(" * 9_000 + "pg_class",
    "SELECT count(*) FROM pg_proc a, pg_proc b WHERE a.proname || b.proname = 'x'",
    "SELECT * FROM pg_class WHERE " + " OR ".join(f"relname = '{n}'" for n in range(4_000)),
    "SELECT * FROM pg_class WHERE relname IN (" + "'x'," * 9_000 + "'y')",
    # Paths through documents, and shapes.
    f"SELECT jsonb_path_query({LONG}, '$.**')",
    f"SELECT count(*) FROM jsonb_path_query({LONG}, '$" + ".**" * 6 + "')",
    "SELECT jsonb_path_exists('" + "[" * 60 + "1" + "]" * 60 + "', '$" + ".**" * 20 + " ? (@ == 2)')",
    f"SELECT jsonb_path_exists({LONG}, '$[*] ? (exists ($[*] ? (@ == -1)))')",
    f"SELECT jsonb_path_exists({LONG}, '$[*] > $[*]')",
    f"SELECT jsonb_path_query({LONG}, '$[" + "0 to 90000," * 800 + "0]')",
    "SELECT jsonb_path_query('[1, 2]', '$[-2000000000 to 2000000000]')",
    "SELECT jsonb_path_query('[[1, 2], [3, 4]]', ('$' || repeat('[*]', 9000))::jsonpath)",
    "SELECT jsonb_path_query('1', '" + "-" * 6_000 + "$')",
    "SELECT jsonb_path_exists(to_jsonb(repeat('a', 10000)), '$ like_regex \"(" + "a?" * 900 + "){1,100}b\"')",
    "SELECT jsonb_path_exists('\"a\"', '$ like_regex \"((((a{1,255}){1,255}){1,255}){1,255})\"')",
    "SELECT jsonb_path_query((SELECT jsonb_agg(repeat('a', 1000)) FROM generate_series(1, 900)), '$[*] ? (@ like_regex \"(a*)*b\")')",
    f"SELECT count(area(x::path)) FROM (SELECT {RING} x) q, generate_series(1, 9000)",
    f"SELECT count(point(x)) FROM (SELECT {RING}::polygon x) q, generate_series(1, 90000)",
    "SELECT '" + "(" * 5_000 + "1,2" + ")" * 5_000 + "'::point", "SELECT ('[(' || repeat(' ', 9000) || '1,x)]')::path",
    # Values of which every row holds the same, so that little is computed and much is written.
    *(
        f"SELECT {call} FROM (SELECT {value} x) q, generate_series(1, 90000) g"
        for call in ("array_agg(x)", "json_agg(q)", "json_object_agg(g, q)", "array_agg(ROW(x, x))", "x")
        for value in ("repeat('a', 10000)", "array_fill(1, ARRAY[9000])", f"{RING}::polygon")
    ),
    "SELECT U&'\\D800'", "SELECT U&'\\+FFFFFF'", "SELECT unistr('\\D800')", "SELECT unistr('\\D800')::int",
    "SELECT jsonb '\"\\ud800\"'", "SELECT (json '[\"\\ud800\"]' ->> 0)::int", "SELECT jsonb '\"\\u0000\"' #>> '{}'",
)  # fmt: skip
"""Statements on catalogs and without tables, which the server itself computes."""


@pytest.fixture(scope="module")
def context() -> CatalogContext:
    return CatalogContext("ann", Settings("ann"), 1, CatalogTables(parse_policy(CLINIC), "ann"))


@contextmanager
def sending(clinic: Served) -> Iterator[threading.Event]:
    """Send the worst texts again and again from one connection; the event is set once all of them were answered."""
    once, ended = threading.Event(), threading.Event()

    def send() -> None:
        client: Client = clinic.client()
        while not ended.is_set():
            for sql in WORST:
                answer = client.query(sql)
                if kinds(answer)[-1:] != "Z":  # the server ends
                    return
            once.set()

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    yield once
    ended.set()


def seconds(work: object) -> float:
    begun = time.monotonic()
    assert callable(work)
    work()
    return time.monotonic() - begun


@pytest.mark.slow
def test_nobody_waits_for_the_texts_of_another_client(clinic: Served) -> None:
    status = free_port()
    clinic.options = ("--tls-self-signed", "--status", f"127.0.0.1:{status}")
    clinic.start()
    others = [clinic.client() for _ in range(16)]
    waits: list[float] = []
    with sending(clinic) as once:
        deadline = time.monotonic() + 240
        while not (once.is_set() and len(waits) > 200):
            assert time.monotonic() < deadline, "the worst texts were not answered"
            for client in others:
                waits.append(seconds(lambda client=client: client.query("SELECT 1")))
            waits.append(
                seconds(lambda: urllib.request.urlopen(f"http://127.0.0.1:{status}/healthz", timeout=60).read())
            )
        waits.append(seconds(lambda: clinic.client().close()))  # a login
        assert max(waits) < LONGEST_SECONDS
        assert seconds(lambda: clinic.stop(signal.SIGTERM)) < 60


def test_a_long_message_of_several_statements_is_parsed_in_its_turn(
    clinic: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, check = list[int](), Questions.check_syntax

    def watched(questions: Questions, *pieces: Any) -> None:
        taken.append(questions._texts.taken)
        check(questions, *pieces)

    monkeypatch.setattr(Questions, "check_syntax", watched)
    with gated(clinic) as port:
        logged_in(port).query("SELECT 1; SELECT " + "+" * LONG_TEXT + "1")
    assert taken == [1]


@pytest.mark.slow
@pytest.mark.parametrize("sql", CONSTANTS, ids=lambda sql: sql[7:40])
def test_a_constant_takes_the_server_two_seconds_at_most(sql: str, context: CatalogContext) -> None:
    begun = time.thread_time()
    with suppress(Error, Elsewhere):
        select = parsed(sql)
        constant = None if select is None else answerable(select, context)
        texts = [] if constant is None else constant.table().to_pydict().values()
        assert not any("\0" in str(text) for text in texts)
    assert time.thread_time() - begun < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "most"),
    [("array_fill(1, ARRAY[9000])", 4), ("repeat('a', 10000)", 4), (f"{RING}::polygon", 8), ("1::bit(9000)", 4)],
)
def test_what_is_written_again_and_again_is_counted(value: str, most: int, context: CatalogContext) -> None:
    """A row, a list or a shape weighs what it holds: an aggregate over many of one value is refused before it is written."""
    select = parsed(f"SELECT json_agg(q) FROM (SELECT {value} x) q, generate_series(1, 9000) g")
    assert select is not None
    tracemalloc.start()
    try:
        with pytest.raises(Error, match=r"sandbox_memory|sandbox_time"):
            answerable(select, context).table()
        assert tracemalloc.get_traced_memory()[1] < most << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT B'1'::bit(2000000000)", "22023"),
        ("SELECT B'1'::varbit(2000000000)", "22023"),
        ("SELECT B'1'::bit(80000000)", "53200"),
        # Two literals are a search in a text, not a path through a document.
        ("SELECT '{\"a\": 1}' @@ '$.a > 0'", "0A000"),
        ("SELECT to_tsvector('simple', 'a b')", "0A000"),
        ("SELECT 'a b'::tsvector", "0A000"),
        # PostgreSQL has these days: it is not said that they are out of its range.
        *(
            (f"SELECT {day}", "0A000")
            for day in (
                "make_date(-44, 3, 15)",
                "make_date(10000, 1, 1)",
                "date '0001-01-01' - 1",
                "date '9999-12-31' + 1",
                "date '10000-01-01'",
                "timestamp '0001-01-01' - interval '1 second'",
                "date '2024-01-01' + interval '200000 years'",
                "make_time(24, 0, 0)",
                "make_timestamp(-1, 1, 1, 0, 0, 0)",
                "time '24:00'",
                "to_date('-44-03-15', 'YYYY-MM-DD')",
                "to_date('0', 'YYYY')",
                "to_date('10000-01-01', 'YYYY-MM-DD')",
                "date 'J0'",
                "date '0044-03-15 BC'",
            )
        ),
        ("SELECT make_date(5874898, 1, 1)", "22008"),
        ("SELECT date '2024-01-01' + 2147483647", "22008"),
    ],
)
def test_what_is_not_computed_is_refused(sql: str, code: str, context: CatalogContext) -> None:
    select = parsed(sql)
    assert select is not None
    with pytest.raises((Error, Elsewhere)) as caught:
        answerable(select, context).table()
    assert getattr(caught.value, "sqlstate", "0A000") == code


@pytest.mark.parametrize(
    ("sql", "sent"),
    [  # as PostgreSQL 15 sends them
        (
            "SELECT ARRAY[ROW(1, 'a'::text), NULL]",
            "0000000100000001000008c90000000200000001000000190000000200000017000000040000000100000019000000016"
            "1ffffffff",
        ),
        ("SELECT ARRAY[date 'infinity']", "00000001000000000000043a0000000100000001000000047fffffff"),
        ("SELECT '1A/2B'::pg_lsn", "0000001a0000002b"),
        ("SELECT '(7,1)'::tid", "000000070001"),
        ("SELECT '5'::xid8", "0000000000000005"),
        ("SELECT '$.a'::jsonpath", "01242e226122"),
    ],
)
def test_values_without_a_table_have_their_binary_form(sql: str, sent: str, context: CatalogContext) -> None:
    select = parsed(sql)
    assert select is not None
    constant = answerable(select, context)
    (send,) = writers([ResultField("x", constant.columns[0][1])], [1])
    assert send(constant.table().column(0)[0].as_py()).hex() == sent


def test_the_worst_texts_are_answered_or_refused(clinic: Served) -> None:
    clinic.options = ("--tls-self-signed",)
    clinic.start()
    try:
        client = clinic.client()
        for sql in WORST:
            answer = client.query(sql)
            assert kinds(answer)[-1] == "Z"
            if "E" in kinds(answer):
                assert error_of(answer)["C"] not in ("XX000", "57014")
        assert clinic.charges() == 0
    finally:
        clinic.stop()


@pytest.mark.parametrize(
    "call", ["sum({})", "sum({}::numeric)", "count(*) FILTER (WHERE {} > 3)", "min(-{})", "max({})"]
)
@pytest.mark.parametrize("order", ["{}", "{} / 3", "{} GROUPS UNBOUNDED PRECEDING"])
def test_a_running_aggregate_is_that_of_the_rows_so_far(context: CatalogContext, call: str, order: str) -> None:
    """A frame that grows reads its new rows alone, so that many rows are answered; the subquery reads all rows for each."""

    def answer(sql: str) -> list[str | None]:
        select = parsed(sql)
        assert select is not None
        return list(answerable(select, context).table().column(0).to_pylist())

    few, (now, before) = "generate_series(-2, 12)", (order.split(" G", maxsplit=1)[0].format(name) for name in "ab")
    running = f"SELECT {call.format('a')} OVER (ORDER BY {order.format('a')}) FROM"
    again = f"SELECT (SELECT {call.format('b')} FROM {few} b WHERE {before} <= {now}) FROM {few} a ORDER BY a"
    assert answer(f"{running} {few} a ORDER BY a") == answer(again)
    many = 30_000 if order == "{}" else 3_000
    assert len(answer(f"{running} generate_series(1, {many}) a")) == many


@pytest.mark.parametrize("terms", [10, 400, 9_000])
@pytest.mark.parametrize(
    "form", ["SELECT {}", "SELECT 1 WHERE {} > 0", "SELECT a FROM generate_series(1, 2) a GROUP BY a, {}"]
)
def test_a_chain_of_operators_is_computed_or_too_deep(context: CatalogContext, form: str, terms: int) -> None:
    select = parsed(form.format("1" + "+1" * terms))
    assert select is not None
    if terms > 200:
        with pytest.raises(Error) as error:
            answerable(select, context).table()
        assert error.value.sqlstate == "54001"
        assert error.value.hint is not None
    else:
        assert answerable(select, context).table().num_rows
