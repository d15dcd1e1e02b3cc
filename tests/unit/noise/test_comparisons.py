"""Comparisons through the installed gate follow the law of the definition, and that of no other scale."""

import copy
import math
import pickle
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from support.comparison_law import Answers, answers_law
from support.effort import slow

from dpsql.engine.contract import ExactAnswer
from dpsql.errors.exceptions import Error
from dpsql.noise.perturb import Gate, NoisyThreshold, compare, noisy_threshold
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold, law_for
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.laplace import Laplace

RUNS = 20_000
ALPHA = 1e-9
STREAMS = {"five sums": ([0, 2, -1, 3, 1], 3), "one far above": ([40], 0)}


class PooledGate(Gate):
    """The installed gate with values drawn in large batches."""

    def __init__(self) -> None:
        super().__init__()
        self._pools: dict[Noise, Iterator[int]] = {}

    def _draw(self, noise: Noise, count: int) -> NDArray[np.int64]:
        if noise not in self._pools:
            drawn = super()._draw(noise, 10 * RUNS)
            assert drawn is not None
            self._pools[noise] = iter(drawn)
        return np.array([next(self._pools[noise]) for _ in range(count)], np.int64)


def exact(value: int) -> ExactAnswer:
    return ExactAnswer(pa.table({"t0": pa.array([value], pa.int64())}))


def law_of_scale(scale: Fraction) -> AboveThreshold:
    return AboveThreshold(Laplace(Sensitivity(1, 1, 1, 1), 0, scale.numerator, scale.denominator), True)


def answers(law: AboveThreshold, gate: Gate, sums: list[int], threshold: int) -> Answers:
    secret = noisy_threshold(law, gate)
    for number, value in enumerate(sums, 1):
        gap = compare(exact(value), "t0", threshold, law, secret, gate)
        if gap is not None:
            return number, gap
    return 0, None


def distance(drawn: Counter[Answers], law: AboveThreshold, sums: list[int], threshold: int) -> float:
    """Return the largest difference of distribution functions, with answers in the order of their gaps."""
    expected = answers_law(law.noise, sums, threshold)
    total = math.fsum(expected.values())
    largest = through = real = 0.0
    for key in sorted(expected, key=lambda key: (-1 if key[1] is None else key[1], key[0])):
        through += expected[key] / total
        real += drawn[key] / RUNS
        largest = max(largest, abs(through - real))
    return largest


@pytest.mark.statistical
@pytest.mark.parametrize("stream", [slow(stream) if stream == "five sums" else stream for stream in STREAMS])
def test_answers_have_the_law_of_their_scale_and_of_no_other(stream: str) -> None:
    law, gate, (sums, threshold) = law_of_scale(Fraction(4)), PooledGate(), STREAMS[stream]
    drawn = Counter(answers(law, gate, sums, threshold) for _ in range(RUNS))
    allowed = math.sqrt(math.log(2 / ALPHA) / (2 * RUNS))  # Dvoretzky, Kiefer, Wolfowitz; Massart's constant
    assert distance(drawn, law, sums, threshold) <= allowed
    for factor in (Fraction(7, 10), Fraction(13, 10)):
        assert distance(drawn, law_of_scale(law.noise.noise_scale * factor), sums, threshold) > allowed


@pytest.mark.statistical
def test_the_noise_of_a_threshold_is_drawn_once_for_a_run() -> None:
    """For sums far above it, the mean gap reveals a run's noisy threshold; with new noise for each query, all runs would have
    similar means."""
    law, gate = law_of_scale(Fraction(4)), PooledGate()

    def mean_gap(secret: NoisyThreshold) -> float:
        gaps = [compare(exact(1000), "t0", 0, law, secret, gate) for _ in range(400)]
        return sum(gap for gap in gaps if gap is not None) / 400

    means = [mean_gap(noisy_threshold(law, gate)) for _ in range(40)]
    spread = math.sqrt(sum((mean - 1000) ** 2 for mean in means) / len(means))
    assert spread > law.noise.standard_deviation() / 3  # a fifteenth of it if each query had new noise


def test_a_sum_that_reaches_the_threshold_is_above_it() -> None:
    class Silent(Gate):
        def _draw(self, noise: Noise, count: int) -> NDArray[np.int64]:
            return np.zeros(count, np.int64)

    law = law_for(Sensitivity(1, 1, 1, 1), Fraction(1), monotone=True)
    gaps = [compare(exact(value), "t0", 5, law, noisy_threshold(law, Silent()), Silent()) for value in (4, 5, 6)]
    assert gaps == [None, 0, 1]


def test_the_secret_of_a_run_does_not_leave_the_process() -> None:
    secret = noisy_threshold(law_for(Sensitivity(1, 1, 1, 1), Fraction(1), monotone=True), Gate())
    assert repr(secret) == "<NoisyThreshold: sealed>"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(secret)


def test_an_answer_of_several_rows_is_no_sum() -> None:
    law = law_for(Sensitivity(1, 1, 1, 1), Fraction(1), monotone=True)
    secret = noisy_threshold(law, Gate())
    with pytest.raises(Error, match="noise_answer"):
        compare(ExactAnswer(pa.table({"t0": pa.array([1, 2])})), "t0", 0, law, secret, Gate())
