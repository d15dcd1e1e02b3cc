-- query: too_small
-- set: dp.target_error = 0.0000001
-- sqlstate: 22023
SELECT SUM(cost) FROM visits
