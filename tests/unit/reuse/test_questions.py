"""Texts of questions: kept for the owner through every door, bounded, and removed so that their bytes are gone."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.hospital_file import write_policy

import dpsql
from dpsql.errors.exceptions import BudgetRefusal, Error
from dpsql.frontends.cli.budget import budget
from dpsql.frontends.cli.ledger_rows import account_rows, question_rows
from dpsql.ledger import open_ledger
from dpsql.ledger.ledger import Reservation
from dpsql.policy import load_policy
from dpsql.policy.types import StorePolicy
from dpsql.reuse.questions import QuestionTexts, days_before
from dpsql.session.session import Session, open_session
from dpsql.sql.lexer import read_script

SUM = "SELECT kind, SUM(cost) FROM visits GROUP BY kind"
COUNT = "SELECT COUNT(*) FROM patients WHERE city = 'Linz'"
REFUSED = ("SELECT nope FROM visits", "SELEC", "SELECT * FROM visits", "SELECT SUM(patient_id) FROM patients")


def ask(session: Session, *texts: str) -> None:
    for text in texts:
        try:
            session.execute(text)
        except Error as error:
            assert not error.charged


def history(policy: Path, *options: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(budget, ["history", "-p", str(policy), "-f", "json", *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.output)
    return rows


@pytest.fixture
def asked(policy: Path) -> Path:
    """Return the policy of a data set of which ann asked six questions and bob two."""
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, SUM, SUM, *REFUSED)
    with dpsql.connect(policy, analyst="bob") as connection:
        connection.execute(COUNT)
        connection.execute(SUM)
    return policy


def test_an_answer_whose_outcome_a_killed_process_did_not_note_is_answered(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reservation, "commit", lambda reservation: None)
    with open_session(policy, create_ledger=True) as session:
        ask(session, SUM)
        monkeypatch.setattr(QuestionTexts, "note", lambda *about, **facts: None)
        ask(session, COUNT)
    assert [row["outcome"] for row in history(policy)] == ["answered", "cut short"]


def test_the_person_behind_a_shared_login_is_shown_as_claimed_and_trusted_in_nothing(policy: Path) -> None:
    """Access and budget stay those of the login, a stored answer stays shared, and texts without a claim stay readable."""
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, SUM, "SET dp.on_behalf_of = '  bob Ω'", SUM, COUNT, "SELEC", "RESET ALL", "SELEC")
        session.start_with({"dp.on_behalf_of": "eve"})
        ask(session, "SET dp.on_behalf_of = none", "SELEC", "RESET dp.on_behalf_of", COUNT)
    with open_session(policy, analyst="bob") as session:
        assert set(session.budget().spent["analyst:bob"].values()) == {"0"}
    rows = history(policy, "--all")
    assert [(row["analyst"], row["claimed_user"], row["outcome"]) for row in rows] == [
        ("ann", "", "answered"), ("ann", "bob Ω", "free"), ("ann", "bob Ω", "answered"), ("ann", "bob Ω", "syntax"),
        ("ann", "", "syntax"), ("ann", "", "syntax"), ("ann", "eve", "free"),
    ]  # fmt: skip
    assert [row["question"] for row in history(policy, "--all", "--claimed-user", "bob Ω")] == [SUM, COUNT, "SELEC"]
    assert [row["claimed_user"] for row in history(policy)] == ["", "bob Ω"]
    assert [row["claimed_user"] for row in history(policy, "--column", "visits.cost")] == ["", "bob Ω"]
    assert [row["count"] for row in history(policy, "--refusals", "--claimed-user", "bob Ω")] == [1]


COMMENTS = {
    "-- Metabase:: userID: 7 queryType: native queryHash: 00ff\n{}": "metabase-7",
    '-- /* partner: "metabase", {{"dashboard_id":null}} */ Metabase:: userID: 7 queryType: MBQL\n{}': "metabase-7",
    '-- Looker Query Context \'{{"user_id":6,"history_slug":"a"}}\'\n{}': "looker-6",
    "/* Username: ann@example.org, query_id: 3, Queue: queries */ {}": "ann@example.org",
    "-- [SQL LAB] ann 2026-11-28T10:00:00\n{}": "ann",
    "/* dp.on_behalf_of = Ann */ {}": "Ann",
    "-- mine\n-- dp.on_behalf_of: ann\n{}": "",
    "{} -- Metabase:: userID: 7 queryType: native": "",
}
"""Texts as BI tools send them, by the person whom the owner sees; what stands behind the first comment is the asker's own."""


