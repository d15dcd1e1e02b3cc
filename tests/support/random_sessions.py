"""Random tables with a policy, and random queries over them that often can be answered from each other's stored releases.

Rows satisfy the policy's promises (`nullable: false`, `domain`), on which answers from the store rely; values exceed bounds, are
NaN, infinite or missing.
"""

import math
import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa

TYPES = {
    "pid": pa.int64(), "kind": pa.string(), "word": pa.string(), "x": pa.int64(), "w": pa.int64(), "y": pa.float64(),
    "z": pa.float64(), "flag": pa.bool_(), "day": pa.date32(), "seen": pa.timestamp("us"),
}  # fmt: skip
KINDS, WORDS = ("p", "q", "r"), ("a", "b", "")
ODD = (0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324)
DAYS = [date(2024, 1, 1) + timedelta(days=number) for number in range(12)]


class RandomTable:
    """A table `events` of a few people, its policy, and the public table `kinds`."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"table {seed}")
        self.by_rows = self.random.random() < 0.4
        self.columns = self._columns()
        people = self.random.choice((0, 8, 20, 20))
        self.rows = [self._row(person) for person in range(people) for _ in range(self.random.randint(0, 6))]

    def policy(self, seed: int) -> dict[str, Any]:
        """Return the policy as the owner's file would state it."""
        bounds: dict[str, Any] = {"max_rows": 1 if self.by_rows else 6}
        if not self.by_rows:
            for name in self.random.sample(
                ("max_groups", "max_rows_per_group", "max_values"), self.random.choice((0, 0, 1))
            ):
                bounds[name] = self.random.choice((1, 2))
        kinds = {"kind": {"type": "text"}, "weight": {"type": "integer", "lower": 0, "upper": 9}}
        return {
            "dataset": f"sessions{seed}", "source": "duckdb:///none.duckdb", "data_version": "first",
            "privacy_unit": "row" if self.by_rows else {"table": "events", "column": "pid"},
            "budget": {"epsilon": 10000, "delta": "0.0001", "accountant": self.random.choice(("pure", "zcdp"))},
            "per_query": {"epsilon": 1, "delta": "0.0000001"}, "ledger": "sqlite:///ledger.db",
            "tables": {
                "events": {**bounds, "columns": self.columns},
                "kinds": {"public": True, "unique": [["kind"]], "columns": kinds},
            },
        }  # fmt: skip

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return a database with both tables."""
        connection = duckdb.connect(config={"threads": 1})
        rows = pa.Table.from_pylist(self.rows, pa.schema(list(TYPES.items())))
        connection.register("given", rows)
        connection.execute("CREATE TABLE events AS SELECT * FROM given")
        connection.execute(
            "CREATE TABLE kinds AS SELECT * FROM (VALUES ('p', 1), ('q', NULL), (NULL, 7)) AS t(kind, weight)"
        )
        return connection

    def _columns(self) -> dict[str, dict[str, Any]]:
        bounds: dict[str, tuple[Any, Any]] = {"x": (0, 9), "w": (-4, 12), "y": (-5, 5), "z": (0, 100)}
        columns: dict[str, dict[str, Any]] = {"pid": {"type": "integer", "nullable": False}}
        for name, type_ in (("x", "integer"), ("w", "integer"), ("y", "real"), ("z", "real")):
            columns[name] = {"type": type_}
            if self.random.random() < 0.8:
                columns[name] |= dict(zip(("lower", "upper"), bounds[name], strict=True))
        columns |= {
            "kind": {"type": "text", "domain": list(KINDS)},
            "word": {"type": "text"},
            "flag": {"type": "boolean"},
        }
        columns["day"] = {"type": "date", "lower": "2024-01-01", "upper": "2024-01-12"}
        columns["seen"] = {"type": "timestamp", "lower": "2024-01-01 00:00:00", "upper": "2024-01-03 00:00:00"}
        for name in columns:
            columns[name].setdefault("nullable", self.random.random() < 0.5)
        return columns

    def _row(self, person: int) -> dict[str, Any]:
        values: dict[str, Any] = {
            "pid": person, "kind": self.random.choice(KINDS), "word": self.random.choice(WORDS), "x": self.random.randint(-1, 12),
            "w": self.random.randint(-6, 14), "flag": self.random.random() < 0.5, "day": self.random.choice(DAYS),
            "seen": datetime(2024, 1, 1) + timedelta(hours=self.random.randint(0, 60)),
            **{name: self.random.choice((*ODD, *range(-6, 12), 2.5, 99.75)) for name in ("y", "z")},
        }  # fmt: skip
        missing = [name for name, column in self.columns.items() if column["nullable"] and self.random.random() < 0.15]
        return values | dict.fromkeys(missing)


class SessionQuestions:
    """A generator of queries over few keys, conditions and aggregates, so that stored releases often answer later queries."""

    def __init__(self, source: random.Random, columns: dict[str, dict[str, Any]]) -> None:
        self.random = source
        self.columns = columns
        self.source = self._choice("events", "events", "events JOIN kinds USING (kind)")
        keys = ("kind", "flag", "day", "word", "x > 4", "coalesce(kind, 'none')", "date_trunc('day', seen)")
        self.keys = self.random.sample(keys, 3)
        self.conditions = [
            *self.random.sample(CONDITIONS, 4), f"{self.keys[0]} IS NOT NULL", "kind = 'p'", "kind IN ('p', 'q')",
        ]  # fmt: skip
        self.values = [self._value() for _ in range(3)]
        self.aggregates = ["COUNT(*)", *(self._aggregate() for _ in range(8))]

    def question(self) -> str:
        """Return a query with many aggregates and several keys, or one with fewer of both."""
        rich = self.random.random() < 0.4
        keys = self.random.sample(self.keys, self._choice(1, 2, 3) if rich else self._choice(0, 1, 1))
        aggregates = self.random.sample(self.aggregates, self._choice(3, 5) if rich else 1)
        if not rich and "[" not in aggregates[0] and self.random.random() < 0.2:
            aggregates = [f"{aggregates[0]} FILTER (WHERE {self.random.choice(self.conditions)})"]
        conditions = self.random.sample(self.conditions, self._choice(0, 0, 0, 1) if rich else self._choice(0, 0, 1, 2))
        items = [f"{text} AS c{number}" for number, text in enumerate([*keys, *aggregates])]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {', '.join(items)} FROM {self.source}{where}{f' GROUP BY {chr(44).join(keys)}' if keys else ''}"

    def setting(self) -> str:
        """Return a statement that changes an option."""
        name, values = self.random.choice(SETTINGS)
        return f"SET dp.{name} = '{self.random.choice(values)}'"

    def _choice(self, *of: Any) -> Any:
        return self.random.choice(of)

    def _value(self) -> str:
        column = self._choice("x", "w", "y", "z")
        low, high = self._choice((0, 5), (-2, 3), (1, 9))
        bare = "lower" in self.columns[column] and self.random.random() < 0.7
        return column if bare else f"clamp({column}, {low}, {high})"

    def _aggregate(self) -> str:
        value, other = self.random.choice(self.values), self.random.choice(self.values)
        column = self.random.choice(list(self.columns))
        pair = self._choice("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_COUNT", "REGR_AVGX")
        return str(self._choice(
            f"COUNT({value})", f"COUNT({column})", f"SUM({value})", f"AVG({value})", f"VAR_POP({value})", f"STDDEV_SAMP({value})",
            f"{pair}({value}, {other})", f"{pair}({value}, {other})", f"COUNT(DISTINCT {column})", f"SUM(DISTINCT {value})",
            f"MEDIAN({value})", f"MAX({value})", "MODE(kind)", f"QUANTILE_CONT({value}, [0.25, 0.5])",
        ))  # fmt: skip


CONDITIONS: Sequence[str] = (
    "x > 3", "w IS NOT NULL", "y <= 2.5", "flag", "day >= DATE '2024-01-05'", "word <> ''", "z > 1 OR x = 2", "x IS NULL",
)  # fmt: skip
SETTINGS: Sequence[tuple[str, Sequence[str]]] = (
    ("mechanism", ("auto", "laplace", "gaussian")), ("max_groups", ("none", "1", "2")), ("max_rows_per_group", ("none", "1")),
    ("max_total", ("none", "6")), ("max_count", ("none", "2")), ("max_values", ("none", "1", "2")), ("epsilon", ("1", "0.5")),
    ("workload", ("off", "on", "running")), ("quantile_bars", ("off", "on")), ("target_error", ("none", "none", "40")),
)  # fmt: skip
