"""Sums that share each row: contributions of a row to all of them, which terms share, the price, and the law of the results."""

import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.effort import slow
from support.joint_rows import GROUPS, SINGLES, session_over, sums_of_each_row, terms

from dpsql.pricing.pricing import charged_noises
from dpsql.privacy.mechanisms import gaussian, laplace
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.weighted_sums import weighted
from dpsql.session.session import Session


@pytest.fixture(params=["pure", "zcdp"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    return session_over(tmp_path, SINGLES, request.param)


PAIR, TRIPLE = [("sum", "t0")] * 2, [("sum", "t0"), ("sum", "t0"), ("count", "t0")]
SHARED = {
    "avg(x)": PAIR,
    "sum(x), count(x)": PAIR,
    "avg(x), sum(x), count(x)": PAIR,
    "count(*), sum(y)": PAIR,  # a NULL adds the value 0, which is the lower end
    "count(*), sum(w)": PAIR,  # no row is without a value
    "avg(w), count(w), count(*)": PAIR,
    "count(*), count(x), sum(x)": TRIPLE,
    "count(*), avg(y), sum(y)": TRIPLE,
    "avg(x), avg(y)": [*PAIR, *[("sum", "t2")] * 2],
    "avg(x) FILTER (WHERE w > 1), count(x)": [*PAIR, ("count", "")],  # two parts of three
    "sum(x)": [("sum", "")],
    "count(x)": [("count", "")],
    "count(*), sum(y), sum(x)": [*PAIR, ("sum", "")],  # two parts of three
    "var_pop(x), avg(x)": [("sum", ""), ("count", ""), ("sum", "")],
    "sum(w), avg(5e-324 * x)": [("sum", ""), ("sum", ""), ("count", "")],  # no row adds anything on the grid
}
PARTS = [("square part", "t0")] * 3
SQUARES = {
    "var_pop(x)": PARTS,
    "stddev(x), avg(x), sum(x), count(x)": PARTS,
    "count(*), var_pop(w)": PARTS,  # no row is without a value
    "count(*), var_pop(z)": [*PARTS, ("count", "t0")],
    "count(*), count(x), var_pop(x)": [*PARTS, ("count", "t0")],
    "var_pop(x), avg(y)": [*PAIR, *[("square part", "t2")] * 3],
    "var_pop(v) FILTER (WHERE w > 1)": PARTS,
}
"""For Laplace noise under pure accounting: under zCDP squares stay separate."""


@pytest.mark.parametrize("chosen", SHARED)
def test_aggregates_of_one_argument_share_rows_where_that_is_cheaper(session: Session, chosen: str) -> None:
    pure = session.policy.budget.accountant == "pure"
    expected = PARTS if pure and "var_pop" in chosen else SHARED[chosen]
    assert sorted(terms(session, f"SELECT {chosen} FROM t")) == sorted(expected)


@pytest.mark.parametrize("chosen", SQUARES)
def test_variances_share_rows_where_laplace_noise_is_paid_in_epsilon(session: Session, chosen: str) -> None:
    found = terms(session, f"SELECT {chosen} FROM t")
    if session.policy.budget.accountant == "pure":
        assert sorted(found) == sorted(SQUARES[chosen])
    else:
        assert not any(kind == "square part" for kind, _ in found)


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_squares_that_would_be_too_large_stay_apart(session: Session) -> None:
    """Integers above 2**30 have squares of more than 60 bits; reals have a separate grid."""
    for chosen, shared in (
        ("var_pop(z * 100000000)", True),
        ("var_pop(z * 200000000)", False),
        ("var_pop(x * 1e12)", True),
    ):
        kinds = {kind for kind, _ in terms(session, f"SELECT {chosen} FROM t")}
        assert (kinds == {"square part"}) is shared, chosen


def test_a_count_that_admits_private_keys_is_not_shared(session: Session) -> None:
    """A threshold on it costs only delta."""
    assert ("count", "") in terms(session, "SELECT name, count(*), sum(y) FROM t GROUP BY name")


@pytest.mark.parametrize(
    "chosen",
    [
        *(chosen for chosen, found in SHARED.items() if found in (PAIR, TRIPLE)),
        *(chosen for chosen, found in SQUARES.items() if len(found) < 5),
    ],
)
def test_a_row_adds_its_width_in_all_and_the_set_is_charged_once(session: Session, tmp_path: Path, chosen: str) -> None:
    """For each single row, as the engine adds it up: |low| + |high| + missing is at most W, and equals W if the row is counted;
    for squares the parts are non-negative and add up to W^2."""
    if chosen in SQUARES and session.policy.budget.accountant != "pure":
        return
    planned = session.planner.plan(session.planner.parse(f"SELECT {chosen} FROM t", None), session.options, True)
    (one,) = planned.price.blocks
    (width,) = {term.magnitude for term in one.block.terms}
    for sums in sums_of_each_row(session, tmp_path, f"SELECT {chosen} FROM t"):
        moved = sum(map(abs, sums))
        assert moved == width or (moved == 0 and "count(*)" not in chosen), sums
        assert chosen not in SQUARES or min(sums) >= 0, sums
    asked = session.planner.accountant.request(Fraction(1))
    (noise,) = charged_noises(one.noise.terms)
    assert (planned.price.loss.epsilon, planned.price.loss.rho) == (noise.loss.epsilon, noise.loss.rho)
    if asked.epsilon is not None:
        assert noise.noise_scale * 2**noise.shift == pytest.approx(width, rel=1e-9)
        assert planned.price.loss.epsilon == 1
    else:
        assert float(noise.noise_scale) * 2.0**noise.shift == pytest.approx(width, rel=1e-5)
    assert noise.sensitivity.l0 == len(one.block.terms) and noise.sensitivity.l1 == width


def test_the_law_of_what_comes_out(session: Session) -> None:
    """In empty groups, SUM has the noise of one sum, and COUNT that of two divided by W. The test rejects 0.7 and 1.3 of the
    scale by far."""
    table = session.execute("SELECT cell, count(*) AS n, sum(y) AS s FROM t WHERE cell > 1 GROUP BY cell").table
    off = np.abs(table.column("s").to_numpy()[1:]) / 10.7
    counts = np.abs(table.column("n").to_numpy()[1:])
    pure = session.policy.budget.accountant == "pure"
    # E|X| and E|X + Y|: 1 and 3/2 for Laplace laws of scale 1, sqrt(2 / pi) and 2 / sqrt(pi) for Gaussian ones
    alone, both = (1.0, 1.5) if pure else (math.sqrt(2 / math.pi), 2 / math.sqrt(math.pi))
    assert off.mean() == pytest.approx(alone, abs=5 / math.sqrt(GROUPS))
    assert counts.mean() == pytest.approx(both, abs=0.06 + 5 * 1.5 / math.sqrt(GROUPS))


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_the_law_of_counts_and_sums_beside_a_variance(session: Session) -> None:
    """In empty groups, a count is the sum of three Laplace variables divided by W^2, E|X + Y + Z| = 15/8; the sum of values from
    0 has the weights 1/2 and 1. The test rejects 0.7 and 1.3 of the scale by far."""
    table = session.execute(
        "SELECT cell, count(w) AS n, sum(w) AS s, var_pop(w) FROM t WHERE cell > 1 GROUP BY cell"
    ).table
    sums, counts = (np.abs(table.column(name).to_numpy()[1:]) for name in ("s", "n"))
    assert sums.mean() / 5 == pytest.approx((1 + 1 / 2 + 1 / 4) / (3 / 2), abs=5 * 1.2 / math.sqrt(GROUPS) + 0.02)
    assert counts.mean() == pytest.approx(15 / 8, abs=0.06 + 5 * 1.7 / math.sqrt(GROUPS))


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_the_error_to_reach_beside_a_variance_is_that_of_the_count(session: Session) -> None:
    """It is not that of the sum of squares, nor of the unrequested sum of values, which both have other units."""
    session.execute("SET dp.target_error = 200")
    session.execute("SET dp.assume_rows = 1000000")
    answer = session.execute("SELECT count(y) AS n, var_pop(y) AS d FROM t")
    # Integers are shown rounded: one more on either side.
    assert 150 <= answer.error.column("n")[0].as_py() <= 202


# --- expected errors --------------------------------------------------------------------------------------------------


@cache
def million_draws(law: str) -> NDArray[np.float64]:
    """Return draws of nine independent noises (one per row) of scale 2**20."""
    draw = np.random.default_rng(5)
    return draw.laplace(0, 1 << 20, (9, 10**6)) if law == "laplace" else draw.normal(0, 1 << 20, (9, 10**6))


@pytest.mark.parametrize(
    "weights",
    [
        [1.0, 1.0, 1.0], [1.25, 0.25], [1.0, 1.0 - 1e-9, 1.0 - 2e-9], [3.0, 2.0, 2.0, 1.0], [1.0] * 9,
        *map(slow, (
            [1.0, 1.0], [6.0, 5.0], [3.0, 1e-9], [1.0, 1.0, 1.0, 1.0], [3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [2.0, 1.0, 1.0],
            [5.0, 4.9999, 0.001], [1.0] * 5, [2.0, 2.0, 2.0, 1.5, 1.5, 1.5, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 0.5, 0.5, 0.5],
        )),
    ],
)  # fmt: skip
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_error_of_a_weighted_sum_is_that_of_its_law(law: str, weights: list[float]) -> None:
    """Compared with a million drawn sums; another weight, or a missing one, would be off by several percent."""
    one = Sensitivity(1, 1 << 20, 1 << 40, 1 << 20)
    noise = laplace.noise_for(one, Fraction(1)) if law == "laplace" else gaussian.noise_for(one, Fraction(1, 2))
    sums = np.abs(sum(weight * alone for weight, alone in zip(weights, million_draws(law), strict=False)))
    summed, factor = weighted(noise, weights)
    for confidence in (0.5, 0.95, 0.99):
        assert factor * summed.half_width(confidence) == pytest.approx(np.quantile(sums, confidence), rel=0.01)
    assert factor * summed.expected_error() == pytest.approx(sums.mean(), rel=0.01)


@pytest.mark.parametrize("chosen", [
    "count(*) AS n, sum(y) AS s", "count(*) AS n, count(x) AS c, sum(x) AS s", "count(x) AS n, sum(x) AS s",
    "count(*) AS n, count(z) AS c, sum(z) AS s",
    "count(*) AS n, count(v) AS c, sum(v) AS s", "avg(w) AS m, count(*) AS n, sum(w) AS s", "count(*) AS n, count(x) AS c, avg(x) AS m, sum(x) AS s",
])  # fmt: skip
def test_explain_tells_the_error_bars_of_the_answer(session: Session, chosen: str) -> None:
    _explain_tells_the_bars(session, chosen)


@pytest.mark.parametrize("session", ["pure"], indirect=True)
@pytest.mark.parametrize("chosen", [
    "var_pop(x) AS v, count(*) AS n, count(x) AS c, sum(x) AS s", "stddev(w) AS d, count(w) AS n, sum(w) AS s",
    "var_pop(z) AS v, count(z) AS c, sum(z) AS s", "var_pop(v) AS d, count(v) AS n, sum(v) AS s",
])  # fmt: skip
def test_explain_tells_the_error_bars_beside_a_variance(session: Session, chosen: str) -> None:
    _explain_tells_the_bars(session, chosen)


def _explain_tells_the_bars(session: Session, chosen: str) -> None:
    sql = f"SELECT {chosen} FROM t"
    plan = session.explain(sql)
    told = {one.output: one.error_95 for one in plan.outputs}
    answer = session.execute(sql)
    told["s"] = next(error for output, error in told.items() if "s" in output.split(", "))
    for name in sorted({"n", "c", "s"} & set(answer.table.column_names)):
        # Integers are shown rounded, |round(e)| <= h where |e| < h + 1/2; the answer's law is drawn 20,000 times.
        assert abs(answer.error.column(name)[0].as_py() - told[name]) <= 0.5 + 0.02 * told[name], name
    again = {one.output: (one.stored_error_95, one.error_95) for one in session.explain(sql).outputs}
    assert all(stored == pytest.approx(fresh) for stored, fresh in again.values())


def test_the_error_to_reach_is_that_of_what_is_shown(session: Session) -> None:
    """With bounds 0.1 apart, a count is computed from sums whose errors are a tenth of its own."""
    session.execute("SET dp.target_error = 20")
    answer = session.execute("SELECT count(*) AS n, sum(v) AS s FROM t")
    assert 15 <= answer.error.column("n")[0].as_py() <= 21
    assert answer.error.column("s")[0].as_py() <= 20
