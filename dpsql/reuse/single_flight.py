"""One measurement of a question at a time, so that who asks at the same moment waits for the answer and does not pay.

Turns are file locks beside the ledger's key: every process and thread of a machine sees them, and a killed process
gives its turn back. They save budget and guard nothing: whoever cannot wait any longer, or sits at another machine,
measures for itself, is charged, and sees the numbers that were stored first.

Each lock file holds a counter, which is odd while a turn is held. Whoever reads it before a look in the store, and has
the turn afterwards with the same even counter, knows that nobody on this machine stored an answer in between (a
sequence lock). A holder that was killed leaves an odd counter, which proves nothing to anybody.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

_PAUSE_SECONDS = 0.01
_COUNTER_BYTES = 8

Stamp = tuple[int, int]
"""The lock file (its inode) and its counter; an odd counter proves nothing."""
UNKNOWN: Stamp = (0, 1)


def read_stamp(folder: Path, name: str) -> Stamp:
    """Return the stamp of the turn of `name`, to be read before the store is."""
    descriptor = _opened(folder, name[:2])
    if descriptor is None:
        return UNKNOWN
    try:
        return _stamp(descriptor)
    except OSError:
        return UNKNOWN
    finally:
        os.close(descriptor)


@contextmanager
def turn(
    folder: Path,
    stamps: Mapping[str, Stamp | None],
    timeout_seconds: float,
    check: Callable[[], None] = lambda: None,
) -> Iterator[bool]:
    """Hold the turns of the names in `stamps` (hexadecimal, the first two digits count); yields whether nobody else had
    one of these turns since its stamp was read. None: a name that was not looked for.

    Stops waiting after `timeout_seconds`. `check` is called while waiting, and may raise to give up. A folder that
    cannot be used means no waiting.
    """
    deadline = time.monotonic() + timeout_seconds
    with ExitStack() as held:
        alone = True
        # Everybody takes turns in this order, so that no two wait for each other.
        for bucket in sorted({name[:2] for name in stamps}):
            descriptor = _opened(folder, bucket)
            if descriptor is None:
                alone = False
                break
            held.callback(os.close, descriptor)
            while not (taken := _taken(descriptor)) and time.monotonic() < deadline:
                check()
                time.sleep(_PAUSE_SECONDS)
            stamp = held.enter_context(_counted(descriptor)) if taken else UNKNOWN
            seen = {before for name, before in stamps.items() if name[:2] == bucket and before is not None}
            alone = alone and stamp[1] % 2 == 0 and seen <= {stamp}
        yield alone


@contextmanager
def _counted(descriptor: int) -> Iterator[Stamp]:
    """Count a turn while it is held: odd from its beginning to its end. Yields the stamp from before it."""
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
        folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(folder / bucket, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True
