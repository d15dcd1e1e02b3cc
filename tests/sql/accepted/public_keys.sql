-- query: domain
SELECT region, COUNT(*) FROM patients GROUP BY region

-- query: domain_with_null
SELECT sex, COUNT(*), AVG(age) FROM patients GROUP BY sex

-- query: boolean
SELECT smoker, COUNT(*) FROM patients GROUP BY smoker

-- query: integer_range
SELECT nights, COUNT(*) FROM visits GROUP BY nights

-- query: units_per_group
SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward

-- query: rows_per_group
SELECT ward, COUNT(*), SUM(cost), AVG(change) FROM visits GROUP BY ward

-- query: two_keys
SELECT region, sex, COUNT(*) FROM patients GROUP BY region, sex

-- query: positions
SELECT ward, nights > 1 AS stays, SUM(cost) FROM visits GROUP BY 1, 2

-- query: group_by_all
SELECT ward, COUNT(*) FROM visits GROUP BY ALL

-- query: distinct_values
SELECT DISTINCT ward FROM visits

-- query: months
SELECT date_trunc('month', day) AS month, COUNT(*), SUM(cost) FROM visits GROUP BY month

-- query: decades
SELECT floor(age / 10) * 10 AS decade, COUNT(*) FROM patients GROUP BY decade

-- query: buckets
SELECT width_bucket(cost, 0, 1000, 4) AS b, COUNT(*) FROM visits GROUP BY b

-- query: case_key
SELECT CASE WHEN cost > 500 THEN 'dear' WHEN cost > 100 THEN 'fair' ELSE 'cheap' END AS class, COUNT(*) FROM visits GROUP BY class

-- query: predicate_key
SELECT age >= 65 AS old, AVG(weight) FROM patients GROUP BY old

-- query: date_part
SELECT extract(quarter FROM day) AS q, extract(isodow FROM day) AS d, COUNT(*) FROM visits GROUP BY q, d

-- query: clamped_key
SELECT clamp(code, 0, 4) AS c, COUNT(*) FROM visits GROUP BY c

-- query: max_groups
-- set: dp.max_groups = 2
SELECT ward, nights, COUNT(*), SUM(cost) FROM visits GROUP BY ward, nights

-- query: max_rows_per_group
-- set: dp.max_rows_per_group = 3
SELECT ward, COUNT(*), SUM(cost), COUNT(DISTINCT diagnosis) FROM visits GROUP BY ward

-- query: both_caps
-- set: dp.max_groups = 3
-- set: dp.max_rows_per_group = 2
SELECT nights, COUNT(*), AVG(cost), COUNT(DISTINCT patient_id) FROM visits GROUP BY nights

-- query: cap_of_all_rows
-- set: dp.max_rows_per_group = 4
SELECT COUNT(*), SUM(change) FROM visits

-- query: variance_per_group
SELECT ward, VAR_POP(cost) FROM visits GROUP BY ward

-- query: no_aggregate
SELECT ward FROM visits GROUP BY ward
