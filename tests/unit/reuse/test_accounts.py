"""Projects as accounts, the forecast, and the export whose sums anyone can check."""

from __future__ import annotations

import io
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.hospital_file import write_policy
from support.places import ROOT

import dpsql
from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.ledger.forecast import forecasts
from dpsql.session.budget import question_price
from dpsql.session.opening import open_session

VERIFY = ROOT / "dpsql_audit" / "verify_export.py"


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


def test_the_forecast_is_what_is_left_at_the_rate_of_seven_days(projects: Path) -> None:
    now = datetime.now(UTC)
    with open_session(projects, analyst="ann", project="flu") as session:
        (dataset, *_) = forecasts(session.ledger)
        assert (dataset.until, dataset.exact_words()) == (None, "dataset: nothing was charged this week")
        session.execute("SELECT COUNT(*) FROM patients")
        found = {one.scope: one for one in forecasts(session.ledger, now + timedelta(minutes=1))}
        assert set(found) == {"dataset", "analyst:ann", "project:flu"}
        for scope, weeks in (("dataset", 999), ("analyst:ann", 499), ("project:flu", 1)):
            until = found[scope].until
            assert until is not None
            assert abs(until - now - timedelta(weeks=weeks)) < timedelta(hours=1)
        assert (
            found["project:flu"]
            .exact_words()
            .startswith("project:flu: at this week's rate (epsilon 1) the budget lasts until 2")
        )
        words = found["project:flu"].words(question_price(session.policy))
        assert words.startswith("project:flu: 1 question is left; at this week's rate (1) they last until 2"), words
        (later, *_) = forecasts(session.ledger, now + timedelta(days=8))
        assert later.until is None  # nothing was charged in those seven days


def verify(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", str(VERIFY), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("format", ["json", "csv"])
def test_an_export_adds_up_again(projects: Path, format: str) -> None:
    with open_session(projects, analyst="ann", project="flu") as session:
        session.execute("SELECT COUNT(*) FROM patients")
        session.execute("SET dp.epsilon = 0.25")
        session.execute("SELECT city, COUNT(*) FROM patients GROUP BY city")
        spent = session.budget().spent
        text = io.StringIO()
        session.ledger.export(text, format)
        key = session.ledger.witness.directory / "key"
    place = projects.parent / f"export.{format}"
    place.write_text(text.getvalue())
    found = verify(str(place), *(["--key", str(key)] if format == "json" else []))
    assert (found.returncode, found.stderr) == (0, "")
    for scope, amounts in spent.items():
        for name, amount in amounts.items():
            assert f"{scope}: {name} {amount} of " in found.stdout
    assert "2 charges, 0 of them cut short" in found.stdout


def test_an_edited_export_is_found_out(projects: Path) -> None:
    with open_session(projects, analyst="ann") as session:
        for number in range(3):
            session.execute(f"SELECT COUNT(*) FROM patients WHERE ward > {number}")
        text = io.StringIO()
        session.ledger.export(text)
        key = session.ledger.witness.directory / "key"
    place = projects.parent / "export.jsonl"
    lines = text.getvalue().splitlines(keepends=True)
    charge = next(at for at, entry in enumerate(lines) if r"\"kind\":\"charge\"" in entry)

    def problems(edited: list[str], *arguments: str) -> str:
        place.write_text("".join(edited))
        found = verify(str(place), *arguments)
        assert (found.returncode == 0) == (not found.stderr)
        return found.stderr

    amount = r"\"epsilon\":\"1000000000000000000\""
    cheaper = [*lines[:charge], lines[charge].replace(amount, amount.replace("1", "2", 1)), *lines[charge + 1 :]]
    assert cheaper != lines
    assert "under this key" in problems(cheaper, "--key", str(key))
    assert "follows entry" in problems([*lines[:charge], *lines[charge + 1 :]])
    assert "over its limit" in problems([line.replace(amount, amount.replace("1", "400", 1)) for line in lines])
    assert problems(lines, "--key", str(key)) == ""


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
