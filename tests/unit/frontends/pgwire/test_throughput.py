"""The throughput harness queries both servers and reports its measurements; their speed does not matter here."""

import re
import subprocess
import sys

import pytest
from support.places import ROOT


@pytest.mark.nightly
def test_both_servers_answer_at_every_number_of_connections() -> None:
    command = [sys.executable, "-m", "benchmarks.wire", "--rounds", "1", "--seconds", "0.2"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0, found.stderr
    rows = re.findall(r"^\| (\w+) \| (\d+) \| ([\d,]+) /s \| ([\d,]+) /s \| [\d.]+ \|$", found.stdout, re.MULTILINE)
    assert [(way, int(connections)) for way, connections, *_ in rows] == [
        (way, connections) for way in ("extended", "simple") for connections in (1, 8, 32)
    ]
    assert all(int(rate.replace(",", "")) > 0 for *_, mine, theirs in rows for rate in (mine, theirs))
