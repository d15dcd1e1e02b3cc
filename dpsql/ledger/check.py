"""Verification of a whole ledger: chain, columns, totals, head."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsql.errors.exceptions import IntegrityError, InternalError, refuse
from dpsql.ledger import windows
from dpsql.ledger.accounts import Account, load_accounts, pages, tip
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import DATASET, START, Entry, LedgerVerdict, added, from_text, linked, same
from dpsql.ledger.witness import Head, Witness

OUTCOMES = ("committed", "failed")


class _Broken(Exception):
    def __init__(self, seq: int, problem: str) -> None:
        super().__init__(problem)
        self.seq = seq
        self.problem = problem


def first_problem(connection: DatabaseConnection, witness: Witness, dataset: str, head: Head) -> LedgerVerdict:
    """Verify the whole ledger and return a verdict with the first invalid entry, and the reason.

    Checked: numbers without gaps, every digest, the columns against the authenticated body, every charge within the
    limits at its time, totals recomputed from the charges, and the head in the state directory.
    """
    state = _Replay(witness, dataset)
    try:
        for entry in pages(connection, 0):
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


class _Replay:
    """The accounts recomputed from the entries, one entry at a time."""

    def __init__(self, witness: Witness, dataset: str) -> None:
        self.last = Head(0, START)
        self.accounts: dict[str, Account] = {}
        self._witness = witness
        self._dataset = dataset
        self._unresolved: set[int] = set()
        self._stated: str | None = None  # the window of the day that the owner has stated since the last charge

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


def require_sound(connection: DatabaseConnection, witness: Witness, dataset: str, head: Head) -> None:
    """Raise ledger_older or ledger_tampered unless the whole ledger is valid."""
    tip(connection, head)
    verdict = first_problem(connection, witness, dataset, head)
    if not verdict.sound:
        raise refuse("ledger_tampered", entry=verdict.first_bad, problem=verdict.problem)
