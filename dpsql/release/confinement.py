"""DuckDB in a separate process, for statements whose memory or time the engine itself does not bound.

An expression over public names or released numbers can make a scalar function allocate gigabytes, which the engine's limits
do not cover; one such statement would end the server and all answers in progress. The process is limited by the kernel, holds
only what it is sent, and may be ended at any moment: it holds nothing private and no charge.
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
from pathlib import Path
from typing import Any

import pyarrow as pa

from dpsql.engine.fair_queue import FairQueue
from dpsql.errors.exceptions import refuse
from dpsql.release import confined_process
from dpsql.release.confined_process import GRACE_SECONDS, read_message, write_message
from dpsql.storage.records import dataclass, field

CEILING_MEGABYTES = 512
"""Memory that one statement may use beyond what its process holds before it, the engine's own tables included."""
MOST_MEGABYTES = 128
"""Largest size of an answer, which the server holds in memory while it is sent."""
PROCESSES = 2
_ENDS = {-signal.SIGALRM: "sandbox_time", -signal.SIGKILL: "sandbox_time", -signal.SIGABRT: "sandbox_memory",
         -signal.SIGSEGV: "sandbox_memory"}  # fmt: skip
CUSTODIAN_LOG = logging.getLogger("dpsql.custodian")


class ConfinedError(Exception):
    """An error with the engine's message, which stays in the server; for DuckDB's kinds of errors see `dpsql.release.sandbox`."""


@dataclass(frozen=True)
class DatabaseImage:
    """Instructions to create a database: `statements` over `tables`, then `closing`, which locks it. `name` identifies the
    contents."""

    name: str
    statements: Sequence[str] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    closing: Sequence[str] = ()
    memory_megabytes: int = 256


class ConfinedDuckDB:
    """One process that runs one statement at a time; it is started when first needed, and again after it has ended."""

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

        Raises ConfinedError with the engine's message, and the refusals sandbox_rows, sandbox_memory, sandbox_time and
        sandbox_broken.
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
        if facts["state"] == "unknown":  # it was closed to make scratch for others
            self._loaded.discard(image.name)
            self.load(image)
            facts, answered = self._exchange(message, list(tables.values()))
        if facts["state"] == "many":
            raise refuse("sandbox_rows", most=most_rows)
        if facts["state"] != "rows":
            text = str(facts.get("text", ""))
            if text.startswith("Out of Memory"):
                self.stop()  # ending the process returns its memory to the system
            raise ConfinedError(text)
        table: pa.Table = answered[0]
        return table

    def holds(self, image: DatabaseImage) -> bool:
        """Return whether the process already has the database of `image`."""
        return image.name in self._loaded

    def start(self) -> None:
        """Start the process if it is not running, without waiting for it."""
        self._started()

    def interrupt(self) -> None:
        """Stop the running statement, from any thread: by the engine's interrupt, and half a second later by ending the process.

        Call this repeatedly, because the first call may come before the statement starts.
        """
        now = time.monotonic()
        self._interrupted = self._interrupted or now
        if now - self._interrupted > GRACE_SECONDS:
            self.stop()
            return
        if self._loading:
            return  # loading is short, and the next statement need not repeat it
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(signal.SIGUSR1)

    def stop(self) -> None:
        """End the process and its running statement, from any thread. The next query starts another process."""
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
        """Send a message and return the answer. If the process ends meanwhile, raise its limit's refusal, else sandbox_broken.
        After any other failure it is ended: an answer that was not read to its end would be taken for that of the next asker."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            write_message(process.stdin, message, tables)
            return read_message(process.stdout)
        except BaseException as error:
            if not isinstance(error, (OSError, EOFError)):
                process.kill()
            status = process.wait()
            self.stop()
            if not isinstance(error, (OSError, EOFError, ValueError)):
                raise
            # -SIGALRM is the process's own alarm, -SIGKILL `stop` or the system's lack of memory.
            slug = _ENDS.get(status, "sandbox_broken")
            if slug == "sandbox_broken":
                CUSTODIAN_LOG.error("the process for confined statements ended with status %d", status)
            raise refuse(slug) from None

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._loaded = set()
                environment = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.defpath}
                # -P: do not import from the folder of the file, whose modules could shadow the standard library.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(Path(confined_process.__file__))], env=environment, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/",
                )  # fmt: skip
            return self._process


class ConfinedPool:
    """A pool of confined processes, shared fairly among askers: many queries of one asker wait for each other."""

    def __init__(self, processes: int = PROCESSES) -> None:
        self._queue = FairQueue(processes, most_each=max(1, processes - 1))
        self._lock = threading.Lock()
        self._free = [ConfinedDuckDB() for _ in range(processes)]
        self._all = tuple(self._free)
        self._closed = False

    def start(self) -> None:
        """Start the processes before the first query."""
        for process in self._all:
            process.start()

    @contextmanager
    def lent(
        self, asker: str, image: DatabaseImage, check: Callable[[], None] | None = None
    ) -> Iterator[ConfinedDuckDB]:
        """Yield a process for one statement of `asker`, preferably one that already has the database of `image`.

        `check` is called while no process is free, and may raise to stop waiting.
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
        with self._lock:
            self._closed = True
        for process in self._all:
            process.stop()
