-- query: join
-- sqlstate: 42702
-- at: patient_id
SELECT COUNT(patient_id) FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id
