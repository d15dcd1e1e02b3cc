-- query: without_delta
-- set: dp.delta = 0
-- set: dp.mechanism = smooth_sensitivity
-- sqlstate: ZP014
SELECT MEDIAN(age) FROM patients
