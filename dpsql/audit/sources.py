"""Databases written as the policy's own source is: CSV in its dialect, Parquet, a DuckDB file whose texts have collations.

What a reader makes of one unit's cells may not change how another unit's rows are read, and no bounded view that was prepared
may hold other rows than those that are read without it. Texts are an adversary's: delimiters, quotes, line breaks, byte order
marks, numbers of any length. Servers are not written to.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pyarrow as pa
from pyarrow import parquet

from dpsql.audit.distances import compare
from dpsql.audit.observation import Observed, ObservedSession
from dpsql.audit.questions import Question, questions_of
from dpsql.audit.replay import ORDERS, Finding, same_outcome, same_stages, section_of
from dpsql.audit.synthetic import NEWCOMER, PROFILES, Data, Profile, Synthetic, audited
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.registry import open_engine
from dpsql.policy import Policy, Table
from dpsql.policy.reach import is_csv, is_file
from dpsql.policy.types import SERVERS, CsvDialect
from dpsql.pricing.pricing import Price

COLLATIONS = ("", " COLLATE NOCASE", " COLLATE NOACCENT", " COLLATE NOCASE.NOACCENT")
TYPES = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip
HOSTILE = (
    '"', '""', '"x', 'x"', '",', ",", ";", "|", "\t", "'", "\\", "\r", "x\ry", "\ufeff", "#", "NULL", "null", "nan", "\\N", "A",
    "a", "a ", "\u00e1", "\u00c1", "stra\u00dfe", "STRASSE", "x" * 20_000, "1", "-0", "true", "2024-02-30", "9" * 30, "\x1a", "",
)  # fmt: skip
"""Texts that readers and comparisons are known to stumble over."""
STORED_ORDER = ("expression", "deviation", "window sum", "window by key", "extreme rows", "samples", "distinct values")
"""Kinds of questions whose numbers would follow the order in which rows are stored, if sums were rounded or ties left to the
engine. Where rows are read in place no window sorts them first, so that such a fault shows."""
MANY = 12
"""Units with any values, beside those within the bounds, whose rows are stored in two orders."""
WITHIN = ("high", "high spread", "each", "low", "turn spread", "low spread", "null")
"""Kinds of profiles whose values are all within the bounds."""


WORDS = {"csv": "CSV files", "parquet": "Parquet files", "duckdb": "DuckDB files"}
NOT_WRITTEN = {
    "server": "how the server's own tables are read is not covered: nothing is written to a server",
    "memory": "the policy names no source: how it is read is not covered",
}


def kind_of(policy: Policy) -> str:
    """Return the kind of the policy's data: "csv", "parquet", "duckdb" (a file), "server", or "memory" without a source."""
    if policy.source is not None and policy.source.startswith(SERVERS):
        return "server"
    files = [policy.table_source(name) for name in policy.tables if is_file(policy.table_source(name))]
    if files:
        return "csv" if any(map(is_csv, files)) else "parquet"
    return "memory" if policy.source is None else "duckdb"


@dataclass(frozen=True)
class SourceChecked:
    """What was read of files of the policy's kind: comparisons made, findings, and a sentence for the report."""

    comparisons: int
    findings: tuple[Finding, ...]
    words: str


NOT_CHECKED = SourceChecked(0, (), "the reader of the policy's source was not looked at")


def check_sources(
    policy: Policy, questions: Sequence[tuple[Question, Price]], is_over: Callable[[], bool], seed: int = 0
) -> SourceChecked:
    """Compare answered questions over files of the policy's own kind until `is_over`."""
    kind = kind_of(policy)
    if kind in NOT_WRITTEN:
        return SourceChecked(0, (), NOT_WRITTEN[kind])
    comparisons, findings = 0, list[Finding]()
    with tempfile.TemporaryDirectory(prefix="dpsql-audit-") as name:
        replay = SourceReplay(policy, Path(name), seed)
        try:
            for finding in replay.steps(questions):
                comparisons += 1
                findings += [] if finding is None else [finding]
                if findings or is_over():
                    break
        finally:
            replay.close()
    return SourceChecked(
        comparisons, tuple(findings), f"{comparisons} comparisons over {WORDS[kind]} made from the policy"
    )


