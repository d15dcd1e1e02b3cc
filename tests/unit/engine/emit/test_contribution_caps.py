"""The rows that contribution bounds keep differ between units, so that no value is lost for all units at once."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.exact_session import exact_session

from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.emit.bounded_view import rank
from dpsql.policy import load_policy
from dpsql.session.session import Session

UNITS = 1000
POLICY = """
dataset: shops
privacy_unit: {table: persons, column: person}
budget: {epsilon: 1000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
tables:
  persons:
    max_rows: 1
    primary_key: [person]
    columns: {person: {type: integer, nullable: false}}
  visits:
    max_rows: 8
    foreign_keys: {person: persons.person}
    columns:
      person: {type: integer, nullable: false}
      shop: {type: text, domain: [a, b, c, d], nullable: false}
      price: {type: integer, lower: 0, upper: 7, nullable: false}
  few:
    max_rows: 1
    foreign_keys: {person: persons.person}
    columns:
      person: {type: integer, nullable: false}
      shop: {type: text, domain: [a, b, c, d], nullable: false}
"""
SIX_DEVIATIONS = 82
"""Six deviations of the number of units in one shop of four, where 250 are expected."""


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Yield a noiseless session over a thousand persons, each with a row of 0 and one of 7 in each of four shops."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    path = tmp_path / "shops.yaml"
    path.write_text(POLICY)
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visits AS SELECT p AS person, ['a', 'b', 'c', 'd'][1 + s] AS shop, v AS price "
        f"FROM range({UNITS}) t(p), range(4) s(s), (VALUES (0), (7)) v(v)"
    )
    connection.execute("CREATE TABLE persons AS SELECT DISTINCT person FROM visits")
    connection.execute("CREATE TABLE few AS SELECT DISTINCT person, shop FROM visits")
    with exact_session(load_policy(path), connection, tmp_path / "ledger.db") as opened:
        yield opened


def shared_out(rows: list[tuple[object, ...]]) -> None:
    """Check that every shop keeps about a quarter of the units, and that together they keep each unit once."""
    counts = [int(str(count)) for _, count in rows]
    assert sum(counts) == UNITS
    assert all(abs(count - UNITS / 4) <= SIX_DEVIATIONS for count in counts), counts


def test_units_keep_different_groups(session: Session) -> None:
    session.execute("SET dp.max_groups = 1")
    shared_out(list(session.execute("SELECT shop, COUNT(DISTINCT person) FROM visits GROUP BY shop").rows()))


def test_units_keep_different_rows_of_a_group(session: Session) -> None:
    session.execute("SET dp.max_rows_per_group = 1")
    means = [mean for _, mean in session.execute("SELECT shop, AVG(price) FROM visits GROUP BY shop").rows()]
    assert len(means) == 4
    # 1,000 rows of 0 or 7: the deviation of their mean is 0.11
    assert all(abs(float(mean) - 3.5) < 0.7 for mean in means), means


def test_units_keep_different_rows_of_a_table(session: Session) -> None:
    shared_out(list(session.execute("SELECT shop, COUNT(*) FROM few GROUP BY shop").rows()))


def test_windows_break_ties_differently_for_each_unit(session: Session) -> None:
    sql = (
        "SELECT shop, COUNT(*) FROM (SELECT shop, row_number() OVER (PARTITION BY person ORDER BY price) AS n FROM visits) "
        "WHERE n = 1 GROUP BY shop"
    )
    shared_out(list(session.execute(sql).rows()))


@pytest.mark.parametrize("count", [3, 5, 6])
def test_all_orders_of_few_values_are_alike(count: int) -> None:
    """The engine's hash of several arguments combines their hashes by XOR, after which some values come first far too often."""
    ranked = rank(DUCKDB, "key", ['"#unit"'], ("v",))
    rows = f"SELECT u AS \"#unit\", 'value ' || v AS v FROM range(60000) u(u), range({count}) v(v)"
    first = f"SELECT count(*) FROM (SELECT *, {ranked} AS r FROM ({rows})) WHERE r = 1 GROUP BY v ORDER BY v"
    shares = [row[0] * count / 60000 for row in duckdb.connect().execute(first).fetchall()]
    assert len(shares) == count
    assert all(abs(share - 1) < 0.06 for share in shares), shares
