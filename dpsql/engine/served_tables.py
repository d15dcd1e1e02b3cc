"""What engines have in common, and those on servers: their rows change unnoticed, and many connections are open at once."""

from __future__ import annotations

import copy
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from dpsql.engine.contract import Broken, Engine
from dpsql.engine.dialect import Dialect
from dpsql.engine.query import Identity, Source
from dpsql.plan.canonical_text import canonical_text
from dpsql.policy import Policy
from dpsql.policy.versions import declared_version, named_state

CLOSING_SECONDS = 10.0
UNNAMED = "moment:"
"""Prefix of the versions of data that the policy does not name; no two of these are equal."""
CONNECTION = "connection:"
"""Prefix of the version of a DuckDB connection given in Python, which says nothing of changes."""


def is_change_seen(version: str) -> bool:
    """Return whether data of another state have another version."""
    return not version.startswith((UNNAMED, CONNECTION))


def is_versioned(policy: Policy, engine: Engine) -> bool:
    """Return whether two questions can be over the same version of the data, so that a stored answer is given again."""
    return declared_version(policy) is not None or not engine.data_version(()).startswith(UNNAMED)


class PolicyTables(ABC):
    """The part of an `Engine` that is the same for every engine. Thread-safe."""

    dialect: Dialect

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._checked: dict[tuple[str, str], bool] = {}
        self._running: set[Any] = set()
        """The connections, cursors or jobs that `interrupt` cancels."""
        self._lock = threading.RLock()
        self._owned = True

    @abstractmethod
    def data_version(self, tables: tuple[str, ...]) -> str: ...

    @abstractmethod
    def source(self, table: str, total: bool = False) -> Source: ...

    @abstractmethod
    def exact_rows(self, sql: str) -> Any: ...

    @abstractmethod
    def interrupt(self) -> None: ...

    @abstractmethod
    def _fetched(self, *queries: str) -> list[list[tuple[Any, ...]]]:
        """Return the rows of each query, as Python has their values."""

    @abstractmethod
    def _disconnect(self) -> None:
        """Release the resources that were opened for the source."""

    def public_domains(self, table: str, most: int) -> dict[str, tuple[Any, ...]]:
        queries = self.dialect.listed_values(self._policy.tables[table], self.source(table), most)
        listed = zip(queries, self._fetched(*queries.values()), strict=True)
        return {column: tuple(row[0] for row in rows) for column, rows in listed if len(rows) <= most}

    def public_rows(self, table: str, most: int) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]] | None:
        declared = self._policy.tables[table]
        (rows,) = self._fetched(self.dialect.listed_rows(declared, self.source(table), most))
        return (tuple(declared.columns), tuple(rows)) if len(rows) <= most else None

    def public_table(self, sql: str) -> Any:
        return self.exact_rows(sql)

    def holds(self, query: str) -> bool:
        check = (query, self.data_version(tuple(self._policy.tables)))
        with self._lock:
            if check in self._checked:
                return self._checked[check]
        holds = bool(self.exact_rows(query).num_rows == 0)
        if is_change_seen(check[1]) and check[1] == self.data_version(tuple(self._policy.tables)):
            with self._lock:
                self._checked[check] = holds
        return holds

    def another(self) -> Self:
        other = copy.copy(self)
        other._running, other._owned = set(), False
        return other

    def close(self) -> None:
        """Stop running queries, then release what was opened for the source."""
        if not self._owned:
            return
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._running and time.monotonic() < deadline:
            self.interrupt()  # repeated, because an interrupt between two statements is lost
            time.sleep(0.02)
        self._disconnect()


class ServedTables(PolicyTables):
    """The part of an `Engine` that is the same for every server. Thread-safe."""

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self._sources: dict[str, Source] = {}

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Return the owner's name for the state of the data. Without one, every question has a different version,
        because changes cannot be noticed without reading all rows."""
        return named_state(self._policy) or f"{UNNAMED}{uuid.uuid4().hex}"

    def identity(self, table: str) -> Identity | None:
        """Return the owner's name for the version of the data, with the places of the table and of the tables on its path to the
        unit and with their readers, if the policy allows copies beside them; else None, because rows of a server may change
        at any moment."""
        if named_state(self._policy) is None or self._policy.prepare.into is None:
            return None
        parents = (parent for _, _, parent, _ in self._policy.unit_joins(table))
        indexes = tuple(self._policy.table_source(name) for name in (table, *parents))
        index = canonical_text((indexes, self._readers()))
        return Identity(canonical_text((self.data_version(()), index)), 0.0, index)

    def of_files(self, files: Mapping[str, Sequence[Path]]) -> NoReturn:
        raise TypeError("the tables of a server are not read from files: none is declared as append-only")

    def files(self, table: str) -> tuple[Path, ...]:
        return ()

    def _readers(self) -> tuple[str, ...]:
        """Return the names of the readers on whose rights the rows of a copy depend."""
        return ()

    def broken(self, table: str) -> Broken | None:
        return None

    def source(self, table: str, total: bool = False) -> Source:
        """Return the place of a table and its column types, in their state at the last `check_readable`."""
        with self._lock:
            if table in self._sources:
                return self._sources[table]
        self.check_readable((table,))
        with self._lock:
            return self._sources[table]

    @abstractmethod
    def check_readable(self, tables: tuple[str, ...]) -> None:
        """Check tables as `Engine.check_readable` says, and enter their `_sources`."""

    def under(self, policy: Policy) -> Self:
        """Return the same source for a later version of its policy, without checks of promises, which hold for earlier data."""
        other = self.another()
        other._policy, other._checked = policy, {}
        return other
