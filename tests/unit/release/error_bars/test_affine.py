"""Expressions that are linear in noisy terms are distinguished from others, and their bars are quantiles of the weighted
noise."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
import sqlglot
from sqlglot import exp
from support.plain_duckdb import plain_duckdb
from support.released_blocks import counts, covered, gaussian_noise, laplace_noise, release

from dpsql.noise.perturb import NoisyTerm
from dpsql.privacy.mechanisms.contract import Constant, Noise, Sensitivity
from dpsql.release.error_bars.affine import Part, Weighed, deviation_of, half_widths, parts
from dpsql.release.formulas import WHOLE
from dpsql.release.sandbox import Sandbox

LAPLACE = laplace_noise("1")


def term(name: str, noise: Noise = LAPLACE, *, whole: bool = True) -> NoisyTerm:
    return NoisyTerm(name, np.zeros(1), 2.0**noise.shift, noise, 0, whole)


TERMS = {"t0": term("t0"), "t1": term("t1", whole=False)}
POINTS = [{"k": k, "t0": t0, "t1": t1} for k, t0, t1 in product((-2.0, 0.5, 4.0), (-7.0, 0.0, 3.0), (-3.0, 0.5, 6.25))]


def parsed(text: str) -> exp.Expr:
    """Return a formula of dpsql, in which rounded numbers are integers without noise."""
    tree = sqlglot.parse_one(text, read="duckdb")
    for node in tree.find_all(exp.Round):
        node.meta[WHOLE] = True
    return tree


def value(node: exp.Expr, point: dict[str, float]) -> float:
    """Return the value of an expression at a point, computed by DuckDB."""
    columns = ", ".join(f"{number!r}::DOUBLE AS {name}" for name, number in point.items())
    sql = f"SELECT ({node.sql(dialect='duckdb')})::DOUBLE FROM (SELECT {columns})"
    (row,) = plain_duckdb().execute(sql).fetchall()
    return float(row[0])


def away_from_zero(number: float) -> float:
    return math.copysign(math.floor(abs(number) + 0.5), number)


def noisy_share(sums: list[Part], point: dict[str, float]) -> float:
    """Return the number that the parts represent according to the module's docstring."""
    total = 0.0
    for part in sums:
        inner = sum(value(weight, point) * point[name] for name, weight in part.weights.items())
        total += value(part.factor, point) * (away_from_zero(inner) if part.rounded else inner)
    return total


LINEAR = (
    "t0", "t1", "(t0)", "-t0", "t0 + t1", "t0 - t1", "3 - t0", "t0 - k", "k * t0", "t0 * k", "t0 / k", "k * k * t0",
    "t0 + t0", "t0 - t0 + t1", "(t0 + t1) * k - t1 / 4", "-(2 * t0 - t1 / 4) * k + 7",
    "CAST(t0 AS DOUBLE) / 2", "CAST(t0 + k AS FLOAT)", "round(t1)", "round(t0 + t1 / 2)", "-round(t1 / 2)",
    "k * round(t1 / 2) + t1", "round(t0 / 2) - round(t1 / 4)", "round(t1) / k + round(t1) * 3", "k - round(3 * t0 - t1)",
    "CAST(round(t0 + t1) AS BIGINT) * 2", "CAST(round(t1 * 3) AS INT)", "CAST(round(t1 * 3) AS INT128)",
)  # fmt: skip
OTHERS = (
    "t0 * t1", "t0 * t0", "1 / t0", "k / t0", "t0 / t1", "abs(t0)", "abs(t0) + t1", "t1 - abs(t0)", "-abs(t0)",
    "abs(t0) * k", "k * abs(t0)", "abs(t0) / k", "k / abs(t0)", "CAST(abs(t0) AS DOUBLE)", "round(abs(t0))",
    "round(t1, 1)", "round(round(t1) / 2)", "round(t0 + round(t1))", "CAST(t1 AS BIGINT)", "CAST(round(t1) AS TINYINT)",
    "CAST(t0 AS VARCHAR)", "least(t0, k)", "CASE WHEN k > 0 THEN t0 ELSE 0 END", "floor(t1)",
)  # fmt: skip


@pytest.mark.parametrize("text", LINEAR)
def test_the_parts_change_with_the_terms_as_the_expression_does(text: str) -> None:
    tree = parsed(text)
    sums = parts(tree, TERMS)
    assert sums
    constants: dict[float, set[float]] = {}
    for point in POINTS:
        constants.setdefault(point["k"], set()).add(round(value(tree, point) - noisy_share(sums, point), 9))
    assert [len(rest) for rest in constants.values()] == [1, 1, 1]


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_not_linear_has_no_parts(text: str) -> None:
    assert parts(parsed(text), TERMS) is None


