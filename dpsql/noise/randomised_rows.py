"""Rows of an export after their local randomizers: as many as the noisy count says, in random order.

Nothing that leaves here depends on a row but through the law of its columns (`pricing.row_export` has the argument).
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
"""Row integers of more bits are read to this many, so that their products with places stay below 2**62."""


@dataclass(frozen=True, eq=False)
class RandomisedColumn:
    """Outputs of one column's law, one row each (of sets of values: one row of the array each). `interval`: which outputs are of
    the piecewise law of a number; None for categories."""

    outputs: Codes
    interval: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class ExactRows:
    """Exact rows of a table: for each column its codes or row integers, `missing` where a number is NULL."""

    count: int
    values: tuple[NDArray[Any], ...]
    missing: tuple[NDArray[np.bool_], ...]


def exact_rows(table: Any, plan: ExportPlan) -> ExactRows:
    """Read the engine's combinations. Rows outside the list of values of a column, or NULL where it has none, are left out,
    as they belong to no group of a question. Raises Fault noise_answer."""
    read = [_read(table.column(f"k{number}"), column) for number, column in enumerate(plan.columns)]
    counts = table.column("n").to_numpy()
    for _, _, belongs in read:
        if belongs is not None:
            counts = np.where(belongs, counts, 0)
    if (counts == 1).all():  # as combinations with numbers often are
        return ExactRows(counts.size, tuple(v for v, _, _ in read), tuple(m for _, m, _ in read))
    values = tuple(np.repeat(v, counts) for v, _, _ in read)
    return ExactRows(int(counts.sum()), values, tuple(np.repeat(m, counts) for _, m, _ in read))


def _read(keys: Any, column: ExportedColumn) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_] | None]:
    """Return codes or integers of one column, which of them are missing, and which rows are inside (None: all)."""
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
        # The types of the column and the values of the policy decide this, not rows.
        raise refuse("noise_answer", charged=True) from None
    inside = codes.is_valid().to_numpy() if codes.null_count else None
    codes = codes if inside is None else codes.fill_null(0)
    return codes.cast(_narrowest(len(column.values))).to_numpy(), present, inside


def _narrowest(most: int) -> Any:
    """Return the narrowest of the types that values in [0, most] are taken from fast."""
    return pa.int16() if most < 1 << 15 else pa.int32() if most < 1 << 31 else pa.int64()


def _may_be_missing(column: ExportedColumn) -> bool:
    return not isinstance(column.law, CategoryLaw) and column.law.missing


def spare_bits(column: ExportedColumn) -> int:
    """Return the number of low bits of a number's row integers that are not used."""
    assert column.term is not None
    return max(0, int(column.term.magnitude).bit_length() - _MOST_BITS)


def randomise_rows(
    rows: ExactRows, written: int, plan: ExportPlan, randomness: Randomness
) -> tuple[RandomisedColumn, ...]:
    """`written` rows: the exact ones, each randomised, with padding rows or a uniform choice of them, in random order."""
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
    """Return values in the order that is written; anything where there is no row."""
    return values[places] if values.size else np.zeros(places.size, dtype=values.dtype)
