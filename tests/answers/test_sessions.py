"""Sequences of queries: answers from stored releases equal noiseless measurements, prices equal EXPLAIN's, and every outcome is
an answer or a refusal."""

import json
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.conftest import examples
from support.gates import NoiselessGate
from support.random_sessions import RandomTable, SessionQuestions

from dpsql.engine.duckdb.engine import open_duckdb
from dpsql.errors.exceptions import REGISTER, Error, Refusal
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import NoisyAnswer
from dpsql.policy import load_policy
from dpsql.pricing.pricing import PricedBlock
from dpsql.reuse.derive import derive
from dpsql.reuse.disjoint_sums import DisjointSums
from dpsql.reuse.lookup import StoredReleases
from dpsql.reuse.record import Stored, description, opened, packed
from dpsql.reuse.store import ReleaseNote, StoredRelease, open_releases
from dpsql.session.session import Session

QUESTIONS, STATEMENTS = 40, 30
Numbers = dict[str, list[Any]]
"""The numbers of each term, in the order of the groups."""


@contextmanager
def session_over(table: RandomTable, seed: int, folder: Path) -> Iterator[Session]:
    """Yield a noiseless session in which keys of a single privacy unit appear."""
    path = folder / f"sessions{seed}.yaml"
    path.write_text(json.dumps(table.policy(seed)))
    policy = load_policy(path)
    policy = replace(policy, ledger=f"sqlite:///{folder}/sessions{seed}.db")
    ledger = open_ledger(policy.ledger_url(), policy.dataset, create=True)
    session = Session(
        policy, open_duckdb(policy, table.connection()), ledger, open_releases(ledger), gate=NoiselessGate(1)
    )
    with session:
        yield session


class Measurements:
    """All blocks that sessions measured, and the sums from which derived answers are computed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks: list[tuple[str, str, PricedBlock, NoisyAnswer]] = []
        self.sums: list[DisjointSums] = []
        self.sql = ""
        keep, released = StoredReleases.keep, DisjointSums.released

        def noted_keep(releases: Any, planned: Any, index: int, noisy: NoisyAnswer, **facts: Any) -> Any:
            family = releases._names(planned, index, facts["version"]).family
            self.blocks.append((self.sql, family, planned.price.blocks[index], noisy))
            return keep(releases, planned, index, noisy, **facts)

        def noted_released(sums: DisjointSums, confidence: float) -> Any:
            self.sums.append(sums)
            return released(sums, confidence)

        monkeypatch.setattr(StoredReleases, "keep", noted_keep)
        monkeypatch.setattr(DisjointSums, "released", noted_released)

    def derived(self, priced: PricedBlock, stored: Stored) -> Numbers | None:
        """Return the numbers of a block as derived from a stored release, or None if it cannot answer the block."""
        if derive(priced, stored, 0.95) is None:
            return None
        sums = self.sums[-1]
        numbers = {name: _weighted(parts) for name, parts in sums.sums.items()}
        return numbers | {number.name: np.asarray(number.values).tolist() for number in sums.numbers}


def _weighted(parts: list[tuple[Fraction, Any]]) -> list[float]:
    return list(sum(float(weight) * np.asarray(term.values, dtype=float) for weight, term in parts))


def measured(noisy: NoisyAnswer) -> Numbers:
    """Return the numbers of a measured block."""
    return {term.name: np.asarray(term.values).tolist() for term in noisy.terms}


def as_stored(priced: PricedBlock, noisy: NoisyAnswer) -> Stored:
    """Return a measured block in the form in which the store returns it."""
    facts = {"receipt": "r", "loss": "", "analyst": "owner", **description(priced)}
    stored = opened(StoredRelease(ReleaseNote("key", "", "", json.loads(json.dumps(facts))), packed(noisy)))
    assert stored is not None
    return stored


def agree(wanted: list[Any], numbers: list[Any], chosen: bool) -> bool:
    """Return whether numbers equal the measured ones: choices exactly, sums up to the grids on which reals are rounded."""
    if chosen or len(wanted) != len(numbers):
        return wanted == numbers
    return bool(np.allclose(np.asarray(numbers, dtype=float), np.asarray(wanted, dtype=float), rtol=3e-4, atol=3e-4))


def test_what_follows_from_a_stored_release_is_what_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every block of a session is derived from every one of its releases that can answer it."""
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    answered = 0
    for seed, (name, source) in enumerate(examples("sessions/derived", 4)):
        measurements, table = Measurements(monkeypatch), RandomTable(source.randrange(2**32))
        with session_over(table, seed, tmp_path) as session:
            _measure(session, SessionQuestions(source, table.columns), measurements)
        stored = [as_stored(priced, noisy) for _, _, priced, noisy in measurements.blocks]
        for sql, family, priced, noisy in measurements.blocks:
            wanted = measured(noisy)
            counted = {term.name for term in priced.block.terms}
            for release, (other, its_family, _, _) in zip(stored, measurements.blocks, strict=True):
                numbers = measurements.derived(priced, release) if its_family == family else None
                for term, values in (numbers or {}).items():
                    if term in wanted:  # quantile ends derived from counts of each value differ
                        assert agree(wanted[term], values, term not in counted), (name, other, sql, term)
                answered += numbers is not None and other != sql
        monkeypatch.undo()
        monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    assert answered > 20


