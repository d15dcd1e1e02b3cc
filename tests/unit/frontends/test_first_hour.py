"""The page for newcomers: its examples work on the demo, and its budgets are correct."""

import re
from pathlib import Path

import pytest
from support.places import ROOT

from dpsql.errors.exceptions import Error
from dpsql.frontends.demo import run_demo
from dpsql.policy import parse_policy
from dpsql.session.session import open_session

PAGE = (ROOT / "docs" / "first_hour.md").read_text(encoding="utf-8")


ANSWERED, REFUSED = PAGE.split("What is refused, and why, ")


def blocks(language: str, text: str = PAGE) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def test_every_question_is_answered_or_refused_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_demo(tmp_path / "demo")
    answered, refused = blocks("sql", ANSWERED), blocks("sql", REFUSED)
    assert len(answered) == 11 and len(refused) == 2
    with open_session(tmp_path / "demo" / "nafld.yaml") as session:
        for question in answered:
            release = session.execute(question)
            assert release.rows() and release.answered.noisy[-1], question
        for question in refused:
            with pytest.raises(Error) as error:
                session.execute(question)
            assert not error.value.charged and error.value.hint, question


def test_every_budget_of_the_page_is_one() -> None:
    rest = "dataset: d\nsource: d.parquet\nledger: sqlite:///l.db\nprivacy_unit: row\ntables: {d: {columns: {v: {type: integer}}}}\n"
    budgets = [parse_policy(f"{block}\n{rest}").budget for block in blocks("yaml")]
    assert [budget.every for budget in budgets] == [None, "month"]


def test_prices_in_the_table_are_those_of_the_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The widths and shares of the table follow from the policy: EXPLAIN states them before any query runs."""
    run_demo(tmp_path / "demo")
    question = blocks("sql")[0]
    rows = re.findall(r"^\| (0\.\d+) \| \d+ ± (\d+) \|[^|]*\| ([\d.]+) %", PAGE, re.M)
    assert len(rows) == 3
    with open_session(tmp_path / "demo" / "nafld.yaml") as session:
        for epsilon, width, share in rows:
            session.execute(f"SET dp.epsilon = {epsilon}")
            lines = "\n".join(session.explain(question).lines)
            assert f"price: {share} % of the budget" in lines
            (bar,) = re.findall(r"^n: ± ([\d.]+)", lines, re.M)
            assert abs(float(bar) - float(width)) <= 0.1 * float(width), lines
