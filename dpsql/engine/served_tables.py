"""The common part of engines whose tables are on a server: rows change unnoticed, and many connections are open at once."""

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
from dpsql.engine.query import Identity, Source
from dpsql.plan.canonical_text import canonical_text
from dpsql.policy import Policy
from dpsql.policy.versions import declared_version, named_state

CLOSING_SECONDS = 10.0
UNNAMED = "moment:"
"""Prefix of the versions of data that the policy does not name; no two of these are equal."""


def is_versioned(policy: Policy, engine: Engine) -> bool:
    """Return whether two questions can be over the same version of the data, so that a stored answer is given again."""
    return declared_version(policy) is not None or not engine.data_version(()).startswith(UNNAMED)


class ServedTables(ABC):
    """The part of an `Engine` that is the same for every server. Thread-safe."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._checked: dict[tuple[str, str], bool] = {}
        self._sources: dict[str, Source] = {}
        self._running: set[Any] = set()
        """The connections or jobs that `interrupt` cancels."""
        self._lock = threading.RLock()
        self._owned = True

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
        """Raise TypeError. It is never called, because a policy declares no table of a server as append-only."""
        raise TypeError("the tables of a server are not read from files")

    def files(self, table: str) -> tuple[Path, ...]:
        """Return no files: the tables of a server are not read from files one by one."""
        return ()

    def _readers(self) -> tuple[str, ...]:
        """Return the names of the readers on whose rights the rows of a copy depend."""
        return ()

    def broken(self, table: str) -> Broken | None:
        """Return None, because the tables of a server have no lines."""
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

    @abstractmethod
    def exact_rows(self, sql: str) -> Any:
        """Return the rows (pyarrow.Table) of a generated query over protected tables, only for the owner."""

    def public_table(self, sql: str) -> Any:
        """Return the rows (pyarrow.Table) of a generated query over public tables."""
        return self.exact_rows(sql)

    def holds(self, query: str) -> bool:
        """Return whether the check of a promise finds no row; it runs once for each version of the data that the owner
        names."""
        check = (query, self.data_version(()))
        with self._lock:
            if check in self._checked:
                return self._checked[check]
        holds = bool(self.exact_rows(query).num_rows == 0)
        if named_state(self._policy) is not None:
            with self._lock:
                self._checked[check] = holds
        return holds

    def another(self) -> Self:
        """Return the same source for another session: caches are shared, but `interrupt` stops only that session's queries."""
        other = copy.copy(self)
        other._running, other._owned = set(), False
        return other

    def under(self, policy: Policy) -> Self:
        """Return the same source for a later version of its policy, without the cached checks of promises, which hold only
        for the earlier data."""
        other = self.another()
        other._policy, other._checked = policy, {}
        return other

    @abstractmethod
    def interrupt(self) -> None:
        """Cancel every running query of this engine."""

    def close(self) -> None:
        """Cancel running queries, then release the resources that were opened for the source."""
        if not self._owned:
            return
        deadline = time.monotonic() + CLOSING_SECONDS
        while self._running and time.monotonic() < deadline:
            self.interrupt()
            time.sleep(0.02)
        self._disconnect()

    @abstractmethod
    def _disconnect(self) -> None:
        """Release the resources that were opened for the source."""
