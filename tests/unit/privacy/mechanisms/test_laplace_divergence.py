"""The cost of Laplace noise in zCDP: its exact divergence, the worst split of a change over entries, and the inverse."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import DiscreteLaplacePrivacyLoss

from dpsql.privacy.loss import rho_of_pure
from dpsql.privacy.mechanisms import laplace
from dpsql.privacy.mechanisms.contract import Noise, Sensitivity
from dpsql.privacy.mechanisms.laplace import (
    MOST_SCALE,
    Laplace,
    entry_moved,
    entry_rho,
    largest_rate,
    recomputed_entry_rho,
    safe_rate,
    steps_moved,
    vector_rho,
)
from dpsql.privacy.mechanisms.registry import MECHANISMS
from dpsql_audit.noise_laws import laplace_rho

ORDERS = [1.0001, 1.01, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 40.0, 200.0]
RATES = [Fraction(2), Fraction(1), Fraction(1, 3), Fraction(1, 10), Fraction(1, 40)]
STEPS = [1, 2, 3, 7, 40]
WIDE = [(rate, steps) for rate in (Fraction(50), Fraction(7, 3), Fraction(1, 10**3), Fraction(1, MOST_SCALE))
        for steps in (1, 2, 1000, 1 << 30, 1 << 50) if rate * steps < 10**6]  # fmt: skip
GRID = Fraction(1, 10**47)


def laws(rate: Fraction, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return logarithms of the law of discrete Laplace noise and of the same law `steps` away."""
    r = float(rate)
    reach = math.ceil(80 / r) + 40
    z = np.arange(-reach, reach + steps + 1)
    normal = math.log(math.tanh(r / 2))
    return normal - r * np.abs(z), normal - r * np.abs(z - steps)


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """Return the Renyi divergence of two laws given by logarithms."""
    terms = order * p + (1 - order) * q
    return float((terms.max() + math.log(np.exp(terms - terms.max()).sum())) / (order - 1))


# --- one entry --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("steps", STEPS)
def test_no_order_costs_more_and_order_one_costs_as_much(rate: Fraction, steps: int) -> None:
    rho, pair = float(entry_rho(rate, steps)), laws(rate, steps)
    for order in ORDERS:
        for first, second in (pair, pair[::-1]):
            assert (
                divergence(first, second, order) <= order * rho * (1 + 1e-9) + 1e-10
            )  # sums of doubles over order - 1
    assert divergence(*pair, 1.0001) / 1.0001 >= 0.999 * rho, "a price one per cent lower is too low"


@pytest.mark.parametrize("rate", RATES, ids=str)
@pytest.mark.parametrize("steps", STEPS)
def test_the_mean_of_the_loss_is_that_of_another_library(rate: Fraction, steps: int) -> None:
    pair = DiscreteLaplacePrivacyLoss(float(rate), sensitivity=steps)
    reach = math.ceil(60 / float(rate)) + steps
    points = np.arange(-reach, reach)
    mass = np.diff(pair.mu_upper_cdf(np.append(points[0] - 1, points)))
    mean = sum(chance * pair.privacy_loss(int(point)) for point, chance in zip(points, mass, strict=True))
    assert mean == pytest.approx(float(entry_rho(rate, steps)), rel=1e-9)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("steps", [1, 2, 5, 12, 33])
def test_the_zeros_that_the_proof_needs_lie_on_the_unit_circle(q: float, steps: int) -> None:
    coefficients = np.full(steps + 1, 1 - q)
    coefficients[[0, -1]] = 1
    assert np.abs(np.roots(coefficients)) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("rate", "steps"), WIDE + list(product(RATES, STEPS)), ids=str)
def test_three_roads_meet_and_round_to_their_sides(rate: Fraction, steps: int) -> None:
    charged = entry_rho(rate, steps)
    assert charged == recomputed_entry_rho(rate, steps)
    assert charged * (1 - Fraction(1, 10**20)) - GRID < laplace_rho(rate, steps) <= charged
    with mpmath.workdps(120):
        r, epsilon = (mpmath.mpf(x.numerator) / x.denominator for x in (rate, rate * steps))
        exact = epsilon + mpmath.expm1(-epsilon) - mpmath.expm1(-epsilon) * (1 - r / mpmath.sinh(r))
        told = mpmath.mpf(charged.numerator) / charged.denominator
        assert exact <= told <= exact + mpmath.mpf(10) ** -47


