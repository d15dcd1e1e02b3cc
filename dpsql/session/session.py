"""The one place that knows the order: plan, price, reserve, touch data, noise, store, answer (privacy.md 7).

Every door calls a `Session`; no door knows a privacy rule. A session may be used from any thread.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from operator import is_

import pyarrow as pa

from dpsql.engine.contract import Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.emit.measurements import SUMS, queries, texts
from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger import ChargeRequest
from dpsql.ledger.account import Account
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import charge_id
from dpsql.ledger.reservation import Reservation
from dpsql.noise.perturb import Gate, perturb, unmoved
from dpsql.plan.canonical_text import fingerprint
from dpsql.plan.plan import Scan
from dpsql.plan.stability import promises, tables
from dpsql.planning.planner import Planned, Planner, read_tables
from dpsql.policy import Policy
from dpsql.pricing.explain import PrivacyPlan, describe_loss, planned_outputs
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import is_charged
from dpsql.privacy.loss import PrivacyLoss
from dpsql.release.release import OutputColumn, Receipt, Release, drop_notices, group_notices, make_release, rehearse
from dpsql.release.remainder import ARROW, DIALECT, Remainder, unanswered
from dpsql.release.sandbox import Sandbox, shared_sandbox
from dpsql.reuse.lookup import MOST_KEPT_BYTES, OWNER, Found, ReuseCaches, Shelf
from dpsql.reuse.store import ReleaseStore
from dpsql.session.background_work import Room, Work
from dpsql.session.budget import Budget, Remaining, Scope, scopes_of
from dpsql.session.response_times import Pace
from dpsql.session.stages import Stages, tables_read
from dpsql.session.stages import notes as stage_notes
from dpsql.session.statements import answer_statement, statement_columns
from dpsql.sql.parse import Parameters, Statement


class Session:
    """One analyst's (or the owner's) way to answers. Made by `open_session`."""

    def __init__(
        self,
        policy: Policy,
        engine: Engine,
        ledger: Ledger,
        store: ReleaseStore,
        *,
        analyst: str | None = None,
        project: str | None = None,
        gate: Gate | None = None,
        sandbox: Sandbox | None = None,
        planner: Planner | None = None,
        room: Room | None = None,
        caches: ReuseCaches | None = None,
    ) -> None:
        """`room`: shared by the sessions that measure beside each other; `caches`: by those that answer from one store."""
        self.policy = policy
        self.analyst = analyst
        self.id = uuid.uuid4().hex
        self.first_options = self.options = Options.of_policy(policy, project)
        self.planner = planner or Planner(policy, engine)
        self.sandbox = sandbox or shared_sandbox()
        self.ledger = ledger
        self._engine = engine
        self._store = store
        self._gate = gate or Gate()
        self._room = Room() if room is None else room
        self._asked: set[Work] = set()
        self._index = ContributionIndex(policy, engine, lambda: ledger.witness.key)
        self._caches = ReuseCaches() if caches is None else caches
        self._shelf = Shelf(policy, ledger, store, analyst, engine.data_version, self._caches)
        self._project = project
        self._opened: dict[str | None, tuple[Scope, ...]] = {}
        ledger.hold_unit(policy.unit_words)
        self._scopes(project)

    # --- questions ----------------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Parameters = None, *, request_id: str | None = None) -> Release:
        """Answer one statement of any kind. Raises refusals (nothing charged) and faults (`charged` tells).

        `request_id` is an idempotency key: a request that was charged before under it is answered from its stored
        release, or refused, never charged again.
        """
        pace = Pace(self.policy)
        statement = self.planner.parse(sql, parameters)
        if statement.kind != "query":
            return answer_statement(self, statement)
        return self.answer(self.plan(statement, parameters), request_id, pace)

    def answer(self, planned: Planned, request_id: str | None = None, pace: Pace | None = None) -> Release:
        """Answer what is planned; as `execute`. `pace`: of a question that arrived earlier."""
        pace = pace or Pace(self.policy)
        # What is refused up to here follows from the text and the policy alone: it need not wait for its time.
        self.rehearse(planned)
        try:
            try:
                return self._answer(planned, request_id, pace)
            finally:
                pace.hold()
        except Error as error:
            error.at(planned.statement.sql)
            raise

    def set_option(self, name: str, value: str) -> None:
        """SET dp.NAME = value. Raises option_unknown, option_value, option_limit, project_unknown, project_fixed."""
        options = self.options.with_value(name, value, self.policy)
        self._check_project(options)
        self.options = options

    def start_with(self, options: Mapping[str, str]) -> None:
        """Options given with the connection: what RESET goes back to. Raises what `set_option` raises."""
        for name, value in options.items():
            self.set_option(name, value)
        self.first_options = self.options

    def _check_project(self, options: Options) -> None:
        """Whoever opened the session for a project meant all that is asked in it, whatever its SQL says."""
        if self._project is not None and options.project != self._project:
            raise refuse("project_fixed", name=self._project)

    def plan(self, statement: Statement, parameters: Parameters = None) -> Planned:
        """The priced plan of a statement under the options of now."""
        planned = self.planner.plan(statement, self.options, cacheable=not parameters)
        self._check_project(planned.options)
        return planned

    def describe(self, sql: str, parameters: Parameters = None) -> tuple[OutputColumn, ...]:
        """The columns that a statement returns; nothing is charged, data is not touched, no option changes."""
        statement = self.planner.parse(sql, parameters)
        if statement.kind != "query":
            return statement_columns(self, statement)
        return self.rehearse(self.plan(statement, parameters))

    def data_version(self, statement: Statement) -> str:
        """Names the state of the data that a statement reads: another one may have other answers."""
        if statement.query is None or self.policy.data_version is not None:
            return self.policy.data_version or ""
        return self._engine.data_version(read_tables(self.plan(statement)))

    def explain(self, sql: str, parameters: Parameters = None) -> PrivacyPlan:
        """The privacy plan of a query (with or without EXPLAIN in front); nothing is charged, data is not touched."""
        statement = self.planner.parse(sql, parameters)
        if statement.query is None:
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).at(sql)
        return self.explain_planned(self.plan(statement, parameters))

    def explain_planned(self, planned: Planned) -> PrivacyPlan:
        """The privacy plan of what is planned."""
        columns = self.rehearse(planned)
        stages, order = Stages(self.policy, self.sandbox, self._public), stage_notes(planned)
        planned, stored = self._shelf.find(planned, stages.fill, asking=False)
        names = [one.block.name for one in planned.price.blocks]
        emitter = Emitter(self.policy, self._engine.dialect, self._engine.source, self._index.views(shown=True))
        charged = PrivacyLoss.nothing()
        for one, found in zip(planned.price.blocks, stored, strict=True):
            charged = charged if found is not None else charged + one.loss
        if any(found is None and is_charged(one) for one, found in zip(planned.price.blocks, stored, strict=True)):
            self.planner.require_least(charged)
        budget = self._budget(planned.options)
        return PrivacyPlan(
            outputs=planned_outputs(
                planned.plan,
                planned.price.blocks,
                planned.options.confidence,
                {one.block.name: one.errors for one in stored if one is not None},
            ),
            loss=planned.price.loss,
            charged=charged,
            remaining=tuple(Remaining(budget).items()),
            stored=tuple(name for name, found in zip(names, stored, strict=True) if found is not None),
            engine_sql=tuple(
                (one.block.name, sql) for one in planned.price.blocks for sql in texts(emitter, one.block)
            ),
            confidence=float(planned.options.confidence),
            columns=tuple((column.name, column.type.value) for column in columns),
            notes=(
                *order,
                *group_notices(columns, planned.plan.blocks),
                *self._index.notes({t for one in planned.price.blocks for t in tables(one.block.source)}),
                *self._shelf.notes(planned, stored),
            ),
        )

    def rehearse(self, planned: Planned) -> tuple[OutputColumn, ...]:
        """Run the public remainder over empty tables: what it would refuse is refused before anything is charged."""
        columns = self.planner.columns.get(planned.token)
        if columns is None:
            shapes = tuple(
                (
                    one.block.name,
                    tuple(key.expression.facts.type for key in one.block.keys),
                    one.noise.numbers,
                    one.block.formulas,
                    one.block.groups,
                )
                for one in planned.price.blocks
            )
            scans = tuple((entry.name, entry.scan) for entry in planned.plan.public_inputs)
            confidence = float(planned.options.confidence)
            remainder, results = planned.plan.remainder, planned.plan.results
            names = planned.plan.output_names

            def run() -> tuple[OutputColumn, ...]:
                public = {name: _empty(scan) for name, scan in scans}
                blocks = tuple(unanswered(*shape) for shape in shapes)
                for one in results:
                    columns = tuple(column.name for column in one.columns)
                    rehearse(self.sandbox, Remainder(one.query, columns, blocks, public), confidence)
                return rehearse(self.sandbox, Remainder(remainder, names, blocks, public), confidence)

            try:
                # Many questions differ inside their blocks only (a literal in WHERE): their remainder is the same.
                texts = (planned.text, *(one.query.sql(dialect=DIALECT) for one in results))
                key = (texts, names, shapes, scans, confidence)
                columns = self.planner.columns[planned.token] = self.planner.rehearsals.get(key, run)
            except Error as error:
                raise error.at(planned.statement.sql) from None
        return columns

    # --- the order ----------------------------------------------------------------------------------------------------

    def _answer(self, planned: Planned, request_id: str | None, pace: Pace) -> Release:
        """From the store, else measured, in a thread that goes on when nobody waits any more (`work`)."""
        stages = Stages(self.policy, self.sandbox, self._public)
        work = Work(self._engine.interrupt, asker=self.analyst or OWNER, session=self.id, pace=pace)
        known, found = self._shelf.find(planned, stages.fill, request_id)
        if None not in found:
            return self._measured(known, found, stages, request_id, work)
        self._asked.add(work)
        try:
            work.start(partial(self._in_turn, planned, found, stages, request_id, work))
            return work.result()
        finally:
            work.leave()
            self._asked.discard(work)

    def _in_turn(
        self, planned: Planned, found: list[Found | None], stages: Stages, request_id: str | None, work: Work
    ) -> Release:
        """Measured: one asker at a time, and the next one finds it stored."""
        with (
            self._room.place(work),
            self._shelf.turn(planned, found, self.policy.per_query.timeout_seconds, work.check),
        ):
            planned, found = self._shelf.find(planned, stages.fill, request_id)
            return self._measured(planned, found, stages, request_id, work)

    def _measured(
        self, planned: Planned, found: list[Found | None], stages: Stages, request_id: str | None, work: Work
    ) -> Release:
        """The answer, with what is missing in `found` charged and measured, one stage after the other.

        Whatever the number of stages, all that is missing is reserved at once before the first of them: the parameters
        of the later ones are fixed already (`stages` says why their losses add up).
        """
        blocks = planned.price.blocks
        missing = [at for at, one in enumerate(found) if one is None]
        if missing:
            self._engine.look(read_tables(planned, missing))
            self._index.require_prepared(read_tables(planned, missing))
        versions = {at: self._shelf.version(blocks[at]) for at in missing}
        loss = PrivacyLoss.nothing()
        for at in missing:
            loss = loss + blocks[at].loss
        if any(is_charged(blocks[at]) for at in missing):
            self.planner.require_least(loss)
        emitter = (
            Emitter(self.policy, self._engine.dialect, self._engine.source, self._index.views()) if missing else None
        )
        # Written before anything is charged, with the results that are not known yet under their names.
        asked = {at: queries(emitter, blocks[at].block) for at in missing if emitter is not None}
        receipt = request_id or uuid.uuid4().hex
        reservation = self._reserve(receipt, loss, planned, work) if missing else None
        most = self.policy.per_query.timeout_seconds
        try:
            self._check_promises(planned, missing)
            for at in missing:
                if emitter is not None and planned.waiting(at):
                    planned = stages.fill(planned, at, found)
                    asked[at] = queries(emitter, planned.price.blocks[at].block)
                # What nobody can move is the same over all data, so it is free, and free means that no data is read.
                exact = {
                    name: self._engine.run(stages.given(query), work.pace.left(most))
                    for name, query in (asked[at].items() if is_charged(blocks[at]) else ())
                }
                sums = exact[SUMS] if SUMS in exact else unmoved(blocks[at].noise)
                noisy = perturb(sums, blocks[at].noise, self._gate, exact)
                work.require_open()
                found[at] = self._shelf.keep(
                    planned, at, noisy, receipt=receipt, version=versions[at], request_id=request_id
                )
            if reservation is not None:
                reservation.commit()
        except BaseException as error:
            if reservation is not None:
                reservation.fail(getattr(error, "slug", type(error).__name__))
            if isinstance(error, Error):
                error.charged = reservation is not None
            raise
        released = tuple(one for one in found if one is not None)
        if released and not missing:
            receipt = released[0].receipt
        budget = self._budget(planned.options, None if reservation is None else reservation.accounts)
        return self._release(planned, released, loss, receipt, reused=bool(blocks) and not missing, budget=budget)

    def _check_promises(self, planned: Planned, missing: list[int]) -> None:
        """Keys that the policy calls unique must be so in the data: stability was computed from it (privacy.md 3)."""
        emitter = Emitter(self.policy, self._engine.dialect, self._engine.source)
        for at in missing:
            for promise in sorted(promises(planned.price.blocks[at].block.source, self.policy), key=repr):
                if not self._engine.holds(emitter.promise(promise)):
                    columns = ", ".join(promise.columns)
                    raise refuse("promise_broken", table=promise.table, columns=columns, most=promise.most)

    def _reserve(self, receipt: str, loss: PrivacyLoss, planned: Planned, work: Work) -> Reservation:
        """The charge of what is about to be measured, unless nobody waits for it any more."""
        request = ChargeRequest(
            id=charge_id(self.analyst, receipt),
            analyst=self.analyst or OWNER,
            session=self.id,
            scopes=tuple(scope.name for scope in self._scopes(planned.options.project)),
            charge=self.planner.accountant.units(loss),
            what=fingerprint(tuple(planned.keys)),
            policy_version=self.policy.version,
        )
        with work.begun():
            return self.ledger.reserve(request)

    def _release(
        self,
        planned: Planned,
        found: tuple[Found, ...],
        loss: PrivacyLoss,
        receipt: str,
        *,
        reused: bool,
        budget: Budget,
    ) -> Release:
        """The answer. Its receipt is that of its charge; where nothing was charged, that of the first charge.

        `budget` is what the charge left.
        """
        remarks = (*(one.remark for one in found if one.remark), *drop_notices(planned.plan.blocks))
        told = Receipt(receipt, loss, Remaining(budget), describe_loss(loss), reused, remarks)
        blocks = tuple(one.block for one in found)
        made_of, made = self._caches.answers.get(planned) or ((), None)
        if made is not None and len(made_of) == len(blocks) and all(map(is_, made_of, blocks)):
            return replace(made, receipt=told, sandbox=self.sandbox)
        inputs, shown = planned.plan.public_inputs, blocks
        if planned.plan.results:
            read = tables_read(planned.plan.remainder)
            inputs = tuple(one for one in inputs if one.name in read)
            shown = tuple(block for block in blocks if block.name in read)
        public = {one.name: self._public(one.scan) for one in inputs}
        remainder = Remainder(planned.plan.remainder, planned.plan.output_names, shown, public, planned.text)
        release = make_release(self.sandbox, remainder, float(planned.options.confidence), told)
        if reused and not public and release.table.nbytes <= MOST_KEPT_BYTES:
            self._caches.answers.keep(planned, blocks, release)
        return release

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _public(self, scan: Scan) -> pa.Table:
        return self._engine.public_table(Emitter(self.policy, self._engine.dialect, self._engine.source).relation(scan))

    def budget(self) -> Budget:
        """Spent and remaining of every scope that a charge under the options of now must fit."""
        return self._budget(self.options)

    def _budget(self, options: Options, accounts: Mapping[str, Account] | None = None) -> Budget:
        """`accounts` are those that a reservation told; without it they are read."""
        scopes = self._scopes(options.project)
        return Budget(scopes, self.ledger.accounts() if accounts is None else accounts)

    def _scopes(self, project: str | None) -> tuple[Scope, ...]:
        """The accounts of questions asked for `project`, opened when it is first named. Raises analyst_unknown,
        project_unknown."""
        if project not in self._opened:
            scopes = scopes_of(self.policy, self.analyst, project, self.id, self.planner.accountant)
            for scope in scopes:
                self.ledger.open_account(scope.name, scope.accountant.kind, scope.accountant.limit_units())
            self._opened[project] = scopes
        return self._opened[project]

    def over(self, policy: Policy) -> Session:
        """This session under other contribution bounds: same asker, accounts, data and ledger, another `policy`.

        Its releases are named by that policy's meaning, so they never answer for this one's questions.
        """
        other = copy(self)
        other.policy, other.planner = policy, Planner(policy, self._engine)
        other._index = ContributionIndex(policy, self._engine, lambda: self.ledger.witness.key)
        other._shelf = Shelf(policy, self.ledger, self._store, self.analyst, self._engine.data_version, self._caches)
        return other

    def interrupt(self) -> None:
        """End the waiting of whoever waits here now, at the next time of response; what is charged goes on (`work`)."""
        for work in list(self._asked):
            work.leave()

    def close(self) -> None:
        """Stop what still runs here (its charge stays), and give engine and ledger back."""
        self._room.stop(self.id)
        self._engine.close()
        self._store.close()
        self.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def _empty(scan: Scan) -> pa.Table:
    return pa.table({column.name: pa.array([], ARROW[column.facts.type]) for column in scan.columns})
