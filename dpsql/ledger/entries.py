"""Appending of entries to the chain, and reading of entries in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dpsql.errors.exceptions import refuse
from dpsql.ledger.chain import linked, same
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import Entry, canonical
from dpsql.ledger.witness import Head

_PAGE = 1000
_COLUMNS = "seq, kind, id, resolves, body, digest"
_SINCE = "SELECT seq, digest FROM dpsql_entries WHERE seq >= :seq ORDER BY seq"
_BY_NUMBER = "SELECT digest FROM dpsql_entries WHERE seq = :seq"
_AFTER = f"SELECT {_COLUMNS} FROM dpsql_entries WHERE seq > :seq ORDER BY seq LIMIT {_PAGE}"
_BY_ID = f"SELECT {_COLUMNS} FROM dpsql_entries WHERE id = :id"
_INSERT = f"INSERT INTO dpsql_entries ({_COLUMNS}) VALUES (:seq, :kind, :id, :resolves, :body, :digest)"


def now() -> str:
    """Return the date and time in UTC, for readers of the ledger. Nothing depends on it, because clocks jump."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tip(connection: DatabaseConnection, head: Head) -> Head:
    """Return the last entry of a ledger that must contain `head`. Raises ledger_older or ledger_tampered if it does
    not."""
    rows = connection.rows(_SINCE, seq=head.seq)
    if head.seq == 0:
        return Head(*rows[-1]) if rows else head
    if not rows:
        raise refuse("ledger_older", entry=head.seq)
    if not same(head.digest, rows[0][1]):
        raise refuse("ledger_tampered", entry=head.seq, problem="it is not the entry that was seen before")
    return Head(*rows[-1])


def has_entry(connection: DatabaseConnection, entry: Head) -> bool:
    """Return whether the ledger has this entry under its number."""
    rows = connection.rows(_BY_NUMBER, seq=entry.seq)
    return bool(rows) and same(entry.digest, rows[0][0])


class ChainWriter:
    """The end of the chain in one writer's transaction: `last` advances as entries are appended."""

    def __init__(self, connection: DatabaseConnection, key: bytes, last: Head) -> None:
        self.connection = connection
        self.last = last
        self._key = key

    def append(self, kind: str, facts: Mapping[str, Any]) -> int:
        """Write the next entry and return its number. `facts` must not contain floats."""
        seq = self.last.seq + 1
        body = canonical({"seq": seq, "kind": kind, "time": now(), **facts})
        digest = linked(self._key, self.last.digest, body)
        named = {"id": facts.get("id"), "resolves": facts.get("resolves")}
        self.connection.run(_INSERT, seq=seq, kind=kind, body=body, digest=digest, **named)
        self.last = Head(seq, digest)
        return seq


def page_after(connection: DatabaseConnection, seq: int) -> list[Entry]:
    """Return the next entries after number `seq`, at most 1000."""
    return [Entry(*row) for row in connection.rows(_AFTER, seq=seq)]


def last_of_kinds(connection: DatabaseConnection, kinds: tuple[str, ...]) -> Entry | None:
    """Return the newest entry of these kinds, or None."""
    named = {f"kind{index}": kind for index, kind in enumerate(kinds)}
    marks = ", ".join(f":{name}" for name in named)
    rows = connection.rows(
        f"SELECT {_COLUMNS} FROM dpsql_entries WHERE kind IN ({marks}) ORDER BY seq DESC LIMIT 1", **named
    )
    return Entry(*rows[0]) if rows else None


def pages(connection: DatabaseConnection, seq: int) -> Iterator[Entry]:
    """Yield all entries after number `seq` in order."""
    while page := page_after(connection, seq):
        yield from page
        seq = page[-1].seq


def find_charge(connection: DatabaseConnection, request_id: str) -> Entry | None:
    """Return the charge under an idempotency key, or None."""
    rows = connection.rows(_BY_ID, id=request_id)
    return Entry(*rows[0]) if rows else None
