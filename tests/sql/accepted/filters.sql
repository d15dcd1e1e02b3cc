-- query: equals
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward = 'icu'

-- query: greater
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(cost) FROM visits WHERE cost > 999

-- query: between
-- keys: none
-- l1: 120, 120, 120
-- rows: 120, 120, 120
SELECT COUNT(*), AVG(age) FROM patients WHERE age BETWEEN 30 AND 65

-- query: in_list
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE ward IN ('er', 'day') AND nights NOT IN (1, 2)

-- query: is_null
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE diagnosis IS NULL OR cost IS NOT NULL

-- query: like
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE diagnosis LIKE 'fl%' AND diagnosis NOT ILIKE '%x'

-- query: dates
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE day >= '2024-06-01' AND day < DATE '2024-09-01'

-- query: dates_interval
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(cost) FROM visits WHERE seen BETWEEN TIMESTAMP '2024-03-01' AND TIMESTAMP '2024-03-01' + INTERVAL 30 DAY

-- query: or_not
-- keys: none
-- l1: 600
-- rows: 30
SELECT SUM(nights) FROM visits WHERE NOT (ward = 'er' OR cost < 10)

-- query: boolean_column
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE smoker

-- query: boolean_tests
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE smoker IS TRUE OR (smoker IS NULL AND sex IS NOT DISTINCT FROM 'f')

-- query: unbounded_column
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE income > 100

-- query: division_by_column
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE code / nights > 2

-- query: text_functions
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE lower(trim(diagnosis)) = 'flu' AND length(diagnosis) < 10

-- query: date_part
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT COUNT(*), SUM(cost) FROM visits WHERE extract(month FROM day) = 3

-- query: one_person
-- keys: none
-- l1: 20000, 20000
-- rows: 1000, 1000
SELECT COUNT(*), SUM(cost) FROM visits WHERE patient_id = 900

-- query: case_in_filter
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits WHERE CASE WHEN ward = 'er' THEN cost ELSE change END > 5

-- query: alias_of_the_list
-- keys: public
-- l1: 20
-- rows: 1
SELECT nights // 10 AS weeks, COUNT(*) AS n FROM visits WHERE weeks > 0 AND Weeks < 3 GROUP BY weeks

-- query: alias_in_a_subquery
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM (SELECT cost / 2 AS half FROM visits WHERE half > 100) AS v

-- query: in_under_or
-- keys: none
-- l1: 1
-- rows: refused subquery_in_rows
SELECT COUNT(*) FROM patients WHERE age > 80 OR patient_id IN (SELECT patient_id FROM visits WHERE ward = 'er')

-- query: exists_in_a_sum
-- keys: none
-- l1: 2
-- rows: refused correlated
SELECT SUM(CASE WHEN EXISTS (SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id AND nights > 3) THEN 2 ELSE 0 END) FROM patients AS p

-- query: exists_as_a_key
-- keys: public
-- l1: 1
-- rows: refused correlated
SELECT EXISTS (SELECT 1 FROM visits AS v WHERE v.patient_id = p.patient_id) AS seen, COUNT(*) FROM patients AS p GROUP BY seen
