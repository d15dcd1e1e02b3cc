"""Reads everything once, and finds where reading fails: for the owner, exact and private.

Some things that an engine reads may fail at a value, and nothing can prevent that (docs/privacy.md, section 9): views, columns
that are computed when they are read, damaged files. Each column of the policy is read by the text with which questions read it.
Where that fails, files are read one by one, and the failing rows are counted by reading ranges of another column. Nothing here
is differentially private: no session, server or report of a server imports it (tests check that).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dpsql.engine.contract import Engine
from dpsql.engine.emit.bounded_view import bounded_view
from dpsql.engine.query import stored_as
from dpsql.errors.exceptions import Error
from dpsql.plan.intervals import Type
from dpsql.plan.plan import UNIT
from dpsql.policy import Policy
from dpsql.storage.records import dataclass, field

MOST_SAMPLED = 100_000
"""Rows of each file, or of a table that has none, in which cells are counted if not all are read."""
MOST_READINGS = 200
"""Most readings of one column of one file in search of the failing rows."""
_KEY = "scan"
_ORDERED = ("integer", "date", "text")
_TEXTS = ("VARCHAR", "string", "text", "character varying", "character")
"""Engine types whose blank values are empty cells."""
_FLOATS = ("float", "double", "real", "double precision")
"""Engine types whose NaN is an empty cell, as programs write it that have no other."""

_TEMPORAL = ("date", "timestamp")
_CERTAIN = re.compile("BOOLEAN|U?(TINY|SMALL)INT|U?INTEGER|BIGINT")
"""DuckDB's types all of whose values are numbers and truth values of a policy."""


@dataclass(frozen=True)
class Failure:
    """Reading that failed: a column of a table ("": only its columns together), in one of its files ("": it has none).

    `least` and `most`: bounds of the number of failing rows; None if they could not be counted. `rows`: the number of all rows
    that were read there.
    """

    table: str
    column: str
    file: str = ""
    least: int | None = None
    most: int | None = None
    rows: int | None = None

    def __str__(self) -> str:
        """Return a sentence without values of the data."""
        column = f"{self.table}.{self.column}" if self.column else f"{self.table} (its columns together)"
        where = f" in {self.file}" if self.file else ""
        if self.least is None or self.most is None:
            return f"{column} cannot be read{where}"
        number = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        return f"{column} cannot be read{where}: it fails at {number} of {self.rows} rows"


def parts(engine: Engine, table: str) -> Iterator[tuple[str, Engine]]:
    """Yield each file of a table with an engine that reads only this file of it; "" with `engine` itself if it has no files."""
    files = engine.files(table)
    for file in files:
        yield str(file), engine.of_files({table: [file]})
    if not files:
        yield "", engine


def failures(policy: Policy, engine: Engine) -> Iterator[Failure]:
    """Yield each failure of each table, after reading it once. Raises Fault for what a question meets before its charge."""
    for table in policy.tables:
        columns = list(policy.tables[table].columns)
        if _Reading(policy, engine, table).succeeds(columns):
            continue
        for file, part in parts(engine, table):
            yield from _failures_of(_Reading(policy, part, table, file), columns)


@dataclass(frozen=True)
class CellCounts:
    """The cells of a column in one file ("": the table has none): the `filled` ones, and those of them that cannot be read as its
    type, so that questions read NULL."""

    table: str
    column: str
    file: str
    filled: int
    unreadable: int

    @property
    def lost(self) -> bool:
        """Return whether most filled cells cannot be read."""
        return 2 * self.unreadable > self.filled


def cells(policy: Policy, engine: Engine, table: str, file: str, *, everything: bool) -> tuple[int, list[CellCounts]]:
    """Return how many rows of one of the `parts` of a table were read, and the cells of its columns. These figures are exact.

    Without `everything` only columns whose type in the source may have values that the policy's has not are read: all rows of CSV
    files, and otherwise the first `MOST_SAMPLED`. Columns of texts are not counted, nor is what cannot be
    read as a whole (see `failures`).
    """
    about, stored = policy.tables[table], engine.source(table).types
    columns = [
        column
        for column, entry in about.columns.items()
        if entry.type != "text"
        and (everything or entry.type in _TEMPORAL or not _CERTAIN.fullmatch(stored_as(stored[column])[0]))
    ]
    if not columns and about.csv is None:
        return 0, []
    most = None if everything or about.csv is not None else MOST_SAMPLED
    rows, counts = _Reading(policy, engine, table).cells(columns, most)
    return rows, [CellCounts(table, column, file, *counts[column]) for column in counts]


