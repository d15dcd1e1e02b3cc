-- query: public_keys
-- set: dp.min_units = 5
-- keys: public
-- l1: 20000, 4
-- rows: 1000, 1000
SELECT ward, SUM(cost) FROM visits GROUP BY ward

-- query: public_keys_with_a_count_of_units
-- set: dp.min_units = 5
-- keys: public
-- l1: 4, 600
-- rows: 30, 30, 1
SELECT ward, COUNT(DISTINCT patient_id), SUM(nights) FROM visits GROUP BY ward HAVING SUM(nights) > 3

-- query: private_keys
-- set: dp.min_units = 40
-- keys: private
-- l1: 20, 20
-- rows: 1
SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis

-- query: one_row_for_each_unit
-- set: dp.min_units = 3
-- keys: public
-- l1: 1
-- rows: 1
SELECT region, sex, COUNT(*) AS n FROM patients GROUP BY region, sex ORDER BY n DESC LIMIT 4

-- query: no_keys
-- set: dp.min_units = 3
-- keys: none
-- l1: 120, 120, 256, 256, 1
-- rows: 120, 120, 120, 256, 256
SELECT AVG(age), AVG(weight) FROM patients WHERE smoker

-- query: keys_alone
-- set: dp.min_units = 3
-- keys: public
-- l1: 4
-- rows: 1
SELECT DISTINCT ward FROM visits

-- query: sets_of_keys
-- set: dp.min_units = 3
-- keys: none and public
-- l1: 200, 4, 200, 1
-- rows: 20, 20, 20, 20, 20, 20
SELECT ward, SUM(change) FROM visits GROUP BY ROLLUP(ward)

-- query: joined_tables
-- loose: 0.25 (a patient lives in one region)
-- set: dp.min_units = 3
-- keys: public
-- l1: 20000, 4
-- rows: refused join
SELECT region, SUM(cost) FROM visits JOIN patients USING (patient_id) GROUP BY region

-- query: kept_public_rows
-- set: dp.min_units = 2
-- keys: public
-- l1: 120, 1
-- rows: 120, 120
SELECT r.region, SUM(coalesce(p.age, 0)) FROM regions r LEFT JOIN patients p ON p.region = r.region GROUP BY r.region

-- query: two_stages
-- set: dp.min_units = 4
-- keys: none and public
-- l1: 20, 4, 600, 1
-- rows: 1, 30, 30
SELECT SUM(nights) FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 10)

-- query: over_per_unit_rows
-- set: dp.min_units = 4
-- keys: public
-- l1: 1
-- rows: 1
SELECT n, COUNT(*) FROM (SELECT patient_id, least(COUNT(*), 3) AS n FROM visits GROUP BY patient_id) t WHERE n BETWEEN 1 AND 3 GROUP BY n

-- query: bounds_of_units_in_groups
-- set: dp.min_units = 4
-- keys: public
-- l1: 400, 4
-- rows: 100, 100
SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 100)) FROM visits GROUP BY ward

-- query: an_option_of_the_select
-- keys: private
-- l1: 20000, 2
-- rows: 1000, 1
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5, min_privacy_units_per_group = 30, max_groups_contributed = 2)
diagnosis, SUM(cost) FROM visits GROUP BY diagnosis
