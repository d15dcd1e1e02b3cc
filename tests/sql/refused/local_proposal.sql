-- query: nothing_proposed
-- set: dp.mechanism = propose_test_release
-- sqlstate: 22023
SELECT AVG(age) FROM patients
