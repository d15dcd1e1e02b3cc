"""SQL text of a plan's relations in one engine's dialect: a SELECT of a relation's columns and the key of its unit."""

from __future__ import annotations

from collections.abc import Callable

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bounded_view import BoundedView, bounded_view, keyed_order
from dpsql.engine.emit.columns import columns_of, content_of, group_key, keys_of
from dpsql.engine.emit.quantization import row_integer, summand
from dpsql.engine.query import UNIT_ID, Source, View
from dpsql.errors.exceptions import refuse
from dpsql.functions.numeric import clamped
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import (
    OTHER,
    UNIT,
    Column,
    Distinct,
    Expr,
    Filter,
    Join,
    Project,
    Promise,
    Relation,
    ReleasedRows,
    Scan,
    SemiJoin,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
)
from dpsql.plan.stability import owned, tables
from dpsql.policy import Policy
from dpsql.pricing.sum_terms import GRID_BITS, in_steps, summed
from dpsql.storage.records import dataclass, replace

# --- SQL text of exact aggregates and window functions over the rows of one unit ---


def unit_window(window: Window, ties: list[str], dialect: Dialect) -> str:
    """Return a window function over one unit's rows. `ties` (the rows' keyed hash, then their content) breaks ties instead of
    the engine: which row is first must not depend on rows of other units, nor favour the same value in all units."""
    parts = ", ".join([dialect.identifier(UNIT), *(group_key(key, dialect) for key in window.keys)])
    order = [
        f"{group_key(item.by, dialect)} {'DESC' if item.descending else 'ASC'} NULLS {'FIRST' if item.nulls_first else 'LAST'}"
        for item in window.order
    ]
    aggregate = window.word in AGGREGATES
    if not aggregate:  # Spark takes no rank without an order; the unit is the same in all rows
        order += [dialect.identifier(UNIT)] if window.word in ("rank", "dense_rank") else ties
    sorted_ = f" ORDER BY {', '.join(order)}" if order else ""
    over = f" OVER (PARTITION BY {parts}{sorted_})"
    if aggregate:
        return per_unit_aggregate(window.word, window.argument, window.filter, window.facts, dialect, over)
    argument = "" if window.argument is None else dialect.expression(window.argument)
    return f"{window.word}({argument}{f', {window.offset}' if window.word in ('lag', 'lead') else ''}){over}"


def per_unit_aggregate(
    word: str, argument: Expr | None, condition: Expr | None, facts: Facts, dialect: Dialect, over: str = ""
) -> str:
    """Return an exact aggregate of one unit's rows, in the type of its facts; `over` turns it into a window aggregate.

    Raises InternalError for an aggregate that is not in `AGGREGATES`.
    """
    if word not in AGGREGATES:
        raise refuse("internal", what=f"an aggregate of one unit without text: {word}")
    filtered = ("" if condition is None else f" FILTER (WHERE {dialect.condition(condition)})") + over
    return f"count(*){filtered}" if argument is None else AGGREGATES[word](_Call(argument, filtered, facts, dialect))


@dataclass(frozen=True)
class _Call:
    """The argument of an aggregate, the text after its call (FILTER and OVER), the facts of its result, and the dialect."""

    argument: Expr
    filtered: str
    facts: Facts
    dialect: Dialect

    def present(self) -> str:
        """Return the argument, with NULL in place of NaN."""
        value = self.dialect.expression(self.argument)
        real = self.argument.facts.type is Type.REAL
        return f"(CASE WHEN NOT {self.dialect.is_nan(value)} THEN {value} END)" if real else value

    def extreme(self, word: str) -> str:
        value = self.present()
        value = self.dialect.unsigned_zero(value) if self.argument.facts.type is Type.REAL else value
        return f"{word}({value}){self.filtered}"

    def total(self) -> tuple[str, float]:
        """Return the sum of the argument's integers, and how many of these make one. Decimals are in whole steps, so that the
        quotient is the double that is nearest to their sum or mean, as a column's is to its decimal."""
        steps, power = in_steps(self.argument)
        term = summed(steps, None, False, GRID_BITS)[0]
        value = summand(term, steps, self.dialect.expression(steps), self.dialect)
        total = self.dialect.exact_sum(
            row_integer(term, value, self.dialect), self.filtered, term.magnitude >> term.finer
        )
        return total, power * 2.0**term.grid


