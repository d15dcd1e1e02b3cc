"""The order of every answer: price, reserve, touch data, noise, store, answer (privacy.md 7).

The price follows from the question alone. It is reserved durably before data is touched, and never refunded.
Measurements are stored before they are shown. Only two other modules reserve a charge, run an engine or add noise, and both
keep this order: `row_export` for tables of randomised rows, and `watches`, which compares sums with a threshold.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import is_

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.emit.measurements import SUMS, queries
from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.errors.traces import TRACES
from dpsql.ledger import ChargeRequest
from dpsql.ledger.account import Account
from dpsql.ledger.records import charge_id
from dpsql.ledger.reservation import Reservation
from dpsql.noise.perturb import perturb, unmoved
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import Relation
from dpsql.plan.stability import promises
from dpsql.planning.planner import Planned, read_tables
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.options import Options, Unknown
from dpsql.pricing.pricing import is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.reconciled import consistent_blocks, inconsistent_notice
from dpsql.release.release import Presentation, Receipt, Release, drop_notices, make_release
from dpsql.release.remainder import Remainder
from dpsql.reuse.lookup import MOST_KEPT_BYTES, OWNER, Lookup, PaidBlock, derived_notices, shown_term_errors
from dpsql.session.background_work import Work
from dpsql.session.budget import Remaining
from dpsql.session.context import SessionContext
from dpsql.session.explanation import cut_notices, row_notices, target_notices, workload_notices
from dpsql.session.measured_outputs import MeasuredOutputs
from dpsql.session.notices import (
    choice_notices,
    condition_notices,
    failed_test_notices,
    key_notices,
    min_units_notice,
    missing_keys_notice,
    stage_notices,
)
from dpsql.session.response_times import Pace
from dpsql.session.stages import Stages, tables_read


@dataclass(frozen=True)
class Request:
    """One question in the pipeline: `id` is the idempotency key that the asker chose, `work` the thread that computes
    the answer."""

    id: str | None
    stages: Stages
    work: Work


def answer(
    context: SessionContext, planned: Planned, request_id: str | None, pace: Pace, running: set[Work]
) -> Release:
    """Answer from the store; otherwise measure in a thread that continues if the asker stops waiting (`background_work`).

    `running` holds the work of the session while its asker waits. Raises refusals (nothing charged) and faults
    (`charged` says whether the charge stays).
    """
    work = Work(context.engine.interrupt, asker=context.analyst or OWNER, session=context.id, pace=pace)
    request = Request(request_id, context.stages(), work)
    lookup = context.stored_releases.find(planned, request.stages.fill, request_id)
    if None not in lookup.blocks:
        return _answered(context, lookup.planned, lookup.blocks, request)
    running.add(work)
    try:
        work.start(partial(_in_turn, context, planned, lookup, request))
        return work.result()
    finally:
        work.leave()
        running.discard(work)


def _in_turn(context: SessionContext, planned: Planned, lookup: Lookup, request: Request) -> Release:
    """Measure equal questions one at a time, so that the second one finds the stored release of the first.

    The store is read again only if another session may have stored an answer since the first lookup.
    """
    most_seconds = context.policy.per_query.timeout_seconds
    with (
        context.room.place(request.work),
        context.stored_releases.measuring_lock(lookup, most_seconds, request.work.check) as is_current,
    ):
        if not is_current:
            lookup = context.stored_releases.find(planned, request.stages.fill, request.id)
        return _answered(context, lookup.planned, lookup.blocks, request)


def _answered(context: SessionContext, planned: Planned, stored: list[PaidBlock | None], request: Request) -> Release:
    """Return the answer, after charging and measuring the blocks that `stored` lacks, one stage after the other.

    One reservation before the first stage pays for all missing blocks of all stages, because the parameters of later
    stages are already fixed (`stages` explains why their losses add up).
    """
    blocks = planned.price.blocks
    missing = [index for index, part in enumerate(stored) if part is None]
    if missing:
        require_readable(context, planned, missing)
    versions = {index: context.stored_releases.version(blocks[index]) for index in missing}
    read = open_sources(context, planned, missing) if missing else {}
    loss = PrivacyLoss.nothing()
    for index in missing:
        loss = loss + blocks[index].loss
    if any(is_charged(blocks[index]) for index in missing):
        context.planner.require_least(loss)
    receipt_id = request.id or uuid.uuid4().hex
    accounts = None
    if missing:
        measurement = MissingBlocks(context, planned, stored, request, missing, versions, receipt_id)
        reservation = reserve(context, receipt_id, loss, planned, request.work)
        try:
            planned, accounts = measurement.run(reservation), reservation.accounts
        except Fault as error:
            if error.of_source:
                context.room.breaker.failed(read)
            raise
        context.room.breaker.succeeded(read)
    released = tuple(part for part in stored if part is not None)
    if released and not missing:
        receipt_id = released[0].receipt
    with TRACES.span("answer"):
        return _release(
            context, planned, released, loss, receipt_id, reused=bool(blocks) and not missing, accounts=accounts
        )


def require_readable(context: SessionContext, planned: Planned, missing: Sequence[int]) -> None:
    """Raise, before anything is charged, the refusal or fault that reading the tables of the missing blocks would cause."""
    context.engine.check_readable(read_tables(planned, missing))
    context.index.require_prepared(read_tables(planned, missing))


def open_sources(context: SessionContext, planned: Planned, missing: Sequence[int]) -> dict[str, str]:
    """Return the data version of each table that the missing blocks read. Raises Fault source_closed if one failed recently."""
    versions = {table: context.engine.data_version((table,)) for table in read_tables(planned, missing)}
    context.room.breaker.require_open(versions)
    return versions


def reserve(context: SessionContext, receipt_id: str, loss: PrivacyLoss, planned: Planned, work: Work) -> Reservation:
    """Charge the measurement, unless the asker has stopped waiting."""

    def charge() -> Reservation:
        request = ChargeRequest(
            id=charge_id(context.analyst, receipt_id),
            analyst=context.analyst or OWNER,
            session=context.id,
            scopes=tuple(scope.name for scope in context.accounts.scopes(planned.options.project)),
            charge=context.planner.accountant.units(loss),
            what=fingerprint(tuple(planned.keys)),
            policy_version=context.policy.version,
        )
        return context.ledger.reserve(request)

    with TRACES.span("reserve"), work.begun():
        return context.accounts.in_present_window(charge)


class MissingBlocks:
    """The missing blocks of one question, which are measured, perturbed and stored under one reservation."""

    def __init__(
        self,
        context: SessionContext,
        planned: Planned,
        stored: list[PaidBlock | None],
        request: Request,
        missing: Sequence[int],
        versions: Mapping[int, str],
        receipt_id: str,
    ) -> None:
        """Write the engine's queries before anything is charged; results that are not released yet appear in them as named
        placeholders. `versions`: the version of the data that each missing block reads, by index."""
        self._context, self._planned, self._stored, self._request = context, planned, stored, request
        self._missing, self._versions, self._receipt_id = missing, versions, receipt_id
        self._emitter = context.emitter(context.index.views())
        blocks = planned.price.blocks
        self._queries = {index: queries(self._emitter, blocks[index].block) for index in missing}
        for index in missing:
            if is_charged(blocks[index]):
                waiting = [result for result in planned.plan.results if result.name in planned.waiting(index)]
                for query in self._queries[index].values():
                    context.engine.rehearse(request.stages.with_results(query, waiting))

    def run(self, reservation: Reservation) -> Planned:
        """Measure and store the missing blocks, and return the question with the results of its stages.

        A failure does not refund the charge, because noise may have been drawn.
        """
        try:
            if self._request.id is not None:
                self._context.stored_releases.keep_for_request(self._planned, self._stored, self._request.id)
            for index in self._missing:
                check_promises(self._context, self._planned.price.blocks[index].block.source)
            for index in self._missing:
                self._measure(index)
            reservation.commit()
        except BaseException as error:
            reservation.fail(getattr(error, "slug", type(error).__name__))
            if isinstance(error, Error):
                error.charged = True
            raise
        return self._planned

    def exact(self, index: int) -> dict[str, ExactAnswer]:
        """Run the engine's queries of one block over the data and return the sealed exact answers by name."""
        most_seconds = self._context.policy.per_query.timeout_seconds
        with TRACES.span("engine"):
            return {
                name: self._context.engine.run(
                    self._request.stages.with_results(query), self._request.work.pace.left(most_seconds)
                )
                for name, query in self._queries[index].items()
            }

    def _measure(self, index: int) -> None:
        """Measure one block, add noise and store the result."""
        context, work = self._context, self._request.work
        if self._planned.waiting(index):
            self._planned = self._request.stages.fill(self._planned, index, self._stored)
            self._queries[index] = queries(self._emitter, self._planned.price.blocks[index].block)
        priced = self._planned.price.blocks[index]
        # A measurement that no unit can change has the same result on every database, so it is free, and no data is
        # read for it.
        exact = self.exact(index) if is_charged(priced) else {}
        sums = exact[SUMS] if SUMS in exact else unmoved(priced.noise)
        with TRACES.span("noise"):
            noisy = perturb(sums, priced.noise, context.gate, exact)
        work.require_open()
        with TRACES.span("store"):
            self._stored[index] = context.stored_releases.keep(
                self._planned,
                index,
                noisy,
                receipt=self._receipt_id,
                version=self._versions[index],
                request_id=self._request.id,
            )


