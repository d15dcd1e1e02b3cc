"""Deterministic replay on Spark: one query for each way in which rows are bounded there, on pairs of neighbours.

A shorter version of test_neighbours_on_postgresql.py, because Spark plans and compiles each query anew.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sql.corpus import ACCEPTED
from support.corpus_neighbours import Hospital
from support.effort import by_day
from support.neighbouring_hospitals import Data, together
from support.spark_source import SparkWorld, spark

from dpsql_audit.observation import Observed
from guarantee.test_neighbours_on_postgresql import check

__all__ = ["spark"]
BY_ID = {case.id: case for case in ACCEPTED}
ENTITY = (
    "aggregates-sum_real", "aggregates-correlation", "public_keys-both_caps", "private_keys-max_groups_and_rows",
    "value_places-real_values",
)  # fmt: skip
ROWS = ("aggregates-sum_real",)


class NamedAlike(SparkWorld):
    """Views with the random prefix of each engine removed from their names, so that texts can be compared."""

    def observe(self, sql: str, parameters: Any = None) -> Observed:
        observed = super().observe(sql, parameters)
        return replace(
            observed, engine_sql=[re.sub(r"dpsql_[0-9a-f]{12}_", "dpsql_", text) for text in observed.engine_sql]
        )


class SparkHospital(Hospital):
    """A hospital whose worlds are sets of views of the application."""

    def __init__(self, name: str, spark: Any) -> None:
        self._spark = spark
        self.worlds: list[SparkWorld] = []
        super().__init__(name)

    def _world(self, base: Data, more: Data) -> SparkWorld:  # type: ignore[override]
        world = NamedAlike(self.policy, self._spark, planner=getattr(self, "planner", None))
        world.load(together(base, more))
        self.worlds.append(world)
        return world


@pytest.fixture(scope="module")
def hospitals(spark: Any) -> Iterator[dict[str, SparkHospital]]:
    places = {name: SparkHospital(name, spark) for name in ("hospital", "hospital_rows")}
    yield places
    for place in places.values():
        for world in place.worlds:
            world.close()


@pytest.mark.parametrize("name", by_day(ENTITY[::2], ENTITY))
def test_one_person_moves_no_answer_further_than_claimed(hospitals: dict[str, SparkHospital], name: str) -> None:
    check(hospitals["hospital"], BY_ID[name])


@pytest.mark.parametrize("name", ROWS)
def test_one_row_moves_no_answer_further_than_claimed(hospitals: dict[str, SparkHospital], name: str) -> None:
    check(hospitals["hospital_rows"], BY_ID[name])
