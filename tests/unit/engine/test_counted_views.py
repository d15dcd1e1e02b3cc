"""A table of which no copy exists is read by thresholds, which are counted once for each version of the source.

A threshold of an earlier version would be worse than an outdated copy: a person who had few rows then has none, so that any
number of rows of theirs would stay.
"""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.visits_clinic import engine_of, engine_sql, index_of, open_clinic, written

from dpsql.engine import contribution_index
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.errors.exceptions import Fault
from dpsql.session.session import Session

MOST = 4
FEW = "SELECT 'p' || n // 3 AS patient_id, n AS visit_id, 1.0 AS cost, 'a' AS ward, DATE '2024-01-02' AS day FROM range(30) r(n)"
MANY = FEW.replace("n // 3", "least(n // 3, 7)").replace("range(30)", "range(60)")
ADDED = FEW.replace("n // 3", "1").replace("range(30)", "range(30, 100030)")
WHOLE = "SELECT count(*) AS n FROM visits"
"""A question whose text chooses no rows: it needs no thresholds."""
COUNTED = f"{WHOLE} WHERE visit_id >= 0"
POLICY = """
dataset: clinic
privacy_unit: {{table: visits, column: patient_id}}
budget: {{epsilon: 100, accountant: pure}}
per_query: {{epsilon: 1}}
ledger: sqlite:///clinic-ledger.db
tables:
  visits:
    source: {source}
    max_rows: {most}
    columns:
      patient_id: {{type: text}}
      visit_id: {{type: integer}}
      cost: {{type: real, lower: 0, upper: 50}}
      ward: {{type: text, domain: [a, b, c]}}
      day: {{type: date}}
"""
WRITTEN = {
    "visits.parquet": "COPY ({rows}) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 9000)",
    "visits.csv": "COPY ({rows}) TO '{file}' (FORMAT csv, HEADER)",
    "visits.duckdb": "ATTACH '{file}' AS f; CREATE TABLE f.visits AS {rows}; DETACH f",
}
Write = Callable[[str], None]


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(contribution_index, "SETTLED_SECONDS", 0.0)  # each version of a file is another file


@pytest.fixture(params=WRITTEN)
def source(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Session, Write]]:
    """Yield a session and a function that replaces the rows of its source."""
    file = tmp_path / request.param

    def write(rows: str) -> None:
        new = tmp_path / f"new.{file.suffix[1:]}"
        with duckdb.connect() as connection:
            connection.execute(WRITTEN[file.name].format(rows=rows, file=new))
        os.replace(new, file)

    write(MANY)
    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source=file.name if file.suffix != ".duckdb" else "", most=MOST))
    if file.suffix == ".duckdb":
        policy.write_text(f"source: duckdb:///{file.name}\n" + policy.read_text().replace("    source: \n", ""))
    with open_clinic(policy) as session:
        yield session, write


def counted(session: Session, sql: str = COUNTED) -> int:
    """Return the exact number of rows of a question asked now."""
    (row,) = engine_of(session).run(query := written(session, sql)).unseal().to_pylist()
    return int(row[query.terms[0]])


def test_units_are_counted_by_the_first_question_after_its_charge(source: tuple[Session, Write]) -> None:
    session, _ = source
    query = written(session, COUNTED)
    kept: Any = engine_of(session).views.files
    (opened,) = kept._opened.values()
    assert query.unchanged and not opened.thresholds  # nothing is read before the charge
    assert counted(session) == 7 * 3 + MOST
    (opened,) = kept._opened.values()
    with engine_of(session)._cursor(None) as cursor:
        assert cursor.execute(f"SELECT count(*) FROM {opened.thresholds}").fetchall() == [(1,)]
        views = cursor.execute("SELECT sql FROM duckdb_views() WHERE schema_name = '#bounded'").fetchall()
    assert len(views) == 3 and any("LEFT JOIN" in view for (view,) in views)
    assert all(opened.token in view for (view,) in views)
    assert counted(session) == 7 * 3 + MOST
    clipped = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_total = 9) ward, sum(cost) AS s FROM visits GROUP BY ward"
    assert "NOT MATERIALIZED" not in written(session, clipped).sql  # no limits are compared twice
    index_of(session).prepare(copy=True)
    assert "NOT MATERIALIZED" in written(session, clipped).sql


