"""Texts that ask the same have the same releases: how a driver writes its parameters does not cost a second charge."""

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from pathlib import Path

import pytest
from support.clinic import build
from support.equal_forms import PlainAnswers, question, text
from support.neighbouring_hospitals import together
from support.places import policy
from support.recording_session import World
from support.seeds import seeds

from dpsql.errors.exceptions import Error
from dpsql.session.session import open_session
from dpsql.storage.records import replace

SAME = [
    [
        "day >= '2024-02-01'",
        "day >= DATE '2024-02-01'",
        "day >= ('2024-02-01'::date)",
        "day >= CAST('2024-02-01' AS DATE)",
    ],
    [
        "seen > TIMESTAMP '2024-02-01 00:30:00'",
        "seen > TIMESTAMPTZ '2024-02-01 02:30:00+02'",
        "seen > '2024-01-31T19:00:00-0530'::timestamptz",
    ],
    ["seen > '2024-02-01'", "seen > TIMESTAMP '2024-02-01 00:00:00'", "seen > '2024-02-01 00:00:00'::timestamp"],
    [
        "nights > 5", "nights > CAST(5 AS INTEGER)", "nights > ('5'::int4)", "nights > 5::bigint",
        "nights > ('5'::int8)::int4",
    ],
    ["cost > 0.1", "cost > '0.1'::float8", "cost > 0.1::double precision", "cost > '0.10'::numeric(10, 2)"],
    ["cost > 5.0", "cost > CAST(5 AS DOUBLE)", "cost > '5'::float8"],
    ["cost > -5", "cost > '-5'::int4", "cost > -CAST(5 AS INTEGER)"],
    ["ward = 'er'", "ward = 'er'::text", "ward = CAST('er' AS varchar)"],
    [
        "smoker = true", "smoker = 'true'::boolean", "smoker = 't'", "'yes' = smoker", "smoker IN ('true')",
        "smoker = ('t'::bool)",
    ],
    ["nights IN (1, 2)", "nights IN ('1'::int4, CAST(2 AS integer))"],
    ["nights BETWEEN 1 AND 2", "nights BETWEEN '1'::int4 AND '2'::int4"],
    [
        "nights > 5",
        "TRUE AND nights > 5",
        "1 = 1 AND nights > 5",
        "nights > 5 AND nights > 5",
        "nights > 5 OR FALSE",
        "(nights > 5 OR 1 > 2) AND 'a' IN ('a', 'b') AND NOT FALSE",
        "nights > 5 AND NULL IS NULL",
    ],
    [
        "ward IN ('er', 'icu')", "ward IN (VALUES ('icu'), ('er'))", "ward IN (SELECT unnest(['er', 'icu']))",
        "ward IN (SELECT w FROM (VALUES ('er'), ('icu')) t(w))", "ward IN (SELECT 'er' UNION SELECT 'icu')", "ward ~ '^(er|icu)$'",
        "ward IN ('er', NULL, 'icu')",
    ],
    ["isodow(day) = 1", "dayname(day) = 'Monday'", "strftime(day, '%a') = 'Mon'"],
    ["month(day) = 5", "monthname(day) = 'May'", "strftime(day, '%m') = '05'", "to_char(day, 'MM')::INT = 5"],
    ["nights // 10 = 2", "floor(nights / 10) = 2", "floor(nights / 10) * 10 = 20", "floor(nights / 10)::INT IN (2)"],
    ["year(day) = 2024", "day::TEXT LIKE '2024%'", "left(day::VARCHAR, 5) = '2024-'", "strftime(day, '%Y')::INT = 2024"],
    ["nights NOT IN () AND nights IN (2, 3)", "nights BETWEEN 2 AND 3 AND nights NOT IN ()"],
    ["ward LIKE '%'", "ward IS NOT NULL", "ward LIKE '%%'"],
    ["year(day) IN (2023, 2024)", "day >= '2023-01-01' AND day < '2025-01-01'", "year(day) BETWEEN 2023 AND 2024"],
    ["ward LIKE '%e%'", "ward LIKE '%' || 'e' || '%'", "ward LIKE concat('%', lower('E'), '%')"],
    [
        "nights IN (1, 2, 3)",
        "nights IN (3, 1, 2, 2)",
        "nights = 1 OR nights = 3 OR nights = 2",
        "2 = nights OR nights IN (3, 1.0)",
    ],
    ["nights NOT IN (1, 2)", "nights <> 2 AND 1 <> nights", "NOT (nights = 1 OR nights = 2)"],
    ["nights > 4", "nights >= 5", "4 < nights", "NOT nights <= 4", "nights > 4.0", "nights >= 4.5", "nights > 2 + 2"],
    ["nights = 4", "4 = nights", "nights IN (4)", "nights = 4.0"],
    ["nights > 4 AND ward = 'er'", "ward = 'er' AND nights >= 5", "NOT (ward <> 'er' OR nights < 5)"],
    ["cost > 5", "5.0 < cost", "NOT cost <= 5"],
    ["smoker", "smoker = TRUE", "smoker IS TRUE", "smoker <> FALSE", "NOT (smoker = FALSE)", "smoker IN (TRUE)"],
    ["NOT smoker", "smoker = FALSE", "smoker IS FALSE", "(NOT smoker) IS TRUE", "smoker <> TRUE", "smoker IN (FALSE)"],
    [
        "day >= '2024-02-01' AND day < '2024-03-01'",
        "day BETWEEN '2024-02-01' AND '2024-02-29'",
        "day > DATE '2024-01-31' AND NOT day >= DATE '2024-02-01' + INTERVAL 29 DAY",
    ],
    ["TRUE", "1 = 1", "nights > 5 OR TRUE", "NOT (1 = 2)", "TRUE AND 2 BETWEEN 1 AND 3", "1 IS NOT DISTINCT FROM 1"],
    [
        "day > DATE '2024-02-01' - INTERVAL 30 DAY",
        "day > DATE '2024-02-01' - '30 days'::interval",
        "day > '2024-1-2'",
        "day > make_date(2024, 1, 2)",
        "day > DATE '2024-02-01' - make_interval(days => 30)",
        "day > DATE '2024-02-01' - make_interval(0, 0, 4, 2)",
        "day > DATE '2024-02-01' + INTERVAL '30 days ago'",
        "day > '-4 w -2 d'::interval + DATE '2024-02-01'",
        "day > DATE '2024-01-01' + INTERVAL '1 day 00:00'",
    ],
    [
        "seen > TIMESTAMP '2024-02-29 12:00:00'",
        "seen > TIMESTAMP '2024-02-01 12:00' + INTERVAL '4 weeks'",
        "seen > TIMESTAMP '2023-01-31 10:30:00' + INTERVAL '1 year 1 mon 01:30'",
        "seen > TIMESTAMP '2024-03-31 13:00:00' - make_interval(months => 1, hours => 1)",
        "seen > TIMESTAMP '2024-02-28 12:00' + INTERVAL '0.5 days' + INTERVAL '43200.0 s'",
    ],
    [
        "ward IN (diagnosis, 'er', 'icu')",
        "ward = diagnosis OR ward IN ('icu', 'er')",
        "ward = SOME ('{er, icu}') OR ward = diagnosis",
    ],
    ["ward = 'er'", "ward = E'er'", r"ward = e'\x65\u0072'"],
    ["patient_id IN (SELECT w.patient_id FROM visits AS w)", "patient_id = ANY (SELECT w.patient_id FROM visits AS w)"],
    [
        "patient_id NOT IN (SELECT w.patient_id FROM visits AS w)",
        "patient_id <> ALL (SELECT w.patient_id FROM visits AS w)",
    ],
    ["FALSE", "nights > 5 AND 1 = 2", "NOT TRUE", "FALSE OR 2 < 1"],
    ["nights > 4", "nights - 4 > 0", "-nights < -4", "9 - nights <= 4", "5 <= nights - 0"],
    ["nights BETWEEN 4 AND 8", "nights + 1 BETWEEN 5 AND 9", "nights * 3 BETWEEN 10 AND 26", "(-nights) // 4 IN (-1, -2) AND nights < 9"],
    ["abs(nights) <= 3", "nights BETWEEN -3 AND 3", "abs(-nights) < 4", "abs(nights) IN (0, 1, 2, 3)"],
    ["isodow(day) IN (6, 7)", "dayofweek(day) IN (0, 6)", "EXTRACT(isodow FROM day) >= 6", "NOT isodow(day) < 6"],
    ["month(seen) < 4", "month(seen) IN (1, 2, 3)", "month(seen) BETWEEN 1 AND 3", "NOT month(seen) > 3"],
    ["nights BETWEEN 20 AND 29", "nights // 10 = 2", "nights IN (20, 21, 22, 23, 24, 25, 26, 27, 28, 29)"],
    [
        "day BETWEEN '2024-05-01' AND '2024-05-31'",
        "month(day) = 5 AND year(day) = 2024",
        "EXTRACT(year FROM day) = 2024 AND EXTRACT(month FROM day) = 5",
        "date_trunc('month', day) = '2024-05-01'",
        "strftime(day, '%Y-%m') = '2024-05'",
        "strftime(day, '%m/%Y') IN ('05/2024')",
        "quarter(day) = 2 AND day >= '2024-05-01' AND day < '2024-06-01'",
    ],
    [
        "seen >= '2023-04-01' AND seen < '2023-07-01'",
        "quarter(seen) = 2 AND year(seen) = 2023",
        "CAST(seen AS DATE) BETWEEN '2023-04-01' AND '2023-06-30'",
        "month(CAST(seen AS DATE)) IN (4, 5, 6) AND year(seen) = 2023",
    ],
    ["ward ILIKE 'Er'", "lower(ward) = 'er'", "LOWER(ward) LIKE 'er'", "lower(ward) = lower('ER')"],
    ["ward ILIKE '%E%'", "lower(ward) LIKE '%e%'", "contains(lower(ward), 'e')"],
    ["ward = ''", "length(ward) = 0", "char_length(ward) < 1", "ward LIKE ''", "length(ward) <= 0"],
    ["ward <> ''", "length(ward) > 0", "NOT length(ward) = 0", "length(ward) >= 1"],
    ["left(ward, 1) = 'e'", "ward LIKE 'e%'", "position('e' IN ward) = 1", "starts_with(ward, 'e')"],
    ["smoker", "smoker::INT = 1", "CAST(smoker AS INTEGER) > 0", "smoker::INT <> 0"],
    [
        "ward IS DISTINCT FROM 'er'",
        "ward IS NULL OR ward <> 'er'",
        "COALESCE(ward, '') <> 'er'",
        "NOT ward IS NOT DISTINCT FROM 'er'",
        "(ward = 'er') IS NOT TRUE",
        "NOT coalesce(ward = 'er', FALSE)",
    ],
    ["ward = 'er' AND (nights > 3 OR smoker)", "ward = 'er' AND nights > 3 OR ward = 'er' AND smoker"],
    ["ward = 'er' OR nights > 3 AND cost > 5", "(ward = 'er' OR nights > 3) AND (ward = 'er' OR cost > 5)"],
    [
        "ward = 'er' AND (nights > 3 OR cost > 5) OR nights = 0",
        "nights = 0 OR cost > 5 AND ward = 'er' OR nights > 3 AND ward = 'er'",
        "nights = 0 OR cost > 5 AND ward = 'er' OR nights > 3 AND ward = 'er' OR ward = 'er' AND nights > 3 AND cost > 5",
    ],
]  # fmt: skip
OTHER = [
    ("left(ward, 2) = 'e'", "ward LIKE 'e%'"), ("right(diagnosis, 1) = 'e'", "diagnosis LIKE '%e'"), ("nights <> 4", "nights > 4"),
    ("seen <= '2024-12-31'", "year(seen) <= 2024"), ("month(day) = 2", "date_trunc('month', day) = '2024-02-01'"),
    ("floor(code) IN (1, 9007199254740992)", "code IN (1, 9007199254740992)"),
    ("coalesce(nights, 0.5) > 9007199254740992", "nights > 9007199254740992"), ("coalesce(nights, 2.5) <> 4", "nights <> 4 OR nights IS NULL"),
    ("nights + 1 > 5", "nights > 4"), ("abs(nights) > 3", "nights > 3 OR nights < -3"), ("upper(ward) = 'ER'", "lower(ward) = 'er'"), ("strftime(day, '%Y-%m') = '2024-5'", "strftime(day, '%Y-%m') = '2024-05'"),
    ("nights > 5", "nights > 6"), ("cost > 0.1", "cost > '0.15'::numeric(10, 1)"), ("cost > 5", "cost > 5.5"),
    ("nights > TRY_CAST('five' AS integer)", "nights > 5"), ("nights > CAST(2.5 AS INT)", "nights > CAST(2.5::DOUBLE AS INT)"),
    ("nights > 5 AND NULL", "nights > 5"), ("nights = nights", "TRUE"), ("nights > 5 OR NULL", "nights > 5"),
    ("nights > 5 AND nights > 6", "nights > 5"), ("NOT (nights > 5 OR FALSE)", "nights > 5"),
    ("cost > 5", "cost >= 6"), ("nights IN (1, 2)", "nights IN (1, 3)"), ("NOT smoker", "smoker"),
    ("smoker IS NOT TRUE", "NOT smoker"), ("nights = 4.5", "nights = 4"), ("seen > TIMESTAMP '2024-02-01' - INTERVAL '1 month 1 day'", "seen > '2024-01-01'"), ("ward LIKE '%e%'", "ward ILIKE '%e%'"),
]  # fmt: skip


