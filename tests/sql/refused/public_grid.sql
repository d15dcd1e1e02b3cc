-- query: product
-- sqlstate: 54000
SELECT day, nights, age, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY day, nights, age
