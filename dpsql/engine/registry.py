"""Engines by the scheme of a policy's source. Schemes that are not registered are refused.

A factory takes a policy and returns its `Engine`; its module is imported when a source of its scheme is opened. Engines of other
distributions are found by their entry points (`policy.source_kinds.outside_engine`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpsql.engine.contract import Engine, SourceTable
from dpsql.errors.exceptions import refuse
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
