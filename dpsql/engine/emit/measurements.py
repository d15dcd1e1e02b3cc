"""What the engine is asked for of a block: its sums, and beside them one query for each measurement of another kind.

Every query reads the same bounded relation under the same bounds on contributions, so that each of them moves with one unit
by no more than its own sensitivity says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bind_parameters import parametrised
from dpsql.engine.emit.columns import RowsOf
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import EngineQuery
from dpsql.plan.measurements import Register
from dpsql.plan.plan import BoundedBlock, Measurement
from dpsql.privacy.mechanisms.rank_histogram import RANK_HISTOGRAM

SUMS = ""
"""The name of the query for the sums of a block and for what selects its private keys."""


@dataclass(frozen=True)
class Counted:
    """An aggregation over rows as text: its SELECT, and the columns that it adds to the keys (integers, never NULL)."""

    sql: str
    columns: tuple[str, ...]


def rank_histogram(keys: Sequence[str], rows: RowsOf, dialect: Dialect) -> Counted:
    """How many rows of each group are in each cell that is not empty. A row without a value is in none."""
    passed = f" WHERE {rows.condition}" if rows.condition else ""
    cells = f"SELECT {', '.join([*keys, f'{rows.integer} AS cell'])} FROM {dialect.derived(rows.sql)}{passed}"
    names = ", ".join([*keys, "cell"])
    sql = f"SELECT {names}, count(*) AS rows FROM {dialect.derived(cells)} WHERE cell IS NOT NULL GROUP BY {names}"
    return Counted(sql, ("cell", "rows"))


PARTS: Register[Callable[[Sequence[str], RowsOf, Dialect], Counted]] = Register(
    "engine", {RANK_HISTOGRAM: rank_histogram}
)


def queries(emitter: Emitter, block: BoundedBlock) -> dict[str, EngineQuery]:
    """Everything that `block` asks for, by the name of the measurement. A block without sums or keys to select has none of
    those: its groups are public. Constants that rows are compared with are parameters."""
    sums = {SUMS: emitter.measurement(block)} if _has_sums(block) else {}
    return sums | {one.name: _parametrised(emitter, _alone(block, one), one) for one in block.measurements}


def texts(emitter: Emitter, block: BoundedBlock) -> tuple[str, ...]:
    """The text of every query of `queries`, constants included, for people."""
    sums = (emitter.block(block).sql,) if _has_sums(block) else ()
    return (
        *sums,
        *(_query(emitter, _alone(block, measurement), measurement).sql for measurement in block.measurements),
    )


def _has_sums(block: BoundedBlock) -> bool:
    return bool(block.terms) or block.selection_term is not None or not block.measurements


def _alone(block: BoundedBlock, one: Measurement) -> BoundedBlock:
    return replace(block, terms=(one.term,), measurements=(), selection_term=None)


def _parametrised(emitter: Emitter, block: BoundedBlock, one: Measurement) -> EngineQuery:
    if not emitter.dialect.takes_parameters:
        return _query(emitter, block, one)
    asked = parametrised(block, emitter.dialect)
    return replace(_query(emitter, asked.block, one), parameters=asked.values)


def _query(emitter: Emitter, block: BoundedBlock, one: Measurement) -> EngineQuery:
    keys = tuple(key.name for key in block.keys)
    rows, unchanged = emitter.rows_of(block)
    counted = PARTS.of(one.word)(keys, rows, emitter.dialect)
    return EngineQuery(counted.sql, keys, counted.columns, unchanged)
