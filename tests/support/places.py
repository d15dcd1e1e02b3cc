"""Folders that tests read from: the repository, its tests, and the policies that ship."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
POLICIES = ROOT / "schemas" / "policies"
CLINIC = (POLICIES / "clinic.yaml").read_text(encoding="utf-8").split("\n", 2)[2]
"""A small valid policy; each test changes one part of it."""
