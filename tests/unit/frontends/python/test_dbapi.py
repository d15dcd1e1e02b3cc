"""PEP 249: behaviour that a DB-API user expects; no path through the API returns budget."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from support.clinic_folder import Clinic

import dpsql
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.errors.exceptions import refuse
from dpsql.frontends.python.dbapi import AsyncConnection
from dpsql.session.session import Session

BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY region"


@pytest.fixture
def connection(clinic: Clinic) -> Iterator[dpsql.Connection]:
    with dpsql.connect(clinic.policy, analyst="research") as opened:
        yield opened


def spent(connection: dpsql.Connection) -> dict[str, str]:
    return {scope: amounts["epsilon"] for scope, amounts in connection.budget.spent.items()}


def test_answer_has_the_description_and_rows_of_pep_249(connection: dpsql.Connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None and cursor.rowcount == -1
    assert cursor.execute(BY_REGION) is cursor
    assert [entry[0] for entry in cursor.description or ()] == ["region", "n", "age"]
    assert all(len(entry) == 7 for entry in cursor.description or ())
    codes = [entry[1] for entry in cursor.description or ()]
    assert [codes[0] == dpsql.STRING, codes[1] == dpsql.NUMBER, codes[2] == dpsql.NUMBER] == [True] * 3
    assert codes[0] != dpsql.NUMBER and codes[1] != dpsql.DATETIME
    assert cursor.rowcount == 2
    first = cursor.fetchone()
    assert first is not None and first[0] == "north" and isinstance(first[1], int) and isinstance(first[2], float)
    assert len(cursor.fetchall()) == 1 and cursor.fetchone() is None and cursor.fetchall() == []


def test_parameters_are_values_and_never_text(connection: dpsql.Connection) -> None:
    by_place = connection.execute("SELECT COUNT(*) FROM patients WHERE age < ? AND region = ?", (40, "north"))
    by_name = connection.execute(
        "SELECT COUNT(*) FROM patients WHERE age < :age AND region = :region", {"age": 40, "region": "north"}
    )
    assert by_place.fetchall() == by_name.fetchall(), "the same question is the same release"
    hostile = connection.execute("SELECT COUNT(*) FROM patients WHERE region = ?", ("' OR 1=1 --",)).fetchone()
    assert hostile is not None and hostile[0] < 200
    with pytest.raises(dpsql.InterfaceError):
        connection.execute("SELECT COUNT(*) FROM patients WHERE age < ?", ())
    with pytest.raises(dpsql.InterfaceError):
        connection.execute("SELECT COUNT(*) FROM patients WHERE age < ?", (object(),))


def test_nothing_gives_budget_back(connection: dpsql.Connection) -> None:
    connection.explain(BY_REGION)
    assert spent(connection) == {"dataset": "0", "analyst:research": "0"}
    cursor = connection.execute(BY_REGION)
    paid = spent(connection)
    assert float(paid["dataset"]) == pytest.approx(0.1, rel=0.01) and paid["dataset"] == paid["analyst:research"]
    assert cursor.release.epsilon is not None and float(cursor.release.epsilon) == pytest.approx(0.1, rel=0.01)
    connection.rollback()
    connection.commit()
    with pytest.raises(dpsql.NotSupportedError):
        connection.cursor().executemany("SELECT COUNT(*) FROM patients WHERE age < ?", [(1,), (2,)])
    with pytest.raises(dpsql.Refusal):
        connection.execute("SELECT * FROM patients")
    assert spent(connection) == paid
    connection.execute(BY_REGION)
    assert spent(connection) == paid, "a repeated question is answered from the stored release"


def test_closed_connections_and_cursors_refuse_every_use(clinic: Clinic) -> None:
    connection = dpsql.connect(clinic.policy)
    kept, closed = connection.execute(BY_REGION), connection.cursor()
    closed.close()
    for use in (closed.fetchone, closed.fetchall, lambda: closed.execute(BY_REGION), lambda: closed.release):
        with pytest.raises(dpsql.InterfaceError):
            use()
    connection.close()
    connection.close()
    uses: list[Any] = [connection.cursor, connection.commit, connection.rollback, kept.fetchone, kept.fetchall]
    uses += [lambda: connection.execute(BY_REGION), lambda: connection.budget, connection.__enter__]
    for use in uses:
        with pytest.raises(dpsql.InterfaceError):
            use()


def test_a_question_that_another_thread_ends_by_closing_says_so_and_that_it_is_charged() -> None:
    class Session:
        def execute(self, *statement: object) -> None:
            connection.close()
            raise refuse("engine_failed", incident="0123", charged=True)

        def close(self) -> None:
            pass

    connection = dpsql.Connection(cast("Any", Session()))
    with pytest.raises(dpsql.InterfaceError, match="this connection is closed") as caught:
        connection.cursor().execute(BY_REGION)
    assert caught.value.charged


def test_two_threads_may_close_at_once() -> None:
    closed: list[str] = []

    class Session:
        def close(self) -> None:
            closed.append("session")

    def ended() -> None:
        closed.append("ended")
        other = threading.Thread(target=connection.close)
        other.start()
        other.join(60)
        assert not other.is_alive()

    connection = dpsql.Connection(cast("Any", Session()), ended)
    connection.close()
    connection.close()
    assert closed == ["ended", "session"]


def test_a_session_is_closed_where_what_is_called_before_fails() -> None:
    closed: list[str] = []

    class Session:
        def close(self) -> None:
            closed.append("session")

    def ended() -> None:
        raise OSError("it failed")

    with pytest.raises(OSError, match="it failed"):
        dpsql.Connection(cast("Any", Session()), ended).close()
    assert closed == ["session"]


def test_a_closed_connection_leaves_no_file_open(clinic: Clinic) -> None:
    session = (connection := dpsql.connect(clinic.policy)).session
    connection.execute(BY_REGION)
    connection.close()
    files = {str(place.resolve()) for place in Path("/proc/self/fd").iterdir()}
    assert session and not [file for file in files if str(clinic.folder) in file]


def test_threads_share_a_connection(connection: dpsql.Connection) -> None:
    answers: list[Any] = []

    def ask(age: int) -> None:
        answers.append(connection.execute(f"SELECT COUNT(*) FROM patients WHERE age < {age}").fetchone())

    threads = [threading.Thread(target=ask, args=(age,)) for age in range(30, 36)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6 and all(answer is not None for answer in answers)
    assert float(spent(connection)["dataset"]) == pytest.approx(0.6, rel=0.01)


def test_a_cancelled_wait_interrupts_the_question(clinic: Clinic) -> None:
    import asyncio

    clinic.make_slow()

    async def ask() -> None:
        async with await dpsql.aconnect(clinic.policy) as opened:
            task = asyncio.create_task(opened.execute("SELECT AVG(n) AS a FROM numbers"))
            while clinic.charges() == 0:
                await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await opened.execute("SELECT 7 AS seven")).table.to_pylist() == [{"seven": 7}]

    asyncio.run(ask())


@pytest.mark.parametrize("number", ["SIGINT", "SIGALRM"])
def test_a_signal_that_ends_the_wait_leaves_no_lock_held(clinic: Clinic, number: str) -> None:
    """Ctrl-C, or a time limit of the program, comes just after a lock was taken: if the main thread kept that lock, no measurement could be stored any more."""
    program = """
