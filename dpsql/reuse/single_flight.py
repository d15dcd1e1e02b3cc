"""Measure a question once: concurrent sessions with the same question wait for its stored answer and are not charged.

Measuring locks are file locks beside the ledger's key: every process and thread of a machine sees them, and the system
releases those of a killed process. They save budget and protect nothing: a session that times out, or runs on another
machine, measures for itself, is charged, and returns the numbers that were stored first.

Each lock file holds a counter, which is odd while the lock is held. A session that reads an even counter before it reads
the store, and later acquires the lock with the same counter, knows that no other session of this machine stored an answer
in between (a sequence lock). A killed holder leaves an odd counter, which proves nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dpsql.storage.files import open_lock, try_lock

DIGITS = 3
"""Number of a name's digits that choose its lock file: 1 in 4,096 pairs of different questions share one, and so wait."""
_PAUSE_SECONDS = 0.01
_COUNTER_BYTES = 8

Stamp = tuple[int, int]
"""The lock file (its inode) and its counter; an odd counter proves nothing."""
UNKNOWN: Stamp = (0, 1)


def read_stamp(folder: Path, name: str) -> Stamp:
    """Return the stamp of the lock of `name`. Read it before reading the store."""
    descriptor = _opened(folder, name[:DIGITS])
    if descriptor is None:
        return UNKNOWN
    try:
        return _stamp(descriptor)
    except OSError:
        return UNKNOWN
    finally:
        os.close(descriptor)


@contextmanager
def measuring_lock(
    folder: Path,
    stamps: Mapping[str, Stamp | None],
    timeout_seconds: float,
    check: Callable[[], None] = lambda: None,
) -> Iterator[bool]:
    """Hold the locks of the names in `stamps` (hexadecimal; the first `DIGITS` choose the lock file). Yields whether
    no other session held one of them since its stamp was read. A stamp of None: the store was not read for that name.

    Waiting stops after `timeout_seconds`. `check` is called while waiting, and may raise to give up. If the folder
    cannot be used, there is no waiting.
    """
    deadline = time.monotonic() + timeout_seconds
    with ExitStack() as locks:
        alone = True
        # All sessions acquire locks in this order, so that there is no deadlock.
        for bucket in sorted({name[:DIGITS] for name in stamps}):
            descriptor = _opened(folder, bucket)
            if descriptor is None:
                alone = False
                break
            locks.callback(os.close, descriptor)
            while not (taken := _taken(descriptor)) and time.monotonic() < deadline:
                check()
                time.sleep(_PAUSE_SECONDS)
            stamp = locks.enter_context(_counted(descriptor)) if taken else UNKNOWN
            stamps_before = {
                before for name, before in stamps.items() if name[:DIGITS] == bucket and before is not None
            }
            alone = alone and stamp[1] % 2 == 0 and stamps_before <= {stamp}
        yield alone


@contextmanager
def _counted(descriptor: int) -> Iterator[Stamp]:
    """Keep the counter odd while the lock is held. Yields the stamp as it was before."""
    try:
        inode, counter = _stamp(descriptor)
        _write(descriptor, counter + 1 | 1)
    except OSError:
        yield UNKNOWN
        return
    try:
        yield inode, counter
    finally:
        _write(descriptor, (counter + 1 | 1) + 1)


def _stamp(descriptor: int) -> Stamp:
    counter = int.from_bytes(os.pread(descriptor, _COUNTER_BYTES, 0), "little")
    return os.fstat(descriptor).st_ino, counter


def _write(descriptor: int, counter: int) -> None:
    os.pwrite(descriptor, (counter % (1 << 62)).to_bytes(_COUNTER_BYTES, "little"), 0)


def _opened(folder: Path, bucket: str) -> int | None:
    try:
        if not os.path.isdir(folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        return open_lock(folder / bucket)
    except OSError:
        return None


def _taken(descriptor: int) -> bool:
    try:
        return try_lock(descriptor)
    except OSError:
        return True  # a file system without locks
