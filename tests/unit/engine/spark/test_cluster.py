"""Spark with separate executors: queries are answered as in one process, and killing an executor while a query runs costs at most
that query, once."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.places import TESTS
from support.spark_source import JAVA_OPTIONS, needs_spark

pytestmark = pytest.mark.slow
PATIENCE_SECONDS = 900
PROGRAM = TESTS / "support" / "spark_cluster.py"


def outcome_with(folder: Path, attempts: int) -> dict[str, Any]:
    """Return the outcome in an application of two executors in which a task has this many attempts. It runs in a separate
    process, because a process has only one application."""
    needs_spark()
    settings = [f"spark.task.maxFailures {attempts}", "spark.sql.shuffle.partitions 4"]
    settings += [f"spark.{process}.extraJavaOptions {JAVA_OPTIONS}" for process in ("driver", "executor")]
    (folder / "spark-defaults.conf").write_text("\n".join(settings) + "\n")
    environment = {
        **os.environ, "DPSQL_STATE": str(folder / "state"), "PYTHONPATH": str(TESTS), "SPARK_CONF_DIR": str(folder),
        "PYTHONWARNINGS": "ignore",
    }  # fmt: skip
    finished = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder)], env=environment, capture_output=True, text=True,
        timeout=PATIENCE_SECONDS, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    said: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return {**said, "stderr": finished.stderr}


def test_a_question_outlives_an_executor_that_is_killed(tmp_path: Path) -> None:
    """Spark runs the tasks again; the answer is over all rows and charged once. The start prints nothing."""
    outcome = outcome_with(tmp_path, 4)
    assert (outcome["stderr"], outcome["most"]) == ("", "0")  # no size limit fails a charged answer
    assert (outcome["executors"], outcome["killed"], outcome["charged"]) == (2, True, 1)
    assert outcome["undisturbed"] == outcome["disturbed"] == outcome["afterwards"] == outcome["expected"]


@pytest.mark.nightly
def test_a_question_that_may_not_be_tried_again_fails_and_is_charged_once(tmp_path: Path) -> None:
    """The settings forbid a second attempt. No partial answer is released, and the next query is answered."""
    outcome = outcome_with(tmp_path, 1)
    assert (outcome["killed"], outcome["slug"], outcome["charged"]) == (True, "engine_failed", 1)
    assert "disturbed" not in outcome and outcome["afterwards"] == outcome["expected"]
