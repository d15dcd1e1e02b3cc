"""Texts are equal when their bytes are, and generated SQL means the same, under any settings of a source or connection."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.exact_session import exact_session

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.engine.duckdb.settings import MEANINGS, PinnedSettings
from dpsql.errors.exceptions import Fault
from dpsql.policy import Policy, load_policy
from dpsql.session.session import Session

POLICY = """
dataset: notes
source: duckdb:///notes.duckdb
privacy_unit: {table: persons, column: person}
budget: {epsilon: 1000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
tables:
  persons:
    max_rows: 1
    primary_key: [person]
    columns: {person: {type: text, nullable: false}}
  notes:
    max_rows: 4
    foreign_keys: {person: persons.person}
    columns:
      person: {type: text, nullable: false}
      word: {type: text, domain: [a, A, b], nullable: false}
      place: {type: integer, lower: 0, upper: 10, nullable: false}
      weight: {type: real, lower: 0, upper: 10}
      seen: {type: timestamp, lower: 2020-01-01, upper: 2020-12-31}
  codes:
    public: true
    primary_key: [code]
    columns: {code: {type: text}, kind: {type: text}}
"""
COLLATIONS = ["NOCASE", "NOACCENT", "NOCASE.NOACCENT"]
SOURCES = ["plain", "columns", "default", "file", "prepared"]

CASES = {
    "groups": ("SELECT word, COUNT(*) FROM notes GROUP BY word", [("a", 1), ("A", 200), ("b", 201)]),
    "groups of a function": (
        "SELECT k, COUNT(*) FROM (SELECT word || 'x' AS k FROM notes) WHERE k IN ('ax', 'Ax') GROUP BY k",
        [("ax", 1), ("Ax", 200)],
    ),
    "where": ("SELECT COUNT(*) FROM notes WHERE word = 'A'", [(200,)]),
    "filter": ("SELECT COUNT(*) FILTER (WHERE word IN ('a', 'c')) FROM notes", [(1,)]),
    "not distinct": ("SELECT COUNT(*) FROM notes WHERE word IS NOT DISTINCT FROM 'a'", [(1,)]),
    "order of texts": ("SELECT COUNT(*) FROM notes WHERE word < 'a'", [(200,)]),
    "distinct values": ("SELECT COUNT(DISTINCT word) FROM notes", [(3,)]),
    "distinct rows": ("SELECT COUNT(*) FROM (SELECT DISTINCT word FROM notes)", [(3,)]),
    "units": ("SELECT COUNT(DISTINCT person) FROM notes", [(201,)]),
    "units of a join": ("SELECT COUNT(*) FROM persons p JOIN notes n ON p.person = n.person WHERE n.word = 'b'", [(201,)]),
    "public join": ("SELECT COUNT(*) FROM notes JOIN codes ON word = code", [(402,)]),
    "public join, keys": (
        "SELECT kind, COUNT(*) FROM notes JOIN codes ON word = code GROUP BY kind",
        [("b", 201), ("large", 200), ("small", 1)],
    ),
    "list of a public table": ("SELECT COUNT(*) FROM notes WHERE word IN (SELECT code FROM codes WHERE kind = 'large')", [(200,)]),
    "released join": (
        "SELECT COUNT(*) FROM notes JOIN (SELECT word AS w, COUNT(*) AS n FROM notes GROUP BY word) t ON word = w",
        [(402,)],
    ),
    "greatest of a unit": (
        "SELECT COUNT(*) FROM (SELECT person, MIN(word) AS w FROM notes GROUP BY person) WHERE w = 'A'",
        [(200,)],
    ),
    "groups of a unit": ("SELECT COUNT(*) FROM (SELECT person, word FROM notes GROUP BY person, word)", [(402,)]),
    "windows": (
        "SELECT COUNT(*) FROM (SELECT word, first_value(word) OVER (PARTITION BY person ORDER BY word) AS f FROM notes) "
        "WHERE word = 'b' AND f = 'A'",
        [(200,)],
    ),
    "windows by a text": (
        "SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY person, word ORDER BY place) AS n FROM notes) WHERE n = 1",
        [(402,)],
    ),
    "semi-join": ("SELECT COUNT(*) FROM persons p WHERE EXISTS (SELECT 1 FROM notes n WHERE n.person = p.person AND word = 'a')", [(1,)]),
    "division": ("SELECT COUNT(*) FROM notes WHERE place / 2 = 0.5", [(201,)]),
    "division by zero": ("SELECT COUNT(*) FROM notes WHERE weight / (place - place) IS NULL", [(402,)]),
    "roots and powers": ("SELECT COUNT(*) FROM notes WHERE ln(weight) IS NULL AND power(weight - 1, 0.5) IS NOT NULL", [(402,)]),
    "time zone": ("SELECT COUNT(*) FROM notes WHERE seen = TIMESTAMP '2020-06-01 12:00:00'", [(402,)]),
    "order of NULL": (
        "SELECT COUNT(*) FROM (SELECT weight, row_number() OVER (PARTITION BY person ORDER BY nullif(place, 0)) AS n, place "
        "FROM notes) WHERE n = 1 AND place = 1",
        [(201,)],
    ),
}  # fmt: skip
"""Two hundred persons with the words A and b, and one more person, whose name differs only in case, with a and b."""


def fill(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Create tables whose texts have the type `text`."""
    connection.execute(f"CREATE TABLE persons (person {text})")
    connection.execute(f"CREATE TABLE codes (code {text}, kind {text})")
    connection.execute(
        f"CREATE TABLE notes (person {text}, word {text}, place INTEGER, weight DOUBLE, seen TIMESTAMPTZ)"
    )
    connection.execute("INSERT INTO persons SELECT 'p' || i FROM range(200) t(i) UNION ALL SELECT 'P7'")
    connection.execute(
        "INSERT INTO notes SELECT person, CASE WHEN v = 0 THEN 'b' WHEN ascii(person) = ascii('P') THEN 'a' ELSE 'A' END, v, 0, "
        "TIMESTAMPTZ '2020-06-01 12:00:00+00' FROM persons, range(2) t(v)"
    )
    connection.execute("INSERT INTO codes VALUES ('a', 'small'), ('A', 'large'), ('b', 'b')")


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "notes.yaml"
    path.write_text(POLICY)
    return load_policy(path)


@pytest.fixture(params=SOURCES)
def session(policy: Policy, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    source: Any = None
    if request.param in ("file", "prepared"):
        with duckdb.connect(str(tmp_path / "notes.duckdb")) as connection:
            fill(connection, "VARCHAR COLLATE NOCASE")
    else:
        source = duckdb.connect()
        fill(source, "VARCHAR COLLATE NOCASE" if request.param == "columns" else "VARCHAR")
    if request.param == "default":
        odd(source)
    with exact_session(policy, source, tmp_path / "ledger.db") as opened:
        if request.param == "prepared":
            done = opened.context.index.prepare(copy=True)
            assert {one.state for one in done} == {"written"}
        yield opened


def odd(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Change every setting that affects meaning, and return the new values."""
    others = {
        "default_collation": "nocase", "default_null_order": "NULLS_FIRST", "default_order": "DESC", "TimeZone": "Asia/Tokyo",
        "integer_division": "true", "ieee_floating_point_ops": "false", "scalar_subquery_error_on_multiple_rows": "false",
        "order_by_non_integer_literal": "true", "old_implicit_casting": "true", "error_on_division_by_zero": "false",
        "regex_match_operator_semantics": "full", "arrow_large_buffer_size": "true", "produce_arrow_string_view": "true",
        "arrow_lossless_conversion": "true", "binary_as_string": "true", "disable_timestamptz_casts": "true",
        "legacy_disable_null_type": "true",
    }  # fmt: skip
    known = settings(connection, list(others))
    for name in known:
        connection.execute(f"SET GLOBAL {name} = '{others[name]}'")
    return settings(connection, list(known))


def settings(connection: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, Any]:
    """Return values of the settings that this version of DuckDB knows. Each is queried individually, because deprecated settings
    can be set but are in no list."""
    values = {}
    for name in names:
        with suppress(duckdb.CatalogException):
            ((values[name],),) = connection.execute(f"SELECT current_setting('{name}')").fetchall()
    return values


@pytest.mark.parametrize("case", CASES)
def test_collations_and_settings_change_no_answer(session: Session, case: str) -> None:
    sql, expected = CASES[case]
    answer = list(session.execute(sql).rows())
    assert sorted(answer, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("collation", COLLATIONS)
def test_no_collation_reaches_an_answer(policy: Policy, tmp_path: Path, collation: str) -> None:
    connection = duckdb.connect()
    fill(connection, f"VARCHAR COLLATE {collation}")
    with exact_session(policy, connection, tmp_path / "ledger.db") as session:
        assert list(session.execute("SELECT COUNT(*) FROM notes WHERE word IN ('a', 'Á')").rows()) == [(1,)]


def test_the_owner_of_a_connection_notices_nothing(policy: Policy, tmp_path: Path) -> None:
    connection = duckdb.connect()
    fill(connection, "VARCHAR")
    before = odd(connection)
    assert len(before) >= 12
    with exact_session(policy, connection, tmp_path / "ledger.db") as session:
        session.execute("SELECT COUNT(*) FROM notes")
        assert settings(connection, list(before)) == before
        assert connection.execute("SELECT 'a' = 'A', 7 / 2").fetchall() == [(True, 3)]
        connection.execute("SET GLOBAL default_collation = 'noaccent'")  # later changes are overridden as well
        assert list(session.execute("SELECT COUNT(*) FROM notes WHERE word || '' = 'á'").rows()) == [(0,)]


def test_every_setting_that_changes_meaning_exists() -> None:
    """A name that no version knows would be silently left out."""
    later = {
        "error_on_division_by_zero", "regex_match_operator_semantics", "dialect_compatibility_mode", "legacy_disable_null_type",
    }  # fmt: skip
    known = settings(duckdb.connect(), list(MEANINGS)).keys()
    assert MEANINGS.keys() - known == (set() if int(duckdb.__version__.split(".")[0]) >= 2 else later)


def test_own_databases_do_not_write_computed_columns_into_each_other() -> None:
    """Seven subqueries that compute a column from itself, over a join, were planned in two minutes, twelve until memory ended."""
    connection = duckdb.connect()
    PinnedSettings(connection, owned=True)
    rules = {name for (name,) in connection.execute("SELECT * FROM duckdb_optimizers()").fetchall()}
    ((without,),) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchall()
    assert without == ("partial_aggregate_pushdown" if "partial_aggregate_pushdown" in rules else "")
    assert ("partial_aggregate_pushdown" in rules) is (int(duckdb.__version__.split(".")[0]) >= 2)


def test_settings_that_duckdb_lists_no_more_are_pinned() -> None:
    """DuckDB 2.0.1 removed `error_on_division_by_zero` and others from its list, but still obeys them."""
    connection = duckdb.connect()
    changed = odd(connection)
    cursor = connection.cursor()
    PinnedSettings(connection, owned=False).pin(cursor)
    expected = {name: MEANINGS[name] for name in changed}
    assert settings(cursor, list(changed)) == expected


def test_a_setting_that_cannot_be_pinned_is_refused(policy: Policy) -> None:
    connection = duckdb.connect()
    fill(connection, "VARCHAR")
    connection.execute("SET GLOBAL default_collation = 'nocase'; SET GLOBAL lock_configuration = true")
    with pytest.raises(Fault, match="default_collation") as caught:
        open_duckdb(policy, connection)
    assert caught.value.slug == "source_setting"
    assert not caught.value.charged


def test_a_function_in_the_place_of_the_engines_is_refused(policy: Policy) -> None:
    connection = duckdb.connect()
    fill(connection, "VARCHAR")
    connection.execute("CREATE MACRO something(x) AS 1")
    open_duckdb(policy, connection)
    connection.execute("CREATE MACRO sum(x) AS 1")
    with pytest.raises(Fault, match="sum") as caught:
        open_duckdb(policy, connection)
    assert caught.value.slug == "source_function"
