"""Released tiles after least squares: the coverage of their bars, and the joint law of their replicates."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from support.released_blocks import T0, count_of, drawn, gaussian_noise, laplace_noise, remainder

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.intervals import GroupFacts
from dpsql.pricing.workloads import Marginals, Tile, Workload
from dpsql.privacy.mechanisms.contract import Noise
from dpsql.release.error_bars.answers import answer, bars
from dpsql.release.error_bars.laws import replicates
from dpsql.release.remainder import (
    ConsistentTerm,
    ReleasedBlock,
    can_be_consistent,
    consistent_blocks,
    inconsistent_notice,
)
from dpsql.release.sandbox import Sandbox

MARGINALS = Marginals((3, 4), ((0, 1), (0,), ()))
TILES = tuple(Tile(f"dp_{number}", ("t0",)) for number in range(3))
WORKLOAD = Workload(MARGINALS, TILES, (Fraction(1),) * 3)
EXACT = (np.arange(12.0) * 50, np.array([300.0, 1100.0, 1900.0]), np.array([3300.0]))
"""The finest tile, its sums by the first key, and their total."""
LAWS = {
    "laplace": (laplace_noise("1/10"), laplace_noise("1/30"), laplace_noise("1/40")),
    "gaussian": (gaussian_noise("1/200"), gaussian_noise("1/900"), gaussian_noise("1/400")),
    "both": (laplace_noise("1/10"), gaussian_noise("1/900"), laplace_noise("1/40")),
}
RUNS = 3000


def term(exact: np.ndarray, noise: Noise, values: np.ndarray | None = None) -> NoisyTerm:
    shown = np.rint(exact if values is None else values).astype(np.int64)
    return NoisyTerm("t0", shown, 2.0**noise.shift, noise, 0, True)


def released(laws: tuple[Noise, ...], key: str = "one", worse: float = 1.0) -> list[ReleasedBlock]:
    blocks = []
    for number, (exact, noise) in enumerate(zip(EXACT, laws, strict=True)):
        noisy = exact + worse * drawn(noise, len(exact), f"{key}/{number}")
        axes = MARGINALS.tiles[number]
        grid = np.indices([MARGINALS.sizes[axis] for axis in axes]).reshape(len(axes), len(exact) if axes else 0)
        keys = pa.table({f"k{place}": pa.array(values) for place, values in enumerate(grid)})
        formulas = (("m0", *count_of(T0)),)
        facts = GroupFacts(counts=frozenset({"m0"}))
        blocks.append(ReleasedBlock(f"dp_{number}", keys, (term(exact, noise, noisy),), formulas, len(exact), facts))
    return blocks


def after(laws: tuple[Noise, ...], key: str = "one", worse: float = 1.0) -> list[ConsistentTerm]:
    terms = [block.terms[0] for block in consistent_blocks([WORKLOAD], released(laws, key, worse))]
    assert all(isinstance(consistent, ConsistentTerm) for consistent in terms)
    return terms  # type: ignore[return-value]


def errors(laws: tuple[Noise, ...], worse: float = 1.0) -> list[np.ndarray]:
    """Return the errors of each tile after least squares over many releases, shape (runs, cells)."""
    joint = after(laws)[0].joint
    noise = [
        np.rint(worse * drawn(law, RUNS * len(exact), f"runs/{number}")).reshape(RUNS, -1)
        for number, (exact, law) in enumerate(zip(EXACT, laws, strict=True))
    ]
    return MARGINALS.reconciled(noise, joint.variances)


@pytest.mark.parametrize("law", LAWS)
def test_bars_cover_at_the_stated_confidence(law: str) -> None:
    for confidence in (0.8, 0.95, 0.99):
        for claimed, found, worse in zip(after(LAWS[law]), errors(LAWS[law]), errors(LAWS[law], 1.5), strict=True):
            width = claimed.half_width(confidence)
            deviation = (confidence * (1 - confidence) / found.size) ** 0.5
            assert abs(np.mean(np.abs(found) <= width) - confidence) < 6 * deviation + 0.002
            assert np.mean(np.abs(worse) <= width) < confidence
            assert found.std() == pytest.approx(claimed.standard_deviation(), rel=0.05)


@pytest.mark.parametrize("law", LAWS)
def test_totals_are_the_sums_of_their_parts_and_errors_fall(law: str) -> None:
    finest, rows, total = after(LAWS[law])
    assert finest.values.reshape(3, 4).sum(axis=1) == pytest.approx(rows.values)
    assert rows.values.sum() == pytest.approx(total.values[0])
    for consistent, noise in zip((finest, rows, total), LAWS[law], strict=True):
        assert consistent.standard_deviation() < noise.standard_deviation()


@pytest.mark.parametrize("law", LAWS)
def test_replicates_have_the_joint_law_of_the_tiles(law: str) -> None:
    """Their sums over groups have the error of the total, which independent cells would not give."""
    terms = after(LAWS[law])
    many = [replicates(consistent, "seed", f"dp_{number}", RUNS) for number, consistent in enumerate(terms)]
    for consistent, noise in zip(terms, many, strict=True):
        assert noise.shape == (2, RUNS, len(consistent.values))
        assert noise.std() == pytest.approx(consistent.standard_deviation(), rel=0.05)
    for summed in (many[0].sum(axis=2), many[1].sum(axis=2)):
        assert summed == pytest.approx(many[2][:, :, 0])
    assert np.abs(np.corrcoef(many[2][0, :, 0], many[2][1, :, 0])[0, 1]) < 0.1


def test_a_sum_over_groups_has_the_bar_of_the_total(sandbox: Sandbox) -> None:
    blocks = consistent_blocks([WORKLOAD], released(LAWS["gaussian"]))
    read = remainder("SELECT SUM(m0) AS s FROM dp_0", blocks)
    width = bars(sandbox, answer(sandbox, read, 0.95)).error.column(0)[0].as_py()
    total = blocks[2].terms[0].half_width(0.95)
    alone = LAWS["gaussian"][0].half_width(0.95) * 12**0.5
    assert 0.8 * total < width < 1.6 * total < alone


def test_tables_that_are_not_there_or_share_noise_stay_as_they_are() -> None:
    blocks = released(LAWS["laplace"])
    assert can_be_consistent(WORKLOAD, blocks) and inconsistent_notice(WORKLOAD, blocks) == ()
    summed = LAWS["laplace"][0].summed(12, True)
    assert summed is not None
    derived = ReleasedBlock("dp_2", blocks[2].keys, (term(EXACT[2], summed),), blocks[2].formulas, 1)
    fewer = ReleasedBlock(
        "dp_1", blocks[1].keys.slice(0, 2), (term(EXACT[1][:2], LAWS["laplace"][1]),), blocks[1].formulas, 2
    )
    for changed in ([*blocks[:2]], [*blocks[:2], derived], [blocks[0], fewer, blocks[2]]):
        assert consistent_blocks([WORKLOAD], changed) == tuple(changed)
        (notice,) = inconsistent_notice(WORKLOAD, changed)
        assert "tables are shown as they were released" in notice
