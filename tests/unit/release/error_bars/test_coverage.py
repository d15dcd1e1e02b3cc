"""Coverage of error bars: over many simulated releases the exact answer is inside about 95 % of the time, and clearly less often
if the noise is twice what its law claims (so these tests can fail)."""

from dataclasses import replace

import numpy as np
import pytest
from support.effort import by_day
from support.released_blocks import (
    T0,
    T1,
    T2,
    block,
    count_of,
    counts,
    covered,
    gaussian_noise,
    laplace_noise,
    noisy,
    release,
)

from dpsql.plan.formulas import greatest, within
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.release import Release
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox

GROUPS = 2000
LAWS = {"laplace": laplace_noise("1/10"), "fine laplace": laplace_noise("2"), "gaussian": gaussian_noise("1/200")}
SIZES = np.arange(GROUPS) % 50 * 40.0 + 300


def rate(hits: np.ndarray) -> float:
    return float(np.mean(hits))


@pytest.mark.parametrize("law", LAWS)
def test_count_bars_cover_at_the_stated_confidence(sandbox: Sandbox, law: str) -> None:
    sql = "SELECT k0, m0, m0 * 2.5 + 1, -m0 / 4 FROM dp_0"
    found = release(sandbox, sql, [counts(SIZES, LAWS[law], "count")])
    for column, truth in ((1, SIZES), (2, SIZES * 2.5 + 1), (3, -SIZES / 4)):
        # Rounded numbers and half widths cover more: 95.9 % (Gaussian), 95.3 % (Laplace), within 0.5 % here.
        assert 0.935 < rate(covered(found, column, truth)) < (0.99 if law == "fine laplace" else 0.977)
    worse = release(sandbox, sql, [counts(SIZES, LAWS[law], "count", worse=2.0)])
    assert rate(covered(worse, 1, SIZES)) < 0.89


def measured(kind: str, worse: float = 1.0, scale: float = 1.0) -> tuple[ReleasedBlock, dict[str, np.ndarray]]:
    """Return groups of known moments: n rows, age around 60 +- 30 (AVG, VAR_POP as `rewrite` derives them), sum."""
    n = SIZES * scale
    mean, variance = 20.0 * np.sin(np.arange(GROUPS)), 150.0 + 100 * np.cos(np.arange(GROUPS))
    s1, s2 = n * mean, n * (variance + mean**2 - 1800)
    laws = {
        "laplace": (laplace_noise("1/5"), laplace_noise("1/5", 60), laplace_noise("1/5", 1800)),
        "gaussian": (gaussian_noise("1/50"), gaussian_noise("1/50", 60), gaussian_noise("1/50", 1800)),
    }[kind]
    terms = [
        noisy(f"t{at}", exact, law, f"moments {kind}", whole=at == 0, worse=worse)
        for at, (exact, law) in enumerate(zip((n, s1, s2), laws, strict=True))
    ]
    rows = greatest(T0, 1)
    average = within(60 + T1 / rows, 0, 120)
    spread = 1800 + T2 / rows - (T1 / rows) * (T1 / rows)
    made = block(
        {"k0": [f"g{at:05d}" for at in range(GROUPS)]},
        terms,
        [
            count_of(T0), (average, Type.REAL), (within(spread, 0, 3600), Type.REAL), count_of(T1 + 60 * T0),
        ],
    )  # fmt: skip
    return made, {"n": n, "avg": 60 + mean, "var": variance, "sum": s1 + 60 * n}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_bars_of_sums_means_variances_and_ratios_cover_the_truth(sandbox: Sandbox, kind: str) -> None:
    """SUM is linear in two terms (closed form or drawn sums), the others are not linear (replicates row by row)."""
    sql = "SELECT k0, m1 AS avg, m2 AS var, m3 AS sum, m3 / nullif(m0, 0) AS ratio FROM dp_0"
    made, truth = measured(kind)
    found, worse = release(sandbox, sql, [made]), release(sandbox, sql, [measured(kind, 2.0)[0]])
    exact = [truth["avg"], truth["var"], truth["sum"], truth["sum"] / truth["n"]]
    for column, name in enumerate(exact, 1):
        assert 0.93 < rate(covered(found, column, name)) < 0.97
        assert rate(covered(worse, column, name)) < 0.86


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_bars_of_differences_and_moving_averages_cover_the_truth(sandbox: Sandbox, kind: str) -> None:
    sql = (
        "SELECT k0, more, mean, growth FROM (SELECT k0, m1 - lag(m1) OVER (ORDER BY k0) AS more, avg(m0) OVER (ORDER BY k0 ROWS 2 PRECEDING) AS mean, "
        "m3 / nullif(lag(m3) OVER (ORDER BY k0), 0) AS growth FROM dp_0) WHERE k0 > 'g00001'"
    )
    (made, truth), (noisier, _) = measured(kind), measured(kind, 2.0)
    groups = GroupFacts(True, frozenset({"m0"}))
    found, worse = (release(sandbox, sql, [replace(block_, groups=groups)]) for block_ in (made, noisier))
    mean, n, total = truth["avg"], truth["n"], truth["sum"]
    before = np.roll(total, 1)
    exact = [mean - np.roll(mean, 1), (n + np.roll(n, 1) + np.roll(n, 2)) / 3, total / before]
    for column, values in enumerate(exact, 1):
        assert 0.93 < rate(covered(found, column, values[2:])) < 0.97
        assert rate(covered(worse, column, values[2:])) < 0.86