@dataclass(frozen=True)
class Side:
    """One database in a folder of its own, with prepared views of its own, and a session over it."""

    session: ObservedSession
    folder: Path

    @contextmanager
    def at_home(self, question: Question | None = None) -> Iterator[None]:
        """Under the options of a question; prepared views are looked for in this folder alone."""
        settings = () if question is None else question.settings
        with patch.dict(os.environ, {"DPSQL_CACHE": str(self.folder / "cache")}), self.session.options(settings):
            yield

    def observe(self, question: Question) -> Observed:
        """One run. Names of the folder are the same on both sides."""
        with self.at_home(question):
            run = self.session.observe(question.sql)
        run.engine_sql = [text.replace(str(self.folder), "FOLDER") for text in run.engine_sql]
        return run

    def prepare(self, copy: bool = True) -> None:
        """Write the bounded view of every table, as `dpsql prepare` does; `copy`: also of tables that can be read in place."""
        with self.at_home():
            key = self.session.ledger.witness.key
            ContributionIndex(self.session.policy, self.session.engine, lambda: key).prepare(copy=copy)


class SourceReplay:
    """Pairs of databases of the policy's own kind: a crowd of sound units, and the crowd with one hostile unit more."""

    def __init__(self, policy: Policy, folder: Path, seed: int = 0) -> None:
        """`folder`: empty, and nobody else's."""
        self.original, self.folder = policy, folder
        self.synthetic = Synthetic(audited(policy), seed)
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
        """A session over tables in a folder called `name`; all of them share the plans of the first, the crowd's."""
        place = self.folder / name
        place.mkdir()
        policy = written(self.original, tables, place, broken)
        planner = self.crowd.session.session.planner if name != "crowd" else None
        return Side(ObservedSession(policy, open_engine(policy), planner=planner), place)

    def with_unit(self, number: int) -> Side:
        """The crowd with one unit of a profile more."""
        if number not in self._sides:
            self._sides[number] = self._side(f"unit{number}", self.profiles[number])
        return self._sides[number]

    def steps(self, questions: Sequence[tuple[Question, Price]]) -> Iterator[Finding | None]:
        """After each comparison what it found: the same rows in two orders, then all questions over the files as they are, then
        over prepared views."""
        yield from self._in_two_orders([question for question, _ in questions])
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

    def _in_two_orders(self, questions: Sequence[Question]) -> Iterator[Finding | None]:
        """Prepared in place: where no unit has too many rows, the source itself is read, in the order in which it stands."""
        count = len(self.units)
        anybody = Profile("any values", "any spread")
        parts = [*self.units, *(self.synthetic.unit(anybody, count + number) for number in range(1, MANY + 1))]
        for number, order in enumerate(ORDERS):
            side = self._over(f"order{number}", self.synthetic.database(*parts, order=order), None)
            self._orders.append(side)
            side.prepare(copy=False)
        of_kind = [question for question in questions_of(self.original) if question.kind in STORED_ORDER]
        for question in dict.fromkeys([*of_kind, *questions]):
            left, right = (side.observe(question) for side in self._orders)
            if left.outcome == right.outcome != "answered":  # a refusal, which is the same over both
                yield None
                continue
            verdict = same_outcome(left, right)
            verdict.expect(left.blocks == right.blocks, "exact numbers differ")
            words = f"{kind_of(self.original)} source, the same rows in another order: {'; '.join(verdict.problems)}"
            yield Finding(question, words, "2") if verdict.problems else None

    def _same_rows(self, unprepared: Mapping[Question, Observed]) -> Iterator[Finding | None]:
        for question, before in unprepared.items():
            after = self.crowd.observe(question)
            same = [block.terms for block in before.blocks] == [block.terms for block in after.blocks]
            yield (
                None
                if same
                else Finding(question, "prepared rows are others than those that are read without them", "3")
            )

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
        return Finding(question, words, section_of(verdict.problems[0]))

    def close(self) -> None:
        """Give the engines back."""
        for side in (self.crowd, *self._orders, *self._sides.values()):
            side.session.engine.close()


def _within_bounds(synthetic: Synthetic) -> list[Data]:
    """Units with nothing beyond the bounds, so that one with such values changes what a file says of all its rows (the least and
    the largest value, say); NaN, which such statistics leave out, is among them."""
    nan = {
        f"{name}.{column.name}": math.nan
        for name in synthetic.protected
        for column in synthetic.policy.tables[name].columns.values()
        if column.type == "real"
    }
    profiles = [Profile("NaN", "high spread", 1.0, nan), *(p for p in PROFILES if p.default in WITHIN)]
    return [synthetic.unit(profile, number) for number, profile in enumerate(profiles, 1)]


