-- query: rollup_measured_as_one
-- set: dp.workload = relative
-- keys: none and public
-- l1: 1, 1, 1
-- rows: 1, 1, 1
SELECT region, sex, COUNT(*) FROM patients GROUP BY ROLLUP (region, sex)

-- query: cube_of_sums_measured_as_one
-- set: dp.workload = absolute
-- keys: none and public
-- l1: 20000, 20000, 20000, 20000
-- rows: 1000, 1000, 1000, 1000
SELECT ward, nights > 1 AS stays, SUM(cost) FROM visits GROUP BY CUBE (ward, stays)

-- query: shared_rows_measured_as_one
-- set: dp.workload = on
-- set: dp.mechanism = gaussian
-- keys: none and public
-- l1: 20000, 20000, 20000, 20000, 20000, 20000
-- rows: 1000, 1000, 1000, 1000, 1000, 1000
SELECT ward, AVG(cost), COUNT(*) FROM visits GROUP BY ROLLUP (ward)

-- query: tables_of_one_question_measured_as_one
-- set: dp.workload = on
-- keys: public
-- l1: 20, 20
-- rows: 1, 1
SELECT 'ward' AS key, COUNT(*) FROM visits WHERE nights > 0 GROUP BY ward
UNION ALL SELECT 'stay', COUNT(*) FROM visits WHERE nights > 0 GROUP BY nights > 1

-- query: one_table_alone_in_a_workload
-- set: dp.workload = on
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) FROM visits GROUP BY ward

-- query: running_totals_by_ranges
-- set: dp.workload = running
-- keys: public
-- l1: 1, 1
-- rows: 1, 1
SELECT age, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY age) AS total FROM patients WHERE age IS NOT NULL GROUP BY age
