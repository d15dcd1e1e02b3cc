"""Estimates are the same number in every path to an answer, and bars are those of the plain ratio."""

import pickle

import numpy as np
import pytest
from support.formula_worlds import world
from support.released_blocks import block, gaussian_noise, noisy, release

from dpsql.plan.intervals import Type
from dpsql.release.release import Presentation, Release
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox

GROUPS = 60
MEAN = 53.0
PLAIN = Presentation(0.95, shrinkage=False)
ROADS = (
    "SELECT k0, m0 FROM dp_0 ORDER BY k0",
    "SELECT k0, m0 * 1 AS v FROM dp_0 ORDER BY k0",
    "SELECT a.k0, a.m0 FROM dp_0 a JOIN dp_0 b ON a.k0 = b.k0 ORDER BY 1",
    "SELECT k0, m0 FROM dp_0 WHERE k0 < 'g3' UNION ALL SELECT k0, m0 FROM dp_0 WHERE k0 >= 'g3' ORDER BY 1",
    "WITH means AS (SELECT k0, m0 AS mean FROM dp_0) SELECT k0, mean FROM means WHERE mean > -1 ORDER BY k0",
)


def means(rows: float, key: str = "means") -> ReleasedBlock:
    """Return AVG over `rows` values of mean 53 in [0, 1000], in each of 60 groups, with noise of about 40 rows."""
    law, found = gaussian_noise("1/2048", 1000), world("avg", shared=True)
    exact = {"t0": rows * MEAN, "t1": rows * (MEAN - 1000)}
    terms = [noisy(name, [value] * GROUPS, law, key, whole=False) for name, value in exact.items()]
    return block({"k0": [f"g{at:02}" for at in range(GROUPS)]}, terms, [(found.formula, Type.REAL)])


def numbers(found: Release, part: str = "table") -> np.ndarray:
    return np.asarray(getattr(found, part).column(1).to_numpy(zero_copy_only=False), dtype=float)


@pytest.mark.parametrize("sql", ROADS)
def test_every_road_shows_the_same_estimate_within_its_bar(sandbox: Sandbox, sql: str) -> None:
    made = means(10)
    found = release(sandbox, sql, [made])
    assert numbers(found) == pytest.approx(made.estimates["m0"], rel=1e-12)
    low, high = numbers(found, "low"), numbers(found, "high")
    assert found.bars.notes == () or "unknown" in found.bars.notes[0], found.bars.notes
    assert (low <= numbers(found)).all()
    assert (numbers(found) <= high).all()


def test_an_estimate_is_nearer_than_the_ratio_and_its_bar_holds_as_often(sandbox: Sandbox) -> None:
    sql, squares, held = ROADS[0], [], []
    for at in range(10):
        made = means(10, f"few {at}")
        pair = release(sandbox, sql, [made]), release(sandbox, sql, [made], shown=PLAIN)
        squares.append([np.mean((numbers(found) - MEAN) ** 2) for found in pair])
        ends = [(numbers(found, "low"), numbers(found, "high")) for found in pair]
        held.append(np.mean((ends[0][0] <= MEAN) & (ends[0][1] >= MEAN)))
        assert (ends[0][0] <= ends[1][0]).all()
        assert (ends[0][1] >= ends[1][1]).all()
    estimate, ratio = np.mean(squares, axis=0)
    assert estimate < 0.8 * ratio
    assert np.mean(held) > 0.92


def test_a_mean_of_many_rows_is_the_released_sum_over_the_released_count(sandbox: Sandbox) -> None:
    made = means(5000)
    low, high = (np.asarray(term.values) for term in made.terms)
    assert numbers(release(sandbox, ROADS[0], [made])) == pytest.approx(1000 * low / (low - high), rel=1e-9)


def test_a_block_travels_without_what_is_computed_from_it() -> None:
    made = means(10)
    usual = made.estimates["m0"]
    assert b"estimates" not in pickle.dumps(made)
    assert pickle.loads(pickle.dumps(made)).estimates["m0"] == pytest.approx(usual, rel=0)
