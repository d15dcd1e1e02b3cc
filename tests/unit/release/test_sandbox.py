"""The sandbox alone: operations that its configuration stops, limits, isolation, types."""

import gc
import os
import random
import threading
import weakref
from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from dpsql.errors.exceptions import Error
from dpsql.release.sandbox import Sandbox, Scratch, plain
from dpsql.release.value_text import answer_html, half_width_text

PRIVATE = pa.table({"ssn": ["123-45-6789"]})

ATTACKS = {
    "file": "SELECT * FROM read_csv('{file}')",
    "file as table": "SELECT * FROM '{file}'",
    "text": "SELECT * FROM read_text('{file}')",
    "blob": "SELECT * FROM read_blob('{file}')",
    "parquet": "SELECT * FROM read_parquet('{file}')",
    "json": "SELECT * FROM read_json_objects('{file}')",
    "sniff": "SELECT * FROM sniff_csv('{file}')",
    "glob": "SELECT * FROM glob('/*')",
    "network": "SELECT * FROM read_csv('http://127.0.0.1:9/x')",
    "environment": "SELECT getenv('HOME')",
    "attach": "ATTACH '{file}' AS other",
    "copy out": "COPY (SELECT 1) TO '{file}.out'",
    "export": "EXPORT DATABASE '{file}.dir'",
    "install": "INSTALL httpfs",
    "load": "LOAD httpfs",
    "setting": "SET enable_external_access = true",
    "unlock": "SET lock_configuration = false",
    "reset": "RESET lock_configuration",
    "pragma": "PRAGMA enable_external_access = true",
    "python variable": "SELECT * FROM PRIVATE",
    "pointer": "SELECT * FROM arrow_scan(1, 2, 3)",
    "other database": "SELECT * FROM sqlite_scan('{file}', 't')",
    "nested": "SELECT * FROM query('SELECT * FROM read_csv(''{file}'')')",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_configuration_alone_stops_every_attack(sandbox: Sandbox, name: str, tmp_path: Path) -> None:
    target = tmp_path / "secret.csv"
    target.write_text("ssn\n123-45-6789\n")
    private = PRIVATE  # a local name that DuckDB would find if it were allowed to look
    with sandbox.scratch() as scratch, pytest.raises(duckdb.Error):
        scratch._connection.execute(ATTACKS[name].format(file=target)).fetchall()
    with pytest.raises(Error) as caught:
        sandbox.query(ATTACKS[name].format(file=target), {})
    assert caught.value.slug.startswith("sandbox_")
    assert "123-45" not in caught.value.text()
    assert str(tmp_path) not in caught.value.text()
    assert sorted(os.listdir(tmp_path)) == ["secret.csv"]
    assert private is PRIVATE


def test_settings_hold_in_every_room(sandbox: Sandbox) -> None:
    """Some of DuckDB's settings belong to one connection: with a plain SET, connections would find Python variables again."""
    off = ("python_enable_replacements", "enable_external_access", "autoload_known_extensions",
           "autoinstall_known_extensions", "allow_community_extensions")  # fmt: skip
    wanted = dict.fromkeys(off, False) | {"lock_configuration": True, "threads": 1, "temp_directory": ""}
    picked = ", ".join(f"current_setting('{name}') AS {name}" for name in wanted)
    assert sandbox.query(f"SELECT {picked}", {}).to_pylist() == [wanted]


def test_python_variables_are_not_tables(sandbox: Sandbox) -> None:
    with sandbox.scratch() as scratch:
        hidden = PRIVATE
        with pytest.raises(duckdb.CatalogException):
            scratch._connection.sql("SELECT * FROM hidden")
        assert hidden is PRIVATE


ENDLESS = [
    "SELECT sum(a.range * b.range) FROM range(1000000000) AS a, range(1000000000) AS b",
    "SELECT count(*) FROM range(1000000000000) WHERE hash(range) = 1",
    "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
    "SELECT count(*) FROM range(10000000000) WHERE regexp_matches(repeat('a', 30) || range, '(a|aa)+$')",
]


@pytest.mark.parametrize("sql", ENDLESS)
def test_time_is_limited_and_the_sandbox_recovers(sandbox: Sandbox, sql: str) -> None:
    with pytest.raises(Error) as caught:
        sandbox.query(sql, {}, timeout_seconds=0.2)
    assert (caught.value.slug, caught.value.sqlstate) == ("sandbox_time", "57014")
    assert sandbox.query("SELECT 1 AS x", {}).to_pydict() == {"x": [1]}


def test_time_is_shared_by_the_statements_of_a_room(sandbox: Sandbox) -> None:
    with pytest.raises(Error, match="too long"), sandbox.scratch(0.05) as scratch:
        while True:
            scratch.query("SELECT 1", {})


def test_memory_is_limited_and_nothing_is_spilled() -> None:
    small = Sandbox(memory_megabytes=64)
    with pytest.raises(Error) as caught:
        small.query("SELECT count(DISTINCT hash(range)) FROM range(50000000)", {})
    assert caught.value.slug == "sandbox_memory"
    assert small.query("SELECT 1 AS x", {}).num_rows == 1
    small.close()


def test_rows_are_limited_while_they_stream() -> None:
    small = Sandbox(most_rows=1000)
    assert small.query("SELECT * FROM range(1000)", {}).num_rows == 1000
    with pytest.raises(Error) as caught:
        small.query("SELECT * FROM range(100000000000)", {}, timeout_seconds=60)
    assert caught.value.slug == "sandbox_rows"
    small.close()


@pytest.mark.parametrize(
    ("sql", "slug"),
    [
        ("SELECT CAST('123-45' AS INTEGER)", "sandbox_value"),
        ("SELECT 9223372036854775807 + 1", "sandbox_value"),
        *([] if duckdb.__version__.startswith("1.") else [("SELECT 1 // 0", "sandbox_value")]),  # NULL there
        ("SELECT error('123-45')", "sandbox_value"),
        ("SELECT nothing FROM t", "sandbox_query"),
        ("SELECT 1 + DATE '2020-01-01' + 'x'", "sandbox_query"),
        ("SELEC 1", "sandbox_query"),
    ],
)
def test_errors_are_our_own(sandbox: Sandbox, sql: str, slug: str) -> None:
    with pytest.raises(Error) as caught:
        sandbox.query(sql, {"t": pa.table({"x": [1]})}, strict=True)
    assert caught.value.slug == slug
    assert "123-45" not in caught.value.text()


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("CAST(t AS INTEGER)", [7, None]),
        ("CAST(t AS DATE)", [None, None]),
        ("coalesce(CAST(t AS INTEGER), -1)", [7, -1]),
        ("CAST(x * 3000000000 AS INTEGER)", [3000000000, 6000000000]),
        ("CAST(x * 123456.789 AS DECIMAL(5, 2))", [123456.79, 246913.58]),
        ("x * 9223372036854775807", [9223372036854775807, None]),
        ("9223372036854775807 - 1 + x", [9223372036854775807, None]),
        ("x // (x - 1)", [None, 2]),
        ("x % (x - 1)", [None, 0]),
        ("d + CAST(x * 3000000000 AS INTEGER)", [None, None]),
        ("d + CAST(x AS INTEGER) - 0 * CAST(t AS INTEGER)", [date(2024, 1, 2), None]),
        ("CASE WHEN x = 2 THEN t = 7 END", [None, None]),
        ("ntile(x - 2) OVER ()", [1, 1]),
        ("sum(x) OVER () // (x - 1)", [None, 3]),
    ],
)
def test_what_has_no_value_is_null_for_its_row_alone(sandbox: Sandbox, expression: str, value: list[object]) -> None:
    table = pa.table({"x": [1, 2], "t": ["7", "x"], "d": [date(2024, 1, 1)] * 2})
    answer = sandbox.query(f"SELECT {expression} AS v FROM r", {"r": table}).column("v").to_pylist()
    assert [float(v) if isinstance(v, Decimal) else v for v in answer] == value


