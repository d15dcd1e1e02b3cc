"""A charge that has been made, and the note of what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from dpsql.errors import Fault
from dpsql.ledger.account import Account
from dpsql.ledger.words import ChargeRequest

_log = logging.getLogger("dpsql.ledger")


class _Resolver(Protocol):
    def resolve(self, seq: int, outcome: str, note: str) -> None: ...


class Reservation:
    """`seq` is the number of the charge in the ledger, `accounts` (by scope) what it left of its scopes.

    Neither outcome gives anything back.
    """

    def __init__(self, ledger: _Resolver, request: ChargeRequest, seq: int, accounts: Mapping[str, Account]) -> None:
        self._ledger = ledger
        self.request = request
        self.seq = seq
        self.accounts = accounts

    def commit(self, note: str = "") -> bool:
        """Note that the answer was released. False when the note could not be stored (told to the owner's log)."""
        return self._note("committed", note)

    def fail(self, note: str = "") -> bool:
        """Note that there was no answer. The charge stays: noise may have been drawn."""
        return self._note("failed", note)

    def _note(self, outcome: str, note: str) -> bool:
        try:
            self._ledger.resolve(self.seq, outcome, note)
        except Fault as fault:
            # The charge is spent with or without the note, so a paid answer is not withheld because of it.
            _log.warning("charge %d: %s not noted: %s", self.seq, outcome, fault.message)
            return False
        return True
