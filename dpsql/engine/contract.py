"""The contract of an engine: exact integer aggregation over protected data, and nothing else leaves it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, Protocol

from dpsql.engine.csv_lines import Broken
from dpsql.engine.dialect import Dialect
from dpsql.engine.emit.bounded_view import BoundedView
from dpsql.engine.query import EngineQuery, Identity, Source


class ExactAnswer:
    """Exact private sums, sealed: no repr of rows, no pickling, no copying; opened by `perturb` alone."""

    __slots__ = ("__table",)

    def __init__(self, table: Any) -> None:
        """`table`: pyarrow.Table; term columns are int64 or decimal128(38, 0)."""
        self.__table = table

    def unseal(self) -> Any:
        """The pyarrow.Table. Only `dpsql.noise.perturb` may call this (a test reads the sources to hold it so)."""
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
    """Bounded views that an engine keeps in files of its own; made and found by `dpsql.engine.contribution_index` alone."""

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

    dialect: Dialect

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

    def rehearse(self, query: EngineQuery) -> None:
        """Let the engine plan a query without reading rows, before anything is charged for it, if it may refuse a text that
        the emitter wrote. Raises Fault engine_cannot_run."""

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Run one generated aggregation over protected data."""

    def holds(self, query: str) -> bool:
        """Whether a generated check of a promise of the policy finds no row; remembered for the version of the data."""

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        """Values (ascending, without NULL) of each text, integer, boolean or date column that has at most `most`."""

    def public_rows(self, table: str, most: int) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None:
        """Names of the columns and all rows of a public table, in the types of the policy; None where there are more than
        `most`."""

    def public_table(self, sql: str) -> Any:
        """Rows (pyarrow.Table) of one generated query over public tables only."""

    def interrupt(self) -> None:
        """Stop what is running now, from any thread."""

    def broken(self, table: str) -> Broken | None:
        """What is wrong with the lines of a table's CSV files, None for other sources. Reads rows; for the owner."""

    def advice(self) -> tuple[str, ...]:
        """What the owner should mend of how the source is reached, in sentences. For the custodian's eyes."""

    def another(self) -> Engine:
        """The same source for another session: what is remembered is shared, `interrupt` stops its own alone."""

    def close(self) -> None:
        """Give the connection back."""
