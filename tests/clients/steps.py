"""Clients that are separate programs and print one line of JSON for each step, {"step": NAME, "error": TEXT or null}."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

CLIENTS = Path(__file__).parent / "sources"


def run_steps(command: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """Run the program and return the error of each step, None where it passed. A program that ends early or prints nothing is an
    error."""
    found = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    return {line["step"]: line["error"] for line in lines}
