"""Budget windows (policy: `every`): the accounts of one window, and the rule that no window is opened twice.

The window that begins on a day has the account `window:2026-11-01`, and the limits of analysts and projects are accounts
below it (`window:2026-11-01:analyst:NAME`). So its start is in the ledger, under the same chain as every charge. Opening a
window closes all others: their limits become the amounts that they have spent. The account of a window keeps what was spent
from it, so each window is spent at most once, in whatever order windows are opened.

A window is opened only by a clock that agrees with the ledger's own times and with its database (`require_clock`), so that no
clock that jumps closes the budget for years. A process whose clock is behind asks for an earlier window than the present one,
and is refused. If a window was opened too early all the same, the owner states the day (`state_day`), which is recorded and
closes the later windows until their days come.

The dataset's account adds up all charges. If the policy limits all windows together, that is the account's limit; otherwise
its limit is the amount already spent plus what the window may still spend.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from dpsql.errors.exceptions import refuse
from dpsql.ledger.accounts import Account, ChainWriter, last_of_kinds
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import DATASET, Units, added
from dpsql.storage.records import dataclass

WAIT = (
    "ask a coarser question, use a smaller epsilon, or wait until the budget begins anew (`every` in the policy); the owner can "
    "raise the limit"
)
"""The hint for a question that a window's budget does not allow."""
MOST_IDLE = timedelta(days=35)
"""A budget begins at most so long after the last charge unless the owner states the day: a clock that is further ahead than
that is one that jumped, as far as the ledger can know."""
_DAY = timedelta(days=1)
_SERVER_DAY = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
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


def present_start(accounts: Mapping[str, Account]) -> str | None:
    """Return the start of the window that is open, or None if no window was ever opened.

    It is the one that the newest entry changed: opening a window closes the others before, and no later entry changes these.
    """
    opened = [(account.seq, *parts(name)) for name, account in accounts.items()]
    changes = [(seq, start) for seq, start, scope in opened if start and scope == DATASET]
    return max(changes)[1] if changes else None


def of_present(accounts: Mapping[str, Account]) -> dict[str, Account]:
    """Return the accounts without those of windows that are closed."""
    present = present_start(accounts)
    return {scope: account for scope, account in accounts.items() if parts(scope)[0] in (None, present)}


def require_open(accounts: Mapping[str, Account], start: str) -> None:
    """Raise Fault window_closed if the window of `start` is earlier than the one that is open."""
    present = present_start(accounts)
    if present is not None and present > start:
        raise refuse("window_closed", start=start, latest=present)


def require_present(accounts: Mapping[str, Account], start: str) -> None:
    """Raise Fault window_closed if another window than that of `start` is open."""
    present = present_start(accounts)
    if present not in (None, start):
        raise refuse("window_closed", start=start, latest=present)


def require_server_clock(connection: DatabaseConnection, day: date) -> None:
    """Raise Fault clock_jumped unless `day`, the present one by this machine's clock, is within a day of the ledger's server."""
    if not connection.is_sqlite:
        server = date.fromisoformat(connection.value(_SERVER_DAY))
        if abs(day - server) > _DAY:
            raise refuse("clock_jumped", day=day, why=f"the ledger's database says {server}")


def require_clock(connection: DatabaseConnection) -> None:
    """Raise Fault clock_jumped unless the present day by this machine's clock may be right: that of the ledger's server, not
    before the last charge, and at most `MOST_IDLE` after it.

    The day of the last charge is one that the clock of a window allowed, or that the owner stated.
    """
    day = today()
    require_server_clock(connection, day)
    last = last_of_kinds(connection, ("created", "charge", "clock"))
    if last is None:
        return
    charged_on = date.fromisoformat(str(last.facts.get("day", last.facts["time"]))[:10])
    if not charged_on - _DAY <= day <= charged_on + MOST_IDLE:
        days = abs((day - charged_on).days)
        why = f"the last charge in the ledger is of {charged_on}, {days} days {'before' if day > charged_on else 'after'} that"
        raise refuse("clock_jumped", day=day, why=why)


def is_open(accounts: Mapping[str, Account], window: BudgetWindow) -> bool:
    """Return whether the window is open with its limits. Raises window_closed and ledger_accountant."""
    require_open(accounts, window.start)
    account, dataset = accounts.get(window_scope(window.start)), accounts.get(DATASET)
    changed = account is None or account.must_change(window.accountant, window.limits)
    if dataset is not None:
        dataset.must_change(window.accountant, window.limits)  # raises for another accountant
    if account is None or dataset is None or changed or present_start(accounts) != window.start:
        return False
    return dataset.limits == _dataset_limits(window, account, dataset.spent)


def open_in(writer: ChainWriter, accounts: Mapping[str, Account], window: BudgetWindow) -> None:
    """Open the window in a write transaction, or record its changed limits, and close the others. Write nothing if it is
    open with these limits.

    Raises window_closed and ledger_accountant before anything is written.
    """
    if not is_open(accounts, window):
        _make_present(writer, accounts, window)


def state_day(
    writer: ChainWriter, accounts: Mapping[str, Account], day: date, window: BudgetWindow | None, reason: str
) -> None:
    """Record that the owner states the present day, and make its window the present one even if later ones were opened.

    What was spent stays spent in every window, so a later one gives no more than its rest when its day comes.
    """
    start = None if window is None else window.start
    writer.append("clock", {"day": day.isoformat(), "window": start, "reason": reason})
    if window is not None:
        _make_present(writer, accounts, window)


def _make_present(writer: ChainWriter, accounts: Mapping[str, Account], window: BudgetWindow) -> None:
    for scope, account in sorted(accounts.items()):
        if parts(scope)[0] not in (None, window.start) and account.limits != account.spent:
            writer.limit(account, account.spent)
    current = accounts.get(window_scope(window.start))
    if current is None:
        current = writer.open(window_scope(window.start), window.accountant, window.limits)
    elif current.limits != window.limits or present_start(accounts) != window.start:
        current = writer.limit(current, window.limits)
    dataset = accounts.get(DATASET)
    spent = dict.fromkeys(window.limits, 0) if dataset is None else dataset.spent
    limits = _dataset_limits(window, current, spent)
    if dataset is None:
        writer.open(DATASET, window.accountant, limits)
    elif dataset.limits != limits:
        writer.limit(dataset, limits)


def _dataset_limits(window: BudgetWindow, account: Account, spent: Units) -> Units:
    """Return the limits of the dataset's account: those of all windows, or `spent` plus what the window may still spend."""
    return added(spent, account.remaining) if window.in_all is None else window.in_all
