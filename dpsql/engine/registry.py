"""Engines by the scheme of a policy's source. Schemes that are not registered are refused.

A factory takes a policy and returns its `Engine`; its module is imported when a source of its scheme is opened. Engines of other
distributions are found by their entry points (`policy.source_kinds.outside_engine`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsql.engine.contract import Engine, SourceTable
from dpsql.engine.dialect import Dialect
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import REGISTRY
from dpsql.policy import Policy
from dpsql.policy.source_kinds import outside_engine, scheme_of

Factory = Callable[[Policy], Engine]


def _duckdb(policy: Policy) -> Engine:
    from dpsql.engine.duckdb.engine import open_duckdb

    return open_duckdb(policy)


def _postgresql(policy: Policy) -> Engine:
    try:
        from dpsql.engine.postgresql.engine import open_postgresql
    except ImportError:
        raise refuse("source_driver", extra="postgres") from None
    return open_postgresql(policy)


def _spark(policy: Policy, source: Any = None) -> Engine:
    try:
        from dpsql.engine.spark.engine import open_spark
    except ImportError:
        raise refuse("source_driver", extra="spark") from None
    return open_spark(policy, source)


FACTORIES: dict[str, Factory] = {"duckdb": _duckdb, "postgresql": _postgresql, "spark": _spark}
"""The factory of each scheme of `policy.source_kinds`. DuckDB reads files without a scheme, and tables that name their own
files."""


def open_engine(policy: Policy, source: Any = None) -> Engine:
    """Return the engine for a policy: for its own source, or over a DuckDB connection, a SparkSession or Arrow tables (one
    table, or a dict by name).

    Raises Fault source_unsupported for a scheme without an engine, and the engine's fault if the source does not exist.
    """
    if type(source).__module__.startswith("pyspark."):
        return _spark(policy, source)
    if source is not None:
        from dpsql.engine.duckdb.engine import open_duckdb

        return open_duckdb(policy, source)
    scheme = scheme_of(policy.source)
    outside = None if scheme in FACTORIES else outside_engine(scheme)
    if outside is not None:
        engine: Engine = outside.open(policy)
        return engine
    if scheme not in FACTORIES:
        schemes = ", ".join(f"{name}://" for name in sorted(FACTORIES))
        raise refuse("source_unsupported", source=f"{scheme}://", known=schemes)
    return FACTORIES[scheme](policy)


def structure_of(source: Path | str) -> dict[str, SourceTable]:
    """Return the tables of a file (a DuckDB database, Parquet or CSV), or of the server of a text postgresql://... or spark://...
    Values are never read. Raises InterfaceError, and Faults of the server."""
    if isinstance(source, str):
        scheme = scheme_of(source)
        try:
            if scheme == "postgresql":
                from dpsql.engine.postgresql.connections import structure_of_server as of_server
            elif scheme == "spark":
                from dpsql.engine.spark.tables import structure_of_catalog as of_server
            else:
                raise refuse("init_source", place=f"{scheme}://", problem="its structure is not read")
        except ImportError:
            raise refuse("source_driver", extra="postgres" if scheme == "postgresql" else "spark") from None
        if tables := of_server(source):
            return tables
        raise refuse("init_source", place=f"{scheme}://", problem="its catalog has no table that may be read")
    from dpsql.engine.duckdb.structure import structure_of_file

    return structure_of_file(source)


# --- writer of docs/engines.md, which says which engine computes which row function, from the dialects themselves -----
# Run `python -m dpsql.engine.registry > docs/engines.md`.

_HEAD = """# Engines

Look up here what dpsql needs of the place where your data are, and which functions it computes
there. Where the data are decides which engine runs the exact part of a question. Answers, prices
and refusals mean the same everywhere: every accepted question of the test corpus has equal exact
rows in all engines, and every row function is compared with one definition in Python over random
expressions. What an engine cannot compute exactly, it refuses (`engine_function`), before anything
is charged.

| | DuckDB | PostgreSQL | Spark |
| --- | --- | --- | --- |
| `source:` | `duckdb:///file`, Parquet and CSV files, lake tables (`delta:folder`, `iceberg:folder`), a connection or Arrow \
tables given in Python | \
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

## Tables of data lakes

`source: delta:lake/visits` or `iceberg:lake/visits` names the folder of a table of Delta Lake or
Apache Iceberg on this machine, with the extra `dpsql[lake]`; `dpsql init --from lake` finds them.
The libraries of both formats (`deltalake`, `pyiceberg`) say which Parquet files the latest snapshot
has, and dpsql reads these as it reads other Parquet files: every value of every type, with the
identity of the files as the state of the data. A commit is seen by the next question. Columns that
were added later are NULL in older rows. `append_only` is for folders of files, not for these tables.

Without a catalog, the latest snapshot of an Iceberg table is the one whose file of metadata has the
highest number; `iceberg:lake/visits/metadata/00012-....metadata.json` names one snapshot instead.

Refused, because reading the files alone would give other rows: Delta tables with deletion vectors
or mapped columns, with files whose path names another value of a partition than the log, and
whatever else readers of a table must know; Iceberg tables with files of
deletions, with renamed columns, or of version 3 of the format. The custodian's log says which, and
how the table is written anew. Object stores are not read: mount or copy the folder, or let Spark
read the table by the name of its catalog ([spark.md](spark.md)).

## Further engines

More engines come behind the same contract (`dpsql/engine/contract.py`, `dpsql/engine/dialect.py`).

## Engines from outside

Another distribution provides an engine by an entry point in the group `dpsql.engines`, whose name is
the scheme of `source:` and which refers to a `dpsql.policy.source_kinds.OutsideEngine`. It is loaded
only for a policy that names its scheme, and it cannot take a scheme of dpsql's own. An engine sees
every row, and the guarantee rests on it as on dpsql itself: `dpsql check` names the distribution and
its version. Its tests inherit from `dpsql.testing.EngineContract`.

## Row functions

Written by `python -m dpsql.engine.registry > docs/engines.md`.

| function | DuckDB | PostgreSQL | Spark |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return the text of the page."""
    from dpsql.engine.duckdb.dialect import DUCKDB
    from dpsql.engine.postgresql.dialect import PostgreSQLDialect
    from dpsql.engine.spark.dialect import SPARK

    engines: tuple[Dialect, ...] = (DUCKDB, PostgreSQLDialect(), SPARK)
    rows = [f"| `{name}` | {' | '.join(_cell(engine, name) for engine in engines)} |" for name in sorted(REGISTRY)]
    return _HEAD + "\n".join(rows) + "\n"


def _cell(engine: Dialect, name: str) -> str:
    return "yes" if name in engine.functions else f"no: {engine.unsupported[name]}"


if __name__ == "__main__":
    print(page(), end="")
