-- query: keys_of_values
-- keys: public
-- l1: 1
-- rows: 1
SELECT v.w, COUNT(*) FROM patients AS p JOIN (VALUES ('north', 1), ('south', 2)) AS v(r, w) ON p.region = v.r GROUP BY v.w

-- query: sum_of_a_written_weight
-- keys: none
-- l1: 2
-- rows: 2
SELECT SUM(v.w) FROM patients AS p JOIN (VALUES ('north', 1), ('south', 2)) AS v(r, w) ON p.region = v.r

-- query: two_columns_tell_rows_apart
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits JOIN (VALUES ('er', 1), ('er', 2), ('icu', 1)) AS v(w, n) ON ward = w AND nights = n

-- query: unnest
-- keys: public
-- l1: 1
-- rows: 1
SELECT r, COUNT(*) FROM patients JOIN UNNEST(ARRAY['north', 'south']) AS v(r) ON region = r GROUP BY r

-- query: values_in_a_cte_kept_outside
-- keys: public
-- l1: 1
-- rows: 1
WITH v(r) AS (VALUES ('north'), ('south')) SELECT r, COUNT(*) FROM patients LEFT JOIN v ON region = r GROUP BY r

-- query: written_reals_with_null
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients JOIN (VALUES (20.5), (40), (NULL), (NULL)) AS v(a) ON age = a

-- query: brackets_around_a_join
-- keys: public
-- l1: 20
-- rows: refused join
SELECT region, COUNT(*) FROM (patients JOIN visits USING (patient_id)) GROUP BY region

-- query: top
-- keys: public
-- l1: 1
-- rows: 1
SELECT TOP 1 region, COUNT(*) FROM patients GROUP BY region ORDER BY 2 DESC

-- query: logarithm_with_a_base
-- keys: none
-- l1: 6.91886323728, 6.91886323728
-- rows: 6.91886323728, 6.91886323728
SELECT AVG(log2(age + 1)) FROM patients

-- query: variance_by_its_short_name
-- keys: none
-- l1: 14400, 14400, 14400
-- rows: 14400, 14400, 14400
SELECT VAR(age) FROM patients

-- query: seconds_since_1970
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE to_timestamp(age) < '1970-01-01 00:00:30'::timestamptz

-- query: top_in_a_subquery
-- keys: public
-- l1: 1
-- rows: 1
SELECT SUM(n) FROM (SELECT TOP 2 region, COUNT(*) AS n FROM patients GROUP BY region ORDER BY n DESC) AS t

-- query: string_in_dollars
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE region = $$north$$ OR region = $tag$south$tag$

-- query: in_values
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE region IN (VALUES ('north'), ('south'))

-- query: in_different_public_rows
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE region IN (SELECT DISTINCT region FROM regions WHERE population >= 0)

-- query: in_the_first_public_rows
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE region IN (SELECT region FROM regions ORDER BY population DESC LIMIT 2)

-- query: series
-- keys: public
-- l1: 20
-- rows: 1
SELECT n, COUNT(visit_id) FROM generate_series(0, 5) AS g(n) LEFT JOIN visits ON nights = n GROUP BY n

-- query: series_of_moments
-- keys: public
-- l1: 20
-- rows: 1
SELECT m, COUNT(*) FROM visits JOIN generate_series(DATE '2024-01-01', DATE '2024-12-01', INTERVAL '1 month') AS g(m)
ON date_trunc('month', day) = m GROUP BY m

-- query: written_dates
-- keys: none
-- l1: 20
-- rows: 1
-- loose: 0.1 (the rows of one unit in the data have other days, too)
SELECT COUNT(*) FROM visits JOIN (VALUES (DATE '2024-01-01'), (DATE '2024-02-29')) AS v(d) ON day = d

-- query: pivot
-- keys: public
-- l1: 120, 120
-- rows: 120, 120
SELECT * FROM (SELECT region, sex, age FROM patients) PIVOT (SUM(age) FOR sex IN ('f', 'm'))

-- query: pivot_with_groups_and_names
-- keys: public
-- l1: 600, 600, 600, 600
-- rows: 30, 30, 30, 30
SELECT * FROM visits PIVOT (COUNT(*) AS n, SUM(nights) AS nights FOR ward IN ('er' AS emergency, 'icu') GROUP BY day) AS p

-- query: pivot_of_results
-- keys: public
-- l1: 1
-- rows: 1
SELECT * FROM (SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex) PIVOT (SUM(n) FOR sex IN ('f', 'm', NULL))

-- query: written_rows_on_anything
-- keys: public
-- l1: 40
-- rows: 2
SELECT a, COUNT(*) FROM visits, (VALUES (1), (3)) AS v(a) WHERE nights > a GROUP BY a

-- query: written_rows_cross_joined
-- keys: none
-- l1: 4
-- rows: 4
-- loose: 0.75 (one row of a person meets 1 and 2, and not 2 twice)
SELECT SUM(a) FROM patients CROSS JOIN (VALUES (1), (2)) AS v(a) WHERE age >= 0

-- query: series_between
-- keys: public
-- l1: 3
-- rows: 3
SELECT n, COUNT(*) FROM patients JOIN generate_series(18, 20) AS g(n) ON age BETWEEN n - 10 AND n + 10 GROUP BY n

-- query: written_rows_of_equal_keys
-- keys: none
-- l1: 2
-- rows: 2
SELECT COUNT(*) FROM patients JOIN UNNEST(['north', 'south', 'north']) AS v(r) ON region = r

-- query: written_numbers_that_are_the_same_double
-- keys: none
-- l1: 2
-- rows: 2
SELECT COUNT(*) FROM patients JOIN (VALUES (20), (20.00000000000000000001), (21)) AS v(a) ON age = a WHERE age = 20

-- query: written_dates_that_are_one_day
-- keys: none
-- l1: 40
-- rows: 2
-- loose: 0.1 (the rows of one unit in the data have other days, too)
SELECT COUNT(*) FROM visits AS v JOIN (VALUES (DATE '2024-01-01 10:00'), (DATE '2024-01-01 11:00')) AS w(d) ON v.day = w.d

-- query: written_rows_chosen_in_a_subquery
-- keys: none
-- l1: 2
-- rows: 2
SELECT COUNT(*) FROM patients JOIN (SELECT n, r FROM (VALUES (1, 'north'), (2, 'north')) AS v(n, r) WHERE n < 9) AS w ON region = r

-- query: first_rows_of_a_public_table_on_its_key
-- keys: public
-- l1: 1
-- rows: 1
SELECT zone, COUNT(*) FROM patients JOIN (SELECT * FROM regions ORDER BY population DESC LIMIT 2) AS r USING (region) GROUP BY zone

-- query: first_rows_of_a_public_table_on_anything
-- keys: none
-- l1: 2
-- rows: 2
SELECT COUNT(*) FROM patients CROSS JOIN (SELECT item FROM prices ORDER BY price DESC, item LIMIT 2) AS t

-- query: first_rows_of_a_result_on_anything
-- keys: public
-- l1: 20, 2
-- rows: 1, 2
SELECT ward, COUNT(*) FROM patients CROSS JOIN (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 2) AS t GROUP BY ward

-- query: equal_written_rows_on_anything
-- keys: none
-- l1: 3
-- rows: 3
SELECT COUNT(*) FROM patients CROSS JOIN UNNEST(['a', 'a', 'b']) AS v(r)
