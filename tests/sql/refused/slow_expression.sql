-- query: program
-- sqlstate: 54001
-- at: regexp_matches
SELECT COUNT(*) FROM patients WHERE regexp_matches(concat(city, 'x'), 'a.{480}z')

-- query: a_branch
-- sqlstate: 54001
-- at: left
SELECT COUNT(*) FROM patients WHERE CASE WHEN age > 30 THEN NOT left(city, 10000) ~ 'a.{5}z' ELSE false END

-- query: all_branches
-- sqlstate: 54001
SELECT COUNT(*) FROM patients WHERE CASE WHEN age > 30 THEN city ~ 'a.{2}b.*c' WHEN age > 20 THEN city ~ 'a.{2}b.*d'
  WHEN age > 10 THEN city ~ 'a.{2}b.*e' WHEN age > 5 THEN city ~ 'a.{2}b.*f' ELSE false END

-- query: subqueries
-- sqlstate: 54001
SELECT COUNT(*) FROM (SELECT DISTINCT city ~ 'a.{3}b.*c' AS m, age FROM patients) AS t
WHERE m OR (m AND age > 1) OR (m AND age > 2) OR (m AND age > 3)
