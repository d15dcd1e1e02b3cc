"""Answers from a stored pair of columns: statistics of either column and counts, over the same rows and no others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pytest
from support.database_files import create_database
from support.gates import NoiselessGate

from dpsql.session.session import Session, open_session

POLICY = """
dataset: pairs
source: duckdb:///pairs.duckdb
privacy_unit: row
budget: {epsilon: 10000, delta: 1e-6, accountant: pure}
per_query: {epsilon: 1, delta: 1e-9, timeout_seconds: 30}
ledger: sqlite:///pairs.db
reuse: {default: derive}
tables:
  t:
    columns:
      part: {type: text, domain: [even, odd], nullable: false}
      w: {type: integer, lower: 0, upper: 50, nullable: false}
      u: {type: integer, lower: -20, upper: 45, nullable: false}
      n: {type: integer, lower: 3, upper: 40}
      m: {type: integer, lower: 0, upper: 60}
      x: {type: real, lower: -3, upper: 11.7, nullable: false}
      y: {type: real, lower: 0, upper: 10.7}
      free: {type: real}
      day: {type: date, lower: 2024-01-01, upper: 2024-01-20}
      seen: {type: timestamp, lower: 2024-01-01 00:00, upper: 2024-01-20 00:00}
"""
ROWS = 900


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Yield a noiseless session. n and m are NULL in some rows each, x is NaN in some, y NULL in some."""
    create_database(
        tmp_path / "pairs.duckdb",
        "CREATE TABLE t AS SELECT CASE WHEN i % 3 < 1 THEN 'even' ELSE 'odd' END AS part, i % 47 AS w, "
        "(i * i) % 41 - 18 AS u, CASE WHEN i % 5 > 0 THEN 3 + (i * 7) % 37 END AS n, "
        "CASE WHEN i % 4 > 0 THEN (i * 11) % 60 END AS m, CASE WHEN i % 7 = 0 THEN 'NaN' ELSE (i % 29) / 3.0 END AS x, "
        "CASE WHEN i % 6 > 1 THEN (i % 23) / 2.5 END AS y, i / 3.0 AS free, "
        f"DATE '2024-01-01' + (i % 9)::INTEGER AS day, TIMESTAMP '2024-01-01 00:00:00' AS seen FROM range({ROWS}) AS r(i)",
    )
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    with open_session(path, create_ledger=True) as opened:
        opened.context = replace(opened.context, gate=NoiselessGate())
        opened.execute("SET dp.shrinkage = off")  # estimates depend on the claimed noise
        yield opened


def terms(session: Session, sql: str) -> list[str]:
    (priced,) = session.planner.plan(session.planner.parse(sql, None), session.options, True).price.blocks
    return [f"{term.kind.value} {term.shares}" for term in priced.block.terms]


