"""From an older format of the ledger's tables to the one of this version, with a copy of what was there.

Formats carry numbers (`dpsql_format`). A step goes from one number to the next inside one transaction. Entries are never
rewritten: their texts are what is authenticated, so that a step changes tables around them only, and the chain, the key and
the head hold before and after.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import sqlalchemy
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import refuse
from dpsql.ledger.store import Store, parse_place
from dpsql.ledger.tables import FORMAT, layout

Step = Callable[[Connection], None]
STEPS: Mapping[int, Step] = {}
"""Steps by the format that they start from. There is one format so far."""


def migrate(url: str, *, steps: Mapping[int, Step] = STEPS, wanted: int = FORMAT) -> tuple[int, int, Path | None]:
    """Bring the ledger at `url` to format `wanted`: the format before and after, and where the copy of a SQLite file is.

    Raises Fault ledger_missing, ledger_format (a newer format, or an older one without a way), backup_folder.
    """
    place = parse_place(url)
    if place.path is not None and not place.path.exists():
        raise refuse("ledger_missing", address=place.address)
    store = Store(place)
    try:
        with store.reading() as connection:
            found = connection.execute(sqlalchemy.select(layout.c.version)).scalars().all()
        before = found[0] if len(found) == 1 else -1
        missing = [number for number in range(before, wanted) if number not in steps]
        if before > wanted or before < 0 or missing:
            raise refuse("ledger_format", found=", ".join(map(str, found)) or "none", known=wanted)
        if before == wanted:
            return before, wanted, None
        copy = None if place.path is None else _copied(place.path, before)
        with store.writing() as connection:
            for number in range(before, wanted):
                steps[number](connection)
            connection.execute(layout.update().values(version=wanted))
        return before, wanted, copy
    finally:
        store.close()


def _copied(path: Path, number: int) -> Path:
    """A copy of the whole file beside it, made before anything is changed."""
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
