"""From a bounded block to the one aggregation that an engine runs. Only our own few nodes are ever written.

The bounded view (privacy.md 2) keeps `max_rows` rows of each unit in the order of a keyed hash of the row's own
content, ties broken by the content itself. Which rows stay depends on nothing but the unit's own rows and the key, so
adding a unit never changes what another unit contributes; rows that tie are equal in every column the policy names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.basis import grid_value, summed
from dpsql.contributions import Promise
from dpsql.emit import duckdb as text
from dpsql.engines import EngineQuery, Source
from dpsql.plan import (
    UNIT,
    BoundedBlock,
    Column,
    Expr,
    Filter,
    Join,
    Key,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Term,
    TermKind,
    Union_,
    UnitAggregate,
)
from dpsql.policy import Policy
from dpsql.ranges import Facts, Type
from dpsql.rewrite import SELECTION

MOST_LISTED = 1_000


@dataclass(frozen=True)
class Emitter:
    """Writes DuckDB text. `view_key` is the secret of the bounded view, fixed for a data version."""

    policy: Policy
    source: Callable[[str], Source]
    view_key: str

    # --- relations ----------------------------------------------------------------------------------------------------

    def relation(self, node: Relation) -> str:
        """A SELECT with the columns of `node` (and the hidden unit column under entity privacy)."""
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, Filter):
            return f"SELECT * FROM ({self.relation(node.source)}) WHERE {text.expression(node.predicate)}"
        if isinstance(node, Project):
            columns = [f"{text.expression(e)} AS {text.name(label)}" for label, e in node.columns]
            return f"SELECT {', '.join(columns + self._unit(node.source))} FROM ({self.relation(node.source)})"
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, SemiJoin):
            return self._semi_join(node)
        if isinstance(node, Union_):
            names = ", ".join([*map(text.name, columns_of(node)), *self._unit(node)])
            return " UNION ALL ".join(f"SELECT {names} FROM ({self.relation(source)})" for source in node.sources)
        return self._per_unit(node)

    def _join(self, node: Join) -> str:
        """Both sides under the names that the join gives their columns; two protected sides meet on the unit as well."""
        sides = []
        for prefix, side in (("a.", node.left), ("b.", node.right)):
            columns = [f"{text.name(c)} AS {text.name(prefix + c)}" for c in columns_of(side)]
            unit = [f"{text.name(UNIT)} AS {text.name(prefix + UNIT)}"] if self._unit(side) else []
            sides.append(f"(SELECT {', '.join(columns + unit)} FROM ({self.relation(side)}))")
        on = [f"{text.expression(a)} = {text.expression(b)}" for a, b in node.keys]
        if node.on_unit:
            on.append(f"{text.name('a.' + UNIT)} = {text.name('b.' + UNIT)}")
        kept = [text.name(c) for c in columns_of(node)]
        if self._unit(node):
            kept.append(f"{text.name('a.' + UNIT)} AS {text.name(UNIT)}")
        join = "LEFT JOIN" if node.kind == "left" else "JOIN"
        return f"SELECT {', '.join(kept)} FROM {sides[0]} {join} {sides[1]} ON {' AND '.join(on)}"

    def _semi_join(self, node: SemiJoin) -> str:
        """The right side's columns are prefixed, so that no name of the left side is captured."""
        no = "NOT " if node.negated else ""
        if node.in_list and not node.on_unit:
            ((left, right),) = node.keys
            listed = f"SELECT {text.expression(right)} FROM ({self.relation(node.right)})"
            return f"SELECT * FROM ({self.relation(node.left)}) WHERE {text.expression(left)} {no}IN ({listed})"
        columns = [f"{text.expression(b)} AS \"s.{at}\"" for at, (_, b) in enumerate(node.keys)]
        on = [f"\"s.{at}\" = {text.expression(a)}" for at, (a, _) in enumerate(node.keys)]
        if node.on_unit:
            columns.append(f"{text.name(UNIT)} AS \"s.unit\"")
            on.append(f"\"s.unit\" = {text.name(UNIT)}")
        others = f"SELECT {', '.join(columns)} FROM ({self.relation(node.right)})"
        exists = f"{no}EXISTS (SELECT 1 FROM ({others}) WHERE {' AND '.join(on)})"
        return f"SELECT * FROM ({self.relation(node.left)}) WHERE {exists}"

    def _per_unit(self, node: UnitAggregate) -> str:
        """Sums are of grid integers here too: a float sum could differ between two runs over the same rows."""
        unit = text.name(UNIT)
        items = [f"{text.expression(key)} AS {text.name(label)}" for label, key in node.keys]
        rows = f"SELECT *{''.join(', ' + item for item in items)} FROM ({self.relation(node.source)})"
        columns = [f"{unit} AS u", *(text.name(label) for label, _ in node.keys)]
        columns += [f"{_per_unit_aggregate(*column)} AS {text.name(column[0])}" for column in node.columns]
        group = ", ".join([unit, *(text.name(label) for label, _ in node.keys)])
        return f"SELECT {', '.join([*columns, unit])} FROM ({rows}) GROUP BY {group}"

    def _unit(self, node: Relation) -> list[str]:
        """The hidden unit column as a select item, where rows have one."""
        return [text.name(UNIT)] if self._has_unit_column(node) else []

    def _has_unit_column(self, node: Relation) -> bool:
        if self.policy.privacy_unit is None:
            return False
        if isinstance(node, Scan):
            return self.policy.is_protected(node.table)
        if isinstance(node, (Filter, Project, UnitAggregate)):
            return self._has_unit_column(node.source)
        if isinstance(node, (Join, SemiJoin)):
            return self._has_unit_column(node.left)
        return all(self._has_unit_column(source) for source in node.sources)

    def _scan(self, node: Scan) -> str:
        source = self.source(node.table)
        columns = [self._cast(column, source) + f" AS {text.name(column.name)}" for column in node.columns]
        if not self.policy.is_protected(node.table) or self.policy.privacy_unit is None:
            return f"SELECT {', '.join(columns)} FROM {source.sql} AS s0"
        tables, unit = self._unit_path(node.table, source)
        rows = f"SELECT {', '.join(columns)}, {unit} AS {text.name(UNIT)} FROM {tables} WHERE {unit} IS NOT NULL"
        most = self.policy.tables[node.table].max_rows
        names = [text.name(column.name) for column in node.columns]
        rank = self._rank([text.name(UNIT)], names)
        kept = ", ".join([*names, text.name(UNIT)])
        return f'SELECT {kept} FROM (SELECT *, {rank} AS "#rank" FROM ({rows})) WHERE "#rank" <= {most}'

    def _unit_path(self, node_table: str, source: Source) -> tuple[str, str]:
        """FROM text that leads from `node_table` along its foreign keys to the unit's key, and that key's column.

        Parent keys are unique (declared, and checked against the data), so a row meets at most one parent; a row
        without a parent belongs to nobody and is dropped (privacy.md 2).
        """
        table, tables, last, here = node_table, f"{source.sql} AS s0", "s0", source
        for number, (child, column, parent, parent_column) in enumerate(self.policy.unit_joins(node_table), 1):
            above, alias = self.source(parent), f"s{number}"
            keys = [self._key(last, child, column, here), self._key(alias, parent, parent_column, above)]
            tables += f" JOIN {above.sql} AS {alias} ON {keys[0]} = {keys[1]}"
            last, here, table = alias, above, parent
        key = self.policy.unit_column(node_table)
        assert key is not None
        return tables, self._key(last, table, key, here)

    def _key(self, alias: str, table: str, column: str, source: Source) -> str:
        """A key column in the type that the policy gives it, so that equal keys of two tables are equal here."""
        type_ = Type(self.policy.tables[table].columns[column].type)
        return text.cast_column(f"{alias}.{text.name(column)}", type_, source.types[column])

    def _cast(self, column: Column, source: Source) -> str:
        return text.cast_column(f"s0.{text.name(column.name)}", column.facts.type, source.types[column.name])

    def _rank(self, partition: list[str], content: list[str], function: str = "row_number") -> str:
        """A window rank in keyed-hash order of `content`; the content itself breaks ties of the hash."""
        order = [f"hash({text.constant(self.view_key)}, {', '.join(content)})", *content]
        return f"{function}() OVER (PARTITION BY {', '.join(partition)} ORDER BY {', '.join(order)})"

    def promise(self, promise: Promise) -> str:
        """A query that returns a row exactly when a promise of the policy is broken (NULL keys meet nothing)."""
        source = self.source(promise.table)
        table = self.policy.tables[promise.table]
        values = [
            text.cast_column(text.name(column), Type(table.columns[column].type), source.types[column])
            for column in promise.columns
        ]
        keys = ", ".join(f"{value} AS c{at}" for at, value in enumerate(values))
        names = [f"c{at}" for at in range(len(values))]
        there = " AND ".join(f"{name} IS NOT NULL" for name in names)
        rows = f"SELECT {', '.join(names)} FROM (SELECT {keys} FROM {source.sql}) WHERE {there}"
        return f"SELECT 1 AS broken FROM ({rows}) GROUP BY {', '.join(names)} HAVING count(*) > {promise.most} LIMIT 1"

    # --- blocks -------------------------------------------------------------------------------------------------------

    def block(self, block: BoundedBlock) -> EngineQuery:
        """The exact integer sums of a block: one row per group, term columns never NULL."""
        inner, values = self._rows(block)
        terms = [f"{self._term(term, values)} AS {text.name(term.name)}" for term in block.terms]
        names = [term.name for term in block.terms]
        if block.selection_term == SELECTION:
            terms.append(f"{self._selection_count(block)} AS {SELECTION}")
            names.append(SELECTION)
        keys = [key.name for key in block.keys]
        if not terms:
            terms = ["count(*) AS present"]
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        return EngineQuery(f"SELECT {', '.join([*keys, *terms])} FROM ({inner}){group}", tuple(keys), tuple(names))

    def _selection_count(self, block: BoundedBlock) -> str:
        """What partition selection looks at: a number that one unit moves by at most 1 in each group.

        Under row privacy one row may have become several (a join): n rows count as ceil(n / c), and adding up to c rows
        to n adds at most 1 to that.
        """
        if self._has_unit_column(block.source):
            return f"count(DISTINCT {text.name(UNIT)})"
        most = block.caps.rows_per_unit
        return "count(*)" if most == 1 else f"(count(*) + {most - 1}) // {most}"

    def _rows(self, block: BoundedBlock) -> tuple[str, dict[str, tuple[str, str]]]:
        """Row expressions computed once: keys k0.., values v0.. and conditions f0..; caps applied.

        Returns the text and, for each term, the names of its value and of its condition ("" where it has none).
        """
        items: dict[str, str] = {}
        for key in block.keys:
            items[key.name] = text.expression(key.expression)
        values: dict[str, tuple[str, str]] = {}
        for term in block.terms:
            value = "" if term.value is None else _shared(items, "v", _value_text(term))
            condition = "" if term.filter is None else _shared(items, "f", text.expression(term.filter))
            values[term.name] = (value, condition)
        columns = [f"{expression} AS {name}" for name, expression in items.items()]
        columns += self._unit(block.source)
        if not columns:
            columns = ["1 AS one"]
        rows = f"SELECT {', '.join(columns)} FROM ({self.relation(block.source)})"
        return self._capped(block, rows, list(items)), values

    def _capped(self, block: BoundedBlock, rows: str, names: list[str]) -> str:
        """Keep at most max_rows_per_group rows of each unit in each group, then max_groups groups of each unit."""
        caps, keys = block.caps, [key.name for key in block.keys]
        if caps.max_groups is None and caps.max_rows_per_group is None:
            return rows
        inside = [condition for key in block.keys if (condition := _in_domain(key))]
        if inside:
            rows = f"SELECT * FROM ({rows}) WHERE {' AND '.join(inside)}"
        unit = text.name(UNIT)
        if caps.max_rows_per_group is not None:
            rank = self._rank([unit, *keys], names or [unit])
            rows = f'SELECT * FROM (SELECT *, {rank} AS "#row" FROM ({rows})) WHERE "#row" <= {caps.max_rows_per_group}'
        if caps.max_groups is not None:
            rank = self._rank([unit], keys, "dense_rank")
            rows = f'SELECT * FROM (SELECT *, {rank} AS "#group" FROM ({rows})) WHERE "#group" <= {caps.max_groups}'
        return rows

    def _term(self, term: Term, values: dict[str, tuple[str, str]]) -> str:
        value, condition = values[term.name]
        if term.kind is TermKind.SUM:
            row = _grid_row(term, value)
            filtered = f" FILTER (WHERE {condition})" if condition else ""
            return f"coalesce(sum({row}){filtered}, 0)"
        conditions = [condition] if condition else []
        if term.value is not None and term.value.facts.type is Type.REAL:
            conditions.append(f"NOT isnan({value})")
        filtered = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
        if term.kind is TermKind.COUNT:
            return f"count({value or '*'}){filtered}"
        of = text.name(UNIT) if term.kind is TermKind.UNITS else value
        return f"count(DISTINCT {of}){filtered}"


