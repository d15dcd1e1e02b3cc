"""`dpsql risk` from the owner's view."""

from __future__ import annotations

import json

import pytest
from support.clinic_folder import Clinic

from dpsql.frontends.cli import status_of


def run(clinic: Clinic, *words: str) -> int:
    return status_of(["risk", "-p", str(clinic.policy), *words])


def test_risk_needs_no_ledger_and_charges_nothing(bare_clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(bare_clinic, "patients", "--columns", "region,age", "--sensitive", "smokes", "--k", "2") == 0
    out, err = capsys.readouterr()
    assert "k-anonymity:" in out and "smokes" in out and "Coarser values" in out
    assert "for the data's owner alone" in err and "owner alone" not in out
    assert not (bare_clinic.folder / "clinic-ledger.db").exists()


def test_risk_as_json_has_every_figure(bare_clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(bare_clinic, "patients", "--columns", "region", "--k", "2", "-f", "json") == 0
    written = json.loads(capsys.readouterr().out)
    assert written["persons"] == sum(persons for _, persons in written["sizes"]["persons_by_size"])
    assert written["k"] == min(size for size, _ in written["sizes"]["persons_by_size"])
    assert {"diversity", "uniqueness", "generalisations", "average_risk", "ownerless"} <= set(written)


def test_an_unknown_column_is_told_with_those_that_there_are(
    bare_clinic: Clinic, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(bare_clinic, "patients", "--columns", "regoin") == 2
    assert "did you mean region?" in capsys.readouterr().err


def test_a_missing_source_is_told_without_a_traceback(bare_clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    (bare_clinic.folder / "clinic.duckdb").unlink()
    assert run(bare_clinic, "patients", "--columns", "region") == 4
    assert "Traceback" not in capsys.readouterr().err


def test_a_column_that_is_named_in_two_cases_is_one_column(
    bare_clinic: Clinic, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--sensitive", "smokes,SMOKES", "-f", "json")
    assert run(bare_clinic, "patients", "--columns", "region,REGION", *words) == 0
    written = json.loads(capsys.readouterr().out)
    assert (written["columns"], [entry["column"] for entry in written["diversity"]]) == (["region"], ["smokes"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--columns", " ,"), "--columns: it names no column"),
        (("--columns", "age,Region", "--sensitive", "region"), "--sensitive: region stands among --columns, too"),
        (("--columns", "age", "--k", "2", "--leave-out", "nan"), "not a finite number"),
    ],
)
def test_words_that_say_nothing_are_refused(
    bare_clinic: Clinic, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert run(bare_clinic, "patients", *words) == 2
    assert sentence in capsys.readouterr().err
