"""OpenDP's Polars interface over an in-memory data frame; quantiles through its underlying scores and noisy choice."""

from __future__ import annotations

from typing import Any

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


class Peer:
    """A data frame; every query gets a separate context with the whole budget of one query."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts
        self._rows = pl.read_parquet(facts["data"])
        regions, days = (pl.LazyFrame({name: facts[f"{name}s"]}) for name in ("region", "day"))
        days = days.with_columns(pl.col("day").str.to_date())
        self._candidates = [
            [facts["upper"] * place / steps for place in range(steps + 1)] for steps in facts.get("cells", ())
        ]
        self._choices: dict[Any, Any] = {}
        self._regions, self._cells = regions, regions.join(days, how="cross")

    def ask(self, question: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the rows of a query. AVG is the quotient of a sum and a count, as in OpenDP's own examples."""
        amount = pl.col("amount")
        total = amount.fill_null(0.0).dp.sum((0.0, float(self._facts["upper"]))).alias("total")
        count, known = dp.len(signed=True).alias("n"), amount.dp.count(signed=True).alias("known")
        if question in self._facts["quantiles"]:
            return self._quantiles(*self._facts["quantiles"][question])
        query = self._query(question)
        if question in ("Q1", "Q2"):
            return _rows(query.select(count if question == "Q1" else total).release().collect(), 0)
        if question == "Q3":
            found = query.select(total, known).release().collect()
            return _rows(found.select(pl.col("total") / pl.col("known")), 0)
        if question == "Q4":
            found = query.group_by("region").agg(count, total, known).with_keys(self._regions).release().collect()
            return _rows(found.select("region", "n", "total", (pl.col("total") / pl.col("known")).alias("mean")), 1)
        if question == "Q5":
            found = query.group_by("region", "day").agg(count, total).with_keys(self._cells).release().collect()
            return _rows(found.select("region", "day", "n", "total"), 2)
        if question == "Q6":
            users = pl.col("user_id").dp.n_unique(signed=True)
            found = query.group_by("region").agg(users).with_keys(self._regions).release().collect()
            return _rows(found.select("region", "user_id"), 1)
        if question == "Q7":
            return _rows(query.group_by("merchant").agg(count).release().collect().select("merchant", "n"), 1)
        return self._by_region(query.group_by("region"), question, count, total, known)

    def _quantiles(self, keys: int, shares: list[float]) -> list[tuple[list[Any], list[Any]]]:
        """Return quantiles, each with an equal part of epsilon, calibrated to max_rows changed rows: regions share no row, so the
        losses of a user's rows add up to it. The candidates are dpsql's. Scores are computed once, because an answer through
        Polars takes seconds."""
        regions = self._facts["regions"] if keys else [None]
        epsilon = self._facts["epsilon"] / len(shares)
        return [
            ([region] if keys else [], [self._choice(region, share, epsilon) for share in shares]) for region in regions
        ]

    def _choice(self, region: str | None, share: float, epsilon: float) -> float:
        place, candidates = (region, share, epsilon), self._candidates[region is not None]
        if place not in self._choices:
            rows = self._rows if region is None else self._rows.filter(pl.col("region") == region)
            space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
            scores = space >> dp.t.then_quantile_score_candidates(candidates, share)

            def noisy(scale: float, space: Any = (scores.output_domain, scores.output_metric)) -> Any:
                return space >> dp.m.then_noisy_max(dp.max_divergence(), scale, negate=True)

            most = self._facts["max_rows"]
            scale = dp.binary_search_param(lambda scale: scores >> noisy(scale), d_in=most, d_out=epsilon, T=float)
            self._choices[place] = noisy(scale), scores(rows["amount"].to_list())
        choice, exact = self._choices[place]
        return float(candidates[choice(exact)])

    def _by_region(
        self, query: Any, question: str, count: Any, total: Any, known: Any
    ) -> list[tuple[list[Any], list[Any]]]:
        """Return one aggregate by region, under private or listed keys."""
        chosen = {"Q9": (count,), "Q10": (count,), "Q11": (total,), "Q12": (total, known)}[question]
        query = query.agg(*chosen)
        found = (query if self._facts["private"] else query.with_keys(self._regions)).release().collect()
        if question == "Q12":
            found = found.select("region", (pl.col("total") / pl.col("known")).alias("mean"))
        return _rows(found.select("region", pl.exclude("region")), 1)

    def _query(self, question: str) -> Any:
        """Return a query in a new context. Float sums become noisier with `max_length`, so it is ten times the mean group size of
        the question."""
        groups = {"Q1": 10, "Q2": 10, "Q3": 10, "Q5": self._cells.select(pl.len()).collect().item()}.get(question, 50)
        by_user = self._facts["level"] == "user"
        unit = dp.unit_of(contributions=1, identifier=pl.col("user_id")) if by_user else dp.unit_of(contributions=1)
        context = dp.Context.compositor(
            data=self._rows.lazy(),
            privacy_unit=unit,
            privacy_loss=self._loss(),
            split_evenly_over=1,
            margins=[dp.polars.Margin(max_length=10 * self._facts["rows"] // groups)],
        )
        query = context.query()
        return query.truncate_per_group(self._facts["max_rows"]) if by_user else query

    def _loss(self) -> Any:
        """Return (epsilon, delta), or the rho that implies them, for Gaussian noise."""
        if self._facts.get("rho"):
            return dp.loss_of(rho=self._facts["rho"])
        return dp.loss_of(epsilon=self._facts["epsilon"], delta=self._facts["delta"])


def _rows(found: pl.DataFrame, keys: int) -> list[tuple[list[Any], list[Any]]]:
    return [(list(row[:keys]), list(row[keys:])) for row in found.rows()]
