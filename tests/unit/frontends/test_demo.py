"""The first minute: the demo answers at both levels, and repeats answers from the same ledger without charge."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from support.clinic_folder import Clinic, Outcome

from dpsql.ledger import open_ledger
from dpsql.policy import load_policy

Run = Callable[..., Outcome]


def spent(name: str) -> int:
    policy = load_policy(Path("demo") / name)
    with open_ledger(policy.ledger_url(), policy.dataset) as ledger:
        return ledger.spent()["rho"]


def test_demo_answers_and_repeats_for_free(bare_clinic: Clinic, dpsql: Run) -> None:
    first = dpsql("demo", "demo")
    assert first.status == 0, first.err
    assert first.out.count("±") > 20 and first.err.count("price: ") == 5 and first.err.count("left: ") == 5
    paid = spent("nafld.yaml"), spent("nafld_rows.yaml")
    assert paid[0] > 0 and paid[1] > 0
    hdl = [float(found) for found in re.findall(r"^(\d\d\.\d+) ± ", first.out, re.MULTILINE)]
    assert len(hdl) == 2 and all(45 < value < 56 for value in hdl), "at patient and at row level"
    again = dpsql("demo", "demo")
    assert again.status == 0 and again.out == first.out and again.err.count("answered from stored releases") == 5
    assert (spent("nafld.yaml"), spent("nafld_rows.yaml")) == paid
    for command in re.findall(r"^  dpsql (query|explain) -p (\S+) \"([^\"]+)\"", again.err, re.MULTILINE):
        status = dpsql(command[0], "-p", command[1], command[2]).status
        assert status == (1 if "*" in command[2] else 0), "what it says to try works"


def test_a_demo_whose_ledger_is_gone_does_not_start_anew(bare_clinic: Clinic, dpsql: Run) -> None:
    assert dpsql("demo", "demo").status == 0
    for file in Path("demo").glob("nafld-ledger.db*"):
        file.unlink()
    outcome = dpsql("demo", "demo")
    assert outcome.status == 4 and "gone or empty" in outcome.err and not Path("demo/nafld-ledger.db").exists()
