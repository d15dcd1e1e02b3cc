"""Per-unit aggregation: GROUP BY with the privacy unit's key gives one row (or a few) for each unit, still protected.

Such a SELECT is allowed in FROM. Its result is an exact function of each unit's own rows, so removing a unit removes its
rows and changes no others (privacy.md 3). The intervals of its columns are derived from those of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from sqlglot import exp

from dpsql.aggregates.contract import aggregate_of
from dpsql.errors.exceptions import Error, refuse
from dpsql.plan.intervals import Facts
from dpsql.plan.plan import Column, Expr, Filter, Relation, Sorting, UnitAggregate, literal
from dpsql.plan.stability import rows_per_unit
from dpsql.policy import Policy
from dpsql.sql.binder.aggregates import LEAKING, OF_ONE_PERSON, bind_measure, is_aggregate
from dpsql.sql.binder.base_tables import project
from dpsql.sql.binder.scalars import KeyScalars, Scalars
from dpsql.sql.binder.scope import Kind, Protected, Scope, only
from dpsql.sql.binder.sql_words import sql_word
from dpsql.sql.binder.trees import output_name, outputs_by_alias
from dpsql.sql.binder.unit_keys import kind
from dpsql.sql.binder.windows import WindowScalars
from dpsql.sql.lexer import place

UNIT_KEY = "u"


def per_unit(
    policy: Policy, node: exp.Select, scope: Scope, source: Relation, keys: list[Expr], units: list[Expr], whole: bool
) -> Protected:
    """Return the relation of a SELECT that groups by `units`, which have a different value for each unit, and by `keys`.
    Refuses (unit_key) if it is the whole statement (`whole`)."""
    if whole:
        raise refuse("unit_key", position=place(node.args.get("group")) or place(node))
    for clause in ("order", "limit", "offset", "qualify"):
        if node.args.get(clause) is not None:
            raise refuse("rows_clause", what=clause.upper(), position=place(node.args[clause]) or place(node))
    scalars = _UnitScalars(scope, keys, units, rows_per_unit(source, policy), outputs_by_alias(node))
    items = [(output_name(item), scalars.bind(item.unalias())) for item in node.expressions]
    having = node.args.get("having")
    condition = None if having is None else scalars.boolean(having.this)
    names = tuple((f"g{number}", key) for number, key in enumerate(keys))
    relation: Relation = UnitAggregate(scalars.rows_below.relation(source), names, tuple(scalars.columns))
    if condition is not None:
        relation = Filter(relation, condition)
    images = {column.name: Kind.IMAGE for column in scalars.images.values()}
    return project(Protected(relation, (), frozenset({UNIT_KEY}), unit_kinds=images), items)


class _UnitScalars(Scalars):
    """Binder of expressions over a per-unit aggregation: keys, aggregates, and functions of them."""

    def __init__(
        self, scope: Scope, keys: list[Expr], units: list[Expr], rows: int, outputs: Mapping[str, exp.Expr]
    ) -> None:
        super().__init__(scope, outputs)
        self.rows_below = WindowScalars(scope, rows, written=False)
        self.keys_below = KeyScalars(scope)
        self.keys = keys
        self.units = units
        self.images: dict[Expr, Column] = {}
        self.rows = rows
        self.columns: list[tuple[str, str, Expr | None, Expr | None, Facts]] = []

    def bind(self, node: exp.Expr | None) -> Expr:
        """Bind as `Scalars.bind` does, with aggregates and keys replaced by columns of the aggregation."""
        if node is None:
            return super().bind(node)
        if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, LEAKING):
            node = node.this  # as the parser reads ANY_VALUE(x)
        truth = node.this if isinstance(node, exp.Filter) else node
        if isinstance(truth, _OF_ONE_ROW) and (row := _row_read(truth)) is not None:
            return self._of_one_row(node, *row)
        if isinstance(truth, (exp.LogicalAnd, exp.LogicalOr)):
            return self._truth(node, truth)
        if is_aggregate(node):
            return self._aggregate(node)
        if node.find(exp.Column) is not None and not any(is_aggregate(part) for part in node.walk()):
            try:
                below = self.keys_below.bind(node)
            except Error:
                below = None
            if below is not None and below in self.units:
                return self._unit(below)
            if below in self.keys and below is not None:
                return Column(f"g{self.keys.index(below)}", below.facts)
            if isinstance(node, exp.Column):
                named = self.resolve(node)
                if self.scope.has(node):
                    raise refuse("not_grouped", name=node.name, position=place(node))
                return named
        return super().bind(node)

    def _truth(self, node: exp.Expr, truth: exp.LogicalAnd | exp.LogicalOr) -> Expr:
        """Bind BOOL_OR(c) as MAX(c::BIGINT) = 1 and BOOL_AND(c) as MIN(c::BIGINT) = 1: true counts as 1, false as 0."""
        self.rows_below.boolean(truth.this)
        end = exp.Min if isinstance(truth, exp.LogicalAnd) else exp.Max
        aggregate: exp.Expr = end(this=exp.cast(truth.this.copy(), "bigint"))
        if isinstance(node, exp.Filter):
            aggregate = exp.Filter(this=aggregate, expression=node.expression.copy())
        return super().bind(exp.EQ(this=aggregate, expression=exp.Literal.number(1)))

    def _of_one_row(self, node: exp.Expr, value: exp.Expr, order: list[exp.Ordered], present: list[exp.Expr]) -> Expr:
        """Bind the value in the first of a unit's rows in `order`, among those where `present` are not NULL and a filter holds:
        as MAX(value) FILTER (WHERE row_number() OVER (PARTITION BY the keys ORDER BY ...) = 1)."""
        rows = self.rows_below
        conditions = [rows.call("not", node, rows.call("is_null", node, rows.bind(part))) for part in present]
        conditions += [rows.boolean(node.expression.this)] if isinstance(node, exp.Filter) else []
        sortings = [*(Sorting(condition, True, False) for condition in conditions), *map(rows.sorting, order)]
        conditions.append(rows.call("eq", node, rows.row_number(tuple(self.keys), tuple(sortings), node), literal(1)))
        counted = reduce(lambda left, right: rows.call("and", node, left, right), conditions)
        read = rows.bind(value)
        facts = replace(read.facts, nullable=True, max_total=None)
        return self._column("max", read, counted, facts)

    def _unit(self, expression: Expr) -> Column:
        """Return the unit's key, or the column of an injective function of it (or of another table's key, perhaps in another
        type): that is the same in all rows of a unit, so it is computed as their minimum."""
        if expression == next((unit for unit in self.units if kind(unit, self.scope) is Kind.KEY), None):
            return Column(UNIT_KEY, expression.facts)
        if expression not in self.images:
            self.images[expression] = self._column("min", expression, None, expression.facts)
        return self.images[expression]

    def _aggregate(self, node: exp.Expr) -> Expr:
        measure = bind_measure("", node, self.rows_below, per_unit=True)
        of_unit = aggregate_of(measure.aggregate).of_unit
        if of_unit is None or (measure.distinct and measure.aggregate != "count_distinct"):
            word = f"{sql_word(node)}{'(DISTINCT ...)' if measure.distinct else ''} over one person's rows"
            raise refuse("unknown_aggregate", function=word, hint=OF_ONE_PERSON, position=place(node))
        argument = measure.arguments[0] if measure.arguments else None
        return self._column(measure.aggregate, argument, measure.filter, of_unit(measure, self.rows))

    def _column(self, word: str, argument: Expr | None, condition: Expr | None, facts: Facts) -> Column:
        name = f"a{len(self.columns)}"
        self.columns.append((name, word, argument, condition, facts))
        return Column(name, facts)


_OF_ONE_ROW = (exp.ArgMax, exp.ArgMin, exp.First, exp.Last)


def _row_read(node: exp.Expr) -> tuple[exp.Expr, list[exp.Ordered], list[exp.Expr]] | None:
    """Return what ARG_MAX(x, y), ARG_MIN(x, y), FIRST(x ORDER BY ...) or LAST(x ORDER BY ...) reads: x, the order in which its
    row is the first, and what is not NULL there; None without an order."""
    value = node.this
    if isinstance(node, (exp.ArgMax, exp.ArgMin)):
        only(node, "this", "expression")
        by = exp.Ordered(this=node.expression, desc=isinstance(node, exp.ArgMax), nulls_first=False)
        return value, [by], [value, node.expression]
    if not isinstance(value, exp.Order):
        return None
    order = [ordered.copy() for ordered in value.expressions]
    for ordered in order if isinstance(node, exp.Last) else ():
        ordered.set("desc", not ordered.args.get("desc"))
        ordered.set("nulls_first", not ordered.args.get("nulls_first"))
    return value.this, order, []
