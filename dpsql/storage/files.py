"""Files of dpsql itself: the directories of its state, writes that are on disk before anything relies on them, and locks.

Directories follow the XDG base directory specification. They are the same on every system, and not those of the package
platformdirs: it names others on macOS and ignores an XDG variable that is not absolute, and a ledger whose witness is looked up
elsewhere counts as never seen.

Locks are exclusive and on open files: the kernel releases them when the process dies, so no lock outlives its holder. They use
flock directly and not the package filelock. The locked files are opened anyway, because they contain what the locks guard (the
head of a ledger, counters), while filelock does not share its files. On a file system without flock, it falls back to lock files
that outlive a crash, or fails, while each caller here says what holds then. And its import, with asyncio, is a noticeable part of
the start of a program that answers one question."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class NoHomeDirectory(OSError):
    """The environment names no state directory, and this user has no home directory."""


def state_directory() -> Path:
    """Return `$DPSQL_STATE`, else `$XDG_STATE_HOME/dpsql`, else `~/.local/state/dpsql`. Raises NoHomeDirectory."""
    named = os.environ.get("DPSQL_STATE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "dpsql"
    except RuntimeError as error:
        raise NoHomeDirectory("this user has no home directory") from error


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


def open_lock(path: Path) -> int:
    """Return the descriptor of a file to lock, which is created for this user alone if it is missing. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int) -> bool:
    """Try to lock the file without waiting; return whether that succeeded. Raises OSError if locks are unsupported."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int) -> None:
    """Lock the file, however long others hold it. Raises OSError if locks are unsupported."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lock a file, which is created if it is missing, while the context is open. Raises OSError."""
    descriptor = open_lock(file)
    try:
        wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)
