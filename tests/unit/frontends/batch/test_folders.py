"""`dpsql run` over folders: names of results, refused statements that stop only themselves, error bars, a summary."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.clinic_folder import Clinic, Outcome

from dpsql.frontends.batch.statements import name_before, name_problem

Run = Callable[..., Outcome]
COUNT = "SELECT COUNT(*) AS n FROM patients"


def run(*arguments: str) -> tuple[str, ...]:
    return ("run", "-p", "clinic.yaml", "--out", "out", *arguments)


def results() -> list[str]:
    return sorted(path.name for path in Path("out").glob("*.csv"))


def summary(outcome: Outcome) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(outcome.out)
    assert read["status"] == outcome.status
    return read


@pytest.mark.parametrize("name", ["../a", "a b", "a.csv", "run", "RUN", ".hidden", "-f", "é", "x" * 101])
def test_a_name_that_is_no_plain_file_name_is_refused(clinic: Clinic, dpsql: Run, name: str) -> None:
    assert name_before(f"-- name: {name}\nSELECT", 0, 200) == name and name_problem(name)
    Path("n.sql").write_text(f"-- name: {name}\n{COUNT}")
    outcome = dpsql(*run("n.sql", "-f", "json"))
    assert outcome.status == 1 and "42602 batch_name" in outcome.err and clinic.charges() == 0


def test_what_reads_stops_only_itself_in_every_spelling(clinic: Clinic, dpsql: Run) -> None:
    reading = (
        "select ghost", "(SELECT ghost)", "With x AS (SELECT ghost) SELECT 1 FROM x", "FROM ghost", "VALUES (ghost)", "TABLE ghost",
        "EXPLAIN SELECT ghost", "SHOW ghost", "DESCRIBE ghost",
    )  # fmt: skip
    Path("n.sql").write_text(";\n".join((*reading, COUNT)))
    outcome = dpsql(*run("n.sql", "--keep-going"))
    assert outcome.status == 1 and outcome.err.count("nothing was charged") == len(reading), outcome.err
    assert results() == ["n-10.csv"] and clinic.charges() == 1


def test_the_summary_says_what_became_of_each_statement(clinic: Clinic, dpsql: Run) -> None:
    Path("n.sql").write_text(f"-- name: all\n{COUNT};\nSELECT nope FROM patients;")
    dry = summary(dpsql(*run("n.sql", "--keep-going", "--json", "--dry-run")))
    assert dry["dry_run"] and [entry["state"] for entry in dry["statements"]] == ["priced", "refused"]
    assert not Path("out").exists()
    first = summary(dpsql(*run("n.sql", "--keep-going", "--json")))
    answered, refused = first["statements"]
    assert answered == {
        "place": "n.sql:2", "state": "answered", "result": "all.csv", "price": dry["price"],
        "receipt": json.loads(Path("out/all.meta.json").read_text())["receipt"], "error": None,
    }  # fmt: skip
    assert refused["error"]["slug"] == "unknown_column" and refused["place"] == "n.sql:3"
    assert first["error"] is None and first["left"] != dry["left"] and first["dataset"] == "clinic"
    second = summary(dpsql(*run("n.sql", "--keep-going", "--json")))
    assert second["statements"][0]["state"] == "earlier" and second["price"] != first["price"]


def test_a_run_without_a_question_says_so(clinic: Clinic, dpsql: Run) -> None:
    Path("none.sql").write_text("-- nothing yet\n;\n")
    Path("set.sql").write_text("SET dp.epsilon = 0.5")
    Path("some.sql").write_text("SELECT COUNT(*) FROM patients")
    for files, is_said in ((["none.sql"], True), (["none.sql", "set.sql"], True), (["none.sql", "some.sql"], False)):
        outcome = dpsql("run", "-p", "clinic.yaml", "--out", "out", "--dry-run", *files)
        assert outcome.status == 0 and ("no statement of the files asks anything" in outcome.err) == is_said
