"""DuckDB satisfies the engine contract, over a file and over a connection given in Python."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from dpsql.engine.query import EngineQuery
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.testing import PEOPLE, SECRET, VISITS, WARDS, EngineContract, Loaded, contract_policy

SLOW = "SELECT count(*) AS m0 FROM range(1000000) AS a, range(1000000) AS b WHERE hash(a.range, b.range) = 1"
BROKEN = f"SELECT CAST('{SECRET}' AS INTEGER) AS m0"


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE people (id BIGINT, height DOUBLE)")
    connection.execute("CREATE TABLE visits (id BIGINT, ward VARCHAR, day DATE, cost BIGINT)")
    connection.execute("CREATE TABLE wards (ward VARCHAR, beds BIGINT)")
    for table, rows in (("people", PEOPLE), ("visits", VISITS), ("wards", WARDS)):
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)


class TestFile(EngineContract):
    """A DuckDB file, attached read-only."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[Loaded]:
        path = tmp_path / "data.duckdb"
        with duckdb.connect(str(path)) as connection:
            fill(connection)
        policy = contract_policy(tmp_path, source="duckdb:///data.duckdb")
        engine = open_engine(policy)

        def execute(statement: str) -> None:
            new = path.with_suffix(".new")
            with duckdb.connect(str(new)) as connection:
                fill(connection)
                connection.execute(statement)
            new.rename(path)

        yield Loaded(policy, engine, SLOW, BROKEN, execute)
        engine.close()


class TestMemory(EngineContract):
    """A connection given in Python, which its owner may use for writing."""

    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[Loaded]:
        connection = duckdb.connect()
        fill(connection)
        policy = contract_policy(tmp_path)
        engine = open_engine(policy, connection)
        yield Loaded(policy, engine, SLOW, BROKEN, connection.execute)
        engine.close()

    def test_nothing_can_be_written(self, source: Loaded) -> None:
        """The connection belongs to its owner. A text with several statements is not a query, so none can end dpsql's query and
        write."""
        with pytest.raises(Error):
            source.engine.run(EngineQuery("SELECT 1 AS m0; DROP TABLE wards", (), ("m0",)))
        assert source.engine.columns("wards") is not None
