-- query: text
-- keys: private
-- l1: 1
-- rows: 1
SELECT city, COUNT(*) FROM patients GROUP BY city

-- query: rows_of_units
-- keys: private
-- l1: 20
-- rows: 1
SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis

-- query: counted_units
-- keys: private
-- l1: 20
-- rows: 1
SELECT diagnosis, COUNT(DISTINCT patient_id) AS people FROM visits GROUP BY diagnosis

-- query: sums
-- keys: private
-- l1: 600, 600, 20000, 1
-- rows: 1000, 15, 1
SELECT diagnosis, SUM(cost), AVG(nights) FROM visits GROUP BY diagnosis

-- query: integers
-- keys: private
-- l1: 20
-- rows: 1
SELECT code, COUNT(*) FROM visits GROUP BY code

-- query: reals
-- keys: private
-- l1: 1
-- rows: 1
SELECT weight, COUNT(*) FROM patients GROUP BY weight

-- query: mixed
-- keys: private
-- l1: 20
-- rows: 1
SELECT ward, diagnosis, COUNT(*) FROM visits GROUP BY ward, diagnosis

-- query: distinct
-- keys: private
-- l1: nothing
-- rows: nothing
SELECT DISTINCT city FROM patients

-- query: no_aggregate
-- keys: private
-- l1: 1
-- rows: nothing
SELECT diagnosis FROM visits GROUP BY diagnosis

-- query: expression
-- keys: private
-- l1: 20
-- rows: 1
SELECT upper(left(diagnosis, 1)) AS letter, COUNT(*) FROM visits GROUP BY letter

-- query: max_groups
-- set: dp.max_groups = 2
-- keys: private
-- l1: 20000, 20000, 1
-- rows: 1, 1000
SELECT diagnosis, COUNT(*), SUM(cost) FROM visits GROUP BY diagnosis

-- query: max_groups_and_rows
-- set: dp.max_groups = 2
-- set: dp.max_rows_per_group = 2
-- keys: private
-- l1: 80, 80, 80, 1
-- rows: 1, 10
SELECT diagnosis, COUNT(*), SUM(change) FROM visits GROUP BY diagnosis

-- query: filtered
-- keys: private
-- l1: 120, 120, 1
-- rows: 120, 120, 1
SELECT city, COUNT(*) FILTER (WHERE smoker), AVG(age) FROM patients WHERE age > 18 GROUP BY city

-- query: of_labs
-- keys: private
-- l1: 96, 96, 1
-- rows: refused join
SELECT diagnosis, AVG(value) FROM labs JOIN visits USING (visit_id) GROUP BY diagnosis

-- query: gaussian_with_a_count_of_its_own
-- set: dp.mechanism = gaussian
-- keys: private
-- l1: 600, 4.47213590145
-- rows: 30
SELECT diagnosis, SUM(nights) FROM visits GROUP BY diagnosis
