"""dpsql reopens its DuckDB database after many queries: nothing that a query can observe changes."""

import os
import threading
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.visits_clinic import QUESTIONS, clinic, engine_of, exact, fill, index_of, open_clinic, rows, written

from dpsql.engine.duckdb import prepared_views, sources
from dpsql.engine.duckdb.engine import DuckDBEngine, open_duckdb
from dpsql.engine.emit import emitter
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error
from dpsql.policy import load_policy
from dpsql.session.session import Session, open_session

POLICY = """
dataset: t
privacy_unit: row
budget: {{epsilon: 10, accountant: pure}}
per_query: {{epsilon: 1}}
ledger: sqlite:///ledger.db
tables:
  t:
    {place}
    columns: {{i: {{type: integer, lower: 0, upper: 1000}}}}
"""
ONE = EngineQuery("SELECT 1 AS n", (), ("n",))
VISITS = "SELECT ward, count(*) AS n, count(DISTINCT patient_id) AS u FROM visits GROUP BY ward"


@pytest.fixture(autouse=True)
def _often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "MOST_RUNS", 3)


def run_until_reopened(engine: DuckDBEngine) -> bool:
    """Run unrelated queries; return whether the database was reopened."""
    before = engine._connection
    for _ in range(3):
        assert engine.run(ONE).unseal().to_pydict() == {"n": [1]}
    return engine._connection is not before


@pytest.mark.parametrize("prepared", [False, True])
def test_questions_are_answered_as_before(tmp_path: Path, prepared: bool) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    policy = clinic(tmp_path)
    if prepared:
        with open_clinic(policy) as session:
            index_of(session).prepare()
    with open_clinic(policy) as session:
        version = session.context.engine.data_version(("visits",))
        first = [exact(session, sql) for sql in QUESTIONS]
        before = engine_of(session)._connection
        assert [exact(session, sql) for sql in QUESTIONS] == first and engine_of(session)._connection is not before
        assert session.context.engine.data_version(("visits",)) == version


