"""Least squares over tiles, part by part, compared with least squares over the whole matrix."""

import numpy as np
import pytest

from dpsql.pricing.workloads import MOST_KEYS, Marginals

SHAPES = {
    "cube": Marginals((3, 4, 2), ((0, 1, 2), (1, 0), (2,), (), (2, 0))),
    "rollup": Marginals((2, 5), ((0, 1), (0,), ())),
    "without the finest": Marginals((3, 2, 4), ((0, 1), (2, 1), (0, 2), (2,))),
    "one value": Marginals((1, 3), ((0, 1), (1,), ())),
    "twice": Marginals((3, 2), ((0, 1), (1, 0), (0,))),
}


def margin(marginals: Marginals, tile: tuple[int, ...], table: np.ndarray) -> np.ndarray:
    """Return a tile of a whole table, with its axes in the tile's own order."""
    summed = table.sum(axis=tuple(key for key in range(table.ndim) if key not in tile))
    return summed.transpose([sorted(tile).index(key) for key in tile]).reshape(-1)


def design(marginals: Marginals) -> np.ndarray:
    """Return the matrix from whole tables to all tiles."""
    cells = int(np.prod(marginals.sizes))
    units = np.eye(cells).reshape(cells, *marginals.sizes)
    columns = [np.concatenate([margin(marginals, tile, unit) for tile in marginals.tiles]) for unit in units]
    return np.array(columns).T


@pytest.mark.parametrize("name", SHAPES)
def test_parts_give_what_the_whole_matrix_gives(name: str) -> None:
    marginals, generator = SHAPES[name], np.random.default_rng(7)
    variances = generator.uniform(0.2, 5, len(marginals.tiles))
    counts = [marginals.cells(tile) for tile in marginals.tiles]
    matrix = design(marginals)
    weights = np.diag(np.concatenate([np.full(n, 1 / v) for n, v in zip(counts, variances, strict=True)]))
    estimate = matrix @ np.linalg.pinv(matrix.T @ weights @ matrix) @ matrix.T @ weights
    measured = [generator.normal(size=n) for n in counts]
    after = np.concatenate(marginals.reconciled(measured, variances))
    assert after == pytest.approx(estimate @ np.concatenate(measured), abs=1e-12)
    covariance = estimate @ np.linalg.inv(weights) @ estimate.T
    expected = np.split(np.diag(covariance), np.cumsum(counts)[:-1])
    for number, variance in enumerate(marginals.variances_after(variances)):
        assert expected[number] == pytest.approx(variance)  # for every cell of the tile
        summed = sum(w * w * n * variances[other] for other, w, n in marginals.weights(number, variances))
        assert summed == pytest.approx(variance)
    start = 0
    for number, n in enumerate(counts):
        listed = np.sort(np.concatenate([np.full(c, w) for _, w, c in marginals.weights(number, variances)]))
        row = np.sort(estimate[start])
        assert row[np.abs(row) > 1e-12] == pytest.approx(listed[np.abs(listed) > 1e-12])
        start += n


@pytest.mark.parametrize("name", SHAPES)
def test_consistent_tiles_stay_as_they_are(name: str) -> None:
    marginals, table = SHAPES[name], np.random.default_rng(3).normal(size=SHAPES[name].sizes)
    tiles = [margin(marginals, tile, table) for tile in marginals.tiles]
    for before, after in zip(tiles, marginals.reconciled(tiles, np.ones(len(tiles))), strict=True):
        assert after == pytest.approx(before)


def test_many_tables_are_made_consistent_at_once() -> None:
    marginals, generator = SHAPES["cube"], np.random.default_rng(5)
    variances = generator.uniform(1, 2, len(marginals.tiles))
    many = [generator.normal(size=(2, 3, marginals.cells(tile))) for tile in marginals.tiles]
    together = marginals.reconciled(many, variances)
    for first in range(2):
        for second in range(3):
            alone = marginals.reconciled([tile[first, second] for tile in many], variances)
            for tile, expected in zip(together, alone, strict=True):
                assert tile[first, second] == pytest.approx(expected)


def test_tables_of_many_keys_are_too_many() -> None:
    assert not Marginals((2,) * 6, (tuple(range(MOST_KEYS)), ())).too_many
    assert Marginals((2,) * 7, (tuple(range(MOST_KEYS + 1)), ())).too_many
    assert Marginals((2,) * 6, (tuple(range(6)),) * 17).too_many
