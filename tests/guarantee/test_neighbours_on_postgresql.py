"""Deterministic replay on PostgreSQL: one query for each way in which rows are bounded, on pairs of neighbours.

A shorter version of tests/guarantee/test_replay.py: the inputs of the noise gate differ by no more than claimed, nothing else
that an analyst sees differs, and the pairs come near the claims.
"""

from collections.abc import Iterator

import pytest
from sql.corpus import ACCEPTED, Case
from support.corpus_neighbours import Hospital, weakest
from support.neighbouring_hospitals import Data, together
from support.postgres_source import Server, ServerWorld, server

from guarantee.test_replay import replay, wanted

__all__ = ["server"]
BY_ID = {case.id: case for case in ACCEPTED}
ENTITY = (
    "aggregates-count_rows_of_units", "aggregates-sum_real", "aggregates-correlation", "aggregates-sum_distinct", "clipping-sum",
    "clipping-with_caps", "private_keys-max_groups_and_rows", "public_keys-both_caps", "public_keys-max_groups",
    "windows-first_visit", "windows-first_three", "per_unit-cost_of_each", "clipping-gaussian", "value_places-public_keys",
    "value_places-real_values", "value_places-filter", "value_places-private_keys", "value_places-caps_besides",
    "value_places-beside_clips", "value_places-chosen_by_group",
)  # fmt: skip
ROWS = ("aggregates-sum_real", "private_keys-no_aggregate")


class ServedHospital(Hospital):
    """A hospital whose worlds are databases of the server."""

    def __init__(self, name: str, server: Server) -> None:
        self._server = server
        self.worlds: list[ServerWorld] = []
        super().__init__(name)

    def _world(self, base: Data, more: Data) -> ServerWorld:  # type: ignore[override]
        world = ServerWorld(self.policy, self._server.database(), planner=getattr(self, "planner", None))
        world.load(together(base, more))
        self.worlds.append(world)
        return world


@pytest.fixture(scope="module")
def hospitals(server: Server) -> Iterator[dict[str, ServedHospital]]:
    found = {name: ServedHospital(name, server) for name in ("hospital", "hospital_rows")}
    yield found
    for place in found.values():
        for world in place.worlds:
            world.close()


def check(place: Hospital, case: Case) -> None:
    enough = wanted(case)
    verdict = replay(place, case, enough)
    assert verdict.problems == []
    assert weakest(verdict) >= enough, {term: float(share) for term, share in verdict.reached.items()}


@pytest.mark.parametrize("name", ENTITY)
def test_one_person_moves_no_answer_further_than_claimed(hospitals: dict[str, ServedHospital], name: str) -> None:
    check(hospitals["hospital"], BY_ID[name])


@pytest.mark.parametrize("name", ROWS)
def test_one_row_moves_no_answer_further_than_claimed(hospitals: dict[str, ServedHospital], name: str) -> None:
    check(hospitals["hospital_rows"], BY_ID[name])
