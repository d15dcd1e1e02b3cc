"""What a question asks of an engine, and the first questions of the corpus that together ask all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

from sql.corpus import ACCEPTED, Case

from dpsql.plan.plan import BoundedBlock, Relation
from support.corpus_neighbours import Hospital


def traits(hospital: Hospital, case: Case) -> set[tuple[Any, ...]]:
    """Group of the corpus, aggregates, relations, kinds of keys and of terms, caps and other measurements of a question."""
    with hospital.none.options(case.marks.get("set", [])):
        statement = hospital.planner.parse(case.sql, case.parameters)
        planned = hospital.planner.plan(statement, hospital.none.session.options, not case.parameters)
    aggregates = {("aggregate", measure.aggregate) for block in planned.plan.blocks for measure in block.measures}
    return {("group", case.group), *aggregates}.union(*(_of(bounded.block) for bounded in planned.price.blocks))


def _of(block: BoundedBlock) -> Iterator[tuple[Any, ...]]:
    for relation in _relations(block.source):
        yield (
            "relation",
            type(relation).__name__,
            *(getattr(relation, name, None) for name in ("kind", "on_unit", "negated")),
        )
    for key in block.keys:
        yield "key", key.values is None, key.expression.facts.type
    for term in block.terms:
        yield "term", term.kind, term.value and term.value.facts.type, term.filter is None, not term.shares
    for measurement in block.measurements:
        yield "measurement", type(measurement).__name__
    caps = block.caps.bounds
    yield "caps", caps.max_groups is None, caps.max_rows_per_group is None, block.selection_term


def _relations(node: Any) -> Iterator[Any]:
    yield node
    for name in (entry.name for entry in fields(node)):
        value = getattr(node, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, get_args(Relation)):
                yield from _relations(part)


def covering(hospital: Hospital) -> frozenset[str]:
    """Every question of the corpus that has a trait which none before it has."""
    seen: set[tuple[Any, ...]] = set()
    chosen = []
    for case in ACCEPTED:
        new = traits(hospital, case) - seen
        if new:
            chosen.append(case.id)
        seen |= new
    return frozenset(chosen)
