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
