"""The times of answers, and the effect of an analyst's action on a scan: the times are fixed, and the scan continues."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.clinic import build
from support.noted_engine import spent
from support.places import POLICIES

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error, InternalError
from dpsql.ledger import ChargeRequest
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.records import request_of
from dpsql.policy import load_policy
from dpsql.session.background_work import MeasurementQueue, Pace, Work
from dpsql.session.charged import in_background
from dpsql.session.session import Session, open_session

PATIENCE = 240
DEMO = load_policy(POLICIES / "hospital.yaml")
COUNT = "SELECT region, COUNT(*) AS n FROM patients GROUP BY region"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path)


class Clock:
    """Time as `dpsql.session.background_work` and `dpsql.session.background_work` see it; it advances only in sleep."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("dpsql.session.background_work.time", found)
    monkeypatch.setattr("dpsql.session.background_work.time", found)
    return found


class Gate:
    """A gate at which scans of a session wait until they may continue, or the engine is interrupted."""

    def __init__(self, session: Session) -> None:
        self.begun, self.go_on, self.interrupted = threading.Event(), threading.Event(), threading.Event()
        self.ended = threading.Event()
        self.limits: list[float | None] = []
        self._run, self._interrupt = session.context.engine.run, session.context.engine.interrupt
        session.context.engine.run = self.run  # type: ignore[method-assign]
        session.context.engine.interrupt = self.interrupt  # type: ignore[method-assign]

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        self.limits.append(timeout_seconds)
        self.begun.set()
        for _ in range(PATIENCE * 100):
            if self.go_on.wait(0.01) or self.interrupted.is_set():
                break
        self.ended.set()
        if self.interrupted.is_set():
            raise RuntimeError("interrupted")
        return self._run(query, timeout_seconds)

    def interrupt(self) -> None:
        self.interrupted.set()
        self._interrupt()


def policy_with(policy: Path, timing: str) -> Path:
    policy.write_text(policy.read_text() + f"timing: {timing}\n")
    open_session(policy, create_ledger=True).close()
    return policy


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as found:
        yield found


# --- times ----------------------------------------------------------------------------------------------------------


def test_responses_are_held_back_to_their_time(policy: Path, clock: Clock) -> None:
    padded = load_policy(policy_with(policy, "padded"))
    late = Pace(padded, clock.now - 0.06)
    late.hold()
    late.hold()  # one response has one time, however many front ends hold it back
    assert clock.slept == pytest.approx([0.04])
    constant = load_policy(write(policy, "{constant_seconds: 2.5}"))
    assert (constant.timing, constant.constant_seconds) == ("constant", Fraction(5, 2))
    started = clock.now
    fixed = Pace(constant, started)
    assert fixed.left(300) == pytest.approx(2.5) and fixed.left(1) == 1
    fixed.hold()
    assert clock.now == pytest.approx(started + 2.5)
    assert Pace(load_policy(write(policy, "plain"))).latest is None


def write(policy: Path, timing: str) -> Path:
    text = policy.read_text()
    policy.write_text(text[: text.index("timing:")] + f"timing: {timing}\n")
    return policy


