"""One place for conditions on the same rows, wherever the query has them: in a subquery that is a side of a join, or in WHERE.

Conditions stand above joins, where WHERE has them; semi-joins of the same rows are in one order. Which rows a filter keeps, and
which of a unit's rows count (the bounded view is below all filters), does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dpsql.functions.canonical_conditions import in_canonical_form
from dpsql.functions.canonical_measures import with_canonical_conditions
from dpsql.functions.kept_rows import name_of
from dpsql.functions.public_domains import domain_of
from dpsql.plan.canonical_text import canonical_text, compared_fields, fingerprint
from dpsql.plan.origins import without_projections
from dpsql.plan.plan import (
    Block,
    Column,
    Expr,
    Filter,
    Join,
    Names,
    Project,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    filled,
    moved,
    named,
    names_read,
    types_of,
)
from dpsql.plan.stability import conjuncts, rows_per_unit, without_unread_results
from dpsql.policy import Policy
from dpsql.sql.binder.tested_rows import filtered, with_sides, with_tested_rows
from dpsql.storage.records import replace

Owners = Callable[[str], object]
"""Whether a table, by its name, has a condition of the policy's owner."""


def canonical_block(block: Block, policy: Policy) -> Block:
    """Return the block in the form that all texts of one question have. Keys are marked as narrowed only if their expression has
    other values: a subquery's name has no domain."""
    block = with_canonical_conditions(
        with_joined_filters(with_tested_rows(without_unread_results(without_projections(block)), policy), policy)
    )
    keys = tuple(
        replace(key, left="") if key.left and key.left == fingerprint(domain_of(key.expression)) else key
        for key in block.keys
    )
    return block if keys == block.keys else replace(block, keys=keys)


def with_joined_filters(block: Block, policy: Policy) -> Block:
    """Return the block with one filter for several on the same rows: the condition of a subquery and that of the query around it
    are those of one WHERE, also where the subquery is a side of a join. Semi-joins of the same rows are in one order, and so are
    the results of one unit's rows; a side that joins tables is joined table by table. The owner's condition on a table stays at
    the table."""
    source, names = _table_by_table(_with_one_filter(block.source, policy.row_filter), policy)
    if source is block.source:
        return block
    return replace(block, source=source, keys=named(block.keys, names), measures=named(block.measures, names))


def _table_by_table(relation: Relation, policy: Policy) -> tuple[Relation, Names]:
    """Return a JOIN (b JOIN c) as (a JOIN b) JOIN c where a is compared with b alone, and the names of columns that change."""
    if isinstance(relation, Filter):
        rows, names = _table_by_table(relation.source, policy)
        return (relation, {}) if rows is relation.source else (Filter(rows, named(relation.predicate, names)), names)
    if isinstance(relation, SemiJoin):
        (left, names), (right, of_right) = (_table_by_table(side, policy) for side in (relation.left, relation.right))
        return with_sides(relation, left, names, right, of_right)
    if isinstance(relation, UnitAggregate):
        return _results_in_order(relation, policy)
    if isinstance(relation, Project):
        rows, names = _table_by_table(relation.source, policy)
        return (relation if rows is relation.source else Project(rows, named(relation.columns, names))), {}
    if not isinstance(relation, Join):
        return relation, {}
    (left, of_left), (right, of_right) = (_table_by_table(side, policy) for side in (relation.left, relation.right))
    names = {f"a.{old}": f"a.{new}" for old, new in of_left.items()}
    names |= {f"b.{old}": f"b.{new}" for old, new in of_right.items()}
    joined = replace(relation, left=left, right=right, keys=named(relation.keys, names)) if names else relation
    compared = {name for _, key in joined.keys for name in names_read(key)}
    if not isinstance(right, Join) or {joined.kind, right.kind} != {"inner"} or not _all_with("b.a.", compared):
        return joined, names
    new_names = {f"a.{name}": f"a.a.{name}" for name in types_of(left)} | {
        f"b.b.{name}": f"b.{name}" for name in types_of(right.right)
    }
    new_names |= {f"b.a.{name}": f"a.b.{name}" for name in types_of(right.left)}
    first = Join(
        left, right.left, "inner", named(joined.keys, {name: f"b.{name[4:]}" for name in compared}), joined.on_unit
    )
    keys = tuple((moved("a.b.", moved("a.", key, down=True)), other) for key, other in right.keys)
    turned, again = _table_by_table(Join(first, right.right, "inner", keys, right.on_unit), policy)
    if rows_per_unit(turned, policy) > rows_per_unit(joined, policy):
        return joined, names
    new_names = {old: again.get(new, new) for old, new in new_names.items()}
    return turned, new_names | {old: new_names.get(new, new) for old, new in names.items()}


def _results_in_order(relation: UnitAggregate, policy: Policy) -> tuple[Relation, Names]:
    """Return the keys and the results of a unit's rows in the order of their texts, and their new names."""
    rows, below = _table_by_table(relation.source, policy)
    keys, columns = (named(in_canonical_form(part), below) for part in (relation.keys, relation.columns))
    keys = sorted(keys, key=lambda key: name_of(key[1]))
    columns = sorted(columns, key=lambda column: name_of(UnitAggregate(rows, (), (("", *column[1:]),))))
    names = {key[0]: f"g{number}" for number, key in enumerate(keys)}
    names |= {column[0]: f"a{number}" for number, column in enumerate(columns)}
    if rows is relation.source and all(old == new for old, new in names.items()):
        return relation, {}
    named_keys = tuple((names[name], value) for name, value in keys)
    return UnitAggregate(rows, named_keys, tuple((names[name], *rest) for name, *rest in columns)), names


