-- query: domain
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, COUNT(*) FROM patients GROUP BY region

-- query: domain_with_null
-- keys: public
-- l1: 120, 120, 120
-- rows: 120, 120, 120
SELECT sex, COUNT(*), AVG(age) FROM patients GROUP BY sex

-- query: boolean
-- keys: public
-- l1: 1
-- rows: 1
SELECT smoker, COUNT(*) FROM patients GROUP BY smoker

-- query: integer_range
-- keys: public
-- l1: 20
-- rows: 1
SELECT nights, COUNT(*) FROM visits GROUP BY nights

-- query: units_per_group
-- keys: public
-- l1: 4
-- rows: 1
SELECT ward, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward

-- query: rows_per_group
-- keys: public
-- l1: 20000, 20000, 400, 400
-- rows: 1000, 1000, 20, 20
SELECT ward, COUNT(*), SUM(cost), AVG(change) FROM visits GROUP BY ward

-- query: two_keys
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, sex, COUNT(*) FROM patients GROUP BY region, sex

-- query: positions
-- keys: public
-- l1: 20000
-- rows: 1000
SELECT ward, nights > 1 AS stays, SUM(cost) FROM visits GROUP BY 1, 2

-- query: group_by_all
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) FROM visits GROUP BY ALL

-- query: group_by_all_leaves_constants_out
-- keys: public
-- l1: 20
-- rows: 1
SELECT 3 AS number, ward, COUNT(*) FROM visits GROUP BY ALL

-- query: group_by_all_of_constants
-- keys: none
-- l1: 20
-- rows: 1
SELECT 'all' AS wards, COUNT(*) FROM visits WHERE ward = 'none' GROUP BY ALL

-- query: distinct_values
-- keys: public
-- l1: nothing
-- rows: nothing
SELECT DISTINCT ward FROM visits

-- query: months
-- keys: public
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT date_trunc('month', day) AS month, COUNT(*), SUM(cost) FROM visits GROUP BY month

-- query: decades
-- keys: public
-- l1: 1
-- rows: 1
SELECT floor(age / 10) * 10 AS decade, COUNT(*) FROM patients GROUP BY decade

-- query: buckets
-- keys: public
-- l1: 20
-- rows: 1
SELECT width_bucket(cost, 0, 1000, 4) AS b, COUNT(*) FROM visits GROUP BY b

-- query: case_key
-- keys: public
-- l1: 20
-- rows: 1
SELECT CASE WHEN cost > 500 THEN 'dear' WHEN cost > 100 THEN 'fair' ELSE 'cheap' END AS class, COUNT(*) FROM visits GROUP BY class

-- query: predicate_key
-- keys: public
-- l1: 256, 256
-- rows: 256, 256
SELECT age >= 65 AS old, AVG(weight) FROM patients GROUP BY old

-- query: date_part
-- keys: public
-- l1: 20
-- rows: 1
SELECT extract(quarter FROM day) AS q, extract(isodow FROM day) AS d, COUNT(*) FROM visits GROUP BY q, d

-- query: clamped_key
-- keys: public
-- l1: 20
-- rows: 1
SELECT clamp(code, 0, 4) AS c, COUNT(*) FROM visits GROUP BY c

-- query: max_groups
-- set: dp.max_groups = 2
-- keys: public
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT ward, nights, COUNT(*), SUM(cost) FROM visits GROUP BY ward, nights

-- query: max_rows_per_group
-- set: dp.max_rows_per_group = 3
-- keys: public
-- l1: 12000, 12000, 12
-- rows: 1000, 1000, 1
SELECT ward, COUNT(*), SUM(cost), COUNT(DISTINCT diagnosis) FROM visits GROUP BY ward

-- query: both_caps
-- set: dp.max_groups = 3
-- set: dp.max_rows_per_group = 2
-- keys: public
-- l1: 6000, 6000, 6000, 3
-- rows: 1000, 1000, 1000, 1
SELECT nights, COUNT(*), AVG(cost), COUNT(DISTINCT patient_id) FROM visits GROUP BY nights

-- query: cap_of_all_rows
-- set: dp.max_rows_per_group = 4
-- keys: none
-- l1: 80, 80, 80
-- rows: 20, 20, 20
SELECT COUNT(*), SUM(change) FROM visits

-- query: variance_per_group
-- keys: public
-- l1: 20000000, 20000000, 20000000
-- rows: 1000000, 1000000, 1000000
SELECT ward, VAR_POP(cost) FROM visits GROUP BY ward

-- query: no_aggregate
-- keys: public
-- l1: nothing
-- rows: nothing
SELECT ward FROM visits GROUP BY ward

-- query: time_buckets
-- keys: public
-- l1: 20
-- rows: 1
SELECT time_bucket(INTERVAL '10 days', day), COUNT(*) FROM visits GROUP BY 1

-- query: seconds_as_grafana_asks
-- keys: public
-- l1: 20
-- rows: 1
SELECT floor(extract(epoch FROM seen) / 86400) * 86400 AS time, COUNT(*) FROM visits GROUP BY 1

-- query: months_as_text
-- keys: public
-- l1: 20
-- rows: 1
SELECT to_char(seen, 'YYYY-MM'), COUNT(*) FROM visits GROUP BY 1

-- query: names_of_days
-- keys: public
-- l1: 20
-- rows: 1
SELECT dayname(day), COUNT(*) FROM visits GROUP BY 1

-- query: key_that_is_always_null
-- keys: public
-- l1: 120
-- rows: 120
SELECT abs(CAST(sex AS INTEGER)) AS k, SUM(age) FROM patients GROUP BY k
