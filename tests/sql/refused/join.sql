-- query: cross
-- sqlstate: ZP009
-- at: patients
SELECT COUNT(*) FROM visits CROSS JOIN patients

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
