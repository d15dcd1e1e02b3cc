"""Qrlew: it rewrites the query to SQL that adds the noise itself, and an in-memory DuckDB runs it."""

from __future__ import annotations

from typing import Any

import duckdb
import sqlalchemy
from pyqrlew import Dialect
from pyqrlew.wrappers import Dataset, _Dataset

QUESTIONS = {
    "Q1": (0, "SELECT count(*) AS n FROM purchases"),
    "Q2": (0, "SELECT sum(amount) AS total FROM purchases"),
    "Q3": (0, "SELECT avg(amount) AS mean FROM purchases"),
    "Q4": (
        1,
        "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases GROUP BY region",
    ),
    "Q5": (2, "SELECT region, day, count(*) AS n, sum(amount) AS total FROM purchases GROUP BY region, day"),
    "Q6": (1, "SELECT region, count(DISTINCT user_id) AS users FROM purchases GROUP BY region"),
    "Q7": (1, "SELECT merchant, count(*) AS n FROM purchases GROUP BY merchant"),
    "Q9": (1, "SELECT region, count(*) AS n FROM purchases GROUP BY region"),
    "Q10": (1, "SELECT region, count(*) AS n FROM purchases GROUP BY region"),
    "Q11": (1, "SELECT region, sum(amount) AS total FROM purchases GROUP BY region"),
    "Q12": (1, "SELECT region, avg(amount) AS mean FROM purchases GROUP BY region"),
}
EMPTY = (
    "CREATE TABLE purchases (user_id bigint NOT NULL, region varchar NOT NULL, day varchar NOT NULL, "
    "merchant varchar NOT NULL, amount float, items integer)"
)


class Peer:
    """The data in DuckDB, their schema from an empty SQLite table, and one rewritten text per query."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts
        self._connection = duckdb.connect()
        columns = "user_id, region, CAST(day AS VARCHAR) AS day, merchant, amount, items"
        source = f"SELECT {columns} FROM read_parquet('{facts['data']}')"
        self._connection.execute(f"CREATE TABLE purchases AS {source}")
        engine = sqlalchemy.create_engine("sqlite://")
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text(EMPTY))
        shape = Dataset.from_database("benchmark", engine)._dataset
        known = '"multiplicity": 1.0'
        size = shape.size.replace(known, f'"size": "{facts["rows"]}", {known}')
        described = {part.partition(": ")[0]: part.partition(": ")[2] for part in str(shape).splitlines()}
        dataset = Dataset(_Dataset(described["Dataset"], described["Schema"], size))
        dataset = dataset.with_range(None, "purchases", "amount", 0.0, float(facts["upper"]))
        if not facts["private"]:
            dataset = dataset.with_possible_values(None, "purchases", "region", facts["regions"])
        self._dataset = dataset.with_possible_values(None, "purchases", "day", facts["days"])
        self._texts: dict[str, str] = {}

    def ask(self, question: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the rows of a query; its text is rewritten once."""
        keys, sql = QUESTIONS[question]
        if question not in self._texts:
            self._texts[question] = self._rewritten(sql)
        found = self._connection.execute(self._texts[question]).fetchall()
        return [(list(row[:keys]), list(row[keys:])) for row in found]

    def _rewritten(self, sql: str) -> str:
        by_row = self._facts["level"] == "row"
        unit = "_PRIVACY_UNIT_ROW_" if by_row else "user_id"
        relation = self._dataset.relation(sql).rewrite_with_differential_privacy(
            dataset=self._dataset,
            privacy_unit=[("purchases", [], unit)],
            epsilon_delta={"epsilon": self._facts["epsilon"], "delta": self._facts["delta"]},
            max_multiplicity=1.0 if by_row else float(self._facts["max_rows"]),
            max_multiplicity_share=1.0,
            max_privacy_unit_groups=1 if by_row else self._facts["max_rows"],
        )
        if "NoOp" in str(relation.dp_event()):
            raise ValueError("the rewritten query adds no noise")
        return str(relation.relation().to_query(Dialect.PostgreSql))
