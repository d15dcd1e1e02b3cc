"""How far running totals of a year are off, by the strategy with which its days are measured, at one price.

    python examples/running_totals.py

A line has the root mean square error of the 365 running totals, in deviations of a day when days alone are measured with the
same noise: from the matrix of what is measured, its largest column (by which noise is calibrated, in L2 for Gaussian noise and in
L1 for Laplace noise, where a person is in one day), and least squares. The square root of the matrix of running totals is that of
Henzinger, Upadhyay and Upadhyay (2023, "Almost tight error bounds on differentially private continual counting").
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAYS = 365
BASES = (2, 3, 4, 5, 8, 10, 16)


def by_ranges(base: int) -> Floats:
    """Return the matrix of days and of ranges of `base`, `base`**2, ... days, shape (measured numbers, days)."""
    places, rows, width = np.arange(DAYS), [], 1
    while width < DAYS:
        rows.append((places[None, :] // width == np.arange(-(-DAYS // width))[:, None]).astype(float))
        width *= base
    return np.vstack(rows)


def square_root() -> Floats:
    """Return the square root of the matrix of running totals: factors (2k choose k) / 4**k of k days ago."""
    factors = np.cumprod(np.append(1.0, (2 * np.arange(1, DAYS) - 1) / (2 * np.arange(1, DAYS))))
    ago = np.subtract.outer(np.arange(DAYS), np.arange(DAYS))
    return np.where(ago >= 0, factors[np.abs(ago)], 0.0)


def running_error(measured: Floats, power: int) -> float:
    """Return the root mean square error of running totals; `power`: 2 of Gaussian noise, 1 of Laplace noise."""
    moved = float((np.abs(measured) ** power).sum(axis=0).max() ** (1 / power))
    totals = np.tril(np.ones((DAYS, DAYS)))
    covariance = totals @ np.linalg.inv(measured.T @ measured) @ totals.T
    return moved * float(np.sqrt(np.trace(covariance) / DAYS))


def main() -> None:
    """Print a line for each strategy."""
    root = square_root()
    strategies = {"days alone": np.eye(DAYS)} | {f"ranges of {base}": by_ranges(base) for base in BASES}
    strategies |= {"square root": root, "square root, columns of one norm": root / np.linalg.norm(root, axis=0)}
    for name, measured in strategies.items():
        print(f"{name:34} Gaussian {running_error(measured, 2):6.2f}   Laplace {running_error(measured, 1):6.2f}")


if __name__ == "__main__":
    main()
