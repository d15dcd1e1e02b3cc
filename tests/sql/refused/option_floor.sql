-- query: set
-- sqlstate: 22023
SET dp.epsilon = 1e-9

-- query: in_the_text
-- sqlstate: 22023
-- at: epsilon
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.0001) COUNT(*) FROM visits
