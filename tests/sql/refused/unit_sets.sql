-- query: rollup
-- sqlstate: ZP008
-- at: patient_id
SELECT COUNT(*) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP(patient_id, ward)) AS q

-- query: cube
-- sqlstate: ZP008
-- at: patient_id
SELECT SUM(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY CUBE(patient_id)) AS q
