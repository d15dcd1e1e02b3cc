"""The benchmark harness runs and says what it measured; how long anything took is nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import dpsql.session

sys.path.insert(0, str(Path(__file__).parent.parent))  # the harness is no part of the installed package

from benchmarks.data import DAYS, MAX_ROWS, MERCHANTS, REGIONS, build, write_policy
from benchmarks.report import markdown
from benchmarks.stages import STEPS, stopwatch
from benchmarks.workload import WORKLOAD
from dpsql.policy import load_policy

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What one run of the command at tiny size has written."""
    folder = tmp_path_factory.mktemp("benchmarks")
    arguments = ["--rows", "200", "--repeat", "1", "--data", str(folder / "data"), "--out", str(folder / "out")]
    subprocess.run([sys.executable, "-m", "benchmarks", *arguments], cwd=ROOT, check=True, timeout=120)
    found = json.loads((folder / "out" / "results.json").read_text())
    found["markdown"] = (folder / "out" / "results.md").read_text()
    return found


def test_every_question_at_both_levels(results: dict[str, list[dict[str, object]]]) -> None:
    asked = {(timing["question"], timing["level"]) for timing in results["timings"]}
    assert asked == {(question.name, level) for question in WORKLOAD for level in ("row", "user")}
    for timing in results["timings"]:
        answered = timing["raw"] > 0 and timing["private"] > 0 and timing["ratio"] > 0
        assert answered != bool(timing["refused"]), timing
    refused = {timing["question"] for timing in results["timings"] if timing["refused"]}
    assert refused <= {"Q8"}


def test_fixed_cost_names_every_step(results: dict[str, list[dict[str, dict[str, float]]]]) -> None:
    ways = {cost["way"]: cost["steps"] for cost in results["fixed_cost"]}
    assert list(ways) == ["distinct", "again", "stored"]
    assert {label for _, _, label in STEPS} <= {label for steps in ways.values() for label in steps} | {"rehearse"}
    assert "engine" in ways["again"] and "ledger: reserve" in ways["again"] and "bind" not in ways["again"]
    assert "engine" not in ways["stored"] and "ledger: reserve" not in ways["stored"]
    for steps in ways.values():
        assert steps["total"] > 0


def test_tables_name_the_command(results: dict[str, str]) -> None:
    text = results["markdown"]
    assert "python -m benchmarks --rows 200" in text
    assert all(f"| {question.name} {question.title} |" in text for question in WORKLOAD)
    assert "### Privacy unit: row" in text and "### Privacy unit: user" in text


def test_data_is_what_the_policy_says(tmp_path: Path) -> None:
    database = build(tmp_path, 3_000)
    assert build(tmp_path, 3_000) == database
    with duckdb.connect(str(database), read_only=True) as connection:
        rows, regions, days, amounts = connection.execute(
            "SELECT count(*), count(DISTINCT region), count(DISTINCT day), count(amount) FROM purchases"
        ).fetchall()[0]
        ((most,),) = connection.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM purchases GROUP BY user_id)"
        ).fetchall()
    assert (rows, regions, days) == (3_000, REGIONS, DAYS) and 2_800 < amounts < 3_000
    assert most > MAX_ROWS, "the bound must cut somebody off"
    for level in ("row", "user"):
        policy = load_policy(write_policy(tmp_path, database, level))
        assert (policy.privacy_unit is None) == (level == "row")
        assert policy.tables["purchases"].columns["merchant"].domain is None and MERCHANTS == 10_000


def test_stopwatch_is_taken_off_again() -> None:
    before = dpsql.session.perturb
    with stopwatch() as watch:
        assert dpsql.session.perturb is not before
        inner = watch.step("inner", lambda: 1)
        watch.time(lambda: [inner(), inner()])
    assert dpsql.session.perturb is before
    assert set(watch.samples[0]) == {"inner", "session"}
    assert watch.samples[0]["session"] >= 0
    assert "total" in watch.medians()


def test_no_numbers_no_tables() -> None:
    assert "|" not in markdown("python -m benchmarks", [], [])
