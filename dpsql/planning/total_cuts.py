"""`dp.max_total = auto`: the bound on what one unit adds to a SUM is chosen privately, as the first step of the question.

Step one is a separate block over the units: the total of each unit (one row per unit, `UnitAggregate`) falls into a cell of a
public geometric grid, and the exponential mechanism chooses a cell near the r-th largest total (`privacy.mechanisms.exponential`,
leaning choices). The upper end C of that cell is released.

Step two sums clamp(x / C, -1, 1) over the rows, clipped to 1 per unit, and the answer is C times that sum. So nothing about the
second mechanism depends on C: its bounds, grid, sensitivity (1 per unit, whatever C is) and noise are fixed by the text and the
policy before anything is measured; only the summed function of the rows follows from a number that is already released. That
makes a question in stages, and the losses of both steps add up by the argument of `session.stages`; both are reserved together
before the first step. The product with C is computed from released numbers alone.

Why the r-th largest. A unit whose total is above C loses the excess, so a slightly higher cut saves as much as there are units
above it, and costs E|noise| / C more noise: both are equal where about 1 / epsilon units per group are above
(`exponential.leaning_choice`; Amin, Kulesza, Munoz and Vassilvitskii 2019 bound contributions by the same rule). So small a rank
would not keep a choice among equally likely cells inside the data, and a cut above all totals, up to the policy's own bound,
costs far more noise than a few units lose. Therefore the choice leans: apart from its rank, the weight of a cell falls like
1 / C**2.

Few units. Because lower cells are likelier, some units are needed to outweigh that, and a cut far below all totals would leave
nearly nothing of the sum. Therefore the first cells hold no totals (`EMPTY_CELLS`): where too few units have values, one of these
is chosen, whatever the values are, and the cut is the policy's own bound. That is a function of the released cell alone.

The total is in the norm of the clip: the sum of the absolute values of a unit's sums in all groups or, where only one block reads
the cut and noise is likely Gaussian (rho), the square root of the sum of their squares. This affects only errors, because the
clip is enforced separately, whatever C is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.contract import SharedPart
from dpsql.aggregates.registry import aggregate_of
from dpsql.aggregates.total_cut import TOTAL_CUT
from dpsql.functions.canonical_conditions import with_canonical_conditions
from dpsql.functions.signatures import call
from dpsql.plan.combinations import group_count
from dpsql.plan.intervals import Facts, Type, literal_facts
from dpsql.plan.plan import (
    Block,
    Column,
    Expr,
    Literal,
    Measure,
    Plan,
    Relation,
    Result,
    TotalCut,
    UnitAggregate,
)
from dpsql.plan.stability import owned, rows_per_unit
from dpsql.policy import Policy
from dpsql.pricing.total_cuts import EMPTY_CELLS, STEPS, WIDE_CELLS, WIDE_DOUBLINGS, last_cell
from dpsql.sql.parser import parse_text

FALL = Fraction(1, 3)
"""Decrease of the logarithm of a cell's weight from cell to cell, so that the weight is about 1 / C**2. A cut above all totals
costs noise in proportion to C; with these weights such cuts cost on average about as much as the lowest of them."""
PRIVATE_GROUPS = 10
"""Assumed number of groups of private keys, because the actual number is not public."""
OFF_VALUES = Fraction(8909, 10_000)
"""Factor that moves the grid's ends away from round totals, which engines could put into different cells by the last bit of a
logarithm."""
DOUBLINGS = 24
"""Number of halvings from the largest value of a row, or a smaller total of a unit that the policy allows, to the grid's lower
end; its upper end is the largest total of a unit."""


def with_cuts(plan: Plan, policy: Policy, squared: bool) -> Plan:
    """Return the plan with a cut for each SUM or AVG argument whose sum a unit can change; unchanged where there is none.
    `squared`: totals are in the norm of Gaussian noise where only one block reads the cut."""
    readers: dict[tuple[Relation, Expr, Expr | None], list[Block]] = {}
    for block in map(with_canonical_conditions, plan.blocks):
        for value, condition in _summed(block, policy):
            readers.setdefault((block.source, value, condition), []).append(block)
    if not readers:
        return plan
    blocks, results, cuts = list(plan.blocks), list(plan.results), list(plan.cuts)
    for number, ((source, value, condition), read_by) in enumerate(readers.items()):
        rows = rows_per_unit(source, policy)
        most = _most_of_a_row(value)
        largest = most * rows
        if isinstance(value, Column) and value.facts.max_total is not None:
            largest = min(largest, value.facts.max_total)
        least = min(most, largest) * OFF_VALUES / 2**DOUBLINGS
        names = tuple(dict.fromkeys(block.name for block in read_by))
        cut = TotalCut(f"dp_cut_{number}", f"dp_totals_{number}", names, value, condition, least, largest)
        total = _total(read_by[0], cut, rows, squared and len(names) == 1)
        first = next(place for place, block in enumerate(blocks) if block.name in names)
        blocks.insert(first, _choosing(cut, *total, max(map(groups_of, read_by))))
        results.append(_result(cut))
        cuts.append(cut)
    return replace(plan, blocks=tuple(blocks), results=tuple(results), cuts=tuple(cuts))


def _summed(block: Block, policy: Policy) -> Iterator[tuple[Expr, Expr | None]]:
    """Yield the values and conditions of SUM and AVG over rows that belong to units."""
    if not owned(block.source, policy):
        return
    for measure in block.measures:
        summing = SharedPart.SUM in (aggregate_of(measure.aggregate).shared or SharedPart(0))
        if summing and not measure.distinct and _can_move(measure.arguments[0]):
            yield measure.arguments[0], measure.filter


def _can_move(value: Expr) -> bool:
    """Return whether a row may have a value other than 0, between known bounds."""
    return value.facts.bounded and _most_of_a_row(value) > 0


def groups_of(block: Block) -> int:
    """Return the number of groups of a block, as far as it is public."""
    if any(key.values is None for key in block.keys):
        return PRIVATE_GROUPS
    return max(1, group_count([key.values for key in block.keys], block.combinations))


def _most_of_a_row(value: Expr) -> Fraction:
    """Return the largest absolute value of one row."""
    return max(abs(Fraction(value.facts.lower)), abs(Fraction(value.facts.upper)))


def _total(block: Block, cut: TotalCut, rows: int, squared: bool) -> tuple[Relation, Expr]:
    """Return a relation with one row per unit, and the expression of the unit's total in it (NULL for a unit without values)."""
    facts = cut.value.facts
    whole = _most_of_a_row(cut.value) * rows
    value = call("to_real", cut.value)
    one_sign = facts.lower >= 0 or facts.upper <= 0
    keyed = bool(block.keys) and (squared or not one_sign)
    sums = Facts(Type.REAL, -whole, whole)
    keys = tuple((f"g{number}", key.expression) for number, key in enumerate(block.keys)) if keyed else ()
    relation: Relation = UnitAggregate(block.source, keys, (("s", "sum", value, cut.filter, sums),))
    total: Expr = Column("s", sums)
    if keyed:
        part = call("mul", total, total) if squared else call("abs", total)
        most = whole * whole if squared else whole * rows
        together = Facts(Type.REAL, Fraction(0), most)
        relation = UnitAggregate(relation, (), (("t", "sum", part, None, together),))
        total = call("sqrt", Column("t", together)) if squared else Column("t", together)
    else:
        total = call("abs", total)
    return relation, total


