-- query: alias_twice
-- sqlstate: 42712
-- at: patients
SELECT COUNT(*) FROM visits AS v JOIN patients AS v ON v.patient_id = v.patient_id
