"""Data of one asker are not available to others: unshared releases, and request ids."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from support.hospital_file import build, write_policy

import dpsql
from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.frontends.cli.ledger_rows import charge_rows
from dpsql.ledger.records import charge_id, request_of
from dpsql.release.release import Release
from dpsql.session.session import Session, open_session

COUNT = "SELECT COUNT(*) FROM patients"
Opener = Callable[[str | None], Session]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Yield a function that opens sessions of one ledger; releases are not shared."""
    path = build(tmp_path, reuse="{shared: false}")
    open_session(path, create_ledger=True).close()
    sessions = []

    def start(analyst: str | None) -> Session:
        sessions.append(open_session(path, analyst=analyst))
        return sessions[-1]

    yield start
    for session in sessions:
        session.close()


def shown(release: Release) -> list[tuple[object, ...]]:
    return list(release.rows())


def test_an_analyst_has_no_part_in_the_owners_releases(opened: Opener) -> None:
    owner, analyst = opened(None), opened("ann")
    owner.execute(COUNT)
    assert not analyst.explain(COUNT).stored
    answer = analyst.execute(COUNT)
    assert not answer.reused
    assert analyst.budget().spent["analyst:ann"]["epsilon"] == "1"
    assert owner.execute(COUNT).receipt_id != answer.receipt_id
    assert analyst.execute(COUNT).receipt_id == answer.receipt_id


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (first, second)
        for first, second in product(["ann", None], ["bob", None])
        if first != second  # equal names are the same asker
    ],
)
def test_a_request_id_tells_nothing_to_others_and_cannot_be_taken_from_its_asker(
    opened: Opener, first: str | None, second: str | None
) -> None:
    one, other = opened(first), opened(second)
    answer = one.execute(COUNT, request_id="r1")
    taken = other.execute("SELECT SUM(age) FROM patients", request_id="r1")
    assert not taken.reused
    assert taken.receipt_id == "r1"
    again = one.execute(COUNT, request_id="r1")
    assert again.reused
    assert shown(again) == shown(answer)
    receipts = [row[-1] for row in charge_rows(one.ledger)[1]]
    assert receipts == ["r1", "r1"]
    assert one.ledger.verify().sound


def test_ids_of_different_askers_are_different_whatever_they_are_called() -> None:
    """A policy accepts no analyst called owner; a ledger of an earlier version may have charges of one."""
    ids = {charge_id(*pair) for pair in [("a/b", "c"), ("a", "b/c"), (None, "b/c"), ("owner", "b/c"), ("a%2Fb", "c")]}
    assert len(ids) == 5
    assert [request_of(charge_id(who, "b/c")) for who in (None, "a/b")] == ["b/c", "b/c"]
    assert request_of("0123abcd") == "0123abcd"


# --- Projects as accounts, the forecast, and the export whose sums anyone can check -----------------------------------


@pytest.fixture
def projects(policy: Path) -> Path:
    write_policy(policy.parent, projects="{flu: {epsilon: 2}, malaria: {epsilon: 500, delta: 1e-7}}")
    open_session(policy, create_ledger=True).close()
    return policy


def test_a_charge_must_fit_the_project_too(projects: Path) -> None:
    with dpsql.connect(projects, analyst="ann", project="flu") as connection:
        connection.execute("SELECT COUNT(*) FROM patients")
        connection.execute("SELECT COUNT(*) FROM patients WHERE smoker")
        with pytest.raises(BudgetRefusal) as caught:
            connection.execute("SELECT COUNT(*) FROM patients WHERE NOT smoker")
        assert set(caught.value.remaining) == {"dataset", "analyst:ann", "project:flu"}
        assert {scope: left["epsilon"] for scope, left in connection.budget.remaining.items()} == {
            "dataset": "998", "analyst:ann": "498", "project:flu": "0",
        }  # fmt: skip
    with dpsql.connect(projects, analyst="bob", project="flu") as connection:
        with pytest.raises(BudgetRefusal):  # another analyst, the same project
            connection.execute("SELECT COUNT(*) FROM patients WHERE NOT smoker")
        assert connection.execute("SELECT COUNT(*) FROM patients").release.reused
    with dpsql.connect(projects, analyst="bob", project="malaria") as connection:
        connection.execute("SELECT COUNT(*) FROM patients WHERE NOT smoker")
        assert connection.budget.remaining["project:malaria"] == {"epsilon": "499", "delta": "0.0000001"}


def test_a_projects_limit_may_not_exceed_the_budget(policy: Path) -> None:
    write_policy(policy.parent, projects="{flu: {epsilon: 2000}}")
    with pytest.raises(Error) as caught:
        open_session(policy)
    assert caught.value.path == "$.projects.flu.epsilon"


def test_sql_chooses_a_project_where_the_session_has_none(projects: Path) -> None:
    with dpsql.connect(projects, analyst="ann") as connection:
        connection.execute("SET dp.project = flu")
        connection.execute("SELECT COUNT(*) FROM patients")
        assert connection.budget.spent["project:flu"]["epsilon"] == "1"
        connection.execute("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (project = 'malaria') COUNT(*) FROM visits")
        connection.execute("RESET dp.project")
        connection.execute("SELECT COUNT(*) FROM patients WHERE smoker")
        assert set(connection.budget.spent) == {"dataset", "analyst:ann"}
        assert connection.budget.spent["dataset"]["epsilon"] == "3"
        connection.execute("SET dp.project = malaria")
        assert connection.budget.spent["project:malaria"]["epsilon"] == "1"


@pytest.mark.parametrize(
    "sql",
    [
        "SET dp.project = malaria", "SET dp.project = none",
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (project = 'none') COUNT(*) FROM patients",
        "EXPLAIN SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (project = 'malaria') COUNT(*) FROM patients",
    ],
)  # fmt: skip
def test_no_sql_leaves_the_project_that_a_session_was_opened_for(projects: Path, sql: str) -> None:
    """The person who opened the session for a project limited everything that runs in it."""
    with dpsql.connect(projects, analyst="ann", project="flu") as connection:
        with pytest.raises(Error) as caught:
            connection.execute(sql)
        assert (caught.value.slug, caught.value.charged) == ("project_fixed", False)
        connection.execute("RESET ALL")
        connection.execute("SELECT COUNT(*) FROM patients")
        assert connection.budget.spent["project:flu"]["epsilon"] == "1"
