"""One table of values inside and outside their bounds, for tests of sums that share each row (`pricing.joint_sums`).

All rows are in cell 1; the other 3,999 cells are groups without rows, so their answers are pure noise.
"""

from pathlib import Path

import duckdb

from dpsql.session.session import Session, open_session
from support.database_files import create_database

GROUPS = 4_000
"""The number of cells of the policy's domain."""
_VALUES = "(NULL), ('NaN'::DOUBLE), ('-Infinity'), ('Infinity'), (-9.5), (0), (0.1), (1e-300), (7 / 3.0), (11), (99)"
SINGLES = (
    "SELECT 1 AS cell, v AS x, v AS y, TRY_CAST(v AS BIGINT) AS z, 4 AS w, 2 AS u, 0.55 AS v, 'even' AS part, 'a' AS name "
    f"FROM (VALUES {_VALUES}, (-3)) AS s(v)"
)
"""Each value in x and in y."""
PAIRS = (
    "SELECT 1 AS cell, s.v AS x, r.v AS y, TRY_CAST(r.v AS BIGINT) AS z, CASE WHEN s.v > 2 THEN 1 ELSE 4 END AS w, "
    "CASE WHEN r.v > 2 THEN -1 ELSE 3 END AS u, 0.55 AS v, CASE WHEN s.v > 2 THEN 'even' ELSE 'odd' END AS part, "
    f"'a' AS name FROM (VALUES {_VALUES}) AS s(v), (VALUES {_VALUES}) AS r(v)"
)
"""Each pair of values in x and y."""
_POLICY = """
dataset: sharing
source: duckdb:///sharing.duckdb
privacy_unit: row
budget: {epsilon: 1000, delta: 1e-6, accountant: ACCOUNTANT}
per_query: {epsilon: 1, delta: 1e-9, timeout_seconds: 30, max_public_groups: 100000}
ledger: sqlite:///ledger.db
tables:
  t:
    columns:
      cell: {type: integer, lower: 1, upper: 4000, nullable: false}
      x: {type: real, lower: -3, upper: 11}
      y: {type: real, lower: 0, upper: 10.7}
      z: {type: integer, lower: 2, upper: 9}
      w: {type: integer, lower: 0, upper: 5, nullable: false}
      u: {type: integer, lower: -2, upper: 4, nullable: false}
      v: {type: real, lower: 0.5, upper: 0.6}
      part: {type: text, domain: [even, odd], nullable: false}
      name: {type: text}
"""


def session_over(folder: Path, rows: str, accountant: str) -> Session:
    """Write the table `t` that a SELECT (`SINGLES`, `PAIRS`) returns to `folder`, and return a session over it."""
    create_database(folder / "sharing.duckdb", f"CREATE TABLE t AS {rows}")
    policy = folder / "policy.yaml"
    policy.write_text(_POLICY.replace("ACCOUNTANT", accountant), encoding="utf-8")
    return open_session(policy, create_ledger=True)


def terms(session: Session, sql: str) -> list[tuple[str, str]]:
    """Return the kind and the set of every term of a query with one block."""
    (priced,) = session.planner.plan(session.planner.parse(sql, None), session.options, True).price.blocks
    return [(term.kind.value, term.shares) for term in priced.block.terms]


def sums_of_each_row(session: Session, folder: Path, sql: str) -> list[tuple[int, ...]]:
    """Return the sums that the engine computes for a query over each single row of the table."""
    (text,) = [written for _, written in session.explain(sql).engine_sql]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{folder / 'sharing.duckdb'}' AS sharing (READ_ONLY)")
        ((count,),) = connection.execute("SELECT count(*) FROM sharing.t").fetchall()
        sums = []
        for row in range(count):
            alone = f"(SELECT * FROM sharing.main.t LIMIT 1 OFFSET {row})"
            sums += connection.execute(text.replace('"sharing"."main"."t"', alone)).fetchall()
    assert len(sums) == count >= 12
    return sums