def _measure(session: Session, questions: SessionQuestions, measurements: Measurements) -> None:
    session.execute("SET dp.reuse = off")
    for _ in range(QUESTIONS):
        measurements.sql = questions.setting() if questions.random.random() < 0.15 else questions.question()
        try:
            session.execute(measurements.sql)
        except Refusal as refusal:
            assert not refusal.charged, refusal.text()


def test_sessions_end_in_answers_and_refusals_at_the_price_of_explain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path / "state"))
    seen: Counter[str] = Counter()
    for seed, (name, source) in enumerate(examples("sessions/prices", 4)):
        table = RandomTable(source.randrange(2**32))
        with session_over(table, seed, tmp_path) as session:
            session.execute("SET dp.reuse = derive")
            questions = SessionQuestions(source, table.columns)
            for _ in range(STATEMENTS):
                seen[_asked(session, questions, source, name)] += 1
    assert min(seen["measured"], seen["from the store"]) > 5, seen


def _asked(session: Session, questions: SessionQuestions, source: random.Random, name: str) -> str:
    """Run one query or set one option, check the outcome, and return it."""
    if source.random() < 0.2:
        _set(session, questions)
        return "set"
    sql = questions.question()
    before = spent(session)
    try:
        plan = session.explain(sql)
    except Error as refusal:
        with pytest.raises(Refusal) as again:
            session.execute(sql)
        assert again.value.slug == refusal.slug in REGISTER and spent(session) == before, (name, sql, refusal.text())
        return "refused"
    release = session.execute(sql)
    charged = {key: amount - before.get(key, 0) for key, amount in spent(session).items()}
    assert release.receipt.loss == plan.charged, (name, sql)
    assert {key: amount for key, amount in charged.items() if amount} == {
        key: amount for key, amount in session.planner.accountant.units(plan.charged).items() if amount
    }, (name, sql)
    assert [(column.name, column.type.value) for column in release.columns] == list(plan.columns), (name, sql)
    return "from the store" if release.reused else "measured"


def _set(session: Session, questions: SessionQuestions) -> None:
    try:
        session.execute(questions.setting())
    except Refusal as refusal:
        assert refusal.slug in ("clip_rows", "values_rows"), refusal.text()


def spent(session: Session) -> dict[str, int]:
    """Return what the dataset's account has spent, in ledger units."""
    account = session.ledger.accounts().get("dataset")
    return {} if account is None else dict(account.spent)
