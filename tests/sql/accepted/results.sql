-- query: having
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 5

-- query: order_limit
SELECT ward, SUM(cost) AS total FROM visits GROUP BY ward ORDER BY total DESC LIMIT 2

-- query: offset
SELECT nights, COUNT(*) FROM visits GROUP BY nights ORDER BY 2, 1 LIMIT 5 OFFSET 3

-- query: order_by_key
SELECT region, AVG(age) FROM patients GROUP BY region ORDER BY region DESC

-- query: expression_over_aggregates
SELECT SUM(cost) / COUNT(*) AS mean, round(AVG(change), 1) FROM visits

-- query: window
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM visits GROUP BY ward

-- query: running_total
SELECT month, SUM(n) OVER (ORDER BY month) FROM (SELECT date_trunc('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY 1) AS t

-- query: share
SELECT ward, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward

-- query: cte
WITH t AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT MAX(n) - MIN(n) FROM t

-- query: cte_twice
WITH t AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT a.ward, a.n, b.n FROM t AS a JOIN t AS b ON a.ward = b.ward

-- query: equal_blocks_once
SELECT (SELECT COUNT(*) FROM visits) AS a, (SELECT COUNT(*) FROM visits) AS b

-- query: two_blocks
SELECT (SELECT COUNT(*) FROM visits) AS v, (SELECT COUNT(*) FROM patients) AS p

-- query: nested_aggregation
SELECT AVG(n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t

-- query: joined_results
SELECT a.ward, a.n, b.s FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS a
JOIN (SELECT ward, SUM(cost) AS s FROM visits GROUP BY ward) AS b USING (ward)

-- query: result_with_public
SELECT r.zone, SUM(t.n) FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t
JOIN regions AS r ON r.region = t.region GROUP BY r.zone

-- query: per_head_of_population
SELECT t.region, t.n / r.population AS rate FROM (SELECT region, COUNT(*) AS n FROM patients GROUP BY region) AS t
JOIN regions AS r USING (region) ORDER BY rate

-- query: union_of_results
SELECT 'visits' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'patients', COUNT(*) FROM patients

-- query: except_of_results
SELECT ward FROM visits GROUP BY ward EXCEPT SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) < 45

-- query: intersect_of_results
SELECT region FROM regions INTERSECT SELECT region FROM patients GROUP BY region

-- query: rollup
SELECT region, sex, COUNT(*) FROM patients GROUP BY ROLLUP (region, sex)

-- query: cube
SELECT ward, nights > 1 AS stays, SUM(cost) FROM visits GROUP BY CUBE (ward, stays)

-- query: grouping_sets
SELECT region, smoker, COUNT(*), GROUPING(region) FROM patients GROUP BY GROUPING SETS ((region), (smoker), ())

-- query: scalar_subquery_over_result
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > (SELECT COUNT(*) / 10 FROM patients)

-- query: qualify
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward QUALIFY row_number() OVER (ORDER BY n) = 1

-- query: case_over_result
SELECT CASE WHEN COUNT(*) > 100 THEN 'many' ELSE 'few' END FROM patients

-- query: public_only
SELECT zone, SUM(population) FROM regions GROUP BY zone ORDER BY zone

-- query: constants
SELECT 1 + 1 AS two, 'x' AS x
