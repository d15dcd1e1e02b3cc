"""Each row of a row-wise remainder is traced to its group, and each column to an expression over that group's numbers."""

from typing import Any

import numpy as np
import pytest
from sqlglot import exp
from support.plain_duckdb import plain_duckdb
from support.released_blocks import T0, T1, block, count_of, laplace_noise, remainder

from dpsql.noise.perturb import NoisyTerm
from dpsql.plan.intervals import Type
from dpsql.release.error_bars.rowwise import MOST_NODES, Traced, trace
from dpsql.release.remainder import DIALECT, ROW, ReleasedBlock, column, runnable

VALUES = {"t0": [30, 10, 20, 10], "t1": [0.5, -2.0, 4.0, 8.0]}
KEYS: dict[str, list[object]] = {"k0": ["a", "b", "c", "d"], "k1": [2, 1, 1, None]}


def _released() -> ReleasedBlock:
    noise = laplace_noise("1/2")
    whole, real = np.array(VALUES["t0"], dtype=np.int64), np.array(VALUES["t1"])
    terms = [NoisyTerm("t0", whole, 1.0, noise, 0, True), NoisyTerm("t1", real, 1.0, noise, 0, False)]
    return block(KEYS, terms, [count_of(T0), (T1 * 2, Type.REAL)])


RELEASED = _released()


def traced(sql: str) -> Traced:
    trace_ = trace(remainder(sql, [RELEASED]))
    assert trace_ is not None
    return trace_


def rows_of(sql: str, extra: dict[str, np.ndarray] | None = None) -> list[tuple[Any, ...]]:
    connection = plain_duckdb()
    connection.register("dp_0", RELEASED.table(extra or {}))
    return connection.execute(sql).fetchall()