@lru_cache(maxsize=1)
def world() -> World:
    opened = World(policy("hospital"))
    opened.load(together({}, {}))
    return opened


def keys(condition: str) -> tuple[str, ...]:
    session = world().session
    statement = session.planner.parse(
        f"SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) WHERE {condition}", None
    )
    return session.planner.plan(statement, session.options, cacheable=False).keys


@pytest.mark.parametrize("conditions", SAME, ids=lambda conditions: conditions[0])
def test_conditions_that_mean_the_same_name_one_release(conditions: list[str]) -> None:
    assert len({keys(condition) for condition in conditions}) == 1


@pytest.mark.parametrize("pair", OTHER, ids=lambda pair: pair[1])
def test_conditions_that_differ_name_different_releases(pair: tuple[str, str]) -> None:
    assert keys(pair[0]) != keys(pair[1])


def whole(sql: str) -> tuple[str, ...]:
    session = world().session
    return session.plan(session.planner.parse(sql, None)).keys


WHOLE = [
    [
        "SELECT COUNT(*) FROM visits WHERE cost > 3", "SELECT COUNT(*) FILTER (WHERE cost > 3) FROM visits",
        "SELECT SUM(CASE WHEN cost > 3 THEN 1 ELSE 0 END) FROM visits WHERE cost IS NOT NULL", "SELECT COUNT_IF(cost > 3) FROM visits",
    ],
    ["SELECT ward, AVG(cost) FROM visits GROUP BY ward", "SELECT ward, AVG(cost) FROM visits WHERE cost IS NOT NULL GROUP BY ward"],
    ["SELECT MEDIAN(cost) FROM visits", "SELECT MEDIAN(cost) FROM visits WHERE cost IS NOT NULL"],
    ["SELECT ward, COUNT(code) FROM visits GROUP BY ward", "SELECT ward, COUNT(*) FROM visits WHERE code IS NOT NULL GROUP BY ward"],
    ["SELECT ward, COUNT(*) FROM visits GROUP BY ward", "SELECT MAX(ward), ANY_VALUE(ward), COUNT(*) FROM visits GROUP BY ward"],
    *(
        [
            f"SELECT COUNT(*) FROM visits a {kind} JOIN visits b ON a.patient_id = b.patient_id AND a.ward = b.ward",
            f"SELECT COUNT(*) FROM visits a {kind} JOIN visits b ON b.ward = a.ward AND b.patient_id = a.patient_id",
            f"SELECT COUNT(*) FROM visits a {kind} JOIN visits b USING (patient_id, ward)",
            f"SELECT COUNT(*) FROM visits a {kind} JOIN visits b USING (ward, patient_id)",
        ]
        for kind in ("INNER", "LEFT", "FULL")
    ),
    ["SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM visits WHERE TRUE", "SELECT COUNT(*) FROM visits WHERE 1 = 1",
     "SELECT COUNT(*) FILTER (WHERE 1 = 1) FROM visits"],
    ["SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM (SELECT * FROM visits)",
     "SELECT COUNT(*) FROM (SELECT * FROM visits WHERE TRUE) WHERE NOT FALSE", "WITH t AS (FROM visits) SELECT COUNT(*) FROM t",
     "SELECT COUNT(*) FROM (SELECT ward AS w FROM (SELECT ward, nights FROM visits) AS a) AS b"],
    *(
        [f"WITH v AS (FROM visits) {text.format('visits')}", f"WITH v AS (FROM visits) {text.format('v')}",
         text.format("(SELECT * FROM (SELECT * EXCLUDE (day), day AS day FROM visits))")]
        for text in (
            "SELECT a.ward, COUNT(*) FROM {} AS a JOIN patients AS p ON p.patient_id = a.patient_id WHERE p.age > a.nights GROUP BY a.ward",
            "SELECT COUNT(a.ward), SUM(a.nights) FROM patients AS p LEFT JOIN {} AS a USING (patient_id)",
            "SELECT price, COUNT(*) FROM {} AS a LEFT JOIN prices USING (ward) GROUP BY price",
            "SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM {} AS a WHERE nights > 5)",
            "SELECT COUNT(*) FROM {} AS a WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = a.patient_id AND v.day > a.day)",
            "SELECT AVG(n), MAX(w) FROM (SELECT patient_id, COUNT(*) AS n, LAST(nights ORDER BY day) AS w FROM {} AS a GROUP BY 1)",
            "SELECT COUNT(*) FROM (SELECT ward, lag(nights) OVER (PARTITION BY patient_id ORDER BY day) AS l FROM {} AS a) WHERE l > 2",
            "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ward, nights, day FROM {} AS a) GROUP BY ward",
            "SELECT COUNT(*) FROM (SELECT nights FROM {} AS a UNION ALL SELECT age FROM patients) WHERE nights > 7",
        )
    ),
    [f"SELECT COUNT(*) FROM visits a WHERE EXISTS (SELECT 1 FROM visits v WHERE {tests} AND v.nights > 5)" for tests in
     ("v.patient_id = a.patient_id AND v.ward = a.ward", "a.ward = v.ward AND v.patient_id = a.patient_id")],
    ["SELECT ward, SUM(nights) FROM visits WHERE nights > 5 GROUP BY ward",
     "SELECT a, SUM(b) FROM (SELECT ward AS a, nights AS b FROM visits) AS t WHERE b > 5 GROUP BY a",
     "SELECT a, SUM(b) FROM (SELECT ward AS a, nights AS b FROM (SELECT nights, ward FROM visits) AS s WHERE nights > 5) AS t GROUP BY a"],
    ["SELECT ward, SUM(nights) FROM visits WHERE nights > 5 GROUP BY ward",
     "SELECT ward, SUM(nights) FILTER (WHERE TRUE) FROM visits WHERE 1 = 1 AND nights > 5 GROUP BY ward"],
    ["SELECT COUNT(*) FILTER (WHERE nights > 3) FROM visits WHERE ward = 'er'", "SELECT SUM((nights > 3)::INT) FROM visits WHERE ward = 'er'",
     "SELECT COUNT(IF(nights > 3, 1, NULL)) FROM (SELECT * FROM visits WHERE ward = 'er')", "SELECT SUM(IF(NOT nights > 3, 0, 1)) FROM visits WHERE ward = 'er'"],
    ["SELECT ward, COUNT(*) FILTER (WHERE nights > 3 OR cost > 5), COUNT(*) FROM visits GROUP BY ward",
     "SELECT ward, SUM(CASE WHEN nights > 3 THEN 1 WHEN cost > 5 THEN 1 ELSE 0 END), SUM(1) FROM visits GROUP BY ward",
     "SELECT ward, COUNT_IF(cost > 5 OR nights > 3), COUNT(nights) FROM visits GROUP BY ward"],
    ["SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) FILTER (WHERE nights > 3) AS n FROM visits GROUP BY patient_id)",
     "SELECT AVG(n) FROM (SELECT patient_id, SUM(CASE WHEN nights > 3 THEN 1 ELSE 0 END) AS n FROM visits GROUP BY patient_id)"],
    ["SELECT COUNT(*) FROM visits v LEFT JOIN prices c ON v.ward = c.ward AND nights > 3 AND cost > 5",
     "SELECT COUNT(*) FROM prices c RIGHT JOIN visits v ON cost > 5 AND v.ward = c.ward AND NOT nights <= 3"],
    ["SELECT COUNT(*) FROM visits WHERE cost > 5 AND nights > 3",
     "SELECT COUNT(*) FROM (SELECT * FROM visits WHERE nights > 3) WHERE cost > 5",
     "SELECT COUNT(*) FROM (SELECT cost AS c, nights FROM visits WHERE cost > 5) WHERE nights > 3",
     "WITH a AS (SELECT * FROM visits WHERE cost > 5), b AS (SELECT * FROM a WHERE TRUE) SELECT COUNT(*) FROM b WHERE nights > 3"],
    ["SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id) WHERE age > 3 AND nights > 3",
     "SELECT COUNT(*) FROM (SELECT * FROM visits v JOIN patients p USING (patient_id) WHERE nights > 3) WHERE age > 3"],
    ["SELECT COUNT(*) FROM (SELECT patient_id, FIRST(nights ORDER BY day) AS n FROM visits GROUP BY patient_id HAVING n > 2) WHERE n < 9",
     "SELECT COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY day) AS r FROM visits) WHERE r = 1 AND nights > 2 AND nights < 9"],
    ["SELECT date_trunc('month', seen)::DATE AS m, year(seen) AS y, COUNT(*) FROM visits GROUP BY ALL",
     "SELECT CAST(date_trunc('month', seen::DATE) AS DATE) AS m, EXTRACT(year FROM seen::DATE) AS y, COUNT(*) FROM visits GROUP BY ALL"],
    ["SELECT date_trunc('week', day) AS w, month(day) AS m, COUNT(*) FROM visits GROUP BY ALL",
     "SELECT date_trunc('week', day::TIMESTAMP)::DATE AS w, month(day::TIMESTAMP) AS m, COUNT(*) FROM visits GROUP BY ALL"],
    ["SELECT nights + 1 AS n, COUNT(*) FROM visits WHERE nights + 1 > 5 GROUP BY n",
     "SELECT nights + 1 AS n, COUNT(*) FROM visits WHERE n > 5 GROUP BY n"],
    ["SELECT nights + 1 AS cost, COUNT(*) FROM visits v WHERE v.cost > 5 GROUP BY nights",
     "SELECT nights + 1 AS cost, COUNT(*) FROM visits v WHERE cost > 5 GROUP BY nights"],
    ["SELECT zone, AVG(p.age), SUM(v.cost) FROM visits v JOIN (SELECT p.*, zone FROM patients p JOIN regions r ON p.region = r.region) p "
     "ON v.patient_id = p.patient_id WHERE v.nights > p.age AND zone <> 'x' GROUP BY zone",
     "SELECT zone, AVG(p.age), SUM(v.cost) FROM visits v JOIN patients p ON v.patient_id = p.patient_id JOIN regions r ON p.region = r.region "
     "WHERE v.nights > p.age AND zone <> 'x' GROUP BY zone",
     "SELECT zone, AVG(a), SUM(c) FROM (SELECT cost AS c, nights AS n, patient_id AS k FROM visits) v JOIN (SELECT patient_id AS k, age AS a, "
     "zone FROM (SELECT * FROM regions WHERE zone <> 'x') r JOIN patients p USING (region)) p USING (k) WHERE n > a GROUP BY zone"],
    ["SELECT COUNT(DISTINCT patient_id) FROM visits WHERE nights > 3", "SELECT COUNT(*) FROM (SELECT DISTINCT patient_id FROM visits WHERE nights > 3)",
     "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE nights > 3 GROUP BY patient_id)"],
    ["SELECT COUNT(*) FROM visits v JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) q USING (patient_id) WHERE n > 2",
     "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING COUNT(*) > 2) q JOIN visits v ON v.patient_id = q.patient_id"],
    ["SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)",
     "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND 1 = 1)",
     "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT DISTINCT * FROM visits v WHERE v.patient_id = p.patient_id LIMIT 1)"],
    ["SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM (SELECT v.patient_id AS k FROM visits v "
     ", prices i WHERE price > 5 AND i.ward = v.ward) WHERE k = p.patient_id)",
     "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT * FROM visits v, prices i "
     "WHERE price > 5 AND i.ward = v.ward AND v.patient_id = p.patient_id)"],
    ["SELECT r.region, r.zone, COUNT(*) FROM patients p JOIN regions r ON r.region = p.region GROUP BY r.region, zone",
     "SELECT r.region, zone, COUNT(*) FROM patients p JOIN regions r ON r.region = p.region GROUP BY 1 ORDER BY upper(zone)"],
    ["SELECT COUNT(*) FROM (SELECT nights AS x FROM visits UNION ALL SELECT age FROM patients) q WHERE x > 3",
     "SELECT COUNT(*) FROM (SELECT age AS y FROM patients UNION ALL SELECT nights FROM visits) q WHERE y > 3"],
    ["SELECT COUNT(x) FROM (SELECT nights AS x FROM visits UNION ALL SELECT age FROM patients UNION ALL SELECT code FROM visits WHERE code < 9) q WHERE x > 3",
     "SELECT COUNT(x) FROM (SELECT age AS x FROM patients UNION ALL (SELECT code FROM visits WHERE code < 9 UNION ALL SELECT nights FROM visits)) q WHERE x > 3",
     "SELECT COUNT(x) FROM ((SELECT code AS x FROM visits WHERE code < 9 UNION ALL SELECT age FROM patients) UNION ALL SELECT nights FROM visits) q WHERE x > 3"],
    ["SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE nights > 3 UNION SELECT patient_id FROM patients WHERE age > 9 UNION SELECT patient_id FROM visits WHERE cost > 7) q",
     "SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE cost > 7 UNION (SELECT patient_id FROM visits WHERE nights > 3 UNION ALL SELECT patient_id FROM patients WHERE age > 9)) q"],
    ["SELECT AVG(n) FROM (SELECT patient_id, age, COUNT(*) AS n FROM visits JOIN patients AS p USING (patient_id) GROUP BY patient_id, age) WHERE age > 9",
     "SELECT AVG(n) FROM (SELECT p.patient_id, age, COUNT(*) AS n FROM visits JOIN patients AS p USING (patient_id) GROUP BY p.patient_id) WHERE age > 9"],
    ["SELECT COUNT(*) FROM visits WHERE nights * 2 > 5", "SELECT COUNT(*) FROM visits v, LATERAL (SELECT v.nights * 2 AS d) q WHERE q.d > 5",
     "SELECT COUNT(*) FROM visits JOIN LATERAL (SELECT nights * 2) q(d) ON d > 5"],
    ["SELECT region, COUNT(*) FROM patients p GROUP BY region",
     "SELECT region, COUNT(*), (SELECT zone FROM regions r WHERE r.region = p.region) FROM patients p GROUP BY region"],
    ["SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) WHERE n > 1",
     "SELECT COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits WHERE TRUE GROUP BY patient_id) WHERE n > 1 AND TRUE"],
    ["WITH t AS (SELECT * FROM visits) SELECT MAX(nights), BOOL_AND(cost > 5) FROM t",
     "WITH t AS MATERIALIZED (SELECT * FROM visits) SELECT MAX(DISTINCT nights), EVERY(cost > 5) FROM t",
     "WITH t AS NOT MATERIALIZED (SELECT * FROM visits) SELECT MAX(nights), BOOL_AND(cost > 5) FROM t"],
    ["SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY patient_id ORDER BY day) AS k FROM visits) WHERE k = 1",
     "SELECT COUNT(*) FROM (SELECT row_number() OVER w AS k FROM visits WINDOW w AS (PARTITION BY patient_id ORDER BY day)) WHERE k = 1",
     "SELECT COUNT(*) FROM (SELECT row_number() OVER (p ORDER BY day) AS k FROM visits WINDOW o AS (ORDER BY ward), "
     "p AS (PARTITION BY patient_id)) WHERE k = 1"],
    ["SELECT AVG(nights) FROM (SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY visit_id DESC) AS r FROM visits) WHERE r = 1",
     "SELECT AVG(nights) FROM (SELECT * FROM visits QUALIFY row_number() OVER (PARTITION BY patient_id ORDER BY visit_id DESC NULLS FIRST) = 1)",
     "SELECT AVG(n) FROM (SELECT DISTINCT ON (patient_id) patient_id, nights AS n FROM visits ORDER BY patient_id, visit_id DESC)",
     "SELECT AVG(n) FROM (SELECT patient_id, ARG_MAX(nights, visit_id) AS n FROM visits GROUP BY patient_id)",
     "SELECT AVG(n) FROM (SELECT patient_id, LAST(nights ORDER BY visit_id) AS n FROM visits GROUP BY patient_id)",
     "WITH f AS (SELECT patient_id AS p, FIRST(nights ORDER BY patient_id, visit_id DESC) AS n FROM visits GROUP BY p) SELECT AVG(n) FROM f"],
    ["SELECT ward, COUNT(*) FROM (SELECT *, row_number() OVER (PARTITION BY patient_id ORDER BY day, cost) AS r FROM visits) WHERE r = 1 GROUP BY ward",
     "SELECT w, COUNT(*) FROM (SELECT patient_id, FIRST(ward ORDER BY day, cost) AS w FROM visits GROUP BY patient_id) GROUP BY w",
     "SELECT ward, COUNT(*) FROM (SELECT DISTINCT ON (patient_id) * FROM visits ORDER BY patient_id, day, cost) GROUP BY ward"],
    ["SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)",
     "SELECT COUNT(*) FROM visits WHERE cost > ALL (SELECT AVG(cost) FROM visits)",
     "SELECT COUNT(*) FROM visits WHERE cost > ANY (SELECT AVG(cost) FROM visits)"],
    ["SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) QUANTILE_CONT(clamp(cost, 0, 10), 0.5) FROM visits",
     "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = .5) PERCENTILE_CONT(cost, 0.5, "
     "contribution_bounds_per_row => (0, 10)) FROM visits"],
    ["SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) n FROM (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT COUNT(*) FROM patients)",
     "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM visits UNION ALL "
     "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) FROM patients"],
    ["SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 2) ward, "
     "SUM(cost, contribution_bounds_per_group => (-1, 9)), COUNT(*, contribution_bounds_per_group => (0, 5)) FROM visits GROUP BY ward",
     "SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1, kappa = 2) ward, ANON_SUM(cost CLAMPED BETWEEN -1 AND 9), "
     "ANON_COUNT(* CLAMPED BETWEEN 0 AND 5) FROM visits GROUP BY ward"],
    ["SELECT WITH DIFFERENTIAL_PRIVACY AVG(cost), VAR_POP(clamp(cost, 1, 9)), PERCENTILE_CONT(clamp(nights, 0, 7), 0.5) FROM visits",
     "SELECT WITH ANONYMIZATION ANON_AVG(cost), ANON_VAR_POP(cost CLAMPED BETWEEN 1 AND 9), "
     "ANON_PERCENTILE_CONT(nights, 0.5 CLAMPED BETWEEN 0 AND 7) FROM visits"],
    ["SELECT COUNT(*) FROM visits WHERE NOT ((nights, cost) >= (1, 2) AND (nights, cost) <= (3, 9))",
     "SELECT COUNT(*) FROM visits WHERE (nights, cost) NOT BETWEEN (1, 2) AND (3, 9)"],
    ["SELECT AVG(cost) FROM visits", "SELECT AVG(cost, report_format => 'JSON') FROM visits",
     "SELECT ANON_AVG(cost WITH REPORT (FORMAT = JSON)) FROM visits"],
    ["SELECT COUNT(*), SUM(cost) FROM visits AS v FULL JOIN patients AS p ON v.patient_id = p.patient_id WHERE p.patient_id > 3",
     "SELECT COUNT(*), SUM(cost) FROM patients AS p FULL JOIN visits AS v ON v.patient_id = p.patient_id WHERE p.patient_id > 3"],
    ["SELECT COUNT(*) FROM visits AS v FULL JOIN patients AS p ON v.patient_id = p.patient_id WHERE coalesce(v.patient_id, p.patient_id) > 3",
     "SELECT COUNT(*) FROM visits AS v FULL JOIN patients AS p USING (patient_id) WHERE patient_id > 3",
     "SELECT COUNT(*) FROM visits AS v NATURAL FULL JOIN patients AS p WHERE patient_id > 3"],
    ["SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE nights > 3)",
     "SELECT COUNT(*) FROM patients AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id AND nights > 3)",
     "SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT * FROM visits WHERE (nights > 3) AND (p.patient_id = patient_id))"],
    ["SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM prices WHERE price > 3 OR price < 1)",
     "SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM prices AS r WHERE (r.price > 3 OR r.price < 1) AND r.ward = v.ward)"],
    ["SELECT nights > 3 AS long, COUNT(*) FROM visits GROUP BY ROLLUP (nights > 3)",
     "SELECT nights > 3 AS long, COUNT(*) FROM visits GROUP BY GROUPING SETS ((nights > 3), ())"],
    ["SELECT COUNT(*) FROM visits WHERE ward SIMILAR TO '(e|i)[a-z]+'", "SELECT COUNT(*) FROM visits WHERE ward ~ '^(e|i)[a-z]+$'"],
    [r"SELECT COUNT(*) FROM visits WHERE ward SIMILAR TO '\(er|[(]icu\)'", r"SELECT COUNT(*) FROM visits WHERE ward ~ '^(\(er|[(]icu\))$'"],
    ["SELECT strftime('%Y-%m', day), COUNT(*) FROM visits GROUP BY 1", "SELECT strftime(day, '%Y-%m'), COUNT(*) FROM visits GROUP BY 1"],
    ["SELECT AVG(clamp(CAST(cost AS DOUBLE) / NULLIF(nights, 0), 0, 9)) FROM visits",
     "SELECT AVG(clamp(SAFE_DIVIDE(cost, nights), 0, 9)) FROM visits"],
]  # fmt: skip


