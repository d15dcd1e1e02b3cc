"""Deterministic replay on PostgreSQL and Spark: one query for each way in which rows are bounded there, on pairs of neighbours.

A shorter version of tests/guarantee/test_replay.py: the inputs of the noise gate differ by no more than claimed, nothing else
that an analyst sees differs, and the pairs come near the claims. Spark, which compiles each query anew, has fewer of them.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital, weakest
from support.effort import by_day
from support.neighbouring_hospitals import Data, together
from support.postgres_source import ServerWorld, server
from support.spark_source import SparkWorld, spark

from dpsql_audit.observation import Observed
from guarantee.test_replay import replay, wanted

__all__ = ["server", "spark"]
BY_ID = {case.id: case for case in ACCEPTED}
ON_POSTGRESQL = (
    "aggregates-count_rows_of_units", "aggregates-sum_real", "aggregates-correlation", "aggregates-sum_distinct", "clipping-sum",
    "clipping-with_caps", "private_keys-max_groups_and_rows", "public_keys-both_caps", "public_keys-max_groups",
    "windows-first_visit", "windows-first_three", "per_unit-cost_of_each", "clipping-gaussian", "value_places-public_keys",
    "value_places-real_values", "value_places-filter", "value_places-private_keys", "value_places-caps_besides",
    "value_places-beside_clips", "value_places-chosen_by_group",
)  # fmt: skip
ON_SPARK = (
    "aggregates-sum_real", "aggregates-correlation", "public_keys-both_caps", "private_keys-max_groups_and_rows",
    "value_places-real_values",
)  # fmt: skip
ASKED = [
    *(f"postgresql hospital {case}" for case in ON_POSTGRESQL),
    *(f"postgresql hospital_rows {case}" for case in ("aggregates-sum_real", "private_keys-no_aggregate")),
    "spark hospital_rows aggregates-sum_real",
    *(f"spark hospital {case}" for case in ON_SPARK),
]
AT_NIGHT = [f"spark hospital {case}" for case in ON_SPARK[1::2]]


class NamedAlike(SparkWorld):
    """Views with the random prefix of each engine removed from their names, so that texts can be compared."""

    def observe(self, sql: str, parameters: Any = None) -> Observed:
        observed = super().observe(sql, parameters)
        return replace(
            observed, engine_sql=[re.sub(r"dpsql_[0-9a-f]{12}_", "dpsql_", text) for text in observed.engine_sql]
        )


class ServedHospital(Hospital):
    """A hospital whose worlds are databases of a server, or sets of views of an application."""

    def __init__(self, name: str, engine: str, place: Any) -> None:
        self._engine, self._place = engine, place
        self.worlds: list[ServerWorld | SparkWorld] = []
        super().__init__(name)

    def _world(self, base: Data, more: Data) -> ServerWorld | SparkWorld:  # type: ignore[override]
        opened: Any = NamedAlike if self._engine == "spark" else ServerWorld
        place = self._place if self._engine == "spark" else self._place.database()
        world: ServerWorld | SparkWorld = opened(self.policy, place, planner=getattr(self, "planner", None))
        world.load(together(base, more))
        self.worlds.append(world)
        return world


@pytest.fixture(scope="module")
def hospitals() -> Iterator[Callable[[str, str, Any], ServedHospital]]:
    served: list[ServedHospital] = []

    @cache
    def opened(name: str, engine: str, place: Any) -> ServedHospital:
        served.append(ServedHospital(name, engine, place))
        return served[-1]

    yield opened
    for world in (world for place in served for world in place.worlds):
        world.close()


@pytest.mark.parametrize("asked", by_day([asked for asked in ASKED if asked not in AT_NIGHT], ASKED))
def test_one_unit_moves_no_answer_further_than_claimed(
    request: pytest.FixtureRequest, hospitals: Callable[[str, str, Any], ServedHospital], asked: str
) -> None:
    engine, name, case = asked.split()
    place = request.getfixturevalue("spark" if engine == "spark" else "server")
    enough = wanted(BY_ID[case])
    verdict = replay(hospitals(name, engine, place), BY_ID[case], enough)
    assert verdict.problems == []
    assert weakest(verdict) >= enough, {term: float(share) for term, share in verdict.reached.items()}
