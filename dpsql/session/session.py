"""One asker's way to answers: statements in, releases out. The order behind it stands in `pipeline`.

Every door calls a `Session`; no door knows a privacy rule. A session may be used from any thread.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from copy import copy

from dpsql.engine.contract import Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.errors.exceptions import Error, refuse
from dpsql.ledger.ledger import Ledger
from dpsql.noise.perturb import Gate
from dpsql.planning.planner import Planned, Planner, read_tables
from dpsql.policy import Policy
from dpsql.pricing.explain import PrivacyPlan
from dpsql.pricing.options import Options
from dpsql.release.release import OutputColumn, Release
from dpsql.release.sandbox import Sandbox, shared_sandbox
from dpsql.reuse.lookup import ReuseCaches, Shelf
from dpsql.reuse.store import ReleaseStore
from dpsql.session import pipeline
from dpsql.session.background_work import Room, Work
from dpsql.session.budget import Budget
from dpsql.session.context import Accounts, SessionContext
from dpsql.session.preview import preview
from dpsql.session.rehearsal import rehearse
from dpsql.session.response_times import Pace
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
        self.id = uuid.uuid4().hex
        self.first_options = self.options = Options.of_policy(policy, project)
        self._project = project
        self._running: set[Work] = set()
        caches = ReuseCaches() if caches is None else caches
        planner = planner or Planner(policy, engine)
        ledger.hold_unit(policy.unit_words)
        self.context = SessionContext(
            policy=policy,
            analyst=analyst,
            id=self.id,
            planner=planner,
            sandbox=sandbox or shared_sandbox(),
            engine=engine,
            index=ContributionIndex(policy, engine, lambda: ledger.witness.key),
            ledger=ledger,
            accounts=Accounts(policy, planner, ledger, analyst, self.id),
            store=store,
            shelf=Shelf(policy, ledger, store, analyst, engine.data_version, caches),
            caches=caches,
            gate=gate or Gate(),
            room=Room() if room is None else room,
        )
        self.context.accounts.scopes(project)

    @property
    def policy(self) -> Policy:
        """The policy that questions are planned under."""
        return self.context.policy

    @property
    def analyst(self) -> str | None:
        """The name of the analyst who asks, None for the owner."""
        return self.context.analyst

    @property
    def planner(self) -> Planner:
        """The planner of the policy."""
        return self.context.planner

    @property
    def ledger(self) -> Ledger:
        """The ledger that is charged."""
        return self.context.ledger

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in which public remainders run."""
        return self.context.sandbox

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
                return pipeline.answer(self.context, planned, request_id, pace, self._running)
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
        return self.context.engine.data_version(read_tables(self.plan(statement)))

    def explain(self, sql: str, parameters: Parameters = None) -> PrivacyPlan:
        """The privacy plan of a query (with or without EXPLAIN in front); nothing is charged, data is not touched."""
        statement = self.planner.parse(sql, parameters)
        if statement.query is None:
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).at(sql)
        return self.explain_planned(self.plan(statement, parameters))

    def explain_planned(self, planned: Planned) -> PrivacyPlan:
        """The privacy plan of what is planned."""
        return preview(self.context, planned)

    def rehearse(self, planned: Planned) -> tuple[OutputColumn, ...]:
        """The columns of what is planned. Raises what the public remainder would be refused for, before a charge."""
        return rehearse(self.planner, self.sandbox, planned)

    # --- the rest -----------------------------------------------------------------------------------------------------

    def budget(self) -> Budget:
        """Spent and remaining of every scope that a charge under the options of now must fit."""
        return self.context.accounts.budget(self.options.project)

    def over(self, policy: Policy) -> Session:
        """This session under other contribution bounds: same asker, accounts, data and ledger, another `policy`.

        Its releases are named by that policy's meaning, so they never answer for this one's questions.
        """
        other = copy(self)
        other.context = self.context.under(policy)
        return other

    def interrupt(self) -> None:
        """End the waiting of whoever waits here now, at the next time of response; what is charged goes on (`work`)."""
        for work in list(self._running):
            work.leave()

    def close(self) -> None:
        """Stop what still runs here (its charge stays), and give engine and ledger back."""
        self.context.room.stop(self.id)
        self.context.engine.close()
        self.context.store.close()
        self.context.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
