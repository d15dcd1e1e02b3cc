"""Sessions of `dpsql audit` over the hospitals of the corpora, whose tables are replaced before every run."""

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.engine.contract import Engine
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.duckdb.settings import Statements
from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql_audit.observation import ObservedSession
from support.neighbouring_hospitals import SCHEMAS

PARSED = Statements()
"""The texts that any world has parsed: neighbours are asked the same."""


class World(ObservedSession):
    """One policy and one connection whose tables are replaced before every run."""

    def __init__(
        self, policy: Policy, gate: Gate | None = None, planner: Planner | None = None, engine: Engine | None = None
    ) -> None:
        """Open the world. `engine`: use its source instead of one whose tables `load` fills."""
        self.connection = duckdb.connect(config={"threads": 1})
        own = DuckDBEngine(self.connection, policy, "audit", owned=True)
        own._statements = PARSED
        super().__init__(policy, own if engine is None else engine, gate, planner)

    def load(self, data: Mapping[str, list[dict[str, Any]]]) -> None:
        """Replace the rows of the last run."""
        for table, schema in SCHEMAS.items():
            self.connection.register("rows", pa.Table.from_pylist(data.get(table, []), schema))
            self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS SELECT * FROM rows")
