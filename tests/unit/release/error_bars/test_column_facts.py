"""Outputs that depend on which groups exist: they are noisy, have no error bar, and are named with the answer (docs/sql.md)."""

from dataclasses import replace

import pytest
from support.released_blocks import (
    T0,
    T1,
    block,
    count_of,
    counts,
    gaussian_noise,
    laplace_noise,
    noisy,
    release,
    remainder,
)

from dpsql.plan.formulas import greatest
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.release.error_bars.column_facts import column_facts
from dpsql.release.remainder import ReleasedBlock
from dpsql.release.sandbox import Sandbox

LAPLACE = laplace_noise("1/10")


@pytest.fixture(scope="module")
def made() -> ReleasedBlock:
    """Return keys k0 and k1, a count m0, a sum m1 and a mean m2; the last group has no rows."""
    terms = [noisy(name, exact, LAPLACE, "groups", whole=name == "t0")
             for name, exact in (("t0", [400.0, 900.0, 0.0]), ("t1", [-40.0, 90.0, 0.0]))]  # fmt: skip
    formulas = [count_of(T0), (T1, Type.REAL), (5 + T1 / greatest(T0, 1), Type.REAL)]
    found = block({"k0": ["a", "b", "c"], "k1": [1, 1, 2]}, terms, formulas)
    return replace(found, groups=GroupFacts(True, frozenset({"m0"}), frozenset({"m1"})))


