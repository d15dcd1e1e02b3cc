"""Copies that a server keeps up to date in the background (`prepare: auto` in the policy).

`dpsql prepare` runs as a separate process at a lower priority; meanwhile questions are answered without copies, in the same way.
No analyst is told when it begins or ends, because how long it takes depends on rows.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dpsql.engine.contract import Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.faults import CUSTODIAN_LOG
from dpsql.policy import Policy

PAUSE_SECONDS = 60.0
PAUSE_AFTER_FAILURE_SECONDS = 600.0
_NICER = 10


async def keep_prepared(
    policy: Callable[[], Policy],
    engine: Callable[[], Engine],
    key: Callable[[], bytes],
    place: Path,
    pause_seconds: float = PAUSE_SECONDS,
    pause_after_failure_seconds: float = PAUSE_AFTER_FAILURE_SECONDS,
) -> None:
    """Repeatedly look for tables without a copy of their present rows, and prepare them, until cancelled.

    `policy` and `engine` return the policy and the source that are being served, `key` the ledger's secret; `place` is the
    policy's file.
    """
    loop = asyncio.get_running_loop()
    while True:
        failed = False
        if policy().prepare.automatic:
            index = ContributionIndex(policy(), engine(), key)
            try:
                failed = bool(await loop.run_in_executor(None, index.unprepared)) and await _prepare(place) != 0
            except Exception as error:  # the source is away or being replaced: questions report that
                CUSTODIAN_LOG.error("copies cannot be looked for: %s", error)
        await asyncio.sleep(pause_after_failure_seconds if failed else pause_seconds)


async def _prepare(place: Path) -> int:
    """Run `dpsql prepare` and return its exit status. Its error output goes where the server's own lines go."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dpsql", "prepare", "-p", str(place), stdin=DEVNULL, stdout=DEVNULL
    )
    try:
        with suppress(OSError):  # it has ended already
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICER)
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
