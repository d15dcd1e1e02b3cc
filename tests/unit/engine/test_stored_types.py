"""Types of real databases: what a column means in the policy's types, on every engine that stores it, compared with Python."""

import codecs
import gzip
import itertools
import json
import random
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.exact_session import exact_session
from support.plain_duckdb import plain_duckdb
from support.postgres_source import server
from support.spark_source import spark

from dpsql.engine.duckdb.literals import cast_column
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Fault
from dpsql.plan.intervals import Type
from dpsql.policy import Policy, parse_policy
from dpsql.privacy.loss import PrivacyLoss
from dpsql.session.session import open_session

__all__ = ["server", "spark"]
_ledgers = itertools.count(1)
ZONES = ("Europe/Berlin", "America/St_Johns", None)
Build = Callable[[list[datetime | None]], tuple[str, Any]]
"""Stores points of time in the column `moment` of a table `t` beside their numbers `n`; returns the policy's source and its object."""
Stored = Callable[[list[Any], pa.DataType, str], tuple[str, Any]]
"""Stores values of an Arrow and an SQL type in the column `x` of `t` beside their numbers `n`; returns the same."""


def policy(folder: Path, source: str, columns: dict[str, Any], **more: Any) -> Policy:
    """Return a policy over a table `t` whose rows are numbered by `n`."""
    table = {"columns": {"n": {"type": "integer"}, **columns}, **({"source": "t.csv"} if source == "csv" else {})}
    return parse_policy(
        json.dumps({
            "dataset": "d", "privacy_unit": "row", "budget": {"epsilon": 9, "delta": 1e-6}, "ledger": "sqlite:///l.db",
            "tables": {"t": table}, **({"source": source} if source not in ("csv", "") else {}), **more,
        }),
        folder=folder,
    )  # fmt: skip


def values(known: Policy, source: Any = None) -> dict[str, list[Any]]:
    """Return the columns of `t` in the types of the policy, in the order of `n`."""
    engine = open_engine(known, source)
    try:
        engine.check_readable(("t",))
        columns = engine.dialect.columns_of(known.tables["t"], engine.source("t"))
        items = ", ".join(f"{text} AS {name}" for name, text in columns.items())
        rows = sorted(
            engine.exact_rows(f"SELECT {items} FROM {engine.source('t').sql}").to_pylist(), key=lambda r: r["n"]
        )
    finally:
        engine.close()
    return {name: [row[name] for row in rows] for name in columns}


@pytest.fixture(
    params=["table", "csv", "parquet", "arrow", "postgresql", pytest.param("spark", marks=pytest.mark.slow)]
)
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """Return a function that stores points of time in one kind of source."""

    def table(moments: list[datetime | None]) -> pa.Table:
        return pa.table(
            {"n": pa.array(range(len(moments)), pa.int64()), "moment": pa.array(moments, pa.timestamp("us", "UTC"))}
        )

    def in_table(moments: list[datetime | None]) -> tuple[str, Any]:
        with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
            rows = table(moments)
            connection.register("rows", rows)
            connection.execute("CREATE OR REPLACE TABLE t AS FROM rows")
        return "duckdb:///t.duckdb", None

    def in_csv(moments: list[datetime | None]) -> tuple[str, Any]:
        clocks = (UTC, ZoneInfo("America/New_York"))
        shown = (m and m.astimezone(clocks[1 < m.year < 9999]).isoformat(" ") for m in moments)
        (tmp_path / "t.csv").write_text("n,moment\n" + "".join(f"{n},{text or ''}\n" for n, text in enumerate(shown)))
        return "csv", None

    def in_parquet(moments: list[datetime | None]) -> tuple[str, Any]:
        pq.write_table(table(moments), tmp_path / "t.parquet")
        return str(tmp_path / "t.parquet"), None

    def in_postgresql(moments: list[datetime | None]) -> tuple[str, Any]:
        url = request.getfixturevalue("server").database()
        with psycopg.connect(url, autocommit=True) as owner:
            owner.execute("CREATE TABLE t (n int, moment timestamptz)")
            owner.cursor().executemany("INSERT INTO t VALUES (%s, %s)", list(enumerate(moments)))
        return url, None

    def in_spark(moments: list[datetime | None]) -> tuple[str, Any]:
        session = request.getfixturevalue("spark")
        session.createDataFrame(table(moments)).createOrReplaceTempView("t")
        return "spark://local[2]", session

    kinds: dict[str, Build] = {
        "table": in_table, "csv": in_csv, "parquet": in_parquet, "postgresql": in_postgresql, "spark": in_spark,
        "arrow": lambda moments: ("", {"t": table(moments)}),
    }  # fmt: skip
    return kinds[request.param]


