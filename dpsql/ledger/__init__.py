"""The ledger: charges are reserved and committed; entries are append-only and chained. See `open_ledger`.

Importing this package loads no database; opening a ledger does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpsql.ledger.records import DATASET, ChargeRequest, Entry, LedgerVerdict, Units, decimal_text
from dpsql.privacy.ledger_units import DECIMALS

if TYPE_CHECKING:
    from dpsql.ledger.opening import open_ledger

__all__ = [
    "DATASET",
    "DECIMALS",
    "ChargeRequest",
    "Entry",
    "Units",
    "LedgerVerdict",
    "decimal_text",
    "open_ledger",
]


def __getattr__(name: str) -> Any:
    if name == "open_ledger":
        from dpsql.ledger.opening import open_ledger

        return open_ledger
    raise AttributeError(name)
