"""Bars of quotients and means: the stated coverage for any size of the denominator, and unknown where it may be 0."""

import numpy as np
import pytest
from support.released_blocks import T0, T1, block, count_of, gaussian_noise, laplace_noise, noisy, release

from dpsql.plan.formulas import Formula, NoisyValue, Number, greatest, square_root, within
from dpsql.plan.intervals import Type
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.fieller import Quotient, Reader, _arc, _by_false_position
from dpsql.release.release import Release
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox

GROUPS = 2_000
LAWS = {"laplace": laplace_noise("1", l1=4096), "gaussian": gaussian_noise("1", l2=4096)}
QUOTIENT = "SELECT k0, m0 / m1 AS v FROM dp_0"
ALLOWED = 4.5
"""Allowed standard errors; noise is the same in every run."""


def answered(
    sandbox: Sandbox, noise: Noise, above: float, below: float, confidence: float, sql: str = QUOTIENT, key: str = "a"
) -> Release:
    """Return a quotient of two noisy sums in many equal groups."""
    terms = [
        noisy(name, np.full(GROUPS, exact), noise, key, whole=False) for name, exact in (("t0", above), ("t1", below))
    ]
    measured = block({"k0": np.arange(GROUPS).tolist()}, terms, [(T0, Type.REAL), (T1, Type.REAL)])
    return release(sandbox, sql, [measured], confidence=confidence)


