"""Copies that a server or a Python process keeps up to date in the background (`prepare: auto` in the policy).

`dpsql prepare` runs as a separate process at a lower priority; meanwhile questions are answered without copies, in the same way.
No answer, price or EXPLAIN depends on its progress, because that depends on rows: only the custodian's log reports it.

In a Python process, one thread serves all connections of this process to a policy file (pools open many). It ends with the
last of them or with the process, and terminates a running `dpsql prepare`: its unfinished work is under no name that a
question reads, and the next one removes it. If the process is killed, its `dpsql prepare` continues and finishes.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from weakref import WeakSet

from dpsql.engine.contract import CUSTODIAN_LOG, Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.query import size_in
from dpsql.policy import Policy
from dpsql.session.session import Session

PAUSE_SECONDS = 60.0
PAUSE_AFTER_FAILURE_SECONDS = 600.0
PREPARE = (sys.executable, "-m", "dpsql", "prepare", "-p")
"""The command, to which the policy's file is appended."""
_NICER = 10
_PATIENCE_SECONDS = 10.0


class CopyKeeper:
    """A thread that looks for tables without a copy, and prepares them, until it is ended. Thread-safe."""

    def __init__(
        self, path: Path, unprepared: Callable[[], tuple[str, ...]], pauses: tuple[float, float] | None = None,
        stderr: int | None = None,
    ) -> None:  # fmt: skip
        """`path`: the policy's file; `unprepared`: returns the tables without a copy; `pauses`: seconds until the next check,
        after a success and after a failure; `stderr`: where the lines of `dpsql prepare` go, as in `subprocess`."""
        self._place, self._unprepared, self._stderr = path, unprepared, stderr
        self._pauses = pauses or (PAUSE_SECONDS, PAUSE_AFTER_FAILURE_SECONDS)
        self._process: subprocess.Popen[str] | None = None
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="dpsql prepare", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
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
        """Prepare the tables without a copy; return whether every table has a copy afterwards."""
        try:
            missing = self._unprepared()
            if not missing:
                return True
            CUSTODIAN_LOG.info("%s: preparing %s in the background", self._place, ", ".join(missing))
            return self._prepare() and not self._unprepared()
        except Exception as error:  # the source is away or being replaced, or a session closes: questions report that
            if not self._ended.is_set():
                CUSTODIAN_LOG.error("copies cannot be looked for: %s", error)
            return False

    def _prepare(self) -> bool:
        with self._lock:
            if self._ended.is_set():
                return False
            self._process = subprocess.Popen(
                [*PREPARE, str(self._place)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=self._stderr, text=True, process_group=0,  # Ctrl-C ends a question, and not this
            )  # fmt: skip
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _NICER)
        _, said = self._process.communicate()
        if self._ended.is_set() or self._process.returncode == 0:
            return self._process.returncode == 0
        CUSTODIAN_LOG.error("dpsql prepare failed: %s", (said or "").strip())
        return False


def unprepared(policy: Policy, engine: Engine, key: Callable[[], bytes]) -> tuple[str, ...]:
    """Return the tables that a server should prepare; `key`: returns the ledger's secret."""
    return _within_limit(policy, engine, ContributionIndex(policy, engine, key)) if policy.prepare.automatic else ()


def _within_limit(policy: Policy, engine: Engine, index: ContributionIndex) -> tuple[str, ...]:
    """Return the tables without a copy; none if their files together are larger than the policy lets be copied by itself."""
    missing = index.unprepared()
    identities = [identity for table in missing if (identity := engine.identity(table)) is not None]
    files = {path: text for identity in identities for path, text in identity.files.items()}
    megabytes = sum(map(size_in, files.values())) >> 20
    if megabytes <= policy.prepare.most_mb:
        return missing
    _say_too_large(policy.origin.name, megabytes, policy.prepare.most_mb)
    return ()


@cache
def _say_too_large(name: str, megabytes: int, most: int) -> None:
    """Write to the custodian's log, once, why nothing is copied."""
    CUSTODIAN_LOG.warning(
        "%s: not prepared, its files have %d MB and prepare.most_mb is %d (`dpsql prepare` copies them all the same)",
        name, megabytes, most,
    )  # fmt: skip


class SessionKeeper(CopyKeeper):
    """A keeper of the copies of one policy file while sessions over it are open. Failures go to the custodian's log."""

    def __init__(self, path: Path, pauses: tuple[float, float] | None = None) -> None:
        super().__init__(path, self._missing, pauses, subprocess.PIPE)
        self._sessions: WeakSet[Session] = WeakSet()

    def join(self, session: Session) -> bool:
        """Serve another session. Return False, and do nothing, if the thread has ended or was lost in a fork."""
        with self._lock:
            if self._ended.is_set() or (self._thread.ident is not None and not self._thread.is_alive()):
                return False
            self._sessions.add(session)
        if self._thread.ident is None:
            self.start()
        return True

    def leave(self, session: Session) -> None:
        """Stop serving a session; after the last one, end the thread and its process."""
        with self._lock:
            self._sessions.discard(session)
            if self._sessions:
                return
        self.end()

    def _missing(self) -> tuple[str, ...]:
        """Return the tables without a copy, as seen by any open session; without an open session, end the thread."""
        with self._lock:
            session = next(iter(self._sessions), None)
            if session is None:
                self._ended.set()
                return ()
        return _within_limit(session.policy, session.context.engine, session.context.index)


class CopyKeepers:
    """The keepers of this process, by policy file. Thread-safe."""

    def __init__(self) -> None:
        atexit.register(self.end)
        os.register_at_fork(after_in_child=self.forget)
        self.forget()

    def forget(self) -> None:
        """Drop all keepers in a forked child: threads and processes belong to the parent."""
        self.keepers: dict[Path, SessionKeeper] = {}
        self._lock = threading.Lock()

    def joined(self, path: Path, session: Session) -> SessionKeeper:
        """Return the keeper of a policy file, which serves `session` as well."""
        with self._lock:
            keeper = self.keepers.get(path)
            if keeper is None or not keeper.join(session):
                keeper = self.keepers[path] = SessionKeeper(path)
                keeper.join(session)
        return keeper

    def end(self) -> None:
        for keeper in self.keepers.values():
            keeper.end()


KEEPERS = CopyKeepers()


def keep_prepared(path: Path, session: Session) -> Callable[[], None]:
    """Keep the copies of the policy file `path` up to date while `session` is open; return a function that ends this."""
    return partial(KEEPERS.joined(path.resolve(), session).leave, session)
