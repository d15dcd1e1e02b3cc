-- query: gaussian_under_pure
-- set: dp.delta = 0
-- set: dp.mechanism = gaussian
-- sqlstate: ZP014
SELECT COUNT(*) FROM visits
