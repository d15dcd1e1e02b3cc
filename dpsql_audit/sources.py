"""Audit over a source of the policy's own kind: files (`files`), Parquet files read by Spark, or tables in an empty PostgreSQL
database that the owner names (`scratch`).

The cells of one unit must not change how the rows of another unit are read, and a prepared bounded view must contain the rows
that a query without it would read. Texts are those of an adversary: delimiters, quotes, line breaks, byte order marks, numbers
of any length.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa

from dpsql.engine.contribution_index import SETTLED_SECONDS, ContributionIndex
from dpsql.engine.registry import open_engine
from dpsql.errors.exceptions import Error
from dpsql.policy import Policy
from dpsql.policy.reach import is_csv, is_file
from dpsql.policy.source_kinds import source_kind
from dpsql.pricing.pricing import Price
from dpsql_audit.distances import compare
from dpsql_audit.files import statements, written
from dpsql_audit.findings import KEPT_ROWS, PREPARED_COPIES, Finding, rule_of
from dpsql_audit.observation import Observed, ObservedSession
from dpsql_audit.questions import Question, questions_of
from dpsql_audit.replay import ORDERS, same_outcome, same_stages
from dpsql_audit.synthetic import NEWCOMER, PROFILES, Data, Profile, Synthetic

if TYPE_CHECKING:
    from dpsql_audit.scratch import ScratchDatabase  # which needs the driver of PostgreSQL

HOSTILE = (
    "T0", "t0 ", "t\u03010", "T1",
    '"', '""', '"x', 'x"', '",', ",", ";", "|", "\t", "'", "\\", "\r", "x\ry", "\ufeff", "#", "NULL", "null", "nan", "\\N", "A",
    "a", "a ", "\u00e1", "\u00c1", "stra\u00dfe", "STRASSE", "x" * 20_000, "1", "-0", "true", "2024-02-30", "9" * 30, "\x1a", "",
)  # fmt: skip
"""Texts that readers and comparisons are known to treat wrongly; the first ones are almost equal to texts of the crowd."""
STORED_ORDER = ("expression", "deviation", "window sum", "window by key", "extreme rows", "samples", "distinct values")
"""Kinds of questions whose numbers would depend on the stored order of rows if sums were rounded or ties were left to the engine.
Rows that are read in place are sorted by no window first, so that such a fault becomes visible."""
MANY = 12
"""Number of units with arbitrary values, in addition to those within the bounds, in the databases stored in two orders."""
WITHIN = ("high", "high spread", "each", "low", "turn spread", "low spread", "null")
"""Kinds of values that are always within the bounds."""


WORDS = {
    "csv": "CSV files", "parquet": "Parquet files", "duckdb": "DuckDB files", "spark": "Parquet files read by Spark",
    "server": "tables of PostgreSQL in the scratch database",
}  # fmt: skip
NOT_WRITTEN = {
    "server": "how the server's own tables are read is not covered: name an empty database for it (--scratch)",
    "memory": "the policy names no source: how it is read is not covered",
}
COPY = re.compile(
    r"[0-9a-f]{12}_(?:[0-9a-f]{64}|[0-9a-f]{12}_[0-9a-f]{37})|(?<=dpsql_)[0-9a-f]{12}_(?:[0-9a-f]{32}\b)?"
)
"""Names of versions of a table, of prepared copies on a server, and of objects that a Spark engine creates: random, or derived
from their location or from the state of their source."""


def kind_of(policy: Policy) -> str:
    """Return the kind of the policy's data: "csv", "parquet", "duckdb" (a file), the scheme of an engine that reads files without
    its server ("spark"), "server" (another one), or "memory" without a source."""
    source = source_kind(policy.source)
    if source.is_server:
        return source.scheme if source.in_process else "server"
    files = [policy.table_source(name) for name in policy.tables if is_file(policy.table_source(name))]
    if files:
        return "csv" if any(map(is_csv, files)) else "parquet"
    return "memory" if policy.source is None else "duckdb"


@dataclass(frozen=True)
class SourceChecked:
    """The result of the audit over a source of the policy's kind: number of comparisons, findings, a sentence for the report."""

    comparisons: int
    findings: tuple[Finding, ...]
    words: str


NOT_CHECKED = SourceChecked(0, (), "the reader of the policy's source was not looked at")


