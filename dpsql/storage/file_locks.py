"""Exclusive locks on files that are open: the kernel lets go when the process dies, so no lock outlives its holder.

They are flock itself and not the package filelock: our locks lie on files that are opened anyway, because what they guard is
written in them (the head of a ledger, counters), which filelock keeps to itself; where a file system has no flock it changes
to lock files that outlive a crash, or fails, while each of our callers says what then holds; and its import, with asyncio,
is a noticeable part of the start of a program that answers one question.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock(path: Path) -> int:
    """Return the descriptor of a file to lock, made for this user alone when it is not there. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int) -> bool:
    """Return whether the file is locked for this descriptor now; it does not wait. Raises OSError where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_lock(descriptor: int) -> None:
    """Lock the file, however long others hold it. Raises OSError where there are no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder by its file `lock` while the context is open. Raises OSError."""
    descriptor = open_lock(folder / "lock")
    try:
        wait_for_lock(descriptor)
        yield
    finally:
        os.close(descriptor)
