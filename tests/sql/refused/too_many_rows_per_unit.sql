-- query: seven_joins
-- sqlstate: ZP011
SELECT COUNT(*) FROM visits AS a JOIN visits AS b USING (patient_id) JOIN visits AS c ON c.patient_id = a.patient_id
JOIN visits AS d ON d.patient_id = a.patient_id JOIN visits AS e ON e.patient_id = a.patient_id
JOIN visits AS f ON f.patient_id = a.patient_id JOIN visits AS g ON g.patient_id = a.patient_id
