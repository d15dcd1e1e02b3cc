"""Watches: what is charged and when, what ends a run, and what is refused before any charge."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clinic import build
from support.places import ROOT

from dpsql.errors.exceptions import Error, InternalError
from dpsql.ledger.ledger import Reservation
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import Release
from dpsql.session import pipeline, watches
from dpsql.session.session import Session, open_session

COUNT = "SELECT COUNT(*) FROM patients"
NEVER, ALWAYS = 10**9, -(10**9)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with open_session(build(tmp_path), analyst="research", create_ledger=True) as opened:
        opened.execute("SET dp.hits = 3")
        yield opened


def ask(session: Session, threshold: int, sql: str = COUNT) -> Release:
    session.execute(f"SET dp.threshold = {threshold}")
    return session.execute(sql)


def test_comparisons_are_refused_where_the_policy_leaves_them_out(tmp_path: Path) -> None:
    path = build(tmp_path)
    path.write_text(path.read_text() + "mechanisms: [samples]\n")
    with open_session(path, analyst="research", create_ledger=True) as session, pytest.raises(Error) as raised:
        ask(session, NEVER)
    assert raised.value.slug == "mechanism_off"


def above(release: Release) -> bool:
    ((is_above, value, error, under_way, _),) = release.rows()
    assert is_above == (value is not None) == (error is not None) == (not under_way)
    return bool(is_above)


def charges(session: Session) -> list[str]:
    return [entry.facts["id"] for entry in session.ledger.history() if entry.kind == "charge"]


def refused(session: Session, slug: str, ask_it: Callable[[], Any]) -> Error:
    before = len(charges(session))
    with pytest.raises(Error) as caught:
        ask_it()
    assert caught.value.slug == slug and not caught.value.charged and len(charges(session)) == before
    return caught.value


def test_only_the_first_comparison_and_the_one_after_a_hit_pay(session: Session) -> None:
    paid = [ask(session, threshold) for threshold in (NEVER, NEVER, NEVER, ALWAYS, NEVER, ALWAYS, ALWAYS)]
    assert [above(release) for release in paid] == [False, False, False, True, False, True, True]
    costs = [release.loss != PrivacyLoss.nothing() for release in paid]
    assert costs == [True, False, False, False, True, False, True]
    assert charges(session) == [f"analyst:research/watch-default-{number}" for number in (1, 2, 3)]
    spent = session.ledger.spent("dataset")["epsilon"]
    assert spent == 3 * 10**18 == session.ledger.spent("analyst:research")["epsilon"]


def test_a_run_is_reserved_before_its_threshold_is_compared(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def note(target: Any, name: str) -> None:
        original: Callable[..., Any] = getattr(target, name)

        def noting(*args: Any, **kwargs: Any) -> Any:
            steps.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(target, name, noting)

    for target, name in (
        (session.ledger, "reserve"), (session.context.engine, "run"), (watches, "compare"), (Reservation, "commit"),
    ):  # fmt: skip
        note(target, name)
    ask(session, NEVER)
    assert steps == ["reserve", "run", "compare", "commit"]
    steps.clear()
    ask(session, NEVER)
    assert steps == ["run", "compare"]


def test_what_stops_a_comparison_ends_its_run(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the threshold nor the query gets new noise for free."""
    ask(session, NEVER)
    for target, name in ((pipeline.MissingBlocks, "exact"), (watches, "compare")):
        with monkeypatch.context() as broken:
            broken.setattr(target, name, _fail)
            with pytest.raises(InternalError):
                ask(session, NEVER)
        assert ask(session, NEVER).loss != PrivacyLoss.nothing()
    assert len(charges(session)) == 3
    with monkeypatch.context() as broken:
        broken.setattr(watches, "compare", _fail)
        with pytest.raises(InternalError):
            ask(session, NEVER)
    refused(session, "watch_over", lambda: ask(session, NEVER))


def _fail(*args: object, **kwargs: object) -> None:
    raise RuntimeError("stopped here")


