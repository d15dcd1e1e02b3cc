"""One measurement of a question at a time, so that who asks at the same moment waits for the answer and does not pay.

Turns are file locks beside the ledger's key: every process and thread of a machine sees them, and a killed process
gives its turn back. They save budget and guard nothing: whoever cannot wait any longer, or sits at another machine,
measures for itself, is charged, and sees the numbers that were stored first.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

_PAUSE_SECONDS = 0.01


@contextmanager
def turn(
    folder: Path, names: Iterable[str], timeout_seconds: float, check: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Hold the turns of `names` (hexadecimal, the first two digits count), or stop waiting after `timeout_seconds`.

    `check` is called while waiting, and may raise to give up. A folder that cannot be used means no waiting.
    """
    deadline = time.monotonic() + timeout_seconds
    with ExitStack() as held:
        # Everybody takes turns in this order, so that no two wait for each other.
        for bucket in sorted({name[:2] for name in names}):
            descriptor = _opened(folder, bucket)
            if descriptor is None:
                break
            held.callback(os.close, descriptor)
            while not _taken(descriptor) and time.monotonic() < deadline:
                check()
                time.sleep(_PAUSE_SECONDS)
        yield


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
