"""Exclusive locks on open files: the kernel releases them when the process dies, so no lock outlives its holder.

They use flock directly and not the package filelock. The locked files are opened anyway, because they contain what the locks
guard (the head of a ledger, counters), while filelock does not share its files. On a file system without flock, it falls back to
lock files that outlive a crash, or fails, while each caller here says what holds then. And its import, with asyncio, is a
noticeable part of the start of a program that answers one question.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_lock(path: Path) -> int:
    """Return the descriptor of a file to lock, which is created for this user alone if it is missing. Raises OSError."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def try_lock(descriptor: int) -> bool:
    """Try to lock the file for this descriptor without waiting; return whether that succeeded. Raises OSError if locks are
    unsupported."""
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
