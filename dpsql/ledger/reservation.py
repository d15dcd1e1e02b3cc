"""A recorded charge, and the note of its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from dpsql.errors.exceptions import refuse
from dpsql.ledger.account import Account
from dpsql.ledger.records import ChargeRequest


class _Resolver(Protocol):
    def resolve(self, seq: int, outcome: str, note: str) -> None: ...


class Reservation:
    """A recorded charge: `seq` is its number in the ledger, `accounts` (by scope) the state of its accounts after it,
    `resolved` whether its outcome is known.

    No outcome refunds anything. A charge has one outcome; a second one is an internal error (ledger_resolved).
    """

    def __init__(self, ledger: _Resolver, request: ChargeRequest, seq: int, accounts: Mapping[str, Account]) -> None:
        self._ledger = ledger
        self.request = request
        self.seq = seq
        self.accounts = accounts
        self.resolved = False

    def commit(self, note: str = "") -> None:
        """Note that the answer was released."""
        self._note("committed", note)

    def fail(self, note: str = "") -> None:
        """Note that there was no answer. The charge stays: noise may have been drawn."""
        self._note("failed", note)

    def _note(self, outcome: str, note: str) -> None:
        if self.resolved:
            raise refuse("ledger_resolved", entry=self.seq)
        self.resolved = True
        self._ledger.resolve(self.seq, outcome, note)