def plainly(sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of the query itself."""
    question = remainder(sql, [RELEASED])
    return rows_of(runnable(question.tree.copy(), question, {}, _visible))


def _visible(query: exp.Select) -> exp.Select:
    query.set("expressions", [item for item in query.expressions if item.alias_or_name != ROW])
    return query


def by_trace(trace_: Traced) -> list[tuple[Any, ...]]:
    """Return the rows of the traced tree; hidden interval columns hold 1000 * (their number + 1) + the number of the group."""
    extra = {name: 1000.0 * (place + 1) + np.arange(4) for place, name in enumerate(trace_.extra[trace_.block])}
    return rows_of(runnable(trace_.tree.copy(), remainder("SELECT 1", [RELEASED]), trace_.extra), extra)


def over_groups(expressions: list[exp.Expr]) -> list[tuple[Any, ...]]:
    """Return expressions over keys and measures, one row per group."""
    items = ", ".join(expression.sql(dialect=DIALECT) for expression in expressions)
    return rows_of(f'SELECT {items} FROM ({RELEASED.query().sql(dialect=DIALECT)}) AS dp_0 ORDER BY "{ROW}"')


ROW_WISE = (
    "SELECT k0, m0 FROM dp_0",
    "SELECT m0 + k1 AS x, x * 2 AS y FROM dp_0",
    "SELECT M0 AS n, K0 FROM dp_0 AS q",
    "SELECT q.m0 - Q.m1 FROM dp_0 AS q",
    "SELECT * FROM dp_0",
    "SELECT dp_0.*, m0 / 4 AS z FROM dp_0",
    "SELECT m0 AS k1, k1 AS m0 FROM dp_0",
    "SELECT n + 1 FROM (SELECT m0 * 2 AS n, k0 FROM dp_0) AS q",
    "SELECT q.b, a FROM (SELECT k0, m0 FROM dp_0) AS q(a, b)",
    "SELECT b, m0 FROM (SELECT k0, m0 FROM dp_0) AS q(b)",
    "SELECT * FROM (SELECT k0, m0 AS n FROM dp_0 WHERE k1 = 1) AS q WHERE n > 15",
    "WITH q AS (SELECT k0 AS g, m0 AS n FROM dp_0) SELECT n, g FROM q",
    "WITH q AS (SELECT k0 AS g, m0 AS n FROM dp_0) SELECT r.n, r.g FROM q AS r ORDER BY r.n DESC LIMIT 2",
    "WITH p AS (SELECT m0 AS n FROM dp_0), q AS (SELECT n + 1 AS n FROM p) SELECT q.n FROM q WHERE n > 11",
    "SELECT k0, m0 FROM dp_0 ORDER BY m1 DESC",
    "SELECT k0, m0 AS n FROM dp_0 ORDER BY n + 0, k0 DESC LIMIT 3 OFFSET 1",
    "SELECT k0, coalesce(k1, 0) + m1 FROM dp_0 WHERE k1 IS NULL OR m0 > 15",
    "SELECT 7 AS seven, k0 FROM dp_0",
)  # fmt: skip


@pytest.mark.parametrize("sql", ROW_WISE)
def test_each_column_is_its_expression_over_the_group_of_the_row(sql: str) -> None:
    trace_ = traced(sql)
    rows = by_trace(trace_)
    assert trace_.block == "dp_0" and trace_.intervals == ()
    assert sorted((row[:-1] for row in rows), key=str) == sorted(plainly(sql), key=str)
    assert None not in trace_.outputs
    numbers = over_groups([output for output in trace_.outputs if output is not None])
    assert rows and all(row[:-1] == numbers[row[-1]] for row in rows)


MIXING = (
    "SELECT sum(m0) FROM dp_0",
    "SELECT k1 FROM dp_0 GROUP BY k1",
    "SELECT k0 FROM dp_0 HAVING true",
    "SELECT DISTINCT k0 FROM dp_0",
    "SELECT a.k0 FROM dp_0 AS a, dp_0 AS b",
    "SELECT a.k0 FROM dp_0 AS a JOIN dp_0 AS b USING (k0)",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_0",
    "SELECT 1",
    "SELECT 1 AS x WHERE 1 IN (SELECT k1 FROM dp_0)",
    "SELECT k0 FROM elsewhere",
    "SELECT x FROM (VALUES (1)) AS q(x)",
    "SELECT n FROM (SELECT DISTINCT m0 AS n FROM dp_0) AS q",
    "SELECT n FROM (SELECT k0 AS n FROM dp_0 UNION ALL SELECT k0 FROM dp_0) AS q",
    "WITH q AS (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_0) SELECT k0 FROM q",
    "SELECT k0, 1 + max(m0) FROM dp_0",
    "SELECT * EXCLUDE (k0) FROM dp_0",
    "SELECT * FROM (SELECT k0 AS x, k1 AS X FROM dp_0) AS q",
    "SELECT avg(k1) + row_number() OVER () FROM dp_0",
)  # fmt: skip


@pytest.mark.parametrize("sql", MIXING)
def test_what_mixes_rows_or_has_no_block_is_not_traced(sql: str) -> None:
    assert trace(remainder(sql, [RELEASED])) is None


OPAQUE = (  # the last column has no formula over its group alone
    "SELECT k0, sum(m0) OVER () FROM dp_0",
    "SELECT k0, m0 - (SELECT max(m0) FROM dp_0) FROM dp_0",
    "SELECT k0, n + 1 FROM (SELECT k0, row_number() OVER (ORDER BY k0) AS n FROM dp_0) AS q",
    "SELECT k0, (SELECT sum(m0) FROM dp_0) FROM dp_0",
)


@pytest.mark.parametrize("sql", OPAQUE)
def test_windows_and_subqueries_are_opaque_but_their_rows_are_traced(sql: str) -> None:
    trace_ = traced(sql)
    assert [output is None for output in trace_.outputs] == [False, True]
    rows = by_trace(trace_)
    assert sorted(row[:-1] for row in rows) == sorted(plainly(sql))
    assert [KEYS["k0"][row[-1]] for row in rows] == [row[0] for row in rows]


def test_a_name_that_two_columns_below_have_is_opaque() -> None:
    assert traced("SELECT x FROM (SELECT k0 AS x, k1 AS X FROM dp_0) AS q").outputs == (None,)


@pytest.mark.parametrize("sql", ["SELECT nothing FROM dp_0", "SELECT other.m0 FROM dp_0"])
def test_a_name_that_nothing_has_is_opaque(sql: str) -> None:
    assert traced(sql).outputs == (None,)


def doubled(times: int) -> str:
    sql = "SELECT m0 AS x FROM dp_0"
    for _ in range(times):
        sql = f"SELECT x + x AS x FROM ({sql}) AS q"
    return sql


def test_a_column_that_doubles_with_each_select_becomes_opaque() -> None:
    sizes = [output and sum(1 for _ in output.walk()) for (output,) in (traced(doubled(n)).outputs for n in range(14))]
    sizes_of_traced = [size for size in sizes if size is not None]
    assert sizes_of_traced == sorted(sizes_of_traced) and MOST_NODES / 3 < sizes_of_traced[-1] <= MOST_NODES + 10
    assert sizes[len(sizes_of_traced) :] == [None] * (14 - len(sizes_of_traced)) and sizes[-1] is None


@pytest.mark.parametrize(
    ("sql", "selected"),
    [
        ("SELECT k0 FROM dp_0", False),
        ("SELECT k0 FROM dp_0 WHERE k1 > 1", False),
        ("SELECT k0 FROM dp_0 WHERE m0 > 1", True),
        ("SELECT k0 FROM dp_0 WHERE m1 + k1 > 1", True),
        ("SELECT m0 AS k1 FROM dp_0 WHERE k1 > 1", False),
        ("SELECT k0 FROM dp_0 ORDER BY m0", False),
        ("SELECT k0 FROM dp_0 ORDER BY m0 LIMIT 1", True),
        ("SELECT k0 FROM dp_0 ORDER BY m0 OFFSET 1", True),
        ("SELECT k0 FROM dp_0 ORDER BY k0 LIMIT 1", False),
        ("SELECT m0 AS k0 FROM dp_0 ORDER BY k0 LIMIT 1", True),
        ("SELECT k0 FROM dp_0 LIMIT 1", False),
        ("SELECT k0 FROM dp_0 QUALIFY row_number() OVER (ORDER BY k0) = 1", True),
        ("SELECT k0 FROM dp_0 QUALIFY k1 = 1", False),
        ("SELECT k0 FROM dp_0 WHERE k1 = (SELECT 1)", True),
        ("SELECT k0 FROM dp_0 ORDER BY 1 LIMIT 2", True),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 WHERE m0 > 1) AS q", True),
        ("SELECT k0 FROM (SELECT k0, m0 AS n FROM dp_0) AS q WHERE n > 1", True),
        ("SELECT dp_error(m0) FROM dp_0 WHERE dp_error(m0) < 3", True),
    ],
)
def test_rows_are_selected_where_noisy_numbers_decide_which_are_shown(sql: str, selected: bool) -> None:
    assert traced(sql).selected is selected


# --- DP_ functions ----------------------------------------------------------------------------------------------------


def test_interval_functions_are_hidden_columns_of_their_argument() -> None:
    trace_ = traced(
        "SELECT k0, dp_interval_low(n + 1) AS low, 2 * DP_ERROR(n) FROM (SELECT k0, m0 * 2 AS n FROM dp_0) AS q "
        "WHERE dp_interval_high(n) > 0 ORDER BY dp_error(n) DESC"
    )
    words = [word for word, _ in trace_.intervals]
    assert words == ["dp_interval_low", "dp_error", "dp_interval_high", "dp_error"]
    numbers = over_groups([argument for _, argument in trace_.intervals])
    assert numbers == [(2 * n + 1, 2 * n, 2 * n, 2 * n) for n in VALUES["t0"]]
    assert trace_.extra == {"dp_0": ("dp#b0", "dp#b1", "dp#b2", "dp#b3")}
    rows = by_trace(trace_)
    assert rows == [(KEYS["k0"][row], 1000.0 + row, 2 * (2000.0 + row), row) for row in (3, 2, 1, 0)]
    assert trace_.outputs[1:] != (None, None) and trace_.outputs[2] is not None


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "groups"),
    [
        ("SELECT k0 FROM dp_0", [0, 1, 2, 3]),
        ("SELECT k0 FROM dp_0 ORDER BY m0", [1, 3, 2, 0]),
        ("SELECT k0 FROM dp_0 ORDER BY m0 DESC", [0, 2, 1, 3]),
        ("SELECT k0 FROM dp_0 LIMIT 2", [0, 1]),
        ("SELECT k0 FROM dp_0 OFFSET 2", [2, 3]),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 LIMIT 2) AS q", [0, 1]),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 OFFSET 3) AS q", [3]),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 ORDER BY m0 LIMIT 3) AS q", [1, 3, 2]),
        ("SELECT k0 FROM (SELECT k0, m1 FROM dp_0 ORDER BY m0) AS q LIMIT 2", [0, 1]),
        ("SELECT k0 FROM (SELECT k0, m0 FROM dp_0 ORDER BY k1 LIMIT 3) AS q ORDER BY m0", [1, 2, 0]),
    ],
)
def test_ties_are_broken_by_key_order(sql: str, groups: list[int]) -> None:
    assert [row[-1] for row in by_trace(traced(sql))] == groups


@pytest.mark.parametrize(
    ("sql", "orders"),
    [
        ("SELECT k0 FROM dp_0", 1),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0) AS q", 1),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 LIMIT 2) AS q", 2),
        ("SELECT k0 FROM (SELECT k0 FROM dp_0 ORDER BY m0) AS q", 1),
    ],
)
def test_an_order_from_below_is_not_replaced_by_that_of_keys(sql: str, orders: int) -> None:
    assert len(list(traced(sql).tree.find_all(exp.Order))) == orders


def test_the_remainder_itself_is_left_as_it_was() -> None:
    question = remainder("WITH q AS (SELECT k0, dp_error(m0) AS e FROM dp_0) SELECT * FROM q", [RELEASED])
    before = question.tree.sql(dialect=DIALECT)
    assert trace(question) is not None and question.tree.sql(dialect=DIALECT) == before


def test_a_common_table_is_copied_for_each_user() -> None:
    """The other use must not see hidden columns: IN takes only one column."""
    sql = "WITH q AS (SELECT k0 FROM dp_0) SELECT k0 FROM q WHERE k0 IN (SELECT * FROM q)"
    assert [row[0] for row in by_trace(traced(sql))] == KEYS["k0"]
    assert column(ROW) not in list(traced(sql).tree.args["with_"].find_all(exp.Column))
