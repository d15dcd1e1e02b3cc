"""Lineage of output columns: which depend on noise, and which on the set of groups that a block shows.

A block with keys shows every combination of its public keys, whether the data has the group or not, or the private keys
that selection admits. Ordinary SQL has exactly the groups of the data, so a value computed over the set of groups (how many
there are, the smallest key, a mean over them, whether there is one) may differ from SQL by more than the noise. Such a
value is noisy, and its error is not known.

The analysis is conservative: a name that cannot be resolved counts as noisy. A wrong "noisy" costs an error bar of zero
width; a wrong "exact" would hide an error bar.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from sqlglot import exp

from dpsql.aggregates.registry import spelled
from dpsql.release.error_bars.empty_groups import Empty, counts_first, excludes_empty, kind, unaffected
from dpsql.release.error_bars.extents import EVERYTHING, Extent, extent, hull
from dpsql.release.error_bars.rowwise import interval_function
from dpsql.release.remainder import Remainder
from dpsql.sql.binder.allow_list import NAMES


class Level(IntEnum):
    """What a value, or the set of rows of a relation, depends on; higher levels include the lower ones.

    NOISE: on noisy numbers. CHOSEN: also on chosen numbers, whose errors follow no known law. EMPTY: also on groups that the data
    may not have. MISSING: also on groups of the data that selection may have left out.
    """

    EXACT = 0
    NOISE = 1
    CHOSEN = 2
    EMPTY = 3
    MISSING = 4


@dataclass(frozen=True)
class Field:
    """One column: its name in lower case, its level, its value for a group without rows, and the interval it cannot leave."""

    name: str
    level: Level
    empty: Empty = Empty.OTHER
    extent: Extent = EVERYTHING


@dataclass(frozen=True)
class Lineage:
    """The lineage of one relation: its columns in order, and the level of its set of rows."""

    columns: tuple[Field, ...]
    rows: Level

    @property
    def noisy(self) -> tuple[bool, ...]:
        """For each column, whether it depends on noise."""
        return tuple(field.level > Level.EXACT for field in self.columns)

    @property
    def of_groups(self) -> frozenset[int]:
        """Positions of columns that depend on which groups exist, so that their errors are not known."""
        return frozenset(position for position, field in enumerate(self.columns) if field.level >= Level.EMPTY)

    @property
    def chosen(self) -> frozenset[int]:
        """Positions of columns that depend on chosen numbers, so that their errors are not known."""
        return frozenset(position for position, field in enumerate(self.columns) if field.level is Level.CHOSEN)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The level of each column."""
        return tuple(field.level for field in self.columns)

    def field(self, name: str) -> Field | None:
        """Return the column called `name` (of several, one with the highest level), or None."""
        same_name = [field for field in self.columns if field.name == name.lower()]
        return max(same_name, key=lambda field: field.level, default=None)


Sources = dict[str, Lineage]
_UNKNOWN = Lineage((), Level.MISSING)


def lineage(remainder: Remainder) -> Lineage:
    """Return the lineage of the whole remainder."""
    tables: Sources = {name: Lineage(tuple(Field(c.lower(), Level.EXACT) for c in table.column_names), Level.EXACT)
                       for name, table in remainder.public.items()}  # fmt: skip
    for block in remainder.blocks:
        keys, groups = block.keys.column_names, block.groups
        columns = [Field(name, Level.EXACT) for name in keys]
        for name in block.columns[len(keys) :]:
            empty = Empty.COUNT if name in groups.counts else Empty.ZERO if name in groups.sums else Empty.OTHER
            within = extent(block.plug_ins[name], lambda _: EVERYTHING)
            columns.append(Field(name, Level.CHOSEN if name in groups.chosen else Level.NOISE, empty, within))
        rows = Level.EXACT if not keys else Level.EMPTY if groups.complete else Level.MISSING
        tables[block.name] = Lineage(tuple(columns), rows)
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
    return _UNKNOWN


def _set_operation(node: exp.SetOperation, tables: Sources, outer: list[Sources]) -> Lineage:
    left, right = (_query(side, tables, outer) for side in (node.this, node.expression))
    rows = max(left.rows, right.rows)
    if len(left.columns) != len(right.columns) or node.args.get("by_name"):
        worst = max([Level.NOISE, rows, *(field.level for field in (*left.columns, *right.columns))])
        return Lineage(tuple(Field(field.name, worst) for field in left.columns or right.columns), worst)
    whole = isinstance(node, exp.Union) and not _cut(node)
    columns = tuple(
        Field(
            a.name, max(a.level, b.level), min(a.empty, b.empty) if whole else Empty.OTHER, hull([a.extent, b.extent])
        )
        for a, b in zip(left.columns, right.columns, strict=True)
    )
    if not whole or node.args.get("distinct"):
        rows = max([rows, *(field.level for field in columns)])
    return Lineage(columns, rows)


def _cut(node: exp.Expr) -> bool:
    return bool(node.args.get("limit") or node.args.get("offset"))


