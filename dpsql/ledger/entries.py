"""Appending of entries to the chain, and reading of entries in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import refuse
from dpsql.ledger.chain import linked, same
from dpsql.ledger.driver_statements import DriverStatement
from dpsql.ledger.records import Entry, canonical
from dpsql.ledger.tables import entries
from dpsql.ledger.witness import Head

_PAGE = 1000
_SINCE = DriverStatement(
    select(entries.c.seq, entries.c.digest).where(entries.c.seq >= bindparam("seq")).order_by(entries.c.seq)
)
_AFTER = DriverStatement(select(entries).where(entries.c.seq > bindparam("seq")).order_by(entries.c.seq).limit(_PAGE))
_BY_ID = DriverStatement(select(entries).where(entries.c.id == bindparam("id")))
_INSERT = DriverStatement(entries.insert())


def now() -> str:
    """Return the date and time in UTC, for readers of the ledger. Nothing depends on it, because clocks jump."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tip(connection: Connection, head: Head) -> Head:
    """Return the last entry of a ledger that must contain `head`. Raises ledger_older or ledger_tampered if it does
    not."""
    rows = _SINCE.rows(connection, seq=head.seq)
    if head.seq == 0:
        return Head(*rows[-1]) if rows else head
    if not rows:
        raise refuse("ledger_older", entry=head.seq)
    if not same(head.digest, rows[0][1]):
        raise refuse("ledger_tampered", entry=head.seq, problem="it is not the entry that was seen before")
    return Head(*rows[-1])


class ChainWriter:
    """The end of the chain in one writer's transaction: `last` advances as entries are appended."""

    def __init__(self, connection: Connection, key: bytes, last: Head) -> None:
        self.connection = connection
        self.last = last
        self._key = key

    def append(self, kind: str, facts: Mapping[str, Any]) -> int:
        """Write the next entry and return its number. `facts` must not contain floats."""
        seq = self.last.seq + 1
        body = canonical({"seq": seq, "kind": kind, "time": now(), **facts})
        digest = linked(self._key, self.last.digest, body)
        named = {"id": facts.get("id"), "resolves": facts.get("resolves")}
        _INSERT.run(self.connection, seq=seq, kind=kind, body=body, digest=digest, **named)
        self.last = Head(seq, digest)
        return seq


def page_after(connection: Connection, seq: int) -> list[Entry]:
    """Return the next entries after number `seq`, at most 1000."""
    return [Entry(*row) for row in _AFTER.rows(connection, seq=seq)]


def pages(connection: Connection, seq: int) -> Iterator[Entry]:
    """Yield all entries after number `seq` in order."""
    while page := page_after(connection, seq):
        yield from page
        seq = page[-1].seq


def find_charge(connection: Connection, request_id: str) -> Entry | None:
    """Return the charge under an idempotency key, or None."""
    rows = _BY_ID.rows(connection, id=request_id)
    return Entry(*rows[0]) if rows else None
