"""Seeds of tests over generated cases: `pytest` alone runs the first few of them, and all run where slow tests do."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(count: int, quick: int) -> list[Any]:
    """Return the parameters 0, 1, ... of `count` seeds; those from `quick` on are slow."""
    return [*range(quick), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, count))]