@pytest.mark.parametrize("questions", WHOLE, ids=lambda questions: questions[0])
def test_conditions_that_change_nothing_are_no_other_question(questions: list[str]) -> None:
    assert len({whole(question) for question in questions}) == 1


def named(sql: str) -> tuple[tuple[str, ...], str]:
    """Return the names of a question's releases and its price, or the refusal."""
    try:
        planned = world().session.plan(world().session.planner.parse(sql, None))
        planned.require_rows()
    except Error as refusal:
        return (), refusal.slug
    return planned.keys, str(planned.price.loss)


@pytest.mark.parametrize("seed", seeds(12, 1))
def test_generated_forms_are_one_question_with_one_answer(seed: int) -> None:
    """And each form has the same answer on plain DuckDB, so that they are the same question indeed."""
    rng = random.Random(f"forms {seed}")
    plain, compared, asked = PlainAnswers(rng), 0, 0
    for _ in range(25):
        tree = question(rng)
        forms = [text(rng, tree) for _ in range(4)]
        answers = [answer for sql, places in forms if (answer := plain.of(sql, places, len(tree[2]))) is not None]
        assert all(answer == answers[0] for answer in answers), forms
        compared += len(answers) > 1 and any(map(any, answers[0]))
        if answers and all(
            map(any, zip(*answers[0], strict=True))
        ):  # an aggregate that no row can reach has several names
            asked += 1
            assert len({named(sql) for sql, _ in forms}) == 1, "\n".join(sql for sql, _ in forms)
    assert compared > 3 and asked > 3


