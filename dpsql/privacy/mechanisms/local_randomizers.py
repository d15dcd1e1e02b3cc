"""Local randomizers: laws that randomise each row by itself, so that rows can be published (local differential privacy).

Every law here is a *window law*. The input x determines a window S(x) in the finite set O of outputs; all windows have the same
size. An output inside the window has probability ratio / T, an output outside 1 / T, where T makes the sum 1. So for all inputs
x, x' and each output o

    P(o | x) <= ratio P(o | x'),   ratio <= e**epsilon,

which is epsilon-local differential privacy (Kasiviswanathan and others 2011). The same holds between an input and the uniform
law on O, as T / |O| lies between 1 and ratio: a *padding row*, drawn uniformly from O, is as hard to distinguish from a row.

- `CategoryLaw`: outputs are the subsets of d of the k values; the window of x is the subsets that contain x (subset selection,
  Ye and Barg 2018, arXiv 1702.00610). d = 1 is k-ary randomised response (Kairouz, Oh, Viswanath 2014, arXiv 1407.1338).
- `NumberLaw`: one of two window laws, chosen by a coin that does not depend on the row (hybrid mechanism, Wang and others 2019,
  arXiv 1907.00834): the number is rounded at random to one of its two ends, which are categories (Duchi, Jordan, Wainwright
  2018, arXiv 1305.6000), or to one of STEPS + 1 places, whose windows are runs of `width` outputs that move with the place
  (piecewise mechanism). Random rounding happens before the window law and reads the row alone; a mixture of laws that
  are epsilon-private is epsilon-private. NULL, where a column may have it, is one more category, or one more window.

Ratios are multiples of 2**-RATIO_BITS, rounded down from e**epsilon, so that samplers need only whole numbers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from math import floor, sqrt

from dpsql.privacy.loss import PrivacyLoss
from dpsql.privacy.mechanisms.rational_bounds import exp_lower
from dpsql.storage.records import dataclass

RATIO_BITS = 20
MOST_EPSILON = 20
"""Largest epsilon of one column; e**20 takes 29 bits in addition to the 20 bits of the fraction."""
LEAST_EPSILON = Fraction(1, 1000)
"""Smallest epsilon of one column: below it, rounding the ratio down would lose more than a thousandth of it."""
MOST_CATEGORIES = 1_000
STEPS = 1 << 12
"""Number of places to which a number is rounded at random, minus one."""
_SHARE_BITS = 16
_HYBRID_FROM = Fraction(61, 100)
"""Below this epsilon the ends alone have the lower variance (Wang and others 2019, section 3.3)."""


@dataclass(frozen=True)
class WindowWeights:
    """The weights of a window law as whole numbers: each of the `inside` outputs in the window has weight `inside_weight`, each
    of the `outside` others `outside_weight`."""

    inside_weight: int
    inside: int
    outside_weight: int
    outside: int

    @property
    def total(self) -> int:
        return self.inside_weight * self.inside + self.outside_weight * self.outside

    @property
    def outside_bits(self) -> int:
        """The binary logarithm of `outside_weight`, which is a power of two."""
        return self.outside_weight.bit_length() - 1

    @property
    def ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one output under two inputs."""
        return Fraction(max(self.inside_weight, self.outside_weight), min(self.inside_weight, self.outside_weight))


def ratio_of(epsilon: Fraction) -> Fraction:
    """Return e**epsilon rounded down to a multiple of 2**-RATIO_BITS; 0 < epsilon <= MOST_EPSILON (nats)."""
    return Fraction(floor(exp_lower(epsilon) * 2**RATIO_BITS), 2**RATIO_BITS)


def _whole_weight(ratio: Fraction) -> int:
    return int(ratio * 2**RATIO_BITS)


