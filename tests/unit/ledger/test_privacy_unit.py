"""A ledger with charges keeps its privacy unit, unless the owner orders otherwise, which is recorded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.clinic import build

from dpsql.errors.exceptions import Fault
from dpsql.frontends.admin.check import check_policy_file
from dpsql.frontends.cli import status_of
from dpsql.session.session import open_session

COUNT = "SELECT COUNT(*) FROM patients"
UNIT = "privacy_unit: {table: patients, column: patient_id}"


def to_rows(text: str) -> str:
    """Return the policy under row privacy: the same table, in which each row is a separate unit."""
    return (
        text.replace(UNIT, "privacy_unit: row")
        .replace("    max_rows: 1\n", "")
        .replace("    max_rows: 5\n", "")
        .replace("    foreign_keys: {patient_id: patients.patient_id}\n    columns: {cost", "    columns: {cost")
    )


def to_change_one(text: str) -> str:
    return "neighbours: change_one\n" + text


def to_visits(text: str) -> str:
    """Return the policy with another column as the privacy unit."""
    return text.replace(UNIT, "privacy_unit: {table: patients, column: region}").replace(
        "primary_key: [patient_id]", "unique: [[patient_id]]"
    )


CHANGES = [to_rows, to_change_one, to_visits]
Change = Callable[[str], str]


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return build(tmp_path)


def change(policy: Path, rewrite: Change) -> None:
    before = policy.read_text()
    policy.write_text(rewrite(before))
    assert policy.read_text() != before


@pytest.mark.parametrize("rewrite", CHANGES)
def test_a_used_ledger_keeps_its_unit(policy: Path, rewrite: Change) -> None:
    with open_session(policy, create_ledger=True) as session:
        session.execute(COUNT)
    change(policy, rewrite)
    with pytest.raises(Fault) as caught:
        open_session(policy)
    assert caught.value.slug == "ledger_unit"
    assert not caught.value.charged
    checked = check_policy_file(policy)
    assert checked.status != 0
    assert "--change-unit" in checked.problems[0]


@pytest.mark.parametrize("rewrite", CHANGES)
def test_the_owner_changes_it_once_and_that_is_recorded(policy: Path, rewrite: Change) -> None:
    with open_session(policy, create_ledger=True) as session:
        session.execute(COUNT)
    change(policy, rewrite)
    assert status_of(["check", str(policy), "--change-unit"]) == 0
    with open_session(policy) as session:
        units = [entry.facts["unit"] for entry in session.ledger.history() if entry.kind == "unit"]
        assert units[0] == "patients.patient_id, add_remove"
        assert units[1:] == [session.policy.unit_words]
        assert session.budget().spent["dataset"]["epsilon"] == "1"
        assert session.ledger.verify().sound


def test_a_ledger_without_charges_takes_any_unit(policy: Path) -> None:
    open_session(policy, create_ledger=True).close()
    change(policy, to_rows)
    with open_session(policy) as session:
        session.execute(COUNT)
        assert [entry.facts["unit"] for entry in session.ledger.history() if entry.kind == "unit"][
            -1
        ] == "row, add_remove"


def test_sessions_of_one_unit_write_it_once(policy: Path) -> None:
    for _ in range(3):
        with open_session(policy, create_ledger=True) as session:
            session.execute(COUNT)
    with open_session(policy) as session:
        assert sum(entry.kind == "unit" for entry in session.ledger.history()) == 1