def test_a_person_who_had_few_rows_and_gets_many_is_bounded(source: tuple[Session, Write]) -> None:
    session, write = source
    assert counted(session) == counted(session, WHOLE) == 7 * 3 + MOST
    late = written(session, WHOLE)
    write(f"{MANY} UNION ALL {ADDED}")
    engine_of(session).check_readable(("visits",))
    assert counted(session) == counted(session, WHOLE) == 6 * 3 + 2 * MOST
    parts = ("visit_id < 28", "visit_id BETWEEN 28 AND 70000", "visit_id > 70000")  # groups of rows are not read
    assert sum(counted(session, f"{WHOLE} WHERE {part}") for part in parts) == 6 * 3 + 2 * MOST
    assert not late.unchanged and engine_of(session).run(late).unseal().column(0).to_pylist() == [6 * 3 + 2 * MOST]


@pytest.mark.parametrize("moment", ["counting", "hashing", "reading"])
def test_rows_that_are_added_during_a_question_leave_it_without_an_answer(
    source: tuple[Session, Write], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, write = source
    query = written(session, COUNTED)
    if moment == "reading":
        engine_of(session).run(query)
    views: Any = engine_of(session).views.files
    count, counting = type(views).count, BoundedView.counting

    class Steps(dict[str, str]):
        """Rows arrive after the persons with too many were counted, before their rows are hashed."""

        def items(self) -> Any:
            """Yield each step."""
            for number, step in enumerate(super().items()):
                if number == 1:
                    write(f"{MANY} UNION ALL {ADDED}")
                yield step

    if moment == "hashing":
        monkeypatch.setattr(BoundedView, "counting", lambda view, key: Steps(counting(view, key)))

    def rows_arrive(views: Any, *arguments: Any) -> None:
        if moment == "counting":
            write(f"{MANY} UNION ALL {ADDED}")
        count(views, *arguments)
        if moment == "reading":
            write(f"{MANY} UNION ALL {ADDED}")

    monkeypatch.setattr(type(views), "count", rows_arrive)
    with pytest.raises(Fault):
        engine_of(session).run(query)
    monkeypatch.setattr(type(views), "count", count)
    monkeypatch.setattr(BoundedView, "counting", counting)
    engine_of(session).check_readable(("visits",))
    assert counted(session) == 6 * 3 + 2 * MOST


def test_a_column_with_the_name_of_row_numbers_is_not_taken_for_them(source: tuple[Session, Write]) -> None:
    session, write = source
    assert counted(session) == 7 * 3 + MOST
    is_csv = (session.policy.tables["visits"].source or "").endswith(".csv")
    assert bool(engine_of(session).source("visits").row_number) != is_csv
    write(f"SELECT *, 0 AS File_Row_Number, 0 AS RowId FROM ({MANY} UNION ALL {ADDED})")
    engine_of(session).check_readable(("visits",))
    assert counted(session) == counted(session, f"{COUNTED} AND cost > 0") == 6 * 3 + 2 * MOST
    assert not engine_of(session).source("visits").row_number


def test_thresholds_do_not_outlive_the_database_in_which_they_lie(source: tuple[Session, Write]) -> None:
    session, _ = source
    assert counted(session) == 7 * 3 + MOST
    engine_of(session)._sources._reopen()
    assert counted(session) == 7 * 3 + MOST
    assert all(opened.thresholds for opened in engine_of(session).views.files._opened.values())  # type: ignore[attr-defined]


def test_a_copy_is_read_in_their_place(source: tuple[Session, Write]) -> None:
    session, _ = source
    assert counted(session) == 7 * 3 + MOST
    assert index_of(session).unprepared() == ("visits",)
    shown = engine_sql(session, COUNTED)
    assert "OVER" in shown and "#bounded" not in shown
    index_of(session).prepare()
    assert index_of(session).unprepared() == () and not written(session, COUNTED).unchanged
    assert counted(session) == 7 * 3 + MOST


def test_a_source_that_changed_a_moment_ago_is_not_counted(
    source: tuple[Session, Write], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change within the same tick of the clock could not be noticed."""
    session, _ = source
    monkeypatch.setattr(contribution_index, "SETTLED_SECONDS", 3600.0)
    query = written(session, COUNTED)
    assert not query.unchanged and "OVER" in query.sql


@pytest.mark.parametrize("moment", ["written", "counting", "other questions"])
def test_a_version_that_returns_is_not_bounded_by_another(
    tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link leads to another folder, and back: the identity is again the one for which the text of a question was written."""
    for version, rows in {"few": FEW, "many": f"{FEW} UNION ALL {ADDED}"}.items():
        (tmp_path / version).mkdir()
        with duckdb.connect() as connection:
            connection.execute(WRITTEN["visits.parquet"].format(rows=rows, file=tmp_path / version / "visits.parquet"))

    def lead_to(version: str) -> None:
        (tmp_path / "next").symlink_to(version)
        os.replace(tmp_path / "next", tmp_path / "current")

    counting = BoundedView.counting

    def changed_meanwhile(view: BoundedView, key: str) -> dict[str, str]:
        lead_to("few")
        return counting(view, key)

    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source="current/visits.parquet", most=MOST))
    lead_to("many")
    with open_clinic(policy) as session:
        query = written(session, COUNTED)
        if moment != "counting":
            lead_to("few")
        else:
            monkeypatch.setattr(BoundedView, "counting", changed_meanwhile)
        if moment == "other questions":
            assert counted(session) == 10 * 3
            lead_to("many")
        with pytest.raises(Fault):
            engine_of(session).run(query)
        monkeypatch.setattr(BoundedView, "counting", counting)
        lead_to("many")
        assert counted(session) == 9 * 3 + MOST


