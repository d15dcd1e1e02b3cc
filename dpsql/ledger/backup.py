"""Copies of a ledger: made while it is used, and put back so that nothing that may have been spent is forgotten.

A backup is a folder of mode 0700 with `ledger.db` (one consistent state, SQLite's own online backup), `key`, and `backup.json`
(data set, identity, number and digest of the last entry). Whoever has it can check every entry and forge new ones: it is kept
as the key is. A ledger on PostgreSQL is backed up with the database's own tools, and its key with the state directory.

Putting a backup back loses the charges that came after it. Their number may be known (the head of the second place has seen
later entries), their sizes are not. So what is left of every account is charged, or as much as the owner's word says was lost;
only a backup that has the very entry that was seen last costs nothing. The order of steps keeps every crash on the safe
side: until the new head is written, the ledger is older than its head, or has none, and is not opened.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from dpsql.errors.exceptions import refuse
from dpsql.ledger.account import load_accounts, update_accounts
from dpsql.ledger.chain import same
from dpsql.ledger.check import require_sound
from dpsql.ledger.entries import Turn, page_after, tip
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import added, to_text
from dpsql.ledger.store import Store, parse_place
from dpsql.ledger.tables import entries
from dpsql.ledger.witness import Head, Witness
from dpsql.storage.directories import state_directory


@dataclass(frozen=True)
class Restored:
    """What was put back: the last entry of the backup, the last one that had been seen (None: unknown on this machine), and
    what was charged to each scope for what lies between."""

    entry: int
    seen: int | None
    charged: Mapping[str, Mapping[str, int]]


def back_up(ledger: Ledger, folder: Path) -> Head:
    """Write a backup into the new `folder` while others go on charging. Returns its last entry.

    Raises Fault backup_postgres, backup_folder.
    """
    path = ledger.store.place.path
    if path is None:
        raise refuse("backup_postgres")
    ledger.settle()
    try:
        folder.mkdir(mode=0o700)
        target = folder / "ledger.db"
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with (
            closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
            last = Head(*copy.execute("SELECT seq, digest FROM dpsql_entries ORDER BY seq DESC LIMIT 1").fetchone())
        _write(folder / "key", ledger.witness.key.hex())
        facts = {"dataset": ledger.dataset, "ledger": ledger.ledger_id, "entry": last.seq, "digest": last.digest}
        _write(folder / "backup.json", json.dumps(facts, sort_keys=True))
        _sync(target)
        _sync(folder)
    except (OSError, sqlite3.Error) as error:
        raise refuse("backup_folder", place=str(folder), problem=str(error)) from error
    return last


def restore(
    folder: Path, url: str, dataset: str, *, lost: Mapping[str, int] | None = None, state: Path | None = None
) -> Restored:
    """Put the backup in `folder` at the place of the ledger, and charge what may have been lost since.

    `lost` is the owner's word for how much that is at most, by dimension (None: everything that is left). A ledger that
    holds and has later entries than the backup is not replaced (backup_older). Raises Fault and IntegrityError.
    """
    place = parse_place(url)
    if place.path is None:
        raise refuse("backup_postgres")
    facts = _facts(folder, dataset)
    state = state_directory() if state is None else state
    witness = Witness(state, str(facts["ledger"]))
    backup = Head(int(str(facts["entry"])), str(facts["digest"]))
    _put_key(folder, witness, dataset, place.address)
    seen = witness.head() if witness.has_head else None
    _require_older(place.path, backup, seen)
    _put(folder / "ledger.db", place.path)
    store = Store(place)
    try:
        charged: dict[str, Mapping[str, int]] = {}
        with store.writing() as connection:
            require_sound(connection, witness, dataset, Head())
            last = tip(connection, Head())
            if last != backup:
                raise refuse("backup_folder", place=str(folder), problem="its ledger is not the one that it names")
            if seen is not None and seen.seq == last.seq and not same(seen.digest, last.digest):
                raise refuse("ledger_tampered", entry=last.seq, problem="it is not the entry that was seen before")
            turn = Turn(connection, witness.key, last)
            whole = seen is not None and _holds(connection, seen)
            known = None if seen is None else seen.seq
            turn.append("restored", {"entry": last.seq, "seen": known, "lost": None if lost is None else to_text(lost)})
            if not whole:
                charged = _charge_lost(turn, witness, lost)
        witness.replace(turn.last)
        return Restored(last.seq, known, charged)
    finally:
        store.close()


def _holds(connection: Connection, seen: Head) -> bool:
    """Whether every charge that was answered is there. The head moves before a charge is answered, and not for notes of
    outcomes, so a ledger may have entries after it, and nothing that was answered comes after it."""
    digest = connection.execute(select(entries.c.digest).where(entries.c.seq == seen.seq)).scalar()
    return digest is not None and same(digest, seen.digest)


def _charge_lost(turn: Turn, witness: Witness, lost: Mapping[str, int] | None) -> dict[str, Mapping[str, int]]:
    """Charge each account what is left of it, or what was lost at most where that is less. A charge of its own for each:
    lost ones may have gone to any of them."""
    charged: dict[str, Mapping[str, int]] = {}
    accounts = load_accounts(turn.connection, witness.key, witness.ledger_id, None)
    for scope, account in sorted(accounts.items()):
        left = account.remaining
        charge = left if lost is None else {name: min(left[name], lost.get(name, left[name])) for name in left}
        if not any(charge.values()):
            continue
        facts = {
            "id": f"restored/{turn.last.seq + 1}", "analyst": "owner", "session": "restore", "scopes": [scope],
            "charge": to_text(charge), "what": "what may have been charged after the backup", "policy_version": "restore",
        }  # fmt: skip
        seq = turn.append("charge", facts)
        changed = account.at(seq, spent=added(account.spent, charge))
        update_accounts(turn.connection, witness.key, witness.ledger_id, [changed])
        charged[scope] = charge
    return charged


def _require_older(path: Path, backup: Head, seen: Head | None) -> None:
    """Refuse to replace a ledger that can be read and goes on from, or beside, the backup: it knows more.

    One that an earlier restore of this backup wrote, and did not finish, knows no charge that anybody made: nothing was
    charged to it, as its head was never written.
    """
    if not path.exists():
        return
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as there:
            last = there.execute("SELECT max(seq) FROM dpsql_entries").fetchone()[0]
            rows = "SELECT digest, kind FROM dpsql_entries WHERE seq = ?"
            after = there.execute(rows, (backup.seq + 1,)).fetchone()
            at_head = None if seen is None else there.execute(rows, (seen.seq,)).fetchone()
    except sqlite3.Error:
        return  # damaged: that is what backups are for
    unused = seen is None or at_head is None or at_head[0] != seen.digest
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
    """The key of the backup where this machine has none. One that is there stays: the check tells whether it fits."""
    if (witness.directory / "key").exists():
        return
    try:
        key = bytes.fromhex((folder / "key").read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise refuse("ledger_key_missing", place=str(folder / "key")) from error
    witness.install(key, dataset, address)


def _put(source: Path, target: Path) -> None:
    """Whole or not at all; what was there is kept beside it, and so are the log files that belong to it."""
    draft = target.with_name(f"{target.name}.restoring")
    try:
        shutil.copyfile(source, draft)
        os.chmod(draft, 0o600)
        _sync(draft)
        for suffix in ("", "-wal", "-shm"):
            there = target.with_name(target.name + suffix)
            if there.exists():
                os.replace(there, target.with_name(f"{target.name}.replaced{suffix}"))
        os.replace(draft, target)
        _sync(target.parent)
    except OSError as error:
        raise refuse("backup_folder", place=str(target), problem=str(error)) from error


def _write(path: Path, text: str) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def compared(ledger: Ledger, text: str) -> None:
    """Check that the ledger still contains a head that was written down elsewhere as "NUMBER DIGEST".

    Raises IntegrityError ledger_older or ledger_tampered when it does not, InterfaceError head_text.
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
    """The last entry of the ledger as "NUMBER DIGEST", to be kept where nobody who can change the ledger can change it."""
    ledger.settle()
    with ledger.store.reading() as connection:
        last = tip(connection, Head())
    return f"{last.seq} {last.digest}"
