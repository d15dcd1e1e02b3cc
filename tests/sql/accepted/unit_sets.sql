-- query: retained
-- keys: none
-- l1: 1
-- rows: refused set_of_rows
SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE ward = 'er' INTERSECT SELECT patient_id FROM visits WHERE ward = 'icu') AS t

-- query: lost
-- keys: none
-- l1: 1
-- rows: refused set_of_rows
SELECT COUNT(*) FROM (SELECT patient_id FROM visits WHERE nights > 5 EXCEPT SELECT patient_id FROM visits WHERE ward = 'icu') AS t

-- query: in_either
-- keys: public
-- l1: 1
-- rows: refused join
SELECT sex, COUNT(*) FROM patients JOIN
(SELECT patient_id FROM visits WHERE ward = 'er' UNION SELECT patient_id FROM visits WHERE nights > 20) AS t USING (patient_id)
GROUP BY sex

-- query: three_sides
-- keys: none
-- l1: 20
-- rows: refused set_of_rows
SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM patients EXCEPT SELECT patient_id FROM visits WHERE ward = 'day'
INTERSECT SELECT patient_id FROM patients WHERE smoker)

-- query: joined_with_itself
-- keys: none
-- l1: 600, 600
-- rows: refused join
SELECT COUNT(*), SUM(a.nights) FROM visits AS a JOIN visits AS b ON a.visit_id = b.visit_id WHERE b.cost > 10
