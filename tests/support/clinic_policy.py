"""A small valid policy; each test changes one part of it."""

from __future__ import annotations

CLINIC = """\
dataset: clinic
source: duckdb:///clinic.duckdb
privacy_unit: {table: patients, column: patient_id}
neighbours: add_remove
budget: {epsilon: 10, delta: 1e-6, accountant: zcdp}
per_query: {epsilon: 0.1, max_epsilon: 1}
ledger: sqlite:///clinic-ledger.db
analysts: {research: {epsilon: 3}, bi: {epsilon: 5}}
session: {epsilon: 1}
tables:
  patients:
    max_rows: 1
    columns:
      patient_id: {type: integer}
      region: {type: text, domain: [north, south, null]}
      age: {type: integer, lower: 0, upper: 120}
      weight: {type: real, lower: 0.5, upper: 250}
      smoker: {type: boolean}
  visits:
    foreign_keys: {patient_id: patients.patient_id}
    primary_key: [visit_id]
    max_rows: 20
    columns:
      visit_id: {type: integer}
      cost: {type: real, lower: 0, upper: 5000}
      day: {type: date, lower: 2024-01-01, upper: 2025-12-31}
      seen: {type: timestamp, lower: 2024-01-01, upper: 2025-12-31 23:59}
  labs:
    foreign_keys: {visit_id: visits.visit_id}
    max_rows: 100
    columns: {value: {type: real, lower: 0, upper: 10}}
  regions:
    public: true
    primary_key: region
    max_multiplicity: {name: 3}
    columns: {region: {type: text}, name: {type: text}}
"""
