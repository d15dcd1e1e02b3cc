"""Sessions: statements in, releases out; and their opening from a policy: its engine, its ledger and its store of releases.

`charged` defines the order of steps. Every front end calls a `Session`; none contains a privacy rule. A session may be
used from any thread. It raises errors of the register alone."""

from __future__ import annotations

import hashlib
import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from decimal import ROUND_DOWN, Context
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

from dpsql.engine.contract import Engine
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.registry import open_engine
from dpsql.errors.custodian_log import TRACES, registering
from dpsql.errors.exceptions import REGISTER, BudgetRefusal, Error, refuse
from dpsql.ledger import open_ledger
from dpsql.ledger.ledger import Ledger
from dpsql.noise.perturb import Gate
from dpsql.plan.stability import tables
from dpsql.planning.planner import Planned, Planner, read_tables
from dpsql.planning.together import Goal, JointPlan, plan_together
from dpsql.policy import Policy, load_policy
from dpsql.policy.reach import is_file
from dpsql.policy.versions import declared_version
from dpsql.pricing.options import Options
from dpsql.privacy.loss import plain_decimal
from dpsql.release.release import OutputColumn, Release
from dpsql.release.sandbox import Sandbox, shared_sandbox
from dpsql.reuse.lookup import OWNER, ReuseCaches, StoredReleases
from dpsql.reuse.questions import ANSWERED, FREE, QuestionTexts, open_questions
from dpsql.reuse.store import ReleaseStore, open_releases
from dpsql.session import pipeline, watches
from dpsql.session.background_work import MeasurementQueue, Pace
from dpsql.session.budget import Budget, question_price
from dpsql.session.context import Accounts, SessionContext, Watches
from dpsql.session.explanation import PrivacyPlan, preview
from dpsql.session.pipeline import rehearse
from dpsql.session.statements import answer_statement, statement_columns
from dpsql.sql.lexer import SqlText, as_piece, person_in_comment
from dpsql.sql.parse import Parameters, Statement
from dpsql.storage.records import replace

# Faults of the source, for analysts to whom the policy shows only a part of it: messages name nothing that is hidden.


@contextmanager
def naming_nothing_hidden(policy: Policy) -> Iterator[None]:
    """Replace a fault that names a hidden table or column by `owner_only`; its text goes to the custodian's log.

    Refusals may quote names that the analyst wrote: a hidden name is reported in the same way as one that does not exist.
    """
    try:
        yield
    except Error as error:
        if not _names_hidden(policy, error):
            raise
        incident = uuid.uuid4().hex[:12]
        logging.getLogger("dpsql.custodian").error("incident %s: %s", incident, error.text())
        raise refuse("owner_only", incident=incident, charged=error.charged) from None


def _names_hidden(policy: Policy, error: Error) -> bool:
    entry = REGISTER.get(error.slug)
    if policy.asker is None or entry is None or "{table}" not in entry.sentence:
        return False
    words = set(re.findall(r"\w+", f"{error.message} {error.hint}"))
    names = {name for table in policy.tables.values() for name in (table.name, *table.columns)}
    visible = {name for table in policy.visible.values() for name in (table.name, *table.columns)}
    return not words.isdisjoint(names - visible)


# --- What would fit where a question does not fit the budget: the hint of its refusal ---

_DIGITS = Context(prec=2, rounding=ROUND_DOWN)
_ATTEMPTS = 4
_LESS = 0.9


def fitting_hint(planner: Planner, planned: Planned, budget: Budget) -> str:
    """Return the hint "epsilon 0.049 would fit" with an epsilon of two digits for which the whole question was priced and fits;
    "" if none is found, or if the question asks for an error instead. It follows from the ledger, the text and the policy."""
    options, accountant = planned.options, planner.accountant
    share = _share(accountant.units(planned.price.loss), budget)
    if options.target_error is not None or not 0 < share < 1:
        return ""
    squared = accountant.request(options.epsilon).rho is not None
    epsilon = float(options.epsilon) * (sqrt(share) if squared else float(share))
    for _ in range(_ATTEMPTS):
        text = f"{_DIGITS.create_decimal_from_float(epsilon):f}"
        try:
            changed = options.with_value("epsilon", text, planner.policy)
            loss = planner.plan(planned.statement, changed, cacheable=False).price.loss
        except Error:  # below the least epsilon of the policy, or too little for this question
            return ""
        if _share(accountant.units(loss), budget) >= 1:
            return f"epsilon {plain_decimal(Fraction(text))} would fit"
        epsilon *= _LESS
    return ""


def _share(charge: dict[str, int], budget: Budget) -> Fraction:
    """Return the part of a charge that fits every scope that is limited, with 1 for a charge that fits."""
    shares = [
        Fraction(account.remaining.get(dimension, 0), amount)
        for account in budget.accounts.values()
        for dimension, amount in charge.items()
        if amount and dimension in account.limits
    ]
    return min([Fraction(1), *shares])


class Session:
    """The session of one analyst (or of the owner). Created by `open_session`."""

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
        queue: MeasurementQueue | None = None,
        caches: ReuseCaches | None = None,
        watch_register: Watches | None = None,
        questions: QuestionTexts | None = None,
    ) -> None:
        """`queue` is shared by concurrent sessions of one process, `caches` by sessions over one store of releases, and
        `watch_register` by sessions that may continue each other's runs. `questions` takes the texts of questions (None: they
        are not kept)."""
        policy = policy.of_analyst(analyst)
        self.id = uuid.uuid4().hex
        self.first_options = self.options = Options.of_policy(policy, project, analyst)
        self._project = project
        self._told_notices: set[str] = set()
        self._questions = None if policy.log_sql is False else questions
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
            stored_releases=StoredReleases(policy, ledger, store, analyst, engine.data_version, caches),
            caches=caches,
            gate=gate or Gate(),
            queue=MeasurementQueue() if queue is None else queue,
            watches=watch_register or Watches(),
        )
        self.context.accounts.scopes(project)

    @property
    def policy(self) -> Policy:
        return self.context.policy

    @property
    def analyst(self) -> str | None:
        """The name of the analyst who asks, None for the owner."""
        return self.context.analyst

    @property
    def planner(self) -> Planner:
        return self.context.planner

    @property
    def ledger(self) -> Ledger:
        return self.context.ledger

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox in which public remainders run."""
        return self.context.sandbox

    # --- questions ----------------------------------------------------------------------------------------------------

    @registering()
    def execute(self, sql: SqlText, parameters: Parameters = None, *, request_id: str | None = None) -> Release:
        """Answer one statement of any kind. Raises refusals (nothing charged) and faults (`charged` says whether the
        charge stays).

        `request_id` is an idempotency key: a request that was already charged under it is answered from its stored
        release or refused, never charged again.
        """
        pace = Pace(self.policy)
        statement = self.parse(sql, parameters)
        if statement.kind != "query":
            return answer_statement(self, statement)
        return self.answer(self.plan(statement, parameters), request_id, pace)

    @registering()
    def answer(self, planned: Planned, request_id: str | None = None, pace: Pace | None = None) -> Release:
        """Answer a planned question, like `execute`. `pace`: the response times of a question that arrived earlier."""
        with self._failure_noted(planned.statement.sql, planned.options.on_behalf_of):
            release = self._answer(planned, request_id, pace or Pace(self.policy))
        if self._questions is not None:
            receipt, options = release.receipt, planned.options
            outcome, price = (ANSWERED, receipt.charged) if receipt.is_paid else (FREE, "")
            self._questions.note(
                self.analyst or OWNER, planned.statement.sql, outcome, project=options.project, price=price,
                receipt=receipt.id, columns=planned.columns_read, claimed_user=options.on_behalf_of,
            )  # fmt: skip
        return release

    def _answer(self, planned: Planned, request_id: str | None, pace: Pace) -> Release:
        # Refusals up to here follow only from the text and the policy, so they need no response time.
        self.rehearse(planned)
        try:
            try:
                with naming_nothing_hidden(self.policy):
                    if planned.options.threshold is not None:
                        return watches.answer(self.context, planned, pace)
                    return pipeline.answer(self.context, planned, request_id, pace)
            finally:
                pace.hold()
        except Error as error:
            if isinstance(error, BudgetRefusal):
                budget = self.context.accounts.budget(planned.options)
                left = f"left: {budget.questions_text(question_price(self.policy), self.policy.per_query.epsilon)}"
                fits = fitting_hint(self.planner, planned, budget)
                error.hint = "; ".join(part for part in (fits, left, error.hint) if part)
            error.placed_in(planned.statement.sql)
            raise

    @registering()
    def parse(self, sql: SqlText, parameters: Parameters = None) -> Statement:
        """Return the statement of a text. Raises the refusals of the parser."""
        claimed = person_in_comment(as_piece(sql)) if self.options.on_behalf_of is None else None
        with self._failure_noted(as_piece(sql).sql, claimed):
            statement = self.planner.parse(sql, parameters)
        return replace(statement, claimed_user=claimed) if claimed else statement

    @contextmanager
    def _failure_noted(self, sql: str, claimed: str | None) -> Iterator[None]:
        """Keep the text of a question that is refused or fails, for the owner. `claimed`: whom its comment names."""
        try:
            yield
        except Error as error:
            if self._questions is not None:
                options = self.options
                self._questions.note(
                    self.analyst or OWNER,
                    sql,
                    error.slug,
                    project=options.project,
                    receipt=error.receipt,
                    claimed_user=claimed or options.on_behalf_of,
                )
            raise

    def news(self, release: Release) -> tuple[str, ...]:
        """Return the notices of an answer for a person: those that stand for many answers only once in a session."""
        repeated = self._told_notices.intersection(release.receipt.standing)
        self._told_notices.update(release.receipt.standing)
        return tuple(notice for notice in release.notices if notice not in repeated)

    @registering()
    def set_option(self, name: str, value: str) -> None:
        """Set the option `name` to `value`. Raises option_unknown, option_value, option_limit, project_unknown, project_fixed."""
        options = self.options.with_value(name, value, self.policy)
        self._check_project(options)
        self.options = options

    def start_with(self, options: Mapping[str, str]) -> None:
        """Set the options given with the connection, to which RESET returns. Raises the refusals of `set_option`."""
        for name, value in options.items():
            self.set_option(name, value)
        self.first_options = self.options

    def _check_project(self, options: Options) -> None:
        """Check that a session opened for a project charges that project, whatever its SQL says. Raises project_fixed."""
        if self._project is not None and options.project != self._project:
            raise refuse("project_fixed", name=self._project)

    @registering()
    def plan(
        self,
        statement: Statement,
        parameters: Parameters = None,
        options: Options | None = None,
        any_rows: bool = False,
    ) -> Planned:
        """Return the priced plan of a statement under `options`, the session's by default. Refuses (no_rows, no_groups) an answer
        that is about nothing whatever the data are, unless `any_rows`."""
        with self._failure_noted(statement.sql, statement.claimed_user):
            with naming_nothing_hidden(self.policy):
                options = options or self.options
                if statement.claimed_user is not None:
                    options = replace(options, on_behalf_of=statement.claimed_user)
                planned = self.planner.plan(statement, options, cacheable=not parameters or bool(statement.values))
            self._check_project(planned.options)
            if not any_rows:
                planned.require_rows()
            return planned

    @registering()
    def plan_together(self, questions: Sequence[Planned], goal: Goal) -> tuple[JointPlan, ...]:
        """Return the measurement plans of planned questions; nothing is charged, data is not touched."""
        with naming_nothing_hidden(self.policy):
            return plan_together(self.planner, questions, goal)

    @registering()
    def describe(self, sql: SqlText, parameters: Parameters = None) -> tuple[OutputColumn, ...]:
        """Return the columns of a statement's answer; nothing is charged, data is not touched, no option changes. They do not
        depend on the parameters, whose values may be missing still, so an answer without groups has them too."""
        statement = self.parse(sql, parameters)
        if statement.kind != "query":
            return statement_columns(self, statement)
        planned = self.plan(statement, parameters, any_rows=True)
        with self._failure_noted(statement.sql, statement.claimed_user):
            return self.rehearse(planned)

    @registering()
    def data_version(self, statement: Statement) -> str:
        """Return a name for the version of the data that a statement reads; answers may differ between versions."""
        declared = declared_version(self.policy)
        if statement.query is None or declared is not None:
            return declared or ""
        return self.context.engine.data_version(read_tables(self.plan(statement)))

    @registering()
    def measured_version(self, planned: Planned) -> str:
        """Return a name for the version of the data that the blocks of `planned`, a question or a joint plan, read."""
        read = {table for priced in planned.price.blocks for table in tables(priced.block.source)}
        return declared_version(self.policy) or self.context.engine.data_version(tuple(sorted(read)))

    @registering()
    def explain(self, sql: SqlText, parameters: Parameters = None) -> PrivacyPlan:
        """Return the privacy plan of a query (with or without EXPLAIN in front); nothing is charged, data is not touched."""
        statement = self.parse(sql, parameters)
        if statement.query is None:
            raise refuse("not_a_query", word=statement.kind.upper(), position=1).placed_in(statement.sql)
        return self.explain_planned(self.plan(statement, parameters))

    @registering()
    def explain_planned(self, planned: Planned) -> PrivacyPlan:
        with naming_nothing_hidden(self.policy):
            if planned.options.threshold is not None:
                return watches.explain(self.context, planned)
            return preview(self.context, planned)

    @registering()
    def rehearse(self, planned: Planned) -> tuple[OutputColumn, ...]:
        """Return the columns of a planned question. Raises the refusals of its public remainder, before any charge."""
        if planned.options.threshold is not None:
            return watches.columns(self.context, planned)
        with TRACES.span("rehearse"):
            return rehearse(self.planner, self.sandbox, planned)

    @registering()
    def expect_comparisons(self, questions: Sequence[Planned], options: Options) -> None:
        """Record the questions that the watch named by `options` will compare: a run has noise for all of them, whichever
        of them begins it.

        Raises the refusals of comparisons, and watch_grids if no run can have noise for all of them. Nothing is charged.
        """
        watches.expect(self.context, questions, options)

    # --- the rest -----------------------------------------------------------------------------------------------------

    @registering()
    def budget(self) -> Budget:
        """Return the spent and remaining loss of every scope to which charges under the current options count."""
        return self.context.accounts.budget(self.options)

    def left_text(self) -> str:
        """Return what each account has left, in questions at the epsilon of the policy's `per_query`."""
        return self.budget().questions_text(question_price(self.policy), self.policy.per_query.epsilon)

    def questions_left(self) -> int:
        """Return how many further questions that spend the current `dp.epsilon` fit every scope."""
        accountant = self.planner.accountant
        price = self.budget().price(accountant.units(accountant.request(self.options.epsilon)))
        return 0 if price is None else price.times

    def over(self, policy: Policy) -> Session:
        """Return this session under other contribution bounds: another `policy`, but the same asker, accounts, data and
        ledger.

        Keys of its releases include that policy's meaning, so they never answer questions of this session.
        """
        other = copy(self)
        other.context = self.context.under(policy)
        return other

    def interrupt(self) -> None:
        """End the current wait at the next response time; a charged question continues (`background_work`)."""
        for work in list(self.context.running):
            work.leave()

    def close(self) -> None:
        """Stop running questions (their charges stay), and close engine and ledger."""
        self.context.queue.stop(self.id)
        self.context.engine.close()
        self.context.store.close()
        if self._questions is not None:
            self._questions.close()
        self.context.ledger.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


