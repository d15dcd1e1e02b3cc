-- query: as_wide_as_the_bounds
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 120
-- sqlstate: 22023
SELECT AVG(age) FROM patients

-- query: less_than_a_step
-- set: dp.mechanism = propose_test_release
-- set: dp.proposed_sensitivity = 0.5
-- sqlstate: 22023
SELECT MEDIAN(age) FROM patients