def _renamed(source: Lineage, alias: exp.Expr | None) -> Lineage:
    names = [name.name.lower() for name in alias.args.get("columns") or ()] if alias is not None else []
    columns = tuple(
        replace(field, name=names[position] if position < len(names) else field.name)
        for position, field in enumerate(source.columns)
    )
    return Lineage(columns, source.rows)


def _scalar(node: exp.Anonymous) -> bool:
    return str(node.this).lower() in NAMES


class _Select:
    """The analysis of one SELECT, clause by clause in the order in which SQL evaluates them."""

    def __init__(self, node: exp.Select, tables: Sources, outer: list[Sources]) -> None:
        self.node = node
        self.tables = tables
        self.outer = outer
        self.sources: Sources = {}
        self.plain: Sources = {}
        self.rows = Level.EXACT
        self.merged: set[str] = set()
        self.joined: list[set[tuple[str, str]]] = []
        self.busy: set[int] = set()
        self.mixed = False
        """True if rows depend on groups of several relations or on a condition about groups: then no column identifies them."""

    def lineage(self) -> Lineage:
        node = self.node
        source = node.args.get("from_")
        joins = node.args.get("joins") or []
        names = []
        for number, item in enumerate([*([source.this] if source else []), *(join.this for join in joins)]):
            inner = self._source(item)
            self.rows = max(self.rows, inner.rows)
            names.append((item.alias_or_name or f"#{number}").lower())
            self.sources[names[-1]] = inner
        self.mixed = sum(inner.rows >= Level.EMPTY for inner in self.sources.values()) > 1
        self.plain = dict(self.sources)
        for number, join in enumerate(joins):
            self._join(
                join, names[: number + 1] if source else names[:number], names[number + 1] if source else names[number]
            )
        self._filter(node.args.get("where"))
        if (group := node.args.get("group")) is not None:
            self.rows = max(self.rows, self._group(group))
        columns = [field for item in node.expressions for field in self._item(item)]
        selections = [
            (clause, self._level(clause)) for name in ("having", "qualify") if (clause := node.args.get(name))
        ]
        if group is None and (node.args.get("having") is not None or self._aggregates()):
            self.rows = Level.EXACT  # one row whatever the input rows are, or none if HAVING is false
        for clause, level in selections:
            self._filter(clause, level)
        return self._ended(columns)

    def _ended(self, columns: list[Field]) -> Lineage:
        """Return the lineage after DISTINCT, ORDER BY and LIMIT. Which rows come first depends on all keys of the ORDER BY, also
        on those given by position."""
        node, rows = self.node, self.rows
        worst = max((field.level for field in columns), default=Level.EXACT)
        mixed = self.mixed
        if node.args.get("distinct") is not None:
            rows = max(rows, worst)
        if _cut(node):
            order = node.args.get("order")
            by = Level.EXACT if order is None else max(self._level(order), worst)
            rows = max(rows, by, self._any([node.args.get("limit"), node.args.get("offset")]))
            mixed = mixed or order is None or not counts_first(order, self._empty_column)
        if mixed:
            columns = [replace(field, empty=Empty.OTHER) for field in columns]
        return Lineage(tuple(columns), rows)

    def _source(self, item: exp.Expr) -> Lineage:
        if isinstance(item, exp.Table):
            inner = self.tables.get(item.name, _UNKNOWN)
        else:
            inner = _query(item, self.tables, [*self.outer, self.sources])
        return _renamed(inner, item.args.get("alias"))

    def _join(self, join: exp.Join, before: list[str], name: str) -> None:
        """Record a join. Exact columns of a side that may be absent get the level of the rows, which decide where it is."""
        using = [exp.column(column.name) for column in join.args.get("using") or ()]
        self.merged |= {column.name.lower() for column in using}
        on = join.args.get("on")
        level = self._any([on, *using])
        self.mixed = self.mixed or level >= Level.EMPTY
        self.rows = max(self.rows, level)
        for part in on.flatten() if isinstance(on, exp.And) else [on]:
            ends = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            if len(ends) == 2 and all(isinstance(end, exp.Column) and end.table for end in ends):
                self.joined.append({(end.table.lower(), end.name.lower()) for end in ends})
        side = str(join.args.get("side") or "").upper()
        optional = {"LEFT": [name], "RIGHT": before, "FULL": [*before, name]}.get(side, [])
        for alias in optional:
            optional_source = self.sources[alias]
            columns = tuple(
                replace(f, level=self.rows) if f.level is Level.EXACT else f for f in optional_source.columns
            )
            self.sources[alias] = Lineage(columns, optional_source.rows)

    def _filter(self, clause: exp.Expr | None, level: Level | None = None) -> None:
        """Record a condition. If it is true for no group without rows, the remaining groups are groups of the data."""
        if clause is None:
            return
        level = self._level(clause) if level is None else level
        if self.rows is Level.EMPTY and excludes_empty(clause, self._empty_column):
            self.rows = Level.NOISE
        self.mixed = self.mixed or level >= Level.EMPTY
        self.rows = max(self.rows, level)

    def _group(self, group: exp.Expr) -> Level:
        if group.args.get("all"):
            return self._any(item for item in self.node.expressions if not item.find(exp.AggFunc, exp.Anonymous))
        items = []
        for item in group.iter_expressions():
            number = int(item.name) if isinstance(item, exp.Literal) and item.name.isdecimal() else 0
            items.append(self.node.expressions[number - 1] if 1 <= number <= len(self.node.expressions) else item)
        return self._any(items)

    def _aggregates(self) -> bool:
        """Return whether the SELECT list has an aggregate of its own rows, so that it has one row without GROUP BY."""
        for item in self.node.expressions:
            for node in item.find_all(exp.AggFunc, exp.Anonymous):
                if isinstance(node, exp.Anonymous) and spelled(str(node.this).lower()) is None:
                    continue
                window = node.find_ancestor(exp.Window, exp.Query)
                if not isinstance(window, exp.Window) and node.find_ancestor(exp.Query) is self.node:
                    return True
        return False

    def _item(self, item: exp.Expr) -> list[Field]:
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star):
            qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
            return [
                field for name, source in self.sources.items() if qualifier in ("", name) for field in source.columns
            ]
        value = item.unalias()
        within = extent(value, self._extent_of)
        return [Field(item.alias_or_name.lower(), self._level(value), kind(value, self._empty_column), within)]

    def _extent_of(self, node: exp.Column) -> Extent:
        """Return an interval that a column of the sources cannot leave."""
        return hull(
            [f.extent for source in self._named(self.sources, node) if (f := source.field(node.name)) is not None]
        )

    def _empty_column(self, node: exp.Column) -> Empty:
        if self.mixed:
            return Empty.OTHER
        fields = [
            named_field
            for source in self._named(self.sources, node)
            if (named_field := source.field(node.name)) is not None
        ]
        if fields:
            return min(field.empty for field in fields)
        item = None if node.table else self._aliased(node.name)
        if not item:
            return Empty.OTHER
        self.busy.update(map(id, item))
        try:
            return min(kind(aliased_item.unalias(), self._empty_column) for aliased_item in item)
        finally:
            self.busy.difference_update(map(id, item))

    def _any(self, parts: Iterable[exp.Expr | None]) -> Level:
        return max((self._level(part) for part in parts if part is not None), default=Level.EXACT)

    def _level(self, node: exp.Expr | None) -> Level:
        if node is None or interval_function(node):
            return Level.EXACT
        if isinstance(node, exp.Query):
            inner = _query(node, self.tables, [*self.outer, self.sources])
            return max([inner.rows, *(field.level for field in inner.columns)])
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Coalesce) and self._one_value(node):
            return Level.EXACT
        parts = list(node.iter_expressions())
        level = Level.EXACT
        if isinstance(node, (exp.Filter, exp.Window)) and isinstance(node.this, (exp.AggFunc, exp.Anonymous)):
            level, parts = self._over_rows(node), [*node.this.iter_expressions(), *parts[1:]]
        elif isinstance(node, (exp.AggFunc, exp.Window)) or (isinstance(node, exp.Anonymous) and not _scalar(node)):
            level = self._over_rows(node)
        return max(level, self._any(parts))

    def _over_rows(self, node: exp.Expr) -> Level:
        """Return the level that an aggregate or window inherits from its set of rows."""
        if self.rows < Level.EMPTY:
            return self.rows
        if self.rows is Level.EMPTY and unaffected(node, self._empty_column):
            return Level.NOISE
        return self.rows

    def _one_value(self, node: exp.Coalesce) -> bool:
        """Return whether `node` is COALESCE(a.k, b.k) of exact columns that a join compares: the key of either side."""
        parts = [node.this, *node.expressions]
        names = {(part.table.lower(), part.name.lower()) for part in parts if isinstance(part, exp.Column)}
        if len(names) != len(parts) or names not in self.joined:
            return False
        fields = [self.plain[table].field(name) for table, name in names if table in self.plain]
        return len(fields) == len(parts) and all(f is not None and f.level is Level.EXACT for f in fields)

    def _named(self, sources: Sources, node: exp.Column) -> list[Lineage]:
        return [source for name, source in sources.items() if node.table.lower() in ("", name)]

    def _column(self, node: exp.Column) -> Level:
        """Return the level of a column, looked up in the sources of this SELECT, then in its own aliases, then in the enclosing
        SELECTs; an unknown column is noisy."""
        for sources in (self.sources, None, *reversed(self.outer)):
            if sources is None:
                level = None if node.table else self._alias(node.name)
            else:
                merged = sources is self.sources and not node.table and node.name.lower() in self.merged
                named = self._named(self.plain if merged else sources, node)  # USING shows the side that is present
                level = max((f.level for source in named if (f := source.field(node.name)) is not None), default=None)
            if level is not None:
                return level
        return max(Level.NOISE, self.rows)

    def _aliased(self, name: str) -> list[exp.Expr]:
        named = [item for item in self.node.expressions if item.alias.lower() == name.lower()]
        return [item for item in named if id(item) not in self.busy]

    def _alias(self, name: str) -> Level | None:
        items = self._aliased(name)
        if not items:
            return None
        self.busy.update(id(item) for item in items)
        try:
            return self._any(item.unalias() for item in items)
        finally:
            self.busy.difference_update(id(item) for item in items)
