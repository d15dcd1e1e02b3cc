"""The parts of a session, fixed when it is opened: policy, data, ledger, stored releases, noise; and the watches of one process
with their runs, which exist only in its memory (`watches` explains why)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

import pyarrow as pa

from dpsql.engine.contract import Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import View
from dpsql.engine.served_tables import is_versioned
from dpsql.errors.exceptions import BudgetRefusal, Fault
from dpsql.ledger import windows
from dpsql.ledger.accounts import Account
from dpsql.ledger.ledger import Ledger, Reservation
from dpsql.ledger.windows import present_start, window_scope
from dpsql.noise.perturb import Gate, NoisyThreshold
from dpsql.plan.plan import Scan
from dpsql.planning.planner import Planner
from dpsql.policy import Policy
from dpsql.policy.versions import PERIODS
from dpsql.pricing.above_threshold import ComparedSum
from dpsql.pricing.options import Options, Reuse
from dpsql.pricing.plan_check import require_public
from dpsql.privacy.mechanisms.above_threshold import AboveThreshold
from dpsql.release.sandbox import Sandbox
from dpsql.reuse.lookup import ReuseCaches, StoredReleases
from dpsql.reuse.store import ReleaseStore
from dpsql.session.background_work import MeasurementQueue, Work
from dpsql.session.budget import Budget, BudgetScope, listed_person, scopes_of, window_of, windows_in_words
from dpsql.session.stages import Stages
from dpsql.storage.records import dataclass, field, replace

_WAIT_SECONDS = 0.05


@dataclass
class ThresholdRun:
    """A run in progress. `left`: how many comparisons it may still make (None: any number); `number`: its number among the
    runs of its watch, from 1."""

    law: AboveThreshold
    secret: NoisyThreshold
    grid: int
    direction: int
    left: int | None
    number: int
    reservation: Reservation
    comparisons: int = 0


class NamedWatch:
    """One watch: its run, if any, and the sums that its next run must be able to compare."""

    def __init__(self) -> None:
        self.run: ThresholdRun | None = None
        self.expected: tuple[ComparedSum, ...] = ()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, check: Callable[[], None]) -> Iterator[None]:
        """Hold the watch for one comparison at a time. `check` raises if the asker has stopped waiting."""
        while not self._lock.acquire(timeout=_WAIT_SECONDS):
            check()
        try:
            yield
        finally:
            self._lock.release()


class Watches:
    """The watches of one process, shared by its sessions. A forked child has none: two processes must not continue one run."""

    def __init__(self) -> None:
        self._watches: dict[tuple[str | None, ...], NamedWatch] = {}
        self._lock = threading.Lock()
        _REGISTERS.add(self)

    def named(self, *key: str | None) -> NamedWatch:
        """Return the watch under a key; create it if there is none."""
        with self._lock:
            return self._watches.setdefault(key, NamedWatch())

    def forget(self) -> None:
        """Drop every run in a forked child: the parent continues them."""
        self._watches, self._lock = {}, threading.Lock()


_REGISTERS: WeakSet[Watches] = WeakSet()


def _forget_all() -> None:
    for register in list(_REGISTERS):
        register.forget()


os.register_at_fork(after_in_child=_forget_all)

_Result = TypeVar("_Result")


class Accounts:
    """The accounts in the ledger whose limits apply to charges of one session; opened when they are first needed."""

    def __init__(self, policy: Policy, planner: Planner, ledger: Ledger, analyst: str | None, session: str) -> None:
        """`session`: the id of the session, which has its own account if the policy limits sessions."""
        self._policy, self._accountant, self._ledger = policy, planner.accountant, ledger
        self._analyst, self._session = analyst, session
        self._opened: dict[tuple[str | None, ...], tuple[BudgetScope, ...]] = {}
        self._in_a_year = windows_in_words(policy.budget)

    def scopes(self, project: str | None, person: str | None = None) -> tuple[BudgetScope, ...]:
        """Return the scopes of questions for `project` and for the person whom a client names, in the present budget window if
        the policy has windows.

        Raises analyst_unknown, project_unknown, and window_closed if the clock is behind the ledger.
        """
        return self.in_present_window(lambda: self._present_scopes(project, person))

    def in_present_window(self, step: Callable[[], _Result]) -> _Result:
        """Return the result of `step`, which is called again if it raised window_closed because midnight passed: another process
        may open the next window after this one reads the clock and before it charges. Nothing is charged twice, because the
        ledger writes nothing when it raises window_closed. A window without a rest is opened once more, because the owner may
        have made it the present one again."""
        day = windows.today()
        try:
            return step()
        except BudgetRefusal:
            if self._policy.budget.every is None:
                raise
            self._opened = {}
            return step()
        except Fault as error:
            if error.slug != "window_closed" or windows.today() == day:
                raise
        return self.in_present_window(step)

    def _present_scopes(self, project: str | None, person: str | None) -> tuple[BudgetScope, ...]:
        window = window_of(self._policy)
        start = None if window is None else window.start
        listed = None if person is None else listed_person(self._policy, self._analyst, person)
        if (project, listed, start) not in self._opened:
            scopes = self._scopes(project, listed, start)
            if window is not None:
                self._ledger.open_window(window)
            for scope in scopes:
                if start is None or scope.name not in ("dataset", window_scope(start)):
                    self._ledger.open_account(scope.name, scope.accountant.kind, scope.accountant.limit_units())
            self._opened[project, listed, start] = scopes
        return self._opened[project, listed, start]

    def _scopes(self, project: str | None, person: str | None, start: str | None) -> tuple[BudgetScope, ...]:
        return scopes_of(self._policy, self._analyst, project, self._session, self._accountant, start, person)

    def budget(self, options: Options, accounts: Mapping[str, Account] | None = None) -> Budget:
        """Return the budget of questions under `options`, by the ledger or by `accounts`, its state after a reservation."""
        project, person = options.project, options.on_behalf_of
        if accounts is None:
            return Budget(self.scopes(project, person), self._ledger.accounts(), self._in_a_year)
        # Use the window of the charge, because the clock may already be in the next one.
        return Budget(self._scopes(project, person, present_start(accounts)), accounts, self._in_a_year)


@dataclass(frozen=True)
class SessionContext:
    """Everything besides question and options on which answers depend. Shared by the threads of a session."""

    policy: Policy
    analyst: str | None
    id: str
    planner: Planner
    sandbox: Sandbox
    engine: Engine
    index: ContributionIndex
    ledger: Ledger
    accounts: Accounts
    store: ReleaseStore
    stored_releases: StoredReleases
    caches: ReuseCaches
    gate: Gate
    queue: MeasurementQueue
    watches: Watches
    running: set[Work[Any]] = field(default_factory=set)
    """The work of the session while its asker waits."""

    def is_given_again(self, options: Options) -> bool:
        """Return whether the answer to a question is stored and given again, free."""
        return options.reuse is not Reuse.OFF and is_versioned(self.policy, self.engine)

    def again(self, options: Options) -> str:
        """Return what asking the same again costs, as the end of a sentence."""
        name = self.policy.data_version
        if self.is_given_again(options):
            return f"is free until the next {name} data_version" if name in PERIODS else "is free"
        if options.reuse is Reuse.OFF:
            return "is charged again under dp.reuse = off"
        return "is charged again, because the policy gives these data no data_version"

    def goes_on(self, options: Options) -> str:
        """Return what becomes of a charged question under `options` for which nobody waits any more."""
        stored = "once it is stored, " if self.is_given_again(options) else ""
        return f"its measurement goes on; {stored}asking again {self.again(options)}"

    def stages(self) -> Stages:
        return Stages(self.policy, self.sandbox, self.public_table)

    def public_table(self, scan: Scan) -> pa.Table:
        """Return the rows of a public table. Raises InternalError for any other table."""
        require_public(scan, self.policy)
        return self.engine.public_table(self.emitter().relation(scan))

    def emitter(self, views: Callable[[str], View] | None = None) -> Emitter:
        """Return a writer of engine queries; `views` returns the prepared views that it may read."""
        return Emitter(self.policy, self.engine.dialect, self.engine.source, *([] if views is None else [views]))

    def under(self, policy: Policy) -> SessionContext:
        """Return this context with another `policy`, but the same asker, accounts, data and ledger.

        Keys of stored releases include the meaning of the policy, so releases under one policy never answer questions
        under another.
        """
        return replace(
            self,
            policy=policy,
            planner=Planner(policy, self.engine),
            index=ContributionIndex(policy, self.engine, lambda: self.ledger.witness.key),
            stored_releases=StoredReleases(
                policy, self.ledger, self.store, self.analyst, self.engine.data_version, self.caches
            ),
        )
