"""`dpsql demo`: a real cohort, its policy, and questions of a hospital."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsql.frontends.demo.data import build_demo
from dpsql.frontends.interruptible import ask
from dpsql.frontends.rendering.formats import fitting, left_text, price_lines
from dpsql.frontends.rendering.tables import write_table
from dpsql.frontends.rendering.terminal import say, standard_output, waiting
from dpsql.session.opening import open_session
from dpsql.session.session import Session

ANALYST = "clinic"


@dataclass(frozen=True)
class DemoQuestion:
    """A question in plain words, and its SQL."""

    words: str
    sql: str


HDL = "SELECT AVG(clamp(value, 20, 120)) AS hdl, COUNT(*) AS measurements FROM labs WHERE test = 'hdl'"
PATIENT_QUESTIONS = (
    DemoQuestion(
        "How many people are followed, how old are they, and how heavy?",
        "SELECT sex, COUNT(*) AS people, AVG(age) AS age, STDDEV(age) AS age_sd, AVG(bmi) AS bmi\n"
        "FROM patients GROUP BY sex",
    ),
    DemoQuestion(
        "Do people with fatty liver die more often than others of their age?",
        "SELECT floor(age / 20) * 20 AS age_from, has_nafld, COUNT(*) AS people,\n"
        "  AVG(CASE WHEN died THEN 1 ELSE 0 END) AS died\n"
        "FROM patients GROUP BY ALL HAVING COUNT(*) > 100",
    ),
    DemoQuestion(
        "Which diagnoses do people with fatty liver have?",
        "SELECT event, COUNT(*) AS people FROM events JOIN patients USING (patient_id)\n"
        "WHERE has_nafld AND event <> 'nafld' GROUP BY event ORDER BY people DESC LIMIT 5",
    ),
    DemoQuestion("What is the mean HDL cholesterol, when a person may have sixty values?", HDL),
)
ROW_QUESTION = DemoQuestion(
    "The same, when each laboratory value and not each person is protected (nafld_rows.yaml):", HDL
)
ROW_POLICY = """\
# The laboratory values alone, each row protected by itself (row privacy). That is a weaker promise than nafld.yaml's:
# a person with 20 values is protected 20 times less. An owner offers one of the two; the demo shows both.
dataset: nafld_rows
source: duckdb:///nafld.duckdb
privacy_unit: row
budget: {epsilon: 2, delta: 1e-6, accountant: zcdp}
per_query: {epsilon: 0.1, max_epsilon: 1}
ledger: sqlite:///nafld_rows-ledger.db
tables:
  labs:
    columns:
      day: {type: integer, lower: -7305, upper: 7305, nullable: false}
      test: {type: text, domain: [hdl, cholesterol, systolic, diastolic, smoking, fib4], nullable: false}
      value: {type: real, lower: 0, upper: 400}
"""


def run_demo(folder: Path) -> None:
    """Build the demo in `folder` (or continue with an existing one) and ask its questions.

    Raises Fault (demo_missing, demo_write) and what opening and asking raise: a lost ledger is not created again.
    """
    again = (folder / "nafld.yaml").exists()
    say(f"{'Going on' if again else 'Building the demo'} in {folder}: a cohort of 17,549 adults, half a million "
               "laboratory values and diagnoses", err=True)  # fmt: skip
    policy = build_demo("nafld", folder)
    rows = folder / "nafld_rows.yaml"
    if not rows.exists():
        rows.write_text(ROW_POLICY, encoding="utf-8")
    with open_session(policy, analyst=ANALYST, create_ledger=True) as session:
        if again:
            _say("The ledger has been here before: what was asked already is answered from its stored releases,")
            _say(f"the same numbers again, and nothing is charged. left: {left_text(session)}")
        _say("One person is the privacy unit: whatever is known of a patient, in all three tables, stays hidden.")
        _ask_all(session, PATIENT_QUESTIONS)
    with open_session(rows, create_ledger=True) as session:
        _ask_all(session, (ROW_QUESTION,))
    _next(policy)


def _ask_all(session: Session, questions: Sequence[DemoQuestion]) -> None:
    for question in questions:
        _say(f"\n{question.words}", bold=True)
        _say(question.sql, dim=True)
        release = ask(session, question.sql, waiting=waiting())
        write_table(release, standard_output())
        sys.stdout.flush()
        for line in fitting(price_lines(session, release)):
            _say(line, dim=True)


def _next(policy: Path) -> None:
    _say("\nTry next", bold=True)
    _say(f"""\
  dpsql repl -p {policy} --analyst research               a prompt; \\d shows the tables
  dpsql explain -p {policy} "SELECT AVG(bmi) FROM patients"   the price before you pay
  dpsql query -p {policy} "SELECT * FROM patients"        refused, and why
  dpsql budget show -p {policy}                           what is spent and left
  dpsql demo {policy.parent}                                    again: answered from the store, nothing charged""")


def _say(text: str, *, bold: bool = False, dim: bool = False) -> None:
    say(text, err=True, bold=bold, dim=dim)
