-- query: text
SELECT city, COUNT(*) FROM patients GROUP BY city

-- query: rows_of_units
SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis

-- query: counted_units
SELECT diagnosis, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY diagnosis

-- query: sums
SELECT diagnosis, SUM(cost), AVG(nights) FROM visits GROUP BY diagnosis

-- query: integers
SELECT code, COUNT(*) FROM visits GROUP BY code

-- query: reals
SELECT weight, COUNT(*) FROM patients GROUP BY weight

-- query: mixed
SELECT ward, diagnosis, COUNT(*) FROM visits GROUP BY ward, diagnosis

-- query: distinct
SELECT DISTINCT city FROM patients

-- query: no_aggregate
SELECT diagnosis FROM visits GROUP BY diagnosis

-- query: expression
SELECT upper(left(diagnosis, 1)) AS letter, COUNT(*) FROM visits GROUP BY letter

-- query: max_groups
-- set: dp.max_groups = 2
SELECT diagnosis, COUNT(*), SUM(cost) FROM visits GROUP BY diagnosis

-- query: max_groups_and_rows
-- set: dp.max_groups = 2
-- set: dp.max_rows_per_group = 2
SELECT diagnosis, COUNT(*), SUM(change) FROM visits GROUP BY diagnosis

-- query: filtered
SELECT city, COUNT(*) FILTER (WHERE smoker), AVG(age) FROM patients WHERE age > 18 GROUP BY city

-- query: of_labs
SELECT diagnosis, AVG(value) FROM labs JOIN visits USING (visit_id) GROUP BY diagnosis
