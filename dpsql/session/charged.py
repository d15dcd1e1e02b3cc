"""The one order of every charge (privacy.md 7): price, queue, look at the source, rehearse, reserve, run, store, commit.

Answers, comparisons (`watches`) and tables of randomised rows (`row_export`) are computed inside `charged`, and nothing else
reserves a charge, waits for a place, or reads protected data: a test searches the package for such calls. Why that order:

- **The price is known first.** It follows from the text, the policy and the options alone, so that it reveals nothing.
- **What can fail for a reason known before fails before.** The queue, the source's schema and versions, and the engine's own
  plan of each query come before `reserve`. None of them reads a protected row, so their refusals are free and the same on all
  data. So do promises about public rows.
- **Data is touched only under a durable charge.** `run` and `check_promises` raise unless `reserve` or `resume` came first.
- **Nothing is refunded.** Noise may have been drawn, and whether a later step fails, or when, may depend on data. The ledger
  counts a reservation as spent from its entry on. `commit` and a failure are notes for the owner, so an outcome that is never
  written, after a kill or because the ledger cannot be reached, changes nothing. A reservation may be kept: a run of a watch
  outlives the call that paid for it, later calls `resume` it, and losing it is spending it.
- **A failure says so.** Once the charge has begun, every error says that the charge stays (`background_work.Work`). A
  failure outside the register is replaced, because its text may quote data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.query import EngineQuery
from dpsql.engine.served_tables import is_change_seen
from dpsql.errors.custodian_log import TRACES
from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.ledger import ChargeRequest
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.records import charge_id
from dpsql.plan.plan import Promise
from dpsql.pricing.options import Options
from dpsql.privacy.loss import PrivacyLoss
from dpsql.reuse.lookup import OWNER
from dpsql.session.background_work import CALL, Pace, Work
from dpsql.session.context import SessionContext

_Result = TypeVar("_Result")


def work_for(context: SessionContext, pace: Pace, goes_on: Callable[[], str]) -> Work[Any]:
    """Return the work of one question of a session; `goes_on` tells an asker who stops waiting what happens to it."""
    asker = context.analyst or OWNER
    return Work(context.engine.interrupt, asker=asker, session=context.id, pace=pace, goes_on=goes_on)


def in_background(context: SessionContext, work: Work[_Result], measure: Callable[[], _Result]) -> _Result:
    """Return the result of `measure` at a response time. It runs in a thread that continues if the asker stops waiting.

    Raises refusals (nothing charged) and faults; `charged` says whether the charge stays.
    """
    context.running.add(work)
    if (call := CALL.get(None)) is not None:
        call.add(work)
    try:
        work.start(measure)
        return work.result()
    except Error as error:
        error.receipt = work.receipt if error.charged else ""
        raise
    except KeyboardInterrupt as stop:
        work.leave()
        stop.add_note(work.fate())
        raise
    finally:
        work.leave()
        context.running.discard(work)


class Charge:
    """One charge on its way through the order of this module."""

    def __init__(self, context: SessionContext, work: Work[Any]) -> None:
        self.work = work
        self._context = context
        self._versions: dict[str, str] = {}
        self._promised: dict[Promise, str] = {}
        self.reservation: Reservation | None = None

    def look_at(self, tables: Sequence[str], promises: Iterable[Promise]) -> None:
        """Raise, before a charge, what reading these tables would raise, source_closed if that failed recently, and
        promise_broken if public rows break a promise: they need no privacy."""
        context = self._context
        context.engine.check_readable(tuple(tables))
        context.index.require_prepared(tuple(tables))
        self._versions = {table: context.engine.data_version((table,)) for table in tables}
        context.queue.breaker.require_open(self._versions)
        for promise in sorted(promises, key=repr):
            if context.policy.tables[promise.table].public:
                self._check(promise)

    def reserve(self, receipt_id: str, loss: PrivacyLoss, options: Options, question: str) -> Reservation:
        """Charge `loss` durably to the accounts in `options`, unless the asker is gone. `question`: its fingerprint."""
        context = self._context

        def reserved() -> Reservation:
            scopes = context.accounts.scopes(options.project, options.on_behalf_of)
            request = ChargeRequest(
                id=charge_id(context.analyst, receipt_id),
                analyst=context.analyst or OWNER,
                session=context.id,
                scopes=tuple(scope.name for scope in scopes),
                charge=context.planner.accountant.units(loss),
                what=question,
                policy_version=context.policy.version,
            )
            return context.ledger.reserve(request)

        self.work.receipt = receipt_id
        with TRACES.span("reserve"), self.work.begun():
            self.reservation = context.accounts.in_present_window(reserved)
        return self.reservation

    def resume(self, reservation: Reservation) -> None:
        """Go on under a reservation that was kept, unless the asker has stopped waiting."""
        with self.work.begun():
            self.reservation = reservation

    def run(self, query: EngineQuery) -> ExactAnswer:
        """Run a query over the data and return the sealed exact answer."""
        self._require_reserved()
        with TRACES.span("engine"):
            seconds = self.work.pace.left(self._context.policy.per_query.timeout_seconds)
            try:
                answer = self._context.engine.run(query, seconds)
            except Fault as fault:
                if fault.of_source and (table := self._changed_table()):
                    raise refuse("data_changed", table=table) from fault
                raise
        for promise, version in self._promised.items():
            self._require_unchanged(promise, version)
        return answer

    def _changed_table(self) -> str | None:
        """Return a table whose data are known to be others than before the charge."""
        for table, version in self._versions.items():
            with suppress(Error):
                if is_change_seen(version) and self._context.engine.data_version((table,)) != version:
                    return table
        return None

    def check_promises(self, promises: frozenset[Promise]) -> None:
        """Check in the data the policy's promises, such as that a key is unique, on which stability relies (privacy.md 3)."""
        self._require_reserved()
        for promise in sorted(promises, key=repr):
            self._promised.setdefault(promise, self._context.engine.data_version((promise.table,)))
            self._check(promise)

    def _check(self, promise: Promise) -> None:
        with TRACES.span("promises"):
            if not self._context.engine.holds(self._context.emitter().promise(promise)):
                if not promise.columns:  # the number of rows, which the planner has counted
                    raise refuse("data_changed", table=promise.table)
                columns = ", ".join(promise.columns)
                raise refuse("promise_broken", table=promise.table, columns=columns, most=promise.most)

    def _require_unchanged(self, promise: Promise, version: str) -> None:
        """Raise an error if a query may have read other rows than those in which a promise was checked. Where changes are not
        seen, public rows are checked again."""
        if not is_change_seen(version):
            if self._context.policy.tables[promise.table].public:
                self._check(promise)
        elif self._context.engine.data_version((promise.table,)) != version:
            raise refuse("data_changed", table=promise.table)

    def commit(self) -> None:
        """Note that the answer was released, unless the outcome of this charge is known. Nothing is noted without a charge."""
        if self.reservation is not None:
            if not self.reservation.resolved:
                self.reservation.commit()
            self._context.queue.breaker.succeeded(self._versions)

    def fail(self, error: BaseException) -> None:
        """Note that there was no answer. Nothing is noted without a charge."""
        if self.reservation is None:
            return
        if isinstance(error, Fault) and error.of_source:
            self._context.queue.breaker.failed(self._versions)
        if not self.reservation.resolved:
            with suppress(
                Error
            ):  # the asker has to learn of the first failure, and a charge without an outcome is spent
                self.reservation.fail(getattr(error, "slug", type(error).__name__))

    def _require_reserved(self) -> None:
        if self.reservation is None:
            raise refuse("internal", what="data read before its charge")


@contextmanager
def charged(context: SessionContext, work: Work[Any]) -> Iterator[Charge]:
    """Hold a place in the queue for a charge, and note its outcome at the end: committed, or failed if the block raises."""
    with context.queue.place(work):
        charge = Charge(context, work)
        try:
            yield charge
            charge.commit()
        except BaseException as error:
            charge.fail(error)
            raise
