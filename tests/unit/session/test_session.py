"""The order of steps: plan, price, reserve, touch data, noise, store, answer; and the state after a step fails."""

import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from support.clinic import build
from support.processes import CLEAN, clean_process

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import BudgetRefusal, Error, Fault, Refusal
from dpsql.policy import load_policy
from dpsql.session import pipeline
from dpsql.session.background_work import padding
from dpsql.session.session import Session, open_session

COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path)


@pytest.fixture
def session(policy: Path) -> Iterator[Session]:
    with open_session(policy, analyst="research", create_ledger=True) as opened:
        yield opened


def spent(session: Session, scope: str = "dataset") -> str:
    return session.budget().spent[scope]["epsilon"]


def test_an_answer_is_charged_once_and_repeated_for_free(session: Session) -> None:
    first = session.execute(COUNT)
    assert first.loss.epsilon == 1 and spent(session) == "1" and not first.reused
    again = session.execute(COUNT + " ORDER BY n DESC LIMIT 1")
    assert again.reused and spent(session) == "1"
    ((region, most),) = again.rows()
    assert most == max(n for _, n in first.rows()) and dict(first.rows())[region] == most


def test_reuse_can_be_switched_off_and_then_costs_again(session: Session) -> None:
    session.execute(COUNT)
    session.execute("SET dp.reuse = off")
    assert not session.execute(COUNT).reused
    assert spent(session) == "2"


def test_changed_data_are_charged_again(policy: Path) -> None:
    with open_session(policy, create_ledger=True) as session:
        session.execute(COUNT)
    with duckdb.connect(str(policy.parent / "clinic.duckdb")) as connection:
        connection.execute("DELETE FROM patients WHERE patient_id < 500")
    with open_session(policy) as session:
        release = session.execute(COUNT)
        assert not release.reused and spent(session) == "2"
        assert sum(n for _, n in release.rows()) < 600


class Watched(DuckDBEngine):
    """The real engine, which records the ledger's entries at the moment when data are touched."""

    ledger_at_run: list[str]
    session: Session

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        self.ledger_at_run.append(spent(self.session))
        return super().run(query, timeout_seconds)


def watched(policy_path: Path, engine_class: type[DuckDBEngine]) -> Session:
    from dpsql.ledger import open_ledger
    from dpsql.reuse.store import open_releases

    policy = load_policy(policy_path)
    connection = duckdb.connect(policy.source_path() or "", read_only=True)
    ledger = open_ledger(policy.ledger_url(), policy.dataset, create=True)
    return Session(policy, engine_class(connection, policy, "fixed", owned=True), ledger, open_releases(ledger))


def test_the_charge_is_recorded_before_data_are_touched(policy: Path) -> None:
    session = watched(policy, Watched)
    engine = session.context.engine
    assert isinstance(engine, Watched)
    engine.session, engine.ledger_at_run = session, []
    session.execute(COUNT)
    assert engine.ledger_at_run == ["1"]
    session.close()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM patients",
        "SELECT SUM(patient_id) FROM patients",
        "SELECT nothing FROM (SELECT COUNT(*) AS n FROM patients) t",
        "SELECT n || 1 || DATE '2024-01-01' + 'x' FROM (SELECT COUNT(*) AS n FROM patients) t",
        "SELECT COUNT(*) FROM nobody",
    ],
)
def test_a_refused_question_touches_neither_data_nor_ledger(policy: Path, sql: str) -> None:
    session = watched(policy, Watched)
    engine = session.context.engine
    assert isinstance(engine, Watched)
    engine.session, engine.ledger_at_run = session, []
    entries = len(list(session.ledger.history()))
    with pytest.raises(Refusal) as caught:
        session.execute(sql)
    assert not caught.value.charged and "nothing was charged" in caught.value.text()
    assert engine.ledger_at_run == [] and len(list(session.ledger.history())) == entries
    session.close()


class Failing(DuckDBEngine):
    """The real engine with a query that meets a value it cannot convert; DuckDB's message quotes the value."""

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        return super().run(EngineQuery("SELECT CAST('secret-cell-4711' AS INTEGER)", (), ()), timeout_seconds)


def test_an_engine_error_is_one_fixed_text_and_stays_charged(policy: Path, caplog: pytest.LogCaptureFixture) -> None:
    session = watched(policy, Failing)
    with caplog.at_level(logging.ERROR, "dpsql.custodian"), pytest.raises(Fault) as caught:
        session.execute(COUNT)
    fault = caught.value
    assert fault.charged and fault.incident and fault.incident in fault.message
    assert "secret" not in fault.text() and "secret-cell-4711" in caplog.text and fault.incident in caplog.text
    assert fault.__context__ is None or "secret" not in str(fault.__cause__)
    assert spent(session) == "1"
    session.close()