def _all_with(prefix: str, names: Iterable[str]) -> bool:
    return all(name.startswith(prefix) for name in names)


def _with_one_filter(relation: Relation, owners: Owners) -> Relation:
    rows, conditions = _unfiltered(relation, owners)
    rows, conditions = _numbered(rows, conditions)
    if conditions and isinstance(relation, Filter) and rows is relation.source:
        return relation
    return filtered(rows, conditions)


def _numbered(rows: Relation, conditions: list[Expr]) -> tuple[Relation, list[Expr]]:
    """Return the rows with those conditions that read one side with windows alone at that side, as if its subquery had them: a
    number of a unit's rows bounds them (`stability`). Return the other conditions."""
    if not conditions or not isinstance(rows, (Join, SemiJoin)) or not _reads_windows(rows):
        return rows, conditions
    if isinstance(rows, SemiJoin):
        left, conditions = _numbered_side(rows.left, conditions)
        return _with_parts(rows, left=left), conditions
    left_over = [part for condition in conditions for part in conjuncts(condition)]
    for prefix, name in (("a.", "left"), ("b.", "right"))[: 1 if rows.kind == "left" else 2]:
        of_side = [part for part in left_over if (names := names_read(part)) and _all_with(prefix, names)]
        side, remaining = _numbered_side(getattr(rows, name), [moved(prefix, part, down=True) for part in of_side])
        rows = _with_parts(rows, **{name: side})
        if len(remaining) < len(of_side):
            left_over = [part for part in left_over if part not in of_side] + [
                moved(prefix, part) for part in remaining
            ]
    return rows, left_over


def _numbered_side(side: Relation, conditions: list[Expr]) -> tuple[Relation, list[Expr]]:
    if not _over_windows(side):
        return _numbered(side, conditions)
    if isinstance(side, Project) and conditions:
        defined = dict(side.columns)
        conditions = [
            filled(part, lambda c: defined.get(c.name, c) if isinstance(c, Column) else c) for part in conditions
        ]
        return replace(side, source=_numbered_side(side.source, conditions)[0]), []
    if isinstance(side, Filter) and conditions:
        return filtered(side.source, [*conditions, *conjuncts(side.predicate)]), []
    return filtered(side, conditions), []


def _reads_windows(relation: Relation) -> bool:
    if isinstance(relation, (Join, SemiJoin)):
        return _reads_windows(relation.left) or (isinstance(relation, Join) and _reads_windows(relation.right))
    return _over_windows(relation)


def _over_windows(relation: Relation) -> bool:
    while isinstance(relation, (Filter, Project)):
        relation = relation.source
    return isinstance(relation, UnitWindow)


def _unfiltered(relation: Relation, owners: Owners) -> tuple[Relation, list[Expr]]:
    """Return the rows of a relation without the filters that may as well stand above it, and their conditions."""
    if isinstance(relation, Filter):
        if isinstance(relation.source, Scan) and owners(relation.source.table):
            return relation, []
        rows, conditions = _unfiltered(relation.source, owners)
        return rows, [relation.predicate, *conditions]
    if isinstance(relation, Join):
        left, conditions = _side(relation.left, owners)
        right, of_right = (relation.right, []) if relation.kind != "inner" else _side(relation.right, owners)
        right = right if relation.kind == "inner" else _with_one_filter(right, owners)
        raised = [*(moved("a.", part) for part in conditions), *(moved("b.", part) for part in of_right)]
        return _with_parts(relation, left=left, right=right), raised
    if isinstance(relation, SemiJoin):
        left, conditions = _side(relation.left, owners)
        tested = _with_parts(relation, left=left, right=_with_one_filter(relation.right, owners))
        return _in_order(tested), conditions
    if isinstance(relation, Union_):
        sources = tuple(_with_one_filter(part, owners) for part in relation.sources)
        same = all(a is b for a, b in zip(sources, relation.sources, strict=True))
        return relation if same else Union_(sources), []
    if isinstance(relation, (Scan, ReleasedRows)):
        return relation, []
    return _with_parts(relation, source=_with_one_filter(relation.source, owners)), []


def _side(relation: Relation, owners: Owners) -> tuple[Relation, list[Expr]]:
    """Return the rows of one side of a join, and the conditions that may stand above the join. Conditions on a row's number stay
    where they are: they bound the rows of a unit (`stability`)."""
    if _over_windows(relation):
        return _with_one_filter(relation, owners), []
    return _unfiltered(relation, owners)


def _with_parts(relation: Any, **parts: Relation) -> Any:
    same = all(getattr(relation, name) is part for name, part in parts.items())
    return relation if same else replace(relation, **parts)


def _in_order(relation: SemiJoin) -> SemiJoin:
    """Return semi-joins of the same rows in the order of their texts, in which `relation` may be at the wrong place."""
    below = relation.left
    if not isinstance(below, SemiJoin) or _tested(below) <= _tested(relation):
        return relation
    return replace(below, left=_in_order(replace(relation, left=below.left)))


def _tested(relation: SemiJoin) -> str:
    return canonical_text(tuple(getattr(relation, name) for name in compared_fields(SemiJoin) or () if name != "left"))
