-- query: squares_of_a_large_constant
-- sqlstate: 22003
SELECT STDDEV(1e300) FROM visits

-- query: products_of_large_values
-- sqlstate: 22003
SELECT CORR(1e200, cost) FROM visits

-- query: distinct_values
-- sqlstate: 22003
SELECT VAR_POP(DISTINCT 1e200 * cost) FROM visits
