"""The release: an immutable, public answer with error bars, price and receipt.

Everything here is computed from noisy numbers, so a release may be shown, stored, pickled and used in computations freely.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dpsql.errors.custodian_log import registering
from dpsql.errors.exceptions import Error
from dpsql.media.text import terminal, terminal_lines
from dpsql.plan.intervals import Type
from dpsql.pricing.explain import PlannedOutput
from dpsql.privacy.loss import PrivacyLoss, plain_decimal
from dpsql.release.error_bars import Answer, Bars, answer, bars
from dpsql.release.error_bars.answers import CHOSEN
from dpsql.release.remainder import Remainder
from dpsql.release.sandbox import Sandbox, shared_sandbox
from dpsql.release.shape import DescribedColumn, MeasureFacts, cases_text, describe, rows_text, sentences, with_bars
from dpsql.release.value_text import answer_html
from dpsql.storage.records import dataclass, field, replace

if TYPE_CHECKING:
    import pandas
    import polars

_SHOWN_ROWS = 20
_SHOWN_WIDTH = 28


@dataclass(frozen=True)
class OutputColumn:
    """One column of an answer: its name (names may repeat), SQL type, whether it depends on noise, and whether it depends on
    which groups exist (`of_groups`: then it is noisy, and its error is not known; `if_all_exist`: its error bar holds if the data
    have every group that is shown). `settled`: noise does not decide which rows are shown. `source`: the release and the column's
    position in it, or None before there is an answer."""

    name: str
    type: Type
    noisy: bool
    of_groups: bool = False
    if_all_exist: bool = False
    settled: bool = True
    source: tuple[Release, int] | None = field(default=None, compare=False, repr=False)

    @property
    def unknown(self) -> bool:
        """Return whether noise leaves no information about some value of the column: its bar is all that its bounds allow."""
        if self.source is None or not self.noisy:
            return False
        release, position = self.source
        return bool(pc.any(release.unknown.column(position)).as_py())


@dataclass(frozen=True)
class Receipt:
    """The record of a charge. `id`: the entry in the ledger; `charged`: the text that an analyst reads; `remaining`: the
    remaining budget of each scope; `reused`: stored answers were repeated and nothing was charged; `price`: the charge as a part
    of the budget, in words; `notices`: remarks on this answer; `standing`: those that follow from policy and text, and stand for
    many answers."""

    id: str
    loss: PrivacyLoss
    remaining: Mapping[str, str]
    charged: str = ""
    reused: bool = False
    notices: tuple[str, ...] = ()
    price: str = ""
    standing: tuple[str, ...] = ()

    @property
    def is_paid(self) -> bool:
        """Return whether something was charged for the answer."""
        return not self.reused and self.charged != "nothing"


class _Once:
    """What is computed at the first request: bars, under a lock that is not pickled, and the columns that follow from them."""

    def __init__(self, value: Bars | None = None) -> None:
        self.value = value
        self.described: tuple[DescribedColumn, ...] | None = None
        self.lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Once, (self.value,))


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """Rows with their error bars and receipt. Releases are compared by identity and pickled without the engine.

    `measured`: the noisy terms from which the answer was computed, each with its price and its error bar; `facts`: what its
    measures are besides noise.
    """

    answered: Answer
    receipt: Receipt
    sandbox: Sandbox | None = None
    measured: Sequence[PlannedOutput] = ()
    facts: Sequence[MeasureFacts] = ()
    _bars: _Once = field(default_factory=_Once)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "sandbox": None}

    # --- the answer -----------------------------------------------------------------------------------------------

    @property
    def table(self) -> pa.Table:
        """The rows as a pyarrow.Table; column names may repeat."""
        return self.answered.table

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """Name, type and noisiness of each column."""
        return _columns(self.answered, self)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples of Python values (int, float, str, bool, date, datetime, None)."""
        for batch in self.table.to_batches():
            yield from zip(*(values.to_pylist() for values in batch.columns), strict=True)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def to_arrow(self, *, bars: bool = False) -> pa.Table:
        """Return the rows. `bars`: each noisy column n is followed by n_low and n_high, the ends of its error bars."""
        if not bars:
            return self.table
        return with_bars(self.table, self.low, self.high, [column.noisy for column in self.columns])

    def to_pandas(self, *, bars: bool = False) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame (pandas must be installed); repeated names are kept. `bars` as in `to_arrow`."""
        frame: pandas.DataFrame = self.to_arrow(bars=bars).to_pandas()
        return frame

    def to_polars(self, *, bars: bool = False) -> polars.DataFrame:
        """Return the rows as a polars DataFrame (polars installed); repeated names become n, n_1. `bars` as in `to_arrow`."""
        import polars

        table = self.to_arrow(bars=bars)
        frame = polars.from_arrow(table.rename_columns(_distinct(table.column_names)))
        assert isinstance(frame, polars.DataFrame)
        return frame

    # --- error bars -----------------------------------------------------------------------------------------------

    @property
    def confidence(self) -> float:
        """The share of intervals that cover the exact answer (of the bounded, clamped data; bias of bounds not included)."""
        return self.answered.confidence

    @property
    def bars(self) -> Bars:
        """Error bars, computed at first use from released numbers only; later uses are free."""
        with self._bars.lock:
            if self._bars.value is None:
                with registering(charged=self.receipt.is_paid):
                    self._bars.value = bars(self.sandbox or shared_sandbox(), self.answered)
            return self._bars.value

    @property
    def low(self) -> pa.Table:
        """Lower ends, aligned with `table`: doubles, NULL for exact columns and where unknown (see `bars.notes`)."""
        return self.bars.low

    @property
    def high(self) -> pa.Table:
        """Upper ends, like `low`."""
        return self.bars.high

    @property
    def error(self) -> pa.Table:
        """Half widths, shaped like `low`: value - error to value + error covers low to high."""
        return self.bars.error

    @property
    def unknown(self) -> pa.Table:
        """Booleans, aligned with `table`: True where the noise leaves no information, so that the bar is all that the bounds
        allow, or a chosen number may be off by more rows than there are."""
        columns = [pa.array(column.unknown) for column in self.described]
        return pa.Table.from_arrays(columns, names=self.table.column_names)

    @property
    def described(self) -> tuple[DescribedColumn, ...]:
        """The columns with everything that is known of their numbers, as data; every door reads this."""
        if self._bars.described is None:
            columns = [(column.name, column.type, column.noisy) for column in self.columns]
            self._bars.described = describe(columns, self.answered, self.bars, self.facts)
        return self._bars.described

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the numbers: on their error bars, on those that touch a bound, and on how far chosen ones may be off."""
        described = self.described
        chosen = [
            column.name
            for position, column in enumerate(described)
            if position in self.bars.chosen and column.rank_error is None
        ]
        unexplained = (f"no error bar for {', '.join(dict.fromkeys(chosen))}: {CHOSEN}",) if chosen else ()
        return (*self.bars.notes, *unexplained, *sentences(described))

    # --- the receipt ----------------------------------------------------------------------------------------------

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss charged for this release (zero if it was answered from stored releases)."""
        return self.receipt.loss

    @property
    def epsilon(self) -> str | None:
        """The charged epsilon as text, None if it is not finite (Gaussian noise)."""
        return None if self.loss.epsilon is None else plain_decimal(self.loss.epsilon)

    @property
    def delta(self) -> str:
        """The charged delta as text."""
        return plain_decimal(self.loss.delta)

    @property
    def rho(self) -> str | None:
        """The charged rho of zCDP as text, None if it is not finite."""
        return None if self.loss.rho is None else plain_decimal(self.loss.rho)

    @property
    def receipt_id(self) -> str:
        """The id of the charge in the ledger."""
        return self.receipt.id

    @property
    def remaining(self) -> Mapping[str, str]:
        """The remaining budget of each scope, as text."""
        return dict(self.receipt.remaining)

    @property
    def notices(self) -> tuple[str, ...]:
        """Remarks for the analyst on the rows of the answer (those on its numbers are `remarks`)."""
        return (*self.receipt.notices, *self.receipt.standing, *group_notices(self.columns))

    @property
    def reused(self) -> bool:
        """Return whether stored answers were repeated, at no charge."""
        return self.receipt.reused

    # --- Python ---------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        body = _text_table(self.table.column_names, [*self.table.slice(0, _SHOWN_ROWS).to_batches()])
        more = "" if len(self) <= _SHOWN_ROWS else f"\n... {len(self)} rows"
        return terminal_lines(f"{body}{more}\n{self._paid()}")

    def _paid(self) -> str:
        """Return what was charged in words, with the receipt, which answers of statements that read no data lack."""
        charged = self.receipt.charged or _priced(self.loss)
        words = "nothing charged" if self.reused or charged == "nothing" else f"charged {charged}"
        return f"{words}, receipt {self.receipt_id}" if self.receipt_id else words

    def _repr_html_(self) -> str:
        """Return the answer as HTML for notebooks."""
        described = self.described
        errors = [
            None if not column.noisy
            else self.error.column(position).to_pylist() if column.rank_error is None
            else rows_text(column.rank_error)
            for position, column in enumerate(described)
        ]  # fmt: skip
        price = (
            self._paid() if self.reused or not self.receipt.price else f"price: {self.receipt.price}; {self._paid()}"
        )
        cases = cases_text(described, self.confidence)
        remarks = (f"{price}{cases}", *self.notices, *self.remarks)
        return answer_html([column.name for column in self.columns], self.rows(), errors, len(self), remarks)


def group_notices(columns: Sequence[OutputColumn]) -> tuple[str, ...]:
    """Return notices on columns that are computed over the groups of a block, and how to ask instead; and that noise decides
    which rows are shown, if no number with an error bar says so."""
    unknown = ", ".join(dict.fromkeys(column.name for column in columns if column.of_groups))
    barred = ", ".join(dict.fromkeys(column.name for column in columns if column.if_all_exist))
    notices = []
    if unknown:
        notices.append(
            f"{unknown}: computed over the groups shown, which may be others than those of the data (public keys are all "
            "there, private ones where enough units share them), so the error is not known; HAVING COUNT(*) > n leaves groups "
            "of public keys that the data has, COUNT(DISTINCT key) counts keys"
        )
    if barred:
        notices.append(
            f"{barred}: computed over the groups beside it, which are shown whether or not the data has them; the error bar "
            "holds if the data has each of them"
        )
    if columns and not columns[0].settled and not any(column.noisy for column in columns):
        notices.append("noise decides which rows are shown")
    return tuple(notices)


@dataclass(frozen=True)
class Presentation:
    """How an answer is shown. `confidence` of bars in (0, 1); `nonnegative`: show negative counts as 0; `unknown_as_null`: show
    NULL where noise leaves no information; `simultaneous`: bars also hold for rows selected by noise; `shrinkage`: show
    estimates with smaller errors where noise is large (`aggregates.estimates`)."""

    confidence: float
    nonnegative: bool = False
    unknown_as_null: bool = False
    simultaneous: bool = True
    shrinkage: bool = True


def make_release(
    sandbox: Sandbox,
    remainder: Remainder,
    presentation: Presentation,
    receipt: Receipt,
    facts: Sequence[MeasureFacts] = (),
) -> Release:
    """Run the public remainder over the released tables and return the release; this is the last step of every query.

    Raises the refusals of the sandbox, with `charged` set if the receipt holds a charge.
    """
    if not presentation.shrinkage:
        remainder = replace(remainder, blocks=tuple(block.as_plugged_in() for block in remainder.blocks))
    if presentation.nonnegative:
        remainder = replace(remainder, blocks=tuple(block.with_counts_from_zero() for block in remainder.blocks))
    try:
        answered = answer(sandbox, remainder, presentation.confidence, simultaneous=presentation.simultaneous)
        release = Release(answered, receipt, sandbox, facts=facts)
        if not presentation.unknown_as_null:
            return release
        return Release(
            replace(answered, table=_without_unknown(release)), receipt, sandbox, facts=facts, _bars=_Once(release.bars)
        )
    except Error as error:
        error.charged = not receipt.reused and receipt.loss != PrivacyLoss.nothing()
        raise


def _without_unknown(release: Release) -> pa.Table:
    """Return the rows with NULL for unknown values."""
    table = release.table
    for position, column in enumerate(release.columns):
        if column.unknown:
            values, nothing = table.column(position), release.unknown.column(position)
            table = table.set_column(
                position, table.field(position), pc.if_else(nothing, pa.scalar(None, values.type), values)
            )
    return table


def rehearse(sandbox: Sandbox, remainder: Remainder, confidence: float) -> tuple[OutputColumn, ...]:
    """Run a remainder over blocks without rows (`remainder.unanswered`), before anything is charged.

    Raise the refusals that the sandbox would raise for the query's shape (mismatched types, misplaced DP_ functions); return the
    columns that the answer will have. The result depends on SQL, policy and public tables only.
    """
    answered = answer(sandbox, remainder, confidence, rehearsal=True)
    return _columns(answered)


def rehearse_numbers(sandbox: Sandbox, remainder: Remainder, display: Presentation) -> None:
    """Compute everything that an answer shows, error bars and remarks too, over stand-ins for released numbers, before anything
    is charged. Raise what would also be raised for the true numbers: a value that has no result is none of that."""
    try:
        release = make_release(sandbox, remainder, display, Receipt("", PrivacyLoss.nothing(), {}, reused=True))
        _ = release.remarks, release.unknown
    except Error as error:
        if error.slug != "sandbox_value":
            raise


def _columns(answered: Answer, release: Release | None = None) -> tuple[OutputColumn, ...]:
    named = enumerate(zip(answered.table.schema, answered.noisy, strict=True))
    return tuple(
        OutputColumn(
            field.name, sql_type(field.type), noisy, position in answered.of_groups, position in answered.if_all_exist,
            answered.shape is None or answered.shape.settled, None if release is None else (release, position),
        )
        for position, (field, noisy) in named
    )  # fmt: skip


@lru_cache(maxsize=256)
def sql_type(type_: pa.DataType) -> Type:
    """Return the SQL type for an Arrow type that `sandbox.plain` returns."""
    kinds = (
        (pa.types.is_boolean, Type.BOOLEAN), (pa.types.is_integer, Type.INTEGER), (pa.types.is_floating, Type.REAL),
        (pa.types.is_date, Type.DATE), (pa.types.is_timestamp, Type.TIMESTAMP), (pa.types.is_null, Type.NULL),
    )  # fmt: skip
    if pa.types.is_list(type_):
        return Type(f"{sql_type(type_.value_type).value}[]")
    return next((word for holds, word in kinds if holds(type_)), Type.TEXT)


def _distinct(names: list[str]) -> list[str]:
    taken: set[str] = set()
    distinct = []
    for name in names:
        number, unique = 0, name
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        taken.add(unique)
        distinct.append(unique)
    return distinct


def _priced(loss: PrivacyLoss) -> str:
    parts = [("epsilon", loss.epsilon), ("delta", loss.delta), ("rho", loss.rho if loss.epsilon is None else None)]
    return ", ".join(f"{name} {plain_decimal(value)}" for name, value in parts if value) or "nothing"


def _text_table(names: list[str], batches: list[pa.RecordBatch]) -> str:
    rows = [row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)]
    texts = [names, *([_cell(value) for value in row] for row in rows)]
    texts = [[terminal(text) for text in row] for row in texts]
    shortened = [
        [text if len(text) <= _SHOWN_WIDTH else text[: _SHOWN_WIDTH - 3] + "..." for text in row] for row in texts
    ]
    widths = [max(len(row[position]) for row in shortened) for position in range(len(names))]
    lines = [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in shortened
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "NULL" if value is None else str(value)
