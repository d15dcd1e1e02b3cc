-- query: cross
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits CROSS JOIN patients

-- query: other_people
-- sqlstate: ZP009
-- at: visits
SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.ward = b.ward

-- query: many_to_many
-- sqlstate: ZP009
-- at: prices
SELECT COUNT(*) FROM visits AS v JOIN prices AS p ON v.cost = p.price

-- query: full
-- sqlstate: ZP009
-- at: regions
SELECT COUNT(*) FROM patients AS p FULL JOIN regions AS r USING (region)

-- query: public_preserved
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM regions AS r LEFT JOIN patients AS p USING (region)

-- query: rows_of_an_outer_join_passed_on
-- sqlstate: ZP009
-- at: patients
SELECT zone, COUNT(age) FROM (SELECT zone, age FROM regions LEFT JOIN patients USING (region)) AS t GROUP BY zone

-- query: public_values_of_kept_rows
-- sqlstate: ZP009
-- at: patients
SELECT zone, COUNT(age), AVG(population) FROM regions AS r LEFT JOIN patients AS p USING (region) GROUP BY zone

-- query: kept_rows_by_unit
-- sqlstate: ZP009
-- at: patients
SELECT AVG(n) FROM (SELECT patient_id, COUNT(age) AS n FROM regions LEFT JOIN patients USING (region) GROUP BY patient_id) AS t

-- query: kept_rows_twice
-- sqlstate: ZP009
-- at: prices
SELECT COUNT(age) FROM regions AS r LEFT JOIN patients AS p ON r.region = p.region RIGHT JOIN prices ON item = p.region

-- query: full_join_of_people_with_a_condition
-- sqlstate: ZP009
-- at: p.age
SELECT COUNT(age) FROM patients AS p FULL JOIN visits AS v ON p.patient_id = v.patient_id AND p.age > v.nights

-- query: result_on_one_of_two_keys
-- sqlstate: ZP009
-- at: ward
SELECT COUNT(*) FROM visits AS v
JOIN (SELECT ward, nights, COUNT(*) AS n FROM visits GROUP BY ward, nights) AS t ON t.ward = v.ward

-- query: result_without_its_key
-- sqlstate: ZP009
-- at: COUNT(*) AS n
SELECT COUNT(*) FROM visits AS v JOIN (SELECT COUNT(*) AS n FROM visits GROUP BY ward) AS t ON t.n = v.nights

-- query: result_under_a_function
-- sqlstate: ZP009
-- at: upper
SELECT COUNT(*) FROM visits AS v JOIN (SELECT upper(ward) AS w, COUNT(*) AS n FROM visits GROUP BY ward) AS t ON t.w = v.ward

-- query: integer_key_as_a_real
-- sqlstate: ZP009
-- at: code
SELECT COUNT(*) FROM visits AS v JOIN (SELECT code, COUNT(*) AS n FROM visits GROUP BY code) AS t ON t.code = v.cost

-- query: union_of_results
-- sqlstate: ZP009
-- at: ward
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward FROM visits GROUP BY ward UNION ALL SELECT ward FROM prices) AS t
ON t.ward = v.ward

-- query: join_of_results_on_one_key
-- sqlstate: ZP009
-- at: a.ward
SELECT COUNT(*) FROM visits AS v JOIN (SELECT a.ward FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a,
(SELECT nights, COUNT(*) AS n FROM visits GROUP BY nights) AS b) AS t ON t.ward = v.ward

-- query: rollup
-- sqlstate: ZP009
-- at: ward
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)) AS t ON t.ward = v.ward

-- query: semi
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient_id)

-- query: public_numbers_beside_kept_rows
-- sqlstate: ZP009
-- at: patients
SELECT zone, SUM(population) FROM regions AS r LEFT JOIN patients AS p USING (region) GROUP BY zone

-- query: public_pairs_beside_kept_rows
-- sqlstate: ZP009
-- at: patients
SELECT zone, COVAR_POP(population, population) FROM regions AS r LEFT JOIN patients AS p USING (region) GROUP BY zone

-- query: samples_beside_kept_rows
-- sqlstate: ZP009
-- at: patients
SELECT SAMPLE_AGGREGATE(KURTOSIS(CASE WHEN age > 1 THEN 1.5 ELSE -0.5 END), -2, 5, 8) FROM regions AS r LEFT JOIN patients AS p
USING (region)

-- query: natural_join_of_nothing
-- sqlstate: ZP009
-- at: regions
SELECT COUNT(*) FROM labs NATURAL JOIN regions

-- query: result_of_unknown_size_on_anything
-- sqlstate: ZP009
-- at: diagnosis
SELECT COUNT(*) FROM visits AS v CROSS JOIN (SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis) AS t

-- query: result_limited_to_many_rows
-- sqlstate: ZP009
-- at: ward
SELECT COUNT(*) FROM visits AS v CROSS JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward LIMIT 1001) AS t

-- query: written_rows_kept_on_anything
-- sqlstate: ZP009
-- at: v.nights
SELECT COUNT(*) FROM visits AS v LEFT JOIN (VALUES (1), (2)) AS a(n) ON v.nights > a.n

-- query: written_rows_in_grouping_sets
-- sqlstate: ZP009
-- at: r
SELECT COUNT(*) FROM patients CROSS JOIN (SELECT r FROM UNNEST(['a', 'a', 'b']) AS v(r) GROUP BY ROLLUP(r)) AS t

-- query: a_row_number_behind_a_column_of_its_name
-- sqlstate: ZP009
-- at: g, row_number
SELECT COUNT(*) FROM visits JOIN (SELECT g, row_number() OVER (PARTITION BY g ORDER BY p) AS p FROM (SELECT ward AS g, nights % 3 AS p, COUNT(*) AS n FROM visits GROUP BY 1, 2) AS z QUALIFY z.p = 1) AS l ON ward = g
