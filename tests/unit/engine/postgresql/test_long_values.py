"""Values of any length are read: no row of a person makes a question fail because PostgreSQL's texts end at a gigabyte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
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
