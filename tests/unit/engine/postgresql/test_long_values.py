"""Values of any length are read: no row of a person makes a question fail because PostgreSQL's texts end at a gigabyte."""

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from support.places import ROOT
from support.postgres_source import Server, server

from dpsql.engine.dialect import MOST_SENT_BYTES
from dpsql.engine.postgresql.connections import MEANING
from dpsql.engine.postgresql.dialect import PostgreSQLDialect

__all__ = ["server"]
DIALECT = PostgreSQLDialect()
COLUMNS = 1664
"""The most columns of a SELECT of PostgreSQL."""
MOST_TEXT = 2**30
"""The bytes of a text at which PostgreSQL raises."""


@pytest.fixture(scope="module")
def connection(server: Server) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(server.database()) as opened:
        opened.execute(MEANING.format(milliseconds=0))
        yield opened


def hashed_bytes(connection: psycopg.Connection[Any], stored: str) -> int:
    """Return how many bytes of text are hashed for a row of one column `v`, given by the SELECT `stored`."""
    connection.execute("DROP TABLE IF EXISTS held")
    connection.execute(f"CREATE TEMP TABLE held AS {stored}")
    text = DIALECT.keyed_order("k", ["v"])
    assert text.startswith("sha256(")
    row = connection.execute(f"SELECT octet_length{text.removeprefix('sha256')} FROM held").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("stored", [
    "SELECT repeat('\"', 3000000) AS v", "SELECT string_agg(sha256(i::text::bytea)::text, '\"') AS v FROM generate_series(1, 30000) AS i",
    "SELECT repeat('\"', 200000) AS v", "SELECT repeat(E'\\\\', 990) AS v",
    "SELECT CAST(9.9 AS numeric) ^ 30000 AS v", "SELECT to_jsonb(repeat('\"', 3000000)) AS v",
])  # fmt: skip
def test_the_text_of_a_row_has_a_bound(connection: psycopg.Connection[Any], stored: str) -> None:
    """A row of all columns that there can be, each with this value, has a text."""
    assert COLUMNS * hashed_bytes(connection, stored) < MOST_TEXT


def test_long_values_that_differ_have_different_hashes(connection: psycopg.Connection[Any]) -> None:
    values = (
        "(VALUES (repeat('a', 5000) || 'b'), (repeat('a', 5000) || 'c'), (repeat('a', 5000)), ('a'), (NULL)) AS t (v)"
    )
    orders = connection.execute(f"SELECT DISTINCT {DIALECT.keyed_order('k', ['v'])} FROM {values}").fetchall()
    assert len(orders) == 5


def test_a_key_that_cannot_be_sent_is_null(connection: psycopg.Connection[Any]) -> None:
    sizes = (MOST_SENT_BYTES, MOST_SENT_BYTES + 1, 50_000_000)
    values = ", ".join(f"(repeat('x', {size}))" for size in sizes)
    rows = connection.execute(
        f"SELECT octet_length({DIALECT.sent_text('v')}) FROM (VALUES {values}) AS t (v)"
    ).fetchall()
    assert rows == [(MOST_SENT_BYTES,), (None,), (None,)]


# --- The views that docs/postgresql.md recommends have a value or NULL for every text, on the version of the server ---


TEXTS = (
    "7", " -12 ", "+3", "eve", "", "1e3", "99999999999999999999", "-2147483648", "2147483648", "0x1F", "NaN", "infinity", "١٢",
    "2024-02-29", "2023-02-29", "2024-13-01", "0000-00-00", "24:00", "\t1\n", "1 000", "1_000", "now", "a\\b", "'", "5874898-01-01",
)  # fmt: skip
PAGE = (ROOT / "docs" / "postgresql.md").read_text(encoding="utf-8")
VIEWS = re.findall(r"```sql\n(.*?)```", PAGE.partition("## Views")[2], re.DOTALL)


@pytest.mark.parametrize("form", VIEWS)
def test_every_text_has_a_value(server: Server, form: str) -> None:
    with psycopg.connect(server.database(), autocommit=True) as owner:
        if owner.info.server_version < 160000:
            form = VIEWS[1]
        owner.execute("CREATE TABLE raw_visits (person integer, note text, day text)")
        with owner.cursor() as cursor:
            cursor.executemany("INSERT INTO raw_visits VALUES (%s, %s, %s)", [(at, t, t) for at, t in enumerate(TEXTS)])
        owner.execute(form)  # type: ignore[call-overload]
        read = owner.execute("SELECT score, day::text FROM typed_visits ORDER BY person").fetchall()
    values = dict(zip(TEXTS, read, strict=True))
    assert [values[text][0] for text in ("7", " -12 ", "+3", "eve", "")] == [7, -12, 3, None, None]
    assert [values[text][1] for text in ("2024-02-29", "2023-02-29", "eve", "7")] == ["2024-02-29", None, None, None]


def test_the_page_recommends_no_cast_that_fails() -> None:
    """Each cast of the page's views stands behind a test of its text, or inside of the function that catches its failure."""
    assert len(VIEWS) == 2
    assert (ROOT / "docs" / "spark.md").read_text(encoding="utf-8").count("try_cast(note AS INT)") == 1
    for text in VIEWS:
        for line in text.splitlines():
            assert "::" not in line or re.search(r"CASE WHEN .* THEN .*::.* END|RETURN \$1::date", line), line
