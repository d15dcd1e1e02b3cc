"""`dpsql watch` and `connection.watch` from a user's view."""

from pathlib import Path

import pytest
from support.clinic_folder import Clinic

import dpsql
from dpsql.frontends.cli import status_of

FILE = """-- above at once, then never
SELECT COUNT(*) FROM patients;
SELECT COUNT(*) FROM patients WHERE region = 'north' AND age > 1000;
SELECT SUM(age) FROM patients WHERE age > 1000;
"""


@pytest.fixture
def statements(clinic: Clinic) -> Path:
    file = clinic.folder / "alarms.sql"
    file.write_text(FILE)
    return file


def run(clinic: Clinic, file: Path, *words: str) -> int:
    return status_of(["watch", str(file), "-p", str(clinic.policy), "--epsilon", "0.5", *words])


def test_a_file_is_compared_until_all_runs_are_over(
    clinic: Clinic, statements: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(clinic, statements, "--threshold", "-100000", "--hits", "2", "--values") == 0
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["above", "above"] and "+/-" in out
    assert all(line.count("\t") == 2 for line in out.splitlines())
    assert "a run costs epsilon 0.5" in err and "no other may begin" in err
    assert clinic.charges() == 2


def test_a_watch_that_was_over_stays_over(clinic: Clinic, statements: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(clinic, statements, "--threshold", "-100000") == 0
    assert run(clinic, statements, "--threshold", "-100000") == 1
    assert "watch_over" in capsys.readouterr().err
    assert run(clinic, statements, "--threshold", "-100000", "--name", "another") == 0
    assert clinic.charges() == 2


def test_statements_that_cannot_be_compared_are_told_before_anything_is_charged(
    clinic: Clinic, statements: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statements.write_text(FILE + "SELECT AVG(age) FROM patients;\nSELECT COUNT(*) FROM patient;\n")
    assert run(clinic, statements, "--threshold", "5") == 1
    err = capsys.readouterr().err
    assert "alarms.sql:5: 0A000 watch_question" in err and "alarms.sql:6: 42P01" in err and "2 of the statements" in err
    assert clinic.charges() == 0


def test_a_batch_refuses_to_compare(clinic: Clinic, statements: Path, capsys: pytest.CaptureFixture[str]) -> None:
    statements.write_text("SET dp.threshold = 5;\nSELECT COUNT(*) FROM patients;\n")
    out = str(clinic.folder / "out")
    assert status_of(["run", str(statements), "-p", str(clinic.policy), "--out", out]) == 1
    assert "batch_watch" in capsys.readouterr().err and clinic.charges() == 0


def test_python_watches_questions_with_parameters(clinic: Clinic) -> None:
    with dpsql.connect(clinic.policy) as connection:
        watch = connection.watch(-1000, hits=2, name="python", questions=["SELECT SUM(age) FROM patients"])
        below = watch.ask("SELECT COUNT(*) FROM patients WHERE age > ?", (30,), threshold=10**9)
        assert (below.above, below.value, below.under_way, below.runs_left) == (False, None, True, 1)
        assert watch.explain("SELECT COUNT(*) FROM patients").price == "nothing"
        above = watch.ask("SELECT SUM(age) FROM patients", threshold=-(10**9))
        assert above.above and above.value is not None and above.error is not None
        assert abs(above.value - 14850) < 20 * above.error
        assert connection.options["dp.threshold"] == "none", "other questions are answered as before"
        assert connection.execute("SELECT COUNT(*) FROM patients").fetchall()[0][0] > 100