def test_average_of_small_groups_stays_in_its_range(sandbox: Sandbox) -> None:
    """If the noise is as large as the count, nothing is linear any more; the interval may be wide, but not wrong."""
    made, truth = measured("laplace", scale=0.03)
    found = release(sandbox, "SELECT k0, m1 FROM dp_0", [made])
    assert 0.92 < rate(covered(found, 1, truth["avg"])) < 0.995
    assert min(found.low.column(1).to_pylist()) >= 0
    assert max(found.high.column(1).to_pylist()) <= 120


def test_bars_of_many_groups_by_the_delta_method_cover_the_truth(sandbox: Sandbox) -> None:
    made, truth = measured("gaussian")
    many = 6
    wide = block(
        {"k0": [f"g{at:06d}" for at in range(GROUPS * many)]},
        [type(t)(t.name, np.tile(t.values, many), t.noise_unit, t.noise, t.grid, t.whole) for t in made.terms],
        [(formula, type_) for _, formula, type_ in made.formulas],
    )
    found = release(sandbox, "SELECT k0, m1, m2 FROM dp_0", [wide])
    assert 0.93 < rate(covered(found, 1, np.tile(truth["avg"], many))) < 0.97
    assert 0.92 < rate(covered(found, 2, np.tile(truth["var"], many))) < 0.98


def test_sum_of_several_terms(sandbox: Sandbox) -> None:
    """Three Laplace terms of different scales: neither their quantiles nor their variances add up to the right bar."""
    laws = [laplace_noise("1/10"), laplace_noise("1/30"), laplace_noise("1/15")]
    terms = [noisy(f"t{at}", SIZES, law, "several", whole=True) for at, law in enumerate(laws)]
    made = block({"k0": list(range(GROUPS))}, terms, [count_of(term) for term in (T0, T1, T2)])
    found = release(sandbox, "SELECT k0, m0 + m1 - 2 * m2, m0 + m1 FROM dp_0", [made])
    assert 0.935 < rate(covered(found, 1, np.zeros(GROUPS))) < 0.965
    assert 0.935 < rate(covered(found, 2, 2 * SIZES)) < 0.965


# --- remainders that are not row by row: many releases of a few groups ------------------------------------------------


def many(sandbox: Sandbox, sql: str, column: int, truth: list[float], *, worse: float = 1.0, times: int = 80) -> float:
    """Return the coverage over `times` releases; each has its own noise and receipt."""
    hits = []
    for number in range(times):
        made = counts(EXACT, laplace_noise("1/10"), f"{sql}/{number}", worse=worse)
        found = release(sandbox, sql, [made], receipt=f"r-{number}")
        hits.append(covered(found, column, truth))
    return rate(np.concatenate(hits))


