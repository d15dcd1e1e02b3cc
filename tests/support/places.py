"""Folders that tests read from: the repository, its tests, and the policies that ship."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dpsql.policy import Policy

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
POLICIES = ROOT / "schemas" / "policies"
CLINIC = (POLICIES / "clinic.yaml").read_text(encoding="utf-8").split("\n", 2)[2]
"""A small valid policy; each test changes one part of it."""
_BY_ROW = {
    "dataset: hospital": "dataset: hospital_rows",
    "privacy_unit: {table: patients, column: patient_id}": "privacy_unit: row",
    "hospital-ledger.db": "hospital-rows-ledger.db",
    "max_rows: 20": "max_rows: 1",
    "max_rows: 12": "max_rows: 1",
}


def policy(name: str) -> "Policy":
    """Return the policy of this name in schemas/policies, or `hospital_rows`: the hospital where every row is somebody else."""
    from dpsql.policy import parse_policy  # the process that tests of a copied package are forked from has no package

    text = (POLICIES / f"{name.removesuffix('_rows')}.yaml").read_text(encoding="utf-8")
    for old, new in _BY_ROW.items() if name == "hospital_rows" else ():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return parse_policy(text, f"{name}.yaml", POLICIES)