def test_a_charge_that_does_not_fit_one_scope_is_charged_to_none(policy: Path) -> None:
    with open_session(policy, analyst="bi", create_ledger=True) as session:
        session.execute("SET dp.epsilon = 2")
        session.execute(COUNT)
        with pytest.raises(BudgetRefusal) as caught:
            session.execute("SELECT COUNT(*) FROM visits")
        assert set(caught.value.remaining) == {"dataset", "analyst:bi"}
        assert spent(session) == "2" and spent(session, "analyst:bi") == "2"


def test_an_unknown_analyst_gets_nothing(policy: Path) -> None:
    with pytest.raises(Error) as caught:
        open_session(policy, analyst="mallory", create_ledger=True)
    assert caught.value.slug == "analyst_unknown"


def _ask(path: str, start: int, count: int, queue: "multiprocessing.Queue[int]") -> None:
    answered = 0
    with open_session(path, analyst="research") as session:
        for number in range(start, start + count):
            try:
                session.execute(f"SELECT COUNT(*) FROM patients WHERE age <> {number}")
                answered += 1
            except BudgetRefusal:
                pass
    queue.put(answered)


@pytest.mark.slow
def test_twelve_processes_on_a_budget_of_thirty_get_thirty_answers(tmp_path: Path) -> None:
    path = build(tmp_path, epsilon=30)
    open_session(path, create_ledger=True).close()
    queue: multiprocessing.Queue[int] = CLEAN.Queue()
    workers = [clean_process(_ask, str(path), 1000 * n, 4, queue) for n in range(12)]
    for worker in workers:
        worker.start()
    answers = [queue.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum(answers) == 30
    with open_session(path) as session:
        assert spent(session) == "30"


STEPS = ("before reserve", "reserved", "exact answer there", "noise added", "release stored", "committed")


def _die(path: str, step: str) -> None:
    """Answer one query and die by SIGKILL at `step`; after the last step, a pipe would have carried the answer."""
    session = open_session(path, analyst="research")

    def dying(target: object, name: str, before: bool) -> None:
        original = getattr(target, name)

        def wrapped(*args: object, **kwargs: object) -> object:
            if before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(target, name, wrapped)

    if step == "before reserve":
        dying(session.ledger, "reserve", before=True)
    elif step == "reserved":
        dying(session.context.engine, "run", before=True)
    elif step == "exact answer there":
        dying(session.context.engine, "run", before=False)
    elif step == "noise added":
        dying(session.context.store, "put", before=True)
    elif step == "release stored":
        dying(session.context.store, "put", before=False)
    elif step == "committed":
        dying(pipeline, "_release", before=True)
    session.execute(COUNT)


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_any_step_spent_is_at_least_answered(policy: Path, step: str) -> None:
    open_session(policy, create_ledger=True).close()
    worker = clean_process(_die, str(policy), step)
    worker.start()
    worker.join(60)
    assert worker.exitcode == -signal.SIGKILL
    with open_session(policy, analyst="research") as session:
        assert session.ledger.verify().sound
        charged = 0 if step == "before reserve" else 1
        assert spent(session) == str(charged)
        answered = session.execute(COUNT)
        stored = step in ("release stored", "committed")
        assert answered.reused == stored
        assert spent(session) == str(charged + (0 if stored else 1))


def test_describe_and_explain_cost_nothing_and_touch_nothing(policy: Path) -> None:
    session = watched(policy, Watched)
    engine = session.context.engine
    assert isinstance(engine, Watched)
    engine.session, engine.ledger_at_run = session, []
    columns = session.describe("SELECT region, AVG(weight) AS w, COUNT(*) > 5 AS many FROM patients GROUP BY region")
    assert [(c.name, c.type.value, c.noisy) for c in columns] == [
        ("region", "text", False), ("w", "real", True), ("many", "boolean", True)
    ]  # fmt: skip
    plan = session.explain("EXPLAIN SELECT AVG(weight) FROM patients")
    assert plan.loss.epsilon == 1 and len(plan.outputs) == 2
    assert session.describe("SET dp.epsilon = 1") == () and session.options.epsilon == 1
    session.describe("SET dp.epsilon = 2")
    assert session.options.epsilon == 1
    assert engine.ledger_at_run == [] and spent(session) == "0"
    session.close()


@pytest.mark.parametrize(("elapsed", "whole"), [(0.0, 0.05), (0.05, 0.05), (0.051, 0.1), (0.3, 0.4), (1.7, 3.2)])
def test_padding_goes_to_the_next_step(elapsed: float, whole: float) -> None:
    assert elapsed + padding(elapsed) == pytest.approx(whole)