@pytest.mark.parametrize(("rate", "steps"), WIDE + list(product(RATES, STEPS)), ids=str)
def test_it_is_at_most_what_its_epsilon_costs_and_just_that_at_one_step(rate: Fraction, steps: int) -> None:
    charged, generic = entry_rho(rate, steps), rho_of_pure(rate * steps)
    assert charged <= generic + GRID
    assert steps > 1 or charged >= generic - GRID
    assert entry_rho(rate, 0) == recomputed_entry_rho(rate, 0) == 0


def test_noise_that_is_never_there_costs_its_epsilon_and_no_large_numbers() -> None:
    for rate, steps in ((Fraction(10**6, 7), 10**9), (Fraction(1, 1000), 10**15), (Fraction(2001), 1)):
        charged = entry_rho(rate, steps)
        assert charged == recomputed_entry_rho(rate, steps) and rate * steps - 1 <= charged <= rate * steps + GRID
        assert charged.denominator <= 10**48 and laplace_rho(rate, steps) <= charged


def test_over_many_steps_it_is_that_of_the_continuous_law() -> None:
    for epsilon in (0.1, 1.0, 2.0, 8.0):
        rate = Fraction(epsilon) / 10**6
        assert float(entry_rho(rate, 10**6)) == pytest.approx(epsilon + math.exp(-epsilon) - 1, rel=1e-6)