def _sum(call: _Call) -> str:
    total, parts = call.total()
    real = call.facts.type is Type.REAL
    return f"{call.dialect.real(total)} / {call.dialect.constant(parts)}" if real else call.dialect.narrow(total)


def _average(call: _Call) -> str:
    """Return the text of a mean. That of equal reals is the real itself, which the grid may lack: rows are compared with it."""
    total, parts = call.total()
    count = f"count({call.present()}){call.filtered}"
    mean = f"({call.dialect.real(total)} / ({call.dialect.constant(parts)} * {count}))"
    if call.argument.facts.type is not Type.REAL or call.argument.facts.scale is not None:
        return mean
    held = replace(call, argument=clamped(call.argument))
    return f"CASE WHEN {held.extreme('min')} = {held.extreme('max')} THEN {held.extreme('min')} ELSE {mean} END"


AGGREGATES: dict[str, Callable[[_Call], str]] = {
    "count": lambda call: f"count({call.present()}){call.filtered}",
    "count_distinct": lambda call: f"count(DISTINCT {call.present()}){call.filtered}",
    "min": lambda call: call.extreme("min"),
    "max": lambda call: call.extreme("max"),
    "sum": _sum,
    "avg": _average,
}
"""The text of every aggregate that has facts among the rows of one unit (`aggregates.contract.Aggregate.of_unit`)."""


# SQL text of a plan's relations in one engine's dialect: a SELECT of a relation's columns and the key of its unit


def not_prepared(table: str) -> View:
    """Return the view of a table for texts that read no bounded rows (promises, public tables)."""
    return View(key="")


