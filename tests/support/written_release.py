"""An answer whose rows and error bars a test chooses, so that the expected output of front ends is known in advance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pyarrow as pa

from dpsql.plan.intervals import Type
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import OutputColumn, Receipt, Release
from dpsql.release.shape import DescribedColumn, with_bars

ARROW = {
    Type.INTEGER: pa.int64(), Type.REAL: pa.float64(), Type.TEXT: pa.string(), Type.BOOLEAN: pa.bool_(),
    Type.DATE: pa.date32(), Type.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip


@dataclass(frozen=True)
class WrittenBars:
    """Remarks on error bars."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrittenRelease:
    """The part of a release that front ends read."""

    table: pa.Table
    columns: tuple[OutputColumn, ...]
    error: pa.Table
    low: pa.Table
    high: pa.Table
    receipt: Receipt
    confidence: float = 0.95
    notices: tuple[str, ...] = ()
    bars: WrittenBars = field(default_factory=WrittenBars)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self, *, bars: bool = False) -> pa.Table:
        """Return the rows as a release does."""
        noisy = [column.noisy for column in self.columns]
        return with_bars(self.table, self.low, self.high, noisy) if bars else self.table

    @property
    def described(self) -> tuple[DescribedColumn, ...]:
        none, nowhere = np.zeros(len(self), dtype=bool), np.zeros(len(self), dtype=np.int8)
        return tuple(
            DescribedColumn(
                column.name, column.type, column.noisy, self.low.column(position),
                self.high.column(position), none, nowhere,
            )
            for position, column in enumerate(self.columns)
        )  # fmt: skip

    @property
    def remarks(self) -> tuple[str, ...]:
        return self.bars.notes

    @property
    def loss(self) -> PrivacyLoss:
        return self.receipt.loss

    @property
    def receipt_id(self) -> str:
        return self.receipt.id

    @property
    def reused(self) -> bool:
        return self.receipt.reused

    @property
    def remaining(self) -> Mapping[str, str]:
        return self.receipt.remaining


def written_release(
    columns: Sequence[tuple[str, Type, Sequence[Any]]],
    errors: Mapping[int, Sequence[float | None]] | None = None,
    receipt: Receipt | None = None,
    **remarks: Any,
) -> Release:
    """Return an answer of (name, type, values), noisy in the columns in `errors`: their bars extend by that much on both
    sides."""
    errors = errors or {}
    names = [name for name, _, _ in columns]
    arrays = [pa.array(values, ARROW[type_]) for _, type_, values in columns]
    count = len(columns[0][2]) if columns else 0

    def ends(sign: int) -> pa.Table:
        ends_by_column: list[Any] = []
        for position, (_, _, values) in enumerate(columns):
            widths = errors.get(position, [None] * count)
            around = values if sign else [0] * count
            pairs = zip(around, widths, strict=True)
            ends_by_column.append(
                pa.array([None if v is None or w is None else v + (sign or 1) * w for v, w in pairs], pa.float64())
            )
        return pa.Table.from_arrays(ends_by_column, names=names)

    release = WrittenRelease(
        pa.Table.from_arrays(arrays, names=names),
        tuple(OutputColumn(name, type_, position in errors) for position, (name, type_, _) in enumerate(columns)),
        ends(0), ends(-1), ends(1),
        receipt or Receipt("", PrivacyLoss(Fraction(0), Fraction(0), Fraction(0)), {}),
        **remarks,
    )  # fmt: skip
    return cast(Release, release)
