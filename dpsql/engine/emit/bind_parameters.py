"""Passing of the constants of comparisons to the engine as parameters.

A dashboard asks the same question with another date or another name. DuckDB takes as long to parse a generated text
as to plan it, and parsed texts are cached (`engine.duckdb.statements`): questions that differ only in such constants
share one text. DuckDB binds the values of parameters before it plans, so filters reach the scan and row groups are skipped
in the same way as with constants in the text. Each parameter is inside a CAST to the type of its literal.

Parameters replace constants on a side of a comparison and in the list of an IN, in WHERE and FILTER over rows.
Arguments of functions (units of time, patterns, formats) stay in the text, and so do bounds and grids, which come
from the policy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from math import isfinite
from typing import Any

from dpsql.engine.dialect import Dialect, Parameter, is_always_null
from dpsql.plan.plan import (
    BoundedBlock,
    Call,
    Distinct,
    Expr,
    Filter,
    Join,
    Literal,
    Project,
    Relation,
    SemiJoin,
    Term,
    TermKind,
    UnitAggregate,
    UnitWindow,
)

MOST_LISTED = 100
"""Longer lists of values stay in the text: two lists rarely have the same length, and every value is passed separately."""
_COMPARING = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in"})


@dataclass(frozen=True)
class Parametrised:
    """A block whose constants are `Parameter`s, and their values in order: int, float, str or date."""

    block: BoundedBlock
    values: tuple[Any, ...]


def parametrised(block: BoundedBlock, dialect: Dialect) -> Parametrised:
    """Replace the constants of comparisons in `block` by parameters. Equal constants share one parameter, so that
    equal expressions stay equal."""
    work = _Constants(dialect)
    source = work.relation(block.source)
    terms = tuple(
        replace(term, filter=work.expression(term.filter)) if term.filter is not None and not _follows(term) else term
        for term in block.terms
    )
    return Parametrised(replace(block, source=source, terms=terms) if work.values else block, tuple(work.values))


def _follows(term: Term) -> bool:
    """Return whether a term is computed from the value of its set (`emit.joint_sums`), so that its own filter is not written."""
    return bool(term.shares) and term.kind is TermKind.COUNT


class _Constants:
    """The parameters collected so far."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self.values: list[Any] = []
        self._parameters: dict[str, Parameter] = {}

    def relation(self, node: Relation) -> Relation:
        if isinstance(node, Filter):
            return Filter(self.relation(node.source), self.expression(node.predicate))
        if isinstance(node, (Project, UnitAggregate, UnitWindow, Distinct)):
            source = self.relation(node.source)
            return node if source is node.source else replace(node, source=source)
        if isinstance(node, (Join, SemiJoin)):
            left, right = self.relation(node.left), self.relation(node.right)
            return node if left is node.left and right is node.right else replace(node, left=left, right=right)
        return node

    def expression(self, node: Expr) -> Expr:
        if not isinstance(node, Call) or is_always_null(node):
            return node  # an expression that is not written takes no parameter
        comparing = node.function in _COMPARING and len(node.arguments) <= MOST_LISTED
        arguments = tuple(
            self._constant(part) if comparing and isinstance(part, Literal) else self.expression(part)
            for part in node.arguments
        )
        return Call(node.function, arguments, node.facts)

    def _constant(self, node: Literal) -> Literal:
        value = float(node.value) if isinstance(node.value, Fraction) else node.value
        if not _handed_over(value):
            return node
        written = self._dialect.constant(value)
        if written not in self._parameters:
            self.values.append(value)
            self._parameters[written] = Parameter(len(self.values), node.facts.type)
        return Literal(self._parameters[written], node.facts)


def _handed_over(value: Any) -> bool:
    """Return whether the engine receives exactly this value. Truth values and NULL change the meaning of a query text; before
    DuckDB 2 a text value ended at its first NUL."""
    if isinstance(value, str):
        return "\0" not in value
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (int, date)) and not isinstance(value, bool)
