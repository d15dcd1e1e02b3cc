"""Python programs forked from a process that has imported what they need and has done nothing else.

A new interpreter would repeat these imports, about a second of computing for each program that a test starts. The forked program
runs like `python -m MODULE ...` or `python -c CODE ...`, with its own streams, environment, folder, signals and exit status.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from support.places import ROOT, TESTS

COMMAND_LINE = (
    "dpsql.frontends.cli", "dpsql.frontends.batch", "dpsql.frontends.interruptible", "dpsql.frontends.pgwire.server",
    "dpsql.frontends.rendering.formats", "dpsql.session.session", "dpsql.engine.duckdb.engine", "dpsql.release.sandbox",
)  # fmt: skip
"""Modules that most commands need."""
LIBRARIES = (
    "pytest", "duckdb", "numpy", "pyarrow.compute", "pyarrow.dataset", "pyarrow.parquet", "click", "yaml",
    "sqlalchemy.dialects.sqlite", "sqlglot.optimizer", "sqlglot.dialects.duckdb", "sqlglot.dialects.postgres",
    "multiprocessing.forkserver", "concurrent.futures.thread", "asyncio", "http.server", "xml.etree.ElementTree",
)  # fmt: skip
"""Modules that tests of a copied package need in addition."""
LARGEST_REQUEST = 1 << 17
FORKS = not duckdb.__version__.startswith("1.")
"""False under DuckDB 1, which aborts a forked process that used it; programs are then started instead of forked."""


class Forked(subprocess.Popen[str]):
    """A forked program with the interface of `subprocess.Popen`. The caller is not its parent, so its exit status is read from a
    pipe."""

    def __init__(
        self, arguments: Sequence[str], imported: tuple[str, ...] = COMMAND_LINE,
        env: Mapping[str, str] | None = None, cwd: Path | None = None, **streams: Any,
    ) -> None:  # fmt: skip
        if FORKS:
            self.origin = origin(imported)
        super().__init__(
            list(arguments) if FORKS else [sys.executable, *arguments],
            env=dict(os.environ if env is None else env),
            cwd=cwd or Path.cwd(),
            text=True,
            **streams,
        )

    def _execute_child(self, arguments: list[str], *options: Any) -> None:
        """Fork the program instead of starting it. Of the options, only the folder, the environment and the ends of the pipes are
        used, in the order in which `subprocess` passes them."""
        if not FORKS:
            super()._execute_child(arguments, *options)  # type: ignore[misc]
            return
        *_, cwd, env, _startup, _flags, _shell, stdin, to_stdin, from_stdout, stdout, from_stderr, stderr = options[:15]
        self._child_created = False
        self.status, status = os.pipe()
        mine = [stdin if stdin != -1 else 0, stdout if stdout != -1 else 1, stderr if stderr != -1 else 2, status]
        request = json.dumps([arguments, env, str(cwd)]).encode()
        assert len(request) < LARGEST_REQUEST
        socket.send_fds(self.origin, [request], mine)
        pipes = [end for end, other in ((stdin, to_stdin), (stdout, from_stdout), (stderr, from_stderr)) if other != -1]
        for end in {status, *pipes, *([self._devnull] if hasattr(self, "_devnull") else [])}:
            os.close(end)
        self._closed_child_pipe_fds = True
        self.pid = self._number()
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if not FORKS:
            return super()._try_wait(wait_flags)  # type: ignore[misc, no-any-return]
        if wait_flags & os.WNOHANG and not select.select([self.status], [], [], 0)[0]:
            return 0, 0
        status = self._number()
        os.close(self.status)
        return self.pid, status

    def _number(self) -> int:
        text = os.read(self.status, 8)
        assert len(text) == 8, "the process that waits for the program is gone"
        return int.from_bytes(text, "big")

    def _internal_poll(self, *options: Any, **more: Any) -> int | None:
        if not FORKS:
            return super()._internal_poll(*options, **more)  # type: ignore[misc, no-any-return]
        if self.returncode is None and self._child_created and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None and (ended := self._try_wait(os.WNOHANG))[0]:
                    self._handle_exitstatus(ended[1])
            finally:
                self._waitpid_lock.release()
        return self.returncode


@cache
def origin(imported: tuple[str, ...]) -> socket.socket:
    """Start the process from which programs are forked, one for each tuple of modules, and return the socket that leads to it.
    The process ends with the caller, whose end of the socket is then closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    code = f"from support.forked import serve; serve({theirs.fileno()}, {imported!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(ROOT)])}
    nothing = subprocess.DEVNULL
    subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        pass_fds=[theirs.fileno()],
        stdin=nothing,
        stdout=nothing,
        cwd=ROOT,
    )
    theirs.close()
    return ours


def serve(place: int, imported: tuple[str, ...]) -> None:
    """Import the modules, then fork a program for each request until every sender has closed the socket."""
    for module in imported:
        importlib.import_module(module)
    own = any(module.startswith("dpsql") for module in imported)
    assert own or "dpsql" not in sys.modules, "a copied package would not be imported"
    requests = socket.socket(fileno=place)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        request, streams, _, _ = socket.recv_fds(requests, LARGEST_REQUEST, 4)
        if not request:
            os._exit(0)
        if not os.fork():
            requests.close()
            _watch(json.loads(request), streams)
            return
        for end in streams:
            os.close(end)


def _watch(request: Any, streams: list[int]) -> None:
    """Fork the program and report its exit status. Only the forked program returns from this function."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program:
        for end in (0, 1, 2, *streams[:3]):
            os.close(end)
        os.write(streams[3], program.to_bytes(8, "big"))
        os.write(streams[3], os.waitpid(program, 0)[1].to_bytes(8, "big"))
        os._exit(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, end in enumerate(streams[:3]):
        os.dup2(end, number)
    for end in streams:
        os.close(end)
    _run(*request)


def _run(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Run a command line as the interpreter would."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for place in (str(TESTS), str(ROOT)):
        sys.path.remove(place)
    for module in [module for module in sys.modules if module.split(".")[0] == "support"]:
        del sys.modules[module]
    sys.path[:1] = [
        "" if arguments[0] == "-c" else folder,
        *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep)),
    ]
    sys.argv = ["-c" if arguments[0] == "-c" else arguments[1], *arguments[2:]]
    if arguments[0] == "-c":
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
