"""Which rule gives the error bar of an expression over the groups of a block, and what the bar is then."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sqlglot
from sqlglot import exp
from support.released_blocks import T0, T1, T2, block, count_of, gaussian_noise, laplace_noise

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.formulas import Estimate, Formula, greatest, within
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.intervals import (
    Interval,
    ReleasedGroups,
    intervals,
    percentiles,
)
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox, Scratch

COUNT_NOISE, SUM_NOISE = laplace_noise("1/2"), gaussian_noise("0.01")
KEYS: dict[str, Sequence[object]] = {"k0": ["a", "b", "c", "d"], "k1": [2, 1, -3, None]}
COUNTS, SUMS, OTHERS = [30.0, 10.0, 20.0, 400.0], [0.5, -2.0, 4.0, 8.0], [100.0, 200.0, 300.0, 400.0]


def term(name: str, values: list[float], noise: Noise, *, whole: bool = False) -> NoisyTerm:
    return NoisyTerm(name, np.array(values, np.int64 if whole else np.float64), 2.0**noise.shift, noise, 0, whole)


TERMS = (
    term("t0", COUNTS, COUNT_NOISE, whole=True),
    term("t1", SUMS, SUM_NOISE),
    term("t2", OTHERS, gaussian_noise("0.04")),
)
SHRUNK: Formula = Estimate(T1 / T0, (T1 + 1) / greatest(T0, 25))
MEASURES: list[tuple[Formula, Type]] = [
    (count_of(T0)),
    (T1 * 2, Type.REAL),
    (T1 / T0, Type.REAL),
    (SHRUNK, Type.REAL),
    (T2, Type.REAL),
]
"""m0: a count, m1: twice a sum, m2: a mean, m3: a mean that is shown as something else, m4: another sum."""
BLOCK = block(KEYS, TERMS, MEASURES)


@pytest.fixture(scope="module")
def scratch(sandbox: Sandbox) -> Iterator[Scratch]:
    with sandbox.scratch() as opened:
        yield opened


def groups(released: ReleasedBlock = BLOCK, confidence: float = 0.95, rows: list[int] | None = None) -> ReleasedGroups:
    return ReleasedGroups(released, {}, None if rows is None else np.array(rows, np.int64), confidence, "key")


def tree(sql: str) -> exp.Expr:
    return sqlglot.parse_one(sql, read="duckdb")


def bar(scratch: Scratch, sql: str, asked: ReleasedGroups | None = None) -> Interval:
    (interval,) = intervals(lambda: scratch, asked or groups(), [tree(sql)])
    return interval


def numbers(*values: float | None) -> Any:
    return pytest.approx([np.nan if value is None else value for value in values], nan_ok=True, rel=1e-12)


# --- from the law of noise ------------------------------------------------------------------------------------------


def test_a_quotient_within_bounds_has_a_bar_within_them(scratch: Scratch) -> None:
    released = block(KEYS, TERMS, [(within(T1 / T0, -1, 2), Type.REAL)])
    found = bar(scratch, "m0 * 10", groups(released, 0.999))
    assert (found.low >= -10).all() and (found.high <= 20).all()
    assert (found.low[1], found.high[1]) == (-10, 20) and found.unknown[1], "the noise leaves nothing but the bounds"
    assert not bar(scratch, "m2", groups(confidence=0.5)).unknown.any()


def test_what_holds_no_noise_has_a_bar_without_width_and_what_is_no_number_none(scratch: Scratch) -> None:
    for sql, values in (("k1", [2, 1, -3, None]), ("7", [7] * 4), ("k1 * 2 + 1", [5, 3, -5, None])):
        found = bar(scratch, sql)
        assert [part.tolist() for part in (found.value, found.low, found.high)] == [numbers(*values)] * 3
    for sql in ("k0", "m0 > 15"):
        found = bar(scratch, sql)
        assert np.isnan([found.value, found.low, found.high]).all()


# --- numbers that chose the groups ----------------------------------------------------------------------------------


def test_a_number_that_chose_the_groups_has_another_law_in_them(scratch: Scratch) -> None:
    """A count that was shown for being at least 10 is more often too large: its bar reaches further down, and not by a rule for
    all groups. Expressions of other numbers keep their bars."""
    chosen = groups(replace(BLOCK, shown_from={"t0": 10.0}))
    assert bar(scratch, "m0", chosen).low[1] < bar(scratch, "m0").low[1] - 0.5
    assert bar(scratch, "m0 * 3", chosen).low[1] < bar(scratch, "m0 * 3").low[1] - 1.5
    assert bar(scratch, "m0", chosen).low[3] == pytest.approx(bar(scratch, "m0").low[3], abs=3)
    assert bar(scratch, "m1", chosen).low.tolist() == bar(scratch, "m1").low.tolist()
    quotient, plain = bar(scratch, "m1 / m0", chosen), bar(scratch, "m1 / m0")
    assert quotient.low.tolist() != plain.low.tolist(), "the rule for quotients takes the law of all groups"


# --- measured ends and chosen values --------------------------------------------------------------------------------

CHOSEN = replace(
    BLOCK, groups=GroupFacts(chosen=frozenset({"m1", "m4"}), ends=(("m4", T2 - T0, T2 + 2 * T0, Fraction(95, 100)),))
)
"""m1 was chosen among values, and so was m4, whose ends were measured at 95 %."""


def test_measured_ends_are_the_bar_up_to_the_confidence_that_they_were_measured_for(scratch: Scratch) -> None:
    for confidence in (0.5, 0.95, 0.95 + 1e-13):
        found = bar(scratch, "m4", groups(CHOSEN, confidence))
        assert found.value.tolist() == OTHERS
        assert found.low.tolist() == [a - n for a, n in zip(OTHERS, COUNTS, strict=True)]
        assert found.high.tolist() == [a + 2 * n for a, n in zip(OTHERS, COUNTS, strict=True)]
        assert not found.unknown.any()
    found = bar(scratch, "m4", groups(CHOSEN, 0.950001))
    assert np.isnan([found.value, found.low, found.high]).all() and len(found.value) == 4


@pytest.mark.parametrize(("confidence", "rank"), [(0.95, 10), (0.9, 20), (0.5, 100), (0.999, 1)])
def test_percentiles_leave_half_of_the_rest_at_each_end(confidence: float, rank: int) -> None:
    """Of 399 draws, (1 - confidence) / 2 of 400; draws without a value count at both ends."""
    draws = np.random.default_rng(3).permutation(np.arange(1.0, 400.0))
    lost = np.where(draws == 200, np.nan, draws)
    low, high = percentiles(np.stack([draws, lost]), confidence)
    assert (low[0], high[0]) == (rank, 400 - rank)
    assert (low[1], high[1]) == (rank - 1 or -np.inf, 400 - rank + 1 if rank > 1 else np.inf)


@pytest.mark.filterwarnings("error")
def test_an_infinite_value_has_no_error_and_warns_of_nothing() -> None:
    ends = np.array([np.inf, 1.0])
    error = Interval(ends, ends - 1, ends + 2, np.zeros(2, dtype=bool)).error
    assert np.isnan(error[0]) and error[1] == 2
