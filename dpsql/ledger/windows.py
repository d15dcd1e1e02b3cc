"""Budget windows (policy: `every`): the accounts of one window, and the rule that no window is opened twice.

The window that begins on a day has the account `window:2026-11-01`, and the limits of analysts and projects are accounts
below it (`window:2026-11-01:analyst:NAME`). So its start is in the ledger, under the same chain as every charge. Opening a
window closes all earlier ones forever: their limits become the amounts that they have spent. A process whose clock is behind
asks for an earlier window than the latest, and is refused; a clock that is ahead opens a window too early, which closes the
present one, and is not opened again when its day comes. In either case each window is spent at most once.

The dataset's account adds up all charges. If the policy limits all windows together, that is the account's limit; otherwise
its limit is the amount already spent plus what the window may still spend.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from dpsql.errors.exceptions import refuse
from dpsql.ledger.account import Account, insert_account, update_accounts
from dpsql.ledger.entries import ChainWriter
from dpsql.ledger.records import DATASET, Units, added, to_text
from dpsql.ledger.witness import Witness

WAIT = (
    "ask a coarser question, use a smaller epsilon, or wait until the budget begins anew (`every` in the policy); the owner can "
    "raise the limit"
)
"""The hint for a question that a window's budget does not allow."""
_WINDOW = re.compile(r"window:([0-9]{4}-[0-9]{2}-[0-9]{2})(?::(.+))?", re.DOTALL)


@dataclass(frozen=True)
class BudgetWindow:
    """A budget window: its first day (an ISO date) and its limits in ledger units.

    `in_all`: the limits of all windows together, which the dataset's account has; None: no such limits.
    """

    start: str
    accountant: str
    limits: Units
    in_all: Units | None


def today() -> date:
    """Return the present day by the clock, in UTC."""
    return datetime.now(UTC).date()


def window_scope(start: str, scope: str = DATASET) -> str:
    """Return the name of the account of `scope` in the window that begins on `start` (an ISO date)."""
    return f"window:{start}" if scope == DATASET else f"window:{start}:{scope}"


def parts(scope: str) -> tuple[str | None, str]:
    """Return the start of an account's window (None: it belongs to no window) and the scope that it limits there."""
    match = _WINDOW.fullmatch(scope)
    return (None, scope) if match is None else (match[1], match[2] or DATASET)


def in_words(scope: str) -> str:
    """Return the words for an account in messages: "dataset", "the budget that began on 2026-11-01", "analyst:NAME in the
    budget that began on 2026-11-01"."""
    start, of_scope = parts(scope)
    if start is None:
        return scope
    budget = f"the budget that began on {start}"
    return budget if of_scope == DATASET else f"{of_scope} in {budget}"


def latest_start(scopes: Iterable[str]) -> str | None:
    """Return the start of the latest window among accounts, or None if there is no window."""
    return max((start for start, _ in map(parts, scopes) if start is not None), default=None)


def without_earlier(accounts: Mapping[str, Account]) -> dict[str, Account]:
    """Return the accounts without those of closed windows."""
    latest = latest_start(accounts)
    return {scope: account for scope, account in accounts.items() if parts(scope)[0] in (None, latest)}


def require_open(accounts: Iterable[str], start: str) -> None:
    """Raise Fault window_closed if a window later than that of `start` has been opened."""
    latest = latest_start(accounts)
    if latest is not None and latest > start:
        raise refuse("window_closed", start=start, latest=latest)


def is_open(accounts: Mapping[str, Account], window: BudgetWindow) -> bool:
    """Return whether the window is open with its limits. Raises window_closed and ledger_accountant."""
    require_open(accounts, window.start)
    account, dataset = accounts.get(window_scope(window.start)), accounts.get(DATASET)
    changed = account is None or account.must_change(window.accountant, window.limits)
    if dataset is not None:
        dataset.must_change(window.accountant, window.limits)  # raises for another accountant
    if account is None or dataset is None or changed:
        return False
    return dataset.limits == _dataset_limits(window, account, dataset.spent)


def open_in(writer: ChainWriter, witness: Witness, accounts: Mapping[str, Account], window: BudgetWindow) -> None:
    """Open the window in a write transaction, or record its changed limits, and close earlier windows. Write nothing if
    it is open with these limits.

    Raises window_closed and ledger_accountant before anything is written.
    """
    if is_open(accounts, window):
        return
    nothing = dict.fromkeys(window.limits, 0)
    for scope, account in sorted(accounts.items()):
        if parts(scope)[0] not in (None, window.start) and account.limits != account.spent:
            _limit(writer, witness, account, account.spent)
    current = accounts.get(window_scope(window.start))
    if current is None:
        current = _open(
            writer, witness, Account(window_scope(window.start), window.accountant, window.limits, nothing, 0)
        )
    elif current.limits != window.limits:
        current = _limit(writer, witness, current, window.limits)
    dataset = accounts.get(DATASET)
    limits = _dataset_limits(window, current, nothing if dataset is None else dataset.spent)
    if dataset is None:
        _open(writer, witness, Account(DATASET, window.accountant, limits, nothing, 0))
    elif dataset.limits != limits:
        _limit(writer, witness, dataset, limits)


def _dataset_limits(window: BudgetWindow, account: Account, spent: Units) -> Units:
    """Return the limits of the dataset's account: those of all windows, or `spent` plus what the window may still spend."""
    return added(spent, account.remaining) if window.in_all is None else window.in_all


def _open(writer: ChainWriter, witness: Witness, account: Account) -> Account:
    facts = {"scope": account.scope, "accountant": account.accountant, "limits": to_text(account.limits)}
    seq = writer.append("account", facts)
    opened = account.after(seq)
    insert_account(writer.connection, witness.key, witness.ledger_id, opened)
    return opened


def _limit(writer: ChainWriter, witness: Witness, account: Account, limits: Units) -> Account:
    facts = {"scope": account.scope, "accountant": account.accountant, "limits": to_text(limits)}
    seq = writer.append("limits", {**facts, "were": to_text(account.limits)})
    changed = account.after(seq, limits=limits)
    update_accounts(writer.connection, witness.key, witness.ledger_id, [changed])
    return changed
