-- query: scalar
-- sqlstate: ZP004
-- at: AVG
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)

-- query: in_or
-- sqlstate: ZP004
-- at: patient_id
SELECT COUNT(*) FROM visits WHERE ward = 'er' OR patient_id IN (SELECT patient_id FROM patients)

-- query: in_sum
-- sqlstate: ZP004
-- at: 1
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM patients) THEN 1 ELSE 0 END) FROM visits
