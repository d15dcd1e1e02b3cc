"""A hospital in a DuckDB file with a policy: two protected tables with public keys, and its exact numbers."""

import os
from pathlib import Path

import duckdb

from support.database_files import create_database

POLICY = """
dataset: hospital
source: duckdb:///hospital.duckdb
privacy_unit: {table: patients, column: patient_id}
budget: {epsilon: 1000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9}
ledger: sqlite:///ledger.db
analysts: {ann: {epsilon: 500}, bob: {epsilon: 500}}
tables:
  patients:
    max_rows: 1
    primary_key: [patient_id]
    columns:
      patient_id: {type: integer, nullable: false}
      region: {type: text, domain: [north, south, west], nullable: false}
      plan: {type: text, domain: [free, pro, null]}
      smoker: {type: boolean, nullable: false}
      age: {type: integer, lower: 0, upper: 100}
      slot: {type: integer, domain: [SLOTS], nullable: false}
      ward: {type: integer, lower: 1, upper: 4, nullable: false}
      city: {type: text, nullable: false}
  visits:
    max_rows: 5
    foreign_keys: {patient_id: patients.patient_id}
    columns:
      kind: {type: text, domain: [in, out], nullable: false}
      cost: {type: real, lower: 0, upper: 1000, nullable: false}
""".replace("SLOTS", ", ".join(map(str, range(100))))

PATIENTS = """
CREATE TABLE patients AS SELECT i AS patient_id, ['north', 'south', 'west'][1 + i % 3] AS region,
  ['free', 'pro', NULL][1 + i % 7 % 3] AS plan, i % 4 = 0 AS smoker, 20 + i % 60 AS age, 1 + i % 6 AS ward,
  i % 100 AS slot, ['Linz', 'Graz', 'Wien'][1 + i % 3] AS city FROM range({count}) t(i)
"""
_VISITS = """
CREATE TABLE visits AS SELECT i % {count} AS patient_id, ['in', 'out'][1 + i % 2] AS kind, 10.0 * (i % 7) AS cost
FROM range(3 * {count}) t(i)
"""


def build_data(folder: Path, count: int = 1200) -> None:
    """Write the data to `folder`, replacing existing data. Wards 5 and 6 are outside the policy's bounds."""
    part = folder / "part.duckdb"
    create_database(part, f"{PATIENTS.format(count=count)};{_VISITS.format(count=count)}")
    os.replace(part, folder / "hospital.duckdb")


def write_policy(folder: Path, **lines: str) -> Path:
    """Write the policy to `folder` with further keys at the top, for example write_policy(f, reuse="{shared: false}")."""
    path = folder / "hospital.yaml"
    path.write_text("".join(f"{name}: {text}\n" for name, text in lines.items()) + POLICY)
    return path


def build(folder: Path, **lines: str) -> Path:
    """Write data and policy."""
    build_data(folder)
    return write_policy(folder, **lines)


def exact(folder: Path, sql: str) -> list[tuple[object, ...]]:
    """Return the engine's answer without privacy."""
    with duckdb.connect(str(folder / "hospital.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()
