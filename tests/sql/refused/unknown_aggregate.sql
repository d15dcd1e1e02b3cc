-- query: kurtosis
-- sqlstate: 42883
-- at: KURTOSIS
SELECT KURTOSIS(cost) FROM visits

-- query: deviation_of_each
-- sqlstate: 42883
-- at: STDDEV
SELECT AVG(s) FROM (SELECT patient_id, STDDEV(cost) AS s FROM visits GROUP BY patient_id) AS t

-- query: median_of_each
-- sqlstate: 42883
-- at: MEDIAN
SELECT AVG(s) FROM (SELECT patient_id, MEDIAN(cost) AS s FROM visits GROUP BY patient_id) AS t

-- query: skewness_of_groups
-- sqlstate: 42883
-- at: SKEWNESS
SELECT ward, SKEWNESS(cost) FROM visits GROUP BY ward
