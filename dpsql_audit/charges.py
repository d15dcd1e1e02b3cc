"""Audit of the charges of real sessions: each covers its price, precedes the data, is made once, respects every limit, and is
never forgotten (docs/privacy.md 6 and 7).

The sessions answer from a synthetic crowd and charge a separate ledger in a folder that is removed afterwards. Prices are
recomputed from the mechanisms of each block, and charges are read back from the entries of the ledger.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb

from dpsql.engine.contract import ExactAnswer
from dpsql.engine.query import EngineQuery
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.ledger import open_ledger
from dpsql.ledger.backup import back_up, restore
from dpsql.ledger.ledger import Ledger
from dpsql.ledger.records import Entry
from dpsql.policy import Policy
from dpsql.policy.types import Analyst
from dpsql.privacy.accounting import Zcdp, make_accountant, rho_to_epsilon
from dpsql.reuse.store import open_releases
from dpsql.session.session import Session
from dpsql_audit.distances import covers
from dpsql_audit.findings import CHARGES, ENGINE_ERRORS, LEDGER, LIMITS, PROMISE, STORED, UNIQUE_KEYS, Finding, Rule
from dpsql_audit.observation import RecordedEngine, answer_bytes, planned_question
from dpsql_audit.questions import MEASURED_AS_ONE, Question
from dpsql_audit.synthetic import Synthetic, as_sql, load
from dpsql_audit.verify_export import Audit

MOST_ASKED = 200
"""Number of answers after which a budget meant for two or three of them is reported as unlimited."""
THREADS = 6
MOST_PAID, MOST_REPEATED = 16, 4
"""Number of questions whose charges are checked, and number of those that are asked a second time."""
CANARY = "canary-7391"
"""A text in the engine's error message that must not appear in any error an analyst sees."""
Units = dict[str, int]


class WatchedEngine(RecordedEngine):
    """An engine that records the spent budget according to the ledger at each query. `version` names the state of the data."""

    def __init__(self, engine: Any, ledger: Ledger) -> None:
        """`ledger`: the ledger of the session that queries this engine."""
        super().__init__(engine)
        self._ledger = ledger
        self.spent: list[Units] = []
        self.version = "audit"

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Record the spent budget, then run the query."""
        self.spent.append(dict(self._ledger.spent()))
        return super().run(query, timeout_seconds)

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Return the version that the current check has set."""
        return self.version


class ChargeAudit:
    """One policy over a synthetic crowd, in a folder with a separate ledger and state directory."""

    def __init__(self, policy: Policy, folder: Path) -> None:
        """`folder`: empty, and used by this audit alone."""
        self.policy = replace(policy.over_memory(), data_version=None)
        self.folder = folder
        self.url, self.state = f"sqlite:///{folder}/ledger.db", folder / "state"
        self.synthetic = Synthetic(self.policy)
        self.connection = duckdb.connect(config={"threads": 1})
        self.fill()
        self.findings: list[Finding] = []

    def fill(self) -> None:
        """Write the crowd's rows into all tables."""
        load(self.connection, self.synthetic.database(self.synthetic.crowd))

    def expect(self, holds: bool, problem: str, rule: Rule = CHARGES, question: Question | None = None) -> None:
        """Record a finding about the crowd's database unless `holds`."""
        if not holds:
            databases = as_sql(self.policy, self.synthetic.database(self.synthetic.crowd))
            self.findings.append(Finding(question, problem, rule, databases))

    def epsilon_for(self, answers: Fraction) -> Fraction:
        """Return the epsilon of a budget for `answers` questions at the default price, composed by the policy's accountant."""
        budget = self.policy.budget
        accountant = make_accountant(budget.accountant, budget.epsilon, budget.delta)
        price = accountant.request(self.policy.per_query.epsilon)
        if price.epsilon is not None:
            return price.epsilon * answers
        assert price.rho is not None and isinstance(accountant, Zcdp)
        return rho_to_epsilon(price.rho * answers, accountant.delta_conversion)

    def limited(self, answers: Fraction) -> Policy:
        """Return the policy with a budget for `answers` questions at its default price."""
        budget = replace(self.policy.budget, epsilon=self.epsilon_for(answers), every=None, lifetime=None)
        return replace(self.policy, budget=budget)

    @contextmanager
    def session(
        self, policy: Policy, name: str = "ledger", analyst: str | None = None, reuse: str = "off"
    ) -> Iterator[Session]:
        """Yield a session that charges the ledger called `name`; the ledger is created if it does not exist."""
        path = self.folder / f"{name}.db"
        ledger = open_ledger(f"sqlite:///{path}", policy.dataset, create=not path.exists(), state=self.state)
        engine: Any = WatchedEngine(open_engine(policy, self.connection.cursor()), ledger)
        with Session(policy, engine, ledger, open_releases(ledger), analyst=analyst) as session:
            session.execute(f"SET dp.reuse = {reuse}")
            yield session


