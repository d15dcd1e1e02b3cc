-- query: visits_of_each
-- keys: none
-- l1: 19, 19
-- rows: 1
SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t

-- query: cost_of_each
-- keys: none
-- l1: 20000, 20000
-- rows: 1000
SELECT SUM(total), COUNT(*) FROM (SELECT patient_id, SUM(cost) AS total FROM visits GROUP BY patient_id) AS t

-- query: frequent
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 10) AS t

-- query: histogram_of_counts
-- keys: public
-- l1: 1
-- rows: 1
SELECT n, COUNT(*) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t GROUP BY n

-- query: extremes
-- keys: none
-- l1: 1000, 1000, 30, 30
-- rows: 1, 1
SELECT AVG(most), AVG(least) FROM (SELECT patient_id, MAX(cost) AS most, MIN(nights) AS least FROM visits GROUP BY patient_id) AS t

-- query: means
-- keys: none
-- l1: 10
-- rows: 20, 20
SELECT SUM(m) FROM (SELECT patient_id, AVG(change) AS m FROM visits GROUP BY patient_id) AS t

-- query: further_key
-- loose: 0.5 (counts of one unit in several wards add up to 20)
-- keys: public
-- l1: 76, 76
-- rows: 1
SELECT ward, AVG(n) FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) AS t GROUP BY ward

-- query: distinct_values_of_each
-- keys: none
-- l1: 20, 20
-- rows: 1
SELECT AVG(kinds) FROM (SELECT patient_id, COUNT(DISTINCT diagnosis) AS kinds FROM visits GROUP BY patient_id) AS t

-- query: joined_back
-- keys: public
-- l1: 19, 19
-- rows: refused unbounded
SELECT p.region, AVG(t.n) FROM patients AS p
JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) AS t ON p.patient_id = t.patient_id GROUP BY p.region

-- query: filtered_measure
-- keys: none
-- l1: 20000
-- rows: 1000
SELECT SUM(er) FROM (SELECT patient_id, SUM(cost) FILTER (WHERE ward = 'er') AS er FROM visits GROUP BY patient_id) AS t

-- query: expression_over_measures
-- keys: none
-- l1: 1000, 1000
-- rows: refused clamp_over_results
SELECT AVG(clamp(s / n, 0, 1000)) FROM (SELECT patient_id, SUM(cost) AS s, COUNT(cost) AS n FROM visits GROUP BY patient_id) AS t

-- query: distinct_units
-- keys: none
-- l1: 1
-- rows: 1
SELECT COUNT(*) FROM (SELECT DISTINCT patient_id FROM visits) AS t

-- query: labs_of_each
-- keys: none
-- l1: 11, 11
-- rows: refused join
SELECT AVG(n) FROM (SELECT v.patient_id, COUNT(*) AS n FROM labs AS l JOIN visits AS v USING (visit_id) GROUP BY v.patient_id) AS t

-- query: values_of_each_visit
-- keys: none
-- l1: 132, 132
-- rows: 1
SELECT AVG(n) FROM (SELECT visit_id, COUNT(*) AS n FROM labs GROUP BY visit_id) AS t

-- query: visits_with_many_values
-- keys: none
-- loose: 1/5 (of the 20 visits of a person at most four have three of the 12 values)
-- l1: 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits AS v WHERE (SELECT COUNT(*) FROM labs AS l WHERE l.visit_id = v.visit_id) > 2

-- query: wards_of_measured_visits
-- keys: public
-- l1: 12
-- rows: refused join
SELECT ward, COUNT(*) FROM (SELECT v.ward, v.visit_id, MAX(l.value) AS m FROM labs AS l JOIN visits AS v USING (visit_id) GROUP BY v.ward, v.visit_id) AS t WHERE m > 1 GROUP BY ward

-- query: visits_in_a_grouped_list
-- keys: none
-- loose: 1/5 (of the 20 visits of a person at most four have three of the 12 values)
-- l1: 20
-- rows: 1, 1
SELECT COUNT(*) FROM visits WHERE visit_id IN (SELECT visit_id FROM labs GROUP BY visit_id HAVING COUNT(*) > 2)

-- query: different_values_of_each_visit
-- keys: none
-- l1: 132, 132
-- rows: 1
SELECT AVG(n) FROM (SELECT visit_id, COUNT(*) AS n FROM (SELECT DISTINCT visit_id, test FROM labs) AS d GROUP BY visit_id) AS t

-- query: first_value_of_each_visit
-- keys: none
-- l1: 12
-- rows: refused row_list
SELECT COUNT(t) FROM (SELECT visit_id, FIRST(test ORDER BY value) AS t FROM labs GROUP BY visit_id) AS q
