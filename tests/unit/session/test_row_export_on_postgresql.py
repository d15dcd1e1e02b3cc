"""Exports read a PostgreSQL server as they read DuckDB: the same rows at a huge epsilon, refused before the charge alike."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.export_clinic import PEOPLE, export_session, people, policy_facts
from support.postgres_source import Server, load, server

from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy
from dpsql.session.opening import open_session
from dpsql.session.row_export import RowExport

__all__ = ["server"]
TYPES = {
    "integer": pa.int64(), "real": pa.float64(), "text": pa.string(), "boolean": pa.bool_(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip


@pytest.mark.slow
def test_a_server_exports_the_rows_that_duckdb_exports(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
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
        means = [sum(filter(None, column.to_pylist())) / len(column) for column in numbers.columns]
        written.append((Counter(zip(*(column.to_pylist() for column in table.columns), strict=True)), means))
    assert written[0][0] == written[1][0] and sum(written[0][0].values()) == 300
    assert written[0][1] == pytest.approx(written[1][1], rel=0.02, abs=1e16)
