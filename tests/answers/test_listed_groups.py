"""The groups that are listed for a key, decided from text and policy: for every row function over every type and kind of literal,
the same wherever the key stands, and all that any row can have.

Keys and conditions are grown from the register, so that a new function joins by itself. The oracle is DuckDB over rows with every
combination of a few values of each column, inside and outside of what the policy names.
"""

import math
import random
from collections.abc import Iterator
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from support.random_expressions import SPECS, B, apply, grow, literal
from support.seeds import seeds

from answers.test_same_groups import INSIDE, POLICY
from dpsql.engine.duckdb.dialect import DUCKDB
from dpsql.functions.key_narrowing import remaining
from dpsql.functions.key_questions import PublicValues
from dpsql.functions.public_domains import domain_of
from dpsql.functions.signatures import REGISTRY, call
from dpsql.plan.plan import Column, Distinct, Expr, Filter, Project, Relation, Scan, Union_, UnitAggregate, columns_read
from dpsql.planning.planner import AskedValues
from dpsql.policy.check import parse_policy
from dpsql.release.sandbox import shared_sandbox
from dpsql.sql.binder.query import bind
from dpsql.sql.parse import parse

VALUES = {
    "n": "[-3, -1, 0, 1, 2, 3, 4, 7, -10, 100, NULL]::BIGINT[]", "m": "[-1, 0, 1, 2, 3, 4, NULL]::BIGINT[]",
    "r": "['0', '5', '9.5', '3.2', '10', '20', '-5', 'inf', 'nan', NULL]::DOUBLE[]", "w": "['', 'a', 'b', 'C d', 'A', 'z', '~', NULL]",
    "b": "[TRUE, FALSE, NULL]", "d": "['2024-02-29', '2024-03-01', '2024-02-10', '2025-05-05', NULL]::DATE[]",
    "t": "['2024-02-28 12:30:00', '2024-02-29', '2024-02-28 23:01:01', '2000-01-01', NULL]::TIMESTAMP[]",
}  # fmt: skip
NEAR = (
    0, 3, -1, 2, Fraction(5), Fraction(19, 2), Fraction(0), "a", "", "z", True, False, date(2024, 2, 29), date(2024, 3, 1),
    datetime(2024, 2, 28, 12, 30), datetime(2024, 2, 29),
)  # fmt: skip
ITEMS = next(
    scan
    for scan in [bind(parse("SELECT COUNT(*) FROM items"), parse_policy(POLICY)).blocks[0].source]
    if isinstance(scan, Scan)
)
COLUMNS = {column.name: column for column in ITEMS.columns if column.name in VALUES}
POOL: dict[str, Any] = {
    **COLUMNS,
    **{f"{name} again": column for name, column in COLUMNS.items()},
    **{f"literal {number}": literal(value) for number, value in enumerate(NEAR)},
    **{text: call("to_real", literal(text)) for text in ("inf", "-inf", "nan")},
}
"""What the leaves of expressions are chosen from: columns, and literals near their values."""


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture(scope="module")
def public_values() -> PublicValues:
    return AskedValues(shared_sandbox()).for_engine("duckdb")


def places(key: Expr, condition: Expr) -> dict[str, tuple[Relation, Expr]]:
    """Return relations in which a key is read under a condition, by the form of their statement, each with the key over it."""
    column, filtered = Column("k", key.facts), Filter(ITEMS, condition)
    passed = tuple((name, base) for name, base in COLUMNS.items())
    computed = Project(filtered, (("k", key),))
    two = Filter(Project(ITEMS, (("j", key), *passed)), condition)
    return {
        "direct": (filtered, key),
        "in FROM": (computed, column),
        "condition outside": (Filter(Project(ITEMS, (("k", key), *passed)), condition), column),
        "two levels": (Project(two, (("k", Column("j", key.facts)),)), column),
        "union": (Union_((computed, computed)), column),
        "distinct": (Distinct(computed), column),
        "per person": (UnitAggregate(filtered, (("k", key),), ()), column),
    }