KNOWN = (  # equal with and without the groups that have no rows
    "SELECT sum(m0), sum(m1), max(m0), sum(m0 + 2 * m0), sum(m0 / 2) FROM dp_0",
    "SELECT k0, m0 / sum(m0) OVER (), sum(m1) OVER (ORDER BY k0), rank() OVER (ORDER BY m0 DESC) FROM dp_0",
    "SELECT k0, row_number() OVER (PARTITION BY k1 ORDER BY m0 DESC, k0) FROM dp_0",
    "SELECT count(*), avg(m2), min(m0), min(k0) FROM dp_0 WHERE m0 > 20",
    "SELECT count(*) FROM dp_0 WHERE k0 < 'c' AND (m0 >= 1 OR m1 < -3)",
    "SELECT count(*) FROM dp_0 WHERE m0 BETWEEN 5 AND 5000",
    "SELECT count(*) FROM dp_0 WHERE 20 < m0",
    "SELECT count(*) FILTER (WHERE m0 > 20), count_if(m0 > 20) FROM dp_0",
    "SELECT sum(CASE WHEN m0 > 20 THEN 1 ELSE 0 END) FROM dp_0",
    "SELECT sum(CASE WHEN k1 = 1 THEN m0 ELSE 0 END), sum(CASE WHEN k0 = 'a' THEN m0 WHEN k1 = 1 THEN m1 END) FROM dp_0",
    "SELECT sum(CASE k0 WHEN 'a' THEN m0 ELSE m1 END), max(CASE WHEN k1 = 1 THEN m0 ELSE 0 END) FROM dp_0",
    "SELECT k1, sum(m0), count(*) FROM dp_0 WHERE m0 > 20 GROUP BY k1",
    "SELECT max(s) FROM (SELECT k1, sum(m0) AS s FROM dp_0 GROUP BY k1) AS q",
    "SELECT count(*) FROM (SELECT k1, sum(m0) AS s FROM dp_0 GROUP BY k1 HAVING sum(m0) > 5) AS q",
    "SELECT avg(n) FROM (SELECT n FROM (SELECT k0 AS g, m0 AS n FROM dp_0) AS p WHERE n > 5) AS q",
    "SELECT sum(m0) FROM (SELECT m0 FROM dp_0 ORDER BY m0 DESC LIMIT 2) AS q",
    "SELECT count(*) FROM (SELECT sum(m0) FROM dp_0) AS q",
    "SELECT coalesce(a.k0, b.k0), a.m0 - b.m0 FROM dp_0 AS a FULL JOIN dp_0 AS b ON a.k0 = b.k0",
    "SELECT k0, a.m0 FROM dp_0 AS a FULL JOIN dp_0 AS b USING (k0)",
    "SELECT k0, strlen(k0), m0 * 2, m2 FROM dp_0",
    "SELECT k0 FROM dp_0 UNION SELECT k0 FROM dp_0",
    "SELECT k0 FROM dp_0 ORDER BY k0 LIMIT 1",
)
OF_GROUPS = (  # the last column depends on which groups exist
    "SELECT count(*) FROM dp_0",
    "SELECT count(k0) FROM dp_0",
    "SELECT count(DISTINCT k0) FROM dp_0",
    "SELECT min(k0) FROM dp_0",
    "SELECT avg(m0) FROM dp_0",
    "SELECT min(m0) FROM dp_0",
    "SELECT max(m1) FROM dp_0",
    "SELECT sum(m2) FROM dp_0",
    "SELECT median(m0) FROM dp_0",
    "SELECT sum(m0 + 1) FROM dp_0",
    "SELECT sum(CASE WHEN k1 = 1 THEN m0 ELSE 1 END) FROM dp_0",
    "SELECT max(CASE WHEN k1 = 1 THEN m0 ELSE m1 END) FROM dp_0",
    "SELECT max(CASE WHEN m0 > 20 THEN 1 ELSE m1 END) FROM dp_0",
    "SELECT k0, rank() OVER (ORDER BY k0) FROM dp_0",
    "SELECT k0, rank() OVER (ORDER BY m0) FROM dp_0",
    "SELECT k0, lag(m0) OVER (ORDER BY m1) FROM dp_0",
    "SELECT k0, lag(m0) OVER () FROM dp_0",
    "SELECT k0, lag(m0) OVER (ORDER BY k0) FROM dp_0 WHERE m0 < 10",
    "SELECT k0, lag(m0) OVER (ORDER BY k0) FROM (SELECT * FROM dp_0 ORDER BY m1 LIMIT 2)",
    "SELECT k0, k1, lag(sum(m0)) OVER (ORDER BY k0) FROM dp_0 GROUP BY k0, k1 HAVING sum(m0) < 10",
    "SELECT m0 > 5, lag(sum(m0)) OVER (ORDER BY k1) FROM dp_0 GROUP BY k1, m0 > 5",
    "SELECT k0, min(m0) OVER (ORDER BY k0) FROM dp_0",
    "SELECT k0, count(*) OVER (ORDER BY k0) FROM dp_0",
    "SELECT k0, avg(m0) OVER () FROM dp_0",
    "SELECT avg(d) FROM (SELECT m0 - lag(m0) OVER (ORDER BY k0) AS d FROM dp_0)",
    "SELECT count(*) FROM (SELECT m0 - lag(m0) OVER (ORDER BY k0) AS d FROM dp_0) WHERE d > 0",
    "SELECT count(*) FROM dp_0 WHERE m0 > -1",
    "SELECT count(*) FROM dp_0 WHERE m0 >= 0",
    "SELECT count(*) FROM dp_0 WHERE m0 < 10",
    "SELECT count(*) FROM dp_0 WHERE m0 > 20 OR k1 = 2",
    "SELECT count(*) FROM dp_0 WHERE m2 > 20",
    "SELECT count(*) FROM (SELECT DISTINCT k1 FROM dp_0) AS q",
    "SELECT count(*) FROM (SELECT k0 FROM dp_0 EXCEPT SELECT 'a') AS q",
    "SELECT sum(m0) FROM (SELECT m0 FROM dp_0 ORDER BY k0 LIMIT 2) AS q",
    "SELECT sum(a.m0) FROM dp_0 AS a JOIN dp_0 AS b ON a.k0 = b.k0",
    "SELECT sum(m0) FROM (SELECT a.m0 FROM dp_0 AS a JOIN dp_0 AS b ON a.k0 = b.k0) AS q",
    "SELECT count(*) FROM dp_0 AS a JOIN dp_0 AS b ON a.k0 = b.k0 WHERE b.m0 > 20",
    "SELECT sum(m0) FROM dp_0 WHERE k1 IN (SELECT k1 FROM dp_0)",
    "SELECT a.k0, b.k0 FROM dp_0 AS a LEFT JOIN dp_0 AS b ON a.k1 = b.k1",
    "SELECT EXISTS (SELECT k0 FROM dp_0)",
    "SELECT (SELECT k0 FROM dp_0 ORDER BY k0 LIMIT 1)",
    "SELECT k0, (SELECT count(*) FROM dp_0 AS b WHERE b.k1 = a.k1) FROM dp_0 AS a",
)