OF_BOTH = "count(*), count(w), sum(u), avg(w), avg(u), sum(w)"
SQUARES = "var_pop(w), stddev_samp(u), covar_samp(u, w), covar_pop(u, w), regr_count(u, w), regr_avgx(u, w)"
FOLLOWING = [
    ("corr(u, w)", OF_BOTH),
    ("corr(w, u)", SQUARES),
    ("corr(w, u)", "corr(u, w), regr_slope(u, w), regr_intercept(u, w), regr_avgx(u, w)"),
    ("regr_slope(x, u)", "corr(u, x), regr_slope(u, x), regr_avgy(x, u)"),
    ("covar_pop(n, m)", "covar_samp(m, n), regr_avgx(m, n), regr_avgy(m, n)"),
    ("covar_pop(y, x)", "covar_pop(x, y), regr_avgx(x, y)"),
    ("corr(u, w)", SQUARES),
    ("corr(u, w)", "regr_slope(u, w), var_samp(u)"),
    ("covar_pop(u, w)", OF_BOTH),
    ("covar_pop(u, w)", "covar_samp(u, w), regr_avgy(u, w), regr_count(u, w)"),
    ("covar_pop(u, w), var_pop(u)", OF_BOTH + ", var_pop(w), covar_pop(u, w)"),
    ("corr(x, w)", "avg(x), var_pop(x), count(x), sum(x), regr_count(x, w)"),
    ("covar_pop(w, y)", "avg(y), count(y), sum(y), regr_count(w, y), sum(coalesce(y, 0))"),
    ("corr(n, w)", "avg(n), var_samp(n), count(n), regr_avgx(n, w), count(*) FILTER (WHERE n IS NOT NULL)"),
    ("corr(n, m)", "regr_count(n, m), covar_samp(n, m), regr_avgy(n, m), count(n) FILTER (WHERE m IS NOT NULL)"),
    ("corr(n, m)", "avg(n) FILTER (WHERE m IS NOT NULL), var_pop(m) FILTER (WHERE n IS NOT NULL)"),
    ("corr(u, w)", "count(part)"),  # never NULL
    ("corr(u, w) FILTER (WHERE n > 7)", "avg(u) FILTER (WHERE n > 7), count(*) FILTER (WHERE n > 7)"),
]
"""The first query, and what follows from it over the same rows."""
NOT_FOLLOWING = [
    ("corr(x, w)", "count(*)"),  # rows without x are in no pair
    ("corr(x, w)", "avg(w)"),
    ("corr(n, m)", "avg(n)"),
    ("corr(n, m)", "count(m)"),
    ("corr(n, w)", "avg(w) FILTER (WHERE n > 3)"),
    ("covar_pop(u, w)", "var_pop(u)"),  # its squares are not stored
    ("corr(u, w)", "count(n)"),
    ("corr(u, w)", "count(free)"),
    ("corr(u, w)", "avg(w + 1)"),
    ("corr(u, w)", "avg(least(w, 40))"),
    ("corr(u, w) FILTER (WHERE n > 7)", "count(*)"),
    # Days and times have bounds but are no numbers.
    ("avg(n)", "count(day)"),
    ("var_pop(n)", "count(seen)"),
    ("covar_pop(n, m)", "count(DISTINCT day)"),
    ("corr(n, m)", "count(day)"),
]


@pytest.mark.parametrize(("first", "then"), FOLLOWING)
def test_what_follows_from_a_stored_pair_is_answered_from_it(session: Session, first: str, then: str) -> None:
    """Without noise the answers equal those of a separate measurement, by region and in total."""
    session.execute(f"SELECT part, {first} FROM t GROUP BY part")
    spent = session.budget().spent
    for keys, grouped in (("part, ", " GROUP BY part ORDER BY part"), ("", "")):
        derived = session.execute(f"SELECT {keys}{then} FROM t{grouped}")
        assert derived.reused and session.budget().spent == spent
        if not keys:
            assert any("comes from the release" in notice for notice in derived.notices)
        session.execute("SET dp.reuse = off")
        measured = session.execute(f"SELECT {keys}{then} FROM t{grouped}")
        session.execute("SET dp.reuse = derive")
        spent = session.budget().spent
        for row, expected in zip(derived.rows(), measured.rows(), strict=True):
            numbers = [(a, b) for a, b in zip(row, expected, strict=True) if not isinstance(a, str)]
            assert [a for a, _ in numbers] == pytest.approx([b for _, b in numbers], rel=1e-4, abs=1e-4)


@pytest.mark.parametrize(("first", "then"), NOT_FOLLOWING)
def test_other_rows_and_other_numbers_are_charged(session: Session, first: str, then: str) -> None:
    session.execute(f"SELECT part, {first} FROM t GROUP BY part")
    assert not session.execute(f"SELECT part, {then} FROM t GROUP BY part").reused


NINE = ["pair part t0"] * 9
FOUR = ["product part t0"] * 4
ASKED_TOGETHER = {
    "covar_pop(u, w), count(*)": FOUR,
    "covar_pop(u, w), count(*), avg(u), sum(w), count(u), regr_count(u, w)": FOUR,
    "covar_pop(u, w), var_pop(u)": NINE,
    "covar_pop(u, w), var_pop(u), stddev_samp(w), avg(w), count(*)": NINE,
    "corr(w, y), avg(y), var_pop(y), count(y)": NINE,
    "covar_pop(w, y), avg(y)": FOUR,
    "covar_pop(w, y), count(*)": [*FOUR, "count "],
    "covar_pop(w, y), avg(w)": [*FOUR, "sum t4", "sum t4"],
    "covar_pop(w, y), var_pop(w)": [*FOUR, *["square part t4"] * 3],  # rows without y may have a w
    "covar_pop(n, m), count(*)": [*FOUR, "count "],
    "covar_pop(w, y), avg(y), avg(x), count(*)": [*FOUR, "sum t4", "sum t4", "count t4"],
    "covar_pop(u, w), avg(x), count(*)": [*FOUR, "sum t4", "sum t4"],
}


