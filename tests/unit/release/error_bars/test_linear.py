"""Columns that are weighted sums of noisy numbers are distinguished from others; no claim is made for rows that noise selects."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from support.released_blocks import T0, T1, block, count_of, gaussian_noise, noisy, remainder

from dpsql.plan.formulas import greatest
from dpsql.plan.intervals import GroupFacts, Type
from dpsql.release.error_bars.column_facts import Form, column_facts
from dpsql.release.remainder import ReleasedBlock


@pytest.fixture(scope="module")
def mixed() -> ReleasedBlock:
    """Return a count m0, a sum m1, a mean m2, and a rounded sum of two terms, m3."""
    noise = gaussian_noise("1/200")
    terms = [noisy(name, [40.0, 90.0, 10.0], noise, "mixed", whole=name == "t0") for name in ("t0", "t1")]
    formulas = [count_of(T0), (T1 * 2, Type.REAL), (5 + T1 / greatest(T0, 1), Type.REAL), count_of(T1 + 60 * T0)]
    return block({"k0": ["a", "b", "c"], "k1": [1, 1, 2]}, terms, formulas)


SUMS = (  # the last column is a weighted sum
    ("SELECT k0, m0 FROM dp_0", Form.WHOLE),
    ("SELECT k0, m0 + m0 - m0 FROM dp_0", Form.WHOLE),
    ("SELECT sum(m0) FROM dp_0", Form.WHOLE),
    ("SELECT sum(m0)::BIGINT FROM dp_0", Form.WHOLE),
    ("SELECT round(sum(m0)) FROM dp_0", Form.WHOLE),
    ("SELECT k0, m1 FROM dp_0", Form.LINEAR),
    ("SELECT k0, -m0 * k1 / 2 + 3 FROM dp_0", Form.LINEAR),
    ("SELECT avg(m0) FROM dp_0 WHERE k1 < 2", Form.LINEAR),
    ("SELECT k1, sum(m0 * k1) FILTER (WHERE k0 <> 'a') FROM dp_0 GROUP BY k1 HAVING k1 > 0", Form.LINEAR),
    ("SELECT k1, sum(m0) FROM dp_0 GROUP BY 1 ORDER BY 1 LIMIT 1", Form.WHOLE),
    ("SELECT k0, m0 - lag(m0, 1) OVER (ORDER BY k0) FROM dp_0", Form.WHOLE),
    ("SELECT k0, sum(m0) OVER (PARTITION BY k1 ORDER BY k0 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM dp_0", Form.WHOLE),
    ("SELECT k0, first_value(m1) OVER (ORDER BY k0) FROM dp_0", Form.LINEAR),
    ("SELECT a.k0, a.m0 - b.m0 FROM dp_0 AS a LEFT JOIN dp_0 AS b ON a.k1 = b.k1 + 1", Form.WHOLE),
    ("SELECT (SELECT sum(m0) FROM dp_0 WHERE k0 = 'a') - (SELECT m0 FROM dp_0 WHERE k0 = 'b')", Form.WHOLE),
    ("SELECT k0, (SELECT sum(b.m0) FROM dp_0 AS b WHERE b.k1 = a.k1) FROM dp_0 AS a", Form.WHOLE),
    ("SELECT coalesce(sum(m0), 0) FROM dp_0", Form.LINEAR),
    ("SELECT sum(CASE WHEN k1 = 1 THEN m0 ELSE 0 END) FROM dp_0", Form.LINEAR),
    ("WITH q AS (SELECT k1 AS g, sum(m0) AS n FROM dp_0 GROUP BY k1) SELECT sum(n) FROM q WHERE g IN (SELECT k1 FROM dp_0)", Form.WHOLE),
    ("SELECT 'all', sum(m0) FROM dp_0 UNION ALL SELECT k0, m1 FROM dp_0", Form.LINEAR),
    ("SELECT sum(n) FROM (SELECT k0, m0 AS n FROM dp_0 ORDER BY k0 LIMIT 2) AS q", Form.WHOLE),
)  # fmt: skip
OTHERS = (  # the last column may be anything else
    "SELECT k0, m2 FROM dp_0",
    "SELECT k0, m3 FROM dp_0",
    "SELECT k0, m0 * m1 FROM dp_0",
    "SELECT k0, 1 / m0 FROM dp_0",
    "SELECT k0, abs(m0) FROM dp_0",
    "SELECT k0, m1::BIGINT FROM dp_0",
    "SELECT k0, round(m1) FROM dp_0",
    "SELECT k0, round(m0, -1) FROM dp_0",
    "SELECT k0, greatest(m0, 0) FROM dp_0",
    "SELECT max(m0) FROM dp_0",
    "SELECT sum(DISTINCT m0) FROM dp_0",
    "SELECT k0, m0 / sum(m0) OVER () FROM dp_0",
    "SELECT k0, sum(m0) OVER (ORDER BY m0) FROM dp_0",
    "SELECT k0, sum(m0) OVER (PARTITION BY m1 > 3 ORDER BY k0) FROM dp_0",
    "SELECT k0, lag(m0, m0) OVER (ORDER BY k0) FROM dp_0",
    "SELECT sum(m0) FILTER (WHERE m0 > 3) FROM dp_0",
    "SELECT k0, CASE WHEN m0 > 3 THEN m0 ELSE 0 END FROM dp_0",
    "SELECT k0, nullif(m0, 0) FROM dp_0",
)
UNKNOWN_ROWS = (
    "SELECT sum(m0) FROM dp_0 WHERE m0 > 3",
    "SELECT m0 > 3 AS many, sum(m0) FROM dp_0 GROUP BY many",
    "SELECT m0 > 3 AS many, sum(m0) FROM dp_0 GROUP BY 1",
    "SELECT m0 > 3 AS many, sum(m0) FROM dp_0 GROUP BY ALL",
    "SELECT k1, sum(m0) FROM dp_0 GROUP BY k1 HAVING sum(m0) > 3",
    "SELECT sum(n) FROM (SELECT m0 AS n FROM dp_0 ORDER BY n LIMIT 1) AS q",
    "SELECT sum(k1) FROM (SELECT m0 AS k1 FROM dp_0 ORDER BY k1 LIMIT 1) AS q",
    "SELECT sum(n) FROM (SELECT m0 AS n FROM dp_0 ORDER BY 1 LIMIT 1) AS q",
    "SELECT sum(m0) FROM dp_0 AS a JOIN dp_0 AS b ON a.m0 = b.m0",
    "SELECT sum(n) FROM (SELECT DISTINCT m0 AS n FROM dp_0) AS q",
    "SELECT sum(n) FROM (SELECT m0 AS n FROM dp_0 UNION SELECT m1 FROM dp_0) AS q",
    "SELECT k0, m0 FROM dp_0 QUALIFY row_number() OVER (ORDER BY m0) = 1",
    "SELECT k0, m0 FROM dp_0 WHERE k1 > (SELECT min(m0) FROM dp_0)",
)


@pytest.mark.parametrize(("sql", "form"), SUMS)
def test_weighted_sums_are_known(mixed: ReleasedBlock, sql: str, form: Form) -> None:
    made = remainder(sql, [mixed])
    assert column_facts(made).columns[-1].form is form


@pytest.mark.parametrize("sql", OTHERS)
def test_other_formulas_are_not_taken_for_sums(mixed: ReleasedBlock, sql: str) -> None:
    made = remainder(sql, [mixed])
    assert column_facts(made).columns[-1].form is Form.ANY


@pytest.mark.parametrize("sql", UNKNOWN_ROWS)
def test_nothing_is_known_of_rows_that_noise_decides(mixed: ReleasedBlock, sql: str) -> None:
    made = remainder(sql, [mixed])
    assert not column_facts(made).settled


EXACT = (  # the last column reads nothing noisy
    "SELECT k0 FROM dp_0",
    "SELECT k1 * 2 + 1 FROM dp_0 WHERE k1 > 1",
    "SELECT count(*) FROM dp_0",
    "SELECT sum(k1) OVER (ORDER BY k0) FROM dp_0",
    "SELECT DISTINCT k1 FROM dp_0",
    "SELECT 1",
    "SELECT p.x FROM p",
    "SELECT max(x) FROM dp_0 JOIN p ON k1 = x",
)
FORMS = (  # all columns
    ("SELECT * FROM dp_0", [Form.EXACT, Form.EXACT, Form.WHOLE, Form.LINEAR, Form.ANY, Form.ANY]),
    ("SELECT q.* FROM dp_0 AS q, p", [Form.EXACT, Form.EXACT, Form.WHOLE, Form.LINEAR, Form.ANY, Form.ANY]),
    ("SELECT p.*, m0 FROM dp_0 AS q, p", [Form.EXACT, Form.WHOLE]),
    ("SELECT * EXCLUDE (k0) FROM (SELECT k0, m0 FROM dp_0) AS q", [Form.ANY, Form.ANY]),
    ("SELECT * FROM (SELECT k0, m0 FROM dp_0) AS a JOIN (SELECT k0, m1 FROM dp_0) AS b USING (k0)", [Form.ANY] * 4),
    ("SELECT a, b FROM (SELECT m2, m0 FROM dp_0) AS q(a, b)", [Form.ANY, Form.WHOLE]),
    ("SELECT a, m0 FROM (SELECT m2, m0 FROM dp_0) AS q(a)", [Form.ANY, Form.WHOLE]),
    ("WITH q(a) AS (SELECT m1, m0 FROM dp_0) SELECT a, m0 FROM q", [Form.LINEAR, Form.WHOLE]),
    ("SELECT M0 AS n, N + 1, n * 2 FROM dp_0", [Form.WHOLE, Form.WHOLE, Form.LINEAR]),
    ("SELECT m0, k0 FROM dp_0 UNION ALL SELECT k1, k0 FROM dp_0", [Form.WHOLE, Form.EXACT]),
    ("SELECT k1, m0 FROM dp_0 UNION ALL SELECT m2, m1 FROM dp_0", [Form.ANY, Form.LINEAR]),
    ("(SELECT k1, m0 FROM dp_0)", [Form.EXACT, Form.WHOLE]),
)  # fmt: skip
FURTHER = (  # the last column
    ("SELECT k1 * m0 FROM dp_0", Form.LINEAR),
    ("SELECT k1 / m0 FROM dp_0", Form.ANY),
    ("SELECT m2 * k1 FROM dp_0", Form.ANY),
    ("SELECT k1 * m2 FROM dp_0", Form.ANY),
    ("SELECT coalesce(m2, 0) FROM dp_0", Form.ANY),
    ("SELECT m0::DOUBLE FROM dp_0", Form.LINEAR),
    ("SELECT m2::DOUBLE FROM dp_0", Form.ANY),
    ("SELECT m0::INT FROM dp_0", Form.WHOLE),
    ("SELECT m0::VARCHAR FROM dp_0", Form.ANY),
    ("SELECT CASE k1 WHEN 1 THEN m0 END FROM dp_0", Form.LINEAR),
    ("SELECT CASE m0 WHEN 1 THEN k1 END FROM dp_0", Form.ANY),
    ("SELECT CASE WHEN k1 = 1 THEN 0 ELSE m2 END FROM dp_0", Form.ANY),
    ("SELECT avg(m2) FROM dp_0", Form.ANY),
    ("SELECT sum(m2) FROM dp_0", Form.ANY),
    ("SELECT sum(m1) FROM dp_0", Form.LINEAR),
    ("SELECT avg(m0 + k1) FROM dp_0", Form.LINEAR),
    ("SELECT nth_value(m0, 2) OVER (ORDER BY k0) FROM dp_0", Form.WHOLE),
    ("SELECT nth_value(m0, m0) OVER (ORDER BY k0) FROM dp_0", Form.ANY),
    ("SELECT last_value(m0 IGNORE NULLS) OVER (ORDER BY k0) FROM dp_0", Form.WHOLE),
    ("SELECT lag(m0, 1, 0) OVER (ORDER BY k0) FROM dp_0", Form.WHOLE),
    ("SELECT lag(m0, 1, m0) OVER (ORDER BY k0) FROM dp_0", Form.ANY),
    ("SELECT first(m0 ORDER BY k0) FROM dp_0", Form.ANY),
    ("SELECT nothing FROM dp_0", Form.ANY),
    ("SELECT k0 FROM dp_0 AS a, (SELECT m2 AS k0 FROM dp_0) AS b", Form.ANY),
    ("SELECT a.k0 FROM dp_0 AS a, (SELECT m2 AS k0 FROM dp_0) AS b", Form.EXACT),
    ("SELECT m0 + n AS n FROM dp_0", Form.ANY),
    ("SELECT (SELECT max(b.k1) FROM dp_0 AS b WHERE b.k0 = a.k0) + m0 FROM dp_0 AS a", Form.WHOLE),
    ("SELECT (SELECT m0 + max(x) FROM p) FROM dp_0", Form.WHOLE),
    ("SELECT (SELECT max(x) FROM p WHERE x > m0) FROM dp_0", Form.ANY),
    ("SELECT n FROM p, (SELECT sum(m0) AS n FROM dp_0) AS q WHERE x > 0", Form.WHOLE),
)
UNKNOWN = (
    "SELECT x FROM elsewhere",
    "SELECT k0 FROM dp_0 AS q, p AS q",
    "SELECT k0 FROM dp_0 TABLESAMPLE (1 ROWS)",
    "SELECT x FROM p JOIN (SELECT m0 AS n FROM dp_0 WHERE m0 > 1) AS q ON true",
    "SELECT k0 FROM dp_0 JOIN (SELECT m0 AS x FROM dp_0) AS q ON k1 = x",
    "SELECT a.k0 FROM dp_0 AS a JOIN (SELECT m0 AS k1 FROM dp_0) AS q USING (k1)",
    "SELECT k0 FROM dp_0 ASOF JOIN p ON k1 >= x",
    "SELECT k0 FROM dp_0 NATURAL JOIN p",
    "WITH RECURSIVE q AS (SELECT m0 AS n FROM dp_0) SELECT n FROM q",
    "SELECT k0 FROM dp_0 UNION SELECT k0 FROM dp_0",
    "SELECT k0 FROM dp_0 UNION ALL BY NAME SELECT k0 FROM dp_0",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_0 LIMIT 1",
    "SELECT k0 FROM dp_0 UNION ALL SELECT k0 FROM dp_0 WHERE m0 > 1",
    "SELECT k0 FROM dp_0 WHERE m0 > 1 UNION ALL SELECT k0 FROM dp_0",
    "SELECT k0, k1 FROM dp_0 UNION ALL SELECT k0 FROM dp_0",
    "SELECT k0 FROM dp_0 INTERSECT SELECT k0 FROM dp_0",
    "SELECT sum(k1) FROM dp_0 GROUP BY ROLLUP (m0)",
    "SELECT sum(k1) FROM dp_0 GROUP BY 7",
    "SELECT sum(k1) FROM dp_0 GROUP BY 'a'",
    "SELECT sum(k1) FROM dp_0 GROUP BY 0",
    "SELECT k0, m0 FROM dp_0 ORDER BY 2 OFFSET 1",
    "SELECT k0 FROM dp_0 LIMIT (SELECT min(m0) FROM dp_0)",
    "SELECT DISTINCT k0, m0 FROM dp_0",
)


def forms(sql: str, block_: ReleasedBlock) -> tuple[Form, ...]:
    question = remainder("SELECT 1", [block_], {"p": pa.table({"X": [1, 2]})})
    facts = column_facts(question, remainder(sql, [block_]).tree)
    return tuple(column.form for column in facts.columns) if facts.settled else ()


@pytest.mark.parametrize("sql", EXACT)
def test_what_reads_nothing_noisy_is_exact(mixed: ReleasedBlock, sql: str) -> None:
    assert forms(sql, mixed)[-1] is Form.EXACT


@pytest.mark.parametrize(("sql", "expected"), FORMS)
def test_each_column_has_a_form(mixed: ReleasedBlock, sql: str, expected: list[Form]) -> None:
    assert list(forms(sql, mixed)) == expected


@pytest.mark.parametrize(("sql", "form"), FURTHER)
def test_the_worst_of_what_is_read_decides(mixed: ReleasedBlock, sql: str, form: Form) -> None:
    assert forms(sql, mixed)[-1] is form


@pytest.mark.parametrize("sql", UNKNOWN)
def test_nothing_is_said_of_sources_and_clauses_that_are_not_listed(mixed: ReleasedBlock, sql: str) -> None:
    assert forms(sql, mixed) == ()


def test_a_measure_whose_groups_were_chosen_by_its_noise_is_not_taken_for_a_sum(mixed: ReleasedBlock) -> None:
    selected = replace(mixed, shown_from={"t0": 5.0})
    assert forms("SELECT m0, m1 FROM dp_0", selected) == (Form.ANY, Form.LINEAR)


@pytest.mark.parametrize(
    "groups",
    [GroupFacts(chosen=frozenset({"m0"})), GroupFacts(ends=(("m0", T0, T0, Fraction(19, 20)),))],
    ids=["chosen", "ends measured"],
)
def test_a_measure_whose_error_is_no_sum_of_noise_may_be_anything(mixed: ReleasedBlock, groups: GroupFacts) -> None:
    assert forms("SELECT m0, m1 FROM dp_0", replace(mixed, groups=groups)) == (Form.ANY, Form.LINEAR)
