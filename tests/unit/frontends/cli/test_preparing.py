"""A server keeps prepared copies up to date if the policy requests it, and does not tell anyone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from support.clinic_folder import BUILD, POLICY

from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.registry import open_engine
from dpsql.frontends.cli.preparing import keep_prepared
from dpsql.ledger import open_ledger
from dpsql.policy import Policy, load_policy

PATIENCE_SECONDS = 300.0


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("DPSQL_CACHE", str(tmp_path / "cache"))
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute(BUILD)
    policy = tmp_path / "clinic.yaml"
    policy.write_text(f"{POLICY}prepare: auto\n")
    return policy


async def until(
    place: Path, policy: Policy, key: bytes, reached: Callable[[ContributionIndex], bool], between: Callable[[], None]
) -> bool:
    """Return whether `reached` becomes true while copies are kept up to date, and again after `between`."""
    engine = open_engine(policy)
    index = ContributionIndex(policy, engine, lambda: key)
    task = asyncio.create_task(keep_prepared(lambda: policy, lambda: engine, lambda: key, place, 0.05, 0.05))
    results = []
    try:
        for act in (between, None):
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not reached(index) and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            results.append(reached(index))
            if act is not None:
                act()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        engine.close()
    return all(results)


def test_copies_are_made_and_made_again_when_the_data_change(place: Path) -> None:
    policy = load_policy(place)
    with open_ledger(policy.ledger_url(), policy.dataset, create=True) as ledger:
        key = ledger.witness.key

    def change() -> None:
        with duckdb.connect(str(place.parent / "new.duckdb")) as connection:
            connection.execute(BUILD)
            connection.execute("INSERT INTO numbers SELECT 1, 1 FROM range(200)")
        (place.parent / "new.duckdb").rename(place.parent / "clinic.duckdb")

    def copied(index: ContributionIndex) -> bool:
        return index.unprepared() == ()

    assert asyncio.run(until(place, policy, key, copied, change))
    copies = [file for file in (place.parent / "cache").rglob("*") if file.suffix == ".duckdb"]
    assert len(copies) == 1  # numbers has too many rows of a person; before the change, the source was its own view


def test_nothing_is_prepared_unless_the_policy_says_so(place: Path) -> None:
    policy = load_policy(place)
    manual = replace(policy, prepare=replace(policy.prepare, automatic=False))
    with open_ledger(policy.ledger_url(), policy.dataset, create=True) as ledger:
        key = ledger.witness.key
    looked = 0

    def looked_often(index: ContributionIndex) -> bool:
        nonlocal looked
        looked += 1
        assert index.unprepared() == ("patients", "numbers")
        return looked > 20

    assert asyncio.run(until(place, manual, key, looked_often, lambda: None))
    assert not (place.parent / "cache").exists()
