"""`dpsql plan` and `dpsql run --workload`: a joint measurement is shown for free and charged once."""

import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import duckdb
import pytest
from support.clinic_folder import Clinic, Outcome, process

from dpsql.errors.exceptions import Error, refuse
from dpsql.frontends.batch.statements import OBJECTIVES, QuestionPlans, asked_questions
from dpsql.session.session import Session, open_session
from unit.frontends.batch.test_batch import KILLED

Run = Callable[..., Outcome]
UNIT = 10**18
TILES = """\
-- name: regions
SELECT region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC;
-- name: smokers
SELECT region, smokes, COUNT(*) AS n FROM patients WHERE smokes IS NOT NULL GROUP BY region, smokes;
-- name: both
SELECT region, smokes, COUNT(*) AS n FROM patients GROUP BY region, smokes;
-- name: everybody
SELECT COUNT(*) AS n FROM patients;
SET dp.epsilon = 0.2;
-- name: ages
SELECT AVG(age) AS age FROM patients;
EXPLAIN SELECT COUNT(*) FROM patients;
"""
RUN = ("run", "-p", "clinic.yaml", "q.sql", "--out", "out", "--workload")
PLAN = ("plan", "-p", "clinic.yaml", "q.sql")


@pytest.fixture
def tiles(clinic: Clinic) -> Clinic:
    (clinic.folder / "q.sql").write_text(TILES)
    return clinic


def note(name: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(Path("out", f"{name}.meta.json").read_text())
    return facts


def total(name: str) -> int:
    return sum(row["n"] for row in note(name)["rows"])


def test_a_plan_shows_errors_and_prices_one_by_one_and_together(tiles: Clinic, dpsql: Run) -> None:
    outcome = dpsql(*PLAN)
    assert outcome.status == 0 and outcome.err == "" and tiles.charges() == 0
    lines = outcome.out.splitlines()
    assert (
        lines[0].startswith("3 questions are measured as one (worst): epsilon 0.29")
        and "one by one: epsilon 0.3" in lines[0]
    )
    (both,) = [line for line in lines if line.startswith("  by region, smokes: count(*) \N{PLUS-MINUS SIGN} ")]
    assert "(one by one \N{PLUS-MINUS SIGN} 30)" in both and both.endswith("read by both")
    assert any(line.startswith("  count(*) in 3 tables: the largest relative error is 0.") for line in lines)
    alone = [line for line in lines if "asked separately" in line]
    assert [line.split()[1] for line in alone] == ["smokers:", "ages:"]


def test_planning_is_the_same_work_whatever_the_data(tiles: Clinic) -> None:
    """Work is counted in calls of dpsql functions, not in seconds: with all patients, with a third of them twice, and with
    none."""

    def work() -> Counter[tuple[str, str]]:
        calls: Counter[tuple[str, str]] = Counter()

        def note_call(frame: FrameType, event: str, argument: Any) -> None:
            if event == "call" and "dpsql" in frame.f_code.co_filename:
                calls[frame.f_code.co_filename, frame.f_code.co_qualname] += 1

        with open_session(Path("clinic.yaml")) as session:
            asked = asked_questions(session, [(Path("q.sql"), Path("q.sql").read_text())], refused, left_out)
            gc.collect()
            gc.disable()  # garbage of earlier sessions is not work of this one
            sys.setprofile(note_call)
            try:
                assert len(QuestionPlans(session, asked, OBJECTIVES["worst"]).lines()) >= 6
            finally:
                sys.setprofile(None)
                gc.enable()
        return calls

    def refused(place: str, sql: str, error: Error) -> None:
        raise AssertionError(place)

    def left_out(path: Path, line: int) -> None:
        raise AssertionError(path)

    work()  # compute what a process computes once
    seen = [work()]
    for change in ("INSERT INTO patients SELECT * FROM patients WHERE age > 40", "DELETE FROM patients"):
        with duckdb.connect("clinic.duckdb") as connection:
            connection.execute(change)
        seen.append(work())
    assert seen[0] == seen[1] == seen[2] and sum(seen[0].values()) > 1_000


def test_a_weight_makes_an_error_smaller(tiles: Clinic, dpsql: Run) -> None:
    def error() -> float:
        facts = json.loads(dpsql(*PLAN, "--json").out)["plans"][0]["tables"]
        return float(next(table for table in facts if table["table"] == "in all")["sums"][0]["error"])

    plain = error()
    Path("q.sql").write_text(TILES.replace("-- name: everybody\n", "-- weight: 50\n-- name: everybody\n"))
    assert error() < 0.9 * plain


def test_a_run_measures_a_plan_under_one_charge(tiles: Clinic, dpsql: Run) -> None:
    outcome = dpsql(*RUN)
    assert outcome.status == 0 and "3 questions are measured as one" in outcome.err
    assert "smokers: asked separately: no other table" in outcome.err
    assert tiles.charges() == 3, "the plan, and two questions by themselves"
    assert tiles.spent() <= 0.6 * UNIT
    receipts = {note(name)["receipt"] for name in ("regions", "both", "everybody")}
    assert len(receipts) == 1 and note("ages")["receipt"] not in receipts
    assert not note("regions")["reused"] and note("both")["reused"] and note("everybody")["charged"] == "nothing"
    assert max(map(total, ("regions", "both", "everybody"))) - min(map(total, ("regions", "both", "everybody"))) <= 4


@pytest.mark.parametrize("where", ["before commit", "before result", "in result", "after note"])
def test_a_killed_run_goes_on_without_a_second_charge(tiles: Clinic, dpsql: Run, where: str) -> None:
    child = process(where, *RUN, script=KILLED)
    child.communicate()
    assert child.returncode == -9
    again = dpsql(*RUN)
    assert again.status == 0, again.err
    assert tiles.charges() == 3 and len(list(Path("out").glob("*.meta.json"))) == 6


def test_a_plan_that_is_lost_is_named_and_charged_again_on_request(
    tiles: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsql.session import pipeline

    real, calls = pipeline.perturb, []

    def failing(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise refuse("internal", what="the second table of the plan")
        return real(*arguments)

    monkeypatch.setattr(pipeline, "perturb", failing)
    assert dpsql(*RUN).status == 4 and tiles.charges() == 1
    lost = dpsql(*RUN)
    assert lost.status == 4 and lost.err.count("charged by an earlier run, its answer is lost") == 3
    assert tiles.charges() == 3, "the two questions by themselves"
    again = dpsql(*RUN, "--charge-again")
    assert again.status == 0 and tiles.charges() == 4
    assert len({note(name)["receipt"] for name in ("both", "everybody")}) == 1
    last = dpsql(*RUN)
    assert last.status == 0 and tiles.charges() == 4 and last.err.count("answered by an earlier run") == 6


def test_data_that_change_between_answers_do_not_charge_a_plan_twice(
    tiles: Clinic, dpsql: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All answers of a run are over the data that its plan measured."""
    real = Session.answer

    def changing(session: Session, *arguments: Any) -> Any:
        release = real(session, *arguments)
        later = os.stat("clinic.duckdb").st_mtime_ns + 10**9
        os.utime("clinic.duckdb", ns=(later, later))
        return release

    monkeypatch.setattr(Session, "answer", changing)
    assert dpsql(*RUN).status == 0
    assert tiles.charges() == 3 and len({note(name)["receipt"] for name in ("regions", "both", "everybody")}) == 1
