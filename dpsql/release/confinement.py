"""DuckDB in a process of its own, for statements whose memory or time the engine itself does not bound.

What an analyst writes over public names or released numbers can ask a scalar function for gigabytes: the engine's limits
do not see them, and one such statement would take the server, and everybody's answers, along. The process is limited by
the kernel, holds nothing but what it is sent, and may be ended at any moment: nothing private and no charge is in it.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsql.engine.fair_queue import FairQueue
from dpsql.errors.exceptions import refuse
from dpsql.release import confined_process
from dpsql.release.confined_process import GRACE_SECONDS, read_message, write_message

CEILING_MEGABYTES = 512
"""What one statement may take beyond what its process holds before, the engine's own tables included."""
MOST_MEGABYTES = 128
"""Size of an answer, which the server holds while it is sent."""
PROCESSES = 2
_ENDS = {-signal.SIGALRM: "sandbox_time", -signal.SIGKILL: "sandbox_time", -signal.SIGABRT: "sandbox_memory",
         -signal.SIGSEGV: "sandbox_memory"}  # fmt: skip
CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")


class ConfinedError(Exception):
    """The engine's words for what went wrong; for `DuckDB`'s kinds see `dpsql.release.sandbox`. They stay in the server."""


@dataclass(frozen=True)
class DatabaseImage:
    """How a database is made: `statements` over `tables`, then `closing`, which locks it. `name` is unique to its contents."""

    name: str
    statements: Sequence[str] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    closing: Sequence[str] = ()
    memory_megabytes: int = 256


class ConfinedDuckDB:
    """One process with one statement at a time; started when it is first needed and again after it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._loaded: set[str] = set()
        self._lock = threading.Lock()
        self._interrupted: float | None = None
        self._loading = False

    def query(
        self, image: DatabaseImage, sql: str, tables: Mapping[str, pa.Table], *, most_rows: int, seconds: float
    ) -> pa.Table:
        """Return the rows of one SELECT over the database of `image` and `tables`.

        Raises ConfinedError with the engine's words, and sandbox_rows, sandbox_memory, sandbox_time.
        """
        message: dict[str, Any] = {
            "database": image.name, "sql": sql, "names": list(tables), "most_rows": most_rows, "seconds": seconds,
            "ceiling_bytes": CEILING_MEGABYTES << 20, "most_bytes": MOST_MEGABYTES << 20,
        }  # fmt: skip
        self._interrupted = None
        self.load(image)
        if self._interrupted is not None:
            raise refuse("sandbox_time")
        facts, answered = self._exchange(message, list(tables.values()))
        if facts["state"] == "unknown":  # it was dropped for others
            self._loaded.discard(image.name)
            self.load(image)
            facts, answered = self._exchange(message, list(tables.values()))
        if facts["state"] == "many":
            raise refuse("sandbox_rows", most=most_rows)
        if facts["state"] != "rows":
            text = str(facts.get("text", ""))
            if text.startswith("Out of Memory"):
                self.stop()  # it gives its memory back to the system
            raise ConfinedError(text)
        table: pa.Table = answered[0]
        return table

    def holds(self, image: DatabaseImage) -> bool:
        """Return whether the database is there already."""
        return image.name in self._loaded

    def start(self) -> None:
        """Start the process when there is none, without waiting for it."""
        self._started()

    def interrupt(self) -> None:
        """Stop what runs, from any thread: by the engine's interrupt, and half a second later by the end of the process.

        To be called again and again, as the first one may come before the statement.
        """
        now = time.monotonic()
        self._interrupted = self._interrupted or now
        if self._loading:
            return  # which is short, and is not done again for the next one
        if now - self._interrupted > GRACE_SECONDS:
            self.stop()
            return
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """End the process, and with it what runs; from any thread. The next query starts another."""
        with self._lock:
            process, self._process = self._process, None
            self._loaded = set()
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                with suppress(OSError, ValueError):
                    pipe.close()
            process.wait()

    def load(self, image: DatabaseImage) -> None:
        """Create the database of `image` in the process, unless it exists."""
        if image.name in self._loaded:
            return
        message = {
            "database": image.name, "names": list(image.tables), "statements": list(image.statements),
            "closing": list(image.closing), "memory_megabytes": image.memory_megabytes,
        }  # fmt: skip
        self._loading = True
        try:
            self._exchange(message, list(image.tables.values()))
        finally:
            self._loading = False
        self._loaded.add(image.name)

    def _exchange(self, message: dict[str, Any], tables: list[pa.Table]) -> tuple[dict[str, Any], list[pa.Table]]:
        """Send one message and read its answer. A process that has ended in between was ended by one of its limits."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            write_message(process.stdin, message, tables)
            return read_message(process.stdout)
        except (OSError, EOFError, ValueError):
            status = process.wait()
            self.stop()
            # -SIGALRM is its own clock, -SIGKILL the stop above or the system's want of memory.
            slug = _ENDS.get(status, "sandbox_broken")
            if slug == "sandbox_broken":
                CUSTODIAN_LOG.error("the process for confined statements ended with status %d", status)
            raise refuse(slug) from None

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._loaded = set()
                environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.defpath}
                # -P: the folder of the file is no place to import from; its modules are not those of the standard library.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(Path(confined_process.__file__))], env=environment, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/",
                )  # fmt: skip
            return self._process


class ConfinedPool:
    """A pool of confined processes, shared fairly among askers: many questions of one asker wait for each other."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._queue = FairQueue(processes, most_each=max(1, processes - 1))
        self._lock = threading.Lock()
        self._free = [ConfinedDuckDB() for _ in range(processes)]
        self._all = tuple(self._free)
        self._closed = False

    def start(self) -> None:
        """Start the processes before the first question."""
        for process in self._all:
            process.start()

    @contextmanager
    def lent(
        self, asker: str, image: DatabaseImage, check: Callable[[], None] | None = None
    ) -> Iterator[ConfinedDuckDB]:
        """Yield a process for one statement of `asker`, where there is a choice one that has the database of `image`.

        `check`, called while there is none, may raise to stop waiting.
        """
        with self._queue.place(asker, check):
            with self._lock:
                lent = next((process for process in self._free if process.holds(image)), self._free[-1])
                self._free.remove(lent)
            try:
                yield lent
            finally:
                with self._lock:
                    self._free.append(lent)
                    if not self._closed:
                        lent.start()

    def close(self) -> None:
        """End all confined processes."""
        with self._lock:
            self._closed = True
        for process in self._all:
            process.stop()
