"""Gaussians of deviations up to 2**27: proposed and accepted candidates have exactly their probabilities."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from support.noise_laws import ALPHA, fit, gaussian_cdf

from dpsql.errors.exceptions import Fault
from dpsql.noise import noise_samplers as module
from dpsql.noise.noise_samplers import LEAST_SQUARE, MOST_BITS, wide_candidates, wide_gaussian
from dpsql.noise.samplers import MOST_SIGMA, KernelRandomness, Randomness, tail_edges


class Bytes:
    """A source of given bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, size: int) -> bytes:
        """Return all bytes."""
        assert size == len(self.content)
        return self.content


@pytest.mark.parametrize("bits", [1, 2, 4, 7])
@pytest.mark.parametrize("square", [LEAST_SQUARE, 4099, (1 << 26) + 1, MOST_SIGMA**2])
def test_what_is_kept_of_all_candidates_has_the_chances_of_the_law(
    square: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every A from -3 to 3 with every word: the mass of z, from that of A and the coin's probability, is exp(-f(z)) times a
    constant, compared as fractions in the exponent. Each z occurs for equally many words."""
    exponents: list[Fraction] = []

    def coins(numerators: np.ndarray, denominator: int, _: Randomness) -> np.ndarray:
        exponents.extend(Fraction(int(numerator), denominator) for numerator in numerators)
        return np.ones(numerators.size, dtype=bool)

    monkeypatch.setattr(module, "bernoulli_exp_unseen", coins)
    coarse, word = np.repeat(np.arange(-3, 4), 256), bytes(range(256)) * 7
    kept = wide_candidates(coarse, square, bits, Bytes(word)).tolist()
    zeros = 1 << 7 - bits
    assert len(exponents) == len(kept) + zeros, "the candidates that are zero with a sign are tossed, and rejected"
    reach = 4 << bits
    assert Counter(kept) == dict.fromkeys(range(1 - reach, reach), zeros)
    nowhere = sorted(exponents)[:zeros]
    assert nowhere == [0] * zeros
    by_value = iter(exponents)
    for place, letter in zip(coarse.tolist(), word, strict=True):
        minus, b = letter >> 7, letter % (1 << bits)
        if place and minus:
            continue
        y = (abs(place) << bits) + b
        assert next(by_value) == Fraction(y * y, 2 * square * 4**bits) - Fraction(place**2, 2 * square) >= 0


@pytest.mark.parametrize(
    ("square", "bits"), [(LEAST_SQUARE, 1), (LEAST_SQUARE, 7), (5001, 3), (1 << 26, 7), (MOST_SIGMA**2, 7)]
)
def test_wide_gaussians_have_their_law_and_no_other_scale(square: int, bits: int) -> None:
    drawn = wide_gaussian(100_000, square, bits, KernelRandomness())
    deviation = math.sqrt(square) * 2**bits
    assert fit(drawn, gaussian_cdf(deviation), deviation) > ALPHA
    for wrong in (0.7, 1.3):
        assert fit(drawn, gaussian_cdf(deviation * wrong), deviation) < 1e-12


def test_values_of_one_draw_are_independent_and_use_all_low_bits() -> None:
    drawn = wide_gaussian(200_000, LEAST_SQUARE, 7, KernelRandomness())
    for lag in (1, 1023, 1024, 65_536):
        correlation = np.corrcoef(drawn[:-lag].astype(float), drawn[lag:].astype(float))[0, 1]
        assert abs(correlation) * math.sqrt(drawn.size - lag) < 6.5
    shares = np.bincount(drawn % 128, minlength=128)
    assert abs(shares - drawn.size / 128).max() < 6.5 * math.sqrt(drawn.size / 128)


@pytest.mark.parametrize("square", [LEAST_SQUARE, MOST_SIGMA**2])
def test_the_widest_candidates_do_not_wrap(square: int) -> None:
    """The last block that 192 bits of U can select: the coin's x is at most 1, in 63-bit numbers."""
    blocks = len(tail_edges(Fraction(0), Fraction(1, 512), 192))
    a = (blocks + 1) * -(-math.isqrt(square) // 16)
    b = (1 << MOST_BITS) - 1
    assert b * ((a << MOST_BITS + 1) + b) <= square << 2 * MOST_BITS + 1 <= 1 << 55
    assert ((a << MOST_BITS) + b) << 16 < 1 << 63, "also in the fixed point of correlated noise"


@pytest.mark.parametrize(
    ("square", "bits"), [(LEAST_SQUARE - 1, 1), (MOST_SIGMA**2 + 1, 1), (LEAST_SQUARE, 0), (LEAST_SQUARE, 8)]
)
def test_what_is_out_of_range_is_not_drawn(square: int, bits: int) -> None:
    with pytest.raises(Fault) as caught:
        wide_gaussian(1, square, bits, KernelRandomness())
    assert caught.value.slug == "noise_guard"


def test_a_source_without_candidates_ends_with_a_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "bernoulli_exp_unseen", lambda numerators, *_: np.zeros(numerators.size, dtype=bool))
    with pytest.raises(Fault) as caught:
        wide_gaussian(1, LEAST_SQUARE, 1, KernelRandomness())
    assert caught.value.slug == "noise_guard"
