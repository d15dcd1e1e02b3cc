-- query: row_number
-- sqlstate: ZP003
-- at: row_number
SELECT COUNT(*) FROM (SELECT row_number() OVER (ORDER BY cost) AS n FROM visits) AS t

-- query: lag
-- sqlstate: ZP003
-- at: lag
SELECT SUM(clamp(p, 0, 1)) FROM (SELECT lag(cost) OVER (ORDER BY day) AS p FROM visits) AS t

-- query: of_a_column
-- sqlstate: ZP003
-- at: row_number
SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY ward) AS n FROM visits) AS t

-- query: of_a_number_that_several_units_have
-- sqlstate: ZP003
-- at: row_number
SELECT COUNT(*) FROM (SELECT row_number() OVER (PARTITION BY patient_id * patient_id) AS n FROM visits) AS t

-- query: of_different_values
-- sqlstate: ZP003
-- at: count
SELECT SUM(n) FROM (SELECT count(DISTINCT ward) OVER (PARTITION BY patient_id) AS n FROM visits) AS t
