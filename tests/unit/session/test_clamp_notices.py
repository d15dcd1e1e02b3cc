"""Notices of EXPLAIN about values that the policy's bounds change, in sums, means and choices among values."""

from collections.abc import Iterator

import pytest
from support.clinic import build

from dpsql.session.session import Session, open_session

AGE = "values of age below 0 or above 120 count as 0 or 120"
COST = "values of cost below 0 or above 1000 count as 0 or 1000"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("clamps")
    with open_session(build(folder), create_ledger=True) as opened:
        yield opened


def _said(session: Session, sql: str) -> list[str]:
    return [line for line in session.explain(sql).lines if "count as" in line]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT SUM(age) FROM patients", [AGE]),
        ("SELECT AVG(age), VAR_POP(age), MEDIAN(age), COUNT(age) FROM patients GROUP BY region", [AGE]),
        ("SELECT MAX(age) FROM patients", [AGE]),
        ("SELECT SUM(DISTINCT age) FROM patients", [AGE]),
        ("SELECT CORR(age, weight) FROM patients", [AGE, "values of weight below 0 or above 300 count as 0 or 300"]),
        ("SELECT SAMPLE_AGGREGATE(SKEWNESS(age), -5, 5) FROM patients", [AGE]),
        ("SELECT COUNT(age), COUNT(DISTINCT age) FROM patients WHERE age > 20", []),
        ("SELECT BOOL_OR(age > 100) FROM patients", []),
        ("SELECT SUM(CASE WHEN age > 65 THEN 1 ELSE 0 END) FROM patients", []),
        ("SELECT AVG(clamp(age, 18, 90)) FROM patients", []),
        ("SELECT AVG(clamp(age, -10, 90)) FROM patients", ["values of clamp(age, -10, 90) below 0 count as 0"]),
        ("SELECT AVG(least(age, 90)) FROM patients WHERE age IS NOT NULL",
         ["values of least(age, 90) below 0 count as 0"]),
        ("SELECT SUM(age * 2) FROM patients", ["values of (age * 2) below 0 or above 240 count as 0 or 240"]),
        ("SELECT AVG(a) FROM (SELECT age AS a FROM patients) p", [AGE]),
        ("SELECT AVG(d) FROM (SELECT age + 1 AS d FROM patients) p",
         ["values of (age + 1) below 1 or above 121 count as 1 or 121"]),
        ("SELECT AVG(p.age), SUM(v.cost) FROM patients p JOIN visits v ON p.patient_id = v.patient_id", [COST, AGE]),
        ("SELECT AVG(s) FROM (SELECT patient_id, SUM(cost) AS s FROM visits GROUP BY patient_id) t", [COST]),
        ("SELECT AVG(m) FROM (SELECT patient_id, MAX(cost) AS m FROM visits GROUP BY patient_id) t",
         ["values of max(cost) below 0 or above 1000 count as 0 or 1000"]),
        ("SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t", []),
        ("SELECT SUM(x) FROM (SELECT age AS x FROM patients UNION ALL SELECT 3 FROM patients) t",
         ["values of age below 0 or above 120 count as 0 or 120"]),
        ("SELECT SUM(cost - clamp((SELECT AVG(cost) FROM visits), 0, 10)) FROM visits",
         [COST, "values of (cost - clamp((select ...), 0, 10)) below -10 or above 1000 count as -10 or 1000"]),
    ],
)  # fmt: skip
def test_values_beyond_the_bounds_are_named_before_paying(session: Session, sql: str, expected: list[str]) -> None:
    assert _said(session, sql) == expected
