-- query: sum_of_each_ward
-- keys: public
-- l1: 400
-- rows: 100
SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 100)) FROM visits GROUP BY ward

-- query: sum_of_all
-- keys: none
-- l1: 2500
-- rows: 1000
SELECT SUM(cost, contribution_bounds_per_group => (10, 2500)) FROM visits

-- query: sums_of_both_signs
-- keys: public
-- l1: 24
-- rows: 6
SELECT ward, SUM(change, contribution_bounds_per_group => (-6, 1.5)) FROM visits GROUP BY ward

-- query: counts
-- keys: public
-- l1: 12, 4
-- rows: 1, 1
SELECT ward, COUNT(*, contribution_bounds_per_group => (0, 3)) AS visits, COUNT(DISTINCT patient_id) FROM visits GROUP BY ward

-- query: averages
-- loose: 0.5 (half the width of the bounds is reached by units whose average is a bound)
-- keys: public
-- l1: 400, 400
-- rows: 100, 100
SELECT ward, AVG(cost, contribution_bounds_per_group => (0, 100)) FROM visits GROUP BY ward

-- query: private_keys
-- loose: 0.1 (a unit has a row for each of its diagnoses)
-- keys: private
-- l1: 1000, 20
-- rows: 30, 1
SELECT diagnosis, SUM(nights, contribution_bounds_per_group => (0, 50)), COUNT(DISTINCT patient_id) FROM visits GROUP BY diagnosis

-- query: fewer_groups
-- set: dp.max_groups = 2
-- keys: private
-- l1: 10, 2
-- rows: 1, 1
SELECT diagnosis, COUNT(cost, contribution_bounds_per_group => (0, 5)) FILTER (WHERE nights > 1), COUNT(DISTINCT patient_id) FROM visits GROUP BY diagnosis

-- query: both_bounds
-- keys: public
-- l1: 40
-- rows: 5
SELECT ward, SUM(cost, contribution_bounds_per_row => (0, 5), contribution_bounds_per_group => (0, 10)) AS s
FROM visits GROUP BY 1 HAVING SUM(cost, contribution_bounds_per_row => (0, 5), contribution_bounds_per_group => (0, 10)) > 3
ORDER BY s DESC

-- query: sets_of_keys
-- keys: none and public
-- l1: 400, 12, 100, 3
-- rows: 100, 100, 100, 100
SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 100)), COUNT(*, contribution_bounds_per_group => (0, 3))
FROM visits GROUP BY ROLLUP(ward)

-- query: beside_joins
-- loose: 0.3 (a patient has one sex)
-- keys: public
-- l1: 144
-- rows: refused join
SELECT sex, SUM(value, contribution_bounds_per_group => (-50, 8))
FROM labs JOIN visits USING (visit_id) JOIN patients USING (patient_id) GROUP BY sex

-- query: same_written_by_hand
-- keys: public
-- l1: 400
-- rows: refused clamp_over_results
SELECT ward, SUM(clamp(s, 0, 100)) FROM (SELECT patient_id, ward, SUM(cost) AS s FROM visits GROUP BY patient_id, ward) AS t GROUP BY ward
