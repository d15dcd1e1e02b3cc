"""Seeds of tests over generated cases: `pytest` alone runs the first few, and runs that include slow tests use all of them."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, quick: int) -> list[Any]:
    """Return `count` seeds 0, 1, ... as parameters; those from `quick` on are marked slow."""
    return [*range(quick), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, count))]
