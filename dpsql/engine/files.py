"""The files that match a name or glob, and their identity, which shows changes."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from dpsql.engine.query import Identity


def matching(pattern: str | Path) -> list[Path]:
    """Return the files that match a name or glob; any part may have wildcards, with the engine's meaning."""
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
