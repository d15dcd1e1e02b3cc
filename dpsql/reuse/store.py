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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.ledger.accounts import now
from dpsql.ledger.database import DatabaseConnection, Location
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.opening import require_no_links, touch
from dpsql.ledger.records import canonical, mac, same
from dpsql.ledger.store import LEDGER_BYTES, Store
from dpsql.policy.types import StorePolicy
from dpsql.storage.records import dataclass

_log = logging.getLogger("dpsql.releases")
_KEY = re.compile(r"[0-9a-f]{64}")
FORMAT = 2
"""Number of the format of stored releases. Those of format 1 are in a table of their own, which is only read (`lookup`)."""
_COLUMNS = ("key", "block", "created", "metadata", "payload", "mac")
_WRITTEN = (*_COLUMNS, "analyst", "size")
_ROWS = f"SELECT {', '.join(_COLUMNS)} FROM dpsql_answers"
_IN_ORDER = "ORDER BY created, key"
DEFAULT_BOUNDS = StorePolicy()
REMOVED = "removed:"
"""Before the name of the question of a release that was removed."""
_MEGABYTE = 10**6
_OVERHEAD = 500
"""Bytes that a row takes besides its description and its numbers, indexes included."""
_BY_KEY = f"{_ROWS} WHERE key = :key"
_BY_BLOCK = f"{_ROWS} WHERE block = :block {_IN_ORDER}"
# A range of the index on blocks, which SQLite orders by their bytes; a server may order texts otherwise.
_BY_START = {
    True: f"{_ROWS} WHERE block >= :start AND block < :following {_IN_ORDER}",
    False: f"{_ROWS} WHERE substr(block, 1, :length) = :start {_IN_ORDER}",
}
"""The releases whose block has a prefix, in SQLite (True) and in PostgreSQL."""
# The release under a key or, if there is none, those of a block: one statement, so that a new question needs one lookup.
_NEAREST = (
    f"{_ROWS} WHERE key = :key UNION ALL {_ROWS} WHERE block = :block "
    f"AND NOT EXISTS (SELECT key FROM dpsql_answers WHERE key = :key) {_IN_ORDER}"
)
_SIZES = "SELECT analyst, CAST(SUM(size) AS BIGINT) FROM dpsql_answers WHERE size > 0 GROUP BY analyst ORDER BY analyst"
# Keys alone, in one pass: pages of whole rows would be looked for from the beginning each time.
_OLDEST = (
    "SELECT key FROM (SELECT key, SUM(size) OVER (ORDER BY created, key) - size AS earlier FROM dpsql_answers "
    "WHERE size > 0 AND (analyst = :analyst OR :analyst = '*')) AS aged WHERE earlier < :excess"
)
_OLDER = "SELECT key FROM dpsql_answers WHERE size > 0 AND created < :time"
_OF_KEY = "SELECT size, block, created, metadata FROM dpsql_answers WHERE key = :key"
_OLDER_COUNT = "SELECT count(*) FROM dpsql_answers WHERE size > 0 AND block <> '' AND created < :time"
_EMPTY = (
    "UPDATE dpsql_answers SET block = :block, metadata = :metadata, payload = :payload, mac = :mac, size = 0 "
    "WHERE key = :key"
)
_DELETE = "DELETE FROM dpsql_answers WHERE key = :key"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS dpsql_answers (key TEXT NOT NULL PRIMARY KEY, block TEXT NOT NULL, created TEXT NOT NULL, "
    "metadata TEXT NOT NULL, payload {binary} NOT NULL, mac TEXT NOT NULL, analyst TEXT NOT NULL, size BIGINT NOT NULL)"
)
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS ix_dpsql_answers_block ON dpsql_answers (block)",
    "CREATE INDEX IF NOT EXISTS ix_dpsql_answers_analyst ON dpsql_answers (analyst, created, size)",
)


@lru_cache(maxsize=64)
def _insert(count: int, verb: str = "INSERT") -> str:
    """Return the statement that inserts `count` rows, whose values have the row's number at the end of their names."""
    rows = (f"({', '.join(f':{name}{row}' for name in _WRITTEN)})" for row in range(count))
    return f"{verb} INTO dpsql_answers ({', '.join(_WRITTEN)}) VALUES {', '.join(rows)}"


def _numbered(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}{number}": value for number, row in enumerate(rows) for name, value in row.items()}


@dataclass(frozen=True)
class ReleaseNote:
    """A stored release without its rows; `metadata` is what was passed to `put`."""

    key: str
    block: str
    created: str
    metadata: dict[str, Any]

    @property
    def removed(self) -> str:
        """Return when the answer was removed from the store; "" if it is there."""
        return str(self.metadata.get("removed", ""))


@dataclass(frozen=True)
class StoredRelease:
    """A stored release: its note and its rows as an Arrow IPC stream."""

    note: ReleaseNote
    payload: bytes


