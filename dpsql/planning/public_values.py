"""Values of expressions over public candidates, computed by DuckDB in the sandbox (`functions.key_questions`).

The sandbox gets the emitter's own total texts, never the text of a question, so that a value here is the value that the engine
of the source computes.
"""

from __future__ import annotations

from datetime import date
from functools import partial

import pyarrow as pa

from dpsql.errors.exceptions import Error
from dpsql.functions.key_questions import MOST_ASKED, Candidates, PublicValues, Rows, Unanswered, ValueQuestion
from dpsql.plan.intervals import Type
from dpsql.plan.plan import columns_read
from dpsql.release.sandbox import DIALECT, Sandbox
from dpsql.storage.recent_values import RecentValues

MOST_KEPT = 256
MOST_WEIGHT = 5_000_000
"""Largest number of combinations of candidates in all questions whose answers are kept."""
_ARROW = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip
SHARED = frozenset((
    "and", "or", "not", "eq", "ne", "lt", "le", "gt", "ge", "in", "not_distinct", "is_null", "is_true", "is_false", "case",
    "coalesce", "nullif", "least", "greatest", "add", "sub", "mul", "neg", "abs", "sign", "intdiv", "mod", "floor", "clamp",
    "date_trunc", "date_part", "length", "to_integer", "to_date", "to_timestamp", "to_real", "to_text", "concat", "concat_ws",
    "left", "right",
))  # fmt: skip
"""Functions that have the same values on PostgreSQL and Spark for every argument, as their tests compare."""


class AskedValues:
    """Questions answered by a sandbox. Answers are kept by question."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._answers: RecentValues[Rows] = RecentValues(MOST_KEPT, MOST_WEIGHT)

    def for_engine(self, engine: str) -> PublicValues:
        """Return the values for sources of an engine."""
        return PublicValues(self.rows, None if engine == DIALECT.name else SHARED)

    def rows(self, question: ValueQuestion) -> Rows:
        """Return the combinations of the keys' values. Raises Unanswered."""
        return self._answers.get(question, partial(self._computed, question), min(question.size, MOST_ASKED))

    def _computed(self, question: ValueQuestion) -> Rows:
        types = {
            column.name: column.facts.type
            for part in (*question.keys, *question.conditions)
            for column in columns_read(part)
        }
        try:
            tables = {f"t{number}": _table(table, types) for number, table in enumerate(question.tables)}
            with self._sandbox.room() as room:
                answer = room.query(_text(question), tables, MOST_ASKED, strict=True)
            columns = [column.to_pylist() for column in answer.columns]
            return tuple(zip(*columns, strict=True))
        except (Error, pa.ArrowException, OverflowError, ValueError):
            raise Unanswered from None


def _table(table: Candidates, types: dict[str, Type]) -> pa.Table:
    columns = list(zip(*table.rows, strict=True)) if table.rows else [()] * len(table.names)
    arrays = [
        pa.array(values, _ARROW[types[name]]) if name in types else pa.nulls(len(values))
        for name, values in zip(table.names, columns, strict=True)
    ]
    return pa.table(arrays, list(table.names))


def _text(question: ValueQuestion) -> str:
    """Return the question as SQL over the tables t0, t1, ..."""
    keys = [f"{DIALECT.expression(key)} AS k{number}" for number, key in enumerate(question.keys)]
    sources = [_source(f"t{number}", table) for number, table in enumerate(question.tables)]
    conditions = [f"({DIALECT.condition(condition)})" for condition in question.conditions]
    text = f"SELECT DISTINCT {', '.join(keys)}" if keys else "SELECT true AS k0"
    text += f" FROM {', '.join(sources)}" if sources else ""
    text += f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return text if keys else f"{text} LIMIT 1"


def _source(name: str, table: Candidates) -> str:
    """Return a table with the values of its span, which the engine lists by itself."""
    if table.span is None:
        return name
    column, first, last = DIALECT.identifier(table.names[0]), table.span.first, table.span.last
    if isinstance(first, date):
        start = f"DATE '{first.isoformat()}'"
        listed = f"{start} + CAST(range AS INTEGER) AS {column} FROM range({len(table.span)})"
    else:
        listed = f"CAST(range AS {DIALECT.types[Type.INTEGER]}) AS {column} FROM range({first}, {last + 1})"
    both = f"SELECT {listed}" if not table.rows else f"SELECT {listed} UNION ALL SELECT {column} FROM {name}"
    return f"({both}) AS {DIALECT.identifier(name + ' all')}"
