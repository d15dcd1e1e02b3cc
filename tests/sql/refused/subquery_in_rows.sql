-- query: scalar
-- sqlstate: ZP004
-- at: cost FROM
SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits)

-- query: in_having_of_people
-- sqlstate: ZP004
-- at: COUNT(*) IN
SELECT SUM(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id HAVING COUNT(*) IN (SELECT AVG(nights) FROM visits)) AS t

-- query: in_or
-- sqlstate: ZP004
-- at: patient_id
SELECT COUNT(*) FROM visits WHERE ward = 'er' OR patient_id IN (SELECT patient_id FROM patients)

-- query: in_sum
-- sqlstate: ZP004
-- at: 1
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM patients) THEN 1 ELSE 0 END) FROM visits