def test_decimals_of_results_are_the_nearest_doubles() -> None:
    draw = random.Random(1)
    for scale in (1, 2, 9, 20):
        numbers = [Decimal(draw.randrange(-(10**18), 10**18) >> draw.randrange(60)).scaleb(-scale) for _ in range(500)]
        column = pa.chunked_array([pa.array([*numbers, None], pa.decimal128(38, scale))])
        assert plain(column).to_pylist() == [*map(float, numbers), None]
        lists = pa.chunked_array([pa.array([numbers, None], pa.list_(column.type))])
        assert plain(lists).to_pylist() == [[*map(float, numbers)], None]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(SELECT x FROM r)", [None, None]),
        ("(SELECT s.x FROM r AS s WHERE s.x >= r.x)", [None, 2]),
        ("x = (SELECT x FROM r UNION ALL SELECT 3)", [None, None]),
        ("x IN (SELECT x FROM r) AND n = (SELECT n FROM r)", [None, None]),
        ("sum(x) OVER (ORDER BY x ROWS BETWEEN n PRECEDING AND CURRENT ROW)", [None, 3]),
        ("sum(x) OVER (ORDER BY x ROWS BETWEEN CURRENT ROW AND n FOLLOWING)", [None, 2]),
        ("sum(x) OVER (ORDER BY x RANGE BETWEEN n PRECEDING AND CURRENT ROW)", [None, 3]),
        ("sum(x) OVER (ORDER BY d RANGE BETWEEN INTERVAL (n) DAY PRECEDING AND CURRENT ROW)", [None, 3]),
        ("time_bucket(INTERVAL (n) DAY, d)", [None, date(2024, 1, 1)]),
        ("time_bucket(INTERVAL '1 month 1 day', d)", [None, None]),
        ("CASE WHEN x = 2 THEN CAST(d AS INTEGER) ELSE x END", [1, None]),
    ],
)
def test_what_cannot_be_tried_is_null_for_its_row_alone(sandbox: Sandbox, expression: str, value: list[object]) -> None:
    table = pa.table({"x": [1, 2], "n": [-1, 2], "d": [date(2024, 1, 1)] * 2})
    answer = sandbox.query(f"SELECT {expression} AS v FROM r ORDER BY x", {"r": table}).column("v").to_pylist()
    assert answer == value


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT x FROM r ORDER BY x LIMIT (SELECT min(n) FROM r)", []),
        ("SELECT x FROM r ORDER BY x LIMIT (SELECT n FROM r)", []),
        ("SELECT x FROM r ORDER BY x LIMIT 1 OFFSET (SELECT min(n) FROM r)", [1]),
        ("SELECT max(x, 0) FROM r", [None]),
        ("SELECT arg_max(x, n, -1) FROM r", [None]),
        ("SELECT x FROM (SELECT x FROM r) WHERE x > (SELECT x FROM r)", []),
    ],
)
def test_numbers_of_rows_without_a_meaning_are_answered(sandbox: Sandbox, sql: str, rows: list[object]) -> None:
    table = pa.table({"x": [1, 2], "n": [-1, 2]})
    assert sandbox.query(sql, {"r": table}).column(0).to_pylist() == rows


