-- query: key_of_extreme_rows
-- set: dp.target_error = 3
-- sqlstate: 0A000
SELECT ARG_MAX(ward, cost) FROM visits

-- query: median_of_samples
-- set: dp.target_error = 3
-- sqlstate: 0A000
SELECT COUNT(*), SAMPLE_AGGREGATE(AVG(age), 0, 100) FROM patients

-- query: local_sensitivity
-- set: dp.mechanism = smooth_sensitivity
-- set: dp.target_error = 3
-- sqlstate: 0A000
SELECT MEDIAN(age) FROM patients
