"""The process behind `dpsql.release.confinement`: one DuckDB statement at a time, under limits that the kernel enforces.

DuckDB counts its tables and hash tables against `memory_limit`, but not the texts and lists that a scalar function creates, and
it checks for an interrupt between vectors, not inside a function. So memory is bounded by RLIMIT_AS (the memory held before a
statement plus the ceiling), and time by an interrupt and, soon after, an alarm whose default action ends the process.
SIGUSR1 also interrupts. The process inherits no socket and no environment, may write no file (RLIMIT_FSIZE 0), and imports
nothing from dpsql, so that it starts in a fifth of a second.

Each part of a message is a length (8 bytes) and that many bytes: first JSON, then as many Arrow streams as the JSON announces.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

if __name__ == "__main__":  # before a library starts threads, because each of them must block the signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})

import duckdb
import pyarrow as pa

MOST_DATABASES = 16
GRACE_SECONDS = 0.5
"""Time from an interrupt to the end of the process, because a running function does not notice the interrupt."""
_BATCH_ROWS = 10_000
_NONE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def write_message(pipe: IO[bytes], facts: dict[str, Any], tables: list[pa.Table]) -> None:
    """Write one message. Raises OSError when the other side has closed the pipe."""
    parts = [json.dumps({**facts, "tables": len(tables)}).encode()]
    for table in tables:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        parts.append(sink.getvalue())
    for part in parts:
        pipe.write(struct.pack("!Q", len(part)))
        pipe.write(part)
    pipe.flush()


def read_message(pipe: IO[bytes]) -> tuple[dict[str, Any], list[pa.Table]]:
    """Read one message. Raises EOFError when the other side has ended."""
    facts: dict[str, Any] = json.loads(_part(pipe))
    return facts, [pa.ipc.open_stream(_part(pipe)).read_all() for _ in range(facts["tables"])]


def _part(pipe: IO[bytes]) -> bytes:
    (size,) = struct.unpack("!Q", _exactly(pipe, 8))
    return _exactly(pipe, size)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def opened(
    memory_megabytes: int, statements: list[str], tables: dict[str, pa.Table], closing: list[str]
) -> duckdb.DuckDBPyConnection:
    """Return an in-memory DuckDB in which `statements` over registered `tables` were run, and then `closing`, which locks it."""
    config = {"threads": 1, "memory_limit": f"{memory_megabytes}MB"}
    connection = duckdb.connect(":memory:", config=config)  # type: ignore[arg-type]
    for name, table in tables.items():
        connection.register(name, table)
    for statement in statements:
        connection.execute(statement)
    for name in tables:
        connection.unregister(name)
    for statement in closing:
        connection.execute(statement)
    return connection


def rows(
    cursor: duckdb.DuckDBPyConnection, sql: str, tables: dict[str, pa.Table], most_rows: int, most_bytes: int
) -> pa.Table | None:
    """Return the rows of one SELECT; None when there are more than `most_rows`.

    Raises duckdb.Error and MemoryError, the latter also for rows with more than `most_bytes` in total.
    """
    for name, table in tables.items():
        cursor.register(name, table)
    relation = cursor.sql(sql)
    # DuckDB 1.4 has only the older name.
    reader = (getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch)(_BATCH_ROWS)
    batches: list[pa.RecordBatch] = []
    count = size = 0
    for batch in reader:
        count, size = count + batch.num_rows, size + batch.nbytes
        if count > most_rows:
            return None
        if size > most_bytes:
            raise MemoryError
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


class _Process:
    """The open databases, the most recently used last."""

    def __init__(self) -> None:
        self._databases: OrderedDict[str, duckdb.DuckDBPyConnection] = OrderedDict()
        self._running: duckdb.DuckDBPyConnection | None = None

    def listen(self) -> None:
        """Interrupt the running statement at every SIGUSR1; never return. DuckDB computes without holding Python's lock."""
        while True:
            signal.sigwait({signal.SIGUSR1})
            cursor = self._running
            if cursor is not None:
                with suppress(duckdb.Error):
                    cursor.interrupt()

    def answer(self, facts: dict[str, Any], tables: list[pa.Table]) -> tuple[dict[str, Any], list[pa.Table]]:
        name, inputs = facts["database"], dict(zip(facts["names"], tables, strict=True))
        if "statements" in facts:
            while len(self._databases) >= MOST_DATABASES:
                self._databases.popitem(last=False)[1].close()
            self._databases[name] = opened(facts["memory_megabytes"], facts["statements"], inputs, facts["closing"])
            return {"state": "done"}, []
        if name not in self._databases:
            return {"state": "unknown"}, []
        self._databases.move_to_end(name)
        self._running = cursor = self._databases[name].cursor()
        with _bounded(cursor, facts["seconds"], facts["ceiling_bytes"]):
            try:
                result = rows(cursor, facts["sql"], inputs, facts["most_rows"], facts["most_bytes"])
            except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
                return {"state": "error", "text": str(error)}, []
            except MemoryError:
                return {"state": "error", "text": "Out of Memory Error: it does not fit"}, []
            finally:
                self._running = None
                cursor.close()
        return ({"state": "rows"}, [result]) if result is not None else ({"state": "many"}, [])


@contextmanager
def _bounded(cursor: duckdb.DuckDBPyConnection, seconds: float, ceiling_bytes: int) -> Iterator[None]:
    """Set the kernel's limits while a statement runs. The default action of the alarm ends the process."""
    timer = threading.Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    with suppress(OSError, ValueError):  # if the kernel has no such limit, only the engine's own applies
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + ceiling_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, seconds + GRACE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        timer.cancel()
        timer.join()  # wait, because the cursor is closed next
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, _NONE)


def serve() -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # only for the server, which closes the pipe when it is done
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output that a library prints must not become part of an answer
    process = _Process()
    threading.Thread(target=process.listen, daemon=True).start()
    with suppress(EOFError, BrokenPipeError):
        while True:
            write_message(sink, *process.answer(*read_message(source)))


if __name__ == "__main__":
    serve()
