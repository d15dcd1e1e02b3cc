-- query: star
-- sqlstate: ZP001
-- at: *
SELECT * FROM patients

-- query: column
-- sqlstate: ZP001
-- at: age
SELECT age FROM patients

-- query: cte
-- sqlstate: ZP001
-- at: t
WITH t AS (SELECT * FROM visits) SELECT cost FROM t

-- query: scalar_subquery
-- sqlstate: ZP001
-- at: cost
SELECT COUNT(*), (SELECT cost FROM visits) FROM patients

-- query: exists_for_public_rows
-- sqlstate: ZP001
-- at: 1
SELECT region FROM regions AS r WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.region = r.region)

-- query: count_of_all_columns
-- sqlstate: ZP001
-- at: v.*
SELECT COUNT(v.*) FROM visits AS v