def test_few_sets_of_units_are_held_as_bits_for_more_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many sets a question needs is public and stands in its text; how many units there are decides behind it."""
    fill(tmp_path / "clinic.duckdb", rows(1))
    questions = {
        "SELECT count(DISTINCT patient_id) AS u FROM visits": '(0, 0, "#id")',
        "SELECT ward, count(DISTINCT patient_id) AS u FROM visits GROUP BY ward": '(0, "#id")',
        "SELECT day, count(DISTINCT patient_id) AS u FROM visits GROUP BY day": '("#id")',
    }
    for most in (10, 10**6):
        for module in (prepared_views, emitter):
            monkeypatch.setattr(module, "UNIT_SETS", ((11, 3), (4, most), (3, 10**6)))
        with open_clinic(clinic(tmp_path)) as session:
            by_hashes = [exact(session, sql) for sql in questions]
            index_of(session).prepare(copy=True)
            assert [exact(session, sql) for sql in questions] == by_hashes
            for sql, call in questions.items():
                assert call in written(session, sql).sql
            with engine_of(session)._cursor(None) as cursor:
                texts = cursor.execute(
                    "SELECT parameters, macro_definition FROM duckdb_functions() WHERE function_name LIKE 'visits %'"
                ).fetchall()
        bits = {len(parameters): "bitstring_agg" in text for parameters, text in texts}
        assert bits == {1: False, 2: most > 40, 3: True}
        for copy in (tmp_path / "cache").rglob("*.duckdb"):
            copy.unlink()


@pytest.mark.parametrize("copy", [False, True])
def test_a_text_that_names_a_prepared_view_finds_it_after_the_database_was_opened_again(
    tmp_path: Path, copy: bool
) -> None:
    """Such a query may be charged already. `copy`: copy every table; otherwise `patients` is read in place."""
    fill(tmp_path / "clinic.duckdb", rows(2))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=copy)
    with open_clinic(policy) as session:
        engine = engine_of(session)
        sql = VISITS.replace("visits", "patients").replace("ward", "region")
        texts = [written(session, question) for question in (VISITS, sql)]
        assert all("#bounded" in text.sql for text in texts)
        answers = [sorted(engine.run(text).unseal().to_pylist(), key=str) for text in texts]
        assert run_until_reopened(engine)
        assert [sorted(engine.run(text).unseal().to_pylist(), key=str) for text in texts] == answers


@pytest.mark.parametrize("kind", ["csv", "parquet", "table"])
def test_files_and_tables_of_python_are_there_after_it(tmp_path: Path, kind: str) -> None:
    three = pa.table({"i": [1, 2, 3]})
    (tmp_path / "t.csv").write_text("i\n1\n2\n3\n")
    pq.write_table(three, tmp_path / "t.parquet")
    place = {"csv": "source: t.csv", "parquet": "source: t.parquet", "table": "max_rows: 1"}[kind]
    (tmp_path / "t.yaml").write_text(POLICY.format(place=place))
    engine = open_duckdb(load_policy(tmp_path / "t.yaml"), three if kind == "table" else None)
    counted = EngineQuery(f"SELECT count(*) AS n FROM {engine.source('t').sql}", (), ("n",))
    assert run_until_reopened(engine)
    assert engine.run(counted).unseal().to_pydict() == {"n": [3]}
    engine.close()


def test_not_while_another_question_runs_and_never_a_connection_of_the_owner(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    policy = load_policy(clinic(tmp_path))
    engine = open_duckdb(policy)
    running = engine._sources.enter()
    assert not run_until_reopened(engine)
    running.close()
    engine._sources.leave()
    assert not run_until_reopened(engine) or engine.run(ONE)
    own = duckdb.connect()
    theirs = DuckDBEngine(own, policy, "v", owned=False)
    assert not run_until_reopened(theirs) and own.execute("SELECT 1").fetchall() == [(1,)]
    engine.close()


def test_settings_of_a_process_that_prepares_stay(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    engine.views.files.limit("300MB", 1, tmp_path)
    assert not run_until_reopened(engine)
    engine.close()


def test_a_file_that_was_replaced_is_for_the_next_question_to_find(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    fill(tmp_path / "new.duckdb", {})
    os.replace(tmp_path / "new.duckdb", tmp_path / "clinic.duckdb")
    assert not run_until_reopened(engine)
    engine.check_readable(("visits",))
    counted = EngineQuery(f"SELECT count(*) AS n FROM {engine.source('visits').sql}", (), ("n",))
    assert engine.run(counted).unseal().to_pydict() == {"n": [0]}
    engine.close()


def test_what_cannot_be_opened_again_is_refused_before_a_charge_and_works_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(clinic(tmp_path)))

    def failing(*_: object) -> None:
        raise duckdb.IOException("no such device")

    with monkeypatch.context() as patch:
        patch.setattr(sources, "attached", failing)
        for _ in range(3):
            engine.run(ONE)
        with pytest.raises(Error, match="cannot be"):
            engine.check_readable(("visits",))
    engine.check_readable(("visits",))
    counted = EngineQuery(f"SELECT count(*) > 0 AS n FROM {engine.source('visits').sql}", (), ("n",))
    assert engine.run(counted).unseal().to_pydict() == {"n": [True]}
    engine.close()


FEW = {"patients": ["('p1', 'north')"], "visits": [f"('p1', {n}, 1.0, 'a', DATE '2024-01-02')" for n in range(3)]}
MANY = FEW | {"visits": [f"('p1', {n}, 1.0, 'a', DATE '2024-01-02')" for n in range(90)]}


def test_a_view_of_a_former_file_does_not_replace_that_of_the_present_one(tmp_path: Path) -> None:
    """Another thread opens a replaced file, and its views, between the end of the last query over the former file and the moment
    when its database is reopened. The former was read in place, which would not bound the rows of the present file."""
    file, policy = tmp_path / "clinic.duckdb", clinic(tmp_path, most=4)
    fill(file, FEW)
    with open_clinic(policy) as session:
        assert index_of(session).prepare()[1].state == "in place"
    with open_clinic(policy) as session:
        index, tables = index_of(session), engine_of(session)._sources
        text = f"SELECT count(*) AS n FROM {index.views()('visits').sql}"
        former = tables.views
        assert tables.cursor().execute(text).fetchall() == [(3,)]
        fill(tmp_path / "new.duckdb", MANY)
        os.replace(tmp_path / "new.duckdb", file)
        with open_clinic(policy) as other:
            assert index_of(other).prepare()[1].state == "written"

        def after_another_thread() -> duckdb.DuckDBPyConnection | None:
            session.context.engine.check_readable(("visits",))
            assert index.views()("visits").sql
            return tables._reopened(former)

        former.move(after_another_thread)
        assert tables.views is not former
        assert tables.cursor().execute(text).fetchall() == [(4,)]


def test_not_while_the_structure_of_a_table_is_read_or_a_view_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing the database would close the cursor of another thread that reads it. The database is reopened later."""
    replaced = clinic(tmp_path)
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(replaced))
    tables, same = engine._sources, []
    real = tables.enter

    def entered() -> duckdb.DuckDBPyConnection:
        cursor = real()
        monkeypatch.setattr(tables, "enter", real)
        same.append(run_until_reopened(engine))
        return cursor

    for read in (lambda: tables.columns("visits"), lambda: tables.stored("visits")):
        monkeypatch.setattr(tables, "enter", entered)
        tables._runs = 0
        assert read()
    with engine.views.files._lock:  # type: ignore[attr-defined]
        same.append(run_until_reopened(engine))
    assert same == [False, False, False]
    assert run_until_reopened(engine)
    engine.close()


