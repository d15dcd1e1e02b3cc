"""Usefulness of a new policy: the error bars of a few questions, as EXPLAIN expects them from the policy alone.

The source is not opened. Each privacy unit is taken to have half of its `max_rows` rows, and groups to be equally large. Error
bars of counts do not depend on the rows; those of means do, through the sizes of groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dpsql.errors.exceptions import Error
from dpsql.ledger import ChargeRequest
from dpsql.ledger.accounts import Account
from dpsql.ledger.ledger import Reservation
from dpsql.ledger.windows import BudgetWindow, window_scope
from dpsql.policy import Policy, PolicyColumn, Table
from dpsql.storage.records import dataclass

_MOST_TABLES = 3
_ENGINE_TYPES = {
    "integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN", "date": "DATE", "timestamp": "TIMESTAMP",
}  # fmt: skip


@dataclass(frozen=True)
class _Question:
    table: str
    key: str | None
    number: str | None

    @property
    def sql(self) -> str:
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


def expected_errors(policy: Policy, people: int) -> Iterator[str]:
    """Yield sentences on the error bars of questions over `people` privacy units, and on how many such questions fit."""
    who = "rows" if policy.privacy_unit is None else "persons"
    yield f"\nExpected with {people:,} {who} (the data were not looked at):"
    protected = [table for table in policy.tables.values() if policy.is_protected(table.name)]
    for table in protected[:_MOST_TABLES]:
        question = _question(table)
        try:
            groups = len(table.columns[question.key].domain or (True, False)) if question.key else 1
            yield from _sentences(policy, question, max(1, people * (1 + (table.bounds.max_rows or 1)) // (2 * groups)))
        except Error as error:
            yield f"   {question.sql}: {error.message}"


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


def _sentences(policy: Policy, question: _Question, rows: int) -> Iterator[str]:
    import duckdb

    from dpsql.engine.registry import open_engine
    from dpsql.release.shape import rows_text
    from dpsql.session.session import Session

    connection, policy = duckdb.connect(), policy.over_memory()
    for name, table in policy.tables.items():
        columns = ", ".join(f'"{column.name}" {_ENGINE_TYPES[column.type]}' for column in table.columns.values())
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
    ledger: Any = OpenLedger()
    no_store: Any = None  # dp.reuse is off
    engine = open_engine(policy, connection)
    try:
        session = Session(policy, engine, ledger, no_store)
        options = session.options.with_value("reuse", "off", policy)
        session.options = options.with_value("assume_rows", str(rows), policy)
        plan = session.explain(question.sql)
        price = session.budget().price(session.planner.accountant.units(plan.loss))
    finally:
        engine.close()
    of_table = f"of {question.table}{f' by {question.key}' if question.key else ''}"
    for measure, error in zip(("the number of rows", f"the mean {question.number}"), plan.errors, strict=False):
        if error.most is None:
            yield f"   {measure} {of_table}: {error.reason}"
            continue
        sized = f", in groups with {rows_text(rows)}" if error.assumed_rows and question.key else ""
        yield f"   {measure} {of_table} would be known to about {_two_digits(error.most)}{sized}"
    if price is not None:
        yield f"   {price.times:,} such questions fit the budget: {question.sql}"


def _two_digits(width: float) -> str:
    return f"\N{PLUS-MINUS SIGN} {float(f'{width:.2g}'):,.10g}"


# --- a ledger for sessions whose charges nobody pays: those here, and the audit's -------------------------------------


class OpenLedger:
    """A ledger in memory that accepts every charge."""

    witness = SimpleNamespace(key=b"audit" * 8, directory=Path(tempfile.gettempdir()) / "no-such-ledger")

    def __init__(self) -> None:
        self.charges: list[dict[str, int]] = []
        self._limits: dict[str, dict[str, int]] = {}

    def hold_unit(self, unit: str) -> None:
        """Accept any privacy unit."""

    def open_account(self, scope: str, accountant: str, limits: Mapping[str, int]) -> None:
        self._limits[scope] = dict(limits)

    def open_window(self, window: BudgetWindow) -> None:
        """Record the limits of one budget window and of all windows together."""
        self._limits[window_scope(window.start)] = dict(window.limits)
        self._limits["dataset"] = dict(window.in_all or window.limits)

    def reserve(self, request: ChargeRequest) -> Reservation:
        self.charges.append(dict(request.charge))
        return Reservation(self.resolve, request, len(self.charges), self.accounts())

    def resolve(self, seq: int, outcome: str, note: str) -> None:
        """Accept any outcome."""

    def find(self, request_id: str) -> None:
        """Return None: no earlier request was charged."""

    def accounts(self) -> dict[str, Account]:
        """Return accounts that show nothing as spent."""
        return {s: Account(s, "any", limits, dict.fromkeys(limits, 0), 0) for s, limits in self._limits.items()}
