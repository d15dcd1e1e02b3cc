"""DuckDB files, attached read-only to a database of their own."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dpsql.engine.duckdb.forks import kept_in_children
from dpsql.engine.duckdb.literals import constant, name
from dpsql.engine.files import identity_of, stamp
from dpsql.engine.query import Identity

_MOST_TRIES = 3


def catalog(file: Path) -> str:
    """Return the name of a file's database inside the engine: the one that DuckDB itself gives it, as views in it may say."""
    return "source" if file.stem.lower() in ("memory", "temp", "system") else file.stem


def attached(
    path: Path, connection: duckdb.DuckDBPyConnection | None = None
) -> tuple[duckdb.DuckDBPyConnection, str, Identity]:
    """Return a database of its own with the file attached read-only, the version of its data, and the file's identity.
    `connection`: of that database, if there is one already.

    `duckdb.connect(path)` would share one database with whatever else in the process has opened that path, which may
    still be what the path named earlier. Raises duckdb.Error.
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
