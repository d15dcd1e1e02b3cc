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
-- at: nights IN
SELECT COUNT(*) FROM visits WHERE ward = 'er' OR nights IN (SELECT nights FROM visits WHERE cost > 3)

-- query: in_or_of_no_rows_of_the_person
-- sqlstate: ZP004
-- at: 1
SELECT COUNT(*) FROM visits WHERE ward = 'er' OR EXISTS (SELECT 1 FROM patients WHERE age > 60)

-- query: in_another_clause
-- sqlstate: ZP004
-- at: patient_id IN
SELECT COUNT(*) FROM visits WHERE ward = 'er' OR patient_id IN (SELECT patient_id FROM patients LIMIT 3)

-- query: in_sum
-- sqlstate: ZP004
-- at: 1
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM patients) THEN 1 ELSE 0 END) FROM visits

-- query: in_that_may_be_null
-- sqlstate: ZP004
-- at: diagnosis NOT
SELECT COUNT(*) FROM visits WHERE nights > 3 OR diagnosis NOT IN (SELECT region FROM regions)
