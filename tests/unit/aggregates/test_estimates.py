"""Estimates err less than ratios of noisy sums if the noise is large, and equal those ratios if it is small."""

import zlib

import numpy as np
import pytest
from support.effort import by_day
from support.formula_worlds import LOWER, UPPER, Values, World, column, noise_of, world

from dpsql.aggregates.moments import assumed_mean, beyond_noise, noise_of_covariance
from dpsql.plan.formulas import Deviation, Estimate, NoisyValue, estimated, formula, plugged_in, shrinks, substituted
from dpsql.plan.plan import Measure, TermKind
from dpsql.policy.types import UNBOUNDED
from dpsql.pricing.basis import TermBasis
from dpsql.release.formulas import numbers

GROUPS = 20_000
AGGREGATES = (
    "avg", "var_pop", "stddev_samp", "covar_samp", "corr", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx",
)  # fmt: skip
NOISES = [("laplace", 2.0), ("laplace", 40.0), ("normal", 4.0)]
"""Distribution, and its scale in rows for each term."""


def values(rows: int) -> Values:
    """Return values with most of x near the lower bound, like amounts; y depends slightly on x."""
    x = np.minimum(-60 * np.log(1 - (np.arange(rows) + 0.5) / rows), UPPER)
    return {"y": list(0.4 * x + 0.6 * np.random.default_rng(14).permutation(x)), "x": list(x)}


def truth(aggregate: str, rows: Values) -> float:
    y, x = np.array(rows["y"]), np.array(rows["x"])
    slope = np.cov(y, x, ddof=0)[0, 1] / x.var()
    return float({
        "avg": y.mean(), "var_pop": y.var(), "stddev_samp": y.std(ddof=1), "covar_samp": np.cov(y, x)[0, 1],
        "corr": np.corrcoef(y, x)[0, 1], "regr_slope": slope, "regr_intercept": y.mean() - slope * x.mean(),
        "regr_r2": np.corrcoef(y, x)[0, 1] ** 2, "regr_avgx": x.mean(),
    }[aggregate])  # fmt: skip


def errors(world: World, exact: float, rows: Values, law: str, scale: float) -> tuple[float, float]:
    """Return mean squared errors of the plug-in formula and of the estimate, over results that are NULL in neither."""
    seed = zlib.crc32(f"{world.formula is None}/{law}/{scale}/{len(rows['x'])}".encode())
    noise, deviations = noise_of(world, law, scale, GROUPS, seed)
    plug_in, estimate = world.both(world.sums(rows), noise, deviations)
    both = np.isfinite(plug_in) & np.isfinite(estimate)
    assert both.mean() > 0.02
    return float(np.mean((plug_in[both] - exact) ** 2)), float(np.mean((estimate[both] - exact) ** 2))


@pytest.mark.parametrize(("law", "scale"), NOISES)
@pytest.mark.parametrize(("aggregate", "shared"), [("avg", True), *((word, False) for word in AGGREGATES)])
def test_the_mean_squared_error_is_never_more_than_that_of_the_plain_formula(
    aggregate: str, shared: bool, law: str, scale: float
) -> None:
    found = world(aggregate, shared)
    gains = []
    for rows in (values(size) for size in (5, 10, 25, 100, 1000)):
        plain, shrunk = errors(found, truth(aggregate, rows), rows, law, scale)
        assert shrunk <= 1.02 * plain, len(rows["x"])
        gains.append(shrunk / plain)
    if scale > 10:
        assert min(gains) < 0.75


def test_slopes_do_not_explode_where_the_count_is_known_and_the_variance_is_not() -> None:
    rows = values(1000)
    plain, shrunk = errors(world("regr_slope"), truth("regr_slope", rows), rows, "laplace", 40.0)
    assert shrunk < 0.4 * plain


@pytest.mark.parametrize("aggregate", ["var_pop", "stddev_samp"])
def test_variances_that_are_mostly_noise_err_less_though_the_count_is_known(aggregate: str) -> None:
    for law, scale, size in (("laplace", 2.0, 40), ("normal", 4.0, 40), ("laplace", 40.0, 800)):
        rows = {"y": list(np.linspace(100, 500, size)), "x": [0.0] * size}
        exact = float(np.var(rows["y"])) if aggregate == "var_pop" else float(np.std(rows["y"], ddof=1))
        plain, shrunk = errors(world(aggregate), exact, rows, law, scale)
        assert shrunk < 0.85 * plain, (law, scale)


