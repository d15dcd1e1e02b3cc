"""Stored releases: whole or absent, authenticated, shared by processes; the first release under a key remains."""

import hashlib
import logging
import multiprocessing
import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.ledger_homes import Home

from dpsql.errors.exceptions import Error, Fault
from dpsql.ledger.database import DatabaseConnection
from dpsql.policy.types import StorePolicy
from dpsql.release.release import Release
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.store import ReleaseStore, open_releases
from dpsql.session.session import Session, open_session

FORK = multiprocessing.get_context("fork")
NOTE = {"epsilon": "0.1", "receipt": "r1", "error_95": 29.5}


def key(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def opened(home: Home) -> ReleaseStore:
    return open_releases(home.open(create=True))


def elsewhere(home: Home) -> Home:
    """Return the home of the table of releases: a file next to a SQLite ledger, or the same PostgreSQL database."""
    if home.file is None:
        return home
    return Home(home.url, home.state, Path(f"{home.file}.releases"))


def test_what_is_put_is_got_by_another_process(home: Home) -> None:
    store = opened(home)
    assert store.get(key("a")) is None
    put = store.put(key("a"), b"ARROW1\0\xff", NOTE, block="b1")
    again = opened(home).get(key("a"))
    assert again == put
    assert again is not None
    assert (again.payload, again.note.metadata, again.note.block) == (b"ARROW1\0\xff", NOTE, "b1")

    def child(out: Any) -> None:
        found = store.get(key("a"))
        out.put(found.payload if found else None)

    out = FORK.Queue()
    process = FORK.Process(target=child, args=(out,))
    process.start()
    assert out.get(timeout=240) == b"ARROW1\0\xff"
    process.join()


def test_the_first_release_stands(home: Home) -> None:
    store, other = opened(home), opened(home)
    store.put(key("a"), b"first", NOTE)
    assert other.put(key("a"), b"second", NOTE).payload == b"first"
    assert [note.key for note in other.notes()] == [key("a")]


@pytest.mark.parametrize(
    "change",
    [
        "payload = '{bytes}'",
        "metadata = replace(metadata, '0.1', '0.0')",
        "metadata = ''",
        "block = 'other'",
        "created = '1999'",
        "mac = ''",
        "key = '{other}'",
    ],
)
def test_an_edited_release_is_absent_and_reported(home: Home, change: str, caplog: pytest.LogCaptureFixture) -> None:
    store = opened(home)
    store.put(key("a"), b"true", NOTE)
    other = key("b") if "{other}" in change else key("a")
    elsewhere(home).sql("UPDATE dpsql_answers SET " + change.format(bytes="false", other=other))
    with caplog.at_level(logging.WARNING, "dpsql.releases"):
        assert store.get(other) is None
        assert store.of_block("") == []
    assert other in caplog.text
    assert store.put(other, b"new", NOTE).payload == b"new"
    found = store.get(other)
    assert found is not None
    assert found.payload == b"new"


def test_a_release_of_another_ledger_is_absent(sqlite_home: Home, tmp_path: Path) -> None:
    opened(sqlite_home).put(key("a"), b"theirs", NOTE)
    other = Home(f"sqlite:///{tmp_path}/other.db", sqlite_home.state)
    store = opened(other)
    store.close()
    (tmp_path / "other.db.releases").write_bytes(Path(f"{sqlite_home.file}.releases").read_bytes())
    assert open_releases(other.open()).get(key("a")) is None


@pytest.mark.parametrize("window", ["before commit", "after commit"])
def test_killed_while_storing_leaves_a_whole_release_or_none(home: Home, window: str) -> None:
    opened(home).close()
    payload = os.urandom(3_000_000)

    def work() -> None:
        store = open_releases(home.open())

        def die(step: str) -> None:
            if step == window:
                os.kill(os.getpid(), signal.SIGKILL)

        store._store.step = die
        store.put(key("a"), payload, NOTE)

    child = FORK.Process(target=work)
    child.start()
    child.join(30)
    assert child.exitcode == -signal.SIGKILL
    found = opened(home).get(key("a"))
    assert found is None or found.payload == payload
    assert (found is not None) == (window == "after commit")


def test_the_side_file_is_the_owners_and_the_ledger_does_not_need_it(sqlite_home: Home) -> None:
    home = sqlite_home
    store = opened(home)
    store.put(key("a"), b"x", NOTE)
    store.close()
    side = Path(f"{home.file}.releases")
    assert home.file is not None
    assert [stat.S_IMODE(path.stat().st_mode) for path in (side, home.file)] == [0o600, 0o600]
    side.write_bytes(b"no database at all" * 500)
    with pytest.raises(Fault) as error:
        open_releases(home.open())
    assert error.value.slug == "releases_damaged"
    side.unlink()
    assert open_releases(home.open()).get(key("a")) is None
    assert home.open().verify().sound


@pytest.mark.parametrize("bad", ["", "a", "g" * 64, key("a").upper(), key("a") + "0"])
def test_keys_are_digests_and_nothing_else(sqlite_home: Home, bad: str) -> None:
    store = opened(sqlite_home)
    with pytest.raises(Error) as error:
        store.put(bad, b"", {})
    assert error.value.slug == "release_key"


# --- bounds ---------------------------------------------------------------------------------------------------------

PAID = {"terms": [], "receipt": "r1"}


def test_an_analyst_beyond_the_bound_loses_their_own_oldest_answers_and_a_row_says_so(home: Home) -> None:
    store = open_releases(home.open(create=True), StorePolicy(analyst_mb=1, answers_mb=4))
    store.put(key("theirs"), bytes(200_000), PAID, block="q", analyst="bob")
    for number in range(12):
        store.put(key(f"{number}"), bytes(150_000), PAID, block="q", analyst="ann")
    standing = {name: store.get(key(name)) for name in ("theirs", *map(str, range(12)))}
    removed = [name for name, release in standing.items() if release is not None and release.note.removed]
    assert set(removed) <= set(map(str, range(9))) and 5 <= len(removed) <= 8, "the oldest of ann's"
    for name, release in standing.items():
        assert release is not None
        assert release.payload == (b"" if name in removed else bytes(200_000 if name == "theirs" else 150_000))
        assert release.note.metadata["receipt"] == "r1"
    assert not any(release.note.removed for release in store.of_block("q"))
    assert [r.note.key for r in store.nearest(key("0"), "q")[1]] == [r.note.key for r in store.of_block("q")]
    again = store.put(key("0"), b"again", PAID, block="q", analyst="ann")
    assert again.payload == b"again" and not again.note.removed


def test_questions_find_releases_by_an_index_and_old_ones_go_in_one_pass(
    sqlite_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No question costs more because others have stored much, and removing n releases takes no n passes over all of them."""
    store = open_releases(sqlite_home.open(create=True), StorePolicy(analyst_mb=3, answers_mb=3))
    asked: list[str] = []
    rows_of = DatabaseConnection.rows

    def rows(self: DatabaseConnection, text: str, **values: object) -> list[tuple[object, ...]]:
        asked.extend(str(step) for *_, step in rows_of(self, f"EXPLAIN QUERY PLAN {text}", **values))
        return rows_of(self, text, **values)

    monkeypatch.setattr(DatabaseConnection, "rows", rows)
    for number in range(3):
        store.put(key(str(number)), b"x", PAID, block=f"{number}/a", analyst="ann")
    assert [release.note.key for release in store.of_block("1/", start=True)] == [key("1")]
    assert store.of_block("1/a") and store.nearest(key("9"), "2/a")[1] and store.get(key("2"))
    scans = [step for step in asked if step.startswith("SCAN dpsql_answers")]
    assert asked and scans == [step for step in scans if "COVERING INDEX ix_dpsql_answers_analyst" in step], scans
    notes = {key(f"old {number}"): {"text": "x" * 300} for number in range(2_500)}
    many = dict(list(notes.items())[:1_250]), dict(list(notes.items())[1_250:])
    for number, some in enumerate(many):
        store.put(key(f"with notes {number}"), b"x", PAID, block="b", analyst="ann", notes=some)
    asked.clear()
    store.put(key("last"), bytes(2_900_000), PAID, block="b", analyst="ann")
    passes = [step for step in asked if step.startswith("SCAN dpsql_answers")]
    assert store.get(key("old 0")) is None and len(passes) <= 3, passes


def test_the_bound_in_all_holds_for_many_analysts(sqlite_home: Home) -> None:
    store = open_releases(sqlite_home.open(create=True), StorePolicy(analyst_mb=1, answers_mb=2))
    for number in range(40):
        store.put(key(f"{number}"), bytes(100_000), PAID, block="q", analyst=f"analyst{number}")
        store.put(key(f"note {number}"), b"", {"release": "x"}, analyst=f"analyst{number}")
    assert sum(len(release.payload) for release in store.of_block("q")) <= 2_200_000
    assert store.get(key("note 0")) is None, "notes of old questions go without a trace"
    last = store.get(key("39"))
    assert last is not None and last.payload


# --- A stored release that was read before is answered from memory, but only while the store still holds the same release ---


SQL = "SELECT region, COUNT(*) AS n, AVG(age) AS a FROM patients GROUP BY region ORDER BY n"


@pytest.fixture
def session(policy: Path) -> Iterator[Session]:
    with open_session(policy, create_ledger=True) as made:
        yield made


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the statements that the sandbox runs."""
    seen: list[str] = []
    query = Sandbox.query

    def noted(self: Sandbox, sql: str, *others: object) -> object:
        seen.append(sql)
        return query(self, sql, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(Sandbox, "query", noted)
    return seen


def shown(release: Release) -> tuple[object, ...]:
    return release.table.to_pylist(), release.low.to_pylist(), release.high.to_pylist(), release.columns


def test_the_third_answer_is_the_first_and_runs_nothing(session: Session, runs: list[str]) -> None:
    first, second = session.execute(SQL), session.execute(SQL)
    before = len(runs)
    third = session.execute(SQL)
    assert len(runs) == before
    assert shown(first) == shown(second) == shown(third)
    assert [one.reused for one in (first, second, third)] == [False, True, True]
    assert first.receipt_id == second.receipt_id == third.receipt_id
    assert session.budget().spent["dataset"]["epsilon"] == "1"
    session.execute("SET dp.epsilon = 0.5")
    session.execute("SELECT COUNT(*) FROM patients")
    session.execute("SET dp.epsilon = default")
    assert dict(session.execute(SQL).remaining) != dict(third.remaining), "the receipt is of now"


def test_what_is_kept_is_bounded_in_bytes(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last answers stay; those that were kept before them are computed again, and are equal."""
    other = SQL.replace("AVG(age)", "SUM(age)")
    answers = [session.execute(sql) for sql in (SQL, SQL, other, other)]
    caches = session.context.caches
    assert len(caches.answers._values) == len(caches.answers._sizes) == 2
    size = max(sum(sizes.values()) for sizes in caches.answers._sizes.values())
    monkeypatch.setattr("dpsql.reuse.lookup.MOST_BYTES", size * 3 // 2)
    third = SQL.replace("AVG(age)", "AVG(age) + 1")
    for _ in range(2):
        session.execute(third)
    assert len(caches.answers._values) == len(caches.answers._sizes) == 1
    assert shown(session.execute(SQL)) == shown(answers[0])
    monkeypatch.setattr("dpsql.reuse.lookup.MOST_BYTES", 0)
    for _ in range(3):
        assert shown(session.execute(SQL)) == shown(answers[0])
    assert len(caches.answers._values) == 0


def test_what_is_charged_anew_is_computed_anew(session: Session) -> None:
    session.execute("SET dp.reuse = off")
    answers = [session.execute(SQL).table.column("a").to_pylist() for _ in range(4)]
    assert len({str(one) for one in answers}) == 4