def check_sources(
    policy: Policy,
    questions: Sequence[tuple[Question, Price]],
    is_over: Callable[[], bool],
    seed: int = 0,
    scratch: ScratchDatabase | None = None,
) -> SourceChecked:
    """Compare answered questions over a source of the policy's own kind until `is_over` returns True. `scratch`: the database for
    tables of PostgreSQL."""
    kind = kind_of(policy)
    if kind in NOT_WRITTEN and scratch is None:
        return SourceChecked(0, (), NOT_WRITTEN[kind])
    comparisons, findings = 0, list[Finding]()
    with tempfile.TemporaryDirectory(prefix="dpsql-audit-") as name:
        try:
            with closing(SourceReplay(policy, Path(name), seed, scratch)) as replay:
                for finding in replay.steps(questions):
                    comparisons += 1
                    findings += [] if finding is None else [finding]
                    if findings or is_over():
                        break
        except Error as error:  # for example, a server that is away or refuses the login
            if not source_kind(policy.source).is_server:
                raise
            words = f"{comparisons} comparisons over {WORDS[kind]}, ended by: {error.text().splitlines()[0]}"
            return SourceChecked(comparisons, tuple(findings), words)
    words = f"{comparisons} comparisons over {WORDS[kind]} made from the policy"
    return SourceChecked(comparisons, tuple(findings), words)


@dataclass(frozen=True)
class Side:
    """One database in a separate folder (and schema), with its own prepared views, and a session over it. `newcomer`: the number
    of the unit with malformed lines, or None."""

    session: ObservedSession
    folder: Path
    tables: Mapping[str, pa.Table]
    newcomer: int | None
    schema: str = ""

    @contextmanager
    def at_home(self, question: Question | None = None) -> Iterator[None]:
        """Set the options of a question, and look for prepared views in this folder alone."""
        settings = () if question is None else question.settings
        with patch.dict(os.environ, {"DPSQL_CACHE": str(self.folder / "cache")}), self.session.options(settings):
            yield

    def observe(self, question: Question) -> Observed:
        """Run a question and return everything visible, with the names of the folder, the schema and copies replaced by fixed
        ones, so that both sides can be compared."""
        with self.at_home(question):
            run = self.session.ask(question)
        place = self.schema or str(self.folder)
        run.engine_sql = [COPY.sub("COPY", text.replace(place, "FOLDER")) for text in run.engine_sql]
        return run

    def as_sql(self, policy: Policy) -> list[str]:
        """Return the statements that create the tables as they are in the audited policy."""
        return statements(policy, self.tables, self.newcomer)

    def prepare(self, copy: bool = True) -> None:
        """Write the bounded view of every table, as `dpsql prepare` does; with `copy`, also of tables that can be read in
        place."""
        with self.at_home():
            key = self.session.ledger.witness.key
            ContributionIndex(self.session.policy, self.session.engine, lambda: key).prepare(copy=copy)