SPREADS = {
    "amounts": (0.0, 0.05),
    "middle": (0.3, 0.7),
    "everywhere": (0.0, 1.0),
    "low": (0.1, 0.3),
    "narrow": (0.45, 0.55),
}


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("epsilon", by_day([0.5], [0.1, 0.5, 1.0]))
def test_a_covariance_of_shared_rows_errs_no_more_than_one_beside_its_variances(spread: str, epsilon: float) -> None:
    """Both where noise hides a group and where it does not: six sums have a sixth of epsilon each, four that share rows all of
    it."""
    shared, apart = world("covar_samp", shared=True), world("covar_samp")
    for size in (5, 10, 25, 100, 300, 1000, 3000):
        random = np.random.default_rng([size, len(spread)])
        low, high = (UPPER * end for end in SPREADS[spread])
        x, other = (
            random.exponential(high, size) if spread == "amounts" else random.uniform(low, high, size) for _ in range(2)
        )
        x, y = np.minimum(x, UPPER), np.minimum(x / 2 + other / 2, UPPER)
        found, exact = {"y": list(y), "x": list(x)}, float(np.cov(y, x)[0, 1])
        _, of_shared = errors(shared, exact, found, "laplace", 1 / epsilon)
        _, of_apart = errors(apart, exact, found, "laplace", 6 / epsilon)
        assert of_shared <= 1.1 * of_apart, (size, of_shared / of_apart)
        if spread == "everywhere" and size >= 1000:
            assert of_shared < 0.3 * of_apart  # the distributions imply a ninth


def test_a_covariance_within_its_noise_gives_way_and_one_beyond_stays() -> None:
    value, noise, limit = NoisyValue("v"), formula(10.0), formula(52.0)
    for assumed, reach in ((1e6, 20.0), (10.0, 50.0), (52.0, 25.0)):
        released = {"v": np.array([reach, -reach, 0.5 * reach, 0.0, 1e4, -1e4])}
        shown = numbers(beyond_noise(value, limit, assumed, noise), released)
        assert shown == pytest.approx([reach, -reach, 0.5 * 0.4375 * reach, 0.0, 52, -52])


def test_the_noise_of_a_covariance_is_told_wherever_the_means_lie() -> None:
    """The stated noise is right as far as it is linear in the sums: for 1,000 rows at both bounds, where the noise of four sums
    is weighted differently."""
    found = world("covar_pop", shared=True)
    for y, x in ((0.0, 0.0), (1000.0, 0.0), (500.0, 500.0), (300.0, 900.0)):
        rows = {"y": [y - 1e-3, y + 1e-3] * 500, "x": [x + 1e-3, x - 1e-3] * 500}
        noise, deviations = noise_of(found, "normal", 1.0, GROUPS, 12)
        released = {name: exact + noise[name] for name, exact in found.sums(rows).items()}
        measure = Measure("m", "covar_pop", (column("y"), column("x")), False, None)
        basis = TermBasis((measure,), False, 1, UNBOUNDED, True, squares=True)
        sums = basis.products((column("y"), column("x")), None)
        assert sums is not None
        means = [np.array(numbers(total / sums.count, released)) for total in sums.totals]
        covariance = numbers(sums.product / sums.count, released) - means[0] * means[1]
        told = numbers(estimated(noise_of_covariance(sums, measure, sums.count), deviations), released)
        assert np.mean(told) == pytest.approx(np.std(covariance), rel=0.05)


