"""The engine queries of a block: one for its sums, and one for each measurement of another kind.

Every query reads the same bounded relation under the same contribution bounds, so that one unit changes the result of each
query by at most its own sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpsql.engine.dialect import Dialect, parametrised
from dpsql.engine.emit.columns import RowsOf
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.emit.sample_statistics import row_terms, sample_values
from dpsql.engine.query import EngineQuery
from dpsql.plan.measurements import Register
from dpsql.plan.plan import BoundedBlock, Measurement, Term
from dpsql.privacy.mechanisms.local_sensitivity import LOCAL_SENSITIVITY
from dpsql.privacy.mechanisms.most_frequent import END_ROWS, MOST_FREQUENT
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM
from dpsql.privacy.mechanisms.sample_values import SAMPLE_MEAN, SAMPLE_VALUES
from dpsql.storage.records import dataclass, replace

SUMS = ""
"""The name of the query for the sums of a block and for the count that selects its private keys."""


@dataclass(frozen=True)
class MeasurementText:
    """The functions that write a measurement's SQL text. `terms` returns what it reads of rows, `counted` its SELECT,
    which adds the columns of `COUNTED` to the keys."""

    terms: Callable[[Any], tuple[Term, ...]]
    counted: Callable[[Any, Sequence[str], RowsOf, Dialect], str]


COUNTED = ("cell", "rows")
"""Integer columns, never NULL: the number of a cell, and the number of rows (or samples) in it."""


def cell_counts(measurement: Measurement, keys: Sequence[str], rows: RowsOf, dialect: Dialect) -> str:
    """Return the query that counts the rows of each group in each non-empty cell. A row without a value is in no
    cell."""
    ((name, integer),) = rows.values.items()
    condition = " AND ".join(filter(None, (rows.inside, rows.conditions[name])))
    passed = f" WHERE {condition}" if condition else ""
    cells = f"SELECT {', '.join([*keys, f'{integer} AS cell'])} FROM {dialect.derived(rows.sql)}{passed}"
    names = ", ".join([*keys, "cell"])
    return f"SELECT {names}, count(*) AS rows FROM {dialect.derived(cells)} WHERE cell IS NOT NULL GROUP BY {names}"


_CELLS = MeasurementText(lambda measurement: (measurement.term,), cell_counts)
PARTS: Register[MeasurementText] = Register(
    "engine",
    {
        RANK_HISTOGRAM: _CELLS,
        MOST_FREQUENT: _CELLS,
        END_ROWS: _CELLS,
        LOCAL_SENSITIVITY: _CELLS,
        SAMPLE_VALUES: MeasurementText(row_terms, sample_values),
        SAMPLE_MEAN: MeasurementText(row_terms, sample_values),
    },
)


def queries(emitter: Emitter, block: BoundedBlock) -> dict[str, EngineQuery]:
    """Return the queries of `block` by the name of the measurement. A block that has measurements, but neither sums nor
    keys to select, has no query for sums: its groups are public. Constants that rows are compared with are parameters."""
    sums = {SUMS: emitter.measurement(block)} if _has_sums(block) else {}
    return sums | {
        measurement.name: _parametrised(emitter, _alone(block, measurement), measurement)
        for measurement in block.measurements
    }


def texts(emitter: Emitter, block: BoundedBlock) -> tuple[str, ...]:
    """Return the text of every query of `queries` for display, constants included."""
    sums = (emitter.block(block).sql,) if _has_sums(block) else ()
    return (
        *sums,
        *(_query(emitter, _alone(block, measurement), measurement).sql for measurement in block.measurements),
    )


def _has_sums(block: BoundedBlock) -> bool:
    return bool(block.terms) or block.selection_term is not None or not block.measurements


def _alone(block: BoundedBlock, measurement: Measurement) -> BoundedBlock:
    terms = PARTS.of(measurement.word).terms(measurement)
    return replace(block, terms=terms, measurements=(), selection_term=None)


def _parametrised(emitter: Emitter, block: BoundedBlock, measurement: Measurement) -> EngineQuery:
    if not emitter.dialect.takes_parameters:
        return _query(emitter, block, measurement)
    split = parametrised(block, emitter.dialect)
    return replace(_query(emitter, split.block, measurement), parameters=split.values)


def _query(emitter: Emitter, block: BoundedBlock, measurement: Measurement) -> EngineQuery:
    keys = tuple(key.name for key in block.keys)
    rows, unchanged = emitter.rows_of(block)
    counted = PARTS.of(measurement.word).counted(measurement, keys, rows, emitter.dialect)
    return EngineQuery(counted, keys, COUNTED, unchanged)
