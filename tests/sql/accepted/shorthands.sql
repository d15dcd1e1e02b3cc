-- query: rows_in_a_list
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE (ward, nights) IN (('er', 1), ('icu', 2), ('day', 0))

-- query: rows_not_in_values
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) FROM visits WHERE (ward, nights) NOT IN (VALUES ('er', 1), ('icu', 2)) GROUP BY ward

-- query: equal_rows
-- keys: public
-- l1: 1
-- rows: 1
SELECT (sex, region) = ('f', 'north') AS same, COUNT(*) FROM patients WHERE ROW(sex, region) <> ROW('m', 'south') GROUP BY same

-- query: first_visit_of_each_person
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000, 1
SELECT COUNT(*), SUM(cost) FROM visits WHERE (day, patient_id) IN (SELECT MIN(day), patient_id FROM visits GROUP BY patient_id)

-- query: rows_among_released_ones
-- keys: none and public
-- l1: 20, 20
-- rows: 1, 1
-- loose: 0.1 (of the rows of one unit in the data few are in the groups that were released)
SELECT COUNT(*) FROM visits
WHERE (ward, nights) IN (SELECT ward, nights FROM visits GROUP BY ward, nights ORDER BY COUNT(*) DESC LIMIT 3)

-- query: rows_among_public_ones
-- keys: none
-- l1: 20
-- rows: refused join
SELECT COUNT(*) FROM patients JOIN visits USING (patient_id)
WHERE (region, ward) IN (SELECT region, 'er' FROM regions WHERE population > 100)

-- query: rows_of_results
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, n FROM (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex) AS t
WHERE (region, sex) IN (SELECT region, 'f' FROM regions) AND (region, n) NOT IN (('north', 0))

-- query: like_any
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward LIKE ANY ('e%', '%u') OR diagnosis NOT ILIKE ALL (ARRAY['a%', '%b'])

-- query: approximate_distinct_people
-- keys: public
-- l1: 4
-- rows: 1
SELECT ward, APPROX_COUNT_DISTINCT(patient_id) FROM visits GROUP BY ward

-- query: star_without_columns
-- keys: none
-- l1: 600, 600
-- rows: 30, 30
SELECT AVG(nights) FROM (SELECT * EXCLUDE (cost, day) FROM visits) AS v

-- query: star_with_other_columns
-- keys: none
-- l1: 1000, 600
-- rows: 50, 30
SELECT SUM(cost), SUM(stay) FROM (SELECT v.* EXCLUDE (day) REPLACE (clamp(cost, 0, 50) AS cost) RENAME (nights AS stay) FROM visits AS v) AS v

-- query: star_with_another_key
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(DISTINCT uid) FROM (SELECT * RENAME (patient_id AS uid) FROM visits) AS v

-- query: natural_join
-- keys: public
-- l1: 2400, 2400
-- rows: refused join
SELECT ward, AVG(age) FROM visits NATURAL JOIN patients GROUP BY ward

-- query: natural_joins_with_public_rows
-- keys: none
-- l1: 20
-- rows: refused join
SELECT COUNT(*) FROM visits NATURAL JOIN patients NATURAL LEFT JOIN regions WHERE population > 10

-- query: texts_beside_numbers
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward || '-' || nights AS stay, concat(day, ' ', nights > 3) < '2024-06' AS early, COUNT(*) FROM visits
WHERE nights < 3 GROUP BY stay, early

-- query: unpivot
-- keys: public
-- l1: 40000, 40000
-- rows: 2000, 2000
SELECT k, AVG(v) FROM visits UNPIVOT (v FOR k IN (cost, nights AS 'stay')) GROUP BY k

-- query: unpivot_with_nulls
-- keys: public
-- l1: 2
-- rows: 2
SELECT k, v, COUNT(*) FROM (SELECT sex, region FROM patients) UNPIVOT INCLUDE NULLS (v FOR k IN (sex, region)) AS u GROUP BY k, v

-- query: unpivot_of_results
-- keys: public
-- l1: 120, 120, 120
-- rows: 120, 120, 120
SELECT * FROM (SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM patients GROUP BY sex) UNPIVOT (v FOR k IN (n, age))

-- query: unpivot_statement
-- keys: public
-- l1: 2
-- rows: 2
SELECT name, value, COUNT(*) FROM (UNPIVOT (SELECT sex, region FROM patients) ON sex, region) AS u GROUP BY name, value

-- query: unpivot_in_a_common_table
-- keys: public
-- l1: 2
-- rows: 2
WITH u AS (UNPIVOT (SELECT sex, region FROM patients) ON sex, region) SELECT name, value, COUNT(*) FROM u GROUP BY name, value

-- query: pivot_statement
-- keys: public
-- l1: 600, 600, 600, 600
-- rows: 30, 30, 30, 30
FROM (PIVOT visits ON ward IN ('er', 'icu') USING COUNT(*) AS n, SUM(nights) AS nights GROUP BY day) AS p

-- query: pivot_statement_alone
-- keys: public
-- l1: 1, 1
-- rows: 1, 1
WITH p AS (SELECT region, sex FROM patients WHERE age > 30) PIVOT p ON sex IN ('f', 'm') GROUP BY region

-- query: first_rows_as_in_the_standard
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC FETCH FIRST 2 ROWS ONLY

-- query: limits_and_offsets_without_effect
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) AS n FROM (SELECT ward FROM visits LIMIT ALL OFFSET 0) GROUP BY ward LIMIT NULL OFFSET 0

-- query: sum_of_a_condition
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, SUM(nights > 3) FROM visits GROUP BY ward

-- query: mean_of_a_truth_value
-- keys: none
-- l1: 1, 1
-- rows: 1, 1
SELECT AVG(smoker::INTEGER) FROM patients

-- query: any_value_of_a_key
-- keys: public
-- l1: 20
-- rows: 1
SELECT ANY_VALUE(ward) AS w, MAX(v.ward) AS same, COUNT(*) AS n FROM visits AS v GROUP BY ward ORDER BY MIN(ward)

-- query: rows_of_in_that_stand_in_the_text
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT unnest(['er', 'icu']))
