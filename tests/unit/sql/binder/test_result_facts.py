"""What is claimed of a result before it is released holds for its rows: NULL, bounds, listed values, keys, numbers of rows."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from answers.test_answers import build
from support.exact_session import exact_session
from support.gates import NoiselessGate
from support.seeds import seeds

from dpsql.errors.exceptions import Error
from dpsql.session.session import Session
from dpsql.sql.binder.query import QueryBinder
from dpsql.sql.binder.scope import Environment, Released

SOURCES = (
    "SELECT kind, COUNT(*) AS n, SUM(x) AS t, AVG(y) AS m FROM a GROUP BY kind",
    "SELECT code AS kind, COUNT(*) AS n, SUM(x) AS t, MAX(y) AS m FROM a GROUP BY code",
    "SELECT kind, x, COUNT(*) AS n, SUM(x) AS t, AVG(y) AS m FROM a GROUP BY kind, x",
    "SELECT kind, code, COUNT(*) AS n, SUM(x) AS t, AVG(y) AS m FROM a GROUP BY ROLLUP (kind, code)",
    "SELECT code AS kind, weight AS n, weight AS t, weight AS m FROM codes",
    "SELECT grade AS kind, x AS n, x AS t, x AS m FROM scores",
    "SELECT COUNT(*) AS n, SUM(x) AS t, MIN(y) AS m, 'p' AS kind FROM a",
)  # fmt: skip
VALUES = (
    "{k}", "{k}", "{n} + 1", "{n} * {m}", "coalesce({k}, 'none')", "{k} = 'p'", "{n} > {m}", "CASE WHEN {n} > 3 THEN {k} END",
    "CASE WHEN {k} = 'p' THEN 1 ELSE 2 END", "nullif({k}, 'p')", "least({n}, {m})", "greatest({n}, 5)", "abs({m})", "-{n}", "'c'", "upper({k})",
)  # fmt: skip
WINDOWS = (
    "LAG({k}) OVER ({p}ORDER BY {m})", "LEAD({k}, 2) OVER ({p}ORDER BY {n})", "LAG({n}, 1, 0) OVER ({p}ORDER BY {m})",
    "LAG({k}, 1, 'none') OVER ({p}ORDER BY {n})", "FIRST_VALUE({k}) OVER ({p}ORDER BY {n})", "ROW_NUMBER() OVER ({p}ORDER BY {n})",
    "LAST_VALUE({k}) OVER ({p}ORDER BY {n} ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING)", "RANK() OVER ({p}ORDER BY {n})",
    "MIN({k}) FILTER (WHERE {n} > 100) OVER ({p})", "MAX({k}) OVER ({p})", "SUM({n}) FILTER (WHERE {m} > 1) OVER ({p}ORDER BY {n})",
)  # fmt: skip
AGGREGATES = (
    "COUNT(*)", "COUNT({k})", "SUM({n})", "MIN({k})", "MAX({n})", "ANY_VALUE({k})", "AVG({m})", "ARG_MAX({k}, {n})",
    "MIN({k}) FILTER (WHERE {n} > 200)", "BOOL_OR({n} > 3)", "SUM({n}) FILTER (WHERE {n} < 0)",
)  # fmt: skip
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
CONDITIONS = ("p.kind = q.kind", "p.kind = q.kind AND p.n = q.n", "p.n = q.t + 1", "p.kind IS NOT DISTINCT FROM q.kind")


def part(rng: random.Random, forms: tuple[str, ...], prefix: str = "") -> str:
    n, m, by = (
        rng.choice("ntm"),
        rng.choice("ntm"),
        rng.choice(["", f"PARTITION BY {prefix}{rng.choice(['kind', 'n'])} "]),
    )
    return rng.choice(forms).format(k=f"{prefix}kind", n=prefix + n, m=prefix + m, p=by)


def result(rng: random.Random, depth: int) -> str:
    below = rng.choice(SOURCES)
    if depth:
        below = f"SELECT c0 AS kind, c1 AS n, c1 AS t, 1 AS m FROM ({result(rng, depth - 1)}) AS z"
    shape = rng.randrange(6)
    if shape < 2:
        last = rng.choice(["", " QUALIFY ROW_NUMBER() OVER (PARTITION BY kind ORDER BY n) = 1", " WHERE kind = 'p'"])
        return f"SELECT {part(rng, VALUES + WINDOWS)} AS c0, {part(rng, WINDOWS)} AS c1 FROM ({below}) AS q{last}"
    if shape == 2:
        if rng.random() < 0.5:
            keys = rng.choice(
                ["ROLLUP (kind)", "CUBE (kind, n)", "GROUPING SETS ((n), (kind, n), ())", "ROLLUP (n, kind)"]
            )
            key = rng.choice(["kind", "coalesce(kind, 'all')", "kind = 'p'", "upper(kind)"])
            return f"SELECT {key} AS c0, {part(rng, AGGREGATES)} AS c1 FROM ({below}) AS q GROUP BY {keys}"
        return f"SELECT {part(rng, VALUES)} AS c0, {part(rng, AGGREGATES)} AS c1 FROM ({below}) AS q GROUP BY 1"
    if shape == 3:
        return f"SELECT {part(rng, AGGREGATES)} AS c0, {part(rng, AGGREGATES)} AS c1 FROM ({below}) AS q"
    if shape == 4:
        return f"SELECT DISTINCT {part(rng, VALUES)} AS c0, {part(rng, VALUES)} AS c1 FROM ({below}) AS q"
    sides = f"({below}) AS p {rng.choice(JOINS)} ({rng.choice(SOURCES)}) AS q ON {rng.choice(CONDITIONS)}"
    return f"SELECT {part(rng, VALUES, 'p.')} AS c0, {part(rng, VALUES, 'q.')} AS c1 FROM {sides}"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with exact_session(
        "answers", build(), tmp_path_factory.mktemp("results") / "ledger.db", NoiselessGate(1)
    ) as opened:
        yield opened


def check(known: Released, rows: list[tuple[Any, ...]]) -> None:
    assert len(rows) <= known.most_rows
    for key, most in [*((key, 1) for key in known.unique), *known.repeats]:
        values = Counter(tuple(row[index] for index in sorted(key)) for row in rows)
        assert all(count <= most for value, count in values.items() if None not in value), (key, most)
    for index, facts in enumerate(known.column_facts):
        if facts is None:
            continue
        values = [row[index] for row in rows if row[index] is not None]
        assert facts.nullable or len(values) == len(rows), index
        listed = [float(value) if isinstance(value, Fraction) else value for value in facts.values or values]
        assert all(value in listed for value in values), (index, facts.values)
        if facts.bounded and facts.type.numeric:
            ends = float(facts.lower) - 1e-9, float(facts.upper) + 1e-9
            assert all(math.isnan(value) or ends[0] <= value <= ends[1] for value in map(float, values)), (index, ends)


@pytest.mark.parametrize("seed", seeds(1200, 20))
def test_the_rows_of_a_result_are_as_its_facts_say(session: Session, seed: int) -> None:
    rng = random.Random(f"results/{seed}")
    sql = result(rng, rng.randrange(3))
    query = session.parse(sql).query
    assert query is not None
    try:
        known = QueryBinder(session.policy, query).query(query, Environment())
        release = session.execute(sql)
    except Error as error:
        assert not error.charged, sql
        return
    assert isinstance(known, Released)
    check(known, list(zip(*(column.to_pylist() for column in release.table.columns), strict=True)))