def test_a_refused_question_leaves_the_run_as_it_is(session: Session) -> None:
    ask(session, NEVER)
    for sql in (
        "SELECT AVG(age) FROM patients",
        "SELECT COUNT(*) FROM visits",
        "SELECT SUM(cost) FROM visits",
        "SELECT 1",
    ):
        with pytest.raises(Error):
            ask(session, NEVER, sql)
    assert ask(session, NEVER).loss == PrivacyLoss.nothing()
    assert len(charges(session)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) FROM patients",
        "SELECT MEDIAN(age) FROM patients",
        "SELECT region, COUNT(*) FROM patients GROUP BY region",
        "SELECT COUNT(*), SUM(age) FROM patients",
        "SELECT COUNT(*) + 1 FROM patients",
        "SELECT COUNT(*) FROM patients HAVING COUNT(*) > 3",
        "SELECT COUNT(*) FROM patients LIMIT 0",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM patients)",
        "SELECT n FROM (SELECT COUNT(*) AS n FROM patients HAVING COUNT(*) > 3)",
        "SELECT COUNT(*) FROM patients WHERE age > (SELECT AVG(age) FROM patients)",
        "SELECT COUNT(*) FROM patients UNION ALL SELECT COUNT(*) FROM patients",
        "SELECT SUM(least(age, 0)) FROM patients",
        "SELECT SUM(DISTINCT age) / 2 FROM patients",
        "SELECT 1",
    ],
)
def test_anything_but_one_sum_is_refused(session: Session, sql: str) -> None:
    refused(session, "watch_question", lambda: ask(session, NEVER, sql))
    refused(session, "watch_question", lambda: session.explain(sql))
    refused(session, "watch_question", lambda: session.describe(sql))


def test_the_hits_of_a_watch_are_counted_in_the_ledger(session: Session) -> None:
    """Another session continues the count; the run of a session that has ended is spent."""
    ask(session, NEVER)
    again = Session(session.policy, session.context.engine, session.ledger, session.context.store, analyst="research")
    again.execute("SET dp.hits = 2")
    release = ask(again, ALWAYS)
    assert release.receipt.id == "watch-default-2" and next(release.rows())[4] == 0
    refused(again, "watch_over", lambda: ask(again, ALWAYS))
    again.execute("SET dp.watch = night")
    assert ask(again, ALWAYS).receipt.id == "watch-night-1"


def test_a_run_makes_no_more_scans_than_its_price_pays_for(tmp_path: Path) -> None:
    policy = build(tmp_path)
    policy.write_text(policy.read_text().replace("per_query: {", "per_query: {min_epsilon: 0.25, "))
    with open_session(policy, create_ledger=True) as session:
        session.execute("SET dp.hits = 2")
        releases = [ask(session, NEVER) for _ in range(5)]
        assert [release.loss != PrivacyLoss.nothing() for release in releases] == [True, False, False, False, True]
        assert "all its comparisons" in releases[3].receipt.notices[0]


def test_questions_of_another_law_need_another_watch(session: Session) -> None:
    ask(session, NEVER)
    assert (
        "SELECT"
        not in refused(session, "watch_law", lambda: ask(session, NEVER, "SELECT COUNT(*) FROM visits")).message
    )
    refused(session, "watch_law", lambda: session.explain("SELECT COUNT(*) FROM visits"))
    session.execute("SET dp.watch = visits")
    assert not above(ask(session, NEVER, "SELECT COUNT(*) FROM visits"))
    assert ask(session, NEVER).loss == PrivacyLoss.nothing()  # moved less, in the same direction


def test_sums_of_both_signs_have_the_noise_of_a_run_in_any_direction(session: Session) -> None:
    session.execute(f"SET dp.threshold = {NEVER}")
    scales = {
        sql: session.explain(sql).outputs[0].noise_scale
        for sql in ("SELECT SUM(age) FROM patients", "SELECT SUM(age - 60) FROM patients")
    }
    assert list(scales.values()) == [2 * 120, 3 * 60]


