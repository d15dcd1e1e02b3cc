"""Seeds of tests over generated cases: `pytest` alone runs the first few, the slow tests a third of them, and a nightly run all."""

from typing import Any

import pytest

from support.effort import night


def seeds(count: int, quick: int) -> list[Any]:
    """Return `count` seeds 0, 1, ... as parameters: from `quick` on they are marked slow, and from a third on nightly."""
    third = max(quick, -(-count // 3))
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(quick, third)]
    return [*range(quick), *slow, *map(night, range(third, count))]
