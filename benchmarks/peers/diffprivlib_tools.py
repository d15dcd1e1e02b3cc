"""Quantiles of arrays with diffprivlib. It has no notion of users or groups; both are composed here by its own rules."""

from __future__ import annotations

from typing import Any

import duckdb
from diffprivlib import tools


class Peer:
    """The amounts of every region as arrays."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts
        connection = duckdb.connect()
        rows = connection.execute(f"SELECT region, amount FROM read_parquet('{facts['data']}')").fetchnumpy()
        regions, self._amounts = rows["region"], rows["amount"]
        self._by_region = {region: self._amounts[regions == region] for region in facts["regions"]}

    def ask(self, question: str) -> list[tuple[list[Any], list[Any]]]:
        """Return the rows of a query. A user with k rows costs k times the epsilon of one row (group privacy), in any regions,
        because regions share no row."""
        keys, shares = self._facts["quantiles"][question]
        epsilon = self._facts["epsilon"] / self._facts["max_rows"]
        bounds = (0, self._facts["upper"])
        arrays = self._by_region if keys else {None: self._amounts}
        return [
            (
                [key] if keys else [],
                [*map(float, tools.quantile(values, shares, epsilon=epsilon, bounds=bounds).ravel())],
            )
            for key, values in arrays.items()
        ]
