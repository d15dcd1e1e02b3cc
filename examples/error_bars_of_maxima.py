"""Error bars of the largest of k noisy numbers: how often they hold, and how wide they are, by four methods.

    python examples/error_bars_of_maxima.py

Laplace noise of scale 1 is added to each of k exact numbers; a 95 % bar is for the largest exact number. Everything is simulated
in floats. dpsql's bars are of the second kind for counts and sums and of the first for means: docs/evidence/accuracy.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MISSED = 0.05
FAR_BEHIND = MISSED / 2 / 20
"""The probability that the largest number is excluded because it seems too small."""
DRAWS = 20_000
_RANDOM = np.random.default_rng(13)
NUMBERS: dict[str, Callable[[int], Floats]] = {
    "all equal": np.zeros,
    "one larger by 3": lambda k: 3.0 * (np.arange(k) == 0),
    "one larger by 10": lambda k: 10.0 * (np.arange(k) == 0),
    "one larger by 15": lambda k: 15.0 * (np.arange(k) == 0),
    "one larger by 30": lambda k: 30.0 * (np.arange(k) == 0),
    "steps of 1": lambda k: -1.0 * np.arange(k),
    "steps of 5": lambda k: -5.0 * np.arange(k),
}


def exceeded(missed: float | Floats) -> Floats:
    """Return the distance that noise exceeds with probability `missed`, at most one half."""
    return -np.log(2 * np.asarray(missed))


def tail(distance: Floats) -> Floats:
    """Return the probability that noise exceeds `distance`."""
    half = np.exp(-np.abs(distance)) / 2
    return np.where(distance > 0, half, 1 - half)


def all_groups(noisy: Floats) -> tuple[Floats, Floats]:
    """Return low ends that hold for all groups at once, and the high end of the largest number alone."""
    largest = noisy.max(axis=1)
    return largest - exceeded(MISSED / 2 / noisy.shape[1]), largest + exceeded(MISSED / 2)


def without_those_behind(noisy: Floats) -> tuple[Floats, Floats]:
    """Return the same, with low ends that allow less for groups that are far behind (`dpsql.release.error_bars.extremes`
    proves that they hold)."""
    largest, k = noisy.max(axis=1), noisy.shape[1]
    behind = largest[:, None] - noisy - exceeded(FAR_BEHIND / k)
    allowed = MISSED / 2 - FAR_BEHIND
    least, most = np.zeros(len(noisy)), np.full(len(noisy), float(exceeded(allowed / k)))
    for _ in range(30):
        middle = (least + most) / 2
        missed = tail(np.maximum(middle[:, None], behind)).sum(axis=1) > allowed
        least, most = np.where(missed, middle, least), np.where(missed, most, middle)
    return largest - most, largest + exceeded(MISSED / 2)


def leader_alone(noisy: Floats) -> tuple[Floats, Floats]:
    """Return the bar of the group that is shown, ignoring that noise selected it."""
    largest = noisy.max(axis=1)
    return largest - exceeded(MISSED / 2), largest + exceeded(MISSED / 2)


def drawn_again(noisy: Floats) -> tuple[Floats, Floats]:
    """Return the middle 95 % of the maximum of the noisy numbers minus new noise, for the first 1,000 answers."""
    ends = []
    for numbers in noisy[:1_000]:
        again = (numbers - _RANDOM.laplace(0, 1, (400, len(numbers)))).max(axis=1)
        ends.append(np.quantile(again, [MISSED / 2, 1 - MISSED / 2]))
    low, high = np.array(ends).T
    return low, high


METHODS = (all_groups, without_those_behind, leader_alone, drawn_again)


def main() -> None:
    """Print a line for each set of exact numbers: the share of bars that hold, and their width in deviations of the noise."""
    print(f"{'numbers':24}", *(f"{method.__name__:>20}" for method in METHODS))
    for k in (2, 20, 300):
        for name, numbers in NUMBERS.items():
            exact = numbers(k)
            noisy = exact + _RANDOM.laplace(0, 1, (DRAWS if k < 300 else DRAWS // 5, k))
            cells = []
            for method in METHODS:
                low, high = method(noisy)
                held = np.mean((low <= exact.max()) & (exact.max() <= high))
                cells.append(f"{held:13.3f}, {np.mean(high - low) / np.sqrt(2):5.2f}")
            print(f"{f'{k}: {name}':24}", *cells)


if __name__ == "__main__":
    main()
