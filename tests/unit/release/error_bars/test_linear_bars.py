"""Bars of weighted sums of noisy numbers are those of the exact covariance."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from support.released_blocks import T0, Keyed, block, count_of, counts, gaussian_noise, laplace_noise, release
from support.released_blocks import drawn as drawn_noise

from dpsql.noise.noise_samplers import running_vectors
from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.intervals import GroupFacts
from dpsql.privacy.mechanisms import square_root
from dpsql.privacy.mechanisms.contract import Sensitivity
from dpsql.privacy.mechanisms.square_root import SquareRoot, inverse_factors
from dpsql.release.error_bars import replicates
from dpsql.release.error_bars.column_facts import ColumnFacts, Form, Level, RelationFacts
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox

DAYS = 60
SIGMAS = {0.90: 1.6449, 0.95: 1.9600, 0.99: 2.5758}


def law(length: int = DAYS, rho: str = "1/200") -> SquareRoot:
    noise = square_root.noise_for(Sensitivity(1, 1, 1, 1), Fraction(rho), length, 0)
    assert isinstance(noise, SquareRoot)
    return noise


def series(values: np.ndarray, noise: SquareRoot, regions: int = 1) -> ReleasedBlock:
    """Return counts m0 by region k0 and day k1, measured for running totals."""
    days = noise.length
    term = NoisyTerm("t0", values.astype(np.int64), 1.0, noise, 0, True)
    keys = {
        "k0": np.repeat([f"r{place}" for place in range(regions)], days).tolist(),
        "k1": list(range(days)) * regions,
    }
    made = block(keys, [term], [count_of(T0)])
    return ReleasedBlock(
        made.name, made.keys, made.terms, made.formulas, made.rows, GroupFacts(True, frozenset({"m0"}))
    )


@pytest.mark.parametrize(("length", "cells"), [(1, 1), (7, 7), (60, 60), (60, 180), (60, 150)])
def test_variances_are_those_of_the_inverse_matrix(length: int, cells: int) -> None:
    noise = law(length)
    inverse = np.zeros((cells, cells))
    for start in range(0, cells, length):
        for row in range(start, min(start + length, cells)):
            inverse[row, start : row + 1] = inverse_factors(length)[: row - start + 1][::-1]
    weights = np.random.default_rng(length).normal(size=(5, cells))
    expected = np.sum((weights @ inverse) ** 2, axis=1) * (float(noise.noise_scale) ** 2 + 1 / 12)
    assert np.allclose(noise.variances(weights), expected, rtol=1e-9)
    if cells == length:
        last = np.eye(cells)[-1:]
        assert np.sqrt(noise.variances(last)) == pytest.approx(noise.standard_deviation())
        running = np.sqrt(np.mean(noise.variances(np.tri(cells))))
        assert running == pytest.approx(noise.running_deviation())


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    """Return the noise of 5,000 answers, from the gate's sampler."""
    return running_vectors(law(), 5_000, DAYS, Keyed("linear bars")).astype(np.float64)


SHAPES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "one day": ("SELECT k1, sum(m0) FROM dp_0 GROUP BY k1 ORDER BY k1", lambda n: n),
    "running": ("SELECT k1, sum(m0) OVER (ORDER BY k1) FROM dp_0 ORDER BY k1", lambda n: np.cumsum(n, axis=1)),
    "range": ("SELECT sum(m0) FROM dp_0 WHERE k1 BETWEEN 20 AND 39", lambda n: n[:, 20:40].sum(axis=1, keepdims=True)),
    "all": ("SELECT sum(m0) FROM dp_0", lambda n: n.sum(axis=1, keepdims=True)),
    "weeks": ("SELECT k1 // 7 AS w, sum(m0) FROM dp_0 GROUP BY w ORDER BY w", lambda n: np.add.reduceat(n, range(0, DAYS, 7), axis=1)),
    "change": ("SELECT k1, m0 - lag(m0) OVER (ORDER BY k1) FROM dp_0 ORDER BY k1", lambda n: np.diff(n, axis=1, prepend=np.nan)),
    "moving mean": (
        "SELECT k1, avg(m0) OVER (ORDER BY k1 ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) FROM dp_0 ORDER BY k1",
        lambda n: np.stack([n[:, max(0, day - 6) : day + 1].mean(axis=1) for day in range(DAYS)], axis=1),
    ),
    "two totals": (
        "WITH q AS (SELECT k1, sum(m0) OVER (ORDER BY k1) AS s FROM dp_0) SELECT (SELECT s FROM q WHERE k1 = 50) - "
        "(SELECT s FROM q WHERE k1 = 10)",
        lambda n: n[:, 11:51].sum(axis=1, keepdims=True),
    ),
    "slope": ("SELECT sum(m0 * (k1 - 29.5)) / 17995.0 FROM dp_0", lambda n: n @ (np.arange(DAYS)[:, None] - 29.5) / 17995.0),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("confidence", SIGMAS)
def test_bars_hold_as_often_as_they_say(sandbox: Sandbox, drawn: np.ndarray, shape: str, confidence: float) -> None:
    compare(sandbox, shape, confidence, series(exact() + drawn[0], law()), drawn)