def test_a_question_whose_database_is_gone_has_the_fixed_text(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    engine._connection.close()
    with pytest.raises(Error, match="could not be") as refusal:
        engine.run(ONE)
    assert refusal.value.slug == "engine_failed"


def test_a_question_may_be_cancelled_while_its_thread_opens_the_database_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    real = engine._sources._reopen
    reopened = []

    def cancelled() -> None:
        engine.interrupt()
        reopened.append(real())

    monkeypatch.setattr(engine._sources, "_reopen", cancelled)
    assert run_until_reopened(engine) and reopened
    engine.close()


def charges(session: Session) -> int:
    """Return the number of charges in the ledger."""
    return sum(entry.kind == "charge" for entry in session.ledger.history())


def always_one(engine: DuckDBEngine) -> duckdb.DuckDBPyConnection:
    """Return the cursor of a query that keeps running while enough others have run that new ones wait for its end."""
    running = engine._sources.enter()
    for _ in range(2 * sources.MOST_RUNS):
        engine.run(ONE)
    return running


def test_new_questions_wait_for_those_that_run_where_there_always_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without waiting, the running query would never have ended before the next one began. Queries that are charged already do
    not wait."""
    fill(tmp_path / "clinic.duckdb", rows(1))
    monkeypatch.setattr(sources, "DRAIN_SECONDS", 300.0)
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    tables, first = engine._sources, engine._connection
    running = always_one(engine)
    looked: list[object] = []
    other = threading.Thread(target=lambda: looked.append(engine.check_readable(("visits",))))
    other.start()
    while other.is_alive() and not tables._drain_until:
        time.sleep(0.001)
    engine.run(ONE)
    assert engine._connection is first and not looked
    running.close()
    tables.leave()
    other.join()
    assert engine._connection is not first and looked == [None] and not tables._drain_until
    engine.close()


def test_a_question_that_takes_longer_holds_others_up_for_a_moment_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    monkeypatch.setattr(sources, "DRAIN_SECONDS", 0.01)
    engine = open_duckdb(load_policy(clinic(tmp_path)))
    tables, first = engine._sources, engine._connection
    waits: list[float] = []
    real = tables._entering.wait_for
    monkeypatch.setattr(tables._entering, "wait_for", lambda done, most: waits.append(most) or real(done, most))
    running = tables.enter()
    engine.check_readable(("visits",))
    tables._runs = 0
    for _ in range(4 * sources.MOST_RUNS):
        engine.check_readable(("visits",))
        assert engine.run(ONE).unseal().to_pydict() == {"n": [1]}
    assert engine._connection is first
    assert len(waits) == 2 and all(0 < seconds <= 0.02 for seconds in waits)
    running.close()
    tables.leave()
    assert engine._connection is not first
    engine.close()


def test_who_is_cancelled_while_others_end_is_not_charged_and_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same for Ctrl-C, a cancel request, a statement timeout and the end of a connection, which all end a session's
    waiting."""
    fill(tmp_path / "clinic.duckdb", rows(1))
    monkeypatch.setattr(sources, "DRAIN_SECONDS", 300.0)
    with open_clinic(clinic(tmp_path)) as session:
        engine = engine_of(session)
        session.execute(QUESTIONS[0])
        charged = charges(session)
        running = always_one(engine)
        slugs: list[str] = []

        def ask() -> None:
            with pytest.raises(Error) as refusal:
                session.execute(QUESTIONS[1])
            slugs.append(refusal.value.slug)

        asking = threading.Thread(target=ask)
        asking.start()
        while asking.is_alive() and not engine._sources._drain_until:
            time.sleep(0.001)
        session.interrupt()
        asking.join()
        assert slugs == ["stopped"] and engine._sources._drain_until
        running.close()
        engine._sources.leave()
        session.context.queue.stop()
        assert charges(session) == charged
        session.execute(QUESTIONS[1])
        assert charges(session) == charged + 1


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_question_whose_text_is_written_is_answered_where_its_prepared_copy_is_gone(tmp_path: Path, how: str) -> None:
    """It may be charged already: the view is recreated from the source, with the same rows within max_rows, and memory is
    released."""
    fill(tmp_path / "clinic.duckdb", rows(2))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=True)
    with open_clinic(policy) as session:
        engine, prepared = engine_of(session), exact(session, VISITS)
        text = written(session, VISITS)
        answer = sorted(engine.run(text).unseal().to_pylist(), key=str)
        lose_copies(tmp_path, how)
        for _ in range(2):
            assert run_until_reopened(engine)
            assert sorted(engine.run(text).unseal().to_pylist(), key=str) == answer
            assert exact(session, VISITS) == prepared


