-- query: other_people
-- sqlstate: ZP015
-- at: city
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT city FROM patients)

-- query: exists_other_people
-- sqlstate: ZP015
-- at: 1
SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.city = v.ward)

-- query: several_columns
-- sqlstate: ZP015
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward, COUNT(*) FROM visits GROUP BY ward)

-- query: several_columns_for_a_value
-- sqlstate: ZP015
-- at: AVG
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost), COUNT(*) FROM visits)

-- query: dearer_than_anybody
-- sqlstate: ZP015
-- at: 1
SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.cost > v.cost)

-- query: several_values_under_not
-- sqlstate: ZP015
-- at: ward
SELECT COUNT(*) FROM visits WHERE (ward, day) NOT IN (SELECT ward, MIN(day) FROM visits GROUP BY ward)

-- query: several_values_of_other_people
-- sqlstate: ZP015
-- at: ward
SELECT COUNT(*) FROM visits WHERE (ward, day) IN (SELECT ward, day FROM visits)

-- query: units_above_a_unit
-- sqlstate: ZP015
-- at: 1 FROM
SELECT COUNT(*) FROM patients AS p WHERE EXISTS (SELECT 1 FROM visits AS v WHERE v.patient_id > p.patient_id)

-- query: units_by_another_number
-- sqlstate: ZP015
-- at: patient_id
SELECT COUNT(*) FROM patients WHERE age IN (SELECT patient_id FROM patients)

-- query: rows_of_no_unit
-- policy: rows
-- sqlstate: ZP015
-- at: patient_id FROM
SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits)
