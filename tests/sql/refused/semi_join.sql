-- query: other_people
-- sqlstate: ZP015
-- at: city
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT city FROM patients)

-- query: exists_other_people
-- sqlstate: ZP015
-- at: 1
SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.city = v.ward)

-- query: result
-- sqlstate: ZP015
-- at: ward
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward)
