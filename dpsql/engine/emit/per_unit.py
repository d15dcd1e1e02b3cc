"""SQL text of exact aggregates and window functions over the rows of one unit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.columns import group_key
from dpsql.engine.emit.quantization import row_integer, summand
from dpsql.errors.exceptions import refuse
from dpsql.plan.intervals import Facts, Type
from dpsql.plan.plan import UNIT, Expr, Window
from dpsql.pricing.sum_terms import GRID_BITS, summed


def unit_window(window: Window, ties: list[str], dialect: Dialect) -> str:
    """Return a window function over one unit's rows. `ties` (the rows' keyed hash, then their content) breaks ties instead of
    the engine: which row is first must not depend on rows of other units, nor favour the same value in all units."""
    parts = ", ".join([dialect.identifier(UNIT), *(group_key(key, dialect) for key in window.keys)])
    order = [
        f"{group_key(item.by, dialect)} {'DESC' if item.descending else 'ASC'} NULLS {'FIRST' if item.nulls_first else 'LAST'}"
        for item in window.order
    ]
    aggregate = window.word in AGGREGATES
    if not aggregate and window.word not in ("rank", "dense_rank"):
        order += ties
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

    def total(self) -> tuple[str, str]:
        """Return the sum of the argument's integers on its grid, and one step of the grid."""
        term = summed(self.argument, None, False, GRID_BITS)[0]
        value = summand(term, self.argument, self.dialect.expression(self.argument), self.dialect)
        total = self.dialect.exact_sum(
            row_integer(term, value, self.dialect), self.filtered, term.magnitude >> term.finer
        )
        return total, self.dialect.constant(2.0**-term.grid)


def _sum(call: _Call) -> str:
    total, step = call.total()
    real = call.facts.type is Type.REAL
    return f"{call.dialect.real(total)} * {step}" if real else call.dialect.narrow(total)


def _average(call: _Call) -> str:
    total, step = call.total()
    return f"({call.dialect.real(total)} * {step} / count({call.present()}){call.filtered})"


AGGREGATES: dict[str, Callable[[_Call], str]] = {
    "count": lambda call: f"count({call.present()}){call.filtered}",
    "count_distinct": lambda call: f"count(DISTINCT {call.present()}){call.filtered}",
    "min": lambda call: call.extreme("min"),
    "max": lambda call: call.extreme("max"),
    "sum": _sum,
    "avg": _average,
}
"""The text of every aggregate that has facts among the rows of one unit (`aggregates.contract.Aggregate.of_unit`)."""
