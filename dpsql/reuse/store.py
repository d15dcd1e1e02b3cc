"""Stored releases: the noisy result of a private block, so that the same block over the same data is not charged twice.

The store holds only what has been released or is about to be: noisy keys and terms, never anything exact.  A release is
stored before its answer is sent.  With a SQLite ledger the releases are in a separate file beside it (its name ends in
`.releases`): large answers neither grow the ledger nor make a charge wait for the disk, and a lost or damaged store
costs only free repeats.  With a PostgreSQL ledger they are a table in the same database, so that all machines share
them.  Every row is authenticated under the ledger's key; a row whose authentication fails is treated as absent.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, bindparam, select, union_all
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.chain import mac, same
from dpsql.ledger.driver_statements import DriverStatement
from dpsql.ledger.entries import now
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.opening import require_no_links, touch
from dpsql.ledger.records import canonical
from dpsql.ledger.store import Place, Store
from dpsql.ledger.tables import release_tables, releases

_log = logging.getLogger("dpsql.releases")
_KEY = re.compile(r"[0-9a-f]{64}")
_COLUMNS = ("key", "block", "created", "metadata", "payload", "mac")
_ROWS = select(*(releases.c[name] for name in _COLUMNS))
_ALL = _ROWS.order_by(releases.c.created, releases.c.key)
_BY_KEY = DriverStatement(_ALL.where(releases.c.key == bindparam("key")))
_BY_BLOCK = DriverStatement(_ALL.where(releases.c.block == bindparam("block")))
# The release under a key or, if there is none, those of a block: one statement, so that a new question needs one lookup.
_NEAREST = DriverStatement(
    union_all(
        _ROWS.where(releases.c.key == bindparam("key")),
        _ROWS.where(
            releases.c.block == bindparam("block"),
            ~select(releases.c.key).where(releases.c.key == bindparam("absent")).correlate(None).exists(),
        ),
    ).order_by("created", "key")
)
_DELETE = DriverStatement(releases.delete().where(releases.c.key == bindparam("key")))
_INSERT = DriverStatement(releases.insert())


@cache
def _insert_new(count: int) -> DriverStatement:
    """Return the statement that inserts `count` rows, except under existing keys (SQLite)."""
    rows: list[dict[str, Any]] = [{name: bindparam(f"{name}{index}") for name in _COLUMNS} for index in range(count)]
    return DriverStatement(releases.insert().prefix_with("OR IGNORE").values(rows))


@dataclass(frozen=True)
class ReleaseNote:
    """A stored release without its rows; `metadata` is what was passed to `put`."""

    key: str
    block: str
    created: str
    metadata: dict[str, Any]


@dataclass(frozen=True)
class StoredRelease:
    """A stored release: its note and its rows as an Arrow IPC stream."""

    note: ReleaseNote
    payload: bytes


class ReleaseStore:
    """The stored releases of one ledger (see `open_releases`). Every method raises `Fault` if the storage fails
    (releases_damaged: unreadable)."""

    def __init__(self, store: Store, key: bytes) -> None:
        self._store = store
        self._key = key

    def put(
        self,
        key: str,
        payload: bytes,
        metadata: Mapping[str, Any],
        *,
        block: str = "",
        notes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> StoredRelease:
        """Store a release atomically under a key of 64 hexadecimal digits, and return the release stored there.

        `block` names the question without its noise, for `of_block`; `notes` (metadata by key) are releases without
        rows, stored in the same transaction.  If another process was first, its release stays and is returned, so
        that everybody sees the same numbers; a row whose authentication fails is replaced.
        """
        rows = [self._row(key, block, metadata, payload)]
        rows += [self._row(name, "", note, b"") for name, note in (notes or {}).items()]
        if self._store.is_sqlite:  # other writers of the file wait for one statement instead of six
            values = {f"{name}{index}": value for index, row in enumerate(rows) for name, value in row.items()}
            with _in_words():
                if self._store.write(_insert_new(len(rows)), **values) == len(rows):
                    return StoredRelease(_note(rows[0]), payload)
        with self._writing() as connection:
            standing, *_ = [self._placed(connection, row) for row in rows]
        return standing

    def get(self, key: str) -> StoredRelease | None:
        """Return the release under `key`; None if there is none or its authentication fails (which is logged for the owner)."""
        _checked(key)
        with _in_words():
            rows = self._store.rows(_BY_KEY, key=key)
        return self._checked_row(rows[0]) if rows else None

    def nearest(self, key: str, block: str) -> list[StoredRelease]:
        """Return only the release under `key`; if there is no authentic one, all releases of `block`, oldest first."""
        _checked(key)
        with _in_words():
            rows = self._store.rows(_NEAREST, key=key, block=block, absent=key)
        intact = [release for release in map(self._checked_row, rows) if release is not None]
        return intact if intact or not rows or rows[0][0] != key else self.of_block(block)

    def notes(self) -> list[ReleaseNote]:
        """Return the notes of all authentic releases, oldest first."""
        with self._reading() as connection:
            return [release.note for release in self._all(connection)]

    def of_block(self, block: str, *, start: bool = False) -> list[StoredRelease]:
        """Return all releases of one question, whatever their noise, oldest first. With `start`, `block` is a prefix."""
        if start:
            with self._reading() as connection:
                return list(self._all(connection, releases.c.block.startswith(block, autoescape=True)))
        with _in_words():
            rows = self._store.rows(_BY_BLOCK, block=block)
        return [release for release in map(self._checked_row, rows) if release is not None]

    @property
    def is_local(self) -> bool:
        """Return whether only processes of this machine write to the store."""
        return self._store.is_sqlite

    def close(self) -> None:
        """Close the connection; the store reconnects when it is used again."""
        self._store.close()

    def _all(self, connection: Connection, named: ColumnElement[bool] | None = None) -> Iterator[StoredRelease]:
        for row in connection.execute(_ALL if named is None else _ALL.where(named)):
            release = self._checked_row(tuple(row))
            if release is not None:
                yield release

    def _row(self, key: str, block: str, metadata: Mapping[str, Any], payload: bytes) -> dict[str, Any]:
        facts = {"key": _checked(key), "block": block, "created": now(), "metadata": canonical(metadata)}
        return {**facts, "payload": payload, "mac": self._mac(facts, payload)}

    def _placed(self, connection: Connection, row: Mapping[str, Any]) -> StoredRelease:
        """Return the release stored under the key of `row`; insert `row` if there is no authentic one."""
        rows = _BY_KEY.rows(connection, key=row["key"])
        standing = self._checked_row(rows[0]) if rows else None
        if standing is not None:
            return standing
        if rows:
            _DELETE.run(connection, key=row["key"])
        _INSERT.run(connection, **row)
        return StoredRelease(_note(row), row["payload"])

    def _checked_row(self, row: tuple[Any, ...]) -> StoredRelease | None:
        facts = dict(zip(_COLUMNS, row, strict=True))
        mac, payload = facts.pop("mac"), facts.pop("payload")
        with suppress(TypeError, ValueError):
            if same(self._mac(facts, payload), mac):
                return StoredRelease(_note(facts), payload)
        _log.warning("stored release %.64s does not hold and is not used", facts["key"])
        return None

    def _mac(self, facts: Mapping[str, Any], payload: bytes) -> str:
        return mac(self._key, "dpsql release", canonical(facts).encode(), payload)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        # Not flushed to disk: if a power failure loses a release, its question is asked and charged again.
        with _in_words(), self._store.writing(durable=False) as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with _in_words(), self._store.reading() as connection:
            yield connection


def open_releases(ledger: Ledger) -> ReleaseStore:
    """Return the store of releases that belongs to `ledger`; create it if it does not exist."""

    place = ledger.store.place
    if place.path is not None:
        path = place.path.with_name(place.path.name + ".releases")
        require_no_links(path)
        touch(path, "the store of releases")
        place = Place(place.url, path, f"sqlite:///{path}")
    store = Store(place, ledger.store.timeout_seconds, name="the store of releases")
    with _in_words():
        if "dpsql_releases" not in store.table_names():
            with store.writing() as connection:
                release_tables.create_all(connection)
    return ReleaseStore(store, ledger.witness.key)


def _note(facts: Mapping[str, Any]) -> ReleaseNote:
    return ReleaseNote(facts["key"], facts["block"], facts["created"], json.loads(facts["metadata"]))


def _checked(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise refuse("release_key")
    return key


@contextmanager
def _in_words() -> Iterator[None]:
    """Replace ledger_damaged by releases_damaged: a damaged store of releases is less severe than a damaged ledger, and the
    message says what to do about it."""
    try:
        yield
    except Error as error:
        if error.slug == "ledger_damaged":
            raise refuse("releases_damaged") from error
        raise
