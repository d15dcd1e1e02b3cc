"""The samplers draw exactly from their stated laws, from any source, in any process."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from support import slow_samplers
from support.noise_laws import ALPHA, Seeded, fit, gaussian_cdf, laplace_cdf
from support.slow_samplers import Slow, Tape

from dpsql.errors.exceptions import Fault
from dpsql.noise import samplers
from dpsql.noise.samplers import LOOK_BITS, KernelRandomness, discrete_gaussian, discrete_laplace, tail_edges

SOURCES = [KernelRandomness(), KernelRandomness(openssl_from=None), KernelRandomness(openssl_from=0)]
LAPLACE = [(1, 1), (1, 3), (7, 3), (10, 1), (16, 1), (1000, 7), (1 << 20, 3), (1 << 40, 1), ((1 << 40) - 1, 1 << 20)]
GAUSS = [1, 2, 3, 10, 100, 4096, 777_777, 1 << 20]


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


def slow(t_or_sigma: int, gauss: bool) -> tuple[Slow, samplers._Magnitudes]:
    if gauss:
        return slow_samplers.gaussian(t_or_sigma), samplers._half_gaussian(t_or_sigma)
    blocks = 16 if t_or_sigma >= 256 else math.gcd(t_or_sigma, 16)
    return slow_samplers.laplace(t_or_sigma, blocks), samplers._geometric(t_or_sigma)


@pytest.mark.parametrize(("t", "s"), [*LAPLACE, (12, 1), (255, 2), (257, 1), (3 << 38, (1 << 40) - 1)])
def test_laplace_takes_the_decisions_of_fractions(t: int, s: int) -> None:
    tape, (law, vectors) = Tape(f"{t}/{s}"), slow(t, False)
    found = samplers._candidates(2_000, vectors, s, tape).tolist()
    assert found == slow_samplers.candidates(2_000, law, s, tape)
    assert tape.used_up and len(found) > 700


@pytest.mark.parametrize("sigma", [*GAUSS, 17, 255, (1 << 20) - 1, 777_777])
def test_gaussian_takes_the_decisions_of_fractions(sigma: int) -> None:
    tape, (law, vectors) = Tape(f"{sigma}"), slow(sigma, True)
    found = samplers._candidates(2_000, vectors, 1, tape).tolist()
    assert found == slow_samplers.candidates(2_000, law, 1, tape)
    assert tape.used_up and len(found) > 100


@pytest.mark.parametrize(("t", "bits"), [(48, 32), (48 << 30, 64)])
def test_words_that_would_favour_a_place_are_no_candidates(t: int, bits: int) -> None:
    law = samplers._geometric(t)
    share = (1 << bits) // (2 * law.width)
    end = share * 2 * law.width
    assert end < (1 << bits) - 1

    class Portions:
        def __init__(self) -> None:
            places = [end - 1, end, (1 << bits) - 1, 0, share, 2 * share - 1, 2 * share, 3 * share]
            # U begins with the highest bits: block 0. The look is above every cap, so no candidate needs a second coin.
            self.left = [b"\xff" * 32, b"".join(place.to_bytes(bits // 8, "little") for place in places)]

        def read(self, size: int) -> bytes:
            return self.left.pop(0) if size else b""

    assert samplers._candidates(8, law, 1, Portions()).tolist() == [1 - law.width, 0, 1, -1]


@pytest.mark.parametrize("gauss", [False, True])
@pytest.mark.parametrize("scale", [1, 3, 10, 12, 255, 256, 4097, 1 << 20])
def test_what_is_proposed_is_never_too_rare(scale: int, gauss: bool) -> None:
    """The excess is the fraction that it represents, never below 0, and no look cuts off what an exact coin may decide."""
    law, vectors = slow(scale, gauss)
    assert (law.width, law.denominator) == (vectors.width, vectors.denominator)
    last = vectors.blocks.edges.size
    assert vectors.caps.size == last + 1 and int(vectors.caps[-1]) + 1 == 1 << 16
    offsets = sorted({0, 1 % law.width, law.width // 2, law.width - 1})
    for j in [*range(last), last + 200]:
        cap = Fraction(int(vectors.caps[min(j, last)]) + 1, 1 << 16)
        assert cap % slow_samplers.STEPS == 0 and cap == (law.cap(j) if j < last else 1)
        for y in (j * law.width + offset for offset in offsets):
            excess = int(vectors.excess(np.array([j]), np.array([y]))[0])
            assert Fraction(excess, law.denominator) == law.steepness(y) - law.level(j) >= 0
            assert Fraction(excess, law.denominator) <= cap or cap == 1


def test_the_widest_numbers_do_not_wrap() -> None:
    """The last block that 192 bits of U can select, at the largest scales."""
    for (law, vectors), scale in ((slow(1 << 40, False), 1 << 40), (slow(1 << 20, True), 1 << 20)):
        j = len(tail_edges(vectors.blocks.linear, vectors.blocks.square, 192))
        y = (j + 1) * law.width - 1
        assert j < 2_200 and y < 1 << 48 and scale == 16 * law.width
        excess = int(vectors.excess(np.array([j]), np.array([y]))[0])
        assert Fraction(excess, law.denominator) == law.steepness(y) - law.level(j)
        assert law.denominator <= 1 << 62 - LOOK_BITS


@pytest.mark.parametrize(("t", "s", "least"), [(1, 1, 0.6), (16, 1, 0.9), (1 << 30, 1, 0.9), (1 << 20, 3, 0.9)])
def test_few_candidates_are_lost(t: int, s: int, least: float) -> None:
    assert samplers._candidates(100_000, samplers._geometric(t), s, KernelRandomness()).size > least * 100_000
    assert samplers._candidates(100_000, samplers._half_gaussian(1 << 20), 1, KernelRandomness()).size > 97_000


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
    # Eight-byte values of scale 2**30: no two draws may share one at the same place.
    assert not (np.frombuffer(ours, np.int64) == np.frombuffer(theirs, np.int64)).any()


def test_small_draws_are_padded() -> None:
    for draw in (lambda source: discrete_laplace(1, 5, 1, source), lambda source: discrete_gaussian(1, 5, source)):
        source = Seeded("padding")
        assert draw(source).shape == (1,)
        assert source.sizes[:2] >= [4 * samplers.LEAST_DRAW, 4 * samplers.LEAST_DRAW]


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

    class Same:
        def __init__(self, byte: bytes) -> None:
            self._byte = byte

        def read(self, size: int) -> bytes:
            return self._byte * size

    for source in (Short(), Same(b"\0"), Same(b"\xff")):
        with pytest.raises(Fault):
            discrete_laplace(1, 10, 1, source)
        with pytest.raises(Fault):
            discrete_gaussian(1, 100, source)
