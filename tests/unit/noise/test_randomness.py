"""Words have the requested width, and coins have exactly their stated probabilities."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from support.noise_laws import Scripted, Seeded

from dpsql.errors.exceptions import Fault
from dpsql.noise import samplers as uniform
from dpsql.noise.samplers import KernelRandomness, bernoulli, bernoulli_exp, bernoulli_exp_unseen

TOP = (1 << 64) - 1
LOOK = 1 << uniform.LOOK_BITS


def numbers(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 10, 255, (1 << 40) - 1, 1 << 40, (1 << 62) - 1, 1 << 62])
def test_every_value_owns_equally_many_words(bound: int) -> None:
    share = TOP // bound
    assert share * bound > TOP // 2  # at most every other word is redrawn
    for value in {0, 1, bound // 2, bound - 1, bound}:
        # P(word < value * share) among accepted words is value / bound: the edge is sharp on both sides.
        first, last = value * share, value * share - 1
        for given, expected in ((first, False), (last, True)):
            if 0 <= given < share * bound:
                for bounds in (numbers(bound), np.uint64(bound)):
                    assert bernoulli(numbers(value), bounds, Scripted([given])).tolist() == [expected]
    if bound > 1:
        outside = [share * bound, TOP]
        assert bernoulli(numbers(1), numbers(bound), Scripted([*outside, share])).tolist() == [False]
        assert bernoulli(numbers(1), numbers(bound), Scripted([*outside, share - 1])).tolist() == [True]


def test_coins_of_one_toss_have_bounds_of_their_own() -> None:
    shares = [TOP // 3, TOP // 5]
    script = Scripted([3 * shares[0], 5 * shares[1] - 1, shares[0] - 1])
    assert bernoulli(numbers(1, 4), numbers(3, 5), script).tolist() == [True, False]


@pytest.mark.parametrize(("x", "y"), [(1, 3), (2, 3), (0, 1), (1, 1), (5, 8), (1, 1000)])
@pytest.mark.parametrize("look", [1, 3, 700, LOOK - 1, LOOK])
def test_bernoulli_exp_takes_the_branches_of_the_series(x: int, y: int, look: int) -> None:
    """An odd first failure k means True; branch k has probability x**(k-1)/(k-1)! (1 - x/k), summed as fractions.

    The look is the first part of the first coin: with its probability, the branches' probabilities add up to exp(-x).
    """
    fraction = Fraction(x, y)
    if Fraction(look, LOOK) < fraction:
        return
    total, chance = 1 - Fraction(look, LOOK), Fraction(look, LOOK)
    for k in range(1, 40):
        success = fraction * LOOK / look if k == 1 else fraction / k
        if success == 1:
            continue  # no word makes this coin fail
        bounds = [y * look, *(y * step for step in range(2, k + 1))]
        script = Scripted([0] * (k - 1) + [TOP // bounds[k - 1] * bounds[k - 1] - 1])
        result = bool(bernoulli_exp(numbers(x), y, numbers(look), script)[0])
        assert result == (k % 2 == 1)
        total += chance * (1 - success) if result else 0
        chance *= success
        if not chance:
            break
    assert abs(float(total) - math.exp(-x / y)) < 1e-15
    # The first coin's edge, on both sides: its probability is that of A_1 divided by that of the look.
    edge, last = x * LOOK * (TOP // (y * look)), TOP // (2 * y) * 2 * y - 1
    if edge < TOP // (y * look) * y * look:
        assert bernoulli_exp(numbers(x), y, numbers(look), Scripted([edge])).tolist() == [True]
    if x:
        assert bernoulli_exp(numbers(x), y, numbers(look), Scripted([edge - 1, last])).tolist() == [False]


@pytest.mark.parametrize(("x", "y"), [(1, 3), (0, 1), (1, 1), (5, 8), (1, 1 << 55), ((1 << 55) - 1, 1 << 55)])
def test_a_coin_without_a_look_takes_the_branches_of_the_series(x: int, y: int) -> None:
    """The same without a look: the first coin has its edge where A_1 is x / y."""
    total, chance = Fraction(0), Fraction(1)
    for k in range(1, 40):
        success = Fraction(x, y) / k
        if success < 1:
            script = Scripted([0] * (k - 1) + [TOP // (y * k) * y * k - 1])
            result = bool(bernoulli_exp_unseen(numbers(x), y, script)[0])
            assert result == (k % 2 == 1)
            total += chance * (1 - success) if result else 0
        chance *= success
        if not chance:
            break
    assert abs(float(total) - math.exp(-x / y)) < 1e-15
    edge, last = x * (TOP // y), TOP // (2 * y) * 2 * y - 1
    if edge < TOP // y * y:
        assert bernoulli_exp_unseen(numbers(x), y, Scripted([edge])).tolist() == [True]
    if x:
        assert bernoulli_exp_unseen(numbers(x), y, Scripted([edge - 1, last])).tolist() == [False]


def test_many_coins_at_once_have_their_chances() -> None:
    size = 400_000
    numerators = np.arange(size, dtype=np.uint64) % np.uint64(8)
    found = bernoulli_exp(numerators, 7, np.full(size, LOOK, dtype=np.uint64), KernelRandomness())
    for x in range(8):
        share, count = found[numerators == x].mean(), size / 8
        chance = math.exp(-x / 7)
        assert abs(share - chance) <= 6.5 * math.sqrt(chance * (1 - chance) / count)


def test_words_are_as_wide_as_asked() -> None:
    for bits, kind in ((16, np.uint16), (32, np.uint32), (64, np.uint64)):
        source = Seeded("widths")
        found = uniform.words(50_000, source, bits)
        assert found.dtype == kind and source.sizes == [50_000 * bits // 8]
        for bit in range(bits):
            assert abs((found >> kind(bit) & kind(1)).mean() - 0.5) < 6.5 * 0.5 / math.sqrt(found.size)
    assert uniform.words(0, KernelRandomness()).size == 0


def test_short_sources_and_wide_coins_raise() -> None:
    class Short:
        def read(self, size: int) -> bytes:
            return b"\0" * (size - 1)

    for toss in (
        lambda: uniform.words(3, Short(), 16),
        lambda: bernoulli_exp(numbers(1), 1 << 51, numbers(1), KernelRandomness()),
        lambda: bernoulli_exp_unseen(numbers(1), (1 << 55) + 1, KernelRandomness()),
        lambda: bernoulli_exp_unseen(numbers(1, 8), 7, KernelRandomness()),
        lambda: bernoulli_exp(numbers(1), 1, numbers(LOOK), type("Zeros", (), {"read": lambda _, size: bytes(size)})()),
    ):
        with pytest.raises(Fault) as caught:
            toss()
        assert caught.value.slug == "noise_guard" and caught.value.charged