def check_promises(context: SessionContext, source: Relation) -> None:
    """Check in the data that the keys which the policy declares unique are unique: the stability of `source` relies on
    it (privacy.md 3)."""
    emitter = context.emitter()
    for promise in sorted(promises(source, context.policy), key=repr):
        with TRACES.span("promises"):
            if not context.engine.holds(emitter.promise(promise)):
                columns = ", ".join(promise.columns)
                raise refuse("promise_broken", table=promise.table, columns=columns, most=promise.most)


def stored_answer(context: SessionContext, planned: Planned, stored: tuple[PaidBlock, ...]) -> Release:
    """Return the free answer to a question that has at least one block and whose blocks are all stored."""
    return _release(context, planned, stored, PrivacyLoss.nothing(), stored[0].receipt, reused=True, accounts=None)


def _release(
    context: SessionContext,
    planned: Planned,
    stored: tuple[PaidBlock, ...],
    loss: PrivacyLoss,
    receipt_id: str,
    *,
    reused: bool,
    accounts: Mapping[str, Account] | None,
) -> Release:
    """Return the answer. Its receipt is the receipt of its charge or, if nothing was charged, of the first charge.

    `accounts` is the state of the ledger after the charge.
    """
    budget = context.accounts.budget(planned.options.project, accounts)
    blocks = tuple(part.block for part in stored)
    notices = (
        *derived_notices(planned, stored),
        *condition_notices(planned, context.policy),
        *row_notices(planned, context.policy),
        *target_notices(planned),
        *workload_notices(planned),
        *(notice for workload in planned.price.workloads for notice in inconsistent_notice(workload, blocks)),
        *drop_notices(planned.plan.blocks),
        *key_notices(planned),
        *min_units_notice(planned, context.policy),
        *failed_test_notices(planned, blocks),
        *stage_notices(planned),
        *cut_notices(planned, context.policy, blocks),
        *choice_notices(planned, blocks, context.sandbox, context.public_table),
    )
    price = budget.price(context.planner.accountant.units(loss))
    receipt = Receipt(
        receipt_id,
        loss,
        Remaining(budget),
        describe_loss(loss),
        reused,
        notices,
        "nothing" if price is None else price.after(),
    )
    sources, previous = context.caches.answers.get(planned) or ((), None)
    if previous is not None and len(sources) == len(blocks) and all(map(is_, sources, blocks)):
        receipt = _with_missing_keys(receipt, planned, previous)
        return replace(previous, receipt=receipt, sandbox=context.sandbox)
    consistent = consistent_blocks(planned.price.workloads, blocks)
    own_names = {priced.block.name for priced in planned.own_blocks}
    inputs = planned.plan.public_inputs
    read_blocks = tuple(block for block in consistent if block.name in own_names)
    if planned.plan.results:
        names = tables_read(planned.plan.remainder)
        inputs = tuple(public for public in inputs if public.name in names)
        read_blocks = tuple(block for block in blocks if block.name in names)
    public = {entry.name: context.public_table(entry.scan) for entry in inputs}
    remainder = Remainder(planned.plan.remainder, planned.plan.output_names, read_blocks, public, planned.text)
    release = make_release(context.sandbox, remainder, presentation(planned.options), receipt)
    errors = {part.block.name: part.errors for part in stored}
    if consistent != blocks:
        errors = {block.name: shown_term_errors(block, float(planned.options.confidence)) for block in consistent}
    measured = MeasuredOutputs(planned, errors)
    release = replace(release, measured=measured, receipt=_with_missing_keys(receipt, planned, release))
    if reused and not public and release.table.nbytes <= MOST_KEPT_BYTES:
        context.caches.answers.keep(planned, blocks, release)
    return release


def presentation(options: Options) -> Presentation:
    """Return the presentation options of an answer."""
    hidden = options.unknown is Unknown.NULL
    return Presentation(float(options.confidence), options.nonnegative, hidden, options.simultaneous, options.shrinkage)


def _with_missing_keys(receipt: Receipt, planned: Planned, release: Release) -> Receipt:
    """Return the receipt with the added notice about private keys that are not shown."""
    notice = missing_keys_notice(planned, bool(release.answered.of_groups))
    return replace(receipt, notices=(*receipt.notices, *notice))
