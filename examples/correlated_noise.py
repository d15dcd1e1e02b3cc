"""Correlated (multivariate Laplace) noise for a series of numbers, with the (epsilon, delta) that can be proven for it.

    python examples/correlated_noise.py

The idea: an answer is the series plus sqrt(W) G, with W from an exponential law and G from a normal law with the covariance C of
the series; a repeated query keeps its G and draws a new W, so that the mean of many repeats does not converge to the series. This
has two flaws:

1. It is claimed to be epsilon-DP. In two or more dimensions it is not: the privacy loss is that of normal noise of deviation
   sqrt(W), which is unbounded, and W is sometimes near 0. The provable guarantee, as if W were published: delta(epsilon) is the
   mean over W of the Gaussian mechanism's delta (Balle and Wang 2018), with the Mahalanobis distance sqrt(d' C^-1 d) as
   sensitivity, and C public.
2. Repeats lie on one line, series + a G with unknown a = sqrt(W) >= 0. By fitting the law of a to the positions of the answers
   on the line, anyone can locate a = 0: the error falls with the square root of the number of repeats.

dpsql answers a repeat from its store instead: the same numbers again, which cost nothing and reveal nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TUPLES, REPEATS = 32_768, 50
SENSITIVITY, EPSILON, DELTA = 18.0, 1.0, 1e-6
CORRELATION = 0.9
"""Correlation of neighbouring numbers of the series."""
MEAN_ROOT = math.sqrt(math.pi) / 2
"""E sqrt(W)."""
_below = NormalDist().cdf


def gaussian_delta(deviation: float, epsilon: float) -> float:
    """Return the least delta of normal noise of this deviation at sensitivity 1 (Balle and Wang 2018, theorem 8)."""
    distance = 1 / deviation
    lost = _below(distance / 2 - epsilon / distance)
    if epsilon > 700 or lost == 0:
        return lost
    return max(0.0, lost - math.exp(epsilon) * _below(-distance / 2 - epsilon / distance))


def correlated_delta(scale: float, epsilon: float) -> float:
    """Return the mean over W of the delta of normal noise of deviation `scale` sqrt(W), by the midpoint rule over ln W."""
    steps = 4000
    low, high = math.log(1e-12), math.log(60.0)
    width = (high - low) / steps
    total = 1e-12  # the whole range of smaller W
    for step in range(steps):
        w = math.exp(low + (step + 0.5) * width)
        total += width * w * math.exp(-w) * gaussian_delta(scale * math.sqrt(w), epsilon)
    return total


@cache
def least_scale(delta_of: Callable[[float, float], float], low: float = 0.1, high: float = 1e5) -> float:
    """Return the least scale at sensitivity 1 whose delta at `EPSILON` is at most `DELTA`."""
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if delta_of(middle, EPSILON) > DELTA else (low, middle)
    return high


def normal_series(random: np.random.Generator) -> Floats:
    """Return one draw of G: an autoregressive series of variance 1."""
    series = random.normal(size=TUPLES) * math.sqrt(1 - CORRELATION**2)
    series[0] = random.normal()
    reach = 1
    while reach < TUPLES:  # each number has summed `reach` numbers up to itself; now twice as many
        series[reach:] += CORRELATION**reach * series[:-reach]
        reach *= 2
    return series


def on_the_line(answers: Floats) -> Floats:
    """Return the position of the series on the line through repeated answers, one row each: their mean, shifted by the mean of
    sqrt(W). The deviation of the answers' positions on the line equals that of sqrt(W), which gives the scale."""
    middle = answers.mean(axis=0)
    _, _, directions = np.linalg.svd(answers - middle, full_matrices=False)
    places = (answers - middle) @ directions[0]
    deviation = math.sqrt(1 - MEAN_ROOT**2)
    # The law of sqrt(W) is skewed to the right, which distinguishes the two directions of the line.
    side = np.sign(float(np.mean(places**3)))
    step = side * float(places.std(ddof=1)) / deviation
    return np.asarray(middle - MEAN_ROOT * step * directions[0])


def figures(seed: int = 11) -> dict[str, tuple[float, float, float]]:
    """Return for each way the mean absolute error of one answer, of the mean of all repeats, and of the best fit to them. Every
    way satisfies (epsilon, delta) = (1, 1e-6) for one answer; independent noise divides it among the repeats."""
    random = np.random.default_rng(seed)
    series = 100 * normal_series(random)
    gaussian = SENSITIVITY * least_scale(gaussian_delta)
    correlated = SENSITIVITY * least_scale(correlated_delta)

    def error(answer: Floats) -> float:
        return float(np.abs(answer - series).mean())

    stored = series + gaussian * normal_series(random)
    independent = np.array([series + gaussian * math.sqrt(REPEATS) * normal_series(random) for _ in range(REPEATS)])
    kept = normal_series(random)
    redrawn = np.array([series + correlated * math.sqrt(random.exponential()) * kept for _ in range(REPEATS)])
    averaged = error(independent.mean(axis=0))
    return {
        "from the store": (error(stored), error(stored), error(stored)),
        "independent": (error(independent[0]), averaged, averaged),
        "correlated": (error(redrawn[0]), error(redrawn.mean(axis=0)), error(on_the_line(redrawn))),
    }


def main() -> None:
    """Print the scales and a table."""
    gaussian, correlated = least_scale(gaussian_delta), least_scale(correlated_delta)
    times = correlated / gaussian
    print(f"scale for sensitivity 1: Gaussian {gaussian:.2f}, correlated Laplace {correlated:.0f} ({times:.0f} times)")
    print(f"{'error of one answer, ' + str(REPEATS) + ' repeats':30} {'one':>9} {'mean':>9} {'best fit':>9}")
    for way, errors in figures().items():
        print(f"{way:30} " + " ".join(f"{error:9.0f}" for error in errors))


if __name__ == "__main__":
    main()
