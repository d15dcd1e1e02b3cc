"""Comparison of prices of a question that asks for running totals: with further tables by ranges of its last keys, with noise by
the square root of their matrix (`square_roots`), and without either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import log, sqrt

from dpsql.pricing.pricing import Price, PricedBlock
from dpsql.pricing.running_totals import is_better, mean_variances
from dpsql.pricing.square_roots import RunningTable, running_error
from dpsql.pricing.workloads import ADDING_UP, variance


def compared_with(ranges: Price, alone: Price, count: int) -> Price | None:
    """Return the price by ranges of a key, in which each workload also records the noise of its sums `alone` (`apart`); None
    unless all `count` workloads make running totals more exact."""
    if len(ranges.workloads) < count:
        return None
    noises = {
        (priced.block.name, term.name): term
        for price in (alone, ranges)
        for priced in price.blocks
        for term in priced.noise.terms
    }
    workloads = []
    for workload in ranges.workloads:
        finest = workload.tiles[0]
        terms = next(priced.noise.terms for priced in alone.blocks if priced.block.name == finest.block)
        by_itself = tuple(term.noise for term in terms if term.name in finest.terms)
        measured = [noises[tile.block, tile.terms[0]] for tile in workload.tiles]
        variances = [variance(term.noise, term.whole) for term in measured]
        if not is_better(workload, variances, variance(by_itself[0], measured[0].whole)):
            return None
        workloads.append(replace(workload, apart=(by_itself,)))
    return replace(ranges, workloads=tuple(workloads))


def least_error(alone: Price, rooted: Price, ranges: Price, lengths: Mapping[str, int]) -> tuple[RunningTable, ...]:
    """Return the sums and their errors of running totals under noise by the square root of their matrix. Empty unless that noise
    is better than `ranges` (or than `alone`, where no ranges are measured), in the geometric mean over all sums of the blocks in
    `lengths`."""
    tables = _running_tables(rooted.blocks, alone.blocks, lengths)
    if all(table.error >= table.alone for table in tables):
        return ()
    by_ranges = _errors_by_ranges(ranges)
    errors = [by_ranges.get((table.block, table.term)) for table in tables]
    if ranges.workloads:
        # A sum without a workload has a smaller part of the budget in `ranges`, so that its error is larger than alone.
        compared = [table.alone if error is None else error for table, error in zip(tables, errors, strict=True)]
        if sum(log(table.error / error) for table, error in zip(tables, compared, strict=True)) >= 0:
            return ()
    return tuple(replace(table, ranges=error) for table, error in zip(tables, errors, strict=True))


def _running_tables(
    priced: Sequence[PricedBlock], alone: Sequence[PricedBlock], of_blocks: Mapping[str, int]
) -> tuple[RunningTable, ...]:
    """Return the errors of running totals for each sum that adds up in the blocks of `of_blocks` (see `lengths`). `priced` has
    the noise for running totals, `alone` the noise that the same blocks have without `dp.workload`."""
    tables = []
    for block, plain in zip(priced, alone, strict=True):
        length = of_blocks.get(block.block.name)
        if length is None:
            continue
        kinds = {term.name: term.kind for term in block.block.terms}
        for noise, plain_noise in zip(block.noise.terms, plain.noise.terms, strict=True):
            error = running_error(plain_noise.noise, length, plain_noise.whole)
            if error > 0 and kinds[noise.name] in ADDING_UP and noise.shares in ("", noise.name):
                now = running_error(noise.noise, length, noise.whole)
                tables.append(RunningTable(block.block.name, noise.name, length, now, error))
    return tuple(tables)


def _errors_by_ranges(ranges: Price) -> dict[tuple[str, str], float]:
    """Return the root mean square error of running totals for each sum that is measured by ranges, by block and term (row-grid
    units)."""
    noises = {(priced.block.name, term.name): term for priced in ranges.blocks for term in priced.noise.terms}
    errors = {}
    for workload in ranges.workloads:
        measured = [noises[tile.block, tile.terms[0]] for tile in workload.tiles]
        variances = [variance(term.noise, term.whole) for term in measured]
        errors[workload.tiles[0].block, workload.tiles[0].terms[0]] = sqrt(mean_variances(workload, variances)[0])
    return errors