def test_the_person_that_a_tool_names_in_a_comment_is_shown(policy: Path) -> None:
    questions = [f"SELECT COUNT(*) FROM patients WHERE city = '{number}'" for number in range(len(COMMENTS))]
    texts = [comment.format(question) for comment, question in zip(COMMENTS, questions, strict=True)]
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, *texts, texts[0].replace("patients", "nothing"))
        for piece in read_script(f"{texts[0]};\n{texts[4]};{COUNT}").pieces:  # as a server reads a text
            session.execute(piece)
        session.set_option("on_behalf_of", "said")
        session.execute(texts[0])
    shown = [row["claimed_user"] for row in history(policy, "--all")]
    assert shown == [*COMMENTS.values(), "metabase-7", "metabase-7", "ann", "", "said"]


def test_a_person_behind_a_shared_login_has_the_limit_that_the_policy_lists(policy: Path) -> None:
    """Besides that of the login, in each window and through the ledger's own sums; whoever is not listed has none."""
    policy.write_text(policy.read_text().replace("ann: {", "ann: {people: {eve: {epsilon: 3}}, ", 1))
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        session.set_option("on_behalf_of", "EVE")
        assert "analyst ann/eve 3" in session.left_text() and session.questions_left() == 3
        for number in range(3):
            session.execute(f"SELECT COUNT(*) FROM patients WHERE city = '{number}'")
        with pytest.raises(BudgetRefusal, match="analyst:ann/eve"):
            session.execute(SUM)
        assert not session.execute("SELECT COUNT(*) FROM patients WHERE city = '0'").receipt.is_paid
        session.set_option("on_behalf_of", "bob")
        assert session.execute(SUM).receipt.is_paid and "eve" not in session.left_text()
        session.execute("/* dp.on_behalf_of: bob */ RESET dp.on_behalf_of")
        with pytest.raises(BudgetRefusal, match="analyst:ann/eve"):
            session.execute(f"-- dp.on_behalf_of: eve\n{COUNT}")
        assert session.execute(COUNT).receipt.is_paid
    loaded = load_policy(policy)
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        assert ledger.verify().sound
        rows = {row[0]: row[1] for row in question_rows(loaded, ledger)[1]}
        assert rows["analyst ann/eve"] == 0 < rows["analyst ann"]
        assert {row[0]: row[3] for row in account_rows(loaded, ledger)[1]}["analyst:ann/eve"] == 3


def test_the_owner_sees_who_asked_what_at_which_price(asked: Path) -> None:
    charges, everything = history(asked), history(asked, "--all")
    assert [(row["analyst"], row["question"]) for row in charges] == [("ann", SUM), ("bob", COUNT)]
    assert [(row["analyst"], row["outcome"]) for row in everything] == [
        ("ann", "answered"), ("ann", "free"), ("ann", "unknown_column"), ("ann", "syntax"), ("ann", "raw_rows"),
        ("ann", "unbounded"), ("bob", "answered"), ("bob", "free"),
    ]  # fmt: skip
    free = [row for row in everything if row["outcome"] == "free"]
    assert {row["receipt"] for row in free} == {charges[0]["receipt"]} and {row["answer_age"] for row in free} == {
        "0.0"
    }
    assert [row["question"] for row in history(asked, "--all", "--analyst", "bob")] == [COUNT, SUM]
    learned = history(asked, "--column", "visits.cost")
    assert [(row["analyst"], row["question"]) for row in learned] == [("ann", SUM), ("ann", SUM), ("bob", SUM)]
    assert history(asked, "--column", "visits.patient_id") == [] == history(asked, "--project", "none")


