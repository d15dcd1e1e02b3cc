"""Window functions over protected rows, where every window holds rows of one privacy unit alone.

`row_number() OVER (PARTITION BY patient_id ORDER BY day)` is a function of the patient's own rows: adding a patient adds
their rows and changes no number of another patient (privacy.md 3). PARTITION BY must name the unit's key; the emitted window
is also partitioned by the unit itself. Windows across units read rows of other units and are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from dpsql.aggregates.contract import aggregate_of
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import Column, Expr, Relation, Sorting, UnitWindow, Window
from dpsql.sql.binder.aggregates import bind_measure, is_aggregate
from dpsql.sql.binder.scalars import NO_OUTPUTS, Scalars
from dpsql.sql.binder.scope import Kind, Scope, only
from dpsql.sql.binder.sql_words import sql_word
from dpsql.sql.binder.unit_keys import kind
from dpsql.sql.lexer import place

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
        sortings = tuple(self.sorting(ordered) for ordered in (order.expressions if order is not None else ()))
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
            reason = f"takes a literal offset from 0 to {MOST_OFFSET}"
            raise refuse("wrong_arguments", function=sql_word(node), reason=reason, position=place(offset))
        argument = self.bind(node.this)
        facts = replace(argument.facts, nullable=True, max_total=None)  # the value of one row may appear in many rows
        return replace(window, word=_NEIGHBOURS[type(node)], argument=argument, offset=steps, facts=facts)

    def sorting(self, ordered: exp.Expr) -> Sorting:
        only(ordered, "this", "desc", "nulls_first")
        if isinstance(ordered.this, exp.Literal):
            raise refuse("unknown_expression", what="ORDER BY a position in a window", position=place(ordered))
        by = self.bind(ordered.this)
        return Sorting(by, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))


def _whole(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal() and len(node.name) < 9
