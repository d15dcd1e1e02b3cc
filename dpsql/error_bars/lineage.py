"""Which output columns depend on noise, and whether noise decides which rows there are.

Conservative: a name that cannot be followed counts as noisy. A wrong "noisy" costs an error bar of zero width; a
wrong "exact" would hide one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from dpsql.error_bars.rowwise import interval_function
from dpsql.remainder import Remainder


@dataclass(frozen=True)
class Lineage:
    """Of one relation: (column name in lower case, noisy) in order, and whether noise decides which rows it has."""

    columns: tuple[tuple[str, bool], ...]
    rows: bool

    @property
    def noisy(self) -> tuple[bool, ...]:
        """One flag for each column."""
        return tuple(flag for _, flag in self.columns)

    def flag(self, name: str) -> bool | None:
        """Whether the column called `name` is noisy, None when there is none."""
        flags = [noisy for label, noisy in self.columns if label == name.lower()]
        return any(flags) if flags else None


Sources = dict[str, Lineage]


def lineage(remainder: Remainder) -> Lineage:
    """Lineage of the whole remainder."""
    tables: Sources = {name: Lineage(tuple((c.lower(), False) for c in table.column_names), False)
                       for name, table in remainder.public.items()}  # fmt: skip
    for block in remainder.blocks:
        keys = len(block.keys.column_names)
        tables[block.name] = Lineage(tuple((name, at >= keys) for at, name in enumerate(block.columns)), False)
    return _query(remainder.tree, tables, [])


def _query(node: exp.Expr, tables: Sources, outer: list[Sources]) -> Lineage:
    clause = node.args.get("with_")
    for entry in clause.expressions if clause is not None else ():
        tables = {**tables, entry.alias: _renamed(_query(entry.this, tables, outer), entry.args["alias"])}
    if isinstance(node, exp.Subquery):
        return _query(node.this, tables, outer)
    if isinstance(node, exp.SetOperation):
        return _set_operation(node, tables, outer)
    if isinstance(node, exp.Select):
        return _Select(node, tables, outer).lineage()
    return Lineage((), True)


def _set_operation(node: exp.SetOperation, tables: Sources, outer: list[Sources]) -> Lineage:
    left, right = (_query(side, tables, outer) for side in (node.this, node.expression))
    if len(left.columns) != len(right.columns) or node.args.get("by_name"):
        return Lineage(tuple((name, True) for name, _ in left.columns or right.columns), True)
    columns = tuple((name, a or b) for (name, a), (_, b) in zip(left.columns, right.columns, strict=True))
    any_noisy = any(flag for _, flag in columns)
    mixes = not isinstance(node, exp.Union) or bool(node.args.get("distinct"))
    return Lineage(columns, left.rows or right.rows or (any_noisy and (mixes or _cut(node))))


def _cut(node: exp.Expr) -> bool:
    return bool(node.args.get("limit") or node.args.get("offset"))


def _renamed(known: Lineage, alias: exp.Expr | None) -> Lineage:
    names = [name.name.lower() for name in alias.args.get("columns") or ()] if alias is not None else []
    columns = tuple((names[at] if at < len(names) else name, flag) for at, (name, flag) in enumerate(known.columns))
    return Lineage(columns, known.rows)


class _Select:
    """One SELECT, clause by clause in the order SQL evaluates them."""

    def __init__(self, node: exp.Select, tables: Sources, outer: list[Sources]) -> None:
        self.node = node
        self.tables = tables
        self.outer = outer
        self.sources: Sources = {}
        self.rows = False
        self.grouped_by_noise = False
        self.busy: set[int] = set()

    def lineage(self) -> Lineage:
        source = self.node.args.get("from_")
        joins = self.node.args.get("joins") or []
        for at, item in enumerate([*([source.this] if source else []), *(join.this for join in joins)]):
            known = self._source(item)
            self.rows = self.rows or known.rows
            self.sources[(item.alias_or_name or f"#{at}").lower()] = known
        for join in joins:
            using = [exp.column(name.name) for name in join.args.get("using") or ()]
            self.rows = self.rows or self._any([join.args.get("on"), *using])
        self.rows = self.rows or self._any([self.node.args.get("where")])
        group = self.node.args.get("group")
        self.grouped_by_noise = self._group(group) if group is not None else False
        self.rows = self.rows or self.grouped_by_noise
        columns = [pair for item in self.node.expressions for pair in self._item(item)]
        rows = self.rows or self._any([self.node.args.get("having"), self.node.args.get("qualify")])
        rows = rows or (self.node.args.get("distinct") is not None and any(flag for _, flag in columns))
        order = self._any([self.node.args.get("order")]) or rows
        order = order or (self.node.args.get("order") is not None and any(flag for _, flag in columns))
        limits = self._any([self.node.args.get("limit"), self.node.args.get("offset")])
        return Lineage(tuple(columns), rows or limits or (order and _cut(self.node)))

    def _source(self, item: exp.Expr) -> Lineage:
        if isinstance(item, exp.Table):
            known = self.tables.get(item.name, Lineage((), True))
        else:
            known = _query(item, self.tables, [*self.outer, self.sources])
        return _renamed(known, item.args.get("alias"))

    def _group(self, group: exp.Expr) -> bool:
        if group.args.get("all"):
            return self._any(item for item in self.node.expressions if not item.find(exp.AggFunc, exp.Anonymous))
        items = []
        for item in group.iter_expressions():
            at = int(item.name) if isinstance(item, exp.Literal) and item.name.isdigit() else 0
            items.append(self.node.expressions[at - 1] if 1 <= at <= len(self.node.expressions) else item)
        return self._any(items)

    def _item(self, item: exp.Expr) -> list[tuple[str, bool]]:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            wanted = item.table.lower() if isinstance(item, exp.Column) else ""
            return [pair for name, known in self.sources.items() if wanted in ("", name) for pair in known.columns]
        return [(item.alias_or_name.lower(), self._noisy(item.unalias()))]

    def _any(self, parts: Iterable[exp.Expr | None]) -> bool:
        return any(self._noisy(part) for part in parts if part is not None)

    def _noisy(self, node: exp.Expr) -> bool:
        if interval_function(node):
            return False
        if isinstance(node, exp.Query):
            inner = _query(node, self.tables, [*self.outer, self.sources])
            return inner.rows or any(inner.noisy)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, (exp.AggFunc, exp.Window, exp.Anonymous)) and self.rows:
            return True
        return any(self._noisy(part) for part in node.iter_expressions())

    def _column(self, node: exp.Column) -> bool:
        """Sources of this SELECT first, then its own aliases, then the SELECTs around it; unknown is noisy."""
        for sources in (self.sources, None, *reversed(self.outer)):
            if sources is None:
                flag = None if node.table else self._alias(node.name)
            else:
                wanted = [known for name, known in sources.items() if node.table.lower() in ("", name)]
                flags = [known.flag(node.name) for known in wanted]
                flag = any(flags) if any(found is not None for found in flags) else None
            if flag is not None:
                return flag
        return True

    def _alias(self, name: str) -> bool | None:
        named = [item for item in self.node.expressions if item.alias.lower() == name.lower()]
        found = [item for item in named if id(item) not in self.busy]
        if not found:
            return None
        self.busy.update(id(item) for item in found)
        try:
            return self._any(item.unalias() for item in found)
        finally:
            self.busy.difference_update(id(item) for item in found)
