"""A median in one look at equal cells, and in two: a second grid inside the cell that the first look chose, at the same epsilon.

    python examples/second_look.py

Rows are spaced evenly around the median, `density` of them per cell of the first grid, over 4,096 cells; there are none
elsewhere. A line gives the mean error in widths of a cell of the first grid, under the exponential mechanism: of one look, of two
looks that share epsilon, and of one look at cells 16 times as fine. The second grid divides the chosen cell and its two
neighbours into 64 cells each; its epsilon and that of the first add up (sequential composition: the second grid is a function of
the first answer).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CELLS, FINER, INSIDE = 4_096, 16, 64
SHARES = (0.5, 0.25, 0.1)
"""Shares of epsilon for the second look."""


def choice(centres: Floats, density: float, rows: int, epsilon: float) -> Floats:
    """Return the probability of each cell around `centres`, from the number of rows between its centre and the median at 0. For a
    median, one row changes the utility by at most one half, so the rate is epsilon per row."""
    between = np.minimum(np.floor(np.abs(centres) * density + 0.5), rows / 2)
    weights = np.exp(-epsilon * between)
    return np.asarray(weights / weights.sum())


def one_look(offset: float, density: float, rows: int, epsilon: float, finer: int = 1) -> float:
    """Return the mean error of a choice among all cells; the median is `offset` widths from the centre of its cell."""
    centres = (np.arange(CELLS * finer) - CELLS * finer // 2) / finer + offset
    return float(choice(centres, density, rows, epsilon) @ np.abs(centres))


def two_looks(offset: float, density: float, rows: int, epsilon: float, share: float) -> float:
    """Return the mean error if `share` of epsilon is used for a choice inside three cells around the first choice."""
    centres = np.arange(CELLS) - CELLS // 2 + offset
    first = choice(centres, density, rows, (1 - share) * epsilon)
    inside = (np.arange(3 * INSIDE) + 0.5) / INSIDE - 1.5
    error = 0.0
    for centre, probability in zip(centres, first, strict=True):
        if probability > 1e-9:
            second = centre + inside
            error += probability * float(choice(second, density, rows, share * epsilon) @ np.abs(second))
    return error


def main() -> None:
    """Print a line for each epsilon and number of rows per cell."""
    random = np.random.default_rng(5)
    print(
        f"{'rows in a cell':>14} {'epsilon':>8} {'one look':>9}",
        *(f"{f'{share:g} for 2nd':>12}" for share in SHARES),
        "  finer cells",
    )
    for density in (0.1, 1.0, 10.0, 100.0, 1_000.0):
        for epsilon in (0.1, 1.0):
            rows = round(density * CELLS / 4)
            offsets = random.random(8) - 0.5
            one = np.mean([one_look(offset, density, rows, epsilon) for offset in offsets])
            two = [
                np.mean([two_looks(offset, density, rows, epsilon, share) for offset in offsets]) for share in SHARES
            ]
            fine = np.mean([one_look(offset, density, rows, epsilon, FINER) for offset in offsets])
            print(f"{density:14g} {epsilon:8g} {one:9.3g}", *(f"{error:12.3g}" for error in two), f"{fine:13.3g}")


if __name__ == "__main__":
    main()