@pytest.fixture(params=["v.parquet", "v.csv"])
def pattern(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, Callable[[], object]]:
    """Write a policy whose pattern finds one file; return it and a function that moves a second folder under the pattern, which
    leaves the times of its file as they are. The file has 1,000 rows of one person."""
    for folder, person in {"data": "'p' || n", "b": "'heavy'"}.items():
        file = tmp_path / folder / ("a" if folder == "data" else "") / request.param
        file.parent.mkdir(parents=True)
        with duckdb.connect() as connection:
            connection.execute(f"COPY (SELECT {person} AS patient_id, n AS visit_id FROM range(1000) r(n)) TO '{file}'")
    policy = tmp_path / "clinic.yaml"
    head = POLICY.format(source=f"'data/*/{request.param}'", most=MOST)
    policy.write_text(head[: head.index("      cost:")])
    return policy, lambda: os.rename(tmp_path / "b", tmp_path / "data" / "b")


@pytest.mark.parametrize("looked", ["before", "after"])
def test_a_file_that_arrives_under_a_pattern_takes_no_row_of_others(
    pattern: tuple[Path, Callable[[], object]], looked: str
) -> None:
    policy, arrive = pattern
    with open_clinic(policy) as session:
        engine = engine_of(session)
        engine.check_readable(("visits",))
        arrive()
        if looked == "after":
            engine.check_readable(("visits",))
        first = counted(session)  # of the one file, or of both
        engine.check_readable(("visits",))
        assert [counted(session), counted(session)] == [1004, 1004]
        assert first == 1004 or (first, looked) == (1000, "before")


