-- query: as_it_is
-- sqlstate: ZP008
-- at: patient_id
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id

-- query: distinct
-- sqlstate: ZP008
-- at: patient_id
SELECT DISTINCT patient_id FROM visits

-- query: the_most_active
-- sqlstate: ZP008
-- at: patient_id
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id ORDER BY COUNT(*) DESC LIMIT 10
