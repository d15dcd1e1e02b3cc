"""ROLLUP, CUBE and GROUPING SETS: every set of keys is a separate private block (privacy.md 4); the result is their union."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, product
from math import prod

from sqlglot import exp

from dpsql.errors.exceptions import refuse
from dpsql.plan.plan import Key, Measure
from dpsql.sql.binder.base_tables import named_table
from dpsql.sql.binder.trees import SQL_TYPES
from dpsql.sql.lexer import place

MOST_SETS = 16
GROUPING = "#grouping "


def grouping_sets(items: list[exp.Expr]) -> list[tuple[exp.Expr, ...]]:
    """Return the grouping sets of the GROUP BY items: the cross product of the items' sets (SQL:1999), keeping repeated sets."""
    parts = [_expanded(item) for item in items]
    if prod(map(len, parts)) > MOST_SETS:
        raise refuse("clause", what=f"more than {MOST_SETS} grouping sets", position=place(items[0]))
    return [tuple(chain.from_iterable(combination)) for combination in product(*parts)]


def _expanded(item: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    if isinstance(item, exp.Rollup):
        parts = [_flat(part) for part in item.expressions]
        return [tuple(chain.from_iterable(parts[:count])) for count in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        parts = [_flat(part) for part in item.expressions]
        if len(parts) > 4:
            raise refuse("clause", what=f"more than {MOST_SETS} grouping sets", position=place(item))
        chosen = [c for count in range(len(parts), -1, -1) for c in combinations(parts, count)]
        return [tuple(chain.from_iterable(c)) for c in chosen]
    if isinstance(item, exp.GroupingSets):
        return [key_set for part in item.expressions for key_set in _expanded(part)]
    return [_flat(item)]


def _flat(item: exp.Expr) -> tuple[exp.Expr, ...]:
    """Return the keys of an item: (a, b) is two keys, () none, (a) and a are one."""
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def grouping_call(keys: list[str]) -> exp.Column:
    """Return GROUPING(a, b) as a column that `over_set` replaces by its number."""
    return exp.column(GROUPING + " ".join(keys), quoted=True)


def over_set(select: exp.Select, block: str, keys: list[Key], chosen: list[Key]) -> exp.Select:
    """Return the SELECT over the block of one grouping set: its keys by their names in that block (equal ones have one name),
    NULL for the other keys."""
    expressions = list(dict.fromkeys(key.expression for key in chosen))
    names = {key.name: f"k{expressions.index(key.expression)}" for key in chosen}
    types = {key.name: SQL_TYPES[key.expression.facts.type] for key in keys}
    copy = select.copy()
    for column in list(copy.find_all(exp.Column)):
        if column.name.startswith(GROUPING):
            bits = ["0" if name in names else "1" for name in column.name[len(GROUPING) :].split()]
            column.replace(exp.Literal.number(int("".join(bits), 2)))
        elif column.name in names:
            column.replace(exp.column(names[column.name], quoted=True))
        elif column.name in types:
            column.replace(exp.cast(exp.Null(), types[column.name], dialect="duckdb"))
    copy.set("from_", exp.From(this=named_table(block)))
    return copy


def columns_of_sets(
    select: exp.Select, order: exp.Expr | None, keys: Sequence[Key], measures: Sequence[Measure]
) -> exp.Select:
    """Return a SELECT of all keys, measures and GROUPING numbers. It is for a `select` and `order` with windows, which SQL
    computes over the union of all sets. GROUPING in both becomes a column of the returned SELECT."""
    numbers: dict[str, str] = {}
    for part in (select, *([] if order is None else [order])):
        for column in list(part.find_all(exp.Column)):
            if column.name.startswith(GROUPING):
                number = numbers.setdefault(column.name, f"g{len(numbers)}")
                column.replace(exp.column(number, quoted=True))
    names = {name: name for name in [*(key.name for key in keys), *(measure.name for measure in measures)]}
    columns = {**names, **numbers}.items()
    return exp.Select(
        expressions=[exp.alias_(exp.column(read, quoted=True), name, quoted=True) for read, name in columns]
    )


def over_union(select: exp.Select, selects: list[exp.Select], order: exp.Expr | None) -> exp.Select:
    """Return `select` over the union of the columns of all sets (`columns_of_sets`)."""
    select.set("from_", exp.From(this=_derived(selects)))
    if order is not None:
        select.set("order", order)
    return select


def _derived(selects: list[exp.Select]) -> exp.Subquery:
    union: exp.Query = selects[0]
    for following in selects[1:]:
        union = exp.Union(this=union, expression=following, distinct=False)
    return exp.Subquery(this=union, alias=exp.TableAlias(this=exp.to_identifier("q")))


def united(selects: list[exp.Select], node: exp.Select, order: exp.Expr | None) -> exp.Query:
    """Return the UNION ALL of the SELECTs of all grouping sets. Refuses ORDER BY anything except outputs or positions, because it
    applies to the union."""
    outer = exp.select("*").from_(_derived(selects))
    if order is not None:
        outputs = {item.alias_or_name.lower() for item in selects[0].expressions}
        for ordered in order.expressions:
            by = ordered.this
            plain = isinstance(by, exp.Literal) or (isinstance(by, exp.Column) and by.name.lower() in outputs)
            if not plain:
                raise refuse(
                    "clause", what="ORDER BY an expression over grouping sets", position=place(node.args["order"])
                )
        outer.set("order", order)
    return outer
