-- query: rows_of_few_people
-- set: dp.min_units = 5
-- set: dp.threshold = 99
-- sqlstate: 0A000
SELECT COUNT(*) FROM visits

-- query: people
-- set: dp.min_units = 5
-- set: dp.threshold = 4.5
-- sqlstate: 0A000
SELECT COUNT(DISTINCT patient_id) FROM visits

-- query: a_sum
-- set: dp.min_units = 5
-- set: dp.threshold = 1000
-- sqlstate: 0A000
SELECT SUM(clamp(cost, 0, 500)) FROM visits
