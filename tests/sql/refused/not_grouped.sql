-- query: column
-- sqlstate: 42803
-- at: day
SELECT ward, day, COUNT(*) FROM visits GROUP BY ward

-- query: having
-- sqlstate: 42803
-- at: cost
SELECT ward FROM visits GROUP BY ward HAVING cost > 3

-- query: order
-- sqlstate: 42803
-- at: cost
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY cost

-- query: of_each
-- sqlstate: 42803
-- at: cost
SELECT AVG(x) FROM (SELECT patient_id, cost AS x FROM visits GROUP BY patient_id) AS t