def test_an_answer_without_a_file_that_arrived_is_not_given_again(
    pattern: tuple[Path, Callable[[], object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, arrive = pattern
    with open_clinic(policy) as session:
        session.execute("RESET dp.reuse")
        look = DuckDBEngine.check_readable

        def then_arrives(engine: DuckDBEngine, tables: tuple[str, ...]) -> None:
            look(engine, tables)
            arrive()
            monkeypatch.setattr(DuckDBEngine, "check_readable", look)

        monkeypatch.setattr(DuckDBEngine, "check_readable", then_arrives)
        assert any("changed while this was measured" in note for note in session.execute(COUNTED).notices)
        assert not session.execute(COUNTED).reused
        assert session.execute(COUNTED).reused


@pytest.mark.parametrize(("files", "further"), [(2, ""), (16, ""), (17, ""), (4, ", NULL::BIGINT AS File_Row_Number")])
def test_rows_of_several_files_are_numbered(
    tmp_path: Path, files: int, further: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of one person are in all files, and equal ones in two; columns of the files have no order in common. Which rows stay
    is what a window says, whatever files a condition leaves out. Rows have no numbers if any file has a column of that name."""
    for number in range(files):
        rows = f"SELECT 'p' || n % 5 AS patient_id, (n + 40 * {number // 2}) AS visit_id, 1.0 AS cost, 'a' AS ward"
        day = f"DATE '2024-01-02' AS day{further * (number == files - 1)}"
        columns = "*" if number % 2 else "COLUMNS(['day', 'ward', 'cost', 'visit_id', 'patient_id'])"
        with duckdb.connect() as connection:
            name = tmp_path / f"it's [{number}].parquet"
            connection.execute(
                f"COPY (SELECT {columns} FROM ({rows}, {day} FROM range(40) r(n))) TO '{str(name).replace(chr(39), chr(39) * 2)}'"
            )
    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source="'*.parquet'", most=MOST))
    parts = [f"{WHOLE} WHERE visit_id BETWEEN {20 * part} AND {20 * part + 19}" for part in range(files + 1)]
    with open_clinic(policy) as session:
        monkeypatch.setattr(contribution_index, "SETTLED_SECONDS", 3600.0)
        by_window = [counted(session, part) for part in parts]
        monkeypatch.setattr(contribution_index, "SETTLED_SECONDS", 0.0)
        assert written(session, COUNTED).unchanged
        assert [counted(session, part) for part in parts] == by_window and sum(by_window) == 5 * MOST
        assert bool(engine_of(session).source("visits").row_number) == (files <= 16 and not further)


@pytest.mark.parametrize("column", ["rowid", "file_row_number"])
@pytest.mark.parametrize("in_path", [False, True])
def test_a_column_of_the_policy_may_have_the_name_of_one_of_the_engine(
    tmp_path: Path, column: str, in_path: bool
) -> None:
    folder = tmp_path / (f"{column}=7" if in_path else "files")
    folder.mkdir()
    items = "* EXCLUDE visit_id" if in_path else f"* RENAME (visit_id AS {column})"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {items} FROM ({MANY})) TO '{folder}/visits.parquet'")
    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source="'*/*.parquet'", most=MOST).replace("visit_id", column))
    with open_clinic(policy) as session:
        sql = f"{WHOLE} WHERE {column} >= 0"
        assert written(session, sql).unchanged
        assert [counted(session, sql), counted(session, sql)] == [7 * 3 + MOST] * 2


GENERATED = "patient_id TEXT, visit_id INTEGER, cost DOUBLE GENERATED ALWAYS AS (random()), ward TEXT, day DATE"
COMPUTED = {
    "columns": f"CREATE TABLE desk ({GENERATED}); INSERT INTO desk SELECT * EXCLUDE cost FROM ({{rows}})",
    "views": "CREATE TABLE t AS {rows}; CREATE VIEW desk AS SELECT * REPLACE (random() AS cost) FROM t",
    "views beside a table": 'CREATE TABLE "des\u212a" AS {rows}; CREATE VIEW desk AS SELECT * REPLACE (random() AS cost) FROM "des\u212a"',
}
"""The last: for Python, but not for DuckDB, the sign of Kelvin is a capital K."""


@pytest.mark.parametrize("kind", COMPUTED)
@pytest.mark.parametrize("is_file", [True, False])
def test_rows_that_differ_at_each_reading_are_bounded(tmp_path: Path, kind: str, is_file: bool) -> None:
    """Their hashes differ as well, so that a limit of one reading means nothing for another."""
    file, policy = tmp_path / "visits.duckdb", tmp_path / "clinic.yaml"
    policy.write_text("source: duckdb:///visits.duckdb\n" + POLICY.format(source="desk", most=MOST))
    with duckdb.connect(file if is_file else ":memory:") as connection:
        connection.execute(COMPUTED[kind].format(rows=MANY.replace("range(60)", "range(1000)")))
        if is_file:
            connection.close()
        with open_clinic(policy, None if is_file else connection) as session:
            assert [counted(session, sql) for sql in (COUNTED, WHOLE) for _ in range(8)] == [7 * 3 + MOST] * 16


@pytest.fixture
def given(tmp_path: Path) -> Iterator[tuple[Session, duckdb.DuckDBPyConnection]]:
    """Yield a session over a connection given in Python, and the connection: no identity shows that its rows change."""
    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source="visits", most=MOST))
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS {MANY}")
        with open_clinic(policy, connection) as session:
            yield session, connection


def test_rows_that_are_added_to_a_connection_are_bounded(given: tuple[Session, duckdb.DuckDBPyConnection]) -> None:
    """Units are counted in each question, in the same statement: rows that come meanwhile are in no reading or in all."""
    session, connection = given
    assert "#limits" in written(session, COUNTED).sql and counted(session) == 7 * 3 + MOST
    has_ended = threading.Event()

    def add_and_remove() -> None:
        with connection.cursor() as cursor:
            while not has_ended.is_set():
                cursor.execute(f"INSERT INTO visits {ADDED}")
                cursor.execute("DELETE FROM visits WHERE visit_id BETWEEN 30 AND 100029 AND patient_id = 'p1'")

    adding = threading.Thread(target=add_and_remove)
    adding.start()
    try:
        counts = {counted(session, sql) for sql in (COUNTED, WHOLE) for _ in range(6)}
    finally:
        has_ended.set()
        adding.join()
    assert counts <= {7 * 3 + MOST, 6 * 3 + 2 * MOST}
    connection.execute(f"INSERT INTO visits {ADDED}")
    assert counted(session) == counted(session, WHOLE) == 6 * 3 + 2 * MOST


def test_a_view_that_takes_the_place_of_a_table_is_not_read_by_limits(
    given: tuple[Session, duckdb.DuckDBPyConnection],
) -> None:
    session, connection = given
    query = written(session, COUNTED)
    connection.execute("ALTER TABLE visits RENAME TO t; CREATE VIEW visits AS SELECT * FROM t")
    with pytest.raises(Fault):
        engine_of(session).run(query)
    engine_of(session).check_readable(("visits",))
    assert "#limits" not in written(session, COUNTED).sql and counted(session) == 7 * 3 + MOST


def test_an_arrow_table_is_read_by_limits(tmp_path: Path) -> None:
    policy = tmp_path / "clinic.yaml"
    policy.write_text(POLICY.format(source="visits", most=MOST))
    with duckdb.connect() as connection:
        rows = connection.sql(f"{MANY} UNION ALL {ADDED}").to_arrow_table()
    with open_clinic(policy, rows) as session:
        assert "#limits" in written(session, COUNTED).sql
        assert counted(session) == counted(session, WHOLE) == 6 * 3 + 2 * MOST
