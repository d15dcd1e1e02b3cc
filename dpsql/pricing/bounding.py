"""Blocks under contribution bounds: aggregates to their basis, caps that change nothing left out (privacy.md 4)."""

from __future__ import annotations

import math
from dataclasses import replace

from dpsql.errors.exceptions import refuse
from dpsql.functions.neutral_conditions import without_neutral
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.plan.plan import Asked, Block, BoundedBlock, Caps
from dpsql.plan.stability import owned, rows_per_unit, tables
from dpsql.policy import Policy
from dpsql.pricing.basis import Basis
from dpsql.pricing.formulas import FORMULAS

SELECTION = "sel"
"""Engine column that partition selection looks at when no measured term counts the same."""


def bounded(block: Block, policy: Policy, asked: Asked) -> BoundedBlock:
    """The basis of a block under contribution bounds: the smallest of those asked for and those of its tables."""
    block = without_neutral(block)
    rows = rows_per_unit(block.source, policy)
    read = [policy.tables[name] for name in tables(block.source)]
    max_groups = _smallest(asked.max_groups, *(table.max_groups for table in read))
    max_rows_per_group = _smallest(asked.max_rows_per_group, *(table.max_rows_per_group for table in read))
    asked = replace(asked, max_count=_smallest(asked.max_count, *(table.max_count for table in read)))
    private_keys = any(key.values is None for key in block.keys)
    has_owner = owned(block.source, policy)
    if not has_owner:
        # Nothing says whose a row is, so nothing is dropped or clipped by unit: the bound is that of all rows.
        max_groups = max_rows_per_group = None
        asked = Asked()
    # Rows with a public key outside its values belong to no group, so a unit touches no more groups than there are.
    groups = rows if private_keys else min(rows, max(1, math.prod(len(key.values or ()) for key in block.keys)))
    if max_groups is not None:
        max_groups, groups = (max_groups, max_groups) if max_groups < groups else (None, groups)
    if max_rows_per_group is not None and max_rows_per_group >= rows:
        max_rows_per_group = None
    # Terms share each row where that halves the parts of the budget at least: a count is then the difference of two sums,
    # with as much noise under Gaussian laws as one of twice as many parts, and with less under Laplace's.
    one_row = rows == 1 or not has_owner
    basis, formulas = _basis(block, one_row, rows, asked)
    # A count of rows that admits private keys stays a term of its own, so that a threshold on it costs delta alone.
    shared = _basis(block, one_row, rows, asked, sharing=True, stars=not (private_keys and one_row))
    if 2 * _parts(shared[0], private_keys) <= _parts(basis, private_keys):
        basis, formulas = shared
    if not has_owner and any(term.clip is not None for term in basis.terms):
        raise refuse("internal", what="a sum clipped by unit over rows that belong to no unit")
    # Under row privacy, and above DISTINCT, a unit with c > 1 rows moves a count of rows by up to c; a threshold on it
    # allows for that (`lone_count`).
    selection = (basis.known_units() or SELECTION) if private_keys else None
    caps = Caps(rows, groups, max_groups, max_rows_per_group)
    return BoundedBlock(
        block.name, block.source, block.keys, tuple(basis.terms), formulas, selection, caps, _groups(block)
    )


_COUNTS = ("count", "count_units", "count_distinct", "regr_count")


def _groups(block: Block) -> GroupFacts:
    """What the remainder has to know of the groups (`error_bars.lineage`)."""
    return GroupFacts(
        complete=all(key.values is not None for key in block.keys),
        counts=frozenset(measure.name for measure in block.measures if measure.aggregate in _COUNTS),
        sums=frozenset(measure.name for measure in block.measures if measure.aggregate == "sum"),
    )


def _basis(
    block: Block, one_row: bool, rows: int, asked: Asked, sharing: bool = False, stars: bool = True
) -> tuple[Basis, tuple[tuple[str, str, Type], ...]]:
    basis = Basis(block.measures, one_row, rows, asked, sharing, stars)
    return basis, tuple((measure.name, *FORMULAS[measure.aggregate](basis, measure)) for measure in block.measures)


def _parts(basis: Basis, private_keys: bool) -> int:
    """How many parts a budget is split into: sets of terms, and partition selection where no term counts units."""
    selecting = private_keys and basis.known_units() is None
    return len({term.shares or term.name for term in basis.terms if term.magnitude}) + selecting


def _smallest(*bounds: int | None) -> int | None:
    return min((bound for bound in bounds if bound is not None), default=None)
