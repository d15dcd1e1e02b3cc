"""Questions asked of real servers on this machine, over databases made from the policy (privacy.md 4, 6 and 7).

If the gate's outputs are frozen, the bytes that a client receives follow from question and policy alone, so they are equal over
any data. With the gate that draws noise, answers over neighbours bound epsilon from below, as an analyst with these answers
could.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from dpsql.engine.contract import Engine
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.frontends.pgwire.logins import open_logins
from dpsql.frontends.pgwire.server import Server, ServerState
from dpsql.ledger import open_ledger
from dpsql.noise.perturb import Gate
from dpsql.policy import Policy
from dpsql.policy.values import OWNER
from dpsql.pricing.pricing import Price
from dpsql.privacy.ledger_units import UNITS
from dpsql.privacy.loss import PrivacyLoss
from dpsql.reuse.store import open_releases
from dpsql_audit.distances import covers
from dpsql_audit.findings import NOISE, PROMISE, SENSITIVITY, Finding, rule_of
from dpsql_audit.lower_bounds import ALPHA, bound_of_samples, claim_of
from dpsql_audit.observation import RecordedEngine, RecordingGate
from dpsql_audit.questions import Question
from dpsql_audit.replay import ODD
from dpsql_audit.served import PackedTrials, ServedBound, ServedCheck, packable
from dpsql_audit.synthetic import PROFILES, Profile, Synthetic, as_sql, load
from dpsql_audit.wire_client import Message, WireClient, last_column

ASKED = 8
"""Number of times that a trial question is asked of each side."""
ENOUGH = 10**6
"""The epsilon of the budget, so large that the budget does not end before the questions do."""
CATALOG = (
    "SELECT * FROM pg_catalog.pg_class ORDER BY oid", "SELECT * FROM pg_catalog.pg_attribute ORDER BY attrelid, attnum",
    "SELECT * FROM information_schema.tables", "SHOW TABLES", "SHOW dp.all",
)  # fmt: skip
_RECEIPT = re.compile(rb"receipt [0-9a-f-]+")
_CALL_SECONDS = 120


class ServedEngine(RecordedEngine):
    """An engine whose data have one version for all connections of a server."""

    def another(self) -> Engine:
        """Return an engine over the same tables for another connection."""
        other: Any = ServedEngine(self._engine.another())
        return other  # type: ignore[no-any-return]


@dataclass
class Transcript:
    """The messages that one question received, and its cost in ledger units when it was described and when it was asked."""

    described: list[Message]
    answered: list[Message]
    for_description: dict[str, int] = field(default_factory=dict)
    for_answer: dict[str, int] = field(default_factory=dict)


class ServedDatabase:
    """One database behind a separate server, with ledger, stored releases and login in a folder."""

    def __init__(self, policy: Policy, port: int, password: str, state: ServerState) -> None:
        self._policy, self._port, self._password, self._state = policy, port, password, state
        self._shared: WireClient | None = None

    @contextmanager
    def client(self, settings: Sequence[str] = ()) -> Iterator[WireClient]:
        """Yield a connection with these options: a new one, or without options the shared one."""
        if not settings and self._shared is not None:
            yield self._shared
            return
        client = WireClient(self._port, OWNER, self._password, self._policy.dataset)
        client.query("SET dp.reuse = off")
        if not settings:
            self._shared = client
            yield client
            return
        try:
            for setting in settings:
                client.query(f"SET {setting}")
            yield client
        finally:
            client.close()

    def spent(self) -> dict[str, int]:
        """Return the ledger units spent of the data set's budget."""
        return dict(self._state.ledger.spent())

    def transcript(self, question: Question) -> Transcript:
        """Prepare, describe and ask a question, and return what that received and cost."""
        with self.client(question.settings) as client:
            before = self.spent()
            described = client.described(question.sql)
            between = self.spent()
            answered = client.query(question.sql)
            after = self.spent()
        return Transcript(described, answered, _difference(before, between), _difference(between, after))

    def leave(self) -> None:
        """Close the shared connection."""
        if self._shared is not None:
            self._shared.close()


