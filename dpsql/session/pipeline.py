"""The order of every answer: price, reserve, touch data, noise, store, answer (privacy.md 7).

The price follows from the question alone. It is reserved durably before data is touched, and never given back. What was
measured is stored before anybody sees it. No other module reserves a charge, runs an engine or adds noise.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import is_

from dpsql.engine.emit.measurements import SUMS, queries
from dpsql.errors.exceptions import Error, Fault, refuse
from dpsql.ledger import ChargeRequest
from dpsql.ledger.account import Account
from dpsql.ledger.records import charge_id
from dpsql.ledger.reservation import Reservation
from dpsql.noise.perturb import perturb, unmoved
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.stability import promises
from dpsql.planning.planner import Planned, read_tables
from dpsql.pricing.explain import describe_loss
from dpsql.pricing.options import Options, Unknown
from dpsql.pricing.pricing import is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import Presentation, Receipt, Release, drop_notices, make_release
from dpsql.release.remainder import Remainder
from dpsql.reuse.lookup import MOST_KEPT_BYTES, OWNER, Found, Look
from dpsql.session.background_work import Work
from dpsql.session.budget import Remaining
from dpsql.session.context import SessionContext
from dpsql.session.measured_outputs import MeasuredOutputs
from dpsql.session.response_times import Pace
from dpsql.session.stages import Stages, tables_read
from dpsql.session.stages import notes as stage_notes


@dataclass(frozen=True)
class _Request:
    """One question on its way: `id` is the idempotency key that the asker chose, `work` the thread that answers it."""

    id: str | None
    stages: Stages
    work: Work


def answer(
    context: SessionContext, planned: Planned, request_id: str | None, pace: Pace, running: set[Work]
) -> Release:
    """Answer from the store, else measure in a thread that goes on when nobody waits any more (`background_work`).

    `running` holds the work of the session while somebody waits for it. Raises refusals (nothing charged) and faults
    (`charged` says whether the charge stays).
    """
    work = Work(context.engine.interrupt, asker=context.analyst or OWNER, session=context.id, pace=pace)
    request = _Request(request_id, context.stages(), work)
    look = context.shelf.find(planned, request.stages.fill, request_id)
    if None not in look.found:
        return _answered(context, look.planned, look.found, request)
    running.add(work)
    try:
        work.start(partial(_in_turn, context, planned, look, request))
        return work.result()
    finally:
        work.leave()
        running.discard(work)


def _in_turn(context: SessionContext, planned: Planned, look: Look, request: _Request) -> Release:
    """Measure one question at a time: who asked the same meanwhile finds it stored.

    The store is looked at again only where somebody may have stored an answer since the first look.
    """
    most_seconds = context.policy.per_query.timeout_seconds
    with (
        context.room.place(request.work),
        context.shelf.turn(look, most_seconds, request.work.check) as look_holds,
    ):
        if not look_holds:
            look = context.shelf.find(planned, request.stages.fill, request.id)
        return _answered(context, look.planned, look.found, request)


def _answered(context: SessionContext, planned: Planned, found: list[Found | None], request: _Request) -> Release:
    """The answer, with what is missing in `found` charged and measured, one stage after the other.

    Whatever the number of stages, all that is missing is reserved at once before the first of them: the parameters
    of the later ones are fixed already (`stages` says why their losses add up).
    """
    blocks = planned.price.blocks
    missing = [index for index, part in enumerate(found) if part is None]
    if missing:
        context.engine.look(read_tables(planned, missing))
        context.index.require_prepared(read_tables(planned, missing))
    versions = {index: context.shelf.version(blocks[index]) for index in missing}
    read = {table: context.engine.data_version((table,)) for table in read_tables(planned, missing)} if missing else {}
    context.room.breaker.require_open(read)
    loss = PrivacyLoss.nothing()
    for index in missing:
        loss = loss + blocks[index].loss
    if any(is_charged(blocks[index]) for index in missing):
        context.planner.require_least(loss)
    receipt_id = request.id or uuid.uuid4().hex
    accounts = None
    if missing:
        measurement = _Measurement(context, planned, found, request, missing, versions, receipt_id)
        reservation = _reserve(context, receipt_id, loss, planned, request.work)
        try:
            planned, accounts = measurement.run(reservation), reservation.accounts
        except Fault as error:
            if error.of_source:
                context.room.breaker.failed(read)
            raise
        context.room.breaker.succeeded(read)
    released = tuple(part for part in found if part is not None)
    if released and not missing:
        receipt_id = released[0].receipt
    return _release(
        context, planned, released, loss, receipt_id, reused=bool(blocks) and not missing, accounts=accounts
    )


def _reserve(context: SessionContext, receipt_id: str, loss: PrivacyLoss, planned: Planned, work: Work) -> Reservation:
    """Charge what is about to be measured, unless nobody waits for it any more."""
    request = ChargeRequest(
        id=charge_id(context.analyst, receipt_id),
        analyst=context.analyst or OWNER,
        session=context.id,
        scopes=tuple(scope.name for scope in context.accounts.scopes(planned.options.project)),
        charge=context.planner.accountant.units(loss),
        what=fingerprint(tuple(planned.keys)),
        policy_version=context.policy.version,
    )
    with work.begun():
        return context.ledger.reserve(request)


class _Measurement:
    """The missing blocks of one question: measured, made noisy and stored under one reservation."""

    def __init__(
        self,
        context: SessionContext,
        planned: Planned,
        found: list[Found | None],
        request: _Request,
        missing: Sequence[int],
        versions: Mapping[int, str],
        receipt_id: str,
    ) -> None:
        """Write the engine's queries before anything is charged; results that are not released yet stand in them under
        their names. `versions`: of the data that the missing blocks read."""
        self._context, self._planned, self._found, self._request = context, planned, found, request
        self._missing, self._versions, self._receipt_id = missing, versions, receipt_id
        self._emitter = context.emitter(context.index.views())
        blocks = planned.price.blocks
        self._queries = {index: queries(self._emitter, blocks[index].block) for index in missing}
        for index in missing:
            if is_charged(blocks[index]) and not planned.waiting(index):
                for query in self._queries[index].values():
                    context.engine.rehearse(request.stages.given(query))

    def run(self, reservation: Reservation) -> Planned:
        """Put the released blocks into `found`, and return the question with the results of its stages.

        A failure leaves the charge: noise may have been drawn.
        """
        try:
            self._check_promises()
            for index in self._missing:
                self._measure(index)
            reservation.commit()
        except BaseException as error:
            reservation.fail(getattr(error, "slug", type(error).__name__))
            if isinstance(error, Error):
                error.charged = True
            raise
        return self._planned

    def _check_promises(self) -> None:
        """Keys that the policy calls unique must be so in the data: stability was computed from it (privacy.md 3)."""
        context = self._context
        emitter = context.emitter()
        for index in self._missing:
            block = self._planned.price.blocks[index].block
            for promise in sorted(promises(block.source, context.policy), key=repr):
                if not context.engine.holds(emitter.promise(promise)):
                    columns = ", ".join(promise.columns)
                    raise refuse("promise_broken", table=promise.table, columns=columns, most=promise.most)

    def _measure(self, index: int) -> None:
        """Measure one block, add noise, store it."""
        context, work = self._context, self._request.work
        if self._planned.waiting(index):
            self._planned = self._request.stages.fill(self._planned, index, self._found)
            self._queries[index] = queries(self._emitter, self._planned.price.blocks[index].block)
        priced = self._planned.price.blocks[index]
        # What nobody can move is the same over all data, so it is free, and free means that no data is read.
        most_seconds = context.policy.per_query.timeout_seconds
        exact = {
            name: context.engine.run(self._request.stages.given(query), work.pace.left(most_seconds))
            for name, query in (self._queries[index].items() if is_charged(priced) else ())
        }
        sums = exact[SUMS] if SUMS in exact else unmoved(priced.noise)
        noisy = perturb(sums, priced.noise, context.gate, exact)
        work.require_open()
        self._found[index] = context.shelf.keep(
            self._planned,
            index,
            noisy,
            receipt=self._receipt_id,
            version=self._versions[index],
            request_id=self._request.id,
        )


def _release(
    context: SessionContext,
    planned: Planned,
    found: tuple[Found, ...],
    loss: PrivacyLoss,
    receipt_id: str,
    *,
    reused: bool,
    accounts: Mapping[str, Account] | None,
) -> Release:
    """The answer. Its receipt is that of its charge; where nothing was charged, that of the first charge.

    `accounts` is the state of the ledger after the charge.
    """
    budget = context.accounts.budget(planned.options.project, accounts)
    notices = (
        *(part.remark for part in found if part.remark),
        *drop_notices(planned.plan.blocks),
        *stage_notes(planned),
    )
    receipt = Receipt(receipt_id, loss, Remaining(budget), describe_loss(loss), reused, notices)
    blocks = tuple(part.block for part in found)
    sources, previous = context.caches.answers.get(planned) or ((), None)
    if previous is not None and len(sources) == len(blocks) and all(map(is_, sources, blocks)):
        receipt = _with_missing_keys(receipt, planned, previous)
        return replace(previous, receipt=receipt, sandbox=context.sandbox)
    inputs, read_blocks = planned.plan.public_inputs, blocks
    if planned.plan.results:
        names = tables_read(planned.plan.remainder)
        inputs = tuple(public for public in inputs if public.name in names)
        read_blocks = tuple(block for block in blocks if block.name in names)
    public = {entry.name: context.public_table(entry.scan) for entry in inputs}
    remainder = Remainder(planned.plan.remainder, planned.plan.output_names, read_blocks, public, planned.text)
    release = make_release(context.sandbox, remainder, presentation(planned.options), receipt)
    errors = {part.block.name: part.errors for part in found}
    measured = MeasuredOutputs(planned, errors)
    release = replace(release, measured=measured, receipt=_with_missing_keys(receipt, planned, release))
    if reused and not public and release.table.nbytes <= MOST_KEPT_BYTES:
        context.caches.answers.keep(planned, blocks, release)
    return release


def presentation(options: Options) -> Presentation:
    """How an answer is to be shown."""
    hidden = options.unknown is Unknown.NULL
    return Presentation(float(options.confidence), options.nonnegative, hidden, options.simultaneous)


def _with_missing_keys(receipt: Receipt, planned: Planned, release: Release) -> Receipt:
    """The receipt with the notice that keys which few units share are in no total, where something is computed over
    groups of private keys."""
    rules = [block.noise.selection for block in planned.price.blocks if block.noise.selection is not None]
    if not rules or not release.answered.of_groups:
        return receipt
    few = max(rule.half_point() for rule in rules)
    notice = f"keys that fewer than about {few} units share are mostly not shown, and what they have is in no total"
    return replace(receipt, notices=(*receipt.notices, notice))