EXACT = [400.0, 900.0, 1500.0, 250.0, 700.0]
REMAINDERS = {
    "share": ("SELECT k0, m0 / sum(m0) OVER () FROM dp_0", 1, [v / 3750 for v in EXACT]),
    "total": ("SELECT sum(m0) FROM dp_0", 0, [3750.0]),
    "mean of groups": ("SELECT avg(m0) FROM (SELECT k0, m0 FROM dp_0 WHERE m0 > 100) AS q", 0, [750.0]),
    "difference by join": (
        "WITH dp_cte_0 AS (SELECT k0 AS g, m0 AS n FROM dp_0) "
        "SELECT a.n - b.n FROM dp_cte_0 AS a JOIN dp_cte_0 AS b ON a.g = 'g00002' AND b.g = 'g00001'", 0, [600.0]),
    "union": ("SELECT k0, m0 FROM dp_0 UNION ALL SELECT 'all', sum(m0) FROM dp_0", 1, [*EXACT, 3750.0]),
    "regrouped": ("SELECT k0 > 'g00002' AS late, sum(m0) FROM dp_0 GROUP BY late", 1, [2800.0, 950.0]),
    "scalar subquery": ("SELECT k0, m0 / (SELECT sum(m0) FROM dp_0) FROM dp_0", 1, [v / 3750 for v in EXACT]),
    "running total": ("SELECT k0, sum(m0) OVER (ORDER BY k0) FROM dp_0", 1, list(np.cumsum(EXACT))),
}  # fmt: skip


@pytest.mark.parametrize("name", by_day(("share", "total", "difference by join", "regrouped"), list(REMAINDERS)))
def test_bootstrap_bars_cover_at_the_stated_confidence(sandbox: Sandbox, name: str) -> None:
    sql, column, truth = REMAINDERS[name]
    assert 0.90 < many(sandbox, sql, column, truth, times=160) <= 0.99
    assert many(sandbox, sql, column, truth, worse=2.5, times=40) < 0.86


def test_top_groups_have_the_bar_of_their_group(sandbox: Sandbox) -> None:
    """The bar of a row is that of its group. (Groups closer together than the noise are selected for their noise, and their bars
    hold less often: the winner's curse, which the bar of a single group cannot account for.)"""
    hits = []
    for number in range(200):
        made = counts(EXACT, laplace_noise("1/10"), f"top/{number}")
        found = release(sandbox, "SELECT k0, m0 AS n FROM dp_0 ORDER BY n DESC LIMIT 2", [made])
        truth = [EXACT[int(label[1:])] for label in found.table.column(0).to_pylist()]
        hits.append(covered(found, 1, truth))
    assert 0.92 < rate(np.concatenate(hits)) < 0.98


@pytest.mark.parametrize("exact", [[500.0] * 8, [500.0, 490.0, 480.0, 470.0], [100.0, 500.0]])
def test_largest_group_bar_corrects_its_bias(sandbox: Sandbox, exact: list[float]) -> None:
    """max over noisy groups is too large; a percentile interval would add the bias once more and miss the truth."""
    hits = []
    for number in range(80):
        made = counts(exact, laplace_noise("1/10"), f"max/{number}")
        found = release(sandbox, "SELECT max(m0) FROM dp_0", [made], receipt=f"r-{number}")
        hits.append(covered(found, 0, [500.0]))
    assert rate(np.concatenate(hits)) > 0.92


def width(found: Release, column: int) -> float:
    value = found.error.column(column)[0].as_py()
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("law", LAWS)
def test_confidence_and_scale_move_the_bar(sandbox: Sandbox, law: str) -> None:
    """For one count the bar is exactly the quantile of its law, at any confidence."""
    noise: Noise = LAWS[law]
    for confidence in (0.5, 0.9, 0.99):
        found = release(sandbox, "SELECT m0 FROM dp_0", [counts([500.0], noise, "one")], confidence=confidence)
        assert width(found, 0) == np.floor(noise.half_width(confidence) + 0.5)