def names_units(policy: Policy, engine: Engine, table: str, column: str) -> bool:
    """Return whether a column has several values, and all of them are keys of privacy units; False if that cannot be read.

    Whole numbers that stay in the lower half of the keys are none: counts and grades are small, and so are the first keys.
    """
    unit, text = policy.privacy_unit, engine.dialect
    assert unit is not None
    named, units = (
        text.derived(_Reading(policy, engine, owner).values(name))
        for owner, name in ((table, column), (unit.table, unit.column))
    )
    rows = f"{named} LEFT JOIN (SELECT c0 AS c1 FROM {units}) AS s1 ON c0 = c1 WHERE c0 IS NOT NULL"
    ends = f", max(c0) AS m2, (SELECT max(c0) FROM {units}) AS m3"
    whole = policy.tables[table].columns[column].type == "integer"
    row = _first_row(engine, f"SELECT count(*) AS m0, count(c1) AS m1{ends * whole} FROM {rows}")
    return row is not None and bool(
        row["m0"] > 1 and row["m0"] == row["m1"] and not (whole and 2 * row["m2"] < row["m3"])
    )


@dataclass(frozen=True)
class RowCounts:
    """The rows of a protected table: all of them, those that belong to no person, and those that are further than max_rows."""

    rows: int
    of_nobody: int
    beyond: int


def rows_left_out(policy: Policy, engine: Engine, table: str) -> RowCounts | None:
    """Return how many rows of a protected table no question counts; None if they cannot be read. These figures are exact."""
    text, unit = engine.dialect, engine.dialect.identifier(UNIT)
    view = bounded_view(text, policy, engine.source, table)
    by_unit = text.derived(f"SELECT {unit}, COUNT(*) AS n0 FROM {text.derived(view.every)} GROUP BY {unit}")
    beyond = f"CASE WHEN {unit} IS NOT NULL AND n0 > {view.most} THEN n0 - {view.most} ELSE 0 END"
    sums = ((f"CASE WHEN {unit} IS NOT NULL THEN n0 ELSE 0 END", "m0"), (beyond, "m1"))
    items = ", ".join(f"coalesce(sum({value}), 0) AS {name}" for value, name in sums)
    row = _first_row(engine, f"SELECT {items} FROM {by_unit}")
    whole = _first_row(engine, f"SELECT count(*) AS m0 FROM {engine.source(table).sql} AS s0")
    if row is None or whole is None:
        return None
    return RowCounts(int(whole["m0"]), int(whole["m0"]) - int(row["m0"]), int(row["m1"]))


def _failures_of(reading: _Reading, columns: list[str]) -> Iterator[Failure]:
    if reading.succeeds(columns):
        return
    failing = [column for column in columns if not reading.succeeds([column])]
    readable = [column for column in columns if column not in failing]
    for column in failing:
        yield _counted(reading, column, readable)
    if not failing:
        yield Failure(reading.table, "", reading.file)


def _counted(reading: _Reading, column: str, readable: list[str]) -> Failure:
    """Return the failure of a column, with bounds of the number of its rows from halved ranges of another column's values."""
    failure = Failure(reading.table, column, reading.file)
    types = {name: reading.policy.tables[reading.table].columns[name].type for name in readable}
    ordered = [name for name in readable if types[name] in _ORDERED]
    if not ordered:
        return failure
    unit = reading.policy.unit_column(reading.table)
    by = unit if unit in ordered and not reading.policy.unit_joins(reading.table) else ordered[0]
    counts = reading.counts(by)
    total = sum(rows for _, rows in counts)
    if not counts:
        return failure
    least = most = 0
    filled = len(counts) - (counts[-1][0] is None)
    waiting = [part for part in ((filled, len(counts)), (0, filled)) if part[0] < part[1]]
    while waiting:
        first, end = waiting.pop()
        if reading.number < MOST_READINGS and reading.succeeds([column], by, counts[first][0], counts[end - 1][0]):
            continue
        middle = (first + end) // 2
        if end - first > 1 and reading.number < MOST_READINGS:
            waiting += [(middle, end), (first, middle)]
        else:
            least += 1 if reading.number < MOST_READINGS else 0
            most += sum(rows for _, rows in counts[first:end])
    return Failure(reading.table, column, reading.file, max(least, 1), max(most, 1), total)


