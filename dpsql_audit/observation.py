"""A session whose noise gate records its inputs and returns fixed vectors, over tables that change from run to run.

Everything else is the product itself: parser, planner, emitter, engine, remainder. The ledger accepts and records every charge,
and no release is stored, so that every question reaches the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsql.engine.contract import Engine, ExactAnswer
from dpsql.engine.query import EngineQuery
from dpsql.errors.exceptions import Error
from dpsql.frontends.admin.expected_errors import OpenLedger
from dpsql.noise.group_layout import Groups, Int128
from dpsql.noise.perturb import Gate
from dpsql.noise.rank_histograms import Histograms
from dpsql.planning.planner import Planned, Planner
from dpsql.planning.together import Goal
from dpsql.policy import Policy
from dpsql.pricing.options import Reuse
from dpsql.privacy.mechanisms.contract import Law, Noise, Selection
from dpsql.release.release import Release
from dpsql.release.sandbox import shared_sandbox
from dpsql.session.explanation import PrivacyPlan
from dpsql.session.session import Session
from dpsql.sql.lexer import split_file
from dpsql_audit.questions import MEASURED_AS_ONE, Question

NO_STORE: Any = None
"""In place of a store of releases: nothing is reused (dp.reuse is off), so that every question reaches the engine."""
Key = tuple[Any, ...]
Vector = dict[Key, int]


@dataclass
class Measured:
    """The inputs of the gate for one private block: exact integers by key for each term, the counts used for partition selection,
    and the histograms (rows by key and cell) from which numbers were chosen."""

    keys: list[Key]
    public: bool
    noises: dict[str, Noise] = field(default_factory=dict)
    terms: dict[str, Vector] = field(default_factory=dict)
    laws: dict[str, Law] = field(default_factory=dict)
    histograms: dict[str, Vector] = field(default_factory=dict)
    selection: Selection | None = None
    counts: Vector = field(default_factory=dict)


NOTICES = 2
"""Index of the notices in `Observed.said`."""
CHOSEN = 13
"""Number of cells among which the gate's fixed choices lie."""


@dataclass
class Observed:
    """Everything visible of one run, and the exact vectors, which must stay hidden. `said`: price, notices, remaining budget."""

    outcome: str
    charged: bool
    columns: list[tuple[str, str]]
    said: tuple[object, ...]
    answer: bytes
    engine_sql: list[str]
    charges: list[dict[str, int]]
    blocks: list[Measured]


