"""Verification of a whole ledger: chain, columns, totals, head.

Opening a ledger verifies it too, and replays those entries alone that are behind its checkpoint: the replay's state after a part
that was verified before, with a fingerprint of the rows of that part, authenticated by the ledger's key. Every row is still read
and compared, so what a replay would notice is noticed. Without a checkpoint that holds, everything is replayed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dpsql.errors.exceptions import IntegrityError, InternalError, refuse
from dpsql.ledger import windows
from dpsql.ledger.accounts import Account, load_accounts, pages, rows_after, tip
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import (
    DATASET,
    START,
    Entry,
    LedgerVerdict,
    added,
    canonical,
    from_text,
    linked,
    mac,
    same,
    to_text,
)
from dpsql.ledger.witness import Head, Witness
from dpsql.storage.files import replace_private

OUTCOMES = ("committed", "failed")
CHECKPOINT = "checkpoint"
REPLAYED = 10_000
"""Entries that an opening replays at most before it writes a checkpoint; a twentieth of the ledger if that is more."""


class _Broken(Exception):
    def __init__(self, seq: int, problem: str) -> None:
        super().__init__(problem)
        self.seq = seq
        self.problem = problem


def first_problem(
    connection: DatabaseConnection, witness: Witness, dataset: str, head: Head, replay: LedgerReplay | None = None
) -> LedgerVerdict:
    """Verify the whole ledger and return a verdict with the first invalid entry, and the reason.

    Checked: numbers without gaps, every digest, the columns against the authenticated body, every charge within the
    limits at its time, totals recomputed from the charges, and the head in the state directory. `replay`: that of the
    first entries, if they were verified.
    """
    state = LedgerReplay(witness, dataset) if replay is None else replay
    try:
        for entry in pages(connection, state.last.seq):
            state.take(entry)
            if entry.seq == head.seq and not same(head.digest, entry.digest):
                raise _Broken(entry.seq, "it is not the entry that was seen before")
        if state.last.seq < head.seq:
            raise _Broken(state.last.seq + 1, f"entries are missing: entry {head.seq} has been seen")
        stored = load_accounts(connection, witness.key, witness.ledger_id)
        for scope in sorted(stored.keys() | state.accounts.keys()):
            if stored.get(scope) != state.accounts.get(scope):
                replayed = state.accounts.get(scope)
                raise _Broken(
                    replayed.seq if replayed else state.last.seq, "the running totals disagree with the entries"
                )
    except _Broken as broken:
        return LedgerVerdict(state.last.seq, broken.seq, broken.problem)
    except IntegrityError as error:
        return LedgerVerdict(state.last.seq, state.last.seq, error.message)
    except (InternalError, AttributeError, KeyError, TypeError, ValueError):
        return LedgerVerdict(state.last.seq, state.last.seq + 1, "its text makes no sense")
    return LedgerVerdict(state.last.seq)


class LedgerReplay:
    """The accounts recomputed from the entries, one entry at a time."""

    def __init__(self, witness: Witness, dataset: str) -> None:
        self.last = Head(0, START)
        self.accounts: dict[str, Account] = {}
        self._witness = witness
        self._dataset = dataset
        self._unresolved: set[int] = set()
        self._stated: str | None = None  # the window of the day that the owner has stated since the last charge

    def facts(self) -> dict[str, object]:
        """Return the state as a checkpoint has it."""
        accounts = [
            [account.scope, account.accountant, to_text(account.limits), to_text(account.spent), account.seq]
            for account in self.accounts.values()
        ]
        return {
            "dataset": self._dataset, "seq": self.last.seq, "digest": self.last.digest, "accounts": accounts,
            "unresolved": sorted(self._unresolved), "stated": self._stated,
        }  # fmt: skip

    def resume(self, facts: Mapping[str, Any]) -> None:
        """Take over the state of an authenticated checkpoint."""
        self.last = Head(facts["seq"], facts["digest"])
        for scope, accountant, limits, spent, seq in facts["accounts"]:
            self.accounts[scope] = Account(scope, accountant, from_text(limits), from_text(spent), seq)
        self._unresolved, self._stated = set(facts["unresolved"]), facts["stated"]

    def take(self, entry: Entry) -> None:
        """Check one entry against its predecessor and apply it."""
        seq = self.last.seq + 1
        if entry.seq != seq:
            raise _Broken(seq, "the entry is missing")
        if not same(linked(self._witness.key, self.last.digest, entry.body), entry.digest):
            raise _Broken(seq, "its digest does not follow from its text and the entry before")
        facts = entry.facts
        columns = (facts.get("seq"), facts.get("kind"), facts.get("id"), facts.get("resolves"))
        if columns != (entry.seq, entry.kind, entry.id, entry.resolves):
            raise _Broken(seq, "its columns differ from its text")
        self._add(entry, facts)
        self.last = Head(entry.seq, entry.digest)

    def _add(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        seq = entry.seq
        if (entry.kind == "created") != (seq == 1):
            raise _Broken(seq, "a ledger is created once, by its first entry")
        if entry.kind == "created" and (facts["dataset"], facts["ledger"]) != (self._dataset, self._witness.ledger_id):
            raise _Broken(seq, "it is the ledger of another data set")
        if entry.kind in ("account", "limits"):
            self._require_latest(seq, facts)
        if entry.kind == "account":
            limits = from_text(facts["limits"])
            account = Account(facts["scope"], facts["accountant"], limits, dict.fromkeys(limits, 0), seq)
            if self.accounts.setdefault(facts["scope"], account) is not account:
                raise _Broken(seq, "the account was opened before")
        elif entry.kind == "limits":
            self.accounts[facts["scope"]] = self.accounts[facts["scope"]].after(seq, limits=from_text(facts["limits"]))
        elif entry.kind == "clock":
            self._stated = facts["window"]
        elif entry.kind == "charge":
            self._charge(seq, facts)
        elif entry.kind in OUTCOMES:
            if entry.resolves not in self._unresolved:
                raise _Broken(seq, "it resolves no charge that was open")
            self._unresolved.remove(entry.resolves)

    def _require_latest(self, seq: int, facts: Mapping[str, Any]) -> None:
        """Check that a window is opened, or its limits changed, only while no later window is open, unless the owner has stated
        the day; closing it is allowed."""
        start, of_scope = windows.parts(facts["scope"])
        present = windows.present_start(self.accounts)
        if start in (None, self._stated) or of_scope != DATASET or present is None or present <= str(start):
            return
        account = self.accounts.get(facts["scope"])
        if account is None or from_text(facts["limits"]) != account.spent:
            raise _Broken(seq, "a budget window was opened after a later one")

    def _charge(self, seq: int, facts: Mapping[str, Any]) -> None:
        charge = from_text(facts["charge"])
        self._stated = None
        for scope in facts["scopes"]:
            account = self.accounts[scope]
            if not account.fits(charge):
                raise _Broken(seq, f"the charge did not fit scope {scope}")
            self.accounts[scope] = account.after(seq, spent=added(account.spent, charge))
        self._unresolved.add(seq)


def require_sound(
    connection: DatabaseConnection, witness: Witness, dataset: str, head: Head, *, checkpoint: bool = False
) -> None:
    """Raise ledger_older or ledger_tampered unless the whole ledger is valid. `checkpoint`: begin behind the checkpoint, if there
    is one that holds, and write another one when many entries were replayed."""
    tip(connection, head)
    replay = _resumed(connection, witness, dataset) if checkpoint else None
    replay = LedgerReplay(witness, dataset) if replay is None else replay
    begun = replay.last.seq
    verdict = first_problem(connection, witness, dataset, head, replay)
    if not verdict.sound:
        raise refuse("ledger_tampered", entry=verdict.first_bad, problem=verdict.problem)
    if checkpoint and replay.last.seq - begun > max(REPLAYED, replay.last.seq // 20):
        text = canonical({**replay.facts(), "rows": _fingerprint(connection, replay.last.seq)})
        with suppress(OSError):  # without it, the next opening takes longer
            replace_private(witness.directory / CHECKPOINT, f"{_checkpoint_mac(witness, text)}\n{text}".encode())


def _resumed(connection: DatabaseConnection, witness: Witness, dataset: str) -> LedgerReplay | None:
    """Return the replay of the entries before the checkpoint; None without one that holds for the rows of this ledger."""
    try:
        written, _, text = (witness.directory / CHECKPOINT).read_text(encoding="ascii").partition("\n")
    except (OSError, ValueError):
        return None
    if not same(_checkpoint_mac(witness, text), written):
        return None
    facts = json.loads(text)
    if facts["dataset"] != dataset or not same(_fingerprint(connection, facts["seq"]), facts["rows"]):
        return None
    replay = LedgerReplay(witness, dataset)
    replay.resume(facts)
    return replay


def _checkpoint_mac(witness: Witness, text: str) -> str:
    return mac(witness.key, "dpsql checkpoint", witness.ledger_id.encode(), text.encode())


def _fingerprint(connection: DatabaseConnection, last: int) -> str:
    """Return a digest of all columns of the entries up to number `last`, which costs a tenth of their replay."""
    digest, seq = hashlib.sha256(), 0
    while seq < last and (rows := rows_after(connection, seq, last)):
        digest.update(repr(rows).encode())
        seq = rows[-1][0]
    return digest.hexdigest()
