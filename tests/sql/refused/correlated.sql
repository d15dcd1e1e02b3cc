-- query: inequality
-- sqlstate: 0A000
-- at: v.nights
SELECT COUNT(*) FROM visits AS v WHERE v.cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.nights > v.nights)

-- query: in_the_value
-- sqlstate: 0A000
-- at: v.ward
SELECT COUNT(*) FROM visits AS v WHERE v.cost > (SELECT AVG(w.cost) + v.nights FROM visits AS w WHERE w.ward = v.ward)

-- query: rows_of_people
-- sqlstate: 0A000
-- at: p.patient_id
SELECT COUNT(*) FROM patients AS p WHERE 100 < (SELECT cost FROM visits AS v WHERE v.patient_id = p.patient_id)

-- query: grouped
-- sqlstate: 0A000
-- at: v.ward
SELECT COUNT(*) FROM visits AS v
WHERE v.cost > (SELECT AVG(w.cost) FROM visits AS w WHERE w.ward = v.ward GROUP BY nights LIMIT 1)

-- query: column_beside_the_aggregate
-- sqlstate: 0A000
-- at: v.ward
SELECT COUNT(*) FROM visits AS v WHERE v.nights > (SELECT COUNT(*) + w.ward FROM visits AS w WHERE w.ward = v.ward)

-- query: window_beside_the_aggregate
-- sqlstate: 0A000
-- at: v.ward
SELECT COUNT(*) FROM visits AS v WHERE v.nights > (SELECT COUNT(*) + SUM(1) OVER () FROM visits AS w WHERE w.ward = v.ward)

-- query: over_public_rows
-- sqlstate: 0A000
-- at: r.population
SELECT zone FROM regions AS r WHERE 10 < (SELECT COUNT(*) FROM patients AS p WHERE p.age < r.population)

-- query: in_a_list
-- sqlstate: 0A000
-- at: v.nights
SELECT COUNT(*) FROM visits AS v WHERE ward IN (SELECT ward FROM visits AS w WHERE w.nights = v.nights GROUP BY ward)

-- query: in_a_list_beside_groups
-- sqlstate: 0A000
-- at: p.region) FROM
SELECT p.sex, (SELECT COUNT(*) FROM patients AS q WHERE q.region = p.region) FROM patients AS p GROUP BY p.sex

-- query: public_rows_beside_groups
-- sqlstate: 0A000
-- at: p.region) AS
SELECT sex, (SELECT zone FROM regions AS r WHERE r.region = p.region) AS z, COUNT(*) FROM patients AS p GROUP BY sex

-- query: a_column_of_that_name_is_the_key
-- sqlstate: 0A000
-- at: p.region) AS
SELECT (SELECT zone FROM regions AS r WHERE r.region = p.region) AS sex, COUNT(*) FROM patients AS p GROUP BY sex

-- query: exists_on_more_than_the_person
-- sqlstate: 0A000
-- at: v.patient_id
SELECT COUNT(*) FROM visits AS v WHERE ward = 'er' OR EXISTS (SELECT 1 FROM visits AS w WHERE w.patient_id = v.patient_id AND w.nights = v.nights)

-- query: column_around_goes_before_an_alias
-- sqlstate: 0A000
-- at: p.patient_id
SELECT COUNT(*) FROM patients AS p
WHERE smoker OR EXISTS (SELECT v.nights AS age FROM visits AS v WHERE v.patient_id = p.patient_id AND age > 3)

-- query: names_of_the_row_around_and_of_the_subquery_are_equal
-- sqlstate: 0A000
-- at: patients.patient_id)
SELECT COUNT(*) FROM visits JOIN patients USING (patient_id) WHERE visits.nights IN (SELECT nights FROM visits WHERE visits.patient_id = patients.patient_id)
