"""Errors of a year's running totals, by the strategy with which its days are measured, at one privacy loss.

    python examples/running_totals.py

A line gives the root mean square error of the 365 running totals, in deviations of a day when only days are measured with the
same noise. It follows from the strategy matrix, its largest column norm (which calibrates the noise, in L2 for Gaussian noise and
in L1 for Laplace noise, where a person is in one day), and least squares. "Best shares" uses tables by ranges of one width each,
some also shifted by a part of it, which divide a budget of Gaussian noise so that the error is minimal (Silvey, Titterington and
Torsney 1978, "An algorithm for optimal designs on a finite design space"). The square root of the matrix of running totals, which
dpsql plans where Gaussian noise may be used, is that of Henzinger, Upadhyay and Upadhyay (2023, "Almost tight error bounds on
differentially private continual counting").
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


def with_best_shares(base: int, parts: int, rounds: int = 25) -> float:
    """Return the error of running totals from days and ranges of `base`, `base`**2, ... days with Gaussian noise.

    Each table of ranges is measured `parts` times, each time shifted by one more part of its width (1: unshifted only).
    """
    widths = [base**level for level in range(1, DAYS) if base**level < DAYS]
    tables = [(1, 0), *dict.fromkeys((width, width * part // parts) for width in widths for part in range(parts))]
    days, totals = np.arange(DAYS), np.tril(np.ones((DAYS, DAYS)))
    together = [(days + moved) // width for width, moved in tables]
    same = np.array([ranges[:, None] == ranges[None, :] for ranges in together], dtype=float)
    shares = np.full(len(tables), 1 / len(tables))
    for _ in range(rounds):
        covariance = np.linalg.inv(np.tensordot(shares, same, 1))
        slopes = np.tensordot(same, covariance @ totals.T @ totals @ covariance, 2)
        shares = shares * np.sqrt(slopes)
        shares = shares / shares.sum()
    covariance = np.linalg.inv(np.tensordot(shares, same, 1))
    return float(np.sqrt(np.trace(totals @ covariance @ totals.T) / DAYS))


def square_root() -> Floats:
    """Return the square root of the matrix of running totals, with weight (2k choose k) / 4**k for the day k days ago."""
    factors = np.cumprod(np.append(1.0, (2 * np.arange(1, DAYS) - 1) / (2 * np.arange(1, DAYS))))
    ago = np.subtract.outer(np.arange(DAYS), np.arange(DAYS))
    return np.where(ago >= 0, factors[np.abs(ago)], 0.0)


def running_error(measured: Floats, power: int) -> float:
    """Return the root mean square error of running totals; `power`: 2 for Gaussian noise, 1 for Laplace noise."""
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
    for base, parts in ((2, 1), (3, 1), (4, 2), (4, 4)):
        moved = f", moved by 1/{parts}" if parts > 1 else ""
        print(f"{f'ranges of {base}{moved}, best shares':34} Gaussian {with_best_shares(base, parts):6.2f}")


if __name__ == "__main__":
    main()
