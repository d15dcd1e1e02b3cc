"""Files that are on disk before anything relies on them."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that its owner alone can read, and wait until it is on disk. Raises FileExistsError and other OSErrors.

    Its name is on disk only after `sync` of its directory.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_private(path: Path, content: bytes) -> None:
    """Replace `path`, if any, by a file for its owner alone; a crash leaves the previous or the new one. Raises OSError."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)  # of a writer that died: the caller keeps others out
    write_private(draft, content)
    os.replace(draft, path)
    sync(path.parent)


def take_name(path: Path, mode: int = 0o666) -> None:
    """Create `path` as a new empty file of this user, so that writing to it follows no link that was there before.

    Raises FileExistsError and other OSErrors, for example for another user's file in a folder with the sticky bit.
    """
    path.unlink(missing_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))


def sync(path: Path) -> None:
    """Wait until the content of a file, or the names in a directory, are on disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