@pytest.mark.parametrize("text", ["k", "3", "k * k + 1", "abs(k)", "round(k)", "'a'"])
def test_an_expression_without_terms_is_exact(text: str) -> None:
    assert parts(parsed(text), TERMS) == []


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("round(t0)", False),
        ("round(t0 + k)", False),
        ("round(t1)", True),
        ("round(t0 * 2)", True),
        ("round(2 * t0 / 2)", True),
        ("round(t0 + t1)", True),
        ("CAST(round(t0) AS BIGINT)", False),
    ],
)
def test_only_a_whole_number_alone_is_its_own_rounding(text: str, rounded: bool) -> None:
    (part,) = parts(parsed(text), TERMS) or []
    assert part.rounded is rounded


@pytest.mark.parametrize("rounded", ["round(m0 / 10)", "CAST(round(m0 / 10) AS BIGINT)", "round(m0 / 10) * 1.0"])
def test_bars_of_a_rounding_that_an_analyst_writes_hold(sandbox: Sandbox, rounded: str) -> None:
    """49.4 is rounded to 49, and to 50 as soon as noise adds 1 to 494: the bar must not be 0 as for an integer."""
    sql = f"SELECT k0, {rounded} AS r FROM dp_0"
    found = release(sandbox, sql, [counts(np.full(400, 494.0), laplace_noise("4/5"), "x0")])
    assert covered(found, 1, np.full(400, 49.0)).mean() >= 0.95
    assert parts(sqlglot.parse_one("round(t1 / 10)"), TERMS) is None


def test_parts_that_are_not_rounded_are_merged_into_the_first() -> None:
    sums = parts(parsed("round(t1) + t0 - round(t0 / 3) + t1 + t0"), TERMS) or []
    assert [part.rounded for part in sums] == [False, True, True]
    assert set(sums[0].weights) == {"t0", "t1"}


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
    weighed = Weighed({"t0": weights(1, -2, 0, 3)}, weights(1, 1, 5, -4), False)
    (half,) = [half_widths([weighed], {"t0": term("t0")}, confidence, "key")]
    exact = quantile({float(z): p for z, p in probabilities().items()}, confidence)
    assert half is not None
    # The law's own quantile is an upper bound that may be one step too wide.
    step = half[0] - exact
    assert 0 <= step <= 1
    assert half.tolist() == [exact + step, 2 * (exact + step), 0, 12 * (exact + step)]


@pytest.mark.parametrize(
    ("weight", "factor", "expected"),
    [(0.5, 1.0, 2.0), (0.5, -3.0, 6.0), (-0.5, 1.0, 2.0), (0.375, 1.0, 1.0), (0.125, 1.0, 0.0), (1.0, 2.0, 6.0)],
)
def test_the_bar_of_a_rounded_number_is_whole(weight: float, factor: float, expected: float) -> None:
    """|round(e)| <= h where |e| < h + 1/2; a half is rounded away from zero."""
    noise = term("t0")
    assert noise.half_width(0.95) == 3.0
    half = half_widths([Weighed({"t0": weights(weight)}, weights(factor), True)], {"t0": noise}, 0.95, "key")
    assert half is not None and half.tolist() == [expected]


@pytest.mark.parametrize(("confidence", "sigmas"), [(0.9, 1.6448536), (0.95, 1.9599640), (0.99, 2.5758293)])
def test_the_bar_of_a_sum_of_normal_noise_is_a_multiple_of_its_deviation(confidence: float, sigmas: float) -> None:
    noise = gaussian_noise("1/200")  # sigma 10
    terms = {name: term(name, noise, whole=False) for name in ("t0", "t1", "t2")}
    weighed = Weighed({"t0": weights(1, 3), "t1": weights(2, -4), "t2": weights(2, 0)}, weights(1, -2), False)
    half = half_widths([weighed], terms, confidence, "key")
    assert noise.standard_deviation() == pytest.approx(10)
    assert half is not None and half == pytest.approx([sigmas * 30, sigmas * 100], rel=1e-6)