def check_charges(policy: Policy, questions: Sequence[Question]) -> list[Finding]:
    """Return the findings about charges, from asking `questions` (which are all answered) and from exhausting limits."""
    with tempfile.TemporaryDirectory(prefix="dpsql-audit-") as name:
        audit = ChargeAudit(policy, Path(name))
        for check in CHECKS:
            try:
                check(audit, questions)
            except Error as error:  # for example, a ledger that fails its own integrity check
                words = error.text().splitlines()[0]
                audit.expect(False, f"real sessions end with an error that nobody caused: {words}", PROMISE)
        return audit.findings


@contextmanager
def _under_its_settings(session: Session, question: Question) -> Iterator[None]:
    before = session.options
    try:
        for setting in question.settings:
            session.execute(f"SET {setting}")
        yield
    finally:
        session.options = before


def _answer_of(session: Session, question: Question) -> Any:
    """Ask a question under its own settings and return the release or the error."""
    try:
        with _under_its_settings(session, question):
            if question.kind == MEASURED_AS_ONE:
                return session.answer(planned_question(session, question))
            return session.execute(question.sql)
    except Error as error:
        return error


def _paid_once_and_first(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that each charge covers the price of its question and is in the ledger before the data are queried."""
    with audit.session(audit.policy) as session:
        engine: Any = session.context.engine
        for question in questions[:MOST_PAID]:
            with _under_its_settings(session, question):
                price = planned_question(session, question).price
            before, engine.spent = dict(session.ledger.spent()), []
            release = _answer_of(session, question)
            after = dict(session.ledger.spent())
            charge = {name: after[name] - before.get(name, 0) for name in after}
            words = " ".join(question.sql.split())
            if isinstance(release, Error):
                audit.expect(not any(charge.values()), f"a refused question was charged: {words}", LIMITS, question)
                continue
            below = f"the charge is below the price: {words}"
            audit.expect(not engine.spent or covers(charge, price), below, CHARGES, question)
            early = f"data was read before the whole charge: {words}"
            audit.expect(all(spent == after for spent in engine.spent), early, CHARGES, question)
        _added_up(audit, session.ledger)


def _stored(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that a repeated question gets the same answer for free, and after a change of the data a new answer and a charge."""
    with audit.session(audit.policy, "stored", reuse="on") as session:
        engine: Any = session.context.engine
        for question in questions[:MOST_REPEATED]:
            first = _answer_of(session, question)
            spent, words = dict(session.ledger.spent()), " ".join(question.sql.split())
            again = _answer_of(session, question)
            if isinstance(first, Error) or isinstance(again, Error):
                refused = f"the same question is refused at the second time: {words}"
                audit.expect(isinstance(first, Error), refused, STORED, question)
                continue
            audit.expect(
                answer_bytes(again) == answer_bytes(first) and dict(session.ledger.spent()) == spent,
                f"the same question again is not the same answer for free: {words}",
                STORED,
                question,
            )
        engine.version = "later"
        before = dict(session.ledger.spent())
        answered = not isinstance(_answer_of(session, questions[0]), Error)
        audit.expect(
            not answered or dict(session.ledger.spent()) != before,
            "a stored answer is given for data that have changed",
            STORED,
            questions[0],
        )
        _added_up(audit, session.ledger)


def added_up(entries: Iterable[Entry], key: bytes | None) -> Audit:
    """Return the entries of a ledger as added up by a program that shares no code with dpsql (`verify_export`); without its key,
    digests are not checked."""
    book = Audit(key)
    for entry in entries:
        facts = dict(entry.facts)
        for name in ("charge", "limits"):
            if name in facts:
                facts[name] = {dimension: int(amount) for dimension, amount in facts[name].items()}
        book.add(facts, "" if key is None else entry.body, entry.digest)
    return book


def _added_up(audit: ChargeAudit, ledger: Ledger) -> None:
    """Check that the ledger's totals equal its entries."""
    book = added_up(ledger.history(), ledger.witness.key)
    for problem in book.problems:
        audit.expect(False, problem, LEDGER)
    spent = {name: amount for name, amount in ledger.spent().items() if amount}
    added = {name: amount for name, amount in book.spent.get("dataset", {}).items() if amount}
    audit.expect(spent == added, f"the ledger says that {spent} is spent, its entries that {added} is")


def _ended(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that a budget is exhausted: the answers fit into it, and a refused question touches no data."""
    policy = audit.limited(Fraction(5, 2))
    with audit.session(policy, "small") as session:
        engine: Any = session.context.engine
        limits = session.ledger.limits()
        answers = _answers(session, questions[0], engine)
        audit.expect(0 < answers < MOST_ASKED, f"{answers} answers were given under a budget for two", LIMITS)
        audit.expect(not engine.queries, "a question that the budget refused was asked of the data", LIMITS)
        _added_up(audit, session.ledger)
        charges = [entry.facts["charge"] for entry in session.ledger.history() if entry.facts["kind"] == "charge"]
        for name, limit in limits.items():
            spent = sum(int(charge.get(name, 0)) for charge in charges)
            audit.expect(spent <= limit, f"{name}: {spent} was charged of {limit}", LIMITS)
        audit.expect(len(charges) == answers, f"{answers} answers have {len(charges)} charges")


def _answers(session: Session, question: Question, engine: Any) -> int:
    """Return the number of answers before the first refusal; `engine` then holds the record of the refused question alone."""
    for answers in range(MOST_ASKED):
        engine.queries = []
        if isinstance(_answer_of(session, question), Error):
            return answers
    return MOST_ASKED


def _in_threads(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that concurrent sessions, each with a separate connection to the ledger, together get no more than the budget."""
    policy, answers = audit.limited(Fraction(5, 2)), list[object]()
    with ExitStack() as stack:
        sessions = [stack.enter_context(audit.session(policy, "shared")) for _ in range(THREADS)]
        barrier = threading.Barrier(THREADS)

        def ask(session: Session) -> None:
            barrier.wait()
            for _ in range(2):
                answers.append(_answer_of(session, questions[0]))

        threads = [threading.Thread(target=ask, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answered = sum(not isinstance(answer, Error) for answer in answers)
        charges = sum(entry.facts["kind"] == "charge" for entry in sessions[0].ledger.history())
        audit.expect(answered <= charges, f"{answered} answers at the same time have {charges} charges")
        _added_up(audit, sessions[0].ledger)


def _within_every_limit(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that an analyst is charged to the accounts of the data set and of the analyst, and stops at the smaller limit."""
    limit = Analyst(audit.epsilon_for(Fraction(3, 2)), None)
    policy = replace(audit.policy, analysts={"audit": limit}, projects={}, session=None)
    with audit.session(policy, "analysts", "audit") as session:
        answers = _answers(session, questions[0], session.context.engine)
        audit.expect(answers == 1, f"{answers} answers were given to an analyst who may have one", LIMITS)
        for entry in session.ledger.history():
            named = set(entry.facts.get("scopes", ())) if entry.facts["kind"] == "charge" else None
            audit.expect(
                named is None or {"dataset", "analyst:audit"} <= named,
                f"an analyst's charge goes to {sorted(named or ())} alone",
                LIMITS,
            )


def _kept_after_a_failure(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that a failure of the engine leaves the charge in place, and that its message does not reach the analyst."""
    with audit.session(audit.policy, "failing") as session:
        for name in audit.synthetic.protected:
            audit.connection.execute(f'ALTER TABLE "{name}" RENAME TO "{name} base"')
            audit.connection.execute(
                f"""CREATE VIEW "{name}" AS SELECT * FROM "{name} base" WHERE error('{CANARY}') IS NULL"""
            )
        try:
            answer = _answer_of(session, questions[0])
            audit.expect(isinstance(answer, Error), "an engine that fails gives an answer", ENGINE_ERRORS)
            if isinstance(answer, Error):
                said = f"{answer.text()} {answer!r}"
                audit.expect(CANARY not in said, "the engine's own words are in an error", ENGINE_ERRORS)
                read = any(session.context.engine.spent)  # type: ignore[attr-defined]
                spent = any(session.ledger.spent().values())
                audit.expect(spent or not read, "a question that failed over the data was not charged")
                audit.expect(answer.charged == spent, "an error says another thing of its charge than the ledger")
        finally:
            for name in audit.synthetic.protected:
                audit.connection.execute(f'DROP VIEW "{name}"')
                audit.connection.execute(f'ALTER TABLE "{name} base" RENAME TO "{name}"')


def _kept_in_a_backup(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that restoring a backup forgets no charge, and that a missing ledger is not replaced by a new one."""
    with audit.session(audit.policy, "kept") as session:
        _answer_of(session, questions[0])
        back_up(session.ledger, audit.folder / "backup")
        _answer_of(session, questions[0])
        spent = dict(session.ledger.spent())
    path = audit.folder / "kept.db"
    path.unlink()
    url = f"sqlite:///{path}"
    try:
        open_ledger(url, audit.policy.dataset, create=True, state=audit.state).close()
        audit.expect(False, "a ledger that is gone is made anew, with the whole budget", LEDGER)
        return
    except Error:
        restore(audit.folder / "backup", url, audit.policy.dataset, state=audit.state)
    with open_ledger(url, audit.policy.dataset, state=audit.state) as ledger:
        forgotten = {name for name, amount in spent.items() if ledger.spent().get(name, 0) < amount}
        names = ", ".join(sorted(forgotten))
        audit.expect(not forgotten, f"a backup that is put back forgets what was spent: {names}", LEDGER)


def _promises_kept(audit: ChargeAudit, questions: Sequence[Question]) -> None:
    """Check that a question is not answered when a key that the policy declares unique has duplicates in the data."""
    with audit.session(audit.policy, "promises") as session:
        for question in questions:
            with _under_its_settings(session, question):
                blocks = planned_question(session, question).price.blocks
            broken = sorted({p.table for block in blocks for p in block.block.promises if p.most == 1})
            if not broken:
                continue
            twice = audit.synthetic.database(
                audit.synthetic.crowd, {name: list(audit.synthetic.rows(name)) for name in broken}
            )
            load(audit.connection, twice)
            answer = _answer_of(session, question)
            audit.fill()
            words = f"keys of {', '.join(broken)} occur twice, and there is an answer"
            audit.expect(isinstance(answer, Error), words, UNIQUE_KEYS, question)
            return


CHECKS: tuple[Callable[[ChargeAudit, Sequence[Question]], None], ...] = (
    _paid_once_and_first, _stored, _ended, _in_threads, _within_every_limit, _kept_after_a_failure, _kept_in_a_backup,
    _promises_kept,
)  # fmt: skip
