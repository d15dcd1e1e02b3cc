"""The witness: facts about a ledger stored outside it, so that replacing the ledger by an older copy is noticed.

One directory per ledger, `<state>/<ledger id>/`, mode 0700, with files of mode 0600:

    key     32 random bytes in hexadecimal, written once; authenticates entries, totals, heads and releases
    place dataset and address, so that a lost ledger is not mistaken for one that never existed
    head    number and digest of the last durable entry this machine has seen
    checkpoint  of a long ledger: the accounts after a verified part of it (`dpsql.ledger.check`)

A charge is durable in the ledger before the head moves, and the head moves before the charge is answered.  So after a
crash the head may lag by the entry in flight, which was not answered, and a ledger that does not contain the head is
an older copy.  The head consists of two slots written in turn, each with its own MAC: a torn write leaves the other one.
`<state>` is `$DPSQL_STATE`, else `$XDG_STATE_HOME/dpsql`, else `~/.local/state/dpsql`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.database import parse_location
from dpsql.ledger.records import START, mac, same
from dpsql.ledger.store import Store
from dpsql.storage.files import sync, try_lock, write_private
from dpsql.storage.records import dataclass

_log = logging.getLogger("dpsql.custodian")
_SLOT = 512
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Head:
    """The number (0: none) and digest of the last durable entry that was seen."""

    seq: int = 0
    digest: str = START


class Witness:
    """The files about one ledger. Every method raises `Fault` if the directory cannot be used."""

    def __init__(self, state: Path, ledger_id: str) -> None:
        if _ID.fullmatch(ledger_id) is None:
            raise refuse("ledger_damaged", problem="its identity is not readable")
        self.ledger_id = ledger_id
        self.directory = state / ledger_id
        self._head_path = str(self.directory / "head")
        self._key: bytes | None = None

    def require_own(self) -> None:
        """Refuse a directory in which other users could replace files (ledger_open)."""
        # The parent folder may be older than this check, created with the umask of users who have their own group.
        for folder, writable_by_others in ((self.directory, 0o022), (self.directory.parent, 0o002)):
            try:
                mode = folder.stat().st_mode
            except OSError:
                continue  # later steps report what is missing
            if mode & writable_by_others and not mode & stat.S_ISVTX:
                raise refuse("ledger_open", place=str(folder))

    @property
    def key(self) -> bytes:
        """The ledger's key. Raises Fault if it is missing, or accessible to users other than its owner."""
        if self._key is None:
            self._key = _read_key(self.directory / "key")
        return self._key

    @property
    def has_head(self) -> bool:
        """Return whether the ledger's creation was completed here; a directory without a head is an interrupted creation."""
        return (self.directory / "head").exists()

    def head(self) -> Head:
        """Return the newest valid slot. Raises Fault if there is no head, or both slots are damaged."""
        path = self.directory / "head"
        try:
            with path.open("rb") as file:
                return self._newest(file.read())[0]
        except OSError as error:
            raise _unusable(path, error) from error

    def start(self, head: Head, *, replace: bool = False) -> None:
        """Write the first head atomically and durably. An existing head stays, unless the owner restored a backup (`replace`)."""
        whole = self.directory / f"head.{secrets.token_hex(8)}"
        _write_once(whole, b"".join(self._slot(head) for _ in range(2)))
        try:
            if replace:
                os.replace(whole, self.directory / "head")
            else:
                with suppress(FileExistsError):
                    os.link(whole, self.directory / "head")
                whole.unlink()
            sync(self.directory)
        except OSError as error:
            raise refuse("ledger_state", place=str(self.directory)) from error

    def install(self, key: bytes, dataset: str, address: str) -> None:
        """Create the directory with the key of a backup and the file `place`."""
        try:
            self.directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.directory.mkdir(mode=0o700, exist_ok=True)
            _write_once(self.directory / "key", key.hex().encode())
            if not (self.directory / "place").exists():
                _write_once(self.directory / "place", _note(dataset, address, None))
            sync(self.directory)
        except OSError as error:
            raise refuse("ledger_state", place=str(self.directory)) from error
        self._key = None

    @contextmanager
    def held(self, timeout_seconds: float) -> Iterator[Seat]:
        """Lock the head against other processes of this machine. Raises `Fault` if that takes too long.

        Waiting here is faster than waiting in the database, because SQLite sleeps up to 100 ms.
        """
        try:
            descriptor = os.open(self._head_path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise _unusable(self._head_path, error) from error
        try:
            _wait_for_lock(descriptor, timeout_seconds)
            yield Seat(self, descriptor)
        finally:
            os.close(descriptor)

    def line(self, head: Head) -> str:
        """Return a head as one line, authenticated by the ledger's key."""
        return f"{head.seq} {head.digest} {self._head_mac(head)}\n"

    def read_line(self, line: str) -> Head:
        """Return the head in a line. Raises ledger_tampered if this ledger's key does not authenticate it."""
        head, _ = self._newest(line.encode("ascii", "replace"))
        return head

    def _slot(self, head: Head) -> bytes:
        return self.line(head).encode().ljust(_SLOT, b" ")

    def _head_mac(self, head: Head) -> str:
        return mac(self.key, "dpsql head", self.ledger_id.encode(), str(head.seq).encode(), head.digest.encode())

    def _newest(self, content: bytes) -> tuple[Head, int]:
        """Return the newest valid slot, and the number of the other slot, which is written next."""
        slots = []
        for slot in (0, 1):
            fields = content[slot * _SLOT : (slot + 1) * _SLOT].decode("ascii", "replace").split()
            if len(fields) == 3 and fields[0].isascii() and fields[0].isdigit() and len(fields[0]) < 20:
                slots.append((Head(int(fields[0]), fields[1]), fields[2], 1 - slot))
        for head, written, other in sorted(slots, key=lambda entry: -entry[0].seq):
            if same(self._head_mac(head), written):
                return head, other
        raise refuse("ledger_tampered", entry=0, problem="the head kept in the state directory does not hold")


class Seat:
    """The locked head, which can be read and moved forward."""

    def __init__(self, witness: Witness, descriptor: int) -> None:
        self._witness = witness
        self._descriptor = descriptor
        self._slot = 0

    def head(self) -> Head:
        """Return the head in the newest valid slot."""
        head, self._slot = self._witness._newest(os.pread(self._descriptor, 2 * _SLOT, 0))
        return head

    def advance(self, head: Head) -> None:
        """Overwrite the older slot in place, so that a full disk cannot prevent it."""
        try:
            written = os.pwrite(self._descriptor, self._witness._slot(head), self._slot * _SLOT)
        except OSError as error:
            raise refuse("ledger_head_not_written", charged=True) from error
        if written != _SLOT:
            raise refuse("ledger_head_not_written", charged=True)


def _unusable(location: str | Path, error: OSError) -> Error:
    """Return the fault without the path, which analysts must not learn; the path goes to the custodian's log."""
    _log.error("cannot use %s: %s", location, error)
    missing = isinstance(error, FileNotFoundError)
    return refuse("ledger_head_missing") if missing else refuse("ledger_state_busy")


def _note(dataset: str, address: str, source: str | None) -> bytes:
    """Return the contents of the file `place`; `source` is a fingerprint of the location of the data."""
    facts = {"dataset": dataset, "address": address, **({} if source is None else {"source": source})}
    return json.dumps(facts, sort_keys=True).encode()


def new_witness(state: Path, dataset: str, address: str, source: str | None = None) -> Witness:
    """Create the directory, a new key and the file `place`; all are durable on return."""
    witness = Witness(state, secrets.token_hex(16))
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        witness.directory.mkdir(mode=0o700)
        _write_once(witness.directory / "key", secrets.token_hex(32).encode())
        _write_once(witness.directory / "place", _note(dataset, address, source))
        sync(witness.directory)
        sync(state)
    except OSError as error:
        raise refuse("ledger_state", place=str(witness.directory)) from error
    return witness


def known_ledger(state: Path, dataset: str, address: str) -> Path | None:
    """Return the directory of a completed ledger for this dataset at this address, or None if there never was one."""
    for location, noted in _finished(state):
        if (noted.get("dataset"), noted.get("address")) == (dataset, address):
            return location
    return None


def other_ledgers(state: Path, dataset: str, address: str, source: str | None) -> list[str]:
    """Return the addresses of completed ledgers for this data set elsewhere: of the same name, or over the same source."""
    return sorted(
        str(noted.get("address"))
        for _, noted in _finished(state)
        if noted.get("address") != address
        and (noted.get("dataset") == dataset or (source is not None and noted.get("source") == source))
    )


def _finished(state: Path) -> Iterator[tuple[Path, dict[str, object]]]:
    """Yield the directories of ledgers that were completed here, with the contents of their files `place`."""
    if not state.is_dir():
        return
    for location in sorted(state.glob("*/place")):
        try:
            noted = json.loads(location.read_text())
        except (OSError, ValueError):
            continue
        if isinstance(noted, dict) and (location.parent / "head").exists():
            yield location.parent, noted


def _read_key(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise refuse("ledger_key_missing", place=str(path)) from error
    except OSError as error:
        raise refuse("ledger_state", place=str(path)) from error
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise refuse("ledger_key_open", place=str(path))
        try:
            key = bytes.fromhex(file.read(200).decode("ascii"))
        except ValueError as error:
            raise refuse("ledger_key_missing", place=str(path)) from error
    if len(key) != 32:
        raise refuse("ledger_key_missing", place=str(path))
    return key


def _write_once(path: Path, content: bytes) -> None:
    try:
        write_private(path, content)
    except OSError as error:
        raise refuse("ledger_state", place=str(path)) from error


def _wait_for_lock(descriptor: int, timeout_seconds: float) -> None:
    deadline = time.monotonic() + timeout_seconds
    pause = 0.0002
    while True:
        if try_lock(descriptor):
            return
        if time.monotonic() > deadline:
            raise refuse("ledger_locked", what="the ledger", seconds=f"{timeout_seconds:g}")
        time.sleep(pause)
        pause = min(pause * 2, 0.004)


# --- a copy of the ledger's head on another machine -------------------------------------------------------------------
# It reveals that ledger and state directory were set back together.
#
# The head moves in the state directory and then in this copy before a charge is answered; a write transaction begins
# only if the ledger contains the head in this copy. So if only this machine is set back, to any moment, the ledger is
# refused before anything is charged. The head has a MAC under the ledger's key: those who may write to the other place
# can withhold or set back the head, but not invent one. If all three are set back together, that is not noticed.

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
        self._place: FileHead | ServerHead = (
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
