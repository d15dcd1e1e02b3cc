-- query: public_join
-- keys: public
-- l1: 1
-- rows: 1
SELECT r.zone, COUNT(*) FROM patients AS p JOIN regions AS r ON p.region = r.region GROUP BY r.zone

-- query: public_left_join
-- keys: public
-- l1: 120, 120, 120
-- rows: 120, 120, 120
SELECT r.zone, COUNT(*), AVG(p.age) FROM patients AS p LEFT JOIN regions AS r USING (region) GROUP BY r.zone

-- query: public_join_sum
-- keys: none
-- l1: 1000000
-- rows: 1000000
SELECT SUM(r.population) FROM patients AS p JOIN regions AS r USING (region)

-- query: public_join_multiplicity
-- keys: none
-- l1: 6000, 6000
-- rows: 300, 300
SELECT COUNT(*), SUM(b.price) FROM visits AS a JOIN prices AS b ON a.ward = b.ward

-- query: public_join_multiplicity_private_keys
-- keys: private
-- l1: 60
-- rows: 3
SELECT b.item, a.diagnosis, COUNT(*) FROM visits AS a JOIN prices AS b ON a.ward = b.ward GROUP BY 1, 2

-- query: public_right_join
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM regions AS r RIGHT JOIN patients AS p ON p.region = r.region

-- query: unit_join
-- keys: public
-- l1: 20000, 20000
-- rows: refused join
SELECT p.region, COUNT(*), SUM(v.cost) FROM visits AS v JOIN patients AS p ON v.patient_id = p.patient_id GROUP BY p.region

-- query: unit_left_join
-- keys: public
-- l1: 20, 600
-- rows: refused join
SELECT p.sex, COUNT(v.visit_id), SUM(v.nights) FROM patients AS p LEFT JOIN visits AS v ON v.patient_id = p.patient_id GROUP BY p.sex

-- query: foreign_key_chain
-- keys: public
-- l1: 96, 96
-- rows: refused join
SELECT v.ward, l.test, AVG(l.value) FROM labs AS l JOIN visits AS v ON l.visit_id = v.visit_id GROUP BY v.ward, l.test

-- query: whole_chain
-- keys: public
-- l1: 96, 96, 96
-- rows: refused join
SELECT p.region, COUNT(*), AVG(l.value) FROM labs AS l JOIN visits AS v ON l.visit_id = v.visit_id
JOIN patients AS p ON p.patient_id = v.patient_id GROUP BY p.region

-- query: chain_from_above
-- keys: none
-- l1: 12
-- rows: refused join
SELECT COUNT(*) FROM visits AS v JOIN labs AS l ON l.visit_id = v.visit_id

-- query: self_join
-- loose: 0.4 (of 400 pairs of visits at most 190 are in order)
-- keys: none
-- l1: 400
-- rows: refused join
SELECT COUNT(*) FROM visits AS a JOIN visits AS b ON a.patient_id = b.patient_id AND a.day < b.day

-- query: chain_and_public
-- keys: public
-- l1: 96, 96
-- rows: refused join
SELECT r.zone, AVG(l.value) FROM labs AS l JOIN visits AS v USING (visit_id) JOIN patients AS p USING (patient_id)
JOIN regions AS r USING (region) GROUP BY r.zone

-- query: subquery_in_from
-- keys: public
-- l1: 40000
-- rows: 2000
SELECT ward, SUM(twice) FROM (SELECT ward, cost * 2 AS twice FROM visits WHERE nights > 0) AS t GROUP BY ward

-- query: cte_over_rows
-- keys: none
-- l1: 20000, 20000, 20000
-- rows: 1000, 1000, 1000
WITH er AS (SELECT * FROM visits WHERE ward = 'er') SELECT COUNT(*), AVG(cost) FROM er

-- query: cte_over_rows_twice
-- keys: none
-- l1: 400
-- rows: refused join
WITH t AS (SELECT patient_id, cost FROM visits) SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.patient_id = b.patient_id

-- query: union_all
-- keys: public
-- l1: 21
-- rows: 2
SELECT kind, COUNT(*) FROM (SELECT 'v' AS kind, patient_id FROM visits UNION ALL SELECT 'p', patient_id FROM patients) AS t GROUP BY kind

