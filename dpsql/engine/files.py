"""Files as they are now: which ones a name or glob means, and whether they are still the same."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from dpsql.engine.query import Identity


def matching(pattern: str | Path) -> list[Path]:
    """The files of a name or glob; wildcards may stand in any part, as the engine reads them."""
    return [Path(found) for found in sorted(glob.glob(str(pattern), recursive=True, include_hidden=True))]


def stamp(path: Path) -> str:
    """Name, size and time of the last change; the name alone when the file is not there."""
    try:
        status = path.stat()
    except OSError:
        return path.name
    return f"{path.name}:{status.st_size}:{status.st_mtime_ns}"


def identity_of(paths: list[Path]) -> Identity | None:
    """Of files as they are now, with the write-ahead log of a DuckDB file; None when one of them is not there."""
    texts, changed = [], 0
    # Texts, no Paths: this is asked for every question.
    files = {os.fspath(path) for path in paths}
    beside = {wal for file in files if os.path.exists(wal := f"{file}.wal")}
    try:
        for file in sorted(files | beside, key=lambda file: file.split(os.sep)):
            status = os.stat(file)
            texts.append(f"{file}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}:{status.st_ctime_ns}")
            changed = max(changed, status.st_ctime_ns)
    except OSError:
        return None
    return Identity("|".join(texts), changed / 1e9) if texts else None
