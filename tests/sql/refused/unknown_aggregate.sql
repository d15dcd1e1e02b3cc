-- query: median
-- sqlstate: 42883
-- at: MEDIAN
SELECT MEDIAN(cost) FROM visits

-- query: minimum
-- sqlstate: 42883
-- at: cost
SELECT MIN(cost), MAX(cost) FROM visits

-- query: deviation_of_each
-- sqlstate: 42883
-- at: STDDEV
SELECT AVG(s) FROM (SELECT patient_id, STDDEV(cost) AS s FROM visits GROUP BY patient_id) AS t

-- query: within_group
-- sqlstate: 42883
-- at: PERCENTILE_CONT
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits
