"""Projects as accounts, the forecast, and the export whose sums anyone can check."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.hospital_file import write_policy

import dpsql
from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.session.session import open_session


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
