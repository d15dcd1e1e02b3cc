"""Each row of a UNION ALL of row-wise queries is traced to its branch and to the group in the block of that branch."""

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp
from support.plain_duckdb import plain_duckdb
from support.released_blocks import T0, block, count_of, laplace_noise, remainder

from dpsql.noise.perturb import NoisyTerm
from dpsql.release.error_bars.rowwise import Branches, numbered, trace_branches
from dpsql.release.remainder import DIALECT, ROW, ReleasedBlock, Remainder


def _released(name: str, values: list[int]) -> ReleasedBlock:
    term = NoisyTerm("t0", np.array(values, dtype=np.int64), 1.0, laplace_noise("1/2"), 0, True)
    return block({"k0": [f"{name}{place}" for place in range(len(values))]}, [term], [count_of(T0)], name)


BLOCKS = [_released("dp_0", [30, 10, 20]), _released("dp_1", [60, 10])]


def question(sql: str) -> Remainder:
    return remainder(sql, BLOCKS)


def branches_of(sql: str) -> Branches:
    branches = trace_branches(question(sql))
    assert branches is not None
    return branches


def test_parts_are_named_like_the_first_branch_and_know_their_block() -> None:
    branches = branches_of("SELECT k0 AS a, m0 AS b FROM dp_0 UNION ALL SELECT k0 AS x, m0 * 2 AS y FROM dp_1")
    assert [part.block for part in branches.parts] == ["dp_0", "dp_1"]
    assert [[item.alias_or_name for item in part.tree.expressions] for part in branches.parts] == [["a", "b", ROW]] * 2


def test_rows_that_noise_selects_are_told_by_branch() -> None:
    branches = branches_of("SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 WHERE m0 > 3")
    assert [part.selected for part in branches.parts] == [False, True]


OTHERS = (
    "SELECT k0 FROM dp_0 UNION SELECT k0 FROM dp_1",
    "SELECT k0 FROM dp_0 UNION ALL BY NAME SELECT k0 FROM dp_1",
    "SELECT k0 FROM dp_0 EXCEPT ALL SELECT k0 FROM dp_1",
    "SELECT k0 FROM dp_0 UNION ALL (SELECT k0 FROM dp_1 UNION SELECT k0 FROM dp_0)",
    "(SELECT k0 FROM dp_1 UNION SELECT k0 FROM dp_0) UNION ALL SELECT k0 FROM dp_0",
    "SELECT k0 FROM dp_0 UNION ALL SELECT DISTINCT k0 FROM dp_1",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 ORDER BY k0",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 LIMIT 2",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 OFFSET 2",
    "SELECT k0 FROM dp_0 UNION ALL SELECT max(k0) FROM dp_1",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 GROUP BY k0",
    "SELECT k0 FROM dp_0 UNION ALL SELECT a.k0 FROM dp_0 AS a JOIN dp_1 AS b ON true",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM elsewhere",
    "SELECT k0 FROM dp_0 UNION ALL SELECT 'a'",
    "(SELECT k0 FROM dp_0 ORDER BY m0 LIMIT 1) UNION ALL SELECT k0 FROM dp_1",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 QUALIFY m0 > 3",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM (SELECT k0 FROM dp_1) AS q",
    "SELECT * FROM dp_0 UNION ALL SELECT * FROM dp_1",
    "SELECT k0, m0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1",
    "SELECT dp_error(m0) FROM dp_0 UNION ALL SELECT m0 FROM dp_1",
    "WITH q AS (SELECT 1) SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1",
    "SELECT max(k0) FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q",
    "SELECT k0 FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q GROUP BY k0",
    "SELECT DISTINCT k0 FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q",
    "SELECT k0 FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q QUALIFY row_number() OVER (ORDER BY k0) = 1",
    "SELECT a FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q(a)",
    "SELECT *, 1 FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q",
    "SELECT q.* FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1) AS q",
    "SELECT * EXCLUDE (m0) FROM (SELECT k0, m0 FROM dp_0 UNION ALL SELECT k0, m0 FROM dp_1) AS q",
    "SELECT k0 FROM (SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_1 LIMIT 1) AS q",
    "SELECT k0 FROM dp_0",
    "SELECT 1",
)  # fmt: skip


@pytest.mark.parametrize("sql", OTHERS)
def test_other_remainders_have_no_branches(sql: str) -> None:
    assert trace_branches(question(sql)) is None


# --- numbered ---------------------------------------------------------------------------------------------------------


def parsed(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    return tree


def test_branches_carry_their_number() -> None:
    connection = plain_duckdb()
    connection.register("t", pa.table({"x": [1, 1]}))
    tree = numbered(parsed("SELECT x FROM t UNION ALL (SELECT x FROM t UNION ALL SELECT max(x) FROM t) ORDER BY 2"))
    assert connection.execute(tree.sql(dialect=DIALECT)).fetchall() == [(1, 0), (1, 0), (1, 1), (1, 1), (1, 2)]
