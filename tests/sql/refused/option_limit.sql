-- query: epsilon
-- sqlstate: 22023
SET dp.epsilon = 20000

-- query: delta
-- sqlstate: 22023
SET dp.delta = 0.5

-- query: beyond_doubles
-- sqlstate: 22023
-- at: epsilon
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1e309) COUNT(*) FROM visits
