-- query: cross
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits CROSS JOIN patients

-- query: comma
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits, patients WHERE visits.patient_id = patients.patient_id

-- query: other_people
-- sqlstate: ZP009
-- at: visits
SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.ward = b.ward

-- query: many_to_many
-- sqlstate: ZP009
-- at: prices
SELECT COUNT(*) FROM visits AS v JOIN prices AS p ON v.cost = p.price

-- query: inequality
-- sqlstate: ZP009
-- at: prices
SELECT COUNT(*) FROM visits AS v JOIN prices AS p ON v.cost > p.price

-- query: full
-- sqlstate: ZP009
-- at: regions
SELECT COUNT(*) FROM patients AS p FULL JOIN regions AS r USING (region)

-- query: public_preserved
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM regions AS r LEFT JOIN patients AS p USING (region)

-- query: rows_with_result
-- sqlstate: ZP009
-- at: ward
SELECT COUNT(*) FROM visits AS v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t ON t.ward = v.ward

-- query: semi
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient_id)

-- query: after_outer_join_the_unit_may_be_missing
-- sqlstate: ZP009
-- at: visits
SELECT COUNT(*) FROM patients AS p LEFT JOIN visits AS v ON p.patient_id = v.patient_id JOIN visits AS w ON w.patient_id = v.patient_id AND w.ward = v.ward
