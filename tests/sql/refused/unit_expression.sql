-- query: lower
-- sqlstate: ZP008
-- at: 1
SELECT COUNT(*) FROM (SELECT lower(CAST(patient_id AS VARCHAR)) AS p FROM visits GROUP BY 1) AS q

-- query: key_and_another_column
-- sqlstate: ZP008
-- at: 1
SELECT COUNT(*) FROM (SELECT CAST(patient_id AS VARCHAR) || '-' || ward AS p FROM visits GROUP BY 1) AS q

-- query: through_a_subquery
-- sqlstate: ZP008
-- at: p
SELECT COUNT(*) FROM (SELECT p FROM (SELECT patient_id / 7 AS p, day FROM visits) AS v GROUP BY p) AS q
