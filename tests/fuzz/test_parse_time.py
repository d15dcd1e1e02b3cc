"""The time to parse a text grows with its length at most: counted in calls of functions, not in seconds."""

import json
import random
import subprocess
import sys
from typing import Any

import pytest
from support.places import ROOT

from dpsql.sql.lexer import DIALECT, POSTGRESQL
from dpsql.sql.parser import MOST_CALLS
from fuzz.conftest import examples
from fuzz.slow_texts import Family, listed, mixed, nested

MOST_OPEN = 55
"""Brackets of a text, fewer than a question may have."""


def counted(texts: list[tuple[str, str]]) -> list[dict[str, Any] | None]:
    """Return the counts of `fuzz.parser_work` for each (dialect, text)."""
    lines = "\n".join(json.dumps(text) for text in texts)
    asked = subprocess.run(
        [sys.executable, "-m", "fuzz.parser_work"], input=lines, capture_output=True, text=True, cwd=ROOT / "tests", check=False,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )  # fmt: skip
    assert asked.returncode == 0, asked.stderr[-3_000:]
    return [json.loads(line) for line in asked.stdout.splitlines()]


def size(family: Family) -> int:
    """Return a number of copies that open no more than `MOST_OPEN` brackets."""
    opened = sum(text.count(sign) for text in family.opening for sign in ("(", "[", "{", "CASE"))
    return min(60, MOST_OPEN * len(family.opening) // opened) if opened else 60


def check(families: list[Family]) -> None:
    texts = [(dialect, family.text(size(family))) for family in families for dialect in (DIALECT, POSTGRESQL)]
    results = counted(texts)
    assert len(results) == len(texts)
    bad = [
        (result, text)
        for result, text in zip(results, texts, strict=True)
        if result is not None and result["calls"] > MOST_CALLS * (result["steps"] + result["tokens"])
    ]
    assert bad == []
    assert sum(result is not None and result["outcome"] == "read" for result in results) > len(results) / 4


def test_calls_are_bounded_by_steps_and_tokens() -> None:
    rng = random.Random(34)
    check([*rng.sample(list(nested()), 8), *(mixed(rng) for _ in range(8)), *(listed(rng) for _ in range(4))])


@pytest.mark.nightly
def test_calls_are_bounded_for_every_shape() -> None:
    check(list(nested()))
    for _, rng in examples("parse time", 2):
        check([family for _ in range(100) for family in (mixed(rng), listed(rng))])
