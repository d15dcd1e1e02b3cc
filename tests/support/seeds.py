"""Seeds of tests over generated cases: `pytest` alone runs the first few, the slow tests a sixth of them, and a nightly run all."""

from typing import Any

import pytest

from support.effort import night


def seeds(count: int, quick: int) -> list[Any]:
    """Return `count` seeds 0, 1, ... as parameters: from `quick` on they are marked slow, and from a sixth on nightly."""
    sixth = max(quick, -(-count // 6))
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, sixth)]
    return [*range(quick), *slow, *map(night, range(sixth, count))]