def test_a_variance_is_none_that_no_values_with_the_released_mean_have() -> None:
    """With a mean m the variance is at most (m - L)(U - m), which only values at both bounds reach."""
    found, rows = world("var_pop"), {"y": [12.0] * 400, "x": [0.0] * 400}
    squares = max(found.widths, key=found.widths.__getitem__)
    noise = {name: np.full(1, 400 * 90_000.0 if name == squares else 0.0) for name in found.widths}
    plug_in, estimate = found.both(found.sums(rows), noise, dict.fromkeys(found.widths, 1e-6))
    assert plug_in == pytest.approx(90_000)
    assert estimate == pytest.approx((12 - LOWER) * (UPPER - 12), rel=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_from_three_deviations_on_values_far_from_what_is_assumed_lose_nothing(shared: bool) -> None:
    found, rows = world("avg", shared), {"y": list(np.linspace(960, 1000, 60)), "x": [0.0] * 60}
    plain, shrunk = errors(found, 980.0, rows, "normal", 14.0 if shared else 20.0)
    assert shrunk <= 1.02 * plain


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_an_estimate_has_no_jumps_as_the_count_grows(aggregate: str) -> None:
    """The count rises from far below 0 to where the plain formula holds; the other sums are fixed."""
    found = world(aggregate)
    (count,) = (term.name for term in found.terms if term.kind is TermKind.COUNT)
    exact = found.sums(values(40))
    steps = np.linspace(-60, 60, 20_001)
    noise = {name: steps if name == count else np.zeros_like(steps) for name in exact}
    _, deviations = noise_of(found, "laplace", 8.0, 1, 1)
    _, estimate = found.both(exact, noise, deviations)
    shown = estimate[np.isfinite(estimate)]
    assert np.abs(np.diff(shown)).max() < 0.04 * (shown.max() - shown.min() + 1e-9)


@pytest.mark.parametrize(
    ("aggregate", "low", "high"),
    [("avg", LOWER, UPPER), ("var_pop", 0, 500**2), ("corr", -1, 1), ("regr_r2", 0, 1), ("regr_avgx", LOWER, UPPER)],
)
def test_an_estimate_stays_within_what_the_bounds_allow(aggregate: str, low: float, high: float) -> None:
    found = world(aggregate)
    noise, deviations = noise_of(found, "laplace", 30.0, GROUPS, 3)
    _, estimate = found.both(found.sums(values(10)), noise, deviations)
    shown = estimate[np.isfinite(estimate)]
    assert len(shown)
    assert low - 1e-9 <= shown.min()
    assert shown.max() <= high + 1e-9


def test_with_nothing_but_noise_the_mean_of_many_groups_is_near_what_is_assumed() -> None:
    found = world("avg", shared=True)
    noise, deviations = noise_of(found, "normal", 50.0, GROUPS, 6)
    plug_in, estimate = found.both({term.name: 0.0 for term in found.terms}, noise, deviations)
    assert assumed_mean(LOWER, UPPER) == 250
    assert np.std(estimate) < 0.7 * np.std(plug_in)
    assert 250 < np.mean(estimate) < 400


@pytest.mark.parametrize(
    ("lower", "upper", "mean"), [(0, 1000, 250), (-10, 10, 0), (18, 90, 36), (-1000, 0, -250), (5, 5, 5)]
)
def test_assumed_rows_lie_between_the_middle_and_the_value_nearest_to_zero(lower: int, upper: int, mean: float) -> None:
    assert assumed_mean(lower, upper) == mean


A, B = NoisyValue("a"), NoisyValue("b")


def test_without_noise_there_is_nothing_to_lean_on() -> None:
    asked = Estimate(A / B, A / (B + Deviation(B)))
    assert estimated(asked, {"a": 0.0, "b": 0.0}) == A / B
    assert estimated(asked, {"a": 0.0, "b": 3.0}) == A / (B + 3.0)
    assert plugged_in(asked + 1) == A / B + 1
    assert shrinks(asked + 1)
    assert not shrinks(A / B)


def test_the_noise_of_a_weighted_sum_is_that_of_independent_terms() -> None:
    linear = (2 * A - B) / 4 + -B
    assert estimated(Deviation(linear), {"a": 6.0, "b": 3.2}) == formula(5.0)
    assert estimated(Deviation(A - A), {"a": 6.0}) == formula(0.0)
    over_parts = substituted(Deviation(A), {"a": 3 * formula("x") + 4 * formula("y")})
    assert estimated(over_parts, {"x": 1.0, "y": 1.0}) == formula(5.0)
    with pytest.raises(ValueError, match="no sum of terms"):
        estimated(Deviation(A * B), {"a": 1.0, "b": 1.0})