def test_concurrent_askers_of_one_watch_share_its_runs(session: Session) -> None:
    session.execute(f"SET dp.threshold = {NEVER}")
    releases: list[Release] = []
    threads = [threading.Thread(target=lambda: releases.append(session.execute(COUNT))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(releases) == 6 and len(charges(session)) == 1


def test_the_value_above_a_threshold_comes_with_a_bar_that_holds(session: Session) -> None:
    session.execute("SET dp.hits = 500")
    held = 0
    exact = 1000
    for _ in range(500):
        ((_, value, error, *_),) = ask(session, ALWAYS).rows()
        held += abs(value - exact) <= error
    assert held >= 442  # at least 475 are expected; below this by chance once in 10^8


def test_a_forked_child_has_no_run(session: Session) -> None:
    """Two processes that continued the same run would have two hits for one price."""
    ask(session, NEVER)
    register = session.context.watches
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"y" if watches.watch_of(session.context, session.options).run is None else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"y" and register is session.context.watches
    assert watches.watch_of(session.context, session.options).run is not None


CRASH = """
import os, sys
sys.path.insert(0, {tests!r})
from dpsql.session import pipeline, watches
from dpsql.session.session import open_session
from dpsql.noise import perturb

step = sys.argv[1]
def dying(target, name, after):
    original = getattr(target, name)
    def patched(*args, **kwargs):
        if not after:
            os._exit(9)
        original(*args, **kwargs)
        os._exit(9)
    setattr(target, name, patched)

with open_session({policy!r}, analyst="research") as session:
    session.execute("SET dp.hits = 9")
    session.execute("SET dp.threshold = 1000000000")
    if step.startswith("second "):
        session.execute({sql!r})
    name = step.removeprefix("second ")
    places = {{"reserve": session.ledger, "run": session.context.engine, "compare": watches, "_notice": watches,
              "noisy_threshold": watches}}
    word, _, when = name.partition(" ")
    dying(places[word], word, when == "done")
    session.execute({sql!r})
"""
STEPS = {
    "noisy_threshold": 0,
    "reserve": 0,
    "reserve done": 1,
    "run": 1,
    "run done": 1,
    "compare": 1,
    "compare done": 1,
    "_notice done": 1,
    "second run": 1,
    "second compare": 1,
    "second compare done": 1,
    "second _notice done": 1,
}
"""Moments at which a process dies, and the number of runs paid for by then."""


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_watcher_pays_for_another_run(tmp_path: Path, step: str) -> None:
    policy = build(tmp_path)
    open_session(policy, create_ledger=True).close()
    program = CRASH.format(tests=str(ROOT / "tests"), policy=str(policy), sql=COUNT)
    died = subprocess.run(
        [sys.executable, "-c", program, step], check=False, cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert died.returncode == 9, died.stderr
    with open_session(policy, analyst="research") as session:
        assert len(charges(session)) == STEPS[step]
        session.execute("SET dp.hits = 9")
        assert ask(session, NEVER).loss != PrivacyLoss.nothing()
        assert len(charges(session)) == STEPS[step] + 1
        assert session.ledger.spent("dataset")["epsilon"] == (STEPS[step] + 1) * 10**18


@pytest.mark.parametrize(
    ("sql", "least"),
    [
        (COUNT, 5),
        ("SELECT COUNT(DISTINCT patient_id) FROM visits", 5),
        ("SELECT COUNT(*) FROM visits", 25),
        ("SELECT SUM(clamp(age, 0, 10)) FROM patients", 50),
    ],
)
@pytest.mark.parametrize("neighbours", ["add_remove", "change_one"])
def test_under_min_units_a_threshold_is_what_so_many_units_may_add(
    tmp_path: Path, neighbours: str, sql: str, least: int
) -> None:
    policy = build(tmp_path)
    policy.write_text(policy.read_text() + f"neighbours: {neighbours}\n")
    with open_session(policy, create_ledger=True) as session:
        session.execute("SET dp.min_units = 5")
        for threshold in (least - 1, 0, -5):
            error = refused(session, "watch_units", lambda threshold=threshold: ask(session, threshold, sql))
            assert f"{least} or more" in (error.hint or "")
            refused(session, "watch_units", lambda: session.explain(sql))
        release = ask(session, least, sql)
        ((_, value, *_),) = release.rows()
        assert value is None or value >= least
        session.execute("SET dp.watch = other")
        refused(session, "watch_units", lambda: ask(session, least - 1, sql))