@pytest.mark.parametrize("chosen", ASKED_TOGETHER)
def test_what_follows_from_a_pair_beside_it_costs_nothing(session: Session, chosen: str) -> None:
    assert sorted(terms(session, f"SELECT {chosen} FROM t")) == sorted(ASKED_TOGETHER[chosen])
    plan = session.explain(f"SELECT {chosen} FROM t")
    parts = len({term.split()[-1] if term.strip() != "count" else term for term in ASKED_TOGETHER[chosen]})
    assert sorted(row.epsilon for row in plan.outputs)[-parts:] == pytest.approx([1 / parts] * parts)
    together = next(iter(session.execute(f"SELECT {chosen} FROM t").rows()))
    session.execute("SET dp.reuse = off")
    for place, call in enumerate(chosen.split("), ")):
        alone = next(iter(session.execute(f"SELECT {call.removesuffix(')')}) FROM t").rows()))[0]
        assert together[place] == pytest.approx(alone, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("chosen", ["covar_pop(u, w), count(*), avg(w)", "corr(u, w), count(*), var_pop(w)"])
def test_a_row_that_breaks_the_promise_moves_nothing(session: Session, tmp_path: Path, chosen: str) -> None:
    """Privacy does not depend on `nullable: false`: the sums of a single row are the whole width, and 0 without a value."""
    planned = session.planner.plan(session.planner.parse(f"SELECT {chosen} FROM t", None), session.options, True)
    (priced,) = planned.price.blocks
    (width,) = {term.magnitude for term in priced.block.terms}
    (text,) = [sql for _, sql in session.explain(f"SELECT {chosen} FROM t").engine_sql]
    for u, w, moved in ((3, 5, width), (99, -7, width), ("NULL", 5, 0), (3, "NULL", 0), ("NULL", "NULL", 0)):
        alone = f"(SELECT {u}::BIGINT AS u, {w}::BIGINT AS w)"
        with duckdb.connect() as connection:
            (sums,) = connection.execute(text.replace('"pairs"."main"."t"', alone)).fetchall()
        assert min(sums) >= 0 and sum(sums) == moved


def test_bars_of_numbers_from_a_stored_pair_hold(session: Session, tmp_path: Path) -> None:
    """Counts, means and variances of many groups, with noise: 95 % bars have that coverage and are not wider than necessary."""
    path = tmp_path / "noisy.yaml"
    grid = "grid: {type: integer, lower: 1, upper: 400, nullable: false}\n      w:"
    policy = POLICY.replace("w:", grid, 1).replace("pairs.db", "noisy.db").replace("pairs.duckdb", "noisy.duckdb")
    path.write_text(policy)
    create_database(
        tmp_path / "noisy.duckdb",
        "CREATE TABLE t AS SELECT 'odd' AS part, 1 + i % 400 AS grid, (i * 31) % 51 AS w, (i * i) % 61 - 18 AS u, "
        "NULL::INTEGER AS n, NULL::INTEGER AS m, 0.0 AS x, 0.0 AS y, 0.0 AS free, NULL::DATE AS day, NULL::TIMESTAMP AS seen "
        "FROM range(160000) AS r(i)",
    )
    with open_session(path, create_ledger=True) as noisy:
        noisy.execute("SELECT grid, corr(u, w) AS c FROM t GROUP BY grid")
        gate = noisy.context.gate
        for name, asked in {"k": "count(*)", "a": "avg(u)", "v": "var_pop(w)", "s": "sum(w)"}.items():
            sql = f"SELECT grid, {asked} AS {name} FROM t GROUP BY grid ORDER BY grid"
            noisy.context = replace(noisy.context, gate=gate)
            noisy.execute("SET dp.reuse = derive")
            answer = noisy.execute(sql)
            assert answer.reused
            noisy.context = replace(noisy.context, gate=NoiselessGate())
            noisy.execute("SET dp.reuse = off")
            exact = noisy.execute(sql)
            away = np.abs(answer.table.column(name).to_numpy() - exact.table.column(name).to_numpy())
            bars = answer.error.column(name).to_numpy()
            # Of 400 groups: 0.95 has a deviation of 0.011. A third of a bar of normal noise holds for half of them.
            assert np.mean(away <= bars) >= 0.9
            assert np.mean(away <= bars / 3) < 0.8
