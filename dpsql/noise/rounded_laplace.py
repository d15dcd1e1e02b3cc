"""An exact sampler of continuous Laplace noise rounded to integers, with a separate rational scale for every value.

Y = s Z, P(|Z| > z) = e**-z, s = denominator / numerator. The nearest integer of |Y| is k or more where |Z| >= (k - 1/2) / s, so
with probability exp(-(2 k - 1) numerator / (2 denominator)). Let X be an integer with P(X >= x) = exp(-x / (2 denominator)):
then floor((X + numerator) / (2 numerator)) >= k where X >= (2 k - 1) numerator, which has the same probability.
X = u + 2 denominator V, where u is below 2 denominator and accepted with probability exp(-u / (2 denominator)), and
P(V >= v) = e**-v (Canonne, Kamath, Steinke 2020, arXiv 2004.00010, Algorithm 2). Nothing else is rounded; there are no floats.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsql.noise.inversion import tails
from dpsql.noise.randomness import Randomness, Truths, Words, bernoulli, guard, words
from dpsql.noise.samplers import Integers

MOST_DENOMINATOR = 1 << 48
"""Upper bound of 2 denominator, so that X stays below 2**57 and coins have room for `_MOST_STEPS` steps."""
_MOST_STEPS = 1 << 12
_MOST_ROUNDS = 1 << 10
_TOP = np.uint64((1 << 64) - 1)


def rounded_laplace(numerator: int, denominators: Integers, randomness: Randomness) -> Integers:
    """Return for each of `denominators` >= 1 one integer: denominator / numerator times continuous Laplace noise of scale 1,
    rounded to the nearest integer; `numerator` >= 1. Raises Fault noise_guard."""
    guard(1 <= numerator <= MOST_DENOMINATOR)
    guard(bool((denominators >= 1).all() and (denominators <= MOST_DENOMINATOR // 2).all()))
    bounds = 2 * denominators.astype(np.uint64)
    rest = _kept_rests(bounds, randomness).astype(np.int64)
    whole = tails(Fraction(1), Fraction(0)).draw(words(bounds.size, randomness, 16), randomness).astype(np.int64)
    magnitude = (rest + whole * bounds.astype(np.int64) + numerator) // (2 * numerator)
    negative = (words(bounds.size, randomness, 16) & 1).astype(bool)
    return np.where(negative, -magnitude, magnitude)


def _kept_rests(bounds: Words, randomness: Randomness) -> Words:
    """Return for each bound an integer u in [0, bound) with P(u) proportional to exp(-u / bound)."""
    rests = np.zeros(bounds.size, dtype=np.uint64)
    waiting = np.arange(bounds.size)
    for _ in range(_MOST_ROUNDS):
        if not waiting.size:
            return rests
        below = bounds[waiting]
        drawn = _below(below, randomness)
        accepted = _survives(drawn, below, randomness)
        rests[waiting[accepted]] = drawn[accepted]
        waiting = waiting[~accepted]
    guard(False)
    return rests


def _below(bounds: Words, randomness: Randomness) -> Words:
    """Return a uniform integer in [0, bound) for each bound; words from the last whole multiple on are drawn again."""
    shares = _TOP // bounds
    drawn = words(bounds.size, randomness).copy()
    outside = (drawn >= shares * bounds).nonzero()[0]
    while outside.size:
        drawn[outside] = words(outside.size, randomness)
        outside = outside[drawn[outside] >= (shares * bounds)[outside]]
    return np.asarray(drawn // shares)


def _survives(numerators: Words, bounds: Words, randomness: Randomness) -> Truths:
    """Return independent booleans that are True with probability exp(-numerator / bound): with A_k Bernoulli(numerator / (k
    bound)), the first k with A_k = 0 is odd with that probability (ibid., Algorithm 1)."""
    odd = np.ones(bounds.size, dtype=bool)
    index, step = np.arange(bounds.size), 1
    while index.size:
        guard(step < _MOST_STEPS)
        on = bernoulli(numerators[index], bounds[index] * np.uint64(step), randomness)
        index = index[on]
        step += 1
        odd[index] = step % 2 == 1
    return odd
