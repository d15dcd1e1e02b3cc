-- query: mechanism
-- set: dp.threshold = 5
-- set: dp.mechanism = gaussian
-- sqlstate: 22023
SELECT COUNT(*) FROM visits

-- query: target
-- set: dp.threshold = 5
-- set: dp.target_error = 3
-- sqlstate: 22023
SELECT COUNT(*) FROM visits
