"""Removal of subqueries that only rename columns: SELECT COUNT(*) FROM (SELECT * FROM t) asks the same as SELECT COUNT(*) FROM t.

Tools put such a SELECT around every table. Without it the question equals an earlier question and is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dpsql.plan.plan import Block, Column, Expr, Filter, Project, Relation, filled


def without_renamings(block: Block) -> Block:
    """Return the block without the projections at the top of its source that only rename columns."""
    source, columns = _bare(block.source)
    if not columns:
        return block
    return replace(
        block,
        source=source,
        keys=tuple(replace(key, expression=_over(key.expression, columns)) for key in block.keys),
        measures=tuple(_over(measure, columns) for measure in block.measures),
    )


def _bare(relation: Relation) -> tuple[Relation, Mapping[str, Expr]]:
    """Return the relation without such projections, and the original column of each name; an empty mapping if none was
    removed."""
    if isinstance(relation, Project) and all(isinstance(expression, Column) for _, expression in relation.columns):
        source, columns = _bare(relation.source)
        return source, {name: columns.get(expression.name, expression) for name, expression in _named(relation)}
    if isinstance(relation, Filter):
        source, columns = _bare(relation.source)
        if columns:
            return Filter(source, _over(relation.predicate, columns)), columns
    return relation, {}


def _named(relation: Project) -> list[tuple[str, Column]]:
    return [(name, expression) for name, expression in relation.columns if isinstance(expression, Column)]


def _over(value: Any, columns: Mapping[str, Expr]) -> Any:
    """Return an expression or a measure over the original columns."""
    return filled(value, lambda part: columns.get(part.name, part) if isinstance(part, Column) else part)
