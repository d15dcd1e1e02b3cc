"""Reference distributions of the noise, computed from their definitions, and goodness of fit. Tests only."""

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
from scipy import stats

from dpsql_audit.choice_laws import ChoiceLaw, log_law

ALPHA = 1e-9
"""Probability that the test of one correct distribution fails."""

Cdf = Callable[[int], float]


def laplace_cdf(scale: float) -> Cdf:
    """Return P(Z <= k) of the discrete Laplace distribution with this `scale`."""
    q = math.exp(-1 / scale)

    def cdf(k: int) -> float:
        return 1 - q ** (k + 1) / (1 + q) if k >= 0 else q**-k / (1 + q)

    return cdf


def gaussian_cdf(sigma: float) -> Cdf:
    """Return P(Z <= k) of the discrete Gaussian distribution, by summing its pmf (small sigma) or by the midpoint rule (large
    sigma)."""
    if sigma > 1000:
        return lambda k: float(stats.norm.cdf((k + 0.5) / sigma))
    reach = math.ceil(12 * sigma) + 2
    points = np.arange(-reach, reach + 1)
    mass = np.exp(-(points**2) / (2 * sigma * sigma))
    total = np.cumsum(mass) / mass.sum()
    return lambda k: 0.0 if k < -reach else float(total[min(k + reach, 2 * reach)])


def exact_tails(level: Callable[[int], Fraction], count: int) -> list[Decimal]:
    """Return P(V >= v) for v = 0..count-1, where P(V = v) is proportional to exp(-level(v)): sums of 3,000 weights to 150
    digits."""
    with localcontext(Context(prec=150)):
        total, sums = Decimal(0), []
        for x in reversed([level(v) for v in range(3_000)]):
            total += (Decimal(-x.numerator) / Decimal(x.denominator)).exp()
            sums.append(total)
        return [one / total for one in reversed(sums[-count:])]


def fit(values: np.ndarray, cdf: Cdf, scale: float) -> float:
    """Return the p-value of a chi-square test of `values` against `cdf`, with about 60 cells of at least 20 expected values
    each."""
    step = max(1, round(scale / 8))
    uppers = [k * step for k in range(-32, 33)]
    expected, observed, before, low = [], [], 0.0, -np.inf
    for upper in uppers:
        share = cdf(upper) - before
        if share * values.size >= 20:
            expected.append(share)
            observed.append(int(((values > low) & (values <= upper)).sum()))
            before, low = cdf(upper), upper
    expected.append(1 - before)
    observed.append(int((values > low).sum()))
    if expected[-1] * values.size < 20:
        expected[-2:] = [sum(expected[-2:])]
        observed[-2:] = [sum(observed[-2:])]
    return float(stats.chisquare(observed, np.array(expected) * values.size).pvalue)


def fit_counts(seen: np.ndarray, chances: Iterable[float | Decimal]) -> float:
    """Return the p-value of a chi-square test of how often each cell was seen against the chances of all cells, with rare cells
    pooled."""
    expected = np.array([float(chance) for chance in chances]) * seen.sum()
    order, often = np.argsort(-expected), max(1, int((expected >= 20).sum()))
    if expected[order[often:]].sum() < 20:
        often = max(1, often - 1)
    both = [np.append(v[order[:often]], v[order[often:]].sum()) for v in (seen, expected)]
    possible = both[1] > 0
    if both[0][~possible].sum():
        return 0.0
    return float(stats.chisquare(both[0][possible], both[1][possible]).pvalue) if possible.sum() > 1 else 1.0


def fit_cells(drawn: np.ndarray, chances: Sequence[float | Decimal]) -> float:
    """Return the p-value of a test of drawn cells against the chances of all cells."""
    return fit_counts(np.bincount(drawn, minlength=len(chances)), chances)


def fit_choice(drawn: np.ndarray, law: ChoiceLaw, rows: list[int]) -> float:
    """Return the p-value of a test of drawn cells against the law that `dpsql_audit` has of a choice from `rows` of each cell."""
    filled = {cell: count for cell, count in enumerate(rows) if count}
    return fit_cells(drawn, np.exp(log_law(law, len(rows), filled, list(range(len(rows))))).tolist())


def laid_out(histograms: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `start`, `cell` and `count` of groups with these rows in each cell."""
    cell = [place for rows in histograms for place, n in enumerate(rows) if n]
    count = [n for rows in histograms for n in rows if n]
    start = np.cumsum([0, *(sum(n > 0 for n in rows) for rows in histograms)])
    return start, np.array(cell, dtype=np.int64), np.array(count, dtype=np.int64)


def tiled(rows: list[int], groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `start`, `cell` and `count` of so many groups that all have these rows in each cell."""
    _, cell, count = laid_out([rows])
    return np.arange(groups + 1) * cell.size, np.tile(cell, groups), np.tile(count, groups)


class Seeded:
    """Repeatable bytes, for tests of power and not of randomness."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._block = 0
        self.sizes: list[int] = []

    def read(self, size: int) -> bytes:
        self._block += 1
        self.sizes.append(size)
        return hashlib.shake_128(f"{self._seed}/{self._block}".encode()).digest(size)


class Scripted:
    """Words from a list, in order."""

    def __init__(self, words: list[int]) -> None:
        self._words = list(words)

    def read(self, size: int) -> bytes:
        taken, self._words = self._words[: size // 8], self._words[size // 8 :]
        return b"".join(word.to_bytes(8, "little") for word in taken)
