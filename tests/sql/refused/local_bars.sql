-- query: a_bar
-- set: dp.mechanism = smooth_sensitivity
-- set: dp.quantile_bars = on
-- sqlstate: 0A000
SELECT MEDIAN(age) FROM patients
