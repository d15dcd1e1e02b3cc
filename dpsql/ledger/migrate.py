"""Migration of the ledger's tables from an older format to the format of this version, with a copy of the old file.

Formats have numbers (`dpsql_format`). A step leads from one number to the next; all steps run in one transaction. Entries are
never rewritten, because their texts are authenticated: a step changes only the tables around them, and the chain, the key
and the head are valid before and after.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.ledger.database import DatabaseConnection, parse_location
from dpsql.ledger.opening import FORMAT, VERSIONS
from dpsql.ledger.store import Store

Step = Callable[[DatabaseConnection], None]
STEPS: Mapping[int, Step] = {}
"""Steps by the format from which they start. There is only one format."""


def migrate(url: str, *, steps: Mapping[int, Step] = STEPS, version: int = FORMAT) -> tuple[int, int, Path | None]:
    """Migrate the ledger at `url` to format `version`. Returns the format before and after, and the path of the copy
    of a SQLite file.

    Raises Fault ledger_missing, ledger_format (a newer format, or an older one from which no steps lead), backup_folder.
    """
    location = parse_location(url)
    if location.path is not None and not location.path.exists():
        raise refuse("ledger_missing", address=location.address)
    store = Store(location)
    try:
        with store.reading() as connection:
            versions = [version for (version,) in connection.rows(VERSIONS)]
        before = versions[0] if len(versions) == 1 else -1
        missing = [number for number in range(before, version) if number not in steps]
        if before > version or before < 0 or missing:
            raise refuse("ledger_format", found=", ".join(map(str, versions)) or "none", known=version)
        if before == version:
            return before, version, None
        copy = None if location.path is None else _copied(location.path, before)
        with store.writing() as connection:
            for number in range(before, version):
                steps[number](connection)
            connection.run("UPDATE dpsql_format SET version = :version", version=version)
        return before, version, copy
    finally:
        store.close()


def _copied(path: Path, number: int) -> Path:
    """Copy the whole file before anything is changed, and return the path of the copy."""
    target = path.with_name(f"{path.name}.format{number}")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise refuse("backup_folder", place=str(target), problem=str(error)) from error
    return target
