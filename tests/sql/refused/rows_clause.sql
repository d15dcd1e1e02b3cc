-- query: limit
-- sqlstate: ZP002
-- at: 10
SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 10) AS t

-- query: raw_limit
-- sqlstate: ZP002
-- at: 1
SELECT cost FROM visits LIMIT 1

-- query: distinct_on_limit
-- sqlstate: ZP002
-- at: n
SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id ORDER BY n LIMIT 3) AS t

-- query: union_limit
-- sqlstate: ZP002
-- at: ward
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM visits LIMIT 3) AS t