def written(policy: Policy, tables: Mapping[str, pa.Table], folder: Path, broken: int | None) -> Policy:
    """The policy over `tables` in `folder`, in files of its own kind.

    `broken`: number of the unit to whom malformed lines belong, among the rows of a protected CSV table; None: there are none.
    """
    placed = {}
    for name, table in policy.tables.items():
        source = policy.table_source(name)
        if not is_file(source):
            placed[name] = replace(table, source=None)
            continue
        ending = ".parquet" if not is_csv(source) else ".csv.gz" if source.lower().endswith(".gz") else ".csv"
        place = folder / f"{name}{ending}"
        placed[name] = replace(table, source=place.name)
        if ending == ".parquet":
            parquet.write_table(tables[name], place)
        else:
            text = _as_csv(table, tables[name], _repeated_unit(policy, table), broken)
            place.write_bytes(gzip.compress(text, 1) if ending.endswith("gz") else text)
    in_file = [name for name, table in placed.items() if table.source is None]
    if in_file:
        _as_duckdb(folder / "data.duckdb", policy, {name: tables[name] for name in in_file})
    return replace(
        policy,
        source="duckdb:///data.duckdb" if in_file else None,
        tables=placed,
        folder=folder,
        timing="plain",
        constant_seconds=None,
        data_version="audit",
    )


def _repeated_unit(policy: Policy, table: Table) -> str | None:
    """The column of the privacy unit's key, None where the table has none or a unit has one row."""
    column = None if table.public or policy.unit_joins(table.name) else policy.unit_column(table.name)
    return None if column is None or table.is_unique((column,)) else column


def _as_duckdb(place: Path, policy: Policy, tables: Mapping[str, pa.Table]) -> None:
    """A DuckDB file; its texts have every collation in turn, which may not matter to anything."""
    collations = cycle(COLLATIONS)
    with duckdb.connect(str(place)) as connection:
        for name, rows in tables.items():
            columns = policy.tables[name].columns.values()
            typed = [
                f'"{column.name}" {TYPES[column.type]}{next(collations) if column.type == "text" else ""}'
                for column in columns
            ]
            connection.execute(f'CREATE TABLE "{name}" ({", ".join(typed)})')
            connection.register("rows", rows)
            connection.execute(f'INSERT INTO "{name}" SELECT * FROM rows')
            connection.unregister("rows")


def _as_csv(table: Table, rows: pa.Table, unit: str | None, broken: int | None) -> bytes:
    """A CSV file in the dialect of the table; malformed lines stand apart, each before sound ones that could be read into it."""
    dialect = table.csv or CsvDialect()
    names = list(rows.column_names)
    lines = [] if dialect.header is not None else [_line(names, dialect)]
    for row in rows.to_pylist():
        ordered = {name: row.get(name) for name in dialect.header or names}
        lines.append(_line([_cell(value, dialect) for value in ordered.values()], dialect))
    if broken is not None and unit is not None:
        place = list(dialect.header or names).index(unit)
        apart = 1 + len(lines) // (len(MALFORMED) + 1)
        for number, cell in enumerate(MALFORMED, 1):
            lines.insert(min(len(lines), number * apart), _malformed(cell, place, broken, len(names), dialect))
    return b"".join(lines)


MALFORMED = (b'"unclosed', b'"un,closed', b'a"b', b'"a"b', b'"a""', b"\xff\xfe", b"\x00", b"a\rb")


def _malformed(cell: bytes, place: int, unit: int, width: int, dialect: CsvDialect) -> bytes:
    cells = [cell] * width
    cells[place] = str(unit).encode()
    return dialect.delimiter.encode().join(cells) + b"\n"


def _cell(value: Any, dialect: CsvDialect) -> str:
    if value is None:
        return dialect.null[0] if dialect.null else ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if dialect.multiline else text.replace("\n", " ")


def _line(cells: Sequence[str], dialect: CsvDialect) -> bytes:
    out = io.StringIO()
    quoted = bool(dialect.quote)
    if not quoted:
        cells = [cell.replace(dialect.delimiter, " ").replace("\r", " ") for cell in cells]
        return (dialect.delimiter.join(cells) + "\n").encode()
    csv.writer(out, delimiter=dialect.delimiter, quotechar=dialect.quote, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()