def columns_of(node: Relation) -> list[str]:
    """Names of the visible columns of a relation, in order."""
    if isinstance(node, Scan):
        return [column.name for column in node.columns]
    if isinstance(node, Filter):
        return columns_of(node.source)
    if isinstance(node, Project):
        return [label for label, _ in node.columns]
    if isinstance(node, Join):
        return ["a." + name for name in columns_of(node.left)] + ["b." + name for name in columns_of(node.right)]
    if isinstance(node, SemiJoin):
        return columns_of(node.left)
    if isinstance(node, Union_):
        return columns_of(node.sources[0])
    return ["u", *(label for label, _ in node.keys), *(column[0] for column in node.columns)]


def _per_unit_aggregate(label: str, word: str, argument: Expr | None, condition: Expr | None, facts: Facts) -> str:
    """An exact aggregate of one unit's rows, in the type of its facts."""
    filtered = "" if condition is None else f" FILTER (WHERE {text.expression(condition)})"
    if argument is None:
        return f"count(*){filtered}"
    value = text.expression(argument)
    there = f"(CASE WHEN NOT isnan({value}) THEN {value} END)" if argument.facts.type is Type.REAL else value
    if word in ("count", "count_distinct"):
        return f"count({'DISTINCT ' if word == 'count_distinct' else ''}{there}){filtered}"
    if word in ("min", "max"):
        return f"{word}({there}){filtered}"
    term = summed(argument, condition, False)[0]
    step = text.constant(2.0**-term.grid)
    total = f"sum({_grid_row(term, value)}){filtered}"
    if word == "avg":
        return f"(CAST({total} AS DOUBLE) * {step} / count({there}){filtered})"
    return f"CAST({total} AS DOUBLE) * {step}" if facts.type is Type.REAL else f"TRY_CAST({total} AS BIGINT)"


