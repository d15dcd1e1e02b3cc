"""Lists of quantiles: the same numbers as single calls, and list values in every format."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.exact_session import exact_session
from support.gates import NoiselessGate

from answers.test_quantiles import POLICIES, visits_in_february
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.frontends.rendering import formats
from dpsql.plan.intervals import Type
from dpsql.planning.planner import Planner
from dpsql.policy import load_policy
from dpsql.pricing.options import Options
from dpsql.pricing.pricing import Price
from dpsql.session.session import Session

LISTS = (
    "SELECT ward, QUANTILE_DISC(day, [0.25, 0.5, 0.75]) AS days, APPROX_QUANTILES(nights, 2) AS nights, "
    "PERCENTILE_CONT(ARRAY[0.5]) WITHIN GROUP (ORDER BY cost) AS cost, COUNT(*) AS n FROM visits GROUP BY ward "
    "HAVING COUNT(*) > 100"
)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("DPSQL_STATE", str(tmp_path))
    return exact_session("hospital", visits_in_february(), tmp_path / "ledger.db", NoiselessGate(1))


def test_a_list_has_the_numbers_of_its_calls_in_the_order_that_is_written(session: Session) -> None:
    sql = (
        "SELECT QUANTILE_DISC(day, [0.75, 0.25, 0.5]) AS l, QUANTILE_DISC(day, 0.25) AS a, QUANTILE_DISC(day, 0.5) AS b, "
        "PERCENTILE_DISC(0.75) WITHIN GROUP (ORDER BY day) AS c FROM visits"
    )
    ((listed, first, middle, third),) = session.execute(sql).rows()
    assert listed == [third, first, middle] and first < middle < third


def test_a_list_costs_what_its_calls_cost_in_one_select() -> None:
    policy = load_policy(POLICIES / "hospital.yaml")
    planner = Planner(policy, DuckDBEngine(duckdb.connect(), policy, "test", owned=True))

    def price(sql: str) -> Price:
        return planner.plan(planner.parse(sql, None), Options.of_policy(policy), True).price

    listed = price("SELECT QUANTILE_DISC(cost, [0.1, 0.5, 0.9]) FROM visits")
    apart = price("SELECT QUANTILE_DISC(cost, 0.9), QUANTILE_CONT(cost, 0.5), QUANTILE_DISC(cost, 0.1) FROM visits")
    assert listed.loss == apart.loss and len(listed.blocks[0].noise.charged) == 2
    first, second = ([law for _, law in plan.blocks[0].noise.measurements[0].laws] for plan in (listed, apart))
    assert first == second and len(first) == 3


def test_equal_parts_are_ascending_from_the_smallest_to_the_largest(session: Session) -> None:
    ((days,),) = session.execute("SELECT APPROX_QUANTILES(day, 7) FROM visits").rows()
    assert days == sorted(days) and (days[0], days[-1], len(days)) == (date(2024, 2, 1), date(2024, 2, 28), 8)


def test_a_list_is_a_column_of_its_own_type_in_every_format(session: Session, tmp_path: Path) -> None:
    release = session.execute(LISTS)
    types = [Type.TEXT, Type.DATE_LIST, Type.INTEGER_LIST, Type.REAL_LIST, Type.INTEGER]
    assert [column.type for column in release.columns] == types
    assert release.table.schema.field("cost").type == pa.list_(pa.float64())
    ((ward, days, nights, cost, rows),) = release.rows()
    assert (ward, nights, rows) == ("er", [2, 2, 2], 280) and cost == [1.0]
    assert days == [date(2024, 2, 7), date(2024, 2, 14), date(2024, 2, 21)]
    assert list(release.to_pandas()["nights"][0]) == nights

    def written(format_: str) -> str:
        out = io.StringIO()
        formats.write_text(release, out, format_, bars=True)
        return out.getvalue()

    ((_, text, *_),) = list(csv.reader(io.StringIO(written("csv"))))[1:]
    assert text == "[2024-02-07, 2024-02-14, 2024-02-21]"
    answer: dict[str, Any] = json.loads(written("json"))
    assert answer["rows"][0]["days"] == ["2024-02-07", "2024-02-14", "2024-02-21"]
    assert [column["type"] for column in answer["columns"]][1:4] == ["date[]", "integer[]", "real[]"]
    assert "[2024-02-07, 2024-02-14, 2024-02-21]" in written("table") and "[2, 2, 2]" in written("table")
    formats.write_file(release, tmp_path / "a.parquet", "parquet", bars=True)
    assert pq.read_table(tmp_path / "a.parquet")["days"].to_pylist() == [days]
