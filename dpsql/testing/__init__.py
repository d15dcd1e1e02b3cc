"""Contract tests of engines: what a session requires of one. Each engine inherits them with pytest, and supplies a source.

```python
from dpsql.testing import EngineContract, Loaded, contract_policy

class TestMine(EngineContract):
    @pytest.fixture
    def source(self, tmp_path): ...  # PEOPLE, VISITS and WARDS in a source of its own
```

A subclass defines the fixture `source`: a `Loaded` engine over the tables `people` (unit), `visits` and the public `wards`.
"""

from __future__ import annotations

import copy
import json
import pickle
import threading
import time
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from dpsql.disclosure import PersonRows, generalisations, measure_risk
from dpsql.engine.contract import Engine
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import EngineQuery, View
from dpsql.errors.exceptions import Error, Fault
from dpsql.plan.plan import Promise
from dpsql.planning.planner import Planner
from dpsql.policy import Policy, parse_policy
from dpsql.policy.versions import named_state
from dpsql.pricing.options import Options

POLICY: dict[str, Any] = {
    "dataset": "contract",
    "privacy_unit": {"table": "people", "column": "id"},
    "budget": {"epsilon": 100, "delta": 1e-4, "accountant": "pure"},
    "per_query": {"epsilon": 1, "delta": 1e-9},
    "ledger": "sqlite:///contract.db",
    "tables": {
        "people": {
            "max_rows": 1,
            "primary_key": ["id"],
            "columns": {
                "id": {"type": "integer", "nullable": False},
                "height": {"type": "real", "lower": 0, "upper": 3},
            },
        },
        "visits": {
            "max_rows": 3,
            "foreign_keys": {"id": "people.id"},
            "columns": {
                "id": {"type": "integer", "nullable": False},
                "ward": {"type": "text", "domain": ["a", "b"]},
                "day": {"type": "date", "lower": "2024-01-01", "upper": "2024-12-31"},
                "cost": {"type": "integer", "lower": 0, "upper": 10**15},
            },
        },
        "wards": {
            "public": True,
            "primary_key": ["ward"],
            "columns": {"ward": {"type": "text", "nullable": False}, "beds": {"type": "integer"}},
        },
    },
}
PEOPLE = [(1, 1.5), (2, 2.5), (3, None)]
VISITS = [
    (1, "a", date(2024, 1, 1), 5), (1, "b", date(2024, 2, 1), 10**15), (2, "a", None, 7), (2, None, date(2024, 3, 1), None),
    (3, "a", date(2024, 4, 1), 10**15), (None, "a", date(2024, 4, 1), 1),
]  # fmt: skip
WARDS = [("a", 10), ("b", None)]
SECRET = "CANARY-8f3a"


@dataclass
class Loaded:
    """An engine over the rows above, its policy, and ways to change the source without the engine's knowledge."""

    policy: Policy
    engine: Engine
    slow: str
    """A SELECT that runs for minutes."""
    broken: str
    """A SELECT that fails with an error that quotes `SECRET`."""
    execute: Any
    """A function that runs a statement as the owner."""