@dataclass
class _Reading:
    """Readings of one table, or of one of its files. `number`: how many there were."""

    policy: Policy
    engine: Engine
    table: str
    file: str = ""
    number: int = field(default=0)

    def _typed(self, column: str) -> str:
        """Return a column in the type of the policy, as every question reads it."""
        text, source = self.engine.dialect, self.engine.source(self.table)
        type_ = Type(self.policy.tables[self.table].columns[column].type)
        return text.cast_column(f"s0.{text.identifier(column)}", type_, source.types[column])

    def succeeds(self, columns: list[str], by: str = "", first: Any = None, last: Any = None) -> bool:
        """Return whether columns can be read: of all rows or, with `by`, of those in which that column is from `first` to `last`
        (NULL if both are None). Every value is hashed, so that no engine can leave it out."""
        self.number += 1
        text = self.engine.dialect
        names = [text.identifier(f"c{number}") for number in range(len(columns))]
        items = [f"{self._typed(column)} AS {name}" for column, name in zip(columns, names, strict=True)]
        condition = ""
        if by:
            key = self._typed(by)
            both = f"{key} BETWEEN {text.constant(first)} AND {text.constant(last)}"
            condition = f" WHERE {key} IS NULL" if first is None else f" WHERE {both}"
        rows = text.derived(f"SELECT {', '.join(items)} FROM {self.engine.source(self.table).sql} AS s0{condition}")
        smaller = text.truth_value(f"{text.keyed_order(_KEY, names)} < {text.keyed_order(_KEY, [])}")
        return _first_row(self.engine, f"SELECT coalesce(sum({smaller}), 0) AS m0 FROM {rows}") is not None

    def cells(self, columns: list[str], most: int | None) -> tuple[int, dict[str, tuple[int, int]]]:
        """Return the number of rows, of at most `most`, and each column's filled and unreadable cells; nothing if unreadable."""
        text, source = self.engine.dialect, self.engine.source(self.table)
        items, sums = ["1 AS n0"], ["coalesce(sum(n0), 0) AS n0"]
        for number, column in enumerate(columns):
            stored = f"s0.{text.identifier(column)}"
            stored_type = stored_as(source.types[column])[0]
            is_text = stored_type in _TEXTS
            filled = f"{stored} IS NOT NULL" + (f" AND trim({stored}) <> ''" if is_text else "")
            if stored_type.lower() in _FLOATS:
                filled += f" AND NOT {text.is_nan(stored)}"
            typed = self._typed(column)
            is_real = is_text and self.policy.tables[self.table].columns[column].type == "real"
            lost = f"({typed} IS NULL OR {text.is_nan(typed)})" if is_real else f"{typed} IS NULL"
            unreadable = f"{filled} AND {lost}"
            for letter, condition in (("f", filled), ("u", unreadable)):
                items.append(f"CASE WHEN {condition} THEN 1 ELSE 0 END AS {letter}{number}")
                sums.append(f"coalesce(sum({letter}{number}), 0) AS {letter}{number}")
        limit = "" if most is None else f" LIMIT {most}"
        rows = text.derived(f"SELECT {', '.join(items)} FROM {source.sql} AS s0{limit}")
        row = _first_row(self.engine, f"SELECT {', '.join(sums)} FROM {rows}")
        if row is None:
            return 0, {}
        return int(row["n0"]), {
            column: (int(row[f"f{number}"]), int(row[f"u{number}"])) for number, column in enumerate(columns)
        }

    def values(self, column: str) -> str:
        """Return a SELECT of the different values of a column."""
        return f"SELECT DISTINCT {self._typed(column)} AS c0 FROM {self.engine.source(self.table).sql} AS s0"

    def counts(self, column: str) -> list[tuple[Any, int]]:
        """Return the values of a column in their order, each with its number of rows; NULL comes last."""
        text = self.engine.dialect
        rows = text.derived(f"SELECT {self._typed(column)} AS c0 FROM {self.engine.source(self.table).sql} AS s0")
        groups = self.engine.exact_rows(f"SELECT c0, count(*) AS m0 FROM {rows} GROUP BY c0 ORDER BY c0 NULLS LAST")
        return [(row["c0"], int(row["m0"])) for row in groups.to_pylist()]


def _first_row(engine: Engine, sql: str) -> dict[str, Any] | None:
    """Return the row of an aggregation; None if it cannot be read. Raises every error that is not one of reading."""
    try:
        rows: list[dict[str, Any]] = engine.exact_rows(sql).to_pylist()
    except Error as error:
        if error.slug != "engine_failed":
            raise
        return None
    return rows[0]
