"""AboveThreshold (the sparse vector technique): a stream of sums against a noisy threshold; only a sum above it is paid for.

A run draws one integer Z from a discrete Laplace law for the threshold, and for each query i a separate integer X_i from the same
law. The answer is "below" while q_i + X_i < T_i + Z. The first query with q_i + X_i >= T_i + Z ends the run: the answer is
"above", with the gap g = q_i + X_i - T_i - Z. Here q_i is an exact sum in steps of the noise grid, T_i a public whole number of
steps, and d the most steps by which one unit moves any of the sums; r = s/t is the privacy loss per step of noise.

Claim. A run with any number of answers, with queries and thresholds chosen adaptively, is (3 d r)-DP; it is (2 d r)-DP if a unit
moves all sums of the run in one direction (all q'_i >= q_i, or all q'_i <= q_i: counts, and sums of values of one sign, under
add_remove).

Proof. Fix the answers: below for i < k, then above with gap g. For neighbours with sums q and q' and for an integer m,

    P(answers)  = sum_z P(Z = z)     prod_{i<k} P(X_i < T_i - q_i + z)       P(X_k = g + T_k - q_k + z),
    P'(answers) = sum_z P(Z = z + m) prod_{i<k} P(X_i < T_i - q'_i + z + m)  P(X_k = g + T_k - q'_k + z + m),

as z -> z + m only renames the integers. If q'_i <= q_i + m for all i < k, no factor of the product is smaller in the second line.
The law satisfies P(Z = z + m) >= exp(-r |m|) P(Z = z), and likewise for X_k, whose value moves by q_k - q'_k + m. So

    P'(answers) >= exp(-r (|m| + |q_k - q'_k + m|)) P(answers).

Any direction: m = d allows all |q'_i - q_i| <= d and costs at most d + 2 d. If q' >= q: m = d again, and q_k - q'_k + d lies in
[0, d]. If q' <= q: m = 0 is enough, and costs at most d. Without the last factor (a run that has not ended) the bound is smaller,
and "above" alone, without its gap, is a sum over g: the gap is free. Both sides of a comparison are integers that move by
integers, so ties need no special treatment. Adaptive choices depend on earlier answers, which are the same on both sides.

Sources: Dwork, Naor, Reingold, Rothblum, Vadhan 2009 (STOC, the technique); Lyu, Su, Li 2017 (PVLDB 10(6), arXiv 1603.01699):
the constants, the variants that are wrong (no noise on the queries, noise that does not grow with the sensitivity, released
sums with the same noise), the monotone case; Ding, Wang, Zhang, Kifer 2019 (PVLDB 13(3), 10.14778/3368289.3368295): the gap is
free. They prove it for continuous noise; the lines above are the proof for integers. Equal scales for threshold and queries
are the best split in the monotone case; otherwise the gap has a standard deviation 2 % above that of the best split.

Other queries may be asked, and other runs started, during a run. Its answers, one at a time, are distributed like an interactive
function, which reads no data, of one randomised bit of the same epsilon (Vadhan and Wang 2021, arXiv 2105.14427). So a run
composes like that bit, drawn when the run starts: epsilon, or rho = epsilon tanh(epsilon / 2). Filters that hold for mechanisms
which answer at once hold for these (Haney et al. 2023, arXiv 2309.05901), so a ledger may charge a run when it starts and
continue.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import product

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.laplace import Laplace, SummedLaplace, noise_for, steps_moved
from dpsql.storage.records import dataclass

_PARTS = {True: 2, False: 3}
"""How many times the loss of one noisy sum is charged, by whether all sums move in one direction."""


@dataclass(frozen=True)
class AboveThreshold:
    """The law of one run. `noise`: of the threshold and of each query. `monotone`: a unit moves all sums in one direction."""

    noise: Laplace
    monotone: bool

    mechanism = "above_threshold"

    def __post_init__(self) -> None:
        if self.noise.sensitivity.l1 != self.noise.sensitivity.linf:
            raise ValueError("a comparison is about one sum")

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of a run, whether or not it ever answers "above"."""
        assert self.noise.loss.epsilon is not None
        return PrivacyLoss.pure(_PARTS[self.monotone] * self.noise.loss.epsilon)

    def recomputed_loss(self) -> PrivacyLoss:
        """Return `loss`, recomputed as the worst of all moves of the sums by whole sensitivities, each with its cheapest m.

        The bound of the proof is convex in m and in the moves, so its extremes are at -d, 0 and d.
        """
        alone = self.noise.recomputed_loss().epsilon
        assert alone is not None
        moves = [
            (below, above) for below, above in product((-1, 0, 1), repeat=2) if not self.monotone or below * above >= 0
        ]
        worst = max(
            min(abs(m) + abs(m - above) for m in (-1, 0, 1) if below <= m) for below, above in moves
        )  # fmt: skip
        return PrivacyLoss.pure(worst * alone)

    def gap_half_width(self, confidence: float, comparison: int) -> float:
        """Return h in row-grid units for the gap of the `comparison`-th query of a run (from 1): |gap - (q - T)| <= h.

        The noise of a gap is X_k - Z, the sum of two draws, but the query was selected for it. The bar of query i alone misses
        with probability at most (1 - confidence) / (i (i + 1)), whether the query ends the run or not; these probabilities sum to
        1 - confidence, so the bar of the query that ends the run holds with probability at least `confidence`.
        """
        missed = (1 - confidence) / (comparison * (comparison + 1))
        return SummedLaplace(self.noise, 2).half_width(1 - missed)

    def covers(self, sensitivity: Sensitivity) -> bool:
        """Return whether a sum of this sensitivity moves by no more steps than the law allows."""
        return steps_moved(sensitivity, self.noise.shift) <= steps_moved(self.noise.sensitivity, self.noise.shift)


@lru_cache(maxsize=1024, typed=True)
def law_for(sensitivity: Sensitivity, epsilon: Fraction, monotone: bool) -> AboveThreshold:
    """Return the law with the least noise whose run costs at most `epsilon` (> 0, nats). `sensitivity`: of one sum, not zero.

    Raises ValueError for a zero sensitivity, and the errors of `laplace.noise_for`.
    """
    noise = noise_for(sensitivity, epsilon / _PARTS[monotone])
    if not isinstance(noise, Laplace):
        raise ValueError("a sum that no unit can move needs no comparison")
    return AboveThreshold(noise, monotone)
