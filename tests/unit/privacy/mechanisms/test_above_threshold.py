"""AboveThreshold: its loss compared with the exact law of all answers, computed from the definition."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest
from support.comparison_law import answers_law

from dpsql.privacy.mechanisms.above_threshold import AboveThreshold, law_for
from dpsql.privacy.mechanisms.contract import Sensitivity

STREAMS = {
    "nothing moves": [(0, 0), (3, 3)],
    "both directions": [(0, 1), (0, 1), (5, 4)],
    "many up, one down": [(0, 1)] * 30 + [(4, 3)],
    "many down, one up": [(0, -1)] * 30 + [(4, 5)],
    "all up": [(2, 3)] * 5,
    "all down": [(2, 1)] * 40 + [(6, 5)],
    "one far below": [(0, 1)] * 200 + [(-8, -9)],
}
"""Sums of two neighbours, query by query, that one unit moves by at most one."""


def moved_by(most: int) -> Sensitivity:
    return Sensitivity(1, most, most * most, most)


def log_ratio(law: AboveThreshold, pairs: Sequence[tuple[int, int]], threshold: int = 2) -> float:
    """Return the largest |ln P / P'| over all answers to a stream, including gaps."""
    left = answers_law(law.noise, [pair[0] for pair in pairs], threshold)
    right = answers_law(law.noise, [pair[1] for pair in pairs], threshold)
    return max(abs(math.log(left[key] / right[key])) for key in left if left[key] > 1e-280 and right[key] > 1e-280)


@pytest.mark.parametrize("pairs", STREAMS.values(), ids=STREAMS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)], ids=str)
def test_answers_of_neighbours_are_as_alike_as_the_loss_says(pairs: list[tuple[int, int]], epsilon: Fraction) -> None:
    any_direction = law_for(moved_by(1), epsilon, monotone=False)
    assert log_ratio(any_direction, pairs) <= float(any_direction.loss.epsilon or 0) * (1 + 1e-9)
    if len({(right > left) - (right < left) for left, right in pairs} - {0}) < 2:
        monotone = law_for(moved_by(1), epsilon, monotone=True)
        assert log_ratio(monotone, pairs) <= float(monotone.loss.epsilon or 0) * (1 + 1e-9)


def test_the_loss_is_reached_but_for_a_tenth() -> None:
    """Many queries that move towards the threshold, then one: no smaller loss would be valid."""
    for pairs, monotone in (([(0, 1)] * 3000 + [(4, 3)], False), ([(0, 1)] * 3000 + [(4, 4)], True)):
        law = law_for(moved_by(1), Fraction(1, 2), monotone)
        assert log_ratio(law, pairs) > 0.9 * float(law.loss.epsilon or 0)


def test_sums_that_move_in_two_directions_cost_more_than_the_monotone_law_says() -> None:
    law = law_for(moved_by(1), Fraction(1, 2), monotone=True)
    assert log_ratio(law, [(0, 1)] * 3000 + [(4, 3)]) > 1.3 * float(law.loss.epsilon or 0)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("most", [1, 5, 5_242_880_000, 2**80])
def test_both_roads_to_the_loss_agree_and_stay_within_what_was_asked(monotone: bool, most: int) -> None:
    for epsilon in (Fraction(1, 1000), Fraction(1, 3), Fraction(7)):
        law = law_for(moved_by(most), epsilon, monotone)
        again = law.recomputed_loss()
        assert again == law.loss
        assert law.loss.epsilon is not None and Fraction(99, 100) * epsilon < law.loss.epsilon <= epsilon


def test_a_run_counts_the_noise_of_its_threshold_and_of_one_question() -> None:
    assert float(law_for(moved_by(5), Fraction(1), True).noise.noise_scale) == 10
    assert float(law_for(moved_by(5), Fraction(1), False).noise.noise_scale) == 15


@pytest.mark.parametrize("sums", [[0] * 40, [9] * 5, [-3, 2, -3, 2, 12], [-20] * 100], ids=str)
def test_the_bar_of_whichever_question_is_above_holds_as_often_as_it_says(sums: list[int]) -> None:
    law = law_for(moved_by(1), Fraction(1), True)
    chances = answers_law(law.noise, sums, threshold := 5)
    for confidence in (0.8, 0.95):
        missed = sum(
            chance
            for (number, gap), chance in chances.items()
            if gap is not None and abs(threshold + gap - sums[number - 1]) > law.gap_half_width(confidence, number)
        )
        assert missed <= 1 - confidence


def test_a_law_covers_sums_that_move_no_further() -> None:
    for most, other in product((1, 5, 2**80), repeat=2):
        assert law_for(moved_by(most), Fraction(1), True).covers(moved_by(other)) == (other <= most)


def test_a_sum_that_nobody_can_move_is_not_compared() -> None:
    with pytest.raises(ValueError):
        law_for(Sensitivity(0, 0, 0, 0), Fraction(1), True)
