"""Products of pairs that share each row: contributions of a row to all of them, which terms share, the price, and the law of the
results."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.gates import NoiselessGate
from support.joint_rows import GROUPS, PAIRS, session_over, sums_of_each_row, terms

from dpsql.pricing.pricing import charged_noises
from dpsql.session.session import Session

PARTS = [("product part", "t0")] * 4
APART = [("count", ""), *[("sum", "")] * 5]
SHARED = {
    "covar_pop(y, x)": PARTS,
    "covar_samp(z, w)": PARTS,
    "covar_pop(y, x) FILTER (WHERE w > 1)": PARTS,
    "regr_avgx(y, x)": PARTS,
    "regr_avgy(y, z), regr_avgx(y, z), regr_count(y, z), covar_samp(y, z)": PARTS,
}
TOGETHER = {
    "regr_count(y, x)": [("count", "")],
    "covar_pop(y, x), covar_pop(x, y)": [*PARTS, *[("product part", "t4")] * 4],
    "covar_pop(y, x), corr(y, x)": [("pair part", "t0")] * 9,  # reads squares, too
    "covar_pop(y, x), covar_pop(z, w), corr(z, x), covar_pop(z, x)": [
        *[("pair part", "t0")] * 9,
        *[("product part", "t9")] * 4,
        *[("product part", "t13")] * 4,
    ],
    "covar_pop(y, x), avg(y)": [*PARTS, ("sum", "t4"), ("sum", "t4")],
    "covar_pop(z * 400000000, w * 400000000)": APART,  # products have more than 60 bits
    "covar_pop(x, 3)": APART,
}


@pytest.fixture(params=["pure", "zcdp"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    return session_over(tmp_path, PAIRS, request.param)


@pytest.mark.parametrize("chosen", [*SHARED, *TOGETHER])
@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_pairs_share_rows_where_all_that_is_asked_follows_from_products(session: Session, chosen: str) -> None:
    expected = SHARED.get(chosen) or TOGETHER[chosen]
    assert sorted(terms(session, f"SELECT {chosen} FROM t")) == sorted(expected)


@pytest.mark.parametrize("session", ["zcdp"], indirect=True)
def test_nothing_is_shared_under_zcdp_and_means_of_pairs_measure_what_they_read(session: Session) -> None:
    assert terms(session, "SELECT covar_pop(y, x) FROM t") == APART
    assert sorted(terms(session, "SELECT regr_avgx(y, x), regr_count(y, x) FROM t")) == [("count", ""), ("sum", "")]


@pytest.mark.parametrize("session", ["pure"], indirect=True)
@pytest.mark.parametrize("chosen", SHARED)
def test_a_row_adds_the_product_of_both_widths_in_all(session: Session, tmp_path: Path, chosen: str) -> None:
    """For each single pair of values, as the engine adds it up: no part is negative, and the parts add up to V W, or to nothing
    if a value is missing."""
    planned = session.planner.plan(session.planner.parse(f"SELECT {chosen} FROM t", None), session.options, True)
    (priced,) = planned.price.blocks
    (width,) = {term.magnitude for term in priced.block.terms}
    added = sums_of_each_row(session, tmp_path, f"SELECT {chosen} FROM t")
    assert min(map(min, added)) >= 0
    assert set(map(sum, added)) == {0, width}
    (noise,) = charged_noises(priced.noise.terms)
    assert (planned.price.loss.epsilon, planned.price.loss.rho) == (noise.loss.epsilon, noise.loss.rho)
    assert noise.sensitivity.l0 == 4 and noise.sensitivity.l1 == width and noise.sensitivity.l2_squared == width**2
    assert float(noise.noise_scale) * 2.0**noise.shift == pytest.approx(width, rel=1e-5)


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_the_law_of_counts_of_pairs(session: Session) -> None:
    """In empty groups, the count is a sum of four Laplace variables over V W, with E|sum| = 35/16. The test rejects 0.7 and 1.3
    of the scale by far."""
    table = session.execute(
        "SELECT cell, regr_count(y, x) AS n, covar_pop(y, x) FROM t WHERE cell > 1 GROUP BY cell"
    ).table
    counts = np.abs(table.column("n").to_numpy()[1:])
    assert counts.mean() == pytest.approx(35 / 16, abs=0.06 + 5 * 2 / math.sqrt(GROUPS))


def test_answers_are_those_of_the_engine_without_noise(session: Session) -> None:
    """Values outside the bounds count as the bounds; pairs with NULL or NaN do not count."""
    session.context = replace(session.context, gate=NoiselessGate())
    chosen = "regr_count({0}, {1}), regr_avgx({0}, {1}), regr_avgy({0}, {1}), covar_pop({0}, {1}), covar_samp({0}, {1})"
    (answered,) = session.execute(f"SELECT {chosen.format('y', 'x')} FROM t WHERE cell = 1").rows()
    values = [-3.0, 11.0, -3.0, 0.0, 0.1, 1e-300, 7 / 3, 11.0, 11.0]
    x = np.repeat(values, len(values))
    y = np.tile(np.clip(values, 0, 10.7), len(values))
    truth = (len(x), x.mean(), y.mean(), 0.0, 0.0)
    assert answered == pytest.approx(truth, abs=1e-5)  # grids of products are this coarse


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_totals_follow_from_products_of_groups(session: Session) -> None:
    """Each part is distinguished from the others, and from those of the same columns in the other order."""
    session.context = replace(session.context, gate=NoiselessGate())
    session.execute("SET dp.reuse = derive")
    session.execute("SELECT part, covar_pop(y, x) AS c, covar_pop(x, y) AS d FROM t GROUP BY part")
    total = session.execute("SELECT regr_count(y, x) AS k, regr_avgx(y, x) AS m, regr_avgy(y, x) AS n FROM t")
    assert total.reused and next(iter(total.rows())) == pytest.approx((81, 3.27, 3.837), abs=0.01)
    assert not session.execute("SELECT covar_pop(y, greatest(x, 1)) AS c FROM t").reused
