"""`dpsql risk` from the owner's view."""

from __future__ import annotations

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
