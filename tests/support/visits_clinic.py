"""Patients with unequal numbers of visits and values that are hard to order: duplicates, NULLs, both zeros and NaN."""

import random
from pathlib import Path
from typing import Any

import duckdb

import dpsql
from dpsql.engine.contribution_index import ContributionIndex
from dpsql.engine.duckdb.engine import DuckDBEngine
from dpsql.engine.emit.emitter import Emitter
from dpsql.engine.query import EngineQuery
from dpsql.policy import Policy
from dpsql.session.session import Session

POLICY = """
dataset: {name}
source: {source}
privacy_unit: {{table: patients, column: patient_id}}
budget: {{epsilon: 10000, delta: 1e-6, accountant: zcdp}}
per_query: {{epsilon: 1, delta: 1e-9}}
ledger: sqlite:///{name}-ledger.db
tables:
  patients:
    max_rows: 2
    primary_key: [patient_id]
    columns:
      patient_id: {{type: text}}
      region: {{type: text, domain: [north, south, east]}}
  visits:
    max_rows: {most}
    primary_key: [visit_id]
    foreign_keys: {{patient_id: patients.patient_id}}
    columns:
      visit_id: {{type: integer}}
      cost: {{type: real, lower: -50, upper: 50}}
      ward: {{type: text, domain: [a, b, c]}}
      day: {{type: date, lower: 2024-01-01, upper: 2024-01-10}}
  labs:
    max_rows: {most}
    foreign_keys: {{visit_id: visits.visit_id}}
    columns: {{value: {{type: integer, lower: 0, upper: 9}}}}
"""
QUESTIONS = (
    "SELECT count(*) AS n, sum(cost) AS s, avg(cost) AS a FROM visits",
    "SELECT ward, count(*) AS n, sum(cost) AS s, count(DISTINCT patient_id) AS u FROM visits GROUP BY ward",
    "SELECT ward, count(DISTINCT patient_id) FILTER (WHERE cost > 0) AS u, stddev(cost) AS d FROM visits GROUP BY ward",
    "SELECT count(DISTINCT patient_id) AS u, count(DISTINCT cost) AS c FROM visits",
    "SELECT cost, count(*) AS n FROM visits GROUP BY cost",
    "SELECT round(cost) AS r, count(*) AS n FROM visits GROUP BY r",
    "SELECT day, count(*) AS n FROM visits WHERE ward <> 'b' GROUP BY day",
    "SELECT sum(value) AS s, count(DISTINCT v.patient_id) AS u FROM labs l JOIN visits v ON l.visit_id = v.visit_id",
    "SELECT region, count(*) AS n, avg(cost) AS a FROM visits v JOIN patients p ON v.patient_id = p.patient_id "
    "GROUP BY region",
    "SELECT avg(t.s) AS a FROM (SELECT patient_id, clamp(sum(cost), -50, 50) AS s FROM visits GROUP BY patient_id) t",
    "SELECT ward, sum(cost) AS s FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE cost > 10) "
    "GROUP BY ward",
)
_COSTS = ["0.0", "-0.0", "NULL", "'nan'::DOUBLE", "-('nan'::DOUBLE)", "1.5", "1.5", "-3.25", "60.0", "'inf'::DOUBLE"]


def rows(seed: int, patients: int = 40) -> dict[str, list[str]]:
    """Return the rows of each table as SQL tuples. A patient has 0 to 12 visits, which may be equal except for their number."""
    chance = random.Random(seed)
    found: dict[str, list[str]] = {"patients": [], "visits": [], "labs": []}
    visit = 0
    for number in range(patients):
        found["patients"].append(f"('p{number}', '{chance.choice(['north', 'south', 'east', 'west'])}')")
        for _ in range(chance.randrange(13)):
            visit += 1
            ward, day = chance.choice(["'a'", "'b'", "'c'", "'d'", "NULL"]), chance.randrange(1, 12)
            found["visits"].append(
                f"('p{number}', {visit}, {chance.choice(_COSTS)}, {ward}, DATE '2024-01-01' + {day})"
            )
            found["labs"] += [f"({visit}, {chance.randrange(12)})"] * chance.randrange(3)
    found["visits"].append("(NULL, 999999, 1.0, 'a', DATE '2024-01-02')")
    return found


def fill(file: Path, tables: dict[str, list[str]]) -> None:
    """Write a DuckDB file with the rows, replacing its contents."""
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE patients (patient_id TEXT, region TEXT)")
        connection.execute("CREATE TABLE visits (patient_id TEXT, visit_id INTEGER, cost DOUBLE, ward TEXT, day DATE)")
        connection.execute("CREATE TABLE labs (visit_id INTEGER, value INTEGER)")
        for table, values in tables.items():
            if values:
                connection.execute(f"INSERT INTO {table} VALUES {', '.join(values)}")


def clinic(folder: Path, most: int = 4, name: str = "clinic", source: str = "duckdb:///clinic.duckdb") -> Path:
    """Write the policy and return its path."""
    path = folder / f"{name}.yaml"
    path.write_text(POLICY.format(name=name, most=most, source=source))
    return path


def open_clinic(policy: Path, source: Any = None) -> Session:
    """Return a session that reuses no releases; its ledger is created if there is none. `source`: as for `open_session`."""
    new = not (policy.parent / f"{policy.stem}-ledger.db").exists()
    session = dpsql.open_session(policy, source=source, create_ledger=new)
    session.execute("SET dp.reuse = off")
    return session


def index_of(session: Session) -> ContributionIndex:
    """Return the index of a session's policy and data."""
    return ContributionIndex(session.policy, session.context.engine, lambda: session.ledger.witness.key)


def exact(session: Session, sql: str) -> list[list[tuple[str, ...]]]:
    """Return the exact rows of each block as the engine computes them, sorted as text."""
    planned = session.plan(session.planner.parse(sql, None))
    emitter = Emitter(
        session.policy, session.context.engine.dialect, session.context.engine.source, index_of(session).views()
    )
    found = []
    for one in planned.price.blocks:
        table = session.context.engine.run(emitter.block(one.block)).unseal()
        # Groups outside public domains are never released, so a prepared view need not compute them.
        public = {key.name: {str(value) for value in key.values} for key in one.block.keys if key.values is not None}
        listed = [row for row in table.to_pylist() if all(str(row[name]) in there for name, there in public.items())]
        # A public group without rows is released as one of zeros, whether or not the engine names it.
        kept = [row for row in listed if not public or any(row[term.name] for term in one.block.terms)]
        found.append(sorted((tuple(map(str, row.values())) for row in kept), key=str))
    return found


def engine_sql(session: Session, sql: str) -> str:
    """Return the engine's SQL as EXPLAIN shows it."""
    return "\n".join(text for _, text in session.explain(sql).engine_sql)


def engine_of(session: Session) -> DuckDBEngine:
    """Return the engine of a session over DuckDB."""
    engine = session.context.engine
    assert isinstance(engine, DuckDBEngine)
    return engine


def written(
    session: Session, sql: str, index: ContributionIndex | None = None, policy: Policy | None = None
) -> EngineQuery:
    """Return the SQL of a query's first block over the current prepared views of `index` (None: the session's)."""
    engine = engine_of(session)
    views = (index or index_of(session)).views()
    block = session.plan(session.planner.parse(sql, None)).price.blocks[0].block
    return Emitter(policy or session.policy, engine.dialect, engine.source, views).block(block)