@contextmanager
def served(policy: Policy, tables: Mapping[str, pa.Table], gate: Gate | None = None) -> Iterator[ServedDatabase]:
    """Yield a server over `tables` on a free port of this machine, in a folder that is removed afterwards."""
    password = secrets.token_urlsafe(18)
    with (
        tempfile.TemporaryDirectory(prefix="dpsql-audit-") as name,
        duckdb.connect(config={"threads": 1}) as connection,
    ):
        load(connection, tables)
        ledger = open_ledger(f"sqlite:///{name}/ledger.db", policy.dataset, create=True, state=Path(name) / "state")
        engine: Any = ServedEngine(open_engine(policy, connection))
        logins = open_logins(ledger, policy)
        logins.add(OWNER, password)
        state = ServerState(policy, engine, ledger, open_releases(ledger), logins)
        with _running(Server(state, gate=gate)) as port:
            database = ServedDatabase(policy, port, password, state)
            try:
                yield database
            finally:
                database.leave()
        state.store.close()
        ledger.close()


@contextmanager
def _running(server: Server) -> Iterator[int]:
    """Run the server in a separate thread, and yield its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="dpsql-audit")
    thread.start()

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(_CALL_SECONDS)

    try:
        yield run(server.start("127.0.0.1", 0))[1]
    finally:
        run(server.drain())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def check_server(
    policy: Policy, questions: Sequence[tuple[Question, Price | None]], seconds: float, seed: int = 0
) -> ServedCheck:
    """Bound epsilon from answers of servers, then ask `questions` (price None: refused) of servers over several databases, as
    many as `seconds` allow."""
    begun = time.monotonic()
    plain = policy.over_memory()
    # An analyst with the owner's login name would make answers charge that account as well; limits are checked elsewhere.
    budget = replace(plain.budget, epsilon=Fraction(ENOUGH), delta=Fraction(1, 2), every=None, lifetime=None)
    plain = replace(plain, budget=budget, analysts={}, projects={}, session=None)
    check = ServedCheck()
    try:
        _sample(check, plain, seed)
        _compare(check, plain, questions, begun + seconds, seed)
    except TimeoutError:  # a machine that stalled: that says nothing about privacy
        check.cut_short = True
    except (Error, OSError) as error:
        words = error.text().splitlines()[0] if isinstance(error, Error) else str(error)
        problem = f"the server ends with an error that nobody caused: {words}"
        check.findings.append(Finding(None, problem, PROMISE))
    return check


# --- the same bytes over any data --------------------------------------------------------------------------------------


def _compare(
    check: ServedCheck,
    policy: Policy,
    questions: Sequence[tuple[Question, Price | None]],
    until: float,
    seed: int,
) -> None:
    """Ask one database after the other, and compare the answers. All databases are asked what the first one had time for, so that
    every question is compared over all of them."""
    synthetic = Synthetic(policy, seed)
    crowd = synthetic.crowd
    many_keys = next(profile for profile in PROFILES if profile.default == "high spread")
    parts = {
        "nobody": (), "the crowd": (crowd,), f"the crowd and one unit: {ODD.name}": (crowd, synthetic.unit(ODD)),
        f"the crowd and one unit: {many_keys.name}": (crowd, synthetic.unit(many_keys)),
    }  # fmt: skip
    sides = {name: synthetic.database(*data) for name, data in parts.items()}
    pairs = [*((Question(sql), None) for sql in CATALOG), *questions]
    transcripts: dict[str, list[Transcript]] = {}
    begun = time.monotonic()
    first_ends = begun + (until - begun) / len(sides)
    for name, tables in sides.items():
        transcripts[name] = []
        with served(policy, tables, RecordingGate()) as database:
            for question, _ in pairs:
                if len(transcripts) == 1 and time.monotonic() > first_ends:
                    break
                transcripts[name].append(database.transcript(question))
        pairs = pairs[: len(transcripts[name])]
    check.compared = len(pairs)
    for number, (question, price) in enumerate(pairs):
        runs = {name: ran[number] for name, ran in transcripts.items()}
        problem, names = _problem(runs, price)
        if problem:
            texts = [as_sql(policy, sides[name]) for name in names]
            check.findings.append(Finding(question, f"over the wire: {problem}", rule_of(problem), *texts))


def _problem(runs: Mapping[str, Transcript], price: Price | None) -> tuple[str, tuple[str, ...]]:
    """Return the problem of one question's runs over all databases, and the databases that show it; ("", ()) if there is none."""
    first, *further = runs
    private = price is not None and any(block.noise.selection is not None for block in price.blocks)
    for name, run in runs.items():
        if any(run.for_description.values()):
            return f"a charge of {run.for_description} for a description", (name,)
        if price is not None and not _has_error(run.answered) and not covers(run.for_answer, price):
            return f"charge {run.for_answer} is below the price", (name,)
    for other in further:
        left, right = runs[first], runs[other]
        if left.for_answer != right.for_answer:
            return f"charges differ with the data: {left.for_answer} / {right.for_answer}", (first, other)
        if left.described != right.described:
            return "a description differs with the data", (first, other)
        visible, visible_on_other = _visible(left.answered, private), _visible(right.answered, private)
        if visible != visible_on_other:
            pair = next(
                pair for pair in zip([*visible, None], [*visible_on_other, None], strict=False) if pair[0] != pair[1]
            )
            return f"messages differ with the data: {pair[0]!r} / {pair[1]!r}"[:400], (first, other)
    return "", ()