def _moments(seed: int) -> list[datetime | None]:
    """Return points of time since 1970: any ones, and some around the changes of clocks."""
    rng, first = random.Random(seed), datetime(1970, 1, 1, tzinfo=UTC)
    anywhere = [first + timedelta(microseconds=rng.randrange(68 * 365 * 86_400 * 10**6)) for _ in range(40)]
    changes = [
        datetime(year, month, day, 1, tzinfo=UTC) for year, month, day in ((2024, 3, 31), (2024, 10, 27), (1980, 4, 6))
    ]
    around = [moment + timedelta(microseconds=by) for moment in changes for by in (-1, 0, 1, 3_600_000_000)]
    return [*anywhere, *around, None]


def test_points_of_time_are_shown_by_the_clock_of_their_zone(build: Build, tmp_path: Path) -> None:
    """Also on the day that this clock shows. The zone is that of the column, else that of the file."""
    moments = _moments(37)
    source, given = build(moments)
    for zone in ZONES:
        of_column = {} if zone is None else {"timezone": zone}
        for columns, more in (
            ({"moment": {"type": "timestamp", **of_column}}, {"timezone": "Asia/Tokyo"} if zone else {}),
            ({"moment": {"type": "date"}}, of_column),
        ):
            if zone is None and source == "csv":
                continue  # without a zone, texts with an offset are read as the clock that wrote them
            shown = [m and m.astimezone(ZoneInfo(zone or "UTC")).replace(tzinfo=None) for m in moments]
            wanted = [m and (m.date() if columns["moment"]["type"] == "date" else m) for m in shown]
            assert values(policy(tmp_path, source, columns, **more), given)["moment"] == wanted


def test_texts_without_an_offset_are_what_a_clock_has_shown(tmp_path: Path) -> None:
    cells = {"2024-06-01 23:30:00": (2024, 6, 1, 23, 30), "2024-06-01": (2024, 6, 1), "2024-06-01 23:30:00Z": (2024, 6, 2, 1, 30),
             "2024-06-01T23:30:00.5+0530": (2024, 6, 1, 20, 0, 0, 500_000), "23:30": None, "no+00": None, "1:00 x+00": None}  # fmt: skip
    (tmp_path / "t.csv").write_text("n,moment\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells)))
    known = policy(tmp_path, "csv", {"moment": {"type": "timestamp", "timezone": "Europe/Berlin"}})
    assert values(known)["moment"] == [numbers and datetime(*numbers) for numbers in cells.values()]


def test_moments_at_the_ends_of_the_calendar_fail_nowhere(tmp_path: Path, build: Build) -> None:
    ends = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    source, given = build([*ends, None])
    for zone in ("Pacific/Auckland", "America/Los_Angeles"):
        for type_ in ("timestamp", "date"):
            assert (
                values(policy(tmp_path, source, {"moment": {"type": type_, "timezone": zone}}), given)["moment"]
                == [None] * 3
            )


def test_a_night_shift_is_one_day(tmp_path: Path) -> None:
    """Answers, groups and DESCRIBE are in the zone, and another zone is charged again."""
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT i AS n, TIMESTAMPTZ '2024-06-01 22:30:00+00' AS moment FROM range(9000) AS r(i)"
        )
    charged = []
    for zone in ("Europe/Berlin", "Europe/Berlin", "UTC"):
        text = {"type": "date", "lower": "2024-06-01", "upper": "2024-06-02", "nullable": False, "timezone": zone}
        place = tmp_path / "p.yaml"
        place.write_text(
            json.dumps({
                "dataset": "d", "privacy_unit": "row", "budget": {"epsilon": 99, "delta": 1e-6}, "per_query": {"epsilon": 4},
                "source": "duckdb:///t.duckdb", "ledger": "sqlite:///l.db",
                "tables": {"t": {"columns": {"n": {"type": "integer"}, "moment": text}}},
            })
        )  # fmt: skip
        with open_session(place, create_ledger=not charged) as session:
            release = session.execute("SELECT moment, COUNT(*) AS n FROM t GROUP BY moment")
            most = max((row for row in release.rows()), key=lambda row: row[1])
            assert most[0] == date(2024, 6, 1 if zone == "UTC" else 2)
            charged.append(release.receipt.loss != PrivacyLoss.nothing())
            assert any(f"by the clock of {zone}" in str(row) for row in session.execute("DESCRIBE t").rows())
    assert charged == [True, False, True]


