"""Every refusal has a query: its slug, SQLSTATE and caret; the text says nothing of the data, which is not touched."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest
from audit.hospital import FIXED, Data, crowd, policy, together, unit
from audit.world import World
from sql.corpus import REFUSED, Case

import dpsql.refusals  # noqa: F401 (fills the register)
from dpsql.errors import REGISTER, Error

NOT_BY_A_QUERY = {
    "the policy, or where it says data and ledger are": r"policy_.*|analyst_unknown|accountant_budget|no_max_rows|source_.*|init_.*|demo_.*",
    "the budget and the ledger (tests/ledger, tests/session)": r"budget_exceeded|request_repeated|ledger_.*|release.*|promise_broken",
    "after the charge: engine, gate, sandbox (tests/session, tests/noise, tests/release)":
        r"engine_failed|noise_guard|noise_plan|noise_answer|sandbox_(time|memory|rows|value|broken)|stopped|unexpected",
    "doors (tests/doors)": r"connection_closed|no_result|executemany|command_unknown|file_.*|text_unfinished|batch_.*|not_text|wire_.*",
    "our own mistakes": r"internal|price_disagrees|loss_infinite",
    "another rule answers instead: the threshold where the table would be too long": r"selection_epsilon",
    "words that nothing says": r"epsilon_limit|private_keys_above_distinct|remainder",
}  # fmt: skip


@lru_cache(maxsize=1)
def worlds() -> list[World]:
    """The crowd, the crowd with one person more, nobody."""
    found = []
    datasets: list[Data] = [together(crowd(), {}), together(crowd(), unit(FIXED[2], 900)), together({}, {})]
    for data in datasets:
        found.append(World(policy("hospital")))
        found[-1].load(data)
    return found


def test_every_slug_has_a_query() -> None:
    """A slug of the register is refused by a query here, or no query can raise it and the list above says why."""
    elsewhere = {slug for slug in REGISTER for why in NOT_BY_A_QUERY.values() if re.fullmatch(why, slug)}
    here = {case.group for case in REFUSED}
    assert set(REGISTER) - here - elsewhere == set(), "write tests/sql/refused/<slug>.sql"
    assert here & elsewhere == set()
    assert here - set(REGISTER) == set()


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_words(case: Case) -> None:
    world = worlds()[0]
    with world.options(case.marks.get("set", [])), pytest.raises(Error) as refusal:
        world.session.execute(case.sql, case.parameters)
    error = refusal.value
    assert (error.slug, error.sqlstate, error.charged) == (case.group, case.mark("sqlstate"), False)
    at = case.mark("at")
    if at is None:
        assert error.position is None
    else:
        assert error.position is not None
        assert case.sql[error.position - 1 :].startswith(at.encode("ascii").decode("unicode_escape"))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_before_data(case: Case) -> None:
    """One text for D, D' and no data at all; the engine was not asked and nothing was charged."""
    texts = set()
    for world in worlds():
        with world.options(case.marks.get("set", [])):
            observed = world.observe(case.sql, case.parameters)
        texts.add(observed.outcome)
        assert (observed.engine_sql, observed.charges, observed.blocks, observed.charged) == ([], [], [], False)
    assert len(texts) == 1
    assert texts.pop().endswith("nothing was charged")
