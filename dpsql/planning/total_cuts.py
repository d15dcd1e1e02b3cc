"""`dp.max_total = auto`: the bound on what one unit adds to a SUM is chosen privately, as the first step of the question.
`dp.max_count = auto` is the same for COUNT, as SUM(1).

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

`dp.max_values = auto`: how many different values each unit brings to a COUNT(DISTINCT x) is chosen privately, as step one of
the question.

Step one is a separate block over the units, as in `planning.total_cuts`: the number of each unit's different pairs of a group and
a value (one row per unit, `UnitAggregate`) falls into a cell, and the exponential mechanism chooses a cell near the r-th largest
number (`privacy.mechanisms.exponential`, leaning choices: a unit changes every distance by 0 or 1, all in one direction). The
number of places l at the end of that cell is released.

Step two counts the values that are in the first l places of some unit (`engine.emit.value_places`), each as b / l, where b is a
public number that every l divides (`pricing.sum_terms.whole_share`); the answer is l / b times that. An added unit brings at
most l values, so b in total: the term's sensitivity and noise follow from b whatever l is, fixed by the text and the policy
before anything is measured. The number l only decides which function of the rows is summed, as any released number may, and both
losses add up by the argument of `session.stages`.

Why the r-th largest. One more place costs E|noise| / l more error and brings at most one value for each unit that has that many.
So both are equal where about 1 / epsilon units per group have more, or with fewer places, because different units often bring the
same value. Knop and Steinke (2023) choose by the number of values that l places bring. That measures what is lost, but changes by
up to l where a unit is added, so that its choice errs by some 20 values for each place at epsilon 1/2; it is better only where
nearly every value is shared (docs/evidence/accuracy.md compares both).

Few units. The first cells hold no numbers: where too few units have values, one of these is chosen, and l is its largest possible
value, which no unit exceeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.contract import SharedPart, aggregate_of
from dpsql.aggregates.quantile import TOTAL_CUT
from dpsql.functions.numeric import both
from dpsql.functions.signatures import call
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    Block,
    Column,
    Expr,
    Measure,
    Plan,
    Project,
    Relation,
    Result,
    TotalCut,
    UnitAggregate,
    group_count,
    literal,
)
from dpsql.plan.stability import owned, rows_per_unit, tables
from dpsql.policy import Policy
from dpsql.policy.types import smallest
from dpsql.pricing.sum_terms import (
    EMPTY_CELLS,
    STEPS,
    WIDE_CELLS,
    WIDE_DOUBLINGS,
    last_cell,
    places_facts,
    places_up_to,
)
from dpsql.sql.parser import parse_text
from dpsql.storage.records import replace

FALL = Fraction(1, 3)
"""Decrease of the logarithm of a cell's weight from cell to cell, so that the weight is about 1 / C**2. A cut above all totals
costs noise in proportion to C; with these weights such cuts cost on average about as much as the lowest of them."""
_ONE = literal(1)
PRIVATE_GROUPS = 10
"""Assumed number of groups of private keys, because the actual number is not public."""
OFF_VALUES = Fraction(8909, 10_000)
"""Factor that moves the grid's ends away from round totals, which engines could put into different cells by the last bit of a
logarithm."""
DOUBLINGS = 24
"""Number of halvings from the largest value of a row, or a smaller total of a unit that the policy allows, to the grid's lower
end; its upper end is the largest total of a unit."""


def with_cuts(plan: Plan, policy: Policy, squared: bool, totals: bool, counts: bool) -> Plan:
    """Return the plan with a cut for each SUM or AVG argument whose sum a unit can change (`totals`), and for each COUNT of rows
    of which it may have several (`counts`); unchanged where there is none. `squared`: totals are in the norm of Gaussian noise
    where only one block reads the cut."""
    readers: dict[tuple[Relation, Expr, Expr | None], list[Block]] = {}
    if counts:
        plan = replace(plan, blocks=tuple(_with_sums_of_ones(block, policy) for block in plan.blocks))
    for block in plan.blocks:
        for value, condition in _summed(block, policy):
            if not (totals or (counts and value == _ONE)):
                continue
            readers.setdefault((block.source, value, condition), []).append(block)
    if not readers:
        return plan
    steps: list[tuple[TotalCut, Block, Result]] = []
    for number, ((source, value, condition), read_by) in enumerate(readers.items()):
        rows = rows_per_unit(source, policy)
        most = _most_of_a_row(value)
        option = "max_count" if counts and value == _ONE else "max_total"
        largest = most * rows
        if isinstance(value, Column) and value.facts.max_total is not None:
            largest = min(largest, value.facts.max_total)
        if option == "max_count":
            declared = (policy.tables[name].bounds.max_count for name in tables(source))
            largest = min(largest, *(Fraction(bound) for bound in declared if bound is not None), largest)
        least = min(most, largest) * OFF_VALUES / 2**DOUBLINGS
        names = tuple(dict.fromkeys(block.name for block in read_by))
        cut = TotalCut(f"dp_cut_{number}", f"dp_totals_{number}", names, value, condition, least, largest, option)
        total = _total(read_by[0], cut, rows, squared and len(names) == 1)
        steps.append((cut, _choosing(cut, *total, max(map(groups_of, read_by))), _result(cut)))
    return _with_steps(plan, steps)


def _with_sums_of_ones(block: Block, policy: Policy) -> Block:
    """Return the block with SUM(1) for each COUNT(*) and COUNT(x) of rows of which a unit may have several."""
    if not owned(block.source, policy) or rows_per_unit(block.source, policy) == 1:
        return block
    return replace(block, measures=tuple(map(_sum_of_ones, block.measures)))


def _sum_of_ones(measure: Measure) -> Measure:
    if measure.aggregate != "count":
        return measure
    condition = measure.filter
    for value in measure.arguments:
        is_real = value.facts.type is Type.REAL  # of which NaN is no value
        read = call("clamp", value, literal(0), literal(1)) if is_real else value
        condition = both(condition, call("not", call("is_null", read)))
    return replace(measure, aggregate="sum", arguments=(_ONE,), filter=condition)


def _with_steps(plan: Plan, steps: list[tuple[TotalCut, Block, Result]]) -> Plan:
    """Return the plan with each choice, its block before the first one that reads it, and the result that computes the bound."""
    blocks = list(plan.blocks)
    for cut, choosing, _ in steps:
        first = next(position for position, block in enumerate(blocks) if block.name in cut.readers)
        blocks.insert(first, choosing)
    results, cuts = tuple(result for _, _, result in steps), tuple(cut for cut, _, _ in steps)
    return replace(plan, blocks=tuple(blocks), results=(*plan.results, *results), cuts=(*plan.cuts, *cuts))


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
    """Return the block that chooses the cell of a large total: the first whose end (`cut_at`) is no smaller than the total."""
    ratio = call(
        "clamp", call("div", total, literal(cut.least)), literal(Fraction(1)), literal(2 * cut.most / cut.least)
    )
    units, log = Project(units, (("ratio", ratio),)), call("ln", Column("ratio", ratio.facts))  # each computed once
    units, behind_least = Project(units, (("log", log),)), Column("log", log.facts)
    wide = WIDE_CELLS * WIDE_DOUBLINGS
    indexes = [
        call("add", literal(Fraction(first)), call("ceil", call("mul", literal(Fraction(steps / math.log(2))), behind)))
        for first, steps, behind in (
            (EMPTY_CELLS, 1 / WIDE_DOUBLINGS, behind_least),
            (EMPTY_CELLS + WIDE_CELLS, STEPS, call("sub", behind_least, literal(Fraction(wide * math.log(2))))),
        )
    ]  # the larger number is the right one: each is the smaller where the other applies
    ends = (literal(Fraction(EMPTY_CELLS)), literal(Fraction(last_cell(cut))))
    cell = call("to_integer", call("clamp", call("greatest", *indexes), *ends))
    cell = call("coalesce", cell, literal(0))  # a unit without values is above no cell
    return Block(cut.block, units, (), (Measure("m0", TOTAL_CUT, (cell, literal(groups), literal(FALL)), False, None),))


def _result(cut: TotalCut) -> Result:
    """Return the result that computes the released bound: `cut_at`, as SQL of the sandbox."""
    behind = f"(m0 - {EMPTY_CELLS})"
    wide = f"least({behind}, {WIDE_CELLS})"
    doublings = f"({wide} * {WIDE_DOUBLINGS} + ({behind} - {wide}) / {STEPS}::DOUBLE)"
    most = f"{float(cut.most)!r}::DOUBLE"
    end = f"least({float(cut.least)!r}::DOUBLE * pow(2, {doublings}), {most})"
    text = f"SELECT CASE WHEN m0 < {EMPTY_CELLS} THEN {most} ELSE {end} END AS c0"
    return _computed(cut, text, Facts(Type.REAL, cut.least, cut.most, nullable=False))


def _computed(cut: TotalCut, select: str, facts: Facts) -> Result:
    """Return the result of a SELECT over the row of the released cell."""
    query = parse_text(f"{select} FROM {cut.block}")
    assert isinstance(query, exp.Query)
    return Result(cut.result, query, (Column("c0", facts),), ((),))


# --- numbers of values ------------------------------------------------------------------------------------------------

VALUES_FALL = Fraction(2, 3)
"""Decrease of the logarithm of a cell's weight from cell to cell: twice that of `FALL`, because there are
half as many cells per doubling, so that weights are about 1 / l**2, too."""


def with_places(plan: Plan, policy: Policy) -> Plan:
    """Return the plan with a choice of places for each COUNT(DISTINCT x) over rows of which a unit may have several."""
    readers: dict[tuple[Relation, Expr, Expr | None, tuple[Expr, ...]], list[Block]] = {}
    for block in plan.blocks:
        keys = tuple(key.expression for key in block.keys)
        for value, condition in dict.fromkeys(_counted(block, policy)):
            readers.setdefault((block.source, value, condition, keys), []).append(block)
    steps: list[tuple[TotalCut, Block, Result]] = []
    for number, ((source, value, condition, keys), read_by) in enumerate(readers.items()):
        declared = (policy.tables[name].bounds.max_values for name in tables(source))
        most = smallest(rows_per_unit(source, policy), *declared)
        assert most is not None
        named = (f"dp_places_{number}", f"dp_values_{number}", tuple(block.name for block in read_by))
        cut = TotalCut(*named, value, condition, Fraction(1), Fraction(most), "max_values")
        chosen = _choosing_values(cut, source, keys, rows_per_unit(source, policy), max(map(groups_of, read_by)))
        steps.append((cut, chosen, _places_of(cut)))
    return _with_steps(plan, steps)


def _counted(block: Block, policy: Policy) -> Iterator[tuple[Expr, Expr | None]]:
    """Yield the values and conditions of COUNT(DISTINCT x) over rows of which a unit may have several."""
    if owned(block.source, policy) and rows_per_unit(block.source, policy) > 1:
        for measure in block.measures:
            if measure.aggregate == "count_distinct":
                yield measure.arguments[0], measure.filter


def _choosing_values(cut: TotalCut, source: Relation, keys: tuple[Expr, ...], rows: int, groups: int) -> Block:
    """Return the block that chooses the cell of a large number of values: the first whose end is no smaller than it."""
    number = Facts(Type.INTEGER, Fraction(0), Fraction(rows), nullable=False)
    names = tuple((f"g{index}", key) for index, key in enumerate(keys))
    pairs = UnitAggregate(source, (*names, ("v", cut.value)), (("c", "count", cut.value, cut.filter, number),))
    present = call("gt", Column("c", number), literal(0))
    units = UnitAggregate(pairs, (), (("n", "count", None, present, number),))
    ends = [0, *places_up_to(int(cut.most))]
    cells = [0, *range(EMPTY_CELLS, EMPTY_CELLS + len(ends) - 1)]
    branches = [
        part
        for end, cell in zip(ends[:-1], cells[:-1], strict=True)
        for part in (call("le", Column("n", number), literal(end)), literal(cell))
    ]
    cell = call("case", *branches, literal(cells[-1]))
    lean = (literal(groups), literal(VALUES_FALL))
    return Block(cut.block, units, (), (Measure("m0", TOTAL_CUT, (cell, *lean), False, None),))


def _places_of(cut: TotalCut) -> Result:
    """Return the result that computes the released number of places: `pricing.sum_terms.cut_at`, as SQL of the sandbox."""
    ends = places_up_to(int(cut.most))
    cases = " ".join(f"WHEN {EMPTY_CELLS + index} THEN {end}" for index, end in enumerate(ends))
    return _computed(cut, f"SELECT CAST(CASE m0 {cases} ELSE {ends[-1]} END AS BIGINT) AS c0", places_facts(cut))