@dataclass(frozen=True)
class RelationText:
    """Writer of a plan's relations as SQL text. `view` returns how the bounded view of a protected table is read."""

    policy: Policy
    dialect: Dialect
    source: Callable[[str], Source]
    view: Callable[[str], View] = not_prepared

    def _name(self, identifier: str) -> str:
        return self.dialect.identifier(identifier)

    # --- relations ----------------------------------------------------------------------------------------------------

    def relation(self, node: Relation) -> str:
        """Return a SELECT with the columns of `node` (and the hidden unit column under entity privacy)."""
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, Filter):
            return f"SELECT * FROM {self._rows_of(node.source)} WHERE {self.dialect.condition(node.predicate)}"
        if isinstance(node, Project):
            columns = [f"{self.dialect.expression(e)} AS {self._name(label)}" for label, e in node.columns]
            return f"SELECT {', '.join(columns + self._hidden(node.source))} FROM {self._rows_of(node.source)}"
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, SemiJoin):
            return self._semi_join(node)
        if isinstance(node, Union_):
            names = ", ".join([*map(self._name, columns_of(node)), *self._hidden(node)])
            return " UNION ALL ".join(f"SELECT {names} FROM {self._rows_of(source)}" for source in node.sources)
        if isinstance(node, ReleasedRows):
            return f"SELECT {', '.join(map(self._name, columns_of(node)))} FROM {self.dialect.released(node.name)}"
        if isinstance(node, Distinct):
            return f"SELECT DISTINCT {', '.join(keys_of(node.source, self.dialect))} FROM {self._rows_of(node.source)}"
        return self._windows(node) if isinstance(node, UnitWindow) else self._per_unit(node)

    def _rows_of(self, node: Relation) -> str:
        """Return a relation as an item of FROM."""
        return self.dialect.derived(self.relation(node))

    def _join(self, node: Join) -> str:
        """Return the text of a join. Both sides get the column names of the join; protected sides are also joined on the unit."""
        sides = []
        for prefix, side in (("a.", node.left), ("b.", node.right)):
            columns = [f"{self._name(c)} AS {self._name(prefix + c)}" for c in columns_of(side)]
            columns += [f"{self._name(c)} AS {self._name(prefix + c)}" for c in self._hidden_names(side)]
            sides.append(self.dialect.derived(f"SELECT {', '.join(columns)} FROM {self._rows_of(side)}", prefix))
        on = [f"{self.dialect.expression(a)} = {self.dialect.expression(b)}" for a, b in node.keys]
        if node.on_unit:
            on.append(f"{self._name('a.' + UNIT)} = {self._name('b.' + UNIT)}")
        columns_out = [self._name(c) for c in columns_of(node)]
        columns_out += [f"{self._name('a.' + c)} AS {self._name(c)}" for c in self._hidden_names(node)]
        join = "LEFT JOIN" if node.kind == "left" else "JOIN"
        return f"SELECT {', '.join(columns_out)} FROM {sides[0]} {join} {sides[1]} ON {' AND '.join(on) or 'true'}"

    def _semi_join(self, node: SemiJoin) -> str:
        """Return the text of a semi-join. The right side's columns are prefixed, so that no name of the left side is captured."""
        no = "NOT " if node.negated else ""
        if node.in_list and not node.on_unit:
            ((left, right),) = node.keys
            listed = f"SELECT {self.dialect.expression(right)} FROM {self._rows_of(node.right)}"
            return f"SELECT * FROM {self._rows_of(node.left)} WHERE {self.dialect.expression(left)} {no}IN ({listed})"
        columns = [f'{self.dialect.expression(b)} AS "s.{index}"' for index, (_, b) in enumerate(node.keys)]
        on = [f'"s.{index}" = {self.dialect.expression(a)}' for index, (a, _) in enumerate(node.keys)]
        if node.on_unit:
            columns.append(f'{self._name(UNIT)} AS "s.unit"')
            on.append(f'"s.unit" = {self._name(UNIT)}')
        if node.condition is not None:
            columns += [f"{self._name(c)} AS {self._name(OTHER + c)}" for c in columns_of(node.right)]
            on.append(self.dialect.condition(node.condition))
        listed_rows = f"SELECT {', '.join(columns)} FROM {self._rows_of(node.right)}"
        exists = f"{no}EXISTS (SELECT 1 FROM {self.dialect.derived(listed_rows)} WHERE {' AND '.join(on)})"
        if node.in_list and node.negated:  # NULL NOT IN (...) is not true; an outer join makes such keys
            exists = f"{self.dialect.expression(node.keys[0][0])} IS NOT NULL AND {exists}"
        return f"SELECT * FROM {self._rows_of(node.left)} WHERE {exists}"

    def _per_unit(self, node: UnitAggregate) -> str:
        """Return the text of an aggregation for each unit. Its sums also add grid integers, because a float sum could differ
        between two runs over the same rows."""
        unit, names = self._name(UNIT), [self._name("#" + label) for label, _ in node.keys]
        items = [f"{group_key(key, self.dialect)} AS {name}" for name, (_, key) in zip(names, node.keys, strict=True)]
        # Rows may have columns of a table, or of an aggregation below, that have the labels of the keys.
        rows = f"SELECT *{''.join(', ' + item for item in items)} FROM {self._rows_of(node.source)}"
        columns = [f"{unit} AS u"]
        columns += [f"{name} AS {self._name(label)}" for name, (label, _) in zip(names, node.keys, strict=True)]
        columns += [
            f"{per_unit_aggregate(*column[1:], self.dialect)} AS {self._name(column[0])}" for column in node.columns
        ]
        group = ", ".join([unit, *names])
        return f"SELECT {', '.join([*columns, unit])} FROM {self.dialect.derived(rows)} GROUP BY {group}"

    def _windows(self, node: UnitWindow) -> str:
        """Return the text of rows with their window columns. Every window is partitioned by unit, whatever the question says."""
        columns = [*map(self._name, columns_of(node.source)), *self._hidden(node)]
        content = content_of(node.source, self.dialect)
        ties = [keyed_order(self.dialect, self._order_key(node.source), tuple(content)), *content]
        items = [f"{unit_window(window, ties, self.dialect)} AS {self._name(window.name)}" for window in node.windows]
        return f"SELECT {', '.join([*columns, *items])} FROM {self._rows_of(node.source)}"

    def _order_key(self, node: Relation) -> str:
        """Return the secret of the order in which caps keep rows and windows break ties: the keys of all views that are read."""
        read = sorted(table for table in tables(node) if self.policy.is_protected(table))
        return ".".join(self.view(table).key for table in read)

    def _hidden(self, node: Relation) -> list[str]:
        """Return the hidden columns as select items, if rows have them."""
        return [self._name(column) for column in self._hidden_names(node)]

    def _hidden_names(self, node: Relation) -> list[str]:
        if not self._has_unit_column(node):
            return []
        return [UNIT] if self._prepared(node) is None else [UNIT, UNIT_ID]

    def _has_unit_column(self, node: Relation) -> bool:
        return owned(node, self.policy)

    def _prepared(self, node: Relation) -> View | None:
        """Return the prepared view whose unit numbers the rows carry; unit numbers of two tables are not comparable."""
        if isinstance(node, Scan):
            view = self.view(node.table) if self._has_unit_column(node) else None
            return None if view is None or view.sql is None else view
        if isinstance(node, (Filter, Project, UnitWindow)):
            return self._prepared(node.source)
        return self._prepared(node.left) if isinstance(node, (Join, SemiJoin)) else None

    def _scan(self, node: Scan) -> str:
        view = self.view(node.table) if self.policy.is_protected(node.table) else None
        if view is not None and view.sql is not None:
            return f"SELECT * FROM {view.part.name_beside(view.sql)}"
        if view is None or not self._has_unit_column(node):
            source = self.source(node.table)
            columns = [self._cast(column, source) + f" AS {self._name(column.name)}" for column in node.columns]
            return f"SELECT {', '.join(columns)} FROM {source.sql} AS s0"
        names = ", ".join([*(self._name(column.name) for column in node.columns), *self._hidden(node)])
        bounded = self._bounded_view(node.table).bounded(view.key, (self._name(UNIT),), view.part)
        return f"SELECT {names} FROM {self.dialect.derived(bounded)}"

    def _bounded_view(self, table: str) -> BoundedView:
        return bounded_view(self.dialect, self.policy, self.source, table)

    def _cast(self, column: Column, source: Source) -> str:
        return self.dialect.cast_column(f"s0.{self._name(column.name)}", column.facts.type, source.types[column.name])

    def promise(self, promise: Promise) -> str:
        """Return a query that returns a row exactly if a promise of the policy is broken (NULL keys match nothing)."""
        source = self.source(promise.table)
        table = self.policy.tables[promise.table]
        if not promise.columns:
            return f"SELECT 1 AS broken FROM {source.sql} HAVING count(*) > {promise.most}"
        values = [
            self.dialect.cast_column(self._name(column), Type(table.columns[column].type), source.types[column])
            for column in promise.columns
        ]
        keys = ", ".join(f"{value} AS c{index}" for index, value in enumerate(values))
        names = [f"c{index}" for index in range(len(values))]
        not_null = " AND ".join(f"{name} IS NOT NULL" for name in names)
        cast = self.dialect.derived(f"SELECT {keys} FROM {source.sql}")
        rows = f"SELECT {', '.join(names)} FROM {cast} WHERE {not_null}"
        rows = self.dialect.derived(rows)
        return f"SELECT 1 AS broken FROM {rows} GROUP BY {', '.join(names)} HAVING count(*) > {promise.most} LIMIT 1"