def listed(public_values: PublicValues, key: Expr, condition: Expr) -> frozenset[Any] | None:
    """Return the groups of a key; None if they are private."""
    found = {
        name: remaining(source, [(read, domain_of(read))], public_values=public_values).values[0]
        for name, (source, read) in places(key, condition).items()
    }
    sets = {name: None if values is None else frozenset(values) for name, values in found.items()}
    assert len(set(sets.values())) == 1, (sets, DUCKDB.expression(key), DUCKDB.expression(condition))
    return sets["direct"]


def occurring(engine: duckdb.DuckDBPyConnection, key: Expr, condition: Expr) -> set[Any]:
    """Return the groups over all combinations of `VALUES`, of rows of which the key reads values that the policy names. NaN is no
    key."""
    read = sorted({column.name for column in [*columns_read(key), *columns_read(condition)]})
    every = ", ".join(f"(SELECT unnest({VALUES[name]}) AS {name})" for name in read)
    inside = " AND ".join(sorted({INSIDE[column.name] for column in columns_read(key)}))
    sql = f"SELECT DISTINCT {DUCKDB.expression(key)} FROM {every} WHERE {DUCKDB.expression(condition)} AND {inside}"
    return {value for (value,) in engine.execute(sql).fetchall() if value is None or value == value}


def lacks(groups: frozenset[Any], value: Any) -> bool:
    """Return whether no group is the value, up to the last digits of reals, which depend on the C library."""
    near = isinstance(value, float) and any(
        group is not None and math.isclose(value, group, rel_tol=1e-9, abs_tol=1e-12) for group in groups
    )
    return value not in groups and not near


@pytest.mark.parametrize("seed", seeds(30, 1))
def test_every_group_that_a_row_can_have_is_listed_wherever_the_key_stands(
    public_values: PublicValues, engine: duckdb.DuckDBPyConnection, seed: int
) -> None:
    chance = random.Random(seed)
    public = 0
    for name in sorted(REGISTRY):
        spec = chance.choice([spec for spec in SPECS if spec[0] == name])
        key = apply(chance, spec, chance.choice((1, 1, 2)), POOL)
        while not list(columns_read(key)):
            key = apply(chance, spec, 1, POOL)
        condition = grow(chance, B, chance.choice((2, 3)), POOL)
        groups = listed(public_values, key, condition)
        if groups is None:
            continue
        public += 1
        lost = [value for value in occurring(engine, key, condition) if lacks(groups, value)]
        assert not lost, (lost[:3], DUCKDB.expression(key), DUCKDB.expression(condition))
    assert public > 0.8 * len(REGISTRY)


def bound(text: str) -> Expr:
    """Return the expression of a text over the table's columns."""
    plan = bind(parse(f"SELECT {text} AS k, COUNT(*) FROM items GROUP BY k"), parse_policy(POLICY))
    return plan.blocks[0].keys[0].expression


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("width_bucket(r, 0, 10, 4)", "floor(r) = 3 AND upper(w) = 'A'"),
        ("n", "w BETWEEN 'z' AND 'a' OR n > 0"),
        ("n * n", "upper(w) = 'A' AND w BETWEEN '' AND '' AND n > 0 OR w = 'z' AND n = 1"),
        ("n > 0", "d IS NULL AND month(d) = 2 OR n > 1"),
        ("abs(n)", "floor(r) = 3 AND r IS NULL OR n > 1"),
        ("n", "w NOT IN (NULL, NULL) OR n > 1"),
        ("greatest(r, 5) < CASE WHEN b THEN 7 ELSE 8 END", "m > 1"),
    ],
)
def test_no_group_of_null_is_listed_that_no_row_can_have(
    public_values: PublicValues, engine: duckdb.DuckDBPyConnection, key: str, where: str
) -> None:
    groups = listed(public_values, bound(key), bound(where))
    assert groups and None not in groups | occurring(engine, bound(key), bound(where))


@pytest.mark.parametrize("key", ["n / 2", "upper(w)", "r * 2", "w || '!'", "CAST(d AS TIMESTAMP)"])
def test_no_group_is_listed_under_a_condition_that_no_row_satisfies(public_values: PublicValues, key: str) -> None:
    assert listed(public_values, bound(key), bound("n > 3 AND n < 2")) == frozenset()


def test_the_generator_has_every_function_and_type() -> None:
    assert {spec[0] for spec in SPECS} == set(REGISTRY)
    assert {column.facts.type for column in COLUMNS.values()} == {spec[1] for spec in SPECS}
