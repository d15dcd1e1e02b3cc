"""Each row of a UNION ALL of row-wise queries is traced to its branch and to the group in the block of that branch."""

import numpy as np
import pytest
from support.released_blocks import T0, block, count_of, laplace_noise, remainder

from dpsql.noise.perturb import NoisyTerm
from dpsql.release.error_bars.rowwise import trace_branches
from dpsql.release.remainder import ReleasedBlock, Remainder


def _released(name: str, values: list[int]) -> ReleasedBlock:
    term = NoisyTerm("t0", np.array(values, dtype=np.int64), 1.0, laplace_noise("1/2"), 0, True)
    return block({"k0": [f"{name}{place}" for place in range(len(values))]}, [term], [count_of(T0)], name)


BLOCKS = [_released("dp_0", [30, 10, 20]), _released("dp_1", [60, 10])]


def question(sql: str) -> Remainder:
    return remainder(sql, BLOCKS)


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
