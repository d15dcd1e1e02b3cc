"""AVG of few rows by five estimators, simulated: bias and root mean squared error for values within [0, 1000].

    python examples/mean_of_few_rows.py

The sums of the distances from each bound have Laplace noise of scale 1000 / epsilon, like AVG under the pure accountant. The
first estimator has no bias, because it receives the exact number of rows and may leave the bounds; the second is the plain ratio
of the released sums; the third is dpsql's (`dpsql/aggregates/moments.py`); the fourth also shrinks the sum toward the lower
bound while it is below 1.5 deviations of its noise; the last is the posterior mean of the mean, jointly with the number of rows,
given the noisy sums and their law, with a uniform prior on means within the bounds and on numbers of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
UPPER, EPSILON, DRAWS = 1_000.0, 0.5, 100_000
ASSUMED = UPPER / 4
DEVIATIONS = 1.5
OF_POSTERIOR = 3_000
"""Number of draws for the last estimator, which takes longer."""
_RANDOM = np.random.default_rng(3)


def without_bias(above: Floats, below: Floats, rows: int) -> Floats:
    """Return the noisy sum over the exact number of rows."""
    return above / rows


def plain(above: Floats, below: Floats, rows: int) -> Floats:
    """Return the noisy sum over the noisy number of rows, within the bounds."""
    above, below = np.maximum(above, 0), np.maximum(below, 0)
    return np.clip(above / np.maximum((above + below) / UPPER, 1), 0, UPPER)


def shown(above: Floats, below: Floats, rows: int) -> Floats:
    """Return the estimate of `dpsql.aggregates.moments`: assumed rows are added to a small denominator."""
    above, below = np.maximum(above, 0), np.maximum(below, 0)
    number, limit = (above + below) / UPPER, DEVIATIONS * np.sqrt(2) / EPSILON
    inside = np.clip(number, 0, limit)
    denominator = np.maximum(np.maximum(number, (inside**2 + limit**2) / (2 * limit)), 1)
    return np.clip(ASSUMED + (above - number * ASSUMED) / denominator, 0, UPPER)


def drawn_to_the_bound(above: Floats, below: Floats, rows: int) -> Floats:
    """Return the same for a sum that is shrunk toward 0 while it is below so many deviations of its noise."""
    share = np.clip(above / (DEVIATIONS * np.sqrt(2) * UPPER / EPSILON), 0, 1)
    return shown(above * share * (2 - share), below, rows)


def posterior_mean(above: Floats, below: Floats, rows: int) -> Floats:
    """Return the posterior mean of the mean, over a grid, for the first draws."""
    means = (np.arange(80) + 0.5) * UPPER / 80
    result = []
    for high, low in zip(above[:OF_POSTERIOR], below[:OF_POSTERIOR], strict=True):
        numbers = np.linspace(1, max((high + low) / UPPER, 0) + 15 / EPSILON, 80)[:, None]
        distance = np.abs(numbers * means - high) + np.abs(numbers * (UPPER - means) - low)
        likelihood = np.exp((distance.min() - distance) * EPSILON / UPPER)
        result.append((likelihood * means).sum() / likelihood.sum())
    return np.array(result)


METHODS = (without_bias, plain, shown, drawn_to_the_bound, posterior_mean)


def main() -> None:
    """Print a line for each number of rows and exact mean."""
    print(f"{'rows':>6} {'mean':>6}", *(f"{method.__name__:>20}" for method in METHODS))
    for rows in (5, 10, 25, 100):
        for mean in (10.0, 53.0, 250.0, 500.0, 900.0):
            noise = _RANDOM.laplace(0, UPPER / EPSILON, (2, DRAWS))
            above, below = rows * mean + noise[0], rows * (UPPER - mean) + noise[1]
            wrong = [method(above, below, rows) - mean for method in METHODS]
            print(f"{rows:6} {mean:6g}", *(f"{off.mean():+10.3g}, {np.sqrt(np.mean(off**2)):8.3g}" for off in wrong))


if __name__ == "__main__":
    main()
