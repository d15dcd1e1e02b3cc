"""Traits of a corpus query (what it requires of an engine, or what its text contains) and small subsets that cover all traits."""

import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import fields
from typing import Any, get_args

from sql.corpus import ACCEPTED, Case
from sqlglot import exp
from sqlglot.errors import ParseError

from dpsql.plan.plan import BoundedBlock, Relation
from support.corpus_neighbours import Hospital
from support.neighbouring_hospitals import tree_of

BESIDE = 12
"""Of the queries without new syntax, one in this many is chosen as well."""


def traits(hospital: Hospital, case: Case) -> set[tuple[Any, ...]]:
    """Return the query's corpus group, aggregates, relations, kinds of keys and of terms, caps and further measurements."""
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
        for window in getattr(relation, "windows", ()):
            yield "relation", window.word, not window.order
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


OF_BOUNDING = ("group", "relation", "caps", "measurement")
"""Kinds of traits that concern how rows are bounded and measured. Keys and terms are the same under every privacy unit."""


def covering(hospital: Hospital, kinds: Container[str] | None = None) -> frozenset[str]:
    """Return every query of the corpus that has a trait (of these kinds, unless None) which no earlier query has."""
    seen: set[tuple[Any, ...]] = set()
    chosen = []
    for case in ACCEPTED:
        own = {trait for trait in traits(hospital, case) if kinds is None or trait[0] in kinds}
        new = own - seen
        if new:
            chosen.append(case.id)
        seen |= new
    return frozenset(chosen)


def words(case: Case) -> Iterator[tuple[Any, ...]]:
    """Yield the theme, the kind of keys, the settings and the bounds of a query, and each kind of expression in its text, with
    joins and functions by name. A text that only dpsql's own parser reads yields its identifier instead. The query is not
    planned."""
    yield "theme", case.group, case.mark("keys")
    yield from (("setting", setting) for setting in case.marks.get("set", []))
    yield from (("bounds", name) for name in re.findall(r"contribution_bounds_per_\w+|\bmax_\w+", case.sql))
    try:
        tree = tree_of(case.sql)
    except ParseError:
        yield "text", case.id
        return
    for node in tree.walk():
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        yield type(node).__name__, name, *(str(node.args.get(part) or "") for part in ("kind", "side", "method"))


SYNTAX_OF_BOUNDING = frozenset([
    "theme", "setting", "bounds", "text", "Select", "Distinct", "Join", "Lateral", "Union", "Intersect", "Except", "CTE", "Subquery",
    "Window", "Exists", "In", "Pivot",
])  # fmt: skip
"""Words about how rows are bounded and measured, as `OF_BOUNDING` has them of plans."""


def spread(cases: Iterable[Case], kinds: Container[str] | None = None) -> list[Case]:
    """Return every query with syntax (of these kinds, unless None) that no earlier query has, and every twelfth of the others."""
    seen: set[tuple[Any, ...]] = set()
    chosen, others = [], 0
    for case in cases:
        new = {word for word in words(case) if kinds is None or word[0] in kinds} - seen
        seen |= new
        others += not new
        if new or others % BESIDE == 0:
            chosen.append(case)
    return chosen


SPREAD = spread(ACCEPTED)
"""The accepted queries with syntax of their own: by day, laws about every query are tried on these."""
