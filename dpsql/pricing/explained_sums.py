"""Sums in EXPLAIN: as short SQL, and those under a bound that is chosen first (`dp.max_total = auto`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dpsql.plan.expression_text import expression_text
from dpsql.plan.plan import Expr, Plan
from dpsql.pricing.pricing import PricedBlock
from dpsql.pricing.total_cuts import is_share

Row = TypeVar("Row")
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
TIMES_THE_CUT = "times the bound that is chosen first (dp.max_total = auto)"
"""At the end of `PlannedOutput.bound` of a sum whose noise follows from a released bound."""


def in_cuts(rows: Sequence[Row], priced: PricedBlock, plan: Plan, confidence: float) -> Iterator[Row]:
    """Yield the rows of the terms of a block (`explain.PlannedOutput`): in multiples of a bound, where one is chosen first."""
    cuts = [cut for cut in plan.cuts if priced.block.name in cut.readers]
    for row, noisy in zip(rows, priced.noise.terms, strict=True):
        term = next((term for term in priced.block.terms if term.name == noisy.name), None)
        cut = next((cut for cut in cuts if is_share(term, cut)), None)
        if cut is None:
            yield row
            continue
        output: Any = row
        width = f"{PLUS_MINUS} {output.error_95:.3g} ({confidence * 100:.4g} %)"
        bound = f"{output.bound.partition(', clipped to')[0]}; {width} {TIMES_THE_CUT}"
        yield replace(output, aggregate=term_text("sum", cut.value, cut.filter, False), error_95=None, bound=bound)


def of_cut(rows: list[Row], plan: Plan, priced: PricedBlock) -> list[Row]:
    """Return the numbers of a block; of one that chooses a bound in words for people."""
    cut = next((cut for cut in plan.cuts if cut.block == priced.block.name), None)
    if cut is None:
        return rows
    text = f"bound on the {term_text('sum', cut.value, cut.filter, False)} of a unit"
    outputs: list[Any] = list(rows)
    return [replace(row, aggregate=text) for row in outputs]


def term_text(kind: str, value: Expr | None, condition: Expr | None, centred: bool) -> str:
    """Describe a term as SQL-like text."""
    inside = "*" if value is None else expression_text(value)
    text = {
        "count": f"count({inside})", "sum": f"{'centred ' if centred else ''}sum({inside})",
        "units": "count(distinct unit)", "distinct": f"count(distinct {inside})",
        "distinct sum": f"{'centred ' if centred else ''}sum(distinct {inside})",
    }[kind]  # fmt: skip
    return text if condition is None else f"{text} filter (where {expression_text(condition)})"
