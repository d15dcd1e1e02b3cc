"""`dp.max_values = auto`: how many different values each unit brings to a COUNT(DISTINCT x) is chosen privately, as step one of
the question.

Step one is a separate block over the units, as in `planning.total_cuts`: the number of each unit's different pairs of a group and
a value (one row per unit, `UnitAggregate`) falls into a cell, and the exponential mechanism chooses a cell near the r-th largest
number (`privacy.mechanisms.exponential`, leaning choices: a unit changes every distance by 0 or 1, all in one direction). The
number of places l at the end of that cell is released.

Step two counts the values that are in the first l places of some unit (`engine.emit.value_places`), each as b / l, where b is a
public number that every l divides (`pricing.total_cuts.whole_share`); the answer is l / b times that. An added unit brings at
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

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.total_cut import TOTAL_CUT
from dpsql.functions.canonical_conditions import with_canonical_conditions
from dpsql.functions.signatures import call
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
from dpsql.plan.stability import owned, rows_per_unit, tables
from dpsql.planning.total_cuts import groups_of
from dpsql.policy import Policy
from dpsql.policy.bounds import smallest
from dpsql.pricing.total_cuts import EMPTY_CELLS, places_facts, places_up_to
from dpsql.sql.parser import parse_text

FALL = Fraction(2, 3)
"""Decrease of the logarithm of a cell's weight from cell to cell: twice that of `planning.total_cuts.FALL`, because there are
half as many cells per doubling, so that weights are about 1 / l**2, too."""


def with_places(plan: Plan, policy: Policy) -> Plan:
    """Return the plan with a choice of places for each COUNT(DISTINCT x) over rows of which a unit may have several; unchanged
    where there is none."""
    readers: dict[tuple[Relation, Expr, Expr | None, tuple[Expr, ...]], list[Block]] = {}
    for block in map(with_canonical_conditions, plan.blocks):
        keys = tuple(key.expression for key in block.keys)
        for value, condition in dict.fromkeys(_counted(block, policy)):
            readers.setdefault((block.source, value, condition, keys), []).append(block)
    blocks, results, cuts = list(plan.blocks), list(plan.results), list(plan.cuts)
    for number, ((source, value, condition, keys), read_by) in enumerate(readers.items()):
        declared = (policy.tables[name].bounds.max_values for name in tables(source))
        most = smallest(rows_per_unit(source, policy), *declared)
        assert most is not None
        names = tuple(block.name for block in read_by)
        cut = TotalCut(
            f"dp_places_{number}", f"dp_values_{number}", names, value, condition, Fraction(1), Fraction(most), True
        )
        first = next(place for place, block in enumerate(blocks) if block.name in names)
        blocks.insert(first, _choosing(cut, source, keys, rows_per_unit(source, policy), max(map(groups_of, read_by))))
        results.append(_result(cut))
        cuts.append(cut)
    return replace(plan, blocks=tuple(blocks), results=tuple(results), cuts=tuple(cuts))


def _counted(block: Block, policy: Policy) -> Iterator[tuple[Expr, Expr | None]]:
    """Yield the values and conditions of COUNT(DISTINCT x) over rows of which a unit may have several."""
    if owned(block.source, policy) and rows_per_unit(block.source, policy) > 1:
        for measure in block.measures:
            if measure.aggregate == "count_distinct":
                yield measure.arguments[0], measure.filter


def _choosing(cut: TotalCut, source: Relation, keys: tuple[Expr, ...], rows: int, groups: int) -> Block:
    """Return the block that chooses the cell of a large number of values. A number is in the first cell whose end is no
    smaller."""
    number = Facts(Type.INTEGER, Fraction(0), Fraction(rows), nullable=False)
    names = tuple((f"g{place}", key) for place, key in enumerate(keys))
    pairs = UnitAggregate(source, (*names, ("v", cut.value)), (("c", "count", cut.value, cut.filter, number),))
    present = call("gt", Column("c", number), _whole(0))
    units = UnitAggregate(pairs, (), (("n", "count", None, present, number),))
    ends = [0, *places_up_to(int(cut.most))]
    cells = [0, *range(EMPTY_CELLS, EMPTY_CELLS + len(ends) - 1)]
    branches = [
        part
        for end, cell in zip(ends[:-1], cells[:-1], strict=True)
        for part in (call("le", Column("n", number), _whole(end)), _whole(cell))
    ]
    cell = call("case", *branches, _whole(cells[-1]))
    lean = (_whole(groups), Literal(FALL, literal_facts(FALL)))
    return Block(cut.block, units, (), (Measure("m0", TOTAL_CUT, (cell, *lean), False, None),))


def _result(cut: TotalCut) -> Result:
    """Return the result that computes the released number of places: `pricing.total_cuts.cut_at`, as SQL of the sandbox."""
    ends = places_up_to(int(cut.most))
    cases = " ".join(f"WHEN {EMPTY_CELLS + place} THEN {end}" for place, end in enumerate(ends))
    text = f"SELECT CAST(CASE m0 {cases} ELSE {ends[-1]} END AS BIGINT) AS c0 FROM {cut.block}"
    query = parse_text(text)
    assert isinstance(query, exp.Query)
    return Result(cut.result, query, (Column("c0", places_facts(cut)),), ((),))


def _whole(value: int) -> Literal:
    return Literal(value, literal_facts(value))
