-- query: beside_an_aggregate_without
-- sqlstate: 0A000
-- at: ward, SUM
SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 1)), COUNT(*) FROM visits GROUP BY ward

-- query: of_a_maximum
-- sqlstate: 0A000
-- at: cost
SELECT MAX(cost, contribution_bounds_per_group => (0, 1)) FROM visits

-- query: of_distinct_values
-- sqlstate: 0A000
-- at: DISTINCT
SELECT COUNT(DISTINCT cost, contribution_bounds_per_group => (0, 1)) FROM visits

-- query: over_results
-- sqlstate: 0A000
-- at: SUM(n
SELECT SUM(n, contribution_bounds_per_group => (0, 1)) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t

-- query: among_the_rows_of_one_unit
-- sqlstate: 0A000
-- at: SUM(cost
SELECT AVG(s) FROM (SELECT patient_id, SUM(cost, contribution_bounds_per_group => (0, 1)) AS s FROM visits GROUP BY patient_id) AS t

-- query: rows_of_nobody
-- sqlstate: 0A000
-- at: SUM
SELECT SUM(cost, contribution_bounds_per_group => (0, 1)) FROM (SELECT DISTINCT cost FROM visits) AS t

-- query: upper_bound_first
-- sqlstate: 0A000
-- at: SUM(cost
SELECT SUM(cost, contribution_bounds_per_group => (10, 1)) FROM visits

-- query: rows_are_bounded_after_groups
-- sqlstate: 0A000
-- at: cost
SELECT SUM(cost, contribution_bounds_per_group => (0, 9), contribution_bounds_per_row => (0, 5)) FROM visits

-- query: in_a_window
-- sqlstate: 0A000
-- at: SUM(cost
SELECT COUNT(*) FROM (SELECT SUM(cost, contribution_bounds_per_group => (0, 9)) OVER (PARTITION BY patient_id) AS s FROM visits) AS t
WHERE s > 3

-- query: more_than_a_row_adds_to_a_count
-- sqlstate: 0A000
-- at: COUNT
-- policy: rows
SELECT COUNT(cost, contribution_bounds_per_group => (2, 9)) FROM visits
