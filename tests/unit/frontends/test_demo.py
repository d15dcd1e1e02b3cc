"""The first minute: the demo answers at both levels, and repeats answers from the same ledger without charge."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from support.clinic_folder import Clinic, Outcome

from dpsql.frontends.demo import DEMOS, build_demo, build_nafld
from dpsql.ledger import open_ledger
from dpsql.policy import Policy, Table, load_policy

Run = Callable[..., Outcome]


def spent(name: str) -> int:
    policy = load_policy(Path("demo") / name)
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        return ledger.spent()["rho"]


def test_demo_answers_and_repeats_for_free(bare_clinic: Clinic, dpsql: Run) -> None:
    first = dpsql("demo", "demo")
    assert first.status == 0, first.err
    assert first.out.count("±") > 20 and first.err.count("price: ") == 5 and first.err.count("left: ") == 5
    paid = spent("nafld.yaml"), spent("nafld_rows.yaml")
    assert paid[0] > 0 and paid[1] > 0
    hdl = [float(found) for found in re.findall(r"^(\d\d\.\d+) ± ", first.out, re.MULTILINE)]
    assert len(hdl) == 2 and all(45 < value < 56 for value in hdl), "at patient and at row level"
    again = dpsql("demo", "demo")
    assert again.status == 0 and again.out == first.out and again.err.count("answered from stored releases") == 5
    assert (spent("nafld.yaml"), spent("nafld_rows.yaml")) == paid
    for command in re.findall(r"^  dpsql (query|explain) -p (\S+) \"([^\"]+)\"", again.err, re.MULTILINE):
        status = dpsql(command[0], "-p", command[1], command[2]).status
        assert status == (1 if "*" in command[2] else 0), "what it says to try works"


def test_a_demo_whose_ledger_is_gone_does_not_start_anew(bare_clinic: Clinic, dpsql: Run) -> None:
    assert dpsql("demo", "demo").status == 0
    for file in Path("demo").glob("nafld-ledger.db*"):
        file.unlink()
    outcome = dpsql("demo", "demo")
    assert outcome.status == 4 and "gone or empty" in outcome.err and not Path("demo/nafld-ledger.db").exists()


# --- The demo databases satisfy the promises of their policies: columns, types, keys, domains, no NULLs, rows per unit ---


TYPES = {"INTEGER": "integer", "DOUBLE": "real", "VARCHAR": "text", "BOOLEAN": "boolean", "DATE": "date"}
TYPES["TIMESTAMP"] = "timestamp"
Demo = tuple[Policy, duckdb.DuckDBPyConnection]
MOST_CLAMPED = 0.01
"""Bounds are public knowledge, not data; still, bounds that clamp more than one percent of the values would make a poor demo."""


@pytest.fixture(scope="module", params=sorted(DEMOS))
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    policy = load_policy(build_demo(request.param, tmp_path_factory.mktemp(request.param)))
    with duckdb.connect(str(policy.source_path()), read_only=True) as connection:
        yield policy, connection


def one(connection: duckdb.DuckDBPyConnection, sql: str, *values: object) -> object:
    row = connection.execute(sql, list(values)).fetchone()
    assert row is not None
    return row[0]


def test_promises_hold_in_the_data(demo: Demo) -> None:
    policy, connection = demo
    for table in policy.tables.values():
        rows = one(connection, f"SELECT count(*) FROM {table.name}")
        assert isinstance(rows, int)
        assert rows > 0
        if table.primary_key:
            keys = ", ".join(table.primary_key)
            assert one(connection, f"SELECT count(*) FROM (SELECT DISTINCT {keys} FROM {table.name})") == rows
        _check_columns(connection, table, rows)


def _check_columns(connection: duckdb.DuckDBPyConnection, table: Table, rows: int) -> None:
    for name, column in table.columns.items():
        if not column.nullable:
            assert one(connection, f"SELECT count(*) FROM {table.name} WHERE {name} IS NULL") == 0, name
        if column.domain is not None:
            values = connection.execute(f"SELECT DISTINCT {name} FROM {table.name} WHERE {name} IS NOT NULL").fetchall()
            assert {value for (value,) in values} == set(column.domain), name
        if column.type == "integer" and column.lower is not None:
            sql = f"SELECT count(*) FROM {table.name} WHERE {name} NOT BETWEEN ? AND ?"
            clamped = one(connection, sql, column.lower, column.upper)
            assert isinstance(clamped, int)
            assert clamped <= MOST_CLAMPED * rows, name


def test_units_and_sizes_are_those_of_the_published_data(demo: Demo) -> None:
    policy, connection = demo
    expected = {
        "nafld": {"patients": 17549, "labs": 400123, "events": 34340},
        "nycflights13": {"flights": 336776, "planes": 3322, "airlines": 16, "airports": 1458, "weather": 26115},
    }[policy.dataset]
    assert {name: one(connection, f"SELECT count(*) FROM {name}") for name in policy.tables} == expected
    for name, table in policy.tables.items():
        if not table.public:
            assert policy.unit_joins(name) == ()
            unit = policy.unit_column(name)
            counts = f"SELECT count(*) AS n FROM {name} GROUP BY {unit}"
            share = one(connection, f"SELECT count(*) FILTER (n > {table.bounds.max_rows}) / count(*) FROM ({counts})")
            assert isinstance(share, float)
            assert share < 0.1, name


def test_nafld_is_recoded_truly(tmp_path: Path) -> None:
    build_nafld(tmp_path / "nafld.duckdb")
    with duckdb.connect(str(tmp_path / "nafld.duckdb"), read_only=True) as connection:
        assert one(connection, "SELECT count(*) FROM patients WHERE sex = 'male'") == 8201
        assert one(connection, "SELECT count(*) FROM patients WHERE died") == 1364
        assert one(connection, "SELECT count(*) FROM patients WHERE has_nafld") == 3514
        assert one(connection, "SELECT count(*) FROM labs WHERE test = 'systolic'") == 33430
