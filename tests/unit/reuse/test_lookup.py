"""A paid release is never charged again: across queries, analysts, processes, restarts and retries."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from support.hospital_file import build_data, write_policy
from support.processes import CLEAN, clean_process

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error, Refusal
from dpsql.frontends.admin.check import check_policy_file
from dpsql.ledger.records import request_of
from dpsql.release.release import Release
from dpsql.reuse.record import opened
from dpsql.session.session import Session, open_session

COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


def spent(session: Session, scope: str = "dataset") -> str:
    return session.budget().spent[scope]["epsilon"]


def shown(release: Release) -> tuple[list[Any], list[Any], list[Any]]:
    """Return values and both ends of the error bars."""
    return release.table.to_pylist(), release.low.to_pylist(), release.high.to_pylist()


@pytest.fixture
def made(policy: Path) -> Iterator[Path]:
    """Yield the policy of a data set that has a ledger."""
    open_session(policy, create_ledger=True).close()
    yield policy


# --- queries built on stored blocks ---------------------------------------------------------------------------------

ABOVE = [
    COUNT + " ORDER BY n DESC LIMIT 2",
    "SELECT region, COUNT(*) AS n FROM patients GROUP BY 1 HAVING COUNT(*) > 5",
    "SELECT MAX(n) - MIN(n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) t",
    "WITH t AS (SELECT p.region AS r, COUNT(*) AS c FROM patients AS p GROUP BY p.region) "
    "SELECT r, SUM(c) OVER (ORDER BY r) FROM t",
    "SELECT upper(region), COUNT(*) / 2.0 FROM patients GROUP BY region",
    "SELECT a.region FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) a JOIN "
    "(SELECT region, COUNT(*) AS n FROM patients GROUP BY region) b ON a.n = b.n",
]


def test_a_new_question_does_not_read_the_releases_of_others(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all releases of the relation, only those that may hold exactly its numbers are opened."""
    read: list[object] = []
    monkeypatch.setattr("dpsql.reuse.lookup.opened", lambda release: read.append(release) or opened(release))
    for age in range(20, 36):
        item = "COUNT(*)" if age < 28 else "MEDIAN(age)"
        session.execute(f"SELECT region, {item} AS n FROM patients WHERE age < {age} GROUP BY region")
    assert not read
    before = spent(session)
    filtered = "SELECT region, COUNT(*) FILTER (WHERE age < 25) AS n FROM patients GROUP BY region"
    assert session.execute(filtered).reused and len(read) == 1 and spent(session) == before
    session.execute("SET dp.reuse = derive")
    assert session.execute("SELECT COUNT(*) AS n FROM patients WHERE age < 25").reused and len(read) > 8


@pytest.mark.parametrize("sql", ABOVE)
def test_whatever_is_built_on_a_stored_block_is_free(session: Session, sql: str) -> None:
    receipt = session.execute(COUNT).receipt_id
    plan = session.explain(sql)
    assert plan.price == "nothing"
    assert set(plan.stored) == {"dp_0"}
    assert any(receipt in note for note in plan.notes)
    again = session.execute(sql)
    assert again.reused
    assert again.receipt_id == receipt
    assert again.loss.epsilon == 0
    assert spent(session) == "1"


def _answers(path: str, analyst: str, out: Any) -> None:
    with open_session(path, analyst=analyst) as session:
        release = session.execute(COUNT)
        averages = session.execute("SELECT smoker, AVG(age), COUNT(*) / (COUNT(age) + 1) FROM patients GROUP BY smoker")
        out.put((shown(release), shown(averages), release.receipt_id, averages.receipt_id))


def test_processes_and_analysts_share_numbers_error_bars_and_receipts(made: Path) -> None:
    out = CLEAN.Queue()
    found = []
    for analyst in ("ann", "bob"):
        worker = clean_process(_answers, str(made), analyst, out)
        worker.start()
        found.append(out.get(timeout=240))
        worker.join()
    assert found[0] == found[1]
    with open_session(made, analyst="bob") as session:
        assert (spent(session), spent(session, "analyst:bob")) == ("2", "0")
        charged = {request_of(e.facts["id"]) for e in session.ledger.history() if e.kind == "charge"}
        assert charged == set(found[0][2:])