class ReleaseStore:
    """The stored releases of one ledger (see `open_releases`). Every method raises `Fault` if the storage fails
    (releases_damaged: unreadable)."""

    def __init__(
        self, store: Store, key: bytes, bounds: StorePolicy = DEFAULT_BOUNDS, has_earlier: bool = False
    ) -> None:
        """`has_earlier`: there are releases in format 1 as well."""
        self._store = store
        self._key = key
        self._bounds = bounds
        self._step = _MEGABYTE * bounds.analyst_mb // 64
        self._unchecked = self._step  # what others have stored is looked at once
        self.has_earlier = has_earlier

    def put(
        self,
        key: str,
        payload: bytes,
        metadata: Mapping[str, Any],
        *,
        block: str = "",
        analyst: str = "",
        notes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> StoredRelease:
        """Store a release atomically under a key of 64 hexadecimal digits, and return the release stored there.

        `block` names the question without its noise, for `of_block`; `analyst` is the one who asked; `notes` (metadata by key)
        are releases without rows, stored in the same transaction.  If another process was first, its release stays and is
        returned, so that everybody sees the same numbers; a row whose authentication fails is replaced.
        """
        rows = [self._row(key, block, metadata, payload, analyst)]
        rows += [self._row(name, "", note, b"", analyst) for name, note in (notes or {}).items()]
        if self._store.is_sqlite:  # other writers of the file wait for one statement instead of six
            with _in_words():
                if self._store.write(_insert(len(rows), "INSERT OR IGNORE"), **_numbered(rows)) == len(rows):
                    self._keep_bounds(rows)
                    return StoredRelease(_note(rows[0]), payload)
        with self._writing() as connection:
            standing, *_ = [self._placed(connection, row) for row in rows]
        self._keep_bounds(rows)
        return standing

    def get(self, key: str) -> StoredRelease | None:
        """Return the release under `key`; None if there is none or its authentication fails (which is logged for the owner)."""
        _checked(key)
        with _in_words():
            rows = self._store.rows(_BY_KEY, key=key)
        return self._checked_row(rows[0]) if rows else None

    def nearest(self, key: str, block: str) -> tuple[StoredRelease | None, list[StoredRelease]]:
        """Return the release under `key`, also one that was removed, and what may stand for it: itself, or if it was removed or
        there is no authentic one, all releases of `block`, oldest first."""
        _checked(key)
        with _in_words():
            rows = self._store.rows(_NEAREST, key=key, block=block)
        authentic = [release for release in map(self._checked_row, rows) if release is not None]
        if not rows or rows[0][0] != key:
            return None, authentic
        keyed = authentic[0] if authentic else None
        return keyed, self.of_block(block) if keyed is None or keyed.note.removed else [keyed]

    def notes(self) -> list[ReleaseNote]:
        """Return the notes of all authentic releases, oldest first."""
        return [release.note for release in self._intact(f"{_ROWS} {_IN_ORDER}")]

    def descriptions(self) -> list[dict[str, Any]]:
        """Return the metadata of all releases with rows, without reading and authenticating them."""
        with _in_words():
            rows = self._store.rows("SELECT metadata FROM dpsql_answers WHERE block <> '' AND size > 0")
        return [json.loads(metadata) for (metadata,) in rows]

    def of_block(self, block: str, *, start: bool = False) -> list[StoredRelease]:
        """Return all releases of one question, whatever their noise, oldest first. With `start`, `block` is a prefix."""
        return self._of_start(block) if start else self._intact(_BY_BLOCK, block=block)

    def earlier(self, name: str, *, start: bool = False) -> list[StoredRelease]:
        """Return the release in format 1 under the key `name`, or with `start` all of those whose block starts with it."""
        table = "dpsql_releases"
        return self._of_start(name, table) if start else self._intact(_BY_KEY.replace("dpsql_answers", table), key=name)

    def _of_start(self, start: str, table: str = "dpsql_answers") -> list[StoredRelease]:
        text, values = _BY_START[self._store.is_sqlite].replace("dpsql_answers", table), {"start": start}
        if self._store.is_sqlite:
            return self._intact(text, **values, following=start[:-1] + chr(ord(start[-1]) + 1))
        return self._intact(text, **values, length=len(start))

    def count(self, until: str) -> int:
        """Return the number of answers that were stored before a time."""
        with _in_words():
            return int(self._store.rows(_OLDER_COUNT, time=until)[0][0])

    def erase(self, until: str) -> int:
        """Remove all answers that were stored before a time, so that their bytes are in no file, and return their number."""
        with _in_words(), self._store.erasing("dpsql_answers") as connection:
            answers, _ = self._emptied(connection, connection.rows(_OLDER, time=until))
            if self.has_earlier:
                answers += connection.run("DELETE FROM dpsql_releases WHERE created < :time", time=until)
        return answers

    @property
    def is_local(self) -> bool:
        """Return whether only processes of this machine write to the store."""
        return self._store.is_sqlite

    def close(self) -> None:
        """Close the connection; the store reconnects when it is used again."""
        self._store.close()

    def _intact(self, text: str, **values: Any) -> list[StoredRelease]:
        with _in_words():
            rows = self._store.rows(text, **values)
        return [release for release in map(self._checked_row, rows) if release is not None]

    def _row(self, key: str, block: str, metadata: Mapping[str, Any], payload: bytes, analyst: str) -> dict[str, Any]:
        facts = {"key": _checked(key), "block": block, "created": now(), "metadata": canonical(metadata)}
        size = _OVERHEAD + len(facts["metadata"]) + len(payload)
        return {**facts, "payload": payload, "mac": self._mac(facts, payload), "analyst": analyst, "size": size}

    def _placed(self, connection: DatabaseConnection, row: Mapping[str, Any]) -> StoredRelease:
        """Return the release stored under the key of `row`; insert `row` if there is no authentic one."""
        rows = connection.rows(_BY_KEY, key=row["key"])
        standing = self._checked_row(rows[0]) if rows else None
        if standing is not None and not standing.note.removed:
            return standing
        if rows:
            connection.run(_DELETE, key=row["key"])
        connection.run(_insert(1), **_numbered([row]))
        return StoredRelease(_note(row), row["payload"])

    def _keep_bounds(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Remove the oldest releases of analysts who have too many, and then of all. Sizes are added up once in so many bytes
        that a bound is exceeded by at most a sixty-fourth of an analyst's. A failure is left to the next time."""
        self._unchecked += sum(row["size"] for row in rows)
        if self._unchecked < self._step:
            return
        self._unchecked = 0
        with suppress(Fault), self._writing() as connection:
            sizes = dict(connection.rows(_SIZES))
            for analyst, size in sizes.items():
                sizes[analyst] -= self._remove(connection, analyst, size, self._bounds.analyst_mb)
            self._remove(connection, "*", sum(sizes.values()), self._bounds.answers_mb)

    def _remove(self, connection: DatabaseConnection, analyst: str, size: int, most_mb: int) -> int:
        """Remove the oldest releases of an analyst ("*": of all) until `_step` bytes are free below the bound, if they exceed it:
        few at a time, because a question waits for it. Return the number of bytes."""
        if size <= _MEGABYTE * most_mb:
            return 0
        excess = size - _MEGABYTE * most_mb + self._step
        _, removed = self._emptied(connection, connection.rows(_OLDEST, analyst=analyst, excess=excess))
        _log.warning("stored releases of %s bytes were removed (bound: %s MB)", removed, most_mb)
        return removed

    def _emptied(self, connection: DatabaseConnection, keys: Sequence[tuple[str]]) -> tuple[int, int]:
        """Remove the releases under these keys; return the number of answers among them, and of their bytes."""
        answers, removed = 0, 0
        for (key,) in keys:
            ((size, block, created, text),) = connection.rows(_OF_KEY, key=key)
            answers += self._empty(connection, key, block, created, json.loads(text))
            removed += size
        return answers, removed

    def _empty(
        self, connection: DatabaseConnection, key: str, block: str, created: str, metadata: Mapping[str, Any]
    ) -> bool:
        """Remove a release, and return whether it was an answer; notes are deleted.

        A removed answer leaves a row that says so, because it was paid for: the next one who asks is told before a charge. These
        rows are shorter than the ledger's entry of the charge.
        """
        if "terms" not in metadata:
            connection.run(_DELETE, key=key)
            return False
        note = canonical({"removed": now(), "receipt": metadata["receipt"]})
        facts = {"key": key, "block": REMOVED + block, "created": created, "metadata": note}
        connection.run(_EMPTY, key=key, block=facts["block"], metadata=note, payload=b"", mac=self._mac(facts, b""))
        return True

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
    def _writing(self) -> Iterator[DatabaseConnection]:
        # Not flushed to disk: if a power failure loses a release, its question is asked and charged again.
        with _in_words(), self._store.writing(durable=False) as connection:
            yield connection


def open_releases(ledger: Ledger, bounds: StorePolicy = DEFAULT_BOUNDS) -> ReleaseStore:
    """Return the store of releases that belongs to `ledger`; create it if it does not exist."""

    location = ledger.store.location
    if location.path is not None:
        path = location.path.with_name(location.path.name + ".releases")
        require_no_links(path)
        touch(path, "the store of releases")
        location = Location(path, f"sqlite:///{path}", {})
    store = Store(location, ledger.store.timeout_seconds, name="the store of releases", leaves=LEDGER_BYTES)
    with _in_words():
        names = store.table_names()
        if "dpsql_answers" not in names:
            with store.writing() as connection:
                connection.run(_TABLE.format(binary="BLOB" if connection.is_sqlite else "BYTEA"))
                for index in _INDEXES:
                    connection.run(index)
    return ReleaseStore(store, ledger.witness.key, bounds, "dpsql_releases" in names)


def _note(facts: Mapping[str, Any]) -> ReleaseNote:
    return ReleaseNote(facts["key"], facts["block"], facts["created"], json.loads(facts["metadata"]))


def _checked(key: str) -> str:
    if _KEY.fullmatch(key) is None:
        raise refuse("release_key")
    return key


@contextmanager
def _in_words() -> Iterator[None]:
    """Replace ledger_damaged by releases_damaged, which is less severe, and whose message says what to do about it."""
    try:
        yield
    except Error as error:
        if error.slug == "ledger_damaged":
            raise refuse("releases_damaged") from error
        raise