-- query: union_all_sums
-- keys: none
-- l1: 21000, 1
-- rows: 2000, 2
SELECT SUM(x), COUNT(DISTINCT who) FROM (SELECT cost AS x, patient_id AS who FROM visits UNION ALL SELECT weight, patient_id FROM patients) AS t

-- query: in_public
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM patients WHERE region IN (SELECT region FROM regions WHERE zone = 'warm')

-- query: not_in_public
-- keys: none
-- l1: 120, 120, 120
-- rows: 120, 120, 120
SELECT COUNT(*), AVG(age) FROM patients WHERE region NOT IN (SELECT region FROM regions WHERE population > 20)

-- query: exists_public
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM prices AS p WHERE p.ward = v.ward AND p.price > 10)

-- query: in_unit
-- keys: none
-- l1: 1
-- rows: refused semi_join
SELECT COUNT(*) FROM patients WHERE patient_id IN (SELECT patient_id FROM visits WHERE ward = 'icu')

-- query: not_in_unit
-- keys: public
-- l1: 1
-- rows: refused semi_join
SELECT region, COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits) GROUP BY region

-- query: exists_unit
-- keys: none
-- l1: 20000
-- rows: refused semi_join
SELECT SUM(v.cost) FROM visits AS v WHERE EXISTS (SELECT 1 FROM patients AS p WHERE p.patient_id = v.patient_id AND p.smoker)

-- query: not_exists_unit
-- keys: none
-- l1: 20
-- rows: refused semi_join
SELECT COUNT(*) FROM visits AS v WHERE NOT EXISTS (SELECT 1 FROM visits AS w WHERE w.patient_id = v.patient_id AND w.ward = v.ward AND w.nights > 3)

-- query: alias_columns
-- keys: none
-- l1: 600
-- rows: 30
SELECT SUM(b) FROM (SELECT ward, nights FROM visits) AS t(a, b) WHERE a = 'er'

-- query: from_first
-- keys: none
-- l1: 20
-- rows: 1
FROM visits SELECT COUNT(*)

-- query: qualified_names
-- keys: none
-- l1: 20
-- rows: refused unknown_table
SELECT COUNT(*) FROM hospital.main.visits

-- query: comma_join
-- keys: none
-- l1: 20000, 20000
-- rows: refused join
SELECT COUNT(*), SUM(cost) FROM visits, patients WHERE visits.patient_id = patients.patient_id

-- query: left_join_counted_from_the_right
-- keys: none
-- l1: 31
-- rows: refused join
SELECT COUNT(*) FROM visits LEFT JOIN labs USING (visit_id)

-- query: join_counted_from_the_right
-- keys: none
-- l1: 12
-- rows: refused join
SELECT COUNT(*) FROM visits AS v JOIN labs AS l ON v.visit_id = l.visit_id

-- query: after_an_outer_join
-- keys: none
-- l1: 400
-- rows: refused join
SELECT COUNT(*) FROM patients AS p LEFT JOIN visits AS v ON p.patient_id = v.patient_id
JOIN visits AS w ON w.patient_id = v.patient_id AND w.ward = v.ward

-- query: grid_beyond_the_limit
-- keys: private
-- l1: 20
-- rows: refused join
SELECT day, nights, age, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY day, nights, age

-- query: exists_another_of_the_same
-- keys: none
-- l1: 20
-- rows: refused semi_join
SELECT COUNT(*) FROM visits AS v
WHERE EXISTS (SELECT 1 FROM visits AS w WHERE w.patient_id = v.patient_id AND w.visit_id <> v.visit_id)

