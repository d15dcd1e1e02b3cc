"""Conditions on public keys: the groups that a comparison with any kind of literal leaves are the engine's, with their rows."""

import random
from collections.abc import Iterator

import duckdb
import pytest
from support.exact_session import assert_equal, exact_session
from support.gates import NoiselessGate
from support.seeds import seeds

from dpsql.errors.exceptions import Refusal
from dpsql.policy import load_policy
from dpsql.session.session import Session

POLICY = """
dataset: literals
source: duckdb:///unused.duckdb
ledger: sqlite:///ledger.db
privacy_unit: row
budget: {epsilon: 10, delta: 1e-6}
per_query: {epsilon: 1, delta: 1e-9}
tables:
  facts:
    max_rows: 1
    columns:
      part: {type: integer, lower: 0, upper: 2, nullable: false}
      flag: {type: boolean}
      whole: {type: integer, lower: -1, upper: 2}
      amount: {type: real}
      price: {type: real, lower: -2, upper: 3}
      word: {type: text, domain: ['', a, b]}
      day: {type: date, lower: 2024-02-28, upper: 2024-03-02}
      moment: {type: timestamp, lower: 2024-02-28, upper: 2024-03-02}
  names:
    public: true
    primary_key: [part]
    columns: {part: {type: integer, nullable: false}, good: {type: boolean}, rate: {type: real}}
"""
VALUES = {
    "flag": "TRUE, FALSE, NULL",
    "whole": "-1, 0, 1, 2, NULL",
    "amount": "'inf'::DOUBLE, '-inf'::DOUBLE, 'nan'::DOUBLE, 0, 1.5, 1e300, NULL",
    "price": "-1.5, 0, 2.5, NULL",
    "word": "'', 'a', 'b', NULL",
    "day": "'2024-02-28'::DATE, '2024-02-29', '2024-03-01', '2024-03-02', NULL",
    "moment": "'2024-02-28'::TIMESTAMP, '2024-02-29 12:30:00', '2024-03-01', NULL",
}
LITERALS = {
    "flag": ("TRUE", "FALSE", "NULL", "'t'::BOOLEAN"),
    "whole": ("0", "-1", "1.5", "NULL", "9223372036854775807", "1e300", "'inf'::DOUBLE", "-0.0"),
    "amount": ("'inf'::DOUBLE", "'-inf'::DOUBLE", "'nan'::DOUBLE", "-0.0", "1.5", "1", "1e300", "NULL"),
    "price": ("'inf'::DOUBLE", "'-inf'::DOUBLE", "'nan'::DOUBLE", "-0.0", "2.5", "0", "NULL"),
    "word": ("''", "'a'", "'~'", "NULL"),
    "day": ("DATE '2024-02-29'", "'2024-03-01'", "TIMESTAMP '2024-02-29 12:30:00'", "DATE '9999-12-31'", "NULL"),
    "moment": ("TIMESTAMP '2024-02-29 12:30:00'", "'2024-03-01'", "DATE '2024-02-28'", "NULL"),
}
COMPARISONS = (
    "{c} = {a}", "{c} <> {a}", "{c} < {a}", "{c} <= {a}", "{c} > {a}", "{c} >= {a}", "{a} < {c}", "{a} = {c}",
    "{c} IN ({a})", "{c} IN ({a}, {b})", "{c} NOT IN ({a}, {b})", "{c} BETWEEN {a} AND {b}", "NOT ({c} = {a})",
    "{c} NOT BETWEEN {a} AND {b}", "{c} IS DISTINCT FROM {a}", "{c} IS NOT DISTINCT FROM {a}", "{c} = {a} OR {c} IS NULL",
    "({c} = {a}) IS NOT TRUE", "COALESCE({c} > {a}, FALSE)",
)  # fmt: skip
CASES = [
    comparison.format(c=column, a=literals[at], b=literals[(at + 1) % len(literals)])
    for column, literals in LITERALS.items()
    for at in range(len(literals))
    for comparison in COMPARISONS
]
"""Every comparison of every column with every kind of literal of its type."""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Use a separate state directory: folders of an earlier run have the same names."""
    yield


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[duckdb.DuckDBPyConnection, Session]]:
    folder = tmp_path_factory.mktemp("literals")
    (folder / "policy.yaml").write_text(POLICY)
    with duckdb.connect() as connection:
        lists = ", ".join(f"[{values}] AS {name}" for name, values in VALUES.items())
        lengths = {name: values.count(",") + 1 for name, values in VALUES.items()}
        picks = ", ".join(f"{name}[1 + i // 3 % {length}] AS {name}" for name, length in lengths.items())
        connection.execute(
            f"CREATE TABLE facts AS SELECT i % 3 AS part, {picks} FROM (SELECT {lists}), range(1260) t(i)"
        )
        connection.execute(
            "CREATE TABLE names AS SELECT * FROM (VALUES (0, TRUE, 'nan'::DOUBLE), (1, FALSE, 1), (2, TRUE, 'inf')) t(part, good, rate)"
        )
        yield (
            connection,
            exact_session(load_policy(folder / "policy.yaml"), connection, folder / "ledger.db", NoiselessGate(1)),
        )


def compared(world: tuple[duckdb.DuckDBPyConnection, Session], sql: str) -> None:
    connection, session = world
    exact = connection.execute(sql).fetchall()
    try:
        answer = session.execute(sql)
    except Refusal as refused:
        assert refused.slug in ("no_groups", "no_rows") and not exact, (sql, exact)
    else:
        assert_equal(sql, answer, exact)


@pytest.mark.parametrize("seed", seeds(10, 1))
def test_a_comparison_with_a_literal_leaves_the_groups_of_the_engine(
    world: tuple[duckdb.DuckDBPyConnection, Session], seed: int
) -> None:
    """Every tenth case by default, with the column itself as a key or not."""
    cases = random.Random(7).sample(CASES, len(CASES))[seed::10]
    for at, condition in enumerate(cases):
        column = next(name for name in LITERALS if name in condition)
        also = {"price": "floor(price)", "moment": "date_trunc('day', moment)", "amount": "part"}.get(column, column)
        keys = f"part, {also} AS k" if at % 2 else "part"
        compared(world, f"SELECT {keys}, COUNT(*) AS n FROM facts WHERE {condition} GROUP BY ALL")


FORMS = (
    "SELECT part, COUNT(*) AS n FROM facts WHERE flag = TRUE GROUP BY part",
    "SELECT DISTINCT part FROM facts WHERE flag IN (TRUE)",
    "SELECT part, COUNT(*) AS n FROM facts WHERE flag <> FALSE GROUP BY ROLLUP (part)",
    "SELECT part, COUNT(*) AS n FROM (SELECT part, flag = TRUE AS k FROM facts) WHERE k GROUP BY part",
    "SELECT flag, COUNT(*) AS n FROM facts GROUP BY flag HAVING flag = TRUE",
    "SELECT f.part, COUNT(*) AS n FROM facts f JOIN names USING (part) WHERE good = TRUE GROUP BY f.part",
    "SELECT f.part, COUNT(*) AS n FROM facts f JOIN names USING (part) WHERE rate <= 1 GROUP BY f.part",
    "SELECT f.part, COUNT(*) AS n FROM facts f JOIN names USING (part) WHERE rate = 1 GROUP BY f.part",
    "SELECT f.part, COUNT(*) AS n FROM facts f JOIN names USING (part) WHERE rate < 'inf'::DOUBLE GROUP BY f.part",
)


@pytest.mark.parametrize("sql", FORMS)
def test_every_form_of_a_condition_leaves_the_groups_of_the_engine(
    world: tuple[duckdb.DuckDBPyConnection, Session], sql: str
) -> None:
    compared(world, sql)


def test_a_bound_parameter_leaves_the_groups_of_a_literal(world: tuple[duckdb.DuckDBPyConnection, Session]) -> None:
    _, session = world
    sql = "SELECT part, COUNT(*) AS n FROM facts WHERE {} GROUP BY part"
    for condition, value in (("flag = $1", True), ("flag <> $1", False), ("flag IN ($1)", True)):
        written = session.execute(sql.format(condition.replace("$1", str(value))))
        assert list(session.execute(sql.format(condition), [value]).rows()) == list(written.rows()) != []
