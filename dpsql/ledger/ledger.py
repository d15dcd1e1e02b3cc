"""The ledger: what each scope may spend and has spent; written before data is touched, never taken back."""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self, TextIO

from sqlalchemy.engine import Connection

from dpsql.errors.exceptions import BudgetRefusal, Error, refuse
from dpsql.ledger.account import Account, insert_account, load_accounts, update_accounts
from dpsql.ledger.check import first_problem
from dpsql.ledger.entries import Turn, find_charge, page_after, tip
from dpsql.ledger.export import write_csv, write_json_lines
from dpsql.ledger.group_commit import Ask, Together
from dpsql.ledger.outcomes import Outcome, Outcomes
from dpsql.ledger.records import (
    DATASET,
    ChargeRequest,
    Entry,
    Units,
    Verdict,
    added,
    checked_scope,
    checked_text,
    checked_units,
    decimal_text,
    to_text,
)
from dpsql.ledger.reservation import Reservation
from dpsql.ledger.store import Store, Taken
from dpsql.ledger.unit import must_hold
from dpsql.ledger.witness import Witness
from dpsql.privacy.accounting.ledger_units import DECIMALS

_log = logging.getLogger("dpsql.ledger")
_Charged = tuple[int, dict[str, Account]]


class Ledger:
    """An open ledger; made by `open_ledger`. Any number of threads, processes and machines may share one.

    Every method raises `Fault` when the storage fails and `IntegrityError` when the ledger does not hold.
    """

    def __init__(self, store: Store, witness: Witness, dataset: str) -> None:
        self.dataset = dataset
        self.store = store
        self.witness = witness
        self._unit: str | None = None
        self._outcomes = Outcomes(self.settle)
        self._charges: Together[ChargeRequest, _Charged] = Together(self._charge_all)
        _LIVE.add(self)

    @property
    def ledger_id(self) -> str:
        """32 hexadecimal digits given at creation."""
        return self.witness.ledger_id

    def hold_unit(self, unit: str, *, change: bool = False) -> None:
        """Record whose privacy is accounted for from here on; nothing is written when that is known.

        Raises Fault ledger_unit when charges were made for another unit. `change`: the owner's word that they were; what
        was spent stays spent.
        """
        if self._unit == unit:
            return
        with self.store.reading() as connection:
            missing = must_hold(connection, unit, change)
        if missing:
            with self._turn() as turn:
                if must_hold(turn.connection, unit, change):
                    turn.append("unit", {"unit": unit})
        self._unit = unit

    def open_account(self, scope: str, accountant: str, limits: Mapping[str, int]) -> None:
        """Open the account of `scope`, or record that its limits have changed; nothing is written when they have not.

        The accountant of a scope is fixed when it is opened: another one is refused (ledger_accountant).
        """
        checked_scope(scope)
        checked_text("accountant", accountant, 40)
        wanted = checked_units(limits)
        with self.store.reading() as connection:
            found = self._accounts(connection, [scope]).get(scope)
        if found is not None and not found.must_change(accountant, wanted):
            return
        with self._turn() as turn:
            found = self._accounts(turn.connection, [scope]).get(scope)
            facts = {"scope": scope, "accountant": accountant, "limits": to_text(wanted)}
            if found is None:
                seq = turn.append("account", facts)
                account = Account(scope, accountant, wanted, dict.fromkeys(wanted, 0), seq)
                insert_account(turn.connection, self.witness.key, self.ledger_id, account)
            elif found.must_change(accountant, wanted):
                seq = turn.append("limits", {**facts, "were": to_text(found.limits)})
                changed = found.at(seq, limits=wanted)
                update_accounts(turn.connection, self.witness.key, self.ledger_id, [changed])

    def reserve(self, request: ChargeRequest) -> Reservation:
        """Charge `request` to all its scopes at once; on disk, and its head moved, when this returns.

        Raises BudgetRefusal (nothing written; `remaining` tells what is left of each scope), request_repeated for an
        id that was charged before, and `Fault` with `charged` set when nobody can know whether it was recorded.
        From here on the charge is spent, whatever happens to the process or is noted on the reservation.
        """
        seq, accounts = self._charges.ask(request, self.store.timeout_seconds, self.store.name)
        self.store.step("reserved")
        return Reservation(self, request, seq, accounts)

    def resolve(self, seq: int, outcome: str, note: str) -> None:
        """Note the outcome ("committed" or "failed") of the charge with number `seq`. Gives nothing back.

        A failure is written now; that an answer was given waits for the next charge, or a second (`Outcomes`): a lost
        note leaves the charge unresolved, which is spent too. Never raises: a paid answer is not withheld for a note.
        """
        self._outcomes.add(Outcome(seq, outcome, note[:500]))
        if outcome != "committed":
            self.settle()

    def settle(self) -> None:
        """Write the outcomes that wait. What cannot be written is told to the owner's log, and goes on waiting.

        Not flushed to disk by itself and not in the head.
        """
        if not self._outcomes.waiting():
            return
        try:
            with self._turn(durable=False):
                pass  # whoever has a turn writes what waits
        except (Error, Taken) as error:
            why = error.message if isinstance(error, Error) else "two writers took one number"
            for waiting in self._outcomes.waiting():
                _log.warning("charge %d: %s not noted: %s", waiting.resolves, waiting.kind, why)

    def spent(self, scope: str = DATASET) -> Units:
        """What `scope` has spent."""
        return dict(self._known_account(scope).spent)

    def limits(self, scope: str = DATASET) -> Units:
        """What `scope` may spend in all."""
        return dict(self._known_account(scope).limits)

    def remaining(self, scope: str = DATASET) -> Units:
        """What is left of `scope`, never below zero."""
        return self._known_account(scope).remaining

    def accounts(self) -> dict[str, Account]:
        """Every account by scope, one consistent state."""
        with self.store.reading() as connection:
            return self._accounts(connection, None)

    def find(self, request_id: str) -> Entry | None:
        """The charge that was made under an idempotency key, if any."""
        with self.store.reading() as connection:
            return find_charge(connection, request_id)

    def history(self, after: int = 0) -> Iterator[Entry]:
        """Entries with a number above `after`, in order; the database is not held between pages."""
        self.settle()
        while True:
            with self.store.reading() as connection:
                page = page_after(connection, after)
            if not page:
                return
            yield from page
            after = page[-1].seq

    def verify(self) -> Verdict:
        """Check every entry, every total and the head; names the first entry that does not hold."""
        self.settle()
        with self.store.reading() as connection:
            return first_problem(connection, self.witness, self.dataset, self.witness.head())

    def export(self, out: TextIO, format: str = "json") -> None:
        """Write the history for an outside auditor: "json" (lines) or "csv"; see `dpsql.ledger.export`."""
        if format not in ("json", "csv"):
            raise refuse("ledger_format_unknown", format=format)
        write = write_json_lines if format == "json" else write_csv
        write(self.history(), out)

    def close(self) -> None:
        """Write what waits and close the connection. A closed ledger connects again when it is used."""
        self.settle()
        self._outcomes.stop()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @contextmanager
    def _turn(self, durable: bool = True) -> Iterator[Turn]:
        """One writer's turn: the head is held, the ledger must contain it, and it follows what was made durable.

        What waits to be noted is written with it, or not at all.
        """
        with self.store.alone(), self.witness.held(self.store.timeout_seconds) as seat:
            head = seat.head()
            self.store.step("before begin")
            with self.store.writing(durable=durable) as connection:
                self.store.step("begun")
                turn = Turn(connection, self.witness.key, tip(connection, head))
                start = turn.last
                noted = self._outcomes.write(turn)
                yield turn
            self._outcomes.written(noted)
            if durable and turn.last != start:
                seat.advance(turn.last)
                self.store.step("after head")

    def _charge_all(self, asks: list[Ask[ChargeRequest, _Charged]]) -> None:
        """One transaction for all: each charge fits what those before it have left, or is refused by itself."""
        try:
            with self._turn() as turn:
                for one in asks:
                    try:
                        accounts = self._fitting(turn.connection, one.asked)
                    except Error as error:
                        one.error = error
                    else:
                        one.given = self._charge(turn, one.asked, accounts)
                if all(one.given is None for one in asks):
                    raise _NothingCharged
        except _NothingCharged:
            pass
        except Taken as error:
            raise refuse("ledger_damaged", problem="two writers took one number") from error

    def _charge(self, turn: Turn, request: ChargeRequest, accounts: list[Account]) -> _Charged:
        """Write a charge that fits. What fails from here on fails the transaction."""
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
        seq = turn.append("charge", facts)
        self.store.step("before totals")
        charged = [account.at(seq, spent=added(account.spent, request.charge)) for account in accounts]
        update_accounts(turn.connection, self.witness.key, self.ledger_id, charged)
        return seq, {account.scope: account for account in charged}

    def _fitting(self, connection: Connection, request: ChargeRequest) -> list[Account]:
        """The accounts of the request's scopes when the charge is new and fits every one of them.

        Raises request_repeated, BudgetRefusal; nothing has been written then.
        """
        known = find_charge(connection, request.id)
        if known is not None:
            raise refuse("request_repeated", entry=known.seq)
        found = self._accounts(connection, request.scopes)
        for scope in request.scopes:
            if scope not in found:
                raise refuse("ledger_account", scope=scope)
        if all(account.fits(request.charge) for account in found.values()):
            return list(found.values())
        left = {scope: _left(account) for scope, account in found.items()}
        short = [scope for scope, account in found.items() if not account.fits(request.charge)]
        error = refuse("budget_exceeded", short="; ".join(f"{scope} has {left[scope]} left" for scope in short))
        assert isinstance(error, BudgetRefusal)
        error.remaining = left
        raise error

    def _accounts(self, connection: Connection, scopes: Iterable[str] | None) -> dict[str, Account]:
        return load_accounts(connection, self.witness.key, self.ledger_id, scopes)

    def _known_account(self, scope: str) -> Account:
        with self.store.reading() as connection:
            found = self._accounts(connection, [scope])
        if scope not in found:
            raise refuse("ledger_account", scope=scope)
        return found[scope]


class _NothingCharged(Exception):
    """All were refused: the transaction is given up, and not flushed."""


_LIVE: weakref.WeakSet[Ledger] = weakref.WeakSet()


@atexit.register
def _settle_all() -> None:
    """A process that ends without closing its ledgers."""
    for ledger in list(_LIVE):
        ledger.settle()


def _left(account: Account) -> str:
    """What is left of an account, as exact decimals for people."""
    left = account.remaining
    return ", ".join(f"{name} {decimal_text(name, left[name])}" for name in DECIMALS if name in left)