def test_a_zone_that_the_engine_does_not_know_is_refused_before_any_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Build
) -> None:
    monkeypatch.setattr("dpsql.policy.values.available_timezones", lambda: {"Europe/Nowhere"})
    source, given = build([])
    with pytest.raises(Fault) as fault:
        values(policy(tmp_path, source, {"moment": {"type": "date"}}, timezone="Europe/Nowhere"), given)
    assert fault.value.slug == "source_zone"


# --- truth values, times of day and identifiers ---------------------------------------------------------------------------

WORDS = ["t", "T", "f", "yes", "No", "Y", "n", "TRUE", "false", "1", "0", "2", "on", "", " t", "maybe", "\u212a", None]
MEANT = {
    "t": True,
    "yes": True,
    "y": True,
    "true": True,
    "1": True,
    "f": False,
    "no": False,
    "n": False,
    "false": False,
    "0": False,
}
CLOCK = {"00:00:00": 0, "08:30:00": 30_600, "23:59:59.75": 86_399, "24:00:00": 86_400}


@pytest.mark.parametrize("where", ["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.slow)])
def test_truth_values_times_and_identifiers_mean_the_same_everywhere(
    tmp_path: Path, request: pytest.FixtureRequest, where: str
) -> None:
    """Words and numbers as truth values; times of day as texts and as seconds since midnight; UUIDs as texts."""
    uuids, clocks = [None, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], [None, *CLOCK]
    rows = [(n, word, n % 3 - 1, clocks[n % len(clocks)], uuids[n % 2]) for n, word in enumerate(WORDS)]
    given: Any = None
    if where == "spark":
        given = request.getfixturevalue("spark")
        text, number = "n int, word string, number int", "spark://local[2]"
        given.createDataFrame([row[:3] for row in rows], text).createOrReplaceTempView("t")
        source = number
    else:
        ddl = "CREATE TABLE t (n int, word varchar, number int, clock time, id uuid)"
        if where == "postgresql":
            source = request.getfixturevalue("server").database()
            with psycopg.connect(source, autocommit=True) as owner:
                owner.execute(ddl)
                owner.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s, %s, %s)", rows)
        else:
            source = "duckdb:///t.duckdb"
            with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
                connection.execute(ddl)
                connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    columns = {"word": {"type": "boolean"}, "number": {"type": "boolean"}}
    stored = {} if where == "spark" else {"clock": {"type": "integer"}, "id": {"type": "text"}}
    read = values(policy(tmp_path, source, {**columns, **stored}), given)
    assert read["word"] == [None if word is None else MEANT.get(word.lower()) for word in WORDS]
    assert read["number"] == [bool(row[2]) for row in rows]
    if stored:
        assert read["clock"] == [row[3] and CLOCK[row[3]] for row in rows] and read["id"] == [row[4] for row in rows]
        written = values(policy(tmp_path, source, {"clock": {"type": "text"}}), given)["clock"]
        assert written == [row[3] for row in rows]


@pytest.fixture(
    params=["table", "csv", "parquet", "arrow", "postgresql", pytest.param("spark", marks=pytest.mark.slow)]
)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Stored:
    """Return a function that stores values of a type in the column `x` of a table `t` in one kind of source."""

    def store(values: list[Any], type_: pa.DataType, in_sql: str) -> tuple[str, Any]:
        kind, listed = request.param, list(enumerate(values))
        table = pa.table({"n": pa.array(range(len(values))), "x": pa.array(values, type_)})
        if kind == "csv":
            cells = "".join(f"{n},{'' if value is None else value}\n" for n, value in listed)
            (tmp_path / "t.csv").write_text(f"n,x\n{cells}")
        elif kind == "parquet":
            pq.write_table(table, tmp_path / "t.parquet")
        elif kind == "table":
            with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
                connection.register("rows", table)
                connection.execute("CREATE TABLE t AS FROM rows")
        elif kind == "postgresql":
            url = request.getfixturevalue("server").database()
            with psycopg.connect(url, autocommit=True) as owner:
                owner.execute(f"CREATE TABLE t (n int, x {in_sql})")
                owner.cursor().executemany("INSERT INTO t VALUES (%s, %s)", listed)
            return url, None
        elif kind == "spark":
            session = request.getfixturevalue("spark")
            session.createDataFrame(table).createOrReplaceTempView("t")
            return "spark://local[2]", session
        else:
            return "", {"t": table}
        return {"csv": "csv", "parquet": str(tmp_path / "t.parquet"), "table": "duckdb:///t.duckdb"}[kind], None

    return store


def answer(folder: Path, source: tuple[str, Any], sql: str, **column: Any) -> list[Any]:
    """Return the rows of an answer without noise about the column `x` of `t`."""
    known = policy(folder, source[0], {"x": column})
    ledger = folder / f"{next(_ledgers)}.db"
    with exact_session(known, None, ledger, opened=lambda named: open_engine(named, source[1])) as session:
        return list(session.execute(sql).rows())


def test_decimals_are_summed_in_steps_of_their_scale(stored: Stored, tmp_path: Path) -> None:
    """Sums, averages and quantiles are those of exact arithmetic, and listed values are keys; float rounding touches none."""
    rng, low, high = random.Random(37), Decimal("-0.05"), Decimal("99999.99")
    listed = [Decimal("0.29"), Decimal("1.15"), Decimal("8.03")]
    prices = [*(Decimal(rng.randrange(-9, 12_000_000)) / 100 for _ in range(300)), *listed * 40, None, low, high]
    source = stored(prices, pa.decimal128(12, 2), "numeric(12, 2)")
    money = {"type": "real", "scale": 2}
    ends = {**money, "lower": str(low), "upper": str(high)}
    clamped = [min(max(price, low), high) for price in prices if price is not None]
    assert answer(tmp_path, source, "SELECT SUM(x) AS s FROM t", **ends) == [(float(sum(clamped)),)]
    sql = "SELECT SUM(x) AS s, AVG(x) AS a, COUNT(x) AS c FROM t"
    ((total, mean, count),) = answer(tmp_path, source, sql, **ends)
    assert count == len(clamped) and mean == pytest.approx(float(sum(clamped) / count), rel=1e-15)
    assert total == float(sum(clamped))
    computed = {
        "-x * 3": -3 * sum(clamped), "x * x": sum(price * price for price in clamped), "1.5 + x": sum(clamped) + 3 * count / Decimal(2),
        "clamp(x, 0.25, 100)": sum(min(max(price, Decimal("0.25")), 100) for price in clamped),
        "CASE WHEN x > 8 THEN x ELSE 0 END": sum(price for price in clamped if price > 8),
    }  # fmt: skip
    for value, exact in computed.items():
        assert answer(tmp_path, source, f"SELECT SUM({value}) AS s FROM t", **ends) == [(float(exact),)]
    sql = "SELECT SUM(x) AS s FROM (SELECT x FROM t UNION ALL SELECT CAST(0.5 AS DECIMAL(3, 1)) FROM t)"
    assert answer(tmp_path, source, sql, **ends) == [(float(sum(clamped) + Decimal(len(prices)) / 2),)]
    ((median,),) = answer(tmp_path, source, "SELECT MEDIAN(x) AS m FROM t", **money, lower=str(low), upper="900.00")
    within = sorted(min(price, Decimal(900)) for price in clamped)
    assert Decimal(str(median)) in within[len(within) // 2 - 1 : len(within) // 2 + 2]
    sql = "SELECT x, COUNT(*) AS n, SUM(x) AS s FROM t GROUP BY x"
    groups = answer(tmp_path, source, sql, **money, domain=[str(price) for price in listed])
    assert groups[:3] == [(float(p), prices.count(p), float(p * prices.count(p))) for p in listed]


LONG = {
    "'101'::BIT": 5, "repeat('0', 300)::BIT": None, "repeat('1', 63)::BIT": 2**63 - 1, "repeat('1', 64)::BIT": None,
    "'-12'::BIGNUM": -12, "repeat('9', 18)::BIGNUM": 10**18 - 1, "('-' || repeat('9', 50))::BIGNUM": None,
    "repeat('9', 400)::BIGNUM": None,
}  # fmt: skip
"""Values of DuckDB's types of any length, as whole numbers."""


@pytest.mark.parametrize("value", LONG)
def test_a_value_of_any_length_ends_no_question(value: str) -> None:
    """Whatever the policy declares, it is read or NULL, and as a number it is the same whole number or real."""
    type_ = value.rpartition("::")[2]
    connection, read = plain_duckdb().cursor(), dict[Type, Any]()
    for target in (Type.INTEGER, Type.REAL, Type.TEXT, Type.BOOLEAN, Type.DATE, Type.TIMESTAMP):
        text = cast_column("x", target, type_)
        ((read[target],),) = connection.execute(f"SELECT {text} FROM (SELECT {value} AS x)").fetchall()
    whole = LONG[value]
    assert read[Type.INTEGER] == whole and (whole is None or read[Type.REAL] == float(whole))


def test_texts_are_equal_if_their_bytes_are(stored: Stored, tmp_path: Path) -> None:
    """A letter with a combining accent is another key than the composed letter, on every engine."""
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    source = stored([composed] * 3 + [decomposed] * 2, pa.string(), "text")
    sql = "SELECT x, COUNT(*) AS n FROM t GROUP BY x"
    for listed, counts in (([composed], [3]), ([decomposed, composed], [2, 3])):
        groups = answer(tmp_path, source, sql, type="text", domain=listed, nullable=False)
        assert groups == list(zip(listed, counts, strict=True))
    assert answer(tmp_path, source, "SELECT COUNT(DISTINCT x) AS n FROM t", type="text") == [(2,)]


# --- files ------------------------------------------------------------------------------------------------------------

NUMBERS = {"80000,25": 80000.25, "1.234,5": 1234.5, "1.234.567": 1234567.0, "-,5": -0.5, " 7 ": 7.0, "1e3": 1000.0, "12.34": None,
           "1.2345,0": None, "1,2,3": None, "": None, "nan": None, "0x1F": None, ",": None, "+3,": 3.0}  # fmt: skip


def test_numbers_are_read_with_a_decimal_comma(tmp_path: Path) -> None:
    """In columns of numbers alone; points stand between thousands, or the cell is no number."""
    (tmp_path / "t.csv").write_text(
        "n;x;i;s\n" + "".join(f"{n};{cell};{cell};{cell}\n" for n, cell in enumerate(NUMBERS))
    )
    columns = {"x": {"type": "real"}, "i": {"type": "integer"}, "s": {"type": "text"}}
    read = values(policy(tmp_path, "csv", columns, csv={"decimal": ",", "delimiter": ";"}))
    assert read["x"] == [*NUMBERS.values()] and read["s"] == [cell or None for cell in NUMBERS]
    rounded = [None if x is None else int(abs(x) + 0.5) * (1 if x > 0 else -1) for x in NUMBERS.values()]
    assert read["i"] == rounded


DAYS = ("1.2.2024", "31.12.2024", "12/31/2024", " 05-06-2024 ", "13.13.2024", "29.2.2023", "29.2.2024", "0.1.2024", "1.2.24", "1.2.20245",
        "1.2.2024x", "2024-02-01", "2024.2.1", "1.2.0999", "1.2.10000", "1..2024", "1.2.2024.", "", "x", "01.02.2024 23:30", "01.02.2024T23:30:15",
        "01.02.2024 24:30", "1.2.2024 23:30:00+00:00", "2024-02-01 23:30:00+00:00", "1.2.2024 23:30+25:00")  # fmt: skip


def _written_days(seed: int) -> list[str]:
    """Return texts like days, with other digits and signs, any time and offset behind them, and of any length."""
    rng = random.Random(seed)
    behind = (
        " 23:30",
        "T00:30:15.5",
        " 24:00",
        " 12:60",
        " 12",
        "-10:00",
        ".5",
        " 12:00 PM",
        f" 12:00:00.{'1' * 10**5}",
        " Nowhere/Zone",
        "\u0660",
    )
    offsets = ("Z", " +01:00", "-0930", "+14:00", "-15:59", "+99:99", " UTC", " (BC)", f"+01{'0' * 10**4}")
    few = [
        f"{' ' * 10**5}1.2.2024",
        "1.2.2024" * 10**4,
        "\u0661.\u0662.2024",
        "\uff11.2.2024",
        "+1.2.2024",
        "1.-2.2024",
        "epoch",
        "infinity",
    ]
    for _ in range(500):
        numbers = (str(rng.choice((1, 2, 12, 29, 31, 32, 0))).zfill(rng.choice((1, 2, 2, 3))) for _ in range(2))
        mark, year = rng.choice("./-"), rng.choice(("2024", "2023", "1582", "0001", "9999", "24", "20240"))
        parts = (*(rng.choice(("", "", *more)) for more in (behind, offsets)), rng.choice(("", " ", "\t", "\xa0")))
        few.append(mark.join([*numbers, year]) + "".join(parts))
    return few


DAYS += tuple(_written_days(5))


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("order", ["dmy", "mdy"])
def test_days_are_read_in_the_order_of_the_policy(tmp_path: Path, order: str, zone: str | None) -> None:
    """As the ISO text with the same parts is read, or as NULL; ISO days stay, and columns of other types."""

    def in_iso(cell: str) -> str:
        parts = re.match(r"\s*(\d{1,2})[./-](\d{1,2})[./-](\d{4})(?!\d)", cell, re.ASCII)
        if parts is None:
            return cell
        first, second, year = parts.groups()
        day, month = (first, second) if order == "dmy" else (second, first)
        return f"{year}-{month:0>2}-{day:0>2}{cell[parts.end() :]}"

    types = {name: {"type": name, **({"timezone": zone} if zone else {})} for name in ("date", "timestamp")}
    read = []
    for name, cells, days in (("written", DAYS, order), ("iso", [*map(in_iso, DAYS)], "ymd")):
        (tmp_path / name).mkdir()
        lines = [f'{n},"{cell}","{cell}","{cell}"\n' for n, cell in enumerate(cells)]
        (tmp_path / name / "t.csv").write_text("".join(["n,date,timestamp,s\n", *lines]))
        read.append(values(policy(tmp_path / name, "csv", {**types, "s": {"type": "text"}}, csv={"days": days})))
    written, iso = read
    halves = ["3.4.2024 2:30 PM", "3.4.2024 12:05:09am ", "2024-03-04 12:30 pm", "3.4.2024 13:00 PM", "PM"]
    (tmp_path / "t.csv").write_text("".join(["n,timestamp\n", *(f'{n},"{cell}"\n' for n, cell in enumerate(halves))]))
    times = values(policy(tmp_path, "csv", {"timestamp": types["timestamp"]}, csv={"days": order}))["timestamp"]
    day = (2024, 4, 3) if order == "dmy" else (2024, 3, 4)
    assert times == [datetime(*day, 14, 30), datetime(*day, 0, 5, 9), datetime(2024, 3, 4, 12, 30), None, None]
    assert written["date"] == iso["date"] and written["timestamp"] == iso["timestamp"]
    assert written["s"] == [cell or None for cell in DAYS]
    at = DAYS.index("1.2.2024")
    assert written["date"][at] == date(2024, *((2, 1) if order == "dmy" else (1, 2)))
    assert [written["date"][DAYS.index(cell)] for cell in ("1.2.24", "1.2.20245", "13.13.2024")] == [None, None, None]


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "windows-1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_its_encoding_is_the_file_in_utf_8(
    tmp_path: Path, encoding: str, ending: str, monkeypatch: Any
) -> None:
    """Wherever blocks end, and whatever is in the cells that the encoding can hold."""
    monkeypatch.setattr("dpsql.engine.csv_files.BLOCK_BYTES", 8)
    rng, letters = (
        random.Random(encoding),
        "aßü\xa0é\"' ,\r" + ("" if encoding == "latin-1" else "€") + ("日\U0001f600" if encoding[:3] == "utf" else ""),
    )
    cells = [
        "".join(rng.choice(letters.replace(",", "").replace('"', "")) for _ in range(rng.randrange(9)))
        for _ in range(60)
    ]
    text = "n,größe\r\n" + "".join(f"{n},{cell}\n" for n, cell in enumerate(cells))
    raw = text.encode(encoding) if encoding != "utf-16-be" else codecs.BOM_UTF16_BE + text.encode(encoding)
    (tmp_path / f"t.{ending}").write_bytes(gzip.compress(raw) if ending.endswith("gz") else raw)
    named = encoding[:6] if encoding.startswith("utf-16") else encoding
    columns = {"s": {"type": "text", "from": "größe"}}
    known = policy(tmp_path, str(tmp_path / f"t.{ending}"), columns, csv={"encoding": named})
    ends = [cell.removesuffix("\r") for cell in cells]
    assert values(known)["s"] == [cell or None for cell in ends]


@pytest.mark.parametrize(("encoding", "hostile"), [
    ("windows-1252", b"\x81"), ("windows-1252", b"\xc3\x81\x8d"), ("windows-1252", b"a\0b"), ("utf-16", b"\x00\xd8"), ("utf-16", b"\x00\xdc\x00\xd8"),
    ("utf-16", b"\x00\x00"),
])  # fmt: skip
def test_what_is_no_character_is_null_and_changes_no_other_line(tmp_path: Path, encoding: str, hostile: bytes) -> None:
    code = "utf-16-le" if encoding == "utf-16" else encoding
    lines = [
        "n,s\n".encode(code),
        "0,a\n".encode(code),
        "1,".encode(code) + hostile + "\n".encode(code),
        "2,ü\n".encode(code),
    ]
    for number in (2, 3):
        (tmp_path / "t.csv").write_bytes(b"".join([*lines[:number], *lines[3:]]))
        read = values(policy(tmp_path, "csv", {"s": {"type": "text"}}, csv={"encoding": encoding}))
        assert read == ({"n": [0, 2], "s": ["a", "ü"]} if number == 2 else {"n": [0, 1, 2], "s": ["a", None, "ü"]})
    (tmp_path / "t.csv").write_bytes(b"".join(lines)[:-1])
    assert values(policy(tmp_path, "csv", {"s": {"type": "text"}}, csv={"encoding": encoding}))["s"][0] == "a"


@pytest.mark.parametrize("label", ["x READ BY Europe/Berlin", "BY , READ x", "') READ BY ,", "READ BY y"])
def test_names_of_an_enumerated_type_are_no_rule_of_reading(tmp_path: Path, label: str) -> None:
    """DuckDB's name of the type has all of them, whatever they are."""
    with duckdb.connect() as connection:
        quoted = "'" + label.replace("'", "''") + "'"
        for labels in (f"'a', {quoted}", f"{quoted}, 'a'"):
            connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT 0 AS n, {quoted}::ENUM({labels}) AS k")
            read = values(policy(tmp_path, "duckdb:///t.duckdb", {"k": {"type": "text"}}), connection)
            assert read["k"] == [label]
