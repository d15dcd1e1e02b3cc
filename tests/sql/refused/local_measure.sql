-- query: a_count
-- set: dp.mechanism = smooth_sensitivity
-- sqlstate: 0A000
SELECT COUNT(*) FROM patients

-- query: a_mean_by_smooth_sensitivity
-- set: dp.mechanism = smooth_sensitivity
-- sqlstate: 0A000
SELECT AVG(age) FROM patients

-- query: another_quantile
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 3
-- sqlstate: 0A000
SELECT PERCENTILE_CONT(0.4) WITHIN GROUP (ORDER BY age) FROM patients

-- query: a_median_of_dates
-- set: dp.mechanism = smooth_sensitivity
-- sqlstate: 0A000
SELECT MEDIAN(day) FROM visits

-- query: a_mean_of_distinct_values
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 3
-- sqlstate: 0A000
SELECT AVG(DISTINCT age) FROM patients
