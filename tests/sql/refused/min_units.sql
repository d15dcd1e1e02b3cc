-- query: rows_without_repetitions
-- set: dp.min_units = 5
-- sqlstate: 0A000
-- at: COUNT(*)
SELECT COUNT(*) FROM (SELECT DISTINCT ward, nights FROM visits) t

-- query: rows_without_repetitions_by_a_key
-- set: dp.min_units = 5
-- sqlstate: 0A000
-- at: ward
SELECT ward, COUNT(*) FROM (SELECT DISTINCT ward, nights FROM visits) t GROUP BY ward

-- query: noise_by_local_sensitivity
-- set: dp.min_units = 5
-- set: dp.mechanism = smooth_sensitivity
-- sqlstate: 0A000
SELECT MEDIAN(age) FROM patients
