"""SmartNoise SQL over an in-memory DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
from snsql import Privacy
from snsql.sql import PrivateReader
from snsql.sql.reader.postgres import PostgresReader

TABLE = "public.purchases"
QUESTIONS = {
    "Q1": (0, f"SELECT count(*) AS n FROM {TABLE}"),
    "Q2": (0, f"SELECT sum(amount) AS total FROM {TABLE}"),
    "Q3": (0, f"SELECT avg(amount) AS mean FROM {TABLE}"),
    "Q4": (
        1,
        f"SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM {TABLE} GROUP BY region",
    ),
    "Q5": (2, f"SELECT region, bought, count(*) AS n, sum(amount) AS total FROM {TABLE} GROUP BY region, bought"),
    "Q6": (1, f"SELECT region, count(DISTINCT user_id) AS users FROM {TABLE} GROUP BY region"),
    "Q7": (1, f"SELECT merchant, count(*) AS n FROM {TABLE} GROUP BY merchant"),
    "Q9": (1, f"SELECT region, count(*) AS n FROM {TABLE} GROUP BY region"),
    "Q10": (1, f"SELECT region, count(*) AS n FROM {TABLE} GROUP BY region"),
    "Q11": (1, f"SELECT region, sum(amount) AS total FROM {TABLE} GROUP BY region"),
    "Q12": (1, f"SELECT region, avg(amount) AS mean FROM {TABLE} GROUP BY region"),
}
"""Number of leading key columns, and the text. `day` is a keyword of SmartNoise's grammar, so the column has another name."""


class Peer:
    """One database, and readers with and without the censoring of rare keys (public keys need none)."""

    def __init__(self, facts: dict[str, Any]) -> None:
        connection = duckdb.connect()
        connection.execute("CREATE SCHEMA IF NOT EXISTS public")
        connection.execute(
            f"CREATE TABLE {TABLE} AS SELECT * RENAME (day AS bought) FROM read_parquet('{facts['data']}')"
        )
        self._connection = connection
        self._facts = facts
        self._readers: dict[str, Any] = {}

    def ask(self, question: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the rows of a query. The budget of one query is divided by the price that SmartNoise itself states."""
        if self._facts.get("rho"):
            raise ValueError("Laplace noise only where one user has several rows")
        keys, sql = QUESTIONS[question]
        if question not in self._readers:
            parts = self._reader(question, 1.0).get_privacy_cost(sql)[0]
            self._readers[question] = self._reader(question, self._facts["epsilon"] / parts)
        _, *rows = self._readers[question].execute(sql)
        return [(list(row[:keys]), list(row[keys:])) for row in rows]

    def _reader(self, question: str, epsilon: float) -> Any:
        by_row = self._facts["level"] == "row"
        table = {
            "row_privacy": by_row, "max_ids": 1 if by_row else self._facts["max_rows"], "sample_max_ids": not by_row,
            "censor_dims": question in ("Q7", "Q9"), "clamp_counts": False, "clamp_columns": True, "use_dpsu": False,
            "user_id": {"type": "int", "private_id": not by_row}, "region": {"type": "string"},
            "bought": {"type": "datetime"}, "merchant": {"type": "string"},
            "amount": {"type": "float", "lower": 0, "upper": self._facts["upper"], "nullable": True},
        }  # fmt: skip
        meta = {"": {"public": {"purchases": table}}}
        privacy = Privacy(epsilon=epsilon, delta=self._facts["delta"])
        return PrivateReader(_OverDuckDB(self._connection), meta, privacy=privacy)


class _OverDuckDB(PostgresReader):  # type: ignore[misc]
    """A reader for DuckDB, which accepts SQL written for PostgreSQL but has no transaction to roll back."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        super().__init__(conn=connection)

    def execute(self, query: str, *ignore: Any, accuracy: bool = False) -> list[tuple[Any, ...]]:
        cursor = self.conn.cursor()
        cursor.execute(str(query))
        return [tuple(column[0] for column in cursor.description), *cursor.fetchall()]
