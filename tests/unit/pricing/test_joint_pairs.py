"""Squares of pairs that share each row: contributions of a row to all nine sums, which terms share, the price, and the law of the
results."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.gates import NoiselessGate
from support.joint_rows import GROUPS, PAIRS, session_over, sums_of_each_row, terms

from dpsql.engine.duckdb.dialect import DUCKDB, DuckDBDialect
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.emit.quantization import both_there, pair_part, power_sum
from dpsql.engine.query import View
from dpsql.plan.plan import Term, TermKind
from dpsql.pricing.joint_sums import PAIR_BITS, factors_of
from dpsql.pricing.pricing import charged_noises
from dpsql.session.session import Session


def pair(name: str) -> list[tuple[str, str]]:
    """Return kind and set of the terms of one pair."""
    return [("pair part", name)] * 9


APART = [("count", ""), *[("sum", "")] * 5]
SHARED = {
    "corr(y, x)": pair("t0"),
    "regr_slope(z, w)": pair("t0"),
    "regr_intercept(z * 40000000, w)": pair("t0"),  # of 29 bits, next to 3
    "regr_slope(z * 400000000, w * 400000000)": pair("t0"),  # of more bits than a grid has
    "corr(y, x) FILTER (WHERE w > 1)": pair("t0"),
    "regr_r2(y, z), regr_avgx(y, z), regr_count(y, z), covar_samp(y, z)": pair("t0"),
    "corr(w, u), count(*), avg(w), sum(u), var_pop(w), stddev_samp(u)": pair("t0"),
}
TOGETHER = {
    "corr(y, x), corr(x, y)": [*pair("t0"), *pair("t9")],
    "corr(y, x), covar_pop(z, w)": [*pair("t0"), *[("product part", "t9")] * 4],
    "corr(y, x), avg(y)": [*pair("t0"), ("sum", "t9"), ("sum", "t9")],  # rows without x may have a y
    "corr(y, x), avg(w)": [*pair("t0"), ("sum", "t9"), ("sum", "t9")],
    "corr(x, 3)": APART,
}


@pytest.fixture(params=["pure", "zcdp"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    return session_over(tmp_path, PAIRS, request.param)


@pytest.mark.parametrize("chosen", [*SHARED, *TOGETHER])
@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_pairs_share_rows_where_all_that_is_asked_follows_from_squares(session: Session, chosen: str) -> None:
    assert sorted(terms(session, f"SELECT {chosen} FROM t")) == sorted(SHARED.get(chosen) or TOGETHER[chosen])


@pytest.mark.parametrize("session", ["zcdp"], indirect=True)
def test_nothing_is_shared_under_zcdp(session: Session) -> None:
    assert terms(session, "SELECT corr(y, x) FROM t") == APART


@pytest.mark.parametrize("session", ["pure"], indirect=True)
@pytest.mark.parametrize("chosen", SHARED)
def test_a_row_adds_the_square_of_both_widths_in_all(session: Session, tmp_path: Path, chosen: str) -> None:
    """For each single pair of values, as the engine adds it up: no part is negative, and the parts add up to V^2 W^2, or to
    nothing."""
    planned = session.planner.plan(session.planner.parse(f"SELECT {chosen} FROM t", None), session.options, True)
    (priced,) = planned.price.blocks
    (width,) = {term.magnitude for term in priced.block.terms}
    factors = factors_of(priced.block.terms[0])
    assert width == (factors[0].magnitude * factors[1].magnitude) ** 2 <= 2 ** (4 * PAIR_BITS)
    added = sums_of_each_row(session, tmp_path, f"SELECT {chosen} FROM t")
    assert min(map(min, added)) >= 0
    assert set(map(sum, added)) - {0} == {width}
    (noise,) = charged_noises(priced.noise.terms)
    assert (planned.price.loss.epsilon, planned.price.loss.rho) == (noise.loss.epsilon, noise.loss.rho)
    assert noise.sensitivity.l0 == 9 and noise.sensitivity.l1 == width and noise.sensitivity.l2_squared == width**2
    assert float(noise.noise_scale) * 2.0**noise.shift == pytest.approx(width, rel=1e-5)


@pytest.mark.parametrize(
    "widths",
    [(2**20, 2**20), (2**20 - 1, 3), (7, 5), (2**15, 2**15), (2**15 + 1, 2**15), (2**30, 2**10), (2**10, 2**30)],
)
def test_parts_are_exact_up_to_the_most_bits(widths: tuple[int, int]) -> None:
    """Each part of three rows, at both ends and between, equals integer arithmetic of unlimited size; two billion times as many
    rows have 38 digits."""
    factors = tuple(Term("", TermKind.SUM, None, None, width) for width in widths)
    rows = [(0, 0), (0, widths[1]), widths, (widths[0] // 3, widths[1] - 1), (widths[0] - 1, widths[1] // 2)]
    listed = ", ".join(f"({q}, {r}, true)" for q, r in rows)
    total = 0
    for place in range(9):
        term = Term("t", TermKind.PAIR_PART, None, None, (widths[0] * widths[1]) ** 2, place=place)
        text = pair_part(term, (factors[0], factors[1]), lambda powers: power_sum(powers, widths, ("q", "r"), DUCKDB))
        first, second = both_there(("q", "r"), "passed")
        alone = f"(VALUES {listed}, (NULL, 1, true), (1, NULL, true), (1, 1, false)) AS v(q, r, passed)"
        rows_of = f"(SELECT q::BIGINT AS q, r::BIGINT AS r, passed FROM {alone})"
        ((sum_,),) = duckdb.execute(
            f"SELECT {text} FROM (SELECT {first} AS q, {second} AS r FROM {rows_of}) AS s"
        ).fetchall()
        expected = sum(
            ((v - q) ** 2, 2 * q * (v - q), q * q)[place // 3] * ((w - r) ** 2, 2 * r * (w - r), r * r)[place % 3]
            for (q, r), (v, w) in product(rows, [widths])
        )
        assert sum_ == expected
        total += expected
    assert total == len(rows) * (widths[0] * widths[1]) ** 2
    assert 4 * (widths[0] * widths[1]) ** 2 * 2**41 < 10**38


class OverAllRows(DuckDBDialect):
    """A dialect that computes every sum over all rows."""

    groups_by_few_values = False


@pytest.mark.parametrize("session", ["pure"], indirect=True)
@pytest.mark.parametrize("keys", ["", "part, ", "cell, "])
@pytest.mark.parametrize("pair_of", ["w u", "y w", "z y", "z w", "y x"])
@pytest.mark.parametrize("condition", ["", "x > 1 AND w < 9"])
def test_sums_over_few_values_are_those_over_all_rows(
    session: Session, pair_of: str, keys: str, condition: str
) -> None:
    """Rows are grouped by the side of a pair that has few values: not by it and 4,000 cells as well, and not by reals."""
    first, second = pair_of.split()
    passed = f" FILTER (WHERE {condition})" if condition else ""
    sql = f"SELECT {keys}corr({first}, {second}){passed} FROM t {'GROUP BY ' + keys[:-2] if keys else ''}"
    (priced,) = session.planner.plan(session.planner.parse(sql, None), session.options, True).price.blocks
    engine, width = session.context.engine, priced.block.terms[0].magnitude
    queries = [
        Emitter(session.policy, dialect, engine.source, lambda table: View("")).block(priced.block)
        for dialect in (DUCKDB, OverAllRows())
    ]
    sums, wanted = (
        [tuple(map(str, row.values())) for row in engine.run(query).unseal().to_pylist()] for query in queries
    )
    assert sorted(sums) == sorted(wanted)
    present = " AND ".join(f"NOT isnan({column}::DOUBLE)" for column in (first, second))  # NULL is no true condition
    text = f'SELECT count(*) AS n FROM "sharing".main.t WHERE {present} AND {condition or "true"}'
    (rows,) = engine.exact_rows(text).column(0).to_pylist()  # type: ignore[attr-defined]
    assert sum(int(total) for row in sums for total in row[-9:]) == rows * width > 0
    assert ("m2" in queries[0].sql) is (keys != "cell, " and pair_of != "y x") and "m2" not in queries[1].sql


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_the_law_of_counts_and_products_of_pairs(session: Session) -> None:
    """In empty groups, the count is a sum of nine Laplace variables, of variance 18. The test rejects 0.7 and 1.3 of the scale by
    far."""
    table = session.execute("SELECT cell, regr_count(y, x) AS n, corr(y, x) FROM t WHERE cell > 1 GROUP BY cell").table
    counts = np.array(table.column("n").to_pylist()[1:], dtype=float)
    # A variance of 18 from 4,000 values has a deviation of 18 sqrt((2 + 3 / 9) / 4,000), and rounding adds a twelfth.
    assert counts.var() == pytest.approx(18 + 1 / 12, abs=5 * 18 * math.sqrt((2 + 1 / 3) / GROUPS))


def test_answers_are_those_of_the_engine_without_noise(session: Session) -> None:
    """Values outside the bounds count as the bounds; pairs with NULL or NaN do not count."""
    session.context = replace(session.context, gate=NoiselessGate())
    chosen = (
        "corr({0}), regr_slope({0}), regr_intercept({0}), regr_r2({0}), covar_pop({0}), regr_count({0}), regr_avgx({0})"
    )
    (answered,) = session.execute(f"SELECT {chosen.format('y, x')} FROM t WHERE cell = 1 AND (w < x OR w < y)").rows()
    values = [-math.inf, math.inf, -9.5, 0, 0.1, 1e-300, 7 / 3, 11, 99]
    kept = [(x, y) for x, y in product(values, values) if (w := 1 if x > 2 else 4) < x or w < y]
    x = np.clip([x for x, _ in kept], -3, 11)
    y = np.clip([y for _, y in kept], 0, 10.7)
    covariance = np.mean(x * y) - x.mean() * y.mean()
    slope = covariance / x.var()
    truth = (
        covariance / (x.std() * y.std()), slope, y.mean() - slope * x.mean(), covariance**2 / (x.var() * y.var()),
        covariance, len(kept), x.mean(),
    )  # fmt: skip
    assert answered == pytest.approx(truth, abs=1e-4)


def test_one_column_of_a_pair_has_its_own_statistics_without_noise(session: Session) -> None:
    session.context = replace(session.context, gate=NoiselessGate())
    chosen = "corr(w, u), count(*), avg(w), sum(u), var_pop(w), stddev_samp(u)"
    (answered,) = session.execute(f"SELECT {chosen} FROM t WHERE cell = 1").rows()
    values = [False, True, False, True, False, False, False, False, True, True, True]  # above 2; NaN is the largest
    w = np.repeat([1 if above else 4 for above in values], 11)
    u = np.tile([-1 if above else 3 for above in values], 11)
    assert answered == pytest.approx((0.0, 121, w.mean(), u.sum(), w.var(), u.std(ddof=1)), abs=1e-9)


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_a_pair_that_was_released_is_not_measured_again(session: Session) -> None:
    session.context = replace(session.context, gate=NoiselessGate())
    first = session.execute("SELECT corr(y, x) AS c, regr_count(y, x) AS n FROM t")
    again = session.execute("SELECT regr_count(y, x) AS n, corr(y, x) AS c FROM t")
    slope = session.execute("SELECT regr_slope(y, x) AS m FROM t")
    assert again.reused and list(again.rows()) == [row[::-1] for row in first.rows()]
    session.execute("SET dp.reuse = derive")
    products = session.execute("SELECT covar_pop(y, x) AS c, regr_avgx(y, x) AS a, regr_avgy(y, x) AS b FROM t")
    assert products.reused and next(iter(products.rows())) == pytest.approx((0.0, 3.27, 3.837), abs=0.01)
    assert slope.reused and session.execute("SELECT corr(x, y) AS c FROM t").reused


@pytest.mark.parametrize("session", ["pure"], indirect=True)
def test_totals_follow_from_squares_of_groups(session: Session) -> None:
    """Each part is distinguished from the others, and from those of the same columns in the other order."""
    session.context = replace(session.context, gate=NoiselessGate())
    direct = session.execute("SELECT corr(y, x) AS c, regr_slope(y, x) AS s, regr_count(y, x) AS n FROM t WHERE w < y")
    session.execute("SET dp.reuse = derive")
    session.execute("SELECT part, corr(y, x) AS c, corr(x, y) AS d FROM t WHERE w < y GROUP BY part")
    total = session.execute("SELECT regr_count(y, x) AS n, regr_slope(y, x) AS s, corr(y, x) AS c FROM t WHERE w < y")
    assert total.reused and next(iter(total.rows())) == pytest.approx(next(iter(direct.rows()))[::-1])
    assert not session.execute("SELECT corr(y, greatest(x, 1)) AS c FROM t WHERE w < y").reused


def test_the_magnitude_of_a_part_is_the_most_that_nine_add() -> None:
    """For the identity itself: the products of (q + V - q)^2 and (r + W - r)^2 in thirds, exactly."""
    for q, r in product([Fraction(k, 7) for k in range(8)], repeat=2):
        of_first, of_second = ([(1 - v) ** 2, 2 * v * (1 - v), v * v] for v in (q, r))
        parts = [a * b for a, b in product(of_first, of_second)]
        assert min(parts) >= 0 and sum(parts) == 1