def held(answer: Release, exact: float) -> float:
    """Return the share of groups whose bar contains the exact quotient; a bar without ends does."""
    low, high = (np.array(ends["v"].to_pylist(), dtype=float) for ends in (answer.low, answer.high))
    return float((np.isnan(low) | ((low <= exact) & (exact <= high))).mean())


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("theta", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("deviations", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("law", LAWS)
def test_bars_hold_for_any_size_of_the_denominator(
    sandbox: Sandbox, law: str, deviations: float, theta: float, confidence: float
) -> None:
    """The denominator is `deviations` standard deviations of its noise. A bar has no ends where it may be 0, so that more than
    the nominal share holds there; elsewhere the share exceeds it by no more than chance allows."""
    below = round(deviations * LAWS[law].standard_deviation())
    share = held(answered(sandbox, LAWS[law], round(theta * below), below, confidence), round(theta * below) / below)
    error = ALLOWED * np.sqrt(confidence * (1 - confidence) / GROUPS) + 0.005
    assert share >= confidence - error
    if deviations >= 50:
        assert share <= confidence + error


@pytest.mark.parametrize("item", ["700 / m1", "-700.0 / NULLIF(m1, 0)", "(3 + 4) * 100.0 / (m1 + 0)"])
@pytest.mark.parametrize("deviations", [0.1, 0.5, 2.0, 20.0])
@pytest.mark.parametrize("law", LAWS)
def test_an_exact_number_by_a_noisy_sum_is_held_for_any_size_of_the_sum(
    sandbox: Sandbox, law: str, deviations: float, item: str
) -> None:
    below = round(deviations * LAWS[law].standard_deviation())
    sql = f"SELECT k0, {item} AS v FROM dp_0"
    exact = (-700 if item.startswith("-") else 700) / below
    share = held(answered(sandbox, LAWS[law], 1, below, 0.95, sql), exact)
    error = ALLOWED * np.sqrt(0.95 * 0.05 / GROUPS) + 0.005
    assert share >= 0.95 - error
    if deviations >= 20:
        assert share <= 0.95 + error


def test_a_denominator_that_may_be_zero_leaves_nothing_known(sandbox: Sandbox) -> None:
    noise = LAWS["laplace"]
    answer = answered(sandbox, noise, 0, round(noise.standard_deviation() / 4), 0.95)
    unknown = np.array(answer.unknown["v"].to_pylist())
    ends = np.array(answer.low["v"].to_pylist(), dtype=float)
    assert 0.9 < unknown.mean() < 0.99 and (np.isnan(ends) == unknown).all()


@pytest.mark.parametrize(
    ("item", "factor"),
    [
        ("100.0 * m0 / m1", 100), ("m0 / NULLIF(m1, 0)", 1), ("m0 / m1 * 100", 100), ("-2 * (m0 / m1)", -2),
        ("CAST(m0 AS DOUBLE) / m1", 1), ("(m0 + m0) / (2 * m1)", 1), ("m0 / m1 / 4", 0.25),
    ],
)  # fmt: skip
def test_other_ways_of_writing_a_quotient_have_the_same_bars(sandbox: Sandbox, item: str, factor: float) -> None:
    plain = answered(sandbox, LAWS["laplace"], 9000, 30_000, 0.95)
    other = answered(sandbox, LAWS["laplace"], 9000, 30_000, 0.95, f"SELECT k0, {item} AS v FROM dp_0")
    ends = [np.array(column["v"].to_pylist(), dtype=float) * factor for column in (plain.low, plain.high)]
    low, high = (np.array(column["v"].to_pylist(), dtype=float) for column in (other.low, other.high))
    np.testing.assert_allclose(low, np.minimum(*ends), rtol=1e-6)
    np.testing.assert_allclose(high, np.maximum(*ends), rtol=1e-6)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_quotients_of_whole_numbers_are_held(sandbox: Sandbox, law: str) -> None:
    """A share of rows under little noise: both counts are rounded, so the bar is simulated as for other formulas."""
    noise = laplace_noise("1") if law == "laplace" else gaussian_noise("1/4")
    terms = [
        noisy(name, np.full(GROUPS, exact), noise, "share", whole=True)
        for name, exact in (("t0", 117.0), ("t1", 300.0))
    ]
    measured = block({"k0": np.arange(GROUPS).tolist()}, terms, [count_of(T0), count_of(T1)])
    for confidence in (0.5, 0.95):
        answer = release(sandbox, QUOTIENT, [measured], confidence=confidence)
        error = ALLOWED * np.sqrt(confidence * (1 - confidence) / GROUPS)
        assert held(answer, 117 / 300) >= confidence - error


@pytest.mark.parametrize("correlation", [-0.99, -0.3, 0.0, 0.7])
def test_arcs_of_normal_noise_are_those_of_the_search(correlation: float) -> None:
    """The condition holds at `start` and not at the bounds, which lie beyond the arc."""
    random, quantile = np.random.default_rng(2), 1.96
    middle, radius = random.uniform(-1.3, 1.3, GROUPS), 10 ** random.uniform(1, 6, GROUPS)

    def slack(angle: np.ndarray) -> np.ndarray:
        return quantile * np.sqrt(1 - correlation * np.sin(2 * angle)) - radius * np.abs(np.sin(angle - middle))

    last = np.stack((middle - np.pi / 2, middle + np.pi / 2))
    searched = _by_false_position(slack, middle, last, slack(middle), slack(last))
    ends = _arc(middle, middle, radius, correlation, quantile)
    np.testing.assert_allclose(ends - middle, searched - middle, rtol=1e-6, atol=1e-15)


# --- means ------------------------------------------------------------------------------------------------------------


def means(law: str, rows: int, mean: float, worse: float = 1.0, key: str = "mean") -> ReleasedBlock:
    """Return groups of `rows` rows with values within [0, 50] and this mean, as AVG measures them: the count, and the sum of
    distances from 25, both whole."""
    of_rows, of_sums = (
        (laplace_noise("1/5"), laplace_noise("1/5", 25))
        if law == "laplace"
        else (gaussian_noise("1/50"), gaussian_noise("1/50", 25))
    )
    terms = [
        noisy("t0", np.full(GROUPS, float(rows)), of_rows, f"{key}{rows}", whole=True, worse=worse),
        noisy("t1", np.full(GROUPS, round(rows * (mean - 25))), of_sums, f"{key}{rows}", whole=True, worse=worse),
    ]
    average = within(25.0 + T1 / greatest(T0, 1), 0.0, 50.0)
    return block({"k0": np.arange(GROUPS).tolist()}, terms, [(average, Type.REAL), count_of(T0)])


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("mean", [0.0, 10.0, 25.0, 50.0])
@pytest.mark.parametrize("rows", [1, 4, 12, 40, 1_000])
@pytest.mark.parametrize("law", LAWS)
def test_a_mean_is_held_for_any_number_of_rows(
    sandbox: Sandbox, law: str, rows: int, mean: float, confidence: float
) -> None:
    """The noise of the count has a deviation of 7 (Laplace) or 5. Bars stay within the bounds of the values; at a bound, and where
    the bounds are all that is known, more than the nominal share holds."""
    answer = release(sandbox, "SELECT k0, m0 AS v FROM dp_0", [means(law, rows, mean)], confidence=confidence)
    exact = 25 + round(rows * (mean - 25)) / rows
    low, high = (np.array(ends["v"].to_pylist(), dtype=float) for ends in (answer.low, answer.high))
    assert low.min() >= 0 and high.max() <= 50 and (high - low).min() > 1e-3
    error = ALLOWED * np.sqrt(confidence * (1 - confidence) / GROUPS) + 0.005
    assert held(answer, exact) >= confidence - error
    if rows == 1_000 and 0 < mean < 50:
        assert held(answer, exact) <= confidence + error


@pytest.mark.parametrize("law", LAWS)
def test_a_mean_with_more_noise_than_is_claimed_is_held_less_often(sandbox: Sandbox, law: str) -> None:
    for rows in (12, 40, 1_000):
        answer = release(sandbox, "SELECT k0, m0 AS v FROM dp_0", [means(law, rows, 30.0, worse=2.0)])
        assert held(answer, 30.0) < 0.91


@pytest.mark.parametrize("item", ["m0 * 2 - 1", "-m0", "m0 / 4 + 3", "1 + (2 - m0)"])
def test_a_moved_mean_has_the_moved_bars(sandbox: Sandbox, item: str) -> None:
    measured = means("laplace", 40, 30.0)
    ends = []
    for text in ("m0", item):
        answer = release(sandbox, f"SELECT k0, {text} AS v FROM dp_0", [measured])
        ends.append([np.array(side["v"].to_pylist(), dtype=float) for side in (answer.low, answer.high)])
    moved = {
        "m0 * 2 - 1": lambda m: m * 2 - 1, "-m0": lambda m: -m, "m0 / 4 + 3": lambda m: m / 4 + 3,
        "1 + (2 - m0)": lambda m: 3 - m,
    }[item]  # fmt: skip
    expected = np.sort([moved(side) for side in ends[0]], axis=0)
    wide = np.isfinite(expected).all(axis=0) & np.isfinite(ends[1]).all(axis=0)
    assert wide.mean() > 0.9
    np.testing.assert_allclose(np.array(ends[1])[:, wide], expected[:, wide], atol=1e-6)


# --- what is a quotient -----------------------------------------------------------------------------------------------


def quotient(formula: Formula, laws: dict[str, Noise], whole: frozenset[str] = frozenset()) -> Quotient | None:
    terms = {name: noisy(name, [1.0], law, "x", whole=name in whole) for name, law in laws.items()}
    measures = {"m0": within(T0 / greatest(T1, 1), -1, 1)}
    return Reader(measures, terms, {"k": np.array([1.0, 2.0])}).quotient(formula)


M0, K = NoisyValue("m0"), NoisyValue("k")
WIDE = {"t0": LAWS["laplace"], "t1": LAWS["laplace"]}


@pytest.mark.parametrize(
    "formula", [M0 * M0, K * M0, M0 / K, Number(1) / M0, M0 + M0, square_root(M0), greatest(M0, 0), within(M0, 0, 1)]
)
def test_what_is_no_quotient_of_sums_is_left_to_simulation(formula: Formula) -> None:
    assert quotient(M0, WIDE) is not None and quotient(formula, WIDE) is None


def test_a_least_denominator_that_an_analyst_writes_is_none_of_a_count() -> None:
    """The sum may be less than 1, and the exact quotient another."""
    terms = {name: noisy(name, [1.0], law, "x", whole=False) for name, law in WIDE.items()}
    reader = Reader({"m0": T0, "m1": T1}, terms, {})
    assert reader.quotient(M0 / NoisyValue("m1")) is not None
    assert reader.quotient(M0 / greatest(NoisyValue("m1"), 1)) is None


def test_quotients_of_whole_numbers_with_little_noise_are_left_to_simulation() -> None:
    little = {"t0": laplace_noise("1"), "t1": LAWS["laplace"]}
    assert quotient(M0, little, frozenset({"t0", "t1"})) is None
    assert quotient(M0, WIDE, frozenset({"t0", "t1"})) is not None
    assert quotient(M0, little, frozenset({"t1"})) is not None
