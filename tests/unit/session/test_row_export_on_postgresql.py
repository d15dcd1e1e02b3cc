"""Exports read a PostgreSQL server like DuckDB: the same rows at a huge epsilon, and the same refusals before the charge."""

from collections import Counter
from fractions import Fraction
from math import inf
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export_clinic import PEOPLE, export_session, people, policy_facts
from support.postgres_source import Server, load, server
from support.server_folder import server_folder

from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy
from dpsql.privacy.mechanisms.local_randomizers import STEPS
from dpsql.session.row_export import RowExport
from dpsql.session.session import open_session
from unit.engine.postgresql.test_engine import Wire

__all__ = ["server"]
TYPES = {
    "integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip
MOST_ODD = 4
"""Most rows of a column, of both exports, that are written far from their numbers."""


@pytest.mark.slow
def test_a_server_exports_the_rows_that_duckdb_exports(server: Server, tmp_path: Path) -> None:
    url, rows = server.database(), people(400)
    schema = pa.schema([(name, TYPES[facts["type"]]) for name, facts in PEOPLE.items()])
    with psycopg.connect(url, autocommit=True) as connection:
        load(connection, "people", schema, rows.select(schema.names).to_pylist())
    tables = {"people": policy_facts()["tables"]["people"]}
    written = []
    columns = ("grade", "ward", "day", "region")
    for name, source in (("server", url), ("memory", None)):
        folder = tmp_path / name
        folder.mkdir()
        opened = export_session(folder, 0, rows={"people": rows}, tables=tables)
        if source is not None:
            opened.close()
            text = (folder / "clinic.yaml").read_text()
            (folder / "clinic.yaml").write_text(f"source: {source}\n{text}")
            opened = open_session(load_policy(folder / "clinic.yaml"))
        with opened as session:
            RowExport(session, "people", columns, Fraction(80), Fraction(500)).write(folder / "rows.parquet")
            RowExport(session, "people", ("age", "weight", "wide"), Fraction(60), Fraction(300)).write(
                folder / "n.parquet"
            )
            with pytest.raises(Error):
                RowExport(session, "people", ("note",), Fraction(1))
        table, numbers = pq.read_table(folder / "rows.parquet"), pq.read_table(folder / "n.parquet")
        ordered = {
            column: sorted(-inf if value is None else value for value in numbers[column].to_pylist())
            for column in numbers.column_names
        }
        written.append((Counter(zip(*(column.to_pylist() for column in table.columns), strict=True)), ordered))
    assert written[0][0] == written[1][0] and sum(written[0][0].values()) == 300
    for column in ("age", "weight", "wide"):
        step = (PEOPLE[column]["upper"] - PEOPLE[column]["lower"]) / STEPS
        assert are_near(written[0][1][column], written[1][1][column], 2.1 * step), column


def are_near(ours: list[float], theirs: list[float], most: float) -> bool:
    """Return whether two exports of the same numbers, in order, differ by no more than chance allows.

    At epsilon 20 a number is written within one step of itself, so that both are within `most`, unless it is rounded to an end
    (probability 3 / 65536) or leaves its window, which is one place wide (9e-6). Each such row moves others by one place in the
    order. Among 800 rows 0.044 are expected, and five or more have probability 0.044**5 / 5! < 2e-9.
    """
    pairs = [(ours, theirs), (theirs, ours)]
    return len(ours) == len(theirs) == 400 and all(
        low <= high + most for lows, highs in pairs for low, high in zip(lows, highs[MOST_ODD:], strict=False)
    )


@pytest.mark.slow
def test_nothing_leaves_the_server_but_the_exported_columns(server: Server, tmp_path: Path) -> None:
    """Values are randomised in dpsql's process, so those of exported columns are sent; keys of persons and other columns are not:
    they contain canaries, and none is among the bytes that the server sends."""
    url, rows = server.database(), people(40)
    schema = pa.schema([(name, TYPES[facts["type"]]) for name, facts in PEOPLE.items()])
    canaries = [
        {**row, "patient_id": 731_000_000_000 + row["patient_id"], "weight": 137.0625, "note": "canary", "job": "job 7"}
        for row in rows.select(schema.names).to_pylist()
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        load(connection, "people", schema, canaries)
    with server_folder() as folder:
        wire = Wire(folder, server.folder)
        opened = export_session(
            tmp_path, 0, rows={"people": rows}, tables={"people": policy_facts()["tables"]["people"]}
        )
        opened.close()
        text = (tmp_path / "clinic.yaml").read_text()
        source = url.replace(f"host={server.folder}", f"host={folder}")
        (tmp_path / "clinic.yaml").write_text(f"source: {source}\n{text}")
        with open_session(load_policy(tmp_path / "clinic.yaml")) as session:
            RowExport(session, "people", ("region", "age"), Fraction(2)).write(tmp_path / "rows.parquet")
        wire.close()
    heard = bytes(wire.heard)
    assert b"COPY" in heard and b"north" in heard
    for canary in (b"731000000", b"137.0625", b"canary", b"job 7"):
        assert canary not in heard, canary
