"""Local randomizers as data: their cost, and the meaning of their outputs."""

import math
from fractions import Fraction

import pytest

from dpsql.privacy.mechanisms.local_randomizers import (
    LEAST_EPSILON,
    MOST_CATEGORIES,
    MOST_EPSILON,
    STEPS,
    CategoryLaw,
    LocalLaw,
    NumberLaw,
)
from dpsql.privacy.mechanisms.rational_bounds import exp_lower

EPSILONS = (LEAST_EPSILON, Fraction(1, 10), Fraction(61, 100), Fraction(1), Fraction(5, 2), Fraction(MOST_EPSILON))
LAWS: list[LocalLaw] = [
    *(CategoryLaw.for_epsilon(epsilon, size) for epsilon in EPSILONS for size in (2, 3, 16, MOST_CATEGORIES)),
    *(NumberLaw.for_epsilon(epsilon, missing) for epsilon in EPSILONS for missing in (False, True)),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_no_output_tells_more_than_epsilon_and_none_is_wasted(law: LocalLaw) -> None:
    """The ratio of the probabilities of one output is at most e**epsilon, and within a thousandth of epsilon of it."""
    most = exp_lower(law.epsilon)
    for ratio in law.recomputed_ratios():
        assert ratio <= most
        assert math.log(ratio) >= 0.998 * float(law.epsilon)


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_weights_fit_the_words_of_the_sampler(law: LocalLaw) -> None:
    for weights in [law.weights] if isinstance(law, CategoryLaw) else [law.interval, law.ends]:
        assert weights.total < 2**62
        assert weights.outside_weight == 1 << weights.outside_bits


def chances(law: CategoryLaw) -> tuple[Fraction, Fraction]:
    """Return P(v in the set) for the row's own and for another value, from the number of sets."""
    k, d = law.size, law.subset
    with_own, without = math.comb(k - 1, d - 1), math.comb(k - 1, d)
    total = law.ratio * with_own + without
    both = math.comb(k - 2, d - 2) if d > 1 else 0
    return law.ratio * with_own / total, (law.ratio * both + math.comb(k - 2, d - 1)) / total


@pytest.mark.parametrize("size", [2, 3, 5, 16, 100])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_shares_of_sets_are_those_of_counting_all_sets(epsilon: Fraction, size: int) -> None:
    law = CategoryLaw.for_epsilon(epsilon, size)
    assert (law.own_share, law.other_share) == chances(law)


@pytest.mark.parametrize(("size", "better"), [(4, 1.0), (16, 1.35), (100, 3.1), (1000, 9.6)])
def test_sets_have_the_deviation_that_the_literature_promises(size: int, better: float) -> None:
    """Ye and Barg 2018 at epsilon 1, compared with k-ary randomised response, whose shares are computed separately here."""
    e = math.e
    own, other = e / (e + size - 1), 1 / (e + size - 1)
    alone = math.sqrt(other * (1 - other)) / (own - other)
    assert alone / CategoryLaw.for_epsilon(Fraction(1), size).standard_deviation == pytest.approx(better, rel=0.02)


def outputs(law: NumberLaw, place: int | None, end: int | None) -> list[tuple[Fraction, Fraction, Fraction]]:
    """Return (probability, estimate of the number in ranges from the middle, weight of its presence) of every output."""
    present, missing = law.present_weights
    found = []
    total = law.interval.total
    start = law.places if place is None else place
    for output in range(law.interval.inside + law.interval.outside):
        inside = start <= output < start + law.width
        chance = law.interval_share * Fraction(
            law.interval.inside_weight if inside else law.interval.outside_weight, total
        )
        number = output < law.places
        value = (output - Fraction(law.places - 1, 2)) * law.interval_slope if number else Fraction(0)
        found.append((chance, value, present if number else missing))
    own = 2 if end is None else end
    for output in range(law.ends.inside + law.ends.outside):
        chance = (1 - law.interval_share) * Fraction(
            law.ends.inside_weight if output == own else law.ends.outside_weight, law.ends.total
        )
        value = Fraction(0) if output == 2 else (2 * output - 1) * law.end_reach
        found.append((chance, value, missing if output == 2 else present))
    return found


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_numbers_are_unbiased_exactly(epsilon: Fraction, missing: bool) -> None:
    law = NumberLaw.for_epsilon(epsilon, missing)
    for place, end in [(0, 0), (STEPS, 1), *([(None, None)] if missing else [])]:
        found = outputs(law, place, end)
        assert sum(chance for chance, _, _ in found) == 1
        expected = Fraction(0) if place is None else Fraction(place, STEPS) - Fraction(1, 2)
        assert sum(chance * value for chance, value, _ in found) == expected
        assert sum(chance * weight for chance, _, weight in found) == (place is not None)
    alone = [(chance, value) for chance, value, _ in outputs(law, STEPS // 4, 0)][
        : law.interval.inside + law.interval.outside
    ]
    assert sum(c * v for c, v in alone) == law.interval_share * Fraction(-1, 4)


def test_the_hybrid_law_beats_both_of_its_parts_above_its_epsilon() -> None:
    for epsilon in (Fraction(1), Fraction(2), Fraction(4)):
        law = NumberLaw.for_epsilon(epsilon, False)
        assert law.standard_deviation < float(law.end_reach)
    assert NumberLaw.for_epsilon(Fraction(6, 10), False).interval_share == 0
