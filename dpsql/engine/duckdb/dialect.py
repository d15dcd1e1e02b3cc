"""DuckDB's dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpsql.engine.dialect import Dialect
from dpsql.engine.duckdb import literals
from dpsql.engine.duckdb.functions import FUNCTIONS
from dpsql.plan.intervals import Type


class DuckDBDialect(Dialect):
    """DuckDB 1.4 and later."""

    name = "duckdb"
    title = "DuckDB"
    types = literals.TYPES
    functions = FUNCTIONS
    takes_parameters = True

    def constant(self, value: Any) -> str:
        return literals.constant(value)

    def cast_column(self, source: str, type_: Type, engine_type: str) -> str:
        return literals.cast_column(source, type_, engine_type)

    def released(self, result: str) -> str:
        """Return the name of a released table, which only one cursor can see."""
        return f"temp.main.{self.identifier(result)}"

    def is_nan(self, value: str) -> str:
        return f"isnan({value})"

    def unsigned_zero(self, value: str) -> str:
        return f"{value} + 0e0::DOUBLE"

    def real_key(self, value: str) -> str:
        return f"(CASE WHEN isnan({value}) THEN 'nan'::DOUBLE ELSE {value} + 0e0::DOUBLE END)"

    def sign_of(self, value: str) -> str:
        """Return whether a number is negative; false for NaN. A question cannot see the sign of NaN, and some versions of
        DuckDB (1.4) lose it when they sort."""
        return f"(signbit({value}) AND NOT isnan({value}))"

    def moved_to_grid(self, value: str, lower: float, upper: float, centre: float, grid: int, type_: str) -> str:
        """Return the unclamped value on the grid. Subtraction is monotone and the scaling exact, so order is kept, and doubles
        never raise."""
        moved = value if centre == 0 else f"({value} - {self.constant(centre)})"
        return f"({moved} * {self.constant(2.0**grid)})"

    def wide(self, value: str) -> str:
        return f"CAST({value} AS HUGEINT)"

    def narrow(self, value: str) -> str:
        return f"TRY_CAST({value} AS BIGINT)"

    def truth_value(self, condition: str) -> str:
        return f"CAST({condition} AS BIGINT)"

    def whole_quotient(self, dividend: str, divisor: str) -> str:
        return f"{dividend} // {divisor}"

    def derived(self, select: str, alias: str = "#rows") -> str:
        return f"({select})"

    def semi_join(self, rows: str, listed: str, column: str) -> str:
        return f"{rows} SEMI JOIN ({listed}) USING ({column})"

    def keyed_order(self, key: str, content: list[str]) -> str:
        """Return the keyed hash of `content`. The engine combines the hashes of arguments by XOR, which would leave units few
        different orders of the same values, so the result is hashed once more."""
        return f"hash(hash({', '.join([self.constant(key), *content])}))"

    def sample_number(self, key: str, content: list[str], samples: int) -> str:
        return f"CAST({self.keyed_order(key, content)} % CAST({samples} AS UBIGINT) AS BIGINT)"

    def entropy(self, value: str) -> str:
        """Return log2(n) minus the mean of log2 of each row's count. The sum adds integers, so it is independent of order."""
        part = "CAST(round(CAST(c AS DOUBLE) * log2(CAST(c AS DOUBLE)) * 1048576e0) AS HUGEINT)"
        counts = f"map_values(histogram({value}))"
        total = f"list_sum(list_transform({counts}, lambda c: {part}))"
        rows = f"CAST(count({value}) AS DOUBLE)"
        return f"CASE WHEN count({value}) > 0 THEN log2({rows}) - CAST({total} AS DOUBLE) / 1048576e0 / {rows} END"

    def distinct_sum(self, value: str, condition: str, integer: Callable[[str], str]) -> str:
        return f"list_sum(list_transform(list(DISTINCT {value}){condition}, lambda e: {integer('e')}))"


DUCKDB = DuckDBDialect()
