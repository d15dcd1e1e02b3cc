"""Small in-memory tables to export, with their own policy and session."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import yaml

from dpsql.policy import load_policy
from dpsql.session.session import Session, open_session

PEOPLE: dict[str, Any] = {
    "patient_id": {"type": "integer", "nullable": False},
    "region": {"type": "text", "domain": ["north", "south", "east"], "nullable": False},
    "ward": {"type": "text", "domain": ["A", "B"]},
    "job": {"type": "text", "domain": [f"job {number}" for number in range(25)], "nullable": False},
    "age": {"type": "integer", "lower": 0, "upper": 100},
    "weight": {"type": "real", "lower": 0, "upper": 200, "nullable": False},
    "grade": {"type": "integer", "domain": [1, 2, 3, 4], "nullable": False},
    "day": {"type": "date", "lower": "2024-01-01", "upper": "2024-01-31", "nullable": False},
    "note": {"type": "text"},
    "born": {"type": "timestamp"},
    "fixed": {"type": "integer", "lower": 3, "upper": 3},
    "wide": {"type": "integer", "lower": -9000000000000000000, "upper": 9000000000000000000, "nullable": False},
    "alone": {"type": "text", "domain": ["only"], "nullable": False},
}


def policy_facts(**changed: Any) -> dict[str, Any]:
    """Return a policy with people (one row each), visits (up to five) and public wards."""
    return {
        "dataset": "clinic",
        "privacy_unit": {"table": "people", "column": "patient_id"},
        "budget": {"epsilon": 1000, "delta": 1e-6, "accountant": "pure"},
        "per_query": {"epsilon": 1},
        "ledger": "sqlite:///ledger.db",
        "analysts": {"research": {"epsilon": 5}},
        "tables": {
            "people": {"max_rows": 1, "primary_key": ["patient_id"], "columns": PEOPLE},
            "visits": {
                "max_rows": 5,
                "foreign_keys": {"patient_id": "people.patient_id"},
                "columns": {"kind": {"type": "text", "domain": ["in", "out"], "nullable": False}},
            },
            "wards": {"public": True, "columns": {"ward": {"type": "text"}}},
        },
        **changed,
    }


def people(count: int) -> pa.Table:
    """Return `count` people; every third has no ward, every fifth no age."""
    return duckdb.sql(
        f"""SELECT i AS patient_id, ['north', 'south', 'east', 'elsewhere'][1 + i % 4] AS region,
        CASE WHEN i % 3 = 0 THEN NULL ELSE ['A', 'B'][1 + i % 2] END AS ward, 'job ' || (i % 25) AS job,
        CASE WHEN i % 5 = 0 THEN NULL ELSE 20 + i % 60 END AS age, CAST(50 + i % 50 AS DOUBLE) AS weight, 1 + i % 4 AS grade,
        DATE '2024-01-01' + (i % 31)::INTEGER AS day, 'x' AS note, TIMESTAMP '2000-01-01' AS born, 3 AS fixed,
        (i - {count} // 2) * 1000000000000 AS wide, 'only' AS alone FROM range({count}) t(i)"""
    ).to_arrow_table()


def visits(people_count: int, each: int) -> pa.Table:
    """Return `each` visits for every person."""
    return duckdb.sql(
        f"SELECT i % {max(1, people_count)} AS patient_id, ['in', 'out'][1 + i % 2] AS kind "
        f"FROM range({people_count * each}) t(i)"
    ).to_arrow_table()


def export_session(
    folder: Path, count: int, *, analyst: str | None = None, each: int = 7, rows: dict[str, pa.Table] | None = None,
    **changed: Any,
) -> Session:  # fmt: skip
    """A session on `count` people; `changed`: keys of the policy."""
    place = folder / "clinic.yaml"
    place.write_text(yaml.safe_dump(policy_facts(**changed)))
    policy = load_policy(place)
    rows = rows or {"people": people(count), "visits": visits(count, each), "wards": pa.table({"ward": ["A"]})}
    return open_session(policy, analyst=analyst, source=rows, create_ledger=not (folder / "ledger.db").exists())
