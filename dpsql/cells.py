"""The cells of an answer: which groups are measured, in which order, and where each engine row belongs.

The order of cells is that of the keys, never that in which the engine returned its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors import refuse
from dpsql.int128 import Int128
from dpsql.mechanisms import KeyColumn
from dpsql.samplers import LEAST_DRAW

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """The cells that are measured: their keys (pyarrow.Table, in key order), how many, and whether that is public."""

    keys: Any
    count: int
    public: bool

    @property
    def draws(self) -> int:
        """How many values to draw: a private number of cells is rounded up, as the time of a draw tells its size."""
        return self.count if self.public else max(LEAST_DRAW, 1 << (self.count - 1).bit_length())


@dataclass(frozen=True, eq=False)
class Layout:
    """Engine row `sources[i]` goes to cell `cells[i]` of `groups`; a cell without a row is 0."""

    groups: Groups
    sources: Positions
    cells: Positions

    def integers(self, table: Any, name: str) -> Int128:
        """Column `name` of the engine's `table`, one number per cell. Raises Fault noise_answer."""
        return Int128.from_arrow(plain_column(table, name)).placed(self.sources, self.cells, self.groups.count)


def lay_out(table: Any, keys: tuple[KeyColumn, ...]) -> Layout:
    """The cells for the engine's `table` (pyarrow.Table).

    No keys: one cell. Public keys alone: every combination of their values, first key slowest. Any private key: the
    combinations in the table, public keys in the order of their values, private keys ascending, NULL last. Rows with a
    public key outside its values belong to no cell. Raises Fault noise_answer for a table of the wrong shape.
    """
    if not keys:
        if table.num_rows > 1:
            raise refuse("noise_answer", charged=True)
        row = np.arange(table.num_rows)
        return Layout(Groups(pa.table({}), 1, True), row, row)
    columns = [plain_column(table, key.name) for key in keys]
    domains = [key.values for key in keys]
    places = [
        None if domain is None else _places(column, domain) for column, domain in zip(columns, domains, strict=True)
    ]
    inside = np.ones(table.num_rows, dtype=bool)
    for place in places:
        if place is not None:
            inside &= place >= 0
    sources = np.flatnonzero(inside)
    if None in domains:
        return _observed(keys, columns, places, sources)
    return _product(keys, [place[sources] for place in places if place is not None], sources)


def plain_column(table: Any, name: str) -> Any:
    """One column as a plain pyarrow.Array; a missing column is the engine's mistake, not the data's."""
    if table.column_names.count(name) != 1:
        raise refuse("noise_answer", charged=True)
    column = table.column(name)
    if column.num_chunks == 1:
        return _plain(column.chunk(0))
    return _plain(pa.concat_arrays([pa.array([], column.type), *column.chunks]))


def _plain(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _places(column: Any, domain: Any) -> Positions:
    """The position of every element of `column` in `domain`, -1 for those outside; NULL only where it is listed."""
    try:
        found = pc.index_in(column, value_set=_plain(domain).cast(column.type), skip_nulls=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # The types of the column and the values of the policy decide this, not rows.
        raise refuse("noise_answer", charged=True) from None
    return np.array(found.fill_null(-1)).astype(np.int64)


def _product(keys: tuple[KeyColumn, ...], places: list[Positions], sources: Positions) -> Layout:
    """Every combination of the values of public keys."""
    domains = [key.values for key in keys if key.values is not None]
    count = prod(len(domain) for domain in domains)
    cells = np.zeros(sources.size, dtype=np.int64)
    for place, domain in zip(places, domains, strict=True):
        cells = cells * len(domain) + place
    taken = np.zeros(count, dtype=bool)
    taken[cells] = True
    if int(taken.sum()) != cells.size:
        raise refuse("noise_answer", charged=True)
    columns, fastest = {}, count
    for key, domain in zip(keys, domains, strict=True):
        fastest //= len(domain) or 1
        index = np.repeat(np.arange(len(domain)), fastest)
        columns[key.name] = domain.take(pa.array(np.tile(index, count // index.size if index.size else 0)))
    return Layout(Groups(pa.table(columns), count, True), sources, cells)


def _observed(
    keys: tuple[KeyColumn, ...], columns: list[Any], places: list[Positions | None], sources: Positions
) -> Layout:
    """The combinations that the engine saw, sorted."""
    shown, ranks = {}, {}
    for i, (key, column, place) in enumerate(zip(keys, columns, places, strict=True)):
        if key.values is None or place is None:
            shown[key.name] = ranks[str(i)] = column.take(pa.array(sources))
        else:
            ranks[str(i)] = pa.array(place[sources])
            shown[key.name] = key.values.take(ranks[str(i)])
    try:
        order = None if _ascending(list(ranks.values())) else _order(ranks)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError):
        # A key type that has no order; types are the engine's, not the data's.
        raise refuse("noise_answer", charged=True) from None
    table = pa.table(shown)
    if order is not None:
        table, sources = table.take(order), sources[np.array(order).astype(np.int64)]
    return Layout(Groups(table, sources.size, False), sources, np.arange(sources.size))


def _order(ranks: dict[str, Any]) -> Any:
    """The rows in ascending order; NULL is placed last."""
    return pc.sort_indices(pa.table(ranks), sort_keys=[(name, "ascending") for name in ranks])


def _ascending(columns: list[Any]) -> bool:
    """Whether rows stand in the order that `_order` gives, each before the next: two passes instead of a sort.

    The engine sorts on all cores, but nothing is taken on trust. NaN is above nothing here, so it leads to a sort.
    """
    tied = before = None
    for column in columns:
        this, following = column.slice(0, max(0, len(column) - 1)), column.slice(1)
        less = pc.if_else(following.is_null(), this.is_valid(), pc.less(this, following)).fill_null(False)
        before = less if tied is None else pc.or_(before, pc.and_(tied, less))
        both = pc.and_(this.is_null(), following.is_null())
        equal = pc.or_(both, pc.equal(this, following).fill_null(False))
        tied = equal if tied is None else pc.and_(tied, equal)
    return bool(pc.all(before, min_count=0).as_py())
