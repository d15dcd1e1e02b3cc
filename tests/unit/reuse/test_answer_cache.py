"""A stored release that was read before is answered from memory, but only while the store still holds the same release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsql.release.release import Release
from dpsql.release.sandbox import Sandbox
from dpsql.session.session import Session, open_session

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
