"""Writer of docs/engines.md, which says which engine computes which row function, from the dialects themselves.

Run `python -m dpsql.engine.page > docs/engines.md`.
"""

from __future__ import annotations

from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.engine.postgresql.dialect import PostgreSQLDialect
from dpsql.engine.spark.dialect import SPARK
from dpsql.functions.numeric import REGISTRY

_HEAD = """# Engines

Look up here what dpsql needs of the place where your data are, and which functions it computes
there. Where the data are decides which engine runs the exact part of a question. Answers, prices
and refusals mean the same everywhere: every accepted question of the test corpus has equal exact
rows in all engines, and every row function is compared with one definition in Python over random
expressions. What an engine cannot compute exactly, it refuses (`engine_function`), before anything
is charged.

| | DuckDB | PostgreSQL | Spark |
| --- | --- | --- | --- |
| `source:` | `duckdb:///file`, Parquet and CSV files, a connection or Arrow tables given in Python | \
`postgresql://...` | `spark://...`, a SparkSession given in Python |
| versions | 1.4.4 and later | 15 and later, encoding UTF8, extra `dpsql[postgres]` | 4.0 and later with Java 17, \
extra `dpsql[spark]` |
| the state of the data | seen by files' identity | `data_version` of the policy; without it no answer is reused \
| as in PostgreSQL |
| prepared copies (`dpsql prepare`) | yes, as files | yes, as tables of a schema that the owner names | yes, \
as Parquet files in a folder that the owner names |
| which rows stay under bounds | keyed hash of DuckDB | keyed SHA-256 of the row as text: other rows than in \
DuckDB, as few | keyed SHA-256 of its own texts |
| rows leave the engine | the engine is in dpsql's process | no: groups come back, with the texts of their keys; \
exported columns do | as in PostgreSQL |
| `SAMPLE_AGGREGATE` | yes | yes, but for ENTROPY | no |
| clipping (`max_total`, `max_count`) | yes | yes | no: rows would be read several times |
| bound on the time of one row (privacy.md 10) | measured | computed alike, not measured there | as in PostgreSQL |

[Data in PostgreSQL](postgresql.md) and [Data in Spark](spark.md) say how to set them up. `exp`,
`power` and angles come from the library of each machine: their last digit may differ.

More engines come behind the same contract (`dpsql/engine/contract.py`, `dpsql/engine/dialect.py`).

## Engines from outside

Another distribution provides an engine by an entry point in the group `dpsql.engines`, whose name is
the scheme of `source:` and which refers to a `dpsql.policy.source_kinds.OutsideEngine`. It is loaded
only for a policy that names its scheme, and it cannot take a scheme of dpsql's own. An engine sees
every row, and the guarantee rests on it as on dpsql itself: `dpsql check` names the distribution and
its version. Its tests inherit from `dpsql.testing.EngineContract`.

## Row functions

Written by `python -m dpsql.engine.page > docs/engines.md`.

| function | DuckDB | PostgreSQL | Spark |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return the text of the page."""
    engines: tuple[Dialect, ...] = (DUCKDB, PostgreSQLDialect(), SPARK)
    rows = [f"| `{name}` | {' | '.join(_cell(engine, name) for engine in engines)} |" for name in sorted(REGISTRY)]
    return _HEAD + "\n".join(rows) + "\n"


def _cell(engine: Dialect, name: str) -> str:
    return "yes" if name in engine.functions else f"no: {engine.unsupported[name]}"


if __name__ == "__main__":
    print(page(), end="")
