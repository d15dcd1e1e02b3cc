"""Processes that share only files with the test: forked from a process that has imported dpsql and has done nothing else.

A new interpreter for each would repeat all imports, a second and a half of computing.
"""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Any

CLEAN: ForkServerContext = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload([
    "dpsql.session.pipeline", "dpsql.engine.duckdb.engine", "dpsql.release.sandbox", "dpsql.ledger.opening", "pytest",
    "unit.session.test_session", "unit.reuse.test_lookup",
])  # fmt: skip


def clean_process(target: Callable[..., object], *arguments: object) -> ForkServerProcess:
    """Return a process that calls `target` in the current environment; it is not started yet."""
    return CLEAN.Process(target=_call, args=(dict(os.environ), target, arguments))


def _call(environment: dict[str, str], target: Callable[..., object], arguments: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*arguments)
