"""Facts of a source, and prepared views, which one thread reads while another one changes them.

These tests do not wait: the other thread's work is done by the same thread, at the step where it would interfere.
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.visits_clinic import clinic, engine_of, fill, index_of, open_clinic, rows, written

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.engine.query import EngineQuery
from dpsql.policy import load_policy
from dpsql.session.session import Session

FEW = {"patients": ["('p1', 'north')"], "visits": [f"('p1', {n}, 1.0, 'a', DATE '2024-01-02')" for n in range(3)]}
MANY = FEW | {"visits": [f"('p1', {n}, 1.0, 'a', DATE '2024-01-02')" for n in range(90)]}
COUNTED = "SELECT count(*) AS n FROM visits"
MOMENTS = """
dataset: t
privacy_unit: row
budget: {epsilon: 10, accountant: pure}
per_query: {epsilon: 1}
ledger: sqlite:///ledger.db
tables:
  t:
    source: t.parquet
    columns: {moment: {type: timestamp}, i: {type: integer, lower: 0, upper: 9}}
"""


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))


def counted(session: Session, query: EngineQuery) -> int:
    """Return the exact number of rows that a query counts."""
    (row,) = engine_of(session).run(query).unseal().to_pylist()
    return int(row[query.terms[0]])


def replaced(folder: Path, tables: dict[str, list[str]]) -> None:
    """Replace the source by another file."""
    fill(folder / "new.duckdb", tables)
    os.replace(folder / "new.duckdb", folder / "clinic.duckdb")


def test_questions_under_two_policies_of_one_server_read_each_its_own_view(tmp_path: Path) -> None:
    """This happens after a reload with a smaller max_rows, while an earlier query still runs. If they shared a view, the answer
    of one would include more rows of a unit than its noise covers."""
    fill(tmp_path / "clinic.duckdb", MANY)
    wide, narrow = clinic(tmp_path, most=9), clinic(tmp_path, most=2, name="narrow")
    narrow.write_text(narrow.read_text().replace("narrow", "clinic"))
    with open_clinic(wide) as session:
        key = session.ledger.witness.key
        former, present = (
            ContributionIndex(load_policy(path), engine_of(session), lambda: key) for path in (wide, narrow)
        )
        former.prepare()
        present.prepare()
        text = written(session, COUNTED, present, load_policy(narrow))
        assert "#bounded" in text.sql and counted(session, text) == 2
        assert counted(session, written(session, COUNTED, former)) == 9
        assert counted(session, text) == 2


def test_a_question_that_was_late_does_not_put_a_former_view_in_the_place_of_the_present_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former view was read in place, from a file in which no unit had too many rows. In the present file some unit has, and a
    query that reads a copy does not check afterwards whether the file changed."""
    (tmp_path / "visits").mkdir()
    policy = clinic(tmp_path, most=4)
    policy.write_text(policy.read_text().replace("  visits:\n", "  visits:\n    source: visits/visits.parquet\n"))

    def fill_visits(count: int) -> None:
        columns = (
            "'p1' AS patient_id, range::INTEGER AS visit_id, 1.0::DOUBLE AS cost, 'a' AS ward, DATE '2024-01-02' AS day"
        )
        duckdb.sql(f"SELECT {columns} FROM range({count})").write_parquet(str(tmp_path / "visits" / "visits.new"))
        os.replace(tmp_path / "visits" / "visits.new", tmp_path / "visits" / "visits.parquet")

    fill(tmp_path / "clinic.duckdb", {"patients": FEW["patients"]})
    fill_visits(3)
    with open_clinic(policy) as session:
        assert [state.state for state in index_of(session).prepare()][1] == "in place"
    with open_clinic(policy) as session:
        views, texts = engine_of(session).views.files, []
        opened = views.opened

        def opened_after_another_thread(*arguments: Any) -> str | None:
            monkeypatch.setattr(views, "opened", opened)
            fill_visits(90)
            with open_clinic(policy) as other:
                assert index_of(other).prepare()[1].state == "written"
            texts.append(written(session, COUNTED))
            return opened(*arguments)

        monkeypatch.setattr(views, "opened", opened_after_another_thread)
        assert not index_of(session).views()("visits").prepared
        assert "#bounded" in texts[0].sql and not texts[0].unchanged and counted(session, texts[0]) == 4


@pytest.mark.parametrize("copied", [True, False])
def test_a_question_whose_text_is_written_is_answered_from_its_copy_where_the_file_is_replaced(
    tmp_path: Path, copied: bool
) -> None:
    """It may be charged already. `copied`: the copy still exists; otherwise it is gone and the present file is read, bounded."""
    fill(tmp_path / "clinic.duckdb", rows(1))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=True)
    with open_clinic(policy) as session:
        text = written(session, COUNTED)
        before = counted(session, text)
        replaced(tmp_path, MANY)
        if not copied:
            for file in (tmp_path / "cache").rglob("*.duckdb"):
                file.unlink()
        engine_of(session).check_readable(("visits",))
        assert "#bounded" in text.sql and counted(session, text) == (before if copied else 4)
        assert counted(session, written(session, COUNTED)) == 4


