"""Usefulness of a new policy: the error bars of a few questions over rows that are made up from the policy alone.

The source is not opened. Rows are drawn evenly: each privacy unit has between one and `max_rows` rows, values lie anywhere
between their bounds, and listed values are equally frequent. Error bars of counts do not depend on the rows; those of means do,
through the sizes of groups.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from dpsql.errors.exceptions import Error
from dpsql.ledger import ChargeRequest
from dpsql.ledger.accounts import Account
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.windows import BudgetWindow, window_scope
from dpsql.policy import Policy, PolicyColumn, Table

if TYPE_CHECKING:
    import duckdb

    from dpsql.session.session import Session


_MOST_ROWS = 1_000_000
_MOST_TABLES = 3
_STEPS = 1_000_003
"""Number of values that numbers between two bounds take; a prime, so that they have no pattern in common with lists."""
_ENGINE_TYPES = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip
_WITHOUT_BOUNDS = {
    "integer": "0", "real": "0.5", "text": "'x'", "boolean": "TRUE", "date": "DATE '2024-01-01'",
    "timestamp": "TIMESTAMP '2024-01-01'",
}  # fmt: skip


@dataclass(frozen=True)
class _Question:
    table: str
    key: str | None
    number: str | None

    @property
    def sql(self) -> str:
        """Return the question in SQL."""
        keys = [_name(self.key)] if self.key else []
        measures = ["COUNT(*)", *([f"AVG({_name(self.number)})"] if self.number else [])]
        groups = f" GROUP BY {keys[0]}" if keys else ""
        return f"SELECT {', '.join([*keys, *measures])} FROM {_name(self.table)}{groups}"


@cache
def _keywords() -> frozenset[str]:
    import duckdb

    words = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'"
    with duckdb.connect() as connection:
        return frozenset(word for (word,) in connection.execute(words).fetchall())


def _name(name: str) -> str:
    """Return a name of the policy as an SQL identifier."""
    return f'"{name}"' if name.lower() in _keywords() else name


def simulated_errors(policy: Policy, people: int) -> Iterator[str]:
    """Yield sentences on the error bars of questions over `people` made-up privacy units, and on how many such questions fit."""
    questions = [_question(table) for table in policy.tables.values() if policy.is_protected(table.name)][:_MOST_TABLES]
    sizes = {question.table: _units_of(policy.tables[question.table], people) for question in questions}
    who = "rows" if policy.privacy_unit is None else "persons"
    made_up = f"{people:,} made-up rows" if policy.privacy_unit is None else f"made-up rows of {people:,} {who}"
    yield f"\nWith {made_up}, values spread evenly (the data were not looked at):"
    for question in questions:
        try:
            yield from _answered(policy, question, sizes[question.table])
        except Error as error:
            yield f"   {question.sql}: {error.message}"
        if sizes[question.table] < people:
            yield f"   (of {sizes[question.table]:,} {who} only; with all of them means are known better, counts as here)"


def _units_of(table: Table, people: int) -> int:
    """Return the number of units to make up, so that the table is expected to have at most `_MOST_ROWS` rows."""
    return max(1, min(people, 2 * _MOST_ROWS // ((table.bounds.max_rows or 1) + 1)))


def _question(table: Table) -> _Question:
    """Return a question that an analyst would ask first: a mean by the first column with listed values. A mean of numbers that
    are only 0 or 1, as codes often are, says little, so other numbers are preferred."""
    leads = {*table.primary_key, *table.foreign_keys}
    columns = [column for column in table.columns.values() if column.name not in leads]
    key = next((column for column in columns if column.domain), None)
    key = key or next((column for column in columns if column.type == "boolean"), None)
    numbers = [c for c in columns if c.type in ("integer", "real") and c.lower is not None and c is not key]
    number = next((c for c in numbers if not _is_code(c)), next(iter(numbers), None))
    return _Question(table.name, key.name if key else None, number.name if number else None)


def _is_code(column: PolicyColumn) -> bool:
    """Return whether a column has at most two values, both whole numbers."""
    lower, upper = column.lower, column.upper
    if column.type != "integer" or not isinstance(lower, (int, Fraction)) or not isinstance(upper, (int, Fraction)):
        return False
    return upper - lower < 2


def _answered(policy: Policy, question: _Question, people: int) -> Iterator[str]:
    from dpsql.engine.registry import open_engine

    with _made_up(policy, people) as connection:
        engine = open_engine(policy.over_memory(), connection)
        try:
            yield from _sentences(_session(policy.over_memory(), engine), question)
        finally:
            engine.close()


def _session(policy: Policy, engine: Any) -> Session:
    """Return a session that charges a ledger in memory and stores no release."""
    from dpsql.session.session import Session

    ledger: Any = OpenLedger()
    no_store: Any = None  # dp.reuse is off
    session = Session(policy, engine, ledger, no_store)
    session.options = session.options.with_value("reuse", "off", policy)
    return session


def _sentences(session: Session, question: _Question) -> Iterator[str]:
    plan = session.explain(question.sql)
    release = session.execute(question.sql)
    by = f" by {question.key}" if question.key else ""
    keys = release.table.column(0).to_pylist() if by else [""]
    noisy = [index for index, column in enumerate(release.columns) if column.noisy]
    for measure, index in zip(("the number of rows", f"the mean {question.number}"), noisy, strict=False):
        errors = release.error.column(index).to_pylist()
        bars = [error for key, error in zip(keys, errors, strict=True) if key is not None and error is not None]
        width = f"to about {_two_digits(statistics.median(bars))}" if bars else "in no group"
        yield f"   {measure} of {question.table}{by} would be known {width}"
    price = session.budget().price(session.planner.accountant.units(plan.loss))
    if price is not None:
        yield f"   {price.times:,} such questions fit the budget: {question.sql}"


def _two_digits(width: float) -> str:
    return f"\N{PLUS-MINUS SIGN} {float(f'{width:.2g}'):,.10g}"


# --- made-up rows ----------------------------------------------------------------------------------------------------


def _made_up(policy: Policy, people: int) -> duckdb.DuckDBPyConnection:
    """Return a database in memory with made-up rows of every table."""
    import duckdb

    connection = duckdb.connect()
    for name, table in policy.tables.items():
        units, most = (8, 1) if table.public else (people, table.bounds.max_rows or 1)
        most = min(most, max(1, 2 * _MOST_ROWS // units))
        columns = ", ".join(
            f'CAST({_value(policy, table, column)} AS {_ENGINE_TYPES[column.type]}) AS "{column.name}"'
            for column in table.columns.values()
        )
        per_unit = f"range(1 + CAST(hash(u, '{name}') % {most} AS BIGINT))"
        units_and_rows = f"(SELECT u, unnest({per_unit}) AS i FROM range({units}) AS numbers(u))"
        connection.execute(f'CREATE TABLE "{name}" AS SELECT {columns} FROM {units_and_rows} AS rows')
    return connection


def _value(policy: Policy, table: Table, column: PolicyColumn) -> str:
    """Return SQL for a column's value in row `i` of unit `u`."""
    unit = policy.privacy_unit
    target = table.foreign_keys.get(column.name)
    if unit is not None and target is not None and not policy.tables[target[0]].public:
        return "u" if target == (unit.table, unit.column) else f"(u * {_STEPS})"
    if unit is not None and (unit.table, unit.column) == (table.name, column.name):
        return "u"
    if _is_key(policy, table, column) and column.type in ("integer", "real", "text"):
        return f"(u * {_STEPS} + i)"
    word = f"CAST(hash(u, i, '{column.name}') % {_STEPS} AS BIGINT)"
    if column.domain:
        listed = [_literal(value, column) for value in column.domain if value is not None]
        return f"[{', '.join(listed)}][1 + {word} % {len(listed)}]" if listed else "NULL"
    if column.type == "boolean":
        return f"{word} % 2 = 0"
    if column.lower is None or column.upper is None:
        return _WITHOUT_BOUNDS[column.type]
    return _between(column, word)