class SourceReplay:
    """Pairs of databases of the policy's own kind: a crowd of ordinary units, and the crowd with one more, hostile unit."""

    def __init__(self, policy: Policy, folder: Path, seed: int = 0, scratch: ScratchDatabase | None = None) -> None:
        """`folder`: empty, and used by this audit alone. `scratch`: the same holds for its database, in which the tables of a
        policy on PostgreSQL are created."""
        self.original, self.folder, self.scratch = policy, folder, scratch
        self._on_server = source_kind(policy.source).is_server
        self.synthetic = Synthetic(policy.over_memory(), seed)
        texts = {
            f"{name}.{column.name}": list(HOSTILE)
            for name in self.synthetic.protected
            for column in policy.tables[name].columns.values()
            if column.type == "text"
        }
        plain = (next(p for p in PROFILES if p.default == kind) for kind in ("odd", "each", "beyond"))
        self.profiles = (
            Profile("hostile texts", "high spread", 1.0, texts),
            Profile("hostile texts and odd values", "odd", 3.0, texts),
            *(replace(profile, share=1.0) for profile in plain),
        )
        self.units = _within_bounds(self.synthetic)
        self.crowd = self._side("crowd")
        self._sides: dict[int, Side] = {}
        self._orders: list[Side] = []

    def _side(self, name: str, *units: Profile) -> Side:
        parts = [self.synthetic.unit(profile) for profile in units]
        return self._over(name, self.synthetic.database(*self.units, *parts), NEWCOMER if units else None)

    def _over(self, name: str, tables: Mapping[str, pa.Table], broken: int | None) -> Side:
        """Return a session over tables in a folder called `name`. All sessions share the plans of the first, that of the
        crowd."""
        place = self.folder / name
        place.mkdir()
        schema = "" if self.scratch is None else self.scratch.schema(name)
        if self.scratch is None:
            policy = written(self.original, tables, place, broken)
            time.sleep(SETTLED_SECONDS)  # views of younger files are read in another way, whatever they hold
        else:
            policy = self.scratch.written(self.original, tables, schema)
        planner = self.crowd.session.session.planner if name != "crowd" else None
        broken = broken if self.scratch is None else None
        return Side(ObservedSession(policy, open_engine(policy), planner=planner), place, tables, broken, schema)

    def with_unit(self, number: int) -> Side:
        """Return the crowd with one more unit, of the profile with this number."""
        if number not in self._sides:
            self._sides[number] = self._side(f"unit{number}", self.profiles[number])
        return self._sides[number]

    def steps(self, questions: Sequence[tuple[Question, Price]]) -> Iterator[Finding | None]:
        """Yield a finding, or None, after each comparison: the same rows in two orders, all questions over the files themselves,
        then over prepared views. On a server the two orders come last, since they are many questions and each takes long."""
        without_prices = [question for question, _ in questions]
        if not self._on_server:
            yield from self._in_two_orders(without_prices)
        unprepared = {question: self.crowd.observe(question) for question, _ in questions}
        for prepared in (False, True):
            if prepared:
                self.crowd.prepare()
                yield from self._same_rows(unprepared)
            base = {question: self.crowd.observe(question) for question, _ in questions} if prepared else unprepared
            for number in range(len(self.profiles)):
                side = self.with_unit(number)
                if prepared:
                    side.prepare()
                for question, price in questions:
                    yield self._compared(question, price, base[question], side.observe(question), number)
        if self._on_server:
            yield from self._in_two_orders(without_prices)

    def _in_two_orders(self, questions: Sequence[Question]) -> Iterator[Finding | None]:
        """Yield a finding, or None, for each comparison of answers over two orders of rows.

        Views are prepared in place: where no unit has too many rows, the source itself is read in its stored order. On a server
        nothing is prepared.
        """
        count = len(self.units)
        anybody = Profile("any values", "any spread")
        parts = [*self.units, *(self.synthetic.unit(anybody, count + number) for number in range(1, MANY + 1))]
        for number, order in enumerate(ORDERS):
            side = self._over(f"order{number}", self.synthetic.database(*parts, order=order), None)
            self._orders.append(side)
            if not self._on_server:
                side.prepare(copy=False)
        of_kind = [question for question in questions_of(self.original) if question.kind in STORED_ORDER]
        for question in dict.fromkeys([*of_kind, *questions]):
            left, right = (side.observe(question) for side in self._orders)
            if left.outcome == right.outcome != "answered":  # both runs were refused alike
                yield None
                continue
            verdict = same_outcome(left, right)
            verdict.expect(left.blocks == right.blocks, "exact numbers differ")
            words = f"{kind_of(self.original)} source, the same rows in another order: {'; '.join(verdict.problems)}"
            sides = (side.as_sql(self.original) for side in self._orders)
            yield Finding(question, words, KEPT_ROWS, *sides) if verdict.problems else None

    def _same_rows(self, unprepared: Mapping[Question, Observed]) -> Iterator[Finding | None]:
        for question, before in unprepared.items():
            after = self.crowd.observe(question)
            same = [block.terms for block in before.blocks] == [block.terms for block in after.blocks]
            words = "prepared rows are others than those that are read without them"
            yield None if same else Finding(question, words, PREPARED_COPIES, self.crowd.as_sql(self.original))

    def _compared(
        self, question: Question, price: Price, left: Observed, right: Observed, number: int
    ) -> Finding | None:
        left, right = same_stages(price, left, right)
        verdict = same_outcome(left, right)
        if not verdict.problems:
            verdict.problems += compare(price, left.blocks, right.blocks).problems
        if not verdict.problems:
            return None
        words = f"{kind_of(self.original)} source, {self.profiles[number].name}: {'; '.join(verdict.problems)}"
        sides = (side.as_sql(self.original) for side in (self.crowd, self.with_unit(number)))
        return Finding(question, words, rule_of(verdict.problems[0]), *sides)

    def close(self) -> None:
        """Close the engines."""
        for side in (self.crowd, *self._orders, *self._sides.values()):
            side.session.engine.close()


def _within_bounds(synthetic: Synthetic) -> list[Data]:
    """Return units without values beyond the bounds, so that one unit with such values changes a file's statistics (least and
    largest value). NaN, which such statistics leave out, is among the values."""
    nan = {
        f"{name}.{column.name}": math.nan
        for name in synthetic.protected
        for column in synthetic.policy.tables[name].columns.values()
        if column.type == "real"
    }
    profiles = [Profile("NaN", "high spread", 1.0, nan), *(p for p in PROFILES if p.default in WITHIN)]
    return [synthetic.unit(profile, number) for number, profile in enumerate(profiles, 1)]