@dataclass(frozen=True)
class CategoryLaw:
    """Subset selection among `size` >= 2 values: outputs are sets of `subset` values; `ratio` as in the module's docstring."""

    epsilon: Fraction
    size: int
    subset: int
    ratio: Fraction

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, size: int) -> CategoryLaw:
        """Return the law with the lowest variance of counts: subsets of about size / (e**epsilon + 1) values."""
        ratio = ratio_of(epsilon)
        return cls(epsilon, size, max(1, round(size / (ratio + 1))), ratio)

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss.pure(self.epsilon)

    @cached_property
    def weights(self) -> WindowWeights:
        """Weights of the sets with the row's own value and of those without, in units of binomial(size - 1, subset - 1) / subset.

        There are C(k-1, d-1) sets with the own value and C(k-1, d) without, in the proportion d to k - d.
        """
        return WindowWeights(_whole_weight(self.ratio), self.subset, 2**RATIO_BITS, self.size - self.subset)

    def recomputed_ratios(self) -> tuple[Fraction, ...]:
        """Return the largest ratio of the probabilities of one set under two values, from the probabilities themselves."""
        with_own = self.own_share / self.subset
        without = (1 - self.own_share) / (self.size - self.subset)
        return (max(with_own / without, without / with_own),)

    @cached_property
    def own_share(self) -> Fraction:
        """P(v in the set | the row has v)."""
        return Fraction(self.weights.inside_weight * self.subset, self.weights.total)

    @cached_property
    def other_share(self) -> Fraction:
        """P(v in the set | the row has another value): the rest of the set is uniform among the other values."""
        return (self.subset - self.own_share) / (self.size - 1)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of the estimate of one value's count, divided by the square root of the number of rows, if
        nearly all rows have other values."""
        spread = self.other_share * (1 - self.other_share) / (self.own_share - self.other_share) ** 2
        return sqrt(spread)


@dataclass(frozen=True)
class NumberLaw:
    """The hybrid law of a number between two ends; `missing`: NULL is one of its inputs and outputs.

    `interval_share` (a multiple of 2**-16): the probability of the piecewise law; `width`: of its windows, in outputs.
    """

    epsilon: Fraction
    missing: bool
    interval_share: Fraction
    width: int
    ratio: Fraction

    @classmethod
    def for_epsilon(cls, epsilon: Fraction, missing: bool) -> NumberLaw:
        """Return the law with the share and width of Wang and others 2019: 1 - e**(-epsilon/2), and windows that cover
        e**(-epsilon/2) of all places."""
        fall = exp_lower(-epsilon / 2)
        share = Fraction(round((1 - fall) * 2**_SHARE_BITS), 2**_SHARE_BITS) if epsilon > _HYBRID_FROM else Fraction(0)
        return cls(epsilon, missing, share, max(1, round(STEPS * fall)), ratio_of(epsilon))

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss.pure(self.epsilon)

    @property
    def interval_coin(self) -> int:
        """`interval_share` in units of 2**-16."""
        return int(self.interval_share * 2**_SHARE_BITS)

    @property
    def places(self) -> int:
        """The number of outputs of the piecewise law that stand for numbers; the outputs for NULL follow them."""
        return STEPS + self.width

    @cached_property
    def interval(self) -> WindowWeights:
        """Weights of the piecewise law."""
        outputs = self.places + (self.width if self.missing else 0)
        return WindowWeights(_whole_weight(self.ratio), self.width, 2**RATIO_BITS, outputs - self.width)

    @cached_property
    def ends(self) -> WindowWeights:
        """Weights of randomised response among the two ends (and NULL)."""
        return WindowWeights(_whole_weight(self.ratio), 1, 2**RATIO_BITS, 2 if self.missing else 1)

    def recomputed_ratios(self) -> tuple[Fraction, ...]:
        """Return for both laws the largest ratio of the probabilities of an output under two inputs, from these themselves."""
        ratios = []
        for law in (self.interval, self.ends):
            inside = Fraction(law.inside_weight * law.inside, law.total)
            chances = inside / law.inside, (1 - inside) / law.outside
            ratios.append(max(chances) / min(chances))
        return tuple(ratios)

    @cached_property
    def interval_slope(self) -> Fraction:
        """The rise of the estimate from one output of the piecewise law to the next, as a fraction of the column's range.

        For place i the mean of the output, measured from the middle, is (ratio - 1) width / T (i - STEPS / 2).
        """
        gain = Fraction((self.interval.inside_weight - self.interval.outside_weight) * self.width, self.interval.total)
        return 1 / (gain * STEPS)

    @cached_property
    def end_reach(self) -> Fraction:
        """The estimate for an end, as a multiple of the column's range from its middle: 1 / (2 (P(own) - P(other)))."""
        return Fraction(self.ends.total, 2 * (self.ends.inside_weight - self.ends.outside_weight))

    @cached_property
    def present_weights(self) -> tuple[Fraction, Fraction]:
        """The weights that an output number and an output NULL add to the estimate of how many rows have a number.

        A number adds ratio / (ratio - 1) under both laws. NULL adds 1 - (1 - P(NULL | number)) / (P(NULL | NULL) -
        P(NULL | number)) under the law that was used. The output does not show which law that was; its probability is the
        same whatever the row holds, so the mean over both laws is used.
        """
        if not self.missing:
            return Fraction(1), Fraction(0)
        weighted = total = Fraction(0)
        for law, share in ((self.interval, self.interval_share), (self.ends, 1 - self.interval_share)):
            falsely = Fraction(law.outside_weight * law.inside, law.total)
            rightly = Fraction(law.inside_weight * law.inside, law.total)
            weighted += share * falsely * (1 - (1 - falsely) / (rightly - falsely))
            total += share * falsely
        return self.ratio / (self.ratio - 1), weighted / total

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of one output number from the row's own, for a row in the middle of the range, as a multiple of
        the column's range."""
        law, half = self.interval, self.width / 2
        reach = self.places / 2
        everywhere, inside = law.outside_weight / law.total, (law.inside_weight - law.outside_weight) / law.total
        indexes = float(self.interval_slope) ** 2 * (2 * everywhere * reach**3 / 3 + 2 * inside * half**3 / 3)
        ends = float(self.end_reach) ** 2
        share = float(self.interval_share)
        return sqrt(share * indexes + (1 - share) * ends)


LocalLaw = CategoryLaw | NumberLaw
