-- query: sample
-- sqlstate: 0A000
-- at: 10
SELECT COUNT(*) FROM visits TABLESAMPLE 10 PERCENT

-- query: recursive
-- sqlstate: 0A000
-- at: t
WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT COUNT(*) FROM t

-- query: pivot
-- sqlstate: 0A000
-- at: visits
SELECT * FROM visits PIVOT (COUNT(*) FOR ward IN ('er', 'icu'))

-- query: values
-- sqlstate: 0A000
-- at: 1
SELECT * FROM (VALUES (1), (2)) AS t(a)

-- query: natural_join
-- sqlstate: 0A000
-- at: patients
SELECT COUNT(*) FROM visits NATURAL JOIN patients
