"""Data in a real Spark application: one application per test run, and a world of one policy over its views."""

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql_audit.observation import ObservedSession
from support.neighbouring_hospitals import SCHEMAS

_numbers = itertools.count(1)
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A test run is too short to profit from Java's second compiler; without it, tests take half of the processor time."""


def needs_spark() -> None:
    """Skip the test without Java or pyspark, unless DPSQL_EVERY_CLIENT forbids skipping."""
    if os.environ.get("DPSQL_EVERY_CLIENT") != "1":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            pytest.skip("Spark needs Java")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Yield a session of an application with two threads and little memory."""
    needs_spark()
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "1g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1", "spark.log.level": "OFF", "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": "/nonexistent/warehouse",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def zoned(table: pa.Table) -> pa.Table:
    """Return the table with timestamps in Spark's own type, in UTC."""
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def show(session: Any, name: str, table: pa.Table) -> None:
    """Register a table under a name that every session of the application sees."""
    session.createDataFrame(zoned(table)).createOrReplaceGlobalTempView(name)


class SparkWorld(ObservedSession):
    """One policy over views of an application, which are replaced before every run."""

    def __init__(self, policy: Policy, spark: Any, gate: Gate | None = None, planner: Planner | None = None) -> None:
        from dpsql.engine.spark.engine import SparkEngine

        self._spark, self._prefix = spark, f"world{next(_numbers)}_"
        for table, schema in SCHEMAS.items():
            show(spark, self._prefix + table, schema.empty_table())
        tables = {
            name: replace(table, source=f"global_temp.{self._prefix}{name}") for name, table in policy.tables.items()
        }
        served = replace(policy, source="spark://local[2]", tables=tables)
        super().__init__(served, SparkEngine(served, spark), gate, planner)

    def load(self, data: Mapping[str, list[dict[str, Any]]]) -> None:
        """Replace the rows of the last run."""
        for table, schema in SCHEMAS.items():
            show(self._spark, self._prefix + table, pa.Table.from_pylist(data.get(table, []), schema))

    def close(self) -> None:
        self.engine.close()
        for table in SCHEMAS:
            self._spark.catalog.dropGlobalTempView(self._prefix + table)
