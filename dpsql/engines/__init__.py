"""The contract of an engine: exact integer aggregation over protected data, and nothing else leaves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn, Protocol


@dataclass(frozen=True)
class EngineQuery:
    """Text that we generated from our own plan. Result columns: `keys` in order, then `terms` (integers, never NULL)."""

    sql: str
    keys: tuple[str, ...]
    terms: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """Where a policy's table is: `sql` is the qualified name or scan of the engine, `types` its columns' types."""

    sql: str
    types: dict[str, str]


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


class Engine(Protocol):
    """What `session` asks of a database. Implementations raise engine errors as `Fault` with a fixed text only."""

    dialect: str

    def columns(self, table: str) -> dict[str, str] | None:
        """Structure of one source table (column -> engine type), None when there is none. For the custodian's eyes."""

    def source(self, table: str) -> Source:
        """Where a table of the policy is; a fault of the owner's when it or a column is missing."""

    def data_version(self, tables: tuple[str, ...]) -> str:
        """A fingerprint that changes when the rows of `tables` may have changed (treated as public, privacy.md 7)."""

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
