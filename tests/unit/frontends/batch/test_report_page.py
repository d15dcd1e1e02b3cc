"""`dpsql run --report`: the page shows the contents of the run's folder, from this run and its data, and nothing from an earlier
run."""

import base64
import importlib.util
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.clinic_folder import Clinic, Outcome
from support.effort import slow

from dpsql.errors.exceptions import refuse
from dpsql.frontends.batch import statements
from dpsql.session.session import Session

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

Run = Callable[..., Outcome]
QUESTIONS = """\
-- name: regions
SELECT region, COUNT(*) AS n, AVG(age) AS "age<b>" FROM patients GROUP BY region;
SELECT COUNT(*) AS n FROM patients WHERE smokes;
SHOW TABLES;
"""


def run(*arguments: str) -> tuple[str, ...]:
    return ("run", "-p", "clinic.yaml", "--out", "out", "--report", "r.html", *arguments, "q.sql")


def page() -> str:
    return Path("r.html").read_text(encoding="utf-8")


def pictures(text: str) -> list[str]:
    return [base64.b64decode(word).decode() for word in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', text)]


def bodies(text: str) -> list[str]:
    """Return the sections with their answers, without the time and the identity of the run."""
    return re.findall(r"<section>.*?</section>", re.sub(r'<p class="facts[^<]*</p>', "", text), re.S)


@pytest.mark.parametrize("format", ["csv", slow("arrow")])
def test_the_page_has_question_answer_bars_picture_price_and_receipt(clinic: Clinic, dpsql: Run, format: str) -> None:
    Path("q.sql").write_text(QUESTIONS)
    assert dpsql(*run("-f", format)).status == 0
    text = page()
    note = json.loads(Path("out/regions.meta.json").read_text())
    for row, error in zip(note["rows"], note["error"], strict=True):
        assert f"<td>{row['region']}</td><td>{row['n']} &plusmn; {error['n']:.0f}</td>" in text
    assert note["receipt"] in text and f"price: {note['price']}" in unescape(text)
    assert "age&lt;b&gt;" in text and "<b>" not in text
    drawn = pictures(text)
    assert len(drawn) == 2 and all(svg.startswith("<svg") for svg in drawn)
    assert "error bars hold in 95% of cases" in drawn[0] and "north" in drawn[0]
    assert "3 of 3 statements have an answer" in text and "left: dataset 18 questions" in text
    assert not re.search(r"(src|href)=\"?http|<script", text), "no network, no script"


def test_answers_of_an_earlier_run_are_the_same_in_its_page_until_the_data_change(clinic: Clinic, dpsql: Run) -> None:
    Path("q.sql").write_text(QUESTIONS)
    dpsql(*run()[:5], "q.sql")
    assert not Path("r.html").exists()
    assert dpsql(*run()).status == 0
    first = page()
    assert "answered by an earlier run, on the same data" in first and clinic.charges() == 2
    assert dpsql(*run()).status == 0
    assert bodies(page()) == bodies(first) and clinic.charges() == 2
    with duckdb.connect("clinic.duckdb") as connection:
        connection.execute("INSERT INTO patients SELECT patient_id + 1000, region, age, income, smokes FROM patients")
    assert dpsql(*run()).status == 0
    second = page()
    assert second.count("answered by this run") == 2, "SHOW TABLES reads the policy alone"
    assert bodies(second)[0] != bodies(first)[0]


def test_a_run_that_fails_leaves_no_page_of_an_earlier_one(clinic: Clinic, dpsql: Run) -> None:
    Path("q.sql").write_text(QUESTIONS)
    assert dpsql(*run()).status == 0
    Path("q.sql").write_text(f"{QUESTIONS}SELECT * FROM patients;\n")
    assert dpsql(*run()).status == 1
    text = page()
    assert "0 of 4 statements have an answer" in text and "this would return protected rows" in text
    assert "nothing was charged" in text and text.count("not asked") == 3 and not pictures(text)
    assert dpsql(*run("--keep-going")).status == 1
    assert "3 of 4 statements have an answer" in page() and len(pictures(page())) == 2
    clinic.policy.write_text(clinic.policy.read_text() + "nonsense: 1\n")
    assert dpsql(*run()).status != 0 and not Path("r.html").exists()


@pytest.mark.parametrize(
    ("place", "status", "words"), [("r.svg", 2, ".html"), ("nowhere/r.html", 4, "cannot write"), ("", 2, "")]
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_charged(
    clinic: Clinic, dpsql: Run, place: str, status: int, words: str
) -> None:
    Path("q.sql").write_text(QUESTIONS)
    outcome = dpsql("run", "-p", "clinic.yaml", "--out", "out", "--report", place, "q.sql")
    assert outcome.status == status and words in outcome.err, outcome.err
    assert clinic.charges() == 0 and not Path("out").exists()


def test_a_dry_run_writes_no_report_and_needs_the_extra(
    clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("q.sql").write_text(QUESTIONS)
    assert dpsql(*run("--dry-run")).status == 2
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "altair" else find(name, *rest)
    )
    outcome = dpsql(*run())
    assert outcome.status != 0 and "dpsql[plot]" in outcome.err and clinic.charges() == 0


def test_odd_values_are_shown_as_they_were_released() -> None:
    columns = [("k", "date", False), ("t", "text", False), ("k", "real", True), ("b", "boolean", True)]
    note: dict[str, Any] = {
        "columns": [{"name": name, "type": type_, "noisy": noisy} for name, type_, noisy in columns],
        "rows": [
            {"k": "2024-02-01", "t": "<script>alert(1)</script>", "k_1": "NaN", "b": True},
            {"k": None, "t": "NaN", "k_1": None, "b": None},
            {"k": "2024-03-01", "t": None, "k_1": 1.5, "b": False},
        ],
        "low": [{"k_1": None, "b": None}] * 3,
        "high": [{"k_1": "Infinity", "b": None}] * 3,
        "error": [{"k_1": None, "b": None}, {"k_1": None, "b": None}, {"k_1": 0.25, "b": None}],
        "confidence": 0.9, "receipt": "r1", "price": "", "charged": "epsilon 0.1", "reused": False, "notices": ["<i>"], "notes": [],
    }  # fmt: skip
    text = "".join(statements._answer_parts(note))
    assert "<td>2024-02-01</td><td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in text and "<i>" not in text
    assert "1.50 &plusmn; 0.25" in text and "<td>NaN</td>" in text and "<td>true</td>" in text
    assert "price: epsilon 0.1; receipt r1; error bars hold in 90 % of cases" in text
    assert len(pictures(text)) == 1
    text = "".join(statements._answer_parts({**note, "rows": [], "low": [], "high": [], "error": []}))
    assert not pictures(text) and "error bars hold" not in text


@pytest.mark.parametrize("read", ["q.html", "clinic.html"])
def test_a_file_that_the_run_reads_is_not_taken_for_an_earlier_report(clinic: Clinic, dpsql: Run, read: str) -> None:
    Path("q.html").write_text(QUESTIONS)
    Path("clinic.yaml").rename("clinic.html")
    before = Path(read).read_text()
    Path("link.html").symlink_to(read)
    for place in (read, "link.html"):
        outcome = dpsql("run", "-p", "clinic.html", "--out", "out", "--report", place, "q.html")
        assert outcome.status == 2 and "is read by this run" in outcome.err and Path(read).read_text() == before
    Path("clinic.html").rename("clinic.yaml")
    assert clinic.charges() == 0


def test_answers_are_shown_though_the_ledger_cannot_say_what_is_left(
    clinic: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answers are paid for by then, so a ledger that has become unreadable does not cost anyone an answer."""
    Path("q.sql").write_text("-- name: n\nSELECT COUNT(*) AS n FROM patients WHERE smokes;")
    execute, budget = Session.execute, Session.budget

    def unreadable(session: Session) -> None:
        raise refuse("ledger_damaged", problem="it is torn")

    def asked(session: Session, sql: str, *arguments: Any, **options: Any) -> Any:
        release = execute(session, sql, *arguments, **options)
        monkeypatch.setattr(Session, "budget", unreadable)
        return release

    monkeypatch.setattr(Session, "execute", asked)
    outcome = dpsql(*run())
    assert outcome.status == 0 and "left: unknown (" in outcome.err and "left: unknown (" in unescape(page())
    assert Path("out/n.csv").exists()
    monkeypatch.setattr(Session, "budget", budget)
    outcome = dpsql("query", "-p", "clinic.yaml", "SELECT COUNT(*) AS n FROM patients")
    assert outcome.status == 0 and "left: unknown (" in outcome.err and "±" in outcome.out
    assert clinic.charges() == 2