RESULTS = (
    "COUNT(*)", "SUM(nights)", "MAX(cost)", "COUNT(*) FILTER (WHERE year(day) = 2024)", "COUNT(*) FILTER (WHERE nights IN (2, 3))",
    "MIN(nights)", "SUM(CASE WHEN ward LIKE 'e%' THEN 1 ELSE 0 END)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_results_of_one_person_are_one_question_in_any_order_and_beside_others(seed: int) -> None:
    rng = random.Random(f"results of one person {seed}")
    read = rng.sample(RESULTS, rng.randint(1, 3))
    keys = rng.choice([[], ["ward"], ["ward", "nights"]])
    around = rng.choice(
        ["{}", "{} JOIN patients AS p USING (patient_id) WHERE age > 3", "patients AS p JOIN {} USING (patient_id)"]
    )

    def form() -> str:
        inside = rng.sample(RESULTS, rng.randint(0, 3))
        results = {
            text: f"r{number}"
            for number, text in enumerate(dict.fromkeys(rng.sample([*read, *inside], len(read + inside))))
        }
        listed = rng.sample(
            [f"{text} AS {name}" for text, name in results.items()] + ["patient_id", *keys],
            len(results) + 1 + len(keys),
        )
        rows = f"(SELECT {', '.join(listed)} FROM visits GROUP BY {', '.join(rng.sample(['patient_id', *keys], 1 + len(keys)))}) AS q"
        outer = [f"AVG({results[text]})" for text in rng.sample(read, len(read))]
        groups = [f"q.{key}" for key in keys]
        return f"SELECT {', '.join(groups + outer)} FROM {around.format(rows)}" + (
            f" GROUP BY {', '.join(groups)}" if groups else ""
        )

    forms = [form() for _ in range(6)]
    assert len(set(map(whole, forms))) == 1, "\n".join(forms)


EQUAL = {
    "lv": "l.visit_id = v.visit_id", "vp": "v.patient_id = p.patient_id", "pr": "p.region = r.region",
    "vc": "v.ward = c.ward",
}  # fmt: skip
SHARED = {"lv": "visit_id", "vp": "patient_id", "pr": "region", "vc": "ward"}
SOURCES = {"p": "patients", "v": "visits", "l": "labs", "r": "regions", "c": "prices"}


def orders(names: str) -> Iterator[str]:
    """Yield FROM and WHERE of one join in all orders of its tables, with commas, with ON, and with USING where each further table
    shares a column with those before."""
    equalities = [text for pair, text in EQUAL.items() if set(pair) <= set(names)]
    for order in permutations(names):
        tables = [f"{SOURCES[name]} {name}" for name in order]
        yield f"{', '.join(tables)} WHERE {' AND '.join(equalities)}"
        joins, left = tables[0], list(equalities)
        for number, table in enumerate(tables[1:], 2):
            ready = [text for text in left if {text[0], text.split(" = ")[1][0]} <= set(order[:number])]
            left = [text for text in left if text not in ready]
            joins += f" JOIN {table} ON {' AND '.join(ready) or 'TRUE'}"
        yield joins
        keys = [shared_key(order[:number], order[number]) for number in range(1, len(order))]
        if all(keys):
            yield tables[0] + "".join(
                f" JOIN {table} USING ({key})" for table, key in zip(tables[1:], keys, strict=True)
            )


def shared_key(before: Sequence[str], name: str) -> str:
    """Return the column that a table has in common with one of those before it; "" if there is none."""
    return next((key for pair, key in SHARED.items() if name in pair and set(pair) - {name} <= set(before)), "")


@pytest.mark.parametrize("names", ["pv", "vl", "pr", "vlp", "vcp", "pvlr"])
def test_the_order_of_from_is_no_other_question(names: str) -> None:
    """Neither the price, as all releases have one key, nor whether the join is answered."""
    assert len({whole(f"SELECT COUNT(*) AS n FROM {written}") for written in orders(names)}) == 1


def test_on_names_the_columns_of_the_sources_before_it() -> None:
    joined = "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id AND {} = 'north' JOIN regions r ON p.region = r.region"
    assert whole(joined.format("region")) == whole(joined.format("p.region"))


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_hundreds_of_conditions_are_one_level(word: str) -> None:
    conditions = [f"nights = {number}" for number in range(900)]
    backwards = f" {word} ".join(reversed(conditions))
    assert keys(f" {word} ".join(conditions)) == keys(backwards)


def test_columns_that_are_named_anew_are_not_mixed_up() -> None:
    swapped = "SELECT ward, SUM(nights) FROM (SELECT diagnosis AS ward, nights, ward AS diagnosis FROM visits) AS t GROUP BY ward"
    assert whole(swapped) == whole("SELECT diagnosis, SUM(nights) FROM visits GROUP BY diagnosis")
    assert whole(swapped) != whole("SELECT ward, SUM(nights) FROM visits GROUP BY ward")


FILTERED = (
    "COUNT({})", "COUNT(DISTINCT {})", "SUM({})", "AVG({})", "VAR_SAMP({})", "MEDIAN({})", "MIN({})", "MODE({})",
    "PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY {})", "QUANTILE_DISC({}, 0.25)",
)  # fmt: skip
CASES = ("CASE WHEN {c} THEN {x} END", "(CASE WHEN {c} THEN ({x}) ELSE NULL END)", "IF({c}, {x}, NULL)")


@pytest.mark.parametrize("aggregate", FILTERED)
@pytest.mark.parametrize("value", ["nights", "patient_id"])
def test_an_aggregate_of_case_is_the_aggregate_with_a_filter(aggregate: str, value: str) -> None:
    if value == "patient_id" and not aggregate.startswith("COUNT"):
        value = "nights % 7"

    def question(call: str, condition: str = "") -> str:
        return f"SELECT ward, {call}{condition} FROM visits GROUP BY ward"

    filtered = whole(question(aggregate.format(value), " FILTER (WHERE cost > 5 AND ward = 'er')"))
    for case in CASES:
        both = aggregate.format(case.format(c="cost > 5 AND ward = 'er'", x=value))
        half = aggregate.format(case.format(c="ward = 'er'", x=value))
        nested = aggregate.format(case.format(c="cost > 5", x=CASES[0].format(c="ward = 'er'", x=value)))
        assert (
            whole(question(both))
            == whole(question(half, " FILTER (WHERE cost > 5)"))
            == whole(question(nested))
            == filtered
        )
    other = aggregate.format(f"CASE WHEN cost > 5 THEN {value} WHEN ward = 'er' THEN {value} END")
    assert whole(question(other)) != filtered


@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "COUNT", "MAX", "MIN", "COUNT(DISTINCT"])
@pytest.mark.parametrize(
    "case",
    [
        "CASE WHEN nights > 2 THEN cost END",
        "CASE WHEN nights > 2 THEN cost ELSE NULL END",
        "CASE WHEN nights <= 2 THEN NULL ELSE cost END",
        "CASE WHEN (nights > 2) IS DISTINCT FROM TRUE THEN NULL ELSE cost END",
        "IF(nights > 2, cost, NULL)",
    ],
)
def test_a_case_in_a_subquery_is_the_filter_of_the_aggregate_around_it(aggregate: str, case: str) -> None:
    """As dbt's models have it: one CTE computes columns, the next aggregates them; over groups, and over each unit's rows."""
    end = ")" * aggregate.count("(")
    for key, around in (("ward", "{}"), ("patient_id", "SELECT AVG(answer) FROM ({})")):
        filtered = (
            f"SELECT {key}, {aggregate}(cost){end} FILTER (WHERE nights > 2) AS answer FROM visits GROUP BY {key}"
        )
        chosen = f"SELECT {key}, {case} AS chosen FROM visits"
        outer = f"SELECT {key}, {aggregate}(chosen){end} AS answer FROM ({chosen}) GROUP BY {key}"
        assert whole(around.format(outer)) == whole(around.format(filtered))
        if key == "ward":
            assert whole(f"WITH models AS ({chosen}) {outer.replace(f'({chosen})', 'models')}") == whole(filtered)