-- query: not_exists_later
-- loose: 0.05 (of a person's visits few are the last)
-- keys: public
-- l1: 20
-- rows: refused semi_join
SELECT ward, COUNT(*) FROM visits AS v
WHERE NOT EXISTS (SELECT 1 FROM visits AS w WHERE w.patient_id = v.patient_id AND day > v.day AND w.ward = 'er') GROUP BY ward

-- query: exists_dearer_price
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM visits AS v WHERE EXISTS (SELECT 1 FROM prices WHERE price < v.cost OR prices.ward <> v.ward)

-- query: distinct_rows
-- keys: none
-- l1: 20
-- rows: 1
SELECT COUNT(*) FROM (SELECT DISTINCT ward, nights, code, cost FROM visits) AS t

-- query: distinct_rows_in_groups
-- keys: public
-- l1: 600, 600
-- rows: 30, 30
SELECT ward, COUNT(*), SUM(nights) FROM (SELECT DISTINCT ward, nights, cost, day FROM visits WHERE nights > 0) AS t GROUP BY ward

-- query: distinct_rows_with_private_keys
-- keys: private
-- l1: 600
-- rows: 30
SELECT diagnosis, SUM(nights) FROM (SELECT DISTINCT diagnosis, nights, day FROM visits) AS t GROUP BY diagnosis

-- query: distinct_results_of_units
-- keys: none
-- l1: 1
-- rows: 1, 1
SELECT COUNT(*) FROM (SELECT DISTINCT n, m FROM (SELECT patient_id, COUNT(*) AS n, MAX(nights) AS m FROM visits GROUP BY patient_id) AS t) AS u

-- query: distinct_rows_of_a_unit
-- keys: none
-- l1: 20, 1
-- rows: 1, 1
SELECT COUNT(*), COUNT(DISTINCT patient_id) FROM (SELECT DISTINCT patient_id, ward FROM visits) AS t

-- query: distinct_result_beside_rows
-- keys: none and public
-- l1: 20000
-- rows: 1000
SELECT SUM(cost) FROM visits JOIN (SELECT DISTINCT ward AS w FROM visits) AS t ON ward = t.w

-- query: join_with_all_conditions_in_brackets
-- keys: none
-- l1: 20
-- rows: refused join
SELECT COUNT(*) FROM visits AS v JOIN patients AS p ON ((v.patient_id = p.patient_id AND p.age > 50) AND (v.cost > 1))

-- query: correlated_value_as_a_key
-- keys: public
-- l1: 1
-- rows: 1
SELECT (SELECT zone FROM regions AS r WHERE r.region = p.region) AS z, COUNT(*) FROM patients AS p GROUP BY z

-- query: correlated_value_as_a_key_by_its_text
-- keys: public
-- l1: 1
-- rows: 1
SELECT (SELECT zone FROM regions AS r WHERE r.region = p.region), COUNT(*) FROM patients AS p
GROUP BY (SELECT zone FROM regions AS r WHERE r.region = p.region)

-- query: different_correlated_values
-- keys: public
-- l1: nothing
-- rows: nothing
SELECT DISTINCT upper((SELECT zone FROM regions AS r WHERE r.region = p.region)) FROM patients AS p

-- query: full_join_of_people
-- keys: none
-- l1: 32
-- rows: refused join
-- loose: 0.9 (laboratory values belong to a visit, which is then no row of its own)
SELECT COUNT(*) FROM labs AS l FULL JOIN visits AS v ON l.visit_id = v.visit_id

-- query: union_of_values
-- keys: none
-- l1: 21
-- rows: 2
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION SELECT city FROM patients) AS t

-- query: union_of_rows_with_the_unit
-- keys: public
-- l1: 3
-- rows: 2
SELECT sex, COUNT(*) FROM (SELECT patient_id, ward AS sex FROM visits UNION SELECT patient_id, sex FROM patients) AS t
WHERE sex IN ('f', 'm', 'er') GROUP BY sex

-- query: left_join_on_a_condition_of_the_left_side
-- keys: none
-- l1: 600, 600
-- rows: refused join
SELECT COUNT(*), SUM(nights) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND p.age > 30

-- query: public_left_join_on_a_condition_of_the_left_side
-- keys: public
-- l1: 1
-- rows: 1
SELECT zone, COUNT(*) FROM patients p LEFT JOIN regions r ON p.region = r.region AND p.age > 30 AND zone <> 'warm' GROUP BY zone

-- query: rows_that_agree_with_one_result
-- keys: none
-- l1: 30
-- rows: refused unbounded
SELECT SUM(nights) FROM visits WHERE (patient_id, visit_id) IN (SELECT patient_id, MAX(visit_id) FROM visits GROUP BY patient_id)

-- query: rows_that_agree_with_several_rows
-- keys: none
-- l1: 20
-- rows: refused semi_join
SELECT COUNT(*) FROM visits v WHERE (patient_id, nights) IN (SELECT patient_id, nights FROM visits WHERE ward = 'er')
