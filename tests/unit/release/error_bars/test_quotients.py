"""Bars of hand-written quotients: the stated coverage for any size of the denominator, and unknown where it may be 0."""

from __future__ import annotations

import numpy as np
import pytest
import sqlglot
from support.released_blocks import T0, T1, block, count_of, gaussian_noise, laplace_noise, noisy, release

from dpsql.plan.intervals import Type
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.quotients import quotient
from dpsql.release.release import Release
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


@pytest.mark.parametrize(
    "text", ["t0", "t0 * t1", "t0 / 3", "1 / t1", "t0 / (t1 * t1)", "t0 / (k0 * t1)", "ln(t0) / t1", "t0 / t1 + 1"]
)
def test_what_is_no_quotient_of_sums_is_left_to_simulation(text: str) -> None:
    terms = {name: noisy(name, [1.0], LAWS["laplace"], "x", whole=False) for name in ("t0", "t1")}
    assert quotient(sqlglot.parse_one(text, read="duckdb"), terms) is None


def test_quotients_of_counts_are_left_to_simulation() -> None:
    terms = {name: noisy(name, [1.0], LAWS["laplace"], "x", whole=name != "t2") for name in ("t0", "t1", "t2")}
    assert quotient(sqlglot.parse_one("t0 / t1"), terms) is None
    assert quotient(sqlglot.parse_one("t2 / t1"), terms) is not None and quotient(sqlglot.parse_one("t0 / t2"), terms)
