-- query: misspelt
-- sqlstate: 42703
-- at: costs
SELECT SUM(costs) FROM visits

-- query: in_where
-- sqlstate: 42703
-- at: agee
SELECT COUNT(*) FROM patients WHERE agee > 3

-- query: over_results
-- sqlstate: 42703
-- at: m
SELECT m FROM (SELECT COUNT(*) AS n FROM visits) AS t

-- query: not_in_policy
-- sqlstate: 42703
-- at: rowid
SELECT COUNT(rowid) FROM visits

-- query: hidden_unit
-- sqlstate: 42703
-- at: "#unit"
SELECT COUNT("#unit") FROM visits

-- query: value_of_a_correlated_subquery
-- sqlstate: 42703
-- at: v),
SELECT SUM(v), SUM((SELECT COUNT(*) FROM visits AS x WHERE x.patient_id = p.patient_id)) FROM patients AS p

-- query: key_of_a_correlated_subquery_over_results
-- sqlstate: 42703
-- at: k0
SELECT region, k0 FROM regions AS r WHERE (SELECT COUNT(*) FROM patients AS p WHERE p.region = r.region) > 2

-- query: unused_window
-- sqlstate: 42703
-- at: nope
SELECT COUNT(*) FROM visits WINDOW w AS (ORDER BY nope)

-- query: unused_window_over_results
-- sqlstate: 42703
-- at: nope
SELECT n FROM (SELECT COUNT(*) AS n FROM visits) WINDOW w AS (PARTITION BY nope)

-- query: unused_with
-- sqlstate: 42703
-- at: nope
WITH u AS (SELECT nope FROM visits) SELECT COUNT(*) FROM visits

-- query: listed_by_exists
-- sqlstate: 42703
-- at: nosuch
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT nosuch FROM visits v WHERE v.patient_id = p.patient_id)

-- query: listed_by_exists_under_or
-- sqlstate: 42703
-- at: v.nosuch
SELECT COUNT(*) FROM patients p WHERE age > 40 OR EXISTS (SELECT v.nosuch FROM visits v WHERE v.patient_id = p.patient_id)

-- query: listed_by_the_second_of_two_exists
-- sqlstate: 42703
-- at: nosuch
SELECT COUNT(*) FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND nights > 3)
  OR EXISTS (SELECT nosuch FROM visits v WHERE v.patient_id = p.patient_id AND nights < 2)

-- query: output_that_names_itself
-- sqlstate: 42703
-- at: m, 3
SELECT least(m, 3) AS m FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t

-- query: output_that_names_a_later_one
-- sqlstate: 42703
-- at: m + 1
SELECT m + 1 AS k, n * 2 AS m FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t
