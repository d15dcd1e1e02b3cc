"""PipelineDP with its local backend over Python tuples (user, region, day, merchant, amount, row)."""

from __future__ import annotations

from typing import Any

import duckdb
import pipeline_dp

USER, REGION, DAY, MERCHANT, AMOUNT, ROW = range(6)
COUNT, SUM, MEAN = pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN
QUESTIONS: dict[str, tuple[tuple[int, ...], list[Any]]] = {
    "Q1": ((), [COUNT]), "Q2": ((), [SUM]), "Q3": ((), [MEAN]), "Q4": ((REGION,), [COUNT, SUM, MEAN]),
    "Q5": ((REGION, DAY), [COUNT, SUM]), "Q6": ((REGION,), [pipeline_dp.Metrics.PRIVACY_ID_COUNT]),
    "Q7": ((MERCHANT,), [COUNT]), "Q9": ((REGION,), [COUNT]), "Q10": ((REGION,), [COUNT]), "Q11": ((REGION,), [SUM]),
    "Q12": ((REGION,), [MEAN]),
}  # fmt: skip
"""Columns of the key, and the metrics in the order of the query's columns."""


class Peer:
    """Rows in memory; every query gets a separate accountant with the whole budget of one query."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts
        listed = "user_id, region, CAST(day AS VARCHAR), merchant, coalesce(amount, 0)"
        text = f"SELECT {listed}, row_number() OVER (), amount IS NULL FROM read_parquet('{facts['data']}')"
        rows = duckdb.connect().execute(text).fetchall()
        self._rows = [row[:-1] for row in rows]
        self._rows_with_amount = [row[:-1] for row in rows if not row[-1]]

    def ask(self, question: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the rows of a query. PipelineDP has no NULL: a mean alone uses only rows with an amount; next to a count of all
        rows, a missing amount counts as 0."""
        ranked = question in self._facts["quantiles"]
        if ranked:
            keys, shares = self._facts["quantiles"][question]
            columns, metrics = (REGION,) * keys, [pipeline_dp.Metrics.PERCENTILE(round(100 * q)) for q in shares]
        else:
            columns, metrics = QUESTIONS[question]
        by_user = self._facts["level"] == "user"
        if question == "Q6" and not by_user:
            raise ValueError("counts privacy units only, no values of another column")
        facts = self._facts
        public = {
            (): [()], (REGION,): [(region,) for region in facts["regions"]],
            (REGION, DAY): [(region, day) for region in facts["regions"] for day in facts["days"]],
        }.get(columns)  # fmt: skip
        if facts["private"]:
            public = None
        bounds: dict[str, int] = {"max_partitions_contributed": 1, "max_contributions_per_partition": 1}
        if by_user:
            bounds = {"max_contributions": facts["max_rows"]}
            if not columns or MEAN in metrics:
                bounds = _apart(facts, columns)
            elif ranked:  # a user's three rows in twenty regions seldom share one
                bounds = {"max_partitions_contributed": facts["max_rows"], "max_contributions_per_partition": 1}
            if question == "Q6":
                bounds = {"max_partitions_contributed": len(facts["regions"]), "max_contributions_per_partition": 1}
            if public is None:
                bounds = _apart(facts, columns)
        values = (
            {} if not ranked and metrics[0] not in (COUNT, SUM, MEAN) else {"min_value": 0, "max_value": facts["upper"]}
        )
        noise = pipeline_dp.NoiseKind.GAUSSIAN if facts.get("rho") else pipeline_dp.NoiseKind.LAPLACE
        params = pipeline_dp.AggregateParams(metrics=metrics, noise_kind=noise, **bounds, **values)
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=facts["epsilon"], total_delta=facts["delta"])
        extractors = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[USER if by_user else ROW],
            partition_extractor=lambda row: tuple(row[column] for column in columns),
            value_extractor=lambda row: row[AMOUNT],
        )
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        rows = self._rows_with_amount if metrics == [MEAN] else self._rows
        found = engine.aggregate(rows, params, extractors, public_partitions=public)
        accountant.compute_budgets()
        names = [f"percentile_{round(100 * q)}" for q in shares] if ranked else [m.name.lower() for m in metrics]
        return [(list(key), [getattr(values, name) for name in names]) for key, values in found]


def _apart(facts: dict[str, Any], columns: tuple[int, ...]) -> dict[str, int]:
    """Return bounds on keys and on rows per key, for use where a bound on all rows of a user is not available (MEAN, private
    keys).

    Their product equals that bound. Few rows of a user share a region and none share a merchant, so two and one drop the fewest.
    """
    keys = {(): 1, (MERCHANT,): facts["max_rows"]}.get(columns, facts["max_rows"] // 2)
    return {"max_partitions_contributed": keys, "max_contributions_per_partition": facts["max_rows"] // keys}
