"""Backup of a ledger in use, and a restore that charges everything that may have been spent since the backup.

A backup is a folder of mode 0700 with `ledger.db` (one consistent state, SQLite's own online backup), `key`, and
`backup.json` (data set, identity, number and digest of the last entry). It contains the key, so its holder can check
every entry and forge new ones: keep it secret. A ledger on PostgreSQL is backed up with the database's own tools, and
its key with the state directory.

A restore loses the charges made after the backup. Their number may be known (the head in the state directory is
later), but not their amounts. So all that is left of every account is charged, or the amount that the owner states as
lost; only a backup with the last entry that this machine has seen costs nothing. The order of steps makes every crash
safe: until the new head is written, the ledger is older than its head, or has none, and is not opened.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.ledger.accounts import ChainWriter, page_after, tip
from dpsql.ledger.check import require_sound
from dpsql.ledger.database import DatabaseConnection, parse_location, slug_of
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import same, to_text
from dpsql.ledger.store import Store
from dpsql.ledger.windows import BudgetWindow, open_in
from dpsql.ledger.witness import Head, Witness
from dpsql.storage.files import state_directory, sync, write_private
from dpsql.storage.records import dataclass


@dataclass(frozen=True)
class Restored:
    """The outcome of a restore: the last entry of the backup, the last entry that this machine had seen (None:
    unknown), and the amounts charged to each scope for the entries between."""

    entry: int
    last_seen: int | None
    charged: Mapping[str, Mapping[str, int]]


def back_up(ledger: Ledger, folder: Path) -> Head:
    """Write a backup into the new `folder` while others may charge. Returns its last entry.

    Raises Fault backup_postgres, backup_folder.
    """
    path = ledger.store.location.path
    if path is None:
        raise refuse("backup_postgres")
    ledger.settle()
    is_new = False
    try:
        folder.mkdir(mode=0o700)
        is_new = True
        target = folder / "ledger.db"
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            last = Head(*copy.execute("SELECT seq, digest FROM dpsql_entries ORDER BY seq DESC LIMIT 1").fetchone())
        write_private(folder / "key", ledger.witness.key.hex().encode())
        facts = {"dataset": ledger.dataset, "ledger": ledger.ledger_id, "entry": last.seq, "digest": last.digest}
        write_private(folder / "backup.json", json.dumps(facts, sort_keys=True).encode())
        sync(target)
        sync(folder)
    except (OSError, sqlite3.Error) as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        problem = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or slug_of(error) == "ledger_disk_full":
            problem = "its disk is full or does not take the write: make room there, and back up again"
        raise refuse("backup_folder", place=str(folder), problem=f"{problem}; the ledger is as it was") from error
    return last


def restore(
    folder: Path,
    url: str,
    dataset: str,
    *,
    lost: Mapping[str, int] | None = None,
    state: Path | None = None,
    window: BudgetWindow | None = None,
) -> Restored:
    """Restore the ledger from the backup in `folder`, and charge what may have been lost since.

    `lost`: the most that was charged since, as stated by the owner, by dimension (None: everything that is left). `window`: the
    budget window of today, if the policy has windows: it may have been opened and spent after the backup, so it is opened
    before the lost amounts are charged. A sound ledger with later entries than the backup is not replaced (backup_older).
    Raises Fault and IntegrityError.
    """
    location = parse_location(url)
    if location.path is None:
        raise refuse("backup_postgres")
    facts = _facts(folder, dataset)
    state = state_directory() if state is None else state
    witness = Witness(state, str(facts["ledger"]))
    backup = Head(int(str(facts["entry"])), str(facts["digest"]))
    _put_key(folder, witness, dataset, location.address)
    last_head = witness.head() if witness.has_head else None
    _require_older(location.path, backup, last_head)
    _put(folder / "ledger.db", location.path)
    store = Store(location)
    try:
        charged: dict[str, Mapping[str, int]] = {}
        with store.writing() as connection:
            require_sound(connection, witness, dataset, Head())
            last = tip(connection, Head())
            if last != backup:
                raise refuse("backup_folder", place=str(folder), problem="its ledger is not the one that it names")
            if last_head is not None and last_head.seq == last.seq and not same(last_head.digest, last.digest):
                raise refuse("ledger_tampered", entry=last.seq, problem="it is not the entry that was seen before")
            writer = ChainWriter(connection, witness, last)
            whole = last_head is not None and _holds(connection, last_head)
            seen_entry = None if last_head is None else last_head.seq
            writer.append(
                "restored", {"entry": last.seq, "seen": seen_entry, "lost": None if lost is None else to_text(lost)}
            )
            if not whole and window is not None:
                open_in(writer, writer.accounts(), window)
            if not whole:
                charged = _charge_lost(writer, lost)
        witness.start(writer.last, replace=True)
        return Restored(last.seq, seen_entry, charged)
    finally:
        store.close()


def _holds(connection: DatabaseConnection, last_head: Head) -> bool:
    """Return whether the ledger contains every answered charge. The head moves before a charge is answered, but not
    for outcomes, so entries may follow the head, but no answered charge does."""
    digest = connection.value("SELECT digest FROM dpsql_entries WHERE seq = :seq", seq=last_head.seq)
    return digest is not None and same(digest, last_head.digest)


def _charge_lost(writer: ChainWriter, lost: Mapping[str, int] | None) -> dict[str, Mapping[str, int]]:
    """Charge each account the smaller of its rest and `lost`, separately: lost charges may have gone to any account."""
    charged: dict[str, Mapping[str, int]] = {}
    for scope, account in sorted(writer.accounts().items()):
        left = account.remaining
        charge = left if lost is None else {name: min(left[name], lost.get(name, left[name])) for name in left}
        if not any(charge.values()):
            continue
        facts = {
            "id": f"restored/{writer.last.seq + 1}", "analyst": "owner", "session": "restore", "scopes": [scope],
            "charge": to_text(charge), "what": "what may have been charged after the backup", "policy_version": "restore",
        }  # fmt: skip
        writer.spend(writer.append("charge", facts), charge, [account])
        charged[scope] = charge
    return charged


def _require_older(path: Path, backup: Head, last_head: Head | None) -> None:
    """Refuse to replace a readable ledger that has entries which the backup lacks.

    An unfinished earlier restore of this backup does not count as such a ledger: its head was never written, so no
    question was charged to it.
    """
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as existing:
            last = existing.execute("SELECT max(seq) FROM dpsql_entries").fetchone()[0]
            rows = "SELECT digest, kind FROM dpsql_entries WHERE seq = ?"
            after = existing.execute(rows, (backup.seq + 1,)).fetchone()
            at_head = None if last_head is None else existing.execute(rows, (last_head.seq,)).fetchone()
    except sqlite3.Error:
        return  # the ledger is damaged, which is the case for which backups exist
    unused = last_head is None or at_head is None or at_head[0] != last_head.digest
    if last is not None and last > backup.seq and not (unused and after is not None and after[1] == "restored"):
        raise refuse("backup_older", entry=backup.seq, last=last)


def _facts(folder: Path, dataset: str) -> dict[str, object]:
    try:
        facts: dict[str, object] = json.loads((folder / "backup.json").read_text(encoding="ascii"))
        named, _ = facts["dataset"], (facts["ledger"], facts["entry"], facts["digest"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise refuse("backup_folder", place=str(folder), problem="it is no backup of a ledger") from error
    if named != dataset:
        raise refuse("ledger_foreign", address=str(folder), dataset=dataset)
    return facts


def _put_key(folder: Path, witness: Witness, dataset: str, address: str) -> None:
    """Install the backup's key if this machine has none. An existing key stays; the later check shows whether it matches."""
    if (witness.directory / "key").exists():
        return
    try:
        key = bytes.fromhex((folder / "key").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise refuse("ledger_key_missing", place=str(folder / "key")) from error
    witness.install(key, dataset, address)


def _put(source: Path, target: Path) -> None:
    """Replace the file atomically; the previous file and its log files are kept beside it."""
    draft = target.with_name(f"{target.name}.restoring")
    try:
        shutil.copyfile(source, draft)
        os.chmod(draft, 0o600)
        sync(draft)
        for suffix in ("", "-wal", "-shm"):
            existing = target.with_name(target.name + suffix)
            if existing.exists():
                os.replace(existing, target.with_name(f"{target.name}.replaced{suffix}"))
        os.replace(draft, target)
        sync(target.parent)
    except OSError as error:
        raise refuse("backup_folder", place=str(target), problem=str(error)) from error


def compared(ledger: Ledger, text: str) -> None:
    """Check that the ledger still contains a head that was recorded elsewhere as "NUMBER DIGEST".

    Raises IntegrityError ledger_older or ledger_tampered if it does not, InterfaceError head_text.
    """
    number, _, digest = text.strip().partition(" ")
    if not (number.isascii() and number.isdigit() and len(digest.strip()) == 64):
        raise refuse("head_text")
    with ledger.store.reading() as connection:
        entries = page_after(connection, int(number) - 1)[:1]
    if not entries or entries[0].seq != int(number):
        raise refuse("ledger_older", entry=int(number))
    if not same(digest.strip(), entries[0].digest):
        raise refuse("ledger_tampered", entry=int(number), problem="it is not the entry that was written down")


def head_text(ledger: Ledger) -> str:
    """Return the last entry as "NUMBER DIGEST", to be kept where those who can change the ledger cannot change it."""
    ledger.settle()
    with ledger.store.reading() as connection:
        last = tip(connection, Head())
    return f"{last.seq} {last.digest}"
