"""SQL text of the rows of one table for an export: combinations of its exported columns, and the number of rows of each.

A number is read as the integer of its SUM term (clamped, counted from its lower bound), a category as the key that a GROUP BY
of its column has. The rows come from the bounded view, so that a unit has at most `max_rows` of them.
"""

from __future__ import annotations

from dpsql.engine.emit.columns import sent_key
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.emit.quantization import row_integer, value_text
from dpsql.engine.query import EngineQuery
from dpsql.pricing.row_export import ExportPlan

ROWS = "n"
"""The result column with the number of rows of a combination."""
_GROUPED_COMBINATIONS = 1 << 16
"""The most combinations for which the engine counts the rows of each, which is cheaper than returning the rows."""


def exported_rows(emitter: Emitter, plan: ExportPlan) -> EngineQuery:
    """Return the query; its keys are k0, k1, ... in the order of the plan's columns. Raises Refusal engine_function."""
    dialect = emitter.dialect
    values, keys = [], []
    for number, column in enumerate(plan.columns):
        name = f"k{number}"
        if column.term is None:
            values.append(f"{sent_key(column.expression, dialect)} AS {name}")
            keys.append(name)
        else:
            values.append(f"{value_text(column.term, dialect)} AS {name}")
            keys.append(f"{row_integer(column.term, name, dialect)} AS {name}")
    below = dialect.derived(f"SELECT {', '.join(values)} FROM {dialect.derived(emitter.relation(plan.source))}")
    rows = dialect.derived(f"SELECT {', '.join(keys)} FROM {below}")
    names = tuple(f"k{number}" for number in range(len(plan.columns)))
    listed = ", ".join(names)
    if plan.combinations <= _GROUPED_COMBINATIONS or all(column.term is None for column in plan.columns):
        text = f"SELECT {listed}, count(*) AS {ROWS} FROM {rows} GROUP BY {listed}"
    else:  # combinations that contain numbers with many values rarely repeat
        text = f"SELECT {listed}, {dialect.constant(1)} AS {ROWS} FROM {rows}"
    return EngineQuery(text, names, (ROWS,), emitter.unchanged(plan.source))
