"""Tables in schemas, over a DuckDB file with schemas: queries name them by dataset, schema and name, and in no other way."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import MetaData, Table, create_engine, func, inspect, select

from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.policy import load_policy, parse_policy
from dpsql.sql.binder.query import bind
from dpsql.sql.parse import parse

TEXT = """
dataset: mozilla
source: duckdb:///mozilla.duckdb
privacy_unit: {table: Clients, column: client}
budget: {epsilon: 1000, delta: 1e-6}
per_query: {epsilon: 10}
ledger: sqlite:///mozilla-ledger.db
analysts: {all: {epsilon: 1000}, some: {epsilon: 1, tables: [Clients, Days]}}
tables:
  Clients:
    max_rows: 1
    primary_key: [client]
    columns: {client: {type: integer, nullable: false}, kind: {type: text, domain: [a, b], nullable: false}}
  Crashes:
    schema: Telemetry
    max_rows: 3
    foreign_keys: {client: Clients.client}
    columns: {client: {type: integer}, version: {type: integer, lower: 1, upper: 3, nullable: false}}
  Days:
    schema: Lists
    source: Lists.AllDays
    public: true
    primary_key: [day]
    columns: {day: {type: integer}, name: {type: text}}
"""
POLICY = parse_policy(TEXT)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM Crashes",
        "SELECT COUNT(*) FROM Telemetry.Crashes",
        "SELECT COUNT(*) FROM telemetry.crashes",
        'SELECT COUNT(*) FROM "Telemetry"."Crashes"',
        "SELECT COUNT(*) FROM mozilla.Telemetry.Crashes",
        "SELECT Telemetry.Crashes.version, COUNT(*) FROM Telemetry.Crashes GROUP BY Telemetry.Crashes.version",
        "SELECT mozilla.Telemetry.Crashes.version, COUNT(*) FROM mozilla.Telemetry.Crashes GROUP BY 1",
        "SELECT k.kind, COUNT(*) FROM Telemetry.Crashes AS c JOIN public.Clients AS k ON c.client = k.client GROUP BY 1",
        "SELECT d.name, COUNT(*) FROM Telemetry.Crashes AS c JOIN Lists.Days AS d ON c.version = d.day GROUP BY 1",
        "SELECT COUNT(*) FROM Telemetry.Crashes WHERE version IN (SELECT day FROM Lists.Days)",
        "WITH Crashes AS (SELECT 1 AS x) SELECT COUNT(*) FROM Telemetry.Crashes",
        "SELECT * FROM lists.days",
    ],
)
def test_a_table_has_its_name_alone_and_behind_its_schema(sql: str) -> None:
    assert bind(parse(sql), POLICY).output_names


def test_a_schema_says_nothing_of_hidden_tables() -> None:
    policy = POLICY.of_analyst("some")
    hints = set()
    for name in ("Telemetry.Crashes", "Crashes", "Telemetry.Nothing"):
        with pytest.raises(Error) as refused:
            bind(parse(f"SELECT COUNT(*) FROM {name}"), policy)
        assert refused.value.slug == "unknown_table"
        hints.add(refused.value.hint)
    assert all("Telemetry" not in hint for hint in hints)


@pytest.mark.parametrize(
    ("old", "new", "place", "sentence"),
    [
        ("schema: Lists", "schema: telemetry", "tables.Days.schema", "differs from Telemetry by case alone"),
        ("schema: Lists", "schema: pg_lists", "tables.Days.schema", "is reserved"),
        ("  Crashes:", "  Telemetry.Crashes:", "tables", "write Crashes and below it schema: Telemetry"),
    ],
)
def test_what_is_wrong_with_a_schema_is_told(old: str, new: str, place: str, sentence: str) -> None:
    from dpsql.policy import policy_problems

    told = policy_problems(TEXT.replace(old, new, 1))
    assert any(place in path and sentence in problem for path, problem in told), told


@pytest.fixture
def policy_file(tmp_path: Path) -> Iterator[Path]:
    with duckdb.connect(str(tmp_path / "mozilla.duckdb")) as source:
        source.execute(
            "CREATE TABLE Clients(client INTEGER, kind VARCHAR); CREATE SCHEMA Telemetry; CREATE SCHEMA Lists"
        )
        source.execute("CREATE TABLE Telemetry.Crashes(client INTEGER, version INTEGER)")
        source.execute("CREATE TABLE Lists.AllDays(day INTEGER, name VARCHAR)")
        source.execute("INSERT INTO Clients SELECT range, 'a' FROM range(200)")
        source.execute("INSERT INTO Telemetry.Crashes SELECT range, 1 FROM range(200)")
        source.execute("INSERT INTO Lists.AllDays VALUES (1, 'one')")
    place = tmp_path / "mozilla.yaml"
    place.write_text(TEXT)
    policy = load_policy(place)
    open_ledger(policy.ledger_url(), policy.dataset, create=True).close()
    yield place


def test_sqlalchemy_reflects_each_table_in_its_schema(policy_file: Path) -> None:
    engine = create_engine(f"dpsql:///{policy_file}")
    with engine.connect() as connection:
        reflected = inspect(connection)
        assert reflected.get_schema_names() == ["public", "Lists", "Telemetry"]
        assert reflected.get_table_names() == ["Clients"]
        assert reflected.get_table_names("Telemetry") == ["Crashes"]
        (key,) = reflected.get_foreign_keys("Crashes", "Telemetry")
        assert (key["referred_schema"], key["referred_table"]) == ("public", "Clients")
        table = Table("Crashes", MetaData(schema="Telemetry"), autoload_with=connection, resolve_fks=False)
        ((count,),) = connection.execute(select(func.count()).select_from(table)).fetchall()
        assert 100 < count < 300
    engine.dispose()