def source_fingerprint(policy: Policy) -> str | None:
    """Return the SHA-256 (hex) of the location of a policy's data, for ledgers over the same data; None without one."""
    if policy.source is None and not any(table.source for table in policy.tables.values()):
        return None
    source = policy.source or ""
    location = source if is_file(source) or "://" not in source else policy.source_path() or source
    parts = sorted({location, *map(policy.table_source, policy.tables)})
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def open_session(
    policy: str | Path | Policy,
    *,
    analyst: str | None = None,
    project: str | None = None,
    source: Any = None,
    create_ledger: bool = False,
) -> Session:
    """Open a policy, its data and its ledger, and return the session.

    `analyst` and `project`: their accounts are charged in addition to the dataset's. `source`: a DuckDB connection or Arrow
    tables instead of the policy's own source. `create_ledger` is the owner's explicit decision for a data set that never
    had a ledger. Raises PolicyRefusal, Fault, IntegrityError.
    """
    checked = policy if isinstance(policy, Policy) else load_policy(policy)
    engine = open_engine(checked, source)
    try:
        ledger = open_ledger(
            checked.ledger_url(),
            checked.dataset,
            create=create_ledger,
            source=source_fingerprint(checked),
            witness=checked.witness,
        )
        return Session(
            checked, engine, ledger, open_releases(ledger, checked.store), analyst=analyst, project=project,
            questions=open_questions(ledger, checked),
        )  # fmt: skip
    except Error:
        engine.close()
        raise
