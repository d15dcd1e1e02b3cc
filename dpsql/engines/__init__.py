"""The contract of an engine: exact integer aggregation over protected data, and nothing else leaves it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from dpsql.emit.bounded_view import BoundedView


UNIT_ID = "#id"
"""Name of the hidden column of a prepared view that stands for the unit's key where units are only counted."""


@dataclass(frozen=True)
class EngineQuery:
    """Text that we generated from our own plan. Result columns: `keys` in order, then `terms` (integers, never NULL).

    `parameters`: what $1, $2, ... of the text stand for (int, float, str, date or datetime).
    `released`: results of the question (pyarrow.Table by name) that are read beside the source.
    `unchanged`: (table, identity) whose rows must have been those of `identity` from before the query to after it; an
    engine that cannot say so gives no answer.
    """

    sql: str
    keys: tuple[str, ...]
    terms: tuple[str, ...]
    unchanged: tuple[tuple[str, str], ...] = ()
    released: Mapping[str, Any] = field(default_factory=dict)
    parameters: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Source:
    """Where a policy's table is: `sql` is the qualified name or scan of the engine, `types` its columns' types."""

    sql: str
    types: dict[str, str]


@dataclass(frozen=True)
class View:
    """How the bounded view of a protected table is read at this moment.

    `key`: secret of the order in which rows are kept, fixed for the table's data version. `sql`: the prepared view
    (columns of the policy in its types, the unit's key and `UNIT_ID`), None where a window must make it;
    `count_units`: the function that counts units by `UNIT_ID`. `identity`: what the source must still be after the
    query where the source itself is the view, else "".
    """

    key: str
    sql: str | None = None
    count_units: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Identity:
    """Which rows a table's source holds: `text` differs when they do; `changed_seconds`: time of the last change."""

    text: str
    changed_seconds: float


class ExactAnswer:
    """Exact private sums, sealed: no repr of rows, no pickling, no copying; opened by `perturb` alone."""

    __slots__ = ("__table",)

    def __init__(self, table: Any) -> None:
        """`table`: pyarrow.Table; term columns are int64 or decimal128(38, 0)."""
        self.__table = table

    def unseal(self) -> Any:
        """The pyarrow.Table. Only `dpsql.perturb` may call this (a test reads the sources to hold it so)."""
        return self.__table

    def __repr__(self) -> str:
        return "<ExactAnswer: sealed>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an exact answer does not leave the process")

    def __copy__(self) -> NoReturn:
        raise TypeError("an exact answer is not copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("an exact answer is not copied")


class PreparedViews(Protocol):
    """Bounded views that an engine keeps in files of its own; made and found by `dpsql.contribution_index` alone."""

    engine: str
    """Name and version: what orders rows differently is another engine."""

    def opened(self, table: str, token: str, file: Path | None, view: Callable[[], BoundedView]) -> str | None:
        """Name under which a question reads the view and counts its units; None when it cannot be read.

        `token` names this version of the view; `file` holds it, or is None where the source itself is the view. `view`
        is asked for when the version is new.
        """

    def write(
        self, view: BoundedView, key: str, file: Path, *, in_place: bool, progress: Callable[[str, float], None]
    ) -> bool:
        """Write the view into the new file. False, with nothing written, where `in_place` allows it and every row stays.

        `progress` is told what is being done and how much of it is done, from 0 to 1. Raises Fault index_not_written.
        """

    def limit(self, memory: str | None, jobs: int | None, scratch: Path) -> None:
        """Memory and threads for `write` (None: as they are), and the folder for what does not fit into memory."""


class Engine(Protocol):
    """What `session` asks of a database. Implementations raise engine errors as `Fault` with a fixed text only."""

    dialect: str

    @property
    def views(self) -> PreparedViews:
        """The prepared views of the source."""

    def columns(self, table: str) -> dict[str, str] | None:
        """Structure of one source table (column -> engine type), None when there is none. For the custodian's eyes."""

    def source(self, table: str, total: bool = False) -> Source:
        """Where a table of the policy is; a fault of the owner's when it or a column is missing.

        `total`: read it in a way in which no value can fail, however long that takes.
        """

    def data_version(self, tables: tuple[str, ...]) -> str:
        """A fingerprint that changes when the rows of `tables` may have changed (treated as public, privacy.md 7)."""

    def identity(self, table: str) -> Identity | None:
        """What a table's rows (and those on its way to the unit) are now; None when they could change unnoticed."""

    def look(self, tables: tuple[str, ...]) -> None:
        """Make sure that tables (and those on their way to the unit) are there and can be read, as far as that shows
        without reading rows: asked before anything is charged, so it is cheap where nothing changed. Raises Fault.
        """

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one generated aggregation over protected data."""

    def holds(self, query: str) -> bool:
        """Whether a generated check of a promise of the policy finds no row; remembered for the version of the data."""

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        """Values (ascending, without NULL) of each text, integer, boolean or date column that has at most `most`."""

    def public_table(self, sql: str) -> Any:
        """Rows (pyarrow.Table) of one generated query over public tables only."""

    def interrupt(self) -> None:
        """Stop what is running now, from any thread."""

    def close(self) -> None:
        """Give the connection back."""
