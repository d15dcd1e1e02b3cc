"""The median by the exponential mechanism, by smooth sensitivity and by propose-test-release, with ideal noise.

    python examples/local_sensitivity.py

dpsql has all three; docs/examples.md compares its implementations. This simulates them in floats, under ideal noise: the mean
absolute error over 60 draws, as a share of the bounds [0, 1], under epsilon and, for the last two, delta = 1e-6.
Propose-test-release gets the best possible bound, the smallest one that passes its test in most cases, which no one can know
without looking at the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DELTA = 1e-6
DRAWS = 60
_RANDOM = np.random.default_rng(5)
LAWS: dict[str, Callable[[int], Floats]] = {
    "normal, deviation 0.1": lambda n: _RANDOM.normal(0.4, 0.1, n).clip(0, 1),
    "uniform": lambda n: _RANDOM.uniform(0, 1, n),
    "log-normal": lambda n: (_RANDOM.lognormal(0, 1, n) / 50).clip(0, 1),
}


def local(x: Floats, distance: int) -> float:
    """Return the local sensitivity of the median of sorted values at distance `distance`, in changed rows (Nissim and others
    2007, 3.1)."""
    n, middle, t = x.size, x.size // 2, np.arange(0, distance + 2)

    def at(index: NDArray[np.int64]) -> Floats:
        inside = x[np.clip(index, 0, n - 1)]
        return np.where(index < 0, 0.0, np.where(index >= n, 1.0, inside))

    return float((at(middle + t) - at(middle + t - distance - 1)).max())


def smooth(x: Floats, epsilon: float) -> float:
    """Return an error of smooth sensitivity: Laplace noise of scale 2 S / epsilon, S the largest exp(-beta k) local(k)."""
    beta, largest, k = epsilon / (2 * math.log(2 / DELTA)), 0.0, 0
    while math.exp(-beta * k) > largest:
        largest = max(largest, math.exp(-beta * k) * local(x, k))
        k += 1
    return abs(float(_RANDOM.laplace(0, 2 * largest / epsilon)))


def propose_test_release(x: Floats, epsilon: float) -> float:
    """Return an error of propose-test-release: half of epsilon for the test, whose threshold is ln(1 / (2 delta)) divided by that
    half, and half for Laplace noise proportional to the bound."""
    half = epsilon / 2
    distance = math.ceil(math.log(1 / (2 * DELTA)) / half + math.log(10) / half)
    return abs(float(_RANDOM.laplace(0, local(x, distance) / half)))


def exponential(x: Floats, epsilon: float) -> float:
    """Return an error of the exponential mechanism over all numbers between the bounds, which dpsql implements on a grid."""
    ends = np.concatenate([[0.0], x, [1.0]])
    rank = np.abs(np.arange(x.size + 1) - x.size / 2)
    weight = np.diff(ends) * np.exp(-epsilon * (rank - rank.min()))
    interval = _RANDOM.choice(x.size + 1, p=weight / weight.sum())
    return abs(float(_RANDOM.uniform(ends[interval], ends[interval + 1]) - np.median(x)))


def main() -> None:
    """Print a table."""
    ways = (exponential, smooth, propose_test_release)
    print(f"{'values':24} {'n':>7} {'epsilon':>8} " + " ".join(f"{way.__name__:>21}" for way in ways))
    for name, draw in LAWS.items():
        for n in (100, 1_000, 10_000):
            for epsilon in (1.0, 0.1):
                samples = [np.sort(draw(n)) for _ in range(DRAWS)]
                errors = [100 * float(np.mean([way(x, epsilon) for x in samples])) for way in ways]
                print(f"{name:24} {n:7,} {epsilon:8} " + " ".join(f"{error:20.3g}%" for error in errors), flush=True)


if __name__ == "__main__":
    main()
