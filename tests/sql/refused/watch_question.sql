-- query: mean
-- set: dp.threshold = 5
-- sqlstate: 0A000
SELECT AVG(cost) FROM visits

-- query: groups
-- set: dp.threshold = 5
-- sqlstate: 0A000
SELECT region, COUNT(*) FROM patients GROUP BY region

-- query: computed
-- set: dp.threshold = 5
-- sqlstate: 0A000
SELECT COUNT(*) * 2 FROM visits
