"""The law of `test_same_groups` on PostgreSQL and Spark: the same rows have the groups that DuckDB finds, wherever a key is written."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.effort import NIGHTLY, night
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.postgres_source import Server, load, server
from support.seeds import seeds
from support.spark_source import show, spark

from answers.test_same_groups import KEYS, World, compared, world
from dpsql.engine.postgresql.engine import PostgreSQLEngine
from dpsql.errors.exceptions import Refusal
from dpsql.policy import Policy

__all__ = ["server", "spark", "world"]


def rows(world: World, policy: Policy) -> dict[str, Any]:
    return {name: world[0].execute(f"SELECT * FROM {name}").to_arrow_table() for name in policy.tables}


@pytest.fixture(scope="module")
def on_postgresql(world: World, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    policy = replace(world[1].policy, source=server.database())
    with psycopg.connect(policy.source, autocommit=True) as connection:
        for name, table in rows(world, policy).items():
            load(connection, name, table.schema, table.to_pylist())
    ledger: Path = tmp_path_factory.mktemp("postgresql") / "ledger.db"
    with exact_session(policy, None, ledger, NoiselessGate(1), opened=PostgreSQLEngine) as session:
        yield world[0], session


@pytest.fixture(scope="module")
def on_spark(world: World, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    from dpsql.engine.spark.engine import SparkEngine

    tables = {name: replace(table, source=f"global_temp.same_{name}") for name, table in world[1].policy.tables.items()}
    policy = replace(world[1].policy, source="spark://local[2]", tables=tables)
    for name, table in rows(world, policy).items():
        show(spark, f"same_{name}", table)
    ledger: Path = tmp_path_factory.mktemp("spark") / "ledger.db"

    def opened(served: Policy) -> SparkEngine:
        return SparkEngine(served, spark)

    with exact_session(policy, None, ledger, NoiselessGate(1), opened=opened) as session:
        yield world[0], session
    for name in tables:
        spark.catalog.dropGlobalTempView(f"same_{name}")


@lru_cache(maxsize=2)
def computed(world: World) -> list[str]:
    """Return the keys that the engine computes: it has to refuse all others before a charge, and there are few."""
    keys = []
    for key in KEYS:
        try:
            world[1].explain(f"SELECT {key} AS k, COUNT(*) AS c FROM items GROUP BY k")
            keys.append(key)
        except Refusal as refusal:
            assert refusal.slug == "engine_function", key
    assert len(keys) > 0.8 * len(KEYS)
    return keys


@pytest.mark.parametrize("seed", seeds(12, 2))
def test_a_key_has_the_same_groups_on_postgresql(on_postgresql: World, seed: int) -> None:
    chance = random.Random(100 + seed)
    for key in chance.sample(computed(on_postgresql), 8):
        compared(on_postgresql, chance, key)


@pytest.mark.parametrize("seed", [0, night(1)])
def test_a_key_has_the_same_groups_on_spark(on_spark: World, seed: int) -> None:
    chance = random.Random(200 + seed)
    for key in chance.sample(computed(on_spark), 4 if NIGHTLY else 2):
        compared(on_spark, chance, key)
