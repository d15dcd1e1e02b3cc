-- query: too_many_groups
-- sqlstate: 54000
SELECT v.day, v.nights, v.ward, p.region, MEDIAN(v.cost)
FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY ALL
