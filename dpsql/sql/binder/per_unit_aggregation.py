"""Per-unit aggregation: GROUP BY with the privacy unit's key gives one row (or a few) for each unit, still protected.

Such a SELECT is allowed in FROM. Its result is an exact function of each unit's own rows, so removing a unit removes its
rows and changes no others (privacy.md 3). The intervals of its columns are derived from those of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from dpsql.aggregates.contract import aggregate_of
from dpsql.errors.exceptions import Error, refuse
from dpsql.functions.canonical_measures import counted
from dpsql.functions.numeric import WrongArguments, call, common_type
from dpsql.plan.intervals import Facts, Type, hull
from dpsql.plan.plan import (
    Column,
    Distinct,
    Expr,
    Filter,
    Relation,
    SemiJoin,
    Sorting,
    Union_,
    UnitAggregate,
    UnitWindow,
    Window,
    filled,
    literal,
)
from dpsql.plan.stability import rows_per_unit
from dpsql.policy import Policy
from dpsql.sql.binder.aggregates import LEAKING, OF_ONE_PERSON, bind_measure, is_aggregate
from dpsql.sql.binder.equal_keys import kind, project
from dpsql.sql.binder.scalars import NO_OUTPUTS, KeyScalars, Scalars
from dpsql.sql.binder.scope import Kind, Protected, Scope, only, same_unit, sql_word, wrong_call
from dpsql.sql.binder.trees import output_name, outputs_by_alias
from dpsql.sql.lexer import place
from dpsql.storage.records import replace

# --- window functions over protected rows, where every window holds rows of one privacy unit alone --------------------
# `row_number() OVER (PARTITION BY patient_id ORDER BY day)` is a function of the patient's own rows: adding a patient
# adds their rows and changes no number of another patient (privacy.md 3). PARTITION BY must name the unit's key; the
# emitted window is also partitioned by the unit itself. Windows across units read rows of other units and are refused.

_RANKS: dict[type[exp.Expr], str] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_NEIGHBOURS: dict[type[exp.Expr], str] = {exp.Lag: "lag", exp.Lead: "lead", exp.FirstValue: "first_value"}
MOST_OFFSET = 1_000
MOST_WINDOWS = 50


class WindowScalars(Scalars):
    """Binder of row expressions that may contain windows: each becomes a column of the `UnitWindow` that `relation` returns."""

    def __init__(
        self, scope: Scope, rows: int, outputs: Mapping[str, exp.Expr] = NO_OUTPUTS, written: bool = True
    ) -> None:
        """Bind over `scope`. `rows`: rows_per_unit of the relation below; `written`: whether a query may write windows here."""
        super().__init__(scope, outputs)
        self.rows = rows
        self.windows: list[Window] = []
        self._inside = not written

    def relation(self, source: Relation) -> Relation:
        """Return the rows of `source`, with the windows that were bound."""
        return UnitWindow(source, tuple(self.windows)) if self.windows else source

    def bind(self, node: exp.Expr | None) -> Expr:
        """Bind as `Scalars.bind` does, with windows replaced by columns."""
        if not isinstance(node, exp.Window) or self._inside:
            return super().bind(node)
        self._inside = True
        window = self._window(node)
        self._inside = False
        return self._entered(window, node)

    def row_number(self, keys: tuple[Expr, ...], order: tuple[Sorting, ...], node: exp.Expr) -> Column:
        """Return the number of a row among the unit's rows with equal `keys`. Refuses (many_measures) too many windows."""
        facts = Facts(Type.INTEGER, Fraction(1), Fraction(self.rows), nullable=False)
        return self._entered(Window("", "row_number", None, None, 0, keys, order, facts), node)

    def _entered(self, window: Window, node: exp.Expr) -> Column:
        for entered in self.windows:
            if replace(window, name=entered.name) == entered:
                return Column(entered.name, entered.facts)
        if len(self.windows) >= MOST_WINDOWS:
            raise refuse("many_measures", most=MOST_WINDOWS, position=place(node))
        self.windows.append(replace(window, name=f"#w{len(self.windows)}"))
        return Column(self.windows[-1].name, window.facts)

    def _window(self, node: exp.Window) -> Window:
        parts = [self.bind(part) for part in node.args.get("partition_by") or ()]
        if not any(kind(part, self.scope) >= Kind.IMAGE for part in parts):
            raise refuse("window_over_rows", position=place(node))
        only(node, "this", "partition_by", "order", "over")
        keys = tuple(part for part in parts if kind(part, self.scope) < Kind.IMAGE)
        order = node.args.get("order")
        sortings = tuple(map(self.sorting, order.expressions if order is not None else ()))
        sortings = tuple(sorting for sorting in sortings if sorting.by not in parts)
        window = Window("", "", None, None, 0, keys, sortings, Facts(Type.NULL))
        inner = node.this
        if type(inner) in _RANKS:
            only(inner)
            facts = Facts(Type.INTEGER, Fraction(1), Fraction(self.rows), nullable=False)
            return replace(window, word=_RANKS[type(inner)], facts=facts)
        if type(inner) in _NEIGHBOURS:
            return self._neighbour(window, inner)
        if is_aggregate(inner):
            measure = bind_measure("", inner, self, per_unit=True)
            of_unit = aggregate_of(measure.aggregate).of_unit
            if of_unit is not None and not measure.distinct:
                argument = measure.arguments[0] if measure.arguments else None
                facts = of_unit(measure, self.rows)
                return replace(window, word=measure.aggregate, argument=argument, filter=measure.filter, facts=facts)
        raise refuse("window_over_rows", position=place(node))

    def _neighbour(self, window: Window, node: exp.Expr) -> Window:
        """Return the window of lag(x, n), lead(x, n) or first_value(x): a value of another row of the unit, or NULL."""
        only(node, "this", "offset")
        offset = node.args.get("offset")
        steps = 1 if offset is None else int(offset.name) if _whole(offset) else -1
        if not 0 <= steps <= MOST_OFFSET:
            raise wrong_call(node, f"takes a literal offset from 0 to {MOST_OFFSET}", offset)
        argument = self.bind(node.this)
        facts = replace(argument.facts, nullable=True, max_total=None)  # the value of one row may appear in many rows
        return replace(window, word=_NEIGHBOURS[type(node)], argument=argument, offset=steps, facts=facts)

    def sorting(self, ordered: exp.Expr) -> Sorting:
        only(ordered, "this", "desc", "nulls_first")
        if isinstance(ordered.this, exp.Literal):
            raise refuse("unknown_expression", what="ORDER BY a position in a window", position=place(ordered))
        by = self.bind(ordered.this)
        return Sorting(by, bool(ordered.args.get("desc")), by.facts.nullable and bool(ordered.args.get("nulls_first")))


