-- query: of_one_person
-- sqlstate: 42803
-- at: LAG(cost)
SELECT SUM(LAG(cost) OVER (PARTITION BY patient_id ORDER BY seen)) FROM visits

-- query: of_all_rows
-- sqlstate: 42803
-- at: AVG(cost) OVER
SELECT ward, AVG(cost - AVG(cost) OVER ()) FROM visits GROUP BY ward

-- query: clamped
-- sqlstate: 42803
-- at: lag
SELECT SUM(clamp(lag(cost) OVER (ORDER BY day), 0, 1)) FROM visits