def _grid_row(term: Term, value: str) -> str:
    """The row's integer of a SUM term."""
    real = isinstance(term.lower, float)
    if real:
        low, high = (grid_value(float(end), float(term.centre), term.grid) for end in (term.lower, term.upper))
    else:
        low, high = int(term.lower - term.centre), int(term.upper - term.centre)
    return text.grid_sum(value, real, term.lower, term.upper, term.centre, term.grid, (low, high))


def _shared(items: dict[str, str], prefix: str, expression: str) -> str:
    """The name under which an expression is computed once per row."""
    for name, known in items.items():
        if known == expression:
            return name
    name = f"{prefix}{len(items)}"
    items[name] = expression
    return name


def _value_text(term: Term) -> str:
    assert term.value is not None
    written = text.expression(term.value)
    wide = term.kind is TermKind.SUM and isinstance(term.lower, float) and term.value.facts.type is Type.INTEGER
    return f"CAST({written} AS DOUBLE)" if wide else written


def _in_domain(key: Key) -> str:
    """Rows outside a public key's domain belong to no group, so they must not use up a cap. A range where it is one."""
    if key.values is None or None in key.values:
        return ""
    if len(key.values) <= MOST_LISTED:
        return f"{key.name} IN ({', '.join(text.constant(value) for value in key.values)})"
    return f"{key.name} BETWEEN {text.constant(min(key.values))} AND {text.constant(max(key.values))}"
