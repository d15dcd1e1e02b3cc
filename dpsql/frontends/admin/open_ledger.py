"""A ledger for sessions over made-up rows, whose charges nobody pays: the audit's, and those that estimate error bars."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

from dpsql.ledger import ChargeRequest
from dpsql.ledger.account import Account
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.windows import BudgetWindow, window_scope


class OpenLedger:
    """A ledger in memory that accepts every charge."""

    witness = SimpleNamespace(key=b"audit" * 8, directory=Path(tempfile.gettempdir()) / "no-such-ledger")

    def __init__(self) -> None:
        """Start without accounts."""
        self.charges: list[dict[str, int]] = []
        self._limits: dict[str, dict[str, int]] = {}

    def hold_unit(self, unit: str) -> None:
        """Accept any privacy unit."""

    def open_account(self, scope: str, accountant: str, limits: Mapping[str, int]) -> None:
        """Record the limits of the account."""
        self._limits[scope] = dict(limits)

    def open_window(self, window: BudgetWindow) -> None:
        """Record the limits of one budget window and of all windows together."""
        self._limits[window_scope(window.start)] = dict(window.limits)
        self._limits["dataset"] = dict(window.in_all or window.limits)

    def reserve(self, request: ChargeRequest) -> Reservation:
        """Record the charge and return it."""
        self.charges.append(dict(request.charge))
        return Reservation(self, request, len(self.charges), self.accounts())

    def resolve(self, seq: int, outcome: str, note: str) -> None:
        """Accept any outcome."""

    def find(self, request_id: str) -> None:
        """Return None: no earlier request was charged."""

    def accounts(self) -> dict[str, Account]:
        """Return accounts that show nothing as spent."""
        return {s: Account(s, "any", limits, dict.fromkeys(limits, 0), 0) for s, limits in self._limits.items()}
