-- query: hardly_any
-- set: dp.mechanism = smooth_sensitivity
-- set: dp.epsilon = 0.004
-- sqlstate: 22023
SELECT MEDIAN(age) FROM patients
