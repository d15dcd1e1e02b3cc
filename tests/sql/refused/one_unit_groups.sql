-- query: of_a_primary_key
-- sqlstate: ZP008
-- at: visit_id
SELECT visit_id, COUNT(*) FROM visits GROUP BY visit_id

-- query: of_a_foreign_key
-- sqlstate: ZP008
-- at: test
SELECT test, visit_id, AVG(value) FROM labs GROUP BY test, visit_id

-- query: joined
-- sqlstate: ZP008
-- at: v.visit_id
SELECT v.visit_id, SUM(l.value) FROM labs AS l JOIN visits AS v USING (visit_id) GROUP BY v.visit_id ORDER BY 2 DESC LIMIT 10

-- query: of_a_function_of_a_key
-- sqlstate: ZP008
-- at: v
SELECT visit_id * 2 AS v, COUNT(*) FROM visits GROUP BY v

-- query: of_a_union
-- sqlstate: ZP008
-- at: visit_id
SELECT visit_id, COUNT(*) FROM (SELECT visit_id FROM visits UNION ALL SELECT visit_id FROM labs) AS u GROUP BY visit_id

-- query: in_a_grouping_set
-- sqlstate: ZP008
-- at: ward
SELECT ward, visit_id, COUNT(*) FROM visits GROUP BY ROLLUP (ward, visit_id)