class RecordingGate(Gate):
    """A gate that records exact vectors, noise and keys, and returns numbers that depend on the cell alone."""

    def __init__(self) -> None:
        """Begin with an empty record."""
        super().__init__()
        self.blocks: list[Measured] = []
        self._groups: Groups | None = None

    def add(self, name: str, exact: Int128, noise: Noise, groups: Groups, drawn: object) -> Int128:
        """Record the exact vector of a term."""
        block = self._block(groups)
        block.noises[name] = noise
        block.terms[name] = dict(zip(block.keys, exact.to_ints(), strict=True))
        fixed = [37 + 11 * (cell % 13) for cell in range(groups.count)]
        return Int128.from_ints(value << max(0, -noise.shift) >> max(0, noise.shift) for value in fixed)

    def select(self, name: str, counts: Int128, selection: Selection, groups: Groups) -> NDArray[np.bool_]:
        """Record the counts for partition selection, and select every group."""
        block = self._block(groups)
        block.selection = selection
        block.counts = block.terms.get(name) or dict(zip(block.keys, counts.to_ints(), strict=True))
        return np.ones(groups.count, dtype=bool)

    def release_numbers(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        """Record the histograms from which numbers are drawn."""
        return self._noted(name, histograms, law, groups)

    def release_sums(self, name: str, sums: NDArray[np.int64], noise: Noise, groups: Groups) -> NDArray[np.float64]:
        """Record sums that package `noise` has computed, in the same way as `add`."""
        self._after_selection(groups)
        return super().release_sums(name, sums, noise, groups)

    def _after_selection(self, groups: Groups) -> None:
        if not groups.public and self.blocks:
            self._groups = groups  # selection has admitted every key, so these are all groups of the block

    def _noted(self, name: str, histograms: Histograms, law: Law, groups: Groups) -> NDArray[np.int64]:
        self._after_selection(groups)
        block = self._block(groups)
        block.laws[name] = law
        histograms = histograms.taken_apart()
        ends = zip(histograms.start[:-1].tolist(), histograms.start[1:].tolist(), strict=True)
        block.histograms[name] = {
            (*key, cell): count
            for key, (start, end) in zip(block.keys, ends, strict=True)
            for cell, count in zip(
                histograms.cell[start:end].tolist(), histograms.count[start:end].tolist(), strict=True
            )
        }
        # Numbers follow from keys, so that the other groups have equal ones where one side has one more private key.
        return np.array([crc32(repr(key).encode()) % CHOSEN for key in block.keys], dtype=np.int64) % histograms.cells

    def _block(self, groups: Groups) -> Measured:
        if self._groups is not groups:
            self._groups = groups
            columns = [column.to_pylist() for column in groups.keys.columns]
            keys = [tuple(map(_plain, key)) for key in zip(*columns, strict=True)] if columns else [()] * groups.count
            self.blocks.append(Measured(keys, groups.public))
        return self.blocks[-1]


def _plain(value: Any) -> Any:
    """Return a key with NaN replaced by one value that equals itself, as NaN does for the engine."""
    return "NaN" if isinstance(value, float) and value != value else value


class RecordedEngine:
    """An engine that records every query to protected tables, and the released rows that these queries read."""

    def __init__(self, engine: Engine) -> None:
        """`engine`: the engine over the tables that change from run to run."""
        self._engine = engine
        self.queries: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(self, query: EngineQuery, timeout_seconds: float | None = None) -> ExactAnswer:
        """Record the query and run it."""
        released = (f"{name}: {rows.to_pylist()}" for name, rows in query.released.items())
        self.queries.append(" ".join([query.sql, *map(repr, query.parameters), *released]))
        return self._engine.run(query, timeout_seconds)

    def data_version(self, tables: tuple[str, ...]) -> str:
        """Return the same version for all data: it determines the secret order of rows, which must be the same for both databases
        of a pair."""
        return "audit"


class ObservedSession:
    """One session over an engine whose tables are replaced between runs, and everything visible of these runs."""

    def __init__(
        self, policy: Policy, engine: Engine, gate: Gate | None = None, planner: Planner | None = None
    ) -> None:
        """`planner`: may be shared by sessions of one policy, because plans are functions of question and policy."""
        self.policy = policy
        self.engine: Any = RecordedEngine(engine)
        self.ledger = OpenLedger()
        self.gate = gate or RecordingGate()
        ledger: Any = self.ledger
        self.session = Session(
            policy, self.engine, ledger, NO_STORE, gate=self.gate, sandbox=shared_sandbox(), planner=planner
        )
        self._options = self.session.options = self.session.options.with_value("reuse", "off", policy)

    @contextmanager
    def options(self, settings: Iterable[str]) -> Iterator[None]:
        """Set options for one query, and restore the former ones afterwards."""
        try:
            for setting in settings:
                self.session.execute(f"SET {setting}")
            yield
        finally:
            self.session.options = self._options

    def planned(self, question: Question) -> Planned:
        """Return the priced plan of a question under the present options. Raises the refusal of the question."""
        planned = planned_question(self.session, question)
        return replace(planned, options=replace(planned.options, reuse=Reuse.OFF))

    def explained(self, question: Question) -> PrivacyPlan:
        """Return the result of EXPLAIN for a question."""
        if question.kind != MEASURED_AS_ONE:
            return self.session.explain(question.sql)
        return self.session.explain_planned(self.planned(question))

    def ask(self, question: Question) -> Observed:
        """Run one question like `observe`, without setting the question's own options."""
        if question.kind != MEASURED_AS_ONE:
            return self.observe(question.sql)
        return self._noted(lambda: self.session.answer(self.planned(question)))

    def observe(self, sql: str, parameters: Any = None) -> Observed:
        """Run one statement and return everything visible of it."""
        return self._noted(lambda: self.session.execute(sql, parameters))

    def _noted(self, run: Callable[[], Release]) -> Observed:
        """Record a run. Repeat one that exceeded the sandbox's time once, since the machine may have stalled."""
        observed = self._noted_once(run)
        return self._noted_once(run) if "sandbox_time" in observed.outcome else observed

    def _noted_once(self, run: Callable[[], Release]) -> Observed:
        gate = self.gate
        if isinstance(gate, RecordingGate):
            gate.blocks = []
        self.engine.queries = []
        self.ledger.charges = []
        said: tuple[object, ...] = ()
        charged, columns, answer = False, [], b""
        try:
            release = run()
            outcome = "answered"
            columns = [(column.name, column.type.value) for column in release.columns]
            answer, receipt = answer_bytes(release), release.receipt
            notices = (*receipt.standing, *receipt.notices)
            said = (receipt.charged, receipt.reused, notices, sorted(receipt.remaining.items()))
        except Error as error:
            outcome, charged = error.text(), error.charged
        blocks = gate.blocks if isinstance(gate, RecordingGate) else []
        return Observed(outcome, charged, columns, said, answer, self.engine.queries, self.ledger.charges, blocks)


def planned_question(session: Session, question: Question) -> Planned:
    """Return the priced plan of a question. For statements that are measured together, return the plan of the first with the
    blocks of all of them. Raises their refusals."""
    if question.kind != MEASURED_AS_ONE:
        return session.plan(session.planner.parse(question.sql, None))
    options = replace(session.options, reuse=Reuse.ON)  # statements are measured together only if releases are stored
    statements = [session.planner.parse(piece.sql, None) for piece in split_file(question.sql)]
    alone = [session.plan(statement, None, options) for statement in statements]
    together = session.plan_together(alone, Goal())
    return next((plan.questions[0] for plan in together if plan.places[0] == 0), alone[0])


def answer_bytes(release: Release) -> bytes:
    """Return the rows of an answer as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, release.table.schema) as writer:
        writer.write_table(release.table)
    return bytes(sink.getvalue().to_pybytes())