def test_every_kind_of_outcome_takes_the_constant_time(policy: Path, clock: Clock) -> None:
    """A first answer, a stored one, a refusal for lack of budget, and a fault of the engine."""
    with open_session(policy_with(policy, "{constant_seconds: 2}"), analyst="bi") as session:
        session.execute("SET dp.epsilon = 2")

        def broken(query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
            raise RuntimeError("of the engine")

        for sql in (COUNT, COUNT, "SELECT COUNT(*) FROM visits"):
            started = clock.now
            try:
                session.execute(sql)
            except Error as error:
                assert error.slug == "budget_exceeded"
            assert clock.now == pytest.approx(started + 2)
    with open_session(policy, analyst="research") as session:
        session.context.engine.run = broken  # type: ignore[method-assign]
        started = clock.now
        with pytest.raises(InternalError):
            session.execute("SELECT COUNT(*) FROM patients WHERE age > 30")
        assert clock.now == pytest.approx(started + 2)


def test_refusals_that_follow_from_the_text_do_not_wait(policy: Path, clock: Clock) -> None:
    with open_session(policy_with(policy, "{constant_seconds: 2}")) as session, pytest.raises(Error):
        session.execute("SELECT * FROM patients")
    assert clock.slept == []


def until_noted(session: Session) -> None:
    """Wait until the ledger has the outcome of the last charge."""
    for _ in range(PATIENCE * 100):
        if [entry.kind for entry in session.ledger.history()][-1] in ("committed", "failed"):
            return
        time.sleep(0.01)
    raise AssertionError("the scan that was left never ended")


@pytest.mark.slow
def test_a_scan_beyond_the_constant_time_is_a_fault_and_stays_one(policy: Path, pool: ThreadPoolExecutor) -> None:
    """Its release is not stored when the scan ends later: a repeated query would reveal how late it was."""
    with open_session(policy_with(policy, "{constant_seconds: 3}")) as session:
        session.explain(COUNT)  # planned beforehand: only the scan is late, even on a busy machine
        gate = Gate(session)
        with pytest.raises(Error) as late:
            session.execute(COUNT)
        assert (late.value.slug, late.value.charged) == ("answer_late", True)
        limit = gate.limits[0]
        assert limit is not None and limit <= 3
        gate.go_on.set()
        until_noted(session)
        assert [entry.kind for entry in session.ledger.history()][-1] == "failed"
        assert session.explain(COUNT).stored == ()


@pytest.mark.slow
def test_how_far_a_charge_is_shows_in_no_receipt(policy: Path) -> None:
    """An error that says that the charge stays has its receipt, also while the ledger still writes it."""
    with open_session(policy_with(policy, "{constant_seconds: 3}")) as session:
        session.explain(COUNT)
        go_on, reserve = threading.Event(), session.ledger.reserve

        def slow(request: ChargeRequest) -> Reservation:
            go_on.wait(PATIENCE)
            return reserve(request)

        session.ledger.reserve = slow  # type: ignore[method-assign]
        with pytest.raises(Error) as late:
            session.execute(COUNT)
        assert (late.value.slug, late.value.charged, late.value.receipt != "") == ("answer_late", True, True)
        go_on.set()
        until_noted(session)
        assert (
            request_of(next(e for e in session.ledger.history() if e.kind == "charge").facts["id"])
            == late.value.receipt
        )


# --- acts -----------------------------------------------------------------------------------------------------------


def interrupted(session: Session, gate: Gate, sql: str, pool: ThreadPoolExecutor) -> Error:
    asked = pool.submit(session.execute, sql)
    assert gate.begun.wait(PATIENCE)
    session.interrupt()
    error = asked.exception(PATIENCE)
    assert isinstance(error, Error)
    return error


@pytest.mark.parametrize("timing", ["plain", "padded"])
def test_an_interrupt_ends_the_waiting_and_not_the_scan(policy: Path, timing: str, pool: ThreadPoolExecutor) -> None:
    with open_session(policy_with(policy, timing)) as session:
        gate = Gate(session)
        error = interrupted(session, gate, COUNT, pool)
        assert (error.slug, error.charged) == ("stopped", True)
        assert not gate.interrupted.is_set() and not gate.ended.is_set()
        before = spent(session)
        again = pool.submit(session.execute, COUNT)
        gate.go_on.set()
        assert again.result(PATIENCE).reused and spent(session) == before


def test_an_interrupt_takes_effect_at_a_time_of_response(
    policy: Path, clock: Clock, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two steps nothing is revealed, and an answer that is available at the step is returned in spite of the
    interrupt."""
    with open_session(policy_with(policy, "padded")) as session:
        gate, slept = Gate(session), clock.sleep

        def sleep(seconds: float) -> None:
            gate.go_on.set()
            assert gate.ended.wait(PATIENCE)
            while session.context.queue._running:
                time.sleep(0.01)
            slept(seconds)

        monkeypatch.setattr(clock, "sleep", sleep)
        asked = pool.submit(session.execute, COUNT)
        assert gate.begun.wait(PATIENCE)
        clock.now += 0.16
        session.interrupt()
        assert len(asked.result(PATIENCE)) == 2
        assert clock.slept == pytest.approx([0.04])


def test_a_session_measures_again_when_what_it_left_has_ended(policy: Path, pool: ThreadPoolExecutor) -> None:
    with open_session(policy_with(policy, "plain")) as session:
        gate = Gate(session)
        interrupted(session, gate, COUNT, pool)
        charged = spent(session)
        other = pool.submit(session.execute, "SELECT COUNT(*) AS n FROM patients")
        while not any(work.asker for work in session.context.running):
            time.sleep(0.01)
        session.interrupt()
        error = other.exception(PATIENCE)
        assert isinstance(error, Error) and (error.slug, error.charged) == ("stopped", False)
        assert len(gate.limits) == 1 and spent(session) == charged
        gate.go_on.set()
        assert not session.execute("SELECT COUNT(*) AS n FROM patients").reused


def work(asker: str, session: str) -> Work:
    return Work(lambda: None, asker=asker, session=session, pace=Pace(DEMO), goes_on=str)


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_in_python_says_whether_the_question_is_charged(monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    one, measured = work("ann", "s"), threading.Event()

    def measure() -> None:
        if begun:
            with one.begun():
                pass
        measured.set()

    def result() -> None:
        assert measured.wait(PATIENCE)
        raise KeyboardInterrupt

    monkeypatch.setattr(one, "result", result)
    with pytest.raises(KeyboardInterrupt) as stopped:
        in_background(SimpleNamespace(running=set()), one, measure)  # type: ignore[arg-type]
    assert stopped.value.__notes__ == ["the question is charged: " if begun else "nothing was charged"] and one.left


class MustWait(Exception):
    pass


def has_place(room: MeasurementQueue, one: Work) -> bool:
    """Return whether a place is free immediately; it is returned."""

    def queued(position: int) -> None:
        raise MustWait

    room.tell(one.session, queued)
    try:
        with room.place(one):
            return True
    except MustWait:
        return False
    finally:
        room.tell(one.session, None)


def test_an_analyst_s_abandoned_queries_hold_a_limited_number_of_places() -> None:
    """Four queries at once; no query of a session while its abandoned one runs, and at most two abandoned ones per analyst."""
    room = MeasurementQueue(4, most_left=2)
    with ExitStack() as running:
        for session in ("one", "two"):
            behind = work("ann", session)
            running.enter_context(room.place(behind))
            assert has_place(room, work("ann", session))
            behind.leave()
            assert not has_place(room, work("ann", session))
            assert has_place(room, work("ann", "three")) is (session == "one")
            assert has_place(room, work("bob", "four"))
        for session in ("five", "six"):
            assert has_place(room, work("bob", "four"))
            running.enter_context(room.place(work("bob", session)))
        assert not has_place(room, work("bob", "four"))
    assert has_place(room, work("ann", "one"))


def test_what_nobody_waits_for_does_not_begin() -> None:
    gone = work("ann", "one")
    gone.leave()
    for step in (gone.check, lambda: MeasurementQueue().place(gone).__enter__(), lambda: gone.begun().__enter__()):
        with pytest.raises(Error) as caught:
            step()
        assert (caught.value.slug, caught.value.charged) == ("stopped", False)
    with pytest.raises(Error) as caught:
        gone.result()
    assert (caught.value.slug, caught.value.charged) == ("stopped", False)


def test_closing_stops_what_goes_on(policy: Path, pool: ThreadPoolExecutor) -> None:
    others = set(threading.enumerate())
    with open_session(policy_with(policy, "plain")) as session:
        gate = Gate(session)
        interrupted(session, gate, COUNT, pool)
        charged = spent(session)
    assert gate.interrupted.is_set() and gate.ended.is_set()
    started = set(threading.enumerate()) - others
    assert not [thread for thread in started if thread.name == "dpsql-measure" and thread.is_alive()]
    with open_session(policy) as session:
        assert spent(session) == charged
        assert [entry.kind for entry in session.ledger.history()][-1] == "failed"


# --- the least epsilon ----------------------------------------------------------------------------------------------


def floor(call: Any) -> str:
    with pytest.raises(Error) as caught:
        call()
    assert caught.value.slug == "option_floor" and not caught.value.charged
    return caught.value.message


def test_a_question_spends_the_least_epsilon(policy: Path) -> None:
    with open_session(policy, create_ledger=True) as session:
        least = session.policy.per_query.min_epsilon
        assert least == min(Fraction(1, 1000), session.policy.budget.epsilon / 1000)
        assert "0.001" in floor(lambda: session.execute("SET dp.epsilon = 0.0009999"))
        session.execute("SET dp.epsilon = 0.001")
        session.execute(COUNT)
        floor(lambda: session.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e-9) COUNT(*) FROM visits"))
        before = spent(session)
        session.execute("SET dp.reuse = derive")
        assert session.execute("SELECT COUNT(*) AS n FROM patients WHERE region = 'north'").reused
        assert spent(session) == before


def test_a_target_that_needs_less_is_met_with_the_least(policy: Path) -> None:
    with open_session(policy, create_ledger=True) as session:
        session.execute("SET dp.target_error = 1000000")
        plan = session.explain("SELECT COUNT(*) AS n FROM patients")
        spends = session.planner.accountant.units(plan.loss)
        asked = session.planner.accountant.units(
            session.planner.accountant.request(session.policy.per_query.min_epsilon)
        )
        assert all(2 * spends[name] >= amount for name, amount in asked.items())


def test_a_part_of_a_question_is_measured_at_the_least_epsilon_or_not_at_all(policy: Path) -> None:
    """Four blocks at the least epsilon get a quarter each; with three of them stored, the fourth would be a scan for a
    quarter."""
    blocks = [f"(SELECT COUNT(*) FROM patients WHERE age > {age})" for age in (30, 40, 50, 60, 70)]
    with open_session(policy, create_ledger=True) as session:
        session.execute("SET dp.epsilon = 0.001")
        session.execute(f"SELECT {' + '.join(blocks[:4])} AS n")
        before = spent(session)
        floor(lambda: session.execute(f"SELECT {' + '.join(blocks[1:])} AS n"))
        floor(lambda: session.explain(f"SELECT {' + '.join(blocks[1:])} AS n"))
        assert spent(session) == before


def test_what_cannot_move_is_no_free_scan(policy: Path) -> None:
    """A sum of zeros, and the list of public keys, need no noise, so they are answered without data."""
    with open_session(policy, create_ledger=True) as session:
        gate = Gate(session)
        gate.go_on.set()  # an unexpected scan ends, and is counted
        sums = session.execute("SELECT SUM(clamp(age, 0, 0)) AS n FROM patients WHERE age > 30")
        assert [float(n) for (n,) in sums.rows()] == [0]
        assert [key for (key,) in session.execute("SELECT DISTINCT region FROM patients").rows()] == ["north", "south"]
        assert gate.limits == [] and spent(session) == "0"
