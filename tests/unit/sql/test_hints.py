"""Refusals suggest how to write the intended query, and the suggestion is answered."""

import pytest
from sql.test_refused import worlds

from dpsql.errors.exceptions import Error
from dpsql.sql.binder.function_hints import _NAMES, _OTHER_NAMES, _WAYS, function_hint

MEANT = (
    "SELECT width_bucket(nights, 0, 100, 10) AS bucket, COUNT(*) FROM visits GROUP BY bucket",
    "SELECT -SUM(s * ln(s)) FROM (SELECT n / SUM(n) OVER () AS s FROM "
    "(SELECT ward AS x, COUNT(*) AS n FROM visits GROUP BY x) AS counts WHERE n > 0) AS shares",
    "SELECT MEDIAN(abs(nights - (SELECT MEDIAN(nights) FROM visits))) FROM visits",
    "SELECT exp(AVG(ln(clamp(cost, 1, 1000)))) FROM visits",
    "SELECT exp(SUM(ln(clamp(cost, 1, 1000)))) FROM visits",
    "SELECT SUM(nights) FILTER (WHERE nights > 3), AVG(nights) FILTER (WHERE nights > 3) FROM visits",
    "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () FROM visits GROUP BY ward",
    "SELECT floor(nights) AS n, COUNT(*) FROM visits WHERE nights = 7 / 2 OR nights = 4 GROUP BY n",
    "SELECT COUNT(*) FROM visits WHERE nights < date_part('year', CURRENT_DATE) AND cost = 'nan'::DOUBLE",
    "SELECT COUNT(*) FROM (SELECT DISTINCT ward, diagnosis FROM visits)",
    "SELECT ward, GROUPING(ward) AS g, floor(cost / 5), COUNT(*) FROM visits GROUP BY ROLLUP (ward), 3 ORDER BY g, ward",
    "SELECT (SELECT MAX(sex) FROM patients p WHERE p.patient_id = v.patient_id) AS s, COUNT(*) FROM visits v GROUP BY s",
    "SELECT COUNT(DISTINCT ward || diagnosis), COUNT(DISTINCT strftime(day, '%Y-%m')) FROM visits",
    "SELECT * FROM (PIVOT visits ON ward USING SUM(cost) GROUP BY nights) ORDER BY nights",
    "SELECT coalesce(SUM(nights), 0), COUNT(DISTINCT patient_id) FROM visits WHERE cost IS NULL",
)
CONDITIONS = {
    "nights = '3x'": "numbers stand without quotes", "ward = 3": "texts stand in single quotes",
    "smoker = 1": "write x for what is true", "nights < ''": "numbers stand without quotes",
    "nights < CURRENT_DATE": "date_part('year', CURRENT_DATE)", "cost = '-Inf'": "'nan'::DOUBLE",
    "nights IN (7 / 2, 4)": "x = a / 2 OR x = b", "smoker IN (1 = 1, FALSE)": "x = a / 2 OR x = b",
    "ward IS 'er'": "other values are compared with =", 'ward = "er"': "a text stands in single quotes: '...'",
    "limit = 3": 'in double quotes: "limit"', "`ward` = 'er'": 'in double quotes: "name"',
    "nights // 2.5 = 3": "floor(a / b)", "ward[1:2] = 'er'": "substr(x, 1, 2)", "strftime(day, '%W') = '1'": "shows how it is called",
    "date_sub(day, INTERVAL 3 DAY) < day": "d - INTERVAL 3 DAY", "nights = NULL": "write x IS NULL", "ward IN 'er'": "IN ('a', 'b')", "ward NOT IN ('er', NULL)": "write x IS NULL",
}  # fmt: skip


def refusal(sql: str) -> Error:
    with pytest.raises(Error) as caught:
        worlds(False)[0].session.execute(sql)
    return caught.value


@pytest.mark.parametrize("sql", MEANT)
def test_what_hints_say_can_be_asked(sql: str) -> None:
    session = worlds(False)[0].session
    session.plan(session.planner.parse(sql, None))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_comparison_that_means_nothing_comes_with_how_to_write_it(condition: str) -> None:
    assert (
        CONDITIONS[condition]
        in refusal(f"SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) WHERE {condition}").hint
    )


def test_names_of_hints_are_those_of_functions() -> None:
    assert set(_OTHER_NAMES.values()) <= set(_WAYS) and not set(_NAMES) & (set(_WAYS) | set(_OTHER_NAMES))
    assert function_hint("xyzzy") is None and function_hint("median") is None


def test_ties_have_a_way_to_be_written() -> None:
    error = refusal("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC FETCH FIRST 3 ROWS WITH TIES")
    assert error.message == "WITH TIES is not allowed here" and "QUALIFY rank() OVER (ORDER BY ...) <= n" in error.hint
