"""Running a remainder again with the terms of its blocks, or its measures, replaced by variants.

All variants run as one lateral join, and rows of the answer are matched by their exact columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from sqlglot import exp

from dpsql.release.error_bars.draws import Floats
from dpsql.release.error_bars.extremes import Extreme, extremes
from dpsql.release.error_bars.intervals import Measures, typed
from dpsql.release.formulas import Extent
from dpsql.release.remainder import DIALECT, ReleasedBlock, Remainder, column, runnable
from dpsql.release.sandbox import Room

PART_ROWS = 1_000_000
DRAWS, DRAW = "dp#draws", "dp#draw"
_ROWS, _AT, _VARIANTS = "dp#answer", "dp#at", "dp#variants"


@dataclass(frozen=True, eq=False)
class Rerun:
    """A remainder to be run again. `tree` has `width` columns; those at the positions `keys` identify a row.

    `hidden` and `extra`: hidden columns of the blocks, as for the answer. `seed` determines the draws. `extents`: the interval
    that each column cannot leave.
    """

    remainder: Remainder
    tree: exp.Query
    width: int
    keys: tuple[int, ...]
    hidden: Mapping[str, Sequence[str]]
    extra: Mapping[str, Mapping[str, Floats]]
    confidence: float
    seed: str
    extents: Sequence[Extent]

    @cached_property
    def extremes(self) -> tuple[Extreme, ...]:
        """The role of maxima and minima over groups in each column."""
        return extremes(self.tree)

    @cached_property
    def families(self) -> int:
        """The number of families of replicates: 4 if the query aggregates over groups, which adds the family b*, else 3."""
        aggregates = (node.find_ancestor(exp.Window, exp.Query) for node in self.tree.find_all(exp.AggFunc))
        return 4 if any(not isinstance(around, exp.Window) for around in aggregates) else 3


class Unmatched(Exception):
    """Raised when rows of the answer cannot be matched in its replicates; the text says why."""


def in_parts(draws: int, groups: int) -> Iterator[range]:
    """Return ranges of variants, each with as many as the sandbox has room for."""
    size = max(1, PART_ROWS // max(1, groups))
    return (range(start, min(start + size, draws)) for start in range(0, draws, size))


class Variants:
    """`count` variants of the terms of a block (`terms` by name, shape (variants, groups)), followed by the variants of measures
    in `appended`."""

    def __init__(
        self,
        rerun: Rerun,
        block: ReleasedBlock,
        terms: Mapping[str, Floats],
        count: int,
        appended: Sequence[Mapping[str, Floats]] = (),
    ) -> None:
        self.block = block
        self.extra = rerun.extra.get(block.name, {})
        self.terms = terms
        self.count = count
        self.appended = appended
        self.measures = Measures(block)

    def table(self, part: range) -> pa.Table:
        """Return keys, measures, hidden columns and variant number for the variants in `part`."""
        rows = self.block.rows
        places = pa.array(np.tile(np.arange(rows, dtype=np.int64), len(part)))
        columns = self.block.table(self.extra)
        columns = columns.select([name for name in columns.column_names if name not in self.terms]).take(places)
        terms = {name: values[part.start : part.stop] for name, values in self.terms.items()}
        measures = self.measures.values({name for name, _, _ in self.block.formulas}, terms)
        for place, values in enumerate(self.appended):
            if self.count + place in part:
                measures = {name: np.concatenate((above, values[name][None])) for name, above in measures.items()}
        for name, _, type_ in self.block.formulas:
            flat = np.broadcast_to(measures[name], (len(part), rows)).reshape(-1)
            columns = columns.append_column(name, typed(np.where(np.isfinite(flat), flat, np.nan), type_))
        return columns.append_column(DRAW, pa.array(np.repeat(np.arange(part.start, part.stop), rows)))


def run_again(
    room: Room, rerun: Rerun, answer: pa.Table, positions: Sequence[int], blocks: Mapping[str, Variants], part: range
) -> pa.Table:
    """Return a table with the number of the variant, the row of the answer, and the columns at `positions`."""
    names = [f"c{position}" for position in range(rerun.width)]
    inner = runnable(rerun.tree.copy(), rerun.remainder, rerun.hidden, this_draw)
    labels = ", ".join(f'"{name}"' for name in names)
    on = " AND ".join(f'q."c{position}" IS NOT DISTINCT FROM a."c{position}"' for position in rerun.keys) or "TRUE"
    picked = "".join(f', q."c{position}"' for position in positions)
    variants = (
        f'SELECT "{DRAWS}"."{DRAW}", a."{_AT}"{picked} FROM "{DRAWS}" CROSS JOIN LATERAL ({inner}) AS q({labels}) '
        f'JOIN "{_ROWS}" AS a ON {on}'
    )
    # Materialise: directly below the LIMIT that the sandbox adds, DuckDB takes 100 times as long for a block that is read twice.
    sql = f'WITH "{_VARIANTS}" AS MATERIALIZED ({variants}) SELECT * FROM "{_VARIANTS}"'
    rows = pa.table(
        {_AT: pa.array(np.arange(len(answer)))} | {f"c{position}": answer.column(position) for position in rerun.keys}
    )
    tables = dict(rerun.remainder.public) | {name: block.table(part) for name, block in blocks.items()}
    tables |= {_ROWS: rows, DRAWS: pa.table({DRAW: pa.array(np.arange(part.start, part.stop))})}
    return room.query(sql, tables, most_rows=2 * PART_ROWS + len(part) * len(answer))


def this_draw(query: exp.Select) -> exp.Select:
    """Return a block's query over its measures, restricted to the current variant of the lateral join."""
    query.set("expressions", [column(item.alias_or_name) for item in query.expressions])
    return query.where(exp.EQ(this=column(DRAW), expression=column(DRAW, DRAWS)), dialect=DIALECT)
