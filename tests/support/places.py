"""Folders that tests read from: the repository, its tests, and the policies of the corpora."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
POLICIES = TESTS / "policies"
