"""Setup of a peer's environment, and queries to it: every failure becomes a reason that the report shows."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.clock import Sample

HERE = Path(__file__).parent
PATIENCE_SECONDS = 120.0
PEERS = {
    "smartnoise": ("smartnoise", ("smartnoise-sql", "duckdb>=1.4,<2")),
    "opendp": ("opendp_polars", ("opendp[polars]",)),
    "pipelinedp": ("pipelinedp", ("pipeline-dp", "duckdb>=1.4,<2")),
    "diffprivlib": ("diffprivlib_tools", ("diffprivlib>=0.6", "scikit-learn<1.6", "duckdb>=1.4,<2")),
    "qrlew": ("qrlew", ("pyqrlew", "duckdb>=1.4,<2")),
}
"""Name -> module that runs in its environment, and the packages installed there. SmartNoise and Qrlew order windows by random(),
which DuckDB 2 refuses; diffprivlib 0.6 imports a name that scikit-learn 1.6 has removed."""
WITHOUT_QUANTILES, QUANTILES_ALONE = frozenset({"smartnoise", "qrlew"}), frozenset({"diffprivlib"})
"""Systems that do not run order statistics, and systems that run nothing else."""
Rows = dict[tuple[str, ...], list[float | None]]


class Unusable(Exception):
    """The reason why a peer, or one of its queries, cannot be measured, as a sentence."""


@dataclass(frozen=True)
class Answer:
    """The cost of one query, and its rows by key."""

    sample: Sample
    rows: Rows


def environment(name: str, folder: Path) -> Path:
    """Return the Python of the peer's environment below `folder`, created if necessary. Raises Unusable."""
    place = folder / name
    python = place / "bin" / "python"
    if (place / "ready").exists():
        return python
    for step in (
        [sys.executable, "-m", "venv", str(place)],
        [str(python), "-m", "pip", "install", "-q", *PEERS[name][1]],
    ):
        try:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Unusable(f"no environment: {error.strerror}") from None
        if done.returncode != 0:
            lines = [
                line for line in (done.stderr or done.stdout).splitlines() if "WARNING" not in line and line.strip()
            ]
            raise Unusable(f"not installed: {lines[-1].strip() if lines else 'pip failed'}")
    (place / "ready").touch()
    return python


class Peer:
    """One process in a peer's environment. Use it as a context manager."""

    def __init__(self, name: str, python: Path, facts: dict[str, Any]) -> None:
        """Start the process. Raises Unusable if it does not start."""
        self.name = name
        environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        command = [str(python), "serve.py", PEERS[name][0]]
        try:
            self._process = subprocess.Popen(
                command, cwd=HERE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ
            )
        except OSError as error:
            raise Unusable(f"does not start: {error.strerror}") from None
        try:
            self._say(facts)
        except Unusable:
            self.close()
            raise

    def ask(self, question: str) -> Answer:
        """Run one query. Raises Unusable."""
        found = self._say({"question": question})
        rows = {tuple(keys): values for keys, values in found["rows"]}
        return Answer(Sample(found["wall"], found["cpu"]), rows)

    def _say(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._process.poll() is not None:
            raise Unusable("its process has ended")
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unusable("its process has ended") from None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE_SECONDS):
                self.close()
                raise Unusable(f"no answer within {PATIENCE_SECONDS:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise Unusable("its process has ended")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise Unusable(found["error"])
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
