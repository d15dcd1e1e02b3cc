"""`dp.max_total = auto`: the bound on what one unit adds to a SUM is chosen privately, as the first step of the question.

Step one is a block of its own over the units: the total of each unit (one row for each, `UnitAggregate`) falls into a cell of a
public geometric grid, and the exponential mechanism chooses a cell near the r-th largest total (`privacy.mechanisms.exponential`,
leaning). Its upper end C is released.

Step two sums clamp(x / C, -1, 1) of each row, clipped to 1 for each unit, and C times that is the answer. So nothing about
the second mechanism depends on C: its bounds, its grid, its sensitivity (1 for a unit, whatever C is) and its noise are fixed
by the text and the policy before anything is measured, and only the function of the rows that is summed follows from a number
that is released already. That is a question in stages, and the losses of both steps add up by the argument of `session.stages`;
both are reserved as one before the first. The product with C is computed from released numbers alone.

Why the r-th largest. A unit above C loses what it has beyond it, so a cut that is a little higher saves as much as there are
units above it, and costs E|noise| / C more noise: both are equal where about 1 / epsilon units for each group are above
(`exponential.leaning_choice`; Amin, Kulesza, Munoz and Vassilvitskii 2019 bound contributions by the same rule). So few rows of
rank do not keep a choice among equally likely cells inside the data, and a cut above all totals, up to the policy's own bound,
costs far more noise than a few units lose. So the choice leans: a cell's weight falls like 1 / C**2 beside what its rank says.

Few units. As lower cells are likelier, some units are needed to outweigh that, and a cut far below all totals would leave
nearly nothing of the sum. So the first cells hold no totals (`EMPTY_CELLS`): where too few units have values one of these is
chosen, whatever the values are, and the cut is the policy's own bound. That is a function of the released cell alone.

The total is in the norm of the clip: the sum of the absolute values of a unit's sums in all groups, or, where one block alone
reads the cut and noise is likely Gaussian (rho), the root of their squares. That matters for errors alone, as the clip is
enforced by itself, whatever C is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import sqlglot
from sqlglot import exp

from dpsql.aggregates.contract import SharedPart
from dpsql.aggregates.registry import aggregate_of
from dpsql.aggregates.total_cut import TOTAL_CUT
from dpsql.functions.neutral_conditions import without_neutral
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
from dpsql.sql.lexer import DIALECT

FALL = Fraction(1, 3)
"""By how much the logarithm of a cell's weight falls from cell to cell, so that its weight is about 1 / C**2: a cut above all
totals costs noise in proportion to C, so that what such cuts cost on average is about what the lowest of them costs."""
PRIVATE_GROUPS = 10
"""Groups of private keys are taken to be so many, as nobody knows their number."""
OFF_VALUES = Fraction(8909, 10_000)
"""The grid's ends are moved away from round totals, about whose cell engines might differ by the last bit of a logarithm."""
DOUBLINGS = 24
"""The grid reaches from the largest value of a row, or a smaller total of a unit that the policy allows, divided by 2 so many
times, to the largest total of a unit."""


def with_cuts(plan: Plan, policy: Policy, squared: bool) -> Plan:
    """Return the plan with a cut for each sum of SUM and AVG that a unit may move; as it is where there is none. `squared`: in
    the norm of Gaussian noise, where one block reads the cut."""
    readers: dict[tuple[Relation, Expr, Expr | None], list[Block]] = {}
    for block in map(without_neutral, plan.blocks):
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
    """Return whether a row may have another value than 0, between known bounds."""
    return value.facts.bounded and _most_of_a_row(value) > 0


def groups_of(block: Block) -> int:
    """Return how many groups a block has, as far as that is public."""
    if any(key.values is None for key in block.keys):
        return PRIVATE_GROUPS
    return max(1, group_count([key.values for key in block.keys], block.combinations))


def _most_of_a_row(value: Expr) -> Fraction:
    """Return the largest absolute value of one row."""
    return max(abs(Fraction(value.facts.lower)), abs(Fraction(value.facts.upper)))


def _total(block: Block, cut: TotalCut, rows: int, squared: bool) -> tuple[Relation, Expr]:
    """Return a relation of one row for each unit, and its total there (NULL for a unit without values)."""
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
    """Return the block that chooses the cell of a large total: the first one whose end (`cut_at`) is no smaller."""
    ratio = call("clamp", call("div", total, _real(cut.least)), _real(Fraction(1)), _real(2 * cut.most / cut.least))
    log = call("ln", ratio)
    wide = WIDE_CELLS * WIDE_DOUBLINGS
    places = [
        call("add", _real(Fraction(first)), call("ceil", call("mul", _real(Fraction(steps / math.log(2))), behind)))
        for first, steps, behind in (
            (EMPTY_CELLS, 1 / WIDE_DOUBLINGS, log),
            (EMPTY_CELLS + WIDE_CELLS, STEPS, call("sub", log, _real(Fraction(wide * math.log(2))))),
        )
    ]  # each has the smaller number where the other one counts
    ends = (_real(Fraction(EMPTY_CELLS)), _real(Fraction(last_cell(cut))))
    cell = call("to_integer", call("clamp", call("greatest", *places), *ends))
    nothing = Literal(0, literal_facts(0))
    cell = call("coalesce", cell, nothing)  # a unit without values is above no cell
    lean = (Literal(groups, literal_facts(groups)), _real(FALL))
    return Block(cut.block, units, (), (Measure("m0", TOTAL_CUT, (cell, *lean), False, None),))


def _result(cut: TotalCut) -> Result:
    """Return the released bound: `cut_at` in the sandbox."""
    behind = f"(m0 - {EMPTY_CELLS})"
    wide = f"least({behind}, {WIDE_CELLS})"
    doublings = f"({wide} * {WIDE_DOUBLINGS} + ({behind} - {wide}) / {STEPS}::DOUBLE)"
    most = f"{float(cut.most)!r}::DOUBLE"
    end = f"least({float(cut.least)!r}::DOUBLE * pow(2, {doublings}), {most})"
    text = f"SELECT CASE WHEN m0 < {EMPTY_CELLS} THEN {most} ELSE {end} END AS c0"
    query = sqlglot.parse_one(f"{text} FROM {cut.block}", read=DIALECT)
    assert isinstance(query, exp.Query)
    facts = Facts(Type.REAL, cut.least, cut.most, nullable=False)
    return Result(cut.result, query, (Column("c0", facts),), ((),))


def _real(value: Fraction) -> Literal:
    return Literal(value, literal_facts(value))
