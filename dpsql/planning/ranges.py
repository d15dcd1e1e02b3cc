"""The price of a question with further tables by ranges of its last keys, compared with that without them."""

from __future__ import annotations

from dataclasses import replace

from dpsql.pricing.pricing import Price
from dpsql.pricing.running_totals import is_better
from dpsql.pricing.workloads import variance


def compared_with(ranges: Price, alone: Price, count: int) -> Price | None:
    """Return the price by ranges of a key, with the noise of each table `alone` beside it; None unless all `count` workloads make
    running totals more exact."""
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
