"""Everything observable of each query is the same on D' and on the empty database: outcome, price, plan, columns, engine SQL.

D' has one unit more than D. By day each query is asked here or in `test_replay.py`, which compares D with D' and how far sums move,
and at night in both. For refused queries, `sql/test_refused.py` checks it (`test_each_refusal_has_its_words_and_place_whatever_the_data`).
"""

from functools import lru_cache

import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_traits import SPREAD
from support.effort import by_day
from support.neighbouring_hospitals import FIXED, PUBLIC, crowd, together, unit
from support.places import policy
from support.recording_session import World

from dpsql_audit.observation import RecordingGate


@lru_cache(maxsize=1)
def worlds() -> list[World]:
    """Return worlds that share nothing, not even a planner."""
    found = []
    for data in (together(crowd(), unit(FIXED[3], 900), seed=5), {**PUBLIC}):
        found.append(World(policy("hospital")))
        found[-1].load(data)
    return found


def seen(world: World, case: Case) -> tuple[object, ...]:
    """Return everything observable except the noisy numbers and, for private keys, the rows."""
    with world.options(case.marks.get("set", [])):
        observed = world.observe(case.sql, case.parameters)
        outcome = observed.outcome
        asks = outcome == "answered" and world.session.planner.parse(case.sql, case.parameters).query is not None
        plan = world.session.explain(case.sql, case.parameters) if asks else None
        later = 0 if plan is None else len(plan.engine_sql) - sum("measured after" in note for note in plan.notes)
    assert isinstance(world.gate, RecordingGate)
    cells = [block.keys for block in observed.blocks if block.public]
    private = any(not block.public for block in observed.blocks)
    shown = None if private else observed.answer
    # The SQL of a block over released private keys depends on these keys.
    asked = observed.engine_sql if not private or not later else observed.engine_sql[:later]
    priced = (
        None if plan is None else (plan.outputs, plan.loss, plan.charged, plan.columns, plan.engine_sql, plan.remaining)
    )
    return (outcome, observed.columns, asked, observed.charges, cells, shown, priced)


@pytest.mark.parametrize(
    "case", by_day([case for case in ACCEPTED if case not in SPREAD], ACCEPTED), ids=lambda case: case.id
)
def test_outcomes_do_not_depend_on_data(case: Case) -> None:
    """By day of the queries that `test_replay.py` does not compare then."""
    here, empty = (seen(world, case) for world in worlds())
    assert here == empty


def test_statements_about_the_session_do_not_depend_on_data() -> None:
    """The catalog, options and budget are answered from policy and ledger alone."""
    for sql in (
        "SHOW TABLES",
        "DESCRIBE visits",
        "SHOW dp.epsilon",
        "SHOW dp.budget",
        "BEGIN",
        "EXPLAIN SELECT AVG(cost) FROM visits",
    ):
        answers = {world.observe(sql).answer for world in worlds()}
        assert len(answers) == 1
        assert all(world.engine.queries == [] and world.ledger.charges == [] for world in worlds())


def test_a_broken_promise_about_rows_of_people_stays_charged() -> None:
    """What the data decide is seen after the charge: whether a promise about people is kept costs what the question costs."""
    world = World(policy("hospital"))
    data = together(crowd(), unit(FIXED[3], 900))
    world.load({**data, "visits": data["visits"] * 2})
    observed = world.observe("SELECT COUNT(*) FROM labs JOIN visits USING (visit_id)")
    assert observed.outcome.startswith("55000 promise_broken")
    assert observed.charged and observed.blocks == []


def test_a_broken_promise_about_public_rows_gives_no_answer() -> None:
    """Stability is computed from `primary_key`: if public rows violate it, nothing is charged and nothing is released."""
    world = World(policy("hospital"))
    world.load({**together(crowd(), {}), "regions": PUBLIC["regions"] * 2})
    observed = world.observe("SELECT COUNT(*) FROM patients AS p JOIN regions AS r USING (region)")
    assert observed.outcome.startswith("55000 promise_broken")
    assert not observed.charged and observed.blocks == [] and observed.engine_sql == []


def test_a_broken_promise_about_the_first_rows_of_a_public_table_gives_no_answer() -> None:
    world = World(policy("hospital"))
    world.load({**together(crowd(), {}), "regions": PUBLIC["regions"] * 2})
    regions = "(SELECT * FROM regions ORDER BY population DESC LIMIT 3)"
    observed = world.observe(f"SELECT COUNT(*) FROM patients AS p JOIN {regions} AS r USING (region)")
    assert observed.outcome.startswith("55000 promise_broken")
    assert observed.blocks == [] and observed.engine_sql == []


def test_a_public_table_that_has_grown_since_it_was_read_gives_no_answer() -> None:
    """Every protected row is joined with all rows of the public table, whose number determines the sensitivity."""
    world = World(policy("hospital"))
    world.load(together(crowd(), {}))
    question = "SELECT COUNT(*) FROM patients CROSS JOIN regions"
    world.session.explain(question)
    world.connection.execute("INSERT INTO regions SELECT region || '2', zone, population FROM regions")
    observed = world.observe(question)
    assert observed.outcome.startswith("55000 data_changed")
    assert not observed.charged and observed.blocks == [] and observed.engine_sql == []
