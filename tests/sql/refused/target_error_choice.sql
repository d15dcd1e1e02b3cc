-- query: median
-- set: dp.target_error = 3
-- sqlstate: 0A000
SELECT MEDIAN(age) FROM patients

-- query: beside_a_sum
-- set: dp.target_error = 3
-- sqlstate: 0A000
SELECT COUNT(*), MAX(age) FROM patients
