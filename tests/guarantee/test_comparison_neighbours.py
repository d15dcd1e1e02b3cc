"""Neighbour tests of comparisons: one unit moves the compared sum at most as far as claimed, and in the claimed direction."""

from dataclasses import replace

import pytest
from support.neighbouring_hospitals import FIXED, crowd, together, unit
from support.places import policy
from support.recording_session import World

from dpsql.privacy.loss import Neighbours
from dpsql.session.watches import watched

QUESTIONS = {
    "SELECT COUNT(*) FROM visits": 1,
    "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE cost > 10": 1,
    "SELECT COUNT(DISTINCT ward) FROM visits": 1,
    "SELECT SUM(cost) FROM visits": 1,
    "SELECT SUM(-cost) FROM visits": -1,
    "SELECT SUM(change) FROM visits": 0,
    "SELECT SUM(clamp(change, -50, -1)) FROM visits": -1,
    "SELECT SUM(DISTINCT nights) FROM visits": 1,
    "SELECT COUNT(*) FROM patients LEFT JOIN visits USING (patient_id)": 1,
    "SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.cost > 5)": 1,
    "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t WHERE n > 1": 1,
    "SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT region FROM patients) t": 1,
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward, cost FROM visits) t": 0,
}
"""Queries and the direction in which an added unit moves the compared sum; 0: no direction is claimed."""


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    """Return the crowd, and the crowd with each of some units."""
    opened = []
    for more in [{}, *(unit(profile, 900 + number) for number, profile in enumerate(FIXED[:8]))]:
        world = World(policy("hospital"))
        world.load(together(crowd(), more))
        opened.append(world)
    return opened


def compared_sum_of(world: World, sql: str) -> int:
    with world.options(["dp.threshold = 1000000000", f"dp.watch = question{list(QUESTIONS).index(sql)}"]):
        observed = world.observe(sql)
    assert observed.outcome == "answered" or observed.blocks, observed.outcome
    ((value,),) = [list(vector.values()) for vector in observed.blocks[-1].terms.values()]
    return value


@pytest.mark.parametrize("sql", QUESTIONS)
def test_one_unit_moves_a_compared_sum_within_the_claim_and_in_its_direction(worlds: list[World], sql: str) -> None:
    session = worlds[0].session
    compared = watched(session.context, session.plan(session.planner.parse(sql, None))).compared
    assert compared.direction == QUESTIONS[sql]
    without, *others = [compared_sum_of(world, sql) for world in worlds]
    moves = [value - without for value in others]
    assert any(moves), "no unit moves this question: it shows nothing"
    assert max(map(abs, moves)) <= compared.sensitivity.l1
    assert all(move * compared.direction >= 0 for move in moves)


def test_no_direction_is_claimed_where_units_are_replaced() -> None:
    world = World(replace(policy("hospital"), neighbours=Neighbours.CHANGE_ONE))
    session = world.session
    planned = session.plan(session.planner.parse("SELECT COUNT(*) FROM visits", None))
    assert watched(session.context, planned).compared.direction == 0
