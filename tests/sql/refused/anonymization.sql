-- query: the_clause
-- sqlstate: 0A000
-- at: ANONYMIZATION
SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1, kappa = 3) ANON_COUNT(*) FROM patients

-- query: a_count
-- sqlstate: 0A000
-- at: ANON_COUNT
SELECT ANON_COUNT(*) FROM patients

-- query: a_sum
-- sqlstate: 0A000
-- at: ANON_SUM
SELECT ward, ANON_SUM(cost CLAMPED BETWEEN 0 AND 100) FROM visits GROUP BY ward

-- query: a_mean
-- sqlstate: 0A000
-- at: anon_avg
SELECT anon_avg(cost CLAMPED BETWEEN 0 AND 100) FROM visits

-- query: quantiles
-- sqlstate: 0A000
-- at: ANON_QUANTILES
SELECT ANON_QUANTILES(cost, 4 CLAMPED BETWEEN 0 AND 100) FROM visits
