"""The ledger: limits and charges of each scope. A charge is written before data is touched, and never refunded. Forecasts."""

from __future__ import annotations

import atexit
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from threading import Timer
from typing import Self, TextIO

from dpsql.errors.exceptions import BudgetRefusal, Error, refuse
from dpsql.ledger import windows
from dpsql.ledger.accounts import Account, ChainWriter, find_charge, has_entry, load_accounts, page_after, tip
from dpsql.ledger.check import first_problem
from dpsql.ledger.database import DatabaseConnection
from dpsql.ledger.records import (
    DATASET,
    ChargeRequest,
    Entry,
    LedgerVerdict,
    Units,
    checked_scope,
    checked_text,
    checked_units,
    decimal_text,
    from_text,
    readable_text,
    to_text,
    write_csv,
    write_json_lines,
)
from dpsql.ledger.store import GroupCommit, Store, Submission, Taken
from dpsql.ledger.windows import in_words, of_present, parts
from dpsql.ledger.witness import Head, SecondWitness, Witness
from dpsql.privacy.ledger_units import DECIMALS, next_start
from dpsql.storage.memory import LiveObjects
from dpsql.storage.records import dataclass

# --- Outcomes of charges, written in the transaction of the next charge ---
# They inform the owner that a charge was answered. Nothing depends on them, and a charge without an outcome is spent
# like any other, so an outcome needs no separate transaction. It is written with the next charge of this process,
# when the history is read through this ledger, when the ledger is closed or the process ends, and after
# `LATEST_SECONDS` by a thread. A killed process loses the outcomes of its last second.

LATEST_SECONDS = 1.0
_RESOLVED = "SELECT seq FROM dpsql_entries WHERE resolves = :resolves"


@dataclass(frozen=True)
class Outcome:
    """The outcome ("committed" or "failed") of the charge with number `resolves`."""

    resolves: int
    kind: str
    note: str


class Outcomes:
    """The waiting outcomes of this process. Thread-safe because each step is atomic; there is no lock, because a fork could
    leave it locked."""

    def __init__(self, settle: Callable[[], None]) -> None:
        """`settle` writes the waiting outcomes; a background thread calls it if nothing else does."""
        self._settle = settle
        self._waiting: dict[int, Outcome] = {}
        self._timer: Timer | None = None
        self._process = os.getpid()

    def add(self, outcome: Outcome) -> None:
        self._of_this_process()
        self._waiting[outcome.resolves] = outcome
        if self._timer is None:
            timer = self._timer = Timer(LATEST_SECONDS, self._late)
            timer.daemon = True
            with suppress(RuntimeError):  # no thread starts while the interpreter ends, which settles anyway
                timer.start()

    def waiting(self) -> list[Outcome]:
        """Return the waiting outcomes, oldest first. A forked child has none: its parent writes them."""
        self._of_this_process()
        return list(self._waiting.values())

    def write(self, writer: ChainWriter) -> list[Outcome]:
        """Append the waiting outcomes to the chain and return them. A charge must not fail because of an outcome, so a
        second outcome of one charge (noted by a process and its fork, or after a commit of unknown success) is
        skipped."""
        outcomes = self.waiting()
        for outcome in outcomes:
            if writer.connection.rows(_RESOLVED, resolves=outcome.resolves):
                _log.warning("charge %d: %s not noted: it has an outcome", outcome.resolves, outcome.kind)
            else:
                writer.append(outcome.kind, {"resolves": outcome.resolves, "note": outcome.note})
        return outcomes

    def written(self, outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            self._waiting.pop(outcome.resolves, None)

    def stop(self) -> None:
        """Cancel the background flush."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()

    def _late(self) -> None:
        self._timer = None
        self._settle()

    def _of_this_process(self) -> None:
        if self._process != os.getpid():
            self._process, self._waiting, self._timer = os.getpid(), {}, None


_log = logging.getLogger("dpsql.ledger")
_Charged = tuple[int, dict[str, Account]]

_LAST_UNIT = "SELECT body FROM dpsql_entries WHERE kind = 'unit' ORDER BY seq DESC LIMIT 1"
_ANY_CHARGE = "SELECT seq FROM dpsql_entries WHERE kind = 'charge' LIMIT 1"


class Reservation:
    """A recorded charge: `seq` is its number in the ledger, `accounts` (by scope) the state of its accounts after it,
    `resolved` whether its outcome is known.

    No outcome refunds anything. A charge has one outcome; a second one is an internal error (ledger_resolved).
    """

    def __init__(
        self,
        resolve: Callable[[int, str, str], None],
        request: ChargeRequest,
        seq: int,
        accounts: Mapping[str, Account],
    ) -> None:
        """`resolve`: notes the outcome of the charge of a number (`Ledger.resolve`)."""
        self._resolve = resolve
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
        self._resolve(self.seq, outcome, note)


class Ledger:
    """An open ledger, created by `open_ledger`. Any number of threads, processes and machines may share it.

    Every method raises `Fault` if the storage fails and `IntegrityError` if the ledger is not valid.
    """

    def __init__(self, store: Store, witness: Witness, dataset: str) -> None:
        self.dataset = dataset
        self.store = store
        self.witness = witness
        self.second_witness: SecondWitness | None = None
        self._unit: str | None = None
        self._outcomes = Outcomes(self.settle)
        self._charges: GroupCommit[ChargeRequest, _Charged] = GroupCommit(self._charge_all)
        _LIVE.add(self)

    @property
    def ledger_id(self) -> str:
        """The ledger's identity: 32 hexadecimal digits chosen at creation."""
        return self.witness.ledger_id

    def hold_unit(self, unit: str, *, change: bool = False) -> None:
        """Record the privacy unit of later charges; write nothing if it is already recorded.

        Raises Fault ledger_unit if there are charges for another unit. `change`: the owner accepts that; amounts already
        spent stay spent.
        """
        if self._unit == unit:
            return
        with self.store.reading() as connection:
            missing = must_hold(connection, unit, change)
        if missing:
            with self._write_transaction() as writer:
                if must_hold(writer.connection, unit, change):
                    writer.append("unit", {"unit": unit})
        self._unit = unit

    def record(self, kind: str, facts: Mapping[str, object]) -> Head:
        """Write one entry about an action of the owner. Returns the head after it."""
        with self._write_transaction() as writer:
            writer.append(kind, facts)
        return writer.last

    def open_account(self, scope: str, accountant: str, limits: Mapping[str, int]) -> None:
        """Open the account of `scope`, or record changed limits; write nothing if they are the same.

        The accountant of a scope is fixed when it is opened: a different one is refused (ledger_accountant).
        """
        checked_scope(scope)
        start, of_scope = windows.parts(scope)
        if start is not None and of_scope == DATASET:
            raise refuse("ledger_request", problem="a window is opened by open_window")
        checked_text("accountant", accountant, 40)
        new_limits = checked_units(limits)
        with self.store.reading() as connection:
            current = self._accounts(connection, [scope]).get(scope)
        if current is not None and not current.must_change(accountant, new_limits):
            return
        with self._write_transaction() as writer:
            current = writer.accounts([scope]).get(scope)
            if current is None:
                writer.open(scope, accountant, new_limits)
            elif current.must_change(accountant, new_limits):
                writer.limit(current, new_limits)

    def open_window(self, window: windows.BudgetWindow) -> None:
        """Open a budget window, or record its changed limits, and close the others; write nothing if it is open.

        Raises Fault window_closed if a later window is open, because the clock that chose this one is behind, and
        clock_jumped if the present day cannot be that of this machine's clock.
        """
        checked_scope(windows.window_scope(window.start))
        checked_text("accountant", window.accountant, 40)
        for limits in filter(None, (window.limits, window.in_all)):
            checked_units(limits)
        if windows.is_open(self.accounts(), window):
            return
        with self._write_transaction() as writer:
            accounts = writer.accounts()
            windows.require_open(accounts, window.start)
            if windows.present_start(accounts) != window.start:
                windows.require_clock(writer.connection)
            windows.open_in(writer, accounts, window)

    def state_day(self, window: windows.BudgetWindow | None, reason: str) -> None:
        """Record the owner's word that the clock of this machine is right, and make `window`, that of today, the present one.

        Later windows, which a clock that was ahead has opened, are closed until their days come; what they have spent stays
        spent. Raises Fault clock_jumped if the ledger's server has another day.
        """
        with self._write_transaction() as writer:
            windows.require_server_clock(writer.connection, windows.today())
            windows.state_day(writer, writer.accounts(), windows.today(), window, checked_text("reason", reason, 500))

    def reserve(self, request: ChargeRequest) -> Reservation:
        """Charge `request` to all its scopes at once. When this returns, the charge is on disk and the head has
        moved.

        Raises BudgetRefusal (nothing written; `remaining` has the remaining amounts of each scope), request_repeated for
        an id that was charged before, window_closed for a window before the latest, and `Fault` with `charged` set if it is
        unknown whether the charge was recorded. A reserved charge is spent, whatever happens to the process and whatever
        outcome is noted on the reservation.
        """
        seq, accounts = self._charges.submit(request, self.store.timeout_seconds, self.store.name)
        self.store.step("reserved")
        return Reservation(self.resolve, request, seq, accounts)

    def resolve(self, seq: int, outcome: str, note: str) -> None:
        """Note the outcome ("committed" or "failed") of the charge with number `seq`. Nothing is refunded.

        A failure is written at once; "committed" waits for the next charge, or for one second (`Outcomes`): if it is lost,
        the charge stays unresolved, which also counts as spent. This never raises: a charged answer is not withheld
        because of a note.
        """
        self._outcomes.add(Outcome(seq, outcome, note[:500]))
        if outcome != "committed":
            self.settle()

    def settle(self) -> None:
        """Write the waiting outcomes. Outcomes that cannot be written are logged for the owner and keep waiting.

        The entries are not flushed to disk, and the head does not move.
        """
        if not self._outcomes.waiting():
            return
        try:
            with self._write_transaction(durable=False):
                pass  # every write transaction appends the waiting outcomes
        except (Error, Taken) as error:
            why = error.message if isinstance(error, Error) else "two writers took one number"
            for waiting in self._outcomes.waiting():
                _log.warning("charge %d: %s not noted: %s", waiting.resolves, waiting.kind, why)

    def spent(self, scope: str = DATASET) -> Units:
        return dict(self._known_account(scope).spent)

    def limits(self, scope: str = DATASET) -> Units:
        return dict(self._known_account(scope).limits)

    def remaining(self, scope: str = DATASET) -> Units:
        """Return the remaining amounts of `scope`, never below zero."""
        return self._known_account(scope).remaining

    def accounts(self) -> dict[str, Account]:
        """Return every account by scope, in one consistent state."""
        with self.store.reading() as connection:
            return self._accounts(connection, None)

    def find(self, request_id: str) -> Entry | None:
        with self.store.reading() as connection:
            return find_charge(connection, request_id)

    def history(self, after: int = 0) -> Iterator[Entry]:
        """Yield the entries with a number above `after`, in order; the database is not locked between pages."""
        self.settle()
        while True:
            with self.store.reading() as connection:
                page = page_after(connection, after)
            if not page:
                return
            yield from page
            after = page[-1].seq

    def verify(self) -> LedgerVerdict:
        """Verify every entry, every total and the head; the verdict has the first invalid entry."""
        self.settle()
        with self.store.reading() as connection:
            return first_problem(connection, self.witness, self.dataset, self.witness.head())

    def export(self, out: TextIO, format: str = "json") -> None:
        """Write the history for an outside auditor: "json" (lines) or "csv"; see `dpsql.ledger.records`."""
        if format not in ("json", "csv"):
            raise refuse("ledger_format_unknown", format=format)
        write = write_json_lines if format == "json" else write_csv
        write(self.history(), out)

    def close(self) -> None:
        """Write the waiting outcomes and close the connection. A closed ledger reconnects when it is used again."""
        self.settle()
        self._outcomes.stop()
        self.store.close()
        if self.second_witness is not None:
            self.second_witness.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def _write_transaction(self, durable: bool = True) -> Iterator[ChainWriter]:
        """Open one write transaction: the head is locked, the ledger must contain it, and it moves after the entries
        are durable.

        Waiting outcomes are written in the same transaction.
        """
        second = self.second_witness if durable else None
        with self.store.alone(), self.witness.held(self.store.timeout_seconds) as seat:
            head = seat.head()
            elsewhere = None if second is None else second.required()
            self.store.step("before begin")
            with self.store.writing(durable=durable, holds=lambda reader: has_entry(reader, writer.last)) as connection:
                self.store.step("begun")
                if elsewhere is not None:
                    tip(connection, elsewhere)
                writer = ChainWriter(connection, self.witness, tip(connection, head))
                start = writer.last
                noted = self._outcomes.write(writer)
                yield writer
            self._outcomes.written(noted)
            if durable and writer.last != start:
                seat.advance(writer.last)
                self.store.step("after head")
                if second is not None:
                    second.advance(writer.last)

    def _charge_all(self, submissions: list[Submission[ChargeRequest, _Charged]]) -> None:
        """Charge all submissions in one transaction: each must fit what the previous ones leave, or is refused alone."""
        try:
            with self._write_transaction() as writer:
                for submission in submissions:
                    try:
                        accounts = self._fitting(writer, submission.request)
                    except Error as error:
                        submission.error = error
                    else:
                        submission.result = self._charge(writer, submission.request, accounts)
                if all(submission.result is None for submission in submissions):
                    raise _NothingCharged
        except _NothingCharged:
            pass
        except Taken as error:
            raise refuse("ledger_damaged", problem="two writers took one number") from error

    def _charge(self, writer: ChainWriter, request: ChargeRequest, accounts: list[Account]) -> _Charged:
        """Write a charge that fits. From here, a failure makes the whole transaction fail."""
        facts = {
            "id": request.id,
            "analyst": request.analyst,
            "session": request.session,
            "scopes": sorted(request.scopes),
            "charge": to_text(request.charge),
            "what": request.what,
            "policy_version": request.policy_version,
        }
        self.store.step("before entry")
        seq = writer.append("charge", facts)
        self.store.step("before totals")
        return seq, writer.spend(seq, request.charge, accounts)

    def _fitting(self, writer: ChainWriter, request: ChargeRequest) -> list[Account]:
        """Return the accounts of the request's scopes if the charge is new and fits all of them. Raises
        request_repeated and BudgetRefusal before anything is written.
        """
        charged = find_charge(writer.connection, request.id)
        if charged is not None:
            raise refuse("request_repeated", entry=charged.seq)
        accounts = writer.accounts(request.scopes)
        for scope in request.scopes:
            if scope not in accounts:
                raise refuse("ledger_account", scope=scope)
        fits = all(account.fits(request.charge) for account in accounts.values())
        if fits and any(request.charge.values()):  # a closed window has no rest, so that only zero fits it
            return list(accounts.values())
        for start in [start for start, _ in map(windows.parts, request.scopes) if start is not None]:
            windows.require_present(writer.accounts(), start)
        if fits:
            return list(accounts.values())
        left = {scope: _left(account) for scope, account in accounts.items()}
        short = [scope for scope, account in accounts.items() if not account.fits(request.charge)]
        texts = "; ".join(f"{in_words(scope)} has {_left(accounts[scope], readable_text)} left" for scope in short)
        anew = any(windows.parts(scope)[0] is not None for scope in short)
        error = refuse("budget_exceeded", short=texts, hint=windows.WAIT if anew else None)
        assert isinstance(error, BudgetRefusal)
        error.remaining = left
        raise error

    def _accounts(self, connection: DatabaseConnection, scopes: Iterable[str] | None) -> dict[str, Account]:
        return load_accounts(connection, self.witness.key, self.ledger_id, scopes)

    def _known_account(self, scope: str) -> Account:
        with self.store.reading() as connection:
            accounts = self._accounts(connection, [scope])
        if scope not in accounts:
            raise refuse("ledger_account", scope=scope)
        return accounts[scope]


def must_hold(connection: DatabaseConnection, unit: str, change: bool) -> bool:
    """Return whether `unit` must still be recorded as the ledger's unit: losses of different units do not add up.

    Raises Fault ledger_unit if the ledger has charges for another unit, unless the owner accepts it (`change`). A
    ledger without such a record takes the unit of the first policy that opens it.
    """
    rows = connection.rows(_LAST_UNIT)
    recorded = json.loads(rows[0][0])["unit"] if rows else None
    if recorded == unit:
        return False
    if recorded is not None and not change and connection.rows(_ANY_CHARGE):
        raise refuse("ledger_unit", known=recorded, unit=unit)
    return True


class _NothingCharged(Exception):
    """All submissions were refused: the transaction is rolled back instead of flushed."""


_LIVE: LiveObjects[Ledger] = LiveObjects()


@atexit.register
def _settle_all() -> None:
    """Write the outcomes of ledgers that were not closed, at the end of the process."""
    for ledger in _LIVE.all():
        ledger.settle()


def _left(account: Account, written: Callable[[str], str] = str) -> str:
    """Return the remaining amounts of an account as text, each exact decimal as `written` shows it."""
    left = account.remaining
    return ", ".join(f"{name} {written(decimal_text(name, left[name]))}" for name in DECIMALS if name in left)


# --- forecast, for the owner, of how long the budget lasts at the rate of the last week -------------------------------
# Times in the ledger are only informative (clocks jump), so nothing depends on a forecast.

WEEK = timedelta(days=7)
_FARTHEST = timedelta(days=365 * 100)


@dataclass(frozen=True)
class Forecast:
    """The forecast of one scope: charges of the last 7 days and remaining amounts, in ledger units by dimension.

    `closes`: the day on which the window of the account ends and another
    one begins, None for an account of all time.
    """

    account: Account
    charged: Units
    now: datetime
    closes: date | None = None

    @property
    def scope(self) -> str:
        return self.account.scope

    def words(self, price: Units) -> str:
        """Return a sentence such as "dataset: 31 questions are left; at this week's rate (12) they last until 2026-12-24"."""
        left, charged = self.account.times(price), self._charged(price)
        rate = max((amount / price[name] for name, amount in charged.items()), default=0.0)
        questions = f"{in_words(self.scope)}: {'1 question is' if left == 1 else f'{left:,} questions are'} left"
        if not rate or not left:
            return f"{questions}{'' if rate else '; nothing was charged this week'}{self._window()}"
        return f"{questions}; at this week's rate ({rate:.3g}) they last {self._end(charged)}"

    def exact_words(self, price: Units) -> str:
        """Return a sentence such as "dataset: at this week's rate (epsilon 2) the budget lasts until 2026-12-24". It is that for
        questions at `price`: what these do not cost, such as a delta that was charged as lost, ends nothing."""
        if not any(self.charged.values()) or not self.account.times(price):
            state = "nothing was charged this week" if self.account.times(price) else "nothing is left"
            return f"{self.scope}: {state}{self._window()}"
        amounts = [f"{name} {decimal_text(name, self.charged[name])}" for name in DECIMALS if self.charged.get(name)]
        end = self._end(self._charged(price))
        return f"{self.scope}: at this week's rate ({', '.join(amounts)}) the budget lasts {end}"

    def _charged(self, price: Units) -> Units:
        return {name: self.charged.get(name, 0) for name, amount in price.items() if amount}

    def _end(self, charged: Units) -> str:
        until = _end(charged, self.account.remaining, self.now)
        if self.closes is not None and (until is None or until.date() >= self.closes):
            return f"beyond {self.closes}, when a new budget begins"
        return "for more than a century" if until is None else f"until {until:%Y-%m-%d}{self._window()}"

    def _window(self) -> str:
        return "" if self.closes is None else f"; a new budget begins on {self.closes}"


def forecasts(
    ledger: Ledger, every: str | None = None, under_policy: Mapping[str, Account] | None = None
) -> list[Forecast]:
    """Return the forecasts of all accounts but sessions and closed windows, the dataset first. `every`: the windows' length;
    `under_policy`: the accounts under the limits of the policy, in place of the ledger's."""
    now = datetime.now(UTC)
    present = of_present(ledger.accounts() if under_policy is None else under_policy)
    accounts = {scope: account for scope, account in present.items() if not scope.startswith("session:")}
    charged = _charged_since(ledger.history(), now - WEEK)
    listed = []
    for scope in sorted(accounts, key=lambda name: (name != "dataset", name)):
        week = {dimension: charged.get((scope, dimension), 0) for dimension in accounts[scope].limits}
        start = parts(scope)[0]
        closes = next_start(every, date.fromisoformat(start)) if start is not None and every is not None else None
        listed.append(Forecast(accounts[scope], week, now, closes))
    return listed


def _charged_since(entries: Iterable[Entry], start: datetime) -> dict[tuple[str, str], int]:
    total: dict[tuple[str, str], int] = {}
    for entry in entries:
        facts = entry.facts
        if entry.kind != "charge" or datetime.fromisoformat(facts["time"]) < start:
            continue
        for scope in facts["scopes"]:
            for dimension, amount in from_text(facts["charge"]).items():
                total[scope, dimension] = total.get((scope, dimension), 0) + amount
    return total


def _end(week: Units, left: Units, now: datetime) -> datetime | None:
    """Return the time at which a budget is used up (None: not in sight); the first dimension to run out decides."""
    seconds = int(WEEK.total_seconds())
    spans = [left[name] * seconds // amount for name, amount in week.items() if _reachable(left[name], amount)]
    return now + timedelta(seconds=min(spans)) if spans else None


def _reachable(left: int, weekly: int) -> bool:
    return weekly > 0 and left // weekly < _FARTHEST // WEEK