def _whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) < 9


# --- per-unit aggregation ---------------------------------------------------------------------------------------------

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
    if not keys and (columns := scalars.of_first_row()) is not None:
        rows: Relation = Filter(scalars.rows_below.relation(source), scalars.first_rows[0])
        rows = rows if condition is None else Filter(rows, _over(condition, columns))
        of_rows = [(label, _over(item, columns)) for label, item in items]
        return project(Protected(rows, (), scope.unit_names(), unit_kinds=scope.units), of_rows)
    names = tuple((f"g{number}", key) for number, key in enumerate(keys))
    relation: Relation = UnitAggregate(scalars.rows_below.relation(source), names, tuple(scalars.columns))
    if condition is not None:
        relation = Filter(relation, condition)
    images = {column.name: Kind.IMAGE for column in scalars.images.values()}
    return project(Protected(relation, (), frozenset({UNIT_KEY}), unit_kinds=images), items)


def _over(expression: Expr, columns: Mapping[str, Expr]) -> Expr:
    """Return an expression over what the names of its columns stand for."""
    result: Expr = filled(expression, lambda part: columns.get(part.name, part) if isinstance(part, Column) else part)
    return result


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
        self.first_rows: list[Expr] = []
        """The conditions under which a row is the first of its unit, of aggregates that read one row whatever is in it."""

    def of_first_row(self) -> dict[str, Expr] | None:
        """Return what the columns of the aggregation are in the first rows of all units, if it reads them alone: FIRST(x ORDER BY
        y) is x WHERE row_number() OVER (PARTITION BY the unit ORDER BY y) = 1, and has the same plan. None for others."""
        first = self.first_rows[:1]
        images = [column.name for column in self.images.values()]
        plain = all(name in images or [condition] == first for name, _, _, condition, _ in self.columns)
        if not first or not plain:
            return None
        read: dict[str, Expr] = {name: argument for name, _, argument, _, _ in self.columns if argument is not None}
        return read | dict.fromkeys(
            (UNIT_KEY,), next((unit for unit in self.units if kind(unit, self.scope) is Kind.KEY), self.units[0])
        )

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
        values = [value for value in map(rows.bind, present) if value.facts.nullable]
        conditions = [rows.call("not", node, rows.call("is_null", node, value)) for value in values]
        conditions += [rows.boolean(node.expression.this)] if isinstance(node, exp.Filter) else []
        sorted_by = [sorting for sorting in map(rows.sorting, order) if sorting.by not in (*self.keys, *self.units)]
        sortings = [*(Sorting(condition, True, False) for condition in conditions), *sorted_by]
        conditions.append(rows.call("eq", node, rows.row_number(tuple(self.keys), tuple(sortings), node), literal(1)))
        if len(conditions) == 1:
            self.first_rows += conditions
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
        # With a filter, or over values that are NULL in all rows, the sum is NULL.
        if measure.filter is None and not any(part.facts.nullable for part in measure.arguments):
            measure = counted(measure)
        of_unit = aggregate_of(measure.aggregate).of_unit
        if of_unit is None or (measure.distinct and measure.aggregate != "count_distinct"):
            word = f"{sql_word(node)}{'(DISTINCT ...)' if measure.distinct else ''} over one person's rows"
            raise refuse("unknown_aggregate", function=word, hint=OF_ONE_PERSON, position=place(node))
        argument = measure.arguments[0] if measure.arguments else None
        return self._column(measure.aggregate, argument, measure.filter, of_unit(measure, self.rows))

    def _column(self, word: str, argument: Expr | None, condition: Expr | None, facts: Facts) -> Column:
        column = (word, argument, condition, facts)
        name = next((name for name, *entered in self.columns if tuple(entered) == column), f"a{len(self.columns)}")
        if len(self.columns) == int(name[1:]):
            self.columns.append((name, *column))
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