def test_a_question_whose_text_is_written_is_answered_where_the_copy_of_private_rows_is_gone(tmp_path: Path) -> None:
    pq.write_table(pa.table({"i": [1, 2, 3, 5000]}), tmp_path / "t.parquet")
    (tmp_path / "t.yaml").write_text(POLICY.format(place="source: t.parquet"))
    with open_session(tmp_path / "t.yaml", create_ledger=True) as session:
        index_of(session).prepare(copy=True)
    with open_session(tmp_path / "t.yaml") as session:
        engine = engine_of(session)
        text = written(session, "SELECT sum(i) AS s, count(*) AS n FROM t")
        assert "#bounded" in text.sql
        answer = engine.run(text).unseal().to_pylist()
        lose_copies(tmp_path, "removed")
        assert run_until_reopened(engine)
        assert engine.run(text).unseal().to_pylist() == answer


def test_a_copy_that_is_prepared_again_after_it_was_gone_is_read_again(tmp_path: Path) -> None:
    fill(tmp_path / "clinic.duckdb", rows(2))
    policy = clinic(tmp_path)
    with open_clinic(policy) as session:
        index_of(session).prepare(copy=True)
    with open_clinic(policy) as session:
        engine, prepared = engine_of(session), exact(session, VISITS)
        lose_copies(tmp_path, "removed")
        assert run_until_reopened(engine) and exact(session, VISITS) == prepared
        with open_clinic(policy) as other:
            index_of(other).prepare(copy=True)
        for _ in range(2):
            assert exact(session, VISITS) == prepared
            attached = engine.exact_rows("SELECT database_name AS n FROM duckdb_databases()").to_pydict()["n"]
            assert any(name.startswith("#") for name in attached)
            assert run_until_reopened(engine)


def lose_copies(folder: Path, how: str) -> None:
    """Remove all prepared copies, or replace them by something else."""
    for file in list(folder.rglob("*.duckdb")):
        if file.name != "clinic.duckdb":
            file.unlink()
            if how == "replaced":
                file.write_bytes(b"no database")


def test_free_memory_is_given_back_once_the_database_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path / "clinic.duckdb", rows(1))
    returned: list[duckdb.DuckDBPyConnection] = []
    with open_clinic(clinic(tmp_path)) as session:
        engine = engine_of(session)
        monkeypatch.setattr(sources, "return_free_memory", lambda: returned.append(engine._connection))
        assert run_until_reopened(engine)
        assert returned and returned[-1] is engine._connection


def test_a_copy_is_attached_once_and_never_by_words_at_which_the_engine_may_wait_for_ever(tmp_path: Path) -> None:
    """Two databases of one process that attach a file with IF NOT EXISTS keep a core busy forever, about once in some hundred
    attempts."""
    copy = tmp_path / "copy.duckdb"
    with duckdb.connect(str(copy)) as connection:
        connection.execute("CREATE TABLE about AS SELECT 7 AS units")
    statements: list[str] = []

    class Noted:
        """A cursor that records its statements."""

        def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
            self.cursor = cursor

        def execute(self, text: str) -> duckdb.DuckDBPyConnection:
            statements.append(text)
            return self.cursor.execute(text)

    for database in (duckdb.connect(), duckdb.connect()):
        for _ in range(2):
            place = prepared_views._attach(Noted(database.cursor()), "token", copy)  # type: ignore[arg-type]
            assert database.execute(f"SELECT units FROM {place}.main.about").fetchall() == [(7,)]
    attached = [text for text in statements if text.startswith("ATTACH")]
    assert len(attached) == 2 and not any("IF NOT EXISTS" in text for text in attached)
