-- query: tiny_epsilon
-- set: dp.epsilon = 0.000000000000000000000000000000000000000000000000001
-- sqlstate: ZP201
SELECT SUM(cost) FROM visits
