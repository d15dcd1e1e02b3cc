"""A copy of the ledger's head on another machine, which reveals that ledger and state directory were set back together.

The head moves in the state directory and then in this copy before a charge is answered; a write transaction begins only if
the ledger contains the head in this copy. So if only this machine is set back, to any moment, the ledger is refused before
anything is charged. The head has a MAC under the ledger's key: those who may write to the other place can withhold or set
back the head, but not invent one. If all three are set back together, that is not noticed.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from pathlib import Path
from typing import Protocol

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.accounts import tip
from dpsql.ledger.database import parse_location
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.store import Store
from dpsql.ledger.witness import Head, Witness
from dpsql.storage.files import sync, write_private

_log = logging.getLogger("dpsql.custodian")
_FILE = "file://"
_MOST_BYTES = 4096
_CREATE = (
    "CREATE TABLE IF NOT EXISTS dpsql_heads (ledger text PRIMARY KEY, seq bigint NOT NULL, head text NOT NULL, "
    "written timestamptz NOT NULL DEFAULT now())"
)
_READ = "SELECT left(head, 4096) FROM dpsql_heads WHERE ledger = :ledger"
_WRITE = (
    "INSERT INTO dpsql_heads (ledger, seq, head) VALUES (:ledger, :seq, :head) ON CONFLICT (ledger) "
    "DO UPDATE SET seq = EXCLUDED.seq, head = EXCLUDED.head, written = now() WHERE :force OR dpsql_heads.seq <= EXCLUDED.seq"
)


class OffMachineHead(Protocol):
    """The place on another machine that keeps one ledger's head. Methods raise `Fault` if it cannot be used."""

    def read(self) -> str | None:
        """Return the line that was written last, or None if there never was one."""

    def write(self, ledger_id: str, head: Head, line: str, force: bool) -> None:
        """Write a line durably; an older head replaces a newer one only with `force`."""

    def close(self) -> None:
        """Close open connections."""


class FileHead:
    """A file in a folder of another machine (a mounted share), which is replaced atomically."""

    def __init__(self, folder: Path, ledger_id: str) -> None:
        self._path = folder / f"{ledger_id}.head"

    def read(self) -> str | None:
        """Return the line of the file, after checking that the folder can be written."""
        try:
            if not os.access(self._path.parent, os.W_OK | os.X_OK):
                raise PermissionError(f"{self._path.parent} is missing or cannot be written")
            return _line_of(self._path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise self._unusable(error) from error

    def write(self, ledger_id: str, head: Head, line: str, force: bool) -> None:
        """Replace the file. Writers on one machine take turns; writers on several machines should use a server."""
        draft = self._path.with_name(f"{self._path.name}.{secrets.token_hex(8)}")
        try:
            write_private(draft, line.encode("ascii"))
            os.replace(draft, self._path)
            sync(self._path.parent)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise self._unusable(error) from error

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _unusable(self, error: Exception) -> Error:
        _log.error("cannot use the witness %s: %s", self._path, error)
        return refuse("witness_unreachable")


def _line_of(path: Path) -> str:
    """Return the text of a small regular file: whoever may write to the share can put a pipe, a device or a huge file there,
    which must not block or fill this process. Raises OSError and ValueError."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("it is no regular file")
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise ValueError("it is longer than a head")
    return text.decode("ascii")


class ServerHead:
    """A row in a PostgreSQL database that is backed up separately from the ledger's database."""

    def __init__(self, url: str, ledger_id: str, timeout_seconds: float) -> None:
        self._store, self._ledger_id = Store(parse_location(url), timeout_seconds, name="the witness"), ledger_id

    def read(self) -> str | None:
        """Return the line of the ledger's row."""
        with self._store.reading() as connection:
            if "dpsql_heads" not in connection.table_names():
                return None
            line = connection.value(_READ, ledger=self._ledger_id)
        return None if line is None else str(line)

    def write(self, ledger_id: str, head: Head, line: str, force: bool) -> None:
        """Write the row; the table is created with the first one."""
        with self._store.writing() as connection:
            connection.run(_CREATE)
            connection.run(_WRITE, ledger=ledger_id, seq=head.seq, head=line, force=force)

    def close(self) -> None:
        """Close the connection; it is reopened when it is used."""
        self._store.close()


class SecondWitness:
    """The head in the other place, read before a transaction and written after it."""

    def __init__(self, url: str, witness: Witness, timeout_seconds: float) -> None:
        """Raise ledger_url for anything but file:///FOLDER and postgresql://..."""
        self._witness = witness
        is_file = url.startswith(_FILE)
        self._place: OffMachineHead = (
            FileHead(Path(url.removeprefix(_FILE)), witness.ledger_id)
            if is_file
            else ServerHead(url, witness.ledger_id, timeout_seconds)
        )

    def head(self) -> Head | None:
        """Return the head, or None if the place has none. Raises witness_unreachable, ledger_tampered."""
        line = self._place.read()
        return None if line is None else self._witness.read_line(line)

    def required(self) -> Head:
        """Return the head. Raises witness_missing if the place has none."""
        head = self.head()
        if head is None:
            raise refuse("witness_missing")
        return head

    def advance(self, head: Head, *, force: bool = False) -> None:
        """Write the head before the charge is answered. Raises witness_not_written; the charge stays."""
        try:
            self._place.write(self._witness.ledger_id, head, self._witness.line(head), force)
        except Error as error:
            _log.error("the witness was not written: %s", error.message)
            raise refuse("witness_not_written", charged=True) from error

    def close(self) -> None:
        """Close the connection to the place."""
        self._place.close()


def start_second_witness(ledger: Ledger, url: str, reason: str | None) -> Head:
    """Write the first head of `ledger` to the place `url` and record that in the ledger. Returns the head.

    The ledger must contain an existing head of the place, unless the owner gives a `reason` why not, which is recorded.
    Raises ledger_older, ledger_tampered, witness_unreachable, witness_not_written.
    """
    second = SecondWitness(url, ledger.witness, ledger.store.timeout_seconds)
    try:
        last_head = second.head() if reason is None else None
        if last_head is not None:
            with ledger.store.reading() as connection:
                tip(connection, last_head)
        head = ledger.record("witness", {"seen": None if last_head is None else last_head.seq, "reason": reason})
        second.advance(head, force=True)
        return head
    finally:
        second.close()
