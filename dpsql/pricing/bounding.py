"""Blocks under contribution bounds: aggregates become their basis, and caps that change nothing are dropped (privacy.md 4)."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from dpsql.aggregates.contract import aggregate_of
from dpsql.errors.exceptions import refuse
from dpsql.plan.canonical_text import canonical_text
from dpsql.plan.formulas import Formula, MeasureFormula, terms_of, whole
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.plan.plan import Block, BoundedBlock, Caps, Measure, TotalCut, group_count
from dpsql.plan.stability import owned, promises, rows_in_group, rows_per_unit, tables
from dpsql.policy import Policy
from dpsql.policy.types import UNBOUNDED, ContributionBounds
from dpsql.pricing.basis import Cuts, TermBasis
from dpsql.pricing.joint_sums import counts_rows, in_parts
from dpsql.pricing.local_sensitivity import LocalRequest
from dpsql.pricing.measurements import PARTS
from dpsql.pricing.plan_check import NO_FILTERS, RowFilters, check_block
from dpsql.pricing.rank_histograms import PRIVATE_GROUPS
from dpsql.pricing.sample_values import MeanRequest
from dpsql.pricing.sharing import MeasuredBasis, NoiseLaw, SetParts, most_exact

_Built = tuple[TermBasis, tuple[MeasureFormula, ...]]
_Inputs = tuple[
    tuple[Measure, ...], bool, int, ContributionBounds, int, Fraction | None, LocalRequest | None, MeanRequest | None,
    tuple[tuple[Any, TotalCut], ...],
]  # fmt: skip
"""Measures, and the arguments of `TermBasis` beside them."""
SELECTION = "sel"
"""Engine column that partition selection reads where no measured term counts the same."""


def bounded(
    block: Block,
    policy: Policy,
    bounds: ContributionBounds,
    bars: Fraction | None = None,
    local: LocalRequest | None = None,
    means: MeanRequest | None = None,
    cuts: Cuts | None = None,
    law: NoiseLaw | None = None,
    row_filters: RowFilters = NO_FILTERS,
) -> BoundedBlock:
    """Return a block reduced to its basis under contribution bounds: the smallest of `bounds` and those of its tables.

    `bars`: confidence of the error bars that are measured for quantiles. `local`: noise follows the local sensitivity of
    measures. `means`: options of means of samples. `cuts`: bounds per unit that are chosen privately. `law`: how errors follow
    from parts of the budget, which decides whether sums share each row (`sharing`; None: Gaussian noise, with rho divided).
    `row_filters`: the asker's conditions, which the block must contain (`plan_check`)."""
    check_block(block, policy, row_filters)
    if any(measure.per_group is not None for measure in block.measures):
        raise refuse("internal", what="bounds of a unit in a group that nothing enforces")
    rows = rows_per_unit(block.source, policy)
    bounds = bounds.tightened(*(policy.tables[name].bounds for name in tables(block.source)))
    private_keys = any(key.values is None for key in block.keys)
    has_owner = owned(block.source, policy)
    if not has_owner:
        # Rows without an owner: nothing is dropped or clipped by unit, and the bound is that of all rows.
        bounds = UNBOUNDED
    # Rows whose keys match no group belong to no group, so a unit touches at most as many groups as there are.
    listed = max(1, group_count([key.values for key in block.keys], block.combinations))
    groups = rows if private_keys else min(rows, listed)
    in_group = rows_in_group(block.source, tuple(key.expression for key in block.keys), policy)
    enforced = ContributionBounds(
        max_groups=_below(bounds.max_groups, groups), max_rows_per_group=_below(bounds.max_rows_per_group, in_group)
    )
    groups = groups if enforced.max_groups is None else enforced.max_groups
    assumed_groups = PRIVATE_GROUPS if private_keys else listed
    one_row = rows == 1 or not has_owner
    chosen = tuple((cuts or {}).items())
    inputs = (block.measures, one_row, rows, bounds, assumed_groups, bars, local, means, chosen)
    caps = Caps(rows, groups, enforced, in_group if in_group < rows else None)
    # A count of rows that admits private keys stays a separate term, so that a threshold on it costs only delta.
    stars = not (private_keys and one_row)
    written = canonical_text(block.measures)
    basis, formulas, set_parts = _most_exact(
        inputs, written, stars, private_keys, caps, law or NoiseLaw(), caps.rows_in_group
    )
    if not has_owner and any(term.clip is not None or term.places is not None for term in basis.terms):
        raise refuse("internal", what="a sum bounded by unit over rows that belong to no unit")
    # Under row privacy, and above DISTINCT, a unit with c > 1 rows changes a count of rows by up to c; a threshold on that count
    # allows for it (`lone_count`).
    selection = (basis.known_units() or SELECTION) if private_keys else None
    return BoundedBlock(
        block.name, block.source, block.keys, tuple(basis.terms), formulas, selection, caps,
        _groups(block, basis, formulas), tuple(basis.measurements), block.combinations,
        promises=promises(block.source, policy), set_parts=set_parts,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _most_exact(
    inputs: _Inputs, written: str, stars: bool, private_keys: bool, caps: Caps, law: NoiseLaw, rows_in_group: int | None
) -> tuple[TermBasis, tuple[MeasureFormula, ...], SetParts]:
    """Return the basis of the block with the smallest errors, and the parts of the budget of its sets of joint sums. `stars`: the
    number of all rows may follow from them; otherwise it is measured alone.

    Kept for all questions that ask the same of any rows. `written`: the measures as text, in which 0.0 and -0.0 differ;
    `rows_in_group`: that of `caps`, which does not compare it."""
    build, measures = partial(_basis, inputs), inputs[0]

    def described(built: _Built) -> MeasuredBasis:
        return MeasuredBasis(tuple(built[0].terms), built[1], _choices(built[0], private_keys))

    alone = build()
    apart = described(alone)
    if len(apart.sets) < 2:
        return *alone, ()
    starred = (True, False) if stars and any(map(counts_rows, measures)) else (stars,)
    for squares in (True, False) if law.shares_squares and in_parts(measures) else (False,):
        joint: dict[MeasuredBasis, _Built] = {}
        for with_stars in starred:
            built = build(sharing=True, stars=with_stars, squares=squares)
            new = all(other[0].terms != built[0].terms for other in joint.values())
            if new and any(term.shares for term in built[0].terms):
                joint[described(built)] = built
        chosen, parts = most_exact(apart, tuple(joint), caps, law)
        if chosen is not apart:
            return *joint[chosen], parts
    return *alone, ()


def _groups(block: Block, basis: TermBasis, formulas: tuple[MeasureFormula, ...]) -> GroupFacts:
    """Return the facts about groups that error bars need (`error_bars.column_facts`)."""
    measured = [(measure.name, aggregate_of(measure.aggregate)) for measure in block.measures]
    zeros = [(name, aggregate) for name, aggregate in measured if aggregate.zero_without_rows]
    chosen = {number for measurement in basis.measurements for number in measurement.numbers}
    return GroupFacts(
        complete=all(key.values is not None for key in block.keys),
        counts=frozenset(name for name, aggregate in zeros if aggregate.counts),
        sums=frozenset(name for name, aggregate in zeros if not aggregate.counts),
        chosen=frozenset(name for name, formula, _ in formulas if not chosen.isdisjoint(terms_of(formula))),
        ends=_ends(basis, formulas),
    )


def _ends(basis: TermBasis, formulas: tuple[MeasureFormula, ...]) -> tuple[tuple[str, Formula, Formula, Fraction], ...]:
    """Return the measures, plain or rounded, that are quantiles or means of samples with a bar: name, ends, confidence."""
    confidence = basis.means.confidence if basis.bars is None else basis.bars
    of_formula = basis.ends | {whole(formula): ends for formula, ends in basis.ends.items()}
    return tuple((name, *of_formula[formula], confidence) for name, formula, _ in formulas if formula in of_formula)


def _basis(inputs: _Inputs, sharing: bool = False, stars: bool = True, squares: bool = False) -> _Built:
    measures, one_row, rows, bounds, groups, bars, local, means, cuts = inputs
    basis = TermBasis(measures, one_row, rows, bounds, sharing, stars, groups, bars, means, dict(cuts), squares)
    if local is not None:
        return basis, tuple((measure.name, basis.local(measure, local), Type.REAL) for measure in measures)
    return basis, tuple(
        (measure.name, *aggregate_of(measure.aggregate).measured(basis, measure)) for measure in measures
    )


def _choices(basis: TermBasis, private_keys: bool) -> int:
    """Return the parts of the budget that are not for sums: chosen numbers, and selection unless a term counts units."""
    selecting = private_keys and basis.known_units() is None
    return sum(PARTS.of(measurement.word).parts(measurement) for measurement in basis.measurements) + selecting


def _below(bound: int | None, most: int) -> int | None:
    """Return the bound, or None where no more than `most` can occur anyway, so that nothing need be enforced."""
    return bound if bound is not None and bound < most else None