class EngineContract:
    """Tests that every engine inherits."""

    def query(self, source: Loaded, sql: str) -> EngineQuery:
        """Return the engine's SQL for the single block of a query."""
        planner = Planner(source.policy, source.engine)
        planned = planner.plan(planner.parse(sql, None), Options.of_policy(source.policy), False)
        emitter = Emitter(source.policy, source.engine.dialect, source.engine.source, lambda table: View("k" * 64))
        return emitter.measurement(planned.price.blocks[0].block)

    def rows(self, source: Loaded, sql: str) -> pa.Table:
        return source.engine.run(self.query(source, sql)).unseal()

    def test_exact_integers_come_back_as_arrow(self, source: Loaded) -> None:
        table = self.rows(source, "SELECT ward, COUNT(*) FROM visits GROUP BY ward")
        assert [field.type for field in table.schema] == [pa.string(), pa.int64()]
        assert dict(zip(*(column.to_pylist() for column in table.columns), strict=True)) == {"a": 3, "b": 1, None: 1}
        (total,) = self.rows(source, "SELECT SUM(cost) FROM visits").columns
        assert total.type in (pa.int64(), pa.decimal128(38, 0)) and int(total[0].as_py()) == 2 * 10**15 + 12

    def test_no_group_is_an_empty_table_with_its_columns(self, source: Loaded) -> None:
        query = self.query(
            source, "SELECT diag, COUNT(*) FROM (SELECT day AS diag FROM visits WHERE cost < -5) AS t GROUP BY 1"
        )
        table = source.engine.run(query).unseal()
        assert (table.num_rows, table.num_columns) == (0, len(query.keys) + len(query.terms))

    def test_sums_beyond_64_bits_are_exact(self, source: Loaded) -> None:
        values = " UNION ALL ".join([f"SELECT {source.engine.dialect.constant(2**63 - 1)} AS v"] * 3)
        sums = f"SELECT coalesce({source.engine.dialect.exact_sum('v')}, 0) AS m0 FROM {source.engine.dialect.derived(values)}"
        table = source.engine.run(EngineQuery(sums, (), ("m0",))).unseal()
        assert int(table.column("m0")[0].as_py()) == 3 * (2**63 - 1)

    def test_an_answer_is_sealed(self, source: Loaded) -> None:
        answer = source.engine.run(self.query(source, "SELECT COUNT(*) FROM visits"))
        assert "5" not in repr(answer)
        for leak in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                leak(answer)

    def test_a_released_table_is_read_beside_the_source(self, source: Loaded) -> None:
        hard = ["a", "quote ' \" \\ {,}", "é\n\t", "", None]
        rows = pa.table(
            {"c0": pa.array(hard, pa.string()), "c1": pa.array([1, None, -(2**63), 2**63 - 1, 0], pa.int64())}
        )
        name = source.engine.dialect.released("result")
        query = EngineQuery(f"SELECT c0 AS k0, c1 AS m0 FROM {name}", ("k0",), ("m0",), released={"result": rows})
        assert sorted(source.engine.run(query).unseal().to_pylist(), key=repr) == sorted(
            [{"k0": k, "m0": m} for k, m in zip(hard, rows["c1"].to_pylist(), strict=True)], key=repr
        )

    def test_an_error_of_the_engine_quotes_nothing(self, source: Loaded) -> None:
        for ask in (
            lambda: source.engine.run(EngineQuery(source.broken, (), ("m0",))),
            lambda: source.engine.holds(source.broken),
            lambda: source.engine.public_table(source.broken),
        ):
            with pytest.raises(Fault) as fault:
                ask()
            assert fault.value.slug == "engine_failed" and fault.value.incident
            assert SECRET not in fault.value.text() and fault.value.__cause__ is None
        assert int(self.rows(source, "SELECT COUNT(*) FROM visits").column(0)[0].as_py()) == 5

    def test_a_query_ends_at_its_deadline(self, source: Loaded) -> None:
        started = time.monotonic()
        with pytest.raises(Fault):
            source.engine.run(EngineQuery(source.slow, (), ("m0",)), 0.3)
        assert time.monotonic() - started < 20

    def test_interrupt_stops_the_queries_of_this_engine_alone(self, source: Loaded) -> None:
        other, outcomes = source.engine.another(), []

        def run() -> None:
            try:
                source.engine.run(EngineQuery(source.slow, (), ("m0",)))
            except Error as error:
                outcomes.append(error.slug)

        thread = threading.Thread(target=run)
        thread.start()
        time.sleep(0.5)
        other.interrupt()
        thread.join(0.7)
        assert thread.is_alive() and outcomes == []
        while thread.is_alive():
            source.engine.interrupt()
            thread.join(0.05)
        assert outcomes == ["engine_failed"]
        assert int(self.rows(source, "SELECT COUNT(*) FROM visits").column(0)[0].as_py()) == 5

    def test_a_promise_holds_or_is_broken(self, source: Loaded) -> None:
        emitter = Emitter(source.policy, source.engine.dialect, source.engine.source)
        assert source.engine.holds(emitter.promise(Promise("people", ("id",), 1)))
        assert not source.engine.holds(emitter.promise(Promise("visits", ("id",), 1)))
        assert source.engine.holds(emitter.promise(Promise("visits", ("id",), 2)))

    def test_domains_and_rows_of_public_tables_are_read_up_to_a_limit(self, source: Loaded) -> None:
        assert source.engine.public_domains("wards", 2) == {"ward": ("a", "b"), "beds": (10, None)}
        assert source.engine.public_domains("wards", 1) == {}
        names, rows = source.engine.public_rows("wards", 2) or ((), ())
        assert (names, sorted(rows)) == (("ward", "beds"), [("a", 10), ("b", None)])
        assert source.engine.public_rows("wards", 1) is None
        sql = f"SELECT {source.engine.dialect.identifier('beds')} AS b FROM {source.engine.source('wards').sql}"
        assert sorted(source.engine.public_table(sql).column("b").to_pylist(), key=repr) == [10, None]

    def test_disclosure_risk_is_counted_on_the_source_itself(self, source: Loaded) -> None:
        with PersonRows(source.policy, source.engine, "visits", ("ward", "day", "cost")) as rows:
            report = measure_risk(rows, ("ward",), ("day",))
            assert (report.persons, report.rows, report.ownerless) == (3, 5, 1)
            assert report.sizes.persons_by_size == ((1, 2), (3, 1))
            assert (report.diversity[0].distinct, report.diversity[0].disclosed) == (1, 2)
            assert [entry.information for entry in generalisations(rows, ("ward", "cost"), 3)] == [0.0]

    def test_a_look_finds_a_table_that_is_gone(self, source: Loaded) -> None:
        source.engine.check_readable(("visits", "wards"))
        source.execute("DROP TABLE visits")
        with pytest.raises(Fault) as fault:
            source.engine.check_readable(("visits",))
        assert fault.value.slug == "source_table_missing" and source.engine.columns("visits") is None

    def test_nothing_can_be_written(self, source: Loaded) -> None:
        visits = source.engine.source("visits").sql
        for statement in (f"DELETE FROM {visits}", f"DROP TABLE {visits}", f'CREATE TABLE {visits[:-1]}2" (a INTEGER)'):
            with pytest.raises(Error):
                source.engine.run(EngineQuery(statement, (), ("m0",)))
        assert int(self.rows(source, "SELECT COUNT(*) FROM visits").column(0)[0].as_py()) == 5

    def test_an_unchanged_source_has_one_version_if_any(self, source: Loaded) -> None:
        versions = {source.engine.data_version(("visits",)) for _ in range(3)}
        assert len(versions) == 1 or (len(versions) == 3 and named_state(source.policy) is None)

    def test_a_view_without_an_identity_is_never_prepared(self, source: Loaded) -> None:
        identity = source.engine.identity("visits")
        assert identity is None or identity.text


def contract_policy(folder: Any, **more: Any) -> Policy:
    """Return the policy of the tables above in a folder; `more`: its source, and whatever else differs."""
    return parse_policy(json.dumps({**POLICY, **more}), folder=folder)
