"""Cold start: a new process for each run, and the imports that take its time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.clock import in_turn, summary
from benchmarks.data import build, write_policy
from dpsql.session.session import open_session

ROWS = 1_000
TARGETS = {"python": 0.0, "help": 300.0, "query": 1200.0}
SHOWN = 15
_LINE = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)(\S+)")


@dataclass(frozen=True)
class Cold:
    """A command: median and least milliseconds of a new process, the target (0: none), and the slowest imports as (module,
    milliseconds of its own including imports below it that are not listed separately)."""

    command: str
    median: float
    least: float
    target: float
    imports: tuple[tuple[str, float], ...]


def cold(folder: Path, repeat: int) -> list[Cold]:
    """Measure `python -c pass`, `dpsql --help` and `dpsql query` on a table of a thousand rows."""
    policy = write_policy(folder, build(folder, ROWS), "row")
    open_session(policy, create_ledger=True).close()
    asked = "SELECT region, count(*) AS n FROM purchases GROUP BY region"
    commands = {
        "python": ["-c", "pass"],
        "help": ["-m", "dpsql", "--help"],
        "query": ["-m", "dpsql", "query", "-p", str(policy), "--format", "csv", asked],
    }
    works: dict[str, Callable[[], object]] = {name: partial(_start, given) for name, given in commands.items()}
    for work in works.values():
        work()
    samples = in_turn(works, repeat)
    found = []
    for name, given in commands.items():
        own = summary(samples[name])
        imports = () if name == "python" else slowest(_start(given, "-X", "importtime").stderr)
        shown = "python -c pass" if name == "python" else f"dpsql {given[2]}"
        found.append(Cold(shown, own.median, own.least, TARGETS[name], imports))
    return found


def _start(given: list[str], *before: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *before, *given],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "80"},
    )


def slowest(report: str) -> tuple[tuple[str, float], ...]:
    """Return own milliseconds by package from the report of `-X importtime` (`a.b` counts for `a`; dpsql's by module)."""
    own: dict[str, float] = {}
    for microseconds, _, _, module in _LINE.findall(report):
        name = module if module.startswith("dpsql") else module.partition(".")[0]
        own[name] = own.get(name, 0.0) + int(microseconds) / 1000
    return tuple(sorted(own.items(), key=lambda item: -item[1])[:SHOWN])