def test_history_of_windows_is_in_questions_and_names_projects(policy: Path) -> None:
    text = policy.read_text().replace(
        "accountant: pure}", "accountant: pure, every: month}\nprojects: {flu: {epsilon: 9}}"
    )
    policy.write_text(text)
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, "SET dp.epsilon = 2", SUM, "SET dp.project = flu", COUNT)
    assert [row["question"] for row in history(policy, "--project", "flu")] == [COUNT]
    assert "epsilon 2" in history(policy)[0]["charge"] and "window:" in history(policy)[0]["scopes"]
    shown = CliRunner().invoke(budget, ["history", "-p", str(policy)]).output.splitlines()
    column = shown[0].index("questions")
    assert [line[column : column + 9].strip() for line in shown[2:]] == ["2", "2"] and "window:" not in "".join(shown)
    assert "dataset, analyst:ann, project:flu" in shown[3]


def test_no_question_is_a_formula_in_the_owners_spreadsheet(policy: Path) -> None:
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, "=cmd|' /C calc'!A0", "@SUM(1)", "-1 + 1")
    done = CliRunner().invoke(budget, ["history", "-p", str(policy), "-f", "csv", "--all"], catch_exceptions=False)
    cells = [row["question"] for row in csv.DictReader(done.output.splitlines())]
    assert cells == ["'=cmd|' /C calc'!A0", "'@SUM(1)", "'-1 + 1"]


def test_refusals_are_grouped_by_what_the_policy_lacks(asked: Path) -> None:
    with open_session(asked, analyst="bob") as session:
        ask(session, "SELECT SUM(ward + patient_id) FROM patients")
    for option in ("--all", "--column=visits.cost"):
        done = CliRunner().invoke(budget, ["history", "-p", str(asked), "--refusals", option])
        assert done.exit_code == 2 and "a refused question has read no column" in done.output
    assert history(asked, "--refusals", "--project", "none") == []
    assert [row["analysts"] for row in history(asked, "--refusals", "--analyst", "bob")] == [1]
    rows = history(asked, "--refusals")
    assert (rows[0]["count"], rows[0]["refusal"], rows[0]["analysts"]) == (2, "unbounded", 2)
    assert rows[0]["the policy lacks"] == "bounds of a column (lower, upper)" and len(rows) == 4


def test_log_sql_false_keeps_none(policy: Path) -> None:
    write_policy(policy.parent, log_sql="false")
    with open_session(policy, analyst="ann", create_ledger=True) as session:
        ask(session, SUM, "SELEC")
    assert not list(policy.parent.glob("*.questions"))
    assert [row["question"] for row in history(policy, "--all")] == [""]


def test_texts_that_cannot_be_written_cost_no_answer(policy: Path, caplog: pytest.LogCaptureFixture) -> None:
    open_session(policy, create_ledger=True).close()
    (policy.parent / "ledger.db.questions").mkdir()
    with open_session(policy, analyst="ann") as session:
        for _ in range(4):
            assert session.execute(SUM).table.num_rows == 2
    assert [record.args[0] for record in caplog.records if "could not be written" in record.msg and record.args] == [
        1,
        2,
        4,
    ]


def test_texts_have_bounds_in_days_and_bytes(policy: Path) -> None:
    open_session(policy, create_ledger=True).close()
    loaded = load_policy(policy)
    with open_ledger(loaded.ledger_url(), loaded.dataset) as ledger:
        texts = QuestionTexts(ledger, StorePolicy(questions_mb=1))
        for number in range(300):
            texts.note("ann", f"SELECT {number} {'x' * 9000}", "syntax")
        texts._keep_bounds()
        left = [question.question.split()[1] for question in texts.all()]
        assert left[-1] == "299" and 50 < len(left) < 110
        assert texts.erase(days_before(1).isoformat()) == 0 and texts.erase("~") == len(left)