def test_the_bar_of_the_largest_weights_does_not_overflow() -> None:
    terms = {name: term(name, gaussian_noise("1/200"), whole=False) for name in ("t0", "t1")}
    half = half_widths([Weighed({"t0": weights(3e200), "t1": weights(4e200)}, weights(1), False)], terms, 0.95, "key")
    assert half is not None and half == pytest.approx([1.9599640 * 5e201], rel=1e-6)


@pytest.mark.parametrize(
    ("whole", "expected"), [(False, 10.0), (True, math.sqrt(100 + 1 / 12))], ids=["as it is", "rounded"]
)
def test_rounding_adds_a_twelfth_to_the_variance(whole: bool, expected: float) -> None:
    assert deviation_of(term("t0", gaussian_noise("1/200"), whole=whole)) == pytest.approx(expected, rel=1e-9)


def test_a_term_without_noise_has_no_deviation() -> None:
    assert deviation_of(term("t0", Constant(Sensitivity(0, 0, 0, 0)))) == 0


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
        Weighed({"t0": weights(first), "t1": weights(second)}, weights(factor), rounded)
        for factor, first, second, rounded in rows
    ]
    half = half_widths(weighed, {"t0": term("t0"), "t1": term("t1")}, confidence, "key")
    assert half is not None
    # 20,000 draws: five standard errors of a share on both sides.
    slack = 5 * math.sqrt(confidence * (1 - confidence) / 20_000)
    assert quantile(errors, confidence - slack) <= half[0] <= quantile(errors, min(confidence + slack, 0.99999))


def test_a_sum_with_a_law_that_is_not_normal_has_the_quantile_of_that_law() -> None:
    """A normal law of the same variance would have a 99 % bar of 3.64 scales, where Laplace noise has 4.61."""
    terms = {"t0": term("t0", gaussian_noise("1/2")), "t1": term("t1", laplace_noise("1/100"))}
    half = half_widths([Weighed({name: weights(1) for name in terms}, weights(1), False)], terms, 0.99, "key")
    assert half is not None and half == pytest.approx([461], rel=0.03)


def test_terms_of_one_name_share_their_noise_between_parts() -> None:
    """t0 - t0, written as two parts, has no error."""
    weighed = [Weighed({"t0": weights(1)}, weights(1), False), Weighed({"t0": weights(1)}, weights(-1), True)]
    half = half_widths(weighed, {"t0": term("t0")}, 0.99, "key")
    assert half is not None and half.tolist() == [0.0]


def test_rows_of_the_same_weights_have_the_same_bar() -> None:
    weighed = Weighed({"t0": weights(2, 1, 2, 1), "t1": weights(1, 1, 1, 1)}, weights(1, 1, 1, 1), False)
    half = half_widths([weighed], {"t0": term("t0"), "t1": term("t1")}, 0.9, "key")
    assert half is not None and half[0] == half[2] > half[1] == half[3] > 0


@pytest.mark.parametrize(("weightings", "computed"), [(64, True), (65, False)])
def test_more_than_64_different_weights_are_left_to_simulation(weightings: int, computed: bool) -> None:
    numbers = np.repeat(np.arange(1.0, weightings + 1), 2)
    weighed = Weighed({"t0": numbers, "t1": numbers}, np.ones_like(numbers), False)
    half = half_widths([weighed], {"t0": term("t0"), "t1": term("t1")}, 0.9, "key")
    assert (half is not None) is computed
    if half is not None:
        assert half == pytest.approx(half[0] * numbers)


def test_draws_are_a_function_of_the_key() -> None:
    """Rounding is switched off, so that the draws of a continuous law are visible."""
    terms = {"t0": term("t0", laplace_noise("1/1000"), whole=False), "t1": term("t1", whole=False)}
    weighed = [Weighed({"t0": weights(1.0), "t1": weights(0.5)}, weights(1), False)]
    first, again, other = (half_widths(weighed, terms, 0.9, key) for key in ("a", "a", "b"))
    assert first is not None and again is not None and other is not None
    assert first[0] == again[0] != other[0]


@pytest.mark.parametrize("confidence", [0.99999, 1.0])
def test_the_highest_confidence_takes_the_largest_draw(confidence: float) -> None:
    terms = {"t0": term("t0"), "t1": term("t1")}
    weighed = [Weighed({"t0": weights(1), "t1": weights(1)}, weights(1), False)]
    largest = half_widths(weighed, terms, confidence, "key")
    lower = half_widths(weighed, terms, 0.999, "key")
    assert largest is not None and lower is not None and np.isfinite(largest[0]) and largest[0] > lower[0]
