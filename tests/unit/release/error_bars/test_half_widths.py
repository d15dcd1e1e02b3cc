"""Formulas that are weighted sums of noisy terms are distinguished from others, and their bars are quantiles of the weighted
noise."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from support.released_blocks import T0, T1, counts, covered, gaussian_noise, laplace_noise, release

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.formulas import Formula, NoisyValue, Number, Operation, Operator, greatest, least, square_root, whole
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.laws import half_widths
from dpsql.release.formulas import Linear, Part, linear, numbers
from dpsql.release.sandbox import Sandbox

LAPLACE = laplace_noise("1")
K = NoisyValue("k")
"""A column without noise."""


def term(name: str, noise: Noise = LAPLACE, *, whole: bool = True) -> NoisyTerm:
    return NoisyTerm(name, np.zeros(1), 2.0**noise.shift, noise, 0, whole)


def rounded(formula: Formula) -> Formula:
    """Return a formula rounded by an analyst."""
    return Operation(Operator.ROUND, (formula,))


def form(formula: Formula, k: float = 3.0) -> Linear | None:
    return linear(formula, frozenset({"t0", "t1"}), frozenset({"t0"}), {"k": np.float64(k)})


def away_from_zero(number: float) -> float:
    return math.copysign(math.floor(abs(number) + 0.5), number)


def noisy_share(parts: Linear, point: dict[str, float]) -> float:
    """Return the number that the parts represent according to their docstring."""
    total = 0.0
    for part in parts:
        inner = sum(weight * point[name] for name, weight in part.weights.items())
        total += part.factor * (away_from_zero(inner) if part.rounded else inner)
    return total


LINEAR = (
    T0, T1, -T0, T0 + T1, T0 - T1, Number(3) - T0, T0 - K, K * T0, T0 * K, T0 / K, K * K * T0, T0 + T0, T0 - T0 + T1,
    (T0 + T1) * K - T1 / 4, -(2 * T0 - T1 / 4) * K + 7, whole(T1), whole(T0 + T1 / 2), -whole(T1 / 2),
    K * whole(T1 / 2) + T1, whole(T0 / 2) - whole(T1 / 4), whole(T1) / K + whole(T1) * 3, K - whole(3 * T0 - T1),
    rounded(T0), square_root(K * K) * T0, T1 + least(K, 2),
)  # fmt: skip
OTHERS = (
    T0 * T1, T0 * T0, K / T0, T0 / T1, square_root(T0), square_root(T0) + T1, T1 - greatest(T0, 0), -square_root(T0),
    square_root(T0) * K, K * square_root(T0), whole(square_root(T0)), rounded(T1), rounded(T1 / 10),
    Operation(Operator.WHOLE, (whole(T1) / 2,)), whole(T0 + whole(T1)), least(T0, K), T0.at_least(3),
)  # fmt: skip


@pytest.mark.parametrize("formula", LINEAR)
def test_the_parts_change_with_the_terms_as_the_formula_does(formula: Formula) -> None:
    for k in (-2.0, 0.5, 4.0):
        parts = form(formula, k)
        assert parts
        rest = set()
        for t0, t1 in product((-7.0, 0.0, 3.0), (-3.0, 0.5, 6.25)):
            point = {"k": k, "t0": t0, "t1": t1}
            value = float(numbers(formula, {name: np.float64(number) for name, number in point.items()}))
            rest.add(round(value - noisy_share(parts, point), 9))
        assert len(rest) == 1


@pytest.mark.parametrize("formula", OTHERS)
def test_what_is_not_linear_has_no_parts(formula: Formula) -> None:
    assert form(formula) is None


@pytest.mark.parametrize("written", ["round(m0 / 10)", "CAST(round(m0 / 10) AS BIGINT)", "round(m0 / 10) * 1.0"])
def test_bars_of_a_rounding_that_an_analyst_writes_hold(sandbox: Sandbox, written: str) -> None:
    """49.4 is rounded to 49, and to 50 as soon as noise adds 1 to 494: the bar must not be 0 as for an integer."""
    sql = f"SELECT k0, {written} AS r FROM dp_0"
    found = release(sandbox, sql, [counts(np.full(400, 494.0), laplace_noise("4/5"), "x0")])
    assert covered(found, 1, np.full(400, 49.0)).mean() >= 0.95


# --- half widths ------------------------------------------------------------------------------------------------------


def probabilities(scale: float = 1.0) -> dict[int, float]:
    """Return the law of discrete Laplace noise, from its definition: P(Z = z) proportional to exp(-|z| / scale)."""
    weights = {z: math.exp(-abs(z) / scale) for z in range(-80, 81)}
    total = sum(weights.values())
    return {z: weight / total for z, weight in weights.items()}


def quantile(errors: dict[float, float], confidence: float) -> float:
    """Return the smallest h with P(|error| <= h) >= confidence."""
    total = 0.0
    by_size: Counter[float] = Counter()
    for error, probability in errors.items():
        by_size[abs(error)] += probability
    for size in sorted(by_size):
        total += by_size[size]
        if total >= confidence:
            return size
    raise AssertionError("probabilities do not add up")


def weights(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_the_bar_of_one_term_is_the_quantile_of_its_law(confidence: float) -> None:
    weighed = Part({"t0": weights(1, -2, 0, 3)}, weights(1, 1, 5, -4), False)
    (half,) = [half_widths((weighed,), {"t0": term("t0")}, confidence)]
    exact = quantile({float(z): p for z, p in probabilities().items()}, confidence)
    assert half is not None
    # The law's own quantile is an upper bound that may be one step too wide.
    step = half[0] - exact
    assert 0 <= step <= 1
    assert half.tolist() == [exact + step, 2 * (exact + step), 0, 12 * (exact + step)]


@pytest.mark.parametrize(("confidence", "sigmas"), [(0.9, 1.6448536), (0.95, 1.9599640), (0.99, 2.5758293)])
def test_the_bar_of_a_sum_of_normal_noise_is_a_multiple_of_its_deviation(confidence: float, sigmas: float) -> None:
    noise = gaussian_noise("1/200")  # sigma 10
    terms = {name: term(name, noise, whole=False) for name in ("t0", "t1", "t2")}
    weighed = Part({"t0": weights(1, 3), "t1": weights(2, -4), "t2": weights(2, 0)}, weights(1, -2), False)
    half = half_widths((weighed,), terms, confidence)
    assert noise.standard_deviation() == pytest.approx(10)
    assert half is not None and half == pytest.approx([sigmas * 30, sigmas * 100], rel=1e-6)


SUMS: dict[str, tuple[list[tuple[float, float, float, bool]], float]] = {
    # (factor, weight of t0, weight of t1, rounded), confidence
    "difference": ([(1, 1, -1, False)], 0.95),
    "difference at half": ([(1, 1, -1, False)], 0.5),
    "weighted": ([(1, 3, 0.25, False)], 0.9),
    "scaled": ([(-4, 1, 2, False)], 0.99),
    "two parts": ([(1, 1, 0, False), (2, 0.5, 0, True)], 0.9),
    "rounded": ([(3, 0.5, 0.25, True)], 0.95),
    "two rounded": ([(1, 0.5, 0, True), (-2, 0, 0.75, True)], 0.95),
}


@pytest.mark.parametrize("name", SUMS)
def test_the_bar_of_a_sum_is_near_the_quantile_of_the_sum_of_the_laws(name: str) -> None:
    rows, confidence = SUMS[name]
    law = probabilities()
    errors: Counter[float] = Counter()
    for (first, p), (second, q) in product(law.items(), law.items()):
        error = 0.0
        for factor, of_first, of_second, rounded in rows:
            inner = of_first * first + of_second * second
            error += factor * (float(np.rint(inner)) if rounded else inner)
        errors[error] += p * q
    weighed = [
        Part({"t0": weights(first), "t1": weights(second)}, weights(factor), rounded)
        for factor, first, second, rounded in rows
    ]
    half = half_widths(tuple(weighed), {"t0": term("t0"), "t1": term("t1")}, confidence)
    assert half is not None
    # 20,000 draws: five standard errors of a share on both sides.
    slack = 5 * math.sqrt(confidence * (1 - confidence) / 20_000)
    assert quantile(errors, confidence - slack) <= half[0] <= quantile(errors, min(confidence + slack, 0.99999))


def test_terms_of_one_name_share_their_noise_between_parts() -> None:
    """t0 - t0, written as two parts, has no error."""
    weighed = [Part({"t0": weights(1)}, weights(1), False), Part({"t0": weights(1)}, weights(-1), True)]
    half = half_widths(tuple(weighed), {"t0": term("t0")}, 0.99)
    assert half is not None and half.tolist() == [0.0]


@pytest.mark.parametrize(("weightings", "computed"), [(64, True), (65, False)])
def test_more_than_64_different_weights_are_left_to_simulation(weightings: int, computed: bool) -> None:
    numbers = np.repeat(np.arange(1.0, weightings + 1), 2)
    weighed = Part({"t0": numbers, "t1": numbers}, np.ones_like(numbers), False)
    half = half_widths((weighed,), {"t0": term("t0"), "t1": term("t1")}, 0.9)
    assert (half is not None) is computed
    if half is not None:
        assert half == pytest.approx(half[0] * numbers)
