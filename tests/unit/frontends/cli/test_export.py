"""`dpsql export` and `dpsql estimate` from a user's view."""

import json
from pathlib import Path

import pytest
from support.clinic_folder import Clinic

from dpsql.frontends.cli import status_of


def run(clinic: Clinic, *words: str) -> int:
    return status_of(["export", "-p", str(clinic.policy), *words])


def test_price_and_errors_are_shown_for_free(clinic: Clinic, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(clinic, "patients", "--columns", "region,age", "--epsilon", "0.8", "--explain") == 0
    out, err = capsys.readouterr()
    assert out == "" and clinic.charges() == 0
    assert "region: one of 2 values, epsilon 0.4; a count among n rows +/- " in err
    assert "price: epsilon 0.88" in err and "number of rows: +/- 37 (95 %)" in err


def test_an_export_is_charged_once_and_estimated_for_free(
    clinic: Clinic, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = tmp_path / "rows.parquet"
    assert run(clinic, "patients", "--columns", "region, age", "--epsilon", "0.9", "-o", str(place)) == 0
    assert "charged: epsilon 0.99" in capsys.readouterr().err
    assert clinic.spent() == 99 * 10**16
    sql = "SELECT region, COUNT(*) AS n, AVG(age) FROM patients GROUP BY region"
    assert status_of(["estimate", str(place), sql, "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["region"] for row in rows] == ["north", "south"]
    assert all(row["n_low"] < row["n"] < row["n_high"] and 0 <= row["avg_low"] <= row["avg"] for row in rows)
    assert status_of(["estimate", str(place), sql, "--confidence", "0.5"]) == 0
    assert "n_low" in capsys.readouterr().out and clinic.charges() == 1


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("patients", "--columns", "region", "--epsilon", "0"), 2, "'0' is not a number above 0"),
        (("patients", "--columns", "region", "--epsilon", "nan"), 2, "is not a number above 0"),
        (("patients", "--columns", ",", "--epsilon", "1"), 1, "1 to 64 columns"),
        (("patients", "--columns", "regoin", "--epsilon", "1"), 1, "did you mean region?"),
        (("patients", "--columns", "patient_id", "--epsilon", "1"), 1, "never exported"),
        (("patients", "--columns", "income", "--epsilon", "1"), 1, "neither bounds nor a list of values"),
        (("patients", "--columns", "region", "--epsilon", "1.5"), 1, "more than the owner allows (epsilon 1)"),
        (("patients", "--columns", "region", "--epsilon", "0.5", "-o", "x.txt"), 2, "neither .parquet nor .csv"),
    ],
)
def test_refusals_charge_nothing_and_say_so(
    clinic: Clinic, words: tuple[str, ...], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(clinic, *words) == status
    out, err = capsys.readouterr()
    assert out == "" and sentence in err and clinic.charges() == 0
    assert "Traceback" not in err


def test_a_second_export_to_the_same_file_is_refused_uncharged(
    clinic: Clinic, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("patients", "--columns", "region", "--epsilon", "0.5", "-o", str(tmp_path / "rows.csv"))
    assert run(clinic, *words) == 0
    assert run(clinic, *words) == 2
    assert "exists already" in capsys.readouterr().err and clinic.charges() == 1
