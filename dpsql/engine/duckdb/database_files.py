"""DuckDB files, each attached read-only to its own in-memory database."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpsql.engine.duckdb.forks import kept_in_children
from dpsql.engine.duckdb.literals import constant, name
from dpsql.engine.files import identity_of, stamp
from dpsql.engine.query import Identity

_MOST_TRIES = 3


def catalog(file: Path) -> str:
    """Return the name of a file's database in the engine: the name that DuckDB itself chooses, because views may contain it."""
    return "source" if file.stem.lower() in ("memory", "temp", "system") else file.stem


def attached(
    path: Path, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[duckdb.DuckDBPyConnection, str, Identity]:
    """Return a separate database with the file attached read-only, the version of its data, and the file's identity.
    `connection`: the connection of that database, if it exists already.

    `duckdb.connect(path)` would share one database with everything else in the process that has opened that path, and
    that may still be the file that the path named earlier. Raises duckdb.Error.
    """
    connection = connection or kept_in_children(duckdb.connect())
    connection.execute(f"SET temp_directory = {constant(f'{path}.tmp')}")
    for _ in range(_MOST_TRIES):
        before = identity_of([path])
        connection.execute(f"ATTACH {constant(str(path))} AS {name(catalog(path))} (READ_ONLY)")
        if before is not None and before == identity_of([path]):
            break
        connection.execute(f"DETACH {name(catalog(path))}")
    else:
        raise duckdb.IOException("the file keeps changing")
    wal = path.with_name(path.name + ".wal")
    stamps = [stamp(path)] + ([stamp(wal)] if wal.exists() else [])
    return connection, "|".join(stamps), before