LATE = "(CASE WHEN range < 900000 THEN '1' ELSE '123-45' END)"


@pytest.mark.parametrize(
    ("sql", "slug"),
    [
        (f"SELECT CAST({LATE} AS INTEGER) FROM range(1000000)", "sandbox_value"),
        (f"SELECT error({LATE}) FROM range(1000000) WHERE {LATE} <> '1'", "sandbox_value"),
        ("SELECT range FROM range(100000000000) WHERE range < 5 OR range > 99999999990", "sandbox_time"),
    ],
)
def test_an_error_in_the_middle_of_a_stream_is_refused_without_its_values(
    sandbox: Sandbox, sql: str, slug: str
) -> None:
    with pytest.raises(Error) as caught:
        sandbox.query(sql, {}, timeout_seconds=0.3 if slug == "sandbox_time" else 30, strict=True)
    assert caught.value.slug == slug
    assert "123-45" not in caught.value.text()


def test_a_broken_engine_is_replaced(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("INTERNAL Error: 123-45")

    before = sandbox._open()
    with monkeypatch.context() as patch, pytest.raises(Error) as caught:
        patch.setattr(Scratch, "_fetch", fails)
        sandbox.query("SELECT 1", {})
    assert (caught.value.slug, "123-45" in caught.value.text()) == ("sandbox_broken", False)
    assert sandbox._open() is not before
    assert sandbox.query("SELECT 1 AS x", {}).num_rows == 1


def test_nothing_is_left_behind(sandbox: Sandbox) -> None:
    table = pa.table({"x": [1, 2]})
    gone = weakref.ref(table)
    with sandbox.scratch() as other:
        assert sandbox.query("SELECT sum(x) AS s FROM analyst_a", {"analyst_a": table}).num_rows == 1
        with pytest.raises(Error) as caught:
            other.query("SELECT * FROM analyst_a", {})
        assert caught.value.slug == "sandbox_query"
    seen = sandbox.query("SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal", {})
    assert seen.to_pydict() == {"n": [0]}
    del table
    gc.collect()
    assert gone() is None


def test_threads_do_not_see_each_other(sandbox: Sandbox) -> None:
    wrong: list[object] = []

    def ask(number: int) -> None:
        for _ in range(15):
            got = sandbox.query("SELECT x FROM t", {"t": pa.table({"x": [number]})}).to_pydict()
            if got != {"x": [number]}:
                wrong.append(got)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forked_child_opens_its_own(sandbox: Sandbox) -> None:
    sandbox.query("SELECT 1", {})
    child = os.fork()
    if child == 0:
        fine = sandbox.query("SELECT 41 + 1 AS x", {}).to_pydict() == {"x": [42]}
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP"])
def test_days_that_no_client_can_write_are_null(sandbox: Sandbox, type_: str) -> None:
    texts = ["9999-12-31", "10000-01-01", "0001-01-01", "0001-12-31 (BC)", "infinity", "-infinity"]
    values = ", ".join(f"({type_} '{text}')" for text in texts)
    days = sandbox.query(f"SELECT d FROM (VALUES {values}) t(d)", {}).column(0)
    assert [None if day is None else day.year for day in plain(days).to_pylist()] == [9999, None, 1, None, None, None]


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("TIMESTAMP '2024-03-04 02:03:04' - TIMESTAMP '2023-01-01'", "428 days 02:03:04"),
        ("to_months(14) - to_days(3)", "1 year 2 mons -3 days"),
        ("to_seconds(-1.5)", "-00:00:01.5"),
        ("[INTERVAL 1 DAY, NULL]", "[1 day, NULL]"),
        ("{'low': true, 'high': TIMESTAMP '2024-03-04 02:03:04'}", "{'low': true, 'high': 2024-03-04 02:03:04}"),
        ("'a\\x00'::BLOB", "\\x6100"),
        ("TIME '12:00:01'", "12:00:01"),
        ("NULL::INTERVAL", None),
    ],
)
def test_values_without_a_type_of_ours_are_written_as_sql_writes_them(
    sandbox: Sandbox, sql: str, text: str | None
) -> None:
    """MAX(seen) - MIN(seen) must not be answered as MonthDayNano(months=0, ...), after its charge."""
    assert plain(sandbox.query(f"SELECT {sql} AS v", {}).column(0)).to_pylist() == [text]


# --- Numbers in human-readable form: no line of three hundred digits --------------------------------------------------


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (0.0, "0"), (0.01234, "0.0124"), (999.1, "1e+03"), (123456.0, "124,000"), (1e304, "1e+304"),
        (1.2344e20, "1.24e+20"), (float("inf"), "inf"), (5e-324, "4.94066e-324"),
    ],
)  # fmt: skip
def test_half_widths_are_short(width: float, text: str) -> None:
    assert half_width_text(width) == text


@pytest.mark.parametrize(("value", "error"), [(1e304, 2e303), (3.0, 1e304), (10**30, 5.0), (-1e200, None)])
def test_huge_numbers_in_a_page_are_written_with_exponents(value: float, error: float | None) -> None:
    page = answer_html(["x"], [(value,)], [[error]], 1, ())
    assert "plusmn" in page and len(page) < 200
