"""Queries for an engine, the locations of its tables and prepared views, and the files of tables with their identity."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any

from dpsql.engine.lake_tables import snapshot
from dpsql.policy.reach import lake_table
from dpsql.storage.records import dataclass, field

UNIT_ID = "#id"
"""Name of the hidden column of a prepared view that replaces the unit's key in texts that only count units."""

UNIT_SETS = ((1_000, 1 << 20), (250, 1 << 22), (64, 1 << 24), (16, 1 << 26), (1, 1 << 29))
"""The most sets of units (groups times terms), and the most units, for which sets are held as bits: 128 MiB for each thread.

The number of sets, which is public, decides which of these forms of the function that counts units a text calls: the form
`n` has `n` arguments more. The number of units, which is not public, decides only how the function is written."""


@dataclass(frozen=True)
class EngineQuery:
    """Text that we generated from our own plan. Result columns: `keys` in order, then `terms` (integers, never NULL).

    `parameters`: the values of $1, $2, ... in the text (int, float, str, date or datetime).
    `released`: results of the question (pyarrow.Table by name) that are read in addition to the source.
    `unchanged`: (table, identity, view); the table must have this identity from before the query until after it, and an
    engine that cannot guarantee that gives no answer. `view`: the name of its view, for which the engine first counts rows.
    Where both are "", all readings of the table must return the same rows (`Source.is_snapshot`).
    """

    sql: str
    keys: tuple[str, ...]
    terms: tuple[str, ...]
    unchanged: tuple[tuple[str, str, str], ...] = ()
    released: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Source:
    """The location of a policy's table: `sql` is the qualified name or scan of the engine, `types` its columns' types (see also
    `read_by`).

    `is_snapshot`: whether all readings within one statement return the same rows, whatever happens meanwhile (files are none).
    `is_computed`: whether values may differ at each reading of a row: in views, and columns that are computed.
    `row_number`: the engine's column that numbers the rows, equally in all readings of one version ("": there is none), in
    `numbered`, which has the same rows ("": in `sql`).
    `files`: those that `sql` names, if it names them one by one.
    """

    sql: str
    types: dict[str, str]
    is_snapshot: bool = False
    is_computed: bool = False
    row_number: str = ""
    numbered: str = ""
    files: tuple[Path, ...] = ()


_BY = re.compile(r"BY (\S+) READ (.*)", re.DOTALL)
"""The rule comes first: what follows may be any text, as the names of an enumerated type are; no engine's type begins so."""
DECIMAL_COMMA = ","
DAYS = {"dmy": r"\3-\2-\1\4", "mdy": r"\3-\1-\2\4"}  # the parts of WRITTEN_DAY in ISO order
WRITTEN_DAY = r"^\s*([0-9]{1,2})[./-]([0-9]{1,2})[./-]([0-9]{4})($|[^0-9])"


def read_by(engine_type: str, rule: str | None) -> str:
    """Return an engine's type as that of a column that is read by a rule of the policy (None: there is none): the zone by whose
    clock points of time are read, `DECIMAL_COMMA` for numbers in texts, or one of `DAYS` with `:` and perhaps a zone."""
    return engine_type if rule is None else f"BY {rule} READ {engine_type}"


def stored_as(engine_type: str) -> tuple[str, str | None]:
    """Return an engine's own type, and the rule that `read_by` added (None: none)."""
    read = _BY.fullmatch(engine_type)
    return (engine_type, None) if read is None else (read[2], read[1])


class RowsRead(str, Enum):
    """Rows of a protected table: those of its bounded view, all that have a unit, or those of them that the view leaves out."""

    KEPT = ""
    ALL = "all"
    LEFT_OUT = "left out"

    def name_beside(self, view: str) -> str:
        """Return the name of the view with these rows beside the (quoted) name of a bounded view that is not prepared."""
        return f'{view[:-1]} {self.value}"' if self.value else view


@dataclass(frozen=True)
class View:
    """The present way to read the bounded view of a protected table.

    `key`: secret of the order in which rows are kept, fixed for the table's data version. `sql`: the prepared view
    (columns of the policy in its types, the unit's key and `UNIT_ID`), None if a window must compute it;
    `count_units`: the function that counts units by `UNIT_ID`, in the forms of `UNIT_SETS`. `identity`: the identity that the
    source must still have after the query if the source itself is read, else "". `prepared`: whether the owner prepared it.
    `part`: the rows that are read; others than those of the view only if it is not prepared.
    """

    key: str
    sql: str | None = None
    count_units: str = ""
    identity: str = ""
    prepared: bool = False
    part: RowsRead = RowsRead.KEPT


@dataclass(frozen=True)
class Identity:
    """The identity of the rows in a table's source: `text` differs if they do; `changed_seconds`: time of the last change.

    `place` says what is read and by whom, but not in which version: it is equal for two versions of the rows of one place.
    `files` maps the path of each file to a text that differs if the file was replaced or changed; `text` joins these texts.
    """

    text: str
    changed_seconds: float
    place: str = ""
    files: Mapping[str, str] = field(default_factory=dict, compare=False)


# --- the files that match a name or glob, and their identity, which shows changes -------------------------------------


def matching(pattern: str | Path) -> list[Path]:
    """Return the files that match a name or glob; any part may have wildcards, with the engine's meaning. Of a lake table those
    of its latest snapshot. Raises OSError and Fault as `lake_tables.snapshot` does if there is one that cannot be read."""
    if lake := lake_table(str(pattern)):
        with suppress(FileNotFoundError):
            return list(snapshot(*lake).files)
        return []
    return [Path(path) for path in sorted(glob.glob(str(pattern), recursive=True, include_hidden=True))]


def check_openable(paths: Iterable[Path]) -> None:
    """Raise OSError for a named pipe, a socket or a device, which opening or reading may wait for without end. What may be
    opened is a file or a folder (a glob also matches folders)."""
    for path in paths:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError(f"{path} is not a regular file")


IDENTITIES = "|"
"""Separator between the texts of files in the text of an identity."""


def stamp(path: Path) -> str:
    """Return name, size and time of the last change; only the name if the file does not exist."""
    try:
        status = path.stat()
    except OSError:
        return path.name
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


def identity_of(paths: list[Path]) -> Identity | None:
    """Return the identity of files, with the write-ahead logs of DuckDB files; None if one of them does not exist."""
    texts, changed = {}, 0
    # Texts instead of Paths: this runs for every question.
    files = {os.fspath(path) for path in paths}
    logs = {wal for file in files if os.path.exists(wal := f"{file}.wal")}
    try:
        for file in sorted(files | logs, key=lambda file: file.split(os.sep)):
            status = os.stat(file)
            texts[file] = f"{file}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}"
            changed = max(changed, status.st_ctime_ns)
    except OSError:
        return None
    return Identity(IDENTITIES.join(texts.values()), changed / 1e9, files=texts) if texts else None


def size_in(text: str) -> int:
    """Return the size in bytes of a file from its text in `identity_of`."""
    return int(text.rsplit(":", 3)[1])
