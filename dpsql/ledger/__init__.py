"""The ledger: charges are reserved and committed; entries are append-only and chained. See `open_ledger`.

Importing this package loads neither SQLAlchemy nor a driver; opening a ledger does.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dpsql.ledger.records import DATASET, ChargeRequest, Entry, LedgerVerdict, Units, decimal_text
from dpsql.privacy.ledger_units import DECIMALS

if TYPE_CHECKING:
    from dpsql.ledger.ledger import Ledger

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


def _no_step(name: str) -> None:
    """Do nothing: this is the default of `step`."""


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
    step: Callable[[str], None] = _no_step,
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
    from dpsql.ledger.opening import open_checked

    return open_checked(
        url,
        dataset,
        create=create,
        adopt=adopt,
        state=state,
        source=source,
        first=first,
        second_budget=second_budget,
        witness=witness,
        read_only=read_only,
        timeout_seconds=timeout_seconds,
        step=step,
    )
