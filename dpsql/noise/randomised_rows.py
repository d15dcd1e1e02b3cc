"""Rows of an export after their local randomizers: as many as the noisy count, in random order.

The output depends on a row only through the laws of its columns (`pricing.row_export` has the argument).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsql.errors.exceptions import refuse
from dpsql.noise.local_randomizers import (
    Codes,
    Integers,
    draw_categories,
    draw_numbers,
    padding_categories,
    padding_numbers,
    random_order,
)
from dpsql.noise.randomness import Randomness
from dpsql.pricing.row_export import ExportedColumn, ExportPlan
from dpsql.privacy.mechanisms.local_randomizers import CategoryLaw

_MOST_BITS = 50
"""Row integers with more bits are truncated to this many, so that their products with places stay below 2**62."""


@dataclass(frozen=True, eq=False)
class RandomisedColumn:
    """Outputs of one column's law, one per row (for sets of values, one row of the array each). `interval`: which outputs come
    from the piecewise law of a number; None for categories."""

    outputs: Codes
    interval: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ExactRows:
    """The exact rows of a table: codes or row integers for each column; `missing` is True where a number is NULL."""

    count: int
    values: tuple[NDArray[Any], ...]
    missing: tuple[NDArray[np.bool_], ...]


def exact_rows(table: Any, plan: ExportPlan) -> ExactRows:
    """Return the exact rows from the engine's combinations. Rows with a value outside a column's list, or with a NULL that the
    column does not allow, are omitted, because they belong to no group of a query. Raises Fault noise_answer."""
    read = [_read(table.column(f"k{number}"), column) for number, column in enumerate(plan.columns)]
    counts = table.column("n").to_numpy()
    for _, _, belongs in read:
        if belongs is not None:
            counts = np.where(belongs, counts, 0)
    if (counts == 1).all():  # frequent for combinations with numbers
        return ExactRows(counts.size, tuple(v for v, _, _ in read), tuple(m for _, m, _ in read))
    values = tuple(np.repeat(v, counts) for v, _, _ in read)
    return ExactRows(int(counts.sum()), values, tuple(np.repeat(m, counts) for _, m, _ in read))


def _read(keys: Any, column: ExportedColumn) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return the codes or integers of one column, which of them are missing, and which rows belong to the export (None: all)."""
    present = np.zeros(len(keys), dtype=bool)
    if column.term is not None:
        missing = keys.is_null().to_numpy() if keys.null_count else present
        spare = spare_bits(column)
        keys = keys.cast(_narrowest(int(column.term.magnitude)))
        numbers = (keys.fill_null(0) if keys.null_count else keys).to_numpy()
        numbers = numbers >> spare if spare else numbers
        return numbers, missing, None if _may_be_missing(column) or not keys.null_count else ~missing
    assert column.values is not None
    try:
        codes = pc.index_in(keys, value_set=column.values.cast(keys.type))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # This depends on the column's type and the policy's values, not on rows.
        raise refuse("noise_answer", charged=True) from None
    inside = codes.is_valid().to_numpy() if codes.null_count else None
    codes = codes if inside is None else codes.fill_null(0)
    return codes.cast(_narrowest(len(column.values))).to_numpy(), present, inside


def _narrowest(most: int) -> Any:
    """Return the narrowest type for values in [0, most] from which numpy takes elements fast."""
    return pa.int16() if most < 1 << 15 else pa.int32() if most < 1 << 31 else pa.int64()


def _may_be_missing(column: ExportedColumn) -> bool:
    return not isinstance(column.law, CategoryLaw) and column.law.missing


def spare_bits(column: ExportedColumn) -> int:
    """Return the number of low bits by which the row integers of a number are truncated."""
    assert column.term is not None
    return max(0, int(column.term.magnitude).bit_length() - _MOST_BITS)


def randomise_rows(
    rows: ExactRows, written: int, plan: ExportPlan, randomness: Randomness
) -> tuple[RandomisedColumn, ...]:
    """Return `written` rows in random order: the exact rows, each randomised, plus padding rows if `written` is larger, else a
    uniform choice of the exact rows."""
    order = random_order(max(written, rows.count), randomness)[:written]
    padding = order >= rows.count
    columns, places = [], order
    if written > rows.count:
        places[padding] = 0
    for column, values, missing in zip(plan.columns, rows.values, rows.missing, strict=True):
        chosen = _taken(values, places)
        law = column.law
        if isinstance(law, CategoryLaw):
            outputs = draw_categories(chosen, law, randomness)
            outputs[padding] = padding_categories(int(padding.sum()), law, randomness)
            columns.append(RandomisedColumn(outputs))
            continue
        assert column.term is not None
        most = int(column.term.magnitude) >> spare_bits(column)
        nulls = _taken(missing, places) if law.missing else missing
        outputs, interval = draw_numbers(chosen, nulls, most, law, randomness)
        outputs[padding], interval[padding] = padding_numbers(int(padding.sum()), law, randomness)
        columns.append(RandomisedColumn(outputs, interval))
    return tuple(columns)


def _taken(values: NDArray[Any], places: Integers) -> NDArray[Any]:
    """Return the values at `places`; zeros if there are no rows."""
    return values[places] if values.size else np.zeros(places.size, dtype=values.dtype)
