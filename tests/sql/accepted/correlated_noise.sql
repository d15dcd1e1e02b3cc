-- query: counts_and_sums_by_public_keys
-- set: dp.mechanism = correlated_laplace
-- keys: public
-- l1: 600, 600
-- rows: 30, 30
SELECT ward, COUNT(*), SUM(nights) FROM visits GROUP BY ward

-- query: with_a_correlation
-- set: dp.mechanism = correlated_laplace
-- set: dp.correlation = 0.9
-- keys: public
-- l1: 20
-- rows: 1
SELECT ward, COUNT(*) FROM visits GROUP BY ward
