"""Opening of a ledger, which is created only on request, never in place of a known one that is gone."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path

from dpsql.errors.exceptions import refuse
from dpsql.ledger.accounts import ChainWriter, page_after, tip
from dpsql.ledger.check import require_sound
from dpsql.ledger.database import DatabaseConnection, Location, parse_location
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import START, checked_text, key_mark
from dpsql.ledger.store import Step, Store, no_step
from dpsql.ledger.witness import Head, SecondWitness, Witness, known_ledger, new_witness, other_ledgers
from dpsql.storage.files import state_directory

FORMAT = 1
"""Number of the format of the ledger's tables, and of the store of releases beside it."""
VERSIONS = "SELECT version FROM dpsql_format"
# The unique `id` prevents a second charge, the unique `resolves` a second outcome; both are also in `body`. The accounts are
# running totals: a pure function of the entries, stored so that a charge need not add up all entries again.
_TABLES = (
    "CREATE TABLE dpsql_format (version INTEGER NOT NULL)",
    "CREATE TABLE dpsql_entries (seq {integer} NOT NULL PRIMARY KEY, kind TEXT NOT NULL, id TEXT UNIQUE, resolves BIGINT UNIQUE, "
    "body TEXT NOT NULL, digest TEXT NOT NULL)",
    "CREATE TABLE dpsql_accounts (scope TEXT NOT NULL PRIMARY KEY, accountant TEXT NOT NULL, limits TEXT NOT NULL, "
    "spent TEXT NOT NULL, seq BIGINT NOT NULL, mac TEXT NOT NULL)",
)
_SQLITE_GUARD = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""
_POSTGRES_FUNCTION = """
CREATE FUNCTION dpsql_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$
"""
_POSTGRES_GUARD = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION dpsql_append_only()
"""
_GUARDED = (("dpsql_entries", "UPDATE"), ("dpsql_entries", "DELETE"), ("dpsql_accounts", "DELETE"))
_LOG_ENDINGS = ("-wal", "-shm", "-journal")


def open_ledger(
    url: str,
    dataset: str,
    *,
    create: bool = False,
    adopt: bool = False,
    state: Path | None = None,
    source: str | None = None,
    first: bool = False,
    second_budget: str | None = None,
    witness: str | None = None,
    read_only: bool = False,
    timeout_seconds: float = 30.0,
    step: Step = no_step,
) -> Ledger:
    """Open the ledger of `dataset` at `url` (sqlite:///PATH or postgresql://...), and check it from beginning to end.

    `create` is the owner's explicit decision: it creates a ledger where this data set never had one (and finishes an
    interrupted creation); a known ledger that is gone is refused (ledger_known), never created again. `adopt`: the
    owner states that this is the newest copy, on a machine that has the key but no head yet.
    `first`: refuse to create a ledger for a data set that has one elsewhere (ledger_second): one of the same name, or over the
    same `source` (a fingerprint); `second_budget` is the owner's reason to create it nevertheless, and is recorded.
    `witness`: the place on another machine (file:///FOLDER or postgresql://...) that also keeps the ledger's head; the
    ledger must contain the head stored there (witness_missing if there is none; a new ledger writes the first one).
    `read_only`: read a SQLite ledger on a medium that cannot be written.
    `state` is the state directory, by default `dpsql.storage.files.state_directory()`.  `step` is called with the name
    of each step, so that tests can stop a process there.

    Raises `Fault` (missing, foreign, unreachable, key or head missing) or `IntegrityError` (edited, truncated, older).
    """
    checked_text("dataset", dataset, 200)
    state = state_directory() if state is None else state
    location = parse_location(url)
    _require_own(location.path)
    store = Store(location, timeout_seconds, step, read_only=read_only)
    try:
        is_new = not _has_ledger(store, dataset)
        if is_new:
            recorded = known_ledger(state, dataset, location.address)
            if recorded is None:
                if not create:
                    raise refuse("ledger_missing", address=location.address)
                elsewhere = other_ledgers(state, dataset, location.address, source)
                if first and elsewhere and second_budget is None:
                    raise refuse("ledger_second", dataset=dataset, address=elsewhere[0])
                _create(store, state, dataset, source, len(elsewhere), second_budget)
            elif not _has_ledger(store, dataset):  # checked again: it may have been created meanwhile
                raise refuse("ledger_known", dataset=dataset, address=location.address, place=str(recorded))
        ledger = _open(store, state, dataset, unfinished=create, adopt=adopt)
        if witness is not None and not read_only:
            _attend(ledger, witness, is_new)
        return ledger
    except BaseException:
        store.close()
        raise


def _has_ledger(store: Store, dataset: str) -> bool:
    """Return whether the tables of a ledger exist. Raises ledger_foreign for a SQLite file with other tables."""
    try:
        if store.location.path is not None and not store.location.path.exists():
            return False
    except PermissionError:
        raise refuse("ledger_read_only", what=store.location.address) from None
    names = store.table_names()
    if names and store.location.path is not None and "dpsql_entries" not in names:
        raise refuse("ledger_foreign", address=store.location.address, dataset=dataset)
    return "dpsql_entries" in names


def _require_own(path: Path | None) -> None:
    """Refuse a file to which other users may write (ledger_open), and links beside it (ledger_linked)."""
    if path is None:
        return
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o022:
            raise refuse("ledger_open", place=str(path))
    except OSError:
        return  # the next step reports why it cannot be read
    require_no_links(path)


def require_no_links(path: Path) -> None:
    """Refuse symbolic links in place of the log files that SQLite writes beside a file (ledger_linked). SQLite follows no such
    link, and reports only that it cannot write."""
    for ending in _LOG_ENDINGS:
        log = f"{os.path.realpath(path)}{ending}"
        if os.path.islink(log):
            raise refuse("ledger_linked", place=log)


def touch(path: Path, file: str) -> None:
    """Create an empty file with mode 600; SQLite gives its log files the same permissions."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise refuse("ledger_read_only", what=file) from error


def create_ledger(connection: DatabaseConnection) -> None:
    """Create the tables and the triggers against accidental edits, in the caller's transaction."""
    for text in _TABLES:
        connection.run(text.format(integer="INTEGER" if connection.is_sqlite else "BIGINT"))
    if connection.is_sqlite:
        for table, verb in _GUARDED:
            connection.run(_SQLITE_GUARD.format(table=table, verb=verb))
    else:
        connection.run(_POSTGRES_FUNCTION)
        for table, verb in (*_GUARDED, ("dpsql_entries", "TRUNCATE"), ("dpsql_accounts", "TRUNCATE")):
            connection.run(_POSTGRES_GUARD.format(table=table, verb=verb))
    connection.run("INSERT INTO dpsql_format (version) VALUES (:version)", version=FORMAT)


def _create(
    store: Store, state: Path, dataset: str, source: str | None, elsewhere: int, second_budget: str | None
) -> None:
    """Create the key, then tables and first entry in one transaction; the head is written when the ledger is opened.

    A crash in between leaves a directory without a head, or a ledger with one entry; the next creation completes it.
    """
    if store.location.path is not None:
        touch(store.location.path, "the ledger")
    witness = new_witness(state, dataset, store.location.address, source)
    store.step("key made")
    with store.writing() as connection:
        if "dpsql_entries" in connection.table_names():
            shutil.rmtree(witness.directory)  # another process was first; this key has authenticated nothing
            return
        create_ledger(connection)
        mark = key_mark(witness.key, witness.ledger_id)
        facts: dict[str, object] = {"dataset": dataset, "ledger": witness.ledger_id, "format": FORMAT, "key": mark}
        if elsewhere:  # only the sum of all budgets bounds what is learned from all ledgers: auditors must see that
            facts["other_ledgers"] = elsewhere
        if second_budget is not None:
            facts["second_budget"] = checked_text("second_budget", second_budget, 500)
        ChainWriter(connection, witness, Head(0, START)).append("created", facts)
    store.step("created")


def _open(store: Store, state: Path, dataset: str, *, unfinished: bool, adopt: bool) -> Ledger:
    with store.reading() as connection:
        versions = [version for (version,) in connection.rows(VERSIONS)]
        if versions != [FORMAT]:
            raise refuse("ledger_format", found=", ".join(map(str, versions)) or "none", known=FORMAT)
        first = page_after(connection, 0)[:2]
    witness = _witness(first[0].body if first else "", state, dataset, store.location)
    ledger = Ledger(store, witness, dataset)
    if not witness.has_head and (adopt or (unfinished and len(first) == 1)):
        _adopt(ledger, adopt)
    with store.reading() as connection:
        require_sound(connection, witness, dataset, witness.head(), checkpoint=True)
    return ledger


def _attend(ledger: Ledger, url: str, is_new: bool) -> None:
    """Compare the ledger with its head on another machine, and keep that head up to date; a new ledger writes the first one."""
    second = SecondWitness(url, ledger.witness, ledger.store.timeout_seconds)
    if is_new and second.head() is None:
        second.advance(ledger.witness.head())
    head = second.required()
    with ledger.store.reading() as connection:
        tip(connection, head)
    ledger.second_witness = second


def _witness(body: str, state: Path, dataset: str, location: Location) -> Witness:
    """Return the witness of the ledger with the first entry `body`, which the later check authenticates."""
    try:
        facts = json.loads(body)
        ledger_id, mark, named = str(facts["ledger"]), facts["key"], facts["dataset"]
    except (ValueError, KeyError, TypeError) as error:
        raise refuse("ledger_tampered", entry=1, problem="it does not say whose ledger this is") from error
    if named != dataset:
        raise refuse("ledger_foreign", address=location.address, dataset=dataset)
    witness = Witness(state, ledger_id)
    witness.require_own()
    if key_mark(witness.key, ledger_id) != mark:
        raise refuse("ledger_key_wrong")
    return witness


def _adopt(ledger: Ledger, recorded: bool) -> None:
    """Write a first head after an interrupted creation, or because the owner states that this is the newest copy."""
    with ledger.store.writing() as connection:
        require_sound(connection, ledger.witness, ledger.dataset, Head())
        writer = ChainWriter(connection, ledger.witness, tip(connection, Head()))
        if recorded:
            writer.append("adopted", {})
    ledger.witness.start(writer.last)
    ledger.store.step("head made")


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