RANKED = "(SELECT k0, k1, m0, rank() OVER (ORDER BY k0) AS r FROM dp_0)"
BESIDE = (  # the last column is arithmetic over groups that stand beside it in the order of an exact key
    "SELECT k0, m0 - lag(m0) OVER (ORDER BY k0) FROM dp_0",
    "SELECT k0, m2 - lead(m2) OVER (ORDER BY k1, k0 DESC) FROM dp_0",
    "SELECT k0, m2 / first_value(m2) OVER (ORDER BY k0) FROM dp_0",
    "SELECT k0, sum(m0) OVER (ORDER BY k0 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM dp_0",
    "SELECT k0, avg(m2) OVER (PARTITION BY k1 ORDER BY k0 ROWS 2 PRECEDING) FROM dp_0",
    "SELECT k0, round(100 * (m0 - p) / p, 1) FROM (SELECT k0, m0, lag(m0) OVER (ORDER BY k0) AS p FROM dp_0) WHERE p IS NOT NULL",
    f"SELECT a.k0, b.m0 FROM {RANKED} AS a JOIN {RANKED} AS b ON a.k1 = b.k1 AND a.r = b.r + 1",
    f"SELECT a.k0, a.m0 - m FROM {RANKED} AS a, (SELECT m0 AS m, r + 1 AS s FROM {RANKED}) AS b WHERE r = s",
)


@pytest.mark.parametrize("sql", KNOWN)
def test_such_columns_do_not_depend_on_which_groups_exist(made: ReleasedBlock, sql: str) -> None:
    assert column_facts(remainder(sql, [made])).of_groups == frozenset()


@pytest.mark.parametrize("sql", OF_GROUPS)
def test_a_column_that_depends_on_which_groups_exist_has_no_bar_and_a_notice(
    sandbox: Sandbox, made: ReleasedBlock, sql: str
) -> None:
    """Such a column is noisy, without error bar, with a note and a notice; the other columns are unaffected."""
    found = release(sandbox, sql, [made])
    last = found.columns[-1]
    assert (last.noisy, last.of_groups) == (True, True)
    assert not any(column.of_groups for column in found.columns[:-1])
    for end in (found.low, found.high, found.error):
        assert set(end.column(end.num_columns - 1).to_pylist()) == {None}
    assert any("which groups exist" in note for note in found.bars.notes)
    assert any("the error is not known" in notice for notice in found.notices)


@pytest.mark.parametrize("sql", BESIDE)
def test_a_column_over_neighbouring_groups_has_a_bar_and_says_when_it_holds(
    sandbox: Sandbox, made: ReleasedBlock, sql: str
) -> None:
    found = release(sandbox, sql, [made])
    last = found.columns[-1]
    assert (last.noisy, last.of_groups, last.if_all_exist) == (True, False, True)
    assert any(width is not None and width > 0 for width in found.error.column(found.error.num_columns - 1).to_pylist())
    assert any("holds if the data has each of them" in notice for notice in found.notices)
    private = replace(made, groups=replace(made.groups, complete=False))
    assert column_facts(remainder(sql, [private])).of_groups


@pytest.mark.parametrize("sql", ["SELECT avg(m0) FROM dp_0", "SELECT k0, lag(m0) OVER (ORDER BY m0) FROM dp_0"])
def test_sums_of_normal_noise_depend_on_the_groups_as_well(sandbox: Sandbox, sql: str) -> None:
    """Only tables measured for running totals refer to all of their values (`test_linear_bars`)."""
    normal = counts([400.0, 900.0, 0.0], gaussian_noise("1/200"), "normal")
    found = release(sandbox, sql, [replace(normal, groups=GroupFacts(True, frozenset({"m0"})))])
    assert found.columns[-1].of_groups
    assert set(found.error.column(found.error.num_columns - 1).to_pylist()) == {None}


@pytest.mark.parametrize("sql", ["SELECT sum(m0) FROM dp_0", "SELECT count(*) FROM dp_0 WHERE m0 > 20"])
def test_private_keys_may_lack_groups(made: ReleasedBlock, sql: str) -> None:
    """Groups that selection removed count in no total and pass every condition."""
    private = replace(made, groups=replace(made.groups, complete=False))
    assert column_facts(remainder(sql, [made])).of_groups == frozenset()
    assert column_facts(remainder(sql, [private])).of_groups == {0}