# --- several entries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 10**6)], ids=str)
def test_the_price_of_an_entry_rises_with_the_rate_and_faster_with_each_step(rate: Fraction) -> None:
    costs = [entry_rho(rate, steps) for steps in range(42)]
    rises = np.diff(costs)
    assert (rises > 0).all() and (np.diff(rises) >= -3 * GRID).all()
    assert all(entry_rho(rate * Fraction(101, 100), steps) > costs[steps] for steps in STEPS)


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize(("linf", "l1"), [(1, 3), (2, 3), (3, 3), (4, 7), (5, 12)])
def test_entries_together_cost_no_more_than_is_charged_however_they_move(shift: int, linf: int, l1: int) -> None:
    """Every way in which up to three entries may move within the norms, on the grid of the noise."""
    noise = Laplace(Sensitivity(3, l1, 3 * linf * linf, linf), shift, 5, 3)
    splits = [moves for moves in product(range(linf + 1), repeat=3) if sum(moves) <= l1]
    steps = [[-(-move // (1 << shift)) for move in moves] for moves in splits]  # from just below a grid line
    worst = max(sum(entry_rho(Fraction(3, 5), move) for move in moves) for moves in steps)
    charged = noise.loss.rho
    assert charged is not None and worst <= charged and charged == noise.recomputed_loss().rho
    assert shift or worst == charged, "the charge is reached"


@pytest.mark.parametrize("moves", [(1, 1), (3, 2), (5, 0), (4, 4)])
def test_the_law_of_two_entries_costs_no_more_at_any_order(moves: tuple[int, int]) -> None:
    """The divergence of the joint law of two cells, summed over the plane."""
    rate, most = Fraction(2, 3), max(moves)
    rho = float(vector_rho(rate, sum(moves), most))
    (p1, q1), (p2, q2) = (laws(rate, move) for move in moves)
    first, second = (np.add.outer(left, right).ravel() for left, right in ((p1, p2), (q1, q2)))
    for order in (1.0001, 1.5, 2.0, 8.0):
        assert divergence(first, second, order) <= order * rho * (1 + 1e-9) + 1e-10
    assert divergence(first, second, 1.0001) >= 0.999 * rho


def test_entries_that_move_little_are_charged_for_themselves() -> None:
    """Twenty groups of one row cost twenty times one group, not four hundred times."""
    one, many = (Laplace(Sensitivity(n, n, n, 1), 0, 10, 1).loss.rho for n in (1, 20))
    assert one is not None and many == 20 * one


def test_entries_move_no_further_than_all_together() -> None:
    for shift in range(5):
        moved = Sensitivity(7, 9, 20, 5)
        assert entry_moved(moved, shift) == -(-5 // (1 << shift)) <= steps_moved(moved, shift)
    assert entry_moved(Sensitivity(3, 2, 4, 9), 0) == 2


# --- the inverse ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(1, 1), (20, 1), (7, 4), (3 * 2**20 + 5, 2**20), (1 << 50, 1 << 49), (1000, 999)])
@pytest.mark.parametrize("size", range(-14, 4, 2))
def test_the_largest_rate_spends_all_but_a_part_in_a_billion(steps: tuple[int, int], size: int) -> None:
    for digit in (1, 3, 7):
        rho = digit * Fraction(10) ** size
        rate = largest_rate(rho, *steps)
        assert rho * (1 - Fraction(1, 10**9)) <= vector_rho(rate, *steps) <= rho
        assert safe_rate(rho, *steps) <= rate <= 2 * safe_rate(rho, *steps)


def test_beyond_doubles_the_rate_is_safe() -> None:
    for rho in (Fraction(1, 10**40), Fraction(10**20)):
        rate = largest_rate(rho, 7, 4)
        assert rate == safe_rate(rho, 7, 4) and rho / 2 < vector_rho(rate, 7, 4) <= rho


def test_a_solution_that_is_too_large_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    rho = Fraction(3, 10)
    exact = float(largest_rate(rho, 7, 4))
    for factor in (1 + 1e-9, 1.5):
        monkeypatch.setattr(laplace, "_solution", lambda *_, factor=factor: exact * factor)
        assert vector_rho(largest_rate.__wrapped__(rho, 7, 4), 7, 4) <= rho


MOVED = [
    Sensitivity(1, 1, 1, 1),
    Sensitivity(20, 20, 20, 1),
    Sensitivity(3, 7, 19, 4),
    Sensitivity(2, 1 << 50, 1 << 99, 1 << 49),
    Sensitivity(1, 3 << 70, 9 << 140, 3 << 70),
]


@pytest.mark.parametrize("moved", MOVED, ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 10**9), Fraction(1, 200), Fraction(1), Fraction(40)], ids=str)
def test_noise_for_rho_spends_it_and_no_more(moved: Sensitivity, rho: Fraction) -> None:
    noise = laplace.noise_for_rho(moved, rho)
    assert isinstance(noise, Laplace) and noise.loss == noise.recomputed_loss()
    assert noise.loss.rho is not None and rho * Fraction(999, 1000) < noise.loss.rho <= rho
    if noise.shift:
        finer = noise.shift - 1
        assert 1 / largest_rate(rho, steps_moved(moved, finer), entry_moved(moved, finer)) > MOST_SCALE
    for wrong in (Fraction(0), Fraction(-1), 1.0):
        with pytest.raises(ValueError):
            laplace.noise_for_rho(moved, wrong)  # type: ignore[arg-type]


FINE = Sensitivity(1, 1 << 20, 1 << 40, 1 << 20)


def errors(moved: Sensitivity, epsilon: str) -> dict[str, float]:
    """Return expected errors of both mechanisms at the rho of a query with that epsilon, in units of what one row moves."""
    rho = Fraction(epsilon) ** 2 / 2
    noises: dict[str, Noise] = {
        word: MECHANISMS[word].calibrated("rho", moved, rho) for word in ("laplace", "gaussian")
    }
    return {word: noise.expected_error() / moved.linf for word, noise in noises.items()}


@pytest.mark.parametrize(("epsilon", "less"), [("0.1", 0.017), ("1", 0.165), ("2", 0.321), ("4", 0.556)])
def test_noise_of_many_steps_is_smaller_than_that_of_its_epsilon(epsilon: str, less: float) -> None:
    """The figures of docs/evidence/accuracy.md, relative to Laplace noise of scale 1 / epsilon, which is charged epsilon**2 / 2."""
    assert 1 - errors(FINE, epsilon)["laplace"] * float(epsilon) == pytest.approx(less, abs=0.001)


@pytest.mark.parametrize(("moved", "from_here"), [(FINE, 1.25), (Sensitivity(1, 1, 1, 1), 1.05)], ids=["sum", "count"])
def test_laplace_noise_of_one_entry_is_the_better_one_from_some_epsilon_on(
    moved: Sensitivity, from_here: float
) -> None:
    for epsilon in (0.1, 1.0, from_here - 0.05, from_here + 0.05, 2.0, 4.0):
        both = errors(moved, str(round(epsilon, 2)))
        assert (both["laplace"] < both["gaussian"]) == (epsilon > from_here)


@pytest.mark.parametrize("scale", [(1, 3), (1, 1), (16, 3), (1000, 1)])
def test_the_expected_error_is_the_mean_of_the_law(scale: tuple[int, int]) -> None:
    noise = Laplace(Sensitivity(1, 1, 1, 1), 0, *scale)
    mass, _ = laws(Fraction(noise.s, noise.t), 0)
    z = np.arange(mass.size) - mass.size // 2
    assert noise.expected_error() == pytest.approx(float(np.exp(mass) @ np.abs(z)), rel=1e-9)