import dpsql, os, signal, threading
told = threading.Event()
def expire(number, frame):
    raise TimeoutError
signal.signal(signal.SIGALRM, expire)
class Lock:
    def __init__(self, lock):
        self.lock, self.release, self.is_first = lock, lock.release, True
    def acquire(self, timeout):
        is_taken = self.lock.acquire(timeout=timeout)
        if self.is_first:
            self.is_first = False
            os.kill(os.getpid(), signal.NUMBER)
            told.wait(240)
        return is_taken
connection = dpsql.connect("clinic.yaml")
store = connection.session.context.store._store
store._lock, store.timeout_seconds = Lock(store._lock), 1
try:
    connection.execute("SELECT COUNT(*) FROM patients WHERE age < 30")
except (KeyboardInterrupt, TimeoutError) as stop:
    told.set()
    print(getattr(stop, "__notes__", ""))
for _ in range(2):
    print(connection.execute("SELECT COUNT(*) FROM patients WHERE age < 31").release.reused)
""".replace("NUMBER", number)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=clinic.folder, check=True)
    assert run.stdout.splitlines() == ["['nothing was charged']", "False", "True"], run.stderr


@pytest.mark.parametrize(("owner", "step", "charges"), [(Session, "plan", 1), (DuckDBEngine, "run", 2)])
def test_a_cancelled_task_gives_up_its_own_question_and_no_other(
    clinic: Clinic, monkeypatch: pytest.MonkeyPatch, owner: type, step: str, charges: int
) -> None:
    """A question that is not charged yet is not charged later, and a question of another task is answered."""
    import asyncio

    usual, arrived, goes_on = getattr(owner, step), threading.Semaphore(0), threading.Event()

    def waits(*arguments: Any, **options: Any) -> Any:
        arrived.release()
        assert goes_on.wait(240)
        return usual(*arguments, **options)

    async def ask(opened: AsyncConnection) -> None:
        texts = (f"SELECT COUNT(*) AS n FROM patients WHERE age < {age}" for age in (30, 31))
        given_up, other = (asyncio.create_task(opened.execute(text)) for text in texts)
        for _ in range(2):
            await asyncio.to_thread(arrived.acquire)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        goes_on.set()
        assert len(await other) == 1

    with dpsql.connect(clinic.policy) as connection:
        monkeypatch.setattr(owner, step, waits)
        asyncio.run(ask(AsyncConnection(connection)))  # and wait for its threads
    assert clinic.charges() == charges


def test_the_reason_of_an_incident_is_in_the_custodians_log_alone(clinic: Clinic) -> None:
    """In a process of its own, because a test runner attaches handlers to the root of all loggers."""
    program = """
import dpsql
from dpsql.session.session import Session
from dpsql.errors.custodian_log import unexpected
def broken(*question, **options):
    raise unexpected(ValueError("a row of somebody"))
Session.execute = broken
try:
    dpsql.connect("clinic.yaml", create_ledger=True).execute("SELECT COUNT(*) FROM patients")
except dpsql.Error as error:
    print(error.message)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=clinic.folder)
    log = (clinic.state / "custodian.log").read_text()
    assert "somebody" not in run.stdout + run.stderr and "a row of somebody" in log
    assert str(json.loads(log.splitlines()[-1])["message"]).removeprefix("incident ") in run.stdout
