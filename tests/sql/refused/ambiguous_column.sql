-- query: join
-- sqlstate: 42702
-- at: patient_id
SELECT COUNT(patient_id) FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id

-- query: of_a_table_named_like_its_column
-- sqlstate: 42702
-- at: patient_id) FROM
SELECT COUNT(patient_id) FROM visits AS patient_id JOIN patients AS p ON patient_id.patient_id = p.patient_id

-- query: in_an_outer_join
-- sqlstate: 42702
-- at: patient_id GROUP
SELECT p.region, COUNT(*) FROM patients AS p LEFT JOIN visits AS v ON v.patient_id = patient_id GROUP BY p.region