def test_a_view_that_was_read_in_place_is_bounded_in_the_file_that_followed(tmp_path: Path) -> None:
    """Callers detect by `unchanged` that the file is another one; this test checks what holds without that check."""
    fill(tmp_path / "clinic.duckdb", FEW)
    policy = clinic(tmp_path, most=4)
    with open_clinic(policy) as session:
        assert index_of(session).prepare()[1].state == "in place"
    with open_clinic(policy) as session:
        text = written(session, COUNTED)
        assert "#bounded" in text.sql and counted(session, text) == 3
        replaced(tmp_path, MANY)
        engine_of(session).check_readable(("visits",))
        assert counted(session, replace(text, unchanged=())) == 4


def test_a_view_of_a_file_that_was_replaced_is_not_opened_in_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread about to open a view read in place may meet the database of the next file."""
    fill(tmp_path / "clinic.duckdb", FEW)
    policy = clinic(tmp_path, most=4)
    with open_clinic(policy) as session:
        assert index_of(session).prepare()[1].state == "in place"
    with open_clinic(policy) as session:
        engine, index = engine_of(session), index_of(session)
        former, later = engine.views.files, []
        before = engine._sources.cursor

        def after_another_thread() -> duckdb.DuckDBPyConnection:
            monkeypatch.setattr(former, "_new_cursor", before)
            former._lock.release()  # type: ignore[attr-defined]
            try:
                replaced(tmp_path, MANY)
                with open_clinic(policy) as other:
                    assert index_of(other).prepare()[1].state == "written"
                engine.check_readable(("visits",))
                later.append(written(session, COUNTED, index))
            finally:
                former._lock.acquire()  # type: ignore[attr-defined]
            return before()

        monkeypatch.setattr(former, "_new_cursor", after_another_thread)
        assert not index.views()("visits").prepared and engine.views.files is not former
        assert counted(session, later[0]) == 4


def test_facts_of_a_file_that_was_replaced_are_not_kept_as_those_of_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "clinic.duckdb", FEW)
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    tables = engine._sources
    columns = tables.columns

    def read_before_another_thread(table: str) -> dict[str, str] | None:
        read = columns(table)
        monkeypatch.setattr(tables, "columns", columns)
        with duckdb.connect(str(tmp_path / "new.duckdb")) as connection:
            connection.execute("CREATE TABLE patients (patient_id TEXT, region TEXT)")
            connection.execute("CREATE TABLE visits AS SELECT 'p' AS patient_id, 1::UTINYINT AS visit_id, 'x' AS cost, "
                               "'a' AS ward, DATE '2024-01-02' AS day")  # fmt: skip
        os.replace(tmp_path / "new.duckdb", tmp_path / "clinic.duckdb")
        engine.check_readable(("patients",))
        return read

    monkeypatch.setattr(tables, "columns", read_before_another_thread)
    engine.source("visits")
    engine.check_readable(("visits",))
    assert engine.source("visits").types["cost"] == "VARCHAR"


def test_whether_the_rows_are_those_of_the_table_is_told_while_the_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread discards all facts of the former file just after this thread has determined one."""
    fill(tmp_path / "clinic.duckdb", FEW)
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    tables = engine._sources
    leave = tables.leave

    def left_after_another_thread() -> None:
        monkeypatch.setattr(tables, "leave", leave)
        leave()
        with duckdb.connect(str(tmp_path / "new.duckdb")) as connection:
            connection.execute("CREATE TABLE patients (patient_id TEXT, region TEXT)")
            connection.execute("CREATE VIEW visits AS SELECT 1 AS visit_id")
        os.replace(tmp_path / "new.duckdb", tmp_path / "clinic.duckdb")
        tables._attach_anew()

    monkeypatch.setattr(tables, "leave", left_after_another_thread)
    assert tables.stored("visits") is not None
    assert tables.stored("visits") is None


@pytest.mark.parametrize("again", ["source", "check_readable"])
def test_a_text_that_names_files_read_value_by_value_finds_them_while_they_are_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """Timestamps in milliseconds, on which DuckDB's own reader may fail. Two first queries inspect the files at once."""
    columns = {"moment": pa.array([1, 2, 3], pa.timestamp("ms")), "i": [1, 2, 3]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (tmp_path / "t.yaml").write_text(MOMENTS)
    engine = open_duckdb(load_policy(tmp_path / "t.yaml"))
    tables, answers = engine._sources, []
    query = EngineQuery(f"SELECT count(*) AS n FROM {engine.source('t').sql}", (), ("n",))
    assert "read_parquet" not in query.sql
    read_metadata = pq.read_metadata

    def read_before_another_thread(path: Path) -> Any:
        answers.append(engine.run(query).unseal().to_pydict())
        return read_metadata(path)

    monkeypatch.setattr(pq, "read_metadata", read_before_another_thread)
    tables._sources.clear()
    tables._looked.clear()
    _ = engine.source("t") if again == "source" else engine.check_readable(("t",))
    assert answers == [{"n": [3]}]
