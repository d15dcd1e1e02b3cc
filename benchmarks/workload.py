"""Queries of the timed workload."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """`sql` runs unchanged on both sides.

    `counted`: the query for plain DuckDB that also determines which merchants may be shown if users are the privacy units.
    """

    name: str
    title: str
    sql: str
    counted: str = ""


WORKLOAD = (
    Question("Q1", "COUNT", "SELECT count(*) AS n FROM purchases"),
    Question("Q2", "SUM", "SELECT sum(amount) AS total FROM purchases"),
    Question("Q3", "AVG", "SELECT avg(amount) AS mean FROM purchases"),
    Question(
        "Q4",
        "COUNT, SUM, AVG by 50 regions",
        "SELECT region, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM purchases GROUP BY region",
    ),
    Question(
        "Q5",
        "COUNT, SUM by region and day (18,250 groups)",
        "SELECT region, day, count(*) AS n, sum(amount) AS total FROM purchases GROUP BY region, day",
    ),
    Question(
        "Q6",
        "COUNT DISTINCT users by region",
        "SELECT region, count(DISTINCT user_id) AS users FROM purchases GROUP BY region",
    ),
    Question(
        "Q7",
        "COUNT by 10,000 private merchants",
        "SELECT merchant, count(*) AS n FROM purchases GROUP BY merchant",
        "SELECT merchant, count(*) AS n, count(DISTINCT user_id) AS users FROM purchases GROUP BY merchant",
    ),
    Question("Q8", "MEDIAN by region", "SELECT region, median(amount) AS middle FROM purchases GROUP BY region"),
)