def _is_key(policy: Policy, table: Table, column: PolicyColumn) -> bool:
    """Return whether a column is part of the primary key, or other tables refer to it."""
    referred = {target for other in policy.tables.values() for target in other.foreign_keys.values()}
    return column.name in table.primary_key or (table.name, column.name) in referred


def _between(column: PolicyColumn, word: str) -> str:
    """Return SQL for a value between the bounds of a column. `word`: SQL for a whole number below `_STEPS`."""
    low: Any = column.lower
    high: Any = column.upper
    if isinstance(low, date):
        seconds = int((high - low).total_seconds())
        step = f"to_seconds({word} * {seconds // _STEPS + 1} % {seconds + 1})"
        return f"({column.type.upper()} {_literal(low, column)} + {step})"
    value = f"({float(low)!r}::DOUBLE + {float(high - low)!r}::DOUBLE * {word} / {_STEPS - 1})"
    return f"round({value})" if column.type == "integer" else value


def _literal(value: Any, column: PolicyColumn) -> str:
    if isinstance(value, datetime):
        return f"'{value.isoformat(' ')}'"
    if isinstance(value, date) or column.type == "text":
        return "'" + str(value).replace("'", "''") + "'"
    return repr(float(value)) if column.type == "real" else json.dumps(int(value))


# --- a ledger for sessions over made-up rows, whose charges nobody pays: those here, and the audit's ------------------


class OpenLedger:
    """A ledger in memory that accepts every charge."""

    witness = SimpleNamespace(key=b"audit" * 8, directory=Path(tempfile.gettempdir()) / "no-such-ledger")

    def __init__(self) -> None:
        """Start without accounts."""
        self.charges: list[dict[str, int]] = []
        self._limits: dict[str, dict[str, int]] = {}

    def hold_unit(self, unit: str) -> None:
        """Accept any privacy unit."""

    def open_account(self, scope: str, accountant: str, limits: Mapping[str, int]) -> None:
        """Record the limits of the account."""
        self._limits[scope] = dict(limits)

    def open_window(self, window: BudgetWindow) -> None:
        """Record the limits of one budget window and of all windows together."""
        self._limits[window_scope(window.start)] = dict(window.limits)
        self._limits["dataset"] = dict(window.in_all or window.limits)

    def reserve(self, request: ChargeRequest) -> Reservation:
        """Record the charge and return it."""
        self.charges.append(dict(request.charge))
        return Reservation(self, request, len(self.charges), self.accounts())

    def resolve(self, seq: int, outcome: str, note: str) -> None:
        """Accept any outcome."""

    def find(self, request_id: str) -> None:
        """Return None: no earlier request was charged."""

    def accounts(self) -> dict[str, Account]:
        """Return accounts that show nothing as spent."""
        return {s: Account(s, "any", limits, dict.fromkeys(limits, 0), 0) for s, limits in self._limits.items()}
