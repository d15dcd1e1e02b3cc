"""The engine alone: deadlines, closing under load, and cached parsed texts."""

import threading
import warnings
from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pytest
from support.places import policy

from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.duckdb.settings import Statements
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error

POLICY = policy("hospital_rows")
ENDLESS = EngineQuery("SELECT count(*) AS n FROM range(1000000000) AS a, range(1000000000) AS b", (), ("n",))


@pytest.fixture
def engine() -> Iterator[DuckDBEngine]:
    one = DuckDBEngine(duckdb.connect(), POLICY, "v", owned=True)
    yield one
    one.close()


def test_a_query_is_stopped_at_its_deadline_and_the_next_one_runs(engine: DuckDBEngine) -> None:
    for _ in range(2):
        with pytest.raises(Error) as caught:
            engine.run(ENDLESS, 0.1)
        assert caught.value.slug == "engine_failed"
        assert engine.run(EngineQuery("SELECT 1 AS n", (), ("n",)), 0.1).unseal().to_pydict() == {"n": [1]}


@pytest.mark.parametrize("interrupted_before", [False, True])
def test_closing_stops_what_runs(interrupted_before: bool) -> None:
    engine = DuckDBEngine(duckdb.connect(), POLICY, "v", owned=True)
    slugs: list[str] = []
    begun = threading.Event()

    def ask() -> None:
        begun.set()
        try:
            engine.run(ENDLESS)
        except Error as error:
            slugs.append(error.slug)

    thread = threading.Thread(target=ask)
    thread.start()
    begun.wait()
    while not engine._running:
        begun.wait(0.001)
    if interrupted_before:
        engine.interrupt()
    engine.close()
    thread.join()
    assert slugs == ["engine_failed"]
    with pytest.raises(duckdb.ConnectionException):
        engine._connection.execute("SELECT 1")


def test_a_kept_text_reads_the_rows_and_columns_of_now() -> None:
    statements, base = Statements(), duckdb.connect()
    base.execute("CREATE TABLE t AS SELECT 1 AS x")
    assert statements.table(base.cursor(), "SELECT * FROM t").to_pydict() == {"x": [1]}
    base.execute("INSERT INTO t VALUES (2)")
    assert statements.table(base.cursor(), "SELECT * FROM t").to_pydict() == {"x": [1, 2]}
    base.execute("DROP TABLE t; CREATE TABLE t AS SELECT 'a' AS y")
    assert statements.table(base.cursor(), "SELECT * FROM t").to_pydict() == {"y": ["a"]}
    other = duckdb.connect()
    other.register("t", pa.table({"z": [7]}))
    assert statements.table(other, "SELECT * FROM t").to_pydict() == {"z": [7]}


def test_a_host_that_turns_warnings_into_errors_gets_its_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Statements().table(duckdb.connect(), "SELECT 1 AS x").to_pydict() == {"x": [1]}
