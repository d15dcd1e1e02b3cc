-- query: except
-- sqlstate: ZP010
-- at: patient_id
SELECT COUNT(*) FROM (SELECT patient_id, region FROM patients EXCEPT SELECT patient_id, ward FROM visits) AS t

-- query: intersection_of_values
-- sqlstate: ZP010
-- at: city
SELECT COUNT(*) FROM (SELECT city FROM patients INTERSECT SELECT ward FROM visits) AS t

-- query: widths
-- sqlstate: ZP010
-- at: ward
SELECT COUNT(*) FROM (SELECT ward, cost FROM visits UNION ALL SELECT ward FROM visits) AS t

-- query: public_rows_beside
-- sqlstate: ZP010
-- at: ward FROM visits
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT ward FROM prices) AS t

-- query: a_result_beside
-- sqlstate: ZP010
-- at: cost
SELECT cost FROM visits UNION ALL SELECT COUNT(*) FROM visits