# --- set operations of protected relations ----------------------------------------------------------------------------
# UNION of any rows; INTERSECT and EXCEPT of the privacy unit's keys.
#
# Whether a unit is in a set of keys depends on its own rows alone: INTERSECT (EXCEPT) has one row for each unit of the
# first side for which the other side has a row (has none). So adding a unit changes one row. UNION has the different
# rows of UNION ALL: with the unit's key among the columns they are the unit's own, otherwise nobody's, as those of
# SELECT DISTINCT.


def protected_sets(node: exp.SetOperation, sides: list[Protected]) -> Protected:
    """Return the UNION ALL of protected relations, by position, in common types; or a set of units. Refuses other operations."""
    for clause in ("order", "limit", "offset", "by_name"):
        if node.args.get(clause):
            raise refuse("rows_clause", what=clause.upper(), position=place(node))
    if isinstance(node, exp.Union):
        return _different(node, sides) if node.args.get("distinct") else stacked(node, sides)
    keys = [_unit_key(side) for side in sides]
    if any(key is None for key in keys) or not node.args.get("distinct"):
        hint = "aggregate each side first, or select the privacy unit's key alone on both sides"
        raise refuse("set_of_rows", reason="only UNION is, and sets of units", way=hint, position=place(node))
    first, second = sides
    pairs = tuple((a, b) for a, b in [keys] if a is not None and b is not None)
    negated = isinstance(node, exp.Except)
    rows = SemiJoin(first.relation, second.relation, pairs, on_unit=True, negated=negated, in_list=False)
    label, column = first.columns[0]
    units = Protected(UnitAggregate(rows, (), ()), (), frozenset({UNIT_KEY}))
    return project(units, [(label, Column(UNIT_KEY, column.facts))])


def _different(node: exp.Union, sides: list[Protected]) -> Protected:
    """Return the different rows of all sides. Repetitions within a side are left to the union."""
    opened = [replace(s, relation=s.relation.source) if isinstance(s.relation, Distinct) else s for s in sides]
    rows = stacked(node, opened)
    if not any(same_unit(column, rows.unit_names) for _, column in rows.columns):
        columns = tuple((label, Column(c.name, replace(c.facts, max_total=None))) for label, c in rows.columns)
        return Protected(Distinct(rows.relation), columns)
    labels = {c: f"u.{c.name}" for _, c in rows.columns if not same_unit(c, rows.unit_names)}
    keys = tuple((label, column) for column, label in labels.items())
    units = Protected(UnitAggregate(rows.relation, keys, ()), (), frozenset({UNIT_KEY}))
    return project(units, [(name, Column(labels.get(c, UNIT_KEY), c.facts)) for name, c in rows.columns])


def _unit_key(side: Protected) -> Column | None:
    """Return the only column of a side if it is the privacy unit's key, else None."""
    columns = [column for _, column in side.columns]
    return columns[0] if len(columns) == 1 and same_unit(columns[0], side.unit_names) else None


def stacked(node: exp.Expr, sides: list[Protected]) -> Protected:
    """Return all rows of all sides, matched by position, in their common types."""
    if len({len(side.columns) for side in sides}) != 1:
        raise refuse("set_of_rows", reason="the sides have different numbers of columns", way="", position=place(node))
    items: list[list[tuple[str, Expr]]] = [[] for _ in sides]
    for columns in zip(*(side.columns for side in sides), strict=True):
        try:
            type_ = common_type(tuple(column for _, column in columns))
        except WrongArguments as wrong:
            raise refuse("set_of_rows", reason=f"a column {wrong}", way="cast it", position=place(node)) from None
        for side, (_, column) in zip(items, columns, strict=True):
            cast = column.facts.type is not type_ and type_ is not Type.NULL
            side.append((columns[0][0], call(f"to_{type_.value}", column) if cast else column))
    parts = [project(side, item) for side, item in zip(sides, items, strict=True)]
    facts = [_merged([part.columns[n][1] for part in parts]) for n in range(len(parts[0].columns))]
    visible = tuple((label, column) for (label, _), column in zip(parts[0].columns, facts, strict=True))
    units = frozenset.intersection(*(part.unit_names for part in parts))
    # Two sides may have computed the same value from different keys.
    kinds = {name: Kind.MIXED for part in parts for name in part.units if name not in units}
    return Protected(Union_(tuple(part.relation for part in parts)), visible, units, unit_kinds=kinds)


def _merged(columns: list[Column]) -> Column:
    facts = [column.facts for column in columns]
    alike = len({(bounds.outside, bounds.values, bounds.lower, bounds.upper) for bounds in facts}) == 1
    merged = hull(facts, facts[0].type)
    return Column(
        columns[0].name, replace(merged, values=facts[0].values, outside=facts[0].outside) if alike else merged
    )