def _visible(messages: Sequence[Message], private: bool) -> list[Message]:
    """Return the messages without the random name of a receipt. With `private` keys, leave out rows, command tags and notices,
    which differ because the recording gate selects every key."""
    hidden = (b"D", b"C", b"N") if private else ()
    return [(kind, _RECEIPT.sub(b"receipt", body)) for kind, body in messages if kind not in hidden]


def _has_error(messages: Sequence[Message]) -> bool:
    return any(kind == b"E" for kind, _ in messages)


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: amount - before.get(name, 0) for name, amount in after.items()}


# --- lower bounds ------------------------------------------------------------------------------------------------------


def _sample(check: ServedCheck, policy: Policy, seed: int) -> None:
    """Add lower bounds of epsilon from the server's answers over neighbours."""
    table = packable(policy)
    if table is None:
        return
    packed = PackedTrials(policy, table, seed)
    questions = dict(packed.questions())
    sides: dict[str, Profile | None] = {"": None, **{profile.name: profile for profile in questions.values()}}
    answers: dict[tuple[Question, str], list[float]] = {}
    claims: dict[Question, tuple[float, Fraction]] = {}
    for side, rows in sides.items():
        with served(packed.policy, packed.database(rows)) as database:
            for question, profile in questions.items():
                if side in ("", profile.name):
                    answers[question, side], charge = _numbers_of(check, database, question)
                    claims[question] = _claimed(charge)
    for question, profile in questions.items():
        databases = partial(_as_sql, packed, (profile, None))
        _bound(check, question, answers[question, profile.name], answers[question, ""], claims[question], databases)


def _as_sql(packed: PackedTrials, profiles: Sequence[Profile | None]) -> list[list[str]]:
    """Return the statements that create the packed databases with these units."""
    return [as_sql(packed.policy, packed.database(profile)) for profile in profiles]


def _bound(
    check: ServedCheck,
    question: Question,
    with_unit: Sequence[float],
    without: Sequence[float],
    claim: tuple[float, Fraction],
    databases: Callable[[], list[list[str]]],
) -> None:
    """Add the lower bound of one question; there is none if both sides refuse it. `databases`: returns the two databases as
    SQL."""
    claimed, delta = claim
    if len(without) != len(with_unit):
        check.findings.append(Finding(question, "over the wire: one side alone is answered", PROMISE, *databases()))
    elif without:
        bound = bound_of_samples(with_unit, without, float(delta), ALPHA)
        check.bounds.append(ServedBound(question, bound, claimed))
        if bound.epsilon > claimed:
            words = f"answers of the server show epsilon of at least {bound.epsilon:.3f} at delta {bound.delta:g}"
            check.findings.append(Finding(question, f"{words}, claimed is {claimed:.3f}", SENSITIVITY, *databases()))


def _numbers_of(check: ServedCheck, database: ServedDatabase, question: Question) -> tuple[list[float], dict[str, int]]:
    """Return all numbers of `ASKED` answers (no numbers if the question is refused), and the charge of the last answer."""
    runs: list[list[float]] = []
    charge: dict[str, int] = {}
    with database.client(question.settings) as client:
        for _ in range(ASKED):
            before = database.spent()
            messages = client.query(question.sql)
            charge = _difference(before, database.spent())
            if _has_error(messages):
                return [], charge
            runs.append(last_column(messages))
    if any(first == second for first, second in pairwise(runs)):
        check.findings.append(Finding(question, "over the wire: two answers have the same noise", NOISE))
    return [number for run in runs for number in run], charge


def _claimed(charge: Mapping[str, int]) -> tuple[float, Fraction]:
    """Return the epsilon that a charge in ledger units claims, and the delta at which it holds."""
    amounts = {name: Fraction(amount, UNITS[name]) for name, amount in charge.items()}
    epsilon = None if "rho" in amounts else amounts.get("epsilon", Fraction(0))
    return claim_of(PrivacyLoss(epsilon, amounts.get("delta", Fraction(0)), amounts.get("rho")))
