"""Words have the requested width, and coins have exactly their stated probabilities."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from support.noise_laws import Scripted, Seeded, exact_tails

from dpsql.errors.exceptions import Fault
from dpsql.noise import samplers as uniform
from dpsql.noise.samplers import (
    KernelRandomness,
    bernoulli,
    bernoulli_exp,
    bernoulli_exp_unseen,
    tail_edges,
    tails,
    words,
)

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


# --- Inversion reads as many bits as it needs, and returns the number that the complete U determines ------------------


LAWS = [(Fraction(1, blocks), Fraction(0)) for blocks in (1, 2, 4, 8, 16)] + [(Fraction(0), Fraction(1, 512))]
"""All laws that the samplers use."""


def definition(linear: Fraction, square: Fraction, count: int) -> list[Decimal]:
    """Return P(V >= v) for v = 0..count-1."""
    return exact_tails(lambda v: linear * v + square * v * v, count)


@pytest.mark.parametrize(("linear", "square"), LAWS)
@pytest.mark.parametrize("bits", [64, 192])
def test_edges_are_the_chances_to_the_last_bit(linear: Fraction, square: Fraction, bits: int) -> None:
    edges = tail_edges(linear, square, bits)
    assert edges[0] == 0 < edges[1]
    with localcontext(Context(prec=150)):
        expected = [math.floor(one * (1 << bits)) for one in definition(linear, square, len(edges) + 1)]
    assert list(reversed(edges)) == expected[1:]


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_sixteen_bits_decide_what_they_can(linear: Fraction, square: Fraction) -> None:
    """For every 16-bit prefix: the numbers at both ends of its continuations; undecided exactly where they differ."""
    law, edges = tails(linear, square), np.array(tail_edges(linear, square, 64), dtype=np.uint64)
    begins = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)
    highest = edges.size - edges.searchsorted(begins, side="left")
    lowest = edges.size - edges.searchsorted(begins | np.uint64((1 << 48) - 1), side="right")
    closed = law.first < (1 << 16) - 1
    assert (closed == (highest == lowest)).all()
    assert (law.first[closed] == lowest[closed]).all()
    assert closed.mean() > 0.99


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_what_is_open_is_read_further(linear: Fraction, square: Fraction) -> None:
    """Both sides of each edge, at the 64th bit and at the last of the 192; equality in all bits raises."""
    law, short, long = tails(linear, square), tail_edges(linear, square, 64), tail_edges(linear, square, 192)

    def drawn(number: int, *more: int) -> int:
        script = Scripted([number << 16 & TOP, *more])
        return int(law.draw(np.array([number >> 48], dtype=np.uint16), script)[0])

    for v, edge in enumerate(reversed(short[1:]), 1):
        assert law.first[edge >> 48] == (1 << 16) - 1
        for beside in (edge + 1, edge - 1):
            if beside not in short and beside >> 48 == edge >> 48:
                assert drawn(beside) == sum(one > beside for one in short)
        first, *rest = long[-v] >> 128, long[-v] >> 64 & TOP, long[-v] & TOP
        assert first == edge
        assert drawn(edge, rest[0], rest[1] - 1) == v
        assert drawn(edge, rest[0], rest[1] + 1) == v - 1
        if v % 50 == 1:
            with pytest.raises(Fault) as caught:
                drawn(edge, *rest)
            assert caught.value.slug == "noise_guard"
    assert drawn(0, TOP, TOP) == len(short) - 1


@pytest.mark.parametrize(("linear", "square"), LAWS)
def test_numbers_have_their_law(linear: Fraction, square: Fraction) -> None:
    size = 400_000
    found = tails(linear, square).draw(words(size, KernelRandomness(), 16), KernelRandomness())
    chances = [float(one) for one in definition(linear, square, 200)]
    shares = -np.diff(chances)
    enough = int((shares * size > 20).sum())
    counts = np.bincount(found, minlength=enough)
    observed = [*counts[:enough], counts[enough:].sum()]
    expected = np.array([*shares[:enough], chances[enough]]) * size
    assert stats.chisquare(observed, expected).pvalue > 1e-9