@pytest.mark.parametrize("shape", ["running", "range", "all", "weeks", "slope"])
@pytest.mark.parametrize("confidence", SIGMAS)
def test_bars_of_sums_of_laplace_noise_hold_as_often_as_they_say(
    sandbox: Sandbox, shape: str, confidence: float
) -> None:
    """Such a sum is not normal, least of all the first of a running total."""
    noise = laplace_noise("1/10")
    errors = drawn_noise(noise, 5_000 * DAYS, "laplace").reshape(5_000, DAYS)
    keys = {"k1": np.arange(DAYS).tolist()}
    term = NoisyTerm("t0", (exact() + errors[0]).astype(np.int64), 1.0, noise, 0, True)
    compare(sandbox, shape, confidence, block(keys, [term], [count_of(T0)]), errors)


def exact() -> np.ndarray:
    return 400 + 10 * np.arange(DAYS)


def compare(sandbox: Sandbox, shape: str, confidence: float, released: ReleasedBlock, noise: np.ndarray) -> None:
    """Compare the bars of `released`, which do not depend on the draw, with the errors under `noise` of 5,000 answers. Bars of 0.7
    and 1.3 times the width are detected as wrong in every column."""
    sql, of_days = SHAPES[shape]
    found = release(sandbox, sql, [released], confidence=confidence)
    last = found.error.num_columns - 1
    bars = np.array(found.error.column(last).to_pylist(), dtype=float)
    errors = np.abs(of_days(noise))
    kept = np.isfinite(errors[0])
    assert (np.isfinite(bars) == kept).all()
    errors, bars = errors[:, kept], bars[kept]
    allowed = 5 * np.sqrt(confidence * (1 - confidence) / len(errors))
    inside = np.mean(errors <= bars + 1e-9, axis=0)
    grid = 0.03 if shape != "slope" else 0.0  # integers, and bars rounded up to them
    assert (inside > confidence - allowed).all() and (inside < confidence + allowed + grid).all()
    for scale in (0.7, 1.3):
        wrong = np.mean(errors <= scale * bars, axis=0)
        assert ((wrong < confidence - allowed) if scale < 1 else (wrong > confidence + (1 - confidence) / 3)).all()


def test_regions_are_independent(sandbox: Sandbox) -> None:
    """A sum over regions has the root of the sum of their variances; a day in one has no covariance with a day in another."""
    made = series(np.tile(400.0 + np.arange(DAYS), 3), law(), 3)
    found = release(sandbox, "SELECT sum(m0) FROM dp_0", [made])
    alone = release(sandbox, "SELECT sum(m0) FROM dp_0", [series(400.0 + np.arange(DAYS), law())])
    three, one = (release_.error.column(0)[0].as_py() for release_ in (found, alone))
    assert three == pytest.approx(np.sqrt(3) * one, abs=1)


def test_sums_of_independent_normal_noise_have_their_deviation(sandbox: Sandbox) -> None:
    noise = gaussian_noise("1/200")
    found = release(sandbox, "SELECT sum(m0) FROM dp_0", [counts([500.0] * 20, noise, "sums")], confidence=0.99)
    assert found.error.column(0)[0].as_py() == pytest.approx(2.5758 * np.sqrt(20) * noise.standard_deviation(), abs=1)


def test_normal_noise_and_other_noise_add_up(sandbox: Sandbox) -> None:
    """The bar is wider than that of each, and narrower than both together."""
    made = [series(400.0 + np.arange(DAYS), law()), counts([500.0] * 3, laplace_noise("1/100"), "beside", name="dp_1")]
    both, first, second = (
        release(sandbox, sql, made).error.column(0)[0].as_py()
        for sql in (
            "SELECT sum(a.m0) + (SELECT sum(m0) FROM dp_1) FROM dp_0 AS a",
            "SELECT sum(m0) FROM dp_0", "SELECT sum(m0) FROM dp_1",
        )
    )  # fmt: skip
    assert max(first, second) < both < 0.95 * (first + second)


def test_values_without_rows_count_as_zero_in_a_series(sandbox: Sandbox) -> None:
    """In other tables, LAG depends on which groups exist; for a series the answer states what its bar covers."""
    sql = "SELECT k1, m0 - lag(m0) OVER (ORDER BY k1) AS more FROM dp_0 ORDER BY k1"
    found = release(sandbox, sql, [series(400.0 + np.arange(DAYS), law())])
    assert found.error.column(1).to_pylist()[0] is None and None not in found.error.column(1).to_pylist()[1:]
    (note,) = found.bars.notes
    assert note == "more counts values without rows as 0, and so does its error bar; SQL would leave them out"
    assert not any(column.of_groups for column in found.columns)
    ranks = release(
        sandbox, "SELECT k1, rank() OVER (ORDER BY m0) AS more FROM dp_0", [series(400.0 + np.arange(DAYS), law())]
    )
    assert ranks.columns[1].of_groups


def test_what_is_taken_for_a_sum_and_is_none_has_no_such_bar(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a maximum were taken for a sum, the shown value would not be the sum of its weights times the released numbers."""
    made = [counts([400.0, 900.0, 100.0], gaussian_noise("1/200"), "no sum")]
    before = release(sandbox, "SELECT max(m0) FROM dp_0", made).error.column(0)[0].as_py()
    facts = RelationFacts((ColumnFacts("max", Level.NOISE, form=Form.LINEAR),), Level.EXACT)
    monkeypatch.setattr(replicates, "column_facts", lambda *_: facts)
    # Under another name, because the facts of a text are kept.
    assert release(sandbox, "SELECT max(m0) AS largest FROM dp_0", made).error.column(0)[0].as_py() == before
