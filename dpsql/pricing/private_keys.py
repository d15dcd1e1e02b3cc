"""Counts that may admit private keys: the count of all rows, which is released anyway, and the sum of the units' weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dpsql.plan.plan import BoundedBlock, Term, TermKind
from dpsql.privacy.loss import Neighbours
from dpsql.privacy.mechanisms.contract import Noise, Norm, Sensitivity
from dpsql.privacy.mechanisms.partition_selection import Threshold, weighted_sensitivity, weighted_threshold
from dpsql.privacy.mechanisms.registry import Mechanism


def weighted_thresholds(
    column: str,
    block: BoundedBlock,
    neighbours: Neighbours,
    mechanisms: Sequence[Mechanism],
    noise_for: Callable[[Mechanism, Sensitivity], Noise],
    delta: Fraction,
) -> list[Threshold]:
    """Return thresholds on the units' weights, one for each mechanism: weights in its norm, noise as `noise_for` calibrates it.

    Assumes that a unit has half of the keys that it may have, or half of max_count if that is less. Raises Refusal
    selection_delta."""
    groups = block.caps.groups
    usual = (min([groups, *_clipped_rows(block)]) + 1) // 2
    rules: list[Threshold] = []
    for mechanism in mechanisms:
        norm = mechanism.norm or Norm.L1
        noise = noise_for(mechanism, weighted_sensitivity(groups, norm, neighbours.factor))
        rules.append(weighted_threshold(column, groups, norm, noise, delta, usual))
    return rules


def _clipped_rows(block: BoundedBlock) -> list[int]:
    """Return the bounds on a unit's rows to which counts are clipped."""
    counts = (term for term in block.terms if term.kind is TermKind.COUNT)
    return [max(1, term.clip.most >> term.finer) for term in counts if term.clip is not None]


def with_counted_rows(block: BoundedBlock) -> BoundedBlock:
    """Return `block` with the count of its rows admitting private keys, where that count is a separate term and no other term
    admits them."""
    if block.selection_term is None or block.selection_term in {term.name for term in block.terms}:
        return block
    rows = next((term.name for term in block.terms if _counts_all_rows(term)), None)
    return block if rows is None else replace(block, selection_term=rows)


def _counts_all_rows(term: Term) -> bool:
    """Return whether a term is a separate count of all rows, as far as the clip of their units allows."""
    return term.kind is TermKind.COUNT and term.value is None and term.filter is None and not term.shares


def whole_rows(steps: int, grid: int) -> int:
    """Return a count in steps of 2**-grid rounded up to rows."""
    return -(-steps >> grid)