def _ask_together(path: str, analyst: str, barrier: Any, out: Any) -> None:
    with open_session(path, analyst=analyst) as session:
        run = session.context.engine.run

        def slow(query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
            time.sleep(0.5)
            return run(query, timeout_seconds)

        session.context.engine.run = slow  # type: ignore[method-assign]
        barrier.wait(240)
        out.put(
            [shown(session.execute(sql)) for sql in (COUNT, "SELECT region, COUNT(*) AS n FROM patients GROUP BY 1")]
        )


def test_who_asks_at_the_same_moment_waits_and_does_not_pay(made: Path) -> None:
    out = CLEAN.Queue()
    barrier = CLEAN.Barrier(2)
    workers = [clean_process(_ask_together, str(made), who, barrier, out) for who in ("ann", "bob")]
    for worker in workers:
        worker.start()
    assert out.get(timeout=240) == out.get(timeout=60)
    for worker in workers:
        worker.join()
    with open_session(made) as session:
        assert spent(session) == "1"


def test_threads_wait_too_and_an_interrupt_ends_the_waiting(made: Path) -> None:
    with open_session(made) as first, open_session(made) as second:
        inside, go_on = threading.Event(), threading.Event()
        run = first.context.engine.run

        def slow(query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
            inside.set()
            assert go_on.wait(240)
            return run(query, timeout_seconds)

        first.context.engine.run = slow  # type: ignore[method-assign]
        with ThreadPoolExecutor(2) as pool:
            measuring = pool.submit(first.execute, COUNT)
            assert inside.wait(240)
            waiting = pool.submit(second.execute, COUNT)
            while not waiting.done():  # an interrupt before it waits ends nothing
                second.interrupt()
                time.sleep(0.02)
            error = waiting.exception()
            assert isinstance(error, Error)
            assert (error.slug, error.charged) == ("stopped", False)
            again = pool.submit(second.execute, COUNT)
            go_on.set()
            assert shown(again.result(30)) == shown(measuring.result(30))
        assert spent(first) == "1"


# --- the policy's switches ------------------------------------------------------------------------------------------


def test_releases_of_one_analyst_alone(made: Path) -> None:
    write_policy(made.parent, reuse="{shared: false}")
    answers = []
    for analyst in ("ann", "bob", "ann", "bob"):
        with open_session(made, analyst=analyst) as session:
            answers.append(session.execute(COUNT))
    assert [answer.reused for answer in answers] == [False, False, True, True]
    assert shown(answers[0]) == shown(answers[2]) and shown(answers[1]) == shown(answers[3])
    assert answers[0].receipt_id == answers[2].receipt_id != answers[1].receipt_id == answers[3].receipt_id
    with open_session(made, analyst="ann") as session:
        session.execute("SET dp.reuse = derive")
        assert session.execute("SELECT COUNT(*) FROM patients").receipt_id == answers[0].receipt_id


def test_a_more_accurate_release_answers_a_cheaper_question(made: Path) -> None:
    with open_session(made) as session:
        session.execute("SET dp.epsilon = 2")
        first = session.execute(COUNT)
        session.execute("SET dp.epsilon = 0.5")
        cheap = session.execute(COUNT)
        assert cheap.reused
        assert shown(cheap) == shown(first)
        assert any("less noise" in notice for notice in cheap.notices)
        session.execute("SET dp.epsilon = 4")
        dear = session.execute(COUNT)
        assert not dear.reused
        assert spent(session) == "6"
    write_policy(made.parent, reuse="{more_accurate: false}")
    with open_session(made) as session:
        session.execute("SET dp.epsilon = 0.5")
        assert not session.execute(COUNT).reused
        session.execute("SET dp.epsilon = 2")
        assert session.execute(COUNT).reused


# --- versions of the data -------------------------------------------------------------------------------------------


def test_changed_data_are_charged_again_and_the_plan_says_so(made: Path) -> None:
    with open_session(made) as session:
        session.execute(COUNT)
        assert not any("changed" in note for note in session.explain(COUNT).notes)
    build_data(made.parent, count=600)
    with open_session(made) as session:
        plan = session.explain(COUNT)
        assert plan.price != "nothing"
        assert any("the data changed since the aggregation behind n was released" in note for note in plan.notes)
        session.execute("SET dp.reuse = derive")
        release = session.execute(COUNT)
        assert not release.reused
        assert sum(n for _, n in release.rows()) < 700
        assert session.execute("SELECT COUNT(*) FROM patients").receipt_id == release.receipt_id


def test_a_parent_that_is_joined_to_find_the_unit_is_a_part_of_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    for name, columns in (("people", "range AS person, range AS code"), ("visits", "range AS code")):
        duckdb.sql(f"COPY (SELECT {columns} FROM range(9)) TO '{tmp_path}/{name}.parquet'")
    (tmp_path / "p.yaml").write_text(
        "dataset: d\nprivacy_unit: {table: people, column: person}\nledger: sqlite:///l.db\nbudget: {epsilon: 9, delta: 1e-6}\n"
        "analysts: {ann: {epsilon: 9}}\ntables:\n"
        "  people: {source: ./people.parquet, max_rows: 1, unique: [[code]], "
        "columns: {person: {type: integer}, code: {type: integer}}}\n"
        "  visits: {source: ./visits.parquet, max_rows: 2, foreign_keys: {code: people.code}, columns: {code: {type: integer}}}\n"
    )
    with open_session(tmp_path / "p.yaml", analyst="ann", create_ledger=True) as session:
        assert not session.execute("SELECT COUNT(*) FROM visits").receipt.reused
        assert session.execute("SELECT COUNT(*) FROM visits").receipt.reused
        duckdb.sql(f"COPY (SELECT range AS person, 8 - range AS code FROM range(8)) TO '{tmp_path}/people.parquet'")
        assert not session.execute("SELECT COUNT(*) FROM visits").receipt.reused


def test_an_edit_of_the_policy_keeps_what_does_not_read_it(made: Path) -> None:
    """Also for derived answers, and `dpsql check` names what is lost."""
    tile, derived = "SELECT kind, SUM(cost) FROM visits GROUP BY kind", "SELECT SUM(cost) FROM visits WHERE kind = 'in'"
    with open_session(made, analyst="ann") as session:
        session.execute(tile)
    text = made.read_text()
    for old, new, reused in (
        ("      plan: {type: text, domain: [free, pro, null]}\n", "", True),
        ("upper: 1000", "upper: 900", False),
        ("upper: 100}", "upper: 99}", True),
        ("max_rows: 5", "max_rows: 4", False),
        ("max_rows: 5", "max_rows: 5", True),
    ):
        made.write_text(text.replace(old, new))
        with open_session(made, analyst="ann") as session:
            session.execute("SET dp.reuse = derive")
            assert (session.explain(derived).charged.epsilon == 0) is reused, (old, new)
            assert (session.explain(tile).charged.epsilon == 0) is reused, (old, new)
        lost = [note for note in check_policy_file(made).notes if "stored releases read" in note]
        assert bool(lost) is not reused, (old, new)


def test_nothing_is_derived_from_another_column_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    (tmp_path / "t.csv").write_text("k,x,y\n" + "a,1,9\n" * 20)
    policy = (
        "dataset: d\nprivacy_unit: row\nledger: sqlite:///l.db\nbudget: {epsilon: 9, delta: 1e-6}\nanalysts: {ann: {epsilon: 9}}\n"
        "reuse: {default: derive}\ntables:\n  t: {source: ./t.csv, columns: {k: {type: text, domain: [a, b]}, "
        "v: {type: integer, lower: 0, upper: 9, from: x}}}\n"
    )
    tile, part = "SELECT k, SUM(v) FROM t GROUP BY k", "SELECT SUM(v) FROM t WHERE k = 'a'"
    (tmp_path / "p.yaml").write_text(policy)
    with open_session(tmp_path / "p.yaml", analyst="ann", create_ledger=True) as session:
        assert not session.execute(tile).receipt.reused and session.execute(part).receipt.reused
    (tmp_path / "p.yaml").write_text(policy.replace("from: x", "from: y"))
    with open_session(tmp_path / "p.yaml", analyst="ann") as session:
        assert not session.execute(part).receipt.reused and not session.execute(tile).receipt.reused


def test_a_removed_answer_is_said_before_it_is_charged_again(made: Path) -> None:
    """Once for each asker, for derived answers too; EXPLAIN says it without counting as asking."""
    tile, part = "SELECT kind, SUM(cost) FROM visits GROUP BY kind", "SELECT SUM(cost) FROM visits WHERE kind = 'in'"
    with open_session(made, analyst="ann") as ann, open_session(made, analyst="bob") as bob:
        for session in (ann, bob):
            session.execute("SET dp.reuse = derive")
        receipt = ann.execute(tile).receipt.id
        assert ann.execute(part).receipt.reused
        store = ann.context.stored_releases._store
        with store._writing() as connection:
            store._remove(connection, "*", 10**12, 1)
        before = spent(ann)
        for session, text in ((ann, part), (bob, tile)):
            assert any("was removed on" in note for note in session.explain(text).notes)
            with pytest.raises(Refusal) as caught:
                session.execute(text)
            assert caught.value.slug == "answer_removed" and receipt in caught.value.message
            assert not caught.value.charged and spent(ann) == before
        assert not ann.execute(tile).receipt.reused and spent(ann) != before
        assert bob.execute(tile).receipt.reused and ann.execute(part).receipt.reused


def test_a_full_store_costs_free_repeats_and_no_answer(made: Path) -> None:
    """No page is left for releases: what is charged is answered, and says that it could not be stored."""
    with open_session(made, analyst="ann") as session:
        session.execute(COUNT)
        store = session.context.stored_releases._store._store

        def limit(step: str) -> None:
            if store._connection is not None:
                store._connection.run("PRAGMA max_page_count = 1")  # SQLite takes the present size instead

        store.step = limit
        unstored = 0
        for number in range(30):
            before = spent(session)
            release = session.execute(f"SELECT region, COUNT(*) FROM patients WHERE age > {number} GROUP BY region")
            unstored += any("could not be stored" in notice for notice in release.receipt.notices)
            assert release.table.num_rows == 3 and spent(session) != before
        assert unstored > 10
        assert session.execute(COUNT).receipt.reused


def test_the_owners_version_stands_for_the_files(made: Path) -> None:
    write_policy(made.parent, data_version="november")
    with open_session(made) as session:
        first = session.execute(COUNT)
    build_data(made.parent, count=600)
    with open_session(made) as session:
        assert shown(session.execute(COUNT)) == shown(first)
    write_policy(made.parent, data_version="december")
    with open_session(made) as session:
        assert any("changed" in note for note in session.explain(COUNT).notes)
        assert not session.execute(COUNT).reused
        assert spent(session) == "2"


@pytest.mark.parametrize("state", ["files", "named", "daily", "server", "off"])
def test_explain_says_whether_asking_again_is_free(made: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    """It is true of the next question; a word for a period names the state of the data until the period ends."""
    write_policy(made.parent, **({"data_version": state} if state in ("named", "daily") else {}))
    with open_session(made) as session:
        if state == "server":  # where nothing tells whether rows have changed
            moments = (f"moment:{number}" for number in count())
            monkeypatch.setattr(session.context.engine, "data_version", lambda tables: next(moments))
            monkeypatch.setattr(session.context.stored_releases, "_data_version", lambda tables: next(moments))
        if state == "off":
            session.execute("SET dp.reuse = off")
        free = [line for line in session.explain(COUNT).further if "the same question again is free" in line]
        session.execute(COUNT)
        assert session.execute(COUNT).reused == bool(free) == (state in ("files", "named", "daily"))
        assert ("once it is stored" in session.context.goes_on(session.options)) == bool(free)
        clock = Mock(now=lambda zone: datetime.now(zone) + timedelta(days=1))
        monkeypatch.setattr("dpsql.policy.versions.datetime", clock)
        assert session.execute(COUNT).reused == (state in ("files", "named"))


def test_an_answer_that_is_not_stored_because_the_data_changed_says_so(
    made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_session(made) as session:
        versions = map(str, count())
        monkeypatch.setattr(session.context.stored_releases, "_data_version", lambda tables: next(versions))
        assert any(
            "so it is not stored: asking again is charged again" in note for note in session.execute(COUNT).notices
        )
        assert not session.execute(COUNT).reused


FILES = """
dataset: files
source: "{source}"
privacy_unit: row
budget: {{epsilon: 100, delta: 1e-6, accountant: pure}}
per_query: {{epsilon: 1}}
ledger: sqlite:///files.db
tables: {{t: {{columns: {{x: {{type: integer, domain: [0, 1], nullable: false}}}}}}}}
"""


@pytest.mark.parametrize("source", ["day*.parquet", "*/day.parquet", "**/*.parquet"])
def test_a_set_of_files_is_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    path = tmp_path / "files.yaml"
    path.write_text(FILES.format(source=source))
    folder = "" if source == "day*.parquet" else "a/"

    def write(name: str, count: int) -> None:
        place = tmp_path / f"{folder}{name}"
        place.parent.mkdir(exist_ok=True)
        duckdb.sql(f"COPY (SELECT i % 2 AS x FROM range({count}) t(i)) TO '{place}'")

    write("day.parquet", 100)
    sql = "SELECT COUNT(*) FROM t"
    with open_session(path, create_ledger=True) as session:
        session.execute(sql)
        assert session.execute(sql).reused
        # another file joins the glob while the session is open
        (tmp_path / "b").mkdir(exist_ok=True)
        if source == "day*.parquet":
            write("day2.parquet", 50)
        else:
            duckdb.sql(f"COPY (SELECT 1 AS x FROM range(50)) TO '{tmp_path / 'b' / 'day.parquet'}'")
        assert not session.execute(sql).reused
        write("day.parquet", 300)
        assert not session.execute(sql).reused
        assert session.execute(sql).reused
        assert spent(session) == "3"


def test_data_given_in_python_are_never_taken_for_those_of_another_connection(made: Path) -> None:
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{made.parent / 'hospital.duckdb'}' AS h (READ_ONLY)")
    for table in ("patients", "visits"):
        connection.execute(f"CREATE TABLE {table} AS FROM h.{table}")
    receipts = []
    for _ in range(2):
        with open_session(made, source=connection) as session:
            receipts.append(session.execute(COUNT).receipt_id)
            assert session.execute(COUNT).receipt_id == receipts[-1]
    assert len(set(receipts)) == 2


def test_data_that_change_while_they_are_read_leave_no_release_for_others(made: Path) -> None:
    with open_session(made) as session:
        run = session.context.engine.run

        def changing(query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
            answer = run(query, timeout_seconds)
            write_version("later")
            return answer

        def write_version(text: str) -> None:
            monkey.setattr(session.context.stored_releases, "_data_version", lambda tables: text)

        with pytest.MonkeyPatch.context() as monkey:
            write_version("before")
            monkey.setattr(session.context.engine, "run", changing)
            first = session.execute(COUNT, request_id="r1")
            write_version("before")
            assert not session.execute(COUNT).reused
            write_version("later")
            assert session.execute(COUNT, request_id="r1").receipt_id == first.receipt_id


# --- retries --------------------------------------------------------------------------------------------------------


def test_a_retried_request_gets_the_same_answer_whatever_happened_since(made: Path) -> None:
    for reuse in ("on", "off"):
        request = f"request-{reuse}"
        with open_session(made, analyst="ann") as session:
            session.execute(f"SET dp.reuse = {reuse}")
            first = session.execute(COUNT, request_id=request)
            before = spent(session)
        build_data(made.parent, count=700 + len(reuse))
        with open_session(made, analyst="ann") as session:
            session.execute(f"SET dp.reuse = {reuse}")
            again = session.execute(COUNT, request_id=request)
            assert shown(again) == shown(first)
            assert again.receipt_id == request
            assert again.reused
            assert spent(session) == before
            with pytest.raises(Refusal) as other:
                session.execute("SELECT COUNT(*) FROM visits", request_id=request)
            assert other.value.slug == "request_lost"
            assert not other.value.charged
            assert spent(session) == before
        with open_session(made, analyst="bob") as session:
            session.execute("SET dp.reuse = off")
            own = session.execute(
                COUNT, request_id=request
            )  # an id belongs to its asker and does not open others' releases
            assert not own.reused
            assert (own.receipt_id, spent(session, "analyst:bob")) == (request, str(1 + (reuse == "off")))


@pytest.mark.parametrize(
    ("reuse", "earlier"),
    [
        ("on", "SELECT COUNT(*) FROM patients"),  # with less noise than requested
        ("on", "SELECT COUNT(*) FROM patients UNION ALL SELECT COUNT(*) FROM visits WHERE cost > 30"),
        ("derive", "SELECT region, COUNT(*) FROM patients GROUP BY region"),
    ],
)
def test_a_retried_request_gets_again_what_was_stored_before_it(made: Path, reuse: str, earlier: str) -> None:
    both = "SELECT COUNT(*) AS n FROM patients UNION ALL SELECT COUNT(*) FROM visits"
    with open_session(made, analyst="ann") as session:
        session.execute(f"SET dp.reuse = {reuse}")
        session.execute(earlier)
        before = spent(session)
        first = session.execute(both, request_id="r1")
        assert spent(session) != before
        before = spent(session)
    build_data(made.parent, count=700)
    for other in ("off", "on", "derive"):
        with open_session(made, analyst="ann") as session:
            session.execute(f"SET dp.reuse = {other}")
            again = session.execute(both, request_id="r1")
            assert again.reused and shown(again) == shown(first)
            assert spent(session) == before


STEPS = ("reserved", "noise added", "release stored")


def _die(path: str, step: str) -> None:
    """Run a query under a request id and be killed at `step`."""
    session = open_session(path, analyst="ann")

    def dying(target: object, name: str, before: bool) -> None:
        original = getattr(target, name)

        def wrapped(*args: object, **kwargs: object) -> None:
            if not before:
                original(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(target, name, wrapped)

    place: dict[str, tuple[object, str, bool]] = {
        "reserved": (session.ledger, "reserve", False),
        "noise added": (session.context.store, "put", True),
        "release stored": (session.context.store, "put", False),
    }
    dying(*place[step])
    session.execute(COUNT, request_id="r1")


@pytest.mark.parametrize("step", STEPS)
def test_a_retry_after_a_crash_is_answered_or_refused_and_never_charged(made: Path, step: str) -> None:
    worker = clean_process(_die, str(made), step)
    worker.start()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    with open_session(made, analyst="ann") as session:
        assert spent(session) == "1"
        if step == "release stored":
            release = session.execute(COUNT, request_id="r1")
            assert (release.reused, release.receipt_id) == (True, "r1")
        else:
            with pytest.raises(Error) as caught:
                session.execute(COUNT, request_id="r1")
            assert (caught.value.slug, caught.value.charged) == ("request_lost", False)
            assert session.execute(COUNT, request_id="r2").receipt_id == "r2"
            # the answer exists, and the first request may have it
            assert session.execute(COUNT, request_id="r1").receipt_id == "r2"
        assert session.ledger.verify().sound
        assert spent(session) == ("1" if step == "release stored" else "2")
