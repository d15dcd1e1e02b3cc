"""A small clinic in a DuckDB file with a policy, for tests that run the complete pipeline."""

from pathlib import Path

from support.database_files import create_database

POLICY = """
dataset: clinic
source: duckdb:///clinic.duckdb
privacy_unit: {{table: patients, column: patient_id}}
budget: {{epsilon: {epsilon}, delta: 1e-6, accountant: pure}}
per_query: {{epsilon: 1, delta: 1e-9, timeout_seconds: 30}}
ledger: sqlite:///ledger.db
analysts: {{research: {{epsilon: {epsilon}}}, bi: {{epsilon: 2}}}}
tables:
  patients:
    max_rows: 1
    primary_key: [patient_id]
    columns:
      patient_id: {{type: integer, nullable: false}}
      region: {{type: text, domain: [north, south], nullable: false}}
      age: {{type: integer, lower: 0, upper: 120}}
      weight: {{type: real, lower: 0, upper: 300}}
  visits:
    max_rows: 5
    foreign_keys: {{patient_id: patients.patient_id}}
    columns: {{cost: {{type: real, lower: 0, upper: 1000}}}}
"""
DATA = """
CREATE TABLE patients AS SELECT i AS patient_id, ['north', 'south'][1 + i % 2] AS region, 20 + i % 60 AS age,
    50.0 + i % 50 AS weight FROM range(1000) t(i);
CREATE TABLE visits AS SELECT i % 1000 AS patient_id, 10.0 * (i % 7) AS cost FROM range(3000) t(i);
"""


def build(folder: Path, epsilon: int = 1000) -> Path:
    """Write the data and the policy file to `folder`."""
    create_database(folder / "clinic.duckdb", DATA)
    path = folder / "clinic.yaml"
    path.write_text(POLICY.format(epsilon=epsilon))
    return path
