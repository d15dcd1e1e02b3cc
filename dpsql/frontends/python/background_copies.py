"""Copies that a Python process keeps up to date in the background (`prepare: auto` in the policy).

As a server does, it runs `dpsql prepare` as a process of its own at a lower priority; questions go on meanwhile, unprepared, and
are answered alike. Nothing that an answer, a price or EXPLAIN says depends on how far it is, since that depends on rows: the
custodian's log alone has it.

One thread serves all connections of this process to a policy file (pools open many). It ends with the last of them or with the
process, and ends a `dpsql prepare` that runs: what that has not finished is under no name that a question reads, and the next
one removes it. A process that is killed leaves its `dpsql prepare` to itself, which then finishes.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from weakref import WeakSet

from dpsql.engine.faults import CUSTODIAN_LOG
from dpsql.session.session import Session

PAUSE_SECONDS = 60.0
PAUSE_AFTER_FAILURE_SECONDS = 600.0
PREPARE = (sys.executable, "-m", "dpsql", "prepare", "-p")
"""The command; the policy's file follows."""
_NICER = 10
_PATIENCE_SECONDS = 10.0


class CopyKeeper:
    """Keeps the copies of one policy file while sessions over it are open. Thread-safe."""

    def __init__(self, place: Path, pauses: tuple[float, float]) -> None:
        """`place`: the policy's file; `pauses`: seconds until it looks again, after a success and after a failure."""
        self._place, self._pauses = place, pauses
        self._sessions: WeakSet[Session] = WeakSet()
        self._process: subprocess.Popen[str] | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="dpsql prepare", daemon=True)

    def join(self, session: Session) -> bool:
        """Serve another session; returns False, with nothing done, if the thread has ended or was lost in a fork."""
        with self._lock:
            if self._ended.is_set() or (self._thread.ident is not None and not self._thread.is_alive()):
                return False
            self._sessions.add(session)
        if self._thread.ident is None:
            self._thread.start()
        return True

    def leave(self, session: Session) -> None:
        """Serve a session no longer; after the last one nothing runs any more."""
        with self._lock:
            self._sessions.discard(session)
            if self._sessions:
                return
        self.end()

    def end(self) -> None:
        """End the thread and what it runs."""
        with self._lock:
            self._ended.set()
            if self._process is not None and self._process.poll() is None:
                self._process.terminate()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        pause = 0.0
        while not self._ended.wait(pause):
            pause = self._pauses[0] if self._look() else self._pauses[1]

    def _look(self) -> bool:
        """Prepare what has no copy; return whether everything has one now."""
        try:
            missing = self._unprepared()
            if not missing:
                return True
            CUSTODIAN_LOG.info("%s: preparing %s in the background", self._place, ", ".join(missing))
            return self._prepare() and not self._unprepared()
        except Exception as error:  # the source is away, or is being replaced, or a session closes: questions say so
            if not self._ended.is_set():
                CUSTODIAN_LOG.error("copies cannot be looked for: %s", error)
            return False

    def _unprepared(self) -> tuple[str, ...]:
        """Return the tables without a copy, by any open session; without one, end."""
        with self._lock:
            session = next(iter(self._sessions), None)
            if session is None:
                self._ended.set()
                return ()
        return session.context.index.unprepared()

    def _prepare(self) -> bool:
        """Run `dpsql prepare`; return whether it went well. What it says goes to the custodian's log."""
        with self._lock:
            if self._ended.is_set():
                return False
            self._process = subprocess.Popen(
                [*PREPARE, str(self._place)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, process_group=0,  # Ctrl-C ends a question, and not this
            )  # fmt: skip
        with suppress(OSError):  # it is over already
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICER)
        _, said = self._process.communicate()
        if self._ended.is_set() or self._process.returncode == 0:
            return self._process.returncode == 0
        CUSTODIAN_LOG.error("dpsql prepare failed: %s", said.strip())
        return False


class CopyKeepers:
    """The keepers of this process, by policy file. Thread-safe."""

    def __init__(self) -> None:
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self.forget)
        self.forget()

    def forget(self) -> None:
        """Leave threads and processes to the parent, of which this process is a fork."""
        self.keepers: dict[Path, CopyKeeper] = {}
        self._lock = threading.Lock()

    def joined(self, place: Path, session: Session) -> CopyKeeper:
        """Return the keeper of a policy file, which serves `session` too from now on."""
        with self._lock:
            keeper = self.keepers.get(place)
            if keeper is None or not keeper.join(session):
                keeper = self.keepers[place] = CopyKeeper(place, (PAUSE_SECONDS, PAUSE_AFTER_FAILURE_SECONDS))
                keeper.join(session)
        return keeper

    def end(self) -> None:
        """End all of them."""
        for keeper in self.keepers.values():
            keeper.end()


KEEPERS = CopyKeepers()


def keep_prepared(place: Path, session: Session) -> Callable[[], None]:
    """Keep the copies of the policy file `place` while `session` is open; returns what ends that."""
    return partial(KEEPERS.joined(place.resolve(), session).leave, session)
