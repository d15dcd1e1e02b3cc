-- query: sum
-- sqlstate: ZP006
-- at: SUM
SELECT SUM(DISTINCT cost) FROM visits

-- query: avg
-- sqlstate: ZP006
-- at: AVG
SELECT AVG(DISTINCT nights) FROM visits
