-- query: aggregate
-- sqlstate: 42803
-- at: n > 5
SELECT ward, COUNT(*) AS n FROM visits WHERE n > 5 GROUP BY ward

-- query: window
-- sqlstate: 42803
-- at: first < 3
SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY patient_id ORDER BY day) AS first FROM visits WHERE first < 3) AS v

-- query: part_of_an_expression
-- sqlstate: 42803
-- at: share IS
SELECT ward, COUNT(*) / 2 AS share FROM visits WHERE nights > 1 AND (nights < 5 OR share IS NULL) GROUP BY ward

-- query: call_over_rows
-- sqlstate: 42803
-- at: SUM
SELECT COUNT(*) FROM visits WHERE SUM(cost) > 3

-- query: call_over_results
-- sqlstate: 42803
-- at: SUM(n) > 5
SELECT ward FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE SUM(n) > 5

-- query: window_over_results
-- sqlstate: 42803
-- at: rank() OVER (ORDER BY n) = 1
SELECT ward FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t WHERE rank() OVER (ORDER BY n) = 1
