"""The samplers draw the laws they name, exactly, from any source, in any process."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from laws import ALPHA, Scripted, Seeded, fit, gaussian_cdf, laplace_cdf

from dpsql import samplers
from dpsql.errors import Fault
from dpsql.samplers import KernelRandomness, discrete_gaussian, discrete_laplace

TOP = (1 << 64) - 1
SOURCES = [KernelRandomness(), KernelRandomness(openssl_from=None), KernelRandomness(openssl_from=0)]
LAPLACE = [(1, 1), (1, 3), (7, 3), (10, 1), (1000, 7), (1 << 20, 3), (1 << 40, 1), ((1 << 40) - 1, 1 << 20)]
GAUSS = [1, 2, 3, 10, 100, 4096, 1 << 20]


@pytest.mark.parametrize(("t", "s"), LAPLACE)
def test_laplace_has_its_law_and_no_other_scale(t: int, s: int) -> None:
    values = discrete_laplace(200_000, t, s, KernelRandomness())
    scale = t / s
    assert fit(values, laplace_cdf(scale), scale) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(values, laplace_cdf(scale * wrong), scale) < 1e-12


@pytest.mark.parametrize("sigma", GAUSS)
def test_gaussian_has_its_law_and_no_other_scale(sigma: int) -> None:
    values = discrete_gaussian(200_000, sigma, KernelRandomness())
    assert fit(values, gaussian_cdf(sigma), sigma) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(values, gaussian_cdf(sigma * wrong), sigma) < 1e-12


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_law(source: KernelRandomness) -> None:
    assert fit(discrete_laplace(100_000, 10, 1, source), laplace_cdf(10), 10) > ALPHA
    assert fit(discrete_gaussian(100_000, 10, source), gaussian_cdf(10), 10) > ALPHA


def test_values_of_one_draw_are_independent() -> None:
    values = discrete_laplace(200_000, 10, 1, KernelRandomness()).astype(float)
    gauss = discrete_gaussian(200_000, 4096, KernelRandomness()).astype(float)
    for drawn in (values, gauss):
        for lag in (1, 2, 1023, 1024, samplers._BATCH):
            correlation = np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]
            assert abs(correlation) * math.sqrt(drawn.size - lag) < 6.5


@pytest.mark.parametrize("bound", [2, 3, 7, 10, 255, (1 << 40) - 1, 1 << 40, (1 << 62) - 1, 1 << 62])
def test_every_value_owns_equally_many_words(bound: int) -> None:
    share = (1 << 64) // bound
    for value in {0, 1, bound // 2, bound - 1}:
        first, last = value * share, (value + 1) * share - 1
        assert samplers._below(bound, 2, Scripted([first, last])).tolist() == [value, value]
        if value:
            # P(word < value * share) among accepted words is value / bound: the edge is sharp on both sides.
            edge = samplers._bernoulli(np.full(2, value, dtype=np.uint64), bound, Scripted([first - 1, first]))
            assert edge.tolist() == [True, False]
    if share * bound <= TOP:
        assert samplers._below(bound, 1, Scripted([share * bound, TOP, 0])).tolist() == [0]


@pytest.mark.parametrize(("x", "y"), [(1, 3), (2, 3), (1, 1), (5, 8), (1, 1000)])
def test_bernoulli_exp_takes_the_branches_of_the_series(x: int, y: int) -> None:
    """Odd first failure k means True; branch k has probability x**(k-1)/(k-1)! (1 - x/k), summed as fractions."""
    fraction, chance, lower = Fraction(x, y), Fraction(1), Fraction(0)
    first = 2 if x == y == 1 else 1
    for k in range(first, 40):
        script = Scripted([0] * (k - first) + [(1 << 64) // (y * k) * (y * k) - 1])
        result = bool(samplers._bernoulli_exp(np.array([x], dtype=np.uint64), y, script)[0])
        assert result == (k % 2 == 1)
        stop = 1 - fraction / k
        lower += chance * stop if result else 0
        chance *= fraction / k
    assert abs(float(lower) - math.exp(-x / y)) < 1e-15
    assert samplers._bernoulli_exp(np.array([0], dtype=np.uint64), 1, Scripted([])).tolist() == [True]


def test_runs_have_their_law() -> None:
    lengths = samplers._runs(200_000, KernelRandomness())
    counts = np.bincount(lengths, minlength=20)
    q = math.exp(-1)
    for value in range(6):
        expected = (1 - q) * q**value
        assert abs(counts[value] / lengths.size - expected) < 6.5 * math.sqrt(expected / lengths.size)
    assert samplers._runs(0, KernelRandomness()).size == 0


@pytest.mark.parametrize("bits", [64, 192])
def test_edges_of_runs_are_powers_of_one_over_e(bits: int) -> None:
    """Against the alternating series of exp(-v), summed until its terms are below a 2**-64 of the last digit."""
    edges = samplers._powers(bits)
    assert edges[0] == 0 and list(edges) == sorted(set(edges))
    for v, edge in enumerate(reversed(edges), 1):
        term, total, k = Fraction(1), Fraction(0), 0
        while abs(term) * (1 << bits + 64) > 1 or k < v:
            total, k = total + term, k + 1
            term *= Fraction(-v, k)
        assert edge == math.floor(total * (1 << bits))


def test_a_run_whose_first_word_is_an_edge_is_read_further() -> None:
    """Both sides of each edge, at the word, and at the last of the 192 bits; what equals all of them raises."""
    short, long = samplers._powers(64), samplers._powers(192)
    for v, edge in enumerate(reversed(short[1:]), 1):
        assert samplers._runs(1, Scripted([edge + 1])).tolist() == [v - 1]
        if edge - 1 not in short:
            assert samplers._runs(1, Scripted([edge - 1])).tolist() == [v]
        words = [long[-v] >> 128, long[-v] >> 64 & TOP, long[-v] & TOP]
        assert words[0] == edge
        assert samplers._runs(1, Scripted([*words[:2], words[2] - 1])).tolist() == [v]
        assert samplers._runs(1, Scripted([*words[:2], words[2] + 1])).tolist() == [v - 1]
        with pytest.raises(Fault) as caught:
            samplers._runs(1, Scripted(words))
        assert caught.value.slug == "noise_guard"
    assert samplers._runs(1, Scripted([0, 0, 4])).tolist() == [131]
    assert samplers._runs(1, Scripted([0, TOP, TOP])).tolist() == [44]
    assert samplers._runs(2, Scripted([TOP, 1 << 63])).tolist() == [0, 0]


def test_coins_are_the_bits_they_are_made_of() -> None:
    class Two:
        def read(self, size: int) -> bytes:
            return bytes([0b10100000, 0b11100110])[:size]

    coins = samplers._coins(11, Two())
    assert coins.dtype == bool and "".join("01"[int(coin)] for coin in coins) == "10100000111"
    assert samplers._coins(0, Two()).size == 0
    many = samplers._coins(100_001, KernelRandomness())
    assert many.size == 100_001 and abs(many.mean() - 0.5) < 6.5 * 0.5 / math.sqrt(many.size)
    with pytest.raises(Fault):
        samplers._coins(17, Two())


def _drawn_after_fork(size: int) -> tuple[bytes, bytes]:
    def draw() -> bytes:
        return discrete_laplace(size, 1 << 30, 1, KernelRandomness()).tobytes()

    draw()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(draw()[:1024])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        theirs = pipe.read()
    os.waitpid(child, 0)
    return draw()[:1024], theirs


@pytest.mark.parametrize("size", [10, 100_000])
def test_parent_and_child_draw_different_noise(size: int) -> None:
    ours, theirs = _drawn_after_fork(size)
    assert len(ours) == len(theirs) > 0
    assert ours != theirs
    # Eight-byte values of scale 2**30: not one of them may be shared at its place.
    assert not (np.frombuffer(ours, np.int64) == np.frombuffer(theirs, np.int64)).any()


def test_small_draws_are_padded() -> None:
    for draw in (lambda source: discrete_laplace(1, 5, 1, source), lambda source: discrete_gaussian(1, 5, source)):
        source = Seeded("padding")
        assert draw(source).shape == (1,)
        assert source.sizes[0] >= 8 * samplers.LEAST_DRAW


@pytest.mark.parametrize(("t", "s"), [(0, 1), (1, 0), (-1, 1), ((1 << 40) + 1, 1), (1, (1 << 40) + 1)])
def test_laplace_scales_out_of_range_raise(t: int, s: int) -> None:
    with pytest.raises(Fault) as caught:
        discrete_laplace(1, t, s, KernelRandomness())
    assert caught.value.slug == "noise_guard" and caught.value.charged


@pytest.mark.parametrize("sigma", [0, -3, (1 << 20) + 1])
def test_sigmas_out_of_range_raise(sigma: int) -> None:
    with pytest.raises(Fault):
        discrete_gaussian(1, sigma, KernelRandomness())


def test_a_source_that_falls_short_or_never_stops_raises() -> None:
    class Short:
        def read(self, size: int) -> bytes:
            return b"\0" * (size - 1)

    class Zeros:
        def read(self, size: int) -> bytes:
            return b"\0" * size

    for source in (Short(), Zeros()):
        with pytest.raises(Fault):
            discrete_laplace(1, 10, 1, source)