@pytest.mark.parametrize("chosen", ["CASE WHEN nights > 2 THEN patient_id END", "IF(nights > 2, patient_id, NULL)"])
def test_a_key_or_null_in_a_subquery_is_counted_by_units(chosen: str) -> None:
    """One unit changes the number of different keys by one, as in the FILTER of the aggregate, however many rows it has."""
    subquery = f"SELECT COUNT(DISTINCT key) AS n FROM (SELECT {chosen} AS key FROM visits)"
    filtered = "SELECT COUNT(DISTINCT patient_id) FILTER (WHERE nights > 2) AS n FROM visits"
    (counted,), (usual,) = (world().session.explain(sql).outputs for sql in (subquery, filtered))
    assert replace(counted, aggregate=usual.aggregate) == usual and counted.l1_sensitivity == 1
    assert "nights >= 3" in counted.aggregate, "the rows without a key are left out"


@pytest.mark.parametrize(
    "call", ["var_samp(cost)", "variance(cost)", "ceiling(AVG(cost))", "pow(AVG(cost), 2)", "quantile_disc(cost, 0.5)"]
    + [f"percentile_{kind}(0.5) WITHIN GROUP (ORDER BY cost)" for kind in ("cont", "disc")]
)  # fmt: skip
def test_a_column_without_an_alias_is_named_as_its_function_is_written(call: str) -> None:
    (column,) = world().session.describe(f"SELECT {call} FROM visits")
    assert column.name == call.split("(", maxsplit=1)[0]


def test_a_sum_of_ones_is_no_count_where_a_limit_of_the_table_bounds_the_count(tmp_path: Path) -> None:
    path = build(tmp_path)
    path.write_text(path.read_text().replace("max_rows: 5", "max_rows: 5\n    max_count: 2"))
    with open_session(path, create_ledger=True) as session:

        def named(measure: str, table: str) -> tuple[str, ...]:
            return session.plan(session.planner.parse(f"SELECT {measure} FROM {table}", None)).keys

        ones, count = "SUM(CASE WHEN {} > 30 THEN 1 ELSE 0 END)", "COUNT(*) FILTER (WHERE {} > 30)"
        assert named(ones.format("cost"), "visits") != named(count.format("cost"), "visits")
        assert named(ones.format("age"), "patients") == named(count.format("age"), "patients")
