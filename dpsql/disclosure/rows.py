"""The rows of one protected table as a local table: a person's number, and the chosen columns, in SQL types."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import duckdb

from dpsql.engine.contract import Engine
from dpsql.engine.emit.bounded_view import bounded_view
from dpsql.errors.exceptions import refuse
from dpsql.errors.suggestions import suggestion
from dpsql.plan.plan import UNIT
from dpsql.policy import Policy, PolicyColumn, Table

PERSON = "#person"
"""Column of the local table: a number for each privacy unit, which is each row if the unit is the row."""
ROWS = "#rows"
"""Column of the local table: the number of source rows that agree in everything else."""


class PersonRows:
    """Distinct rows of a table by person, in memory. Close it, or use it as a context manager.

    `columns`: the columns of the policy that were read, by name; `rows`, `persons`: their numbers; `ownerless`: the number of
    rows that belong to no person, which are left out, as in questions.
    """

    def __init__(self, policy: Policy, engine: Engine, table: str, columns: tuple[str, ...]) -> None:
        """Read the table. Raises Refusal for names that the policy does not contain, and Fault if the source fails."""
        declared = _protected(policy, table)
        self.table = declared.name
        self.columns: dict[str, PolicyColumn] = {}
        for name in columns:
            column = declared.column(name)
            if column is None:
                raise refuse(
                    "risk_no_column", column=name, table=declared.name, hint=suggestion(name, declared.columns)
                )
            self.columns[column.name] = column
        text, alone = engine.dialect, policy.privacy_unit is None
        names = [text.identifier(name) for name in self.columns]
        unit = [] if alone else [text.identifier(UNIT)]
        view = bounded_view(text, policy, engine.source, declared.name)
        listed = ", ".join([*names, *unit])
        fetched = engine.exact_rows(
            f"SELECT {listed}, COUNT(*) AS {text.identifier(ROWS)} FROM {text.derived(view.every)} GROUP BY {listed}"
        )
        self._local = duckdb.connect(":memory:")
        self._local.register("fetched", fetched)
        self._number_persons(alone)
        self.rows, self.persons = self._first_row(f'SELECT SUM("{ROWS}")::BIGINT, COUNT(DISTINCT "{PERSON}") FROM rows')
        self.rows = self.rows or 0
        nobodys = f'SELECT SUM("{ROWS}") FILTER (WHERE "{UNIT}" IS NULL)::BIGINT FROM fetched'
        self.ownerless = 0 if alone else self._first_row(nobodys)[0] or 0
        self._local.unregister("fetched")
        most = self._first_row(f'SELECT MAX(n) FROM (SELECT COUNT(*) AS n FROM rows GROUP BY "{PERSON}")')[0]
        self.one_row_each = (most or 1) == 1

    def _number_persons(self, alone: bool) -> None:
        names = ", ".join(quoted(name) for name in self.columns)
        if alone:  # each row is a person
            number = f'unnest(range("{ROWS}")) AS copy'
            source = f'SELECT {names}, 1 AS "{ROWS}" FROM (SELECT {names}, {number}, "{ROWS}" FROM fetched)'
            self._local.execute(f'CREATE TABLE rows AS SELECT *, row_number() OVER () AS "{PERSON}" FROM ({source})')
            return
        person = f'dense_rank() OVER (ORDER BY "{UNIT}") AS "{PERSON}"'
        self._local.execute(
            f'CREATE TABLE rows AS SELECT {names}, "{ROWS}", {person} FROM fetched WHERE "{UNIT}" IS NOT NULL'
        )

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Return rows of a query over the local table `rows`."""
        return self._local.execute(sql).fetchall()

    def _first_row(self, sql: str) -> tuple[Any, ...]:
        return self.fetch(sql)[0]

    def close(self) -> None:
        """Close the local database, and drop the rows."""
        self._local.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def quoted(name: str) -> str:
    """Return a name as an identifier for queries on the local table."""
    return '"' + name.replace('"', '""') + '"'


def _protected(policy: Policy, name: str) -> Table:
    table = policy.table(name)
    if table is None:
        raise refuse("risk_no_table", table=name, hint=suggestion(name, policy.tables))
    if table.public:
        raise refuse("risk_public_table", table=table.name)
    return table