def _choosing(cut: TotalCut, units: Relation, total: Expr, groups: int) -> Block:
    """Return the block that chooses the cell of a large total. A total is in the first cell whose end (`cut_at`) is no
    smaller."""
    ratio = call("clamp", call("div", total, _real(cut.least)), _real(Fraction(1)), _real(2 * cut.most / cut.least))
    log = call("ln", ratio)
    wide = WIDE_CELLS * WIDE_DOUBLINGS
    places = [
        call("add", _real(Fraction(first)), call("ceil", call("mul", _real(Fraction(steps / math.log(2))), behind)))
        for first, steps, behind in (
            (EMPTY_CELLS, 1 / WIDE_DOUBLINGS, log),
            (EMPTY_CELLS + WIDE_CELLS, STEPS, call("sub", log, _real(Fraction(wide * math.log(2))))),
        )
    ]  # the larger number is the right one: each is the smaller where the other applies
    ends = (_real(Fraction(EMPTY_CELLS)), _real(Fraction(last_cell(cut))))
    cell = call("to_integer", call("clamp", call("greatest", *places), *ends))
    nothing = Literal(0, literal_facts(0))
    cell = call("coalesce", cell, nothing)  # a unit without values is above no cell
    lean = (Literal(groups, literal_facts(groups)), _real(FALL))
    return Block(cut.block, units, (), (Measure("m0", TOTAL_CUT, (cell, *lean), False, None),))


def _result(cut: TotalCut) -> Result:
    """Return the result that computes the released bound: `cut_at`, as SQL of the sandbox."""
    behind = f"(m0 - {EMPTY_CELLS})"
    wide = f"least({behind}, {WIDE_CELLS})"
    doublings = f"({wide} * {WIDE_DOUBLINGS} + ({behind} - {wide}) / {STEPS}::DOUBLE)"
    most = f"{float(cut.most)!r}::DOUBLE"
    end = f"least({float(cut.least)!r}::DOUBLE * pow(2, {doublings}), {most})"
    text = f"SELECT CASE WHEN m0 < {EMPTY_CELLS} THEN {most} ELSE {end} END AS c0"
    query = parse_text(f"{text} FROM {cut.block}")
    assert isinstance(query, exp.Query)
    facts = Facts(Type.REAL, cut.least, cut.most, nullable=False)
    return Result(cut.result, query, (Column("c0", facts),), ((),))


def _real(value: Fraction) -> Literal:
    return Literal(value, literal_facts(value))
