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
